//! One live session on its way to disk: knows what was handed over, queues what is new, forgets what failed.
//!
//! Handing over costs the caller a parse and a queue; hashing, indexing and the disk are the writer's. What could not be
//! written counts as unknown again, so the next walk through the session's tree hands it over once more.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fold::{Handover, fold};
use crate::error::Result;
use crate::ids::ConversationId;
use crate::model::{Entry, parse_batch};
use crate::store::Store;

/// The persistor of one session.
#[derive(Clone)]
pub struct Persistor {
    store: Store,
    conversation: ConversationId,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Entry ids that are stored or queued.
    known: HashSet<String>,
    /// What the user should hear about, once.
    notice: Option<String>,
}

impl Persistor {
    /// The persistor of a session of which the store has the entries `known`.
    #[must_use]
    pub fn new(store: Store, conversation: ConversationId, known: Vec<String>) -> Self {
        let state = State { known: known.into_iter().collect(), notice: None };
        Self { store, conversation, state: Arc::new(Mutex::new(state)) }
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

    /// Takes a JSON array of session entries, parents before children, and queues what is new.
    ///
    /// # Errors
    /// When `json` is no array, or the store is closed.
    pub fn hand_over(&self, json: &str) -> Result<()> {
        let handover = self.sift(parse_batch(json)?);
        if handover.entries.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = handover.entries.iter().map(|entry| entry.id.clone()).collect();
        let (conversation, persistor) = (self.conversation, self.clone());
        let on_the_way = ids.clone();
        let posted = self.store.post(
            move |batch| fold(batch, conversation, &handover),
            move |outcome| {
                if let Err(error) = outcome {
                    persistor.forget(&on_the_way, Some(format!("the history could not be stored: {error}")));
                }
            },
        );
        if posted.is_err() {
            self.forget(&ids, None);
        }
        posted
    }

    /// What the user should be told, once.
    pub fn take_notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// What of `entries` is new; marks it as on its way.
    fn sift(&self, entries: Vec<Entry>) -> Handover {
        let mut state = self.lock();
        let mut handover = Handover { entries: Vec::new(), orphans: HashSet::new() };
        for entry in entries {
            // The caller walks up to the root or to what is known: a parent that is neither is not in the session.
            let orphan = entry.parent.as_ref().is_some_and(|parent| !state.known.contains(parent));
            if !state.known.insert(entry.id.clone()) {
                continue;
            }
            if orphan {
                handover.orphans.insert(entry.id.clone());
            }
            handover.entries.push(entry);
        }
        handover
    }

    fn forget(&self, ids: &[String], notice: Option<String>) {
        let mut state = self.lock();
        for id in ids {
            state.known.remove(id);
        }
        if state.notice.is_none() {
            state.notice = notice;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
