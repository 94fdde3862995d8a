//! Stores one live session: tracks which entries were handed over, queues new ones, and forgets those that
//! failed.
//!
//! Handing over costs the caller a parse and a queue; the writer's thread hashes, indexes and writes. Entries
//! that could not be written count as unknown again, so the next walk through the session's tree hands them
//! over once more. A walk costs as much as there are unknown entries, so while the store fails the caller
//! pauses between walks, longer each time.
//!
//! A session is stored with its first message. What Pi writes before it (the model, the thinking level) is
//! held back until then.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::edited::edited;
use super::storing::{Handover, PreparedHandover};
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::locks::lock;
use lcm_model::log::{Field, Log};
use lcm_model::{Content, Entry, parse_batch, text};
use lcm_store::{Batch, LastRows, Store, View};

/// The pause after the first failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_millis(500);
/// The number of doublings up to the longest pause, 32 s.
const DOUBLINGS: u32 = 6;

/// A session as Pi names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PiSession {
    /// Pi's id.
    pub id: String,
    /// Its file, if it has one.
    pub file: Option<String>,
    /// The file of the session it was forked from.
    pub parent_file: Option<String>,
}

impl PiSession {
    pub(super) fn row(&self, batch: &Batch<'_>, now: i64) -> Result<ConversationId> {
        let (file, parent) = (self.file.as_deref(), self.parent_file.as_deref());
        batch.messages().conversation_row(&self.id, file, parent, now)
    }
}

/// The persistor of one session. Cheap to clone.
#[derive(Clone)]
pub struct Persistor(Arc<PersistorState>);

/// The state that all clones share.
struct PersistorState {
    store: Store,
    session: PiSession,
    /// The session's row, once it has one.
    conversation: AtomicI64,
    log: Log,
    state: Mutex<PersistorProgress>,
    /// The last rows before it wrote any.
    since: OnceLock<LastRows>,
}

#[derive(Default)]
struct PersistorProgress {
    /// Ids of this session's entries that are stored, queued or held back.
    known: HashSet<String>,
    /// Ids that the store had at the first query and the session has not named yet. It may never name them: a
    /// session file can be replaced.
    unnamed: Option<HashSet<String>>,
    /// Whether the session is stored or queued.
    begun: bool,
    /// Entries before the first message.
    held: Handover,
    /// Whether something was lost since the last complete walk. Later entries would have no parent.
    torn: bool,
    /// Whether something was lost since the session was last handed over in full.
    is_lacking: bool,
    /// A message for the user, shown once.
    notice: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// No hand-over before this time.
    rest_until: Option<Instant>,
}

impl PersistorProgress {
    fn accepts(&self) -> bool {
        self.rest_until.is_none_or(|until| Instant::now() >= until)
    }
}

