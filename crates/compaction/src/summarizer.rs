//! Produces one summary in any case: asks for full detail, then for bullet points, then extracts without a
//! model.
//!
//! A history larger than the model's window is summarized in parts, whose summaries are then summarized.
//! Whatever the models do, a compaction waits no longer than [`Deadline`] allows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calibration::Measured;
use super::parts;
use super::plausible::{self, Asked};
use super::progress::Progress;
use super::prompts::{self, Level, PromptMaterial};
use crate::llm::{Answer, Failure, InSession, Kind, Model, ModelRequest, Reply, count_usage, size};
use lcm_model::config::{Guidance, Settings};
use lcm_model::error::{Error, Result};
use lcm_model::locks::lock;
use lcm_model::{State, text, tokens};
use lcm_store::tasks::go_on;

/// When consecutive failures reach this weight, the rest of the compaction runs without a model.
const GIVE_UP: usize = 12;
/// The weight of a question that reached no model.
const UNREACHABLE: usize = 3;
/// The weight of a useless answer.
const USELESS: usize = 1;
/// A compaction waits for the duration of this many calls without a useful answer, plus this long.
const PATIENCE: (u32, Duration) = (2, Duration::from_secs(10));
/// The maximum depth of dividing parts into parts.
const ROUNDS: u32 = 4;
/// Parts of fewer tokens leave nothing to summarize.
const LEAST_PART: usize = 300;

/// Asks for the summaries of one compaction, and counts calls.
pub(super) struct Summarizer {
    pub model: Arc<dyn Model>,
    progress: Arc<Progress>,
    pub measured: Measured,
    cancel: CancellationToken,
    /// The user's prompts, or the built-in ones.
    pub guidance: Guidance,
    permits: Semaphore,
    /// The time limit of one call.
    limit: Duration,
    deadline: Deadline,
    /// The weight of consecutive failures.
    fruitless: AtomicUsize,
    spent: Mutex<Spent>,
}

/// How long a compaction waits for models: a bounded time since the first question after the last useful
/// answer.
struct Deadline {
    most: Duration,
    since: Mutex<Option<Instant>>,
}

impl Deadline {
    /// When it ends for a question asked now.
    fn end(&self) -> Instant {
        *lock(&self.since).get_or_insert_with(Instant::now) + self.most
    }

    /// Waits for its end; useful answers to other questions postpone it.
    async fn ended(&self) {
        while self.end() > Instant::now() {
            tokio::time::sleep_until(self.end()).await;
        }
    }

    fn renew(&self) {
        *lock(&self.since) = None;
    }
}

#[derive(Default)]
struct Spent {
    usage: Option<Value>,
    last_failure: Option<String>,
}

/// A summary's text and how it was made.
pub(super) struct Written {
    pub text: String,
    pub state: State,
    pub model: Option<String>,
    pub usage: Option<Value>,
}

impl Written {
    /// A source so short that it is its own summary; or, if degraded, an extract.
    pub(super) fn without_model(text: String, state: State) -> Self {
        Self { text, state, model: None, usage: None }
    }
}

impl Summarizer {
    pub(super) fn new(
        model: Arc<dyn Model>,
        progress: Arc<Progress>,
        cancel: CancellationToken,
        settings: &Settings,
    ) -> Self {
        let limit = Duration::from_secs(u64::try_from(settings.model_timeout_seconds).unwrap_or(u64::MAX));
        let most = limit.saturating_mul(PATIENCE.0) + PATIENCE.1;
        Self {
            model,
            progress,
            measured: Measured::default(),
            cancel,
            guidance: settings.guidance.clone(),
            permits: Semaphore::new(settings.leaf_pass_concurrency.max(1)),
            limit,
            deadline: Deadline { most, since: Mutex::default() },
            fruitless: AtomicUsize::new(0),
            spent: Mutex::default(),
        }
    }

