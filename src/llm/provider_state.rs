//! What is known about the models between compactions, for the lifetime of a session: which are worth asking,
//! and what was spent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::health::Health;
use super::spend::Spend;
use super::thinking::Thinking;
use crate::config::Settings;
use crate::sync::lock;

/// After this many consecutive failures, the session's model is no longer asked within its conversation.
const MOST_UNANSWERED: u32 = 2;

/// The state of the models, one per open session.
pub struct ProviderState {
    pub(super) health: Health,
    pub spend: Spend,
    /// How much thinking models need, by the key of their health record.
    thinking: std::sync::Mutex<HashMap<String, Thinking>>,
    /// Consecutive questions within the session that its model did not answer.
    unanswered: AtomicU32,
    /// Whether it ever answered one there.
    has_answered: AtomicBool,
    /// Held by the question that tries it first.
    trial: Mutex<()>,
}

impl ProviderState {
    /// The state before any question.
    pub fn new(settings: &Settings) -> Self {
        Self {
            health: Health::default(),
            spend: Spend::new(settings),
            thinking: std::sync::Mutex::default(),
            unanswered: AtomicU32::new(0),
            has_answered: AtomicBool::new(false),
            trial: Mutex::default(),
        }
    }

    /// How much thinking a model has shown that it needs.
    pub(super) fn thinking(&self, key: &str) -> Thinking {
        lock(&self.thinking).get(key).copied().unwrap_or_default()
    }

    /// Records it.
    pub(super) fn needs_thinking(&self, key: &str, needed: Thinking) {
        let mut known = lock(&self.thinking);
        let known = known.entry(key.to_owned()).or_default();
        *known = needed.max(*known);
    }

    /// Whether the session's model may be asked within its conversation.
    pub(super) fn asks_in_session(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) < MOST_UNANSWERED
    }

    /// Waits until it is known whether the model answers there, or returns the right to try it, to be held
    /// until the outcome is recorded: of several questions at once, only one should fail.
    pub(super) async fn trial_in_session(&self) -> Option<MutexGuard<'_, ()>> {
        let is_known =
            || self.has_answered.load(Ordering::Relaxed) && self.unanswered.load(Ordering::Relaxed) == 0;
        if is_known() {
            return None;
        }
        Some(self.trial.lock().await).filter(|_| !is_known())
    }

    /// Records whether it answered there.
    pub(super) fn asked_in_session(&self, is_answered: bool) {
        self.has_answered.fetch_or(is_answered, Ordering::Relaxed);
        match is_answered {
            true => self.unanswered.store(0, Ordering::Relaxed),
            false => _ = self.unanswered.fetch_add(1, Ordering::Relaxed),
        }
    }
}
