//! The whole tree of a session at once, for walks along all its branches: read from the database branch by branch, the trunk
//! would be read as often as there are branches.

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
    /// Each with the one above.
    entries: HashMap<EntryId, (Option<EntryId>, BranchEntry)>,
    /// Those below which there is nothing, in order.
    ends: Vec<EntryId>,
}

impl Messages<'_> {
    /// The entries of a session up to one.
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
    /// The entries below which there is nothing.
    #[must_use]
    pub fn ends(&self) -> &[EntryId] {
        &self.ends
    }

    /// The entries from the root to `end`. In a tree that goes in circles there is no end of it.
    #[must_use]
    pub fn branch(&self, end: EntryId) -> Vec<BranchEntry> {
        // Parents have lower rows than their children, but for a damaged file's.
        let above = |entry: &&(Option<EntryId>, BranchEntry)| {
            entry.0.filter(|id| *id < entry.1.row).and_then(|id| self.entries.get(&id))
        };
        let upwards = std::iter::successors(self.entries.get(&end), above);
        let mut branch: Vec<BranchEntry> = upwards.map(|(_, entry)| entry.clone()).collect();
        branch.reverse();
        branch
    }
}
