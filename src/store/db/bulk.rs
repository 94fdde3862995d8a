//! What differs while an import writes much: the log grows longer and is moved into the database on another thread, and
//! the index is merged rarely.

use rusqlite::{Connection, params};

use super::connection::{MERGED, Place};
use super::worker::Store;
use crate::error::Result;

/// Index segments of one size that are merged at a time while much is written: the most that `usermerge` takes.
const COLLECTED: usize = 16;
/// How the index merges otherwise: SQLite's defaults, and what `migrations/001_init.sql` sets.
const USUAL: [(&str, usize); 3] = [("usermerge", 2), ("automerge", 4), ("crisismerge", 16)];

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
        let step = |connection: &mut Connection| {
            let _ = checkpoint_every(connection, false);
            merge_as_usual(connection).unwrap_or(false)
        };
        // Others can write between two steps.
        while self.in_turn(step).await? {}
        Ok(())
    }

    /// Moves what was written so far from the log into the database, on another thread than the writer's, which goes
    /// on writing.
    pub async fn checkpoint_aside(&self) {
        let Place::File(path) = self.place() else { return };
        let (path, store) = (path.clone(), self.clone());
        let task = tokio::task::spawn_blocking(move || {
            store.on_reader(&path, |connection| {
                // If another process does so at the same time, this does nothing.
                let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                Ok(())
            })
        });
        // What fails is done by the next checkpoint.
        let _ = task.await;
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

/// Ends a step of what an import began and, because it was killed, did not end. Returns whether there was such.
pub(super) fn clean_up(connection: &mut Connection) -> rusqlite::Result<bool> {
    let log: usize = connection.query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0))?;
    let sql = "SELECT 1 FROM messages_fts_config WHERE k = 'automerge' AND v = ?1";
    let is_left = log == LOG[0] && connection.prepare(sql)?.exists([COLLECTED])?;
    if is_left {
        merge_as_usual(connection)?;
    }
    Ok(is_left)
}

/// Lets the index collect more segments of one size before it merges them, while much is written: merging took a
/// fifth of the writer's time. Each word's passages are then read from more places.
fn merge_rarely(connection: &Connection) -> rusqlite::Result<()> {
    configure(connection, "automerge", COLLECTED)?;
    // From this many on, they are merged in one transaction.
    configure(connection, "crisismerge", 4 * COLLECTED)
}

/// Ends that, in bounded steps: first the merges that are due, so that none of them becomes one long transaction.
/// Returns whether more are.
fn merge_as_usual(connection: &mut Connection) -> rusqlite::Result<bool> {
    let tx = connection.transaction()?;
    configure(&tx, "usermerge", COLLECTED)?;
    let before = tx.total_changes();
    configure(&tx, "merge", MERGED)?;
    // A merge without work changes one row.
    let is_due = tx.total_changes() - before > 1;
    let usual = if is_due { &USUAL[..1] } else { &USUAL };
    usual.iter().try_for_each(|(option, value)| configure(&tx, option, *value))?;
    tx.commit()?;
    Ok(is_due)
}

fn configure(connection: &Connection, option: &str, value: usize) -> rusqlite::Result<()> {
    let sql = "INSERT INTO messages_fts (messages_fts, rank) VALUES (?1, ?2)";
    connection.execute(sql, params![option, value]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::connection::open_memory;
    use super::*;

    #[test]
    fn after_much_was_written_the_index_merges_what_is_due_and_then_as_usual() {
        let mut connection = open_memory("/project").unwrap().connection;
        let count = |connection: &Connection, sql: &str| {
            connection.query_row(sql, [], |row| row.get::<_, usize>(0)).unwrap()
        };
        let segments = "SELECT count(DISTINCT segid) FROM messages_fts_idx";
        merge_rarely(&connection).unwrap();
        for row in 1..=40 {
            let insert = "INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, 'word', '')";
            connection.execute(insert, [row]).unwrap();
        }
        assert_eq!(count(&connection, segments), 40);
        let mut steps = 0;
        while merge_as_usual(&mut connection).unwrap() {
            steps += 1;
        }
        assert!(steps > 0);
        assert!(count(&connection, segments) < COLLECTED);
        let found = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'word'";
        assert_eq!(count(&connection, found), 40);
        for (option, value) in USUAL {
            let set = format!("SELECT v FROM messages_fts_config WHERE k = '{option}'");
            assert_eq!(count(&connection, &set), value, "{option}");
        }
    }

    #[test]
    fn what_a_killed_import_left_is_ended_but_not_that_of_a_running_one() {
        let mut connection = open_memory("/project").unwrap().connection;
        merge_rarely(&connection).unwrap();
        checkpoint_every(&connection, true).unwrap();
        assert!(!clean_up(&mut connection).unwrap());
        checkpoint_every(&connection, false).unwrap();
        assert!(clean_up(&mut connection).unwrap());
        assert!(!clean_up(&mut connection).unwrap());
    }
}
