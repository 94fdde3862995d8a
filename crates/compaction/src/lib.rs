//! A compaction: from the request of Pi's hook to the block that replaces the history.
//!
//! 1. Read the branch and its valid summaries, before the kept tail.
//! 2. Leaf pass: make leaf summaries of uncovered messages, several at once.
//! 3. Condensed pass: where a depth has too many, condense the oldest into the next depth.
//! 4. Assemble; while the texts do not fit, condense more.
//!
//! Nothing is deleted or left out: each visible message before the kept tail is in the span of exactly one
//! summary of the block. No connection is held during a model call.

mod ahead;
mod assembler;
mod branch;
mod calibration;
mod changed;
mod claims;
mod extract;
mod fold;
mod forecast;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzzing;
mod job;
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
mod tree;

pub use ahead::{Ahead, Prepared, prepare};
pub use changed::changed;
#[cfg(any(test, feature = "testing"))]
pub use fold::Folded;
pub use fold::{At, Fold, fold, unsummarized};
pub use forecast::{Forecast, forecast};
pub use progress::Progress;
pub use tree::{LeftBranch, LeftSummary, summarize_left};

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::llm::Model;
use branch::{Branch, HISTORY};
use calibration::{Ratios, Seen};
use job::{Job, Target};
use lcm_model::config::{Context, Settings};
use lcm_model::dag::{Piece, Span};
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::ConversationId;
use lcm_model::policy::Window;
use lcm_model::text;
use lcm_model::tokens;
use lcm_model::{CompactionDetails, State};
use lcm_store::branch::Memory;
use lcm_store::{Batch, Store, View};
use overflow::{ReportedLimit, TooLong};
use plan::Cut;

/// The smallest useful block, in estimated tokens.
const LEAST_ESTIMATE: usize = 500;

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

/// The part of a branch to describe.
#[derive(Clone, Debug)]
enum BranchPart {
    /// Everything before this entry.
    Before(String),
    /// Everything, as the history of what follows.
    All,
    /// Everything after this entry, or all of the branch.
    After(Option<String>),
}

impl Session<'_> {
    /// Reads a part of the branch that ends at `leaf`, with the notes for the block.
    ///
    /// # Errors
    /// When the store can't be read, or the branch has no such part.
    async fn read(&self, leaf: &str, part: &BranchPart) -> Result<Branch> {
        let (conversation, leaf, part) = (self.conversation, leaf.to_owned(), part.clone());
        let (memory, settings) = (Arc::clone(&self.memory), (self.settings.notes, self.settings.redact));
        let can_recall = self.can_recall;
        let read = move |view: &View<'_>| {
            let mut branch = Branch::read(view, &memory, conversation, &leaf, &part)?;
            branch.can_recall = can_recall;
            let ((true, redact), BranchPart::Before(_) | BranchPart::All) = (settings, &part) else {
                return Ok(branch);
            };
            let notes = view.messages().notes(conversation, &leaf)?;
            branch.notes = if redact { notes.with_texts(redact::redacted) } else { notes };
            Ok(branch)
        };
        self.store.read(read).await
    }

    /// Loads what only the finished block of `branch` needs, and what its session shows about its model's
    /// tokens.
    async fn finished(&self, branch: Branch) -> Result<(Branch, Option<Seen>)> {
        let (memory, redact) = (Arc::clone(&self.memory), self.settings.redact);
        let finish = move |view: &View<'_>| {
            let (branch, found) = branch.finish(view, &memory, redact)?;
            let session = calibration::of_session(view, branch.since_compaction())?;
            Ok((branch, found, session))
        };
        let (branch, found, session) = self.store.read(finish).await?;
        if !found.is_empty() {
            // If they can't be recorded, they are extracted again next time.
            let note = move |batch: &Batch<'_>| {
                let mut found = found.iter();
                found.try_for_each(|(summary, hash, facts)| {
                    batch.summaries().note_facts(*summary, *hash, facts)
                })
            };
            drop(self.store.write(note).await);
        }
        Ok((branch, session))
    }

    /// The block that replaces `branch`.
    async fn block(
        &self,
        budget: usize,
        mut branch: Branch,
        title: &'static str,
        focus: Option<String>,
    ) -> Result<(Branch, String)> {
        if branch.frontier().iter().any(|piece| matches!(piece, Piece::Message(_))) {
            return Err(Error::store("the compaction would leave messages without a summary"));
        }
        // The sections besides the summaries are cut if the block would be no smaller than what it replaces.
        let replaced = tokens_of(&branch, 0) - tokens_of(&branch, branch.before().len());
        let most = replaced.saturating_sub(1 + branch.notes.tokens()).max(LEAST_ESTIMATE);
        let room = if replaced > LEAST_ESTIMATE { budget.min(most) } else { budget };
        let make = move |view: &View<'_>| {
            branch.unfold(view, title, focus.as_deref(), room)?;
            let block = branch.block(title, focus.as_deref(), room);
            Ok((branch, block))
        };
        self.store.read(make).await
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
    #[serde(rename_all = "camelCase")]
    Compacted {
        /// What replaces the history.
        compaction: Box<Compaction>,
        report: String,
        /// Whether to warn that a summary in the block was made without a model.
        degraded: bool,
    },
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

