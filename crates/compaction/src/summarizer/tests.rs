//! How long a compaction waits and what it asks, whatever its models do. The clock is paused and advances
//! only for timers.

use std::sync::atomic::AtomicBool;

use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::llm::{Chain, Facts, Host, Pending, ProviderState};
use lcm_model::log::Log;

type Answers = Box<dyn Fn(&ModelRequest) -> (Duration, Answer) + Send + Sync>;

/// A host with every model, each with a window, that answers for all of them.
struct Script {
    window: usize,
    url: &'static str,
    /// Taken while it answers, if it answers one question after the other.
    slot: Option<tokio::sync::Mutex<()>>,
    answers: Answers,
    asked: Mutex<Vec<(String, ModelRequest)>>,
}

impl Host for Script {
    fn models(&self) -> Pending<'_, std::result::Result<Vec<Option<String>>, String>> {
        Box::pin(async { Ok(vec![Some("a/one".to_owned()), Some("b/two".to_owned()), None]) })
    }

    fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, std::result::Result<Facts, String>> {
        let (provider, id) = model.unwrap_or("own/model").split_once('/').unwrap();
        let facts = json!({
            "model": {"provider": provider, "id": id, "api": "other", "contextWindow": self.window, "baseUrl": self.url},
            "auth": {"ok": true, "apiKey": "k"},
        });
        Box::pin(async move { Ok(serde_json::from_value(facts).unwrap()) })
    }

    fn ask<'a>(&'a self, model: Option<&'a str>, request: ModelRequest) -> Pending<'a, Answer> {
        let (takes, answer) = (self.answers)(&request);
        self.asked.lock().unwrap().push((model.unwrap_or("own/model").to_owned(), request));
        Box::pin(async move {
            let _slot = match &self.slot {
                Some(slot) => Some(slot.lock().await),
                None => None,
            };
            tokio::time::sleep(takes).await;
            answer
        })
    }

    fn cached<'a>(&'a self, _question: &'a InSession) -> Pending<'a, Option<usize>> {
        Box::pin(async { None })
    }
}

struct World {
    script: Arc<Script>,
    summarizer: Arc<Summarizer>,
    cancel: CancellationToken,
}

fn world(
    window: usize,
    answers: impl Fn(&ModelRequest) -> (Duration, Answer) + Send + Sync + 'static,
) -> World {
    world_of(Script { window, url: "", slot: None, answers: Box::new(answers), asked: Mutex::default() })
}

fn world_of(script: Script) -> World {
    let script = Arc::new(script);
    let settings = Settings::defaults(std::path::Path::new("/nowhere"));
    let host: Arc<dyn Host> = Arc::clone(&script) as _;
    let chain = Chain::new(host, &settings, true, Arc::new(ProviderState::new(&settings)), Log::default());
    let cancel = CancellationToken::new();
    let summarizer = Arc::new(Summarizer::new(Arc::new(chain), Arc::default(), cancel.clone(), &settings));
    World { script, summarizer, cancel }
}

/// A summary as short as it may be.
const SHORT: &str = "Talk\nSome words said\nExpand for details about: all";
const LAST: &str = "Expand for details about: all";
const SECOND: Duration = Duration::from_secs(1);
/// The default of the setting, in ms.
const LIMIT: Duration = Duration::from_secs(120);

fn reply(text: &str) -> Answer {
    Ok(Reply { text: text.into(), model: Some("m".into()), usage: Some(json!({"input": 1})) })
}

fn material(history: &str) -> PromptMaterial<'_> {
    PromptMaterial { depth: 0, history, before: "", instructions: None, stretch: None, by: None }
}

