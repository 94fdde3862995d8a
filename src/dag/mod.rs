//! Which summaries hold on a branch, and how its history is covered by them. Pure: lists in, lists out.
//!
//! A branch is the ordered list of its visible messages. A leaf summary *holds* where its sources stand in that list
//! as one unbroken run; a condensed summary holds where its sources hold and follow each other without a gap. So a
//! summary holds on every branch and fork that shows the same messages, and on no other, and nothing has to be
//! invalidated: an edited message is another message here.
//!
//! The *frontier* is the ordered cover of a stretch of the branch by summaries and uncovered messages. Compaction,
//! recall and the commands all take it from here.

mod branch;
mod forest;
mod path;

pub use branch::{
    BranchEntry, BranchMessage, MessageKind, Step, Visible, can_begin_at, hidden_from, visible,
};
pub use forest::{Forest, Piece};
pub use path::Path;

use std::ops::Range;

use crate::ids::{MessageId, SummaryId};

/// A summary, as far as validity and choice depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Which summary.
    pub id: SummaryId,
    /// 0 for a leaf.
    pub depth: u32,
    /// An extract, to be superseded.
    pub degraded: bool,
    /// Newer prompts win over older ones.
    pub prompt_version: u32,
    /// What it was made from, in order.
    pub sources: Sources,
}

/// The edges of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// A leaf summary's messages (for an edited message, its rendition).
    Messages(Vec<MessageId>),
    /// A condensed summary's summaries.
    Summaries(Vec<SummaryId>),
}

/// Positions among the visible messages of a branch, from the first covered to behind the last.
pub type Span = Range<usize>;
