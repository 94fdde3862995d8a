//! The summaries that are valid on a range of a branch, with their spans.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::{Node, Sources, Span};
use crate::ids::{MessageId, SummaryId};

/// One piece of a frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A summary and the positions it covers.
    Summary(SummaryId, Span),
    /// The position of a visible message that no summary covers.
    Message(usize),
}

/// All summaries that are valid on `visible`, and their frontier.
#[derive(Debug, Default)]
pub struct Forest {
    visible: Vec<MessageId>,
    /// The visible messages, sorted by row, each with its position.
    places: Vec<(MessageId, usize)>,
    nodes: HashMap<SummaryId, Arc<Node>>,
    spans: HashMap<SummaryId, Span>,
    /// For each position, the summary starting there that the frontier would use.
    best: HashMap<usize, SummaryId>,
    /// The greatest depth of a valid summary.
    depth: u32,
    /// Whether any summary that is or was valid is degraded.
    is_degraded: bool,
    frontier: OnceLock<Vec<Piece>>,
}

impl Forest {
    /// Finds which of `nodes` are valid on `visible`. A node with sources missing from `nodes` is not valid.
    pub fn new(visible: &[MessageId], nodes: impl IntoIterator<Item = impl Into<Arc<Node>>>) -> Self {
        let mut nodes: Vec<Arc<Node>> = nodes.into_iter().map(Into::into).collect();
        // Sources have a lower depth, so sorting by depth puts them first.
        nodes.sort_by_cached_key(|node| (node.depth, node.id));
        let mut places: Vec<(MessageId, usize)> =
            visible.iter().enumerate().map(|(at, message)| (*message, at)).collect();
        places.sort_unstable();
        let mut forest = Self { visible: visible.to_vec(), places, ..Self::default() };
        nodes.into_iter().for_each(|node| forest.add(node));
        if forest.is_degraded {
            forest.drop_superseded();
            forest.best.clear();
            let held: Vec<SummaryId> = forest.spans.keys().copied().collect();
            held.into_iter().for_each(|id| forest.rank(id));
            forest.depth = forest.spans.keys().map(|id| forest.nodes[id].depth).max().unwrap_or_default();
        }
        forest
    }

    /// The same forest with newer `nodes`, whose sources are among them or already in it.
    pub fn grown(mut self, mut nodes: Vec<Arc<Node>>) -> Self {
        if self.is_degraded || nodes.iter().any(|node| node.degraded) {
            // A node that supersedes another changes more than itself.
            let all = self.nodes.into_values().chain(nodes);
            return Self::new(&self.visible, all);
        }
        nodes.sort_by_key(|node| (node.depth, node.id));
        nodes.into_iter().for_each(|node| self.add(node));
        self.frontier = OnceLock::new();
        self
    }

    fn add(&mut self, node: Arc<Node>) {
        let span = match &node.sources {
            Sources::Messages(messages) => self.run_of(messages),
            Sources::Summaries(children) => chain_of(children, &self.spans),
        };
        let (id, holds) = (node.id, span.is_some());
        if let Some(span) = span {
            self.spans.insert(id, span);
            self.depth = self.depth.max(node.depth);
            self.is_degraded |= node.degraded;
        }
        self.nodes.insert(id, node);
        if holds {
            self.rank(id);
        }
    }

    /// Compares a summary with others that start at the same position: the longest span wins, then the
    /// deepest, then one written by a model, then the newest prompts, then the lowest id.
    fn rank(&mut self, id: SummaryId) {
        let rank = |id: SummaryId| {
            let (node, span) = (self.nodes.get(&id)?, self.spans.get(&id)?);
            Some((span.len(), node.depth, !node.degraded, node.prompt_version, Reverse(id)))
        };
        let Some(start) = self.spans.get(&id).map(|span| span.start) else { return };
        if self.best.get(&start).is_none_or(|rival| rank(id) > rank(*rival)) {
            self.best.insert(start, id);
        }
    }

    /// The span of `messages`, if they are consecutive.
    fn run_of(&self, messages: &[MessageId]) -> Option<Span> {
        let first = messages.first()?;
        let at = self.places.partition_point(|(id, _)| id < first);
        let start = self.places.get(at).filter(|(id, _)| id == first)?.1;
        let span = start..start + messages.len();
        (self.visible.get(span.clone())? == messages).then_some(span)
    }

