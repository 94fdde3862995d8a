//! Predicts a compaction without model calls: `/lcm compact --dry-run`.

use super::branch::{Branch, BranchPart};
use super::calibration::Ratios;
use super::passes::tokens_of;
use super::plan::missing;
use super::{Session, sizes};
use lcm_model::config::Settings;
use lcm_model::dag::{Piece, Visible};
use lcm_model::error::Result;
use lcm_model::policy::Live;
use lcm_store::View;

/// What a compaction would do. Tokens are estimates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Messages that would stay raw, and their tokens.
    pub kept: (usize, usize),
    /// Messages that the block would replace, and their tokens.
    pub covered: (usize, usize),
    /// Existing summaries of the frontier, and the messages they cover.
    pub ready: (usize, usize),
    /// Leaf summaries to write, and the tokens of their messages.
    pub leaves: (usize, usize),
    /// Degraded summaries that would be retried.
    pub healed: usize,
    /// Condensed summaries that follow because a depth has too many.
    pub condensed: usize,
    /// Tokens the block may take.
    pub budget: usize,
    /// Whether there is too little to compact, so that Pi would do it by itself.
    pub is_pis: bool,
    /// If Pi refuses a compaction because it keeps all that it shows: the tokens that it counts there, and keeps.
    pub refused: Option<(usize, usize)>,
}

/// Predicts for the branch that ends at `leaf`, in the context `live`. `None` if everything would stay raw.
pub async fn forecast(session: Session<'_>, leaf: &str, live: &Live) -> Result<Option<Forecast>> {
    let Session { store, settings, .. } = session;
    let (model, window) = (live.model.as_deref(), live.window());
    let Some(kept) = session.kept(model, window, leaf).await? else { return Ok(None) };
    let whole = session.read(leaf, BranchPart::All, live.shown_from.as_deref()).await?;
    let count = move |view: &View<'_>| {
        let tokens = |visible: &Visible| Ok(view.messages().parsed(visible.seen.id)?.pi_tokens());
        whole.visible()[whole.shown..].iter().map(tokens).sum::<Result<usize>>()
    };
    let (shown, keeps) = (store.read(count).await?, settings.pi.with(model).keep_recent_tokens);
    let branch = session.read(leaf, BranchPart::Before(kept), None).await?;
    let (before, rest) = branch.visible().split_at(branch.before().len());
    let (budget, cut) = sizes(settings, &Ratios::read(store).await?, window, None);
    let (chunks, again) = missing(cut, &branch);
    let leaves: usize = chunks.iter().map(|chunk| tokens_of(&before[chunk.clone()])).sum();
    let frontier = branch.forest.frontier();
    let ready = frontier.iter().filter_map(|piece| match piece {
        Piece::Summary(_, span) => Some(span.len()),
        Piece::Message(_) => None,
    });
    Ok(Some(Forecast {
        kept: (rest.len(), tokens_of(rest)),
        covered: (before.len(), tokens_of(before)),
        ready: (ready.clone().count(), ready.sum()),
        leaves: (chunks.len(), leaves),
        healed: again.len() + branch.forest.degraded_groups().len(),
        condensed: condensed(&branch, chunks.len(), settings),
        budget,
        refused: (shown < keeps).then_some((shown, keeps)),
        is_pis: before.len() < settings.min_messages_for_compaction && branch.forest.is_empty(),
    }))
}

/// How many condensed summaries follow from this many more leaves.
fn condensed(branch: &Branch, leaves: usize, settings: &Settings) -> usize {
    let group = settings.condensation_threshold.max(2);
    let (mut made, mut rising, frontier) = (0, leaves, branch.forest.frontier_summaries());
    for depth in 0..u32::try_from(settings.max_depth).unwrap_or(u32::MAX) {
        let summaries = frontier.iter().filter(|id| branch.depth(**id) == depth).count() + rising;
        rising = summaries.saturating_sub(1) / group;
        made += rising;
    }
    made
}
