//! Databases of unknown origin: named with `--db`, or copied here to be imported.
//!
//! Nothing is written to them or next to them. An interrupted transaction is rolled back in a copy. Reading
//! always ends, even if pages form cycles.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::raw::c_int;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use tokio_util::sync::CancellationToken;

use super::connection::{self, with_ending};
use crate::files::{self, temporary::Temporary};
use crate::store::upkeep::backup;
use crate::text::megabytes;

/// Steps of SQLite's virtual machine between two checks whether to continue.
const STEPS: c_int = 10_000;
/// Checks allowed for any file, and the bytes that allow one more. Reading all of an intact history takes a
/// tenth of that.
const LOOKS: (u64, u64) = (1_000, 100);
/// The most bytes to copy: the copy is held in memory, and before that in the system's temporary folder, which
/// often is in memory too.
const LARGEST: u64 = 2 << 30;
/// Bytes to copy between two checks whether to continue.
const PART: u64 = 4 << 20;
/// How a rollback journal ends if it names another file, which SQLite would look for and delete.
const NAMES_ANOTHER: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Opens one for reading, until `cancel` is raised.
pub(in crate::store) fn open(path: &Path, cancel: &CancellationToken) -> rusqlite::Result<Connection> {
    let size = size(path);
    let has = |ending| with_ending(path, ending).metadata().is_ok_and(|file| file.len() > 0);
    // A second hard link may be someone's file, and writing here would change it.
    let there = |ending| with_ending(path, ending).metadata().is_ok_and(|file| has_one_name(&file));
    let mut connection = if has("-journal") || (has("-wal") && !there("-shm")) {
        in_memory(path, cancel)?
    } else if there("-wal") && there("-shm") {
        // Another process may be writing.
        backup::open_unchanged(path)?
    } else {
        backup::open_alone(path)?
    };
    guard(&mut connection, size, cancel)?;
    Ok(connection)
}

