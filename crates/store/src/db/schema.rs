//! The schema, and how a file of it is recognized.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior};

use lcm_model::error::{Error, Result};

/// The whole schema.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// The format this engine reads and writes, kept in `PRAGMA user_version`.
pub(crate) const FORMAT: i64 = 1;

/// The format of an open database.
pub(crate) fn format(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes the tables unless they are there. If two processes do so at once, the second finds nothing to do.
pub(crate) fn create(connection: &mut Connection) -> Result<()> {
    let failed = |error| Error::storing("failed to set up the history store", error);
    // Another process may be writing, and an opening must not wait for it.
    if format(connection).map_err(failed)? != 0 {
        return Ok(());
    }
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    if format(&tx).map_err(failed)? == 0 {
        tx.execute_batch(SCHEMA).map_err(failed)?;
        tx.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
    }
    tx.commit().map_err(failed)
}

/// Whether everything with this extension's names is as in the schema, and everything else is plain tables and
/// indexes that compute nothing and that we never read. Foreign views and triggers would run, and an index on
/// `zeroblob(900000000)` takes a second per row when the file is checked. Missing tables are allowed, because
/// the file may be damaged.
pub(crate) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let own = Connection::open_in_memory()?;
    own.execute_batch(SCHEMA)?;
    let schema = |connection: &Connection| -> rusqlite::Result<HashMap<String, [Option<String>; 3]>> {
        let mut query = connection.prepare("SELECT name, type, tbl_name, sql FROM sqlite_schema")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])))?;
        rows.collect()
    };
    let own = schema(&own)?;
    // Functions, checks and generated columns need further parentheses; an index's condition follows its
    // columns.
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
