//! Decides what to remove from the context, and when: a pure function of sizes, the model's prices and the
//! clock.
//!
//! Each token in the context costs one cached read per request. Removing tokens costs once: the provider's
//! cache matches prompts from their start, so everything after the change is written to the cache again. No
//! one knows how many requests will follow. So the policy rents before it buys: it acts when carrying the
//! tokens has cost as much as removing them would. That never costs more than twice the best choice in
//! hindsight. If the context grows evenly, it is the optimum of the economic order quantity, `√(2·ρ·K·g)`
//! tokens at a time (K: tokens written again, g: growth, ρ: the price of writing over that of reading). See
//! Karlin et al., "Competitive snoopy caching" (1988), for the bound.
//!
//! The session may end right after a change. So a change must also be affordable: all changes together may
//! have cost at most [`RISK`] of the bill more than they have saved.
//!
//! Pi alone compacts too, which saves what a change would have saved from then on. While our context is as
//! large as Pi alone's, both compact at the same request, and nothing is lost. A change ends that, so shortly
//! before that request there is none, unless savings cover the loss. Where Pi alone compacts and we do not,
//! what its compaction costs is reserved for a fold of ours. If that is too little, the fold is affordable once
//! the larger context has cost the rest.

#[cfg(test)]
mod examples;
mod ledger;
mod prices;
#[cfg(test)]
mod simulation;

pub use ledger::{Alone, Ledger, Request, SUMMARIZED_RESULT};
pub use prices::{Cost, Prices};

use serde::Serialize;

/// The newest results of the current turn stay, up to this many tokens: the model is working with them.
const PROTECTED: usize = 6_000;
/// A result of an earlier turn stays if it and all newer results have at most this many tokens.
const PROTECTED_BEFORE: usize = 2_000;
/// The model sees a whole result in this many requests before a stub may replace it.
pub const SEEN: usize = 2;
/// Results of fewer tokens stay: a stub would be about as long.
pub const BULKY: usize = 250;
/// The share of the bill that may be lost on changes that do not pay off because the session ends.
pub const RISK: f64 = 0.018;
/// The minimum number of tokens that stubs must free to be worth changing the session.
const LEAST: usize = 1_000;
/// The minimum tail of a fold: tokens of the newest messages, which stay as they are.
pub const TAIL: usize = 4_000;
/// The minimum tails of a fold that catches up with Pi alone: the first that is affordable counts.
const TAILS: [usize; 3] = [TAIL, 10_000, PIS_TAIL];
/// What Pi keeps by default.
const PIS_TAIL: usize = 20_000;
/// The tail may have this many tokens more if everything before it is summarized.
const SLACK: usize = 4_000;
/// A fold takes only what is summarized if that is at least this many times the rest before the tail.
const MOST: usize = 3;
/// The minimum number of tokens that a fold must free. Smaller differences from Pi alone's context are ignored.
const LEAST_FOLD: usize = 4_000;
/// A context this many tokens larger than Pi alone's is behind it.
const BEHIND: usize = 8_000;
/// Summaries start when carrying has cost this share of the fold's cost, so that no one waits for them.
const AHEAD: f64 = 0.8;
/// How many times shorter a summary is than its source.
const SHORTER: f64 = 20.0;
/// Tokens of a block in addition to its summaries.
const FRAME: usize = 600;
/// A block grows by this share of what is folded into it: 1/n.
const BLOCK_SHARE: usize = 10;

/// A message of the context, as the policy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Tokens that the model sees.
    pub shown: usize,
    /// The number of requests with this context that contained it.
    pub sent: usize,
    /// Whether it is a user's message. The last one starts the current turn.
    pub is_request: bool,
    /// Whether it is a tool result in full.
    pub is_result: bool,
    /// Tokens of the stub that may replace it; `None` if it must stay.
    pub stub: Option<usize>,
    /// Tokens that a summarizer must still read before it can be folded; 0 if a summary covers it.
    pub unread: usize,
    /// Whether the context may begin with it: it is not a result whose call would be missing.
    pub can_begin: bool,
}