impl World {
    /// Makes this many summaries with the default concurrency. Returns the time it took, and how many are
    /// degraded.
    async fn summaries(&self, count: usize) -> (Duration, usize) {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let summarizer = Arc::clone(&self.summarizer);
            tasks.spawn(async move {
                let _permit = summarizer.permit().await.unwrap();
                summarizer.summarize(&material("said"), 1_000, 300, |_| "extract".into()).await.unwrap().state
            });
        }
        let states = tasks.join_all().await;
        (began.elapsed(), states.iter().filter(|state| **state == State::Degraded).count())
    }

    fn asked(&self, model: &str) -> usize {
        self.script.asked.lock().unwrap().iter().filter(|(name, _)| name == model).count()
    }

    fn prompts(&self) -> Vec<String> {
        self.script.asked.lock().unwrap().iter().map(|(_, request)| request.prompt.clone()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn silent_providers_delay_a_compaction_for_a_bounded_time() {
    let world = world(0, |_| (Duration::MAX / 4, reply("never")));
    let (took, degraded) = world.summaries(100).await;
    assert_eq!(degraded, 100);
    assert!(took <= 2 * LIMIT + 10 * SECOND, "{took:?}");
    // Four at once wait for one model after the other and briefly for the third; no one else waits for any.
    assert_eq!(["a/one", "b/two", "own/model"].map(|model| world.asked(model)), [4, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn slowly_failing_providers_delay_a_compaction_for_a_bounded_time() {
    let world = world(0, |_| (LIMIT - SECOND, Err(Failure::unreachable("500"))));
    let (took, degraded) = world.summaries(100).await;
    assert_eq!(degraded, 100);
    assert!(took <= 2 * LIMIT + 10 * SECOND, "{took:?}");
    assert!(world.prompts().len() <= 12, "{}", world.prompts().len());
}

#[tokio::test(start_paused = true)]
async fn providers_that_fail_at_once_are_given_up_within_seconds() {
    let world = world(0, |_| (Duration::ZERO, Err(Failure::unreachable("500"))));
    let (took, degraded) = world.summaries(1_000).await;
    assert_eq!(degraded, 1_000);
    assert!(took <= 30 * SECOND, "{took:?}");
    // Four questions go to each of three models four times; two more may start before the third has failed.
    assert!(world.prompts().len() <= 4 * 4 * 3 + 2 * 3, "{}", world.prompts().len());
}

#[tokio::test(start_paused = true)]
async fn a_slow_provider_gets_enough_time() {
    let world = world(0, |_| (LIMIT - SECOND, reply(SHORT)));
    let (took, degraded) = world.summaries(40).await;
    assert_eq!((took, degraded), (10 * (LIMIT - SECOND), 0));
}

/// A server with one slot that takes this long for an answer.
fn one_slot(url: &'static str, takes: Duration) -> World {
    let answers = Box::new(move |_: &ModelRequest| (takes, reply(SHORT)));
    world_of(Script {
        window: 0,
        url,
        slot: Some(tokio::sync::Mutex::default()),
        answers,
        asked: Mutex::default(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_near_server_gets_one_question_at_a_time() {
    let world = one_slot("http://192.168.1.20:8080/v1", 100 * SECOND);
    assert_eq!(world.summaries(8).await, (800 * SECOND, 0));
    assert_eq!((world.asked("a/one"), world.asked("b/two")), (8, 0), "none timed out");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_timed_out_while_others_were_answered_is_asked_again_alone() {
    let world = one_slot("https://example.com/v1", 100 * SECOND);
    let (_, degraded) = world.summaries(4).await;
    assert_eq!((degraded, world.asked("b/two")), (0, 0));
    assert_eq!(world.asked("a/one"), 4 + 3);
}

#[tokio::test(start_paused = true)]
async fn cancelling_does_not_wait_for_retries() {
    let world = world(0, |_| (Duration::ZERO, Err(Failure::unreachable("500"))));
    let (began, said) = (Instant::now(), material("said"));
    let (_, outcome) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            world.cancel.cancel();
        },
        world.summarizer.summarize(&said, 1_000, 300, |_| "extract".into())
    );
    assert!(outcome.is_err());
    assert_eq!((began.elapsed(), world.prompts().len()), (Duration::from_millis(100), 1));
}

/// This many messages of about this many tokens, as in the summarizer's input.
fn history(messages: usize, words: usize) -> String {
    let message = |at| {
        format!(
            "{}m-{at:010x} user 2026-11-20 09:12]\nmessage{at}! {}\n\n",
            prompts::HEADER,
            "word ".repeat(words)
        )
    };
    (0..messages).map(message).collect::<String>().trim_end().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_history_larger_than_the_window_is_asked_in_parts_without_gaps() {
    let count = AtomicUsize::new(0);
    let world = world(16_000, move |_| {
        (SECOND, reply(&format!("Talk\nanswer{}! in short\n{LAST}", count.fetch_add(1, Ordering::Relaxed))))
    });
    let history = history(100, 300);
    let written =
        world.summarizer.summarize(&material(&history), 30_000, 600, |_| "extract".into()).await.unwrap();
    let prompts = world.prompts();
    assert!(prompts.len() >= 4, "{}", prompts.len());
    let (whole, parts) = prompts.split_last().unwrap();
    for at in 0..100 {
        let holding = parts.iter().filter(|prompt| prompt.contains(&format!("message{at}!"))).count();
        assert_eq!(holding, 1, "message {at}");
    }
    // Each part's answer is in the last question, whose answer is the summary.
    for at in 0..parts.len() {
        assert!(whole.contains(&format!("answer{at}!")), "{whole}");
    }
    assert_eq!(
        (written.state, written.text),
        (State::Ok, format!("Talk\nanswer{}! in short\n{LAST}", parts.len()))
    );
    assert_eq!(written.usage, Some(json!({"input": prompts.len()})));
    assert_eq!(world.summarizer.usage(), written.usage);
    assert_eq!(world.summarizer.model.calls(), prompts.len());
    assert!(prompts.iter().all(|prompt| size(prompt) < 16_000 - 2_000 - 3_848));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_server_calls_too_long_is_asked_in_parts_that_fit() {
    const SAID: &str = "400: request (9000 tokens) exceeds the available context size (8192 tokens)";
    // It has half of the window that Pi knows of, or its tokens are smaller.
    let world = world(0, |request| match size(&request.prompt) {
        9_000.. => (SECOND, Err(Failure::said(SAID))),
        _ => (SECOND, reply(SHORT)),
    });
    let history = history(60, 300);
    let written =
        world.summarizer.summarize(&material(&history), 30_000, 600, |_| "extract".into()).await.unwrap();
    assert_eq!((written.state, written.text.as_str()), (State::Ok, SHORT));
    let asked = world.prompts();
    // The whole is too long, and its parts are 0.8 * 8,192 / 9,000 of it; then their parts fit.
    assert!((4..=12).contains(&asked.len()), "{}", asked.len());
    for at in 0..60 {
        let fit = asked.iter().filter(|prompt| size(prompt) < 9_000);
        assert_eq!(fit.filter(|prompt| prompt.contains(&format!("message{at}!"))).count(), 1, "message {at}");
    }
    assert_eq!(world.asked("b/two"), 0, "it is not the model's failure");
}

#[tokio::test(start_paused = true)]
async fn questions_fit_the_window_by_the_learned_ratio() {
    let world = world(32_000, |_| (SECOND, reply(SHORT)));
    let ratios = [("a/one".to_owned(), 2.0)].into_iter().collect();
    world.summarizer.model.calibrate(ratios);
    let history = history(60, 300);
    world.summarizer.summarize(&material(&history), 30_000, 600, |_| "extract".into()).await.unwrap();
    let asked = world.prompts();
    assert!(asked.len() >= 3, "{}", asked.len());
    assert!(asked.iter().all(|prompt| 2 * size(prompt) < 32_000 - 3_848));
}

#[tokio::test(start_paused = true)]
async fn a_part_that_no_model_summarizes_makes_the_whole_an_extract() {
    let once = AtomicBool::new(false);
    let world = world(16_000, move |_| match once.swap(true, Ordering::Relaxed) {
        false => (SECOND, reply(SHORT)),
        true => (SECOND, Err(Failure::useless("the answer has no text"))),
    });
    let history = history(100, 300);
    let written =
        world.summarizer.summarize(&material(&history), 30_000, 600, |_| "extract".into()).await.unwrap();
    assert_eq!((written.state, written.text.as_str()), (State::Degraded, "extract"));
    assert_eq!(world.summarizer.last_failure().as_deref(), Some("a/one: the answer has no text"));
}

#[tokio::test(start_paused = true)]
async fn a_skipped_model_is_reported_with_its_last_failure() {
    let world = world(0, |_| (SECOND, Err(Failure::unreachable("oh dear"))));
    let mut asked = Vec::new();
    for _ in 0..4 {
        let written = world.summarizer.summarize(&material("talk"), 30_000, 600, |_| "extract".into()).await;
        assert_eq!(written.unwrap().state, State::Degraded);
        assert_eq!(world.summarizer.last_failure().as_deref(), Some("own/model: oh dear"));
        asked.push(world.script.asked.lock().unwrap().len());
    }
    // The first question goes to each of three models four times; then each rests.
    assert_eq!(asked, [12, 12, 12, 12]);
}

#[tokio::test(start_paused = true)]
async fn failed_and_repeated_calls_count_in_the_summarys_usage() {
    let calls = AtomicUsize::new(0);
    let world = world(0, move |_| {
        let used = Some(json!({"input": 100}));
        match calls.fetch_add(1, Ordering::Relaxed) {
            0 => (SECOND, Err(Failure { usage: used, ..Failure::unreachable("503") })),
            1 => (SECOND, Err(Failure::unreachable("503"))),
            2 => (SECOND, Err(Failure { usage: used, ..Failure::useless("the answer was cut off") })),
            _ => (SECOND, reply(SHORT)),
        }
    });
    let written =
        world.summarizer.summarize(&material("said"), 1_000, 300, |_| "extract".into()).await.unwrap();
    assert_eq!((written.state, written.usage), (State::Ok, Some(json!({"input": 201}))));
    assert_eq!((world.summarizer.usage(), world.summarizer.model.calls()), (Some(json!({"input": 201})), 4));
}

mod useless;