/// Compacts the branch that `request` names.
///
/// # Errors
/// When the store fails, or the request names entries that are not on the branch.
///
/// # Cancel safety
/// Dropping the future, or cancelling, leaves finished summaries stored, each complete, and nothing else.
pub async fn run(work: Work<'_>, request: &Request) -> Result<Outcome> {
    let started = std::time::Instant::now();
    let target = Target {
        leaf: request.leaf_id.clone(),
        window: Window {
            tokens: request
                .too_long()
                .map_or(request.context_window, |said| said.window(request.context_window)),
            ..request.window()
        },
        instructions: request.custom_instructions.clone(),
        model: request.model.clone(),
    };
    let job = Job::begin(work, target).await?;
    Outcome::of(job.repeated(|| Box::pin(compact(&job, request))).await, |(branch, compaction)| {
        let (report, degraded) = report(&job, &branch, &compaction, started.elapsed());
        Outcome::Compacted { compaction: Box::new(compaction), report, degraded }
    })
}

async fn compact(job: &Job<'_>, request: &Request) -> Result<Option<(Branch, Compaction)>> {
    let mut asked = request.first_kept_entry_id.clone();
    let mut branch = job.read(&before(&asked)).await?;
    let is_first = !branch.has_summaries();
    let hidden = branch.hidden_request(job.budget).map(ToOwned::to_owned);
    if let Some(hidden) = &hidden {
        asked.clone_from(hidden);
        branch = job.read(&before(&asked)).await?;
    }
    if let Some(said) = request.too_long() {
        return shortened(job, request, branch, said).await;
    }
    // A lean context keeps less than Pi does.
    if job.session.settings.context == Context::Lean
        && hidden.is_none()
        && let Some(own) = job.session.kept(job.model.as_deref(), request.window(), &request.leaf_id).await?
    {
        let later = job.read(&before(&own)).await?;
        if later.before().len() > branch.before().len() {
            (branch, asked) = (later, own);
        }
    }
    let few = branch.before().len() < job.session.settings.min_messages_for_compaction;
    if branch.before().is_empty() || (few && is_first) {
        return Ok(None);
    }
    let (chunks, kept) = leaf_plan(job, request, &branch, &asked);
    if kept != asked {
        branch = job.read(&before(&kept)).await?;
    }
    let (branch, focus) = job.complete(branch, chunks).await?;
    compaction(job, request, branch, Some(kept), focus).await
}

fn before(entry: &str) -> BranchPart {
    BranchPart::Before(entry.to_owned())
}

