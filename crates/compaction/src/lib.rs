//! A compaction: from the request of Pi's hook to the block that replaces the history.
//!
//! 1. Read the branch and its valid summaries, before the kept tail.
//! 2. Plan which summaries are next: leaves of uncovered messages first, several at once; where a depth has too many, or the
//!    texts do not fit the block, the oldest are condensed into the next depth. Make them, and plan again.
//! 3. Assemble the block.
//!
//! Nothing is deleted or left out: each visible message before the kept tail is in the span of exactly one
//! summary of the block. No connection is held during a model call.

mod ahead;
mod assembler;
mod branch;
mod calibration;
mod changed;
mod chunks;
mod claims;
mod disk;
mod extract;
mod fold;
mod forecast;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzzing;
mod gate;
mod job;
mod left_branch;
pub mod llm;
mod outline;
mod overflow;
mod parts;
mod passes;
mod plan;
mod plausible;
mod progress;
mod prompts;
mod redact;
mod standing;
mod state;
mod summarizer;
mod tail;

pub use ahead::{Ahead, Prepared, prepare};
pub use changed::changed;
pub use fold::{At, Fold, fold, unsummarized};
pub use forecast::{Forecast, forecast};
pub use left_branch::{LeftBranch, LeftSummary, summarize_left};
pub use progress::Progress;
pub use redact::redacted_json;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::llm::{Model, Pending};
use branch::{Branch, BranchPart, HISTORY};
use calibration::Ratios;
use chunks::Cut;
use job::Job;
use lcm_model::config::{Context, Settings};
use lcm_model::dag::Piece;
use lcm_model::error::{Code, Result};
use lcm_model::ids::{ConversationId, SummaryId};
use lcm_model::policy::Window;
use lcm_model::{CompactionDetails, State, text, tokens};
use lcm_store::Store;
use lcm_store::branch::Memory;
use overflow::ReportedLimit;

/// The smallest useful block, in estimated tokens.
const LEAST_ESTIMATE: usize = 500;
/// Maximum rounds of work that purges interfere with. If they never stop, the last round's result stands.
const MOST_REPEATED: usize = 4;

/// The history of a session, to be compacted.
#[derive(Clone)]
pub struct Session<'a> {
    pub store: &'a Store,
    pub conversation: ConversationId,
    pub memory: Arc<Memory>,
    pub settings: &'a Settings,
    /// Whether the model can look up what the block replaces; otherwise the block does not say so.
    pub can_recall: bool,
}

/// The inputs of a compaction.
pub struct Work<'a> {
    pub session: Session<'a>,
    /// Writes the summaries.
    pub model: Arc<dyn Model>,
    /// Stops the work; finished summaries are kept.
    pub cancel: CancellationToken,
    /// Receives the progress.
    pub progress: Arc<Progress>,
}

impl Session<'_> {
    /// The outcome of the first round of `work` during which nothing was purged, here or elsewhere. What was read
    /// before a purge is no longer valid: a summary of it is rejected, rows are gone, and even a finished block
    /// may describe purged text. Summaries of the rest are already stored, so another round costs little.
    async fn repeated<'w, T>(&self, work: impl Fn() -> Pending<'w, Result<T>>) -> Result<T> {
        let mut rewritten = self.store.rewritten().await?;
        for _ in 1..MOST_REPEATED {
            let outcome = work().await;
            if matches!(&outcome, Err(error) if error.code() == Code::Cancelled) {
                return outcome;
            }
            // If the store can't be read, the outcome already says so.
            let now = self.store.rewritten().await.unwrap_or(rewritten);
            if std::mem::replace(&mut rewritten, now) == now {
                return outcome;
            }
        }
        work().await
    }
}

