//! Opening a store next to other files.

use std::path::Path;

use rusqlite::Connection;

use lcm_store::Store;

/// Opens a project's store in `dir`. Returns its file name and the notice.
async fn open(dir: &Path) -> (String, Option<String>) {
    let store = Store::open(Some(dir), "project", "/project").unwrap();
    let Some(path) = store.place().map(ToOwned::to_owned) else { panic!("no file") };
    let notice = store.notice().map(ToOwned::to_owned);
    store.close().await;
    (path.file_name().unwrap().to_string_lossy().into_owned(), notice)
}

#[tokio::test]
async fn next_to_a_file_that_is_not_ours_a_new_one_is_made_with_one_notice() {
    {
        let statements = "CREATE TABLE theirs (x)";
        let expected = "belongs to another program; the history goes to";
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("project.db");
        Connection::open(&theirs).unwrap().execute_batch(statements).unwrap();
        let before = std::fs::read(&theirs).unwrap();
        let (name, notice) = open(dir.path()).await;
        assert_eq!(name, "project-2.db");
        assert!(notice.unwrap().contains(expected));
        assert_eq!(open(dir.path()).await, (name, None));
        assert_eq!(std::fs::read(&theirs).unwrap(), before);
    }
}

#[tokio::test]
async fn a_damaged_file_is_reported_until_it_is_moved_and_its_replacement_stays_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = dir.path().join("project.db");
    std::fs::write(&damaged, [0x5a; 8192]).unwrap();
    for _ in 0..2 {
        let (name, notice) = open(dir.path()).await;
        assert_eq!(name, "project-2.db");
        assert!(
            notice.unwrap().contains("project.db is damaged: file is not a database; new messages go to")
        );
    }
    assert_eq!(std::fs::read(&damaged).unwrap(), [0x5a; 8192]);
    std::fs::rename(&damaged, dir.path().join("elsewhere")).unwrap();
    assert_eq!(open(dir.path()).await, ("project-2.db".into(), None));
}

#[tokio::test]
async fn a_file_of_another_format_is_reported_each_time() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(open(dir.path()).await, ("project.db".into(), None));
    let newer = Connection::open(dir.path().join("project.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    for _ in 0..2 {
        let (name, notice) = open(dir.path()).await;
        assert_eq!(name, "project-2.db");
        assert!(
            notice.unwrap().contains(
                "project.db has format 99, and this version of pi-lossless-context reads format 1: "
            )
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_can_access_is_refused_everywhere() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    assert_eq!(open(dir.path()).await, ("project.db".into(), None));
    let database = dir.path().join("project.db");
    let log = dir.path().join("project.db-wal");
    std::fs::write(&log, "").unwrap();
    for (path, mode) in [(dir.path(), 0o770), (&database, 0o602), (&log, 0o666)] {
        let before = std::fs::metadata(path).unwrap().permissions();
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let expected = format!("{} may be written by other users (mode {mode:o}): ", path.display());
        let why = Store::open(Some(dir.path()), "project", "/project").err().unwrap().to_string();
        assert!(why.starts_with(&expected), "{why}");
        set_permissions(path, before).unwrap();
    }
}