    /// Drops degraded summaries that were remade, and those condensed from them. A leaf also counts as remade
    /// by several consecutive shorter leaves: they say more, even if no model wrote them.
    fn drop_superseded(&mut self) {
        let mut by_depth: BTreeMap<u32, Vec<SummaryId>> = BTreeMap::new();
        for id in self.spans.keys() {
            by_depth.entry(self.nodes[id].depth).or_default().push(*id);
        }
        // Sources have a lower depth, so it is known by now which are left.
        for ids in by_depth.into_values() {
            for id in &ids {
                if let Sources::Summaries(children) = &self.nodes[id].sources
                    && children.iter().any(|child| !self.spans.contains_key(child))
                {
                    self.spans.remove(id);
                }
            }
            // Only a valid summary supersedes another.
            let sound: HashSet<Span> = (ids.iter().filter(|id| !self.nodes[id].degraded))
                .filter_map(|id| self.spans.get(id).cloned())
                .collect();
            let mut leaves: HashMap<usize, Vec<usize>> = HashMap::new();
            for span in ids.iter().filter(|id| self.nodes[id].depth == 0).filter_map(|id| self.spans.get(id))
            {
                leaves.entry(span.start).or_default().push(span.end);
            }
            let is_made_anew = |span: &Span| sound.contains(span) || are_chained(&leaves, span);
            for id in ids {
                if self.nodes[&id].degraded && self.spans.get(&id).is_some_and(is_made_anew) {
                    self.spans.remove(&id);
                }
            }
        }
    }

    /// The cover of the whole range: at each position from the root, the best summary that starts there.
    /// Summaries that overlap a chosen one are not used.
    pub fn frontier(&self) -> Vec<Piece> {
        self.frontier.get_or_init(|| self.cover()).clone()
    }

    fn cover(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < self.visible.len() {
            match self.best.get(&at) {
                Some(id) => {
                    let span = self.spans[id].clone();
                    at = span.end;
                    pieces.push(Piece::Summary(*id, span));
                }
                None => {
                    pieces.push(Piece::Message(at));
                    at += 1;
                }
            }
        }
        pieces
    }

    /// The node of a summary passed to [`Forest::new`].
    pub fn node(&self, id: SummaryId) -> Option<&Node> {
        self.nodes.get(&id).map(AsRef::as_ref)
    }

    /// The span of the summary, if it is valid.
    pub fn span(&self, id: SummaryId) -> Option<&Span> {
        self.spans.get(&id)
    }

    /// The number of valid summaries.
    pub fn held(&self) -> usize {
        self.spans.len()
    }

    /// The valid summaries for which `is_known` is false, sources first.
    pub fn held_but(&self, is_known: impl Fn(SummaryId) -> bool) -> Vec<SummaryId> {
        let mut ids: Vec<SummaryId> = self.spans.keys().copied().filter(|id| !is_known(*id)).collect();
        ids.sort_by_key(|id| (self.nodes[id].depth, *id));
        ids
    }

    /// The greatest depth of a valid summary.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The valid degraded leaf summaries, oldest first.
    pub fn degraded_leaves(&self) -> Vec<SummaryId> {
        if !self.is_degraded {
            return Vec::new();
        }
        let mut leaves: Vec<SummaryId> = (self.spans.keys().copied())
            .filter(|id| self.nodes[id].degraded && self.nodes[id].depth == 0)
            .collect();
        leaves.sort_by_key(|id| self.spans[id].start);
        leaves
    }

    /// The sources of the valid degraded condensed summaries, with their depths, shallowest first.
    pub fn degraded_groups(&self) -> Vec<(u32, Vec<SummaryId>)> {
        if !self.is_degraded {
            return Vec::new();
        }
        let mut groups: Vec<(u32, usize, Vec<SummaryId>)> = (self.spans.iter())
            .filter(|(id, _)| self.nodes[id].degraded)
            .filter_map(|(id, span)| match &self.nodes[id].sources {
                Sources::Messages(_) => None,
                Sources::Summaries(children) => Some((self.nodes[id].depth, span.start, children.clone())),
            })
            .collect();
        groups.sort();
        groups.into_iter().map(|(depth, _, children)| (depth, children)).collect()
    }

