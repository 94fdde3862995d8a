//! A cached branch that can be extended, so that a growing one is not read from the root again.

use std::collections::HashSet;

use super::{BranchEntry, MessageKind, Step, Visible, visible};
use crate::ids::EntryId;

/// The entries of a branch, from root to leaf, as far as compaction needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    rows: Vec<EntryId>,
    /// Indexes of compactions.
    compactions: Vec<usize>,
    /// The index of the last edit.
    last_edit: Option<usize>,
    /// Indexes of purged messages.
    purged: Vec<usize>,
    /// Its visible messages.
    visible: Vec<Visible>,
    /// Whether rows increase from entry to entry. They do, except after a repair.
    is_rising: bool,
    /// Whether an edit comes before its target.
    has_early_edit: bool,
}

impl Path {
    /// Reads a branch.
    pub fn of(entries: &[BranchEntry]) -> Self {
        let mut path = Self { is_rising: true, has_early_edit: edits_early(entries), ..Self::default() };
        path.note(entries);
        path
    }

    /// Continues the branch with `entries` below its entry `last`, which need not be its final one. Returns
    /// `false`, and leaves the path unusable, if edits are added or removed: they may change much earlier
    /// messages.
    pub fn go_on(&mut self, last: EntryId, entries: &[BranchEntry]) -> bool {
        let Some(kept) = self.place(last).map(|at| at + 1) else { return false };
        let is_edit = |entry: &BranchEntry| entry.step.target().is_some();
        if self.has_early_edit || self.is_edited_from(kept) || entries.iter().any(is_edit) {
            return false;
        }
        self.rows.truncate(kept);
        self.compactions.truncate(self.compactions.partition_point(|at| *at < kept));
        self.purged.truncate(self.purged_before(kept));
        self.visible.truncate(self.seen_before(kept));
        self.note(entries);
        true
    }

    /// Whether there is an edit at an index or after it, which may change what an earlier entry shows.
    pub fn is_edited_from(&self, index: usize) -> bool {
        self.last_edit.is_some_and(|at| at >= index)
    }

    fn note(&mut self, entries: &[BranchEntry]) {
        let from = self.rows.len();
        let seen = visible(entries).into_iter();
        self.visible.extend(seen.map(|seen| Visible { index: seen.index + from, ..seen }));
        for entry in entries {
            match entry.step {
                Step::Compaction => self.compactions.push(self.rows.len()),
                Step::Edit { .. } => self.last_edit = Some(self.rows.len()),
                Step::Message(ref message) if message.kind == MessageKind::Purged => {
                    self.purged.push(self.rows.len());
                }
                Step::Link | Step::Message(_) => {}
            }
            self.is_rising &= self.rows.last().is_none_or(|last| *last < entry.row);
            self.rows.push(entry.row);
        }
    }

    /// Its visible messages.
    pub fn visible(&self) -> &[Visible] {
        &self.visible
    }

    /// The number of its entries.
    pub fn entries(&self) -> usize {
        self.rows.len()
    }

    /// The index of an entry.
    pub fn place(&self, entry: EntryId) -> Option<usize> {
        match self.is_rising {
            true => self.rows.binary_search(&entry).ok(),
            false => self.rows.iter().position(|row| *row == entry),
        }
    }

    /// The number of visible messages before the entry at an index.
    pub fn seen_before(&self, place: usize) -> usize {
        self.visible.partition_point(|seen| seen.index < place)
    }

    /// The number of purged messages before an index.
    pub fn purged_before(&self, place: usize) -> usize {
        self.purged.partition_point(|at| *at < place)
    }

    /// Whether the entry at this index is a compaction.
    pub fn is_compaction(&self, place: usize) -> bool {
        self.compactions.binary_search(&place).is_ok()
    }

    /// The index of the last compaction before an index: since then the context has only grown.
    pub fn compaction_before(&self, index: usize) -> usize {
        let before = self.compactions.partition_point(|at| *at < index);
        before.checked_sub(1).map_or(0, |last| self.compactions[last])
    }
}

/// Whether an edit among `entries` comes before its target.
fn edits_early(entries: &[BranchEntry]) -> bool {
    if !entries.iter().any(|entry| entry.step.target().is_some()) {
        return false;
    }
    let mut before = HashSet::new();
    entries.iter().any(|entry| {
        let is_early = entry.step.target().is_some_and(|target| !before.contains(target));
        before.insert(entry.entry_id.as_str());
        is_early
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::BranchMessage;
    use crate::ids::{Hash, MessageId};

    /// Entries whose messages are named after their rows: `c` is a compaction, `-` a link, `e` an edit that
    /// hides the first one.
    fn entries(from: i64, what: &str) -> Vec<BranchEntry> {
        let entry = |(row, what): (i64, char)| {
            let message = BranchMessage {
                id: MessageId(row),
                hash: Hash::ROOT.child(&row.to_string()),
                kind: MessageKind::Conversation,
                role: "user".into(),
                tokens: 1,
                timestamp: 0,
            };
            let step = match what {
                'c' => Step::Compaction,
                '-' => Step::Link,
                'e' => Step::Edit { target: "e1".into(), rendition: None },
                _ => Step::Message(message),
            };
            BranchEntry { row: EntryId(row), entry_id: format!("e{row}"), step }
        };
        (from..).zip(what.chars()).map(entry).collect()
    }

    #[test]
    fn a_continued_branch_equals_one_read_at_once() {
        for (first, kept, then) in [
            ("mm-mcm", 6, "mmcm"),
            ("mm-mcmcm", 4, "mm-"),
            ("mme", 3, "mc"),
            ("mcme", 4, "mc"),
            ("", 0, "mm"),
        ] {
            let whole = entries(1, first);
            for from in [20, 3] {
                let more = entries(from, then);
                let all = [&whole[..kept], &more].concat();
                let mut path = Path::of(&whole);
                if kept > 0 {
                    assert!(path.go_on(EntryId(i64::try_from(kept).unwrap()), &more));
                    assert_eq!(path, Path::of(&all), "{first} {then} {from}");
                }
                let path = Path::of(&all);
                for entry in &all {
                    assert!(path.place(entry.row).is_some());
                }
            }
        }
    }

    #[test]
    fn added_or_removed_edits_end_a_path() {
        assert!(!Path::of(&entries(1, "mmm")).go_on(EntryId(3), &entries(9, "e")));
        assert!(!Path::of(&entries(1, "mme")).go_on(EntryId(2), &entries(9, "m")));
        assert!(Path::of(&entries(1, "mme")).go_on(EntryId(3), &entries(9, "m")));
        assert!(!Path::of(&entries(1, "mm")).go_on(EntryId(7), &entries(9, "m")));
        // Its target comes later.
        assert!(!Path::of(&entries(7, "em")).go_on(EntryId(8), &entries(9, "m")));
    }
}
