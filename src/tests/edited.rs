//! Session files that were edited after they were stored: what Pi shows counts, and nothing stored is lost.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::import::Machine;
use super::session_files::{events, project};
use super::storing::block_on;
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_ingest::{Persistor, PiSession};
use lcm_model::log::Log;
use lcm_testing::cases;

/// A session with its file, as Pi opens it.
struct Opened {
    machine: Machine,
    persistor: Persistor,
}

impl Opened {
    async fn new(machine: Machine, id: &str, entries: &[Value]) -> Self {
        let file = machine.write("a.jsonl", id, entries);
        let session = PiSession { id: id.into(), file: Some(file.display().to_string()), parent_file: None };
        let persistor = Persistor::open(&machine.home.store, session, Log::default()).await.unwrap();
        Self { machine, persistor }
    }

    /// What the shim does at a start: hands over what is missing, compares, and hands over again.
    async fn start(&self, entries: &[Value]) -> usize {
        self.hand_over(entries).await;
        let edited = self.persistor.set_aside(&CancellationToken::new()).await.unwrap();
        self.hand_over(entries).await;
        edited
    }

    async fn hand_over(&self, entries: &[Value]) {
        let ids: Vec<String> = entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
        let missing = self.persistor.missing(ids.clone()).await.unwrap();
        let missing: Vec<&Value> = missing.into_iter().map(|at| &entries[at]).collect();
        let is_orphan = |entry: &&&Value| {
            entry["parentId"].as_str().is_some_and(|parent| !ids.iter().any(|id| id == parent))
        };
        let orphans = missing.iter().filter(is_orphan).map(|entry| entry["id"].as_str().unwrap().to_owned());
        self.persistor.hand_over(&json!(missing).to_string(), orphans.collect()).unwrap();
        self.machine.home.store.flush().await.unwrap();
    }

    async fn shown(&self, leaf: &str) -> String {
        let store = TestStore::of(self.machine.home.store.clone());
        json!(store.visible(self.persistor.conversation(), leaf).await).to_string()
    }
}

fn told() -> Session {
    Session::new()
        .user("The key is hazel0, keep it.")
        .assistant("Noted.")
        .tool("read", json!({"path": "a.txt"}), "out hazel1")
        .chat(10, 30)
        .user("tail")
}

/// Edits of the entries, each with what Pi shows then, and what it does not show any more.
fn edits() -> Vec<(&'static str, Vec<Value>, &'static str, &'static str)> {
    let entries = told().entries;
    let with = |edit: fn(&mut Vec<Value>)| {
        let mut edited = entries.clone();
        edit(&mut edited);
        edited
    };
    vec![
        (
            "a text is corrected",
            with(|all| all[0]["message"]["content"] = json!("The key is birch0.")),
            "birch0",
            "hazel0",
        ),
        (
            "a secret is taken out",
            with(|all| all[0]["message"]["content"] = json!("The key is [gone].")),
            "[gone]",
            "hazel0",
        ),
        (
            "a result is trimmed",
            with(|all| all[3]["message"]["content"] = json!([{"type": "text", "text": "[trimmed]"}])),
            "[trimmed]",
            "hazel1",
        ),
        (
            "an entry is removed and its child moved up",
            with(|all| {
                all.remove(0);
                all[0]["parentId"] = Value::Null;
            }),
            "Noted.",
            "hazel0",
        ),
        ("an entry is removed", with(|all| drop(all.remove(0))), "Noted.", "hazel0"),
        (
            "a call is removed with its result",
            with(|all| {
                all.drain(2..4);
                all[2]["parentId"] = json!("e2");
            }),
            "Noted.",
            "hazel1",
        ),
        (
            "an entry is inserted",
            with(|all| {
                let new = json!({"type": "message", "id": "new", "parentId": "e1", "message": {"role": "user", "content": "But birch1."}});
                all.insert(1, new);
                all[2]["parentId"] = json!("new");
                all[0]["message"]["content"] = json!("The key is mine.");
            }),
            "birch1",
            "hazel0",
        ),
        (
            "a message has another role",
            with(|all| all[0]["message"]["role"] = json!("custom")),
            "custom",
            "nothing at all",
        ),
    ]
}

