//! Lets a model rest after failures, so that no later question waits for a dead one: in memory, for the lifetime of a
//! session.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use lcm_model::sync::lock;

/// A model that did not answer a question, with all retries, is not asked for this long.
const REST: Duration = Duration::from_secs(2 * 60);
/// No provider can ask for a longer pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest wait before the second attempt; doubled before each later one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait between attempts, unless the provider asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// If a provider asks for more, the next model is asked instead.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Until when each model rests, by name, and whether new work has to wait for that.
#[derive(Default)]
pub(super) struct Health(Mutex<HashMap<String, Rest>>);

#[derive(Clone, Copy)]
struct Rest {
    until: Instant,
    is_strict: bool,
}

impl Health {
    /// How much longer the model rests, if it does. New work tries a model that failed fast.
    pub(super) fn rest(&self, name: &str, is_new: bool) -> Option<Duration> {
        let rest = *lock(&self.0).get(name)?;
        let left = rest.until.saturating_duration_since(Instant::now());
        Some(left).filter(|left| !left.is_zero() && (rest.is_strict || !is_new))
    }

    /// Records that the provider asks for a pause.
    pub(super) fn pause(&self, name: &str, pause: Duration) {
        self.until(name, pause.min(LONGEST_PAUSE), true);
    }

    /// Records that a question got no answer, and whether waiting for that took long.
    pub(super) fn failed(&self, name: &str, is_slow: bool) {
        self.until(name, REST, is_slow);
    }

    /// Records an answer.
    pub(super) fn answered(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    fn until(&self, name: &str, rest: Duration, is_strict: bool) {
        let rest = Rest { until: Instant::now() + rest, is_strict };
        let mut rests = lock(&self.0);
        let known = rests.entry(name.to_owned()).or_insert(rest);
        *known = Rest { until: rest.until.max(known.until), is_strict: rest.is_strict || known.is_strict };
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
    async fn a_model_rests_after_a_failure_and_as_long_as_its_provider_asks() {
        let health = Health::default();
        let rest = |name: &str| health.rest(name, false);
        assert_eq!(rest("m"), None);
        health.failed("m", false);
        assert_eq!((rest("m"), rest("another")), (Some(REST), None));
        assert_eq!(health.rest("m", true), None, "it failed fast");
        health.failed("m", true);
        assert_eq!(health.rest("m", true), Some(REST));
        health.pause("m", Duration::from_secs(1));
        assert_eq!(rest("m"), Some(REST), "the longer one counts");
        health.pause("m", Duration::MAX);
        assert_eq!(rest("m"), Some(LONGEST_PAUSE));
        tokio::time::advance(LONGEST_PAUSE).await;
        assert_eq!(rest("m"), None);
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
