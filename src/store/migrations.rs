//! Numbered steps from an empty file to today's schema, each in a transaction with its number.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result};

/// The steps, the first being version 1.
const STEPS: &[&str] = &[include_str!("migrations/001_init.sql")];

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
