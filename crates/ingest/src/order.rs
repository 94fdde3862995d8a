//! Puts parents before children, whatever the order in the file.
//!
//! Pi appends, so its files are in order. A merged or hand-edited file may not be; Pi looks only at ids. An
//! entry that comes before its parent waits here for it. If the parent never comes, Pi shows the entry as a
//! root.

use std::collections::{HashMap, HashSet, VecDeque};

use super::storing::Handover;
use lcm_model::{Content, Entry};

/// The bytes of messages, and the entries, that one transaction writes: other sessions can write in between.
pub(super) const SLICE: (usize, usize) = (2 * 1024 * 1024, 1000);

#[derive(Default)]
pub(super) struct Order {
    /// Ids of all entries so far, waiting or not.
    came: HashSet<String>,
    /// Ids of the waiting entries.
    held: HashSet<String>,
    /// The waiting entries by the id of their parent, each with its position in the file, in order.
    waiting: HashMap<String, VecDeque<(usize, Entry)>>,
    /// The number of entries so far; an id may be repeated.
    entries: usize,
    ready: VecDeque<Entry>,
    /// Their size.
    bytes: usize,
    orphans: HashSet<String>,
    has_ended: bool,
}

impl Order {
    /// Adds the next entry of the file.
    pub fn push(&mut self, entry: Entry) {
        self.entries += 1;
        self.came.insert(entry.id.clone());
        let came_before = |parent: &String| {
            *parent != entry.id && self.came.contains(parent) && !self.held.contains(parent)
        };
        match entry.parent.as_ref().filter(|parent| !came_before(parent)) {
            None => self.release(entry),
            Some(parent) => {
                self.held.insert(entry.id.clone());
                self.waiting.entry(parent.clone()).or_default().push_back((self.entries, entry));
            }
        }
    }

    /// Tells that an entry is stored already.
    pub(crate) fn is_stored(&mut self, id: String) {
        self.came.insert(id);
    }

    /// Ends the file: the entries that still wait become roots.
    pub fn end(&mut self) {
        self.has_ended = true;
        // First the entries whose parent does not exist, then the first entry of each cycle.
        let mut left: Vec<(bool, usize, String)> = (self.waiting.iter())
            .flat_map(|(parent, children)| {
                children.iter().map(|(place, _)| (self.came.contains(parent), *place, parent.clone()))
            })
            .collect();
        left.sort();
        for (_, _, parent) in left {
            if let Some((_, child)) = self.waiting.get_mut(&parent).and_then(VecDeque::pop_front) {
                self.orphans.insert(child.id.clone());
                self.release(child);
            }
        }
    }

    /// Whether a [`SLICE`] is in order, or the file has ended.
    pub fn is_ready(&self) -> bool {
        self.has_ended || self.bytes >= SLICE.0 || self.ready.len() >= SLICE.1
    }

    /// Takes a [`SLICE`], or what is left; `None` if nothing is.
    pub fn slice(&mut self) -> Option<Handover> {
        let (mut slice, mut taken) = (Handover::default(), 0);
        while taken < SLICE.0
            && slice.entries.len() < SLICE.1
            && let Some((entry, is_orphan)) = self.pop()
        {
            taken += size_of(&entry);
            slice.orphans.extend(is_orphan.then(|| entry.id.clone()));
            slice.entries.push(entry);
        }
        (!slice.entries.is_empty()).then_some(slice)
    }

    /// Takes the next entry that is in order, and tells whether it has lost its parent.
    pub fn pop(&mut self) -> Option<(Entry, bool)> {
        let entry = self.ready.pop_front()?;
        self.bytes -= size_of(&entry);
        // The mark stays: a repeated id may be returned twice, in two slices.
        let is_orphan = self.orphans.contains(&entry.id);
        Some((entry, is_orphan))
    }

    /// Puts an entry, and all that wait for it, in order.
    fn release(&mut self, entry: Entry) {
        let mut next = vec![entry];
        while let Some(entry) = next.pop() {
            self.held.remove(&entry.id);
            // The stack takes the last child first.
            next.extend(self.waiting.remove(&entry.id).into_iter().flatten().rev().map(|(_, child)| child));
            self.bytes += size_of(&entry);
            self.ready.push_back(entry);
        }
    }
}

/// The approximate size of an entry in characters.
pub(super) fn size_of(entry: &Entry) -> usize {
    match &entry.content {
        Content::Message(json) | Content::Edit { replacement: Some(json), .. } => json.len(),
        _ => 100,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use lcm_testing::everything;

    fn ordered(entries: &[(&str, Option<&str>)]) -> (Vec<String>, Vec<String>) {
        let mut order = Order::default();
        for (id, parent) in entries {
            let parent = parent.map(ToOwned::to_owned);
            order.push(Entry { id: (*id).into(), parent, timestamp: 0, content: Content::Other });
        }
        order.end();
        let ordered: Vec<(Entry, bool)> = std::iter::from_fn(|| order.pop()).collect();
        let orphans = ordered.iter().filter(|(_, is_orphan)| *is_orphan).map(|(entry, _)| entry.id.clone());
        let orphans: BTreeSet<String> = orphans.collect();
        (ordered.into_iter().map(|(entry, _)| entry.id).collect(), orphans.into_iter().collect())
    }

    #[test]
    fn an_entry_before_its_parent_waits_for_it() {
        let (order, orphans) = ordered(&[
            ("c", Some("b")),
            ("d", Some("b")),
            ("e", Some("d")),
            ("b", Some("a")),
            ("a", None),
            ("f", Some("a")),
        ]);
        assert_eq!((order.join(""), orphans.len()), ("abcdef".into(), 0));
    }

    #[test]
    fn an_entry_with_a_missing_parent_becomes_a_root() {
        let (order, orphans) = ordered(&[("b", Some("gone")), ("c", Some("b")), ("a", None)]);
        assert_eq!((order.join(""), orphans.join("")), ("abc".into(), "b".into()));
    }

    #[test]
    fn a_cycle_is_cut_at_its_first_entry() {
        let (order, orphans) =
            ordered(&[("a", Some("b")), ("b", Some("a")), ("s", Some("s")), ("c", Some("b"))]);
        assert_eq!((order.join(""), orphans.join("")), ("abcs".into(), "as".into()));
    }

    #[test]
    fn thousands_of_orphans_are_ordered_quickly() {
        // Too many to compare each with each.
        let many = if everything() { 200_000 } else { 50_000 };
        let ids: Vec<String> = (0..many).map(|n| n.to_string()).collect();
        let entries: Vec<(&str, Option<&str>)> = ids.iter().map(|id| (id.as_str(), Some("gone"))).collect();
        let (order, orphans) = ordered(&entries);
        assert_eq!((order, orphans.len()), (ids, many));
    }

    #[test]
    fn two_roots_with_one_id_are_both_roots() {
        let mut order = Order::default();
        for parent in ["gone", "lost"] {
            order.push(Entry {
                id: "a".into(),
                parent: Some(parent.into()),
                timestamp: 0,
                content: Content::Other,
            });
        }
        order.end();
        for _ in 0..2 {
            let (entry, is_orphan) = order.pop().unwrap();
            assert_eq!((entry.id.as_str(), is_orphan), ("a", true));
        }
    }

    #[test]
    fn a_repeated_id_is_returned_twice() {
        let (order, orphans) = ordered(&[("a", None), ("b", Some("a")), ("a", None), ("b", Some("a"))]);
        assert_eq!((order.join(""), orphans.len()), ("abab".into(), 0));
    }
}
