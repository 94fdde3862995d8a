//! A branch with its valid summaries: the input of every step of a compaction, refreshed after each.

mod render;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::BranchPart;
use super::standing::{Standing, StandingInputs};
use lcm_model::dag::{Forest, Path, Piece, Sources, Span, Visible};
use lcm_model::error::{Error, Result};
use lcm_model::facts::Facts;
use lcm_model::ids::{ConversationId, Hash, MessageId, SummaryId};
use lcm_model::{Files, Message, Notes};
use lcm_store::branch::{Known, Memory, Summaries};
use lcm_store::{StoredSummary, View};

pub(super) use render::HISTORY;

/// The part of a branch that is compacted.
pub(super) struct Branch {
    conversation: ConversationId,
    /// The branch, and maybe more: see [`Known`].
    path: Arc<Path>,
    /// The number of the path's entries on the branch.
    entries: usize,
    /// Positions of all messages to describe, including the kept tail.
    range: Span,
    /// How many of these come before the kept tail.
    before: usize,
    forest: Forest,
    all: Summaries,
    /// The summaries loaded so far.
    summaries: HashMap<SummaryId, StoredSummary>,
    /// Summaries that earlier compactions on this branch carry.
    carried: Arc<HashMap<SummaryId, usize>>,
    /// From [`Branch::finish`] on: the number of stored messages of the session.
    said: usize,
    /// What the block shows instead of the frontier, once decided.
    unfolded: Option<Vec<Piece>>,
    /// Files that Pi's own compactions list.
    listed: Vec<Files>,
    /// From [`Branch::finish`] on: the facts extracted from the summarized messages.
    facts: Facts,
    /// From [`Branch::finish`] on: the block's sections besides the summaries.
    standing: Standing,
    /// Notes, which every block shows until they are removed.
    pub notes: Notes,
    /// Whether the model can look up what the block lacks.
    pub can_recall: bool,
}

/// A leaf summary, its hash, and the facts extracted from its messages.
type Found = (SummaryId, Hash, Facts);

impl Branch {
    /// Reads a part of the branch that ends at `leaf`.
    ///
    /// # Errors
    /// When the store can't be read, or the branch has no such part.
    pub(super) fn read(
        view: &View<'_>,
        memory: &Memory,
        conversation: ConversationId,
        leaf: &str,
        part: &BranchPart,
    ) -> Result<Self> {
        let known = memory.read(view, conversation, leaf)?;
        let shown = known.visible().len();
        let Known { path, entries, carried, listed, summaries: all, .. } = known;
        let place = |entry: &str| {
            let missing = || Error::store(format!("the entry {entry} is not on the branch of {leaf}"));
            let place = place(view, &path, conversation, entry)?;
            place.filter(|place| *place < entries).ok_or_else(missing)
        };
        let (from, end) = match part {
            BranchPart::Before(entry) => (0, path.seen_before(place(entry)?)),
            BranchPart::After(Some(entry)) => (path.seen_before(place(entry)? + 1), shown),
            BranchPart::All | BranchPart::After(None) => (0, shown),
        };
        let mut branch = Self {
            conversation,
            range: from..shown,
            path,
            entries,
            before: end - from,
            forest: Forest::default(),
            all,
            summaries: HashMap::default(),
            carried,
            said: 0,
            unfolded: None,
            listed: listed.into_iter().filter(|(at, _)| *at < entries).map(|(_, files)| files).collect(),
            facts: Facts::default(),
            standing: Standing::default(),
            notes: Notes::default(),
            can_recall: true,
        };
        branch.forest = branch.forest();
        branch.load_needed(view)?;
        Ok(branch)
    }

    /// Adds summaries made since. The branch's messages do not change during a compaction.
    pub(super) fn refreshed(mut self, view: &View<'_>) -> Result<Self> {
        // So that the summaries need not be copied.
        self.forest = Forest::default();
        self.all.refresh(view, &self.path)?;
        self.forest = self.forest();
        self.load_needed(view)?;
        Ok(self)
    }

    /// The valid summaries before the kept tail.
    fn forest(&self) -> Forest {
        if self.range.start == 0 {
            return self.all.trees.before(self.before);
        }
        let ids: Vec<MessageId> = self.before().iter().map(|message| message.seen.id).collect();
        Forest::new(&ids, self.all.trees.nodes())
    }

