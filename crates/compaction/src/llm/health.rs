//! Lets a model rest after failures, so that no later question waits for a dead one: in memory, for the lifetime of a
//! session.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::thinking::Thinking;
use lcm_model::locks::lock;

/// A model that did not answer a question, with all retries, is not asked for this long.
const REST: Duration = Duration::from_secs(2 * 60);
/// No provider can ask for a longer one.
const LONGEST_REST: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest wait before the second attempt; doubled before each later one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait between attempts, unless the provider asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// If a provider asks for more, the next model is asked instead.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What is known about the models, by name.
#[derive(Default)]
pub(super) struct Health(Mutex<HashMap<String, ModelHealth>>);

#[derive(Default)]
struct ModelHealth {
    /// It failed, and rests until then.
    rests_until: Option<Instant>,
    /// It failed slowly, or asked not to be asked: also new work would only wait.
    is_slow: bool,
    /// How much thinking it has shown that it needs.
    thinking: Thinking,
}

impl Health {
    /// How much longer the model rests, if it does. New work tries a model that failed fast.
    pub(super) fn rest(&self, name: &str, is_new: bool) -> Option<Duration> {
        let until = self.state(name, |state| state.rests_until.filter(|_| state.is_slow || !is_new))?;
        Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    /// Records that a question got no answer, whether waiting for that took long, and the long pause that the
    /// provider asks for.
    pub(super) fn failed(&self, name: &str, is_slow: bool, pause: Option<Duration>) {
        let until = Instant::now() + pause.map_or(REST, |pause| pause.min(LONGEST_REST));
        self.state(name, |state| (state.rests_until, state.is_slow) = (Some(until), is_slow));
    }

    pub(super) fn answered(&self, name: &str) {
        self.state(name, |state| state.rests_until = None);
    }

    /// How much thinking the model needs, as far as known.
    pub(super) fn thinking(&self, name: &str) -> Thinking {
        self.state(name, |state| state.thinking)
    }

    /// Records how much it needs.
    pub(super) fn needs_thinking(&self, name: &str, needed: Thinking) {
        self.state(name, |state| state.thinking = needed.max(state.thinking));
    }

    fn state<T>(&self, name: &str, look: impl FnOnce(&mut ModelHealth) -> T) -> T {
        look(lock(&self.0).entry(name.to_owned()).or_default())
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

    #[tokio::test(start_paused = true)]
    async fn a_model_rests_after_a_failure_until_it_answers() {
        let health = Health::default();
        let rests = |is_new| health.rest("m", is_new);
        assert_eq!(rests(false), None);
        health.failed("m", false, None);
        assert_eq!((rests(false), rests(true)), (Some(REST), None), "new work tries what failed fast");
        assert_eq!(health.rest("another", false), None);
        health.failed("m", true, None);
        assert_eq!(rests(true), Some(REST));
        health.answered("m");
        assert_eq!(rests(false), None);
        health.failed("m", true, None);
        tokio::time::advance(REST).await;
        assert_eq!(rests(false), None);
        health.failed("m", false, None);
        assert_eq!(rests(true), None, "it was slow only before");
        health.failed("m", true, Some(Duration::MAX));
        assert_eq!(rests(true), Some(LONGEST_REST));
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
