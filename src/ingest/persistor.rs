//! One live session on its way to disk: knows what was handed over, queues what is new, forgets what failed.
//!
//! Handing over costs the caller a parse and a queue; hashing, indexing and the disk are the writer's. What could not be
//! written counts as unknown again, so the next walk through the session's tree hands it over once more. Walking costs the
//! caller what is unknown, so while the store fails it is asked to rest in between, longer each time.
//!
//! A session is stored with its first message: what Pi notes at the start of one in which nothing is ever said (its model,
//! its thinking level) is held back until then.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::fold::{Handover, PreparedHandover};
use crate::error::{Code, Error, Result};
use crate::ids::ConversationId;
use crate::log::{Field, Log};
use crate::model::{Content, Entry, parse_batch};
use crate::store::{Batch, Store, View};
use crate::text;

/// Rest after the first failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_millis(500);
/// The doublings that make the longest rest: 32 s.
const DOUBLINGS: u32 = 6;

/// A session as Pi names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PiSession {
    /// Pi's id.
    pub id: String,
    /// Its file, where there is one.
    pub file: Option<String>,
    /// The file of the session it was forked from.
    pub parent_file: Option<String>,
}

impl PiSession {
    fn row(&self, batch: &Batch<'_>) -> Result<ConversationId> {
        batch.messages().conversation_row(
            &self.id,
            self.file.as_deref(),
            self.parent_file.as_deref(),
            text::now(),
        )
    }
}

/// The persistor of one session, cheap to clone.
#[derive(Clone)]
pub struct Persistor(Arc<Shared>);

/// What all its clones have in common.
struct Shared {
    store: Store,
    session: PiSession,
    /// The session's row, once it has one.
    conversation: AtomicI64,
    log: Log,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Ids of this session's entries that are stored, queued or held back.
    known: HashSet<String>,
    /// Ids that the store had when it was first asked, and that the session has not named yet. It may never: a session file
    /// can be replaced.
    unnamed: Option<HashSet<String>>,
    /// Is the session stored, or on its way?
    begun: bool,
    /// Entries from before the first message.
    held: Handover,
    /// Was something lost on its way since the last whole walk? What goes on below it has nothing to hang from.
    torn: bool,
    /// Hand-overs that were stored.
    stored: usize,
    /// Messages that were said in them.
    said: usize,
    /// Messages that were said before them, once that was counted.
    said_before: Option<usize>,
    /// What the user should hear about, once.
    notice: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// Until when handing over is in vain.
    rest_until: Option<Instant>,
}

impl State {
    fn accepts(&self) -> bool {
        self.rest_until.is_none_or(|until| Instant::now() >= until)
    }
}

