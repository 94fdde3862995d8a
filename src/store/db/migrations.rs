//! Numbered steps from an empty file to the current schema. Each step commits together with its number.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result};

/// The steps; the first makes version 1.
const STEPS: &[&str] = &[
    include_str!("migrations/001_init.sql"),
    include_str!("migrations/002_lineages.sql"),
    include_str!("migrations/003_siblings.sql"),
    include_str!("migrations/004_first_messages.sql"),
];

/// The format this engine reads and writes, kept in `PRAGMA user_version`.
pub(in crate::store) fn current() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// The format of an open database.
pub(in crate::store) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Migrates the database to the current format. If two processes do so at once, the second finds nothing to
/// do.
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

/// What follows from the other tables and is kept only to answer faster, each with a query that reads all of it.
pub(in crate::store) const DERIVED: [(&str, &str); 5] = [
    ("counts", "SELECT count(messages) FROM counts"),
    (
        "messages_unusual",
        "SELECT count(*) FROM messages INDEXED BY messages_unusual WHERE kind <> 0 OR role = 'user'",
    ),
    ("messages_by_parent", "SELECT count(id) FROM messages INDEXED BY messages_by_parent"),
    ("messages_by_lineage", "SELECT count(id) FROM messages INDEXED BY messages_by_lineage"),
    ("messages_first", "SELECT count(*) FROM messages INDEXED BY messages_first WHERE parent_id IS NULL"),
];

/// Recreates what is [`DERIVED`], empty, without reading what is there. Its pages are free once the file is rewritten.
pub(in crate::store) fn remake_derived(connection: &Connection) -> rusqlite::Result<()> {
    let own = Connection::open_in_memory()?;
    STEPS.iter().try_for_each(|step| own.execute_batch(step))?;
    connection.pragma_update(None, "writable_schema", true)?;
    let removed = DERIVED.iter().try_for_each(|(name, _)| {
        connection.execute("DELETE FROM sqlite_schema WHERE name = ?1", [name]).map(drop)
    });
    connection.pragma_update(None, "writable_schema", "RESET")?;
    removed?;
    DERIVED.iter().try_for_each(|(name, _)| {
        let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1";
        connection.execute_batch(&own.query_row(sql, [name], |row| row.get::<_, String>(0))?)
    })
}

/// Whether everything with this extension's names matches its format, and everything else is plain tables and
/// indexes that compute nothing and that we never read. Foreign views and triggers would run, and an index on
/// `zeroblob(900000000)` takes a second per row when the file is checked. Missing tables are allowed, because
/// the file may be damaged.
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
