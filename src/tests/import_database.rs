//! `/lcm import` of a database: moved, damaged or foreign.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::import::Machine;
use super::patient::texts_of;
use super::support::{Session, TestStore};
use lcm_testing::stride;

/// An old database of three sessions, one a fork with edits and a compaction; and its digest.
async fn old_database() -> (Machine, PathBuf, Vec<String>) {
    let machine = Machine::new();
    let session = Session::new()
        .chat(40, 30)
        .entry("context_edit", json!({"targetId": "e4", "replacement": {"content": "more briefly"}}))
        .entry("context_edit", json!({"targetId": "e5", "replacement": null}))
        .message(json!({"role": "bashExecution", "command": "env", "output": "", "excludeFromContext": true}))
        .chat(10, 30);
    let store = TestStore::of(machine.home.store.clone());
    store.ingest("one", &session).await;
    store.ingest("fork", &session.at("e20").user("another way").chat(5, 30)).await;
    store.ingest("two", &Session::new().chat(20, 300)).await;
    let digest = machine.digest().await;
    machine.home.store.close().await;
    let Some(path) = machine.home.store.place().map(ToOwned::to_owned) else { panic!("no file") };
    let old = machine.at("old.db");
    fs::copy(path, &old).unwrap();
    (machine, old, digest)
}

#[tokio::test]
async fn a_moved_database_is_imported_without_session_files() {
    let (_from, old, digest) = old_database().await;
    let before = fs::read(&old).unwrap();
    let machine = Machine::new();
    let report = machine.run(&old.display().to_string()).await;
    assert!(report.starts_with("3 sessions: ") && report.ends_with(" known already"), "{report}");
    let others: Vec<String> =
        machine.digest().await.into_iter().filter(|entry| !digest.contains(entry)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(fs::read(&old).unwrap(), before);
    let files = fs::read_dir(old.parent().unwrap()).unwrap().flatten();
    assert_eq!(files.filter(|file| file.file_name().to_string_lossy().starts_with("old.db")).count(), 1);

    let again = machine.run(&old.display().to_string()).await;
    assert!(again.starts_with("3 sessions: 0 messages new, "), "{again}");
    assert_eq!(machine.digest().await.len(), digest.len());
}

#[tokio::test]
async fn a_damaged_page_costs_its_own_rows_and_no_others() {
    let (_from, old, _) = old_database().await;
    let bytes = fs::read(&old).unwrap();
    let pages = bytes.len() / 4096;
    let whole = Machine::new();
    whole.run(&old.display().to_string()).await;
    let said = texts_of(&whole.home.store).await;
    let mut complete = 0;
    for page in (0..pages).step_by(stride()) {
        let mut damaged = bytes.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0x5a);
        fs::write(&old, &damaged).unwrap();
        let machine = Machine::new();
        let report = machine.run(&old.display().to_string()).await;
        let lost = said.difference(&texts_of(&machine.home.store).await).count();
        assert!(
            lost < 60 && (lost == 0 || report.contains("unreadable row")),
            "{page}: {lost} lost: {report}"
        );
        let is_recovered = |ids: Vec<String>| ids.iter().any(|id| id.starts_with("recovered"));
        let ids = machine.home.store.read(|view| view.messages().session_ids()).await.unwrap();
        assert_eq!(report.contains("in a session named recovered"), is_recovered(ids), "{page}: {report}");
        complete += usize::from(lost == 0);
        machine.home.store.close().await;
    }
    assert!(complete * stride() > pages / 2, "{complete} of {pages}");
}

#[tokio::test]
async fn a_foreign_database_is_reported() {
    let machine = Machine::new();
    let path = machine.at("other.db");
    fs::write(&path, "no database at all").unwrap();
    let report = machine.run(&path.display().to_string()).await;
    assert!(
        report.contains("other.db: it is not a database of this extension, or nothing in it can be read"),
        "{report}"
    );
    rusqlite::Connection::open(machine.at("theirs.db")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let report = machine.run(&machine.at("theirs.db").display().to_string()).await;
    assert!(report.contains("theirs.db: it is not a database of this extension"), "{report}");
    let Some(own) = machine.home.store.place() else { panic!("no file") };
    let report = machine.run(&own.display().to_string()).await;
    assert!(report.contains("it is the database that is in use"), "{report}");
}
