//! Purging: the text is gone from the files, can't be confirmed by a guess, and nothing brings it back.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::json;

use super::patient::rebuild;
use super::secrets::{SECRET, SecretStore, TAIL, digest, doctor, everything, words};
use super::support::Session;
use super::world::{World, events, knobs, marks};
use lcm_compaction::Outcome;
use lcm_model::dag::{MessageKind, Step};
use lcm_model::ids::{ConversationId, Hash};
use lcm_store::{Purge, Store};
use lcm_testing::cases;

#[tokio::test]
async fn a_purged_message_is_gone_from_the_files() {
    let secrets = SecretStore::new().await;
    let before = secrets.ask::<i64>("SELECT count(*) FROM summaries");
    assert!(everything(&secrets.store).await.matches(SECRET).count() > 3);
    assert!(words(&secrets.database()).iter().any(|word| word.contains("quokka")));
    let plan = secrets.purge("e14").await;
    assert_eq!((plan.messages.len(), plan.renditions.len(), plan.sessions.len()), (1, 1, 1));
    assert!(plan.summaries.len() > 2, "{plan:?}");
    let left = secrets.ask::<i64>("SELECT count(*) FROM summaries");
    assert_eq!(before - left, i64::try_from(plan.summaries.len()).unwrap());
    assert!(left > 0, "summaries of other messages stay");
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order.") && report.contains(", 1 message purged"), "{report}");
    assert_eq!(secrets.ask::<i64>("PRAGMA freelist_count"), 0);
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM _metadata WHERE key = 'purge_pending'"), 0);
}

