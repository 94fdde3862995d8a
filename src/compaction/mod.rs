//! A compaction: from the request of Pi's hook to the block it puts in place of the history.
//!
//! 1. Read the branch and the summaries that hold on it, before the kept tail.
//! 2. Leaf pass: what no summary covers becomes leaf summaries, several at once.
//! 3. Condensed pass: where a depth has grown too many, the oldest become one of the next.
//! 4. Assemble; while the texts do not fit, condense more.
//!
//! Nothing is deleted and nothing is left out: each visible message before the kept tail lies in the span of exactly one
//! summary of the block. No connection is held across a model call.

mod assembler;
mod branch;
mod extract;
mod passes;
mod plan;
mod prompts;
mod summarizer;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::dag::{Piece, Span};
use crate::error::{Code, Error, Result};
use crate::ids::{ConversationId, SummaryId};
use crate::llm::Model;
use crate::model::CompactionDetails;
use crate::store::Store;
use branch::Branch;
use passes::{Else, Pass};
use plan::Cut;
use summarizer::Summarizer;

/// A block takes at most this share of the model's window: 1/n.
const WINDOW_SHARE: usize = 8;
/// The smallest block worth the name.
const LEAST_BUDGET: usize = 1_000;
/// One summary aims at no more than this share of the block: 1/n.
const BLOCK_SHARE: usize = 5;
/// A leaf chunk takes at most this share of the model's window: 1/n. Instructions and answer need room too.
const CHUNK_SHARE: usize = 4;
/// What stands before the conversation in a request: system prompt and tools, roughly.
const PROMPT_TOKENS: usize = 8_000;

/// What Pi's hook asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The entry the branch ends with.
    pub leaf_id: String,
    /// The first entry that Pi keeps raw.
    pub first_kept_entry_id: String,
    /// Tokens of the context as Pi counts them; handed back unchanged.
    pub tokens_before: Value,
    /// What the person typed after `/compact`.
    pub custom_instructions: Option<String>,
    /// `manual`, `threshold` or `overflow`.
    pub reason: Option<String>,
    /// The model's context window in tokens.
    pub context_window: Option<usize>,
    /// Tokens below the window at which Pi compacts by itself.
    pub reserve_tokens: Option<usize>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Outcome {
    /// Here is the block.
    #[serde(rename_all = "camelCase")]
    Compacted {
        /// What Pi puts in place of the history.
        compaction: Box<Compaction>,
        /// What it took, in one line for the person.
        report: String,
        /// Worth a warning: the model failed.
        degraded: bool,
    },
    /// Nothing for us to do; Pi compacts in its own way.
    Declined,
    /// Stopped on request; finished summaries are kept.
    Cancelled,
}

/// The compaction as Pi stores it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// The block.
    pub summary: String,
    /// The first entry that stays raw.
    pub first_kept_entry_id: String,
    /// As the request had it.
    pub tokens_before: Value,
    /// The new summaries and what they span.
    pub details: CompactionDetails,
    /// What the model calls used together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
}

/// Compacts the branch that `request` names.
///
/// # Errors
/// When the store fails, or the request names entries that the branch doesn't have.
///
/// # Cancel safety
/// Dropping the future, or cancelling, leaves finished summaries stored, each whole, and nothing else.
pub async fn run(
    store: &Store,
    conversation: ConversationId,
    settings: &Settings,
    request: &Request,
    model: Arc<dyn Model>,
    cancel: CancellationToken,
) -> Result<Outcome> {
    let started = std::time::Instant::now();
    let job = Job::new(store, conversation, settings, request, model, cancel);
    match job.run().await {
        Ok(Some(compaction)) => {
            let report = job.report(&compaction, started.elapsed());
            let degraded = job.summarizer.last_failure().is_some();
            Ok(Outcome::Compacted { compaction: Box::new(compaction), report, degraded })
        }
        Ok(None) => Ok(Outcome::Declined),
        Err(error) if error.code() == Code::Cancelled => Ok(Outcome::Cancelled),
        Err(error) => Err(error),
    }
}

