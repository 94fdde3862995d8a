//! Opening a project's database: which file it is, whose that is, and what is made if there is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{
    APPLICATION_ID, BUSY, NAMES, Opened, check_locks, check_own, is_busy, is_empty, keep_plans, list_words,
    mark, names, open_existing, other_format, project_in, unread, with_ending,
};
use super::project::merge_log;
use super::trouble::said;
use super::{read_only, schema, trouble};
use crate::upkeep::pages;
use lcm_model::error::{Code, Error, Result};
use lcm_model::files::{self, temporary::Temporary};

/// A file that could be opened but then not read.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    pub path: PathBuf,
    pub why: String,
}

/// Opens the store of the project `cwd` in `dir`, and creates what is missing.
///
/// A file that belongs to another program, has another format, is damaged or is otherwise unusable stays untouched,
/// and the next name is used instead. So the last file is in use, as long as it can be: it was begun because those
/// before it can't be read or written. A notice says so when it is begun, and every time if some history is not shown.
/// `damaged` lists files that could be opened and then turned out to be damaged.
pub(crate) fn open_project(dir: &Path, name: &str, cwd: &str, damaged: &[Damaged]) -> Result<Opened> {
    make_dir(dir)?;
    let (there, free): (Vec<_>, Vec<_>) = names(dir, name).partition(|path| path.symlink_metadata().is_ok());
    let mut passed: Option<(&Path, Error)> = None;
    for path in there.iter().rev().chain(&free) {
        let opened = match damaged.iter().find(|known| known.path == *path) {
            Some(Damaged { why, .. }) => Err(Error::damaged(said(path), why.as_str())),
            None => open_file(path, cwd),
        };
        match opened {
            Ok((connection, is_new)) => {
                let mut before = there.iter().take_while(|other| *other != path);
                let set_aside = || before.find_map(|other| Some((other.as_path(), set_aside(other, cwd)?)));
                let passed = passed.or_else(set_aside);
                let notice = passed.and_then(|(other, why)| notice(other, &why, path, is_new));
                return Ok(Opened { connection, place: Some(path.clone()), notice });
            }
            Err(error) if matches!(error.code(), Code::Foreign | Code::Format | Code::Damaged) => {
                passed = Some((path, error));
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::foreign(format!(
        "{}, and {} others next to it can't be used either: move them away, or set dbDir to another folder",
        passed.map(|(_, error)| error.to_string()).unwrap_or_default(),
        NAMES - 1
    )))
}

/// Why a file is not in use that another one follows.
pub(super) fn set_aside(path: &Path, cwd: &str) -> Option<Error> {
    let look = || make_file(path).and_then(|()| read_only::look(path, read_only::open));
    match look() {
        // It can be read; so what can't be is a part of it, or it can't be written.
        Ok((_, project)) if project == cwd => Some(Error::damaged(said(path), "it could not be written")),
        Ok(_) => None,
        Err(error) if error.code() == Code::Damaged && path.is_file() => {
            Some(Error::damaged(said(path), error.cause()))
        }
        Err(error) => Some(error),
    }
}

/// What to tell the user about the file `other` that was skipped in favor of `path`.
fn notice(other: &Path, why: &Error, path: &Path, is_new: bool) -> Option<String> {
    let path = path.display();
    match why.code() {
        Code::Damaged if other.is_file() => Some(format!(
            "{why}; new messages go to {path} instead, and this session from its beginning. /lcm doctor --rebuild joins both"
        )),
        code if is_new || code != Code::Foreign => Some(format!("{why}; the history goes to {path} instead")),
        _ => None,
    }
}

/// The files that a rebuild joins with `own`, which is one of them: those of this format under the project's names, and
/// those so damaged that this can't be told.
///
/// # Errors
/// When another process, or another session of this one, has one open.
pub fn joinable(own: &Path) -> Result<Vec<PathBuf>> {
    let name = own.file_stem().unwrap_or_default().to_string_lossy();
    let name = name.split('-').next().unwrap_or_default();
    let mut found = Vec::new();
    for path in names(own.parent().unwrap_or(Path::new("")), name).filter(|path| path.is_file()) {
        check_own(&path)?;
        // The last reads of this process may still be under way.
        let mut tries = 0..50;
        while !merge_log(&path)? {
            if tries.next().is_some() {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            let path = path.display();
            return Err(Error::invalid(format!("another process has {path} open: quit it, and try again")));
        }
        // Only now: closing the file would drop the locks of another session of this process.
        if pages::may_be_ours(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Puts a finished database in the place of the first of these files, each of which gets its other name.
pub fn replace(fresh: Temporary, olds: &[(PathBuf, PathBuf)]) -> std::io::Result<()> {
    let Some((at, _)) = olds.first() else { return Ok(()) };
    for (old, kept) in olds {
        for ending in ["-wal", "-shm", "-journal"] {
            // SQLite would take a log for the new file's.
            let other = with_ending(old, ending);
            if other.exists() {
                fs::rename(other, with_ending(kept, ending))?;
            }
        }
        // With two names, there is a database at every moment.
        if old != at || fs::hard_link(old, kept).is_err() {
            fs::rename(old, kept)?;
        }
    }
    fresh.become_file(at.file_name().unwrap_or_default(), true)
}

/// Tries to open for writing a file that could only be read so far.
pub(crate) fn open_again(path: &Path, cwd: &str) -> Result<Connection> {
    let (connection, _) = open_file(path, cwd)?;
    // Reads that are still queued may need it.
    list_words(&connection).map_err(|error| unread(path, error))?;
    Ok(connection)
}

/// A store in memory.
pub(crate) fn open_memory(cwd: &str) -> Result<Opened> {
    let failed = |error| Error::storing("failed to open a history store in memory", error);
    let mut connection = Connection::open_in_memory().map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    keep_plans(&connection).map_err(failed)?;
    schema::create(&mut connection)?;
    claim(&connection, cwd).map_err(failed)?;
    list_words(&connection).map_err(failed)?;
    Ok(Opened { connection, place: None, notice: None })
}

/// Returns the connection and whether the database is new.
pub(super) fn open_file(path: &Path, cwd: &str) -> Result<(Connection, bool)> {
    let failed = |error: rusqlite::Error| {
        let remedy = "if this persists, /lcm doctor --rebuild rebuilds it";
        let error = Error::storing(format!("failed to open {} ({remedy})", path.display()), error);
        trouble::explained_at_opening(error, path)
    };
    check_own(path)?;
    make_file(path)?;
    check_locks(path).map_err(|error| Error::storing(trouble::lockless(path), error))?;
    let mut connection = open_existing(path).map_err(failed)?;
    connection.busy_handler(Some(BUSY)).map_err(failed)?;
    let is_new = check_owner(&connection, path, cwd, failed)?;
    set_up(&connection).map_err(failed)?;
    schema::create(&mut connection).map_err(|error| trouble::explained_at_opening(error, path))?;
    claim(&connection, cwd).map_err(failed)?;
    Ok((connection, is_new))
}

/// Rejects a database that is not ours, or another project's, before anything is written to it. Returns whether it is empty.
fn check_owner(
    connection: &Connection,
    path: &Path,
    cwd: &str,
    failed: impl Fn(rusqlite::Error) -> Error,
) -> Result<bool> {
    if is_empty(connection).map_err(&failed)? {
        return Ok(true);
    }
    // While another process makes the tables, they and the mark commit together, so this sees
    // either both or neither.
    if mark(connection).map_err(&failed)? != APPLICATION_ID {
        return Err(Error::foreign(format!("{} belongs to another program", path.display())));
    }
    let version = schema::format(connection).map_err(&failed)?;
    if version != schema::FORMAT {
        return Err(other_format(path, version));
    }
    match project_in(connection).map_err(&failed)? {
        Some(owner) if owner != cwd => {
            Err(Error::foreign(format!("{} holds the history of another project, {owner}", path.display())))
        }
        _ => Ok(false),
    }
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    if is_empty(connection)? {
        // These must come before the first write and have no effect later. Index merges leave free pages,
        // which go back to the disk from time to time. Pages of 8 KB made a store of 1 MB a tenth larger.
        connection.pragma_update(None, "page_size", 4096)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        // The mark is written with the header, before any table.
        patiently(|| connection.pragma_update(None, "application_id", APPLICATION_ID))?;
    }
    keep_plans(connection)?;
    patiently(|| connection.pragma_update(None, "journal_mode", "WAL"))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    // The pages that a large transaction touches: otherwise it writes them out before its end, and reads them again.
    connection.pragma_update(None, "cache_size", -16 * 1024)?;
    // The log stays small: with pages of 4 KB, it is moved into the database from 2 MB on. A longer file is cut each time that it
    // is written from its start again.
    connection.pragma_update(None, "wal_autocheckpoint", 512)?;
    connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)
}

/// SQLite does not wait for locks when it changes the journal mode, so two processes that start at once must
/// retry.
fn patiently(mut step: impl FnMut() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    for _ in 0..100 {
        match step() {
            Err(error) if is_busy(&error) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done,
        }
    }
    step()
}

/// Records which project the database belongs to, unless one is recorded.
fn claim(connection: &Connection, cwd: &str) -> rusqlite::Result<()> {
    if project_in(connection)?.is_some() {
        return Ok(());
    }
    connection.execute("INSERT OR IGNORE INTO _metadata (key, value) VALUES ('cwd', ?1)", [cwd]).map(drop)
}

/// Creates the folder, for its owner only.
fn make_dir(dir: &Path) -> Result<()> {
    let failed = |error| {
        let remedy = "create it, or set dbDir to another folder";
        Error::storing(format!("failed to create the folder {} ({remedy})", dir.display()), error)
    };
    if !dir.is_dir() {
        files::make_private_dir(dir).map_err(failed)?;
    }
    // Another user may have created it first.
    files::check_own(dir)
}

/// Creates the file, for its owner only; SQLite gives its log the same permissions.
///
/// This must not open an existing file: when a process closes a file, POSIX drops all its locks on it,
/// including those of SQLite in another session of the same process.
fn make_file(path: &Path) -> Result<()> {
    match (path.metadata(), path.is_symlink()) {
        (Ok(there), _) if there.is_file() => return Ok(()),
        (Ok(there), _) => {
            let what = if there.is_dir() { "a folder" } else { "not a regular file" };
            return Err(Error::foreign(format!("{} is {what}", path.display())));
        }
        // Its target may be on a disk that is not mounted now.
        (Err(error), true) => {
            return Err(Error::damaged(format!("{} is a broken symbolic link", path.display()), error));
        }
        (Err(_), false) => {}
    }
    match files::private_file(path) {
        // Another process that started at the same time created it first.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => {
            let remedy = "make it writable, or set dbDir to another folder";
            Err(Error::storing(format!("failed to create {} ({remedy})", path.display()), error))
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{StatementStatus, TransactionBehavior};

    use super::super::connection::{BRIEFLY, RetryRule, open_reader};
    use super::*;

    #[test]
    fn work_waits_for_another_process_and_what_is_not_worth_it_gives_up_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let (mut other, _) = open_file(&path, "/project").unwrap();
        let write = |patience: RetryRule| {
            let mut connection = Connection::open(&path).unwrap();
            connection.busy_handler(Some(patience)).unwrap();
            connection.execute("DELETE FROM claims", [])
        };
        let writing = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| write(BUSY));
            let gives_up = write(BRIEFLY).unwrap_err();
            assert!(is_busy(&gives_up));
            assert!(!waits.is_finished());
            writing.commit().unwrap();
            assert_eq!(waits.join().unwrap(), Ok(0));
        });
    }

    #[test]
    fn an_opening_does_not_wait_for_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let (mut other, _) = open_file(&path, "/project").unwrap();
        let writing = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        assert!(open_file(&path, "/project").is_ok());
        drop(writing);
    }

    #[test]
    fn a_cached_statement_is_planned_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let (writer, _) = open_file(&path, "/project").unwrap();
        let memory = open_memory("/project").unwrap().connection;
        for connection in [&writer, &open_reader(&path).unwrap(), &memory] {
            // A join of which SQLite would look at the value.
            let sql = "SELECT m.id FROM entries e JOIN messages m ON m.id = e.head_id WHERE e.id = ?1";
            for value in 1..5 {
                let mut query = connection.prepare_cached(sql).unwrap();
                assert!(!query.exists([value]).unwrap());
                assert_eq!(query.get_status(StatementStatus::RePrepare), 0);
            }
        }
    }
}
