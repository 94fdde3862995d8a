//! One live session on its way to disk: knows what was handed over, queues what is new, forgets what failed.
//!
//! Handing over costs the caller a parse and a queue; hashing, indexing and the disk are the writer's. What could not be
//! written counts as unknown again, so the next walk through the session's tree hands it over once more. Walking costs the
//! caller what is unknown, so while the store fails it is asked to rest in between, longer each time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fold::{Handover, fold};
use crate::error::{Code, Error, Result};
use crate::ids::ConversationId;
use crate::log::{Field, Log};
use crate::model::{Entry, parse_batch};
use crate::store::Store;

/// Rest after the first failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_millis(500);
/// The doublings that make the longest rest: 32 s.
const DOUBLINGS: u32 = 6;

/// The persistor of one session.
#[derive(Clone)]
pub struct Persistor {
    store: Store,
    conversation: ConversationId,
    log: Log,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Entry ids that are stored or queued.
    known: HashSet<String>,
    /// What the user should hear about, once.
    notice: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// Until when handing over is in vain.
    rest_until: Option<Instant>,
}

impl Persistor {
    /// The persistor of a session of which the store has the entries `known`.
    #[must_use]
    pub fn new(store: Store, conversation: ConversationId, known: Vec<String>, log: Log) -> Self {
        let state = State { known: known.into_iter().collect(), ..State::default() };
        Self { store, conversation, log, state: Arc::new(Mutex::new(state)) }
    }

    /// Is this entry stored or on its way?
    #[must_use]
    pub fn knows(&self, entry_id: &str) -> bool {
        self.lock().known.contains(entry_id)
    }

    /// How many entries are stored or on their way.
    #[must_use]
    pub fn known(&self) -> usize {
        self.lock().known.len()
    }

    /// Is it worth while to hand over now? Not for a while after a failure.
    #[must_use]
    pub fn accepts(&self) -> bool {
        self.lock().rest_until.is_none_or(|until| Instant::now() >= until)
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
        let entries = self.sift(parse_batch(json)?);
        if entries.is_empty() {
            return Ok(());
        }
        let handover = Handover { entries, orphans: orphans.into_iter().collect() };
        let ids: Vec<String> = handover.entries.iter().map(|entry| entry.id.clone()).collect();
        let (conversation, persistor) = (self.conversation, self.clone());
        let (on_the_way, queued) = (ids.clone(), Instant::now());
        let posted = self.store.post(
            move |batch| fold(batch, conversation, &handover),
            move |outcome| {
                persistor.log_stored(on_the_way.len(), &outcome, queued);
                match outcome {
                    Ok(()) => persistor.recovered(),
                    Err(error) => persistor.failed(&on_the_way, &error),
                }
            },
        );
        if posted.is_err() {
            self.forget(&ids);
        }
        posted
    }

    /// What the user should be told, once.
    pub fn take_notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// What of `entries` is new; marks it as on its way.
    fn sift(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut state = self.lock();
        entries.into_iter().filter(|entry| state.known.insert(entry.id.clone())).collect()
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
        let told = format!("the history could not be stored, and will be tried again: {error}");
        state.notice.get_or_insert(told);
    }

    fn log_stored(&self, entries: usize, outcome: &Result<()>, queued: Instant) {
        let outcome = outcome.as_ref().map_or_else(|error| error.code().as_str(), |()| "stored");
        let fields = [
            ("entries", Field::Count(entries)),
            ("outcome", Field::Name(outcome)),
            ("took", Field::Took(queued.elapsed())),
        ];
        self.log.event("entries", &fields);
    }

    fn recovered(&self) {
        let mut state = self.lock();
        state.failures = 0;
        state.rest_until = None;
    }

    fn forget(&self, ids: &[String]) {
        let mut state = self.lock();
        for id in ids {
            state.known.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
