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

impl Piece {
    /// The summary, if it is one.
    pub fn summary(&self) -> Option<SummaryId> {
        match self {
            Self::Summary(id, _) => Some(*id),
            Self::Message(_) => None,
        }
    }
}

/// The messages that a branch shows, and all summaries of them. Both only grow, each at its own cost.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    line: Arc<MessageOrder>,
    nodes: HashMap<SummaryId, Arc<Node>>,
    /// The spans of those whose sources follow each other.
    spans: HashMap<SummaryId, Span>,
    /// The others: later messages may complete them.
    open: BTreeSet<(u32, SummaryId)>,
    /// For each position, the summaries that start there.
    starting: HashMap<usize, Vec<SummaryId>>,
    /// Whether any summary with a span is degraded.
    is_degraded: bool,
}

/// Visible messages in order, and sorted by row, each with its position.
#[derive(Clone, Debug, Default)]
struct MessageOrder {
    visible: Vec<MessageId>,
    places: Vec<(MessageId, usize)>,
}

/// All summaries that are valid on the visible messages before a position, and their frontier.
#[derive(Debug, Default)]
pub struct Forest {
    trees: Arc<Trees>,
    end: usize,
    frontier: OnceLock<Vec<Piece>>,
    /// The number of valid summaries, and their greatest depth.
    totals: OnceLock<(usize, u32)>,
    /// The summaries of the frontier, and all below them.
    used: OnceLock<HashSet<SummaryId>>,
}

impl MessageOrder {
    fn extend(&mut self, visible: impl Iterator<Item = MessageId>) {
        let start = self.visible.len();
        self.visible.extend(visible);
        let new = self.visible[start..].iter().enumerate().map(|(at, message)| (*message, start + at));
        self.places.extend(new);
        if !self.places[start.saturating_sub(1)..].is_sorted() {
            self.places.sort_unstable();
        }
    }

    fn place(&self, message: MessageId) -> Option<usize> {
        let at = self.places.partition_point(|(id, _)| *id < message);
        self.places.get(at).filter(|(id, _)| *id == message).map(|(_, place)| *place)
    }

    /// The span of `messages`, if they are consecutive.
    fn run_of(&self, messages: &[MessageId]) -> Option<Span> {
        let start = self.place(*messages.first()?)?;
        let span = start..start + messages.len();
        (self.visible.get(span.clone())? == messages).then_some(span)
    }
}

impl Trees {
    /// Adds messages that the branch shows after the others.
    pub fn show(&mut self, visible: impl Iterator<Item = MessageId>) {
        Arc::make_mut(&mut self.line).extend(visible);
        self.settle();
    }

    /// Whether this message is shown.
    pub fn shows(&self, message: MessageId) -> bool {
        self.line.place(message).is_some()
    }

    /// Adds summaries.
    pub fn add(&mut self, nodes: impl IntoIterator<Item = Arc<Node>>) {
        for node in nodes {
            self.open.insert((node.depth, node.id));
            self.nodes.insert(node.id, node);
        }
        self.settle();
    }

    /// All of its summaries.
    pub fn nodes(&self) -> impl Iterator<Item = Arc<Node>> {
        self.nodes.values().cloned()
    }

    /// Finds the spans of open summaries. Sources have a lower depth, so they come first.
    fn settle(&mut self) {
        let Self { line, nodes, spans, open, starting, is_degraded } = self;
        open.retain(|(_, id)| {
            let node = &nodes[id];
            let span = match &node.sources {
                Sources::Messages(messages) => line.run_of(messages),
                Sources::Summaries(children) => chain_of(children, spans),
            };
            if let Some(span) = &span {
                starting.entry(span.start).or_default().push(*id);
                spans.insert(*id, span.clone());
                *is_degraded |= node.degraded;
            }
            span.is_none()
        });
    }

    /// The summaries that are valid on the messages before `end`.
    pub fn before(self: &Arc<Self>, end: usize) -> Forest {
        if !self.is_degraded {
            return Forest { trees: Arc::clone(self), end, ..Forest::default() };
        }
        // What supersedes a summary must be valid itself.
        let mut trees = Self::default();
        trees.show(self.line.visible[..end].iter().copied());
        trees.add(self.nodes());
        trees.drop_superseded();
        Forest { trees: Arc::new(trees), end, ..Forest::default() }
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
        for ids in self.starting.values_mut() {
            ids.retain(|id| self.spans.contains_key(id));
        }
    }
}

