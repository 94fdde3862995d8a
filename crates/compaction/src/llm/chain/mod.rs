//! The models that a compaction may ask, in the order that the host chooses.
//!
//! Pi knows the models and their keys; a [`Host`] asks Pi. A model is resolved only when its turn comes,
//! because a key may be the output of a user's command. A question that fails for a transient reason is
//! retried with increasing delays; then the next model is tried. What is learned about a model outlives the
//! compaction, in [`ProviderState`].

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::health::{PATIENCE, back_off};
use super::thinking::Thinking;
use super::{
    Answer, Facts, Failure, InSession, Kind, Model, ModelRequest, ProviderState, count_usage, reported,
    reporting, size,
};
use crate::overflow::ReportedLimit;
use lcm_model::Usage;
use lcm_model::config::Settings;
use lcm_model::log::{Field, Log};
use lcm_model::policy::{Cost, Prices, float, whole};

/// How long Pi may take to resolve a model: it may have to renew a login, or run a command for the key.
const LOOKUP: Duration = Duration::from_secs(30);
/// A call gets slightly longer than its own limit, in case that limit never fires.
const GRACE: Duration = Duration::from_secs(5);
/// A model that takes longer than this to fail, with all retries, is not tried again soon, not even by new work.
const SLOW: Duration = Duration::from_secs(30);
/// Tokens kept free in a context window, as in Pi, because the prompt's size is an estimate; in a small one, this
/// share of it: 1/n.
const WINDOW_MARGIN: (usize, usize) = (4_096, 8);
/// An answer may take this share of a window: 1/n.
const ANSWER_SHARE: usize = 4;
/// A model with less room for a question, in tokens, is not asked.
const LEAST_ROOM: usize = 1_000;

/// A future that the caller may drop at any time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Pi, which knows the models.
pub trait Host: Send + Sync {
    /// The models that write summaries, `provider/id` or `None` for the session's own, in the order in which
    /// they are asked; or why there are none, in words.
    fn models(&self) -> Pending<'_, Result<Vec<Option<String>>, String>>;

    /// What is known about a model (`provider/id`) or the session's own; or why it can't be asked, in words.
    fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, Result<Facts, String>>;

    /// Asks the model through the host; within the session if the request contains a question for that.
    fn ask<'a>(&'a self, model: Option<&'a str>, request: ModelRequest) -> Pending<'a, Answer>;

    /// Tokens of the session's last request, if it contained the range in question and its provider still has
    /// it cached.
    fn cached<'a>(&'a self, question: &'a InSession) -> Pending<'a, Option<usize>>;
}

/// The models of one compaction, in the order in which they are tried.
pub struct Chain {
    host: Arc<dyn Host>,
    candidates: OnceCell<Result<Vec<Candidate>, String>>,
    /// Whether the session's own model may be asked.
    own: bool,
    /// How often a question is retried.
    retries: u32,
    providers: Arc<ProviderState>,
    calls: AtomicUsize,
    log: Log,
}

struct Candidate {
    /// `None` for the session's own model.
    name: Option<String>,
    found: OnceCell<Result<ResolvedModel, String>>,
    /// Whether a question of this compaction got no answer.
    has_failed: AtomicBool,
}

struct ResolvedModel {
    facts: Facts,
    /// The key of its health record: with a new API key it gets a new chance.
    key: String,
}

/// Why the next candidate is tried.
enum Next {
    Unasked(String),
    Failed(Failure),
    /// No other may be asked either.
    Stop(Failure),
}

impl Chain {
    /// The models that the host chooses, without the session's `own` unless permitted.
    pub fn new(
        host: Arc<dyn Host>,
        settings: &Settings,
        own: bool,
        providers: Arc<ProviderState>,
        log: Log,
    ) -> Self {
        Self {
            host,
            candidates: OnceCell::new(),
            own,
            retries: u32::try_from(settings.model_retries).unwrap_or(u32::MAX),
            providers,
            calls: AtomicUsize::new(0),
            log,
        }
    }

    async fn candidates(&self) -> Result<&[Candidate], &str> {
        let look = async || {
            let asked = tokio::time::timeout(LOOKUP, self.host.models());
            let names = asked.await.unwrap_or_else(|_| Err("Pi did not name them in time".into()))?;
            let names = names.into_iter().filter(|name| name.is_some() || self.own);
            let all: Vec<_> = names.map(Candidate::of).collect();
            if all.is_empty() { Err("there is none".to_owned()) } else { Ok(all) }
        };
        self.candidates.get_or_init(look).await.as_deref().map_err(String::as_str)
    }

