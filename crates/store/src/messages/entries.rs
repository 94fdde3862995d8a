//! Entries: which messages a session shows, and the tree they form.

use rusqlite::params;

use crate::columns::Queries as _;
use crate::{MessageWriter, Messages};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId};

/// A message that others extend, with its lineage and height.
pub type Head = (MessageId, Hash, i64);

/// An entry to store.
pub struct NewEntry<'a> {
    pub entry_id: &'a str,
    pub parent: Option<EntryId>,
    pub role: EntryRole<'a>,
    pub head: Option<MessageId>,
}

/// What an entry does.
pub enum EntryRole<'a> {
    /// Only links its children to its parent.
    Link,
    /// Shows a message.
    Message(MessageId),
    /// Replaces (or, with `None`, hides) what another entry shows.
    Edit { target: &'a str, rendition: Option<MessageId> },
    /// A compaction.
    Compaction,
}

impl Messages<'_> {
    /// Pi's ids of all stored entries of a session.
    pub fn entry_ids(&self, conversation: ConversationId) -> Result<Vec<String>> {
        self.connection.all("SELECT entry_id FROM entries WHERE conversation_id = ?1", [conversation])
    }

    /// Reads the newest entries, so that opening a session detects a damaged table.
    pub fn touch_entries(&self, conversation: ConversationId) -> Result<()> {
        self.connection.one(
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
        self.connection.first(
            "SELECT id FROM entries WHERE conversation_id = ?1 AND entry_id = ?2",
            params![conversation, entry_id],
        )
    }

    /// The last message at or above an entry: what its children extend.
    pub fn head_of(&self, entry: EntryId) -> Result<Option<Head>> {
        self.connection.first(
            "SELECT m.id, m.lineage, m.height FROM entries e JOIN messages m ON m.id = e.head_id WHERE e.id = ?1",
            [entry])
    }

    /// The message that an entry shows, if any.
    pub fn shown_by(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<MessageId>> {
        self.connection.first(
            "SELECT message_id FROM entries
              WHERE conversation_id = ?1 AND entry_id = ?2 AND kind = 1 AND message_id IS NOT NULL",
            params![conversation, entry_id],
        )
    }

    /// Whether an entry shows the message with this plain hash, whatever is above; `None` if it shows none, or a
    /// purged one.
    pub fn shows(&self, conversation: ConversationId, entry_id: &str, digest: &Hash) -> Result<Option<bool>> {
        let found: Option<(Hash, Hash)> = self.connection.first(
            "SELECT m.lineage, coalesce(p.lineage, zeroblob(32))
               FROM entries e JOIN messages m ON m.id = e.message_id LEFT JOIN messages p ON p.id = m.parent_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1 AND m.kind <> 4",
            params![conversation, entry_id],
        )?;
        Ok(found.map(|(lineage, above)| above.child_of(digest) == lineage))
    }
}

impl MessageWriter<'_> {
    /// Stores an entry, and returns its row. [`MessageWriter::count_added`] counts its message.
    pub fn add_entry(&self, conversation: ConversationId, entry: &NewEntry<'_>) -> Result<EntryId> {
        let (kind, message, target) = match entry.role {
            EntryRole::Link => (0, None, None),
            EntryRole::Message(message) => (1, Some(message), None),
            EntryRole::Edit { target, rendition } => (2, rendition, Some(target)),
            EntryRole::Compaction => (3, None, None),
        };
        let NewEntry { entry_id, parent, head, .. } = entry;
        let row = self.connection.insert(
            "INSERT INTO entries (conversation_id, entry_id, parent_id, kind, message_id, head_id, target)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![conversation, entry_id, parent, kind, message, head, target],
        )?;
        Ok(EntryId(row))
    }
}