    /// Loads the summaries that may be shown or condensed: few, even of a long history.
    fn load_needed(&mut self, view: &View<'_>) -> Result<()> {
        let groups = self.forest.degraded_groups().into_iter().flat_map(|(_, sources)| sources);
        let needed: Vec<SummaryId> = groups.chain(self.frontier_ids()).collect();
        self.load(view, needed)
    }

    fn load(&mut self, view: &View<'_>, ids: impl IntoIterator<Item = SummaryId>) -> Result<()> {
        for id in ids {
            if let Entry::Vacant(free) = self.summaries.entry(id) {
                free.insert(view.summaries().summary(id)?);
            }
        }
        Ok(())
    }

    /// Loads what only the finished block needs: message counts, the state of the work, and the summaries
    /// that no session file has yet. Also returns the facts of leaf summaries that were extracted only now,
    /// to be recorded.
    pub(super) fn finish(
        mut self,
        view: &View<'_>,
        memory: &Memory,
        redact: bool,
    ) -> Result<(Self, Vec<Found>)> {
        self.said = view.messages().said_in(self.conversation)?;
        let mut found = Vec::new();
        let mut facts = Facts::default();
        self.listed.iter().for_each(|files| facts.list(0, files));
        for piece in self.frontier() {
            let Piece::Summary(id, span) = piece else { continue };
            facts.join(self.facts_below(view, id, &mut found)?.as_ref(), span.start);
        }
        self.facts = facts;
        self.standing = self.standing(view, memory, redact)?;
        memory.learn(&self.path, &self.all);
        let new = self.uncarried();
        let sources = new.iter().filter_map(|id| self.sources(*id));
        let needed: Vec<SummaryId> = sources.flatten().chain(&new).copied().collect();
        self.load(view, needed)?;
        Ok((self, found))
    }

    fn standing(&mut self, view: &View<'_>, memory: &Memory, redact: bool) -> Result<Standing> {
        let newest = self.newest_leaf();
        self.load(view, newest)?;
        let quotes = self.frontier().into_iter().filter_map(|piece| match piece {
            Piece::Summary(id, span) => Some((span.start, self.summary(id)?.quotes.clone())),
            Piece::Message(_) => None,
        });
        let quotes =
            quotes.flat_map(|(at, quotes)| quotes.into_iter().map(move |quote| (at, quote.kind, quote.text)));
        Standing::of(&StandingInputs {
            view,
            visible: self.visible(),
            before: self.before,
            facts: &self.facts,
            quotes: quotes.collect(),
            newest: newest.and_then(|id| self.summary(id)).map(|summary| summary.text.as_str()),
            folder: memory.folder.as_deref(),
            redact,
        })
    }

    /// The leaf summary of the newest messages.
    fn newest_leaf(&self) -> Option<SummaryId> {
        let mut newest = *self.frontier_ids().last()?;
        while let Some(Sources::Summaries(sources)) = self.forest.node(newest).map(|node| &node.sources) {
            newest = *sources.last()?;
        }
        Some(newest)
    }

    /// The facts of the messages below a summary. Those of leaf summaries extracted only now are added to
    /// `found`.
    fn facts_below(&mut self, view: &View<'_>, id: SummaryId, found: &mut Vec<Found>) -> Result<Arc<Facts>> {
        if let Some(known) = self.all.facts.get(&id) {
            return Ok(Arc::clone(known));
        }
        let mut facts = Facts::default();
        match self.forest.node(id).map(|node| node.sources.clone()) {
            Some(Sources::Summaries(sources)) => {
                let mut offset = 0;
                for source in sources {
                    facts.join(self.facts_below(view, source, found)?.as_ref(), offset);
                    offset += self.length(source);
                }
            }
            Some(Sources::Messages(messages)) => match view.summaries().facts_of(id)? {
                Some(known) => facts = known,
                None => {
                    let read = |id: &MessageId| Ok(Message::parse(&view.messages().json_of(*id)?));
                    let read = messages.iter().map(read).collect::<Result<Vec<_>>>()?;
                    facts = Facts::of(read.iter().enumerate());
                    // After a purge, its row may belong to another summary.
                    if view.summaries().sources(id)? == Sources::Messages(messages) {
                        found.push((id, view.summaries().summary(id)?.hash, facts.clone()));
                    }
                }
            },
            None => {}
        }
        let facts = Arc::new(facts);
        Arc::make_mut(&mut self.all.facts).insert(id, Arc::clone(&facts));
        Ok(facts)
    }

