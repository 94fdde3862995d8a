//! Which models are worth asking: a circuit breaker for each, kept as long as a session is open.
//!
//! A model that was found dead must not be waited for by every question, nor by the next compaction. After a few questions in
//! a row that reached nobody it is left alone for a while, and then one question tries; those beside it wait for how that
//! comes out. A provider that says when it wants to be asked again is left alone until then.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Questions in a row, each asked as often as it may be, after which a model is left alone.
const GIVE_UP: u32 = 3;
/// For how long at first; twice that each time it is found dead again.
const COOL_DOWN: Duration = Duration::from_secs(60);
/// … but no longer than this.
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(15 * 60);
/// No provider's word counts for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// What is known of the models by their names.
#[derive(Default)]
pub(super) struct Health {
    models: Mutex<HashMap<String, State>>,
    /// A trial came out.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Questions in a row that reached nobody.
    failures: u32,
    /// How often it was found dead since it last answered.
    deaths: u32,
    /// Left alone until then: it was found dead.
    dead_until: Option<Instant>,
    /// It took its time to fail: to try it would be to wait for it.
    slow: bool,
    /// Somebody is trying whether it is back.
    on_trial: bool,
    /// Left alone until then: it said so.
    not_before: Option<Instant>,
}

/// Leave to put one question to a model; to be told how that came out. Dropped without a word, it counts what it saw.
pub(super) struct Pass<'a> {
    health: &'a Health,
    name: String,
    trial: bool,
    /// A call was in vain.
    in_vain: bool,
    /// … and the last one took its time.
    slow: bool,
}

impl Health {
    /// Leave to ask the model. Waits while another question tries whether it is back. `anew` says that work begins which has
    /// not met it yet: then it is tried before its time, if it failed fast.
    ///
    /// # Errors
    /// How long it is left alone yet.
    pub(super) async fn enter(&self, name: &str, anew: bool) -> Result<Pass<'_>, Duration> {
        loop {
            // Before the look, or a change right after it would be missed.
            let changed = self.changed.notified();
            {
                let mut models = self.lock();
                let state = models.entry(name.to_owned()).or_default();
                let trial = state.dead_until.is_some();
                if !state.on_trial {
                    let rest = state.dead_until.map(|until| until.saturating_duration_since(Instant::now()));
                    if let Some(rest) = rest.filter(|rest| !rest.is_zero() && (state.slow || !anew)) {
                        return Err(rest);
                    }
                    state.on_trial = trial;
                    let name = name.to_owned();
                    return Ok(Pass { health: self, name, trial, in_vain: false, slow: false });
                }
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// One question tries whether the model is back: it is asked once.
    pub(super) fn is_trial(&self) -> bool {
        self.trial
    }

    /// How long the provider does not want to be asked.
    pub(super) fn pause(&self) -> Option<Duration> {
        let until = self.state(|state| state.not_before)?;
        Some(until.saturating_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Has another question found it dead meanwhile?
    pub(super) fn is_over(&self) -> bool {
        !self.trial && self.state(|state| state.dead_until.is_some())
    }

    /// A call was in vain, and `slow` to be so; the provider wants to be left alone for `pause`, if it says so.
    pub(super) fn in_vain(&mut self, slow: bool, pause: Option<Duration>) {
        (self.in_vain, self.slow) = (true, slow);
        if let Some(until) = pause.and_then(|pause| Instant::now().checked_add(pause.min(LONGEST_PAUSE))) {
            self.state(|state| state.not_before = state.not_before.max(Some(until)));
        }
    }

    /// The model is there, whatever it said.
    pub(super) fn alive(mut self) {
        (self.in_vain, self.trial) = (false, false);
        self.state(|state| *state = State { not_before: state.not_before, ..State::default() });
        self.health.changed.notify_waiters();
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(self.health.lock().entry(self.name.clone()).or_default())
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let (trial, in_vain, slow) = (self.trial, self.in_vain, self.slow);
        self.state(|state| {
            state.on_trial &= !trial;
            state.failures += u32::from(in_vain);
            if in_vain && (trial || (state.failures >= GIVE_UP && state.dead_until.is_none())) {
                let rest = COOL_DOWN.saturating_mul(1 << state.deaths.min(8)).min(LONGEST_COOL_DOWN);
                state.deaths += 1;
                state.slow = slow;
                state.dead_until = Some(Instant::now() + rest);
            }
        });
        self.health.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fail(health: &Health) {
        let pass = health.enter("m", false).await;
        pass.unwrap_or_else(|rest| panic!("dead for {rest:?}")).in_vain(true, None);
    }

    fn left(health: &Health) -> Option<Duration> {
        health.lock()["m"].dead_until.map(|until| until - Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_few_failures_in_a_row_it_is_left_alone_and_tried_once() {
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
        assert!(health.enter("m", false).await.ok().is_some_and(|pass| !pass.is_trial()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_during_a_trial_waits_for_how_it_comes_out() {
        let health = Health::default();
        for _ in 0..GIVE_UP {
            fail(&health).await;
        }
        tokio::time::advance(COOL_DOWN).await;
        let trial = health.enter("m", false).await.ok().unwrap();
        assert!(trial.is_trial());
        let (second, ()) = tokio::join!(health.enter("m", false), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            trial.alive();
        });
        assert!(second.is_ok_and(|pass| !pass.is_trial()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_fast_is_tried_by_all_new_work_and_what_fails_slowly_is_not() {
        for (slow, tried) in [(false, true), (true, false)] {
            let health = Health::default();
            for _ in 0..GIVE_UP {
                health.enter("m", false).await.ok().unwrap().in_vain(slow, None);
            }
            assert!(health.enter("m", false).await.is_err());
            assert_eq!(health.enter("m", true).await.is_ok_and(|pass| pass.is_trial()), tried);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_was_broken_off_leaves_the_next_one_free() {
        let health = Health::default();
        for _ in 0..GIVE_UP {
            fail(&health).await;
        }
        tokio::time::advance(COOL_DOWN).await;
        drop(health.enter("m", false).await);
        assert!(health.enter("m", false).await.is_ok_and(|pass| pass.is_trial()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_provider_says_holds_for_all_who_ask_it() {
        let health = Health::default();
        let mut one = health.enter("m", false).await.ok().unwrap();
        let other = health.enter("m", false).await.ok().unwrap();
        one.in_vain(false, Some(Duration::from_secs(7)));
        assert_eq!(other.pause(), Some(Duration::from_secs(7)));
        one.in_vain(false, Some(Duration::MAX));
        assert_eq!(other.pause(), Some(LONGEST_PAUSE));
        tokio::time::advance(LONGEST_PAUSE).await;
        assert_eq!(other.pause(), None);
    }
}
