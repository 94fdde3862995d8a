//! Cleans the file after a purge: pages without any trace of purged text, and an empty log.
//!
//! Deletion overwrites data at once, but rearranged pages may keep a copy in unused space. So the whole file
//! is rewritten into the log, and the log is moved into the file and truncated. Another process that is
//! reading can delay the last step. The database records what remains to be done, and the next start does it.
//!
//! Another process may purge meanwhile, or vacuum for an earlier purge. Each purge has its own record, and
//! finishing one changes that record only; a newer one stays until it is done.

use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use crate::store::summaries::claims;

/// The key for what remains to be done.
const PENDING: &str = "purge_pending";
/// The file must be rewritten; followed by the purge's own id.
const REWRITE: &str = "rewrite";
/// The log must be emptied; followed by the same id.
const EMPTY_LOG: &str = "log";

/// Records that the file must be vacuumed.
pub(in crate::store) fn note(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .execute(
            "INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)",
            params![PENDING, format!("{REWRITE}:{}", Uuid::new_v4().simple())],
        )
        .map(drop)
}

/// Whether anything remains to be done.
pub(in crate::store) fn is_pending(connection: &Connection) -> bool {
    pending(connection).is_ok_and(|pending| pending.is_some())
}

/// Does what remains, as far as other processes allow. Returns whether nothing is left.
pub(in crate::store) fn run(connection: &Connection) -> rusqlite::Result<bool> {
    while let Some(pending) = pending(connection)? {
        if !finish(connection, &pending)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does what a record asks for; `false` if a reader prevents it. A record that has been replaced meanwhile
/// stays.
fn finish(connection: &Connection, noted: &str) -> rusqlite::Result<bool> {
    let mut noted = noted.to_owned();
    if let Some(purge) = noted.strip_prefix(REWRITE) {
        claims::end_expired(connection)?;
        connection.execute_batch("VACUUM")?;
        let rewritten = format!("{EMPTY_LOG}{purge}");
        let sql = "UPDATE _metadata SET value = ?3 WHERE key = ?1 AND value = ?2";
        if connection.execute(sql, params![PENDING, noted, rewritten])? == 0 {
            return Ok(true);
        }
        noted = rewritten;
    }
    if !empty_log(connection)? {
        return Ok(false);
    }
    connection.execute("DELETE FROM _metadata WHERE key = ?1 AND value = ?2", params![PENDING, noted])?;
    empty_log(connection)?;
    Ok(true)
}

/// Moves the log into the database and truncates it; `false` if a reader prevents it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn the_record_of_a_concurrent_purge_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        store.close().await;
        let open = || Connection::open(dir.path().join("project.db")).unwrap();
        let (ours, other) = (open(), open());
        for step in [REWRITE, EMPTY_LOG] {
            note(&ours).unwrap();
            let before = pending(&ours).unwrap().unwrap().replace(REWRITE, step);
            ours.execute("UPDATE _metadata SET value = ?2 WHERE key = ?1", params![PENDING, before]).unwrap();
            note(&other).unwrap();
            let meanwhile = pending(&other).unwrap();
            assert!(finish(&ours, &before).unwrap());
            assert_eq!(pending(&ours).unwrap(), meanwhile, "after {before}");
            assert!(run(&other).unwrap() && pending(&ours).unwrap().is_none());
        }
    }
}
