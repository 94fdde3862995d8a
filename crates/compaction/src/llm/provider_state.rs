//! What is known about the models between compactions, for the lifetime of a session: which are worth asking,
//! and what was spent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::health::Health;
use super::queue::Server;
use super::spend::Spend;
use lcm_model::config::Settings;
use lcm_model::locks::lock;

/// After this many consecutive failures, the session's model is no longer asked within its conversation.
const MOST_UNANSWERED: u32 = 2;

/// The state of the models, one per open session.
pub struct ProviderState {
    pub(super) health: Health,
    pub spend: Spend,
    /// Consecutive questions within the session that its model did not answer.
    unanswered: AtomicU32,
    /// By address.
    servers: Mutex<HashMap<String, Arc<Server>>>,
    /// Real tokens per estimated one, by `provider/model`.
    ratios: Mutex<HashMap<String, f64>>,
    /// What the user must know about servers and the limit, each once per its first words, and what is not shown yet.
    notices: Mutex<(HashSet<String>, VecDeque<String>)>,
}

impl ProviderState {
    /// The state before any question.
    pub fn new(settings: &Settings) -> Self {
        Self {
            health: Health::default(),
            spend: Spend::new(settings),
            unanswered: AtomicU32::new(0),
            servers: Mutex::default(),
            ratios: Mutex::default(),
            notices: Mutex::default(),
        }
    }

    /// The calls to the server at this address.
    pub(super) fn server(&self, url: &str) -> Arc<Server> {
        let mut servers = lock(&self.servers);
        Arc::clone(servers.entry(url.to_owned()).or_insert_with(|| Arc::new(Server::at(url))))
    }

    /// Takes over what was learned about models' tokens.
    pub(super) fn calibrate(&self, ratios: HashMap<String, f64>) {
        *lock(&self.ratios) = ratios;
    }

    /// Real tokens per estimated one, if the model's are smaller.
    pub(super) fn ratio(&self, model: &str) -> f64 {
        lock(&self.ratios).get(model).copied().unwrap_or(1.0).max(1.0)
    }

    /// Whether a call may be made; the user learns once if not.
    pub(super) fn admit(&self) -> bool {
        self.spend.admit().map_err(|notice| self.say_once(notice)).is_ok()
    }

    /// Says something to the user, once, even if its numbers differ.
    pub(super) fn say_once(&self, notice: String) {
        let kind = notice.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().to_owned();
        let mut notices = lock(&self.notices);
        if notices.0.insert(kind) {
            notices.1.push_back(notice);
        }
    }

    /// A message for the user, each once.
    pub fn take_notice(&self) -> Option<String> {
        lock(&self.notices).1.pop_front()
    }

    /// Whether the session's model may be asked within its conversation.
    pub(super) fn asks_in_session(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) < MOST_UNANSWERED
    }

    /// Records whether it answered there.
    pub(super) fn asked_in_session(&self, is_answered: bool) {
        match is_answered {
            true => self.unanswered.store(0, Ordering::Relaxed),
            false => _ = self.unanswered.fetch_add(1, Ordering::Relaxed),
        }
    }
}
