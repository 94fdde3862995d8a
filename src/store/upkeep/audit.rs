//! What a check of the whole store reads: rows as they lie, however wrong, and what SQLite says of its own file.

use std::collections::HashSet;

use rusqlite::Row;

use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{ConversationId, EntryId, Hash, MessageId, Nonce, SummaryId};
use crate::store::Upkeep;
use crate::store::columns::{kind_from_sql, reading};
use crate::store::db::connection::APPLICATION_ID;
use crate::store::db::migrations;
use crate::store::messages::codec;
use crate::store::upkeep::audit_index::Index;

/// Complaints of SQLite's that are read, at most.
const COMPLAINTS: usize = 100;

/// What the file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// It bears our mark.
    pub ours: bool,
    /// Its format.
    pub version: i64,
    /// The format this engine writes.
    pub current: i64,
}

/// The last rows of a moment: what comes after them is left to the next check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// The last message.
    pub message: MessageId,
    /// The last entry.
    pub entry: EntryId,
    /// The last summary.
    pub summary: SummaryId,
    /// How many messages there are.
    pub messages: usize,
}

/// A row that names another that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// Where it stands.
    pub table: String,
    /// The row; none in a table without row ids.
    pub row: Option<i64>,
    /// The table it points into.
    pub into: String,
}

/// A message as it lies in its row, with what is noted of the one it hangs from.
#[derive(Debug)]
pub struct AuditedMessage {
    /// Its row.
    pub id: MessageId,
    /// Its identity, where that is a hash at all.
    pub lineage: Option<Hash>,
    /// The message before it, or the one it is a rendition of.
    pub parent: Option<MessageId>,
    /// That one's identity and height, where there is such a row.
    pub above: Option<(Hash, i64)>,
    /// Messages above it on its lineage.
    pub height: i64,
    /// What it is to its conversation.
    pub kind: MessageKind,
    /// What else is noted of it; none where that is no such thing.
    pub facts: Option<Facts>,
    /// ms since the epoch.
    pub timestamp: i64,
    /// Noted length of the JSON, in bytes.
    pub bytes: i64,
    /// Its JSON, or why that can't be had.
    pub json: Result<String>,
    /// Of a purged one: what stands in place of that.
    pub nonce: Option<Nonce>,
    /// Row id of its first passage in the index.
    pub first_passage: Option<i64>,
    /// How many passages it has there.
    pub passages: i64,
}

/// What is noted of a message beside its text, and follows from that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Who speaks.
    pub role: String,
    /// The tool whose result it is.
    pub tool: Option<String>,
    /// Estimated tokens.
    pub tokens: i64,
    /// ms since the epoch.
    pub timestamp: i64,
}

/// A session as the check sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedConversation {
    /// Its row.
    pub id: ConversationId,
    /// Pi's id.
    pub session_id: String,
    /// Its file, where it had one.
    pub file: Option<String>,
}

/// An entry as it lies in its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedEntry {
    /// Its row.
    pub id: EntryId,
    /// Pi's id.
    pub entry_id: String,
    /// The entry above.
    pub parent: Option<EntryId>,
    /// 0 link only, 1 message, 2 context edit, 3 compaction, 4 stub of ours.
    pub kind: i64,
    /// The message it shows, for an edit the rendition.
    pub message: Option<MessageId>,
    /// What that message is, and what it hangs from, where there is such a row.
    pub shown: Option<(MessageKind, Option<MessageId>)>,
    /// Identity of that message.
    pub lineage: Option<Hash>,
    /// The last message at or above it, as noted.
    pub head: Option<MessageId>,
    /// Identity of that one.
    pub head_lineage: Option<Hash>,
    /// For an edit or a stub: Pi's id of the entry it edits.
    pub target: Option<String>,
    /// For a stub: estimated tokens of what is shown instead.
    pub stub_tokens: Option<usize>,
    /// For a stub: so many hiding edits right below it are ours too.
    pub hides: usize,
}

/// A summary as it lies in its row, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedSummary {
    /// Its row.
    pub id: SummaryId,
    /// Its identity, where that is a hash at all.
    pub hash: Option<Hash>,
    /// 0 for a leaf.
    pub depth: i64,
    /// First message of its span.
    pub first: MessageId,
    /// Last message of its span.
    pub last: MessageId,
    /// Messages in its span.
    pub messages: i64,
    /// Time of the first, ms.
    pub from_time: i64,
    /// Time of the last, ms.
    pub to_time: i64,
}

