//! Going round once more where something was purged while it was being told of, in whichever process.
//!
//! What was read before a purge no longer holds: a summary of it is refused, rows are gone, and a block that was finished all the
//! same may tell of it. What was made of the rest is stored by then, so another round costs little.

use super::job::Job;
use crate::error::{Code, Result};

/// Rounds at most. Whoever purges all the time gets what the last one comes to.
const MOST: usize = 4;

/// The rounds of one piece of work.
pub(super) struct Rounds {
    begun: usize,
    /// What the store had counted when this one began.
    rewritten: i64,
}

impl Rounds {
    /// Before the first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(super) async fn of(job: &Job<'_>) -> Result<Self> {
        Ok(Self { begun: 1, rewritten: job.rewritten().await? })
    }

    /// Is there to be another, after one that came to `outcome`?
    pub(super) async fn go_on<T>(&mut self, job: &Job<'_>, outcome: &Result<T>) -> bool {
        if self.begun >= MOST || matches!(outcome, Err(error) if error.code() == Code::Cancelled) {
            return false;
        }
        // A store that can't be read is what the outcome tells of.
        let now = job.rewritten().await.unwrap_or(self.rewritten);
        self.begun += 1;
        std::mem::replace(&mut self.rewritten, now) != now
    }
}
