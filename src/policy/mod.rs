//! What leaves the context, and when: a pure function of sizes, the model's prices and the clock.
//!
//! A token in the context costs the price of a cached read with each request. Taking it out costs once: the provider's cache
//! goes by the beginning of the prompt, so what stands behind it is written to the cache again. Nobody knows how many requests
//! are still to come. The policy therefore rents before it buys: it acts when carrying has cost as much as acting would. That
//! never costs more than twice what a prophet would pay, and where the context grows evenly it is the optimum of the
//! economic order quantity, `√(2·ρ·K·g)` tokens at a time (K tokens written again, growth g, ρ the price of writing over
//! that of reading). See Karlin et al., "Competitive snoopy caching" (1988), for the bound.
//!
//! The session may end right after the policy has acted. So an action must also be affordable: what all of them have cost may
//! exceed what they have saved by no more than [`RISK`] of the bill.
//!
//! Pi alone compacts too, and saves by it what a change would have saved from then on. As long as our context is as large as
//! Pi alone's, both compact with the same request, and nothing is lost. A change ends that, so shortly before that request there
//! is none; and where Pi alone carries less than we do, the way back is always affordable.

#[cfg(test)]
mod examples;
mod ledger;
mod prices;
#[cfg(test)]
mod simulation;

pub use ledger::{Alone, Ledger, Outlook, Request, SUMMARIZED_RESULT};
pub use prices::{Cost, Prices};

use serde::Serialize;

/// The newest results of the turn under way stay, up to so many tokens: the model works with them.
const PROTECTED: usize = 6_000;
/// Of the turns before it, the newest results that stay, in tokens.
const PROTECTED_BEFORE: usize = 2_000;
/// The model sees a result whole in so many requests before it may give way.
pub const SEEN: usize = 2;
/// Results of fewer tokens stay: a stub of them would be about as long.
pub const BULKY: usize = 250;
/// The share of the bill that may be lost on actions which do not pay because the session ends.
pub const RISK: f64 = 0.018;
/// Fewer tokens than this are not worth a change of the session.
const LEAST: usize = 1_000;
/// What a fold leaves as it is, in tokens: the newest messages.
pub const TAIL: usize = 4_000;
/// So many tokens more may be left where what is before them is summarized already.
const SLACK: usize = 4_000;
/// What is summarized is folded where it is so many times what is not.
const MOST: usize = 3;
/// What a fold takes out at least, in tokens.
const LEAST_FOLD: usize = 4_000;
/// Summaries are begun when carrying has cost this share of what the fold costs, so that nobody waits for them.
const AHEAD: f64 = 0.8;
/// What a summary is shorter than what it is made from.
const SHORTER: f64 = 20.0;
/// What a block has beside its summaries, in tokens.
const FRAME: usize = 600;
/// A block grows by this share of what is folded into it: 1/n.
const BLOCK_SHARE: usize = 10;

/// A message of the context, as far as the policy looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Tokens that the model is shown.
    pub shown: usize,
    /// Requests of this context that it was part of.
    pub sent: usize,
    /// A request of the user's: with the last one the turn under way begins.
    pub is_request: bool,
    /// A tool's result that stands whole.
    pub is_result: bool,
    /// Tokens of the stub that may take its place; none where it has to stay.
    pub stub: Option<usize>,
    /// Tokens of it that a summarizer still has to read before it can be folded; 0 where a summary has it.
    pub unread: usize,
    /// The context may begin with it: it is no result whose call would be gone.
    pub can_begin: bool,
}

/// A moment at which something may be done: new results are about to be sent, or a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The context, oldest first.
    pub items: &'a [Item],
    /// Tokens of the block before it; 0 where there is none.
    pub block: usize,
    /// Tokens that the block of a fold may take.
    pub largest_block: usize,
    /// The model's.
    pub prices: Prices,
    /// Those of the model that writes summaries.
    pub summarizer: Prices,
    /// The provider's cache has nothing of the context any more.
    pub is_cold: bool,
    /// Whether the past may be folded.
    pub folds: Folds,
    /// What an action may cost at most, see [`Ledger::outlook`], as for the rest.
    pub allowance: f64,
    /// Tokens by which the prompt exceeds what Pi alone would send.
    pub behind: usize,
    /// What it has cost since Pi alone's compaction that prompts are larger than its own.
    pub lag: f64,
    /// Left alone, we compact with the same request as Pi alone, and soon.
    pub is_in_step: bool,
}

