//! Reads the two full-text indexes for a check: their rows and their own counts.

use rusqlite::params;

use crate::error::Result;
use crate::ids::MessageId;
use crate::store::Upkeep;
use crate::store::columns::Queries as _;

/// Columns of each index.
const INDEXED: usize = 2;

/// One of the two indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The passages of messages.
    Messages,
    /// The summaries.
    Summaries,
}

impl Index {
    /// What its rows are of.
    pub fn of(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Summaries => "summaries",
        }
    }
}

/// SQLite's variable-length integers: seven bits per byte, highest first, with all of the ninth byte. `None`
/// if the last one is truncated.
fn varints(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().take(8).position(|byte| *byte < 0x80).unwrap_or(8);
        let (number, rest) = bytes.split_at_checked(end + 1)?;
        numbers.push(number.iter().enumerate().fold(0, |sum, (at, byte)| match at {
            8 => sum << 8 | u64::from(*byte),
            _ => sum << 7 | u64::from(*byte & 0x7f),
        }));
        bytes = rest;
    }
    Some(numbers)
}

impl Upkeep<'_> {
    /// Each searchable message with the rows of its passages in the index: the first, and how many.
    pub fn passage_ranges(&self) -> Result<Vec<(MessageId, i64, i64)>> {
        self.connection.all(
            "SELECT id, first_passage, passages FROM messages
              WHERE first_passage IS NOT NULL ORDER BY first_passage, id",
            [],
        )
    }

    /// The row ids of the summaries.
    pub fn summary_rows(&self) -> Result<Vec<i64>> {
        self.connection.all("SELECT id FROM summaries ORDER BY id", [])
    }

    /// An index's row ids, in order. It stores no text, but the length of each row.
    pub fn indexed_rows(&self, index: Index) -> Result<Vec<i64>> {
        self.connection.all(&format!("SELECT id FROM {}_fts_docsize ORDER BY id", index.of()), [])
    }

    /// The rows whose length, which ranking needs, an index can't read.
    pub fn rows_of_no_length(&self, index: Index) -> Result<Vec<i64>> {
        let sql = format!("SELECT id, sz FROM {}_fts_docsize ORDER BY id", index.of());
        let mut without = Vec::new();
        self.connection.each(&sql, [], |row| {
            let lengths: Option<Vec<u8>> = row.get(1)?;
            if varints(&lengths.unwrap_or_default()).is_none_or(|lengths| lengths.len() != INDEXED) {
                without.push(row.get(0)?);
            }
            Ok(())
        })?;
        Ok(without)
    }

    /// The row count in the record that an index ranks by; `None` if it can't be read.
    pub fn counted_rows(&self, index: Index) -> Result<Option<u64>> {
        let sql = format!("SELECT block FROM {}_fts_data WHERE id = 1", index.of());
        // Nothing was indexed yet.
        let record = self.connection.first::<Option<Vec<u8>>>(&sql, [])?.flatten().unwrap_or_default();
        Ok(varints(&record).and_then(|numbers| match *numbers {
            [] => Some(0),
            [rows, ..] if numbers.len() == 1 + INDEXED => Some(rows),
            _ => None,
        }))
    }

    /// Whether the index has the row `row`.
    pub fn has_row(&self, index: Index, row: i64) -> Result<bool> {
        let sql = format!("SELECT 1 FROM {}_fts_docsize WHERE id = ?1", index.of());
        Ok(self.connection.first::<()>(&sql, [row])?.is_some())
    }

    /// Whether the index finds the row `row` for an FTS5 `expression`.
    pub fn finds(&self, index: Index, expression: &str, row: i64) -> Result<bool> {
        let sql = format!("SELECT 1 FROM {0}_fts WHERE {0}_fts MATCH ?1 AND rowid = ?2", index.of());
        Ok(self.connection.first::<()>(&sql, params![expression, row])?.is_some())
    }
}
