//! What a model's tokens cost.

use serde::{Deserialize, Serialize};

/// Stands in for models that cost nothing by the token, such as local ones and those of a subscription: their limits are
/// used up in about the same proportions.
const STAND_IN: Prices = Prices { input: 3.0, output: 15.0, read: 0.3, write: 3.75 };

/// Prices as Pi's catalog tells them, for a million tokens; what it does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Of a prompt.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
    /// Of what comes out of the provider's cache.
    pub cache_read: f64,
    /// Of what is written to it.
    pub cache_write: f64,
}

/// Prices of a million tokens, all of them known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// Of a prompt that is not cached.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
    /// Of a token that was in the last request too.
    pub read: f64,
    /// Of one that is new.
    pub write: f64,
}

impl Prices {
    /// Of a model whose prices are `cost`.
    #[must_use]
    pub fn of(cost: Cost) -> Self {
        let Cost { input, output, cache_read, cache_write } = cost;
        if !(input > 0.0 && [output, cache_read, cache_write].iter().all(|price| *price >= 0.0)) {
            return STAND_IN;
        }
        // A provider may charge nothing extra for writing; one without any price of its own for the cache has none.
        let write = if cache_write > 0.0 { cache_write } else { input };
        let read = if cache_read > 0.0 { cache_read.min(write) } else { write };
        Self { input, output, read, write }
    }

    /// Of the same model, asked for summaries within its session: what is summarized is read from the cache with the rest of the
    /// context, which is about twice as much, and the question is new.
    #[must_use]
    pub fn in_session(self) -> Self {
        Self { input: self.input.min(2.0 * self.read + self.input / 20.0), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_catalog_does_not_tell_is_stood_in_for() {
        let of = |input, output, cache_read, cache_write| {
            let Prices { read, write, .. } = Prices::of(Cost { input, output, cache_read, cache_write });
            (read, write)
        };
        assert_eq!(of(3.0, 15.0, 0.3, 3.75), (0.3, 3.75));
        assert_eq!(of(2.0, 8.0, 0.5, 0.0), (0.5, 2.0));
        assert_eq!(of(1.0, 2.0, 0.0, 0.0), (1.0, 1.0));
        assert_eq!(of(1.0, 2.0, 9.0, 0.0), (1.0, 1.0));
        for nothing in [of(0.0, 0.0, 0.0, 0.0), of(-1.0, 0.0, 0.0, 0.0), of(f64::NAN, 1.0, 1.0, 1.0)] {
            assert_eq!(nothing, (STAND_IN.read, STAND_IN.write));
        }
    }

    #[test]
    fn within_the_session_a_summary_reads_what_is_cached() {
        let input = |cache_read| {
            let cost = Cost { input: 3.0, output: 15.0, cache_read, cache_write: 0.0 };
            Prices::of(cost).in_session().input
        };
        assert!((input(0.3) - 0.75).abs() < 1e-9);
        assert!((input(0.0) - 3.0).abs() < 1e-9, "without a cache nothing is won");
    }
}
