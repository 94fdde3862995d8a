//! How far token estimates are off for each model, learned from the usage that providers report.

use std::collections::BTreeMap;

use crate::columns::Queries as _;
use crate::{Summaries, SummaryWriter};
use lcm_model::error::Result;

/// The key in `_metadata`; its value is JSON, `{"provider/model": [ratio, reports]}`.
const KEY: &str = "token_calibration";

impl Summaries<'_> {
    /// Real tokens per estimated token and how often that was observed, by `provider/model`; empty until something
    /// was learned.
    pub fn token_ratios(&self) -> Result<BTreeMap<String, (f64, u32)>> {
        Ok(self.fact(KEY)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }
}

impl SummaryWriter<'_> {
    /// Replaces the ratios.
    pub fn set_token_ratios(&self, ratios: &BTreeMap<String, (f64, u32)>) -> Result<()> {
        self.set_fact(KEY, &serde_json::json!(ratios).to_string())
    }
}
