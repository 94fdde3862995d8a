//! During and after a purge: sessions continue, and what still knows the old state does no harm.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use super::secrets::{SECRET, SecretStore, echoing, everything, import};
use super::support::{Session, TestStore};
use lcm_ingest::Handover;
use lcm_model::dag::MessageKind;
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::{Content, Entry, parse_batch};
use lcm_store::{Purge, Store};

#[tokio::test]
async fn a_copy_below_a_new_message_is_known_by_a_placeholder_that_comes_with_it() {
    let said = |text: &str| json!({"role": "user", "content": text, "timestamp": 1_763_629_920_000_i64});
    // Pi gives an entry of the first version of its files another id later.
    let session =
        Session::new().user("above").message(said(SECRET)).at("e1").message(said(SECRET)).user("below");
    for sizes in [&[4][..], &[2, 2], &[1, 3]] {
        let mut entries = parse_batch(&session.json()).unwrap();
        let purged = &mut entries[1];
        *purged = Entry {
            id: "v1-2".into(),
            parent: purged.parent.take(),
            timestamp: 1_763_629_920_000,
            content: Content::Purged([7; 32]),
        };
        let mut entries = entries.into_iter();
        let pieces: Vec<Vec<Entry>> =
            sizes.iter().map(|size| entries.by_ref().take(*size).collect()).collect();
        let store = TestStore::new();
        let work = store.store.write(move |batch| {
            let conversation = batch.messages().conversation_row("one", None, None, 0)?;
            for entries in pieces {
                Handover { entries, ..Default::default() }.prepare().store(batch, conversation)?;
            }
            assert!(batch.messages().is_counted_right(Some(conversation))?);
            batch.messages().project_messages()
        });
        assert_eq!(work.await.unwrap(), 2);
    }
}

/// The row of a removed summary may belong to another one when its facts are ready.
#[tokio::test]
async fn the_facts_of_a_removed_summary_are_not_stored_for_another() {
    let secrets = SecretStore::new().await;
    let first = lcm_model::ids::SummaryId(secrets.ask("SELECT min(id) FROM summaries WHERE depth = 0"));
    let gone = secrets.store.read(move |view| Ok(view.summaries().summary(first)?.hash)).await.unwrap();
    secrets.purge("e2").await;
    let another = lcm_model::ids::SummaryId(secrets.ask("SELECT min(id) FROM summaries"));
    let own = secrets.store.read(move |view| Ok(view.summaries().summary(another)?.hash)).await.unwrap();
    let facts = || {
        let said = lcm_model::facts::Said { at: 0, text: "its rule".into() };
        lcm_model::facts::Facts { rules: [said].into(), ..Default::default() }
    };
    let was = secrets.store.read(move |view| view.summaries().facts_of(another)).await.unwrap();
    for (hash, expected) in [(gone, was), (own, Some(facts()))] {
        secrets
            .store
            .write(move |batch| batch.summaries().note_facts(another, hash, &facts()))
            .await
            .unwrap();
        assert_eq!(
            secrets.store.read(move |view| view.summaries().facts_of(another)).await.unwrap(),
            expected
        );
    }
}

