//! Numbered steps from an empty file to today's schema, each in a transaction with its number.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result};

/// The steps, the first being version 1.
const STEPS: &[&str] = &[include_str!("migrations/001_init.sql")];

/// The format this engine reads and writes, kept in `PRAGMA user_version`.
pub(in crate::store) fn current() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// The format of an open database.
pub(in crate::store) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the database to today's format. Two processes may do so at once: the second finds nothing left to do.
pub(in crate::store) fn run(connection: &mut Connection) -> Result<()> {
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

/// Is what the database has of this extension's names as its format has it, and all else tables and indexes that nothing of ours
/// reads and that compute nothing? Foreign views and triggers would run, and an index of `zeroblob(900000000)` takes a second a
/// row when the file is checked. What is missing is no reason to refuse it: it may be damaged.
pub(in crate::store) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let format = usize::try_from(version(connection)?).unwrap_or(usize::MAX).min(STEPS.len());
    let own = Connection::open_in_memory()?;
    STEPS[..format].iter().try_for_each(|step| own.execute_batch(step))?;
    let schema = |connection: &Connection| -> rusqlite::Result<HashMap<String, [Option<String>; 3]>> {
        let mut query = connection.prepare("SELECT name, type, tbl_name, sql FROM sqlite_schema")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])))?;
        rows.collect()
    };
    let own = schema(&own)?;
    // A function, a check and a generated column need parentheses of their own; an index's condition comes after its columns.
    let is_harmless = |[kind, _, sql]: &[Option<String>; 3]| {
        let sql = sql.as_deref().unwrap_or_default();
        let is_plain = sql.matches('(').count() <= 1 && !sql.to_uppercase().contains("VIRTUAL");
        match kind.as_deref() {
            Some("table") => is_plain,
            Some("index") => is_plain && (sql.is_empty() || sql.ends_with(')')),
            _ => false,
        }
    };
    let is_known = |(name, is): (&String, &[Option<String>; 3])| match own.get(name) {
        Some(own) => own == is,
        None => is_harmless(is),
    };
    Ok(schema(connection)?.iter().all(is_known))
}
