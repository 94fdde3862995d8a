//! In which order and how often models are asked, with a scripted host.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::llm::Reply;

mod in_session;
mod thinking;

type Answers = Box<dyn Fn(Option<&str>) -> Answer + Send + Sync>;
type Models = Box<dyn Fn(&str) -> Option<Value> + Send + Sync>;

/// A host whose models map `provider/id` to their answers; others are unknown.
struct Script {
    /// The models to ask, in order; the session's own is `None`.
    names: Vec<Option<String>>,
    answer: Answers,
    model: Models,
    log: Mutex<Vec<String>>,
    /// Tokens that the session's provider has cached.
    cached: Option<usize>,
}

impl Script {
    fn new(
        model: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
        answer: impl Fn(Option<&str>) -> Answer + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self::with_cached(None, model, answer))
    }

    fn with_cached(
        cached: Option<usize>,
        model: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
        answer: impl Fn(Option<&str>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let names = [Some("a/one"), Some("b/two"), Some("own/small"), None];
        let (answer, model) = (Box::new(answer), Box::new(model));
        Self { names: Vec::new(), answer, model, log: Mutex::default(), cached }.naming(&names)
    }

    fn naming(self, names: &[Option<&str>]) -> Self {
        Self { names: names.iter().map(|name| name.map(ToOwned::to_owned)).collect(), ..self }
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn write(&self, what: &str, model: Option<&str>) {
        self.log.lock().unwrap().push(format!("{what} {}", model.unwrap_or("session")));
    }
}

impl Host for Script {
    fn models(&self) -> Pending<'_, Result<Vec<Option<String>>, String>> {
        Box::pin(async { Ok(self.names.clone()) })
    }

    fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, Result<Facts, String>> {
        self.write("resolve", model);
        if model == Some("never/answers") {
            return Box::pin(std::future::pending());
        }
        let facts =
            (self.model)(model.unwrap_or("own/model")).ok_or_else(|| "Pi does not know it".to_owned());
        Box::pin(async move { facts.map(|facts| serde_json::from_value(facts).unwrap()) })
    }

    fn ask<'a>(&'a self, model: Option<&'a str>, request: ModelRequest) -> Pending<'a, Answer> {
        self.write(if request.in_session.is_some() { "ask in" } else { "ask" }, model);
        let answer = (self.answer)(model);
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer
        })
    }

    fn cached<'a>(&'a self, _question: &'a InSession) -> Pending<'a, Option<usize>> {
        Box::pin(async move { self.cached })
    }
}

fn facts(name: &str) -> Value {
    let (provider, id) = name.split_once('/').unwrap();
    json!({
        "model": {"provider": provider, "id": id, "api": "other", "maxTokens": 1000, "contextWindow": 10_000},
        "auth": {"ok": true, "apiKey": "k"}
    })
}

fn request(prompt: &str) -> ModelRequest {
    ModelRequest {
        system: "s".into(),
        prompt: prompt.into(),
        max_tokens: 500,
        reasoning: None,
        timeout_ms: 1_000,
        by: None,
        in_session: None,
    }
}

fn reply(model: Option<&str>) -> Answer {
    Ok(Reply { text: "t".into(), model: model.map(ToOwned::to_owned), usage: Some(json!({"input": 1})) })
}

fn settings() -> Settings {
    Settings::defaults(std::path::Path::new("/nowhere"))
}

fn chain(script: &Arc<Script>) -> Chain {
    chain_with(script, &settings(), Arc::new(ProviderState::new(&settings())))
}

fn chain_with(script: &Arc<Script>, settings: &Settings, providers: Arc<ProviderState>) -> Chain {
    let host: Arc<dyn Host> = Arc::clone(script) as _;
    Chain::new(host, settings, true, providers, Log::default())
}

#[tokio::test]
async fn the_first_usable_model_is_asked_and_looked_up_once() {
    let script = Script::new(|name| (name != "a/one").then(|| facts(name)), reply);
    let chain = chain(&script);
    for _ in 0..2 {
        assert_eq!(chain.ask(request("q")).await.unwrap().model.as_deref(), Some("b/two"));
    }
    assert_eq!(script.log(), ["resolve a/one", "resolve b/two", "ask b/two", "ask b/two"]);
}

