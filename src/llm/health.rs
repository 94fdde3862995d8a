//! Decides which models are worth asking, and when again: a circuit breaker per model, for the lifetime of a
//! session.
//!
//! No later question or compaction should wait for a dead model. After several consecutive questions that did
//! not reach it, it is skipped for a while; then one question retries it, and others wait for that outcome.
//! If a provider says when to retry, it is skipped until then.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

/// After this many failed questions in a row, each with its retries, a model is skipped.
const GIVE_UP: u32 = 3;
/// For this long at first; doubled each time it is found dead again …
const COOL_DOWN: Duration = Duration::from_secs(60);
/// … but no longer than this.
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(15 * 60);
/// No provider can ask for a longer pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest wait before the second attempt; doubled before each later one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait between attempts, unless the provider asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// If a provider asks for more, the next model is asked instead.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What is known about the models, by name.
#[derive(Default)]
pub(super) struct Health {
    models: Mutex<HashMap<String, State>>,
    /// Signals that a trial has ended.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Consecutive questions that did not reach it.
    failures: u32,
    /// How often it was found dead since its last answer.
    deaths: u32,
    /// It was found dead, and is skipped until then.
    dead_until: Option<Instant>,
    /// It fails slowly, so a trial would mean waiting.
    slow: bool,
    /// A question is currently retrying it.
    on_trial: bool,
    /// The provider asked to be skipped until then.
    not_before: Option<Instant>,
}

/// A permit to ask a model one question and to report the outcome. If dropped without a report, it records
/// the failures it saw.
pub(super) struct Pass<'a> {
    health: &'a Health,
    name: String,
    /// This question retries a dead model, which is asked once.
    pub trial: bool,
    /// A call failed …
    failed: bool,
    /// … and the last one was slow.
    slow: bool,
}

impl Health {
    /// Gets a permit to ask the model. Waits while another question is retrying it. `is_new` marks new work
    /// that has not tried the model yet: then it is retried early, if it failed fast.
    ///
    /// # Errors
    /// How much longer it is skipped.
    pub(super) async fn enter(&self, name: &str, is_new: bool) -> Result<Pass<'_>, Duration> {
        loop {
            // Register before checking, or a change right after the check would be missed.
            let changed = self.changed.notified();
            {
                let mut models = lock(&self.models);
                let state = models.entry(name.to_owned()).or_default();
                let trial = state.dead_until.is_some();
                if !state.on_trial {
                    let rest = state.dead_until.map(|until| until.saturating_duration_since(Instant::now()));
                    if let Some(rest) = rest.filter(|rest| !rest.is_zero() && (state.slow || !is_new)) {
                        return Err(rest);
                    }
                    state.on_trial = trial;
                    let name = name.to_owned();
                    return Ok(Pass { health: self, name, trial, failed: false, slow: false });
                }
            }
            changed.await;
        }
    }
}

