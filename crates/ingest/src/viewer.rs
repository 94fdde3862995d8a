//! A stored session for the viewer: Pi's own entries with what the store knows of each, the summaries that
//! are valid on one of its branches or carried by one of its compactions, and the frontier of each branch.
//!
//! A summary that starts with a message of this session may continue in a fork. It is valid on no branch here
//! and is left out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::export::record;
use lcm_model::dag::{BranchEntry, Forest, MessageKind, Node, Step};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, EntryId, MessageId, SummaryId};
use lcm_model::{Fields, SummaryRecord, tokens};
use lcm_store::branch::Cover;
use lcm_store::{ExportedEntry, Shows, View};

/// What is known of a session besides its entries.
#[derive(Debug, Default)]
pub struct SessionOutline {
    /// Its branches, ordered by their last entries.
    pub branches: Vec<BranchRecord>,
    /// Its summaries, in the order they were made.
    pub summaries: Vec<SummaryId>,
    messages: HashMap<EntryId, MessageRecord>,
    names: HashMap<MessageId, String>,
}

/// A branch, named by its last entry.
#[derive(Debug, Serialize)]
pub struct BranchRecord {
    leaf: String,
    /// The summaries of its frontier, oldest first.
    frontier: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct MessageRecord {
    /// Its short id.
    id: String,
    tokens: usize,
    /// Its kind, unless it is part of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Serialize)]
struct EntryRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a MessageRecord>,
    /// The size of a compaction's block.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<usize>,
    entry: &'a RawValue,
}

/// A summary with the facts of its span.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ViewedSummary {
    #[serde(flatten)]
    record: SummaryRecord,
    handle: String,
    messages: usize,
    from_time: i64,
    to_time: i64,
}

impl SessionOutline {
    /// Reads all branches of a session, and the one that ends with the entry `open`, which may be in the
    /// middle of another.
    ///
    /// # Errors
    /// When the store can't be read; so for all functions here.
    pub fn of(view: &View<'_>, conversation: ConversationId, open: Option<&str>) -> Result<Self> {
        let tree = view.messages().tree(conversation)?;
        let open = open.map(|open| view.messages().entry_row(conversation, open)).transpose()?.flatten();
        let ends: BTreeSet<EntryId> = tree.ends.iter().copied().chain(open).collect();
        let mut outline = Self::default();
        let mut wanted = HashSet::new();
        for entry in tree.entries() {
            outline.note(entry);
            if entry.step == Step::Compaction {
                wanted.extend(view.summaries().carried_by(entry.row)?);
            }
        }
        let names = &outline.names;
        let nodes = view.summaries().nodes_since(SummaryId(0), |message| names.contains_key(&message))?;
        let nodes: Vec<Arc<Node>> = nodes.into_iter().map(Arc::new).collect();
        for end in &ends {
            let cover = Cover::among(nodes.iter().map(Arc::clone), &tree.branch(*end));
            let hash = |id| Ok(view.summaries().summary(id)?.hash.to_string());
            let frontier = cover.summaries().map(hash).collect::<Result<_>>()?;
            wanted.extend(cover.forest.holding());
            let leaf = tree.entry(*end).map(|leaf| leaf.entry_id.clone());
            outline.branches.extend(leaf.map(|leaf| BranchRecord { leaf, frontier }));
        }
        outline.summaries = Forest::new(&[], nodes).closure(wanted);
        outline.summaries.sort_unstable();
        Ok(outline)
    }

    fn note(&mut self, entry: &BranchEntry) {
        match &entry.step {
            Step::Message(message) => {
                self.names.entry(message.id).or_insert_with(|| entry.entry_id.clone());
                self.messages.entry(entry.row).or_insert_with(|| MessageRecord {
                    id: message.hash.message_handle(),
                    tokens: message.tokens,
                    kind: match message.kind {
                        MessageKind::Conversation | MessageKind::Edited => None,
                        MessageKind::Private => Some("private"),
                        MessageKind::System => Some("system"),
                        MessageKind::Purged => Some("purged"),
                    },
                });
            }
            Step::Edit { target, rendition: Some(rendition) } => {
                self.names.entry(rendition.id).or_insert_with(|| target.clone());
            }
            _ => {}
        }
    }

    /// An entry as JSON `{"message"?: {id, tokens, kind?}, "tokens"?, "entry"}`; `line` is its line in a
    /// session file.
    pub fn entry(&self, entry: &ExportedEntry, line: &str) -> Result<String> {
        let malformed = |error| Error::store(format!("entry {} can't be written: {error}", entry.id));
        let parsed: &RawValue = serde_json::from_str(line).map_err(malformed)?;
        let tokens = if entry.shows == Shows::Compaction { block_tokens(line) } else { None };
        let line = EntryRecord { message: self.messages.get(&entry.row), tokens, entry: parsed };
        serde_json::to_string(&line).map_err(malformed)
    }

    /// A summary as JSON: a [`SummaryRecord`] with `handle`, `messages`, `fromTime`, `toTime`. `None` if one
    /// of its messages is not in this session.
    pub fn summary(&self, view: &View<'_>, id: SummaryId) -> Result<Option<String>> {
        let stored = view.summaries().summary(id)?;
        let (handle, messages) = (stored.hash.summary_handle(), stored.messages);
        let (from_time, to_time) = (stored.from_time, stored.to_time);
        let Some(record) = record(view, id, stored, &self.names)? else { return Ok(None) };
        let summary = ViewedSummary { record, handle, messages, from_time, to_time };
        Ok(serde_json::to_string(&summary).ok())
    }
}

/// The estimated tokens of a compaction's block.
fn block_tokens(line: &str) -> Option<usize> {
    Some(tokens::estimate(&Fields::of(line)?.text("summary")?))
}
