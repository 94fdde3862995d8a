//! Summaries are written again on request, and the old text stays until then.

use tokio_util::sync::CancellationToken;

use super::ahead::prepared;
use super::asking::{Asking, ask};
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::llm::{ModelRequest, Reply};
use lcm_model::ids::SummaryId;
use lcm_store::View;

/// Writes every summary in these words, as the model that is named.
fn saying(words: &'static str) -> std::sync::Arc<ScriptedModel> {
    ScriptedModel::new(move |request| {
        let text = format!("Of {}\n{words}", request.prompt.len());
        let model = request.by.clone().unwrap_or_else(|| "scripted/model".into());
        Ok(Reply { text, model: Some(model), usage: None })
    })
}

/// Whether the user named a model for this.
fn is_named(request: &ModelRequest) -> bool {
    request.by.as_deref() == Some("other/model")
}

async fn leaves(store: &TestStore) -> Vec<SummaryId> {
    of_depth(store, 0).await
}

/// All summaries of this depth.
async fn of_depth(store: &TestStore, depth: u32) -> Vec<SummaryId> {
    let read = move |view: &View<'_>| {
        let all = (1..=view.summaries().newest_summary()?.0).map(SummaryId);
        let mut found = Vec::new();
        for id in all {
            found.extend((view.summaries().summary(id)?.depth == depth).then_some(id));
        }
        Ok(found)
    };
    store.store.read(read).await.unwrap()
}

#[tokio::test]
async fn a_summary_is_written_again_and_supersedes_the_old_one_and_what_was_made_from_it() {
    let session = Session::new().chat(60, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = || Compact::new(&store, conversation, session.leaf(), session.leaf());
    let old = compacted(compact().run(&saying("as it was once said")).await);
    assert!(old.summary.contains("DAG depth 1") && old.summary.contains("once said"), "{}", old.summary);
    let ids = leaves(&store).await;
    store.store.write(move |batch| batch.summaries().redo(&ids, Some("other/model"))).await.unwrap();

    // Without a model, the old text stays.
    let same = compacted(compact().run(&ScriptedModel::failing()).await).summary;
    assert!(same.contains("once said") && same.contains("none missing, 0 degraded"), "{same}");

    let model = saying("as it is put now");
    let new = compacted(compact().run(&model).await);
    assert!(new.summary.contains("put now") && !new.summary.contains("once said"), "{}", new.summary);
    assert!(new.summary.contains("none missing, 0 degraded"), "{}", new.summary);
    // So is what is condensed from them.
    assert!(new.summary.contains("DAG depth 1"), "{}", new.summary);
    assert!(model.asked.lock().unwrap().iter().all(is_named));
    // That was it.
    let asked = model.prompts().len();
    assert_eq!(compacted(compact().run(&model).await).summary, new.summary);
    assert_eq!(model.prompts().len(), asked);
}

#[tokio::test]
async fn a_model_that_says_the_same_again_is_asked_once() {
    let session = Session::new().chat(12, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = || Compact::new(&store, conversation, session.leaf(), session.leaf());
    let model = saying("as it was once said");
    let old = compacted(compact().run(&model).await);
    let before = model.prompts().len();
    let ids = leaves(&store).await;
    store.store.write(move |batch| batch.summaries().redo(&ids, None)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(compacted(compact().run(&model).await).summary, old.summary);
    }
    let again = model.prompts().len() - before;
    assert!(again > 0 && again <= before, "{again} of {before}");
}

#[tokio::test]
async fn a_condensed_summary_is_written_again_by_the_model_that_is_named() {
    let session = Session::new().chat(60, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = || Compact::new(&store, conversation, session.leaf(), session.leaf());
    compacted(compact().run(&saying("as it was once said")).await);
    let ids = of_depth(&store, 1).await;
    let redone = ids.len();
    store.store.write(move |batch| batch.summaries().redo(&ids, Some("other/model"))).await.unwrap();

    let model = saying("as it is put now");
    let new = compacted(compact().run(&model).await).summary;
    assert!(new.contains("none missing, 0 degraded"), "{new}");
    let asked = model.asked.lock().unwrap();
    assert!(redone > 0 && asked.len() == redone && asked.iter().all(is_named));
}

/// In a lean context, Pi may never compact.
#[tokio::test]
async fn a_condensed_summary_is_written_again_ahead_of_a_fold() {
    let session = Session::new().chat(60, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    compacted(compact.run(&saying("as it was once said")).await);
    let ids = of_depth(&store, 1).await;
    let redone = ids.len();
    store.store.write(move |batch| batch.summaries().redo(&ids, Some("other/model"))).await.unwrap();
    let model = saying("as it is put now");
    // Once each, of those that will be folded.
    for _ in 0..2 {
        assert!(!prepared(&compact, model.clone(), &CancellationToken::new()).await);
        let asked = model.asked.lock().unwrap();
        assert!(!asked.is_empty() && asked.len() < redone && asked.iter().all(is_named));
    }
    assert_eq!(model.prompts().len(), 1);
}

#[tokio::test]
async fn a_summary_of_another_branch_waits_for_that_branch() {
    let begun = Session::new().user("Round the invoices.").assistant("Noted.");
    let fork = begun.clone().user("The wombat rule.").assistant("Noted.").at("e2").user("Go on.");
    let left = Asking::about(&begun.user("The wombat rule.").assistant("Noted.")).await;
    let id = left.leaf(0..4, "Rules\nThe wombat rule for invoices.").await;
    let handle = left.store.store.read(move |view| Ok(view.summaries().summary(id)?.hash.summary_handle()));
    let redo = format!("redo {}", handle.await.unwrap());
    let says = "1 summary will be written again, while the agent works or by the next compaction.";
    assert!(left.command(&redo).await.starts_with(says));
    left.store.ingest("one", &fork).await;
    let answer = ask(&left.store.store, &left.from(fork.leaf()), &redo).await.unwrap().text;
    let says = "1 summary will be written again, once a branch that has it goes on: this one does not. ";
    assert!(answer.starts_with(says), "{answer}");
}
