//! One branch with the summaries that hold on it: what every step of a compaction looks at, read anew after each.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::assembler::{Block, Shown};
use crate::dag::{BranchEntry, Forest, Node, Piece, Sources, Span, Step, Visible, visible};
use crate::error::{Error, Result};
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::model::{CompactionDetails, Files, Message, State, SummaryRecord};
use crate::store::{StoredSummary, View};

/// What the block of a compaction is the history of.
pub(super) const HISTORY: &str = "Conversation History";

/// A branch, as far as it is to be compacted.
pub(super) struct Branch {
    conversation: ConversationId,
    /// All visible messages, the kept tail included.
    pub visible: Vec<Visible>,
    /// How many of them come before the kept tail.
    before: usize,
    forest: Forest,
    summaries: HashMap<SummaryId, StoredSummary>,
    /// Summaries that an earlier compaction on this branch carries.
    carried: HashSet<SummaryId>,
    /// How many of the visible messages stand before the last compaction of whatever kind.
    compacted: usize,
    /// Messages stored of the session; zero until [`Branch::finish`].
    stored: usize,
    /// What the block shows in place of the frontier, once that is decided.
    unfolded: Option<Vec<Piece>>,
    /// What compactions of Pi's own list; from [`Branch::finish`] on, what all messages name too.
    files: Files,
}

impl Branch {
    /// The branch that ends with `leaf`; what comes before `first_kept` is to be compacted.
    ///
    /// # Errors
    /// When the store can't be read, or `first_kept` is not on the branch.
    pub(super) fn read(
        view: &View<'_>,
        conversation: ConversationId,
        leaf: &str,
        first_kept: &str,
    ) -> Result<Self> {
        let entries = view.branch(conversation, leaf)?;
        let kept = position(&entries, first_kept, leaf)?;
        let visible = visible(&entries);
        let before = visible.iter().take_while(|message| message.index < kept).count();
        Self::of(view, conversation, leaf, &entries, visible, before)
    }

    /// What of the branch that ends with `leaf` comes after the entry `ancestor`, or all of it: a branch that is being
    /// left, to be told of as a whole.
    ///
    /// # Errors
    /// As [`Branch::read`].
    pub(super) fn read_after(
        view: &View<'_>,
        conversation: ConversationId,
        leaf: &str,
        ancestor: Option<&str>,
    ) -> Result<Self> {
        let entries = view.branch(conversation, leaf)?;
        let from = match ancestor {
            Some(ancestor) => position(&entries, ancestor, leaf)? + 1,
            None => 0,
        };
        let left: Vec<Visible> =
            visible(&entries).into_iter().filter(|message| message.index >= from).collect();
        let before = left.len();
        Self::of(view, conversation, leaf, &entries, left, before)
    }

    fn of(
        view: &View<'_>,
        conversation: ConversationId,
        leaf: &str,
        entries: &[BranchEntry],
        visible: Vec<Visible>,
        before: usize,
    ) -> Result<Self> {
        let ids: Vec<MessageId> = visible[..before].iter().map(|message| message.seen.id).collect();
        let forest = Forest::new(&ids, view.nodes_on(&ids)?);
        let mut summaries = HashMap::new();
        for id in forest.holding() {
            summaries.insert(id, view.summary(id)?);
        }
        let carried = view.carried_on(conversation, leaf)?.into_iter().collect();
        let mut files = view.files_listed(conversation)?;
        let mut listed = Files::default();
        entries.iter().filter_map(|entry| files.remove(&entry.row)).for_each(|files| listed.extend(files));
        let last = entries.iter().rposition(|entry| entry.step == Step::Compaction).unwrap_or_default();
        Ok(Self {
            conversation,
            compacted: visible.iter().take_while(|message| message.index < last).count(),
            visible,
            before,
            forest,
            summaries,
            carried,
            stored: 0,
            unfolded: None,
            files: listed,
        })
    }

