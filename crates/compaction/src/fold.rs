//! A fold: a compaction at the end of a turn, from existing summaries.
//!
//! It calls no model and waits for nothing. The policy has decided that it pays; whether it is possible depends
//! on the branch alone, so a restart changes nothing.

use serde::Deserialize;
use serde_json::Value;

use super::branch::{Branch, BranchPart, HISTORY};
use super::calibration::Ratios;
use super::passes::tokens_of;
use super::{Compacted, Compaction, Session, sizes, summary_line};
use lcm_model::dag::{Piece, Visible};
use lcm_model::error::Result;
use lcm_model::policy::{Window, tail};

/// A fold may leave this many unsummarized tokens before its tail.
const SLACK: usize = 1_000;
/// An overdue fold may leave more, if what is summarized is at least this many times as much: when each request
/// adds more than a tail, some messages are always unsummarized.
const SUMMARIZED_SHARE: usize = 3;

/// The context to fold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct At {
    /// The branch's last entry.
    pub leaf_id: String,
    /// The first entry that the branch's last compaction left raw; absent if there is none.
    pub shown_from: Option<String>,
    /// Tokens of the context, as Pi counts them.
    pub context_tokens: usize,
    /// The model's window in tokens.
    pub context_window: Option<usize>,
    /// Approximate tokens of system prompt and tools.
    pub prompt_tokens: Option<usize>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
    /// Whether its summaries are waited for.
    pub is_awaited: bool,
    /// Whether the last prompt had to do without a fold because summaries were missing.
    #[serde(skip)]
    pub is_overdue: bool,
}

impl At {
    /// The model's window, and what comes before the conversation.
    pub const fn window(&self) -> Window {
        Window { tokens: self.context_window, prompt: self.prompt_tokens }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Fold {
    /// A finished compaction.
    Made(Box<Compacted>),
    /// What stands before this entry must be summarized first.
    Unsummarized(String),
    /// The context has nothing to fold, or the block would not fit.
    Nothing,
}

/// Folds the branch's context from its valid summaries.
pub async fn fold(session: Session<'_>, at: &At) -> Result<Fold> {
    let before = session.store.rewritten().await?;
    let made = match cut(&session, at).await? {
        Some((branch, None)) => made(session.clone(), at, branch).await?,
        Some((_, Some(entry))) => Fold::Unsummarized(entry),
        None => Fold::Nothing,
    };
    // A purge has removed what the block may show.
    let after = session.store.rewritten().await?;
    Ok(if before == after { made } else { Fold::Nothing })
}

/// The entry before which the context has to be summarized so that a fold finds its summaries ready; `None` if
/// they are, and fit the block. Work ahead may have stopped between writing and condensing them.
pub async fn unsummarized(session: &Session<'_>, at: &At) -> Result<Option<String>> {
    Ok(match cut(session, at).await? {
        Some((_, Some(entry))) => Some(entry),
        Some((branch, None)) => {
            let (budget, branch) = measured(session, at, branch).await?;
            branch.kept.clone().filter(|_| !branch.fits(budget))
        }
        None => None,
    })
}

/// What the block may take, in estimated tokens, and the branch with what it needs to be measured.
async fn measured(session: &Session<'_>, at: &At, branch: Branch) -> Result<(usize, Branch)> {
    let ratios = Ratios::read(session.store).await?;
    let (budget, _) = sizes(session.settings, &ratios, at.window(), at.model.as_deref());
    Ok((budget, session.store.read(move |view| branch.refreshed(view)).await?))
}

async fn made(session: Session<'_>, at: &At, branch: Branch) -> Result<Fold> {
    let (budget, branch) = measured(&session, at, branch).await?;
    let is_whole = branch.forest.frontier().iter().all(|piece| piece.summary().is_some());
    if branch.before().is_empty() || !is_whole {
        return Ok(Fold::Nothing);
    }
    if !branch.fits(budget) {
        // Work ahead condenses what does not fit.
        return Ok(branch.kept.map_or(Fold::Nothing, Fold::Unsummarized));
    }
    let (branch, summary, _) = session.block(budget, branch, HISTORY, None).await?;
    let compaction = Compaction::of(&branch, summary, Value::from(at.context_tokens), at.window(), None);
    let (report, degraded) = summary_line(&branch, &compaction);
    Ok(Fold::Made(Box::new(Compacted { report: format!("folded: {report}"), degraded, compaction })))
}

/// Reads the branch, and moves its cut to where a fold would keep it; with the entry before which too much is not
/// summarized yet, if that is so. `None` if there is nothing to fold.
async fn cut(session: &Session<'_>, at: &At) -> Result<Option<(Branch, Option<String>)>> {
    let mut branch = session.read(&at.leaf_id, BranchPart::All, at.shown_from.as_deref()).await?;
    let from = branch.shown;
    let Some(newest) = newest(&branch.visible()[from..], tail(at.window())) else {
        return Ok(None);
    };
    branch.keep_from(from + newest);
    let frontier = branch.forest.frontier();
    // What others compacted must be summarized along with the rest.
    let mut open = frontier.iter().filter_map(|piece| match piece {
        Piece::Message(place) => Some(place.saturating_sub(from)),
        Piece::Summary(..) => None,
    });
    let Some(first_open) = open.next() else { return Ok(Some((branch, None))) };
    let visible = &branch.visible()[from..];
    let ready = (0..=first_open.min(newest)).rev().find(|place| visible[*place].can_begin());
    let is_enough = |ready: &usize| {
        let (summarized, open) = (tokens_of(&visible[..*ready]), tokens_of(&visible[*ready..newest]));
        *ready > 0 && (open <= SLACK || (at.is_overdue && summarized >= SUMMARIZED_SHARE * open))
    };
    let unsummarized = match ready.filter(is_enough) {
        Some(ready) => {
            branch.keep_from(from + ready);
            None
        }
        None => Some(visible[newest].entry_id.clone()),
    };
    Ok(Some((branch, unsummarized)))
}

/// The message at which a tail of at most `most` tokens begins, or of the newest exchange if that alone has more;
/// `None` if the context has no more than that.
fn newest(visible: &[Visible], most: usize) -> Option<usize> {
    let mut kept = 0;
    let fitting = visible.iter().rev().take_while(|message| {
        kept += message.seen.tokens;
        kept <= most
    });
    let fits_from = visible.len() - fitting.count();
    if fits_from == 0 {
        return None;
    }
    let may_begin = |at: &usize| visible[*at].can_begin();
    (fits_from..visible.len()).find(may_begin).or_else(|| (1..fits_from).rev().find(may_begin))
}
