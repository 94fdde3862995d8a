//! What stands beside a summary's text and beside an entry: quotes, and lists of files. Lists are small, and never asked by
//! their parts, so they lie in their rows as JSON.

use std::collections::HashMap;

use rusqlite::params;

use super::view::reading;
use super::{Batch, View};
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, SummaryId};
use crate::model::{Files, Quote};

pub(super) fn quotes_to_sql(quotes: &[Quote]) -> Option<String> {
    (!quotes.is_empty()).then(|| serde_json::json!(quotes).to_string())
}

/// A column that can't be read counts as empty; the hash of its summary tells the doctor.
pub(super) fn quotes_from_sql(column: Option<String>) -> Vec<Quote> {
    column.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default()
}

pub(super) fn from_sql(column: Option<String>) -> Option<Files> {
    column.and_then(|json| serde_json::from_str(&json).ok())
}

fn to_sql(files: &Files) -> String {
    serde_json::json!(files).to_string()
}

fn writing(error: rusqlite::Error) -> Error {
    Error::storing("failed to note files in the history store", error)
}

impl View<'_> {
    /// The files that compactions which are not of ours list, by their entry: all of a session, on whatever branch.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn files_listed(&self, conversation: ConversationId) -> Result<HashMap<EntryId, Files>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT f.entry_id, f.files FROM entry_files f JOIN entries e ON e.id = f.entry_id
                  WHERE e.conversation_id = ?1",
            )
            .map_err(reading)?;
        let listed = query
            .query_map([conversation.0], |row| {
                Ok((EntryId(row.get(0)?), from_sql(row.get(1)?).unwrap_or_default()))
            })
            .map_err(reading)?;
        listed.collect::<rusqlite::Result<_>>().map_err(reading)
    }
}

impl Batch<'_> {
    /// Notes the files that the messages of leaf summaries name.
    ///
    /// # Errors
    /// When the database can't be written; so for all methods here.
    pub fn note_files(&self, found: &[(SummaryId, Files)]) -> Result<()> {
        let mut update = (self.connection)
            .prepare_cached("UPDATE summaries SET files = ?2 WHERE id = ?1")
            .map_err(writing)?;
        for (summary, files) in found {
            update.execute(params![summary.0, to_sql(files)]).map_err(writing)?;
        }
        Ok(())
    }

    /// Notes the files that an entry lists.
    pub fn note_entry_files(&self, entry: EntryId, files: &Files) -> Result<()> {
        (self.connection)
            .prepare_cached("INSERT OR REPLACE INTO entry_files (entry_id, files) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![entry.0, to_sql(files)]))
            .map(drop)
            .map_err(writing)
    }
}
