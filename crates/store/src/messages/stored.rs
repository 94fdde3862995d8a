//! Reads stored messages: by row, short id or identity.

use std::collections::HashSet;

use rusqlite::{Row, named_params, params};

use crate::Messages;
use crate::columns::{FromRow, MOST_TOKENS, Queries as _, from_row, tokens_at};
use crate::messages::codec;
use lcm_model::Message;
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Handle, Hash, MessageId, Nonce};

/// Up to this many messages are skipped rather than starting another query.
const PASSED: i64 = 16;

/// Selects the messages whose lineages are between `:low` and `:high`; further conditions may follow. Their index
/// has runs of rows, and each run is searched on its own; `UNION` ends that even if damaged pages repeat. A file of
/// format 1 has an index of lineages alone; there, SQLite would first index a column that is compared without a `+`.
pub(crate) const BY_LINEAGE: &str = "WITH RECURSIVE runs (run) AS (
       SELECT min(id) >> 14 FROM messages
        UNION
       SELECT (SELECT min(id) >> 14 FROM messages WHERE id > (run << 14 | 16383)) FROM runs WHERE run IS NOT NULL)
     SELECT m.id FROM runs CROSS JOIN messages m
         ON m.id >> 14 = run AND substr(m.lineage, 1, 6) BETWEEN substr(:low, 1, 6) AND substr(:high, 1, 6)
      WHERE m.lineage BETWEEN :low AND :high";

/// A message with its exact JSON.
pub struct StoredMessage {
    pub id: MessageId,
    pub lineage: Hash,
    pub kind: MessageKind,
    /// The number of messages above it in its lineage.
    pub height: i64,
    pub role: String,
    pub tool: Option<String>,
    pub tokens: usize,
    pub timestamp: i64,
    /// The output of `JSON.stringify`.
    pub json: String,
}

/// A row's JSON as it is stored.
pub(crate) struct StoredJson {
    pub stored: Vec<u8>,
    pub codec: i64,
    pub bytes: i64,
}

from_row!(StoredJson { stored = "json", codec, bytes });

impl StoredJson {
    /// What a purged message has in place of its JSON.
    pub fn nonce(&self) -> Option<Nonce> {
        self.stored.as_slice().try_into().ok().filter(|_| self.codec == codec::PURGED)
    }

    pub(crate) fn unpack(self) -> Result<String> {
        codec::decode(self.stored, self.codec, self.bytes)
    }
}

impl FromRow for (StoredMessage, StoredJson) {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let message = StoredMessage {
            id: row.get("id")?,
            lineage: row.get("lineage")?,
            kind: row.get("kind")?,
            height: row.get("height")?,
            role: row.get("role")?,
            tool: row.get("tool_name")?,
            tokens: tokens_at(row, "tokens")?,
            timestamp: row.get("timestamp")?,
            json: String::new(),
        };
        Ok((message, StoredJson::from_row(row)?))
    }
}

impl Messages<'_> {
    /// A message with its JSON.
    ///
    /// # Errors
    /// When the row does not exist or the database can't be read; the latter for all methods here.
    pub fn message(&self, id: MessageId) -> Result<StoredMessage> {
        let (message, json): (_, StoredJson) = self.one("SELECT * FROM messages WHERE id = ?1", [id])?;
        Ok(StoredMessage { json: json.unpack()?, ..message })
    }

    /// When a message was said, in ms since the epoch.
    pub fn time(&self, id: MessageId) -> Result<i64> {
        self.one("SELECT timestamp FROM messages WHERE id = ?1", [id])
    }

    /// The JSON of a message.
    pub fn json_of(&self, id: MessageId) -> Result<String> {
        let sql = "SELECT json, codec, bytes FROM messages WHERE id = ?1";
        self.one::<StoredJson>(sql, [id])?.unpack()
    }

    /// A message, parsed.
    pub fn parsed(&self, id: MessageId) -> Result<Message> {
        Ok(Message::parse(&self.json_of(id)?))
    }

    /// Calls `visit` with the JSON of each of `messages`, in order.
    pub fn each_json(&self, messages: &[MessageId], mut visit: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut query = self
            .prepared("SELECT id, json, codec, bytes FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?;
        // Most were stored shortly after one another: these are read in one query, skipping the rows between
        // them.
        for run in messages.chunk_by(|one, next| (one.0 + 1..=one.0 + PASSED).contains(&next.0)) {
            let mut wanted = run.iter().copied();
            let (Some(mut next), Some(last)) = (wanted.next(), run.last()) else { continue };
            let mut rows = query.query([next, *last])?;
            loop {
                let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
                if row.get::<_, MessageId>(0)? != next {
                    continue;
                }
                let stored = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
                visit(&codec::decode(stored, row.get(2)?, row.get(3)?)?)?;
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
        let sql = format!(
            "{BY_LINEAGE} AND +m.kind = 0
                AND (:conversation IS NULL OR EXISTS
                     (SELECT 1 FROM entries e
                       WHERE e.message_id = m.id AND e.conversation_id = :conversation))
              LIMIT 2"
        );
        self.all(&sql, named_params! {":low": low, ":high": high, ":conversation": conversation})
    }

    /// Estimated tokens of a message.
    pub fn tokens_of(&self, id: MessageId) -> Result<usize> {
        let tokens = self.one::<usize>("SELECT tokens FROM messages WHERE id = ?1", [id])?;
        Ok(tokens.min(MOST_TOKENS))
    }

    /// The original of an edited rendition, otherwise the message itself.
    pub fn original(&self, id: MessageId) -> Result<MessageId> {
        self.one("SELECT CASE kind WHEN 3 THEN parent_id ELSE id END FROM messages WHERE id = ?1", [id])
    }

    /// The results of these tools among the rows from `first` to `last`.
    pub fn results_of(
        &self,
        tools: &[&str],
        first: MessageId,
        last: MessageId,
    ) -> Result<HashSet<MessageId>> {
        self.all(
            "SELECT id FROM messages
              WHERE id BETWEEN ?1 AND ?2 AND tool_name IN (SELECT value FROM json_each(?3))",
            params![first, last, serde_json::json!(tools).to_string()],
        )
    }

    /// The message with this identity.
    pub fn message_by_lineage(&self, lineage: Hash) -> Result<Option<MessageId>> {
        self.first(BY_LINEAGE, named_params! {":low": lineage, ":high": lineage})
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus, params};

    use super::*;

    #[test]
    fn a_message_is_found_without_reading_the_others() {
        let memory = Connection::open_in_memory().unwrap();
        memory.execute_batch(include_str!("../db/schema.sql")).unwrap();
        let lineage = |row: i64| Hash::ROOT.child(&row.to_string());
        let rows = (0..3).flat_map(|run| (run << 14) + 1..=(run << 14) + 1_000);
        for row in rows.chain([i64::MAX]) {
            let sql = "INSERT INTO messages VALUES (?1, ?2, NULL, 0, 0, 'user', NULL, 1, 1, x'7b7d', 0, 2, NULL, 0)";
            memory.execute(sql, params![row, lineage(row)]).unwrap();
        }
        for row in [1, (2 << 14) + 1_000, i64::MAX] {
            let mut query = memory.prepare(&format!("{BY_LINEAGE} AND +m.kind = 0")).unwrap();
            let known = named_params! {":low": lineage(row), ":high": lineage(row)};
            let found = query.query_map(known, |found| found.get(0)).unwrap();
            assert_eq!(found.collect::<rusqlite::Result<Vec<i64>>>().unwrap(), [row]);
            assert!(query.get_status(StatementStatus::VmStep) < 1_000);
        }
    }
}
