//! The whole tree of a session in memory, for walks along all its branches. Reading branch by branch would
//! read the trunk once per branch.

use std::collections::{HashMap, HashSet};

use rusqlite::named_params;

use super::branch::{BRANCH_ENTRY, branch_entry};
use crate::dag::BranchEntry;
use crate::error::Result;
use crate::ids::{ConversationId, EntryId};
use crate::store::Messages;
use crate::store::columns::reading;

/// The entries of a session.
#[derive(Debug)]
pub struct Tree {
    /// Each with its parent.
    entries: HashMap<EntryId, (Option<EntryId>, BranchEntry)>,
    /// The leaves, in order.
    ends: Vec<EntryId>,
}

impl Messages<'_> {
    /// The entries of a session up to `last`.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn tree(&self, conversation: ConversationId, last: EntryId) -> Result<Tree> {
        let sql = format!(
            "SELECT {BRANCH_ENTRY} FROM entries e LEFT JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = :conversation AND e.id <= :last"
        );
        let mut query = self.connection.prepare_cached(&sql).map_err(reading)?;
        let rows = query
            .query_map(named_params! {":conversation": conversation.0, ":last": last.0}, |row| {
                let parent = row.get::<_, Option<i64>>(10)?.map(EntryId);
                Ok((parent, branch_entry(row)?))
            })
            .map_err(reading)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(reading)?;
        let inner: HashSet<EntryId> = rows.iter().filter_map(|(parent, _)| *parent).collect();
        let ids = rows.iter().map(|(_, entry)| entry.row);
        let mut ends: Vec<EntryId> = ids.filter(|id| !inner.contains(id)).collect();
        ends.sort_unstable();
        Ok(Tree { entries: rows.into_iter().map(|row| (row.1.row, row)).collect(), ends })
    }
}

impl Tree {
    /// The leaves.
    #[must_use]
    pub fn ends(&self) -> &[EntryId] {
        &self.ends
    }

    /// The entries from the root to `end`.
    #[must_use]
    pub fn branch(&self, end: EntryId) -> Vec<BranchEntry> {
        // Parents have lower rows than their children, except in a damaged file. The check ends walks in a
        // cycle.
        let above = |entry: &&(Option<EntryId>, BranchEntry)| {
            entry.0.filter(|id| *id < entry.1.row).and_then(|id| self.entries.get(&id))
        };
        let upwards = std::iter::successors(self.entries.get(&end), above);
        let mut branch: Vec<BranchEntry> = upwards.map(|(_, entry)| entry.clone()).collect();
        branch.reverse();
        branch
    }
}
