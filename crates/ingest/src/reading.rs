//! Reads the sessions of an import's files, of any agent, slice by slice. A slice is what one transaction writes: an open
//! session can write in between.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::file::{Header, KnownEntries, SessionFile, Slices, says_anything};
use super::finding::Found;
use super::foreign::ForeignSession;
use super::old_sessions::{OldSessions, SharedOldStore, is_database};
use super::persistor::PiSession;
use super::storing::{Handover, PreparedHandover};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::{Content, Entry, agent_of, files};
use lcm_store::{OldStore, Store, View, merge_log};
use tokio_util::sync::CancellationToken;

/// Two sessions without an id would be merged, so neither is stored.
const NO_ID: &str =
    "its session has no id: put one of your choice into \"id\" in its first line, and import it again";

pub(super) struct Reading {
    pub session: Arc<PiSession>,
    pub slices: Box<dyn Slices>,
    known: Arc<KnownEntries>,
    /// Entries before its first message.
    waiting: Handover,
    /// Whether it is stored, or has a message.
    is_stored: bool,
    pub is_side_chain: bool,
    pub is_in_database: bool,
    /// What could not be read of the file besides it.
    pub broken: usize,
    /// The stored entries that the file has too, with the hash of their message there.
    pub said: Vec<(String, Hash)>,
}

pub(super) type Sessions = Box<dyn Iterator<Item = Reading> + Send>;

/// Opens a database, if the file is one. One in the folder of this machine's databases may be in use.
pub(super) fn open_database(
    path: &Path,
    own: Option<&Path>,
    is_of_ours: bool,
    cancel: &CancellationToken,
) -> Result<Option<SharedOldStore>> {
    match own {
        _ if !is_database(path) => Ok(None),
        // Reading it would drop SQLite's locks.
        Some(own) if files::are_one(own, path) => Err(Error::invalid("it is the database that is in use")),
        Some(_) if is_of_ours && !merge_log(path)? => {
            Err(Error::invalid("another Pi is working with it: quit that, and try again"))
        }
        Some(own) => Ok(Some(Arc::new(Mutex::new(OldStore::open(path, own, cancel)?)))),
        None => Err(Error::invalid("there is no file to import it into")),
    }
}

/// Opens the sessions of a file.
pub(super) fn open(found: &Found, cancel: &CancellationToken) -> Result<Sessions> {
    let path = &found.path;
    let is_in_database = found.database.is_some() || is_database(path);
    if let Some(agent) = found.agent {
        let is_meant = |session: &ForeignSession| {
            found.sessions.as_ref().is_none_or(|ids| ids.contains(&session.header.id))
        };
        let (meant, others): (Vec<_>, Vec<_>) = agent.open(path, cancel)?.into_iter().partition(is_meant);
        let mut broken = others.iter().map(|session| session.findings().broken).sum();
        return Ok(Box::new(meant.into_iter().map(move |session| {
            let (is_side_chain, broken) = (session.is_side_chain(), std::mem::take(&mut broken));
            let reading = Reading::new(session.header.clone(), None, Box::new(session));
            Reading { is_side_chain, is_in_database, broken, ..reading }
        })));
    }
    if let Some((old, rebuilding)) = &found.database {
        let mut sessions = OldSessions::of(Arc::clone(old), rebuilding.clone(), cancel)?;
        return Ok(Box::new(std::iter::from_fn(move || {
            let (header, file, slices) = sessions.next().transpose()?.ok()?;
            Some(Reading { is_in_database, ..Reading::new(header, file, Box::new(slices)) })
        })));
    }
    let file = SessionFile::open(path)?.until(cancel);
    let header = file.header.clone();
    if header.id.is_empty() {
        return Err(Error::invalid(NO_ID));
    }
    let name = path.to_string_lossy().into_owned();
    Ok(Box::new(std::iter::once(Reading::new(header, Some(name), Box::new(file)))))
}

impl Reading {
    fn new(header: Header, file: Option<String>, slices: Box<dyn Slices>) -> Self {
        Self {
            session: Arc::new(PiSession { id: header.id, file, parent_file: header.parent }),
            slices,
            known: Arc::default(),
            waiting: Handover::default(),
            is_stored: false,
            is_side_chain: false,
            is_in_database: false,
            broken: 0,
            said: Vec::new(),
        }
    }

    /// Looks up what is stored of the session, and returns its row.
    pub async fn compare(mut self, store: &Store) -> Result<(Self, Option<ConversationId>)> {
        let look = move |view: &View<'_>| {
            let conversation = view.messages().conversation(&self.session.id)?;
            if let Some(row) = conversation {
                let entries = view.messages().entry_ids(row)?.into_iter().collect();
                self.known = Arc::new(KnownEntries { entries, purged: view.upkeep().purged_records(row)? });
            }
            self.is_stored = conversation.is_some();
            self.slices.learn(view, &self.known)?;
            Ok((self, conversation))
        };
        store.read(look).await
    }

    /// Reads and prepares the next entries that are not stored; `None` at the end.
    pub fn next(&mut self) -> Result<Option<PreparedHandover>> {
        while let Some(slice) = self.slices.slice()? {
            let (old, new): (Vec<_>, Vec<_>) =
                slice.entries.into_iter().partition(|entry| self.known.entries.contains(&entry.id));
            self.said.extend(old.into_iter().filter_map(said_by));
            self.waiting.entries.extend(new);
            self.waiting.orphans.extend(slice.orphans);
            // A session is stored with its first message.
            self.is_stored |= says_anything(&self.waiting);
            if self.is_stored && !self.waiting.entries.is_empty() {
                return Ok(Some(std::mem::take(&mut self.waiting).prepare()));
            }
        }
        Ok(None)
    }
}

/// The id of an entry with a message, and the hash of that message. Other agents' may carry another record of the same.
fn said_by(entry: Entry) -> Option<(String, Hash)> {
    match entry.content {
        Content::Message(json) if agent_of(&json).is_none() => Some((entry.id, Hash::plain(json.as_bytes()))),
        _ => None,
    }
}
