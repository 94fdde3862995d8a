//! Databases that nobody but an attacker writes.

use std::path::PathBuf;

use crate::store::{Place, Store};

/// A session with a chain of `n` unreadable entries, and `n` readable ones below the last.
pub(crate) async fn unreadable_chain(n: usize) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::of_project(Some(dir.path()), "/p").unwrap();
    store.write(|batch| batch.messages().conversation_row("one", None, None, 0).map(drop)).await.unwrap();
    store.close().await;
    let Place::File(path) = store.place().clone() else { panic!("no file") };
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2 * {n})
         INSERT INTO entries (id, conversation_id, entry_id, parent_id, kind)
         SELECT i, 1, 'e' || i, nullif(min(i - 1, {n}), 0), iif(i <= {n}, 9, 0) FROM n"
    );
    rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    (dir, path)
}