/// Whether the past may be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folds {
    /// No.
    Never,
    /// It may be summarized, to be folded later.
    Later,
    /// A block can be put into the session now.
    Now,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Nothing.
    #[default]
    Leave,
    /// Results give way to stubs, from this item on.
    Stub(usize),
    /// What is before this item is summarized, to be folded.
    Summarize(usize),
    /// A block takes the place of what is before this item.
    Fold(usize),
}

/// Why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Nothing in the context may give way.
    #[default]
    NothingToGain,
    /// Carrying has cost less so far than writing the rest again.
    NotYet,
    /// It would pay, but the session has not saved enough yet to afford that it might end now, or that Pi alone compacts.
    NotAffordable,
    /// Carrying has cost as much as the change.
    Due,
    /// The cache is cold: everything is written again anyway.
    Cold,
}

/// A decision, with what it comes to. Costs are in millionths of the prices' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What is to be done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Tokens that could be taken out.
    pub frees: usize,
    /// What it costs once; below zero where the next request alone makes up for it.
    pub costs: f64,
    /// What carrying them has cost so far.
    pub carried: f64,
    /// What it saves with each request.
    pub saves: f64,
}

/// A decision that was made in a session.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// How many requests of the session had been answered.
    pub request: usize,
    /// Tokens of the context, as Pi counts them.
    pub tokens: Option<usize>,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
}

/// Decides. The time it takes grows with the number of items.
#[must_use]
pub fn decide(moment: Moment<'_>) -> Decision {
    let stub = stub(moment);
    let decision = match fold(moment).filter(|_| moment.folds != Folds::Never) {
        Some(fold) if !(matches!(stub.action, Action::Stub(_)) && worth(stub) > worth(fold)) => fold,
        _ => stub,
    };
    match decision.action {
        // Summaries may be made: they are of use when Pi alone compacts.
        Action::Stub(_) | Action::Fold(_) if moment.is_in_step => {
            Decision { action: Action::Leave, reason: Reason::NotAffordable, ..decision }
        }
        _ => decision,
    }
}

/// What is to be done about results.
fn stub(moment: Moment<'_>) -> Decision {
    let best = stubs(moment);
    let Some((from, found)) = best.filter(|(_, found)| found.frees >= LEAST) else {
        return best
            .map_or_else(Decision::default, |(_, found)| Decision { reason: Reason::NotYet, ..found });
    };
    let (action, reason) = match () {
        () if found.carried < found.costs => (Action::Leave, Reason::NotYet),
        () if found.costs > moment.allowance => (Action::Leave, Reason::NotAffordable),
        () if moment.is_cold => (Action::Stub(from), Reason::Cold),
        () => (Action::Stub(from), Reason::Due),
    };
    Decision { action, reason, ..found }
}

