//! Reads whatever is left of an old database: a backup, or one that was moved away because it was damaged or
//! too large.
//!
//! Rows are read one by one by id, so that an unreadable page costs only its own rows. The file is never
//! written.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::ids::{Hash, MessageId, Nonce};
use crate::model::{Content, Entry, replacements};
use crate::store::columns::{FromRow as _, Queries as _};
use crate::store::db::{connection, migrations, strange};
use crate::store::{Messages, StoredSession};
use crate::sync::go_on;

/// Rows to try if the database can't say how many there are.
const MANY: i64 = 1_000_000;

/// An old database.
pub struct OldStore {
    connection: Connection,
    /// Stops the reading.
    cancel: CancellationToken,
    /// Each session's entries, in order.
    entries: HashMap<i64, Vec<OldEntry>>,
    /// The number of sessions and entries so far whose rows can't be read at all.
    pub lost: usize,
}

/// The entries of a session in an old database.
pub struct OldEntries {
    /// Each entry's row and its parent's, in the order of the table.
    pub rows: Vec<(i64, Option<i64>)>,
    entries: HashMap<i64, OldEntry>,
    /// From the id of an entry to the message that it shows.
    shown: HashMap<String, i64>,
    /// From an unreadable entry to the nearest readable one above.
    gone: HashMap<i64, Option<i64>>,
}

struct OldEntry {
    row: i64,
    id: String,
    parent: Option<i64>,
    kind: i64,
    message: Option<i64>,
    target: Option<String>,
}

struct OldMessage {
    lineage: Hash,
    above: Option<i64>,
    timestamp: i64,
    json: String,
}

impl OldStore {
    /// Opens a database of ours, whoever made it, for reading until `cancel` is raised.
    ///
    /// # Errors
    /// When it is not ours, or so damaged that SQLite can't open it.
    pub fn open(path: &Path, cancel: &CancellationToken) -> Result<Self> {
        let failed = |error: rusqlite::Error| Error::invalid(format!("it can't be opened: {error}"));
        if !path.is_file() {
            return Err(Error::invalid("it is not a regular file"));
        }
        let connection = strange::open(path, cancel).map_err(failed)?;
        if connection::mark(&connection).map_err(failed)? != connection::APPLICATION_ID {
            return Err(Error::invalid("it is not a database of this extension"));
        }
        if migrations::version(&connection).map_err(failed)? > migrations::current() {
            return Err(Error::invalid("a newer version of this extension wrote it: that one can import it"));
        }
        if !migrations::is_ours(&connection).map_err(failed)? {
            return Err(Error::invalid("another program has changed it: import Pi's session files instead"));
        }
        let mut store = Self { connection, cancel: cancel.clone(), entries: HashMap::new(), lost: 0 };
        let mut entries: HashMap<i64, Vec<OldEntry>> = HashMap::new();
        let sql = "SELECT * FROM entries WHERE id = ?1";
        store.lost += store.each("entries", sql, |row| {
            let entry = OldEntry {
                row: row.get("id")?,
                id: row.get("entry_id")?,
                parent: row.get("parent_id")?,
                kind: row.get("kind")?,
                message: row.get("message_id")?,
                target: row.get("target")?,
            };
            entries.entry(row.get("conversation_id")?).or_default().push(entry);
            Ok(())
        })?;
        store.entries = entries;
        Ok(store)
    }

    pub(in crate::store) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The sessions.
    ///
    /// # Errors
    /// When none can be read.
    pub fn sessions(&mut self) -> Result<Vec<StoredSession>> {
        let mut sessions = Vec::new();
        self.lost += self.each("conversations", "SELECT * FROM conversations WHERE id = ?1", |row| {
            sessions.push(StoredSession::from_row(row)?);
            Ok(())
        })?;
        Ok(sessions)
    }

    /// A session's entries, whose contents are not read yet.
    pub fn entries(&mut self, session: &StoredSession) -> OldEntries {
        let entries = self.entries.remove(&session.id.0).unwrap_or_default();
        let shown = (entries.iter())
            .filter(|entry| entry.kind == 1)
            .filter_map(|entry| Some((entry.id.clone(), entry.message?)))
            .collect();
        let rows = entries.iter().map(|entry| (entry.row, entry.parent)).collect();
        let entries = entries.into_iter().map(|entry| (entry.row, entry)).collect();
        OldEntries { rows, entries, shown, gone: HashMap::new() }
    }