    /// The number of messages that a summary covers.
    fn length(&self, id: SummaryId) -> usize {
        match self.forest.node(id).map(|node| &node.sources) {
            Some(Sources::Messages(messages)) => messages.len(),
            Some(Sources::Summaries(sources)) => sources.iter().map(|source| self.length(*source)).sum(),
            None => 0,
        }
    }

    /// The summaries that no compaction on this branch carries, including those outside the frontier, since
    /// another branch may use them.
    fn uncarried(&self) -> Vec<SummaryId> {
        // Sources come first.
        self.forest.held_but(|id| self.carried.get(&id).is_some_and(|at| *at < self.entries))
    }

    /// Context for summarizing from the message at `start`: the messages directly before it, and the user's
    /// last request, however far above.
    pub(super) fn orientation(&self, start: usize, most: usize) -> Vec<Visible> {
        let before = &self.visible()[..start];
        let near = &before[before.len().saturating_sub(most)..];
        let asked = |messages: &[Visible]| messages.iter().rposition(|message| message.seen.role == "user");
        match asked(&before[..before.len() - near.len()]) {
            Some(at) if asked(near).is_none() => [&before[at..=at], near].concat(),
            _ => near.to_vec(),
        }
    }

    /// The visible messages since the last compaction, which were only appended to the context.
    pub(super) fn since_compaction(&self) -> &[Visible] {
        let last = self.path.seen_before(self.path.compaction_before(self.entries)).max(self.range.start);
        &self.path.visible()[last..self.range.end]
    }

    /// The summaries of the frontier, oldest first.
    pub(super) fn frontier_summaries(&self) -> Vec<StoredSummary> {
        self.frontier_ids().into_iter().filter_map(|id| self.summary(id).cloned()).collect()
    }

    /// How many visible messages precede the current context, which starts at `first`: the entry that the
    /// last compaction left raw. An entry outside the branch hides nothing.
    pub(super) fn shown_from(&self, view: &View<'_>, first: Option<&str>) -> Result<usize> {
        let Some(first) = first else { return Ok(0) };
        let place = place(view, &self.path, self.conversation, first)?;
        Ok(place.filter(|place| *place < self.entries).map_or(0, |place| self.path.seen_before(place)))
    }

    /// The entry of the user's last message, if Pi's cut would leave nothing visible. That happens when a
    /// turn larger than the tail ends with a failed message that was hidden; the user's request must stay.
    /// `None` if the turn takes more than `room` tokens.
    pub(super) fn hidden_request(&self, room: usize) -> Option<&str> {
        let visible = self.visible();
        if self.before < visible.len() {
            return None;
        }
        let request = visible.iter().rposition(|message| message.seen.role == "user")?;
        let turn: usize = visible[request..].iter().map(|message| message.seen.tokens).sum();
        (turn <= room).then_some(visible[request].entry_id.as_str())
    }

    /// All visible messages, including the kept tail.
    pub(super) fn visible(&self) -> &[Visible] {
        &self.path.visible()[self.range.clone()]
    }

    /// The visible messages before the kept tail.
    pub(super) fn before(&self) -> &[Visible] {
        &self.visible()[..self.before]
    }

    pub(super) fn has_summaries(&self) -> bool {
        !self.forest.is_empty()
    }

    pub(super) fn frontier(&self) -> Vec<Piece> {
        self.forest.frontier()
    }

    pub(super) fn summary(&self, id: SummaryId) -> Option<&StoredSummary> {
        self.summaries.get(&id)
    }

    /// The summaries that this one was condensed from.
    pub(super) fn sources(&self, id: SummaryId) -> Option<&[SummaryId]> {
        match &self.forest.node(id)?.sources {
            Sources::Summaries(sources) => Some(sources),
            Sources::Messages(_) => None,
        }
    }

    /// The spans of the degraded leaf summaries that the frontier is made from. Others are not worth paying
    /// for.
    pub(super) fn degraded_spans(&self) -> Vec<Span> {
        let mut degraded = self.forest.degraded_leaves();
        if !degraded.is_empty() {
            let used = self.used();
            degraded.retain(|id| used.contains(id));
        }
        degraded.into_iter().filter_map(|id| self.forest.span(id).cloned()).collect()
    }

    /// The degraded leaf summary that covers these messages.
    pub(super) fn degraded_leaf_over(&self, chunk: &Span) -> Option<SummaryId> {
        let covers = |id: &SummaryId| {
            self.forest.span(*id).is_some_and(|span| span.start <= chunk.start && chunk.end <= span.end)
        };
        self.forest.degraded_leaves().into_iter().find(covers)
    }

