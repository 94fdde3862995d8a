//! A branch with the summaries that are valid on it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Shown, View};
use lcm_model::dag::{BranchEntry, Forest, Node, Piece, Sources, visible};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId, SummaryId};

/// The visible messages of a branch, and the summaries that cover them.
pub struct Cover {
    /// The visible messages, oldest first.
    pub visible: Vec<Shown>,
    /// The summaries that are valid here.
    pub forest: Forest,
    /// The cover of the branch, oldest first.
    pub frontier: Vec<Piece>,
    /// The visible messages' originals, sorted by row, with their positions.
    positions: HashMap<MessageId, usize>,
}

impl Cover {
    /// Reads the branch that ends at `leaf`; empty without one.
    pub fn read(view: &View<'_>, conversation: ConversationId, leaf: Option<&str>) -> Result<Self> {
        let visible = leaf.map(|leaf| view.messages().shown(conversation, leaf)).transpose()?;
        let visible = visible.unwrap_or_default();
        let nodes = view.summaries().nodes_on(&seen(&visible))?;
        Ok(Self::new(visible, nodes))
    }

    /// The same without reading, of the branch with these `entries`: of `nodes`, those that are valid on it.
    pub fn among(nodes: impl IntoIterator<Item = impl Into<Arc<Node>>>, entries: &[BranchEntry]) -> Self {
        Self::new(visible(entries).iter().map(Shown::from).collect(), nodes)
    }

    fn new(visible: Vec<Shown>, nodes: impl IntoIterator<Item = impl Into<Arc<Node>>>) -> Self {
        let forest = Forest::new(&seen(&visible), nodes);
        let frontier = forest.frontier();
        let positions =
            visible.iter().enumerate().rev().map(|(at, message)| (message.original, at)).collect();
        Self { visible, forest, frontier, positions }
    }

    /// The summaries of the frontier, oldest first.
    pub fn summaries(&self) -> impl Iterator<Item = SummaryId> {
        self.frontier.iter().filter_map(Piece::summary)
    }

    /// The position of an original message among the visible messages.
    pub fn position(&self, message: MessageId) -> Option<usize> {
        self.positions.get(&message).copied()
    }

    /// The summaries over a position, from its leaf summary up to the frontier.
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
    pub fn leaf_over(&self, message: MessageId) -> Option<SummaryId> {
        self.lineage_over(self.position(message)?).first().copied()
    }

    /// The leaf summaries under the frontier, oldest first.
    pub fn leaves(&self) -> Vec<SummaryId> {
        let is_leaf = |id: &SummaryId| self.forest.node(*id).is_some_and(|node| node.depth == 0);
        let below = self.forest.closure(self.summaries());
        let mut leaves: Vec<SummaryId> = below.into_iter().filter(is_leaf).collect();
        leaves.sort_by_key(|id| self.forest.span(*id).map(|span| span.start));
        leaves
    }
}

/// What the model sees, which summaries refer to.
fn seen(visible: &[Shown]) -> Vec<MessageId> {
    visible.iter().map(|message| message.seen).collect()
}
