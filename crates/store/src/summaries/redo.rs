//! Summaries that the user wants written again. Until they are, they count as extracts do: valid, but superseded by
//! any other summary of the same sources.

use crate::columns::Queries as _;
use crate::{Summaries, SummaryWriter};
use lcm_model::error::Result;
use lcm_model::ids::SummaryId;

/// The key in `_metadata`; its value is JSON, the hashes in hexadecimal.
const KEY: &str = "redo";

/// Whether a row of `summaries` counts as degraded.
pub(super) const IS_DEGRADED: &str = "state = 'degraded' OR lower(hex(hash)) IN (SELECT value FROM json_each(
         coalesce((SELECT value FROM _metadata WHERE key = 'redo'), '[]')))";

impl Summaries<'_> {
    fn redone(&self) -> Result<Vec<String>> {
        Ok(self.connection.fact(KEY)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }
}

impl SummaryWriter<'_> {
    /// Lets compactions write these summaries again. Every open session reads its branch again.
    pub fn redo(&self, summaries: &[SummaryId]) -> Result<()> {
        let mut redone = self.redone()?;
        for id in summaries {
            redone.push(self.hash_in_words(*id)?);
        }
        redone.sort_unstable();
        redone.dedup();
        self.set_redone(&redone)
    }

    /// Records that one was written again, word for word.
    pub(super) fn is_redone(&self, id: SummaryId) -> Result<()> {
        let mut redone = self.redone()?;
        if redone.is_empty() {
            return Ok(());
        }
        let hash = self.hash_in_words(id)?;
        let before = redone.len();
        redone.retain(|one| *one != hash);
        if redone.len() < before { self.set_redone(&redone) } else { Ok(()) }
    }

    fn hash_in_words(&self, id: SummaryId) -> Result<String> {
        self.connection.one("SELECT lower(hex(hash)) FROM summaries WHERE id = ?1", [id])
    }

    fn set_redone(&self, redone: &[String]) -> Result<()> {
        self.connection.set_fact(KEY, &serde_json::json!(redone).to_string())?;
        self.connection.change(
            "INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1",
            [],
        )
    }
}
