//! An old database as a source of sessions, like a folder of session files.

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

/// Characters of JSON that are stored in one transaction.
const SLICE: usize = 256 * 1024;

/// The sessions of an old database, one after the other.
pub(super) struct OldSessions {
    store: OldStore,
    sessions: std::vec::IntoIter<crate::store::OldSession>,
    lost: usize,
}

/// One of them, in order.
pub(super) struct OldEntries {
    order: Order,
    lost: usize,
}

/// What a database begins with.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Is the file called like a database, or like a backup of one, or does it begin like one? One that is damaged may no longer do so.
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

    /// The next session, with the file it was in.
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
