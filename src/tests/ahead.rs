//! Work ahead of a compaction: what it makes, what it leaves, and that only one of several processes pays.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::llm::{Answer, Model, ModelRequest, Pending};
use lcm_compaction::{Ahead, At, forecast, prepare};
use lcm_model::ids::Hash;
use lcm_model::policy::Live;
use lcm_model::text;
use lcm_store::Store;

/// Chunks of 300 tokens, and a tail of 200, which is four messages.
fn compact<'a>(
    store: &'a TestStore,
    conversation: lcm_model::ids::ConversationId,
    session: &Session,
) -> Compact<'a> {
    let kept = format!("e{}", session.entries.len() - 3);
    Compact::new(store, conversation, session.leaf(), &kept).with(|settings, _| {
        settings.pi.keep_recent_tokens = 200;
        settings.condensation_threshold = 50;
    })
}

pub async fn prepared(compact: &Compact<'_>, model: Arc<dyn Model>, pause: &CancellationToken) -> bool {
    let ahead = Ahead {
        at: At {
            leaf_id: compact.request.leaf_id.clone(),
            context_window: compact.request.context_window,
            model: compact.request.model.clone(),
            ..At::default()
        },
        ..Ahead::default()
    };
    prepare(compact.work(model, CancellationToken::new()), &ahead, pause).await.unwrap().failure.is_some()
}

async fn summaries(store: &Store) -> usize {
    let read = store.read(|view| Ok(view.summaries().totals(lcm_model::ids::ConversationId(1))?.summaries));
    read.await.unwrap()
}

/// Takes time for each answer.
struct Slow(Arc<ScriptedModel>);

impl Model for Slow {
    fn ask(&self, request: ModelRequest) -> Pending<'_, Answer> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            self.0.ask(request).await
        })
    }

    fn calls(&self) -> usize {
        self.0.calls()
    }
}

