//! One summary, proven to come about: asked for in detail, then as bullet points, then extracted without a model.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::prompts::{self, Level, Material};
use crate::error::{Error, Result};
use crate::llm::{Answer, Failure, Model, Reply, Request, add_usage};
use crate::model::State;
use crate::tokens;

/// How long one call may take, ms.
const CALL_TIMEOUT_MS: u64 = 120_000;
/// When calls in a row have failed for this much, the rest of the compaction goes without a model.
const GIVE_UP: usize = 12;
/// What a call counts that reached no model.
const UNREACHABLE: usize = 3;
/// What a call counts whose answer was of no use.
const USELESS: usize = 1;

/// Asks for summaries on behalf of one compaction, and keeps count.
pub(super) struct Summarizer {
    model: std::sync::Arc<dyn Model>,
    cancel: CancellationToken,
    permits: Semaphore,
    /// What the failures in a row count.
    fruitless: AtomicUsize,
    calls: AtomicUsize,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    usage: Option<Value>,
    last_failure: Option<String>,
}

/// A summary's text and how it came about.
pub(super) struct Written {
    pub text: String,
    pub state: State,
    pub model: Option<String>,
    pub usage: Option<Value>,
}

impl Summarizer {
    pub(super) fn new(
        model: std::sync::Arc<dyn Model>,
        cancel: CancellationToken,
        concurrency: usize,
    ) -> Self {
        Self {
            model,
            cancel,
            permits: Semaphore::new(concurrency.max(1)),
            fruitless: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            spent: Mutex::default(),
        }
    }

    /// Leave to work on one more summary; waits for one of those under way. To be held while its sources are read, so that
    /// a long history never lies in memory at once.
    ///
    /// # Errors
    /// When the compaction is cancelled.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        let turn = self.permits.acquire().await.map_err(|_| Error::cancelled())?;
        // Whoever waited for it must not begin after all.
        if self.cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(turn) }
    }

    /// A summary of `material` of about `target` tokens, smaller than `source_tokens`; without a usable answer what
    /// `extract` makes in at most as many tokens as it is given.
    ///
    /// # Errors
    /// Only when the compaction is cancelled.
    pub(super) async fn summarise(
        &self,
        material: &Material<'_>,
        source_tokens: usize,
        target: usize,
        extract: impl FnOnce(usize) -> String,
    ) -> Result<Written> {
        let mut usage = None;
        for level in [Level::Detailed(target), Level::Bullets(target / 2)] {
            if self.cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            if self.fruitless.load(Ordering::Relaxed) >= GIVE_UP {
                break;
            }
            let answer = self.ask(prompts::render(material, level), target).await?;
            let used = match &answer {
                Ok(reply) => reply.usage.clone(),
                Err(failure) => failure.usage.clone(),
            };
            usage = [usage, used].into_iter().flatten().reduce(add_usage);
            match answer.and_then(|reply| smaller(reply, source_tokens)) {
                Ok(Reply { text, model, .. }) => {
                    self.fruitless.store(0, Ordering::Relaxed);
                    return Ok(Written { text, state: State::Ok, model, usage });
                }
                Err(failure) => self.note(failure),
            }
        }
        let cap = target.min(source_tokens.saturating_sub(1)).max(1);
        Ok(Written { text: extract(cap), state: State::Degraded, model: None, usage })
    }

    async fn ask(&self, prompt: String, target: usize) -> Result<Answer> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let request = Request {
            system: prompts::SYSTEM.to_owned(),
            prompt,
            // Room for a model that thinks before it writes.
            max_tokens: target * 3 + 2_048,
            timeout_ms: CALL_TIMEOUT_MS,
        };
        let answer = tokio::select! {
            biased;
            answer = self.model.ask(request) => answer,
            () = self.cancel.cancelled() => return Err(Error::cancelled()),
        };
        // An answer that came in time is kept; a call that failed because we stop says nothing of the model.
        if answer.is_err() && self.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let used = match &answer {
            Ok(reply) => &reply.usage,
            Err(failure) => &failure.usage,
        };
        let mut spent = self.spent();
        spent.usage = [spent.usage.take(), used.clone()].into_iter().flatten().reduce(add_usage);
        Ok(answer)
    }

    /// Calls made so far.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// What all calls used together, as Pi reports usage.
    pub(super) fn usage(&self) -> Option<Value> {
        self.spent().usage.clone()
    }

    /// The latest reason why a call was of no use.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.spent().last_failure.clone()
    }

    fn note(&self, failure: Failure) {
        let weight = if failure.answered { USELESS } else { UNREACHABLE };
        self.fruitless.fetch_add(weight, Ordering::Relaxed);
        self.spent().last_failure = Some(failure.reason);
    }

    fn spent(&self) -> std::sync::MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A summary that is not smaller than its source is none.
fn smaller(mut reply: Reply, source_tokens: usize) -> Answer {
    reply.text = prompts::without_fences(&reply.text);
    let size = tokens::estimate(&reply.text);
    if size < source_tokens {
        return Ok(reply);
    }
    let reason = format!("the summary ({size} tokens) is not smaller than its source ({source_tokens})");
    Err(Failure::useless(reason))
}
