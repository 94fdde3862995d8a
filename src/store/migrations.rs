//! Numbered steps from an empty file to today's schema, each in a transaction with its number.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result};

/// The steps, the first being version 1.
const STEPS: &[&str] = &[
    include_str!("migrations/001_init.sql"),
    include_str!("migrations/002_merging.sql"),
    include_str!("migrations/003_packed_summaries.sql"),
    include_str!("migrations/004_claims.sql"),
    include_str!("migrations/005_quotes.sql"),
];

/// The format this engine reads and writes, kept in `PRAGMA user_version`.
pub(super) fn current() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// The format of an open database.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the database to today's format. Two processes may do so at once: the second finds nothing left to do.
pub(super) fn run(connection: &mut Connection) -> Result<()> {
    let failed = |error| Error::storing("failed to bring the history store to its current format", error);
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found = version(&tx).map_err(failed)?;
    for (number, step) in (1..).zip(STEPS) {
        if number > found {
            tx.execute_batch(step).map_err(failed)?;
            tx.pragma_update(None, "user_version", number).map_err(failed)?;
        }
    }
    tx.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_any_earlier_format_becomes_one_of_today() {
        let schema = |connection: &Connection| -> Vec<String> {
            let mut query = connection
                .prepare("SELECT coalesce(sql, name) FROM sqlite_schema UNION ALL SELECT k || v FROM messages_fts_config")
                .unwrap();
            query.query_map([], |row| row.get(0)).unwrap().map(rusqlite::Result::unwrap).collect()
        };
        let mut fresh = Connection::open_in_memory().unwrap();
        run(&mut fresh).unwrap();
        for (at, _) in STEPS.iter().enumerate() {
            let mut old = Connection::open_in_memory().unwrap();
            for (number, step) in (1..).zip(&STEPS[..at]) {
                old.execute_batch(step).unwrap();
                old.pragma_update(None, "user_version", number).unwrap();
            }
            run(&mut old).unwrap();
            assert_eq!((version(&old).unwrap(), schema(&old)), (current(), schema(&fresh)));
        }
    }
}
