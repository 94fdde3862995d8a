//! What is remembered of the models between compactions, as long as a session is open: which of them are worth asking, and
//! what has been spent.

use super::health::Health;
use super::spend::Spend;
use crate::config::Settings;

/// How things stand with the models; one for each open session.
pub struct Standing {
    pub(super) health: Health,
    pub(super) spend: Spend,
}

impl Standing {
    /// Nothing has been asked yet.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { health: Health::default(), spend: Spend::new(settings) }
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