#[tokio::test]
async fn a_compaction_uses_summaries_made_ahead_without_a_model_call() {
    let session = Session::new().chat(30, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact =
        compact(&store, conversation, &session).with(|_, request| request.reason = Some("threshold".into()));
    let (ahead, later) = (ScriptedModel::helpful(), ScriptedModel::helpful());
    assert!(!prepared(&compact, ahead.clone(), &CancellationToken::new()).await);
    let made = ahead.prompts().len();
    assert!(made > 5, "{made}");

    let compaction = compacted(compact.run(&later).await);
    assert_eq!(later.prompts(), Vec::<String>::new());
    assert_eq!(compaction.details.frontier.len(), made);
    // Only the part that Pi keeps stays raw, and less than two chunks before it.
    assert!(compaction.details.covered > 40, "{}", compaction.details.covered);

    // Without new messages there is nothing to do.
    assert!(!prepared(&compact, ahead.clone(), &CancellationToken::new()).await);
    assert_eq!(ahead.prompts().len(), made);
}

#[tokio::test]
async fn work_ahead_stops_before_the_tail_and_makes_full_chunks() {
    let session = Session::new().chat(30, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = compact(&store, conversation, &session);
    let model = ScriptedModel::helpful();
    prepared(&compact, model.clone(), &CancellationToken::new()).await;
    let prompts = model.prompts();
    assert!(!prompts.iter().any(|prompt| prompt.contains("question 58") || prompt.contains("answer 58")));

    // After more messages, the chunks are cut as without the work ahead.
    let longer = session.clone().chat(10, 30);
    store.ingest("one", &longer).await;
    let cold = TestStore::new();
    let other = cold.ingest("one", &longer).await;
    let spans = async |store: &TestStore, conversation, model: &Arc<ScriptedModel>| {
        let details = compacted(self::compact(store, conversation, &longer).run(model).await).details;
        let mut spans: Vec<Vec<String>> =
            details.summaries.into_iter().map(|summary| summary.sources).collect();
        spans.sort();
        spans
    };
    let ready = spans(&store, conversation, &model).await;
    assert_eq!(ready, spans(&cold, other, &ScriptedModel::helpful()).await);
}

#[tokio::test]
async fn a_session_that_pi_keeps_whole_needs_no_model_call() {
    let session = Session::new().chat(30, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = compact(&store, conversation, &session)
        .with(|settings, _| settings.pi.keep_recent_tokens = 1_000_000);
    let model = ScriptedModel::helpful();
    assert!(!prepared(&compact, model.clone(), &CancellationToken::new()).await);
    assert!(model.prompts().is_empty());
}

#[tokio::test]
async fn a_summary_has_the_exact_details_that_its_text_lacks() {
    let session = Session::new().user("Keep it below 250 ms.");
    let session = session.assistant("`evict_oldest` in src/cache.rs frees 40 kB.").chat(30, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = compact(&store, conversation, &session);
    let model = ScriptedModel::new(|_| {
        Ok(lcm_compaction::llm::Reply { text: "It went on.".to_owned(), model: None, usage: None })
    });
    let block = compacted(compact.run(&model).await).summary;
    assert!(block.contains("Also: below 250 ms, cache.rs, frees 40 kB"), "{block}");
}

#[tokio::test]
async fn failed_work_ahead_is_left_to_the_compaction() {
    let session = Session::new().chat(30, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = compact(&store, conversation, &session);
    assert!(prepared(&compact, ScriptedModel::failing(), &CancellationToken::new()).await);
    assert_eq!(summaries(&store.store).await, 0);
}

#[tokio::test]
async fn a_pause_starts_no_new_work() {
    let session = Session::new().chat(30, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let pause = CancellationToken::new();
    let paused = pause.clone();
    let model = ScriptedModel::new(move |_| {
        paused.cancel();
        Ok(lcm_compaction::llm::Reply { text: "Something was said.".into(), model: None, usage: None })
    });
    let compact =
        compact(&store, conversation, &session).with(|settings, _| settings.leaf_pass_concurrency = 2);
    assert!(!prepared(&compact, model.clone(), &pause).await);
    assert_eq!((model.prompts().len(), summaries(&store.store).await), (2, 2));
}

#[tokio::test]
async fn only_one_of_two_processes_pays_for_each_summary() {
    let session = Session::new().chat(60, 30);
    let one = TestStore::new();
    let conversation = one.ingest("one", &session).await;
    let Some(path) = one.store.place() else { panic!("no file") };
    let two = TestStore::of(Store::open(path.parent(), "project", "/project").unwrap());
    let model = ScriptedModel::helpful();
    let slow: Arc<dyn Model> = Arc::new(Slow(model.clone()));
    let never = CancellationToken::new();
    let (here, there) = (compact(&one, conversation, &session), compact(&two, conversation, &session));

    // Both prepare at once; then one compacts while the other is still preparing.
    tokio::join!(prepared(&here, slow.clone(), &never), prepared(&there, slow.clone(), &never));
    let made = summaries(&one.store).await;
    assert!(made > 10);
    assert_eq!(model.prompts().len(), made);

    let longer = session.chat(40, 30);
    one.ingest("one", &longer).await;
    let (here, there) = (compact(&one, conversation, &longer), compact(&two, conversation, &longer));
    let now = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        compacted(
            lcm_compaction::run(there.work(slow.clone(), CancellationToken::new()), &there.request)
                .await
                .unwrap(),
        )
    };
    let (_, compaction) = tokio::join!(prepared(&here, slow.clone(), &never), now);
    assert_eq!(compaction.details.covered, 196);
    assert_eq!(model.prompts().len(), summaries(&one.store).await);
}

#[tokio::test]
async fn an_expired_lease_can_be_taken() {
    let store = TestStore::new();
    let spans = [Hash::plain(b"one"), Hash::plain(b"two")];
    let claim = |owner: &'static str, now: i64| {
        store.store.write(move |batch| batch.summaries().claim(&spans, owner, now, now + 1_000))
    };
    assert_eq!(claim("dead", 0).await.unwrap(), [true, true]);
    assert_eq!(claim("alive", 999).await.unwrap(), [false, false]);
    assert_eq!(claim("dead", 999).await.unwrap(), [true, true]);
    assert_eq!(claim("alive", 2_000).await.unwrap(), [true, true]);
    let is_claimed = |owner: &'static str, now: i64| {
        store.store.read(move |view| view.summaries().is_claimed(spans[0], owner, now))
    };
    assert!(is_claimed("dead", 2_500).await.unwrap() && !is_claimed("alive", 2_500).await.unwrap());
    assert!(!is_claimed("dead", 3_000).await.unwrap());
    store.store.write(move |batch| batch.summaries().release(spans[0], "alive")).await.unwrap();
    assert!(!is_claimed("dead", 2_500).await.unwrap());
    assert!(text::now() > 3_000);
}

#[tokio::test]
async fn a_lease_from_a_fast_clock_can_be_taken() {
    const HOUR: i64 = 3_600_000;
    let store = TestStore::new();
    let span = Hash::plain(b"one");
    let claim = |owner: &'static str, now: i64| {
        store.store.write(move |batch| batch.summaries().claim(&[span], owner, now, now + 15_000))
    };
    assert_eq!(claim("dead", 10 * HOUR).await.unwrap(), [true]);
    let is_claimed = store.store.read(move |view| view.summaries().is_claimed(span, "alive", 9 * HOUR));
    assert!(!is_claimed.await.unwrap());
    assert_eq!(claim("alive", 9 * HOUR).await.unwrap(), [true]);
    // A few seconds do not matter.
    assert_eq!(claim("other", 9 * HOUR - 5_000).await.unwrap(), [false]);
}

#[tokio::test]
async fn the_forecast_matches_the_compaction() {
    let session = Session::new().chat(60, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let mut compact =
        compact(&store, conversation, &session).with(|settings, _| settings.condensation_threshold = 6);
    prepared(&compact, ScriptedModel::helpful(), &CancellationToken::new()).await;
    let longer = session.chat(20, 30);
    store.ingest("one", &longer).await;
    compact.request.leaf_id = longer.leaf().to_owned();
    let live = Live { context_window: Some(200_000), ..Live::default() };
    let found = forecast(compact.session(), longer.leaf(), &live).await;
    let found = found.unwrap().unwrap();
    assert_eq!(found.kept.0 + found.covered.0, 160);

    compact.request.first_kept_entry_id = format!("e{}", found.covered.0 + 1);
    let model = ScriptedModel::helpful();
    let compaction = compacted(compact.run(&model).await);
    assert_eq!(compaction.details.covered, found.covered.0);
    assert_eq!(model.prompts().len(), found.leaves.0 + found.condensed);
}
