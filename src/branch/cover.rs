//! A branch with the summaries that are valid on it.

use std::sync::Arc;

use crate::dag::{BranchEntry, Forest, Node, Piece, Sources, Visible, visible};
use crate::error::Result;
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::store::View;

/// The visible messages of a branch, and the summaries that cover them.
pub struct Cover {
    /// The visible messages, oldest first.
    pub visible: Vec<Visible>,
    /// The summaries that are valid here.
    pub forest: Forest,
    /// The cover of the branch, oldest first.
    pub frontier: Vec<Piece>,
}

impl Cover {
    /// Reads the branch that ends at `leaf`; empty without one.
    ///
    /// # Errors
    /// When the store can't be read; so for all functions here.
    pub fn read(view: &View<'_>, conversation: ConversationId, leaf: Option<&str>) -> Result<Self> {
        let entries = leaf.map(|leaf| view.messages().branch(conversation, leaf)).transpose()?;
        Self::of(view, &entries.unwrap_or_default())
    }

    /// Reads the summaries of a branch.
    pub fn of(view: &View<'_>, entries: &[BranchEntry]) -> Result<Self> {
        let visible = visible(entries);
        let nodes = view.summaries().nodes_on(&ids(&visible))?;
        Ok(Self::with(visible, nodes))
    }

    /// The cover of a branch by those of `nodes` that are valid on it.
    pub fn with(visible: Vec<Visible>, nodes: impl IntoIterator<Item = impl Into<Arc<Node>>>) -> Self {
        let forest = Forest::new(&ids(&visible), nodes);
        let frontier = forest.frontier();
        Self { visible, forest, frontier }
    }

    /// The summaries of the frontier, oldest first.
    pub fn summaries(&self) -> impl Iterator<Item = SummaryId> {
        self.frontier.iter().filter_map(|piece| match piece {
            Piece::Summary(id, _) => Some(*id),
            Piece::Message(_) => None,
        })
    }

    /// The position of an original message among the visible messages.
    #[must_use]
    pub fn position(&self, message: MessageId) -> Option<usize> {
        self.visible.iter().position(|visible| visible.id == message)
    }

    /// The summaries over a position, from its leaf summary up to the frontier.
    #[must_use]
    pub fn lineage_over(&self, position: usize) -> Vec<SummaryId> {
        let over = |id: &SummaryId| self.forest.span(*id).is_some_and(|span| span.contains(&position));
        let mut next = self.summaries().find(over);
        let mut lineage = Vec::new();
        while let Some(id) = next {
            lineage.push(id);
            next = match self.forest.node(id).map(|node| &node.sources) {
                Some(Sources::Summaries(children)) => children.iter().copied().find(over),
                _ => None,
            };
        }
        lineage.reverse();
        lineage
    }

    /// The leaf summary over an original message of this branch.
    #[must_use]
    pub fn leaf_over(&self, message: MessageId) -> Option<SummaryId> {
        self.lineage_over(self.position(message)?).first().copied()
    }

    /// The leaf summaries under the frontier, oldest first.
    #[must_use]
    pub fn leaves(&self) -> Vec<SummaryId> {
        let is_leaf = |id: &SummaryId| self.forest.node(*id).is_some_and(|node| node.depth == 0);
        let below = self.forest.closure(self.summaries());
        let mut leaves: Vec<SummaryId> = below.into_iter().filter(is_leaf).collect();
        leaves.sort_by_key(|id| self.forest.span(*id).map(|span| span.start));
        leaves
    }
}

/// The messages that summaries refer to.
fn ids(visible: &[Visible]) -> Vec<MessageId> {
    visible.iter().map(|message| message.seen.id).collect()
}