    /// The spans of the valid leaf summaries written by a model.
    pub fn sound_leaves(&self) -> HashSet<Span> {
        let sound = |id: &SummaryId| !self.nodes[id].degraded && self.nodes[id].depth == 0;
        self.spans.iter().filter(|(id, _)| sound(id)).map(|(_, span)| span.clone()).collect()
    }

    /// All valid summaries, deepest first, then from the root.
    pub fn holding(&self) -> Vec<SummaryId> {
        let mut ids: Vec<SummaryId> = self.spans.keys().copied().collect();
        ids.sort_by_key(|id| (Reverse(self.nodes[id].depth), self.spans[id].start, *id));
        ids
    }

    /// `roots` and all summaries below them, sources first.
    pub fn closure(&self, roots: impl IntoIterator<Item = SummaryId>) -> Vec<SummaryId> {
        let mut seen = HashSet::new();
        let mut waiting: Vec<SummaryId> = roots.into_iter().collect();
        while let Some(id) = waiting.pop() {
            let Some(node) = self.nodes.get(&id) else { continue };
            if let (true, Sources::Summaries(children)) = (seen.insert(id), &node.sources) {
                waiting.extend(children);
            }
        }
        let mut ids: Vec<SummaryId> = seen.into_iter().collect();
        ids.sort_by_key(|id| (self.nodes[id].depth, *id));
        ids
    }
}

/// Whether a chain of shorter spans, given as ends by start, covers `whole` exactly.
fn are_chained(spans: &HashMap<usize, Vec<usize>>, whole: &Span) -> bool {
    let mut reached = BTreeSet::from([whole.start]);
    while let Some(at) = reached.pop_first() {
        if at == whole.end {
            return true;
        }
        let is_shorter = |end: &usize| *end <= whole.end && *end - at < whole.len();
        reached.extend(spans.get(&at).into_iter().flatten().copied().filter(is_shorter));
    }
    false
}

