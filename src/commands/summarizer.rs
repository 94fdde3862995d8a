//! The models that write summaries, and what they cost.

use serde::{Deserialize, Serialize};

use lcm_model::text::dollars;

/// A model that writes summaries.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Summarizer {
    /// `provider/id`.
    model: String,
    /// `None` if Pi's catalog has no price.
    price: Option<Price>,
}

/// Prices per million tokens, in dollars.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Price {
    input: f64,
    output: f64,
}

impl Summarizer {
    /// `provider/id ($0.100 in, $0.500 out per million tokens)`
    pub(super) fn in_words(&self) -> String {
        let Self { model, price } = self;
        match price {
            Some(Price { input, output }) => {
                format!("{model} ({} in, {} out per million tokens)", dollars(*input), dollars(*output))
            }
            None => format!("{model} (no price known)"),
        }
    }
}