    /// The same branch with the summaries that hold on it by now. What it shows stands still while it is compacted, and a
    /// summary never changes: neither is read again.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(super) fn refreshed(mut self, view: &View<'_>) -> Result<Self> {
        let ids: Vec<MessageId> = self.before().iter().map(|message| message.seen.id).collect();
        self.forest = Forest::new(&ids, view.nodes_on(&ids)?);
        let mut known = std::mem::take(&mut self.summaries);
        for id in self.forest.holding() {
            let summary = known.remove(&id).map_or_else(|| view.summary(id), Ok)?;
            self.summaries.insert(id, summary);
        }
        Ok(self)
    }

    /// Reads what only the finished block asks for: how much is stored, and which files the messages touched. The files
    /// of a leaf summary are looked up once; those that were not known yet are given too, to be noted.
    pub(super) fn finish(mut self, view: &View<'_>) -> Result<(Self, Vec<(SummaryId, Files)>)> {
        self.stored = view.totals(self.conversation)?.messages;
        let roles: HashMap<MessageId, &str> =
            self.before().iter().map(|message| (message.seen.id, message.seen.role.as_str())).collect();
        let mut files = self.files.clone();
        let mut found = Vec::new();
        for id in self.forest.closure(self.frontier_ids()) {
            match (self.summary(id).and_then(|summary| summary.files.clone()), self.forest.node(id)) {
                (Some(known), _) => files.extend(known),
                (None, Some(Node { sources: Sources::Messages(messages), .. })) => {
                    let mut new = Files::default();
                    for message in messages {
                        if matches!(roles.get(message), Some(&"assistant" | &"branchSummary")) {
                            new.extend(Message::parse(&view.message(*message)?.json).files());
                        }
                    }
                    files.extend(new.clone());
                    found.push((id, new));
                }
                _ => {}
            }
        }
        self.files = files;
        Ok((self, found))
    }

    /// What to tell the summariser of what comes before the message at `start`: the user's last request, which may be far
    /// above, and the messages right before.
    pub(super) fn orientation(&self, start: usize, most: usize) -> Vec<Visible> {
        let before = &self.visible[..start];
        let near = &before[before.len().saturating_sub(most)..];
        let asked = |messages: &[Visible]| messages.iter().rposition(|message| message.seen.role == "user");
        match asked(&before[..before.len() - near.len()]) {
            Some(at) if asked(near).is_none() => [&before[at..=at], near].concat(),
            _ => near.to_vec(),
        }
    }

    /// The visible messages since the last compaction: those that stand in the context one after the other.
    pub(super) fn since_compaction(&self) -> &[Visible] {
        &self.visible[self.compacted..]
    }

    /// The summaries of the frontier, oldest first.
    pub(super) fn frontier_summaries(&self) -> Vec<StoredSummary> {
        self.frontier_ids().into_iter().filter_map(|id| self.summary(id).cloned()).collect()
    }

    /// The entry of the user's last message, if Pi's cut would leave nothing that is visible: so it does when a turn that
    /// is larger than the tail ends with a message that failed and was hidden. What the user asked for must stay.
    /// None if the turn takes more than `room` tokens.
    pub(super) fn hidden_request(&self, room: usize) -> Option<&str> {
        if self.before < self.visible.len() {
            return None;
        }
        let request = self.visible.iter().rposition(|message| message.seen.role == "user")?;
        let turn: usize = self.visible[request..].iter().map(|message| message.seen.tokens).sum();
        (turn <= room).then_some(self.visible[request].entry_id.as_str())
    }

    /// The visible messages before the kept tail.
    pub(super) fn before(&self) -> &[Visible] {
        &self.visible[..self.before]
    }

    pub(super) fn has_summaries(&self) -> bool {
        !self.summaries.is_empty()
    }

    pub(super) fn frontier(&self) -> Vec<Piece> {
        self.forest.frontier()
    }

    pub(super) fn summary(&self, id: SummaryId) -> Option<&StoredSummary> {
        self.summaries.get(&id)
    }

    /// Where degraded leaf summaries hold that the frontier is made from; what it does not need is not paid for.
    pub(super) fn degraded_spans(&self) -> Vec<Span> {
        let used = self.used();
        let degraded = self.forest.degraded_leaves().into_iter().filter(|id| used.contains(id));
        degraded.filter_map(|id| self.forest.span(id).cloned()).collect()
    }

    /// The frontier and what it was made from.
    fn used(&self) -> HashSet<SummaryId> {
        self.forest.closure(self.frontier_ids()).into_iter().collect()
    }

    /// The depths at which degraded condensed summaries hold.
    pub(super) fn degraded_depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> =
            self.forest.degraded_groups().into_iter().map(|(depth, _)| depth).collect();
        depths.dedup();
        depths
    }

    /// What the degraded condensed summaries of a depth were made from.
    pub(super) fn degraded_groups(&self, depth: u32) -> Vec<Vec<SummaryId>> {
        let groups = self.forest.degraded_groups().into_iter();
        groups.filter(|(at, _)| *at == depth).map(|(_, children)| children).collect()
    }

    /// The oldest summaries of each unbroken run of `depth` in the frontier, `threshold` at a time, while more than that
    /// many are left.
    pub(super) fn groups(&self, depth: u32, threshold: usize) -> Vec<Vec<SummaryId>> {
        let size = threshold.max(2);
        let mut groups = Vec::new();
        for run in self.runs(depth) {
            let mut rest = run.as_slice();
            while rest.len() > size {
                let (group, later) = rest.split_at(size);
                groups.push(group.to_vec());
                rest = later;
            }
        }
        groups
    }

    /// What to condense when the block would not fit: the oldest of the shallowest run of several, else the oldest two
    /// of whatever depth; as many groups of that run as must go in any case, since a group can't free more than it takes.
    /// None when there is but one piece left.
    pub(super) fn groups_under_pressure(&self, threshold: usize, budget: usize) -> Vec<Vec<SummaryId>> {
        let pieces = self.frontier_ids();
        let depths: BTreeSet<u32> = pieces.iter().map(|id| self.depth(*id)).collect();
        let run = depths.into_iter().flat_map(|depth| self.runs(depth)).find(|run| run.len() > 1);
        let run = run.unwrap_or_else(|| pieces.iter().copied().take(2).collect());
        let tokens = |ids: &[SummaryId]| -> usize {
            ids.iter().filter_map(|id| self.summary(*id)).map(|summary| summary.tokens).sum()
        };
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

    /// How many summaries of the frontier have this depth.
    pub(super) fn at_depth(&self, depth: u32) -> usize {
        self.frontier_ids().into_iter().filter(|id| self.depth(*id) == depth).count()
    }

    pub(super) fn fits(&self, budget: usize) -> bool {
        let shown = self.shown(&self.frontier());
        self.block_of(HISTORY, &shown, None, budget).fits()
    }

    /// Decides to show, in place of condensed summaries, what they were made from, as far as a block of `title` has room for all
    /// of it: what was condensed to keep the DAG shallow is not condensed for the model too. The deepest come first, since least
    /// is left in them, and of equals the newest.
    pub(super) fn unfold(&mut self, title: &str, focus: Option<&str>, budget: usize) {
        let mut pieces = self.frontier();
        let mut tried = HashSet::new();
        loop {
            let open = pieces.iter().enumerate().filter_map(|(at, piece)| match piece {
                Piece::Summary(id, _) if !tried.contains(id) => Some((self.depth(*id), at, *id)),
                _ => None,
            });
            let Some((_, at, id)) = open.max_by_key(|(depth, at, _)| (*depth, *at)) else { break };
            tried.insert(id);
            let Some(sources) = self.unfolded_at(&pieces[at]) else { continue };
            let mut opened = pieces.clone();
            opened.splice(at..=at, sources);
            let shown = self.shown(&opened);
            if self.block_of(title, &shown, focus, budget).is_whole() {
                pieces = opened;
            }
        }
        self.unfolded = Some(pieces);
    }

    /// What a condensed summary was made from. None for any other piece, and where that is better not shown.
    fn unfolded_at(&self, piece: &Piece) -> Option<Vec<Piece>> {
        let Piece::Summary(id, _) = piece else { return None };
        let Sources::Summaries(sources) = &self.forest.node(*id)?.sources else { return None };
        let source = |id: &SummaryId| {
            let fit = self.summary(*id).is_some_and(|summary| !summary.degraded);
            fit.then(|| Some(Piece::Summary(*id, self.forest.span(*id)?.clone()))).flatten()
        };
        sources.iter().map(source).collect()
    }

    /// The pieces of the block, in order.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        self.unfolded.clone().unwrap_or_else(|| self.frontier())
    }

    /// The block of `title`, with what was said of the user's own question.
    pub(super) fn block(&self, title: &str, focus: Option<&str>, budget: usize) -> String {
        let shown = self.shown(&self.pieces());
        self.block_of(title, &shown, focus, budget).render()
    }

    /// What a session file alone has to tell: the summaries that no earlier entry carries, and the span.
    pub(super) fn details(&self) -> CompactionDetails {
        let shown = ids_of(self.pieces());
        let entry_of: HashMap<MessageId, &str> =
            self.before().iter().map(|message| (message.seen.id, message.entry_id.as_str())).collect();
        // Also what is not in the frontier now: another branch may show it.
        let new = self.forest.closure(self.forest.holding()).into_iter();
        let new = new.filter(|id| !self.carried.contains(id));
        CompactionDetails {
            lcm: CompactionDetails::FORMAT,
            summaries: new.filter_map(|id| self.record(id, &entry_of)).collect(),
            frontier: shown.iter().filter_map(|id| Some(self.summary(*id)?.hash.to_string())).collect(),
            covered: shown.iter().filter_map(|id| self.forest.span(*id)).map(Span::len).sum(),
            read_files: self.files.only_read().cloned().collect(),
            modified_files: self.files.modified.iter().cloned().collect(),
        }
    }

    fn record(&self, id: SummaryId, entry_of: &HashMap<MessageId, &str>) -> Option<SummaryRecord> {
        let (summary, node) = (self.summary(id)?, self.forest.node(id)?);
        let sources = match &node.sources {
            Sources::Messages(messages) => {
                messages.iter().map(|id| entry_of.get(id).map(ToString::to_string)).collect::<Option<_>>()?
            }
            Sources::Summaries(sources) => {
                sources.iter().map(|id| Some(self.summary(*id)?.hash.to_string())).collect::<Option<_>>()?
            }
        };
        Some(SummaryRecord {
            id: summary.hash.to_string(),
            depth: summary.depth,
            text: summary.text.clone(),
            tokens: summary.tokens,
            state: if summary.degraded { State::Degraded } else { State::Ok },
            model: summary.model.clone(),
            prompt_version: summary.prompt_version,
            created_at: summary.created_at,
            usage: summary.usage.as_ref().and_then(|usage| serde_json::from_str(usage).ok()),
            quotes: summary.quotes.clone(),
            sources,
        })
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
        self.summaries.get(&id).map_or(0, |summary| summary.depth)
    }

    fn shown(&self, pieces: &[Piece]) -> Vec<Shown> {
        let shown = |piece: &Piece| {
            let Piece::Summary(id, span) = piece else { return None };
            let summary = self.summary(*id)?;
            Some(Shown {
                hash: summary.hash,
                depth: summary.depth,
                degraded: summary.degraded,
                text: summary.text.clone(),
                quotes: summary.quotes.clone(),
                span: span.clone(),
                from_time: summary.from_time,
                to_time: summary.to_time,
            })
        };
        pieces.iter().filter_map(shown).collect()
    }

    fn block_of<'a>(
        &'a self,
        title: &'a str,
        frontier: &'a [Shown],
        focus: Option<&'a str>,
        budget: usize,
    ) -> Block<'a> {
        Block {
            title,
            stored: self.stored,
            summaries: self.summaries.len(),
            depth: self.summaries.values().map(|summary| summary.depth).max().unwrap_or_default(),
            messages: self.before,
            frontier,
            focus,
            files: &self.files,
            budget,
        }
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

/// Where `entry` stands among `entries`, which end with `leaf`.
fn position(entries: &[BranchEntry], entry: &str, leaf: &str) -> Result<usize> {
    entries
        .iter()
        .position(|at| at.entry_id == entry)
        .ok_or_else(|| Error::store(format!("the entry {entry} is not on the branch of {leaf}")))
}