/// A moment at which the policy may act: just before new results or a prompt are sent.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The context, oldest first.
    pub items: &'a [Item],
    /// Tokens of the block before it; 0 if there is none.
    pub block: usize,
    /// The maximum tokens of a fold's block.
    pub largest_block: usize,
    /// The model's prices.
    pub prices: Prices,
    /// The prices of the model that writes summaries.
    pub summarizer: Prices,
    /// Whether the provider's cache no longer has any of the context.
    pub is_cold: bool,
    /// Whether history may be folded.
    pub folds: Folds,
    /// The most that a change may cost. For this and the fields below, see [`Ledger::outlook`].
    pub allowance: f64,
    /// The part of the allowance that is for a fold, because Pi alone has compacted and its context is smaller
    /// now; else 0.
    pub reserved: f64,
    /// Whether we compact at the same request as Pi alone if nothing changes.
    pub step: Step,
}

/// Whether Pi alone and we compact at the same request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Not soon.
    #[default]
    Later,
    /// Soon, if nothing changes.
    Soon,
    /// Before the next request. A fold from existing summaries does the same.
    Now,
}

/// Whether history may be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folds {
    /// No.
    Never,
    /// It may be summarized, to be folded later.
    Later,
    /// A block can be put into the session now.
    Now,
}

/// What to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Nothing.
    #[default]
    Leave,
    /// Replace results with stubs, from this item on.
    Stub(usize),
    /// Summarize what is before this item, to fold it later.
    Summarize(usize),
    /// Replace what is before this item with a block.
    Fold(usize),
}

/// Why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// No result may become a stub, and no fold is both near and affordable.
    #[default]
    NothingToGain,
    /// Carrying has cost less than the change would, or stubs would free too little.
    NotYet,
    /// The change is due, but savings do not cover the loss if the session ends now or Pi alone compacts.
    NotAffordable,
    /// Carrying has cost as much as the change.
    Due,
    /// The cache is cold: everything is written again anyway.
    Cold,
    /// Pi alone has compacted, and would have waited for its summary. Waiting for ours costs less than sending
    /// a larger context.
    Behind,
}

/// A decision with its figures. Costs are in millionths of the prices' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Tokens that could be removed.
    pub frees: usize,
    /// What the change costs once; negative if the next request alone makes up for it.
    pub costs: f64,
    /// What carrying them has cost so far.
    pub carried: f64,
    /// What the change saves with each request.
    pub saves: f64,
}

/// A decision made in a session.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The number of requests answered before it.
    pub request: usize,
    /// Tokens of the context, as Pi counts them.
    pub tokens: Option<usize>,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
}

/// Decides what to do, in time linear in the number of items.
pub fn decide(moment: Moment<'_>) -> Decision {
    let (stub, is_behind) = (stub(moment), moment.reserved > 0.0);
    let decision = match fold(moment).filter(|_| moment.folds != Folds::Never) {
        Some(fold) if is_behind || !matches!(stub.action, Action::Stub(_)) || worth(stub) <= worth(fold) => {
            fold
        }
        _ => stub,
    };
    match (decision.action, moment.step) {
        // Summaries are still made: the coming compaction can use them.
        (Action::Stub(_), Step::Soon | Step::Now) | (Action::Fold(_), Step::Soon) => {
            Decision { action: Action::Leave, reason: Reason::NotAffordable, ..decision }
        }
        _ => decision,
    }
}

/// What to do about results.
fn stub(moment: Moment<'_>) -> Decision {
    let best = stubs(moment);
    let Some((from, found)) = best.filter(|(_, found)| found.frees >= LEAST) else {
        return best
            .map_or_else(Decision::default, |(_, found)| Decision { reason: Reason::NotYet, ..found });
    };
    let reserved = if moment.folds == Folds::Never { 0.0 } else { moment.reserved };
    let (action, reason) = match () {
        () if found.carried < found.costs => (Action::Leave, Reason::NotYet),
        () if found.costs > moment.allowance - reserved => (Action::Leave, Reason::NotAffordable),
        () if moment.is_cold => (Action::Stub(from), Reason::Cold),
        () => (Action::Stub(from), Reason::Due),
    };
    Decision { action, reason, ..found }
}

