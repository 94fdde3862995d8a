//! Checks entries: each session's tree must be connected, and every entry must record the right last message
//! at or above it, which its children extend.

use std::collections::HashMap;

use super::Findings;
use super::report::{Check, Remedy};
use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{EntryId, MessageId};
use crate::store::{AuditedEntry, StoredSession, View};

/// The finding for an entry whose parent is missing.
pub(super) const TORN: &str = "the parent entry is missing";

/// The last message at or above an entry: the inner `None` means there is none, the outer that it can't be
/// known.
type Head = Option<Option<MessageId>>;

pub(super) fn check(
    view: &View<'_>,
    conversation: &StoredSession,
    check: &mut Check,
    found: &mut Findings,
) -> Result<()> {
    let entries = view.upkeep().audit_entries(conversation.id)?;
    check.saw(entries.len(), "entry");
    counts(view, Some(conversation), check, found)?;
    let tree = Tree { entries: &entries, session: &conversation.session_id };
    if tree.walk(check, found) < entries.len() {
        found.circles.insert(conversation.id);
    }
    Ok(())
}

/// Checks what is recorded about the length of a session, or of the whole project (`None`).
pub(super) fn counts(
    view: &View<'_>,
    conversation: Option<&StoredSession>,
    check: &mut Check,
    found: &mut Findings,
) -> Result<()> {
    if !view.messages().is_counted_right(conversation.map(|one| one.id))? {
        found.miscounted = true;
        check.find(Remedy::Fix, "the recorded number of messages is wrong", || {
            conversation.map_or("the project", |one| &one.session_id).into()
        });
    }
    Ok(())
}

struct Tree<'a> {
    entries: &'a [AuditedEntry],
    session: &'a str,
}

impl Tree<'_> {
    /// Walks from the roots to the leaves. Returns the number of entries reached.
    fn walk(&self, check: &mut Check, found: &mut Findings) -> usize {
        let rows: HashMap<EntryId, usize> =
            self.entries.iter().enumerate().map(|(at, entry)| (entry.id, at)).collect();
        let shown: HashMap<&str, Option<MessageId>> = (self.entries.iter())
            .map(|entry| (entry.entry_id.as_str(), entry.message.filter(|_| entry.kind == 1)))
            .collect();
        let mut below: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut waiting: Vec<(usize, Head)> = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            match entry.parent {
                None => waiting.push((at, Some(None))),
                Some(parent) => match rows.get(&parent) {
                    Some(parent) => below.entry(*parent).or_default().push(at),
                    None => {
                        found.torn.insert(entry.id);
                        check.find(Remedy::Rebuild, TORN, || self.name(entry));
                        waiting.push((at, None));
                    }
                },
            }
        }
        let mut reached = vec![false; self.entries.len()];
        while let Some((at, above)) = waiting.pop() {
            reached[at] = true;
            let entry = &self.entries[at];
            self.content(entry, above, &shown, check);
            let head = match (entry.kind, entry.message.zip(entry.shown)) {
                (1, Some((message, _))) => Some(Some(message)),
                // Which message it was can't be known, so the record stays as it is.
                (1, None) => None,
                _ => above,
            };
            if let Some(head) = head
                && head != entry.head
            {
                found.heads.push((entry.id, head));
                check
                    .find(Remedy::Fix, "the recorded last message at or above is wrong", || self.name(entry));
            }
            waiting.extend(below.get(&at).into_iter().flatten().map(|child| (*child, head)));
        }
        for (entry, _) in self.entries.iter().zip(&reached).filter(|(_, reached)| !**reached) {
            check.find(Remedy::Rebuild, "it has no root: its ancestors form a cycle", || self.name(entry));
        }
        reached.into_iter().filter(|reached| *reached).count()
    }

    /// Checks that an entry shows a permitted message, and that it extends the one above.
    fn content(
        &self,
        entry: &AuditedEntry,
        above: Head,
        shown: &HashMap<&str, Option<MessageId>>,
        check: &mut Check,
    ) {
        let what = match (entry.kind, entry.message, entry.shown) {
            (1, None, _) | (1 | 2, Some(_), None) => "its message is missing",
            (1, Some(_), Some((MessageKind::Edited, _))) => "it shows an edited version as the original",
            (1, Some(_), Some((_, before))) if above.is_some_and(|above| above != before) => {
                "its message's parent differs from the message above it"
            }
            (1, ..) => return,
            (2, message, rendition) => {
                let of = entry.target.as_deref().and_then(|target| *shown.get(target)?);
                let is_right = match (message, rendition) {
                    (Some(_), Some((kind, original))) => {
                        kind == MessageKind::Edited && original.is_some() && original == of
                    }
                    _ => entry.target.is_some(),
                };
                if is_right {
                    return;
                }
                "it edits an entry that does not show the replaced message"
            }
            (_, Some(_), _) => "it shows a message, but entries of its type never do",
            _ => return,
        };
        check.find(Remedy::Rebuild, what, || self.name(entry));
    }

    fn name(&self, entry: &AuditedEntry) -> String {
        format!("{} of session {}", entry.entry_id, self.session)
    }
}
