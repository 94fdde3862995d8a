//! Adding passages and summaries to the index.

use rusqlite::{OptionalExtension as _, params};

use crate::error::Result;
use crate::store::IndexWriter;
use crate::store::columns::{reading, writing};

impl IndexWriter<'_> {
    /// The row for the next passage.
    pub(in crate::store) fn next_passage(&self) -> Result<i64> {
        let next = self
            .connection
            .prepare_cached(
                "SELECT first_passage + passages FROM messages
                  WHERE first_passage IS NOT NULL ORDER BY first_passage DESC LIMIT 1",
            )
            .and_then(|mut query| query.query_row([], |row| row.get(0)).optional())
            .map_err(reading)?;
        Ok(next.unwrap_or(1))
    }

    /// Adds passages, each with its parts, from row `first` on.
    pub(in crate::store) fn add_passages<'p>(
        &self,
        first: i64,
        passages: impl IntoIterator<Item = (&'p str, impl AsRef<str>)>,
    ) -> Result<()> {
        let mut insert = (self.connection)
            .prepare_cached("INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)")
            .map_err(writing)?;
        for (row, (body, parts)) in (first..).zip(passages) {
            insert.execute(params![row, body, parts.as_ref()]).map_err(writing)?;
        }
        Ok(())
    }

    /// Adds the text of the summary in row `row`.
    pub(in crate::store) fn add_text(&self, row: i64, body: &str, parts: &str) -> Result<()> {
        self.connection
            .prepare_cached("INSERT INTO summaries_fts (rowid, body, parts) VALUES (?1, ?2, ?3)")
            .and_then(|mut insert| insert.execute(params![row, body, parts]))
            .map(drop)
            .map_err(writing)
    }
}