impl Forest {
    /// Finds which of `nodes` are valid on `visible`. A node with sources missing from `nodes` is not valid.
    pub fn new(visible: &[MessageId], nodes: impl IntoIterator<Item = impl Into<Arc<Node>>>) -> Self {
        let mut trees = Trees::default();
        trees.show(visible.iter().copied());
        trees.add(nodes.into_iter().map(Into::into));
        Arc::new(trees).before(visible.len())
    }

    /// The summary that the frontier uses of those that start at a position: the longest span wins, then the deepest,
    /// then one written by a model, then the newest prompts, then the newest: the user may have wanted it written again.
    fn best(&self, start: usize) -> Option<(SummaryId, &Span)> {
        let starting = self.trees.starting.get(&start).into_iter().flatten();
        starting.filter_map(|id| Some((*id, self.span(*id)?))).max_by_key(|(id, span)| {
            let node = &self.trees.nodes[id];
            (span.len(), node.depth, !node.degraded, node.prompt_version, *id)
        })
    }

    /// The cover of the whole range: at each position from the root, the best summary that starts there.
    /// Summaries that overlap a chosen one are not used.
    pub fn frontier(&self) -> Vec<Piece> {
        self.frontier.get_or_init(|| self.cover()).clone()
    }

    /// The summaries of the frontier, oldest first.
    pub fn frontier_summaries(&self) -> Vec<SummaryId> {
        self.frontier().iter().filter_map(Piece::summary).collect()
    }

    fn cover(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < self.end {
            match self.best(at) {
                Some((id, span)) => {
                    at = span.end;
                    pieces.push(Piece::Summary(id, span.clone()));
                }
                None => {
                    pieces.push(Piece::Message(at));
                    at += 1;
                }
            }
        }
        pieces
    }

    /// The node of a summary, valid or not.
    pub fn node(&self, id: SummaryId) -> Option<&Node> {
        self.trees.nodes.get(&id).map(AsRef::as_ref)
    }

    /// The span of the summary, if it is valid.
    pub fn span(&self, id: SummaryId) -> Option<&Span> {
        self.trees.spans.get(&id).filter(|span| span.end <= self.end)
    }

    /// Whether the summary is of the frontier or below it: a valid one may also be superseded by a longer one.
    pub fn uses(&self, id: SummaryId) -> bool {
        self.used.get_or_init(|| self.closure(self.frontier_summaries()).into_iter().collect()).contains(&id)
    }

    /// The valid summaries, with their nodes and spans.
    fn valid(&self) -> impl Iterator<Item = (SummaryId, &Node, &Span)> {
        let spans = self.trees.spans.iter().filter(|(_, span)| span.end <= self.end);
        spans.map(|(id, span)| (*id, self.trees.nodes[id].as_ref(), span))
    }

    /// Whether there is a valid summary.
    pub fn is_empty(&self) -> bool {
        self.valid().next().is_none()
    }

    /// The valid summaries for which `is_known` is false, sources first.
    pub fn held_but(&self, is_known: impl Fn(SummaryId) -> bool) -> Vec<SummaryId> {
        let unknown = self.valid().filter(|(id, ..)| !is_known(*id));
        ordered(unknown.map(|(id, node, _)| (node.depth, id)))
    }

    /// The number of valid summaries, and their greatest depth.
    pub fn totals(&self) -> (usize, u32) {
        let add = |(held, depth): (usize, u32), node: &Node| (held + 1, depth.max(node.depth));
        *self.totals.get_or_init(|| self.valid().fold((0, 0), |sum, (_, node, _)| add(sum, node)))
    }

    /// The valid degraded summaries.
    fn degraded(&self) -> impl Iterator<Item = (SummaryId, &Node, &Span)> {
        let any = self.trees.is_degraded.then(|| self.valid().filter(|(_, node, _)| node.degraded));
        any.into_iter().flatten()
    }

    /// The valid degraded leaf summaries, oldest first.
    pub fn degraded_leaves(&self) -> Vec<SummaryId> {
        let leaves = self.degraded().filter(|(_, node, _)| node.depth == 0);
        ordered(leaves.map(|(id, _, span)| (span.start, id)))
    }

