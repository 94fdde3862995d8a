//! Summaries that the user wants written again. Until they are, they count as extracts do: valid, but superseded by
//! any other summary of the same sources.

use std::collections::{BTreeMap, HashMap};

use crate::columns::Queries as _;
use crate::{Summaries, SummaryWriter};
use lcm_model::error::Result;
use lcm_model::ids::SummaryId;

/// The key in `_metadata`; its value is JSON, `{"hash in hexadecimal": "provider/model" or null}`.
const KEY: &str = "redo";

/// Whether a row of `summaries` counts as degraded.
pub(super) const IS_DEGRADED: &str = "state = 'degraded' OR lower(hex(hash)) IN (SELECT key FROM json_each(
         coalesce((SELECT value FROM _metadata WHERE key = 'redo'), '{}')))";

type Redone = BTreeMap<String, Option<String>>;

impl Summaries<'_> {
    /// The models that the user named for summaries to be written again, `provider/model`.
    pub fn writers(&self) -> Result<HashMap<SummaryId, String>> {
        let mut writers = HashMap::new();
        for (hash, model) in self.redone()? {
            let Some(model) = model else { continue };
            let id = self.first("SELECT id FROM summaries WHERE hash = unhex(?1)", [hash])?;
            writers.extend(id.map(|id: SummaryId| (id, model)));
        }
        Ok(writers)
    }

    fn redone(&self) -> Result<Redone> {
        Ok(self.fact(KEY)?.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }
}

impl SummaryWriter<'_> {
    /// Lets compactions write these summaries again, by `model` if there is one. Every open session reads its branch
    /// again.
    pub fn redo(&self, summaries: &[SummaryId], model: Option<&str>) -> Result<()> {
        let mut redone = self.redone()?;
        for id in summaries {
            redone.insert(self.hash_in_words(*id)?, model.map(ToOwned::to_owned));
        }
        self.set_redone(&redone)
    }

    /// Records that one was written again, word for word.
    pub(super) fn is_redone(&self, id: SummaryId) -> Result<()> {
        let mut redone = self.redone()?;
        let is_there = !redone.is_empty() && redone.remove(&self.hash_in_words(id)?).is_some();
        if is_there { self.set_redone(&redone) } else { Ok(()) }
    }

    fn hash_in_words(&self, id: SummaryId) -> Result<String> {
        self.one("SELECT lower(hex(hash)) FROM summaries WHERE id = ?1", [id])
    }

    fn set_redone(&self, redone: &Redone) -> Result<()> {
        self.set_fact(KEY, &serde_json::json!(redone).to_string())?;
        self.change(
            "INSERT INTO _metadata (key, value) VALUES ('rewritten', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1",
            [],
        )
    }
}
