//! A purge in another process during a compaction: the block is still made, without the purged text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::llm::Reply;
use lcm_compaction::{LeftBranch, Outcome, summarize_left};
use lcm_store::{Purge, Store};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "quokka7741";

/// A project's folder, its store, and a session with a secret in the entry `e7`.
async fn with_secret() -> (tempfile::TempDir, TestStore, Session) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
    let session = Session::new().chat(3, 60).user(&format!("the pass phrase is {SECRET}")).chat(20, 60);
    (dir, TestStore::of(store), session)
}

/// Purges as another process does, with its own connection.
fn purge_elsewhere(dir: &std::path::Path, entry: &str) {
    let (dir, entry) = (dir.to_owned(), entry.to_owned());
    let elsewhere = std::thread::spawn(move || {
        let other = Store::open(Some(&dir), "project", "/project").unwrap();
        let purging = async {
            let conversation = other.read(|view| Ok(view.messages().conversation("one")?.unwrap())).await?;
            let message =
                other.read(move |view| view.upkeep().purgeable_at(conversation, &entry)).await?.unwrap();
            other.write(move |batch| batch.upkeep().purge(&Purge::Message(message))).await?;
            other.close().await;
            lcm_model::error::Result::Ok(())
        };
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(purging)
            .unwrap();
    });
    elsewhere.join().unwrap();
}

/// A model that repeats the secret when a prompt has it. Call number `at` purges the entry `e7`, and the
/// following calls the entries after it, `purges` times in all.
fn purging(dir: &std::path::Path, at: usize, purges: usize) -> Arc<ScriptedModel> {
    let (dir, asked) = (dir.to_owned(), AtomicUsize::new(0));
    ScriptedModel::new(move |request| {
        let now = asked.fetch_add(1, Ordering::SeqCst) + 1;
        if (at..at + purges).contains(&now) {
            purge_elsewhere(&dir, &format!("e{}", 7 + (now - at)));
        }
        let word = if request.prompt.contains(SECRET) { SECRET } else { "nothing" };
        Ok(Reply {
            text: format!("Stretch {now}\nabout {word}.\nExpand for details about: all"),
            model: Some("scripted/model".into()),
            usage: Some(json!({"input": 10})),
        })
    })
}

async fn summaries_with_secret(store: &TestStore) -> usize {
    let texts = store.store.read(|view| {
        let all = view.summaries().nodes_since(lcm_model::ids::SummaryId(0), |_| true)?;
        all.iter()
            .map(|node| Ok(view.summaries().summary(node.id)?.summary.text))
            .collect::<lcm_model::error::Result<Vec<_>>>()
    });
    texts.await.unwrap().iter().filter(|text| text.contains(SECRET)).count()
}

#[tokio::test]
async fn a_compaction_starts_over_without_the_purged_text() {
    for at in [1, 2, 4, 8] {
        let (dir, store, session) = with_secret().await;
        let conversation = store.ingest("one", &session).await;
        let compact = Compact::new(&store, conversation, session.leaf(), "e40")
            .with(|settings, _| settings.leaf_pass_concurrency = 1);
        let model = purging(dir.path(), at, 1);
        let compaction = compacted(compact.run(&model).await);
        assert!(
            compaction.summary.contains(", none missing, 0 degraded, 1 purged\n"),
            "{at}: {}",
            compaction.summary
        );
        let details = serde_json::to_string(&compaction.details).unwrap();
        assert!(!compaction.summary.contains(SECRET) && !details.contains(SECRET), "{at}");
        assert_eq!(summaries_with_secret(&store).await, 0, "{at}");
        // Summaries made before are not requested again, and the usage counts all calls.
        let asked = model.prompts().len();
        assert_eq!(compaction.usage.unwrap()["input"], 10 * asked);
        let fresh = ScriptedModel::helpful();
        compacted(compact.run(&fresh).await);
        assert_eq!(fresh.prompts().len(), 0, "{at}");
    }
}

#[tokio::test]
async fn a_stored_summary_is_not_shown_after_the_purge() {
    let (dir, store, session) = with_secret().await;
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), "e20");
    let first = compacted(compact.run(&purging(dir.path(), usize::MAX / 2, 0)).await);
    assert!(first.summary.contains(SECRET));
    // Its first call is for the messages after that; the earlier summaries are in memory by then.
    let compact = Compact::new(&store, conversation, session.leaf(), "e40");
    let compaction = compacted(compact.run(&purging(dir.path(), 1, 1)).await);
    assert!(compaction.summary.contains(", none missing, 0 degraded, 1 purged\n"), "{}", compaction.summary);
    assert!(!compaction.summary.contains(SECRET));
}

#[tokio::test]
async fn constant_purging_does_not_stop_a_compaction() {
    let (dir, store, session) = with_secret().await;
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), "e40")
        .with(|settings, _| settings.leaf_pass_concurrency = 1);
    let compaction = compacted(compact.run(&purging(dir.path(), 2, 3)).await);
    assert!(compaction.summary.contains(", none missing, 0 degraded, 3 purged\n"), "{}", compaction.summary);
    assert!(!compaction.summary.contains(SECRET));
}

#[tokio::test]
async fn a_branch_summary_starts_over_too() {
    let (dir, store, session) = with_secret().await;
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), "e40");
    let left = LeftBranch {
        can_recall: true,
        leaf_id: session.leaf().into(),
        common_ancestor_id: Some("e2".into()),
        custom_instructions: None,
        context_window: Some(200_000),
        model: None,
    };
    let work = compact.work(purging(dir.path(), 2, 1), CancellationToken::new());
    let Outcome::Summarized { summary } = summarize_left(work, left).await.unwrap() else {
        panic!("declined")
    };
    assert!(summary.summary.contains("1 purged") && !summary.summary.contains(SECRET), "{}", summary.summary);
}