    /// The sources of the valid degraded condensed summaries, with their depths, shallowest first.
    pub fn degraded_groups(&self) -> Vec<(u32, Vec<SummaryId>)> {
        let mut groups: Vec<(u32, usize, Vec<SummaryId>)> = self
            .degraded()
            .filter_map(|(_, node, span)| match &node.sources {
                Sources::Messages(_) => None,
                Sources::Summaries(children) => Some((node.depth, span.start, children.clone())),
            })
            .collect();
        groups.sort();
        groups.into_iter().map(|(depth, _, children)| (depth, children)).collect()
    }

    /// The spans of the valid leaf summaries written by a model.
    pub fn sound_leaves(&self) -> HashSet<Span> {
        let sound = self.valid().filter(|(_, node, _)| !node.degraded && node.depth == 0);
        sound.map(|(.., span)| span.clone()).collect()
    }

    /// All valid summaries, deepest first, then from the root.
    pub fn holding(&self) -> Vec<SummaryId> {
        ordered(self.valid().map(|(id, node, span)| ((Reverse(node.depth), span.start), id)))
    }

    /// `roots` and all summaries below them, sources first.
    pub fn closure(&self, roots: impl IntoIterator<Item = SummaryId>) -> Vec<SummaryId> {
        let mut seen = HashSet::new();
        let mut waiting: Vec<SummaryId> = roots.into_iter().collect();
        while let Some(id) = waiting.pop() {
            let Some(node) = self.node(id) else { continue };
            if let (true, Sources::Summaries(children)) = (seen.insert(id), &node.sources) {
                waiting.extend(children);
            }
        }
        ordered(seen.into_iter().map(|id| (self.trees.nodes[&id].depth, id)))
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

/// Summaries in the order of their keys.
fn ordered<K: Ord>(keyed: impl Iterator<Item = (K, SummaryId)>) -> Vec<SummaryId> {
    let mut keyed: Vec<(K, SummaryId)> = keyed.collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, id)| id).collect()
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
    fn grown_trees_equal_those_built_at_once_before_any_message() {
        let extract = Node { degraded: true, ..leaf(2, 4..8) };
        let all = [
            leaf(1, 0..4),
            extract,
            condensed(3, 1, [1, 2]),
            leaf(4, 4..8),
            leaf(5, 8..12),
            condensed(6, 1, [1, 4, 5]),
            leaf(7, 3..9),
        ];
        let sound: Vec<Node> = all.iter().filter(|node| ![2, 3].contains(&node.id.0)).cloned().collect();
        for (nodes, shown) in
            [&all[..], &sound].into_iter().flat_map(|nodes| (0..=14).map(move |at| (nodes, at)))
        {
            let mut trees = Trees::default();
            let (first, then) = nodes.split_at(shown % nodes.len());
            trees.show(messages(0..14).into_iter().take(shown));
            assert!((0..20).all(|id| trees.shows(MessageId(id)) == (id < shown.try_into().unwrap())));
            trees.add(first.iter().cloned().map(Arc::new));
            trees.show(messages(0..14).into_iter().skip(shown));
            trees.add(then.iter().cloned().map(Arc::new));
            let trees = Arc::new(trees);
            for end in 0..=14_usize {
                let (grown, whole) =
                    (trees.before(end), Forest::new(&messages(0..14)[..end], nodes.to_vec()));
                assert_eq!(grown.frontier(), whole.frontier(), "{shown} {end}");
                assert_eq!(
                    (grown.holding(), grown.totals()),
                    (whole.holding(), whole.totals()),
                    "{shown} {end}"
                );
            }
        }
    }

    #[test]
    fn hiding_a_message_invalidates_the_summaries_made_from_it() {
        let visible = messages([0, 1, 3]);
        let forest = Forest::new(&visible, vec![leaf(1, 0..4), leaf(2, 0..2)]);
        assert_eq!(forest.frontier(), [Piece::Summary(SummaryId(2), 0..2), Piece::Message(2)]);
    }

    /// One that was written again on request stays so where nothing knows of the request.
    #[test]
    fn of_two_summaries_of_the_same_messages_the_newer_counts() {
        let nodes =
            [leaf(1, 0..4), leaf(2, 4..8), leaf(4, 0..4), condensed(3, 1, [1, 2]), condensed(5, 1, [4, 2])];
        let forest = Forest::new(&messages(0..8), nodes[..3].to_vec());
        let piece = |id, span| Piece::Summary(SummaryId(id), span);
        assert_eq!(forest.frontier(), [piece(4, 0..4), piece(2, 4..8)]);
        assert_eq!(Forest::new(&messages(0..8), nodes.to_vec()).frontier(), [piece(5, 0..8)]);
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