impl Pass<'_> {
    /// How long the provider asks for a pause.
    pub(super) fn pause(&self) -> Option<Duration> {
        let until = self.state(|state| state.not_before)?;
        Some(until.saturating_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Whether another question found it dead meanwhile.
    pub(super) fn is_over(&self) -> bool {
        !self.trial && self.state(|state| state.dead_until.is_some())
    }

    /// Records a failed call, whether it was `slow`, and the provider's `pause`, if any.
    pub(super) fn failed(&mut self, slow: bool, pause: Option<Duration>) {
        (self.failed, self.slow) = (true, slow);
        if let Some(until) = pause.and_then(|pause| Instant::now().checked_add(pause.min(LONGEST_PAUSE))) {
            self.state(|state| state.not_before = state.not_before.max(Some(until)));
        }
    }

    /// Records that the model is reachable, whatever it answered.
    pub(super) fn alive(mut self) {
        (self.failed, self.trial) = (false, false);
        self.state(|state| *state = State { not_before: state.not_before, ..State::default() });
        self.health.changed.notify_waiters();
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(lock(&self.health.models).entry(self.name.clone()).or_default())
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let (trial, failed, slow) = (self.trial, self.failed, self.slow);
        self.state(|state| {
            state.on_trial &= !trial;
            state.failures += u32::from(failed);
            if failed && (trial || (state.failures >= GIVE_UP && state.dead_until.is_none())) {
                let rest = COOL_DOWN.saturating_mul(1 << state.deaths.min(8)).min(LONGEST_COOL_DOWN);
                state.deaths += 1;
                state.slow = slow;
                state.dead_until = Some(Instant::now() + rest);
            }
        });
        self.health.changed.notify_waiters();
    }
}

/// The wait before attempt `next`, 1 being the first retry: doubled each time, minus a random part of up to
/// half, so that those that failed together do not retry together.
pub(super) fn back_off(next: u32) -> Duration {
    let whole = FIRST_WAIT.saturating_mul(1 << (next - 1).min(10)).min(LONGEST_WAIT);
    let [random, ..] = Uuid::new_v4().into_bytes();
    whole.mul_f64(0.5 + f64::from(random) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fail(health: &Health) {
        let pass = health.enter("m", false).await;
        pass.unwrap_or_else(|rest| panic!("dead for {rest:?}")).failed(true, None);
    }

    fn left(health: &Health) -> Option<Duration> {
        lock(&health.models)["m"].dead_until.map(|until| until - Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_is_skipped_after_several_failures_and_retried_once() {
        let health = Health::default();
        fail(&health).await;
        fail(&health).await;
        health.enter("m", false).await.ok().unwrap().alive();
        for _ in 0..GIVE_UP {
            assert_eq!(left(&health), None);
            fail(&health).await;
        }
        assert_eq!(health.enter("m", false).await.err(), Some(COOL_DOWN));
        assert!(health.enter("another", false).await.is_ok());
        for cool_down in [2, 4, 8, 15, 15] {
            tokio::time::advance(left(&health).unwrap()).await;
            fail(&health).await;
            assert_eq!(health.enter("m", false).await.err(), Some(COOL_DOWN * cool_down));
        }
        tokio::time::advance(LONGEST_COOL_DOWN).await;
        health.enter("m", false).await.ok().unwrap().alive();
        assert!(health.enter("m", false).await.ok().is_some_and(|pass| !pass.trial));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_during_a_trial_wait_for_its_outcome() {
        let health = Health::default();
        for _ in 0..GIVE_UP {
            fail(&health).await;
        }
        tokio::time::advance(COOL_DOWN).await;
        let trial = health.enter("m", false).await.ok().unwrap();
        assert!(trial.trial);
        let (second, ()) = tokio::join!(health.enter("m", false), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            trial.alive();
        });
        assert!(second.is_ok_and(|pass| !pass.trial));
    }

    #[tokio::test(start_paused = true)]
    async fn new_work_retries_only_models_that_fail_fast() {
        for (slow, tried) in [(false, true), (true, false)] {
            let health = Health::default();
            for _ in 0..GIVE_UP {
                health.enter("m", false).await.ok().unwrap().failed(slow, None);
            }
            assert!(health.enter("m", false).await.is_err());
            assert_eq!(health.enter("m", true).await.is_ok_and(|pass| pass.trial), tried);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_aborted_trial_allows_another() {
        let health = Health::default();
        for _ in 0..GIVE_UP {
            fail(&health).await;
        }
        tokio::time::advance(COOL_DOWN).await;
        drop(health.enter("m", false).await);
        assert!(health.enter("m", false).await.is_ok_and(|pass| pass.trial));
    }

    #[tokio::test(start_paused = true)]
    async fn a_providers_pause_applies_to_all_questions() {
        let health = Health::default();
        let mut one = health.enter("m", false).await.ok().unwrap();
        let other = health.enter("m", false).await.ok().unwrap();
        one.failed(false, Some(Duration::from_secs(7)));
        assert_eq!(other.pause(), Some(Duration::from_secs(7)));
        one.failed(false, Some(Duration::MAX));
        assert_eq!(other.pause(), Some(LONGEST_PAUSE));
        tokio::time::advance(LONGEST_PAUSE).await;
        assert_eq!(other.pause(), None);
    }

    #[test]
    fn the_wait_doubles_up_to_a_bound_with_random_variation() {
        for (next, whole) in [(1, 1), (2, 2), (3, 4), (5, 16), (6, 16), (40, 16)] {
            let whole = Duration::from_secs(whole);
            let waits: Vec<Duration> = (0..50).map(|_| back_off(next)).collect();
            assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)), "{next}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{next}: {waits:?}");
        }
    }
}
