//! A compaction at the end of a turn: from what is ready, when it is worth while, and not again before it is.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::extent::cases;
use super::support::{Compact, ScriptedModel, Session, TestStore, kept};
use crate::compaction::{self, Ahead, Early, TurnEnd, early, prepare};
use crate::ids::ConversationId;
use crate::store::Place;

/// Chunks of 300 tokens, a tail of 400, and a threshold of 6,000.
const THRESHOLD: usize = 6_000;

fn compact<'a>(store: &'a TestStore, conversation: ConversationId, session: &Session) -> Compact<'a> {
    Compact::new(store, conversation, session.leaf(), session.leaf()).with(|settings, _| {
        settings.pi.keep_recent_tokens = 400;
        settings.max_summary_tokens = 3_000;
    })
}

async fn prepared(compact: &Compact<'_>, model: &Arc<ScriptedModel>) {
    let ahead = Ahead {
        leaf_id: compact.request.leaf_id.clone(),
        context_tokens: None,
        context_window: compact.request.context_window,
        model: None,
    };
    let model: Arc<dyn crate::llm::Model> = Arc::clone(model) as _;
    let work = compact.work(model, CancellationToken::new());
    prepare(work, &ahead, &CancellationToken::new()).await.unwrap();
}

async fn at_turn_end(compact: &Compact<'_>, tokens: usize, shown_from: Option<&str>) -> Option<Early> {
    let end = TurnEnd {
        leaf_id: compact.request.leaf_id.clone(),
        context_tokens: Some(tokens),
        context_window: compact.request.context_window,
        model: None,
        shown_from: shown_from.map(ToOwned::to_owned),
    };
    let session = compaction::Session {
        store: &compact.store.store,
        conversation: compact.conversation,
        memory: compact.store.memory(compact.conversation),
        settings: &compact.settings,
    };
    early(session, &end, THRESHOLD).await.unwrap()
}

/// The session after Pi has appended a compaction, and the first entry that it left raw.
fn compacted_by(session: Session, early: &Early) -> (Session, String) {
    let compaction = &early.compaction;
    let kept = kept(compaction).to_owned();
    let fields = json!({
        "summary": compaction.summary, "firstKeptEntryId": kept, "tokensBefore": compaction.tokens_before,
        "details": compaction.details, "fromHook": true,
    });
    (session.entry("compaction", fields), kept)
}

