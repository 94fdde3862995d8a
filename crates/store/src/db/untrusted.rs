//! Databases of unknown origin that are read in place: named with `--db`, or OpenCode's.
//!
//! Nothing is written to them or next to them. Reading always ends, even if pages form cycles.

use std::fs;
use std::os::raw::c_int;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, ffi};
use tokio_util::sync::CancellationToken;

use super::connection::{open_alone, open_unchanged, with_ending};

use lcm_model::files;

/// Steps of SQLite's virtual machine between two checks whether to continue.
const STEPS: c_int = 10_000;
/// Checks allowed for any file, and the bytes that allow one more. Reading all of an intact history takes a
/// tenth of that.
const LOOKS: (u64, u64) = (1_000, 100);

/// Opens one for reading, until `cancel` is raised.
///
/// # Errors
/// Also when its last transactions are in a file next to it and no process has it open: SQLite would change both.
pub(crate) fn open(path: &Path, cancel: &CancellationToken) -> rusqlite::Result<Connection> {
    let has = |ending| with_ending(path, ending).metadata().is_ok_and(|file| file.len() > 0);
    // A second hard link may be someone's file, and writing here would change it.
    let there = |ending| with_ending(path, ending).metadata().is_ok_and(|file| has_one_name(&file));
    if has("-journal") || (has("-wal") && !there("-shm")) {
        let why = "it was not closed: open and close it once with sqlite3, or import it";
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CANTOPEN), Some(why.into())));
    }
    let mut connection = if there("-wal") && there("-shm") {
        // Another process may be writing.
        open_unchanged(path)?
    } else {
        open_alone(path)?
    };
    guard(&mut connection, size(path), cancel)?;
    Ok(connection)
}

/// Whether reading was stopped, because it took too long or was cancelled.
pub(crate) fn is_over(error: &rusqlite::Error) -> bool {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::db::connection;
    use crate::db::schema;
    use crate::{OldStore, Store};

    /// A database of ours with this many sessions, in its own folder.
    fn history(sessions: usize) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        let mut ours = Connection::open(&path).unwrap();
        ours.pragma_update(None, "application_id", connection::APPLICATION_ID).unwrap();
        schema::create(&mut ours).unwrap();
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
        let seen = match Store::read_only_at(path, &cancel) {
            Ok(opened) => {
                let seen = opened.store.read(|view| Ok(view.messages().session_ids()?.len())).await.unwrap();
                opened.store.close().await;
                seen
            }
            Err(why) => {
                assert!(
                    why.to_string().contains("it was not closed: open and close it once with sqlite3"),
                    "{why}"
                );
                0
            }
        };
        let elsewhere = tempfile::tempdir().unwrap();
        let old =
            OldStore::open(path, &elsewhere.path().join("x"), &cancel).unwrap().sessions().unwrap().len();
        assert!(bytes(path.parent().unwrap()) == before, "something was written");
        [seen, old]
    }

    #[tokio::test]
    async fn the_log_is_read_and_no_file_is_created() {
        let (_dir, path) = history(10);
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = wal").unwrap();
        say(&writer, 10, 20);
        let (_kept, left) = killed(&path, &["", "-wal"]);
        assert_eq!(sessions_in(&left).await, [0, 30]);
        // During writes.
        assert_eq!(sessions_in(&path).await, [30, 30]);
        writer.close().unwrap();
        assert_eq!(sessions_in(&path).await, [30, 30]);
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
        let why = store.read(move |view| Ok(sum(view.connection)?)).await;
        let refusal = why.unwrap_err().to_string();
        assert!(
            refusal.contains("was stopped: it takes longer than an intact history of its size could"),
            "{refusal}"
        );
        store.close().await;
        // Reading pages follows no tree.
        assert_eq!(OldStore::open(&path, &path, &cancel).unwrap().sessions().unwrap().len(), 300);
        cancel.cancel();
        assert!(OldStore::open(&path, &path, &cancel).is_err());
        assert!(fs::read(&path).unwrap() == file);
    }
}
