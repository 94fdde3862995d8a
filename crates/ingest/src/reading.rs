//! Reads the sessions of an import's files. Each is read and prepared on another thread while the one before is
//! written.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::file::{Header, SessionFile, Slices, says_anything};
use super::finding::Found;
use super::fold::{Handover, PreparedHandover};
use super::foreign::ForeignSession;
use super::old_sessions::{OldSessions, is_database};
use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::{Content, Entry, SummaryRecord, agent_of, is_record};
use lcm_store::tasks::aside;
use lcm_store::{Place, RECOVERED, Store};

/// Two sessions without an id would be merged, so neither is stored.
const NO_ID: &str =
    "its session has no id: put one of your choice into \"id\" in its first line, and import it again";

/// The bytes of messages that are prepared at a time: with more, an import needs more memory.
const SLICE: usize = 1024 * 1024;

/// A session that is to be read.
struct Unread {
    header: Header,
    /// Pi's file.
    path: Option<String>,
    slices: Box<dyn Slices>,
    is_side_chain: bool,
    is_in_database: bool,
    /// What could not be read of the file besides it.
    broken: usize,
}

/// The sessions of files, in order.
pub(super) struct Queue<'f> {
    files: std::iter::Enumerate<std::slice::Iter<'f, Found>>,
    open: Option<(usize, Sessions)>,
    store: &'f Store,
    cancel: &'f CancellationToken,
}

type Sessions = Box<dyn Iterator<Item = Unread> + Send>;

impl<'f> Queue<'f> {
    pub fn new(files: &'f [Found], store: &'f Store, cancel: &'f CancellationToken) -> Self {
        Self { files: files.iter().enumerate(), open: None, store, cancel }
    }

    /// Begins to read the next session, and returns it with its file's number, or why that file can't be read. A
    /// session with the id of one that is being written waits for that.
    pub async fn begin(
        &mut self,
        written: Option<(String, oneshot::Receiver<()>)>,
    ) -> Result<Option<(usize, Result<Reading>)>> {
        let Some((number, session)) = self.next().await? else { return Ok(None) };
        let session = match session {
            Ok(session) => session,
            Err(error) => return Ok(Some((number, Err(error)))),
        };
        // What no entry shows is last: all others are stored by then.
        if let Some((id, written)) = written
            && (id == session.header.id || session.header.id == RECOVERED)
        {
            // The sender is dropped.
            let _ = written.await;
        }
        Ok(Some((number, Ok(session.begin(self.store).await?))))
    }

    /// Leaves out the other sessions of the last file.
    pub fn skip(&mut self) {
        self.open = None;
    }

    async fn next(&mut self) -> Result<Option<(usize, Result<Unread>)>> {
        loop {
            if let Some((number, mut sessions)) = self.open.take() {
                let (sessions, next) = aside(move || {
                    let next = sessions.next();
                    Ok((sessions, next))
                })
                .await?;
                if let Some(session) = next {
                    self.open = Some((number, sessions));
                    return Ok(Some((number, Ok(session))));
                }
            }
            let Some((number, file)) = self.files.next() else { return Ok(None) };
            let (file, own, cancel) = (file.clone(), self.store.place().clone(), self.cancel.clone());
            match aside(move || open(&file, &own, &cancel)).await {
                Ok(sessions) => self.open = Some((number, sessions)),
                Err(error) => return Ok(Some((number, Err(error)))),
            }
        }
    }
}

/// Opens the sessions of a file.
fn open(found: &Found, own: &Place, cancel: &CancellationToken) -> Result<Sessions> {
    let path = &found.path;
    let is_in_database = found.rebuilding.is_some() || is_database(path);
    if let Some(agent) = found.agent {
        let is_meant = |session: &ForeignSession| {
            found.sessions.as_ref().is_none_or(|ids| ids.contains(&session.header.id))
        };
        let (meant, others): (Vec<_>, Vec<_>) = agent.open(path, cancel)?.into_iter().partition(is_meant);
        let mut broken = others.iter().map(Slices::broken).sum();
        return Ok(Box::new(meant.into_iter().map(move |session| Unread {
            header: session.header.clone(),
            path: None,
            is_side_chain: session.is_side_chain(),
            is_in_database,
            slices: Box::new(session),
            broken: std::mem::take(&mut broken),
        })));
    }
    let session = move |header, path, slices: Box<dyn Slices>| Unread {
        header,
        path,
        slices,
        is_side_chain: false,
        is_in_database,
        broken: 0,
    };
    if is_in_database {
        let mut sessions = match (&found.rebuilding, own) {
            (Some((old, purged)), _) => OldSessions::of(Arc::clone(old), Some(Arc::clone(purged)), cancel)?,
            // Reading it would drop SQLite's locks.
            (None, Place::File(own)) if files::are_one(own, path) => {
                return Err(Error::invalid("it is the database that is in use"));
            }
            (None, Place::File(own)) => OldSessions::open(path, own, cancel)?,
            (None, Place::Memory) => return Err(Error::invalid("there is no file to import it into")),
        };
        return Ok(Box::new(std::iter::from_fn(move || {
            let (header, file, slices) = sessions.next().transpose()?.ok()?;
            Some(session(header, file, Box::new(slices)))
        })));
    }
    let file = SessionFile::open(path)?.until(cancel);
    let header = file.header.clone();
    if header.id.is_empty() {
        return Err(Error::invalid(NO_ID));
    }
    let name = path.to_string_lossy().into_owned();
    Ok(Box::new(std::iter::once(session(header, Some(name), Box::new(file)))))
}

