//! The models a compaction may ask, one after the other: those of the settings, then the cheapest sibling of the session's, then
//! the session's own.
//!
//! Pi knows the models and their keys; a [`Host`] asks it. A model is looked up when its turn first comes, never before: a
//! key may be the output of a command of the user's. A question that fails for a reason that may pass is put again, with a
//! growing rest in between; then the next model has its turn. What is learnt of a model on the way is kept in [`ProviderState`],
//! beyond this compaction.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::direct::WINDOW_MARGIN;
use super::health::Pass;
use super::{
    Answer, Direct, Facts, Failure, InSession, Kind, Model, ProviderState, Reply, Request, add_usage, direct,
    retry, size,
};
use crate::config::Settings;
use crate::log::{Field, Log};
use crate::policy::{Cost, Prices, tokens};

/// How long Pi may take to say what it knows of a model: a login may have to be renewed, or a command give the key.
const LOOKUP: Duration = Duration::from_secs(30);
/// A call is waited for a little longer than its own limit, in case that never comes.
const GRACE: Duration = Duration::from_secs(5);
/// Whoever needs longer than this to fail is not tried without need.
const SLOW: Duration = Duration::from_secs(5);
/// An answer may take this share of a window: 1/n.
const ANSWER_SHARE: usize = 4;
/// A model with less room for a question, in tokens, is asked none.
const LEAST_ROOM: usize = 1_000;

/// Stands for the cheapest fitting model of the session's own provider, which the host chooses. No model is called so: a name
/// has a slash.
const CHEAPEST: &str = "cheapest";

/// A future that the caller may drop at any time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whoever knows the models: Pi.
pub trait Host: Send + Sync {
    /// What is known of a model, `provider/id` or `cheapest`, or of the session's own; in words why it can't be asked.
    fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, Result<Facts, String>>;

    /// Asks it in the host's way; within the session where the request has a question for that.
    fn ask<'a>(&'a self, model: Option<&'a str>, request: Request) -> Pending<'a, Answer>;

    /// Tokens of the session's last request, if it had the stretch that is asked about and its provider still has it in the
    /// cache.
    fn cached<'a>(&'a self, question: &'a InSession) -> Pending<'a, Option<usize>>;
}

/// The models of one compaction, in the order in which they are tried.
pub struct Chain {
    host: Arc<dyn Host>,
    candidates: Vec<Candidate>,
    /// May plain models be asked without the host?
    direct: bool,
    /// How often a question is put again.
    retries: u32,
    providers: Arc<ProviderState>,
    calls: AtomicUsize,
    log: Log,
}

struct Candidate {
    /// `None` is the session's own.
    name: Option<String>,
    found: OnceCell<Result<ResolvedModel, String>>,
    /// It had its turn.
    met: AtomicBool,
}

struct ResolvedModel {
    facts: Facts,
    /// By what its health is known: a new key is a new chance.
    key: String,
    /// For those that need no host.
    line: Option<Direct>,
    /// The host reaches it, and we do not: such as with a certificate that only the host trusts.
    only_by_host: AtomicBool,
}

/// Why a candidate gives way.
enum Next {
    /// It was not asked.
    Unasked(String),
    /// It was, in vain.
    Failed(Failure),
    /// No other is to be asked either.
    Stop(Failure),
}

impl Chain {
    /// The models of the settings first, with the session's cheapest sibling behind them, then, if it may be asked, the
    /// session's `own`.
    #[must_use]
    pub fn new(
        host: Arc<dyn Host>,
        settings: &Settings,
        own: bool,
        providers: Arc<ProviderState>,
        log: Log,
    ) -> Self {
        let named = settings.compaction_models.iter().cloned();
        // Who names none wants the session's own model.
        let sibling = (named.len() > 0).then(|| CHEAPEST.to_owned());
        let names = named.chain(sibling).map(Some).chain(own.then_some(None));
        Self {
            host,
            candidates: names
                .map(|name| Candidate { name, found: OnceCell::new(), met: AtomicBool::new(false) })
                .collect(),
            direct: settings.direct_model_calls,
            retries: u32::try_from(settings.model_retries).unwrap_or(u32::MAX),
            providers,
            calls: AtomicUsize::new(0),
            log,
        }
    }

