//! Scouring the file after a purge: pages without a trace of what was in them before, and an empty log.
//!
//! What is deleted is overwritten at once, but pages that were rearranged may keep a copy where nothing stands. So the whole
//! file is written anew from what is left, into the log, and the log into the file, and cut off. Another process that reads
//! holds the last step up; it is noted in the database what is still to be done, and the next start does it.
//!
//! Another process may purge meanwhile, or vacuum for a purge before. Each purge has a note of its own, and who has done what one
//! asks for changes that one only: what was noted meanwhile stands, and is done.

use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;

use crate::store::summaries::claims;

/// The key under which stands what is still to be done.
const PENDING: &str = "purge_pending";
/// The file has to be written anew; behind it the purge's own name.
const REWRITE: &str = "rewrite";
/// The log has to be put away; behind it the same.
const EMPTY_LOG: &str = "log";

/// Notes that the file has to be vacuumed.
pub(in crate::store) fn note(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .execute(
            "INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)",
            params![PENDING, format!("{REWRITE}:{}", Uuid::new_v4().simple())],
        )
        .map(drop)
}

/// What is still to be done, if anything.
pub(in crate::store) fn is_pending(connection: &Connection) -> bool {
    pending(connection).is_ok_and(|pending| pending.is_some())
}

/// Does what is still to be done, as far as other processes allow; says whether nothing is left.
pub(in crate::store) fn run(connection: &Connection) -> rusqlite::Result<bool> {
    while let Some(pending) = pending(connection)? {
        if !finish(connection, &pending)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does what a note asks for; `false` where a reader holds it up. A note that is another by then stays as it is.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn what_another_purge_noted_meanwhile_stands() {
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
