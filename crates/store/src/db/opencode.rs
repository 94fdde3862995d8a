//! Reads sessions from OpenCode's database. JSON columns are returned as their text.
//!
//! Rows are read one by one, so that an unreadable one costs no other.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::{Connection, Row};
use tokio_util::sync::CancellationToken;

use super::untrusted;
use crate::messages::codec;
use crate::tasks::go_on;
use lcm_model::error::{Error, Result};

/// The tables that are read.
const TABLES: [&str; 4] = ["session", "message", "part", "session_message"];
/// How many times its size an intact file can give: JSON writes a byte as up to six.
const MOST: u64 = 8;
/// The longest row in bytes: a message has it twice, as its text and as the record.
const LONGEST: u64 = codec::MOST_PACKED as u64 / 2;
/// What any file is allowed, so that SQLite can read an empty one.
const SHORTEST: u64 = 64 * 1024;
/// The longest id, folder or version in bytes: entries have them. OpenCode's ids have 30.
const LONGEST_KEY: usize = 4_096;
/// Can't be read: no row has such a place.
const NOWHERE: OpenCodePlace = OpenCodePlace("", 0);

/// OpenCode's database, opened read-only.
pub struct OpenCode {
    connection: Connection,
    /// Bytes of text that it may still give.
    left: Cell<u64>,
    /// The sessions that can be read.
    sessions: RefCell<HashSet<String>>,
    /// The rows of all sessions; `None` before they are read.
    rows: RefCell<Option<Rows>>,
    cancel: CancellationToken,
}

/// A session in it.
pub struct OpenCodeSession {
    pub place: OpenCodePlace,
    pub id: String,
    /// The session that started it, if it is a subagent's.
    pub parent: Option<String>,
    pub directory: String,
    pub version: String,
}

/// Where a row is: its table, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenCodePlace(&'static str, i64);

impl OpenCodePlace {
    /// Whether it is a message whose parts follow.
    pub fn is_message(&self) -> bool {
        self.0 == "message"
    }
}

/// A row, and what orders it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    seq: i64,
    time: i64,
    /// Empty if it is no text.
    id: String,
    place: OpenCodePlace,
}

/// Rows by the session or message that they belong to.
type Keys = HashMap<String, Vec<Key>>;

/// The rows of all sessions.
struct Rows {
    /// The messages of each session, in order.
    messages: Keys,
    /// The parts of each message.
    parts: Keys,
    /// Rows that can't be read or belong to no session or message.
    lost: usize,
}

