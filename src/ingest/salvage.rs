//! Reads sessions from an old database, like from a folder of session files.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::file::{Header, Slices};
use super::fold::Handover;
use super::order::{Order, size_of};
use crate::error::Result;
use crate::files;
use crate::model::{Content, Entry};
use crate::store::{OldEntries, OldStore};
use crate::sync::{go_on, lock};

/// Characters of JSON per transaction.
const SLICE: usize = 256 * 1024;

/// The sessions of an old database, in order.
pub(super) struct OldSessions {
    store: Arc<Mutex<OldStore>>,
    sessions: std::vec::IntoIter<crate::store::StoredSession>,
    /// Rows that can't be read, until a session reports them.
    lost: usize,
    cancel: CancellationToken,
}

/// The entries of one of these sessions, in order. Only the entries of a slice are unpacked at a time: a small file
/// can hold a lot.
pub(super) struct OldSessionEntries {
    store: Arc<Mutex<OldStore>>,
    entries: OldEntries,
    /// Has each entry's row in its place.
    order: Order,
    lost: usize,
    cancel: CancellationToken,
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
        let lost = store.lost;
        Ok(Self { store: Arc::new(Mutex::new(store)), sessions, lost, cancel: cancel.clone() })
    }

    /// Returns the next session with its file.
    pub fn next(&mut self) -> Option<(Header, Option<String>, OldSessionEntries)> {
        let session = self.sessions.next()?;
        let entries = lock(&self.store).entries(&session);
        let header = Header { id: session.session_id, cwd: None, parent: session.parent };
        let entries = OldSessionEntries {
            store: Arc::clone(&self.store),
            order: order_of(&entries.rows),
            entries,
            lost: std::mem::take(&mut self.lost),
            cancel: self.cancel.clone(),
        };
        Some((header, session.file, entries))
    }
}

/// Parents before children, whatever the rows' order. Entries in a circle are opened at their first.
fn order_of(rows: &[(i64, Option<i64>)]) -> Order {
    let mut order = Order::default();
    for (row, parent) in rows {
        let parent = parent.map(|parent| parent.to_string());
        order.push(Entry { id: row.to_string(), parent, timestamp: 0, content: Content::Other });
    }
    order.end();
    order
}

impl OldSessionEntries {
    /// The row of the next entry, and that of its parent if it has one.
    fn next_row(&mut self) -> Option<(i64, Option<i64>)> {
        let Handover { entries, orphans } = self.order.take(1);
        let place = entries.first()?;
        let parent = place.parent.as_ref().filter(|_| !orphans.contains(&place.id));
        Some((place.id.parse().ok()?, parent.and_then(|parent| parent.parse().ok())))
    }
}

impl Slices for OldSessionEntries {
    fn slice(&mut self, _: &HashSet<String>) -> Result<Option<Handover>> {
        let mut slice = Handover::default();
        let mut size = 0;
        while size < SLICE
            && let Some((row, parent)) = self.next_row()
        {
            go_on(&self.cancel)?;
            match lock(&self.store).entry(&mut self.entries, row, parent) {
                Some(entry) => {
                    size += size_of(&entry);
                    slice.entries.push(entry);
                }
                None => self.lost += 1,
            }
        }
        Ok((!slice.entries.is_empty()).then_some(slice))
    }

    fn broken(&self) -> usize {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::crafted;

    /// So many that nobody would wait for the end if each were compared with each.
    const MANY: usize = 30_000;

    #[tokio::test]
    async fn a_chain_of_unreadable_entries_is_walked_once() {
        let (_dir, path) = crafted::unreadable_chain(MANY).await;
        let mut sessions = OldSessions::open(&path, &CancellationToken::new()).unwrap();
        let (_, _, mut entries) = sessions.next().unwrap();
        let mut read = Vec::new();
        while let Some(slice) = entries.slice(&HashSet::new()).unwrap() {
            read.extend(slice.entries);
        }
        assert_eq!((read.len(), entries.broken()), (MANY, MANY));
        assert!(read.iter().all(|entry| entry.parent.is_none()), "nothing readable is above them");
    }

    #[tokio::test]
    async fn reading_stops_between_two_entries() {
        let (_dir, path) = crafted::unreadable_chain(MANY).await;
        let cancel = CancellationToken::new();
        let mut sessions = OldSessions::open(&path, &cancel).unwrap();
        let (_, _, mut entries) = sessions.next().unwrap();
        assert!(entries.slice(&HashSet::new()).unwrap().is_some());
        cancel.cancel();
        assert!(entries.slice(&HashSet::new()).is_err());
    }
}
