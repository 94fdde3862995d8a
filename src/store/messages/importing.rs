//! What an import needs from the store besides the fold: what it added, and whether the user was told about
//! older sessions.

use rusqlite::OptionalExtension as _;

use crate::error::Result;
use crate::ids::MessageId;
use crate::store::columns::{reading, writing};
use crate::store::{MessageWriter, Messages};

/// The prefix of the key for the time an agent's logs were last read.
const READ: &str = "read_at:";
/// The key for the time of the import offer.
const OFFERED: &str = "import_offered_at";

impl Messages<'_> {
    /// The last stored message; [`MessageId`] 0 if there is none.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn last_message(&self) -> Result<MessageId> {
        self.connection
            .prepare_cached("SELECT coalesce(max(id), 0) FROM messages")
            .and_then(|mut query| query.query_row([], |row| row.get(0).map(MessageId)))
            .map_err(reading)
    }

    /// The number of messages stored after this one, counted as for a session.
    pub fn messages_after(&self, message: MessageId) -> Result<usize> {
        self.connection
            .prepare_cached("SELECT count(*) FROM messages WHERE id > ?1 AND kind IN (0, 1)")
            .and_then(|mut query| query.query_row([message.0], |row| row.get(0)))
            .map_err(reading)
    }

    /// Whether older sessions were ever searched for, to tell the user about them.
    pub fn import_was_offered(&self) -> Result<bool> {
        self.connection
            .prepare_cached("SELECT 1 FROM _metadata WHERE key = ?1")
            .and_then(|mut query| query.query_row([OFFERED], |_| Ok(())).optional())
            .map(|row| row.is_some())
            .map_err(reading)
    }

    /// When the last reading of all logs of `agent` began, ms.
    pub fn agent_read_at(&self, agent: &str) -> Result<Option<i64>> {
        self.connection
            .prepare_cached("SELECT CAST(value AS INTEGER) FROM _metadata WHERE key = ?1")
            .and_then(|mut query| query.query_row([format!("{READ}{agent}")], |row| row.get(0)).optional())
            .map_err(reading)
    }
}

impl MessageWriter<'_> {
    /// Records when a completed reading of all logs of `agent` began.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn note_agent_read(&self, agent: &str, at: i64) -> Result<()> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute((format!("{READ}{agent}"), at.to_string())))
            .map(drop)
            .map_err(writing)
    }

    /// Records that older sessions were searched for. `false` if another process did so first.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn note_import_offered(&self, now: i64) -> Result<bool> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO _metadata (key, value) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute((OFFERED, now.to_string())))
            .map(|rows| rows > 0)
            .map_err(writing)
    }
}
