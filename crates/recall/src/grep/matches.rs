//! What a search by relevance has found, before it is shown.

use lcm_model::ids::{MessageId, SummaryId};

/// A match with less than this share of the best score is weak.
pub(super) const WEAK: f64 = 0.32;

/// A match that is not shown yet.
pub(super) struct RankedMatch {
    pub target: MatchedNode,
    pub score: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchedNode {
    Summary(SummaryId),
    /// A message and its best passage.
    Message(MessageId, usize),
}
