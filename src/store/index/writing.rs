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

    /// Adds a passage in row `row`; `parts` are those of `body`.
    pub(in crate::store) fn add_passage(&self, row: i64, body: &str, parts: &str) -> Result<()> {
        self.add("INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)", row, body, parts)
    }

    /// Adds the text of the summary in row `row`.
    pub(in crate::store) fn add_text(&self, row: i64, body: &str, parts: &str) -> Result<()> {
        self.add("INSERT INTO summaries_fts (rowid, body, parts) VALUES (?1, ?2, ?3)", row, body, parts)
    }

    fn add(&self, sql: &str, row: i64, body: &str, parts: &str) -> Result<()> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut insert| insert.execute(params![row, body, parts]))
            .map(drop)
            .map_err(writing)
    }
}
