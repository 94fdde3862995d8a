//! Adding passages and summaries to the index.

use rusqlite::params;

use crate::columns::{Queries as _, writing};
use crate::{FullTextIndex, IndexWriter};
use lcm_model::error::Result;

impl IndexWriter<'_> {
    /// The row for the next passage.
    pub(crate) fn next_passage(&self) -> Result<i64> {
        Ok(FullTextIndex::new(self.connection).last_passage()? + 1)
    }

    /// Adds passages, each with its parts, from row `first` on.
    pub(crate) fn add_passages<'p>(
        &self,
        first: i64,
        passages: impl IntoIterator<Item = (&'p str, impl AsRef<str>)>,
    ) -> Result<()> {
        let mut insert =
            self.connection.prepared("INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)")?;
        (first..).zip(passages).try_for_each(|(row, (body, parts))| {
            insert.execute(params![row, body, parts.as_ref()]).map(drop).map_err(writing)
        })
    }

    /// Adds the text of the summary in row `row`.
    pub(crate) fn add_text(&self, row: i64, body: &str, parts: &str) -> Result<()> {
        let sql = "INSERT INTO summaries_fts (rowid, body, parts) VALUES (?1, ?2, ?3)";
        self.connection.change(sql, params![row, body, parts])
    }
}
