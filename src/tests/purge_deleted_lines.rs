//! Purges, and lines that users delete from session files: an older database brings nothing back.

use std::fs;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::patient::{Patient, texts_of};
use super::secrets::import;
use lcm_ingest::{Handover, Persistor, PiSession};
use lcm_model::ids::ConversationId;
use lcm_model::log::Log;
use lcm_model::{Content, Entry};
use lcm_store::{Purge, Store};

/// What the shim does at a start.
async fn open(store: &Store, id: &str, file: &std::path::Path) {
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let session = PiSession { id: id.into(), file: Some(file.display().to_string()), parent_file: None };
    let persistor = Persistor::open(store, session, Log::default()).await.unwrap();
    let ids: Vec<String> = lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    for is_second in [false, true] {
        let missing = persistor.missing(ids.clone()).await.unwrap();
        let missing: Vec<_> = missing.into_iter().map(|at| &lines[at]).collect();
        let is_orphan = |line: &&&Value| {
            line["parentId"].as_str().is_some_and(|parent| !ids.iter().any(|id| id == parent))
        };
        let orphans = missing.iter().filter(is_orphan).map(|line| line["id"].as_str().unwrap().to_owned());
        persistor.hand_over(&json!(missing).to_string(), orphans.collect()).unwrap();
        store.flush().await.unwrap();
        if !is_second {
            persistor.set_aside(&CancellationToken::new()).await.unwrap();
        }
    }
}

/// Removes the line of an entry, as docs/your-data.md says.
fn delete_line(file: &std::path::Path, id: &str) {
    let text = fs::read_to_string(file).unwrap();
    let is_it = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["id"] != id;
    fs::write(file, text.lines().filter(is_it).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

async fn purge(store: &Store, entry: &'static str) -> String {
    let found = store.read(move |view| {
        let message = view.upkeep().purgeable_at(ConversationId(1), entry)?.unwrap();
        Ok((message, view.messages().json_of(message)?))
    });
    let (message, json) = found.await.unwrap();
    store.write(move |batch| batch.upkeep().purge(&Purge::Message(message))).await.unwrap();
    store.vacuum().await.unwrap();
    json
}

#[tokio::test]
async fn a_rebuild_brings_back_nothing_whose_line_was_deleted_after_a_purge() {
    for is_deleted in [false, true] {
        // A file that was damaged, beside the one in use.
        let patient = Patient::new().await;
        patient.store.close().await;
        let second = patient.dir.path().join("project-2.db");
        fs::copy(patient.database(), &second).unwrap();
        let patient = patient.reopened().await;
        let secret = purge(&patient.store, "e6").await;
        if is_deleted {
            delete_line(&patient.file(), "e6");
        }
        open(&patient.store, "one", &patient.file()).await;
        assert!(!texts_of(&patient.store).await.contains(&secret));
        let (patient, report) = patient.rebuilt().await;
        assert!(!texts_of(&patient.store).await.contains(&secret), "{is_deleted} {report}");
    }
}

#[tokio::test]
async fn a_backup_brings_back_nothing_whose_line_was_deleted_after_a_purge() {
    let patient = Patient::new().await;
    patient.store.close().await;
    let backup = patient.dir.path().join("backup.db");
    fs::copy(patient.database(), &backup).unwrap();
    let patient = patient.reopened().await;
    let secret = purge(&patient.store, "e6").await;
    delete_line(&patient.file(), "e6");
    open(&patient.store, "one", &patient.file()).await;
    import(&patient.store, &backup).await;
    assert!(!texts_of(&patient.store).await.contains(&secret));
    let (patient, report) = patient.rebuilt().await;
    assert!(!texts_of(&patient.store).await.contains(&secret), "{report}");
}

/// The database in use has only a fork of what an older one has.
#[tokio::test]
async fn a_rebuild_brings_back_nothing_that_was_purged_in_a_fork() {
    let patient = Patient::new().await;
    patient.store.close().await;
    let (first, second) = (patient.database(), patient.dir.path().join("project-2.db"));
    let (older, fork) = (patient.dir.path().join("older"), patient.dir.path().join("fork.jsonl"));
    fs::rename(&first, &older).unwrap();
    let text = fs::read_to_string(patient.file()).unwrap();
    fs::write(&fork, text.replacen("\"one\"", "\"fork\"", 1)).unwrap();
    let patient = patient.reopened().await;
    open(&patient.store, "fork", &fork).await;
    let secret = purge(&patient.store, "e6").await;
    patient.store.close().await;
    fs::rename(&first, second).unwrap();
    fs::rename(older, first).unwrap();
    let (patient, report) = patient.reopened().await.rebuilt().await;
    assert!(!texts_of(&patient.store).await.contains(&secret), "{report}");
    assert!(patient.doctor().await.ends_with("in order."));
}

/// Another machine has purged a version, more than a sync removes unasked.
#[tokio::test]
async fn a_rebuild_removes_nothing_that_waits_for_the_users_confirmation() {
    let patient = Patient::new().await;
    let said = patient.store.read(|view| Ok(view.messages().version(ConversationId(1), "e6")?.unwrap()));
    let entry = Entry {
        id: "e6".into(),
        parent: None,
        timestamp: said.await.unwrap().timestamp,
        content: Content::Purged([7; 32]),
    };
    let handover = Handover { entries: vec![entry], ..Handover::default() }.prepare();
    let write = patient.store.write(move |batch| {
        let row = batch.messages().conversation_row("elsewhere", None, None, 0)?;
        handover.store(batch, row)
    });
    write.await.unwrap();
    patient.heals().await;
}
