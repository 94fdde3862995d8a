//! What is remembered of the models between compactions, as long as a session is open: which of them are worth asking, and
//! what has been spent.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::health::Health;
use super::spend::Spend;
use crate::config::Settings;

/// After this many failures in a row the session's model is no longer asked within its conversation.
const IN_VAIN: u32 = 2;

/// How things stand with the models; one for each open session.
pub struct ProviderState {
    pub(super) health: Health,
    pub(super) spend: Spend,
    /// Questions in a row within the session that its model did not answer.
    in_vain: AtomicU32,
    /// Whether it has ever answered one there.
    has_answered: AtomicBool,
    /// Held by the question that finds out.
    trial: Mutex<()>,
}

impl ProviderState {
    /// Nothing has been asked yet.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            health: Health::default(),
            spend: Spend::new(settings),
            in_vain: AtomicU32::new(0),
            has_answered: AtomicBool::new(false),
            trial: Mutex::default(),
        }
    }

    /// May the session's model be asked within its conversation?
    pub(super) fn asks_in_session(&self) -> bool {
        self.in_vain.load(Ordering::Relaxed) < IN_VAIN
    }

    /// Waits until it is known whether the model answers there, or gives the right to find out, to be held until that is noted:
    /// of several questions at once only one may be in vain.
    pub(super) async fn trial_in_session(&self) -> Option<MutexGuard<'_, ()>> {
        let is_known =
            || self.has_answered.load(Ordering::Relaxed) && self.in_vain.load(Ordering::Relaxed) == 0;
        if is_known() {
            return None;
        }
        Some(self.trial.lock().await).filter(|_| !is_known())
    }

    /// Notes whether it has answered there.
    pub(super) fn asked_in_session(&self, is_answered: bool) {
        self.has_answered.fetch_or(is_answered, Ordering::Relaxed);
        match is_answered {
            true => self.in_vain.store(0, Ordering::Relaxed),
            false => _ = self.in_vain.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Other limits from here on; what was spent, and how the models did, stays known.
    pub fn limit(&self, settings: &Settings) {
        self.spend.limit(settings);
    }

    /// A limit that was reached, for the user to hear; each is told of once.
    #[must_use]
    pub fn take_notice(&self) -> Option<String> {
        self.spend.take_notice()
    }
}
