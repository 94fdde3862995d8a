//! Entries: which messages a session shows, and the tree they form.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{named_params, params};

use crate::columns::{Queries as _, from_row};
use crate::{MessageWriter, Messages, Shows, SyncedWriter};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId};

/// A message that others extend, with its lineage and height.
pub type Head = (MessageId, Hash, i64);

/// An entry to store.
pub struct NewEntry<'a> {
    pub entry_id: &'a str,
    pub parent: Option<EntryId>,
    pub shows: Shows,
    pub head: Option<MessageId>,
}

/// Ends an entry's id in its session's file, if the store has another entry with that id. No agent's ids have it.
pub const END: char = '\u{1f}';

/// An entry that shows a message, and has the same id as others in its session's file.
pub struct Version {
    /// Its id in the store.
    pub entry_id: String,
    pub message: MessageId,
    /// ms.
    pub timestamp: i64,
    pub is_purged: bool,
}

from_row!(Version { entry_id, message = "message_id", timestamp, is_purged });

/// Whether an entry `e` has the id `:own` in its session's file.
pub(crate) const IS_VERSION: &str = "(e.entry_id >= :own AND e.entry_id < :own || ' '
    AND (e.entry_id = :own OR e.entry_id > :own || char(31)))";

/// The entries of a session that show a message.
const SHOWING: &str = "SELECT e.entry_id, e.message_id, m.timestamp, m.kind = 4 AS is_purged
       FROM entries e JOIN messages m ON m.id = e.message_id
      WHERE e.conversation_id = :conversation AND e.kind = 1";

/// The id that an entry has in its session's file.
pub fn own_id(entry_id: &str) -> &str {
    entry_id.split_once(END).map_or(entry_id, |(own, _)| own)
}

/// The id in the store of the `n`th other message with the id `own` and this time.
pub fn repeated_id(own: &str, timestamp: i64, n: usize) -> String {
    format!("{own}{END}{timestamp}.{n}")
}

/// Whether the session's file shows an entry with this id in the store, if under a repeated id. What an edit of the file
/// has replaced has an id that ends with a hash.
pub fn is_current(entry_id: &str) -> bool {
    entry_id.rsplit_once(END).is_none_or(|(_, end)| Hash::parse(end).is_none())
}