#[tokio::test]
async fn models_are_asked_in_the_hosts_order_and_the_sessions_own_only_if_permitted() {
    let asked = async |names: &[Option<&str>], own: bool| {
        let script = Script::with_cached(None, |name| (name == "own/model").then(|| facts(name)), reply);
        let script = Arc::new(script.naming(names));
        let (host, settings): (Arc<dyn Host>, _) = (Arc::clone(&script) as _, settings());
        let chain = Chain::new(host, &settings, own, Arc::new(ProviderState::new(&settings)), Log::default());
        (chain.ask(request("q")).await.map_err(|failure| failure.reason), script.log())
    };
    let (answer, log) = asked(&[Some("a/one"), None, Some("b/two")], true).await;
    assert_eq!(
        (answer.is_ok(), log),
        (true, vec!["resolve a/one".into(), "resolve session".into(), "ask session".into()])
    );
    let (answer, log) = asked(&[Some("a/one"), None], false).await;
    let why = "no model can be asked (a/one: Pi does not know it)";
    assert_eq!((answer.unwrap_err().as_str(), log), (why, vec!["resolve a/one".into()]));
    let (answer, log) = asked(&[None], false).await;
    assert_eq!((answer.unwrap_err().as_str(), log.len()), ("no model can be asked (there is none)", 0));
}

#[tokio::test(start_paused = true)]
async fn a_model_whose_key_never_arrives_is_skipped() {
    let script = Script::with_cached(None, |name| Some(facts(name)), reply);
    let script = Arc::new(script.naming(&[Some("never/answers"), Some("b/two")]));
    let chain = chain(&script);
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(chain.ask(request("q")).await.unwrap().model.as_deref(), Some("b/two"));
    }
    // The wait happens once, not for each question.
    assert_eq!(began.elapsed(), LOOKUP);
}

/// Asks `questions`, one after the other, of `a/one` first, which fails like this. Returns the log, the time
/// and the answers.
async fn failing(
    failure: Failure,
    settings: &Settings,
    questions: usize,
) -> (Vec<String>, Duration, Vec<Answer>) {
    let script = Script::new(
        |name| Some(facts(name)),
        move |model| match model {
            Some("a/one") => Err(failure.clone()),
            other => reply(other),
        },
    );
    let chain = chain_with(&script, settings, Arc::new(ProviderState::new(settings)));
    let began = Instant::now();
    let mut answers = Vec::new();
    for _ in 0..questions {
        answers.push(chain.ask(request("q")).await);
    }
    let asked = script.log().into_iter().filter(|line| line.starts_with("ask")).collect();
    (asked, began.elapsed(), answers)
}