/// Whether reading was stopped, because it took too long or was cancelled.
pub(in crate::store) fn is_over(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

fn has_one_name(file: &fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(file) == 1;
    #[cfg(not(unix))]
    return file.is_file();
}

/// Stops queries when `cancel` is raised, or when they take longer than a database of this size can need.
fn guard(connection: &mut Connection, size: u64, cancel: &CancellationToken) -> rusqlite::Result<()> {
    let mut left = LOOKS.0 + size / LOOKS.1;
    let cancel = cancel.clone();
    let is_over = move || {
        left = left.saturating_sub(1);
        left == 0 || cancel.is_cancelled()
    };
    connection.progress_handler(STEPS, Some(is_over))
}

/// The bytes of a database and its log.
pub(super) fn size(path: &Path) -> u64 {
    ["", "-wal"].iter().map(|ending| files::bytes_of(&with_ending(path, ending))).sum()
}

/// The file's contents after the interrupted transaction is rolled back and the log is merged.
fn in_memory(path: &Path, cancel: &CancellationToken) -> rusqlite::Result<Connection> {
    let failed = |code, words| rusqlite::Error::SqliteFailure(ffi::Error::new(code), words);
    let bytes = ENDINGS.map(|ending| with_ending(path, ending).metadata().map_or(0, |file| file.len()));
    let bytes = bytes.into_iter().fold(0, u64::saturating_add);
    if bytes > LARGEST {
        return Err(failed(ffi::SQLITE_TOOBIG, Some(too_large(bytes))));
    }
    let copy = copy_of(path, cancel).map_err(|error| match cancel.is_cancelled() {
        true => failed(ffi::SQLITE_INTERRUPT, None),
        false => failed(ffi::SQLITE_CANTOPEN, Some(format!("it can't be copied: {error}"))),
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copied = Connection::open_with_flags(copy.path().join(NAME), flags)?;
    connection::distrust(&copied)?;
    let memory = backup::in_memory(&copied, cancel)?;
    connection::distrust(&memory)?;
    Ok(memory)
}

fn too_large(bytes: u64) -> String {
    let [bytes, largest] = [bytes, LARGEST].map(megabytes);
    format!(
        "it was not closed, and then at most {largest} are read, but it has {bytes}: open and close it once with \
         sqlite3"
    )
}

/// The copy's file name.
const NAME: &str = "copy.db";
/// The endings of the files that are copied.
const ENDINGS: [&str; 3] = ["", "-wal", "-journal"];

/// A copy in a temporary folder.
fn copy_of(path: &Path, cancel: &CancellationToken) -> io::Result<Temporary> {
    let copy = Temporary::folder()?;
    let name = copy.path().join(NAME);
    for ending in ENDINGS {
        let from = with_ending(path, ending);
        if from.exists() {
            copy_file(&from, &with_ending(&name, ending), cancel)?;
        }
    }
    let journal = with_ending(&name, "-journal");
    if journal.exists() {
        name_no_other(&journal)?;
    }
    Ok(copy)
}

/// Copies as many bytes as the file has now, until `cancel` is raised.
fn copy_file(from: &Path, to: &Path, cancel: &CancellationToken) -> io::Result<()> {
    let (from, mut to) = (files::open(from)?, File::create_new(to)?);
    let mut left = from.metadata()?.len();
    while left > 0 {
        if cancel.is_cancelled() {
            return Err(io::Error::other("it was stopped"));
        }
        let copied = io::copy(&mut (&from).take(left.min(PART)), &mut to)?;
        left = if copied == 0 { 0 } else { left - copied };
    }
    Ok(())
}

/// Removes the names of other files from a journal. Our own journals have none, because our transactions use
/// one database.
fn name_no_other(journal: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(journal)?;
    let mut end = [0; NAMES_ANOTHER.len()];
    // A forged journal may have several in a row.
    loop {
        let before = file.metadata()?.len().saturating_sub(end.len() as u64);
        file.seek(SeekFrom::Start(before))?;
        if file.read_exact(&mut end).is_err() || end != NAMES_ANOTHER {
            return Ok(());
        }
        file.set_len(before)?;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::store::db::connection;
    use crate::store::db::migrations;
    use crate::store::{OldStore, Store};

    /// A database of ours with this many sessions, in its own folder.
    fn history(sessions: usize) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        let mut ours = Connection::open(&path).unwrap();
        ours.pragma_update(None, "application_id", connection::APPLICATION_ID).unwrap();
        migrations::run(&mut ours).unwrap();
        ours.execute_batch("INSERT INTO _metadata VALUES ('cwd', '/project')").unwrap();
        say(&ours, 0, sessions);
        (dir, path)
    }

    fn say(ours: &Connection, after: usize, sessions: usize) {
        for id in after + 1..=after + sessions {
            let name = format!("{id:0>200}");
            ours.execute("INSERT INTO conversations VALUES (?1, ?2, NULL, NULL, 0, 0)", (id, name)).unwrap();
        }
    }

    /// The files of a folder with their bytes. Shared-memory files change with every reader, so theirs are
    /// left out.
    fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = dir.read_dir().unwrap().map(|file| file.unwrap().path());
        let is_shared = |path: &Path| path.to_string_lossy().ends_with("-shm");
        let of = |path: &Path| if is_shared(path) { Vec::new() } else { fs::read(path).unwrap() };
        files.map(|path| (path.clone(), of(&path))).collect()
    }

    /// What remains of a database after its writer is killed, copied to another folder.
    fn killed(path: &Path, endings: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        for ending in endings {
            fs::copy(with_ending(path, ending), dir.path().join(format!("killed.db{ending}"))).unwrap();
        }
        let there = dir.path().join("killed.db");
        (dir, there)
    }

    /// The number of sessions found by reading and by importing. Checks that the database is unchanged.
    async fn sessions_in(path: &Path) -> [usize; 2] {
        let before = bytes(path.parent().unwrap());
        let cancel = CancellationToken::new();
        let opened = Store::read_only_at(path, &cancel).unwrap();
        let seen = opened.store.read(|view| Ok(view.messages().session_ids()?.len())).await.unwrap();
        opened.store.close().await;
        let old = OldStore::open(path, &cancel).unwrap().sessions().unwrap().len();
        assert!(bytes(path.parent().unwrap()) == before, "something was written");
        [seen, old]
    }

    #[tokio::test]
    async fn an_interrupted_transaction_is_rolled_back_in_a_copy() {
        let (_dir, path) = history(100);
        let mut writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA cache_size = 5; PRAGMA cache_spill = 1").unwrap();
        let tx = writer.transaction().unwrap();
        say(&tx, 100, 2_000);
        let (dir, left) = killed(&path, &["", "-journal"]);
        assert!(fs::read(&left).unwrap().len() > 400_000, "half of it is in the file");
        assert_eq!(sessions_in(&left).await, [100, 100]);

        // The journal may name a file that SQLite would take for its own and delete.
        let victim = dir.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        let name = victim.to_str().unwrap().as_bytes();
        let sum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
        let length = u32::try_from(name.len()).unwrap();
        let journal = with_ending(&left, "-journal");
        let lock_page = u32::try_from((1_u64 << 30) / 4096 + 1).unwrap();
        let [page, length, sum] = [lock_page, length, sum].map(u32::to_be_bytes);
        let named = [&page[..], name, &length, &sum, &NAMES_ANOTHER].concat();
        fs::write(&journal, [fs::read(&journal).unwrap(), named].concat()).unwrap();
        assert_eq!(sessions_in(&left).await, [100, 100]);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    }

    #[tokio::test]
    async fn the_log_is_read_and_no_file_is_created() {
        let (_dir, path) = history(10);
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = wal").unwrap();
        say(&writer, 10, 20);
        let (_kept, left) = killed(&path, &["", "-wal"]);
        assert_eq!(sessions_in(&left).await, [30, 30]);
        // During writes.
        assert_eq!(sessions_in(&path).await, [30, 30]);
        writer.close().unwrap();
        assert_eq!(sessions_in(&path).await, [30, 30]);
    }

    #[test]
    fn only_so_much_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.db");
        fs::write(with_ending(&path, "-journal"), "x").unwrap();
        File::create(&path).unwrap().set_len(LARGEST).unwrap();
        let cancel = CancellationToken::new();
        let expected = "it was not closed, and then at most 2147.5 MB are read, but it has 2147.5 MB: \
                    open and close it once with sqlite3";
        let why = Store::read_only_at(&path, &cancel).err().unwrap().to_string();
        assert_eq!(why, format!("{} can't be read: {expected}", path.display()));
        let why = OldStore::open(&path, &cancel).err().unwrap().to_string();
        assert_eq!(why, format!("it can't be opened: {expected}"));
    }

    /// A page of a table's tree that lists `child` many times.
    fn forking(child: u32) -> Vec<u8> {
        let cells: u16 = 400;
        let mut page = vec![0; 4096];
        page[0] = 5;
        page[3..5].copy_from_slice(&cells.to_be_bytes());
        page[8..12].copy_from_slice(&child.to_be_bytes());
        for cell in 0..cells {
            // A child page, and the largest key below it in two bytes.
            let at = 4096 - 6 * (cell + 1);
            let pointer = usize::from(12 + 2 * cell);
            page[pointer..pointer + 2].copy_from_slice(&at.to_be_bytes());
            let number = u8::try_from(cell / 128).unwrap();
            let [high, low] = [0x80 | number, u8::try_from(cell % 128).unwrap()];
            let at = usize::from(at);
            page[at..at + 4].copy_from_slice(&child.to_be_bytes());
            page[at + 4..at + 6].copy_from_slice(&[high, low]);
        }
        page[5..7].copy_from_slice(&(4096 - 6 * cells).to_be_bytes());
        page
    }

    #[tokio::test]
    async fn reading_ends_even_if_pages_form_cycles() {
        let (_dir, path) = history(300);
        let ours = Connection::open(&path).unwrap();
        let root = |name: &str| -> u32 {
            ours.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
                .unwrap()
        };
        let (messages, entries, last) = (root("messages"), root("entries"), root("conversations"));
        let pages: u32 = ours.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        ours.close().unwrap();
        let mut file = fs::read(&path).unwrap();
        let leaf = file[4096 * (last as usize - 1) + 8..][..4].try_into().map(u32::from_be_bytes).unwrap();
        // Ten levels with four hundred children each.
        for table in [messages, entries] {
            file[4096 * (table as usize - 1)..][..4096].copy_from_slice(&forking(pages + 1));
        }
        for floor in 1..=10 {
            let below = if floor == 10 { leaf } else { pages + floor + 1 };
            file.extend(forking(below));
        }
        file[28..32].copy_from_slice(&(pages + 10).to_be_bytes());
        fs::write(&path, &file).unwrap();

        let cancel = CancellationToken::new();
        let store = Store::read_only_at(&path, &cancel).unwrap().store;
        let sum = |connection: &Connection| {
            connection.query_row("SELECT sum(tokens) FROM messages", [], |row| row.get::<_, Option<i64>>(0))
        };
        let why = store.read(move |view| sum(view.connection).map_err(crate::store::columns::reading)).await;
        let refusal = why.unwrap_err().to_string();
        assert!(
            refusal.contains("was stopped: it takes longer than an intact history of its size could"),
            "{refusal}"
        );
        store.close().await;
        // Reading row by row ends too.
        drop(OldStore::open(&path, &cancel));
        cancel.cancel();
        assert!(OldStore::open(&path, &cancel).is_err());
        assert!(fs::read(&path).unwrap() == file);
    }
}