    async fn find<'a>(&self, candidate: &'a Candidate) -> Result<&'a ResolvedModel, &'a str> {
        let look = async || {
            let asked = tokio::time::timeout(LOOKUP, self.host.resolve(candidate.name.as_deref()));
            let known = asked.await.unwrap_or_else(|_| Err("its key was not available in time".into()));
            let found = known.and_then(|facts| {
                facts.is_usable()?;
                Ok(ResolvedModel { key: key_of(&facts), facts })
            });
            let outcome = if found.is_ok() { "usable" } else { "unusable" };
            let fields = [("name", Field::Name(candidate.title())), ("outcome", Field::Name(outcome))];
            self.log.event("model", &fields);
            found
        };
        candidate.found.get_or_init(look).await.as_ref().map_err(String::as_str)
    }

    /// Asks one model, with retries. Adds what all calls used to `usage`.
    async fn ask_one(
        &self,
        candidate: &Candidate,
        request: &ModelRequest,
        usage: &mut Option<Value>,
    ) -> Result<Answer, Next> {
        let unasked = |reason: &str| Next::Unasked(reason.to_owned());
        let found =
            self.find(candidate).await.map_err(|why| unasked(&format!("{}: {why}", candidate.title())))?;
        let name = found.facts.name();
        let thinking = self.providers.health.thinking(&found.key).max(Thinking::of(&found.facts.model));
        let ratio = self.providers.ratio(&name);
        let fitted =
            fitted(&found.facts, request, thinking, ratio).map_err(|failure| match failure.kind {
                Kind::TooLong { .. } => Next::Stop(failure),
                _ => unasked(&format!("{name}: {}", failure.reason)),
            })?;
        let mut asking = Asking { chain: self, candidate, found, thinking, request: fitted, usage };
        let health = &self.providers.health;
        let key = &found.key;
        let server = self.providers.server(&found.facts.model.base_url);
        let mut slot = server.slot(false).await;
        // It may have failed meanwhile.
        let is_new = !candidate.has_failed.load(Ordering::Relaxed);
        if let Some(rest) = health.rest(key, is_new) {
            let seconds = rest.as_secs() + 1;
            return Err(unasked(&format!("{name} failed before and is not asked for {seconds} s")));
        }
        let began = Instant::now();
        let (mut is_slow, mut pause, mut last) = (false, None::<Duration>, None);
        for attempt in 0..=self.retries {
            if attempt > 0 {
                tokio::time::sleep(pause.unwrap_or_default().max(back_off(attempt))).await;
            }
            let asked = Instant::now();
            let mut answer = asking.call_until_thought(attempt, request).await.map_err(Next::Stop)?;
            if answer.as_ref().is_err_and(|failure| failure.kind == Kind::Late) && server.was_shared(asked) {
                drop(slot.take());
                slot = server.slot(true).await;
                answer = asking.call_until_thought(attempt, request).await.map_err(Next::Stop)?;
            }
            if answer.is_ok() {
                server.answered();
            }
            let failure = match answer {
                Err(Failure { kind: Kind::TooLong { .. }, reason, usage, .. }) => {
                    health.answered(key);
                    let kind = Kind::TooLong { room: room_left(&reason, size(&request.prompt)) };
                    let failure = Failure { usage, ..Failure::of(kind, reason) };
                    return Err(Next::Stop(failure.by(&name)));
                }
                Err(failure) if !matches!(failure.kind, Kind::Useless | Kind::Refused) => failure,
                answer => {
                    health.answered(key);
                    return match answer.map_err(|failure| failure.by(&name)) {
                        Err(failure) if failure.kind == Kind::Refused => Err(Next::Failed(failure)),
                        answer => Ok(answer),
                    };
                }
            };
            pause = failure.retry_after_ms.map(|ms| Duration::from_millis(ms.into()));
            let is_long = pause.is_some_and(|pause| pause > PATIENCE);
            is_slow |= failure.kind == Kind::Late || began.elapsed() > SLOW || is_long;
            let again = failure.kind == Kind::Broken && !is_long;
            last = Some(Next::Failed(failure.by(&name)));
            if !again {
                break;
            }
        }
        candidate.has_failed.store(true, Ordering::Relaxed);
        health.failed(key, is_slow, pause.filter(|pause| *pause > PATIENCE));
        Err(last.unwrap_or_else(|| unasked(&name)))
    }
}

/// One model being asked.
struct Asking<'a> {
    chain: &'a Chain,
    candidate: &'a Candidate,
    found: &'a ResolvedModel,
    thinking: Thinking,
    request: ModelRequest,
    /// What all calls used.
    usage: &'a mut Option<Value>,
}

