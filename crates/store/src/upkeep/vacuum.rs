//! Cleans the file after a purge: pages without any trace of purged text, and an empty log.
//!
//! Deletion overwrites data at once, but rearranged pages may keep a copy in unused space. So the whole file
//! is rewritten into the log, and the log is moved into the file and truncated. Another process that is
//! reading can delay the last step. The database records what remains to be done, and the next start does it.
//!
//! Another process may purge meanwhile, or vacuum for an earlier purge. Each purge has its own record, and
//! finishing one changes that record only; a newer one stays until it is done.

use rusqlite::Connection;
use uuid::Uuid;

use crate::columns::{Queries as _, writing};
use crate::summaries::claims;
use lcm_model::error::Result;

/// The key for what remains to be done.
pub(super) const PENDING: &str = "purge_pending";
/// The file must be rewritten; followed by the purge's own id.
const REWRITE: &str = "rewrite";
/// The log must be emptied; followed by the same id.
const EMPTY_LOG: &str = "log";

/// Records that the file must be vacuumed.
pub(crate) fn note(connection: &Connection) -> Result<()> {
    connection.set_fact(PENDING, &format!("{REWRITE}:{}", Uuid::new_v4().simple()))
}

/// Whether anything remains to be done.
pub(crate) fn is_pending(connection: &Connection) -> bool {
    connection.fact(PENDING).is_ok_and(|pending| pending.is_some())
}

/// Does what remains, as far as other processes allow. Returns whether nothing is left.
pub(crate) fn run(connection: &Connection) -> Result<bool> {
    while let Some(pending) = connection.fact(PENDING)? {
        if !finish(connection, &pending)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does what a record asks for; `false` if a reader prevents it. A record that has been replaced meanwhile
/// stays.
fn finish(connection: &Connection, noted: &str) -> Result<bool> {
    let mut noted = noted.to_owned();
    if let Some(purge) = noted.strip_prefix(REWRITE) {
        claims::end_expired(connection)?;
        connection.execute_batch("VACUUM").map_err(writing)?;
        let rewritten = format!("{EMPTY_LOG}{purge}");
        let sql = "UPDATE _metadata SET value = ?3 WHERE key = ?1 AND value = ?2";
        if !connection.changes_any(sql, [PENDING, &noted, &rewritten])? {
            return Ok(true);
        }
        noted = rewritten;
    }
    if !empty_log(connection)? {
        return Ok(false);
    }
    connection.change("DELETE FROM _metadata WHERE key = ?1 AND value = ?2", [PENDING, &noted])?;
    empty_log(connection)?;
    Ok(true)
}

/// Moves the log into the database and truncates it; `false` if a reader prevents it.
fn empty_log(connection: &Connection) -> Result<bool> {
    connection.one("PRAGMA wal_checkpoint(TRUNCATE)", []).map(|busy: bool| !busy)
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn the_record_of_a_concurrent_purge_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        store.close().await;
        let open = || Connection::open(dir.path().join("project.db")).unwrap();
        let (ours, other) = (open(), open());
        for step in [REWRITE, EMPTY_LOG] {
            note(&ours).unwrap();
            let before = ours.fact(PENDING).unwrap().unwrap().replace(REWRITE, step);
            ours.execute("UPDATE _metadata SET value = ?2 WHERE key = ?1", params![PENDING, before]).unwrap();
            note(&other).unwrap();
            let meanwhile = other.fact(PENDING).unwrap();
            assert!(finish(&ours, &before).unwrap());
            assert_eq!(ours.fact(PENDING).unwrap(), meanwhile, "after {before}");
            assert!(run(&other).unwrap() && ours.fact(PENDING).unwrap().is_none());
        }
    }
}