struct Job<'a> {
    store: &'a Store,
    conversation: ConversationId,
    settings: &'a Settings,
    request: &'a Request,
    summarizer: Arc<Summarizer>,
    pass: Pass,
    budget: usize,
}

impl<'a> Job<'a> {
    fn new(
        store: &'a Store,
        conversation: ConversationId,
        settings: &'a Settings,
        request: &'a Request,
        model: Arc<dyn Model>,
        cancel: CancellationToken,
    ) -> Self {
        let window = request.context_window.unwrap_or(usize::MAX);
        let budget = settings.max_summary_tokens.min(window / WINDOW_SHARE).max(LEAST_BUDGET);
        let summarizer = Arc::new(Summarizer::new(model, cancel, settings.leaf_pass_concurrency));
        let cut = Cut {
            budget: settings.leaf_chunk_tokens.min(window / CHUNK_SHARE),
            large: settings.large_file_threshold_tokens,
        };
        let pass = Pass {
            cut,
            store: store.clone(),
            summarizer: Arc::clone(&summarizer),
            instructions: request.custom_instructions.clone().filter(|text| !text.trim().is_empty()),
            most_tokens: budget / BLOCK_SHARE,
        };
        Self { store, conversation, settings, request, summarizer, pass, budget }
    }

    async fn run(&self) -> Result<Option<Compaction>> {
        let mut branch = self.read(&self.request.first_kept_entry_id).await?;
        let asked =
            branch.hidden_request(self.budget).unwrap_or(&self.request.first_kept_entry_id).to_owned();
        if asked != self.request.first_kept_entry_id {
            branch = self.read(&asked).await?;
        }
        let few = branch.before().len() < self.settings.min_messages_for_compaction;
        if branch.before().is_empty() || (few && !branch.has_summaries()) {
            return Ok(None);
        }
        let (chunks, kept) = self.leaf_plan(&branch, &asked);
        if kept != asked {
            branch = self.read(&kept).await?;
        }
        self.leaf_pass(&branch, chunks).await?;
        branch = self.read(&kept).await?;
        for depth in branch.degraded_depths() {
            self.condense(&branch, branch.degraded_groups(depth), Else::Nothing).await?;
            branch = self.read(&kept).await?;
        }
        for depth in 0..u32::try_from(self.settings.max_depth).unwrap_or(u32::MAX) {
            let groups = branch.groups(depth, self.settings.condensation_threshold);
            if !groups.is_empty() {
                self.condense(&branch, groups, Else::Nothing).await?;
                branch = self.read(&kept).await?;
            }
        }
        // Under pressure each round leaves fewer pieces, so it ends; one that did not would never.
        while let (false, Some(group)) =
            (branch.fits(self.budget), branch.group_under_pressure(self.settings.condensation_threshold))
        {
            let pieces = branch.frontier().len();
            self.condense(&branch, vec![group], Else::Extract).await?;
            branch = self.read(&kept).await?;
            if branch.frontier().len() >= pieces {
                break;
            }
        }
        let conversation = self.conversation;
        let branch = self.store.read(move |view| branch.finish(view, conversation)).await?;
        self.compaction(&branch, kept).map(Some)
    }

    async fn read(&self, first_kept: &str) -> Result<Branch> {
        let (conversation, leaf) = (self.conversation, self.request.leaf_id.clone());
        let first_kept = first_kept.to_owned();
        self.store.read(move |view| Branch::read(view, conversation, &leaf, &first_kept)).await
    }

