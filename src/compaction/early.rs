//! A fold: a compaction at the end of a turn, begun by the policy, from existing summaries.
//!
//! It calls no model and waits for nothing. The policy has decided whether it pays off; whether it is
//! possible depends on the branch alone, so a restart changes nothing.

use serde_json::Value;

use super::branch::HISTORY;
use super::calibration::Ratios;
use super::{Compaction, Part, Session, sizes, summary_line};
use crate::dag::Piece;
use crate::error::Result;

/// The branch, and where its raw part starts.
#[derive(Clone, Debug)]
pub struct At {
    pub leaf_id: String,
    /// The first entry that stays raw.
    pub first_kept: String,
    /// Tokens of the context, as Pi counts them.
    pub context_tokens: usize,
    pub context_window: Option<usize>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
}

/// A finished compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Early {
    pub compaction: Compaction,
    pub report: String,
    /// Whether to warn that a summary in the block was made without a model.
    pub degraded: bool,
}

/// Compacts the branch of `at` from its valid summaries. `None` if a message before the raw part has no
/// summary, the block would not fit, or a purge is running.
pub async fn early(session: Session<'_>, at: At) -> Result<Option<Early>> {
    let store = session.store;
    let before = store.rewritten().await?;
    let made = made(session, at).await;
    let after = store.rewritten().await?;
    if before == after { made } else { Ok(None) }
}

async fn made(session: Session<'_>, at: At) -> Result<Option<Early>> {
    let Session { store, settings, .. } = session;
    let At { leaf_id, first_kept, context_tokens, context_window, model } = at;
    let ratios = Ratios::read(store).await?;
    let (budget, _) = sizes(settings, &ratios, context_window, model.as_deref());
    let branch = session.read(&leaf_id, &Part::Before(first_kept.clone())).await?;
    let is_whole = branch.frontier().iter().all(|piece| matches!(piece, Piece::Summary(..)));
    if branch.before().len() < settings.min_messages_for_compaction || !(is_whole && branch.fits(budget)) {
        return Ok(None);
    }
    let (branch, _) = session.finished(branch).await?;
    let (branch, summary) = session.block(budget, branch, HISTORY, None).await?;
    let details = branch.details();
    let tokens_before = Value::from(context_tokens);
    let first_kept_entry_id = Some(branch.first_kept(&first_kept).to_owned());
    let compaction = Compaction { summary, first_kept_entry_id, tokens_before, details, usage: None };
    let (report, degraded) = summary_line(&branch, &compaction);
    Ok(Some(Early { report: format!("folded: {report}"), degraded, compaction }))
}