    /// An entry with its content, below `parent` of [`OldEntries::rows`]; `None` if it can't be read. Its
    /// children then move up to the nearest readable entry above. Parents must be read before children.
    pub fn entry(&self, entries: &mut OldEntries, row: i64, parent: Option<i64>) -> Option<Entry> {
        let OldEntries { entries, shown, gone, .. } = entries;
        let entry = entries.get(&row)?;
        let parent = parent.and_then(|parent| *gone.get(&parent).unwrap_or(&Some(parent)));
        let Some((content, timestamp)) = self.content(entry, shown) else {
            gone.insert(row, parent);
            return None;
        };
        let parent = parent.and_then(|parent| entries.get(&parent)).map(|parent| parent.id.clone());
        Some(Entry { id: entry.id.clone(), parent, timestamp, content })
    }

    /// An entry's content and time; `None` if they can't be read.
    fn content(&self, entry: &OldEntry, shown: &HashMap<String, i64>) -> Option<(Content, i64)> {
        if let Some((nonce, timestamp)) = entry.message.and_then(|message| self.purged(message)) {
            return Some((Content::Purged(nonce), timestamp));
        }
        match (entry.kind, entry.message, &entry.target) {
            (1, Some(message), _) => {
                self.message(message).map(|message| (Content::Message(message.json), message.timestamp))
            }
            (2, None, Some(target)) => Some((Content::Edit { target: target.clone(), replacement: None }, 0)),
            (2, Some(rendition), Some(target)) => {
                let rendition = self.message(rendition)?;
                let original =
                    self.message(rendition.above.or_else(|| shown.get(target.as_str()).copied())?)?;
                let replacement = (replacements(&original.json, &rendition.json).into_iter())
                    .find(|replacement| original.lineage.edited(replacement) == rendition.lineage)?;
                let content = Content::Edit { target: target.clone(), replacement: Some(replacement) };
                Some((content, rendition.timestamp))
            }
            (0, ..) => Some((Content::Other, 0)),
            (3, ..) => Some((Content::Compaction(None), 0)),
            _ => None,
        }
    }

    /// A purged message's placeholder and time.
    fn purged(&self, id: i64) -> Option<(Nonce, i64)> {
        self.connection.one("SELECT json, timestamp FROM messages WHERE id = ?1 AND kind = 4", [id]).ok()
    }

    fn message(&self, id: i64) -> Option<OldMessage> {
        let sql = "SELECT lineage, parent_id, timestamp FROM messages WHERE id = ?1";
        let (lineage, above, timestamp) = self.connection.one(sql, [id]).ok()?;
        let json = Messages::new(&self.connection).json_of(MessageId(id)).ok()?;
        Some(OldMessage { lineage, above, timestamp, json })
    }

    /// Visits each row of a table. Returns how many can't be read.
    fn each(
        &self,
        table: &str,
        by_id: &str,
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<usize> {
        let failed = |error: rusqlite::Error| Error::invalid(format!("it can't be read: {error}"));
        let last = format!("SELECT coalesce(max(id), 0) FROM {table}");
        let last: i64 = self.connection.one(&last, []).unwrap_or(MANY);
        let next = format!("SELECT min(id) FROM {table} WHERE id >= ?1");
        let mut next = self.connection.prepare(&next).map_err(failed)?;
        let mut query = self.connection.prepare(by_id).map_err(failed)?;
        let (mut lost, mut id, mut blind) = (0, 1, 0);
        while id <= last && blind <= MANY {
            // A gap between two rows is skipped, however wide. If its end can't be read, rows are tried one
            // by one.
            match next.query_row([id], |row| row.get::<_, Option<i64>>(0)) {
                Ok(Some(found)) if found >= id => (id, blind) = (found, 0),
                Ok(None) => break,
                Err(error) if strange::is_over(&error) => return Err(failed(error)),
                // A row before this one: pages that point back.
                Ok(Some(_)) | Err(_) => blind += 1,
            }
            go_on(&self.cancel)?;
            lost += usize::from(query.query_row([id], |row| visit(row)).optional().is_err());
            let Some(after) = id.checked_add(1) else { break };
            id = after;
        }
        Ok(lost)
    }
}
