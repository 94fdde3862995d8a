//! Reads the whole store for a check: raw rows, however wrong, and what SQLite reports about its file.

use std::collections::HashSet;

use rusqlite::{Connection, ErrorCode, Row};

use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{ConversationId, EntryId, Hash, MessageId, Nonce, SummaryId};
use crate::store::Upkeep;
use crate::store::columns::{FromRow, Queries as _, from_row};
use crate::store::db::{connection, migrations};
use crate::store::messages::stored::StoredJson;
use crate::store::upkeep::audit_index::Index;

/// Maximum number of SQLite's complaints to read.
const COMPLAINTS: usize = 100;

/// What the file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Whether it has our mark.
    pub ours: bool,
    pub version: i64,
    /// The format this engine writes.
    pub current: i64,
}

/// A message's raw row, with the recorded facts of its parent.
#[derive(Debug)]
pub struct AuditedMessage {
    pub id: MessageId,
    /// Its identity, if that is a valid hash.
    pub lineage: Option<Hash>,
    /// The message before it, or the original of which it is a rendition.
    pub parent: Option<MessageId>,
    /// The parent's identity and height, if its row exists.
    pub above: Option<(Hash, i64)>,
    /// The number of messages above it in its lineage.
    pub height: i64,
    pub kind: MessageKind,
    /// Its recorded facts; `None` if a column has the wrong type.
    pub facts: Option<Facts>,
    pub timestamp: i64,
    /// The recorded length of the JSON, in bytes.
    pub bytes: i64,
    /// Its JSON, or why it can't be read.
    pub json: Result<String>,
    /// The number in place of a purged message's JSON.
    pub nonce: Option<Nonce>,
    /// Row id of its first passage in the index.
    pub first_passage: Option<i64>,
    pub passages: i64,
}

/// The recorded facts of a message that follow from its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub role: String,
    pub tool: Option<String>,
    pub tokens: i64,
    pub timestamp: i64,
}

/// An entry's raw row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedEntry {
    pub id: EntryId,
    pub entry_id: String,
    pub parent: Option<EntryId>,
    /// 0 link only, 1 message, 2 context edit, 3 compaction.
    pub kind: i64,
    /// The message it shows; for an edit, the rendition.
    pub message: Option<MessageId>,
    /// That message's kind and parent, if its row exists.
    pub shown: Option<(MessageKind, Option<MessageId>)>,
    /// That message's identity.
    pub lineage: Option<Hash>,
    /// The recorded last message at or above it.
    pub head: Option<MessageId>,
    /// That message's identity.
    pub head_lineage: Option<Hash>,
    /// For an edit, Pi's id of the entry it edits.
    pub target: Option<String>,
}

/// A summary's raw row, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedSummary {
    pub id: SummaryId,
    /// Its identity, if that is a valid hash.
    pub hash: Option<Hash>,
    pub depth: i64,
    /// First message of its span.
    pub first: MessageId,
    /// Last message of its span.
    pub last: MessageId,
    pub messages: i64,
    pub from_time: i64,
    pub to_time: i64,
}

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A message of a leaf summary.
    Message(MessageId),
    /// A summary of a condensed summary.
    Summary(SummaryId),
}

fn hash_in(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Hash>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    Ok(bytes.and_then(|bytes| Hash::from_slice(&bytes).ok()))
}

fn audited_message(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<AuditedMessage> {
    let bytes: i64 = row.get("bytes")?;
    let stored = StoredJson::from_row(row)?;
    let nonce = stored.nonce();
    let json = stored.unpack(connection);
    Ok(AuditedMessage {
        nonce,
        id: row.get("id")?,
        lineage: hash_in(row, "lineage")?,
        parent: row.get("parent_id")?,
        above: hash_in(row, "above")?.zip(row.get("above_height")?),
        height: row.get("height")?,
        kind: row.get("kind")?,
        facts: Facts::from_row(row).ok(),
        timestamp: row.get("timestamp")?,
        bytes,
        json,
        first_passage: row.get("first_passage")?,
        passages: row.get("passages")?,
    })
}

from_row!(Facts { role, tool = "tool_name", tokens, timestamp });

impl FromRow for AuditedEntry {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (kind, parent): (Option<MessageKind>, _) = (row.get("message_kind")?, row.get("message_parent")?);
        Ok(Self {
            id: row.get("id")?,
            entry_id: row.get("entry_id")?,
            parent: row.get("parent_id")?,
            kind: row.get("kind")?,
            message: row.get("message_id")?,
            shown: kind.map(|kind| (kind, parent)),
            lineage: hash_in(row, "lineage")?,
            head: row.get("head_id")?,
            head_lineage: hash_in(row, "head_lineage")?,
            target: row.get("target")?,
        })
    }
}