    async fn find<'a>(&self, candidate: &'a Candidate) -> Result<&'a ResolvedModel, &'a str> {
        let look = async || {
            let asked = tokio::time::timeout(LOOKUP, self.host.resolve(candidate.name.as_deref()));
            let known = asked.await.unwrap_or_else(|_| Err("its key was not available in time".into()));
            let found = known.and_then(|facts| {
                facts.is_usable()?;
                let line = if self.direct { direct(&facts) } else { None };
                Ok(ResolvedModel { key: key_of(&facts), facts, line, only_by_host: AtomicBool::new(false) })
            });
            let way = match &found {
                Ok(ResolvedModel { line: Some(_), .. }) => "direct",
                Ok(_) => "host",
                Err(_) => "unusable",
            };
            self.log.event("model", &[("name", Field::Name(candidate.title())), ("way", Field::Name(way))]);
            found
        };
        candidate.found.get_or_init(look).await.as_ref().map_err(String::as_str)
    }

    /// Asks one model, as often as it makes sense. What all calls used is added to `usage`.
    async fn ask_one(
        &self,
        candidate: &Candidate,
        request: &Request,
        usage: &mut Option<Value>,
    ) -> Result<Answer, Next> {
        let unasked = |reason: &str| Next::Unasked(reason.to_owned());
        let found =
            self.find(candidate).await.map_err(|why| unasked(&format!("{}: {why}", candidate.title())))?;
        let name = found.facts.name();
        if self.is_known_before(candidate, found) {
            return Err(unasked(&format!("{name} was already asked")));
        }
        let mut request = request.clone();
        fit(found, &mut request).map_err(|failure| match failure.kind {
            Kind::TooLong { .. } => Next::Stop(failure),
            _ => unasked(&format!("{name}: {}", failure.reason)),
        })?;
        let anew = !candidate.met.swap(true, Ordering::Relaxed);
        let pass = self.providers.health.enter(&found.key, anew).await;
        let mut pass = pass.map_err(|rest| unasked(&alone(&name, rest)))?;
        let mut last = None;
        for attempt in 0..=if pass.is_trial() { 0 } else { self.retries } {
            let rest = if attempt > 0 { retry::back_off(attempt) } else { Duration::ZERO };
            let waited = wait(&pass, rest).await.map_err(|pause| unasked(&alone(&name, pause)));
            waited.map_err(|next| last.take().unwrap_or(next))?;
            if attempt > 0 && pass.is_over() {
                break;
            }
            let began = Instant::now();
            let answer = self.call(candidate, found, &request, attempt, usage).await.map_err(Next::Stop)?;
            let failure = match answer {
                Err(failure) if !matches!(failure.kind, Kind::Useless | Kind::Refused) => failure,
                heard => {
                    pass.alive();
                    return match heard.map_err(|failure| failure.by(&name)) {
                        Err(failure) if failure.kind == Kind::Refused => Err(Next::Failed(failure)),
                        heard => Ok(heard),
                    };
                }
            };
            let pause = failure.retry_after_ms.filter(|_| failure.may_pass());
            let slow = failure.kind == Kind::Late || began.elapsed() > SLOW;
            pass.in_vain(slow, pause.map(|ms| Duration::from_millis(ms.into())));
            let again = failure.may_pass();
            last = Some(Next::Failed(failure.by(&name)));
            if !again {
                break;
            }
        }
        Err(last.unwrap_or_else(|| unasked(&name)))
    }

    /// Whether a candidate before this one is the same model: the sibling may be one of those that are named.
    fn is_known_before(&self, candidate: &Candidate, found: &ResolvedModel) -> bool {
        let before = self.candidates.iter().take_while(|other| !std::ptr::eq(*other, candidate));
        before.filter_map(|other| other.found.get()?.as_ref().ok()).any(|other| other.key == found.key)
    }

    /// One call, which is counted; an error where no more is to be spent.
    async fn call(
        &self,
        candidate: &Candidate,
        found: &ResolvedModel,
        request: &Request,
        attempt: u32,
        usage: &mut Option<Value>,
    ) -> Result<Answer, Failure> {
        if attempt == 0
            && let Some(answer) = self.call_in_session(candidate, found, request, usage).await?
        {
            return Ok(answer);
        }
        let request = &Request { in_session: None, ..request.clone() };
        let line = found.line.as_ref().filter(|_| !found.only_by_host.load(Ordering::Relaxed));
        let Some(line) = line else {
            let asked = self.ask_host(candidate, found, request);
            return self.counted(request, usage, asked).await;
        };
        let asked = self.timed(candidate, "direct", request, line.ask(request.clone()));
        let answer = self.counted(request, usage, asked).await?;
        let is_unheard = |failure: &Failure| failure.kind == Kind::Unconnected;
        if attempt > 0 || !answer.as_ref().is_err_and(is_unheard) {
            return Ok(answer);
        }
        let answer = self.counted(request, usage, self.ask_host(candidate, found, request)).await?;
        if answer.as_ref().map_or_else(Failure::answered, |_| true) {
            found.only_by_host.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }

    /// The session's own model is asked within its conversation, where that costs less. None where it does not, or the model
    /// went on with its work instead of answering. An answer counts as one in vain too if the provider did not read from its cache.
    async fn call_in_session(
        &self,
        candidate: &Candidate,
        found: &ResolvedModel,
        request: &Request,
        usage: &mut Option<Value>,
    ) -> Result<Option<Answer>, Failure> {
        let may = candidate.name.is_none() && self.providers.asks_in_session();
        let Some(question) = request.in_session.as_ref().filter(|_| may) else { return Ok(None) };
        let Some(cached) = self.host.cached(question).await else { return Ok(None) };
        let window = found.facts.model.context_window.unwrap_or(usize::MAX);
        let fits = cached + size(&question.prompt) + request.max_tokens < window;
        if !(fits && is_cheaper(&found.facts, cached, request, question)) {
            return Ok(None);
        }
        let _trial = self.providers.trial_in_session().await;
        if !self.providers.asks_in_session() {
            return Ok(None);
        }
        let answer = self.counted(request, usage, self.ask_host(candidate, found, request)).await?;
        match answer {
            Ok(reply) if reply.text.contains(&question.mark) => {
                self.providers.asked_in_session(was_cached(&reply, cached));
                Ok(Some(Ok(reply)))
            }
            // A provider in trouble is in trouble beside the session too.
            Err(failure)
                if !matches!(
                    failure.kind,
                    Kind::Useless | Kind::Refused | Kind::Rejected | Kind::TooLong { .. }
                ) =>
            {
                Ok(Some(Err(failure)))
            }
            _ => {
                self.providers.asked_in_session(false);
                Ok(None)
            }
        }
    }

    async fn counted(
        &self,
        request: &Request,
        usage: &mut Option<Value>,
        asked: impl Future<Output = Answer>,
    ) -> Result<Answer, Failure> {
        let spend = &self.providers.spend;
        spend.admit().map_err(|setting| {
            Failure::of(Kind::Spent, format!("the limit of the setting `{setting}` is reached"))
        })?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = asked.await;
        let (used, estimate) = match &answer {
            Ok(reply) => (&reply.usage, size(&request.prompt) + size(&reply.text)),
            // A failed call may have cost as much, and a loop of them must end too.
            Err(failure) => (&failure.usage, size(&request.prompt)),
        };
        spend.note(used.as_ref(), estimate);
        *usage = [usage.take(), used.clone()].into_iter().flatten().reduce(add_usage);
        Ok(answer)
    }

    async fn ask_host(&self, candidate: &Candidate, found: &ResolvedModel, request: &Request) -> Answer {
        let asked = self.host.ask(candidate.name.as_deref(), request.clone());
        let way = if request.in_session.is_some() { "session" } else { "host" };
        let answer = self.timed(candidate, way, request, asked).await;
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
        let answer = tokio::time::timeout(limit + GRACE, asked).await;
        let answer = answer.unwrap_or_else(|_| Err(Failure::late(limit)));
        // A call that was stopped for its time says only that it was stopped.
        let late = started.elapsed() >= limit;
        let answer = answer.map_err(|failure| match failure.kind {
            Kind::Useless | Kind::Refused => failure,
            _ if late => Failure { usage: failure.usage, ..Failure::late(limit) },
            _ => failure,
        });
        let outcome = answer.as_ref().map_or_else(Failure::outcome, |_| "answered");
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

/// Whether `question` after `cached` tokens of the session costs less than the whole `request`, which nobody has cached.
fn is_cheaper(facts: &Facts, cached: usize, request: &Request, question: &InSession) -> bool {
    let cost = serde_json::from_value::<Cost>(Value::Object(facts.model.cost.clone()));
    let Prices { input, read, .. } = Prices::of(cost.unwrap_or_default());
    let beside = size(&request.system) + size(&request.prompt);
    read * tokens(cached) + input * tokens(size(&question.prompt)) < input * tokens(beside)
}

/// Whether the provider has read most of `expected` tokens from its cache, as far as it tells.
fn was_cached(reply: &Reply, expected: usize) -> bool {
    let Some(usage) = &reply.usage else { return true };
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    let is_told = count("cacheRead") + count("cacheWrite") + count("input") > 0;
    !is_told || usize::try_from(2 * count("cacheRead")).is_ok_and(|read| read >= expected)
}

impl Candidate {
    fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("session")
    }
}

/// Waits as long as the provider wants; where it says nothing, for `rest`.
///
/// # Errors
/// What the provider wants, if that is too long.
async fn wait(pass: &Pass<'_>, rest: Duration) -> Result<(), Duration> {
    if pass.pause().is_none() {
        tokio::time::sleep(rest).await;
    }
    // Others may meet a longer one meanwhile.
    while let Some(pause) = pass.pause() {
        if pause > retry::PATIENCE {
            return Err(pause);
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// A model that is left alone for so long, in words.
fn alone(name: &str, rest: Duration) -> String {
    format!("{name} failed before and is not asked for {} s", rest.as_secs() + 1)
}

/// A model with its key and address, none of which can be read off it.
fn key_of(facts: &Facts) -> String {
    let mut hasher = DefaultHasher::new();
    facts.auth.api_key.as_ref().map(super::Secret::reveal).hash(&mut hasher);
    facts.model.base_url.hash(&mut hasher);
    format!("{} {:x}", facts.name(), hasher.finish())
}

/// Makes room for the answer within what the model can do.
fn fit(found: &ResolvedModel, request: &mut Request) -> Result<(), Failure> {
    let model = &found.facts.model;
    if let Some(most) = model.max_tokens.filter(|most| *most > 0) {
        request.max_tokens = request.max_tokens.min(most);
    }
    let Some(window) = model.context_window.filter(|window| *window > 0) else { return Ok(()) };
    request.max_tokens = request.max_tokens.min(window / ANSWER_SHARE).max(1);
    let room = window.saturating_sub(WINDOW_MARGIN + request.max_tokens + size(&request.system));
    if room < LEAST_ROOM {
        return Err(Failure::of(Kind::Rejected, "its context window is too small"));
    }
    if size(&request.prompt) <= room {
        return Ok(());
    }
    let reason = format!("{}: its context window is too small for the question", found.facts.name());
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    Err(Failure::of(Kind::TooLong { room }, reason))
}

impl Model for Chain {
    fn ask(&self, request: Request) -> Pending<'_, Answer> {
        Box::pin(async move {
            let mut usage = None;
            let mut failed: Option<Failure> = None;
            let mut unasked = Vec::new();
            for candidate in &self.candidates {
                match self.ask_one(candidate, &request, &mut usage).await {
                    Ok(answer) => {
                        return match answer {
                            Ok(reply) => Ok(Reply { usage, ..reply }),
                            Err(failure) => Err(Failure { usage, ..failure }),
                        };
                    }
                    Err(Next::Stop(failure)) => return Err(Failure { usage, ..failure }),
                    Err(Next::Unasked(reason)) => unasked.push(reason),
                    Err(Next::Failed(failure)) => failed = Some(failure),
                }
            }
            let nobody =
                || Failure::of(Kind::Unasked, format!("no model can be asked ({})", unasked.join("; ")));
            Err(Failure { usage, ..failed.unwrap_or_else(nobody) })
        })
    }

    fn calls(&self) -> Option<usize> {
        Some(self.calls.load(Ordering::Relaxed))
    }
}