/// The request of Pi's hook.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub leaf_id: String,
    /// The first entry that Pi keeps raw.
    pub first_kept_entry_id: String,
    /// Tokens of the context as Pi counts them; returned unchanged.
    pub tokens_before: Value,
    /// What the user typed after `/compact`.
    pub custom_instructions: Option<String>,
    /// `manual`, `threshold` or `overflow`.
    pub reason: Option<String>,
    pub context_window: Option<usize>,
    /// Pi compacts automatically when this many tokens of the window are left.
    pub reserve_tokens: Option<usize>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
    /// The provider's last error message, if nothing was answered since; empty if it had no text.
    pub failure: Option<String>,
    /// Approximate tokens of system prompt and tools.
    pub prompt_tokens: Option<usize>,
    /// The first entry that the branch's last compaction left raw; absent if there is none.
    pub shown_from: Option<String>,
    /// Whether the model can look up what the block replaces.
    #[serde(default = "yes")]
    pub can_recall: bool,
}

fn yes() -> bool {
    true
}

impl Request {
    /// The provider's message, if the previous request was too long.
    fn too_long(&self) -> Option<ReportedLimit> {
        let words = self.failure.as_deref().unwrap_or_default();
        (self.reason.as_deref() == Some("overflow")).then(|| ReportedLimit::of(words))
    }

    /// The model's window, and what comes before the conversation.
    const fn window(&self) -> Window {
        Window { tokens: self.context_window, prompt: self.prompt_tokens }
    }

    /// The tokens above which Pi compacts automatically, or cuts answers short.
    fn threshold(&self) -> Option<usize> {
        let compacts = self.context_window?.saturating_sub(self.reserve_tokens.unwrap_or_default());
        self.window().most().map(|most| most.min(compacts))
    }
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Outcome {
    /// The block is ready.
    Compacted(Box<Compacted>),
    /// The summary of a left branch is ready.
    Summarized { summary: Box<LeftSummary> },
    /// Nothing to do; Pi acts by itself.
    Declined,
    /// Stopped on request; finished summaries are kept.
    Cancelled,
}

impl Outcome {
    fn of<T>(made: Result<Option<T>>, ready: impl FnOnce(T) -> Self) -> Result<Self> {
        match made {
            Ok(made) => Ok(made.map_or(Self::Declined, ready)),
            Err(error) if error.code() == Code::Cancelled => Ok(Self::Cancelled),
            Err(error) => Err(error),
        }
    }
}

/// A finished compaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compacted {
    /// What replaces the history.
    pub compaction: Compaction,
    pub report: String,
    /// Whether to warn that a summary in the block was made without a model.
    pub degraded: bool,
}

/// The compaction as Pi stores it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    pub summary: String,
    /// The first entry that stays raw; `None` if nothing stays.
    pub first_kept_entry_id: Option<String>,
    /// The request's value.
    pub tokens_before: Value,
    /// The new summaries and their span.
    pub details: CompactionDetails,
    /// The total usage of the model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Approximate tokens of the context afterwards.
    #[serde(skip)]
    pub tokens_after: usize,
}

impl Compaction {
    /// The compaction of `branch` by the block `summary`, for a model with this window.
    fn of(
        branch: &Branch,
        summary: String,
        tokens_before: Value,
        window: Window,
        usage: Option<Value>,
    ) -> Self {
        let kept = passes::tokens_of(&branch.visible()[branch.before().len()..]);
        Self {
            tokens_after: window.prompt() + tokens::estimate(&summary) + kept,
            summary,
            first_kept_entry_id: branch.kept.clone(),
            tokens_before,
            details: branch.details(),
            usage,
        }
    }
}

