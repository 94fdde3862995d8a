//! The models a compaction may ask, one after the other: those of the settings, then the session's own.
//!
//! Pi knows the models and their keys; a [`Host`] asks it. A model is looked up when its turn first comes, never before: a
//! key may be the output of a command of the user's. One that can't be reached gives way to the next, and after a few
//! such failures it is not asked any more in this compaction.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use super::{Answer, Direct, Facts, Failure, Model, Request, add_usage, direct};
use crate::log::{Field, Log};
use crate::tokens;

/// Failures in a row after which a model is left alone.
const GIVE_UP: usize = 3;
/// A call is waited for a little longer than its own limit, in case that never comes.
const GRACE: Duration = Duration::from_secs(5);

/// A future that the caller may drop at any time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whoever knows the models: Pi.
pub trait Host: Send + Sync {
    /// What is known of a model, `provider/id`, or of the session's own; in words why it can't be asked.
    fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, Result<Facts, String>>;

    /// Asks it in the host's way.
    fn ask<'a>(&'a self, model: Option<&'a str>, request: Request) -> Pending<'a, Answer>;
}

/// The models of one compaction, in the order in which they are tried.
pub struct Chain {
    host: Arc<dyn Host>,
    candidates: Vec<Candidate>,
    /// May plain models be asked without the host?
    direct: bool,
    log: Log,
}

struct Candidate {
    /// `None` is the session's own.
    name: Option<String>,
    found: OnceCell<Result<Found, String>>,
    failures: AtomicUsize,
}

struct Found {
    facts: Facts,
    /// For those that need no host.
    line: Option<Direct>,
    /// The host reaches it, and we do not: a certificate that only the host trusts, a gateway that redirects.
    only_by_host: AtomicBool,
}

impl Chain {
    /// `models` first, then, if it may be asked, the session's `own`.
    #[must_use]
    pub fn new(host: Arc<dyn Host>, models: &[String], own: bool, direct: bool, log: Log) -> Self {
        let names = models.iter().cloned().map(Some).chain(own.then_some(None));
        let candidate = |name| Candidate { name, found: OnceCell::new(), failures: AtomicUsize::new(0) };
        Self { host, candidates: names.map(candidate).collect(), direct, log }
    }

    async fn find<'a>(&self, candidate: &'a Candidate) -> Result<&'a Found, &'a str> {
        let look = async || {
            let found = self.host.resolve(candidate.name.as_deref()).await.and_then(|facts| {
                facts.is_usable()?;
                let line = if self.direct { direct(&facts) } else { None };
                Ok(Found { facts, line, only_by_host: AtomicBool::new(false) })
            });
            let way = match &found {
                Ok(Found { line: Some(_), .. }) => "direct",
                Ok(_) => "host",
                Err(_) => "unusable",
            };
            self.log.event("model", &[("name", Field::Name(candidate.title())), ("way", Field::Name(way))]);
            found
        };
        candidate.found.get_or_init(look).await.as_ref().map_err(String::as_str)
    }

    async fn ask_one(&self, candidate: &Candidate, found: &Found, mut request: Request) -> Answer {
        if let Some(most) = found.facts.model.max_tokens.filter(|most| *most > 0) {
            request.max_tokens = request.max_tokens.min(most);
        }
        let line = found.line.as_ref().filter(|_| !found.only_by_host.load(Ordering::Relaxed));
        let Some(line) = line else { return self.ask_host(candidate, found, request).await };
        let started = Instant::now();
        let answer = self.timed(candidate, "direct", &request, line.ask(request.clone())).await;
        let unheard = |failure: &Failure| {
            !failure.answered && failure.status.is_none_or(|status| (300..400).contains(&status))
        };
        // Whoever was waited for in vain would be so again.
        let soon = started.elapsed() * 2 < Duration::from_millis(request.timeout_ms);
        if !(soon && answer.as_ref().is_err_and(unheard)) {
            return answer;
        }
        let answer = self.ask_host(candidate, found, request).await;
        if answer.as_ref().map_or_else(|failure| failure.answered, |_| true) {
            found.only_by_host.store(true, Ordering::Relaxed);
        }
        answer
    }

    async fn ask_host(&self, candidate: &Candidate, found: &Found, request: Request) -> Answer {
        let asked = self.host.ask(candidate.name.as_deref(), request.clone());
        let answer = self.timed(candidate, "host", &request, asked).await;
        let Some(key) = &found.facts.auth.api_key else { return answer };
        // Providers quote keys in their complaints.
        answer.map_err(|failure| Failure { reason: key.redact(&failure.reason), ..failure })
    }

    async fn timed(
        &self,
        candidate: &Candidate,
        way: &'static str,
        request: &Request,
        asked: Pending<'_, Answer>,
    ) -> Answer {
        let limit = Duration::from_millis(request.timeout_ms);
        let started = Instant::now();
        let answer = tokio::time::timeout(limit + GRACE, asked)
            .await
            .unwrap_or_else(|_| Err(Failure::unreachable(format!("no answer within {} s", limit.as_secs()))));
        let outcome = match &answer {
            Ok(_) => "answered",
            Err(failure) if failure.answered => "useless",
            Err(_) => "unreachable",
        };
        let fields = [
            ("model", Field::Name(candidate.title())),
            ("way", Field::Name(way)),
            ("outcome", Field::Name(outcome)),
            ("took", Field::Took(started.elapsed())),
        ];
        self.log.event("call", &fields);
        answer
    }
}

