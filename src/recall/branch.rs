//! The branch a question is asked from: its visible messages, and the summaries valid on it.

use super::Scope;
use crate::dag::{Forest, Piece, Sources};
use crate::error::Result;
use crate::ids::{MessageId, SummaryId};
use crate::store::{Shown, View};

/// A branch, as recall needs it.
pub(super) struct BranchView {
    /// The visible messages, oldest first.
    pub visible: Vec<Shown>,
    /// The summaries that are valid here.
    pub forest: Forest,
    /// The cover of the branch, oldest first.
    pub frontier: Vec<Piece>,
    /// The visible messages' originals, sorted by row, with their positions.
    positions: Vec<(MessageId, usize)>,
}

impl BranchView {
    /// Reads the branch of `scope`; empty without a leaf.
    pub fn read(view: &View<'_>, scope: &Scope) -> Result<Self> {
        let visible = match &scope.leaf {
            Some(leaf) => view.messages().shown(scope.conversation, leaf)?,
            None => Vec::new(),
        };
        let seen: Vec<MessageId> = visible.iter().map(|message| message.seen).collect();
        let forest = Forest::new(&seen, view.summaries().nodes_on(&seen)?);
        let mut positions: Vec<(MessageId, usize)> =
            visible.iter().enumerate().map(|(at, message)| (message.original, at)).collect();
        positions.sort_unstable();
        let frontier = forest.frontier();
        Ok(Self { visible, forest, frontier, positions })
    }

    /// The message's position among the visible messages.
    pub fn position(&self, message: MessageId) -> Option<usize> {
        let at = self.positions.partition_point(|(id, _)| *id < message);
        self.positions.get(at).filter(|(id, _)| *id == message).map(|(_, position)| *position)
    }

    /// The summaries over a position, from its leaf summary up to the frontier.
    pub fn lineage_over(&self, position: usize) -> Vec<SummaryId> {
        let over = |id: &SummaryId| self.forest.span(*id).is_some_and(|span| span.contains(&position));
        let mut next = self.frontier.iter().find_map(|piece| match piece {
            Piece::Summary(id, span) if span.contains(&position) => Some(*id),
            _ => None,
        });
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

    /// The leaf summary over a message of this branch.
    pub fn leaf_over(&self, message: MessageId) -> Option<SummaryId> {
        self.lineage_over(self.position(message)?).first().copied()
    }

    /// The leaf summaries under the frontier, oldest first.
    pub fn leaves(&self) -> Vec<SummaryId> {
        let roots = self.frontier.iter().filter_map(|piece| match piece {
            Piece::Summary(id, _) => Some(*id),
            Piece::Message(_) => None,
        });
        let is_leaf = |id: &SummaryId| self.forest.node(*id).is_some_and(|node| node.depth == 0);
        let mut leaves: Vec<SummaryId> = self.forest.closure(roots).into_iter().filter(is_leaf).collect();
        leaves.sort_by_key(|id| self.forest.span(*id).map(|span| span.start));
        leaves
    }
}
