//! What can be read of conversations, entries and messages.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, RowIndex, named_params, params};

use super::messages::codec;
use super::messages::sessions::IS_PI_S;
use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, Handle, Hash, MessageId};

/// Messages that are read and passed over rather than that another is looked for.
const PASSED: i64 = 16;

/// A consistent view of the store; the queries are its methods, here and in the files beside this one.
pub struct View<'c> {
    pub(super) connection: &'c Connection,
}

/// One Pi session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its row.
    pub id: ConversationId,
    /// Pi's id.
    pub session_id: String,
    /// When the store first saw it, ms.
    pub started_at: i64,
}

/// A message with its exact JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its row.
    pub id: MessageId,
    /// Its identity.
    pub lineage: Hash,
    /// What it is to its conversation.
    pub kind: MessageKind,
    /// Messages above it on its lineage.
    pub height: i64,
    /// Who speaks.
    pub role: String,
    /// The tool whose result it is.
    pub tool: Option<String>,
    /// Estimated tokens.
    pub tokens: usize,
    /// ms since the epoch.
    pub timestamp: i64,
    /// What `JSON.stringify` gave.
    pub json: String,
}

/// The counts of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages it shows on any branch.
    pub messages: usize,
    /// Summaries of its messages.
    pub summaries: usize,
    /// How many of them are degraded.
    pub degraded: usize,
    /// Depth of the deepest.
    pub depth: u32,
}

/// What went wrong, in words, with SQLite's cause.
pub(super) fn reading(error: rusqlite::Error) -> Error {
    Error::storing("failed to read the history store", error)
}

pub(super) fn kind_to_sql(kind: MessageKind) -> i64 {
    match kind {
        MessageKind::Conversation => 0,
        MessageKind::Private => 1,
        MessageKind::System => 2,
        MessageKind::Edited => 3,
        MessageKind::Purged => 4,
    }
}

pub(super) fn kind_from_sql(kind: i64) -> MessageKind {
    match kind {
        0 => MessageKind::Conversation,
        1 => MessageKind::Private,
        3 => MessageKind::Edited,
        4 => MessageKind::Purged,
        _ => MessageKind::System,
    }
}

pub(super) fn hash_at(row: &Row<'_>, column: &str) -> rusqlite::Result<Hash> {
    row.get::<_, [u8; 32]>(column).map(Hash)
}

/// No message has more tokens than this.
const MOST_TOKENS: usize = 1 << 40;

/// A count of tokens, whatever a database says that somebody else has made: sums of these stay within bounds.
pub(super) fn tokens_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<usize> {
    Ok(row.get::<_, Option<usize>>(column)?.unwrap_or_default().min(MOST_TOKENS))
}

fn stored_message(row: &Row<'_>) -> rusqlite::Result<Result<StoredMessage>> {
    let (stored, codec_id, bytes) = (row.get("json")?, row.get("codec")?, row.get("bytes")?);
    let json = match codec::decode(stored, codec_id, bytes) {
        Ok(json) => json,
        Err(error) => return Ok(Err(error)),
    };
    Ok(Ok(StoredMessage {
        id: MessageId(row.get("id")?),
        lineage: hash_at(row, "lineage")?,
        kind: kind_from_sql(row.get("kind")?),
        height: row.get("height")?,
        role: row.get("role")?,
        tool: row.get("tool_name")?,
        tokens: tokens_at(row, "tokens")?,
        timestamp: row.get("timestamp")?,
        json,
    }))
}

