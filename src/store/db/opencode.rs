//! Reads sessions from OpenCode's database. JSON columns are returned as their text.

use std::path::Path;

use rusqlite::{Connection, params};
use tokio_util::sync::CancellationToken;

use super::strange;
use crate::error::{Error, Result};

/// OpenCode's database, opened read-only.
pub struct OpenCode(Connection);

/// A session in it.
#[derive(Debug)]
pub struct OpenCodeSession {
    /// Its id.
    pub id: String,
    /// The session that started it, if it is a subagent's.
    pub parent: Option<String>,
    /// The folder it worked in.
    pub directory: String,
    /// OpenCode's version.
    pub version: String,
    /// The fields above with its title and times, as JSON.
    pub json: String,
}

/// A row: its table, its id, and its `data`.
pub type OpenCodeRow = (&'static str, String, String);

impl OpenCode {
    /// Opens the database at `path` for reading, until `cancel` is raised. It is never written.
    ///
    /// # Errors
    /// When it can't be read or is not OpenCode's, as for all methods here.
    pub fn open(path: &Path, cancel: &CancellationToken) -> Result<Self> {
        strange::open(path, cancel).map(Self).map_err(unreadable)
    }

    /// All sessions.
    pub fn sessions(&self) -> Result<Vec<OpenCodeSession>> {
        let mut query = self.0.prepare(
            "SELECT id, parent_id, directory, version,
                    json_object('id', id, 'parentID', parent_id, 'directory', directory, 'version', version, 'title', title,
                                'time', json_object('created', time_created, 'updated', time_updated))
               FROM session ORDER BY time_created, id",
        ).map_err(unreadable)?;
        let rows = query.query_map([], |row| {
            let (id, parent, directory, version, json) = row.try_into()?;
            Ok(OpenCodeSession { id, parent, directory, version, json })
        });
        rows.and_then(Iterator::collect).map_err(unreadable)
    }

    /// The ids of a session's messages, oldest first.
    pub fn messages(&self, session: &str) -> Result<Vec<String>> {
        let sql = "SELECT id FROM message WHERE session_id = ?1 ORDER BY time_created, id";
        let mut query = self.0.prepare_cached(sql).map_err(unreadable)?;
        let rows = query.query_map([session], |row| row.get(0));
        rows.and_then(Iterator::collect).map_err(unreadable)
    }

    /// A message and its parts.
    pub fn message(&self, id: &str) -> Result<Vec<OpenCodeRow>> {
        let mut rows =
            self.rows("message", "SELECT id, CAST(data AS TEXT) FROM message WHERE id = ?1", id)?;
        rows.extend(self.rows(
            "part",
            "SELECT id, CAST(data AS TEXT) FROM part WHERE message_id = ?1 ORDER BY id",
            id,
        )?);
        Ok(rows)
    }

    /// A session's messages as newer versions store them: one row each, with the kind under `type`. Older
    /// versions have no such table.
    pub fn session_messages(&self, session: &str) -> Result<Vec<OpenCodeRow>> {
        if !self.0.table_exists(None, "session_message").map_err(unreadable)? {
            return Ok(Vec::new());
        }
        let sql = "SELECT id, iif(json_valid(data), json_insert(data, '$.type', type), CAST(data AS TEXT)) FROM session_message WHERE session_id = ?1 ORDER BY time_created, id";
        self.rows("session_message", sql, session)
    }

    fn rows(&self, table: &'static str, sql: &str, of: &str) -> Result<Vec<OpenCodeRow>> {
        let mut query = self.0.prepare_cached(sql).map_err(unreadable)?;
        let rows = query.query_map(params![of], |row| Ok((table, row.get(0)?, row.get(1)?)));
        rows.and_then(Iterator::collect).map_err(unreadable)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes a value")]
fn unreadable(error: rusqlite::Error) -> Error {
    Error::invalid(format!("OpenCode's database can't be read: {error}"))
}
