//! Reads sessions from an old database, like from a folder of session files.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::file::{Header, Slices};
use super::fold::Handover;
use super::order::Order;
use crate::error::Result;
use crate::files;
use crate::store::OldStore;

/// Characters of JSON per transaction.
const SLICE: usize = 256 * 1024;

/// The sessions of an old database, in order.
pub(super) struct OldSessions {
    store: OldStore,
    sessions: std::vec::IntoIter<crate::store::OldSession>,
    lost: usize,
}

/// The entries of one of these sessions, in order.
pub(super) struct OldEntries {
    order: Order,
    lost: usize,
}

/// The first bytes of a database.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Whether the file has the name or the first bytes of a database. A backup counts; a damaged one may lack
/// the bytes.
pub(super) fn is_database(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_called = name.ends_with(".db") || (name.contains(".db.") && !name.ends_with(".jsonl"));
    let begins = || {
        let mut head = [0; DATABASE.len()];
        files::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head == *DATABASE)
    };
    is_called || begins()
}

impl OldSessions {
    pub fn open(path: &Path, cancel: &CancellationToken) -> Result<Self> {
        let mut store = OldStore::open(path, cancel)?;
        let sessions = store.sessions()?.into_iter();
        Ok(Self { store, sessions, lost: 0 })
    }

    /// Returns the next session with its file.
    pub fn next(&mut self) -> Option<(Header, Option<String>, OldEntries)> {
        let session = self.sessions.next()?;
        let mut order = Order::default();
        self.store.entries(&session, |entry| order.push(entry));
        order.end();
        let lost = self.store.lost() - self.lost;
        self.lost += lost;
        let header = Header { id: session.session_id, cwd: None, parent: session.parent };
        Some((header, session.file, OldEntries { order, lost }))
    }
}

impl Slices for OldEntries {
    fn slice(&mut self, _: &HashSet<String>) -> Result<Option<Handover>> {
        let slice = self.order.take(SLICE);
        Ok((!slice.entries.is_empty()).then_some(slice))
    }

    fn broken(&self) -> usize {
        self.lost
    }
}