impl Persistor {
    /// Opens the persistor of a session, in constant time: the start of a session waits for it.
    pub async fn open(store: &Store, session: PiSession, log: Log) -> Result<Self> {
        let asked = session.clone();
        let look = move |view: &View<'_>| {
            let found = view.messages().conversation(&asked.id)?;
            // Detects a damaged table before anything is written.
            found.map_or(Ok(()), |found| view.messages().touch_entries(found))?;
            Ok(found.unwrap_or(ConversationId::NONE))
        };
        let conversation = store.read(look).await?;
        let begun = conversation != ConversationId::NONE;
        if begun {
            // Updates the time of last use; nothing waits for this, and a failure is ignored.
            let seen = session.clone();
            store.post(move |batch| seen.row(batch, text::now()), drop)?;
        }
        Ok(Self(Arc::new(PersistorState {
            store: store.clone(),
            session,
            conversation: AtomicI64::new(conversation.0),
            log,
            state: Mutex::new(PersistorProgress { begun, ..PersistorProgress::default() }),
            since: OnceLock::new(),
        })))
    }

    /// The session's row; [`ConversationId::NONE`] before its first message.
    pub fn conversation(&self) -> ConversationId {
        ConversationId(self.0.conversation.load(Ordering::Relaxed))
    }

    /// Returns the positions in `ids` of the entries that are neither stored nor queued, and counts the
    /// others as known. The caller is about to hand those over, so this ends a pause.
    pub async fn missing(&self, ids: Vec<String>) -> Result<Vec<usize>> {
        let is_asked = self.lock().unnamed.is_some();
        if !is_asked {
            let conversation = self.conversation();
            let stored = match conversation {
                ConversationId::NONE => Vec::new(),
                _ => self.0.store.read(move |view| view.messages().entry_ids(conversation)).await?,
            };
            self.lock().unnamed.get_or_insert_with(|| stored.into_iter().collect());
        }
        let mut state = self.lock();
        let PersistorProgress { known, unnamed, rest_until, is_lacking, .. } = &mut *state;
        (*rest_until, *is_lacking) = (None, false);
        let mut missing = Vec::new();
        for (place, id) in ids.into_iter().enumerate() {
            if unnamed.as_mut().is_some_and(|unnamed| unnamed.remove(&id)) {
                known.insert(id);
            } else if !known.contains(&id) {
                missing.push(place);
            }
        }
        Ok(missing)
    }

    /// Sets aside what the session's file shows otherwise: another text, or another place. The file's entries count as
    /// unknown then. Returns how many differ.
    pub async fn set_aside(&self, cancel: &CancellationToken) -> Result<usize> {
        let conversation = self.conversation();
        let PiSession { id, file, .. } = self.0.session.clone();
        let Some(path) = file.map(PathBuf::from).filter(|_| conversation != ConversationId::NONE) else {
            return Ok(0);
        };
        let cancel = cancel.clone();
        let compare = move |view: &View<'_>| edited(view, conversation, &id, &path, &cancel);
        let entries = match self.0.store.read(compare).await {
            Ok(edited) => edited,
            // Whether its file can be read is Pi's matter.
            Err(error) if error.code() == Code::Invalid => return Ok(0),
            Err(error) => return Err(error),
        };
        if entries.is_empty() {
            return Ok(0);
        }
        let count = entries.len();
        let mark = Hash::plain(format!("{} {}", text::now(), entries.join(" ")).as_bytes());
        let write = move |batch: &Batch<'_>| batch.messages().set_aside(conversation, &entries, &mark);
        let free = self.0.store.write(write).await?;
        let mut state = self.lock();
        for id in &free {
            state.known.remove(id);
            if let Some(unnamed) = &mut state.unnamed {
                unnamed.remove(id);
            }
        }
        Ok(if free.is_empty() { 0 } else { count })
    }

    /// Whether this entry is stored or queued, if the session has named it.
    pub fn knows(&self, entry_id: &str) -> bool {
        self.lock().known.contains(entry_id)
    }

    /// The number of named entries that are stored or queued.
    pub fn known(&self) -> usize {
        self.lock().known.len()
    }

    /// Whether something was lost since the last [`Self::missing`], on any branch.
    pub fn is_lacking(&self) -> bool {
        self.lock().is_lacking
    }

    /// Whether to hand over now: `false` for a while after a failure.
    pub fn accepts(&self) -> bool {
        self.lock().accepts()
    }

    /// Whether the last write failed, so that the store lacks newer entries.
    pub fn is_behind(&self) -> bool {
        self.lock().failures > 0
    }

    /// Takes a JSON array of session entries, parents before children, and queues the new ones. `orphans` are
    /// the entries whose parent the session does not have: Pi shows them as roots.
    ///
    /// # Errors
    /// When `json` is not an array, or the store is closed.
    pub fn hand_over(&self, json: &str, orphans: Vec<String>) -> Result<()> {
        let Some(handover) = self.sift(parse_batch(json)?, orphans) else { return Ok(()) };
        let ids: Vec<String> = handover.entries.iter().map(|entry| entry.id.clone()).collect();
        self.post(&ids, prepare_aside(handover))
    }

    /// Takes the entry `id` as JSON, a child of what was handed over last. Returns whether that was possible.
    /// This is the fast path while the user waits for Pi: even the parse is left to the writer. Before the
    /// first message, and after a failure, entries go through [`Self::hand_over`].
    pub fn append(&self, id: String, json: String) -> bool {
        {
            let mut state = self.lock();
            if !state.begun || state.torn || !state.accepts() {
                return false;
            }
            if !state.known.insert(id.clone()) {
                return true;
            }
        }
        self.post(&[id], move || Ok(Handover::of(&json)?.prepare())).is_ok()
    }

    /// Queues `handover` for the writer's thread; `ids` are its entries.
    fn post(
        &self,
        ids: &[String],
        handover: impl FnOnce() -> Result<PreparedHandover> + Send + 'static,
    ) -> Result<()> {
        let (writing, persistor) = (self.clone(), self.clone());
        let (on_the_way, queued) = (ids.to_vec(), Instant::now());
        let posted = self.0.store.post(
            move |batch| {
                let handover = handover()?;
                let conversation = match writing.conversation() {
                    ConversationId::NONE => writing.0.session.row(batch, text::now())?,
                    known => known,
                };
                let last = batch.messages().last_rows()?;
                let since = *writing.0.since.get_or_init(|| last);
                handover.store_since(batch, conversation, since, Err)?;
                Ok(conversation)
            },
            move |outcome| {
                let name = outcome.as_ref().map_or_else(|error| error.code().as_str(), |_| "stored");
                let fields = [
                    ("entries", Field::Count(on_the_way.len())),
                    ("outcome", Field::Name(name)),
                    ("took", Field::Took(queued.elapsed())),
                ];
                persistor.0.log.event("entries", &fields);
                match outcome {
                    Ok(conversation) => persistor.recovered(conversation),
                    Err(error) => persistor.failed(&on_the_way, &error),
                }
            },
        );
        if posted.is_err() {
            self.forget(ids);
        }
        posted
    }

    /// Takes the message for the user.
    pub fn take_notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// Returns what to store now, `entries` and what was held back, and marks it as queued.
    fn sift(&self, entries: Vec<Entry>, orphans: Vec<String>) -> Option<Handover> {
        let mut state = self.lock();
        let PersistorProgress { known, begun, held, torn, .. } = &mut *state;
        *torn = false;
        // Storing decides about known ids: another entry may have the same one.
        known.extend(entries.iter().map(|entry| entry.id.clone()));
        held.entries.extend(entries);
        held.orphans.extend(orphans);
        *begun |= held.entries.iter().any(|entry| matches!(entry.content, Content::Message(_)));
        (*begun && !held.entries.is_empty()).then(|| std::mem::take(held))
    }

    fn failed(&self, ids: &[String], error: &Error) {
        self.forget(ids);
        // A gap only follows from a failure that was reported and counted already.
        if error.code() == Code::Gap {
            return;
        }
        let mut state = self.lock();
        let rest = FIRST_REST * 2_u32.pow(state.failures.min(DOUBLINGS));
        state.rest_until = Some(Instant::now() + rest);
        state.failures += 1;
        // The store reports damage itself.
        if error.code() == Code::Damaged {
            return;
        }
        let notice = format!("the history could not be stored and will be retried: {error}");
        state.notice.get_or_insert(notice);
    }

    fn recovered(&self, conversation: ConversationId) {
        self.0.conversation.store(conversation.0, Ordering::Relaxed);
        let mut state = self.lock();
        (state.failures, state.rest_until) = (0, None);
    }

    fn forget(&self, ids: &[String]) {
        let mut state = self.lock();
        state.begun &= self.conversation() != ConversationId::NONE;
        (state.torn, state.is_lacking) = (true, true);
        for id in ids {
            state.known.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PersistorProgress> {
        lock(&self.0.state)
    }
}

/// From this many entries on, a hand-over is prepared on a thread of its own.
const MANY: usize = 8;

/// Prepares a hand-over; a long one starts at once on its own thread. The returned function waits for it.
fn prepare_aside(handover: Handover) -> impl FnOnce() -> Result<PreparedHandover> + Send + 'static {
    let is_long = handover.entries.len() >= MANY;
    let waiting = Arc::new(Mutex::new(Some(handover)));
    let prepare = |waiting: &Mutex<Option<Handover>>| {
        let handover = lock(waiting).take();
        handover.map(Handover::prepare)
    };
    let shared = Arc::clone(&waiting);
    let spawn = || Builder::new().name("lcm-preparing".into()).spawn(move || prepare(&shared)).ok();
    let preparing = is_long.then(spawn).flatten();
    move || {
        let made = preparing.and_then(|thread| thread.join().ok().flatten());
        // If no thread can be started, prepare it here.
        made.or_else(|| prepare(&waiting))
            .ok_or_else(|| Error::store("the entries could not be prepared for storing"))
    }
}
