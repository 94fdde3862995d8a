//! Reads sessions from an old database, like from a folder of session files.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::file::{Findings, Header, KnownEntries, SessionFile, Slices};
use super::order::{Order, SLICE, size_of};
use super::restore::{SummaryOrigin, restore_named};
use super::storing::Handover;
use lcm_model::error::Result;
use lcm_model::ids::Hash;
use lcm_model::locks::lock;
use lcm_model::{Content, Entry, Message, Role, files};
use lcm_store::tasks::{blocking, go_on};
use lcm_store::{
    Batch, LastRows, OldEntries, OldStore, PurgedEntries, RECOVERED, Store, StoredSession, View, old_key,
};

/// Messages that are looked up at a time.
const LOOKED_UP: usize = 1000;

/// Summaries per transaction.
const TAKEN_OVER: usize = 200;

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

/// The sessions of an old database, in order.
pub(super) struct OldSessions {
    store: SharedOldStore,
    sessions: std::vec::IntoIter<StoredSession>,
    rebuilding: Option<Rebuilding>,
    cancel: CancellationToken,
}

/// A rebuild, which takes what is lost from the sessions' files.
#[derive(Clone)]
pub struct Rebuilding {
    /// What any of the databases has purged: it comes from none.
    pub purged: Arc<PurgedEntries>,
    /// The files of the project's sessions: one of them may name a session whose row is lost.
    pub files: Arc<Vec<PathBuf>>,
    /// The messages that came from session files: a fork has those of its origin, by the same ids and times.
    pub filled: Arc<Mutex<HashSet<(String, i64)>>>,
    /// Whether this is the last step, which takes the messages that are in no session then.
    pub is_last: bool,
}

/// A database that is read in parts.
pub type SharedOldStore = Arc<Mutex<OldStore>>;

/// The entries of one of these sessions, in order. Only the entries of a slice are unpacked at a time: a small file
/// can hold a lot.
pub(super) struct OldSessionEntries {
    store: SharedOldStore,
    rebuilding: Option<Rebuilding>,
    session: String,
    entries: OldEntries,
    /// Has each entry in its place, without its content.
    order: Order,
    /// What the session's file has and the database lacks.
    from_file: HashMap<String, Entry>,
    /// Messages that no entry shows, and that are stored already; `None` for a real session.
    left_out: Option<HashSet<String>>,
    lost: usize,
    cancel: CancellationToken,
}

impl OldSessions {
    pub fn of(
        store: SharedOldStore,
        rebuilding: Option<Rebuilding>,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let mut sessions = lock(&store).sessions()?;
        if let Some(Rebuilding { files, is_last, .. }) = &rebuilding {
            sessions.retain(|session| (session.session_id == RECOVERED) == *is_last);
            name_sessions(&lock(&store), &mut sessions, files, cancel)?;
        }
        Ok(Self { store, sessions: sessions.into_iter(), rebuilding, cancel: cancel.clone() })
    }

    /// Returns the next session with its file.
    pub fn next(&mut self) -> Result<Option<(Header, Option<String>, OldSessionEntries)>> {
        let Some(session) = self.sessions.next() else { return Ok(None) };
        let entries = lock(&self.store).entries(&session)?;
        let in_file = match self.rebuilding {
            Some(_) => self.in_file(&session, &entries)?,
            None => Vec::new(),
        };
        let mut order = Order::default();
        let mut place = |id: &str, parent: Option<String>| {
            order.push(Entry { id: id.to_owned(), parent, timestamp: 0, content: Content::Other });
        };
        let parents: HashMap<&str, &Option<String>> =
            in_file.iter().map(|entry| (entry.id.as_str(), &entry.parent)).collect();
        for (id, parent) in &entries.places {
            // Where the parent's row was lost, now or when the entry was stored, the file still names it.
            place(id, parents.get(id.as_str()).map_or_else(|| parent.clone(), |other| (*other).clone()));
        }
        let known: HashSet<&str> = entries.places.iter().map(|(id, _)| id.as_str()).collect();
        for entry in in_file.iter().filter(|entry| !known.contains(entry.id.as_str())) {
            place(&entry.id, entry.parent.clone());
        }
        order.end();
        let header = Header { id: session.session_id, cwd: None, parent: session.parent };
        let entries = OldSessionEntries {
            store: Arc::clone(&self.store),
            // What the file has is not lost.
            lost: if in_file.is_empty() { entries.lost } else { 0 },
            entries,
            order,
            from_file: in_file.into_iter().map(|entry| (entry.id.clone(), entry)).collect(),
            rebuilding: self.rebuilding.clone(),
            session: header.id.clone(),
            left_out: (header.id == RECOVERED).then(HashSet::new),
            cancel: self.cancel.clone(),
        };
        Ok(Some((header, session.file, entries)))
    }

