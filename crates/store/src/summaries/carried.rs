//! Which compaction entries carry which summaries.

use rusqlite::{named_params, params};

use super::spans::IS_IN_SESSION;
use crate::columns::Queries as _;
use crate::{Summaries, SummaryWriter};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, SummaryId};

impl Summaries<'_> {
    /// The summaries that a compaction entry carries, oldest first.
    pub fn carried_by(&self, entry: EntryId) -> Result<Vec<SummaryId>> {
        self.all("SELECT summary_id FROM carried WHERE entry_id = ?1 ORDER BY summary_id", [entry])
    }

    /// Summaries of a session that none of its entries carries, sources before
    /// the summaries condensed from them.
    pub fn carried_nowhere(&self, conversation: ConversationId) -> Result<Vec<SummaryId>> {
        self.all(
            &format!(
                "SELECT s.id FROM summaries s
                  WHERE {IS_IN_SESSION}
                    AND NOT EXISTS (SELECT 1 FROM carried c JOIN entries e ON e.id = c.entry_id
                                     WHERE c.summary_id = s.id AND e.conversation_id = :conversation)
                  ORDER BY s.depth, s.id"
            ),
            named_params! {":conversation": conversation},
        )
    }

    /// A session's summaries that no compaction carries yet: those of a branch are ready for its next one.
    pub fn uncarried(&self, conversation: ConversationId) -> Result<Vec<SummaryId>> {
        self.all(
            &format!(
                "SELECT s.id FROM summaries s
                  WHERE {IS_IN_SESSION} AND NOT EXISTS (SELECT 1 FROM carried c WHERE c.summary_id = s.id)"
            ),
            named_params! {":conversation": conversation},
        )
    }
}

impl SummaryWriter<'_> {
    /// Records that a compaction entry carries a summary in its details.
    pub fn add_carried(&self, entry: EntryId, summary: SummaryId) -> Result<()> {
        self.change(
            "INSERT OR IGNORE INTO carried (entry_id, summary_id) VALUES (?1, ?2)",
            params![entry, summary],
        )
    }
}