impl Messages<'_> {
    /// The entries of a session that show a message and have this one's id in the file, the one with that very id first.
    pub fn versions(&self, conversation: ConversationId, entry_id: &str) -> Result<Vec<Version>> {
        let params = named_params! {":conversation": conversation, ":own": own_id(entry_id)};
        self.all(&format!("{SHOWING} AND {IS_VERSION}"), params)
    }

    /// Whether an edit of its session's file has given an entry another id.
    pub fn is_set_aside(&self, conversation: ConversationId, entry_id: &str) -> Result<bool> {
        let ids: Vec<String> = self.all(
            &format!(
                "SELECT e.entry_id FROM entries e WHERE e.conversation_id = :conversation AND {IS_VERSION}"
            ),
            named_params! {":conversation": conversation, ":own": own_id(entry_id)},
        )?;
        Ok(ids.iter().any(|id| !is_current(id)))
    }

    /// What an entry shows, if that is a message.
    pub fn version(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<Version>> {
        let params = named_params! {":conversation": conversation, ":id": entry_id};
        self.first(&format!("{SHOWING} AND e.entry_id = :id"), params)
    }

    /// The ids of the entries of a session that show a message.
    pub fn shown_as(&self, conversation: ConversationId, message: MessageId) -> Result<Vec<String>> {
        self.all(
            "SELECT entry_id FROM entries WHERE message_id = ?2 AND conversation_id = ?1 AND kind = 1",
            params![conversation, message],
        )
    }

    /// Pi's ids of all stored entries of a session.
    pub fn entry_ids(&self, conversation: ConversationId) -> Result<Vec<String>> {
        self.all("SELECT entry_id FROM entries WHERE conversation_id = ?1", [conversation])
    }

    /// Reads the newest entries, so that opening a session detects a damaged table.
    pub fn touch_entries(&self, conversation: ConversationId) -> Result<()> {
        self.one(
            "SELECT (SELECT entry_id FROM entries WHERE conversation_id = ?1 ORDER BY entry_id DESC LIMIT 1),
              (SELECT kind FROM entries ORDER BY id DESC LIMIT 1)",
            [conversation],
        )
    }

    /// The number of messages that a session shows on any branch.
    pub fn said_in(&self, conversation: ConversationId) -> Result<usize> {
        self.counts(conversation).map(|counts| counts.messages)
    }

    /// The row of an entry, if it is stored.
    pub fn entry_row(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<EntryId>> {
        self.first(
            "SELECT id FROM entries WHERE conversation_id = ?1 AND entry_id = ?2",
            params![conversation, entry_id],
        )
    }

    /// The id of the entry above an entry, if it is stored.
    pub fn above_entry(
        &self,
        conversation: ConversationId,
        entry_id: &str,
    ) -> Result<Option<Option<String>>> {
        self.first(
            "SELECT above.entry_id FROM entries e LEFT JOIN entries above ON above.id = e.parent_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2",
            params![conversation, entry_id],
        )
    }

    /// The last message at or above an entry: what its children extend.
    pub fn head_of(&self, entry: EntryId) -> Result<Option<Head>> {
        self.first(
            "SELECT m.id, m.lineage, m.height FROM entries e JOIN messages m ON m.id = e.head_id WHERE e.id = ?1",
            [entry])
    }

    /// The message that an entry shows, if any.
    pub fn shown_by(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<MessageId>> {
        self.first(
            "SELECT message_id FROM entries
              WHERE conversation_id = ?1 AND entry_id = ?2 AND kind = 1 AND message_id IS NOT NULL",
            params![conversation, entry_id],
        )
    }

    /// Whether an entry shows the message with this plain hash, whatever is above; `None` if it shows none, or a
    /// purged one.
    pub fn shows(&self, conversation: ConversationId, entry_id: &str, digest: &Hash) -> Result<Option<bool>> {
        let found: Option<(Hash, Hash)> = self.first(
            "SELECT m.lineage, coalesce(p.lineage, zeroblob(32))
               FROM entries e JOIN messages m ON m.id = e.message_id LEFT JOIN messages p ON p.id = m.parent_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1 AND m.kind <> 4",
            params![conversation, entry_id],
        )?;
        Ok(found.map(|(lineage, above)| above.child_of(digest) == lineage))
    }
}

impl MessageWriter<'_> {
    /// Gives the entries `edited` and all below them other ids, which end with `mark`, so that others can have theirs. Returns
    /// the ids that are free now.
    pub fn set_aside(
        &self,
        conversation: ConversationId,
        edited: &[String],
        mark: &Hash,
    ) -> Result<Vec<String>> {
        let rows: Vec<(i64, Option<i64>, String)> = self.all(
            "SELECT id, parent_id, entry_id FROM entries WHERE conversation_id = ?1 ORDER BY id",
            [conversation],
        )?;
        let edited: HashSet<&str> = edited.iter().map(String::as_str).collect();
        let mut aside: HashSet<i64> = HashSet::new();
        let mut free = Vec::new();
        for (id, parent, name) in rows {
            let is_below = parent.is_some_and(|parent| aside.contains(&parent));
            if is_below || edited.contains(name.as_str()) {
                aside.insert(id);
                free.push((id, name));
            }
        }
        let names: HashSet<&str> = free.iter().map(|(_, name)| name.as_str()).collect();
        // Packs have them under their old ids.
        let rows = free.iter().map(|(id, _)| EntryId(*id)).collect();
        SyncedWriter::new(self.connection).forget(&BTreeSet::new(), &rows)?;
        for (id, _) in &free {
            let target: Option<String> =
                self.first("SELECT target FROM entries WHERE id = ?1", [id])?.flatten();
            self.change(
                "UPDATE entries SET entry_id = entry_id || char(31) || ?2,
                                    target = iif(?3, target || char(31) || ?2, target) WHERE id = ?1",
                params![id, mark.to_string(), target.is_some_and(|target| names.contains(target.as_str()))],
            )?;
        }
        Ok(free.into_iter().map(|(_, name)| name).collect())
    }

    /// Stores an entry, and returns its row. [`MessageWriter::count_added`] counts its message.
    pub fn add_entry(&self, conversation: ConversationId, entry: &NewEntry<'_>) -> Result<EntryId> {
        let (kind, message, target) = match &entry.shows {
            Shows::Link => (0, None, None),
            Shows::Message(message) => (1, Some(*message), None),
            Shows::Edit { target, rendition } => (2, *rendition, Some(target)),
            Shows::Compaction => (3, None, None),
        };
        let NewEntry { entry_id, parent, head, .. } = entry;
        let row = self.insert(
            "INSERT INTO entries (conversation_id, entry_id, parent_id, kind, message_id, head_id, target)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![conversation, entry_id, parent, kind, message, head, target],
        )?;
        Ok(EntryId(row))
    }
}