/// A session that another thread reads.
pub(super) struct Reading {
    /// Its header, and Pi's file.
    pub session: Arc<(Header, Option<String>)>,
    /// Its row, if it is stored.
    pub conversation: Option<ConversationId>,
    /// What is read. Reading ends when this is gone.
    pub slices: mpsc::Receiver<PreparedHandover>,
    /// Takes them back once they are written: it took the writer a twentieth of its time to free them.
    pub used: Sender<PreparedHandover>,
    /// Ends when all is read.
    pub rest: JoinHandle<Result<Read>>,
}

/// What is known of a session once all of it is read.
pub(super) struct Read {
    pub broken: usize,
    pub lost: usize,
    pub unknown: usize,
    /// Messages that were stored before, if they were counted.
    pub known: Option<usize>,
    pub supplements: Vec<SummaryRecord>,
    /// The stored entries that the file has too, with the hash of their message there.
    pub said: Vec<(String, Hash)>,
    pub is_side_chain: bool,
    /// Whether the next import may read more of it, although it was not written since.
    pub is_growing: bool,
}

impl Unread {
    async fn begin(self, store: &Store) -> Result<Reading> {
        let Self { header, path, mut slices, is_side_chain, is_in_database, broken } = self;
        let id = header.id.clone();
        let (conversation, known) = store
            .read(move |view| match view.messages().conversation(&id)? {
                Some(known) => Ok((Some(known), view.messages().entry_ids(known)?)),
                None => Ok((None, Vec::new())),
            })
            .await?;
        let known: HashSet<String> = known.into_iter().collect();
        let mut is_stored = conversation.is_some();
        // The places of a database's rows need memory, too.
        let size = if is_in_database { SLICE / 2 } else { SLICE };
        // The next slice is read and prepared while one is written.
        let (read, receiver) = mpsc::channel(1);
        let (used, taken_back) = channel();
        let (store, runtime) = (store.clone(), Handle::current());
        let rest = tokio::task::spawn_blocking(move || {
            if let Some(conversation) = conversation {
                slices.compare(&known, &mut |entries| {
                    runtime
                        .block_on(store.read(move |view| view.messages().records_at(conversation, &entries)))
                })?;
            }
            slices.leave_out(&mut |lineages| {
                runtime.block_on(store.read(move |view| view.upkeep().known(&lineages)))
            })?;
            let (mut waiting, mut said) = (Handover::default(), Vec::new());
            while let Some(slice) = slices.slice(&known)? {
                let (old, new): (Vec<_>, Vec<_>) =
                    slice.entries.into_iter().partition(|entry| known.contains(&entry.id));
                said.extend(old.into_iter().filter_map(said_by));
                waiting.entries.extend(new);
                waiting.orphans.extend(slice.orphans);
                // A session is stored with its first message.
                is_stored |= says_anything(&waiting);
                taken_back.try_iter().for_each(drop::<PreparedHandover>);
                // A session is dated by its first entry, which may be long.
                if is_stored && waiting.size() >= size && waiting.entries.len() > 1 {
                    // The record of its last entry may follow.
                    let last = waiting.entries.pop_if(|last| !is_record(&last.id));
                    let orphans =
                        last.iter().filter_map(|last| waiting.orphans.get(&last.id).cloned()).collect();
                    if read.blocking_send(std::mem::take(&mut waiting).prepare()).is_err() {
                        break;
                    }
                    waiting = Handover { entries: last.into_iter().collect(), orphans };
                }
            }
            if is_stored && !waiting.entries.is_empty() {
                // Nobody receives after an error.
                let _ = read.blocking_send(waiting.prepare());
            }
            let broken = broken + slices.broken();
            Ok(Read {
                broken: if is_in_database { 0 } else { broken },
                lost: if is_in_database { broken } else { 0 },
                unknown: slices.unknown(),
                known: slices.known(),
                supplements: slices.supplements(),
                said,
                is_side_chain,
                is_growing: slices.is_growing(),
            })
        });
        Ok(Reading { session: Arc::new((header, path)), conversation, slices: receiver, used, rest })
    }
}

impl Reading {
    /// The session's id.
    pub fn id(&self) -> &str {
        &self.session.0.id
    }
}

/// The id of an entry with a message, and the hash of that message. Other agents' may carry another record of the same.
fn said_by(entry: Entry) -> Option<(String, Hash)> {
    match entry.content {
        Content::Message(json) if agent_of(&json).is_none() => Some((entry.id, Hash::plain(json.as_bytes()))),
        _ => None,
    }
}
