//! Reads stored messages: by row, short id or identity.

use std::collections::HashSet;

use rusqlite::{OptionalExtension as _, Row, named_params, params};

use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{ConversationId, Handle, Hash, MessageId};
use crate::store::Messages;
use crate::store::columns::{hash_at, kind_from_sql, reading, tokens_at};
use crate::store::messages::codec;

/// Up to this many messages are skipped rather than starting another query.
const PASSED: i64 = 16;

/// A message with its exact JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its row.
    pub id: MessageId,
    /// Its identity.
    pub lineage: Hash,
    /// Its kind.
    pub kind: MessageKind,
    /// The number of messages above it in its lineage.
    pub height: i64,
    /// Who speaks.
    pub role: String,
    /// The tool, if it is a tool result.
    pub tool: Option<String>,
    /// Estimated tokens.
    pub tokens: usize,
    /// In ms since the epoch.
    pub timestamp: i64,
    /// The output of `JSON.stringify`.
    pub json: String,
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

impl Messages<'_> {
    /// A message with its JSON.
    ///
    /// # Errors
    /// When the row does not exist or the database can't be read; the latter for all methods here.
    pub fn message(&self, id: MessageId) -> Result<StoredMessage> {
        let mut query =
            (self.connection).prepare_cached("SELECT * FROM messages WHERE id = ?1").map_err(reading)?;
        query.query_row([id.0], stored_message).map_err(reading)?
    }

    /// The JSON of a message.
    ///
    /// # Errors
    /// Also when the row does not exist.
    pub fn json_of(&self, id: MessageId) -> Result<String> {
        self.connection
            .prepare_cached("SELECT json, codec, bytes FROM messages WHERE id = ?1")
            .and_then(|mut query| {
                query.query_row([id.0], |row| Ok(codec::decode(row.get(0)?, row.get(1)?, row.get(2)?)))
            })
            .map_err(reading)?
    }

    /// Calls `visit` with the JSON of each of `messages`, in order.
    ///
    /// # Errors
    /// Also when a row does not exist or `visit` fails.
    pub fn each_json(&self, messages: &[MessageId], mut visit: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id, json, codec, bytes FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            )
            .map_err(reading)?;
        // Most were stored shortly after one another: these are read in one query, skipping the rows between
        // them.
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

    /// At most two messages of the conversation whose ids have this prefix: enough to see that it is
    /// ambiguous. Excludes renditions and private messages.
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

    /// The messages of the conversation whose ids are between these. Excludes renditions and private messages.
    pub fn messages_between(&self, low: Hash, high: Hash) -> Result<Vec<MessageId>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT id FROM messages WHERE lineage BETWEEN ?1 AND ?2 AND kind = 0")
            .map_err(reading)?;
        let ids = query.query_map([low.0, high.0], |row| row.get(0).map(MessageId)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Estimated tokens of a message.
    pub fn tokens_of(&self, id: MessageId) -> Result<usize> {
        (self.connection)
            .prepare_cached("SELECT tokens FROM messages WHERE id = ?1")
            .and_then(|mut query| query.query_row([id.0], |row| tokens_at(row, 0)))
            .map_err(reading)
    }

    /// The original of an edited rendition, otherwise the message itself.
    pub fn original(&self, id: MessageId) -> Result<MessageId> {
        self.connection
            .prepare_cached("SELECT CASE kind WHEN 3 THEN parent_id ELSE id END FROM messages WHERE id = ?1")
            .and_then(|mut query| query.query_row([id.0], |row| row.get(0).map(MessageId)))
            .map_err(reading)
    }

    /// The results of these tools among the rows from `first` to `last`.
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

    /// The message with this identity.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn message_by_lineage(&self, lineage: Hash) -> Result<Option<MessageId>> {
        self.connection
            .prepare_cached("SELECT id FROM messages WHERE lineage = ?1")
            .and_then(|mut query| query.query_row([lineage.0], |row| row.get(0).map(MessageId)).optional())
            .map_err(reading)
    }
}