    /// What the file of a session has and the database lacks, or has below another entry, in its order.
    fn in_file(&self, session: &StoredSession, entries: &OldEntries) -> Result<Vec<Entry>> {
        let (mut lacking, mut ids, mut in_it) = (Vec::new(), HashSet::new(), HashSet::new());
        let file = session.file.as_ref().and_then(|file| SessionFile::open(Path::new(file)).ok());
        let Some(file) = file.filter(|file| file.header.id == session.session_id) else { return Ok(lacking) };
        let mut file = file.until(&self.cancel);
        let parents: HashMap<&String, &Option<String>> =
            entries.places.iter().map(|(id, parent)| (id, parent)).collect();
        // What follows an unreadable part of a file is lost.
        while let Ok(Some(slice)) = file.slice() {
            go_on(&self.cancel)?;
            let store = lock(&self.store);
            for entry in slice.entries {
                in_it.insert(entry.id.clone());
                let is_elsewhere = parents.get(&entry.id).is_some_and(|parent| **parent != entry.parent)
                    && entry.parent.as_ref().is_none_or(|parent| in_it.contains(parent));
                if (is_elsewhere || store.lacks(entries, &entry)) && ids.insert(entry.id.clone()) {
                    lacking.push(entry);
                }
            }
        }
        Ok(lacking)
    }
}

impl Slices for OldSessionEntries {
    fn learn(&mut self, view: &View<'_>, _: &Arc<KnownEntries>) -> Result<()> {
        let Some(left_out) = &mut self.left_out else { return Ok(()) };
        for places in self.entries.places.chunks(LOOKED_UP) {
            let lineage = |(id, _): &(String, _)| Some((id.clone(), Hash::parse(id)?));
            let (ids, lineages): (Vec<_>, Vec<_>) = places.iter().filter_map(lineage).unzip();
            let stored = view.upkeep().known(&lineages)?;
            left_out.extend(ids.into_iter().zip(stored).filter(|(_, stored)| *stored).map(|(id, _)| id));
        }
        Ok(())
    }

    fn slice(&mut self) -> Result<Option<Handover>> {
        let mut slice = Handover::default();
        let mut size = 0;
        while size < SLICE.0
            && slice.entries.len() < SLICE.1
            && let Some((Entry { id, parent, .. }, is_orphan)) = self.order.pop()
        {
            let parent = parent.filter(|_| !is_orphan);
            go_on(&self.cancel)?;
            if self.left_out.as_ref().is_some_and(|left_out| left_out.contains(&id)) {
                self.entries.pass(&id, parent);
                continue;
            }
            let other = self.from_file.remove(&id);
            match lock(&self.store).entry(&mut self.entries, &id, parent, other) {
                Some((mut entry, is_from_file)) => {
                    let key = old_key(self.session.clone(), &id, entry.timestamp);
                    if let (Content::Message(json), Some(rebuilding)) = (&entry.content, &self.rebuilding) {
                        if let Some(nonce) = rebuilding.purged.get(&key) {
                            entry.content = Content::Purged(*nonce);
                        } else if is_from_file && Message::parse(json).role != Role::System {
                            lock(&rebuilding.filled).insert((entry.id.clone(), entry.timestamp));
                        }
                    }
                    size += size_of(&entry);
                    slice.entries.push(entry);
                }
                None => self.lost += 1,
            }
        }
        Ok((!slice.entries.is_empty()).then_some(slice))
    }

    fn findings(&self) -> Findings {
        Findings { broken: self.lost, ..Findings::default() }
    }
}

