//! A branch with its valid summaries: the input of every step of a compaction, refreshed after each.

mod render;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::passes::tokens_of;
use super::standing::{Standing, StandingInputs};
use super::{Session, redact};
use lcm_model::dag::{Forest, Path, Piece, Sources, Span, Visible};
use lcm_model::error::{Error, Result};
use lcm_model::facts::Facts;
use lcm_model::ids::{ConversationId, Hash, MessageId, SummaryId};
use lcm_model::{Files, Notes};
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
    /// The first entry of the kept tail, if there is one.
    pub kept: Option<String>,
    /// How many of these come before the current context, which its last compaction left raw.
    pub shown: usize,
    pub forest: Forest,
    all: Summaries,
    /// The summaries loaded so far.
    summaries: HashMap<SummaryId, StoredSummary>,
    /// Summaries that earlier compactions on this branch carry.
    carried: Arc<HashMap<SummaryId, usize>>,
    /// From [`Branch::finish`] on: the number of stored messages of the session.
    said: usize,
    /// From the block on: what it shows instead of the frontier, in order.
    pub pieces: Vec<Piece>,
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

/// The part of a branch to describe.
#[derive(Clone, Debug)]
pub(super) enum BranchPart {
    /// Everything before this entry.
    Before(String),
    /// Everything before Pi's cut, or before the user's last message if that would leave nothing visible and what
    /// follows takes at most `room` tokens: the request must stay. It happens when a turn larger than the tail ends
    /// with a failed message, which is hidden.
    PisCut { first_kept: String, room: usize },
    /// Everything, as the history of what follows.
    All,
    /// Everything after this entry, or all of the branch.
    After(Option<String>),
}

/// A leaf summary, its hash, and the facts extracted from its messages.
type Found = (SummaryId, Hash, Facts);

impl Session<'_> {
    /// Reads a part of the branch that ends at `leaf`, with the notes for the block. The context starts with the entry
    /// `shown_from`; one outside the branch hides nothing.
    ///
    /// # Errors
    /// When the store can't be read, or the branch has no such part.
    pub(super) async fn read(
        &self,
        leaf: &str,
        part: BranchPart,
        shown_from: Option<&str>,
    ) -> Result<Branch> {
        let (session, leaf, shown_from) =
            (self.conversation, leaf.to_owned(), shown_from.map(ToOwned::to_owned));
        let (memory, can_recall) = (Arc::clone(&self.memory), self.can_recall);
        let has_notes = self.settings.notes && !matches!(part, BranchPart::After(_));
        let redact = self.settings.redact;
        let read = move |view: &View<'_>| {
            let mut branch = Branch::read(view, &memory, session, &leaf, &part, shown_from.as_deref())?;
            branch.can_recall = can_recall;
            if has_notes {
                let notes = view.messages().notes(session, &leaf)?;
                branch.notes = if redact { notes.with_texts(redact::redacted) } else { notes };
            }
            Ok(branch)
        };
        self.store.read(read).await
    }
}

impl Branch {
    fn read(
        view: &View<'_>,
        memory: &Memory,
        conversation: ConversationId,
        leaf: &str,
        part: &BranchPart,
        shown_from: Option<&str>,
    ) -> Result<Self> {
        let known = memory.read(view, conversation, leaf)?;
        let shown = known.visible().len();
        let Known { path, entries, carried, listed, summaries: all, .. } = known;
        let found = |entry: &str| -> Result<Option<usize>> {
            let place = view.messages().entry_row(conversation, entry)?.and_then(|row| path.place(row));
            Ok(place.filter(|place| *place < entries))
        };
        let place = |entry: &str| {
            let missing = || Error::store(format!("the entry {entry} is not on the branch of {leaf}"));
            found(entry)?.ok_or_else(missing)
        };
        let shown_from = shown_from.map_or(Ok(None), found)?.map_or(0, |place| path.seen_before(place));
        let (from, end, kept) = match part {
            BranchPart::Before(entry) | BranchPart::PisCut { first_kept: entry, .. } => {
                (0, path.seen_before(place(entry)?), Some(entry.clone()))
            }
            BranchPart::After(Some(entry)) => (path.seen_before(place(entry)? + 1), shown, None),
            BranchPart::All | BranchPart::After(None) => (0, shown, None),
        };
        let mut branch = Self {
            conversation,
            range: from..shown,
            path,
            entries,
            before: end - from,
            kept,
            shown: shown_from.saturating_sub(from),
            forest: Forest::default(),
            all,
            summaries: HashMap::default(),
            carried,
            said: 0,
            pieces: Vec::new(),
            listed: listed.into_iter().filter(|(at, _)| *at < entries).map(|(_, files)| files).collect(),
            facts: Facts::default(),
            standing: Standing::default(),
            notes: Notes::default(),
            can_recall: true,
        };
        branch.forest = branch.forest();
        if let BranchPart::PisCut { room, .. } = part
            && branch.before == branch.visible().len()
            && let Some(request) = branch.visible().iter().rposition(|message| message.seen.role == "user")
            && tokens_of(&branch.visible()[request..]) <= *room
        {
            branch.keep_from(request);
        }
        branch.load_needed(view)?;
        Ok(branch)
    }