impl Persistor {
    /// The persistor of a session. It costs the same whatever is stored: a session's start waits for it.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn open(store: &Store, session: PiSession, log: Log) -> Result<Self> {
        let asked = session.clone();
        let look = move |view: &View<'_>| {
            let found = view.messages().conversation(&asked.id)?;
            // Before anything is written.
            found.as_ref().map_or(Ok(()), |found| view.messages().touch_entries(found.id))?;
            Ok(found)
        };
        let found = store.read(look).await?;
        let conversation = found.map_or(ConversationId::NONE, |found| found.id);
        let begun = conversation != ConversationId::NONE;
        if begun {
            // When it was seen last is worth no waiting, and no word if it can't be noted.
            let seen = session.clone();
            store.post(move |batch| seen.row(batch), drop)?;
        }
        let state = State { begun, ..State::default() };
        let conversation = AtomicI64::new(conversation.0);
        let shared = Shared { store: store.clone(), session, conversation, log, state: Mutex::new(state) };
        Ok(Self(Arc::new(shared)))
    }

    /// The session's row; [`ConversationId::NONE`] before anything was said in it.
    #[must_use]
    pub fn conversation(&self) -> ConversationId {
        ConversationId(self.0.conversation.load(Ordering::Relaxed))
    }

    /// Which of the session's entries are neither stored nor on their way, as places in `ids`. Those that are count as known
    /// from here on. Whoever asks is about to hand them over, so a rest ends with it.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn missing(&self, ids: Vec<String>) -> Result<Vec<usize>> {
        let asked = self.lock().unnamed.is_some();
        if !asked {
            let stored = match self.conversation() {
                ConversationId::NONE => Vec::new(),
                conversation => {
                    self.0.store.read(move |view| view.messages().entry_ids(conversation)).await?
                }
            };
            self.lock().unnamed.get_or_insert_with(|| stored.into_iter().collect());
        }
        let mut state = self.lock();
        let State { known, unnamed, rest_until, .. } = &mut *state;
        *rest_until = None;
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

    /// Is this entry stored or on its way, as far as the session has named it?
    #[must_use]
    pub fn knows(&self, entry_id: &str) -> bool {
        self.lock().known.contains(entry_id)
    }

    /// How many of the entries that the session has named are stored or on their way.
    #[must_use]
    pub fn known(&self) -> usize {
        self.lock().known.len()
    }

    /// Is it worth while to hand over now? Not for a while after a failure.
    #[must_use]
    pub fn accepts(&self) -> bool {
        self.lock().accepts()
    }

    /// Did the last write fail, so that the store lacks what was said since?
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.lock().failures > 0
    }

    /// Takes a JSON array of session entries, parents before children, and queues what is new. `orphans` are those whose
    /// parent the session itself does not have: Pi shows them as roots.
    ///
    /// # Errors
    /// When `json` is no array, or the store is closed.
    pub fn hand_over(&self, json: &str, orphans: Vec<String>) -> Result<()> {
        let Some(handover) = self.sift(parse_batch(json)?, orphans) else { return Ok(()) };
        let ids: Vec<String> = handover.entries.iter().map(|entry| entry.id.clone()).collect();
        self.post(&ids, prepare_aside(handover))
    }

    /// Takes the one entry `id`, as JSON, that a session goes on with below what was handed over last; says whether that was
    /// possible. It is the short way for what comes while somebody waits for Pi: even the parse is left to the writer. Before
    /// the first message, and after anything has failed, entries go the long way.
    #[must_use]
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

    /// Queues what `handover` says on the writer's thread, known as `ids`.
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
                    ConversationId::NONE => writing.0.session.row(batch)?,
                    known => known,
                };
                let handover = handover.fold(batch, conversation)?;
                let entries = handover.entries.iter().map(|entry| entry.id.as_str());
                Ok((conversation, batch.messages().said_by(conversation, entries)?))
            },
            move |outcome| {
                persistor.log_stored(on_the_way.len(), outcome.as_ref().err(), queued);
                match outcome {
                    Ok((conversation, said)) => persistor.recovered(conversation, said),
                    Err(error) => persistor.failed(&on_the_way, &error),
                }
            },
        );
        if posted.is_err() {
            self.forget(ids);
        }
        posted
    }

    /// What the user should be told, once.
    pub fn take_notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// What is to be stored now: `entries`, with what was held back; marks it as on its way.
    fn sift(&self, entries: Vec<Entry>, orphans: Vec<String>) -> Option<Handover> {
        let mut state = self.lock();
        let State { known, begun, held, torn, .. } = &mut *state;
        *torn = false;
        // An id that is known is for the fold to judge: another entry may have it too.
        known.extend(entries.iter().map(|entry| entry.id.clone()));
        held.entries.extend(entries);
        held.orphans.extend(orphans);
        *begun |= held.entries.iter().any(|entry| matches!(entry.content, Content::Message(_)));
        if !*begun || held.entries.is_empty() {
            return None;
        }
        Some(std::mem::take(held))
    }

    fn failed(&self, ids: &[String], error: &Error) {
        self.forget(ids);
        // A gap only follows from a failure that was told of and counted already.
        if error.code() == Code::Gap {
            return;
        }
        let mut state = self.lock();
        let rest = FIRST_REST * 2_u32.pow(state.failures.min(DOUBLINGS));
        state.rest_until = Some(Instant::now() + rest);
        state.failures += 1;
        // Damage is told of by the store, whoever meets it first.
        if error.code() == Code::Damaged {
            return;
        }
        let told = format!("the history could not be stored and will be retried: {error}");
        state.notice.get_or_insert(told);
    }

    fn log_stored(&self, entries: usize, error: Option<&Error>, queued: Instant) {
        let outcome = error.map_or("stored", |error| error.code().as_str());
        let fields = [
            ("entries", Field::Count(entries)),
            ("outcome", Field::Name(outcome)),
            ("took", Field::Took(queued.elapsed())),
        ];
        self.0.log.event("entries", &fields);
    }

    /// Messages that the session shows on any branch. Counting them costs the length of the session, so that is done once.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn said(&self) -> Result<usize> {
        let stored = {
            let state = self.lock();
            if let Some(before) = state.said_before {
                return Ok(before + state.said);
            }
            state.stored
        };
        let conversation = self.conversation();
        let said = self.0.store.read(move |view| view.messages().said_in(conversation)).await?;
        let mut state = self.lock();
        // If something was stored meanwhile, nobody knows whether it was counted: then the next one who asks counts anew.
        if state.stored == stored {
            state.said_before = Some(said.saturating_sub(state.said));
        }
        Ok(said)
    }

    /// Counts anew when it is next asked: messages have gone.
    pub fn count_anew(&self) {
        let mut state = self.lock();
        (state.said_before, state.said) = (None, 0);
        // What is being counted now has them still.
        state.stored += 1;
    }

    fn recovered(&self, conversation: ConversationId, said: usize) {
        self.0.conversation.store(conversation.0, Ordering::Relaxed);
        let mut state = self.lock();
        state.stored += 1;
        state.said += said;
        state.failures = 0;
        state.rest_until = None;
    }

    fn forget(&self, ids: &[String]) {
        let mut state = self.lock();
        state.begun &= self.conversation() != ConversationId::NONE;
        state.torn = true;
        for id in ids {
            state.known.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many entries in one hand-over are worth a thread that makes them ready while the writer has others to write.
const MANY: usize = 8;

/// Makes a hand-over ready to be stored, a long one at once on a thread of its own; what is returned waits for that.
fn prepare_aside(handover: Handover) -> impl FnOnce() -> Result<PreparedHandover> + Send + 'static {
    let is_long = handover.entries.len() >= MANY;
    let waiting = Arc::new(Mutex::new(Some(handover)));
    let prepare = |waiting: &Mutex<Option<Handover>>| {
        let handover = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        handover.map(Handover::prepare)
    };
    let shared = Arc::clone(&waiting);
    let spawn = || Builder::new().name("lcm-preparing".into()).spawn(move || prepare(&shared)).ok();
    let preparing = is_long.then(spawn).flatten();
    move || {
        let made = preparing.and_then(|thread| thread.join().ok().flatten());
        // Where there is no thread to be had, it is done here.
        made.or_else(|| prepare(&waiting))
            .ok_or_else(|| Error::store("the entries could not be prepared for storing"))
    }
}
