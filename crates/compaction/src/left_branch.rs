//! Summarizes an abandoned branch: when the user moves elsewhere in the session's tree and wants a summary of
//! the branch left behind, that is a block too, made from the same summaries. On returning to the branch,
//! they exist already.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::branch::BranchPart;
use super::job::Job;
use super::{Outcome, Work};
use lcm_model::CompactionDetails;
use lcm_model::error::Result;
use lcm_model::policy::Window;

/// The title of the summary of an abandoned branch.
const TITLE: &str = "Branch Left Behind";

/// Pi's hook about the abandoned branch.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftBranch {
    pub leaf_id: String,
    /// The last entry that it shares with the new branch; `None` if they share nothing.
    pub common_ancestor_id: Option<String>,
    pub custom_instructions: Option<String>,
    pub context_window: Option<usize>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
    /// Whether the model can look up what the summary leaves out.
    #[serde(default = "super::yes")]
    pub can_recall: bool,
}

/// The summary as Pi stores it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftSummary {
    pub summary: String,
    /// The new summaries and their span, as in a compaction.
    pub details: CompactionDetails,
    /// The total usage of the model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
}

/// Summarizes the branch that `left` names.
///
/// # Errors
/// When the store fails, or the branch does not match `left`.
///
/// # Cancel safety
/// As [`super::run`].
pub async fn summarize_left(work: Work<'_>, left: LeftBranch) -> Result<Outcome> {
    let part = BranchPart::After(left.common_ancestor_id);
    let window = Window { tokens: left.context_window, prompt: None };
    let job = Job::begin(work, window, left.model.as_deref(), left.custom_instructions.as_deref()).await?;
    let summary = job.session.repeated(|| Box::pin(account(&job, &part, &left.leaf_id))).await;
    Outcome::of(summary, |summary| Outcome::Summarized { summary: Box::new(summary) })
}

async fn account(job: &Job<'_>, part: &BranchPart, leaf: &str) -> Result<Option<LeftSummary>> {
    let branch = job.session.read(leaf, part.clone(), None).await?;
    if branch.before().is_empty() {
        return Ok(None);
    }
    let (branch, summary) = job.complete(branch, job.plan(), TITLE).await?;
    let details = CompactionDetails { leaf: Some(leaf.to_owned()), ..branch.details() };
    Ok(Some(LeftSummary { summary, details, usage: job.summarizer.usage() }))
}