/// A fold that is due, or nearly.
fn fold(moment: Moment<'_>) -> Option<Decision> {
    let Moment { items, block, largest_block, prices, summarizer, is_cold, folds, allowance, .. } = moment;
    let cut = cut(items, moment.behind >= LEAST_FOLD)?;
    let (old, tail) = items.split_at(cut);
    let sent =
        |items: &[Item]| items.iter().filter(|item| item.sent > 0).map(|item| item.shown).sum::<usize>();
    let gone = block + sent(old);
    let next_block = next_block(block, old).min(largest_block);
    let frees = gone.checked_sub(next_block).filter(|frees| *frees >= LEAST_FOLD)?;
    let unread: usize = old.iter().map(|item| item.unread).sum();
    // What is summarized now is folded later, when the cache is warm again.
    let read = if is_cold && unread == 0 { prices.write } else { prices.read };
    let summaries = (summarizer.input + summarizer.output / SHORTER) * tokens(unread);
    let change =
        prices.write * tokens(next_block) + (prices.write - read) * tokens(sent(tail)) - read * tokens(gone);
    let carried = old.iter().map(|item| prices.read * tokens(item.shown) * tokens(item.sent)).sum();
    let saves = prices.read * tokens(frees);
    let found = Decision { frees, costs: change + summaries, carried, saves, ..Decision::default() };
    // Where Pi alone has compacted, a larger context than its own is a loss that grows with each request.
    let is_due = |share: f64| carried.max(moment.lag) >= share * found.costs;
    let act = |action, reason| Some(Decision { action, reason, ..found });
    match () {
        () if !is_due(AHEAD) => None,
        // The session may end before the summaries are of any use.
        () if found.costs.max(summaries) > allowance => None,
        () if unread > 0 => act(Action::Summarize(cut), Reason::Due),
        () if !is_due(1.0) => act(Action::Leave, Reason::NotYet),
        () if folds == Folds::Later => None,
        () if is_cold => act(Action::Fold(cut), Reason::Cold),
        () => act(Action::Fold(cut), Reason::Due),
    }
}

/// Tokens of the block after `old` has been folded into it.
fn next_block(block: usize, old: &[Item]) -> usize {
    block.max(FRAME) + shown(old) / BLOCK_SHARE
}

/// Where the tail begins that a fold leaves: what is summarized goes, if little more than [`TAIL`] is left, or if it is by far the
/// most: where each request brings more than a tail, there is always something that is not summarized yet. Where Pi alone carries
/// less, each request that waits for summaries is a loss, and half is enough.
fn cut(items: &[Item], is_behind: bool) -> Option<usize> {
    let newest = tail(items)?;
    let oldest = begins(items, TAIL + SLACK).unwrap_or_default();
    let ready = items.iter().position(|item| item.unread > 0).unwrap_or(items.len() - 1);
    let ready = items[..=ready].iter().rposition(|item| item.can_begin)?;
    let most = if is_behind { 1 } else { MOST };
    let is_most = |ready| shown(&items[..ready]) >= most * shown(&items[ready..newest]);
    let is_enough = 0 < ready && ready < newest && (oldest <= ready || is_most(ready));
    Some(if is_enough { ready } else { newest })
}

/// Where the tail begins at the latest.
#[must_use]
pub fn tail(items: &[Item]) -> Option<usize> {
    begins(items, TAIL)
}

/// The last place from which on there are `least` tokens and the context may begin.
fn begins(items: &[Item], least: usize) -> Option<usize> {
    let mut kept = 0;
    let fits = items.iter().rposition(|item| {
        kept += item.shown;
        kept >= least
    });
    fits.and_then(|at| items[..=at].iter().rposition(|item| item.can_begin))
}

/// Which items may give way to stubs: the model has seen them often enough, and does not work with them any more.
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

/// The places of the items that give way, where [`Action::Stub`] says from which one on.
#[must_use]
pub fn stub_places(items: &[Item], from: usize) -> Vec<usize> {
    let places = may_be_stubbed(items).into_iter().enumerate();
    places.filter(|(at, may)| *may && *at >= from).map(|(at, _)| at).collect()
}

/// Where stubs would have to begin to be worth most, and what that comes to; where something is affordable, the best of that.
fn stubs(moment: Moment<'_>) -> Option<(usize, Decision)> {
    let Moment { items, prices, is_cold, allowance, .. } = moment;
    // What a token costs in the next request that stood in the last one.
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
            // It is written in any case.
            None => {}
        }
    }
    best
}

/// Tokens that no prompt had yet; none where all were sent, or where the context has just been folded.
#[must_use]
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

#[expect(clippy::cast_precision_loss, reason = "counts far below 2⁵²")]
pub(crate) fn tokens(count: usize) -> f64 {
    count as f64
}