#[tokio::test]
async fn a_purged_database_is_adopted_as_it_is() {
    let secrets = SecretStore::new().await;
    secrets.purge("e14").await;
    secrets.store.close().await;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
    import(&store, &secrets.database()).await;
    let lineages = |path: &Path| -> BTreeSet<Vec<u8>> {
        let connection = Connection::open(path).unwrap();
        let mut query = connection.prepare("SELECT lineage FROM messages").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut expected = lineages(&secrets.database());
    assert_eq!(lineages(&dir.path().join("project.db")), expected);
    // Nor does the session's file bring it into the new one.
    import(&store, &secrets.dir.path().join("one.jsonl")).await;
    assert!(!everything(&store).await.contains("okka7741"));
    assert_eq!(std::mem::take(&mut expected), lineages(&dir.path().join("project.db")));
}

#[tokio::test]
async fn several_edits_that_change_nothing_do_not_stop_a_purge() {
    let mut secrets = SecretStore::new().await;
    // A command has no content to replace.
    secrets.session =
        secrets.session.message(json!({"role": "bashExecution", "command": "ls", "output": "a"}));
    let command = secrets.session.leaf().to_owned();
    for content in ["a", "b", "c"] {
        let edit = json!({"targetId": command, "replacement": {"content": content}});
        secrets.session = secrets.session.entry("context_edit", edit);
    }
    secrets.ingest("one", &secrets.session).await;
    assert!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind = 3") >= 3);
    secrets.purge("e14").await;
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

#[tokio::test]
async fn an_edit_that_says_more_than_it_shows_does_not_keep_its_identity() {
    let mut secrets = SecretStore::new().await;
    let edit = json!({"targetId": "e15", "replacement": {"content": "put briefly", "why": 1}});
    secrets.session = secrets.session.entry("context_edit", edit);
    secrets.ingest("one", &secrets.session).await;
    let newest = "SELECT hex(lineage) FROM messages WHERE kind = 3 ORDER BY id DESC LIMIT 1";
    let before = secrets.ask::<String>(newest);
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    secrets.purge("e14").await;
    assert_ne!(secrets.ask::<String>(newest), before);
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

#[tokio::test]
async fn a_session_continues_after_a_purge() {
    let mut secrets = SecretStore::new().await;
    secrets.purge("e14").await;
    // A late edit of it, one of its neighbor, a branch right below it, and a fork of that.
    let late = json!({"targetId": "e14", "replacement": {"content": format!("again {SECRET}")}});
    secrets.session = secrets.session.entry("context_edit", late);
    let edit = json!({"targetId": "e15", "replacement": {"content": "put briefly"}});
    secrets.session = secrets.session.entry("context_edit", edit).chat(2, 30);
    secrets.ingest("one", &secrets.session).await;
    let end = secrets.session.leaf().to_owned();
    secrets.session = secrets.session.at("e14").user("another way").assistant("indeed").chat(3, 30);
    secrets.ingest("one", &secrets.session).await;
    secrets.assert_gone().await;

    let (secrets, block, details) = secrets.compact(&echoing()).await;
    assert!(block.contains(", none missing, 0 degraded, 1 purged\n"), "{block}");
    assert!(!block.contains(SECRET) && !details.to_string().contains(SECRET));
    let mut secrets = secrets;
    secrets.session = secrets.session.at(&end);
    let (secrets, block, details) = secrets.compact(&echoing()).await;
    assert!(block.contains(", none missing, 0 degraded, 1 purged\n"), "{block}");
    assert!(!block.contains(SECRET) && !details.to_string().contains(SECRET));
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    let visible = secrets
        .store
        .read(move |view| Ok(lcm_model::dag::visible(&view.messages().branch(ConversationId(1), &end)?)));
    let visible = visible.await.unwrap();
    assert!(
        visible.iter().all(|message| message.entry_id != "e14" && message.seen.kind != MessageKind::Purged)
    );
}

#[tokio::test]
async fn a_summary_made_during_a_purge_is_not_stored() {
    let secrets = SecretStore::new().await;
    let rows = secrets.store.read(|view| {
        let branch = view.messages().branch(ConversationId(1), "e15")?;
        Ok(lcm_model::dag::visible(&branch).into_iter().rev().take(2).collect::<Vec<_>>())
    });
    let mut pair = rows.await.unwrap();
    pair.reverse();
    let hashes: Vec<Hash> = pair.iter().map(|message| message.seen.hash).collect();
    let mut summary = lcm_model::Summary {
        hash: Hash::ROOT,
        depth: 0,
        text: SECRET.into(),
        tokens: 3,
        state: lcm_model::State::Ok,
        model: None,
        prompt_version: 1,
        usage: None,
        created_at: 0,
        quotes: Vec::new(),
    };
    summary.hash = summary.identity(&hashes);
    let summary = lcm_store::NewSummary {
        summary,
        prepared: lcm_store::PreparedText::of(SECRET),
        sources: lcm_model::dag::Sources::Messages(pair.iter().map(|message| message.seen.id).collect()),
    };
    secrets.purge("e13").await;
    let stored = secrets.store.write(move |batch| batch.summaries().add_summary(&summary, None, false)).await;
    assert!(stored.unwrap_err().to_string().contains("has been purged meanwhile"));
}

/// A process that was working during a purge does not know of it, and continues with old hashes.
#[tokio::test]
async fn claims_made_after_a_purge_are_removed() {
    let secrets = SecretStore::new().await;
    let claim = |span: &'static [u8]| {
        let ended = lcm_model::text::now() - 1;
        let claim = move |batch: &lcm_store::Batch<'_>| {
            batch.summaries().claim(&[Hash::plain(span)], "busy", ended - 20_000, ended)
        };
        secrets.store.write(claim)
    };
    let claims = || secrets.ask::<i64>("SELECT count(*) FROM claims");
    let message = secrets.message_of("e2").await;
    secrets.store.write(move |batch| batch.upkeep().purge(&Purge::Message(message))).await.unwrap();
    claim(b"one").await.unwrap();
    assert_eq!(claims(), 1);
    assert!(secrets.store.vacuum().await.unwrap());
    assert_eq!(claims(), 0);
    claim(b"two").await.unwrap();
    secrets.store.checkpoint().await.unwrap();
    assert_eq!(claims(), 0);
}

#[tokio::test]
async fn a_reader_delays_the_log_cleanup_until_the_next_start() {
    let secrets = SecretStore::new().await;
    let reader = Connection::open(secrets.database()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM messages").unwrap();
    let message = secrets.message_of("e14").await;
    secrets.store.write(move |batch| batch.upkeep().purge(&Purge::Message(message))).await.unwrap();
    assert!(!secrets.store.vacuum().await.unwrap());
    let pending = secrets.ask::<String>("SELECT value FROM _metadata WHERE key = 'purge_pending'");
    assert!(pending.starts_with("log:"), "{pending}");
    secrets.store.close().await;
    // The reader still sees the old state.
    assert!(
        reader
            .query_row("SELECT count(*) FROM messages WHERE kind = 4", [], |row| row.get::<_, i64>(0))
            .unwrap()
            == 0
    );
    reader.execute_batch("COMMIT").unwrap();
    let store = Store::open(Some(secrets.dir.path()), "project", "/project").unwrap();
    store.flush().await.unwrap();
    drop(reader);
    let secrets =
        SecretStore { store, dir: secrets.dir, session: secrets.session, conversation: secrets.conversation };
    secrets.assert_gone().await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM _metadata WHERE key = 'purge_pending'"), 0);
}
