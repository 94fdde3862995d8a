//! Repeats work if another process or this one purged something meanwhile.
//!
//! What was read before a purge is no longer valid: a summary of it is rejected, rows are gone, and even a
//! finished block may describe purged text. Summaries of the rest are already stored, so another round costs
//! little.

use super::job::Job;
use crate::error::{Code, Result};

/// Maximum number of rounds. If purges never stop, the last round's result stands.
const MOST: usize = 4;

/// The rounds of one piece of work.
pub(super) struct Rounds {
    begun: usize,
    /// The store's counter at the start of this round.
    rewritten: i64,
}

impl Rounds {
    /// Before the first round.
    pub(super) async fn of(job: &Job<'_>) -> Result<Self> {
        Ok(Self { begun: 1, rewritten: job.rewritten().await? })
    }

    /// Whether another round is needed after `outcome`.
    pub(super) async fn go_on<T>(&mut self, job: &Job<'_>, outcome: &Result<T>) -> bool {
        if self.begun >= MOST || matches!(outcome, Err(error) if error.code() == Code::Cancelled) {
            return false;
        }
        // If the store can't be read, the outcome already says so.
        let now = job.rewritten().await.unwrap_or(self.rewritten);
        self.begun += 1;
        std::mem::replace(&mut self.rewritten, now) != now
    }
}
