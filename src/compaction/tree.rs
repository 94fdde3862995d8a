//! A branch that is left: when the person goes elsewhere in the session's tree and wants to keep an account of what was
//! left behind, that account is a block too, made of the same summaries. Whoever comes back later finds them made.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::{Job, Part, Target};
use super::rounds::Rounds;
use super::{Work, block};
use crate::error::{Code, Result};
use crate::model::CompactionDetails;

/// What the account of a branch that was left is called.
const TITLE: &str = "Branch Left Behind";

/// What Pi's hook tells of the branch that is left.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftBranch {
    /// The entry it ends with.
    pub leaf_id: String,
    /// The last entry that the new branch has in common with it; without one, they share nothing.
    pub common_ancestor_id: Option<String>,
    /// What the person wants to know of it.
    pub custom_instructions: Option<String>,
    /// The model's context window in tokens.
    pub context_window: Option<usize>,
    /// The session's model, as `provider/id`.
    pub model: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum LeftOutcome {
    /// Here is the account.
    Summarized {
        /// As Pi stores it.
        summary: Box<LeftSummary>,
    },
    /// Nothing was said on it.
    Declined,
    /// Stopped on request; finished summaries are kept.
    Cancelled,
}

/// The account as Pi stores it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftSummary {
    /// The block.
    pub summary: String,
    /// The new summaries and what they span, as those of a compaction.
    pub details: CompactionDetails,
    /// What the model calls used together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
}

/// Tells of the branch that `left` names.
///
/// # Errors
/// When the store fails, or the branch is not what `left` says.
///
/// # Cancel safety
/// As [`super::run`].
pub async fn summarize_left(work: Work<'_>, left: LeftBranch) -> Result<LeftOutcome> {
    let part = Part::After(left.common_ancestor_id);
    let leaf = left.leaf_id.clone();
    let target = Target {
        leaf: left.leaf_id,
        window: left.context_window,
        instructions: left.custom_instructions,
        model: left.model,
    };
    let job = Job::begin(work, target).await?;
    let mut rounds = Rounds::of(&job).await?;
    let outcome = loop {
        let outcome = account(&job, &part, &leaf).await;
        if !rounds.go_on(&job, &outcome).await {
            break outcome;
        }
    };
    match outcome {
        Ok(Some(summary)) => Ok(LeftOutcome::Summarized { summary: Box::new(summary) }),
        Ok(None) => Ok(LeftOutcome::Declined),
        Err(error) if error.code() == Code::Cancelled => Ok(LeftOutcome::Cancelled),
        Err(error) => Err(error),
    }
}

async fn account(job: &Job<'_>, part: &Part, leaf: &str) -> Result<Option<LeftSummary>> {
    let branch = job.read(part).await?;
    if branch.before().is_empty() {
        return Ok(None);
    }
    let chunks = job.uncovered(&branch);
    let (branch, focus) = job.complete(branch, chunks).await?;
    let (branch, summary) = block(job.store(), job.budget, branch, TITLE, focus.as_deref()).await?;
    let details = CompactionDetails { leaf: Some(leaf.to_owned()), ..branch.details() };
    Ok(Some(LeftSummary { summary, details, usage: job.summarizer.usage() }))
}
