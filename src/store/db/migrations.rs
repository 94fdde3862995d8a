//! Numbered steps from an empty file to today's schema, each in a transaction with its number.

use std::collections::HashMap;

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result};
use crate::store::messages::codec;

/// The steps, the first being version 1.
const STEPS: &[&str] = &[
    include_str!("migrations/001_init.sql"),
    include_str!("migrations/002_merging.sql"),
    include_str!("migrations/003_packed_summaries.sql"),
    include_str!("migrations/004_claims.sql"),
    include_str!("migrations/005_quotes.sql"),
    include_str!("migrations/006_beside.sql"),
    include_str!("migrations/007_rewritten.sql"),
    include_str!("migrations/008_purged.sql"),
    include_str!("migrations/009_broken_lines.sql"),
    include_str!("migrations/010_marked.sql"),
    include_str!("migrations/011_stubs.sql"),
];

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
    teach_sealing(connection).map_err(failed)?;
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
/// reads? Views and triggers of somebody else's would run. What is missing is no reason to refuse it: it may be damaged.
pub(in crate::store) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let format = usize::try_from(version(connection)?).unwrap_or(usize::MAX).min(STEPS.len());
    let own = Connection::open_in_memory()?;
    teach_sealing(&own)?;
    STEPS[..format].iter().try_for_each(|step| own.execute_batch(step))?;
    let schema = |connection: &Connection| -> rusqlite::Result<HashMap<String, [Option<String>; 3]>> {
        let mut query = connection.prepare("SELECT name, type, tbl_name, sql FROM sqlite_schema")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])))?;
        rows.collect()
    };
    let own = schema(&own)?;
    let is_harmless = |[kind, _, sql]: &[Option<String>; 3]| {
        let is_virtual = sql.as_ref().is_some_and(|sql| sql.to_uppercase().contains("VIRTUAL"));
        matches!(kind.as_deref(), Some("table" | "index")) && !is_virtual
    };
    let is_known = |(name, is): (&String, &[Option<String>; 3])| match own.get(name) {
        Some(own) => own == is,
        None => is_harmless(is),
    };
    Ok(schema(connection)?.iter().all(is_known))
}

/// Steps pack with it what earlier ones left plain.
fn teach_sealing(connection: &Connection) -> rusqlite::Result<()> {
    let sealed = |context: &rusqlite::functions::Context<'_>| Ok(codec::seal(context.get_raw(0).as_str()?));
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("sealed", 1, flags, sealed)
}

/// Makes an empty database one of an earlier format.
#[cfg(test)]
pub(in crate::store) fn lay_out(old: &Connection, format: usize) {
    teach_sealing(old).unwrap();
    for (number, step) in (1..).zip(&STEPS[..format]) {
        old.execute_batch(step).unwrap();
        old.pragma_update(None, "user_version", number).unwrap();
    }
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
            lay_out(&old, at);
            run(&mut old).unwrap();
            assert_eq!((version(&old).unwrap(), schema(&old)), (current(), schema(&fresh)));
        }
    }

    #[test]
    fn what_stood_beside_summaries_and_entries_is_packed_and_kept() {
        let mut old = Connection::open_in_memory().unwrap();
        for step in &STEPS[..5] {
            old.execute_batch(step).unwrap();
        }
        old.execute_batch(
            r#"PRAGMA user_version = 5;
               INSERT INTO conversations VALUES (1, 'a', NULL, NULL, 0, 0);
               INSERT INTO messages VALUES (1, x'01', NULL, 0, 0, 'user', NULL, 1, 0, x'7b7d', 0, 2, NULL, 0);
               INSERT INTO entries VALUES (1, 1, 'e1', NULL, 1, 1, 1, NULL), (2, 1, 'e2', 1, 3, NULL, 1, NULL);
               INSERT INTO summaries VALUES
                 (1, x'01', 0, 'with', 1, 'ok', NULL, 1, '{"input":7,"cost":{"total":0.1}}', 0, 1, 1, 1, 0, 0, NULL, NULL, NULL,
                  '[{"kind":"constraint","text":"never"}]', '{"read":["a.rs"],"modified":[]}'),
                 (2, x'02', 0, 'without', 1, 'ok', NULL, 1, NULL, 0, 1, 1, 1, 0, 0, NULL, NULL, NULL, NULL, NULL);
               INSERT INTO entry_files VALUES (2, '{"read":[],"modified":["b.rs"]}');"#,
        )
        .unwrap();
        run(&mut old).unwrap();
        let beside = |id: i64| -> Option<Vec<u8>> {
            old.query_row("SELECT beside FROM summaries WHERE id = ?1", [id], |row| row.get(0)).unwrap()
        };
        let kept = codec::unseal(&beside(1).unwrap()).unwrap();
        assert_eq!(
            kept,
            r#"{"quotes":[{"kind":"constraint","text":"never"}],"files":{"read":["a.rs"],"modified":[]},"usage":{"input":7,"cost":{"total":0.1}}}"#
        );
        assert_eq!(beside(2), None);
        let listed: String =
            old.query_row("SELECT files FROM entries WHERE id = 2", [], |row| row.get(0)).unwrap();
        assert_eq!(listed, r#"{"read":[],"modified":["b.rs"]}"#);
    }
}
