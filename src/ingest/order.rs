//! Parents before children, in whatever order a file has them.
//!
//! Pi appends, so a file has them in order. One that was merged or edited by hand may not; to Pi only the ids count. What
//! comes before its parent waits here for it. Whose parent never comes is a root to Pi.

use std::collections::{HashMap, HashSet, VecDeque};

use super::fold::Handover;
use crate::model::{Content, Entry};

/// Entries on their way into order.
#[derive(Default)]
pub(super) struct Order {
    /// Ids of the entries that came, whether they wait or not.
    came: HashSet<String>,
    /// Ids of the entries that wait.
    held: HashSet<String>,
    /// What waits, by the id it waits for; each with its place in the file.
    waiting: HashMap<String, VecDeque<(usize, Entry)>>,
    ready: VecDeque<Entry>,
    orphans: HashSet<String>,
}

impl Order {
    /// The next entry of the file.
    pub fn push(&mut self, entry: Entry) {
        let place = self.came.len();
        self.came.insert(entry.id.clone());
        match entry.parent.as_ref().filter(|parent| !self.came_before(parent, &entry.id)) {
            None => self.release(entry),
            Some(parent) => {
                self.held.insert(entry.id.clone());
                self.waiting.entry(parent.clone()).or_default().push_back((place, entry));
            }
        }
    }

    fn came_before(&self, parent: &str, id: &str) -> bool {
        parent != id && self.came.contains(parent) && !self.held.contains(parent)
    }

    /// The file has no more: whoever still waits, waits for nobody.
    pub fn end(&mut self) {
        let mut left: Vec<(usize, String, String)> = (self.waiting.iter())
            .flat_map(|(parent, children)| {
                children.iter().map(|(place, child)| (*place, parent.clone(), child.id.clone()))
            })
            .collect();
        // First those whose parent is nowhere, then, if entries hang in a circle, the first of them.
        left.sort_by_key(|(place, parent, _)| (self.came.contains(parent), *place));
        for (_, parent, id) in left {
            let Some(children) = self.waiting.get_mut(&parent) else { continue };
            // The first of them, as they are sorted: thousands may wait for one that never comes.
            let Some(at) = children.iter().position(|(_, child)| child.id == id) else { continue };
            let Some((_, child)) = children.remove(at) else { continue };
            self.orphans.insert(id);
            self.release(child);
        }
    }

    /// What is in order by now, about `size` characters of it.
    pub fn take(&mut self, size: usize) -> Handover {
        let mut handover = Handover::default();
        let mut taken = 0;
        while taken < size
            && let Some(entry) = self.ready.pop_front()
        {
            taken += size_of(&entry);
            // It stays one: an id that comes twice may be handed over twice, in two slices.
            if self.orphans.contains(&entry.id) {
                handover.orphans.insert(entry.id.clone());
            }
            handover.entries.push(entry);
        }
        handover
    }

    /// Puts an entry, and all that waited for it, in order.
    fn release(&mut self, entry: Entry) {
        let mut next = vec![entry];
        while let Some(entry) = next.pop() {
            self.held.remove(&entry.id);
            let mut children = self.waiting.remove(&entry.id).unwrap_or_default();
            // The last goes onto the stack first.
            children.make_contiguous().sort_by_key(|(place, _)| std::cmp::Reverse(*place));
            next.extend(children.into_iter().map(|(_, child)| child));
            self.ready.push_back(entry);
        }
    }
}

/// About how many characters it hands over.
pub(super) fn size_of(entry: &Entry) -> usize {
    match &entry.content {
        Content::Message(json) | Content::Edit { replacement: Some(json), .. } => json.len(),
        _ => 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::extent::everything;

    fn ordered(entries: &[(&str, Option<&str>)]) -> (Vec<String>, Vec<String>) {
        let mut order = Order::default();
        for (id, parent) in entries {
            let parent = parent.map(ToOwned::to_owned);
            order.push(Entry { id: (*id).into(), parent, timestamp: 0, content: Content::Other });
        }
        order.end();
        let Handover { entries, orphans } = order.take(usize::MAX);
        let mut orphans: Vec<String> = orphans.into_iter().collect();
        orphans.sort();
        (entries.into_iter().map(|entry| entry.id).collect(), orphans)
    }

    #[test]
    fn what_comes_before_its_parent_waits_for_it() {
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
    fn whose_parent_never_comes_is_a_root() {
        let (order, orphans) = ordered(&[("b", Some("gone")), ("c", Some("b")), ("a", None)]);
        assert_eq!((order.join(""), orphans.join("")), ("abc".into(), "b".into()));
    }

    #[test]
    fn a_circle_is_opened_at_its_first_entry() {
        let (order, orphans) =
            ordered(&[("a", Some("b")), ("b", Some("a")), ("s", Some("s")), ("c", Some("b"))]);
        assert_eq!((order.join(""), orphans.join("")), ("abcs".into(), "as".into()));
    }

    #[test]
    fn thousands_that_wait_for_one_that_never_comes_are_given_out_without_ado() {
        // So many that nobody would wait for the end if each were compared with each.
        let many = if everything() { 200_000 } else { 50_000 };
        let ids: Vec<String> = (0..many).map(|n| n.to_string()).collect();
        let entries: Vec<(&str, Option<&str>)> = ids.iter().map(|id| (id.as_str(), Some("gone"))).collect();
        let (order, orphans) = ordered(&entries);
        assert_eq!((order, orphans.len()), (ids, many));
    }

    #[test]
    fn each_of_two_roots_of_one_id_is_a_root_in_its_slice() {
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
            let Handover { entries, orphans } = order.take(1);
            assert_eq!((entries.len(), orphans.contains("a")), (1, true));
        }
    }

    #[test]
    fn an_id_that_comes_twice_is_handed_on_twice() {
        let (order, orphans) = ordered(&[("a", None), ("b", Some("a")), ("a", None), ("b", Some("a"))]);
        assert_eq!((order.join(""), orphans.len()), ("abab".into(), 0));
    }
}