/// Compacts so that a request that was too long fits: takes as little of the raw part as needed beyond Pi's
/// cut, at worst all of it.
async fn shortened(
    job: &Job<'_>,
    request: &Request,
    branch: Branch,
    said: ReportedLimit,
) -> Result<Option<(Branch, Compaction)>> {
    let shown_from = request.shown_from.clone();
    let measure = move |view: &View<'_>| {
        let from = branch.shown_from(view, shown_from.as_deref())?;
        Ok((tokens_of(&branch, from), branch))
    };
    let (context, branch) = job.session.store.read(measure).await?;
    let too_long =
        TooLong { said, context, threshold: request.threshold(), prompt: request.window().prompt() };
    let room = too_long
        .room(job.budget + branch.notes.tokens(), |real| job.ratios.estimated(real, job.model.as_deref()));
    let kept = overflow::fitting(&branch, room).map(ToOwned::to_owned);
    let part = kept.as_deref().map_or(BranchPart::All, before);
    let branch = job.read(&part).await?;
    if branch.before().is_empty() {
        return Ok(None);
    }
    let chunks = job.pass.cut.uncovered(&branch);
    let (branch, _) = job.complete(branch, chunks).await?;
    compaction(job, request, branch, kept, None).await
}

async fn compaction(
    job: &Job<'_>,
    request: &Request,
    branch: Branch,
    kept: Option<String>,
    focus: Option<String>,
) -> Result<Option<(Branch, Compaction)>> {
    let (branch, summary) = job.session.block(job.budget, branch, HISTORY, focus).await?;
    let compaction = Compaction {
        tokens_after: after(&branch, request.window(), &summary),
        summary,
        first_kept_entry_id: kept,
        tokens_before: request.tokens_before.clone(),
        details: branch.details(),
        usage: job.summarizer.usage(),
    };
    Ok(Some((branch, compaction)))
}

/// The chunks for the leaf pass, and the first entry of the raw part: an incomplete last chunk stays raw if
/// there is room.
fn leaf_plan(job: &Job<'_>, request: &Request, branch: &Branch, first_kept: &str) -> (Vec<Span>, String) {
    let cut = job.pass.cut;
    let visible = branch.before();
    let mut chunks = job.pass.cut.uncovered(branch);
    let mut kept = first_kept.to_owned();
    if let Some(last) = chunks.last()
        && last.end == visible.len()
        && (chunks.len() > 1 || branch.has_summaries())
        && cut.is_remainder(visible, last)
        && visible[last.start].can_begin()
        && has_room_for(job, request, branch, last)
    {
        kept.clone_from(&visible[last.start].entry_id);
        chunks.pop();
    }
    (chunks, kept)
}

/// The estimated tokens a block may take, and how the history is divided, for a session's `model` with this
/// window, in tokens. The division ignores learned ratios, so that summaries prepared earlier still fit.
fn sizes(settings: &Settings, ratios: &Ratios, window: Window, model: Option<&str>) -> (usize, Cut) {
    let budget = settings.largest_block(window);
    (ratios.estimated(budget, model).max(LEAST_ESTIMATE), Cut::of(settings, window.tokens))
}

/// Only an automatic compaction at the threshold leaves a chunk raw, and only well below the next one.
fn has_room_for(job: &Job<'_>, request: &Request, branch: &Branch, chunk: &Span) -> bool {
    let (Some("threshold"), Some(threshold)) = (request.reason.as_deref(), request.threshold()) else {
        return false;
    };
    request.window().prompt() + job.budget + tokens_of(branch, chunk.start) < threshold * 4 / 5
}

/// Estimated tokens of a context that begins with the block `summary`.
fn after(branch: &Branch, window: Window, summary: &str) -> usize {
    window.prompt() + tokens::estimate(summary) + tokens_of(branch, branch.before().len())
}

/// Estimated tokens of the visible messages from `from` on.
fn tokens_of(branch: &Branch, from: usize) -> usize {
    branch.visible()[from..].iter().map(|visible| visible.seen.tokens).sum()
}

/// `812 messages in 24 summaries, 9 new, 181,204 → about 28,000 tokens, 9 model calls, 14.2 s, $0.021`
fn report(
    job: &Job<'_>,
    branch: &Branch,
    compaction: &Compaction,
    elapsed: std::time::Duration,
) -> (String, bool) {
    let (mut report, is_degraded) = summary_line(branch, compaction);
    let calls = text::count(job.summarizer.calls(), "model call");
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
    let is_degraded = |piece: &Piece| match piece {
        Piece::Summary(id, _) => branch.summary(*id).is_some_and(|summary| summary.state == State::Degraded),
        Piece::Message(_) => false,
    };
    branch.pieces().iter().filter(|piece| is_degraded(piece)).count()
}
