//! Connections to a database: their SQLite settings, and what tells whose file it is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, ffi};

use super::schema;
use lcm_model::error::{Error, Result};
use lcm_model::files::{self, temporary::Temporary};

/// Marks a database as ours (`PRAGMA application_id`): "PLCM".
pub(crate) const APPLICATION_ID: i64 = 0x504c_434d;
/// How long a statement waits for another process's transaction: about 5 s.
pub(crate) const BUSY: RetryRule = |tries| try_again(tries, 5_000);
/// The same, for work that is not worth waiting for: about 50 ms.
pub(crate) const BRIEFLY: RetryRule = |tries| try_again(tries, 50);
/// Whether to try again after so many tries.
pub(super) type RetryRule = fn(i32) -> bool;
/// Index pages merged per call: 2 MB, tens of milliseconds.
pub(super) const MERGED: usize = 500;
/// Free pages are kept for reuse up to one in this many.
const FREE_SHARE: usize = 50;
/// Pages returned to the disk per call: 8 MB, tens of milliseconds.
const GIVEN_BACK: usize = 2_000;
/// How many file names are tried when the first ones are occupied.
pub(super) const NAMES: usize = 9;

/// Waits a millisecond, `most` times. SQLite's own pauses grow to 100 ms, and miss the moments between the transactions of
/// another process's import.
fn try_again(tries: i32, most: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < most
}

/// An open connection for writing, its file unless it is in memory, and a notice for the user.
pub(crate) struct Opened {
    pub connection: Connection,
    pub place: Option<PathBuf>,
    pub notice: Option<String>,
}

/// The paths at which the database `name` may be, the first ones first.
pub(crate) fn names(dir: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    (1..=NAMES).map(move |number| match number {
        1 => dir.join(format!("{name}.db")),
        _ => dir.join(format!("{name}-{number}.db")),
    })
}

/// A read-only connection.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    reading(path).and_then(that_looks)
}

/// The error for a file that can't be opened for reading.
pub(crate) fn unread(path: &Path, error: rusqlite::Error) -> Error {
    Error::storing(format!("failed to read {}", path.display()), error)
}

/// The same, before any query. It is opened for writing nevertheless: the last connection to close removes
/// the log, and a read-only one would leave it behind.
pub(crate) fn reading(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open_patiently(path)?;
    distrust(&connection)?;
    Ok(connection)
}

/// Opens an existing file for writing.
pub(super) fn open_existing(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// The same, whose statements wait for other processes.
pub(super) fn open_patiently(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = open_existing(path)?;
    connection.busy_timeout(Duration::ZERO)?;
    if mark(&connection).is_err_and(|error| is_busy(&error)) {
        // As SQLite reports some file systems without locks.
        let no_locks = ffi::Error::new(ffi::SQLITE_IOERR_LOCK);
        check_locks(path).map_err(|_| rusqlite::Error::SqliteFailure(no_locks, None))?;
    }
    connection.busy_handler(Some(BUSY))?;
    Ok(connection)
}

/// Rejects a file system without locks, where SQLite would wait for a lock that no process holds. If no file can be
/// created there, what follows reports why.
pub(super) fn check_locks(path: &Path) -> rusqlite::Result<()> {
    let Ok((temporary, _)) = Temporary::beside(path) else { return Ok(()) };
    let lock = |new: Connection| {
        // No other process knows this file.
        new.busy_timeout(Duration::ZERO)?;
        new.execute_batch("BEGIN IMMEDIATE")
    };
    match Connection::open(temporary.path()).and_then(lock) {
        Err(error) if is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Keeps a connection for reading from running code in the file: views, triggers and functions of the schema.
pub(crate) fn distrust(connection: &Connection) -> rusqlite::Result<()> {
    for trusting in [
        DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
        DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
        DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    ] {
        connection.set_db_config(trusting, false)?;
    }
    keep_plans(connection)?;
    // Report malformed pages as damage instead of reading on.
    connection.pragma_update(None, "cell_size_check", true)
}

/// Keeps SQLite from planning a query by its values. It would plan a cached statement again at each use, which took
/// a third of a write.
pub(super) fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Prepares a connection and makes it read-only.
pub(crate) fn that_looks(connection: Connection) -> rusqlite::Result<Connection> {
    list_words(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Makes the index's word positions readable, as a temporary table of this connection.
pub(crate) fn list_words(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE VIRTUAL TABLE temp.index_places USING fts5vocab(main, messages_fts, instance);",
    )
}

pub(crate) fn other_format(path: &Path, format: i64) -> Error {
    Error::format(format!(
        "{} has format {format}, and this version of pi-lossless-context reads format {}: use the version that wrote it",
        path.display(),
        schema::FORMAT
    ))
}

pub(super) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// The mark of the program that made a database: see [`APPLICATION_ID`].
pub(crate) fn mark(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Merges index segments, then returns free pages to the disk if there are many; both in bounded steps. A
/// file created without auto-vacuum keeps its free pages and reuses them.
pub(crate) fn tidy_up(connection: &Connection) -> rusqlite::Result<()> {
    for index in ["messages_fts", "summaries_fts"] {
        connection.execute(&format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', {MERGED})"), [])?;
    }
    let number = |name| connection.query_row(name, [], |row| row.get::<_, usize>(0));
    let (free, all) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
    if free * FREE_SHARE > all {
        // The pragma returns a row per page, and stops when its reader does.
        let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({GIVEN_BACK})"))?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
    }
    Ok(())
}

/// Checks that a database, and the files SQLite reads with it, belong to the user alone.
pub(crate) fn check_own(path: &Path) -> Result<()> {
    let endings = ["", "-wal", "-shm", "-journal"];
    endings.iter().try_for_each(|ending| files::check_own(&with_ending(path, ending)))
}

/// The path of a file that SQLite keeps next to a database.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// Opens a database read-only and creates no files next to it.
pub(crate) fn open_unchanged(path: &Path) -> rusqlite::Result<Connection> {
    // Without a log, an immutable open creates no files.
    if with_ending(path, "-wal").exists() { open_as(path, "mode=ro") } else { open_alone(path) }
}

/// Opens only the database file and ignores the files next to it.
pub(crate) fn open_alone(path: &Path) -> rusqlite::Result<Connection> {
    open_as(path, "mode=ro&immutable=1")
}

fn open_as(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    // Byte by byte: a name need not be UTF-8.
    let path = path.as_os_str().as_encoded_bytes().iter().fold(String::new(), |mut uri, byte| {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri += &format!("%{byte:02x}"),
        }
        uri
    });
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{path}?{how}"), flags)?;
    distrust(&connection)?;
    Ok(connection)
}

/// The project of one of our databases.
pub(crate) fn project_in(connection: &Connection) -> rusqlite::Result<Option<String>> {
    if mark(connection)? != APPLICATION_ID {
        return Ok(None);
    }
    connection.query_row("SELECT value FROM _metadata WHERE key = 'cwd'", [], |row| row.get(0)).optional()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_is_opened_with_its_log() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(std::ffi::OsStr::from_bytes(b"old %3f#\xff\xe9.db"));
        let writer = Connection::open(&file).unwrap();
        writer.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE said (word TEXT)").unwrap();
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        writer.execute("INSERT INTO said VALUES ('in the log')", []).unwrap();
        let said = |connection: &Connection| -> usize {
            connection.query_row("SELECT count(*) FROM said", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(said(&open_alone(&file).unwrap()), 0);
        assert_eq!(said(&open_unchanged(&file).unwrap()), 1);
    }
}
