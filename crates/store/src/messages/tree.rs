//! The whole tree of a session in memory, for walks along all its branches. Reading branch by branch would
//! read the trunk once per branch; so would walking along each, where many have the same summaries.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::branch::{BRANCH_ENTRY, Linked};
use crate::Messages;
use crate::columns::Queries as _;
use lcm_model::dag::{BranchEntry, Step};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, MessageId};

/// The entries of a session.
#[derive(Debug)]
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
        let rows: Vec<Linked> = self.connection.all(&sql, [conversation])?;
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

    /// For each entry the last one at or above it that decides which summaries are valid up to there: branches
    /// with the same one have the same summaries, and none without one. `lasts` are the last messages of the
    /// leaf summaries.
    ///
    /// Whether a summary is valid follows from the branch up to its last message, and from edits.
    pub fn deciding(&self, lasts: &HashSet<MessageId>) -> HashMap<EntryId, EntryId> {
        let shows_last = |step: &Step| match step {
            Step::Message(message) => lasts.contains(&message.id),
            Step::Edit { rendition: Some(rendition), .. } => lasts.contains(&rendition.id),
            _ => false,
        };
        // An edit may come before its target.
        let edited: HashSet<&str> = (self.entries().filter(|entry| shows_last(&entry.step)))
            .filter_map(|entry| match &entry.step {
                Step::Edit { target, .. } => Some(target.as_str()),
                _ => None,
            })
            .collect();
        let mut deciding: HashMap<EntryId, EntryId> = HashMap::new();
        for row in self.entries.values() {
            let entry = &row.entry;
            let above = self.above(row).and_then(|above| deciding.get(&above.entry.row).copied());
            let is_edit = matches!(entry.step, Step::Edit { .. });
            let decides = shows_last(&entry.step)
                || edited.contains(entry.entry_id.as_str())
                || (is_edit && above.is_some());
            if let Some(last) = if decides { Some(entry.row) } else { above } {
                deciding.insert(entry.row, last);
            }
        }
        deciding
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lcm_model::dag::{BranchMessage, Forest, MessageKind, Node, Piece, Sources, visible};
    use lcm_model::ids::{Hash, SummaryId};

    fn message(id: i64, kind: MessageKind) -> BranchMessage {
        BranchMessage {
            id: MessageId(id),
            hash: Hash::ROOT,
            kind,
            role: "user".into(),
            tokens: 1,
            timestamp: 0,
        }
    }

    /// A tree from numbers: for each entry how far above its parent is, what it does, and to which entry.
    fn tree(choices: &[(usize, u8, usize)]) -> Tree {
        let mut entries = BTreeMap::new();
        for (row, (up, what, target)) in (1..).zip(choices) {
            let at = usize::try_from(row).unwrap();
            let target = format!("e{}", target % (choices.len() + 1));
            let step = match what {
                0 => Step::Edit { target, rendition: None },
                1 => Step::Edit { target, rendition: Some(message(1000 + row, MessageKind::Edited)) },
                2 => Step::Link,
                3 => Step::Message(message(row, MessageKind::Private)),
                // The same message again, as two branches that begin alike have it.
                4 => Step::Message(message((row - 1).max(1), MessageKind::Conversation)),
                _ => Step::Message(message(row, MessageKind::Conversation)),
            };
            let parent = at.checked_sub(1 + up).filter(|parent| *parent > 0);
            let parent = parent.map(|parent| EntryId(i64::try_from(parent).unwrap()));
            let entry = BranchEntry { row: EntryId(row), entry_id: format!("e{row}"), step };
            entries.insert(entry.row, Linked { parent, entry });
        }
        Tree { entries, ends: Vec::new() }
    }

    /// Summaries of runs of what branches show, and summaries of two that follow each other.
    fn nodes(tree: &Tree, choices: &[(i64, usize, usize, bool)]) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        for (id, (end, start, length, degraded)) in (1..).zip(choices) {
            let seen: Vec<MessageId> =
                visible(&tree.branch(EntryId(*end))).iter().map(|message| message.seen.id).collect();
            let run: Vec<MessageId> = seen.into_iter().skip(*start).take(*length).collect();
            if !run.is_empty() {
                let sources = Sources::Messages(run);
                let (id, degraded) = (SummaryId(id), *degraded);
                nodes.push(Node { id, depth: 0, degraded, prompt_version: 1, sources });
            }
        }
        for pair in nodes.clone().windows(2) {
            let id = SummaryId(100 + pair[0].id.0);
            let sources = Sources::Summaries(pair.iter().map(|node| node.id).collect());
            nodes.push(Node { id, depth: 1, degraded: false, prompt_version: 1, sources });
        }
        nodes
    }

    fn summaries(branch: &[BranchEntry], nodes: &[Node]) -> (Vec<Piece>, Vec<SummaryId>) {
        let seen: Vec<MessageId> = visible(branch).iter().map(|message| message.seen.id).collect();
        let forest = Forest::new(&seen, nodes.to_vec());
        let covers = forest.frontier().into_iter().filter(|piece| matches!(piece, Piece::Summary(..)));
        (covers.collect(), forest.holding())
    }

    proptest! {
        #[test]
        fn the_deciding_entry_has_the_summaries_of_all_branches_below_it(
            entries in prop::collection::vec((prop_oneof![4 => Just(0), 1 => 0_usize..6], 0_u8..20, 0_usize..40), 1..40),
            spans in prop::collection::vec((1_i64..40, 0_usize..10, 1_usize..6, any::<bool>()), 0..12),
        ) {
            let tree = tree(&entries);
            let nodes = nodes(&tree, &spans);
            let lasts = nodes.iter().filter_map(|node| match &node.sources {
                Sources::Messages(messages) => messages.last().copied(),
                Sources::Summaries(_) => None,
            });
            let deciding = tree.deciding(&lasts.collect());
            for entry in tree.entries() {
                let whole = summaries(&tree.branch(entry.row), &nodes);
                let decided = deciding.get(&entry.row).map(|at| summaries(&tree.branch(*at), &nodes));
                prop_assert_eq!(whole, decided.unwrap_or_default(), "{:?}", entry);
            }
        }
    }
}
