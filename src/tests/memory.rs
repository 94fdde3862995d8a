//! What a session caches of its branch between two compactions is never older than the store.

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::Compaction;
use lcm_model::ids::ConversationId;
use lcm_store::{Filter, Store, TimeOrder, View};

async fn compact(store: &TestStore, conversation: ConversationId, session: &Session) -> (Compaction, usize) {
    let model = ScriptedModel::helpful();
    let compact = Compact::new(store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&model).await);
    (compaction, model.prompts().len())
}

#[tokio::test]
async fn summaries_of_another_process_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let open = || TestStore::of(Store::open(Some(dir.path()), "project", "/project").unwrap());
    let (ours, theirs) = (open(), open());
    let session = Session::new().chat(20, 30);
    let conversation = ours.ingest("one", &session).await;
    assert!(compact(&ours, conversation, &session).await.1 > 0);

    let longer = session.clone().chat(20, 30);
    theirs.ingest("one", &longer).await;
    let (made, calls) = compact(&theirs, conversation, &longer).await;
    assert!(calls > 0);
    let (found, calls) = compact(&ours, conversation, &longer).await;
    assert_eq!((calls, found.details.covered), (0, 79));
    assert_eq!(found.summary, made.summary);
    // On the same branch, with new summaries from others only.
    let (again, calls) = compact(&ours, conversation, &session).await;
    assert_eq!((calls, again.details.covered), (0, 39));
}

#[tokio::test]
async fn removed_summaries_are_not_cached() {
    let store = TestStore::new();
    let session = Session::new().chat(30, 30);
    let conversation = store.ingest("one", &session).await;
    let (first, calls) = compact(&store, conversation, &session).await;
    assert_eq!(compact(&store, conversation, &session).await.1, 0);

    let drop_all = |batch: &lcm_store::Batch<'_>| {
        let mut all = Vec::new();
        batch.summaries().summaries_in_turn(TimeOrder::NewestFirst, None, &Filter::default(), |summary| {
            all.push(summary.id);
            Ok(true)
        })?;
        batch.upkeep().drop_summaries(&all)
    };
    store.store.write(drop_all).await.unwrap();
    let (second, again) = compact(&store, conversation, &session).await;
    assert_eq!((again, second.details.covered), (calls, first.details.covered));
}

#[tokio::test]
async fn the_cache_follows_a_session_between_branches() {
    let store = TestStore::new();
    let trunk = Session::new().chat(20, 30);
    let mut session = trunk.clone();
    let conversation = store.ingest("one", &session).await;
    // On, back, on from there, back to the start, and through an edit.
    let fork = trunk.entries[25]["id"].as_str().unwrap().to_owned();
    let old = session.leaf().to_owned();
    compact(&store, conversation, &session).await;
    session = session.at(&fork).chat(15, 30);
    let edit = serde_json::json!({"targetId": trunk.entries[4]["id"], "replacement": null});
    let steps = [
        session.clone(),
        session.clone().at(&old),
        session.clone().at(&old).chat(10, 30),
        session.clone().at(&old).chat(10, 30).entry("context_edit", edit.clone()),
        session.clone().at(&old).chat(10, 30).entry("context_edit", edit).chat(5, 30),
    ];
    for session in steps {
        store.ingest("one", &session).await;
        let (remembered, _) = compact(&store, conversation, &session).await;
        let again = TestStore::of(store.store.clone());
        let (read, calls) = compact(&again, conversation, &session).await;
        assert_eq!(calls, 0);
        assert_eq!((read.summary, read.details), (remembered.summary.clone(), remembered.details.clone()));
        let leaf = session.leaf().to_owned();
        let look = move |view: &View<'_>| {
            Ok((
                lcm_model::dag::visible(&view.messages().branch(conversation, &leaf)?).len(),
                view.messages().said_in(conversation)?,
            ))
        };
        let (visible, said) = store.store.read(look).await.unwrap();
        assert!(remembered.summary.contains(&format!("{said} messages stored")), "{}", remembered.summary);
        assert!((visible - 2..=visible).contains(&remembered.details.covered), "{visible}");
    }
}
