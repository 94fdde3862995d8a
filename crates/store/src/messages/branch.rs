//! Reads the entries of a branch, and those that are new since the last read.

use std::collections::HashSet;

use rusqlite::Row;

use crate::columns::{FromRow, Queries as _, tokens_at};
use crate::{Messages, Store};
use lcm_model::dag::{BranchEntry, BranchMessage, Step};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, EntryId, MessageId};

/// Rows of other branches to skip before the next entry is looked up by id.
const PASSED: usize = 16;

/// The columns of an entry, from `entries e` and its message `m`.
pub(crate) const BRANCH_ENTRY: &str = "e.id, e.parent_id, e.entry_id, e.kind, e.target, e.message_id, m.lineage, m.kind, m.role, m.tokens, m.timestamp";

/// An entry with its parent, from the columns of [`BRANCH_ENTRY`].
pub(super) struct Linked {
    pub(super) parent: Option<EntryId>,
    pub(super) entry: BranchEntry,
}

impl FromRow for Linked {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let message = row.get::<_, Option<MessageId>>(5)?.map(|id| {
            Ok::<_, rusqlite::Error>(BranchMessage {
                id,
                hash: row.get(6)?,
                kind: row.get(7)?,
                role: row.get(8)?,
                tokens: tokens_at(row, 9)?,
                timestamp: row.get(10)?,
            })
        });
        let step = match (row.get::<_, i64>(3)?, message.transpose()?) {
            (1, Some(message)) => Step::Message(message),
            (2, rendition) => Step::Edit { target: row.get(4)?, rendition },
            (3, _) => Step::Compaction,
            _ => Step::Link,
        };
        let entry = BranchEntry { row: row.get(0)?, entry_id: row.get(2)?, step };
        Ok(Self { parent: row.get(1)?, entry })
    }
}

impl Messages<'_> {
    /// The entries from the root to `leaf`; empty if the store doesn't know `leaf`.
    pub fn branch(&self, conversation: ConversationId, leaf: &str) -> Result<Vec<BranchEntry>> {
        self.branch_since(conversation, leaf, |_| false).map(|(_, entries)| entries)
    }

    /// The last entry at or above `leaf` that `is_known`, and the entries below it down to `leaf`.
    ///
    /// # Errors
    /// Also when entries form a cycle.
    pub(crate) fn branch_since(
        &self,
        conversation: ConversationId,
        leaf: &str,
        is_known: impl Fn(EntryId) -> bool,
    ) -> Result<(Option<EntryId>, Vec<BranchEntry>)> {
        let sql = format!(
            "SELECT {BRANCH_ENTRY} FROM entries e LEFT JOIN messages m ON m.id = e.message_id
              WHERE e.id <= ?1 ORDER BY e.id DESC"
        );
        let mut found = Vec::new();
        let known = self.walk(conversation, leaf, &sql, is_known, |row| {
            found.push(Linked::from_row(row)?.entry);
            Ok(())
        })?;
        found.reverse();
        Ok((known, found))
    }

    /// Calls `visit` with each entry from `leaf` up to the last one that `is_known`, and returns that one. `sql`
    /// reads the entries up to a row, the last first, each beginning with its row and its parent's.
    pub(super) fn walk(
        &self,
        conversation: ConversationId,
        leaf: &str,
        sql: &str,
        is_known: impl Fn(EntryId) -> bool,
        mut visit: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<Option<EntryId>> {
        // A session without branches is stored row after row, so rows are scanned; a gap leads to a lookup by
        // id.
        let mut query = self.prepared(sql)?;
        let mut next = self.entry_row(conversation, leaf)?;
        let mut sought = HashSet::new();
        while let Some(from) = next.filter(|entry| !is_known(*entry)) {
            if !sought.insert(from) {
                return Err(Error::store("entries of the history store form a cycle"));
            }
            let mut rows = query.query([from])?;
            let mut passed = 0;
            while let Some(row) = rows.next()? {
                let id = row.get(0)?;
                if next == Some(id) {
                    visit(row)?;
                    next = row.get(1)?;
                    passed = 0;
                    if next.is_none_or(&is_known) {
                        break;
                    }
                } else if passed == PASSED || next > Some(id) {
                    break;
                } else {
                    passed += 1;
                }
            }
            drop(rows);
            // The parent entry is missing.
            if next == Some(from) {
                next = None;
            }
        }
        Ok(next)
    }

    /// How often a row that should never change was changed or removed: see `db/schema.sql`.
    pub fn rewritten(&self) -> Result<i64> {
        Ok(self.fact("rewritten")?.and_then(|times| times.parse().ok()).unwrap_or_default())
    }
}

impl Store {
    /// The current value of [`Messages::rewritten`].
    pub async fn rewritten(&self) -> Result<i64> {
        self.read(|view| view.messages().rewritten()).await
    }
}