impl Asking<'_> {
    /// Makes one call, and another whenever the model turns out to need more thinking for `asked` than it was
    /// given room for.
    async fn call_until_thought(&mut self, attempt: u32, asked: &ModelRequest) -> Result<Answer, Failure> {
        loop {
            let answer = self.call(attempt).await?;
            let needed = self.thinking.after(&answer);
            self.chain.providers.health.needs_thinking(&self.found.key, needed);
            let is_enough = std::mem::replace(&mut self.thinking, needed) == needed;
            let asked = ModelRequest { in_session: None, ..asked.clone() };
            let ratio = self.chain.providers.ratio(&self.found.facts.name());
            match fitted(&self.found.facts, &asked, needed, ratio) {
                Ok(request) if answer.is_err() && !is_enough && request != self.request => {
                    self.request = request;
                }
                _ => return Ok(answer),
            }
        }
    }

    async fn call(&mut self, attempt: u32) -> Result<Answer, Failure> {
        if attempt == 0
            && let Some(answer) = self.call_in_session().await?
        {
            return Ok(answer);
        }
        self.request.in_session = None;
        self.ask_host().await
    }

    /// Asks the session's own model within its conversation, if that costs less. `None` if it does not, or if
    /// the model continued its work instead of answering. An answer that the provider did not read from its
    /// cache counts as a failure too.
    async fn call_in_session(&mut self) -> Result<Option<Answer>, Failure> {
        let (chain, facts) = (self.chain, &self.found.facts);
        let may = self.candidate.name.is_none() && chain.providers.asks_in_session();
        let Some(question) = self.request.in_session.clone().filter(|_| may) else { return Ok(None) };
        let Some(cached) = chain.host.cached(&question).await else { return Ok(None) };
        let window = facts.model.context_window.unwrap_or(usize::MAX);
        let room = window.saturating_sub(cached + size(&question.prompt));
        let fits = room > self.request.max_tokens / 2;
        if !(fits && is_cheaper(facts, cached, &self.request, &question)) {
            return Ok(None);
        }
        let most = self.request.max_tokens;
        self.request.max_tokens = most.min(room);
        let answer = self.ask_host().await?;
        self.request.max_tokens = most;
        match answer {
            Ok(reply) if reply.text.contains(&question.mark) => {
                // As far as the provider reports, it read most of them from its cache.
                let usage = reply.usage.as_ref().map(Usage::of).unwrap_or_default();
                let was_cached = usage.prompt() == 0 || usage.cache_read.saturating_mul(2) >= cached;
                chain.providers.asked_in_session(was_cached);
                Ok(Some(Ok(reply)))
            }
            Err(failure) if failure.is_of_provider() => Ok(Some(Err(failure))),
            _ => {
                chain.providers.asked_in_session(false);
                Ok(None)
            }
        }
    }

    /// Makes one call, limits its time and counts what it used; an error if nothing more may be spent.
    async fn ask_host(&mut self) -> Result<Answer, Failure> {
        let Chain { host, providers, calls, log, .. } = self.chain;
        if !providers.admit() {
            return Err(Failure::of(Kind::Spent, "the limit of the setting `modelTokensPerHour` is reached"));
        }
        calls.fetch_add(1, Ordering::Relaxed);
        let asked = host.ask(self.candidate.name.as_deref(), self.request.clone());
        let limit = Duration::from_millis(self.request.timeout_ms);
        let started = Instant::now();
        let answer = tokio::time::timeout(limit + GRACE, asked).await;
        let answer = answer.unwrap_or_else(|_| Err(Failure::late(limit)));
        // A call that timed out only says that it was aborted.
        let late = started.elapsed() >= limit;
        let answer = answer.map_err(|failure| match failure.kind {
            Kind::Useless | Kind::Refused => failure,
            _ if late => Failure { usage: failure.usage, ..Failure::late(limit) },
            _ => failure,
        });
        let (answer, notice) = reported::checked(answer, &self.request, &self.found.facts.name());
        if let Some(notice) = notice {
            providers.say_once(notice);
        }
        let way = if self.request.in_session.is_some() { "session" } else { "host" };
        let outcome = answer.as_ref().map_or_else(Failure::outcome, |_| "answered");
        let fields = [
            ("model", Field::Name(self.candidate.title())),
            ("way", Field::Name(way)),
            ("outcome", Field::Name(outcome)),
            ("took", Field::Took(started.elapsed())),
        ];
        log.event("call", &fields);
        // A failed call may have cost as much, and a loop of failures must end too.
        let written = answer.as_ref().map_or(0, |reply| size(&reply.text));
        let estimate = size(&self.request.prompt) + written;
        providers.spend.note(super::usage(&answer), estimate);
        count_usage(self.usage, &answer);
        let auth = &self.found.facts.auth;
        Ok(answer.map_err(|failure| Failure { reason: auth.without_key(&failure.reason), ..failure }))
    }
}

