//! How long to wait before a question is retried.

use std::time::Duration;

use uuid::Uuid;

/// The longest wait before the second attempt; doubled before each later one.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait between attempts, unless the provider asks for more.
const LONGEST: Duration = Duration::from_secs(16);
/// If a provider asks for more, the next model is asked instead.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The wait before attempt `next`, 1 being the first retry: doubled each time, minus a random part of up to
/// half, so that those that failed together do not retry together.
pub(super) fn back_off(next: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << (next - 1).min(10)).min(LONGEST);
    let [random, ..] = Uuid::new_v4().into_bytes();
    whole.mul_f64(0.5 + f64::from(random) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