/// An edge as it lies in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditedEdge {
    /// The summary that was made.
    pub summary: SummaryId,
    /// Its place among that one's sources, from 0.
    pub ordinal: i64,
    /// What it was made from.
    pub source: Source,
}

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A leaf summary's message.
    Message(MessageId),
    /// A condensed summary's summary.
    Summary(SummaryId),
}

fn hash_in(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Hash>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    Ok(bytes.and_then(|bytes| Hash::from_slice(&bytes).ok()))
}

fn audited_message(row: &Row<'_>) -> rusqlite::Result<AuditedMessage> {
    let bytes: i64 = row.get("bytes")?;
    let (stored, codec_id): (Vec<u8>, i64) = (row.get("json")?, row.get("codec")?);
    let nonce = stored.as_slice().try_into().ok().filter(|_| codec_id == codec::PURGED);
    let json = codec::decode(stored, codec_id, bytes);
    Ok(AuditedMessage {
        nonce,
        id: MessageId(row.get("id")?),
        lineage: hash_in(row, "lineage")?,
        parent: row.get::<_, Option<i64>>("parent_id")?.map(MessageId),
        above: hash_in(row, "above")?.zip(row.get("above_height")?),
        height: row.get("height")?,
        kind: kind_from_sql(row.get("kind")?),
        facts: facts(row).ok(),
        timestamp: row.get("timestamp")?,
        bytes,
        json,
        first_passage: row.get("first_passage")?,
        passages: row.get("passages")?,
    })
}

fn facts(row: &Row<'_>) -> rusqlite::Result<Facts> {
    Ok(Facts {
        role: row.get("role")?,
        tool: row.get("tool_name")?,
        tokens: row.get("tokens")?,
        timestamp: row.get("timestamp")?,
    })
}

fn audited_entry(row: &Row<'_>) -> rusqlite::Result<AuditedEntry> {
    let kind: Option<i64> = row.get("message_kind")?;
    let hangs_from: Option<i64> = row.get("message_parent")?;
    Ok(AuditedEntry {
        id: EntryId(row.get("id")?),
        entry_id: row.get("entry_id")?,
        parent: row.get::<_, Option<i64>>("parent_id")?.map(EntryId),
        kind: row.get("kind")?,
        message: row.get::<_, Option<i64>>("message_id")?.map(MessageId),
        shown: kind.map(|kind| (kind_from_sql(kind), hangs_from.map(MessageId))),
        lineage: hash_in(row, "lineage")?,
        head: row.get::<_, Option<i64>>("head_id")?.map(MessageId),
        head_lineage: hash_in(row, "head_lineage")?,
        target: row.get("target")?,
        stub_tokens: row.get("stub_tokens")?,
        hides: row.get::<_, Option<usize>>("hides")?.unwrap_or_default(),
    })
}

