//! Adding passages and summaries to the index.

use rusqlite::params;

use crate::columns::Queries as _;
use crate::{FullTextIndex, IndexWriter};
use lcm_model::error::Result;

impl IndexWriter<'_> {
    /// The row for the next passage.
    pub(crate) fn next_passage(&self) -> Result<i64> {
        Ok(FullTextIndex::new(self.connection).last_passage()? + 1)
    }

    /// Adds a passage with its parts in row `row`.
    pub(crate) fn add_passage(&self, row: i64, body: &str, parts: &str) -> Result<()> {
        let sql = "INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)";
        self.connection.change(sql, params![row, body, parts])
    }

    /// Adds the text of the summary in row `row`.
    pub(crate) fn add_text(&self, row: i64, body: &str, parts: &str) -> Result<()> {
        let sql = "INSERT INTO summaries_fts (rowid, body, parts) VALUES (?1, ?2, ?3)";
        self.connection.change(sql, params![row, body, parts])
    }
}
