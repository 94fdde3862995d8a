//! Which compaction entries carry which summaries.

use rusqlite::params;

use crate::error::Result;
use crate::ids::{ConversationId, EntryId, SummaryId};
use crate::store::columns::{reading, writing};
use crate::store::{Summaries, SummaryWriter};

impl Summaries<'_> {
    /// The summaries that a compaction entry carries, oldest first.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn carried_by(&self, entry: EntryId) -> Result<Vec<SummaryId>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT summary_id FROM carried WHERE entry_id = ?1 ORDER BY summary_id")
            .map_err(reading)?;
        let ids = query.query_map([entry.0], |row| row.get(0).map(SummaryId)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Summaries that start with a message of a session and that none of its entries carries, sources before
    /// the summaries condensed from them.
    pub fn carried_nowhere(&self, conversation: ConversationId) -> Result<Vec<SummaryId>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT s.id FROM summaries s
                  WHERE EXISTS (SELECT 1 FROM entries e
                                 WHERE e.message_id = s.first_message AND e.conversation_id = ?1)
                    AND NOT EXISTS (SELECT 1 FROM carried c JOIN entries e ON e.id = c.entry_id
                                     WHERE c.summary_id = s.id AND e.conversation_id = ?1)
                  ORDER BY s.depth, s.id",
            )
            .map_err(reading)?;
        let ids = query.query_map([conversation.0], |row| row.get(0).map(SummaryId)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The number of a session's summaries that no compaction carries yet: they are ready for the next one.
    pub fn uncarried(&self, conversation: ConversationId) -> Result<usize> {
        (self.connection)
            .prepare_cached(
                "SELECT count(*) FROM summaries s
                  WHERE EXISTS (SELECT 1 FROM entries e
                                 WHERE e.message_id = s.first_message AND e.conversation_id = ?1)
                    AND NOT EXISTS (SELECT 1 FROM carried c WHERE c.summary_id = s.id)",
            )
            .and_then(|mut query| query.query_row([conversation.0], |row| row.get(0)))
            .map_err(reading)
    }
}

impl SummaryWriter<'_> {
    /// Records that a compaction entry carries a summary in its details.
    ///
    /// # Errors
    /// When the database can't be written; so for all methods here.
    pub fn add_carried(&self, entry: EntryId, summary: SummaryId) -> Result<()> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO carried (entry_id, summary_id) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![entry.0, summary.0]))
            .map(drop)
            .map_err(writing)
    }
}