/// Finds the ids and files of sessions whose rows are lost, by the messages that a file has in common with one, in their
/// places.
fn name_sessions(
    store: &OldStore,
    sessions: &mut [StoredSession],
    files: &[PathBuf],
    cancel: &CancellationToken,
) -> Result<()> {
    let mut known: HashSet<String> = sessions.iter().map(|session| session.session_id.clone()).collect();
    for session in sessions.iter_mut().filter(|session| session.session_id.starts_with(RECOVERED)) {
        let said = store.lineages(session)?;
        let mut best = None;
        for path in files {
            let Ok(file) = SessionFile::open(path) else { continue };
            let header = file.header.clone();
            if known.contains(&header.id) {
                continue;
            }
            let (mut file, mut common, mut others) = (file.until(cancel), 0, 0);
            let mut lineages = HashMap::new();
            while let Ok(Some(slice)) = file.slice() {
                go_on(cancel)?;
                for Entry { id, parent, content, .. } in slice.entries {
                    let mut lineage = parent.and_then(|id| lineages.get(&id).copied()).unwrap_or(Hash::ROOT);
                    if let Content::Message(json) = content {
                        lineage = lineage.child(&json);
                        *if said.contains(&lineage) { &mut common } else { &mut others } += 1;
                    }
                    lineages.insert(id, lineage);
                }
            }
            // A fork has entries of its origin too.
            if common > 0 {
                best = best.max(Some((common, Reverse(others), header.id, header.parent, path)));
            }
        }
        if let Some((.., id, parent, path)) = best {
            known.insert(id.clone());
            session.session_id = id;
            session.parent = parent;
            session.file = Some(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Copies the summaries of a database. Returns how many of them are new. If anyone may have made it, only those are
/// copied whose messages came after the rows `since`, as from a session file.
pub async fn take_over(store: &Store, old: &SharedOldStore, since: Option<LastRows>) -> Result<usize> {
    let old = Arc::clone(old);
    let summaries = blocking(move || lock(&old).summaries()).await?;
    let mut adopted = 0;
    for slice in summaries.chunks(TAKEN_OVER).map(<[_]>::to_vec) {
        let write = move |batch: &Batch<'_>| {
            let origin = since.map(|since| SummaryOrigin { conversation: None, since });
            let before = batch.summaries().newest_summary()?;
            slice.iter().try_for_each(|record| restore_named(batch, origin, record).map(drop))?;
            Ok(batch.summaries().nodes_since(before, |_| true)?.len())
        };
        adopted += store.write(write).await?;
    }
    Ok(adopted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many that nobody would wait for the end if each were compared with each.
    const MANY: usize = 30_000;

    /// A session with a chain of `n` unreadable entries, and `n` readable ones below the last.
    async fn unreadable_chain(n: usize) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of_project(Some(dir.path()), "/p").unwrap();
        store.write(|batch| batch.messages().conversation_row("one", None, None, 0).map(drop)).await.unwrap();
        store.close().await;
        let Some(path) = store.place().map(ToOwned::to_owned) else { panic!("no file") };
        let sql = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2 * {n})
             INSERT INTO entries (id, conversation_id, entry_id, parent_id, kind)
             SELECT i, 1, 'e' || i, nullif(min(i - 1, {n}), 0), iif(i <= {n}, 9, 0) FROM n"
        );
        rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        (dir, path)
    }

    fn opened(path: &Path, cancel: &CancellationToken) -> OldSessions {
        let store = OldStore::open(path, path, cancel).unwrap();
        OldSessions::of(Arc::new(Mutex::new(store)), None, cancel).unwrap()
    }

    #[tokio::test]
    async fn a_chain_of_unreadable_entries_is_walked_once() {
        let (_dir, path) = unreadable_chain(MANY).await;
        let mut sessions = opened(&path, &CancellationToken::new());
        let (_, _, mut entries) = sessions.next().unwrap().unwrap();
        let mut read = Vec::new();
        while let Some(slice) = entries.slice().unwrap() {
            read.extend(slice.entries);
        }
        assert_eq!((read.len(), entries.findings().broken), (MANY, MANY));
        assert!(read.iter().all(|entry| entry.parent.is_none()), "nothing readable is above them");
    }

    #[tokio::test]
    async fn reading_stops_between_two_entries() {
        let (_dir, path) = unreadable_chain(MANY).await;
        let cancel = CancellationToken::new();
        let mut sessions = opened(&path, &cancel);
        let (_, _, mut entries) = sessions.next().unwrap().unwrap();
        assert!(entries.slice().unwrap().is_some());
        cancel.cancel();
        assert!(entries.slice().is_err());
    }
}
