//! The whole tree of a session in memory, for walks along all its branches. Reading branch by branch would
//! read the trunk once per branch.

use std::collections::{BTreeMap, HashSet};

use super::branch::{BRANCH_ENTRY, Linked};
use crate::Messages;
use crate::columns::Queries as _;
use lcm_model::dag::BranchEntry;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId};

/// The entries of a session.
pub struct Tree {
    entries: BTreeMap<EntryId, Linked>,
    /// The leaves.
    pub ends: Vec<EntryId>,
}

impl Messages<'_> {
    /// The entries of a session.
    pub fn tree(&self, conversation: ConversationId) -> Result<Tree> {
        let sql = format!(
            "SELECT {BRANCH_ENTRY} FROM entries e LEFT JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1"
        );
        let rows: Vec<Linked> = self.all(&sql, [conversation])?;
        let inner: HashSet<EntryId> = rows.iter().filter_map(|row| row.parent).collect();
        let ids = rows.iter().map(|row| row.entry.row);
        let mut ends: Vec<EntryId> = ids.filter(|id| !inner.contains(id)).collect();
        ends.sort_unstable();
        Ok(Tree { entries: rows.into_iter().map(|row| (row.entry.row, row)).collect(), ends })
    }
}

impl Tree {
    /// The entry of this row.
    pub fn entry(&self, row: EntryId) -> Option<&BranchEntry> {
        self.entries.get(&row).map(|row| &row.entry)
    }

    /// All entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = &BranchEntry> {
        self.entries.values().map(|row| &row.entry)
    }

    /// The parent of an entry. Parents have lower rows than their children, except in a damaged file. The check
    /// ends walks in a cycle.
    fn above(&self, row: &Linked) -> Option<&Linked> {
        row.parent.filter(|id| *id < row.entry.row).and_then(|id| self.entries.get(&id))
    }

    /// The entries from the root to `end`.
    pub fn branch(&self, end: EntryId) -> Vec<BranchEntry> {
        let upwards = std::iter::successors(self.entries.get(&end), |row| self.above(row));
        let mut branch: Vec<BranchEntry> = upwards.map(|row| row.entry.clone()).collect();
        branch.reverse();
        branch
    }
}
