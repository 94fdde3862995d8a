//! Backups: a consistent copy of the database, verified against the original.

use std::os::raw::c_int;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ffi};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::columns::Queries as _;
use crate::db::connection::open_unchanged;
use crate::tasks::go_on;
use crate::{Messages, Upkeep, UpkeepWriter};
use lcm_model::error::{Error, Result};
use lcm_model::files::temporary::Temporary;
use lcm_model::text;

/// The key for the paths of backups, a JSON array.
const BACKUPS: &str = "backups";

/// Pages to copy, and steps of SQLite's virtual machine to run, between two checks whether to continue.
const PAGES: c_int = 1024;
const STEPS: c_int = 10_000;

/// The contents of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BackupFacts {
    pub bytes: u64,
    pub messages: usize,
    pub sessions: usize,
    pub summaries: usize,
}

/// `<name>.db.20261120T091200000Z.bak`, next to the database.
pub fn backup_name(database: &Path) -> PathBuf {
    let time: String = text::timestamp(text::now()).chars().filter(char::is_ascii_alphanumeric).collect();
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{time}.bak"));
    database.with_file_name(name)
}

fn copy_all(from: &Connection, to: &mut Connection, cancel: &CancellationToken) -> rusqlite::Result<()> {
    let backup = Backup::new(from, to)?;
    while backup.step(PAGES)? != StepResult::Done {
        if cancel.is_cancelled() {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None));
        }
    }
    Ok(())
}

/// Gives a copy that was made next to `path` this name.
fn named(copy: Temporary, path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default();
    copy.become_file(name, false).map_err(|error| unwritten(path, error))
}

impl Upkeep<'_> {
    /// Copies the database, as this view sees it, into a file next to `path` that only its owner can read.
    fn copy_beside(&self, path: &Path, cancel: &CancellationToken) -> Result<Temporary> {
        let (copy, _) = Temporary::beside(path).map_err(|error| unwritten(path, error))?;
        match self.copy_into(&copy.path(), cancel) {
            _ if cancel.is_cancelled() => Err(Error::cancelled()),
            copied => copied.map(|()| copy).map_err(|error| unwritten(path, error)),
        }
    }

    fn copy_into(&self, path: &Path, cancel: &CancellationToken) -> rusqlite::Result<()> {
        // SQLite's snapshot begins with the first read, and a backup does not count as one. Without this
        // query, concurrent writes would be in one of the two only.
        self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let mut copy = Connection::open(path)?;
        // A partial copy is removed, so it needs no journal, which would be left behind at an exit.
        copy.pragma_update(None, "journal_mode", "off")?;
        copy_all(self.connection, &mut copy, cancel)?;
        copy.close().map_err(|(_, error)| error)
    }

    /// Copies the database, as this view sees it, into a new file that only its owner can read, and reads the copy to
    /// verify that it is intact and complete.
    ///
    /// # Errors
    /// When the file exists or can't be written, or when `cancel` is raised: no partial file is left. Also when the copy is
    /// not intact; then it stays for inspection.
    pub fn back_up_and_verify(&self, path: &Path, cancel: &CancellationToken) -> Result<BackupFacts> {
        let copy = self.copy_beside(path, cancel)?;
        let verified = self.verify(&copy.path(), cancel);
        go_on(cancel)?;
        named(copy, path)?;
        verified.map_err(|why| {
            let path = path.display();
            Error::store(format!(
                "the backup {path} is not whole, so do not rely on it: /lcm doctor checks the database ({why})"
            ))
        })
    }

    /// Reads a copy; says how it differs.
    fn verify(
        &self,
        path: &Path,
        cancel: &CancellationToken,
    ) -> std::result::Result<BackupFacts, Box<dyn std::error::Error>> {
        let mut copy = open_unchanged(path)?;
        let cancel = cancel.clone();
        copy.progress_handler(STEPS, Some(move || cancel.is_cancelled()))?;
        let verdict: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(verdict.into());
        }
        let (here, there) = (counts(self.connection)?, counts(&copy)?);
        if here != there {
            return Err(format!("it has {there:?} of {here:?} rows").into());
        }
        let [_, _, _, summaries, _] = there;
        let stored = Messages::new(&copy);
        let (messages, sessions) = (stored.project_messages()?, stored.conversations()?);
        Ok(BackupFacts { bytes: path.metadata()?.len(), messages, sessions, summaries })
    }

    /// The recorded paths of backups.
    pub fn backups(&self) -> Result<Vec<PathBuf>> {
        Ok(self.fact(BACKUPS)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }
}

fn unwritten(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::storing(format!("failed to write the backup {}", path.display()), error)
}

/// The numbers of rows: sessions, messages of any kind, entries, summaries and edges.
fn counts(connection: &Connection) -> rusqlite::Result<[usize; 5]> {
    let mut counts = [0; 5];
    let tables = ["conversations", "messages", "entries", "summaries", "summary_sources"];
    for (count, table) in counts.iter_mut().zip(tables) {
        *count = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    }
    Ok(counts)
}

impl UpkeepWriter<'_> {
    /// Records the path of a backup, so that a purge can name it.
    pub fn note_backup(&self, path: &Path) -> Result<()> {
        let mut backups = self.backups()?;
        backups.retain(|known| known != path && known.exists());
        backups.push(path.to_owned());
        self.set_fact(BACKUPS, &serde_json::json!(backups).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_holds_what_the_view_shows_despite_concurrent_writes() {
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
        let copied = Upkeep::new(&moment).copy_beside(&copy, &CancellationToken::new()).unwrap();
        named(copied, &copy).unwrap();
        writer.execute("INSERT INTO said VALUES ('meanwhile')", []).unwrap();
        assert_eq!(said(&moment), 0);
        assert_eq!(said(&Connection::open(&copy).unwrap()), 0);
        drop(moment);
        assert_eq!(said(&reader), 1);
    }

    #[test]
    fn a_backup_that_is_stopped_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE said AS SELECT zeroblob(20000000)").unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let stopped = Upkeep::new(&connection).copy_beside(&dir.path().join("history.bak"), &cancel);
        assert_eq!(stopped.err().unwrap().code(), lcm_model::error::Code::Cancelled);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}
