//! Folds from ready summaries, or not at all; and the context as the policy sees it.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::extent::cases;
use super::support::{Compact, ScriptedModel, Session, TestStore, kept};
use crate::compaction::{self, Ahead, At, Early, Looked, Shown, early, prepare};
use crate::ids::ConversationId;
use crate::policy;
use crate::store::{Place, View};

/// Chunks of 300 tokens.
fn compact<'a>(store: &'a TestStore, conversation: ConversationId, session: &Session) -> Compact<'a> {
    Compact::new(store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.max_summary_tokens = 3_000)
}

async fn prepared(compact: &Compact<'_>, model: &Arc<ScriptedModel>, before: &str) {
    let ahead = Ahead {
        leaf_id: compact.request.leaf_id.clone(),
        context_tokens: None,
        context_window: compact.request.context_window,
        model: None,
        fold_before: Some(before.to_owned()),
    };
    let model: Arc<dyn crate::llm::Model> = Arc::clone(model) as _;
    let work = compact.work(model, CancellationToken::new());
    prepare(work, &ahead, &CancellationToken::new()).await.unwrap();
}

async fn fold(compact: &Compact<'_>, before: &str) -> Option<Early> {
    let at = At {
        leaf_id: compact.request.leaf_id.clone(),
        first_kept: before.to_owned(),
        context_tokens: 7_000,
        context_window: compact.request.context_window,
        model: None,
    };
    early(compact.session(), at).await.unwrap()
}

/// The session after Pi has appended the compaction.
fn folded_by(session: Session, early: &Early) -> Session {
    let compaction = &early.compaction;
    let fields = json!({
        "summary": compaction.summary, "firstKeptEntryId": kept(compaction), "tokensBefore": compaction.tokens_before,
        "details": compaction.details, "fromHook": true,
    });
    session.entry("compaction", fields)
}

async fn shown(compact: &Compact<'_>, first: Option<&str>) -> Shown {
    let (memory, conversation) = (compact.store.memory(compact.conversation), compact.conversation);
    let (settings, leaf) = (compact.settings.clone(), compact.request.leaf_id.clone());
    let looked =
        Looked { leaf, first: first.map(ToOwned::to_owned), last: Some("e1".into()), window: Some(128_000) };
    let read = move |view: &View<'_>| compaction::shown(view, &memory, conversation, &settings, &looked);
    let shown = compact.store.store.read(read).await.unwrap();
    assert!(shown.goes_on);
    shown
}

#[tokio::test]
async fn a_fold_covers_everything_before_the_tail_or_does_not_happen() {
    let session = Session::new().chat(60, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let first = compact(&store, conversation, &session);
    assert_eq!(fold(&first, "e100").await, None, "nothing is ready");
    prepared(&first, &ScriptedModel::helpful(), "e100").await;
    let early = fold(&first, "e100").await.unwrap();
    assert_eq!((kept(&early.compaction), early.compaction.details.covered), ("e100", 99));
    assert!(early.compaction.summary.contains("none missing, 0 degraded"), "{}", early.compaction.summary);
    assert!(early.report.starts_with("folded: ") && !early.degraded, "{}", early.report);
    assert_eq!(fold(&first, "e110").await, None, "the rest has no summary yet");

    // The store has all of it: a reopened session gives the same fold.
    let Place::File(path) = store.store.place() else { panic!("no file") };
    let reopened = TestStore::of(crate::store::Store::open(path.parent(), "project", "/project").unwrap());
    assert_eq!(fold(&compact(&reopened, conversation, &session), "e100").await, Some(early));
}

#[tokio::test]
async fn the_policy_sees_sizes_requests_and_summaries() {
    let output = "a line of output\n".repeat(800);
    let session = (0..12).fold(Session::new().user("Look at all of it"), |session, at| {
        session.tool("bash", json!({"command": format!("cat file{at}")}), &output)
    });
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let before = shown(&compact(&store, conversation, &session), None).await;
    assert_eq!((before.items.len(), before.hidden), (25, 0));
    // The request was part of all twelve calls, the last result of none.
    let sent: Vec<usize> = before.items.iter().map(|item| item.sent).collect();
    assert_eq!((sent[0], sent[2], sent[23], sent[24]), (12, 11, 0, 0));
    assert!(before.items[2].is_result && before.items[2].stub.is_some() && !before.items[2].can_begin);
    assert!(before.items[2].unread > 0 && before.items[2].unread < before.items[2].shown);
    assert_eq!(before.grown, before.items[21].shown + before.items[22].shown);

    let cut = policy::tail(&before.items).unwrap();
    let first_kept = before.visible[cut].entry_id.clone();
    let compact_it = compact(&store, conversation, &session);
    prepared(&compact_it, &ScriptedModel::helpful(), &first_kept).await;
    let ready = shown(&compact_it, None).await;
    assert!(ready.items[..cut].iter().all(|item| item.unread == 0));
    assert!(ready.items[cut..].iter().all(|item| item.unread > 0));

    let early = fold(&compact_it, &first_kept).await.unwrap();
    let folded = folded_by(session, &early).user("go on").assistant("so it is");
    store.ingest("one", &folded).await;
    let after = shown(&compact(&store, conversation, &folded), Some(&first_kept)).await;
    assert_eq!(after.items.len(), before.items.len() - cut + 2);
    // There was one request since the fold.
    assert!(after.items[..after.items.len() - 1].iter().all(|item| item.sent == 1));
    assert!(after.last_change > before.last_change);
}

#[tokio::test]
async fn a_stubbed_message_is_hidden_and_no_longer_a_result() {
    let session =
        Session::new().user("go").tool("bash", json!({"command": "ls"}), &"a line of output\n".repeat(800));
    let store = TestStore::new();
    let stub = json!([{"type": "text", "text": "left out"}]);
    let session =
        session.entry("context_edit", json!({"targetId": "e3", "replacement": {"content": stub, "lcm": {}}}));
    let conversation = store.ingest("one", &session).await;
    let shown = shown(&compact(&store, conversation, &session), None).await;
    let item = shown.items[2];
    assert!(!item.is_result && item.stub.is_none() && item.shown < 10 && shown.hidden > 1_000);
}

proptest! {
    #![proptest_config(cases(24))]

    /// All timestamps are equal here, and several workers write the summaries at once.
    #[test]
    fn equal_timestamps_and_any_order_of_work_give_the_same_bytes(
        turns in 40_usize..70, workers in 1_usize..5, seed in any::<u64>()
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let session = Session::new().chat(turns, 30);
            let before = format!("e{}", turns + 20);
            let mut blocks = Vec::new();
            for round in 0..2_u64 {
                let store = TestStore::new();
                let conversation = match round {
                    0 => store.ingest("one", &session).await,
                    _ => in_pieces(&store, &session, seed).await,
                };
                let compact = compact(&store, conversation, &session)
                    .with(|settings, _| settings.leaf_pass_concurrency = if round == 0 { 1 } else { workers });
                prepared(&compact, &answering_from_the_prompt(), &before).await;
                blocks.push(fold(&compact, &before).await.map(|early| early.compaction.summary));
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
        let hash = crate::ids::Hash::of([conversation_of(&request.prompt).as_bytes()]);
        let text = format!("Stretch {hash}\nsummed up.\nExpand for details about: all");
        Ok(crate::llm::Reply { text, model: Some("scripted/model".into()), usage: None })
    })
}

/// The history in a prompt, without the fence's random name.
fn conversation_of(prompt: &str) -> String {
    prompt.lines().filter(|line| line.contains("question") || line.contains("answer")).collect()
}