/// Someone who has the file and guesses the secret finds nothing in it that confirms the guess.
#[tokio::test]
async fn nothing_left_confirms_a_guess() {
    let secrets = SecretStore::new().await;
    let identities = |secrets: &SecretStore| -> BTreeSet<Hash> {
        let connection = Connection::open(secrets.database()).unwrap();
        let mut query = connection
            .prepare("SELECT lineage FROM messages UNION ALL SELECT hash FROM summaries UNION ALL SELECT span FROM claims")
            .unwrap();
        let rows = query.query_map([], |row| row.get(0).map(Hash)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let before = identities(&secrets);
    let rows = secrets.store.read(|view| {
        let branch = view.messages().branch(ConversationId(1), "e15")?;
        let hash = |entry: &str| match &branch.iter().find(|one| one.entry_id == entry).unwrap().step {
            Step::Message(message) => (message.id, message.hash),
            step => panic!("{step:?}"),
        };
        let (secret, next) = (hash("e14"), hash("e15"));
        Ok((hash("e13").1, view.messages().message(secret.0)?.json, view.messages().message(next.0)?.json))
    });
    let (above, guess, next) = rows.await.unwrap();
    let guessed = above.child(&guess);
    let follows = [
        guessed,
        guessed.child(&next),
        guessed.edited(&json!({"content": format!("hint: {SECRET}!")}).to_string()),
    ];
    assert!(follows.iter().all(|hash| before.contains(hash)));
    secrets.purge("e14").await;
    let after = identities(&secrets);
    assert!(follows.iter().all(|hash| !after.contains(hash)));
    // Everything below it, and all summaries there, have new ids.
    let above = secrets.store.read(|view| {
        Ok(view
            .messages()
            .branch(ConversationId(1), "e13")?
            .into_iter()
            .filter_map(|entry| match entry.step {
                Step::Message(message) => Some(message.hash),
                _ => None,
            })
            .collect::<BTreeSet<_>>())
    });
    let above = above.await.unwrap();
    let same: BTreeSet<Hash> = before.intersection(&after).copied().collect();
    let summaries = secrets.store.read(|view| {
        view.upkeep()
            .summary_rows()?
            .into_iter()
            .map(|row| Ok(view.summaries().summary(row)?.hash))
            .collect::<lcm_model::error::Result<BTreeSet<_>>>()
    });
    let summaries = summaries.await.unwrap();
    assert!(same.iter().all(|hash| above.contains(hash) || summaries.contains(hash)));
    assert!(above.is_subset(&same));
    // Summaries with their old ids cover only messages before it.
    let last = secrets.ask::<i64>("SELECT id FROM messages WHERE kind = 4");
    let kept = secrets.ask::<i64>(&format!("SELECT count(*) FROM summaries WHERE last_message < {last}"));
    assert_eq!(same.intersection(&summaries).count(), usize::try_from(kept).unwrap());
}

#[tokio::test]
async fn nothing_brings_a_purged_message_back() {
    let secrets = SecretStore::new().await;
    secrets.purge("e14").await;
    let before = digest(&secrets.store).await;

    // The session itself, handed over again completely.
    secrets.ingest("one", &secrets.session).await;
    assert_eq!(digest(&secrets.store).await, before);
    // A rebuild has the session's file with all its summaries, which are not all stored.
    let mut secrets = secrets;
    for damage in ["", "DELETE FROM summaries", "DELETE FROM entries WHERE entry_id IN ('e13', 'e15')"] {
        let connection = Connection::open(secrets.database()).unwrap();
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {damage}")).unwrap();
        drop(connection);
        rebuild(&secrets.store, secrets.dir.path()).await.unwrap();
        secrets.store = Store::open(Some(secrets.dir.path()), "project", "/project").unwrap();
        secrets.assert_gone().await;
        assert!(secrets.doctor().await.ends_with("Everything is in order."));
    }

    // A fork from the end, and one from the message right after.
    secrets.ingest("fork", &secrets.session).await;
    let mut short = Session::new();
    short.entries = secrets.session.entries[..15].to_vec();
    secrets.ingest("short", &short.at("e15").user("elsewhere")).await;
    secrets.assert_gone().await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind = 4"), 1);
    assert_eq!(
        secrets.ask::<i64>(
            "SELECT count(*) FROM entries e JOIN messages m ON m.id = e.message_id WHERE m.kind = 4"
        ),
        3
    );
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    // Everything after it is shared, under its new identity.
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE height = 14 AND kind <> 3"), 1);
}

#[tokio::test]
async fn a_session_and_a_period_are_purged_completely() {
    let secrets = SecretStore::new().await;
    let other = Session::new().chat(4, 20).user(&format!("{SECRET} here too")).assistant("so it is");
    secrets.ingest("two", &other).await;
    let plan = secrets.purge_all(Purge::Session(ConversationId(1))).await;
    assert_eq!(plan.sessions.iter().map(|session| session.session_id.as_str()).collect::<Vec<_>>(), ["one"]);
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM summaries"), 0);
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind <> 4"), 10);
    secrets.ingest("one", &secrets.session).await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind <> 4"), 10);
    assert_eq!(secrets.store.read(|view| view.messages().conversations()).await.unwrap(), 1);
    let early = secrets.ask::<i64>("SELECT min(timestamp) FROM messages WHERE kind <> 4");
    assert_eq!(secrets.purge_all(Purge::Before(early)).await.messages.len(), 0);
    secrets.purge_all(Purge::Before(i64::MAX)).await;
    secrets.ingest("two", &other).await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind <> 4"), 0);
    secrets.assert_gone_entirely();
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

impl SecretStore {
    fn assert_gone_entirely(&self) {
        assert_eq!(words(&self.database()), [""; 0]);
        let bytes = fs::read(self.database()).unwrap();
        assert!(!bytes.windows(TAIL.len()).any(|window| window == TAIL));
    }
}

/// Two entries with one id, as in a damaged file: the second is stored under an id with its time.
#[tokio::test]
async fn the_second_entry_with_a_repeated_id_is_purged_with_its_name() {
    let secrets = SecretStore::new().await;
    let mut twice = Session::new().chat(2, 5);
    let mut second = twice.entries[3].clone();
    second["message"]["content"] = json!([{"type": "text", "text": format!("{SECRET} again")}]);
    twice.entries.push(second);
    secrets.ingest("two", &twice).await;
    let entry =
        secrets.ask::<String>("SELECT entry_id FROM entries WHERE entry_id GLOB 'e4' || char(31) || '*'");
    let message = secrets
        .store
        .read(move |view| view.upkeep().purgeable_at(ConversationId(2), &entry))
        .await
        .unwrap()
        .unwrap();
    secrets.purge("e14").await;
    secrets.purge_all(Purge::Message(message)).await;
    for session in ["two", "two", "three", "three"] {
        secrets.ingest(session, &twice).await;
        secrets.assert_gone().await;
    }
    assert_eq!(
        secrets.ask::<i64>("SELECT count(*) FROM entries WHERE entry_id GLOB '*' || char(31) || '*'"),
        1
    );
    let report = secrets.doctor().await;
    assert!(report.contains("Messages       ok"), "{report}");
}

proptest! {
    #![proptest_config(cases(12))]

    /// In any project: after purging any messages, handing everything over again, even as forks, changes
    /// nothing, and the purged text is gone.
    #[test]
    fn any_purged_message_stays_purged(
        events in events(60), knobs in knobs(), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(knobs);
            for event in &events {
                if let Some(asked) = world.happen(event).await
                    && let Outcome::Compacted(made) = asked.run(&world.store, &asked.mood.model()).await
                {
                    world.note(&made.compaction);
                }
            }
            for at in 0..world.sittings.len() {
                world.store_sitting(at).await;
            }
            purge_and_try(&world, &picks).await;
        });
    }
}

async fn purge_and_try(world: &World, picks: &[prop::sample::Index]) {
    let store = &world.store.store;
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for pick in picks {
        let all = store.read(|view| {
            let mut all = Vec::new();
            view.upkeep().audit_messages(|message| {
                if !matches!(message.kind, MessageKind::Edited | MessageKind::Purged) {
                    all.push((message.id, message.json.unwrap()));
                }
                Ok(())
            })?;
            Ok(all)
        });
        let all = all.await.unwrap();
        if all.is_empty() {
            return;
        }
        let (id, json) = pick.get(&all).clone();
        gone.extend(marks(&json));
        store.write(move |batch| batch.upkeep().purge(&Purge::Message(id))).await.unwrap();
    }
    // Repeated text belongs to others: in this world only summaries repeat it.
    assert!(marks(&everything(store).await).is_disjoint(&gone), "{gone:?}");
    let report = doctor(store, "doctor").await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    let before = digest(store).await;
    for sitting in world.sittings.iter().rev() {
        let mut session = Session::new();
        session.entries.clone_from(&sitting.entries);
        world.store.ingest(&sitting.id, &session).await;
    }
    assert_eq!(digest(store).await, before);
    for sitting in &world.sittings {
        let mut session = Session::new();
        session.entries.clone_from(&sitting.entries);
        world.store.ingest(&format!("copy of {}", sitting.id), &session).await;
    }
    assert!(marks(&everything(store).await).is_disjoint(&gone), "{gone:?}");
    let report = doctor(store, "doctor").await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}
