//! Prepares a compaction while the agent works: makes only what it will certainly need.
//!
//! That is full chunks before the part that a compaction would keep, and the condensed summaries that follow
//! from them. If no model answers, the work is left to the compaction itself, which needs it; here nothing
//! waits for it, unless Pi can't compact and the window is full.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::branch::BranchPart;
use super::job::Job;
use super::{At, Work};
use lcm_model::error::{Code, Result};

/// The context, and how much of it is needed.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    pub at: At,
    /// The entry before which everything is about to be folded. Without it, chunks are made of what comes
    /// before the tail.
    pub fold_before: Option<String>,
    /// Whether the session can't go on without it: then extracts do if no model answers.
    pub is_needed: bool,
}

/// The outcome of preparing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Why a model call failed, if one did.
    pub failure: Option<String>,
    /// The total usage of the model calls, in Pi's format.
    pub usage: Option<Value>,
}

/// Makes what can be made ahead, a few summaries at a time, until `pause` is raised.
///
/// # Cancel safety
/// As for a compaction: finished summaries stay, and nothing else.
pub async fn prepare(work: Work<'_>, ahead: &Ahead, pause: &CancellationToken) -> Result<Prepared> {
    let kept = match &ahead.fold_before {
        Some(entry) => Some(entry.clone()),
        None => {
            let At { leaf_id, model, .. } = &ahead.at;
            work.session.kept(model.as_deref(), ahead.at.window(), leaf_id).await?
        }
    };
    let Some(kept) = kept else { return Ok(Prepared::default()) };
    let job = Job::begin(work, ahead.at.window(), ahead.at.model.as_deref(), None).await?;
    let mut plan = job.plan();
    plan.ahead = Some(ahead);
    let made: Result<()> = async {
        while !pause.is_cancelled() && (ahead.is_needed || job.summarizer.last_failure().is_none()) {
            // The session goes on while summaries are made, and a branch in use would be copied.
            let part = BranchPart::Before(kept.clone());
            let nodes = plan.next(&job.session.read(&ahead.at.leaf_id, part, None).await?);
            if nodes.is_empty() {
                break;
            }
            job.make(nodes).await?;
        }
        Ok(())
    }
    .await;
    job.summarizer.measured.keep(job.session.store, None).await;
    match made {
        Err(error) if error.code() != Code::Cancelled => Err(error),
        _ => Ok(Prepared { failure: job.summarizer.last_failure(), usage: job.summarizer.usage() }),
    }
}
