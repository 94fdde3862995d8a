//! Folds from ready summaries, or not at all.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{Compact, ScriptedModel, Session, TestStore, kept};
use lcm_compaction::{Ahead, At, Compacted, Fold, fold, prepare, unsummarized};
use lcm_model::ids::ConversationId;
use lcm_testing::cases;

/// Chunks of 300 tokens.
fn compact<'a>(store: &'a TestStore, conversation: ConversationId, session: &Session) -> Compact<'a> {
    Compact::new(store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.max_summary_tokens = 3_000)
}

/// The context of a compaction's branch, from `first` on.
fn at(compact: &Compact<'_>, first: Option<&str>) -> At {
    At {
        leaf_id: compact.request.leaf_id.clone(),
        shown_from: first.map(ToOwned::to_owned),
        context_tokens: 7_000,
        context_window: compact.request.context_window,
        ..At::default()
    }
}

async fn prepared(compact: &Compact<'_>, model: &Arc<ScriptedModel>, before: &str) {
    let ahead = Ahead { at: at(compact, None), fold_before: Some(before.to_owned()), is_needed: false };
    let model: Arc<dyn lcm_compaction::llm::Model> = Arc::clone(model) as _;
    let work = compact.work(model, CancellationToken::new());
    prepare(work, &ahead, &CancellationToken::new()).await.unwrap();
}

async fn folded(compact: &Compact<'_>, first: Option<&str>) -> Option<Compacted> {
    match fold(compact.session(), &at(compact, first)).await.unwrap() {
        Fold::Made(made) => Some(*made),
        Fold::Unsummarized(_) | Fold::Nothing => None,
    }
}

/// The session after Pi has appended the compaction.
fn folded_by(session: Session, made: &Compacted) -> Session {
    let compaction = &made.compaction;
    let fields = json!({
        "summary": compaction.summary, "firstKeptEntryId": kept(compaction), "tokensBefore": compaction.tokens_before,
        "details": compaction.details, "fromHook": true,
    });
    session.entry("compaction", fields)
}

#[tokio::test]
async fn a_fold_covers_everything_before_the_tail_or_does_not_happen() {
    let session = Session::new().chat(60, 100);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let first = compact(&store, conversation, &session);
    let Fold::Unsummarized(tail) = fold(first.session(), &at(&first, None)).await.unwrap() else {
        panic!("nothing is ready")
    };
    prepared(&first, &ScriptedModel::helpful(), &tail).await;
    assert_eq!(unsummarized(&first.session(), &at(&first, None)).await.unwrap(), None);
    let made = folded(&first, None).await.unwrap();
    assert_eq!(kept(&made.compaction), tail);
    assert!(made.compaction.summary.contains("none missing, 0 degraded"), "{}", made.compaction.summary);
    assert!(made.report.starts_with("folded: ") && !made.degraded, "{}", made.report);

    // The store has all of it: a reopened session gives the same fold.
    let Some(path) = store.store.place() else { panic!("no file") };
    let reopened = TestStore::of(lcm_store::Store::open(path.parent(), "project", "/project").unwrap());
    assert_eq!(folded(&compact(&reopened, conversation, &session), None).await, Some(made.clone()));

    // What follows a fold is summarized before the next one.
    let session = folded_by(session, &made).chat(20, 100);
    store.ingest("one", &session).await;
    let later = compact(&store, conversation, &session);
    assert_eq!(folded(&later, Some(&tail)).await, None);
    let newer = unsummarized(&later.session(), &at(&later, Some(&tail))).await.unwrap().unwrap();
    prepared(&later, &ScriptedModel::helpful(), &newer).await;
    assert_eq!(kept(&folded(&later, Some(&tail)).await.unwrap().compaction), newer);
}

#[tokio::test]
async fn summaries_that_do_not_fit_the_block_are_condensed_before_a_fold() {
    let session = Session::new().chat(60, 100);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    // As after work ahead that was paused before it condensed them.
    let roomy = compact(&store, conversation, &session);
    let tail = unsummarized(&roomy.session(), &at(&roomy, None)).await.unwrap().unwrap();
    prepared(&roomy, &ScriptedModel::helpful(), &tail).await;
    let small = compact(&store, conversation, &session).with(|settings, _| settings.max_summary_tokens = 500);
    assert!(folded(&small, None).await.is_none());
    let before = unsummarized(&small.session(), &at(&small, None)).await.unwrap().expect("they do not fit");
    prepared(&small, &ScriptedModel::helpful(), &before).await;
    assert_eq!(unsummarized(&small.session(), &at(&small, None)).await.unwrap(), None);
    assert_eq!(kept(&folded(&small, None).await.unwrap().compaction), tail);
}

#[tokio::test]
async fn a_context_that_fits_in_a_tail_is_not_folded() {
    let session = Session::new().chat(12, 10);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = compact(&store, conversation, &session);
    assert_eq!(fold(compact.session(), &at(&compact, None)).await.unwrap(), Fold::Nothing);
}

proptest! {
    #![proptest_config(cases(24))]

    /// All timestamps are equal here, and several workers write the summaries at once.
    #[test]
    fn equal_timestamps_and_any_order_of_work_give_the_same_bytes(
        turns in 40_usize..70, workers in 1_usize..5, seed in any::<u64>()
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let session = Session::new().chat(turns, 100);
            let mut blocks = Vec::new();
            for round in 0..2_u64 {
                let store = TestStore::new();
                let conversation = match round {
                    0 => store.ingest("one", &session).await,
                    _ => in_pieces(&store, &session, seed).await,
                };
                let compact = compact(&store, conversation, &session)
                    .with(|settings, _| settings.leaf_pass_concurrency = if round == 0 { 1 } else { workers });
                let tail = unsummarized(&compact.session(), &at(&compact, None)).await.unwrap().unwrap();
                prepared(&compact, &answering_from_the_prompt(), &tail).await;
                blocks.push(folded(&compact, None).await.map(|made| made.compaction.summary));
            }
            prop_assert!(blocks[0].is_some());
            prop_assert_eq!(&blocks[0], &blocks[1]);
            Ok(())
        })?;
    }
}

/// Stores a session in two pieces.
async fn in_pieces(store: &TestStore, session: &Session, seed: u64) -> ConversationId {
    let middle = session.entries.len() / 2 + usize::try_from(seed % 10).unwrap();
    let mut part = session.clone();
    part.entries.truncate(middle);
    let part = part.at(session.entries[middle - 1]["id"].as_str().unwrap());
    store.ingest("one", &part).await;
    store.ingest("one", session).await
}

/// A model whose answer depends only on the prompt.
fn answering_from_the_prompt() -> Arc<ScriptedModel> {
    ScriptedModel::new(|request| {
        let hash = lcm_model::ids::Hash::of([conversation_of(&request.prompt).as_bytes()]);
        let text = format!("Stretch {hash}\nsummed up.\nExpand for details about: all");
        Ok(lcm_compaction::llm::Reply { text, model: Some("scripted/model".into()), usage: None })
    })
}

/// The history in a prompt, without the fence's random name.
fn conversation_of(prompt: &str) -> String {
    prompt.lines().filter(|line| line.contains("question") || line.contains("answer")).collect()
}