/// A fold that is due or soon will be, or the summaries it needs first. Behind Pi alone, a fold that leaves a
/// longer tail is better than none.
fn fold(moment: Moment<'_>) -> Option<Decision> {
    let tails = if moment.reserved > 0.0 { &TAILS[..] } else { &TAILS[..1] };
    let pi_compacts = moment.reserved > 0.0 || moment.step == Step::Now;
    tails.iter().find_map(|least| fold_before(moment, cut(moment.items, *least, pi_compacts)?))
}

/// A fold of what is before `cut`.
fn fold_before(moment: Moment<'_>, cut: usize) -> Option<Decision> {
    let Moment { items, block, largest_block, prices, summarizer, is_cold, folds, allowance, .. } = moment;
    let is_behind = moment.reserved > 0.0;
    let (old, tail) = items.split_at(cut);
    let sent =
        |items: &[Item]| items.iter().filter(|item| item.sent > 0).map(|item| item.shown).sum::<usize>();
    let gone = block + sent(old);
    let next_block = next_block(block, old).min(largest_block);
    let frees = gone.checked_sub(next_block).filter(|frees| *frees >= LEAST_FOLD)?;
    let unread: usize = old.iter().map(|item| item.unread).sum();
    // What is summarized now is folded later, when the cache is warm again.
    let read = if is_cold && unread == 0 { prices.write } else { prices.read };
    let summaries = summaries(summarizer, old);
    let change =
        prices.write * tokens(next_block) + (prices.write - read) * tokens(sent(tail)) - read * tokens(gone);
    let carried = old.iter().map(|item| prices.read * tokens(item.shown) * tokens(item.sent)).sum();
    let saves = prices.read * tokens(frees);
    let found = Decision { frees, costs: change + summaries, carried, saves, ..Decision::default() };
    let is_due = |share: f64| is_behind || carried >= share * found.costs;
    let act = |action, reason| Some(Decision { action, reason, ..found });
    match () {
        () if !is_due(AHEAD) => None,
        // The session may end before the summaries are used.
        () if found.costs.max(summaries) > allowance => None,
        () if unread > 0 && is_behind => act(Action::Summarize(cut), Reason::Behind),
        () if unread > 0 => act(Action::Summarize(cut), Reason::Due),
        () if !is_due(1.0) => act(Action::Leave, Reason::NotYet),
        () if folds == Folds::Later => None,
        () if is_cold => act(Action::Fold(cut), Reason::Cold),
        () => act(Action::Fold(cut), Reason::Due),
    }
}

/// Whether to write summaries now for a compaction by Pi: if it is near, or if their cost is affordable even
/// though the session may end before it.
pub fn may_prepare(moment: Moment<'_>, is_near: bool) -> bool {
    let old = &moment.items[..tail(moment.items).unwrap_or_default()];
    is_near || summaries(moment.summarizer, old) <= moment.allowance
}

/// What the missing summaries of these messages cost.
fn summaries(summarizer: Prices, old: &[Item]) -> f64 {
    let unread = old.iter().map(|item| item.unread).sum();
    (summarizer.input + summarizer.output / SHORTER) * tokens(unread)
}

/// Tokens of the block after `old` has been folded into it.
fn next_block(block: usize, old: &[Item]) -> usize {
    block.max(FRAME) + shown(old) / BLOCK_SHARE
}

/// Where the tail of a fold begins. The fold takes only what is summarized, if that leaves little more than
/// `least` tokens or is by far the most: when each request adds more than a tail, some messages are always
/// unsummarized. Where Pi compacts too, it takes as much as Pi would, even results larger than a tail.
fn cut(items: &[Item], least: usize, pi_compacts: bool) -> Option<usize> {
    let pis = if pi_compacts { pis_cut(items).unwrap_or_default() } else { 0 };
    let newest = begins(items, least)?.max(pis);
    let oldest = begins(items, least + SLACK).unwrap_or_default().max(pis);
    let ready = items.iter().position(|item| item.unread > 0).unwrap_or(items.len() - 1);
    let ready = items[..=ready].iter().rposition(|item| item.can_begin)?;
    let is_most = |ready| shown(&items[..ready]) >= MOST * shown(&items[ready..newest]);
    let is_enough = 0 < ready && ready < newest && (oldest <= ready || !pi_compacts && is_most(ready));
    Some(if is_enough { ready } else { newest })
}