/// A sync may bring a session's messages masked before its file is here: opening that stores nothing twice.
#[tokio::test]
async fn what_a_sync_has_masked_is_no_edit() {
    let masked = |text: &str| text.replace("hazel0", "[masked: password]").replace("hazel1", "[masked]");
    let entries = told().entries;
    let brought: Vec<Value> = serde_json::from_str(&masked(&json!(entries).to_string())).unwrap();
    let opened = Opened::new(Machine::new(), "one", &brought).await;
    opened.start(&brought).await;
    opened.machine.write("a.jsonl", "one", &entries);
    assert_eq!(opened.start(&entries).await, 0);
    // Another text is an edit, also beside a mask.
    let mut other = entries.clone();
    other[0]["message"]["content"] = json!("The key is hazel0, lose it.");
    opened.machine.write("a.jsonl", "one", &other);
    assert!(opened.start(&other).await > 0);
}

#[tokio::test]
async fn what_pi_shows_is_summarized_and_the_earlier_text_is_found() {
    let entries = told().entries;
    let leaf = entries.last().unwrap()["id"].as_str().unwrap();
    for (case, edited, shows, hides) in edits() {
        let first = Opened::new(Machine::new(), "one", &entries).await;
        assert_eq!(first.start(&entries).await, 0, "{case}");
        let before = first.machine.digest().await.len();
        let again = Opened::new(first.machine, "one", &edited).await;
        assert!(again.start(&edited).await > 0, "{case}");
        let shown = again.shown(leaf).await;
        assert!(shown.contains(shows) && !shown.contains(hides), "{case}: {shown}");
        assert!(again.machine.digest().await.len() > before, "{case}");
        let found = again.machine.home.store.read(|view| {
            let mut all = Vec::new();
            for session in view.messages().session_ids()? {
                let conversation = view.messages().conversation(&session)?.unwrap();
                for entry in view.messages().entry_ids(conversation)? {
                    if let Some(message) = view.messages().shown_by(conversation, &entry)? {
                        all.push(view.messages().message(message)?.json);
                    }
                }
            }
            Ok(all.join("\n"))
        });
        let found = found.await.unwrap();
        for text in ["hazel0", "hazel1", shows] {
            assert!(found.contains(text), "{case}: {text}");
        }
        // The summarizer gets what Pi shows.
        let (store, conversation) =
            (TestStore::of(again.machine.home.store.clone()), again.persistor.conversation());
        let model = ScriptedModel::helpful();
        let block = compacted(Compact::new(&store, conversation, leaf, leaf).run(&model).await).summary;
        let asked = model.prompts().join("\n") + &block;
        assert!(!asked.contains(hides), "{case}: {asked}");
        // Once is enough.
        let third = Opened::new(again.machine, "one", &edited).await;
        assert_eq!(third.start(&edited).await, 0, "{case}");
        // The file is as it was: so is the branch.
        let back = Opened::new(third.machine, "one", &entries).await;
        assert!(back.start(&entries).await > 0, "{case}");
        assert!(back.shown(leaf).await.contains("hazel0"), "{case}");
        let open = Some(back.persistor.conversation());
        let (store, cancel) = (&back.machine.home.store, CancellationToken::new());
        let checks = crate::doctor::check(store, open, Path::new(""), &cancel).await.unwrap();
        assert!(checks.iter().all(crate::doctor::Check::is_sound), "{case}: {checks:?}");
    }
}

#[tokio::test]
async fn an_edit_above_a_purged_message_does_not_bring_it_back() {
    let entries = told().entries;
    let first = Opened::new(Machine::new(), "one", &entries).await;
    first.start(&entries).await;
    let (store, conversation) = (first.machine.home.store.clone(), first.persistor.conversation());
    let purge = move |batch: &lcm_store::Batch<'_>| {
        let message = batch.upkeep().purgeable_at(conversation, "e4")?.unwrap();
        batch.upkeep().purge(&lcm_store::Purge::Message(message))
    };
    store.write(purge).await.unwrap();
    let leaf = entries.last().unwrap()["id"].as_str().unwrap().to_owned();
    let mut machine = first.machine;
    let keep_it = |edited: &[Value]| edited.iter().any(|entry| entry["id"] == "e4");
    for (case, edited, ..) in edits().into_iter().filter(|(_, edited, ..)| keep_it(edited)) {
        let again = Opened::new(machine, "one", &edited).await;
        again.start(&edited).await;
        assert!(!again.shown(&leaf).await.contains("hazel1"), "{case}");
        machine = again.machine;
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_file_that_nobody_edited_is_never_set_aside(events in events()) {
        block_on(async {
            for file in project(&events) {
                let opened = Opened::new(Machine::new(), "one", &file.entries).await;
                opened.machine.run("").await;
                let opened = Opened::new(opened.machine, "one", &file.entries).await;
                let edited = opened.persistor.set_aside(&CancellationToken::new()).await.unwrap();
                assert_eq!(edited, 0);
            }
        });
    }
}
