//! Checks session files: every entry of an existing file must be stored in its position, with exactly the
//! file's text.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::report::{Check, Remedy};
use crate::dag::MessageKind;
use crate::ids::{EntryId, Hash, MessageId};
use crate::ingest::Handover;
use crate::model::{Content, Entry, agent_of};
use crate::store::{AuditedEntry, Text};

/// What is already known to be wrong in the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    /// Messages with the wrong text.
    pub damaged: Arc<HashSet<MessageId>>,
    /// Renditions whose identity can't be compared.
    pub unproven: Arc<HashSet<MessageId>>,
    /// Entries that record the wrong last message.
    pub heads: Arc<HashSet<EntryId>>,
}

/// A stored session, to compare with its file.
#[derive(Default)]
pub(super) struct Stored {
    session: String,
    entries: HashMap<String, AuditedEntry>,
    names: HashMap<EntryId, String>,
    /// Entries of the file seen so far.
    seen: HashSet<String>,
    /// Missing entries since the last stored one.
    lacking: Vec<String>,
    /// Stored entries that no entry of the file with their id equals so far. A damaged file may repeat an id.
    differing: BTreeMap<String, &'static str>,
    /// Entries that lost their parent although it is stored: child and parent.
    pub torn: Vec<(EntryId, EntryId)>,
    /// Whether anything must be stored from the file.
    pub lacks: bool,
    doubts: Doubts,
    /// The right texts of damaged messages found since this was last emptied.
    pub texts: Vec<(MessageId, Text)>,
}

impl Stored {
    pub fn new(session: &str, entries: Vec<AuditedEntry>, doubts: Doubts) -> Self {
        let names = entries.iter().map(|entry| (entry.id, entry.entry_id.clone())).collect();
        Self {
            session: session.to_owned(),
            names,
            entries: entries.into_iter().map(|entry| (entry.entry_id.clone(), entry)).collect(),
            doubts,
            ..Self::default()
        }
    }

    /// Compares some entries of the file with what is stored.
    pub fn compare(&mut self, slice: &Handover, check: &mut Check) {
        for entry in &slice.entries {
            if self.seen.insert(entry.id.clone()) {
                check.saw(1, "entry");
            } else if self.differing.remove(&entry.id).is_none() {
                continue;
            }
            match self.entries.get(&entry.id) {
                None => self.lacking.push(entry.id.clone()),
                Some(stored) => {
                    let stored = stored.clone();
                    self.report_lacking(check);
                    self.entry(entry, &stored, slice.orphans.contains(&entry.id), check);
                }
            }
        }
    }

    /// Handles the end of what can be read of the file. An open session's last entries may not be stored yet.
    pub fn end(&mut self, is_open: bool, check: &mut Check) {
        if is_open && !self.lacking.is_empty() {
            check.notes.push(format!("{} of the open session not stored yet", self.lacking.len()));
        } else {
            self.report_lacking(check);
        }
        for (id, what) in std::mem::take(&mut self.differing) {
            check.find(Remedy::Rebuild, what, || self.name(&id));
        }
    }

    fn report_lacking(&mut self, check: &mut Check) {
        for id in std::mem::take(&mut self.lacking) {
            self.lacks = true;
            check.find(Remedy::Fix, "the file has an entry that is not stored", || self.name(&id));
        }
    }

    fn entry(&mut self, entry: &Entry, stored: &AuditedEntry, is_orphan: bool, check: &mut Check) {
        let stored_parent = stored.parent.map(|parent| self.names.get(&parent));
        // An orphan may be stored with its parent: the parent's line was deleted since, or another entry of the file
        // has the orphan's id and a parent.
        let is_root = is_orphan && !matches!(stored_parent, Some(Some(_)));
        let parent = entry.parent.as_ref().filter(|_| !is_root);
        match (parent, stored_parent) {
            (None, None) => {}
            (Some(parent), Some(Some(stored))) if stored == parent => {}
            (Some(parent), Some(None)) => {
                // The parent was lost, which the check of entries reports. It may exist again in another row.
                let found = self.entries.get(parent).map(|above| above.id);
                self.torn.extend(found.map(|above| (stored.id, above)));
                self.lacks = true;
                return;
            }
            _ => {
                self.differing.insert(entry.id.clone(), "an entry's parent differs from the file");
                return;
            }
        }
        let above = match parent {
            None => Some(Hash::ROOT),
            Some(parent) => (self.entries.get(parent))
                .filter(|above| !self.doubts.heads.contains(&above.id))
                .and_then(|above| match above.head {
                    // The first message follows the root.
                    None => Some(Hash::ROOT),
                    Some(_) => above.head_lineage,
                }),
        };
        if stored.kind == 1 && stored.shown.is_none() && matches!(entry.content, Content::Message(_)) {
            self.lacks = true;
            check.find(Remedy::Fix, "the file has a message that is not stored", || self.name(&entry.id));
            return;
        }
        let is_purged = |entry: &AuditedEntry| matches!(entry.shown, Some((MessageKind::Purged, _)));
        let same = match &entry.content {
            // The placeholder is verified as a message of its own.
            Content::Message(_) if is_purged(stored) => true,
            Content::Message(json) => {
                let is_damaged = stored.message.is_some_and(|message| self.doubts.damaged.contains(&message));
                above.is_none_or(|above| stored.lineage == Some(above.child(json)))
                    // A fork may show another session's message, with another record.
                    || (agent_of(json).is_some() && !is_damaged)
            }
            Content::Edit { target, replacement: Some(replacement) } => {
                let original = self.entries.get(target).filter(|target| target.kind == 1);
                match original.and_then(|original| original.lineage) {
                    Some(_) if original.is_some_and(is_purged) => {
                        stored.kind == 2 && stored.message.is_none()
                    }
                    Some(original) => {
                        stored.lineage == Some(original.edited(replacement))
                            || stored.message.is_some_and(|message| self.doubts.unproven.contains(&message))
                    }
                    None => stored.kind == 0,
                }
            }
            Content::Edit { replacement: None, .. } => stored.kind == 2 && stored.message.is_none(),
            Content::Compaction(_) | Content::OtherCompaction(_) => stored.kind == 3,
            Content::Other => stored.kind == 0,
            // Session files contain no placeholders.
            Content::Purged(_) => is_purged(stored),
        };
        if same && let Some(message) = stored.message.filter(|message| self.doubts.damaged.contains(message))
        {
            let text = match &entry.content {
                Content::Edit { replacement, .. } => replacement.clone().map(Text::Replaced),
                Content::Message(json) => Some(Text::Said(json.clone())),
                _ => None,
            };
            self.texts.extend(text.map(|text| (message, text)));
        }
        if !same {
            self.differing.insert(entry.id.clone(), "an entry's text differs from the file");
        }
    }

    fn name(&self, entry: &str) -> String {
        format!("{entry} of session {}", self.session)
    }
}
