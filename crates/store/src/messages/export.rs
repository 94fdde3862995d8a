//! Reads a session for export: its entries in order, with everything needed to write them out.

use std::collections::HashSet;

use rusqlite::{Row, named_params};

use crate::Messages;
use crate::columns::{FromRow, Queries as _};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, MessageId};

/// An entry with the ids of its neighbors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedEntry {
    pub row: EntryId,
    pub id: String,
    /// Pi's id of the entry above it.
    pub parent: Option<String>,
    pub shows: Shows,
    /// Whether it shows a conversation or private message, not one of Pi's own system messages or none.
    pub is_said: bool,
}

/// What an entry shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// A message.
    Message(MessageId),
    /// A replacement of the entry `target`, or nothing in its place, from here on.
    Edit { target: String, rendition: Option<MessageId> },
    /// A compaction.
    Compaction,
    /// Nothing; it only links its children.
    Link,
}

impl FromRow for ExportedEntry {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (row, id, parent, kind, message, target, is_said): (_, _, _, i64, _, _, _) = row.try_into()?;
        let shows = match (kind, message, target) {
            (1, Some(message), _) => Shows::Message(message),
            (2, rendition, Some(target)) => Shows::Edit { target, rendition },
            (3, ..) => Shows::Compaction,
            _ => Shows::Link,
        };
        Ok(Self { row, id, parent, shows, is_said })
    }
}

impl Messages<'_> {
    /// At most `most` entries of a session after the row `after`, parents before children.
    pub fn exported_entries(
        &self,
        conversation: ConversationId,
        after: EntryId,
        most: usize,
    ) -> Result<Vec<ExportedEntry>> {
        self.all(
            "SELECT e.id, e.entry_id, p.entry_id, CASE m.kind WHEN 4 THEN 0 ELSE e.kind END, e.message_id, e.target,
                    coalesce(e.kind = 1 AND m.kind IN (0, 1), 0)
               FROM entries e
               LEFT JOIN entries p ON p.id = e.parent_id
               LEFT JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = :conversation AND e.id > :after
              ORDER BY e.id LIMIT :most",
            named_params! {":conversation": conversation, ":after": after, ":most": most},
        )
    }

    /// The messages of the session that were purged.
    pub fn purged_in(&self, conversation: ConversationId) -> Result<HashSet<MessageId>> {
        self.all(
            "SELECT m.id FROM messages m INDEXED BY messages_marked JOIN entries e ON e.message_id = m.id
              WHERE m.kind = 4 AND e.conversation_id = ?1",
            [conversation],
        )
    }

    /// Whether the user ran anything in the project that is kept from the model.
    pub fn has_private(&self) -> Result<bool> {
        // As the index of unusual messages says it.
        let sql = "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_unusual
                                   WHERE (kind <> 0 OR role = 'user') AND kind = 1)";
        self.one(sql, [])
    }

    /// Whether any message of the project was purged.
    pub fn has_purged(&self) -> Result<bool> {
        self.one("SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_marked WHERE kind = 4)", [])
    }
}