impl<'c> View<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// The session with Pi's id `session_id`, if the store knows it.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn conversation(&self, session_id: &str) -> Result<Option<Conversation>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT id, session_id, started_at FROM conversations WHERE session_id = ?1")
            .map_err(reading)?;
        query
            .query_row([session_id], |row| {
                Ok(Conversation {
                    id: ConversationId(row.get(0)?),
                    session_id: row.get(1)?,
                    started_at: row.get(2)?,
                })
            })
            .optional()
            .map_err(reading)
    }

    /// How many sessions the project has.
    pub fn conversations(&self) -> Result<usize> {
        self.number("SELECT count(*) FROM conversations")
    }

    /// Pi's ids of all entries of a session that are stored.
    pub fn entry_ids(&self, conversation: ConversationId) -> Result<Vec<String>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT entry_id FROM entries WHERE conversation_id = ?1")
            .map_err(reading)?;
        let ids = query.query_map([conversation.0], |row| row.get(0)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The JSON of a message.
    ///
    /// # Errors
    /// Also when there is no such row.
    pub fn json_of(&self, id: MessageId) -> Result<String> {
        self.connection
            .prepare_cached("SELECT json, codec, bytes FROM messages WHERE id = ?1")
            .and_then(|mut query| {
                query.query_row([id.0], |row| Ok(codec::decode(row.get(0)?, row.get(1)?, row.get(2)?)))
            })
            .map_err(reading)?
    }

    /// The results of any of these tools among the messages from `first` to `last`, as they were stored.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn results_of(
        &self,
        tools: &[&str; 3],
        first: MessageId,
        last: MessageId,
    ) -> Result<HashSet<MessageId>> {
        let [one, two, three] = tools;
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id FROM messages WHERE id BETWEEN ?1 AND ?2 AND tool_name IN (?3, ?4, ?5)",
            )
            .map_err(reading)?;
        let found = query
            .query_map(params![first.0, last.0, one, two, three], |row| row.get(0).map(MessageId))
            .map_err(reading)?;
        found.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Calls `visit` with the JSON of each of `messages`, in order.
    ///
    /// # Errors
    /// Also when there is no such row; and what `visit` says.
    pub fn each_json(&self, messages: &[MessageId], mut visit: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id, json, codec, bytes FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            )
            .map_err(reading)?;
        // Most were stored shortly one after the other: these are read in one go, and what stands between them passed over.
        for run in messages.chunk_by(|one, next| (one.0 + 1..=one.0 + PASSED).contains(&next.0)) {
            let mut wanted = run.iter().copied();
            let (Some(mut next), Some(last)) = (wanted.next(), run.last()) else { continue };
            let mut rows = query.query([next.0, last.0]).map_err(reading)?;
            loop {
                let row = rows.next().map_err(reading)?.ok_or(rusqlite::Error::QueryReturnedNoRows);
                let row = row.map_err(reading)?;
                if MessageId(row.get(0).map_err(reading)?) != next {
                    continue;
                }
                let stored = row.get_ref(1).and_then(|stored| Ok(stored.as_blob()?)).map_err(reading)?;
                let (codec, bytes) =
                    row.get(2).and_then(|codec| Ok((codec, row.get(3)?))).map_err(reading)?;
                visit(&codec::decode_from(stored, codec, bytes)?)?;
                let Some(then) = wanted.next() else { break };
                next = then;
            }
        }
        Ok(())
    }

    /// A message with its JSON.
    ///
    /// # Errors
    /// Also when there is no such row.
    pub fn message(&self, id: MessageId) -> Result<StoredMessage> {
        let mut query =
            (self.connection).prepare_cached("SELECT * FROM messages WHERE id = ?1").map_err(reading)?;
        query.query_row([id.0], stored_message).map_err(reading)?
    }

    /// The conversation's messages whose ids have this prefix, at most two: enough to see that it is ambiguous.
    /// Renditions and private messages are not among them.
    pub fn messages_like(
        &self,
        handle: &Handle,
        conversation: Option<ConversationId>,
    ) -> Result<Vec<MessageId>> {
        let (low, high) = handle.range();
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id FROM messages m
                  WHERE lineage BETWEEN :low AND :high AND kind = 0
                    AND (:conversation IS NULL OR EXISTS
                         (SELECT 1 FROM entries e
                           WHERE e.message_id = m.id AND e.conversation_id = :conversation))
                  LIMIT 2",
            )
            .map_err(reading)?;
        let ids = query
            .query_map(
                named_params! {":low": low.0, ":high": high.0, ":conversation": conversation.map(|c| c.0)},
                |row| row.get(0).map(MessageId),
            )
            .map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The message as it was said: the original of an edited rendition, else the message itself.
    pub fn original(&self, id: MessageId) -> Result<MessageId> {
        self.connection
            .prepare_cached("SELECT CASE kind WHEN 3 THEN parent_id ELSE id END FROM messages WHERE id = ?1")
            .and_then(|mut query| query.query_row([id.0], |row| row.get(0).map(MessageId)))
            .map_err(reading)
    }

    /// The sessions that show a message.
    pub fn sessions_of(&self, id: MessageId) -> Result<Vec<ConversationId>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT DISTINCT conversation_id FROM entries WHERE message_id = ?1")
            .map_err(reading)?;
        let sessions = query.query_map([id.0], |row| row.get(0).map(ConversationId)).map_err(reading)?;
        sessions.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Messages that a session shows on any branch; costs the length of the session.
    pub fn said_in(&self, conversation: ConversationId) -> Result<usize> {
        (self.connection)
            .prepare_cached(
                "SELECT count(DISTINCT m.id) FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND m.kind IN (0, 1)",
            )
            .and_then(|mut query| query.query_row([conversation.0], |row| row.get(0)))
            .map_err(reading)
    }

    /// How many of these entries show a message that was said.
    pub fn said_by<'a>(
        &self,
        conversation: ConversationId,
        entries: impl Iterator<Item = &'a str>,
    ) -> Result<usize> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT count(*) FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1 AND m.kind IN (0, 1)",
            )
            .map_err(reading)?;
        let mut said = 0;
        for entry in entries {
            said += query
                .query_row(params![conversation.0, entry], |row| row.get::<_, usize>(0))
                .map_err(reading)?;
        }
        Ok(said)
    }

    /// Counts of one session.
    pub fn totals(&self, conversation: ConversationId) -> Result<Totals> {
        Ok(Totals { messages: self.said_in(conversation)?, ..self.summary_totals(conversation)? })
    }

    /// Counts of the summaries of one session; `messages` is left at zero.
    pub fn summary_totals(&self, conversation: ConversationId) -> Result<Totals> {
        let (summaries, degraded, depth) = (self.connection)
            .prepare_cached(
                "SELECT count(*), coalesce(sum(state = 'degraded'), 0), coalesce(max(depth), 0)
                   FROM summaries s
                  WHERE EXISTS (SELECT 1 FROM entries e
                                 WHERE e.message_id = s.first_message AND e.conversation_id = ?1)
                    AND EXISTS (SELECT 1 FROM entries e
                                 WHERE e.message_id = s.last_message AND e.conversation_id = ?1)",
            )
            .and_then(|mut query| {
                query.query_row([conversation.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            })
            .map_err(reading)?;
        Ok(Totals { messages: 0, summaries, degraded, depth })
    }

    /// Messages stored for the whole project.
    pub fn project_messages(&self) -> Result<usize> {
        self.number("SELECT count(*) FROM messages WHERE kind IN (0, 1)")
    }

    /// Looks at the newest of the entries, so that a start meets a table that is damaged as a whole.
    pub fn touch_entries(&self, conversation: ConversationId) -> Result<()> {
        (self.connection)
            .prepare_cached(
                "SELECT (SELECT entry_id FROM entries WHERE conversation_id = ?1 ORDER BY entry_id DESC LIMIT 1),
                        (SELECT kind FROM entries ORDER BY id DESC LIMIT 1)",
            )
            .and_then(|mut query| query.query_row([conversation.0], |_| Ok(())))
            .map_err(reading)
    }

    /// Has the project anything compacted, or sessions beside this one with something said?
    pub fn has_history_beside(&self, conversation: ConversationId) -> Result<bool> {
        (self.connection)
            .prepare_cached(&format!(
                "SELECT EXISTS (SELECT 1 FROM summaries)
                     OR EXISTS (SELECT 1 FROM conversations c
                                 WHERE c.id <> ?1 AND {IS_PI_S}
                                   AND EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
                                                WHERE e.conversation_id = c.id AND m.kind <> 4))"
            ))
            .and_then(|mut query| query.query_row([conversation.0], |row| row.get(0)))
            .map_err(reading)
    }

    /// Bytes of the database's pages.
    pub(super) fn page_bytes(&self) -> Result<u64> {
        let bytes: i64 = (self.connection)
            .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| {
                row.get(0)
            })
            .map_err(reading)?;
        Ok(bytes.unsigned_abs())
    }

    /// The last message at or above an entry, with its lineage and height: what its children extend.
    pub(super) fn head(&self, entry: EntryId) -> rusqlite::Result<Option<(MessageId, Hash, i64)>> {
        let mut query = self.connection.prepare_cached(
            "SELECT m.id, m.lineage, m.height FROM entries e JOIN messages m ON m.id = e.head_id WHERE e.id = ?1",
        )?;
        query
            .query_row([entry.0], |row| {
                Ok((MessageId(row.get("id")?), hash_at(row, "lineage")?, row.get("height")?))
            })
            .optional()
    }

    /// The row of an entry.
    pub(super) fn entry(
        &self,
        conversation: ConversationId,
        entry_id: &str,
    ) -> rusqlite::Result<Option<EntryId>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT id FROM entries WHERE conversation_id = ?1 AND entry_id = ?2")?;
        query.query_row(params![conversation.0, entry_id], |row| row.get(0).map(EntryId)).optional()
    }

    /// The message an entry shows.
    pub(super) fn message_of(
        &self,
        conversation: ConversationId,
        entry_id: &str,
    ) -> rusqlite::Result<Option<MessageId>> {
        let mut query = self.connection.prepare_cached(
            "SELECT message_id FROM entries
              WHERE conversation_id = ?1 AND entry_id = ?2 AND kind = 1 AND message_id IS NOT NULL",
        )?;
        query.query_row(params![conversation.0, entry_id], |row| row.get(0).map(MessageId)).optional()
    }

    fn number(&self, sql: &str) -> Result<usize> {
        let mut query = self.connection.prepare_cached(sql).map_err(reading)?;
        query.query_row([], |row| row.get(0)).map_err(reading)
    }
}