    /// Waits for a permit to work on one more summary. Hold it while reading the sources, so that a long
    /// history is never all in memory.
    ///
    /// # Errors
    /// When the compaction is cancelled.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>> {
        let permit = self.permits.acquire().await.map_err(|_| Error::cancelled())?;
        // Cancelled while waiting: don't start.
        go_on(&self.cancel).map(|()| permit)
    }

    /// Whether asking further is useless.
    pub(super) fn has_given_up(&self) -> bool {
        self.fruitless.load(Ordering::Relaxed) >= GIVE_UP
    }

    /// A summary of `material` of about `target` tokens, smaller than `source_tokens`. Without a usable
    /// answer, the result of `extract`, which gets the maximum number of tokens.
    ///
    /// # Errors
    /// Only when the compaction is cancelled.
    pub(super) async fn summarize(
        &self,
        material: &PromptMaterial<'_>,
        source_tokens: usize,
        target: usize,
        extract: impl FnOnce(usize) -> String,
    ) -> Result<Written> {
        let mut usage = None;
        let mut why = None;
        for level in [Level::Detailed(target), Level::Bullets(target / 2)] {
            go_on(&self.cancel)?;
            if self.has_given_up() {
                break;
            }
            let answer = self.answer(material, level, target, &mut usage, ROUNDS).await?;
            match answer.and_then(|reply| smaller(reply, source_tokens)) {
                Ok(Reply { text, model, .. }) => {
                    self.fruitless.store(0, Ordering::Relaxed);
                    self.deadline.renew();
                    return Ok(Written { text, state: State::Ok, model, usage });
                }
                Err(failure) => {
                    let useless = failure.answered();
                    let unasked = failure.kind == Kind::Unasked;
                    let reason = self.note(failure);
                    // A model that is being skipped failed before, and that failure says more.
                    if !unasked || self.last_failure().is_none() {
                        why = Some(reason);
                    }
                    // A model that did not answer, or refused, would not answer a smaller question either.
                    if !useless {
                        break;
                    }
                }
            }
        }
        if why.is_some() {
            lock(&self.spent).last_failure = why;
        }
        Ok(Written { text: extract(cap(target, source_tokens)), state: State::Degraded, model: None, usage })
    }

    /// Asks one question or, if it exceeds the window, several. Adds what they used to `usage`.
    async fn answer(
        &self,
        material: &PromptMaterial<'_>,
        level: Level,
        target: usize,
        usage: &mut Option<Value>,
        rounds: u32,
    ) -> Result<Answer> {
        let in_session = prompts::in_session(&self.guidance, material, level);
        let prompt = prompts::render(&self.guidance, material, level);
        let answer = self.ask(prompt.clone(), in_session, target, material.by).await?;
        count_usage(usage, &answer);
        match answer {
            Err(Failure { kind: Kind::TooLong { room }, .. }) if rounds > 0 => {
                Box::pin(self.in_parts(material, level, target, usage, (room as usize, rounds - 1))).await
            }
            answer => Ok(answer.and_then(|reply| plausible(reply, &prompt, material, level.words()))),
        }
    }

    /// Asks for summaries of parts that fit into `room` tokens, and then for one summary of these.
    async fn in_parts(
        &self,
        material: &PromptMaterial<'_>,
        level: Level,
        target: usize,
        usage: &mut Option<Value>,
        (room, rounds): (usize, u32),
    ) -> Result<Answer> {
        let around =
            size(&prompts::render(&self.guidance, &PromptMaterial { history: "", ..*material }, level));
        // The prompt around the parts has nearly the same length for all of them.
        let most = room.saturating_sub(around + 16);
        let parts = if most < LEAST_PART { Vec::new() } else { parts::cut(material.history, most) };
        if parts.is_empty() {
            return Ok(Err(Failure::useless("the model's context window is too small for the question")));
        }
        let alone = parts.len() == 1;
        let mut summaries = Vec::new();
        for part in parts {
            let material = PromptMaterial { history: &part, stretch: None, ..*material };
            let answer = self.answer(&material, level, target, usage, rounds).await?;
            match answer
                .and_then(|reply| if alone { Ok(reply) } else { smaller(reply, tokens::estimate(&part)) })
            {
                Ok(reply) if alone => return Ok(Ok(reply)),
                Ok(reply) => summaries.push(reply.text),
                Err(failure) => return Ok(Err(failure)),
            }
            self.deadline.renew();
        }
        let history = text::legible(&summaries.join("\n\n")).into_owned();
        let depth = material.depth.max(1);
        let whole = PromptMaterial { depth, history: &history, before: "", stretch: None, ..*material };
        self.answer(&whole, level, target, usage, rounds).await
    }

    /// The answer to `prompt` in about `target` tokens, asked once. `None` if no model gives a usable one.
    ///
    /// # Errors
    /// Only when the compaction is cancelled.
    pub(super) async fn ask_once(&self, prompt: String, target: usize) -> Result<Option<String>> {
        go_on(&self.cancel)?;
        if self.has_given_up() {
            return Ok(None);
        }
        match self.ask(prompt, None, target, None).await? {
            Ok(reply) => {
                self.deadline.renew();
                Ok(Some(plausible::unwrapped(&reply.text)).filter(|text| !text.is_empty()))
            }
            Err(failure) => {
                self.note(failure);
                Ok(None)
            }
        }
    }

    async fn ask(
        &self,
        prompt: String,
        in_session: Option<InSession>,
        target: usize,
        by: Option<&str>,
    ) -> Result<Answer> {
        if self.deadline.end() <= Instant::now() {
            return Ok(Err(self.too_late()));
        }
        let request = ModelRequest {
            system: self.guidance.prompt("system.md").to_owned(),
            prompt,
            // Room for an answer that is longer than asked for. Models that think get room for that too.
            max_tokens: target * 3 + 2_048,
            reasoning: None,
            timeout_ms: u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX),
            by: by.map(ToOwned::to_owned),
            in_session,
        };
        let estimated = tokens::estimate(&request.system) + tokens::estimate(&request.prompt);
        let answer = tokio::select! {
            biased;
            answer = self.model.ask(request) => answer,
            () = self.cancel.cancelled() => return Err(Error::cancelled()),
            () = self.deadline.ended() => Err(self.too_late()),
        };
        self.progress.note(&answer);
        self.measured.note(estimated, &answer);
        // Keep an answer that came in time; a call that failed because of the cancellation says nothing about
        // the model.
        if answer.is_err() && self.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        count_usage(&mut lock(&self.spent).usage, &answer);
        Ok(answer)
    }

    fn too_late(&self) -> Failure {
        Failure::unreachable(format!("no useful answer within {} s", self.deadline.most.as_secs()))
    }

    /// The total usage of all calls, in Pi's format.
    pub(super) fn usage(&self) -> Option<Value> {
        lock(&self.spent).usage.clone()
    }

    /// Why the last degraded summary was not written by a model.
    pub(super) fn last_failure(&self) -> Option<String> {
        lock(&self.spent).last_failure.clone()
    }

    /// Counts a failure. Returns its reason.
    fn note(&self, failure: Failure) -> String {
        let weight = match failure.kind {
            Kind::Useless | Kind::Refused => USELESS,
            Kind::Spent => GIVE_UP,
            _ => UNREACHABLE,
        };
        self.fruitless.fetch_add(weight, Ordering::Relaxed);
        failure.reason
    }
}