    /// The `spans` that no model's leaf summary covers.
    pub(super) fn without_sound(&self, mut spans: Vec<Span>) -> Vec<Span> {
        if !spans.is_empty() {
            let sound = self.forest.sound_leaves();
            spans.retain(|span| !sound.contains(span));
        }
        spans
    }

    /// The frontier and everything below it.
    fn used(&self) -> HashSet<SummaryId> {
        self.forest.closure(self.frontier_ids()).into_iter().collect()
    }

    /// The depths that have valid degraded condensed summaries.
    pub(super) fn degraded_depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> =
            self.forest.degraded_groups().into_iter().map(|(depth, _)| depth).collect();
        depths.dedup();
        depths
    }

    /// The sources of the degraded condensed summaries of a depth.
    pub(super) fn degraded_groups(&self, depth: u32) -> Vec<Vec<SummaryId>> {
        let groups = self.forest.degraded_groups().into_iter();
        groups.filter(|(at, _)| *at == depth).map(|(_, children)| children).collect()
    }

    /// The oldest summaries of each unbroken run of `depth` in the frontier, in groups of `threshold`, while
    /// more than that many remain.
    pub(super) fn groups(&self, depth: u32, threshold: usize) -> Vec<Vec<SummaryId>> {
        let size = threshold.max(2);
        let groups = |run: Vec<SummaryId>| {
            let most = run.len().saturating_sub(1) / size;
            run.chunks(size).take(most).map(<[_]>::to_vec).collect::<Vec<_>>()
        };
        self.runs(depth).into_iter().flat_map(groups).collect()
    }

    /// What to condense if the block does not fit: the oldest of the shallowest run of several, otherwise the
    /// oldest two of any depth. Takes only as many groups of that run as are certainly needed, since a group
    /// frees at most its own size. Empty if only one piece is left.
    pub(super) fn groups_under_pressure(&self, threshold: usize, budget: usize) -> Vec<Vec<SummaryId>> {
        let pieces = self.frontier_ids();
        let depths: BTreeSet<u32> = pieces.iter().map(|id| self.depth(*id)).collect();
        let run = depths.into_iter().flat_map(|depth| self.runs(depth)).find(|run| run.len() > 1);
        let run = run.unwrap_or_else(|| pieces.iter().copied().take(2).collect());
        let tokens = |ids| self.tokens_of(ids);
        let excess = tokens(&pieces).saturating_sub(budget);
        let mut freed = 0;
        let mut groups: Vec<Vec<SummaryId>> = Vec::new();
        for group in run.chunks(threshold.max(2)).filter(|group| group.len() > 1) {
            if !groups.is_empty() && freed + tokens(group) > excess {
                break;
            }
            freed += tokens(group);
            groups.push(group.to_vec());
        }
        groups
    }

    /// Tokens of these summaries' texts.
    fn tokens_of(&self, ids: &[SummaryId]) -> usize {
        ids.iter().filter_map(|id| self.summary(*id)).map(|summary| summary.tokens).sum()
    }

    /// The number of frontier summaries with this depth.
    pub(super) fn at_depth(&self, depth: u32) -> usize {
        self.frontier_ids().into_iter().filter(|id| self.depth(*id) == depth).count()
    }

    fn frontier_ids(&self) -> Vec<SummaryId> {
        ids_of(self.frontier())
    }

    /// The unbroken runs of frontier summaries of one depth.
    fn runs(&self, depth: u32) -> Vec<Vec<SummaryId>> {
        let mut runs: Vec<Vec<SummaryId>> = vec![Vec::new()];
        for piece in self.frontier() {
            match (piece, runs.last_mut()) {
                (Piece::Summary(id, _), Some(run)) if self.depth(id) == depth => run.push(id),
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn depth(&self, id: SummaryId) -> u32 {
        self.forest.node(id).map_or(0, |node| node.depth)
    }
}

/// The summaries among `pieces`, in order.
fn ids_of(pieces: Vec<Piece>) -> Vec<SummaryId> {
    let summary = |piece| match piece {
        Piece::Summary(id, _) => Some(id),
        Piece::Message(_) => None,
    };
    pieces.into_iter().filter_map(summary).collect()
}

/// The index of `entry` on a branch; `None` if it is elsewhere.
pub(super) fn place(
    view: &View<'_>,
    path: &Path,
    conversation: ConversationId,
    entry: &str,
) -> Result<Option<usize>> {
    Ok(view.messages().entry_row(conversation, entry)?.and_then(|row| path.place(row)))
}
