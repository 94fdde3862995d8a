//! Which summaries are valid on a branch, and how they cover its history. Pure functions on lists.
//!
//! A branch is the ordered list of its visible messages. A leaf summary is *valid* if its sources are
//! consecutive in that list; a condensed summary is valid if its sources are valid and follow each other
//! without a gap. So a summary is valid on exactly those branches and forks that show the same messages, and
//! nothing needs to be invalidated: an edited message counts as another message here.
//!
//! The *frontier* is the ordered cover of a range of the branch by summaries and uncovered messages.
//! Compaction, recall and the commands all use it.

mod branch;
mod forest;
mod path;

pub use branch::{BranchEntry, BranchMessage, MessageKind, Step, Visible, visible};
pub use forest::{Forest, Piece, Trees};
pub use path::Path;

use std::ops::Range;

use crate::ids::{MessageId, SummaryId};

/// The properties of a summary that decide its validity and rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: SummaryId,
    pub depth: u32,
    /// Whether it is an extract, to be superseded.
    pub degraded: bool,
    /// Newer prompts outrank older ones.
    pub prompt_version: u32,
    /// Its sources, in order.
    pub sources: Sources,
}

/// The edges of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// A leaf summary's messages (the rendition of an edited one).
    Messages(Vec<MessageId>),
    /// A condensed summary's summaries.
    Summaries(Vec<SummaryId>),
}

/// Positions among the visible messages of a branch, end-exclusive.
pub type Span = Range<usize>;