/// The most tokens of an extract of `source_tokens` that replaces a summary of about `target`.
pub(super) fn cap(target: usize, source_tokens: usize) -> usize {
    target.min(source_tokens.saturating_sub(1)).max(1)
}

/// Rejects what cannot be a summary of `material`.
fn plausible(mut reply: Reply, prompt: &str, material: &PromptMaterial<'_>, words: usize) -> Answer {
    // Pi shows the block between its own tags, which an answer must not close either.
    reply.text = plausible::unwrapped(&reply.text).replace("</summary", "<\\/summary");
    let asked = Asked { prompt, history: material.history, is_of_messages: material.depth == 0, words };
    match plausible::fault(&reply.text, &asked) {
        Some(fault) => Err(useless(&reply, &format!("the answer is no summary: {fault}"))),
        None => Ok(reply),
    }
}

/// Rejects a summary that is not smaller than its source.
fn smaller(reply: Reply, source_tokens: usize) -> Answer {
    match tokens::estimate(&reply.text) < source_tokens {
        true => Ok(reply),
        false => Err(useless(&reply, "the answer is not smaller than what it summarizes")),
    }
}

/// The failure of an answer whose usage is already counted.
fn useless(reply: &Reply, reason: &str) -> Failure {
    let whose = reply.model.as_ref().map(|model| format!("{model}: ")).unwrap_or_default();
    Failure::useless(format!("{whose}{reason}"))
}

#[cfg(test)]
mod tests;
