//! Repeats work if another process or this one purged something meanwhile.
//!
//! What was read before a purge is no longer valid: a summary of it is rejected, rows are gone, and even a
//! finished block may describe purged text. Summaries of the rest are already stored, so another round costs
//! little.

use super::job::Job;
use crate::error::{Code, Result};
use crate::llm::Pending;

/// Maximum number of rounds. If purges never stop, the last round's result stands.
const MOST: usize = 4;

/// The outcome of the first round of `work` during which nothing was purged.
pub(super) async fn repeated<'w, T>(job: &Job<'_>, work: impl Fn() -> Pending<'w, Result<T>>) -> Result<T> {
    let mut rewritten = job.session.store.rewritten().await?;
    for _ in 1..MOST {
        let outcome = work().await;
        if matches!(&outcome, Err(error) if error.code() == Code::Cancelled) {
            return outcome;
        }
        // If the store can't be read, the outcome already says so.
        let now = job.session.store.rewritten().await.unwrap_or(rewritten);
        if std::mem::replace(&mut rewritten, now) == now {
            return outcome;
        }
    }
    work().await
}
