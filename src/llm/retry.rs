//! How long to wait before the same question is put once more.

use std::time::Duration;

use uuid::Uuid;

/// Before the second attempt, at most; twice that before each later one.
const FIRST: Duration = Duration::from_secs(1);
/// Never longer than this between two attempts, unless the provider says so.
const LONGEST: Duration = Duration::from_secs(16);
/// A provider that wants more is not waited for: the next model is asked.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Before attempt `next`, counted from 1 for the first repetition: twice as long each time, and at random down to half of
/// that, so that those who failed together do not come back together.
pub(super) fn back_off(next: u32) -> Duration {
    let whole = FIRST.saturating_mul(1 << (next - 1).min(10)).min(LONGEST);
    let [random, ..] = Uuid::new_v4().into_bytes();
    whole.mul_f64(0.5 + f64::from(random) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_a_bound_and_is_never_the_same_twice() {
        for (next, whole) in [(1, 1), (2, 2), (3, 4), (5, 16), (6, 16), (40, 16)] {
            let whole = Duration::from_secs(whole);
            let waits: Vec<Duration> = (0..50).map(|_| back_off(next)).collect();
            assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)), "{next}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{next}: {waits:?}");
        }
    }
}
