//! Extra data of summaries and entries: quotes, lists of files, usage. They are small and never queried by
//! field, so they are stored as JSON.

use rusqlite::params;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::columns::Queries as _;
use crate::messages::codec;
use crate::{Summaries, SummaryWriter};
use lcm_model::error::Result;
use lcm_model::facts::Facts;
use lcm_model::ids::{EntryId, Hash, SummaryId};
use lcm_model::{Files, Quote};

/// A summary's extra data, compressed in its row.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Extras {
    /// Verbatim quotes from its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotes: Option<Vec<Quote>>,
    /// Facts of its messages, once extracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The usage of its model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Whether a session file brought it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}

impl Extras {
    /// An unreadable column counts as empty; the doctor notices by the summary's hash.
    pub(crate) fn from_sql(column: Option<Vec<u8>>) -> Self {
        let json = column.and_then(|sealed| codec::unseal(&sealed).ok());
        json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
    }

    pub(crate) fn to_sql(&self) -> Option<Vec<u8>> {
        let json = serde_json::to_string(self).unwrap_or_default();
        (json.len() > "{}".len()).then(|| codec::seal(&json))
    }
}

pub(crate) fn files_from_sql(column: Option<String>) -> Option<Files> {
    column.and_then(|json| serde_json::from_str(&json).ok())
}

impl Summaries<'_> {
    /// The files that a compaction by others lists.
    pub fn listed_by(&self, entry: EntryId) -> Result<Option<Files>> {
        self.one("SELECT files FROM entries WHERE id = ?1", [entry]).map(files_from_sql)
    }

    /// The facts of a leaf summary's messages; `None` until they are extracted.
    pub fn facts_of(&self, summary: SummaryId) -> Result<Option<Facts>> {
        self.one("SELECT extras FROM summaries WHERE id = ?1", [summary])
            .map(|extras| Extras::from_sql(extras).facts)
    }
}

impl SummaryWriter<'_> {
    /// Records the facts of a leaf summary's messages. Does nothing if the row's hash differs: the summary
    /// was purged, and another one may have its row.
    pub fn note_facts(&self, summary: SummaryId, hash: Hash, facts: &Facts) -> Result<()> {
        let extras: Option<Option<Vec<u8>>> =
            self.first("SELECT extras FROM summaries WHERE id = ?1 AND hash = ?2", params![summary, hash])?;
        let Some(extras) = extras else { return Ok(()) };
        let extras = Extras { facts: Some(facts.clone()), ..Extras::from_sql(extras) };
        self.change("UPDATE summaries SET extras = ?2 WHERE id = ?1", params![summary, extras.to_sql()])
    }

    /// Records the files that an entry lists.
    pub fn note_entry_files(&self, entry: EntryId, files: &Files) -> Result<()> {
        self.change("UPDATE entries SET files = ?2 WHERE id = ?1", params![entry, json!(files).to_string()])
    }
}
