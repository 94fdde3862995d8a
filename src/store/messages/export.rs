//! Reads a session for export: its entries in order, with everything needed to write them out.

use rusqlite::{Row, named_params};

use crate::error::Result;
use crate::ids::{ConversationId, EntryId, MessageId};
use crate::store::Messages;
use crate::store::columns::Queries as _;

/// A session, as the head of its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedSession {
    pub id: ConversationId,
    pub session_id: String,
    pub file: Option<String>,
    /// The file of the session it was forked from.
    pub parent: Option<String>,
    pub started_at: i64,
}

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

fn exported_session(row: &Row<'_>) -> rusqlite::Result<ExportedSession> {
    Ok(ExportedSession {
        id: row.get("id")?,
        session_id: row.get("session_id")?,
        file: row.get("file")?,
        parent: row.get("parent_session")?,
        started_at: row.get("started_at")?,
    })
}

fn exported_entry(row: &Row<'_>) -> rusqlite::Result<ExportedEntry> {
    let message = row.get("message_id")?;
    let shows = match (row.get::<_, i64>("kind")?, message, row.get("target")?) {
        (1, Some(message), _) => Shows::Message(message),
        (2, rendition, Some(target)) => Shows::Edit { target, rendition },
        (3, ..) => Shows::Compaction,
        _ => Shows::Link,
    };
    Ok(ExportedEntry {
        row: row.get("id")?,
        id: row.get("entry_id")?,
        parent: row.get("parent")?,
        shows,
        is_said: row.get("is_said")?,
    })
}

impl Messages<'_> {
    /// All sessions, oldest first, or only this one.
    pub fn exported_sessions(&self, only: Option<ConversationId>) -> Result<Vec<ExportedSession>> {
        self.connection.all(
            "SELECT * FROM conversations WHERE :only IS NULL OR id = :only ORDER BY id",
            named_params! {":only": only},
            exported_session,
        )
    }

    /// At most `most` entries of a session after the row `after`, parents before children.
    pub fn exported_entries(
        &self,
        conversation: ConversationId,
        after: EntryId,
        most: usize,
    ) -> Result<Vec<ExportedEntry>> {
        self.connection.all(
            "SELECT e.id, e.entry_id, CASE m.kind WHEN 4 THEN 0 ELSE e.kind END AS kind, e.message_id, e.target,
                    p.entry_id AS parent,
                    coalesce(e.kind = 1 AND m.kind IN (0, 1), 0) AS is_said
               FROM entries e
               LEFT JOIN entries p ON p.id = e.parent_id
               LEFT JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = :conversation AND e.id > :after
              ORDER BY e.id LIMIT :most",
            named_params! {":conversation": conversation, ":after": after, ":most": most},
            exported_entry,
        )
    }

    /// Whether any message of the session was purged.
    pub fn has_purged(&self, conversation: ConversationId) -> Result<bool> {
        self.connection.one(
            "SELECT EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1 AND m.kind = 4)",
            [conversation],
            |row| row.get(0),
        )
    }
}
