//! A branch that is kept as it grows, so that one which goes on is not looked at from the root again.

use std::collections::HashSet;

use super::{BranchEntry, MessageKind, Step, Visible, visible};
use crate::ids::{EntryId, MessageId};

/// The entries of a branch, root to leaf, as far as a compaction looks at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    rows: Vec<EntryId>,
    /// Places of compactions, and of edits and stubs.
    compactions: Vec<usize>,
    edits: Vec<usize>,
    /// Where the last stub stands.
    last_stub: Option<usize>,
    /// Places of messages that were purged.
    purged: Vec<usize>,
    /// What can be seen of it.
    visible: Vec<Visible>,
    /// The visible messages by their rows, each with its place among them.
    places: Vec<(MessageId, usize)>,
    /// Do the rows rise from entry to entry? They do unless something was mended.
    is_rising: bool,
    /// Is there an edit of something that does not come before it?
    is_foreboding: bool,
}

impl Path {
    /// A branch.
    #[must_use]
    pub fn of(entries: &[BranchEntry]) -> Self {
        let mut path = Self { is_rising: true, is_foreboding: forebode(entries), ..Self::default() };
        path.note(entries);
        path.see(visible(entries), 0);
        path
    }

    /// The same branch that goes on with `entries` below its entry `last`, which may be another than its last. `false`, and it
    /// is of no more use, where edits or stubs come or go: they may reach far back.
    #[must_use]
    pub fn go_on(&mut self, last: EntryId, entries: &[BranchEntry]) -> bool {
        let Some(kept) = self.place(last).map(|at| at + 1) else { return false };
        let is_edit = |entry: &BranchEntry| entry.step.target().is_some();
        if self.is_foreboding
            || self.edits.last().is_some_and(|at| *at >= kept)
            || entries.iter().any(is_edit)
        {
            return false;
        }
        self.rows.truncate(kept);
        self.compactions.truncate(self.compactions.partition_point(|at| *at < kept));
        self.purged.truncate(self.purged_before(kept));
        let seen = self.seen_before(kept);
        if seen < self.visible.len() {
            self.visible.truncate(seen);
            self.places.retain(|(_, at)| *at < seen);
        }
        self.note(entries);
        self.see(visible(entries), kept);
        true
    }

    fn note(&mut self, entries: &[BranchEntry]) {
        for entry in entries {
            match entry.step {
                Step::Compaction => self.compactions.push(self.rows.len()),
                Step::Edit { .. } => self.edits.push(self.rows.len()),
                Step::Stub { .. } => {
                    self.edits.push(self.rows.len());
                    self.last_stub = Some(self.rows.len());
                }
                Step::Message(ref message) if message.kind == MessageKind::Purged => {
                    self.purged.push(self.rows.len());
                }
                Step::Link | Step::Message(_) => {}
            }
            self.is_rising &= self.rows.last().is_none_or(|last| *last < entry.row);
            self.rows.push(entry.row);
        }
    }

    /// Adds what is visible of entries that begin at the place `from`.
    fn see(&mut self, visible: Vec<Visible>, from: usize) {
        let was_sorted = self.places.last().map(|(message, _)| *message);
        let start = self.visible.len();
        self.visible.extend(visible.into_iter().map(|seen| Visible { index: seen.index + from, ..seen }));
        let new = self.visible[start..].iter().enumerate().map(|(at, seen)| (seen.seen.id, start + at));
        self.places.extend(new);
        let new = &self.places[start..];
        if !new.is_sorted() || was_sorted > new.first().map(|(message, _)| *message) {
            self.places.sort_unstable();
        }
    }

    /// What can be seen of it.
    #[must_use]
    pub fn visible(&self) -> &[Visible] {
        &self.visible
    }

    /// How many entries it has.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.rows.len()
    }

    /// Where an entry stands.
    #[must_use]
    pub fn place(&self, entry: EntryId) -> Option<usize> {
        match self.is_rising {
            true => self.rows.binary_search(&entry).ok(),
            false => self.rows.iter().position(|row| *row == entry),
        }
    }

    /// Is this message seen?
    #[must_use]
    pub fn shows(&self, message: MessageId) -> bool {
        let at = self.places.partition_point(|(id, _)| *id < message);
        self.places.get(at).is_some_and(|(id, _)| *id == message)
    }

    /// How many of the visible messages come before the entry at a place.
    #[must_use]
    pub fn seen_before(&self, place: usize) -> usize {
        self.visible.partition_point(|seen| seen.index < place)
    }

    /// How many messages that were purged stand before a place.
    #[must_use]
    pub fn purged_before(&self, place: usize) -> usize {
        self.purged.partition_point(|at| *at < place)
    }

    /// Is the entry at this place a compaction?
    #[must_use]
    pub fn is_compaction(&self, place: usize) -> bool {
        self.compactions.binary_search(&place).is_ok()
    }

    /// Where the last compaction stands, of whatever kind.
    #[must_use]
    pub fn last_compaction(&self) -> Option<usize> {
        self.compactions.last().copied()
    }

    /// The same, or where the last stub stands: from there on the context has only grown.
    #[must_use]
    pub fn last_change(&self) -> usize {
        self.compactions.last().copied().max(self.last_stub).unwrap_or_default()
    }
}

/// Is there an edit among `entries` of something that does not come before it?
fn forebode(entries: &[BranchEntry]) -> bool {
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
    use crate::ids::Hash;

    /// Entries of the rows; messages are named as their rows, and `c` is a compaction, `-` a link, `e` an edit that hides the
    /// first, `s` a stub of it.
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
                's' => Step::Stub { target: "e1".into(), tokens: 1 },
                _ => Step::Message(message),
            };
            BranchEntry { row: EntryId(row), entry_id: format!("e{row}"), step }
        };
        (from..).zip(what.chars()).map(entry).collect()
    }

    #[test]
    fn a_branch_that_goes_on_is_the_same_as_one_read_at_once() {
        for (first, kept, then) in [
            ("mm-mcm", 6, "mmcm"),
            ("mm-mcmcm", 4, "mm-"),
            ("mme", 3, "mc"),
            ("mcms", 4, "mc"),
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
                assert!(path.visible().iter().all(|seen| path.shows(seen.seen.id)));
                assert!(!path.shows(MessageId(99)));
            }
        }
    }

    #[test]
    fn edits_that_come_or_go_are_not_gone_on_with() {
        assert!(!Path::of(&entries(1, "mmm")).go_on(EntryId(3), &entries(9, "e")));
        assert!(!Path::of(&entries(1, "mmm")).go_on(EntryId(3), &entries(9, "s")));
        assert!(!Path::of(&entries(1, "mms")).go_on(EntryId(2), &entries(9, "m")));
        assert!(!Path::of(&entries(1, "mme")).go_on(EntryId(2), &entries(9, "m")));
        assert!(Path::of(&entries(1, "mme")).go_on(EntryId(3), &entries(9, "m")));
        assert!(!Path::of(&entries(1, "mm")).go_on(EntryId(7), &entries(9, "m")));
        // What it hides is still to come.
        assert!(!Path::of(&entries(7, "em")).go_on(EntryId(8), &entries(9, "m")));
    }
}
