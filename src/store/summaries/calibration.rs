//! How far token estimates are off for each model, learned from the usage that providers report.

use std::collections::BTreeMap;

use rusqlite::OptionalExtension as _;

use crate::error::Result;
use crate::store::columns::{reading, writing};
use crate::store::{Summaries, SummaryWriter};

/// The key in `_metadata`; its value is JSON, `{"provider/model": ratio}`.
const KEY: &str = "token_calibration";

impl Summaries<'_> {
    /// Real tokens per estimated token, by `provider/model`; empty until something was learned.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn token_ratios(&self) -> Result<BTreeMap<String, f64>> {
        let json: Option<String> = self
            .connection
            .prepare_cached("SELECT value FROM _metadata WHERE key = ?1")
            .and_then(|mut query| query.query_row([KEY], |row| row.get(0)).optional())
            .map_err(reading)?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }
}

impl SummaryWriter<'_> {
    /// Replaces the ratios.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn set_token_ratios(&self, ratios: &BTreeMap<String, f64>) -> Result<()> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute((KEY, serde_json::json!(ratios).to_string())))
            .map(drop)
            .map_err(writing)
    }
}
