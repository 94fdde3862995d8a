//! Opening a store next to other files.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::ids::{Hash, MessageId};
use crate::store::{Place, Store};

/// Opens a project's store in `dir`. Returns its file name and the notice.
async fn open(dir: &Path) -> (String, Option<String>) {
    let store = Store::open(Some(dir), "project", "/project").unwrap();
    let Place::File(path) = store.place().clone() else { panic!("no file") };
    let notice = store.notice().map(ToOwned::to_owned);
    store.close().await;
    (path.file_name().unwrap().to_string_lossy().into_owned(), notice)
}

#[tokio::test]
async fn next_to_a_file_that_is_not_ours_a_new_one_is_made_with_one_notice() {
    let development =
        "PRAGMA application_id = 0x4c434d31; PRAGMA user_version = 2; CREATE TABLE messages (x)";
    for (statements, expected) in [
        ("CREATE TABLE theirs (x)", "belongs to another program; the history goes to"),
        (development, "was written by a development version and stays as it is (/lcm import"),
    ] {
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
            notice.unwrap().contains("project.db is damaged: file is not a database; the history goes to")
        );
    }
    assert_eq!(std::fs::read(&damaged).unwrap(), [0x5a; 8192]);
    std::fs::rename(&damaged, dir.path().join("elsewhere")).unwrap();
    assert_eq!(open(dir.path()).await, ("project-2.db".into(), None));
}

#[tokio::test]
async fn a_file_of_the_first_format_is_migrated_and_its_messages_are_found_by_lineage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("project.db");
    let first = Connection::open(&path).unwrap();
    first.execute_batch("PRAGMA application_id = 0x504c434d; PRAGMA user_version = 1").unwrap();
    first.execute_batch(include_str!("../store/db/migrations/001_init.sql")).unwrap();
    let lineage = |row: i64| Hash::ROOT.child(&row.to_string());
    let add = |connection: &Connection, row: i64, named: i64, parent: Option<i64>| {
        let sql =
            "INSERT INTO messages VALUES (?1, ?2, ?3, 0, 0, 'user', NULL, 1, 1, x'7b7d', 0, 2, NULL, 0)";
        connection.execute(sql, params![row, lineage(named), parent]).map_err(|error| error.to_string())
    };
    // In several runs of the index, far apart.
    let rows = [1, 2, 16_384, 40_000, i64::MAX - 1];
    for row in rows {
        assert_eq!(add(&first, row, row, (row > 2).then_some(1)), Ok(1));
    }
    drop(first);

    let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
    let found = store.read(move |view| {
        let messages = view.messages();
        assert_eq!(messages.message_by_lineage(lineage(3))?, None);
        assert_eq!(messages.messages_between(Hash::ROOT, Hash([u8::MAX; 32]))?.len(), rows.len());
        rows.into_iter().map(|row| messages.message_by_lineage(lineage(row))).collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(found.await.unwrap(), rows.map(|row| Some(MessageId(row))).to_vec());
    store.close().await;

    let migrated = Connection::open(&path).unwrap();
    assert_eq!(
        migrated.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
    for (known, parent) in [(1, None), (16_384, Some(1))] {
        assert!(add(&migrated, 7, known, parent).unwrap_err().contains("messages_by_parent"));
    }
}

#[tokio::test]
async fn a_file_of_the_first_format_that_cant_be_migrated_stays_as_it_is() {
    let [one, other] = [1, 2].map(|row: i64| Hash::ROOT.child(&row.to_string()));
    let first = include_str!("../store/db/migrations/001_init.sql");
    let another = first.replace("NOT NULL UNIQUE,  --", "NOT NULL UNIQUE, --");
    let others = format!("{first}; INSERT INTO _metadata VALUES ('cwd', '/other')");
    for (schema, expected) in [
        (&*another, "project.db is damaged: no such index"),
        (first, "project.db is damaged: UNIQUE constraint failed"),
        (&others, "project.db holds the history of another project, /other; the history goes to"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("project.db");
        let made = Connection::open(&path).unwrap();
        made.execute_batch("PRAGMA application_id = 0x504c434d; PRAGMA user_version = 1").unwrap();
        made.execute_batch(schema).unwrap();
        for lineage in [one, other] {
            let sql = "INSERT INTO messages VALUES (NULL, ?1, NULL, 0, 0, 'user', NULL, 1, 1, x'7b7d', 0, 2, NULL, 0)";
            made.execute(sql, [lineage]).unwrap();
        }
        made.pragma_update(None, "journal_mode", "WAL").unwrap();
        drop(made);
        let mut bytes = std::fs::read(&path).unwrap();
        if schema == first {
            // Damage made both rows the same message.
            while let Some(at) = bytes.windows(32).position(|bytes| bytes == other.0) {
                bytes[at..at + 32].copy_from_slice(&one.0);
            }
            std::fs::write(&path, &bytes).unwrap();
        }
        let (name, notice) = open(dir.path()).await;
        let notice = notice.unwrap();
        assert!(notice.contains(expected), "{notice}");
        assert_eq!(name, "project-2.db");
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}

#[tokio::test]
async fn a_newer_versions_file_is_reported_each_time() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(open(dir.path()).await, ("project.db".into(), None));
    let newer = Connection::open(dir.path().join("project.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    for _ in 0..2 {
        let (name, notice) = open(dir.path()).await;
        assert_eq!(name, "project-2.db");
        assert!(notice.unwrap().contains("was written by a newer version"));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_can_access_is_refused_everywhere() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use crate::store::histories;

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
        if path != dir.path() {
            assert_eq!(histories(dir.path()), []);
        }
        set_permissions(path, before).unwrap();
    }
    assert_eq!(histories(dir.path()).len(), 1);
}
