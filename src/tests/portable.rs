//! A project that is exported and imported on another machine is the same there: every message byte for byte,
//! every entry in its place, and every summary, even one that is in no session file.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::asking::Asking;
use super::storing::{assert_same, digest};
use super::support::{Session, TestStore, ask_in};
use super::world::{World, events, knobs};
use lcm_compaction::Outcome;
use lcm_ingest::import::Home;
use lcm_model::config::ProjectIdentity;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;
use lcm_store::Store;
use lcm_testing::cases;

/// A store's content without file names, which differ between machines.
fn contents(store: &Store) -> BTreeSet<String> {
    let Some(path) = store.place() else { panic!("it is in memory") };
    let lines = digest(path).into_iter().filter(|line| !line.starts_with("session: "));
    // A summary may be packed differently; its hash proves that the text is the same.
    let plain = |line: String| match line.starts_with("summary: ") {
        true => line
            .splitn(5, " | ")
            .enumerate()
            .filter(|(at, _)| !matches!(at, 2 | 3))
            .map(|(_, part)| part)
            .collect(),
        false => line,
    };
    let lines: BTreeSet<String> = lines.map(plain).collect();
    // A session without messages is not stored, even if it has an entry.
    let parts = |line: &str| -> Option<(String, bool)> {
        let entry: Vec<&str> = line.strip_prefix("entry: ")?.split(" | ").collect();
        Some(((*entry.first()?).to_owned(), *entry.get(4)? == "Integer(1)"))
    };
    let speaking: BTreeSet<String> = lines
        .iter()
        .filter_map(|line| parts(line))
        .filter(|(_, says)| *says)
        .map(|(session, _)| session)
        .collect();
    lines
        .into_iter()
        .filter(|line| parts(line).is_none_or(|(session, _)| speaking.contains(&session)))
        .collect()
}

async fn say(store: &Store, scope: &Scope, cwd: &Path, line: &str) -> crate::commands::Answer {
    let home = Home {
        store: store.clone(),
        cwd: cwd.display().to_string(),
        identity: ProjectIdentity::Cwd,
        db_dir: cwd.to_owned(),
        session_id: String::new(),
    };
    ask_in(&home, cwd, scope, None, line).await.unwrap()
}

/// The project of `store` on another machine.
async fn imported_elsewhere(store: &Store) -> TestStore {
    let folder = tempfile::tempdir().unwrap();
    let nobody = Scope::at(ConversationId(0), None);
    say(store, &nobody, folder.path(), "export --jsonl --all out").await;
    let other = TestStore::new();
    let answer = say(&other.store, &nobody, folder.path(), "import out").await.answer;
    assert_eq!((&answer["failed"], &answer["brokenLines"]), (&json!([]), &json!(0)));
    other
}

/// Whether there is an edit of an entry without replaceable content. It changes nothing, so the store does
/// not keep its text, which is only in the session's file.
fn edits_nothing(world: &World) -> bool {
    let entries = || world.sittings.iter().flat_map(|sitting| &sitting.entries);
    entries().filter(|entry| entry["replacement"].is_object()).any(|edit| {
        let mut targets = entries().filter(|entry| entry["id"] == edit["targetId"]);
        targets.any(|entry| entry["content"].is_null() && entry["message"]["content"].is_null())
    })
}

proptest! {
    #![proptest_config(cases(24))]

    /// The session files are gone here: everything comes from the store.
    #[test]
    fn any_project_is_the_same_on_another_machine(events in events(60), knobs in knobs()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(knobs);
            for (at, event) in events.iter().enumerate() {
                if let Some(asked) = world.happen(event).await
                    && let Outcome::Compacted(made) = asked.run(&world.store, &asked.mood.model()).await
                    // Pi does not learn of some compactions: their summaries are made ahead of the next one.
                    && at % 3 > 0
                {
                    world.note(&made.compaction);
                }
            }
            for at in 0..world.sittings.len() {
                world.store_sitting(at).await;
            }
            if edits_nothing(&world) {
                return;
            }
            let other = imported_elsewhere(&world.store.store).await;
            assert_same(&contents(&world.store.store), &contents(&other.store));
        });
    }
}

#[tokio::test]
async fn summaries_without_a_session_file_travel_in_a_line_that_pi_ignores() {
    let asking = Asking::about(&Session::new().chat(6, 20)).await;
    let first = asking.leaf(0..4, "the first four").await;
    let second = asking.leaf(4..8, "the next four").await;
    asking.condensed(1, &[first, second], "all eight").await;
    let folder = tempfile::tempdir().unwrap();
    say(&asking.store.store, &asking.scope, folder.path(), "export --jsonl out.jsonl").await;
    let text = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let kind = (&last["type"], &last["id"], last["summaries"].as_array().map(Vec::len));
    assert_eq!(kind, (&json!("session"), &json!("one"), Some(3)));

    // A summary that does not match its id is left out, along with those condensed from it.
    std::fs::write(folder.path().join("out.jsonl"), text.replace("the next four", "the next fore")).unwrap();
    let other = TestStore::new();
    let nobody = Scope::at(ConversationId(0), None);
    let answer = say(&other.store, &nobody, folder.path(), "import out.jsonl").await;
    assert_eq!(answer.text, "1 session: 12 messages new, 0 known already, 1 summary");
    let kept = contents(&other.store).iter().filter(|line| line.starts_with("summary: ")).count();
    assert_eq!(kept, 1);
    assert_same(
        &contents(&asking.store.store),
        &contents(&imported_elsewhere(&asking.store.store).await.store),
    );
}