impl Upkeep<'_> {
    /// What the file says of itself.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn file_facts(&self) -> Result<FileFacts> {
        let mark: i64 =
            (self.connection).query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(reading)?;
        Ok(FileFacts {
            // A store in memory has no header to bear a mark.
            ours: mark == APPLICATION_ID || self.connection.path().is_none_or(str::is_empty),
            version: migrations::version(self.connection).map_err(reading)?,
            current: migrations::current(),
        })
    }

    /// What SQLite finds wrong with its file, in its words; the two indexes included.
    pub fn integrity(&self) -> Result<Vec<String>> {
        // A connection keeps the plan of an index, and only a query sees that another has changed it: the check would find
        // fault with what it remembers. What is wrong with the index itself it says again.
        for index in [Index::Messages, Index::Summaries] {
            let _ = self.finds(index, "refresh", 0);
        }
        let mut query =
            (self.connection).prepare(&format!("PRAGMA integrity_check({COMPLAINTS})")).map_err(reading)?;
        let lines = query.query_map([], |row| row.get::<_, String>(0)).map_err(reading)?;
        let mut lines = lines.collect::<rusqlite::Result<Vec<_>>>().map_err(reading)?;
        lines.retain(|line| line != "ok");
        Ok(lines)
    }

    /// Rows that name others which are not there.
    pub fn dangling(&self) -> Result<Vec<Dangling>> {
        let mut query = self.connection.prepare("PRAGMA foreign_key_check").map_err(reading)?;
        let rows = query
            .query_map([], |row| Ok(Dangling { table: row.get(0)?, row: row.get(1)?, into: row.get(2)? }))
            .map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The last rows of this moment.
    pub fn horizon(&self) -> Result<Horizon> {
        (self.connection)
            .query_row(
                "SELECT (SELECT coalesce(max(id), 0) FROM messages), (SELECT coalesce(max(id), 0) FROM entries),
                        (SELECT coalesce(max(id), 0) FROM summaries), (SELECT count(*) FROM messages)",
                [],
                |row| {
                    Ok(Horizon {
                        message: MessageId(row.get(0)?),
                        entry: EntryId(row.get(1)?),
                        summary: SummaryId(row.get(2)?),
                        messages: row.get(3)?,
                    })
                },
            )
            .map_err(reading)
    }

    /// Calls `visit` with the messages after one and up to another, in order, until it returns `false`.
    ///
    /// # Errors
    /// Also what `visit` says.
    pub fn audit_messages(
        &self,
        after: MessageId,
        last: MessageId,
        mut visit: impl FnMut(AuditedMessage) -> Result<bool>,
    ) -> Result<()> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT m.*, above.lineage AS above, above.height AS above_height
                   FROM messages m LEFT JOIN messages above ON above.id = m.parent_id
                  WHERE m.id > ?1 AND m.id <= ?2 ORDER BY m.id",
            )
            .map_err(reading)?;
        let mut rows = query.query([after.0, last.0]).map_err(reading)?;
        while let Some(row) = rows.next().map_err(reading)? {
            if !visit(audited_message(row).map_err(reading)?)? {
                break;
            }
        }
        Ok(())
    }

    /// All sessions, oldest first.
    pub fn audited_conversations(&self) -> Result<Vec<AuditedConversation>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT id, session_id, file FROM conversations ORDER BY id")
            .map_err(reading)?;
        let rows = query
            .query_map([], |row| {
                let id = ConversationId(row.get(0)?);
                Ok(AuditedConversation { id, session_id: row.get(1)?, file: row.get(2)? })
            })
            .map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The entries of a session up to one, in order.
    pub fn audit_entries(&self, conversation: ConversationId, last: EntryId) -> Result<Vec<AuditedEntry>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT e.*, m.kind AS message_kind, m.parent_id AS message_parent, m.lineage,
                        h.lineage AS head_lineage
                   FROM entries e
                   LEFT JOIN messages m ON m.id = e.message_id
                   LEFT JOIN messages h ON h.id = e.head_id
                  WHERE e.conversation_id = ?1 AND e.id <= ?2 ORDER BY e.id",
            )
            .map_err(reading)?;
        let rows = query.query_map([conversation.0, last.0], audited_entry).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Messages that any context edit has ever hidden or replaced.
    pub fn edited_messages(&self) -> Result<HashSet<MessageId>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT DISTINCT t.message_id
                   FROM entries e JOIN entries t ON t.conversation_id = e.conversation_id AND t.entry_id = e.target
                  WHERE e.kind = 2 AND t.message_id IS NOT NULL",
            )
            .map_err(reading)?;
        let rows = query.query_map([], |row| row.get(0).map(MessageId)).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The summaries up to one, in order, without their texts.
    pub fn audit_summaries(&self, last: SummaryId) -> Result<Vec<AuditedSummary>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT * FROM summaries WHERE id <= ?1 ORDER BY id")
            .map_err(reading)?;
        let rows = query
            .query_map([last.0], |row| {
                Ok(AuditedSummary {
                    id: SummaryId(row.get("id")?),
                    hash: hash_in(row, "hash")?,
                    depth: row.get("depth")?,
                    first: MessageId(row.get("first_message")?),
                    last: MessageId(row.get("last_message")?),
                    messages: row.get("messages")?,
                    from_time: row.get("from_time")?,
                    to_time: row.get("to_time")?,
                })
            })
            .map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The edges of the summaries up to one, those of each in order.
    pub fn audit_edges(&self, last: SummaryId) -> Result<Vec<AuditedEdge>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT summary_id, ordinal, message_id, source_id FROM summary_sources
                  WHERE summary_id <= ?1 ORDER BY summary_id, ordinal",
            )
            .map_err(reading)?;
        let rows = query
            .query_map([last.0], |row| {
                let source = match row.get::<_, Option<i64>>(2)? {
                    Some(message) => Source::Message(MessageId(message)),
                    None => Source::Summary(SummaryId(row.get::<_, Option<i64>>(3)?.unwrap_or_default())),
                };
                Ok(AuditedEdge { summary: SummaryId(row.get(0)?), ordinal: row.get(1)?, source })
            })
            .map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    pub(in crate::store) fn rows(&self, sql: &str) -> Result<Vec<i64>> {
        let mut query = self.connection.prepare_cached(sql).map_err(reading)?;
        let rows = query.query_map([], |row| row.get(0)).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }
}