impl FromRow for AuditedSummary {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            hash: hash_in(row, "hash")?,
            depth: row.get("depth")?,
            first: row.get("first_message")?,
            last: row.get("last_message")?,
            messages: row.get("messages")?,
            from_time: row.get("from_time")?,
            to_time: row.get("to_time")?,
        })
    }
}

impl Upkeep<'_> {
    /// What the file says about itself.
    pub fn file_facts(&self) -> Result<FileFacts> {
        let mark = connection::mark(self.connection)?;
        Ok(FileFacts {
            // A store in memory has no header for the mark.
            ours: mark == connection::APPLICATION_ID || self.connection.path().is_none_or(str::is_empty),
            version: migrations::version(self.connection)?,
            current: migrations::current(),
        })
    }

    /// What SQLite finds wrong with its file, in its own words, including the two indexes.
    pub fn integrity(&self) -> Result<Vec<String>> {
        // A connection caches an index's structure, and only a query notices that another connection changed
        // it; the check would report the stale cache. It reports real damage of the index again.
        for index in [Index::Messages, Index::Summaries] {
            let _ = self.finds(index, "refresh", 0);
        }
        let mut lines: Vec<String> =
            self.connection.all(&format!("PRAGMA integrity_check({COMPLAINTS})"), [])?;
        lines.retain(|line| line != "ok");
        Ok(lines)
    }

    /// What follows from the other tables and can't be read.
    pub fn unreadable_derived(&self) -> Vec<&'static str> {
        let is_damaged = |sql| {
            let read = self.connection.query_row(sql, [], |_| Ok(()));
            read.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt))
        };
        migrations::DERIVED.into_iter().filter(|(_, sql)| is_damaged(sql)).map(|(name, _)| name).collect()
    }

    /// Rows that refer to missing ones: the table, the row unless the table has no row ids, and the table it
    /// refers to.
    pub fn dangling(&self) -> Result<Vec<(String, Option<i64>, String)>> {
        self.connection.all("PRAGMA foreign_key_check", [])
    }

    /// The number of messages, of all kinds.
    pub fn message_rows(&self) -> Result<usize> {
        // Pages of an index may be damaged.
        self.connection.one("SELECT count(*) FROM messages NOT INDEXED", [])
    }

    /// Calls `visit` with the messages in order.
    pub fn audit_messages(&self, mut visit: impl FnMut(AuditedMessage) -> Result<()>) -> Result<()> {
        self.connection.each(
            "SELECT m.*, above.lineage AS above, above.height AS above_height
               FROM messages m LEFT JOIN messages above ON above.id = m.parent_id
              ORDER BY m.id",
            [],
            |row| visit(audited_message(self.connection, row)?),
        )
    }

    /// The entries of a session, in order.
    pub fn audit_entries(&self, conversation: ConversationId) -> Result<Vec<AuditedEntry>> {
        self.connection.all(
            "SELECT e.*, m.kind AS message_kind, m.parent_id AS message_parent, m.lineage,
                    h.lineage AS head_lineage
               FROM entries e
               LEFT JOIN messages m ON m.id = e.message_id
               LEFT JOIN messages h ON h.id = e.head_id
              WHERE e.conversation_id = ?1 ORDER BY e.id",
            [conversation],
        )
    }

    /// Messages that any context edit ever hid or replaced.
    pub fn edited_messages(&self) -> Result<HashSet<MessageId>> {
        self.connection.all(
            "SELECT DISTINCT t.message_id
               FROM entries e JOIN entries t ON t.conversation_id = e.conversation_id AND t.entry_id = e.target
              WHERE e.kind = 2 AND t.message_id IS NOT NULL",
            [])
    }

    /// The summaries in order, without their texts.
    pub fn audit_summaries(&self) -> Result<Vec<AuditedSummary>> {
        self.connection.all("SELECT * FROM summaries ORDER BY id", [])
    }

    /// The edges of the summaries, in order: each with its summary, its position there from 0, and its source.
    pub fn audit_edges(&self) -> Result<Vec<(SummaryId, i64, Source)>> {
        let sql = "SELECT summary_id, ordinal, message_id, coalesce(source_id, 0) FROM summary_sources
                   ORDER BY summary_id, ordinal";
        let edges: Vec<(_, _, Option<_>, _)> = self.connection.all(sql, [])?;
        let edge = |(summary, ordinal, message, source): (_, _, Option<_>, _)| {
            (summary, ordinal, message.map_or(Source::Summary(source), Source::Message))
        };
        Ok(edges.into_iter().map(edge).collect())
    }
}
