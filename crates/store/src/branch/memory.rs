//! An open session's cache of its branch, so that a compaction reads only what is new.
//!
//! Entries, messages and summaries are only added, so the cache stays valid, and newer rows are read when
//! needed, whoever wrote them. The store counts any other change to its rows, in any process
//! ([`Messages::rewritten`](crate::Messages::rewritten)); then everything is read again. The same
//! happens when edits are added or removed, because they may change much earlier messages.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::View;
use lcm_model::Files;
use lcm_model::dag::{Path, Trees, Visible};
use lcm_model::error::Result;
use lcm_model::facts::Facts;
use lcm_model::ids::{ConversationId, EntryId, MessageId, SummaryId};
use lcm_model::locks::lock;

/// Lives as long as the session, and is shared by all work on it. 100,000 entries take about 30 MB, a fraction of what
/// Pi itself keeps of them.
#[derive(Default)]
pub struct Memory {
    known: Mutex<Option<Known>>,
    /// The project's folder, whose files are compared with what the agent saw.
    pub folder: Option<PathBuf>,
}

/// The cache of one branch.
#[derive(Clone)]
pub struct Known {
    conversation: ConversationId,
    /// The store's counter at the time of reading.
    rewritten: i64,
    /// The branch, and maybe more: a path that goes on below the leaf is kept whole, since the next read is of its end
    /// again.
    pub path: Arc<Path>,
    /// The number of the path's entries down to the leaf.
    pub entries: usize,
    /// Summaries that compactions on the path carry, with the index of the first such entry.
    pub carried: Arc<HashMap<SummaryId, usize>>,
    /// Files that compactions by others on the path list, with the indexes of their entries.
    pub listed: Vec<(usize, Files)>,
    pub summaries: Summaries,
}

/// The summaries that may be valid on a branch.
#[derive(Clone)]
pub struct Summaries {
    /// The path's messages, and the summaries of them.
    pub trees: Arc<Trees>,
    /// The facts of the messages below a summary, as far as computed.
    pub facts: Arc<HashMap<SummaryId, Arc<Facts>>>,
    /// The last summary of the store that was examined.
    newest: SummaryId,
}

impl Memory {
    /// Returns the empty cache of a session in this folder.
    pub fn of(folder: &std::path::Path) -> Self {
        Self { folder: Some(folder.to_owned()), ..Self::default() }
    }

    /// Reads the branch that ends at `leaf`.
    pub fn read(&self, view: &View<'_>, conversation: ConversationId, leaf: &str) -> Result<Known> {
        let rewritten = view.messages().rewritten()?;
        // Take it out, so that continuing it needs no copy.
        let before = lock(&self.known).take();
        let before =
            before.filter(|known| known.conversation == conversation && known.rewritten == rewritten);
        let known = match before.map(|known| known.gone_on(view, leaf)).transpose()?.flatten() {
            Some(known) => known,
            None => Known::read(view, conversation, leaf, rewritten)?,
        };
        *lock(&self.known) = Some(known.clone());
        Ok(known)
    }

    /// Stores what was computed for the branch meanwhile, unless another was read since.
    pub fn learn(&self, path: &Arc<Path>, summaries: &Summaries) {
        if let Some(known) = lock(&self.known).as_mut().filter(|known| Arc::ptr_eq(&known.path, path)) {
            known.summaries.clone_from(summaries);
        }
    }
}

impl Known {
    fn read(view: &View<'_>, conversation: ConversationId, leaf: &str, rewritten: i64) -> Result<Self> {
        let entries = view.messages().branch(conversation, leaf)?;
        let mut known = Self {
            conversation,
            rewritten,
            path: Arc::new(Path::of(&entries)),
            entries: entries.len(),
            carried: Arc::default(),
            listed: Vec::new(),
            summaries: Summaries { trees: Arc::default(), facts: Arc::default(), newest: SummaryId(0) },
        };
        known.note_compactions(view, entries.iter().map(|entry| entry.row))?;
        known.summaries.note(view, &known.path, 0)?;
        Ok(known)
    }

    /// Extends the cache to the branch that ends at `leaf`; `None` if it must be read again.
    fn gone_on(mut self, view: &View<'_>, leaf: &str) -> Result<Option<Self>> {
        let is_known = |entry| self.path.place(entry).is_some();
        let (Some(last), new) = view.messages().branch_since(self.conversation, leaf, is_known)? else {
            return Ok(None);
        };
        let Some(kept) = self.path.place(last).map(|at| at + 1) else { return Ok(None) };
        if new.is_empty() && !self.path.is_edited_from(kept) {
            self.entries = kept;
            self.summaries.refresh(view)?;
            return Ok(Some(self));
        }
        let (seen, is_cut) = (self.path.seen_before(kept), kept < self.path.entries());
        if !Arc::make_mut(&mut self.path).go_on(last, &new) {
            return Ok(None);
        }
        self.entries = self.path.entries();
        if is_cut {
            Arc::make_mut(&mut self.carried).retain(|_, at| *at < kept);
            self.listed.retain(|(at, _)| *at < kept);
            self.summaries.cut(&self.path.visible()[..seen]);
        }
        self.note_compactions(view, new.iter().map(|entry| entry.row))?;
        self.summaries.note(view, &self.path, seen)?;
        Ok(Some(self))
    }

    /// What the model sees down to the leaf, or would see without compactions.
    pub fn visible(&self) -> &[Visible] {
        &self.path.visible()[..self.path.seen_before(self.entries)]
    }

    fn note_compactions(&mut self, view: &View<'_>, entries: impl Iterator<Item = EntryId>) -> Result<()> {
        for entry in entries {
            let Some(place) = self.path.place(entry).filter(|at| self.path.is_compaction(*at)) else {
                continue;
            };
            self.listed.extend(view.summaries().listed_by(entry)?.map(|files| (place, files)));
            for summary in view.summaries().carried_by(entry)? {
                Arc::make_mut(&mut self.carried).entry(summary).or_insert(place);
            }
        }
        Ok(())
    }
}

impl Summaries {
    /// Adds the messages that are visible from position `from` on, and the summaries that start with one of them.
    fn note(&mut self, view: &View<'_>, path: &Path, from: usize) -> Result<()> {
        let seen: Vec<MessageId> = path.visible()[from..].iter().map(|seen| seen.seen.id).collect();
        let nodes = view.summaries().nodes_on(&seen)?;
        let trees = Arc::make_mut(&mut self.trees);
        trees.show(seen.into_iter());
        trees.add(nodes.into_iter().map(Arc::new));
        if from > 0 {
            return self.refresh(view);
        }
        self.newest = view.summaries().newest_summary()?;
        Ok(())
    }

    /// Adds the summaries made since.
    pub fn refresh(&mut self, view: &View<'_>) -> Result<()> {
        let newest = view.summaries().newest_summary()?;
        if newest != self.newest {
            let new = view.summaries().nodes_since(self.newest, |message| self.trees.shows(message))?;
            self.newest = newest;
            Arc::make_mut(&mut self.trees).add(new.into_iter().map(Arc::new));
        }
        Ok(())
    }

    /// Leaves only these messages.
    fn cut(&mut self, visible: &[Visible]) {
        let mut trees = Trees::default();
        trees.show(visible.iter().map(|seen| seen.seen.id));
        trees.add(self.trees.nodes());
        self.trees = Arc::new(trees);
    }
}
