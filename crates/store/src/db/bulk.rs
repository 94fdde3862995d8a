//! What differs while an import writes much: the log grows longer and is moved into the database on another thread, and
//! the index is merged rarely.

use rusqlite::{Connection, params};

use super::connection::{Place, tidy_up};
use super::worker::Store;
use crate::tasks::aside;
use lcm_model::error::Result;

/// Index segments of one size that are merged at a time while much is written: the most that FTS5 takes. A gigabyte of
/// logs is merged once, not twice; its words are then read from up to a hundred segments, which a search does not notice.
const COLLECTED: usize = 64;
/// SQLite's default.
const USUAL: usize = 4;
/// From this many segments of one size on, FTS5 merges them all in one transaction, which can take seconds.
const CRISIS: usize = 4 * COLLECTED;
/// Merges after much was written: enough for the segments that wait, of 200 KB each.
const STEPS: usize = 8;

impl Store {
    /// Says that much will be written, until [`Store::expect_little`]. The log grows longer meanwhile.
    ///
    /// # Errors
    /// When the store is closed.
    pub async fn expect_much(&self) -> Result<()> {
        self.in_turn(|connection| {
            let _ = checkpoint_every(connection, true);
            let _ = merge_rarely(connection);
        })
        .await
    }

    /// Says that it was written. A [`Store::checkpoint`] moves the log into the database.
    ///
    /// # Errors
    /// When the store is closed.
    pub async fn expect_little(&self) -> Result<()> {
        self.in_turn(|connection| {
            let _ = checkpoint_every(connection, false);
            let _ = merge_as_usual(connection);
        })
        .await?;
        // Ordinary writes add segments faster than they merge them, and would soon reach `CRISIS`. Others can write
        // between two steps.
        for _ in 0..STEPS {
            self.in_turn(|connection| drop(tidy_up(connection))).await?;
        }
        Ok(())
    }

    /// Moves what was written so far from the log into the database, on another thread than the writer's, which goes
    /// on writing.
    pub async fn checkpoint_aside(&self) {
        let Place::File(path) = self.place() else { return };
        let (path, store) = (path.clone(), self.clone());
        let emptied = aside(move || {
            store.on_reader(&path, |connection| {
                // If another process does so at the same time, this does nothing.
                let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                Ok(())
            })
        });
        // What fails is done by the next checkpoint.
        let _ = emptied.await;
    }
}

/// Pages of the log from which on the writer moves it into the database, usually and while much is written.
const LOG: [usize; 2] = [512, 16 * 1024];

/// How long the log grows until the writer moves it into the database: with pages of 4 KB to 2 MB, so that it stays small, and
/// to 64 MB while much is written, because another thread moves most of it ([`Store::checkpoint_aside`]).
pub(super) fn checkpoint_every(connection: &Connection, is_bulk: bool) -> rusqlite::Result<()> {
    connection.pragma_update(None, "wal_autocheckpoint", LOG[usize::from(is_bulk)])?;
    // A longer file is cut each time that it is written from its start again.
    connection.pragma_update(None, "journal_size_limit", if is_bulk { 64 } else { 16 } * 1024 * 1024)
}

/// Ends what an import began and, because it was killed, did not end.
pub(super) fn clean_up(connection: &Connection) -> rusqlite::Result<()> {
    let log: usize = connection.query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0))?;
    let sql = "SELECT 1 FROM messages_fts_config WHERE k = 'automerge' AND v > ?1";
    if log == LOG[0] && connection.prepare(sql)?.exists([USUAL])? {
        merge_as_usual(connection)?;
    }
    Ok(())
}

/// Lets the index collect more segments of one size before it merges them, while much is written: merging took a
/// third of the writer's time.
fn merge_rarely(connection: &Connection) -> rusqlite::Result<()> {
    configure(connection, "automerge", COLLECTED)?;
    // It stays: the segments that are left are merged little by little, as more is written and at checkpoints.
    configure(connection, "crisismerge", CRISIS)
}

fn merge_as_usual(connection: &Connection) -> rusqlite::Result<()> {
    configure(connection, "automerge", USUAL)
}

fn configure(connection: &Connection, option: &str, value: usize) -> rusqlite::Result<()> {
    let sql = "INSERT INTO messages_fts (messages_fts, rank) VALUES (?1, ?2)";
    connection.execute(sql, params![option, value]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::connection::{open_memory, tidy_up};
    use super::*;

    fn number(connection: &Connection, sql: &str) -> usize {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Adds some pages to the index: a segment.
    fn add(connection: &Connection, row: usize) {
        let body: String = (0..2_000).map(|word| format!("word{word} ")).collect();
        let sql = "INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, '')";
        connection.execute(sql, params![row, body]).unwrap();
    }

    fn segments(connection: &Connection) -> usize {
        number(connection, "SELECT count(DISTINCT segid) FROM messages_fts_idx")
    }

    #[test]
    fn what_an_import_leaves_unmerged_is_merged_in_small_steps_and_found_meanwhile() {
        let connection = open_memory("/project").unwrap().connection;
        let segments = || segments(&connection);
        merge_rarely(&connection).unwrap();
        (1..COLLECTED).for_each(|row| add(&connection, row));
        assert_eq!(segments(), COLLECTED - 1);
        merge_as_usual(&connection).unwrap();
        add(&connection, COLLECTED);
        assert!(segments() >= COLLECTED, "one write merges them all");
        let found = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'word7'";
        assert_eq!(number(&connection, found), COLLECTED);
        tidy_up(&connection).unwrap();
        assert_eq!((segments(), number(&connection, found)), (1, COLLECTED));
    }

    #[tokio::test]
    async fn an_import_leaves_few_segments_so_that_no_later_write_merges_many() {
        let store = Store::open(None, "", "/project").unwrap();
        store.expect_much().await.unwrap();
        store.in_turn(|connection| (1..2 * COLLECTED).for_each(|row| add(connection, row))).await.unwrap();
        assert!(store.in_turn(|connection| segments(connection)).await.unwrap() >= COLLECTED);
        store.expect_little().await.unwrap();
        assert!(store.in_turn(|connection| segments(connection)).await.unwrap() < USUAL);
    }

    #[test]
    fn what_a_killed_import_left_is_ended_but_not_that_of_a_running_one() {
        let connection = open_memory("/project").unwrap().connection;
        let merges_at = || number(&connection, "SELECT v FROM messages_fts_config WHERE k = 'automerge'");
        // An older engine's imports merged 16.
        for left in [COLLECTED, 16] {
            configure(&connection, "automerge", left).unwrap();
            checkpoint_every(&connection, true).unwrap();
            clean_up(&connection).unwrap();
            assert_eq!(merges_at(), left);
            checkpoint_every(&connection, false).unwrap();
            clean_up(&connection).unwrap();
            assert_eq!(merges_at(), USUAL);
        }
    }
}