/// Whether `question` after `cached` tokens of the session costs less than the whole uncached `request`.
fn is_cheaper(facts: &Facts, cached: usize, request: &ModelRequest, question: &InSession) -> bool {
    let cost = serde_json::from_value::<Cost>(Value::Object(facts.model.cost.clone()));
    let Prices { input, read, .. } = Prices::of(cost.unwrap_or_default());
    let alone = size(&request.system) + size(&request.prompt);
    read * float(cached) + input * float(size(&question.prompt)) < input * float(alone)
}

impl Candidate {
    fn of(name: Option<String>) -> Self {
        Self { name, found: OnceCell::new(), has_failed: AtomicBool::new(false) }
    }

    fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("session")
    }
}

/// A hash for a model with its key and address, which reveals neither.
fn key_of(facts: &Facts) -> String {
    let mut hasher = DefaultHasher::new();
    facts.auth.api_key.hash(&mut hasher);
    facts.model.base_url.hash(&mut hasher);
    format!("{} {:x}", facts.name(), hasher.finish())
}

/// The room in estimated tokens after a server called a question of `sent` too long: what it says of its limit, less
/// a fifth for the error of the estimate, else less than half.
fn room_left(said: &str, sent: usize) -> u32 {
    let ReportedLimit { limit, asked } = ReportedLimit::of(said);
    let share = match (limit, asked) {
        (Some(limit), Some(asked)) => float(limit) / float(asked.max(1)) * 0.8,
        _ => 0.45,
    };
    u32::try_from(whole(float(sent) * share.min(0.8))).unwrap_or(u32::MAX)
}

/// The request as it is sent to the model, whose tokens are `ratio` times as many as estimated. The answer is limited to
/// what the model can do, at least as much as Pi does.
fn fitted(
    facts: &Facts,
    request: &ModelRequest,
    thinking: Thinking,
    ratio: f64,
) -> Result<ModelRequest, Failure> {
    let (model, mut request) = (&facts.model, request.clone());
    thinking.set(model, &mut request);
    if let Some(most) = model.max_tokens.filter(|most| *most > 0) {
        request.max_tokens = request.max_tokens.min(most);
    }
    let Some(window) = model.context_window.filter(|window| *window > 0) else { return Ok(request) };
    request.max_tokens = request.max_tokens.min(window / ANSWER_SHARE).max(1);
    let margin = WINDOW_MARGIN.0.min(window / WINDOW_MARGIN.1);
    let room = window.saturating_sub(margin + request.max_tokens);
    let room = whole(float(room) * (1.0 / ratio)).saturating_sub(size(&request.system));
    if room < LEAST_ROOM {
        return Err(Failure::of(Kind::Rejected, "its context window is too small"));
    }
    if size(&request.prompt) <= room {
        return Ok(request);
    }
    let reason = format!("{}: its context window is too small for the question", facts.name());
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    Err(Failure::of(Kind::TooLong { room }, reason))
}

impl Model for Chain {
    fn ask(&self, request: ModelRequest) -> Pending<'_, Answer> {
        Box::pin(async move {
            let mut usage = None;
            let mut failed: Option<Failure> = None;
            let mut unasked = Vec::new();
            let candidates = self.candidates().await.unwrap_or_else(|why| {
                unasked.push(why.to_owned());
                &[]
            });
            // The model that the user named; the others only if it can't be asked at all.
            let named = request.by.clone().map(|name| Candidate::of(Some(name)));
            for candidate in named.iter().chain(candidates) {
                match self.ask_one(candidate, &request, &mut usage).await {
                    Ok(answer) => return reporting(answer, usage),
                    Err(Next::Stop(failure)) => return reporting(Err(failure), usage),
                    Err(Next::Unasked(reason)) => unasked.push(reason),
                    Err(Next::Failed(failure)) => {
                        failed = Some(failure);
                        if candidate.name == request.by && request.by.is_some() {
                            break;
                        }
                    }
                }
            }
            let no_model =
                || Failure::of(Kind::Unasked, format!("no model can be asked ({})", unasked.join("; ")));
            reporting(Err(failed.unwrap_or_else(no_model)), usage)
        })
    }

    fn calibrate(&self, ratios: HashMap<String, f64>) {
        self.providers.calibrate(ratios);
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}