    /// Adds summaries made since. The branch's messages do not change during a compaction.
    pub(super) fn refreshed(mut self, view: &View<'_>) -> Result<Self> {
        // So that the summaries need not be copied.
        self.forest = Forest::default();
        self.all.refresh(view)?;
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
        let needed: Vec<SummaryId> = groups.chain(self.forest.frontier_summaries()).collect();
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
        for piece in self.forest.frontier() {
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
        let quotes = self.forest.frontier().into_iter().filter_map(|piece| match piece {
            Piece::Summary(id, span) => Some((span.start, self.summary(id)?.quotes.clone())),
            Piece::Message(_) => None,
        });
        let quotes =
            quotes.flat_map(|(at, quotes)| quotes.into_iter().map(move |quote| (at, quote.kind, quote.text)));
        let inputs = StandingInputs {
            view,
            visible: self.visible(),
            before: self.before,
            facts: &self.facts,
            quotes: quotes.collect(),
            newest: newest.and_then(|id| self.summary(id)).map(|summary| summary.text.as_str()),
            folder: memory.folder.as_deref(),
            redact,
        };
        inputs.standing()
    }

    /// The leaf summary of the newest messages.
    fn newest_leaf(&self) -> Option<SummaryId> {
        let mut newest = *self.forest.frontier_summaries().last()?;
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
                    let read = messages.iter().map(|id| view.messages().parsed(*id));
                    let read = read.collect::<Result<Vec<_>>>()?;
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

    /// The visible messages since the last compaction, which were only appended to the context.
    pub(super) fn since_compaction(&self) -> &[Visible] {
        let last = self.path.seen_before(self.path.compaction_before(self.entries)).max(self.range.start);
        &self.path.visible()[last..self.range.end]
    }

    pub(super) fn frontier_summaries(&self) -> Vec<StoredSummary> {
        self.forest.frontier_summaries().into_iter().filter_map(|id| self.summary(id).cloned()).collect()
    }

    /// Moves the start of the kept tail to the visible message at `at`. What its summaries need is loaded by
    /// [`Branch::refreshed`].
    pub(super) fn keep_from(&mut self, at: usize) {
        if at == self.before {
            return;
        }
        self.before = at;
        self.kept = self.visible().get(at).map(|message| message.entry_id.clone());
        self.forest = self.forest();
    }

    /// The position of this entry's message among the visible ones.
    pub(super) fn position(&self, entry: &str) -> Option<usize> {
        self.visible().iter().rposition(|message| message.entry_id == entry)
    }

    /// All visible messages, including the kept tail.
    pub(super) fn visible(&self) -> &[Visible] {
        &self.path.visible()[self.range.clone()]
    }

    /// The visible messages before the kept tail.
    pub(super) fn before(&self) -> &[Visible] {
        &self.visible()[..self.before]
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

    /// Tokens of these summaries' texts.
    pub(super) fn tokens_of(&self, ids: &[SummaryId]) -> usize {
        ids.iter().filter_map(|id| self.summary(*id)).map(|summary| summary.tokens).sum()
    }

    pub(super) fn depth(&self, id: SummaryId) -> u32 {
        self.forest.node(id).map_or(0, |node| node.depth)
    }
}
