//! A compaction at the end of a turn, before Pi asks for one: from what is ready, and nothing else.
//!
//! It asks no model and waits for nobody. What is not summarised yet stays raw, and the work ahead goes on; the end of a later
//! turn looks again. Whether it is worth while follows from the branch alone: nothing has to be remembered, so a restart
//! changes nothing.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::ahead::kept;
use super::branch::{Branch, HISTORY};
use super::calibration::Ratios;
use super::job::noted;
use super::memory::Memory;
use super::{Compaction, block, finished, sizes, told};
use crate::config::Settings;
use crate::dag::{Piece, Visible, can_begin_at};
use crate::error::Result;
use crate::ids::ConversationId;
use crate::store::{Store, View};

/// A compaction takes at least this share of the threshold out of the context: 1/n. So the one that follows comes only after
/// the context has grown by as much again.
const WORTH: usize = 5;
/// What a compaction leaves that does not wait for the rest, as a share of the threshold, in percent.
const CLEARLY_BELOW: usize = 80;

/// The end of a turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The entry the branch ends with.
    pub leaf_id: String,
    /// Tokens of the context as Pi counts them; absent while Pi does not know.
    pub context_tokens: Option<usize>,
    /// The model's context window in tokens.
    pub context_window: Option<usize>,
    /// The session's model, as `provider/id`.
    pub model: Option<String>,
    /// The first entry that the last compaction of the branch left raw; absent where there is none.
    pub shown_from: Option<String>,
}

/// A compaction that is ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Early {
    /// As Pi stores it.
    pub compaction: Compaction,
    /// What it comes to, in one line for the person.
    pub report: String,
    /// Worth a warning: a summary of the block was made without a model.
    pub degraded: bool,
}

/// The history of a session, to be compacted.
pub struct Session<'a> {
    /// Where it is stored.
    pub store: &'a Store,
    /// Which session.
    pub conversation: ConversationId,
    /// What the session remembers of its branch.
    pub memory: Arc<Memory>,
    /// How to compact.
    pub settings: &'a Settings,
}

/// Where the raw part may begin.
struct Cut {
    /// The entry.
    first_kept: String,
    /// Estimated tokens that leave the context.
    freed: usize,
    /// All that Pi would not keep is summarised, but for an end that is no whole chunk yet.
    is_all: bool,
}

/// Compacts the branch of `end` from the summaries that hold on it, to bring the context clearly below `threshold`, in tokens.
/// None where too little of it is summarised, too little would be won, or something is being purged.
///
/// # Errors
/// When the store can't be read.
pub async fn early(session: Session<'_>, end: &TurnEnd, threshold: usize) -> Result<Option<Early>> {
    let store = session.store;
    let before = store.rewritten().await?;
    let made = made(session, end, threshold).await;
    let after = store.rewritten().await?;
    if before == after { made } else { Ok(None) }
}

async fn made(session: Session<'_>, end: &TurnEnd, threshold: usize) -> Result<Option<Early>> {
    let Some(tokens) = end.context_tokens else { return Ok(None) };
    let Session { store, conversation, memory, settings } = session;
    let kept = kept(store, &memory, conversation, settings, &end.leaf_id).await?;
    let Some(kept) = kept else { return Ok(None) };
    let ratios = Ratios::read(store).await?;
    let model = end.model.as_deref();
    let (budget, chunks) = sizes(settings, &ratios, end.context_window, model);
    let read = {
        let (memory, end) = (Arc::clone(&memory), end.clone());
        let notes = (settings.notes, settings.redact);
        move |view: &View<'_>| {
            let branch = Branch::read(view, &memory, conversation, &end.leaf_id, &kept)?;
            let from = branch.shown_from(view, end.shown_from.as_deref())?;
            let Some(cut) = cut(&branch, from, chunks) else { return Ok(None) };
            let branch = Branch::read(view, &memory, conversation, &end.leaf_id, &cut.first_kept)?;
            let branch = noted(view, branch, conversation, &end.leaf_id, notes)?;
            Ok(Some((branch, cut)))
        }
    };
    let Some((branch, cut)) = store.read(read).await? else { return Ok(None) };
    let estimated = |real| ratios.estimated(real, model);
    let left = (estimated(tokens) + budget).saturating_sub(cut.freed);
    let is_clear = cut.is_all || left <= estimated(threshold / 100 * CLEARLY_BELOW);
    let is_whole = branch.frontier().iter().all(|piece| matches!(piece, Piece::Summary(..)));
    if cut.freed < estimated(threshold / WORTH)
        || branch.before().len() < settings.min_messages_for_compaction
        || !(is_clear && is_whole && branch.fits(budget))
    {
        return Ok(None);
    }
    let (branch, _) = finished(store, &memory, branch).await?;
    let (branch, summary) = block(store, budget, branch, HISTORY, None).await?;
    let details = branch.details();
    let first_kept_entry_id = Some(cut.first_kept);
    let tokens_before = Value::from(tokens);
    let compaction = Compaction { summary, first_kept_entry_id, tokens_before, details, usage: None };
    let (report, degraded) = told(&branch, &compaction);
    Ok(Some(Early { report: format!("compacted early: {report}"), degraded, compaction }))
}

/// Cuts before the first message that no summary covers. `from` is the first message that the context has now.
fn cut(branch: &Branch, from: usize, chunks: super::plan::Cut) -> Option<Cut> {
    let frontier = branch.frontier();
    let visible = branch.visible();
    let open = frontier.iter().find_map(|piece| match piece {
        Piece::Message(at) => Some(*at),
        Piece::Summary(..) => None,
    });
    let starts = frontier.iter().map(|piece| match piece {
        Piece::Message(at) => *at,
        Piece::Summary(_, span) => span.start,
    });
    let end = branch.before().len();
    let can_begin = |at: &usize| can_begin_at(visible, *at);
    // A leaf summary may end in the midst of a call's results, and the raw part must not begin there.
    let at = match open.unwrap_or(end) {
        at if can_begin(&at) => at,
        at => starts.filter(|start| *start < at).filter(can_begin).max()?,
    };
    let missing = chunks.uncovered(branch);
    let is_all = match missing.as_slice() {
        [] => true,
        [last] => last.end == end,
        _ => false,
    };
    let freed = visible.get(from..at)?.iter().map(Visible::shown_tokens).sum();
    Some(Cut { first_kept: visible[at].entry_id.clone(), freed, is_all })
}
