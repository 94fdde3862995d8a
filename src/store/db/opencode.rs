//! Reads sessions from OpenCode's database. JSON columns are returned as their text.
//!
//! Rows are read one by one, so that an unreadable one costs no other.

use std::cell::Cell;
use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, Params, Row};
use tokio_util::sync::CancellationToken;

use super::strange;
use crate::error::{Error, Result};

/// The tables that are read.
const TABLES: [&str; 4] = ["session", "message", "part", "session_message"];
/// How many times its size an intact file can give: JSON writes a byte as up to six.
const MOST: u64 = 8;
/// The longest text in bytes; JavaScript can't hold a longer one.
const LONGEST: u64 = 512 * 1024 * 1024;

/// OpenCode's database, opened read-only.
pub struct OpenCode {
    connection: Connection,
    /// Bytes of text that it may still give.
    left: Cell<u64>,
    cancel: CancellationToken,
}

/// A session in it.
#[derive(Debug)]
pub struct OpenCodeSession {
    /// Its row.
    pub place: OpenCodePlace,
    /// Its id.
    pub id: String,
    /// The session that started it, if it is a subagent's.
    pub parent: Option<String>,
    /// The folder it worked in.
    pub directory: String,
    /// OpenCode's version.
    pub version: String,
}

/// Where a row is: its table, and its number there.
#[derive(Clone, Copy, Debug)]
pub struct OpenCodePlace(&'static str, i64);

/// A row: its table, its id, and its `data`; of a session, its fields as JSON.
pub type OpenCodeRow = (&'static str, String, String);

impl OpenCode {
    /// Opens the database at `path` for reading, until `cancel` is raised. It is never written.
    ///
    /// # Errors
    /// When it can't be read or is not OpenCode's, as for all methods here.
    pub fn open(path: &Path, cancel: &CancellationToken) -> Result<Self> {
        let connection = strange::open(path, cancel).map_err(unreadable)?;
        let most = strange::size(path).saturating_mul(MOST);
        let longest = i32::try_from(most.min(LONGEST)).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest).map_err(unreadable)?;
        let opened = Self { connection, left: Cell::new(most), cancel: cancel.clone() };
        TABLES.iter().try_for_each(|table| opened.check(table))?;
        Ok(opened)
    }

    /// Refuses a table whose values are computed: a small file could fill all memory.
    fn check(&self, table: &str) -> Result<()> {
        let is_strange = "SELECT EXISTS (SELECT 1 FROM pragma_table_list(?1) WHERE type <> 'table' OR wr)
                OR EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0 AND lower(name) IN
                   ('id', 'parent_id', 'session_id', 'message_id', 'directory', 'version', 'title', 'type', 'data',
                    'time_created', 'time_updated'))";
        match self.connection.query_row(is_strange, [table], |row| row.get(0)).map_err(unreadable)? {
            true => Err(unreadable(format!("its table {table} is none that OpenCode makes"))),
            false => Ok(()),
        }
    }

    /// All sessions, and the number of those that can't be read.
    pub fn sessions(&self) -> Result<(Vec<OpenCodeSession>, usize)> {
        let places = self.places("session", "SELECT rowid FROM session ORDER BY time_created, id", [])?;
        let all = places.len();
        let mut sessions = Vec::new();
        for place in places {
            let sql = "SELECT id, parent_id, directory, version FROM session WHERE rowid = ?1";
            let read = |row: &Row<'_>| {
                let (id, parent, directory, version) = row.try_into()?;
                Ok(OpenCodeSession { place, id, parent, directory, version })
            };
            if let Some(session) = self.one(sql, place, read)? {
                let OpenCodeSession { id, parent, directory, version, .. } = &session;
                let parent = parent.as_ref().map_or(0, String::len);
                self.spend(id.len() + parent + directory.len() + version.len())?;
                sessions.push(session);
            }
        }
        let lost = all - sessions.len();
        Ok((sessions, lost))
    }

    /// A session's messages, oldest first. Newer versions store them in one row each, older ones have no such table.
    pub fn messages(&self, session: &str) -> Result<Vec<OpenCodePlace>> {
        let of = |table: &'static str| {
            let sql = format!("SELECT rowid FROM {table} WHERE session_id = ?1 ORDER BY time_created, id");
            self.places(table, &sql, [session])
        };
        let messages = of("message")?;
        let is_new = || self.connection.table_exists(None, "session_message").map_err(unreadable);
        if messages.is_empty() && is_new()? { of("session_message") } else { Ok(messages) }
    }

    /// A message's parts.
    pub fn parts(&self, message: OpenCodePlace) -> Result<Vec<OpenCodePlace>> {
        let sql =
            "SELECT rowid FROM part WHERE message_id = (SELECT id FROM message WHERE rowid = ?1) ORDER BY id";
        match message.0 {
            "message" => self.places("part", sql, [message.1]),
            _ => Ok(Vec::new()),
        }
    }

    /// A row; `None` if it can't be read.
    pub fn row(&self, place: OpenCodePlace) -> Result<Option<OpenCodeRow>> {
        let OpenCodePlace(table, _) = place;
        let data = match table {
            "session" => {
                "json_object('id', id, 'parentID', parent_id, 'directory', directory, 'version', version, 'title', title,
                             'time', json_object('created', time_created, 'updated', time_updated))"
            }
            // With the kind under `type`.
            "session_message" => "iif(json_valid(data), json_insert(data, '$.type', type), CAST(data AS TEXT))",
            _ => "CAST(data AS TEXT)",
        };
        let sql = format!("SELECT id, {data} FROM {table} WHERE rowid = ?1");
        let row: Option<(String, String)> = self.one(&sql, place, |row| row.try_into())?;
        let Some((id, json)) = row else { return Ok(None) };
        self.spend(id.len() + json.len())?;
        Ok(Some((table, id, json)))
    }

    fn places(&self, table: &'static str, sql: &str, of: impl Params) -> Result<Vec<OpenCodePlace>> {
        let mut query = self.connection.prepare_cached(sql).map_err(unreadable)?;
        let rows = query.query_map(of, |row| Ok(OpenCodePlace(table, row.get(0)?)));
        rows.and_then(Iterator::collect).map_err(|error| self.stopped(error))
    }

    fn one<T>(
        &self,
        sql: &str,
        place: OpenCodePlace,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        if self.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let mut query = self.connection.prepare_cached(sql).map_err(unreadable)?;
        match query.query_row([place.1], read) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Err(self.stopped(error))
            }
            read => Ok(read.ok()),
        }
    }

    /// Pages that form a cycle, or a column's default, could give the same text without end.
    fn spend(&self, bytes: usize) -> Result<()> {
        let left = self.left.get().checked_sub(bytes as u64);
        self.left.set(left.ok_or_else(|| unreadable("it gives more text than a file of its size holds"))?);
        Ok(())
    }

    fn stopped(&self, error: rusqlite::Error) -> Error {
        if self.cancel.is_cancelled() { Error::cancelled() } else { unreadable(error) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes a value")]
fn unreadable(why: impl ToString) -> Error {
    Error::invalid(format!("OpenCode's database can't be read: {}", why.to_string()))
}
