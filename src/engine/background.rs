//! Schedules work ahead of a compaction: one piece at a time, with pauses after failures.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use lcm_model::locks::lock;

/// The pause after the first failure; it doubles with each further one.
const FIRST_REST: Duration = Duration::from_secs(30);
/// The doublings up to the longest pause: 16 minutes.
const DOUBLINGS: u32 = 5;

/// How long a compaction waits for answers in progress: longer than most take, shorter than one that never
/// comes.
const PATIENCE: Duration = Duration::from_secs(15);

/// The background work of one session.
#[derive(Default)]
pub(super) struct Background(Mutex<BackgroundWork>);

#[derive(Default)]
struct BackgroundWork {
    running: Option<Running>,
    /// Consecutive failures.
    failures: u32,
    rest_until: Option<Instant>,
    /// Why it rests.
    failure: String,
    /// The leaf of the last finished branch, which needs no more work.
    done: Option<String>,
    closed: bool,
}

/// One running piece of work, for those who want it to end.
#[derive(Clone, Default)]
pub(super) struct Running {
    /// Start nothing more.
    pub pause: CancellationToken,
    /// Abort what is running, too.
    pub stop: CancellationToken,
    /// It has ended.
    ended: CancellationToken,
}

/// A permit to work; dropping it returns it.
pub(super) struct Permit<'a> {
    background: &'a Background,
    leaf: String,
    pub running: Running,
}

impl Background {
    /// A permit to work on the branch that ends at `leaf`, unless that is finished, other work is running, or
    /// a failure requires a pause of work that is not needed now.
    pub(super) fn begin(&self, leaf: &str, is_needed: bool) -> Option<Permit<'_>> {
        let mut state = lock(&self.0);
        let rests = !is_needed && state.rest_until.is_some_and(|until| Instant::now() < until);
        if state.closed || rests || state.running.is_some() || state.done.as_deref() == Some(leaf) {
            return None;
        }
        let running = Running::default();
        state.running = Some(running.clone());
        Some(Permit { background: self, leaf: leaf.to_owned(), running })
    }

    /// Lets running work finish, because its results are needed now; nothing more is started. If `cancel` is
    /// raised, or it takes too long, it is aborted.
    pub(super) async fn give_way(&self, cancel: &CancellationToken) {
        let Some(running) = lock(&self.0).running.clone() else { return };
        running.pause.cancel();
        tokio::select! {
            () = running.ended.cancelled() => return,
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(PATIENCE) => {}
        }
        running.stop.cancel();
        running.ended.cancelled().await;
    }

    /// Aborts running work and starts no more.
    pub(super) async fn close(&self) {
        lock(&self.0).closed = true;
        let stop = CancellationToken::new();
        stop.cancel();
        self.give_way(&stop).await;
    }

    /// The current state in a word: `idle`, `working`, or `resting` after a failure.
    pub(super) fn state(&self) -> &'static str {
        let state = lock(&self.0);
        match (&state.running, state.rest_until) {
            (Some(_), _) => "working",
            (None, Some(until)) if Instant::now() < until => "resting",
            _ => "idle",
        }
    }

    /// How long a pause after a failure lasts yet, and what failed.
    pub(super) fn pause(&self) -> Option<(Duration, String)> {
        let state = lock(&self.0);
        let left = state.rest_until?.checked_duration_since(Instant::now())?;
        Some((left, state.failure.clone()))
    }
}

impl Permit<'_> {
    /// Records the work, and why it failed if it did.
    pub(super) fn end(self, failure: Option<String>) {
        let mut state = lock(&self.background.0);
        if self.running.pause.is_cancelled() {
            return;
        }
        if let Some(failure) = failure {
            state.failure = failure;
            state.rest_until = Some(Instant::now() + FIRST_REST * 2_u32.pow(state.failures.min(DOUBLINGS)));
            state.failures += 1;
        } else {
            state.failures = 0;
            state.done = Some(self.leaf.clone());
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        lock(&self.background.0).running = None;
        self.running.ended.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_piece_of_work_runs_at_a_time_and_failures_cause_a_pause() {
        let background = Background::default();
        assert_eq!(background.state(), "idle");
        let permit = background.begin("e1", false).unwrap();
        assert!(background.begin("e2", false).is_none() && background.state() == "working");
        permit.end(None);
        assert!(background.begin("e1", false).is_none());
        background.begin("e2", false).unwrap().end(Some("no key".into()));
        assert!(background.begin("e3", false).is_none() && background.state() == "resting");
        assert!(background.pause().is_some_and(|(left, why)| left <= FIRST_REST && why == "no key"));
        lock(&background.0).rest_until = None;

        let permit = background.begin("e4", false).unwrap();
        let running = permit.running.clone();
        let (ended, ()) = tokio::join!(
            async {
                background.give_way(&CancellationToken::new()).await;
                running.ended.is_cancelled()
            },
            async {
                running.pause.cancelled().await;
                drop(permit);
            }
        );
        assert!(ended && !running.stop.is_cancelled());

        let permit = background.begin("e4", false).unwrap();
        let running = permit.running.clone();
        tokio::join!(background.close(), async {
            running.stop.cancelled().await;
            drop(permit);
        });
        assert!(background.begin("e5", false).is_none());
    }
}