/// Compacts the branch that `request` names.
///
/// # Errors
/// When the store fails, or the request names entries that are not on the branch.
///
/// # Cancel safety
/// Dropping the future, or cancelling, leaves finished summaries stored, each complete, and nothing else.
pub async fn run(work: Work<'_>, request: &Request) -> Result<Outcome> {
    let started = Instant::now();
    let known = request.context_window;
    let tokens = request.too_long().map_or(known, |said| said.window(known));
    let window = Window { tokens, ..request.window() };
    let typed = request.custom_instructions.as_deref();
    let job = Job::begin(work, window, request.model.as_deref(), typed).await?;
    Outcome::of(job.session.repeated(|| Box::pin(compact(&job, request))).await, |(branch, compaction)| {
        let (report, degraded) = report(&job, &branch, &compaction, started.elapsed());
        Outcome::Compacted(Box::new(Compacted { compaction, report, degraded }))
    })
}

async fn compact(job: &Job<'_>, request: &Request) -> Result<Option<(Branch, Compaction)>> {
    let (session, model) = (&job.session, request.model.as_deref());
    // A lean context keeps less than Pi does.
    let folds = match session.settings.context {
        Context::Lean => session.kept(model, request.window(), &request.leaf_id).await?,
        Context::Full => None,
    };
    let part = BranchPart::PisCut { first_kept: request.first_kept_entry_id.clone(), room: job.budget };
    let mut branch = session.read(&request.leaf_id, part, request.shown_from.as_deref()).await?;
    let mut plan = job.plan();
    let Some(cut) = plan.cut(&branch, request, folds.as_deref(), |real| job.ratios.estimated(real, model))
    else {
        return Ok(None);
    };
    branch.keep_from(cut);
    let (branch, summary) = job.complete(branch, plan, HISTORY).await?;
    let usage = job.summarizer.usage();
    let compaction = Compaction::of(&branch, summary, request.tokens_before.clone(), request.window(), usage);
    Ok(Some((branch, compaction)))
}

/// The estimated tokens a block may take, and how the history is divided, for a session's `model` with this
/// window, in tokens. The division ignores learned ratios, so that summaries prepared earlier still fit.
fn sizes(settings: &Settings, ratios: &Ratios, window: Window, model: Option<&str>) -> (usize, Cut) {
    let budget = settings.largest_block(window);
    (ratios.estimated(budget, model).max(LEAST_ESTIMATE), Cut::of(settings, window.tokens))
}

/// `812 messages in 24 summaries, 9 new, 181,204 → about 28,000 tokens, 9 model calls, 14.2 s, $0.021`
fn report(job: &Job<'_>, branch: &Branch, compaction: &Compaction, elapsed: Duration) -> (String, bool) {
    let (mut report, is_degraded) = summary_line(branch, compaction);
    let calls = text::count(job.summarizer.model.calls(), "model call");
    report += &format!(", {calls}, {:.1} s", elapsed.as_secs_f64());
    if job.progress.cost() > 0.0 {
        report += &format!(", {}", text::dollars(job.progress.cost()));
    }
    if is_degraded {
        report += &format!("; {} of them without a model, to be replaced later", degraded(branch));
        if let Some(reason) = job.summarizer.last_failure() {
            report += &format!(" ({})", text::one_line(&reason, 160));
        }
    }
    (report, is_degraded)
}

/// A one-line report of a compaction, and whether a summary in its block was made without a model.
fn summary_line(branch: &Branch, compaction: &Compaction) -> (String, bool) {
    let details = &compaction.details;
    let mut line = format!(
        "{} messages in {}, {} new",
        details.covered,
        text::count(details.frontier.len(), "summary"),
        details.summaries.len(),
    );
    if let Some(before) = compaction.tokens_before.as_u64().and_then(|tokens| usize::try_from(tokens).ok()) {
        let after = text::grouped(compaction.tokens_after);
        line += &format!(", {} → about {after} tokens", text::grouped(before));
    }
    (line, degraded(branch) > 0)
}

/// The number of degraded summaries in the block.
fn degraded(branch: &Branch) -> usize {
    let is_degraded = |id: &SummaryId| branch.summary(*id).is_some_and(|one| one.state == State::Degraded);
    branch.pieces.iter().filter_map(Piece::summary).filter(is_degraded).count()
}