/// The span of consecutive children; `None` if there is a gap.
fn chain_of(children: &[SummaryId], spans: &HashMap<SummaryId, Span>) -> Option<Span> {
    let first = spans.get(children.first()?)?;
    let mut whole = first.clone();
    for child in &children[1..] {
        let next = spans.get(child)?;
        if next.start != whole.end {
            return None;
        }
        whole.end = next.end;
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(ids: impl IntoIterator<Item = i64>) -> Vec<MessageId> {
        ids.into_iter().map(MessageId).collect()
    }

    fn leaf(id: i64, sources: Range<i64>) -> Node {
        let sources = Sources::Messages(messages(sources));
        Node { id: SummaryId(id), depth: 0, degraded: false, prompt_version: 1, sources }
    }

    fn condensed(id: i64, depth: u32, sources: impl IntoIterator<Item = i64>) -> Node {
        let sources = Sources::Summaries(sources.into_iter().map(SummaryId).collect());
        Node { id: SummaryId(id), depth, degraded: false, prompt_version: 1, sources }
    }

    use std::ops::Range;

    #[test]
    fn another_branch_does_not_see_a_summary_of_messages_it_lacks() {
        let nodes = vec![leaf(1, 0..4), leaf(2, 4..8), condensed(3, 1, [1, 2])];
        let mut other = messages(0..6);
        other.extend(messages(100..110));
        let forest = Forest::new(&other, nodes);
        assert_eq!(forest.frontier()[0], Piece::Summary(SummaryId(1), 0..4));
        assert_eq!(forest.span(SummaryId(2)), None);
        assert_eq!(forest.span(SummaryId(3)), None);
    }

    #[test]
    fn the_longest_span_from_the_root_wins_and_overlaps_lose() {
        let nodes = vec![leaf(1, 0..4), leaf(2, 4..8), condensed(3, 1, [1, 2]), leaf(4, 2..9)];
        let forest = Forest::new(&messages(0..10), nodes);
        assert_eq!(
            forest.frontier(),
            [Piece::Summary(SummaryId(3), 0..8), Piece::Message(8), Piece::Message(9)]
        );
    }

    #[test]
    fn a_grown_forest_equals_one_built_at_once() {
        let extract = Node { degraded: true, ..leaf(2, 4..8) };
        let all = vec![
            leaf(1, 0..4),
            extract,
            condensed(3, 1, [1, 2]),
            leaf(4, 4..8),
            leaf(5, 8..12),
            condensed(6, 1, [1, 4, 5]),
            leaf(7, 3..9),
        ];
        let visible = messages(0..14);
        for cut in 0..=all.len() {
            let (first, then) = all.split_at(cut);
            let grown =
                Forest::new(&visible, first.to_vec()).grown(then.iter().cloned().map(Arc::new).collect());
            let whole = Forest::new(&visible, all.clone());
            assert_eq!(grown.frontier(), whole.frontier(), "{cut}");
            assert_eq!((grown.holding(), grown.depth()), (whole.holding(), whole.depth()), "{cut}");
        }
        let sound: Vec<Node> = all.into_iter().filter(|node| ![2, 3].contains(&node.id.0)).collect();
        let once = Forest::new(&visible, sound[..2].to_vec());
        assert_eq!(once.frontier().len(), 8);
        let grown = once.grown(sound[2..].iter().cloned().map(Arc::new).collect());
        assert_eq!(grown.frontier(), Forest::new(&visible, sound).frontier());
    }

    #[test]
    fn hiding_a_message_invalidates_the_summaries_made_from_it() {
        let visible = messages([0, 1, 3]);
        let forest = Forest::new(&visible, vec![leaf(1, 0..4), leaf(2, 0..2)]);
        assert_eq!(forest.frontier(), [Piece::Summary(SummaryId(2), 0..2), Piece::Message(2)]);
    }

    #[test]
    fn an_extract_is_superseded_only_by_leaves_that_cover_all_of_it() {
        let extract = Node { degraded: true, ..leaf(1, 0..8) };
        let pieces = [leaf(2, 0..3), Node { degraded: true, ..leaf(3, 3..6) }, leaf(4, 6..8)];
        let over = condensed(5, 1, [1, 6]);
        let first =
            [vec![extract, leaf(6, 8..10), over], pieces[..2].to_vec(), vec![leaf(7, 6..10)]].concat();
        let before = Forest::new(&messages(0..10), first.clone());
        assert_eq!(before.frontier(), [Piece::Summary(SummaryId(5), 0..10)]);
        let after = Forest::new(&messages(0..10), [first, vec![pieces[2].clone()]].concat());
        let piece = |id, span| Piece::Summary(SummaryId(id), span);
        assert_eq!(after.frontier(), [piece(2, 0..3), piece(3, 3..6), piece(7, 6..10)]);
        assert_eq!(after.degraded_leaves(), [SummaryId(3)]);
        assert_eq!(after.sound_leaves(), HashSet::from([0..3, 6..8, 6..10, 8..10]));
    }

    #[test]
    fn an_invalid_summary_supersedes_no_other() {
        let extract = Node { degraded: true, ..leaf(1, 0..4) };
        let healed = leaf(4, 0..4);
        // A model's summary of the extract, and an extract of the remade leaf.
        let nodes = vec![
            extract,
            leaf(2, 4..8),
            condensed(3, 1, [1, 2]),
            healed,
            Node { degraded: true, ..condensed(5, 1, [4, 2]) },
        ];
        let forest = Forest::new(&messages(0..8), nodes);
        assert_eq!(forest.frontier(), [Piece::Summary(SummaryId(5), 0..8)]);
        assert_eq!(forest.degraded_groups(), [(1, vec![SummaryId(4), SummaryId(2)])]);
    }

    #[test]
    fn a_remade_leaf_supersedes_what_was_condensed_from_the_extract() {
        let extract = Node { degraded: true, ..leaf(1, 0..4) };
        let nodes = vec![extract, leaf(2, 4..8), condensed(3, 1, [1, 2])];
        let before = Forest::new(&messages(0..8), nodes.clone());
        assert_eq!(before.frontier(), [Piece::Summary(SummaryId(3), 0..8)]);
        let healed = [nodes, vec![leaf(4, 0..4)]].concat();
        let after = Forest::new(&messages(0..8), healed);
        assert_eq!(
            after.frontier(),
            [Piece::Summary(SummaryId(4), 0..4), Piece::Summary(SummaryId(2), 4..8)]
        );
    }
}
