//! One branch with the summaries that hold on it: what every step of a compaction looks at, read anew after each.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::assembler::{Block, Shown};
use crate::dag::{Forest, Piece, Sources, Span, Visible, visible};
use crate::error::{Error, Result};
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::model::{CompactionDetails, Files, Message, State, SummaryRecord};
use crate::store::{StoredSummary, View};

/// A branch, as far as it is to be compacted.
pub(super) struct Branch {
    /// All visible messages, the kept tail included.
    pub visible: Vec<Visible>,
    /// How many of them come before the kept tail.
    before: usize,
    forest: Forest,
    summaries: HashMap<SummaryId, StoredSummary>,
    /// Summaries that an earlier compaction on this branch carries.
    carried: HashSet<SummaryId>,
    /// Messages stored of the session; zero until [`Branch::finish`].
    stored: usize,
    /// Empty until [`Branch::finish`].
    files: Files,
}

impl Branch {
    pub(super) fn read(
        view: &View<'_>,
        conversation: ConversationId,
        leaf: &str,
        first_kept: &str,
    ) -> Result<Self> {
        let entries = view.branch(conversation, leaf)?;
        let kept = entries.iter().position(|entry| entry.entry_id == first_kept).ok_or_else(|| {
            Error::store(format!("the entry {first_kept}, which Pi keeps, is not on the branch of {leaf}"))
        })?;
        let visible = visible(&entries);
        let before = visible.iter().take_while(|message| message.index < kept).count();
        let ids: Vec<MessageId> = visible[..before].iter().map(|message| message.seen.id).collect();
        let forest = Forest::new(&ids, view.nodes_on(&ids)?);
        let mut summaries = HashMap::new();
        for id in forest.holding() {
            summaries.insert(id, view.summary(id)?);
        }
        let carried = view.carried_on(conversation, leaf)?.into_iter().collect();
        Ok(Self { visible, before, forest, summaries, carried, stored: 0, files: Files::default() })
    }

    /// Reads what only the finished block asks for, since it costs the length of the history: how much is stored, and
    /// which files the messages before the kept tail touched.
    pub(super) fn finish(mut self, view: &View<'_>, conversation: ConversationId) -> Result<Self> {
        self.stored = view.totals(conversation)?.messages;
        let said = self.visible[..self.before].iter().filter(|message| message.seen.role == "assistant");
        for message in said {
            self.files.extend(Message::parse(&view.message(message.seen.id)?.json).files());
        }
        Ok(self)
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
        let shown = self.shown();
        self.block_of(&shown, budget).fits()
    }

    pub(super) fn block(&self, budget: usize) -> String {
        let shown = self.shown();
        self.block_of(&shown, budget).render()
    }

    /// What a session file alone has to tell: the summaries that no earlier entry carries, and the span.
    pub(super) fn details(&self) -> CompactionDetails {
        let frontier = self.frontier_ids();
        let entry_of: HashMap<MessageId, &str> =
            self.before().iter().map(|message| (message.seen.id, message.entry_id.as_str())).collect();
        // Also what is not in the frontier now: another branch may show it.
        let new = self.forest.closure(self.forest.holding()).into_iter();
        let new = new.filter(|id| !self.carried.contains(id));
        CompactionDetails {
            lcm: CompactionDetails::FORMAT,
            summaries: new.filter_map(|id| self.record(id, &entry_of)).collect(),
            frontier: frontier.iter().filter_map(|id| Some(self.summary(*id)?.hash.to_string())).collect(),
            covered: frontier.iter().filter_map(|id| self.forest.span(*id)).map(Span::len).sum(),
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
            sources,
        })
    }

    fn frontier_ids(&self) -> Vec<SummaryId> {
        let summary = |piece| match piece {
            Piece::Summary(id, _) => Some(id),
            Piece::Message(_) => None,
        };
        self.frontier().into_iter().filter_map(summary).collect()
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

    fn shown(&self) -> Vec<Shown> {
        let shown = |piece| {
            let Piece::Summary(id, span) = piece else { return None };
            let summary = self.summary(id)?;
            Some(Shown {
                hash: summary.hash,
                depth: summary.depth,
                degraded: summary.degraded,
                text: summary.text.clone(),
                span,
                from_time: summary.from_time,
                to_time: summary.to_time,
            })
        };
        self.frontier().into_iter().filter_map(shown).collect()
    }

    fn block_of<'a>(&'a self, frontier: &'a [Shown], budget: usize) -> Block<'a> {
        Block {
            stored: self.stored,
            summaries: self.summaries.len(),
            depth: self.summaries.values().map(|summary| summary.depth).max().unwrap_or_default(),
            messages: self.before,
            frontier,
            files: &self.files,
            budget,
        }
    }
}
