//! An open session's cache of its branch, so that a compaction reads only what is new.
//!
//! Entries, messages and summaries are only added, so the cache stays valid, and newer rows are read when
//! needed, whoever wrote them. The store counts any other change to its rows, in any process
//! ([`Messages::rewritten`](crate::store::Messages::rewritten)); then everything is read again. The same
//! happens when edits are added or removed, because they may change much earlier messages.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::dag::{Node, Path};
use crate::error::Result;
use crate::facts::Facts;
use crate::ids::{ConversationId, EntryId, MessageId, SummaryId};
use crate::model::Files;
use crate::store::View;
use crate::sync::lock;

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
    pub path: Arc<Path>,
    /// Summaries that compactions on the branch carry, with the index of the first such entry.
    pub carried: Arc<HashMap<SummaryId, usize>>,
    /// Files that compactions by others list, with the indexes of their entries.
    pub listed: Vec<(usize, Files)>,
    pub summaries: Summaries,
}

/// The summaries that may be valid on a branch.
#[derive(Clone)]
pub struct Summaries {
    /// By depth, because sources have a lower depth than what is made from them.
    pub nodes: Arc<BTreeMap<(u32, SummaryId), Arc<Node>>>,
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
        let known = match before {
            Some(known) => known.gone_on(view, leaf)?,
            None => None,
        };
        let known = match known {
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
            carried: Arc::default(),
            listed: Vec::new(),
            summaries: Summaries { nodes: Arc::default(), facts: Arc::default(), newest: SummaryId(0) },
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
        if kept == self.path.entries() && new.is_empty() {
            self.summaries.refresh(view, &self.path)?;
            return Ok(Some(self));
        }
        let (seen, is_cut) = (self.path.seen_before(kept), kept < self.path.entries());
        if !Arc::make_mut(&mut self.path).go_on(last, &new) {
            return Ok(None);
        }
        if is_cut {
            Arc::make_mut(&mut self.carried).retain(|_, at| *at < kept);
            self.listed.retain(|(at, _)| *at < kept);
        }
        self.note_compactions(view, new.iter().map(|entry| entry.row))?;
        self.summaries.note(view, &self.path, seen)?;
        Ok(Some(self))
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
    /// Adds the summaries that start with a message visible from position `from` on.
    fn note(&mut self, view: &View<'_>, path: &Path, from: usize) -> Result<()> {
        let seen: Vec<MessageId> = path.visible()[from..].iter().map(|seen| seen.seen.id).collect();
        self.add(view.summaries().nodes_on(&seen)?);
        if from > 0 {
            return self.refresh(view, path).map(drop);
        }
        self.newest = view.summaries().newest_summary()?;
        Ok(())
    }

    /// Adds and returns the summaries made since.
    pub fn refresh(&mut self, view: &View<'_>, path: &Path) -> Result<Vec<Arc<Node>>> {
        let newest = view.summaries().newest_summary()?;
        if newest == self.newest {
            return Ok(Vec::new());
        }
        let new = view.summaries().nodes_since(self.newest, |message| path.shows(message))?;
        self.newest = newest;
        Ok(self.add(new))
    }

    fn add(&mut self, nodes: Vec<Node>) -> Vec<Arc<Node>> {
        let nodes: Vec<Arc<Node>> = nodes.into_iter().map(Arc::new).collect();
        Arc::make_mut(&mut self.nodes)
            .extend(nodes.iter().map(|node| ((node.depth, node.id), Arc::clone(node))));
        nodes
    }
}