#[tokio::test]
async fn it_takes_what_is_ready_and_leaves_the_rest_raw() {
    let session = Session::new().chat(60, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    assert_eq!(
        at_turn_end(&compact(&store, conversation, &session), 7_000, None).await,
        None,
        "nothing is ready"
    );

    prepared(&compact(&store, conversation, &session), &ScriptedModel::helpful()).await;
    let early = at_turn_end(&compact(&store, conversation, &session), 7_000, None).await.unwrap();
    let first_kept = kept(&early.compaction);
    let place = session.entries.iter().position(|entry| entry["id"] == first_kept).unwrap();
    assert!(
        early.compaction.details.covered == place && (90..118).contains(&place),
        "{place} of 120 are covered"
    );
    assert!(early.compaction.summary.contains("none missing, 0 degraded"), "{}", early.compaction.summary);
    assert!(early.report.starts_with("compacted early: ") && !early.degraded, "{}", early.report);
}

#[tokio::test]
async fn what_is_not_ready_yet_stays_raw_where_enough_is_won_without_it() {
    let ready = Session::new().chat(60, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &ready).await;
    prepared(&compact(&store, conversation, &ready), &ScriptedModel::helpful()).await;
    let longer = ready.chat(30, 30);
    store.ingest("one", &longer).await;
    let compact = compact(&store, conversation, &longer);
    // So much is left raw that it would not be clearly below the threshold: it waits.
    assert_eq!(at_turn_end(&compact, 12_000, None).await, None);
    let early = at_turn_end(&compact, 7_000, None).await.unwrap();
    assert!(early.compaction.details.covered < 120, "{}", early.compaction.details.covered);
    assert!(early.compaction.summary.contains("none missing"));
}

#[tokio::test]
async fn it_is_not_repeated_before_the_context_has_clearly_grown_again() {
    let store = TestStore::new();
    let session = Session::new().chat(60, 30);
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::helpful();
    prepared(&compact(&store, conversation, &session), &model).await;
    let first = at_turn_end(&compact(&store, conversation, &session), 7_000, None).await.unwrap();
    let (mut session, shown_from) = compacted_by(session, &first);
    let mut turns = 0;
    // As if the context were above the threshold all the time.
    let second = loop {
        session = session.chat(1, 30);
        turns += 1;
        store.ingest("one", &session).await;
        let compact = compact(&store, conversation, &session);
        prepared(&compact, &model).await;
        if let Some(early) = at_turn_end(&compact, 7_000, Some(&shown_from)).await {
            break early;
        }
        assert!(turns < 60, "it never comes again");
    };
    assert!(turns > 8, "after {turns} turns");
    assert!(second.compaction.details.covered > first.compaction.details.covered);
    // All of it is found in the store: a session that is opened anew comes to the same.
    let Place::File(path) = store.store.place() else { panic!("no file") };
    let reopened =
        TestStore::beside(crate::store::Store::open(path.parent(), "project", "/project").unwrap());
    let again = at_turn_end(&compact(&reopened, conversation, &session), 7_000, Some(&shown_from)).await;
    assert_eq!(again, Some(second));
}

#[tokio::test]
async fn the_raw_part_never_begins_with_a_result() {
    let store = TestStore::new();
    let mut session = Session::new().user("Look at all of it");
    for at in 0..60 {
        session = session.tool(
            "bash",
            json!({"command": format!("cat file{at}")}),
            &"a line of output ".repeat(40),
        );
    }
    let conversation = store.ingest("one", &session).await;
    let compact = compact(&store, conversation, &session);
    prepared(&compact, &ScriptedModel::helpful()).await;
    let early = at_turn_end(&compact, 7_000, None).await.unwrap();
    let first_kept = kept(&early.compaction);
    let entry = session.entries.iter().find(|entry| entry["id"] == first_kept).unwrap();
    assert_eq!(entry["message"]["role"], "assistant");
}

proptest! {
    #![proptest_config(cases(24))]

    /// All timestamps are equal here, and the summaries are written by several workers at once.
    #[test]
    fn equal_times_and_any_order_of_work_give_the_same_bytes(
        turns in 40_usize..70, workers in 1_usize..5, at_once in any::<bool>(), seed in any::<u64>()
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let session = Session::new().chat(turns, 30);
            let mut blocks = Vec::new();
            for round in 0..2_u64 {
                let store = TestStore::new();
                let conversation = if round == 0 || at_once {
                    store.ingest("one", &session).await
                } else {
                    in_pieces(&store, &session, seed).await
                };
                let compact = compact(&store, conversation, &session)
                    .with(|settings, _| settings.leaf_pass_concurrency = if round == 0 { 1 } else { workers });
                prepared(&compact, &telling_of_the_text()).await;
                blocks.push(at_turn_end(&compact, 7_000, None).await.map(|early| early.compaction.summary));
            }
            prop_assert!(blocks[0].is_some());
            prop_assert_eq!(&blocks[0], &blocks[1]);
            Ok(())
        })?;
    }
}

/// Hands a session over piece by piece, with work ahead in between.
async fn in_pieces(store: &TestStore, session: &Session, seed: u64) -> ConversationId {
    let all = session.entries.len();
    let middle = all / 2 + usize::try_from(seed % 10).unwrap();
    let mut part = session.clone();
    part.entries.truncate(middle);
    let part = part.at(session.entries[middle - 1]["id"].as_str().unwrap());
    let conversation = store.ingest("one", &part).await;
    prepared(&compact(store, conversation, &part), &telling_of_the_text()).await;
    store.ingest("one", session).await
}

/// A model whose answer follows from the question alone.
fn telling_of_the_text() -> Arc<ScriptedModel> {
    ScriptedModel::new(|request| {
        let hash = crate::ids::Hash::of([conversation_of(&request.prompt).as_bytes()]);
        let text = format!("Stretch {hash}\nsummed up.\nExpand for details about: all");
        Ok(crate::llm::Reply { text, model: Some("scripted/model".into()), usage: None })
    })
}

/// What of a prompt is the history: the fence around it has a random name.
fn conversation_of(prompt: &str) -> String {
    prompt.lines().filter(|line| line.contains("question") || line.contains("answer")).collect()
}