fn times(asked: &[String], model: &str) -> usize {
    asked.iter().filter(|line| line.ends_with(model)).count()
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_retried_and_others_go_to_the_next_model() {
    let busy = |status| Failure::said(&format!("{status}: busy"));
    let cases = [
        (busy(429), 4),
        (busy(500), 4),
        (busy(502), 4),
        (busy(503), 4),
        (busy(504), 4),
        (busy(529), 4),
        (Failure::said("Connection error."), 4),
        (Failure::said("terminated"), 4),
        (busy(400), 1),
        (busy(401), 1),
        (busy(403), 1),
        (busy(404), 1),
        (Failure::late(Duration::from_secs(1)), 1),
        (Failure::said("the model refused: no"), 1),
    ];
    for (failure, calls) in cases {
        let (asked, took, answers) = failing(failure.clone(), &settings(), 1).await;
        assert_eq!((times(&asked, "a/one"), times(&asked, "b/two")), (calls, 1), "{failure:?}");
        assert_eq!(answers[0].as_ref().unwrap().model.as_deref(), Some("b/two"));
        let range = if calls == 1 { (0, 0) } else { (3_500, 7_000) };
        assert!((range.0..=range.1).contains(&took.as_millis()), "{failure:?}: {took:?}");
    }
    let never = Settings { model_retries: 0, ..settings() };
    assert_eq!(times(&failing(busy(503), &never, 1).await.0, "a/one"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_is_retried_when_it_asks_and_skipped_if_that_is_too_late() {
    let later = |ms| Failure { retry_after_ms: Some(ms), ..Failure::said("429: slow down") };
    let (asked, took, _) = failing(later(20_000), &settings(), 1).await;
    assert_eq!((times(&asked, "a/one"), took.as_secs()), (4, 60));
    // Longer than anyone waits: the next model is asked at once, also for later questions, until the pause is
    // over.
    let (asked, took, _) = failing(later(31_000), &settings(), 5).await;
    assert_eq!((times(&asked, "a/one"), times(&asked, "b/two"), took.as_secs()), (1, 5, 0));
}

#[tokio::test(start_paused = true)]
async fn failed_calls_usage_is_counted() {
    let failure = Failure { usage: Some(json!({"input": 2})), ..Failure::said("503") };
    let (.., answers) = failing(failure, &settings(), 1).await;
    assert_eq!(answers[0].as_ref().unwrap().usage, Some(json!({"input": 9})));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_failed_rests_across_compactions() {
    let script = Script::new(
        |name| Some(facts(name)),
        |model| match model {
            Some("a/one") => Err(Failure::late(Duration::from_secs(1))),
            other => reply(other),
        },
    );
    let providers = Arc::new(ProviderState::new(&settings()));
    let mut asked = Vec::new();
    for _ in 0..3 {
        let chain = chain_with(&script, &settings(), Arc::clone(&providers));
        for _ in 0..4 {
            chain.ask(request("q")).await.unwrap();
        }
        asked.push(times(&script.log(), "ask a/one"));
        tokio::time::advance(Duration::from_secs(61)).await;
    }
    assert_eq!(asked, [1, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_a_new_chance() {
    let key = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&key);
    let model = move |name: &str| {
        let mut facts = facts(name);
        facts["auth"]["apiKey"] = json!(format!("key {}", now.load(Ordering::Relaxed)));
        (name == "a/one").then_some(facts)
    };
    let good = Arc::clone(&key);
    let script = Script::new(model, move |name| match good.load(Ordering::Relaxed) {
        0 => Err(Failure::late(Duration::from_secs(1))),
        _ => reply(name),
    });
    let providers = Arc::new(ProviderState::new(&settings()));
    for _ in 0..4 {
        let failed = chain_with(&script, &settings(), Arc::clone(&providers)).ask(request("q")).await;
        assert!(failed.is_err());
    }
    assert_eq!(times(&script.log(), "ask a/one"), 1);
    key.store(1, Ordering::Relaxed);
    assert!(chain_with(&script, &settings(), providers).ask(request("q")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_model_is_asked_after_a_limit_is_reached() {
    let limited = Settings { model_tokens_per_hour: 6, ..settings() };
    let (asked, took, answers) = failing(Failure::said("503"), &limited, 3).await;
    // Four calls and one, then one to the other model, each of one token, reach the limit.
    assert_eq!((asked.len(), times(&asked, "a/one")), (6, 4));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2);
    let spent = answers[2].as_ref().unwrap_err();
    assert_eq!(
        (spent.kind, spent.reason.as_str()),
        (Kind::Spent, "the limit of the setting `modelTokensPerHour` is reached")
    );
    assert!(took < Duration::from_secs(10));
}

#[tokio::test]
async fn a_failure_shows_no_key() {
    let key = "a-rather-long-key";
    let model = move |name: &str| {
        let mut facts = facts(name);
        facts["auth"]["apiKey"] = json!(key);
        (name == "a/one").then_some(facts)
    };
    let script = Script::new(model, move |_| Err(Failure::said(&format!("401: bad key {key}"))));
    let failure = chain(&script).ask(request("q")).await.unwrap_err();
    assert_eq!(failure.reason, "a/one: 401: bad key [key]");
}

#[tokio::test]
async fn a_useless_answer_is_an_answer() {
    let useless = |_: Option<&str>| Err(Failure::useless("cut off"));
    let script = Script::new(|name| Some(facts(name)), useless);
    assert!(chain(&script).ask(request("q")).await.unwrap_err().answered());
    assert_eq!(script.log(), ["resolve a/one", "ask a/one"]);
}

#[tokio::test]
async fn the_sessions_own_model_is_asked_last() {
    let script = Script::new(|name| (name == "own/model").then(|| facts(name)), reply);
    assert_eq!(chain(&script).ask(request("q")).await.unwrap().model, None);
}

#[tokio::test]
async fn a_question_larger_than_the_window_is_asked_of_no_model() {
    let script = Script::new(
        |name| {
            let mut facts = facts(name);
            facts["model"]["contextWindow"] = json!(if name == "a/one" { 10_000 } else { 1_000_000 });
            Some(facts)
        },
        reply,
    );
    let chain = chain(&script);
    let Failure { kind: Kind::TooLong { room }, .. } =
        chain.ask(request(&"word ".repeat(7_000))).await.unwrap_err()
    else {
        panic!("it was asked");
    };
    // The window minus what Pi keeps free, the answer, and the system prompt.
    assert_eq!(room, 10_000 - 1_250 - 500 - 1);
    assert_eq!(script.log(), ["resolve a/one"]);
    assert!(chain.ask(request(&"word ".repeat(4_000))).await.is_ok());
}

#[test]
fn an_answer_may_use_the_available_room() {
    let most = |changes: Value| {
        let mut facts = facts("a/one");
        facts["model"].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let request = ModelRequest { max_tokens: 5_000, ..request("q") };
        let fitted = fitted(&serde_json::from_value(facts).unwrap(), &request, Thinking::Off, 1.0);
        fitted.map(|request| request.max_tokens).ok()
    };
    assert_eq!(most(json!({"contextWindow": 100_000})), Some(1_000));
    assert_eq!(most(json!({"maxTokens": 9_000, "contextWindow": 100_000})), Some(5_000));
    assert_eq!(most(json!({"maxTokens": 0, "contextWindow": 0})), Some(5_000));
    // A quarter of the window.
    assert_eq!(most(json!({"maxTokens": 9_000, "contextWindow": 12_000})), Some(3_000));
    assert_eq!(most(json!({"contextWindow": 100})), None);
}

#[tokio::test]
async fn a_model_with_too_small_a_window_is_skipped() {
    let script = Script::new(
        |name| {
            let mut facts = facts(name);
            facts["model"]["contextWindow"] = json!(if name == "a/one" { 1_000 } else { 0 });
            Some(facts)
        },
        reply,
    );
    assert_eq!(chain(&script).ask(request("q")).await.unwrap().model.as_deref(), Some("b/two"));
}

#[tokio::test]
async fn without_any_model_the_error_says_what_was_tried() {
    let script = Script::new(|_| None, reply);
    let failure = chain(&script).ask(request("q")).await.unwrap_err();
    assert!(!failure.answered());
    assert_eq!(
        failure.reason,
        "no model can be asked (a/one: Pi does not know it; b/two: Pi does not know it; own/small: Pi does not know it; \
         session: Pi does not know it)"
    );
}

#[tokio::test]
async fn a_model_that_is_named_is_the_only_one_asked_unless_it_cannot_be() {
    let script = Script::new(|name| Some(facts(name)), reply);
    let named = ModelRequest { by: Some("b/two".into()), ..request("q") };
    assert_eq!(chain(&script).ask(named).await.unwrap().model.as_deref(), Some("b/two"));
    let script = Script::new(|name| (name != "no/model").then(|| facts(name)), reply);
    let unknown = ModelRequest { by: Some("no/model".into()), ..request("q") };
    assert_eq!(chain(&script).ask(unknown).await.unwrap().model.as_deref(), Some("a/one"));
    let script = Script::new(|name| Some(facts(name)), |_| Err(Failure::said("no")));
    let named = ModelRequest { by: Some("b/two".into()), ..request("q") };
    assert!(chain(&script).ask(named).await.is_err());
    assert_eq!(times(&script.log(), "ask a/one"), 0);
}
