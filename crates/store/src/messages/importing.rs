//! What an import needs from the store besides storing: what it added, and whether the user was told about
//! older sessions.

use crate::columns::Queries as _;
use crate::{MessageWriter, Messages};
use lcm_model::error::Result;

/// The prefix of the key for the time an agent's logs were last read.
pub(crate) const READ: &str = "read_at:";
/// The key for the time of the import offer.
const OFFERED: &str = "import_offered_at";

impl Messages<'_> {
    /// Whether older sessions were ever searched for, to tell the user about them.
    pub fn import_was_offered(&self) -> Result<bool> {
        self.fact(OFFERED).map(|at| at.is_some())
    }

    /// When the last reading of all logs of `agent` began, ms.
    pub fn agent_read_at(&self, agent: &str) -> Result<Option<i64>> {
        Ok(self.fact(&format!("{READ}{agent}"))?.and_then(|at| at.parse().ok()))
    }
}

impl MessageWriter<'_> {
    /// Records when a completed reading of all logs of `agent` began.
    pub fn note_agent_read(&self, agent: &str, at: i64) -> Result<()> {
        self.set_fact(&format!("{READ}{agent}"), &at.to_string())
    }

    /// Records that older sessions were searched for. `false` if another process did so first.
    pub fn note_import_offered(&self, now: i64) -> Result<bool> {
        self.add_fact(OFFERED, &now.to_string())
    }
}
