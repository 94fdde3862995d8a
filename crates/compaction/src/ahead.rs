//! Prepares a compaction while the agent works: makes only what it will certainly need.
//!
//! That is full chunks before the part that a compaction would keep, and the condensed summaries that follow
//! from them. If no model answers, the work is left to the compaction itself, which needs it; here nothing
//! waits for it, unless Pi can't compact and the window is full.

use std::collections::HashSet;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::branch::Branch;
use super::job::{Job, Target, newest};
use super::passes::Fallback;
use super::{At, BranchPart, Work};
use lcm_model::dag::Span;
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
    /// Whether a model call failed.
    pub failed: bool,
    /// The total usage of the model calls, in Pi's format.
    pub usage: Option<Value>,
}

/// Makes what can be made ahead, a few summaries at a time, until `pause` is raised.
///
/// # Cancel safety
/// As for a compaction: finished summaries stay, and nothing else.
pub async fn prepare(work: Work<'_>, ahead: &Ahead, pause: &CancellationToken) -> Result<Prepared> {
    let at_once = work.session.settings.leaf_pass_concurrency;
    let kept = match &ahead.fold_before {
        Some(entry) => Some(entry.clone()),
        None => {
            let At { leaf_id, model, .. } = &ahead.at;
            work.session.kept(model.as_deref(), ahead.at.window(), leaf_id).await?
        }
    };
    let Some(kept) = kept else { return Ok(Prepared::default()) };
    let target = Target {
        leaf: ahead.at.leaf_id.clone(),
        window: ahead.at.window(),
        instructions: None,
        model: ahead.at.model.clone(),
    };
    let job = Job::begin(work, target).await?;
    let otherwise = if ahead.is_needed { Fallback::Extract } else { Fallback::Nothing };
    let to_the_end = ahead.fold_before.is_some();
    let made = make(&job, &BranchPart::Before(kept), (to_the_end, otherwise), at_once, pause).await;
    job.summarizer.measured.keep(job.session.store, None).await;
    match made {
        Err(error) if error.code() != Code::Cancelled => Err(error),
        _ => Ok(Prepared { failed: job.summarizer.last_failure().is_some(), usage: job.summarizer.usage() }),
    }
}

async fn make(
    job: &Job<'_>,
    part: &BranchPart,
    (to_the_end, otherwise): (bool, Fallback),
    at_once: usize,
    pause: &CancellationToken,
) -> Result<()> {
    let mut tried = HashSet::new();
    let mut recent = None;
    loop {
        let has_failed = otherwise == Fallback::Nothing && job.summarizer.last_failure().is_some();
        if pause.is_cancelled() || has_failed {
            return Ok(());
        }
        let branch = job.read(part).await?;
        let chunks = job.pass.cut.uncovered(&branch);
        let chunks = if to_the_end { chunks } else { whole(job, &branch, chunks) };
        let recent = *recent.get_or_insert_with(|| newest(&chunks));
        // The next compaction remakes degraded summaries in any case.
        let mut chunks = [chunks, job.pass.cut.extracted(&branch)].concat();
        chunks.retain(|chunk| !tried.contains(chunk));
        chunks.truncate(at_once.max(1));
        if chunks.is_empty() {
            break;
        }
        tried.extend(chunks.iter().cloned());
        let nodes = job.leaves(&branch, chunks, recent, otherwise);
        // The session goes on meanwhile, and its branch would be copied.
        drop(branch);
        job.make(nodes).await?;
    }
    let branch = job.condense_by_depth(job.read(part).await?).await?;
    job.under_pressure(branch, job.budget, otherwise).await?;
    Ok(())
}

/// All chunks, except a small last one that may still grow.
fn whole(job: &Job<'_>, branch: &Branch, mut chunks: Vec<Span>) -> Vec<Span> {
    let before = branch.before();
    let may_wait = |last: &Span| last.end == before.len() && job.pass.cut.is_remainder(before, last);
    if chunks.last().is_some_and(may_wait) {
        chunks.pop();
    }
    chunks
}