impl Candidate {
    fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("session")
    }
}

impl Model for Chain {
    fn ask(&self, request: Request) -> Pending<'_, Answer> {
        Box::pin(async move {
            let size =
                tokens::estimate(&request.prompt) + tokens::estimate(&request.system) + request.max_tokens;
            let mut usage = None;
            let mut failed: Option<Failure> = None;
            let mut unusable = Vec::new();
            for candidate in &self.candidates {
                let found = match self.find(candidate).await {
                    Ok(found) => found,
                    Err(reason) => {
                        unusable.push(format!("{}: {reason}", candidate.title()));
                        continue;
                    }
                };
                let name = found.facts.name();
                if candidate.failures.load(Ordering::Relaxed) >= GIVE_UP {
                    unusable.push(format!("{name} failed before"));
                    continue;
                }
                // The last one is asked all the same: there is no other.
                let small =
                    found.facts.model.context_window.is_some_and(|window| window > 0 && window < size);
                if small && candidate.name.is_some() {
                    unusable.push(format!("{name}: its window is too small for the question"));
                    continue;
                }
                let mut answer = self.ask_one(candidate, found, request.clone()).await;
                let spent = match &mut answer {
                    Ok(reply) => &mut reply.usage,
                    Err(failure) => &mut failure.usage,
                };
                usage = [usage.take(), spent.take()].into_iter().flatten().reduce(add_usage);
                spent.clone_from(&usage);
                match answer {
                    Err(failure) if !failure.answered => {
                        candidate.failures.fetch_add(1, Ordering::Relaxed);
                        failed = Some(Failure { reason: format!("{name}: {}", failure.reason), ..failure });
                    }
                    useful => {
                        candidate.failures.store(0, Ordering::Relaxed);
                        return useful;
                    }
                }
            }
            Err(failed.unwrap_or_else(|| {
                Failure::unreachable(format!("no model can be asked ({})", unusable.join("; ")))
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;
    use crate::llm::Reply;

    type Answers = Box<dyn Fn(Option<&str>) -> Answer + Send + Sync>;
    type Models = Box<dyn Fn(&str) -> Option<Value> + Send + Sync>;

    /// A host whose models are `provider/id` → what they answer; one that is missing is unknown.
    struct Script {
        answer: Answers,
        model: Models,
        log: Mutex<Vec<String>>,
    }

    impl Script {
        fn new(
            model: impl Fn(&str) -> Option<Value> + Send + Sync + 'static,
            answer: impl Fn(Option<&str>) -> Answer + Send + Sync + 'static,
        ) -> Arc<Self> {
            Arc::new(Self { answer: Box::new(answer), model: Box::new(model), log: Mutex::default() })
        }

        fn log(&self) -> Vec<String> {
            std::mem::take(&mut self.log.lock().unwrap())
        }

        fn write(&self, what: &str, model: Option<&str>) {
            self.log.lock().unwrap().push(format!("{what} {}", model.unwrap_or("session")));
        }
    }

    impl Host for Script {
        fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, Result<Facts, String>> {
            self.write("resolve", model);
            let facts =
                (self.model)(model.unwrap_or("own/model")).ok_or_else(|| "Pi does not know it".to_owned());
            Box::pin(async move { facts.map(|facts| serde_json::from_value(facts).unwrap()) })
        }

        fn ask<'a>(&'a self, model: Option<&'a str>, _request: Request) -> Pending<'a, Answer> {
            self.write("ask", model);
            let answer = (self.answer)(model);
            Box::pin(async move { answer })
        }
    }

    fn facts(name: &str) -> Value {
        let (provider, id) = name.split_once('/').unwrap();
        json!({
            "model": {"provider": provider, "id": id, "api": "other", "maxTokens": 1000, "contextWindow": 10_000},
            "auth": {"ok": true, "apiKey": "k"}, "oauth": false, "ownStream": false
        })
    }

    fn request(prompt: &str) -> Request {
        Request { system: "s".into(), prompt: prompt.into(), max_tokens: 500, timeout_ms: 1_000 }
    }

    fn reply(model: Option<&str>) -> Answer {
        Ok(Reply { text: "t".into(), model: model.map(ToOwned::to_owned), usage: Some(json!({"input": 1})) })
    }

    fn chain(script: &Arc<Script>) -> Chain {
        let host: Arc<dyn Host> = Arc::clone(script) as _;
        Chain::new(host, &["a/one".into(), "b/two".into()], true, true, Log::default())
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
    async fn what_cannot_be_reached_gives_way_and_is_left_alone_after_a_few_times() {
        let script = Script::new(
            |name| Some(facts(name)),
            |model| match model {
                Some("a/one") => {
                    Err(Failure { usage: Some(json!({"input": 2})), ..Failure::unreachable("503") })
                }
                other => reply(other),
            },
        );
        let chain = chain(&script);
        for call in 0..5 {
            let reply = chain.ask(request("q")).await.unwrap();
            // What the failed call used is not forgotten.
            assert_eq!(reply.usage, Some(json!({"input": if call < GIVE_UP { 3 } else { 1 }})));
        }
        let asked = script.log();
        assert_eq!(asked.iter().filter(|line| *line == "ask a/one").count(), GIVE_UP);
        assert_eq!(asked.iter().filter(|line| *line == "ask b/two").count(), 5);
    }

    /// A plain model, at a port where nobody listens.
    fn deaf(name: &str) -> Value {
        let mut facts = facts(name);
        facts["model"]["api"] = json!("openai-completions");
        facts["model"]["baseUrl"] = json!("http://127.0.0.1:9/v1");
        facts
    }

    #[tokio::test]
    async fn a_plain_model_that_only_the_host_reaches_is_asked_through_the_host() {
        let script = Script::new(|name| Some(deaf(name)), reply);
        let chain = chain(&script);
        for _ in 0..2 {
            assert_eq!(chain.ask(request("q")).await.unwrap().model.as_deref(), Some("a/one"));
        }
        assert_eq!(script.log(), ["resolve a/one", "ask a/one", "ask a/one"]);
        assert!(
            chain.candidates[0].found.get().unwrap().as_ref().unwrap().only_by_host.load(Ordering::Relaxed)
        );
    }

    #[tokio::test]
    async fn what_nobody_reaches_fails_once_for_both_ways_and_shows_no_key() {
        let key = "a-rather-long-key";
        let model = move |name: &str| {
            let mut facts = deaf(name);
            facts["auth"]["apiKey"] = json!(key);
            (name == "a/one").then_some(facts)
        };
        let script = Script::new(model, move |_| Err(Failure::unreachable(format!("401: bad key {key}"))));
        let chain = chain(&script);
        let failure = chain.ask(request("q")).await.unwrap_err();
        assert!(
            failure.reason.starts_with("a/one: 401: bad key") && !failure.reason.contains(key),
            "{failure:?}"
        );
        assert_eq!(chain.candidates[0].failures.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_useless_answer_is_an_answer() {
        let useless = |_: Option<&str>| Err(Failure { answered: true, ..Failure::unreachable("cut off") });
        let script = Script::new(|name| Some(facts(name)), useless);
        assert!(chain(&script).ask(request("q")).await.unwrap_err().answered);
        assert_eq!(script.log(), ["resolve a/one", "ask a/one"]);
    }

    #[tokio::test]
    async fn the_session_s_model_is_the_last() {
        let script = Script::new(|name| (name == "own/model").then(|| facts(name)), reply);
        assert_eq!(chain(&script).ask(request("q")).await.unwrap().model, None);
    }

    #[tokio::test]
    async fn a_question_beyond_a_model_s_window_goes_to_the_next() {
        let big = |name: &str| {
            let mut facts = facts(name);
            facts["model"]["contextWindow"] = json!(if name == "a/one" { 1_000 } else { 1_000_000 });
            Some(facts)
        };
        let script = Script::new(big, reply);
        let reply = chain(&script).ask(request(&"word ".repeat(2_000))).await.unwrap();
        assert_eq!(reply.model.as_deref(), Some("b/two"));
    }

    #[tokio::test]
    async fn with_no_model_at_all_it_says_what_was_tried() {
        let script = Script::new(|_| None, reply);
        let failure = chain(&script).ask(request("q")).await.unwrap_err();
        assert!(!failure.answered);
        assert_eq!(
            failure.reason,
            "no model can be asked (a/one: Pi does not know it; b/two: Pi does not know it; session: Pi does not know it)"
        );
    }
}