/// The last place where the tail may begin.
pub fn tail(items: &[Item]) -> Option<usize> {
    begins(items, TAIL)
}

/// The last place where the context may begin with at least `least` tokens.
fn begins(items: &[Item], least: usize) -> Option<usize> {
    let at = newest(items, least)?;
    items[..=at].iter().rposition(|item| item.can_begin)
}

/// Where Pi cuts with its default settings: at the next place where the context may begin, if there is one.
fn pis_cut(items: &[Item]) -> Option<usize> {
    let at = newest(items, PIS_TAIL)?;
    (at..items.len()).find(|at| items[*at].can_begin).or_else(|| begins(items, PIS_TAIL))
}

/// The last item from which on there are at least `least` tokens.
fn newest(items: &[Item], least: usize) -> Option<usize> {
    let mut kept = 0;
    items.iter().rposition(|item| {
        kept += item.shown;
        kept >= least
    })
}

/// Which items may become stubs: those that the model has seen often enough and no longer works with.
fn may_be_stubbed(items: &[Item]) -> Vec<bool> {
    let (mut newer, mut protected) = (0, PROTECTED);
    let mut found: Vec<bool> = items
        .iter()
        .rev()
        .map(|item| {
            newer += if item.is_result { item.shown } else { 0 };
            if item.is_request {
                protected = PROTECTED_BEFORE;
            }
            newer > protected && item.sent >= SEEN && item.stub.is_some_and(|stub| stub < item.shown)
        })
        .collect();
    found.reverse();
    found
}

/// The places of the items that become stubs; `from` comes from [`Action::Stub`].
pub fn stub_places(items: &[Item], from: usize) -> Vec<usize> {
    let places = may_be_stubbed(items).into_iter().enumerate();
    places.filter(|(at, may)| *may && *at >= from).map(|(at, _)| at).collect()
}

/// Where stubs are worth most if they begin there, with the figures. Affordable places come first.
fn stubs(moment: Moment<'_>) -> Option<(usize, Decision)> {
    let Moment { items, prices, is_cold, allowance, .. } = moment;
    // What the next request pays for each token of the last one.
    let read = if is_cold { prices.write } else { prices.read };
    let (mut found, mut best): (_, Option<(usize, Decision)>) = (Decision::default(), None);
    for (at, (item, is_stubbable)) in items.iter().zip(may_be_stubbed(items)).enumerate().rev() {
        match item.stub.filter(|_| is_stubbable) {
            Some(stub) => {
                let freed = item.shown - stub;
                found.frees += freed;
                found.costs += prices.write * tokens(stub) - read * tokens(item.shown);
                found.carried += prices.read * tokens(freed) * tokens(item.sent - 1);
                found.saves += prices.read * tokens(freed);
                let rank = |found: Decision| (found.costs <= allowance, worth(found));
                if best.is_none_or(|(_, best)| rank(found) >= rank(best)) {
                    best = Some((at, found));
                }
            }
            None if item.sent > 0 => found.costs += (prices.write - read) * tokens(item.shown),
            // A new item is written anyway.
            None => {}
        }
    }
    best
}

/// Tokens that no prompt has contained yet; 0 if all were sent, or if the context has just been folded.
pub fn new_tokens(items: &[Item]) -> usize {
    let last = items.iter().rposition(|item| item.sent > 0);
    last.map_or(0, |last| shown(&items[last + 1..]))
}

fn shown(items: &[Item]) -> usize {
    items.iter().map(|item| item.shown).sum()
}

fn worth(decision: Decision) -> f64 {
    decision.carried - decision.costs
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2⁵²")]
pub(crate) fn tokens(count: usize) -> f64 {
    count as f64
}
