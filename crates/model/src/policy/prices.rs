//! What a model's tokens cost.

use serde::{Deserialize, Serialize};

/// For models without prices, such as local or subscription models, whose limits are used up in about the
/// same proportions.
const STAND_IN: Prices = Prices { input: 3.0, output: 15.0, read: 0.3, write: 3.75 };

/// Prices per million tokens from Pi's catalog; 0 if missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Of a prompt.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
    /// Of what is read from the provider's cache.
    pub cache_read: f64,
    /// Of what is written to it.
    pub cache_write: f64,
}

/// Prices per million tokens, all known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// Of a prompt that is not cached.
    pub input: f64,
    /// Of an answer.
    pub output: f64,
    /// Of a token that was also in the last request.
    pub read: f64,
    /// Of a new token.
    pub write: f64,
}

impl Prices {
    /// The prices of a model whose catalog prices are `cost`.
    pub fn of(cost: Cost) -> Self {
        if Self::is_stand_in(cost) {
            return STAND_IN;
        }
        let Cost { input, output, cache_read, cache_write } = cost;
        // A provider may charge nothing extra for writing. Without cache prices, there is no cache.
        let write = if cache_write > 0.0 { cache_write } else { input };
        let read = if cache_read > 0.0 { cache_read.min(write) } else { write };
        Self { input, output, read, write }
    }

    /// Whether typical prices stand in for those of a model whose catalog prices are `cost`.
    pub fn is_stand_in(cost: Cost) -> bool {
        let Cost { input, output, cache_read, cache_write } = cost;
        !(input > 0.0 && [output, cache_read, cache_write].iter().all(|price| *price >= 0.0))
    }

    /// The prices of the same model for summaries within its session: it reads the whole context from the
    /// cache, about twice what is summarized, and only the question is new.
    pub fn in_session(self) -> Self {
        Self { input: self.input.min(2.0 * self.read + self.input / 20.0), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_prices_are_replaced() {
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
    fn a_summary_within_the_session_reads_from_the_cache() {
        let input = |cache_read| {
            let cost = Cost { input: 3.0, output: 15.0, cache_read, cache_write: 0.0 };
            Prices::of(cost).in_session().input
        };
        assert!((input(0.3) - 0.75).abs() < 1e-9);
        assert!((input(0.0) - 3.0).abs() < 1e-9, "without a cache, nothing is saved");
    }
}
