//! Backups: a copy of the database as one moment had it, held against that before it counts as one.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use crate::error::{Error, Result};
use crate::store::columns::reading;
use crate::store::db::connection;
use crate::store::{Upkeep, UpkeepWriter};
use crate::text;

/// The key under which stands where backups were written, a JSON array.
const BACKUPS: &str = "backups";

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupFacts {
    /// Its size.
    pub bytes: u64,
    /// Messages in it, edited renditions included.
    pub messages: usize,
    /// Sessions in it.
    pub sessions: usize,
    /// Summaries in it.
    pub summaries: usize,
}

/// `<name>.db.20261120T091200000Z.bak`, beside the database.
#[must_use]
pub fn backup_name(database: &Path) -> PathBuf {
    let time: String = text::timestamp(text::now()).chars().filter(char::is_ascii_alphanumeric).collect();
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{time}.bak"));
    database.with_file_name(name)
}

/// Opens a database that nobody writes to, and leaves nothing beside it.
pub(in crate::store) fn open_unchanged(path: &Path) -> rusqlite::Result<Connection> {
    // Without a log nothing is written beside it either.
    let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().to_string_lossy()));
    if log.exists() { open_as(path, "mode=ro") } else { open_alone(path) }
}

/// A copy of a database in memory.
pub(in crate::store) fn in_memory(connection: &Connection) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open_in_memory()?;
    copy_all(connection, &mut copy)?;
    Ok(copy)
}

fn copy_all(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    let backup = Backup::new(from, to)?;
    while backup.step(4096)? != StepResult::Done {}
    Ok(())
}

/// The same of the file alone, whatever lies beside it.
pub(in crate::store) fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    open_as(path, "mode=ro&immutable=1")
}

fn open_as(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{path}?{how}"), flags)?;
    connection::distrust(&connection)?;
    Ok(connection)
}

impl Upkeep<'_> {
    /// Copies the database, as this view sees it, into a new file that its owner alone can read.
    ///
    /// # Errors
    /// When there is such a file, or it can't be written; what was written of it is gone then.
    pub fn back_up(&self, path: &Path) -> Result<()> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::storing(format!("failed to write the backup {}", path.display()), error)
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        drop(options.open(path).map_err(|error| failed(error.into()))?);
        self.copy_into(path).map_err(|error| {
            let _ = std::fs::remove_file(path);
            failed(error.into())
        })
    }

    fn copy_into(&self, path: &Path) -> rusqlite::Result<()> {
        // SQLite begins to look when something is first read, and a backup does not count as that: what others write meanwhile
        // would be in the one and not in the other.
        self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let mut copy = Connection::open(path)?;
        copy_all(self.connection, &mut copy)?;
        copy.close().map_err(|(_, error)| error)
    }

    /// The same, and then reads the copy: that SQLite finds it whole, and that everything is in it.
    ///
    /// # Errors
    /// Also when it is not; then it is left where it is, to be looked at.
    pub fn back_up_and_verify(&self, path: &Path) -> Result<BackupFacts> {
        self.back_up(path)?;
        let wrong = |why: String| {
            Error::store(format!(
                "the backup {} differs from the database, so do not rely on it: {why}",
                path.display()
            ))
        };
        let unreadable = |error: rusqlite::Error| wrong(error.to_string());
        let copy = open_unchanged(path).map_err(unreadable)?;
        let verdict: String =
            copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(unreadable)?;
        if verdict != "ok" {
            return Err(wrong(verdict));
        }
        let (here, there) = (counts(self.connection).map_err(reading)?, counts(&copy).map_err(unreadable)?);
        if here != there {
            return Err(wrong(format!("it has {there:?} of {here:?} rows")));
        }
        let [sessions, messages, _, summaries, _] = there;
        let bytes = path.metadata().map_err(|error| wrong(error.to_string()))?.len();
        Ok(BackupFacts { bytes, messages, sessions, summaries })
    }

    /// Where backups were written to, as far as that was noted.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn backups(&self) -> Result<Vec<PathBuf>> {
        let noted: Option<String> = (self.connection)
            .prepare_cached("SELECT value FROM _metadata WHERE key = ?1")
            .and_then(|mut query| query.query_row([BACKUPS], |row| row.get(0)).optional())
            .map_err(reading)?;
        Ok(noted.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }
}

/// Sessions, messages, entries, summaries, edges.
fn counts(connection: &Connection) -> rusqlite::Result<[usize; 5]> {
    let mut counts = [0; 5];
    let tables = ["conversations", "messages", "entries", "summaries", "summary_sources"];
    for (count, table) in counts.iter_mut().zip(tables) {
        *count = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    }
    Ok(counts)
}

impl UpkeepWriter<'_> {
    /// Notes where the history lies too, so that a purge can name it.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn note_backup(&self, path: &Path) -> Result<()> {
        let mut backups = self.backups()?;
        backups.retain(|known| known != path && known.exists());
        backups.push(path.to_owned());
        self.run(
            "INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)",
            params![BACKUPS, serde_json::json!(backups).to_string()],
        )
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_of_the_moment_that_the_view_shows_whatever_is_written_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history.db");
        let writer = Connection::open(&file).unwrap();
        writer.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE said (word TEXT)").unwrap();
        let said = |connection: &Connection| -> usize {
            connection.query_row("SELECT count(*) FROM said", [], |row| row.get(0)).unwrap()
        };

        let mut reader = Connection::open(&file).unwrap();
        let moment = reader.transaction().unwrap();
        let copy = dir.path().join("history.bak");
        Upkeep::new(&moment).back_up(&copy).unwrap();
        writer.execute("INSERT INTO said VALUES ('meanwhile')", []).unwrap();
        assert_eq!(said(&moment), 0);
        assert_eq!(said(&Connection::open(&copy).unwrap()), 0);
        drop(moment);
        assert_eq!(said(&reader), 1);
    }
}