    /// What the leaf pass has to do, and the entry that the raw part begins with: later chunks wait when they are small
    /// and there is room for them.
    fn leaf_plan(&self, branch: &Branch, first_kept: &str) -> (Vec<Span>, String) {
        let cut = self.pass.cut;
        let visible = branch.before();
        let mut chunks: Vec<Span> =
            (plan::gaps(&branch.frontier()).into_iter()).flat_map(|gap| cut.chunks(visible, gap)).collect();
        let mut kept = first_kept.to_owned();
        if let Some(last) = chunks.last()
            && last.end == visible.len()
            && (chunks.len() > 1 || branch.has_summaries())
            && cut.is_remainder(visible, last)
            && visible[last.start].seen.role != "toolResult"
            && self.has_room_for(branch, last)
        {
            kept.clone_from(&visible[last.start].entry_id);
            chunks.pop();
        }
        (chunks, kept)
    }

    /// Only an automatic compaction for the threshold leaves something raw, and only well below the next one.
    fn has_room_for(&self, branch: &Branch, chunk: &Span) -> bool {
        let (Some("threshold"), Some(window)) = (self.request.reason.as_deref(), self.request.context_window)
        else {
            return false;
        };
        let threshold = window.saturating_sub(self.request.reserve_tokens.unwrap_or_default());
        let raw: usize = branch.visible[chunk.start..].iter().map(|visible| visible.seen.tokens).sum();
        PROMPT_TOKENS + self.budget + raw < threshold * 4 / 5
    }

    async fn leaf_pass(&self, branch: &Branch, mut chunks: Vec<Span>) -> Result<()> {
        // A degraded leaf is made anew from the very same messages.
        chunks.extend(branch.degraded_spans());
        let mut tasks = JoinSet::new();
        for chunk in chunks {
            let pass = self.pass.clone();
            let before = branch.visible[..chunk.start].iter().rev().take(8).rev().cloned().collect();
            let messages = branch.visible[chunk].to_vec();
            tasks.spawn(async move { pass.leaf(messages, before).await });
        }
        finish(tasks).await
    }

    async fn condense(&self, branch: &Branch, groups: Vec<Vec<SummaryId>>, otherwise: Else) -> Result<()> {
        let mut tasks = JoinSet::new();
        for group in groups {
            let pass = self.pass.clone();
            let sources = group.iter().filter_map(|id| branch.summary(*id).cloned()).collect();
            tasks.spawn(async move { pass.condensed(sources, otherwise).await });
        }
        finish(tasks).await
    }

    fn compaction(&self, branch: &Branch, kept: String) -> Result<Compaction> {
        if branch.frontier().iter().any(|piece| matches!(piece, Piece::Message(_))) {
            return Err(Error::store("the compaction would leave messages without a summary"));
        }
        Ok(Compaction {
            summary: branch.block(self.budget),
            first_kept_entry_id: kept,
            tokens_before: self.request.tokens_before.clone(),
            details: branch.details(),
            usage: self.summarizer.usage(),
        })
    }

    fn report(&self, compaction: &Compaction, elapsed: std::time::Duration) -> String {
        let calls = self.summarizer.calls();
        let covered = compaction.details.covered;
        let mut report = format!(
            "{covered} messages in {} ({} new), {}, {:.1} s",
            crate::text::count(compaction.details.frontier.len(), "summary"),
            compaction.details.summaries.len(),
            crate::text::count(calls, "model call"),
            elapsed.as_secs_f64()
        );
        if let Some(reason) = self.summarizer.last_failure() {
            report.push_str(&format!("; the model failed: {}", crate::text::one_line(&reason, 160)));
        }
        report
    }
}

/// Waits for all of them. After an abort each still stores the answer it has; any other error stops the rest, whose
/// finished summaries stay.
async fn finish(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    let mut outcome = Ok(());
    while let Some(task) = tasks.join_next().await {
        match task.map_err(|error| Error::storing("a summary could not be made", error))? {
            Ok(()) => {}
            Err(error) if error.code() == Code::Cancelled => outcome = Err(error),
            Err(error) => return Err(error),
        }
    }
    outcome
}