/// A row: its table, its id, and its `data`; of a session, its fields as JSON.
pub type OpenCodeRow = (&'static str, String, String);

impl OpenCode {
    /// Opens the database at `path` for reading, until `cancel` is raised. It is never written.
    ///
    /// # Errors
    /// When it can't be read or is not OpenCode's, as for all methods here.
    pub fn open(path: &Path, cancel: &CancellationToken) -> Result<Self> {
        let most = untrusted::size(path).saturating_mul(MOST);
        let connection = untrusted::open(path, cancel).map_err(unreadable)?;
        let longest = i32::try_from(most.clamp(SHORTEST, LONGEST)).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest).map_err(unreadable)?;
        let (sessions, rows) = Default::default();
        let opened = Self { connection, left: Cell::new(most), sessions, rows, cancel: cancel.clone() };
        TABLES.iter().try_for_each(|table| opened.check(table))?;
        Ok(opened)
    }

    /// Refuses a table whose values are computed, as a small file could fill all memory, or that hides the
    /// rows' numbers.
    fn check(&self, table: &str) -> Result<()> {
        let is_strange = "SELECT EXISTS (SELECT 1 FROM pragma_table_list(?1) WHERE type <> 'table' OR wr)
                OR EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE lower(name) = 'rowid')
                OR EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0 AND lower(name) IN
                   ('id', 'parent_id', 'session_id', 'message_id', 'directory', 'version', 'title', 'type', 'data',
                    'time_created', 'time_updated', 'seq'))";
        match self.connection.query_row(is_strange, [table], |row| row.get(0)).map_err(unreadable)? {
            true => Err(unreadable(format!("its table {table} is none that OpenCode makes"))),
            false => Ok(()),
        }
    }

    /// All sessions, and the number of those that can't be read.
    pub fn sessions(&self) -> Result<(Vec<OpenCodeSession>, usize)> {
        let (mut keys, mut lost) = self.keys("session", "''", "time_created")?;
        let mut keys = keys.remove("").unwrap_or_default();
        keys.sort();
        lost += keys.len();
        let mut sessions = Vec::new();
        for Key { place, .. } in keys {
            let sql = "SELECT id, parent_id, directory, version FROM session WHERE rowid = ?1";
            let found = self.one(sql, place, |row| row.try_into())?;
            let Some((id, parent, directory, version)) = found else { continue };
            let lengths = [&id, &directory, &version].into_iter().chain(&parent).map(String::len);
            if lengths.clone().all(|length| length <= LONGEST_KEY) {
                self.spend(lengths.sum())?;
                self.sessions.borrow_mut().insert(id.clone());
                sessions.push(OpenCodeSession { place, id, parent, directory, version });
                lost -= 1;
            }
        }
        Ok((sessions, lost))
    }

    /// A session's messages, oldest first, each followed by its parts.
    pub fn rows(&self, session: &str) -> Result<Vec<OpenCodePlace>> {
        let mut read = self.rows.borrow_mut();
        let rows = match &mut *read {
            Some(rows) => rows,
            none => none.insert(self.all_rows()?),
        };
        let mut found = Vec::new();
        for Key { id, place, .. } in rows.messages.remove(session).unwrap_or_default() {
            found.push(place);
            // Of two messages with one id the first has the parts.
            let parts = if place.is_message() { rows.parts.remove(&id) } else { None };
            let mut parts = parts.unwrap_or_default();
            parts.sort();
            found.extend(parts.iter().map(|part| part.place));
        }
        // The first session reports what can't be read.
        found.extend(vec![NOWHERE; std::mem::take(&mut rows.lost)]);
        Ok(found)
    }

    /// Reads each table once: without an index, looking up each message would take too long.
    fn all_rows(&self) -> Result<Rows> {
        let (parts, lost_parts) = self.keys("part", "message_id", "0")?;
        let (mut messages, mut lost) = self.keys("message", "session_id", "time_created")?;
        lost += lost_parts;
        messages.values_mut().for_each(|messages| messages.sort());
        // Newer versions store a message in one row; a session continued there has both kinds.
        let newer = "session_message";
        if self.connection.table_exists(None, newer).map_err(unreadable)? {
            let (new, lost_new) = self.keys(newer, "session_id", "time_created")?;
            lost += lost_new;
            for (session, mut new) in new {
                new.sort();
                let messages = messages.entry(session).or_default();
                let known: HashSet<String> = messages.iter().map(|message| message.id.clone()).collect();
                new.retain(|message| message.id.is_empty() || !known.contains(&message.id));
                // Their own order is kept.
                let mut latest = i64::MIN;
                for message in &mut new {
                    latest = latest.max(message.time);
                    message.time = latest;
                }
                messages.extend(new);
                messages.sort_by_key(|message| message.time);
            }
        }
        let sessions = self.sessions.borrow();
        let stray = messages.extract_if(|session, _| !sessions.contains(session));
        lost += stray.map(|(_, keys)| keys.len()).sum::<usize>();
        let readable: HashSet<&str> =
            messages.values().flatten().map(|message| message.id.as_str()).collect();
        let is_lost = |(message, _): &(&String, &Vec<Key>)| !readable.contains(message.as_str());
        lost += parts.iter().filter(is_lost).map(|(_, keys)| keys.len()).sum::<usize>();
        Ok(Rows { messages, parts, lost })
    }

    /// The keys of a table's rows, and the number of rows that have none; damage that hides the rest counts as one. SQLite would
    /// sort long keys in files, without limit.
    fn keys(&self, table: &'static str, above: &str, time: &str) -> Result<(Keys, usize)> {
        let has_seq = self.connection.column_exists(None, table, "seq").map_err(unreadable)?;
        let number = |column: &str| format!("iif(typeof({column}) = 'integer', {column}, 0)");
        let [seq, time] = [if has_seq { "seq" } else { "0" }, time].map(number);
        let sql = format!("SELECT rowid, {above}, {seq}, {time}, id FROM {table}");
        let mut query = self.connection.prepare(&sql).map_err(unreadable)?;
        let mut rows = query.query([]).map_err(unreadable)?;
        let (mut keys, mut lost) = (Keys::new(), 0);
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) if untrusted::is_over(&error) => return Err(self.stopped(error)),
                Err(_) => {
                    lost += 1;
                    break;
                }
            };
            let text = |at| row.get_ref(at).ok()?.as_str().ok();
            let number = |at| row.get(at).map_err(unreadable);
            let (above, id) = (text(1), text(4).unwrap_or_default());
            let lengths = [above.map_or(0, str::len), id.len()];
            self.spend(size_of::<Key>() + lengths.iter().sum::<usize>())?;
            let Some(above) = above.filter(|_| lengths.iter().all(|length| *length <= LONGEST_KEY)) else {
                lost += 1;
                continue;
            };
            let (seq, time, place) = (number(2)?, number(3)?, OpenCodePlace(table, number(0)?));
            keys.entry(above.to_owned()).or_default().push(Key { seq, time, id: id.to_owned(), place });
        }
        Ok((keys, lost))
    }

    /// A row; `None` if it can't be read.
    pub fn row(&self, place: OpenCodePlace) -> Result<Option<OpenCodeRow>> {
        let OpenCodePlace(table, _) = place;
        let data = match table {
            "" => return Ok(None),
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

    fn one<T>(
        &self,
        sql: &str,
        place: OpenCodePlace,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        go_on(&self.cancel)?;
        let mut query = self.connection.prepare_cached(sql).map_err(unreadable)?;
        match query.query_row([place.1], read) {
            Err(error) if untrusted::is_over(&error) => Err(self.stopped(error)),
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
    let why = why.to_string();
    // Without our query.
    let why = why.split_once(" in SELECT ").map_or(why.as_str(), |(why, _)| why);
    let why = match why {
        "database is locked" => "another program locks it (wait for it, or quit it)",
        "no such table: session" => return Error::invalid("it is not a database of OpenCode"),
        why => why,
    };
    Error::invalid(format!("OpenCode's database can't be read: {why}"))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_locked_database_is_reported_with_a_remedy() {
        let words = Some("database is locked".to_owned());
        let locked = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), words);
        assert_eq!(
            unreadable(locked).to_string(),
            "OpenCode's database can't be read: another program locks it (wait for it, or quit it)"
        );
    }
}
