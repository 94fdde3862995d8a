//! Scouring the file after a purge: pages without a trace of what was in them before, and an empty log.
//!
//! What is deleted is overwritten at once, but pages that were rearranged may keep a copy where nothing stands. So the whole
//! file is written anew from what is left, into the log, and the log into the file, and cut off. Another process that reads
//! holds the last step up; it is noted in the database what is still to be done, and the next start does it.

use rusqlite::{Connection, OptionalExtension as _, params};

/// The key under which stands what is still to be done.
const PENDING: &str = "purge_pending";
/// The file has to be written anew.
const REWRITE: &str = "rewrite";
/// The log has to be put away.
const EMPTY_LOG: &str = "log";

/// Notes that the file has to be scoured.
pub(super) fn note(connection: &Connection) -> rusqlite::Result<()> {
    set(connection, REWRITE)
}

/// What is still to be done, if anything.
pub(super) fn is_pending(connection: &Connection) -> bool {
    pending(connection).is_ok_and(|pending| pending.is_some())
}

/// Does what is still to be done, as far as other processes allow; says whether nothing is left.
pub(super) fn scour(connection: &Connection) -> rusqlite::Result<bool> {
    let Some(pending) = pending(connection)? else { return Ok(true) };
    if pending == REWRITE {
        connection.execute_batch("VACUUM")?;
        set(connection, EMPTY_LOG)?;
    }
    if !empty_log(connection)? {
        return Ok(false);
    }
    connection.execute("DELETE FROM _metadata WHERE key = ?1", [PENDING])?;
    empty_log(connection)?;
    Ok(true)
}

/// Moves the log into the database and cuts it off; `false` where a reader holds it.
fn empty_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        .map(|busy| busy == 0)
}

fn pending(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM _metadata WHERE key = ?1")?
        .query_row([PENDING], |row| row.get(0))
        .optional()
}

fn set(connection: &Connection, state: &str) -> rusqlite::Result<()> {
    connection
        .execute("INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)", params![PENDING, state])
        .map(drop)
}
