//! One branch of a session, root to leaf, and what of it the model can see.

use std::collections::HashMap;

use crate::ids::{EntryId, Hash, MessageId};

/// What a stored message is to its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Part of the conversation.
    Conversation,
    /// Kept from the model by the person (`!!`): never summarised, invisible to the tools.
    Private,
    /// Prompt and tool state.
    System,
    /// Another message as a context edit shows it; on no lineage.
    Edited,
    /// What was said is gone for good; its place in the lineage is left.
    Purged,
}

/// A message as it stands on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchMessage {
    /// Its row.
    pub id: MessageId,
    /// Its identity.
    pub hash: Hash,
    /// What it is to the conversation.
    pub kind: MessageKind,
    /// Who speaks, as Pi names roles.
    pub role: String,
    /// Estimated tokens.
    pub tokens: usize,
    /// ms since the epoch.
    pub timestamp: i64,
}

/// What an entry on a branch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It only links.
    Link,
    /// It shows a message.
    Message(BranchMessage),
    /// From here on the model sees this in place of what the entry `target` showed, or nothing.
    Edit {
        /// Pi's id of the edited entry.
        target: String,
        /// What is seen instead.
        rendition: Option<BranchMessage>,
    },
    /// What stood before was compacted.
    Compaction,
}

/// One entry on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchEntry {
    /// Its row.
    pub row: EntryId,
    /// Pi's id.
    pub entry_id: String,
    /// What it is.
    pub step: Step,
}

/// A message that the model sees, or would see if nothing were compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visible {
    /// Where the entry stands on the branch.
    pub index: usize,
    /// Pi's id of the entry.
    pub entry_id: String,
    /// The message as it is seen: itself, or its edited rendition. Summaries name this one.
    pub seen: BranchMessage,
    /// The message as it was said; its short id is what the model is given.
    pub original: Hash,
}

/// The visible messages of a branch, with its context edits applied: the last edit of an entry counts, wherever on the
/// branch it stands.
#[must_use]
pub fn visible(branch: &[BranchEntry]) -> Vec<Visible> {
    let mut edits: HashMap<&str, Option<&BranchMessage>> = HashMap::new();
    for entry in branch {
        if let Step::Edit { target, rendition } = &entry.step {
            edits.insert(target, rendition.as_ref());
        }
    }
    let mut seen = Vec::new();
    for (index, entry) in branch.iter().enumerate() {
        let Step::Message(message) = &entry.step else { continue };
        if message.kind != MessageKind::Conversation {
            continue;
        }
        let shown = match edits.get(entry.entry_id.as_str()) {
            Some(None) => continue,
            Some(Some(rendition)) => rendition,
            None => message,
        };
        seen.push(Visible {
            index,
            entry_id: entry.entry_id.clone(),
            seen: shown.clone(),
            original: message.hash,
        });
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: i64, kind: MessageKind) -> BranchMessage {
        let hash = Hash::ROOT.child(&id.to_string());
        BranchMessage { id: MessageId(id), hash, kind, role: "user".into(), tokens: 1, timestamp: 0 }
    }

    fn branch(steps: Vec<Step>) -> Vec<BranchEntry> {
        let entry = |(n, step)| BranchEntry { row: EntryId(0), entry_id: format!("e{n}"), step };
        steps.into_iter().enumerate().map(entry).collect()
    }

    #[test]
    fn the_last_edit_counts_and_what_is_no_conversation_is_not_seen() {
        let say = |id| Step::Message(message(id, MessageKind::Conversation));
        let edit = |target: &str, rendition: Option<i64>| Step::Edit {
            target: target.into(),
            rendition: rendition.map(|id| message(id, MessageKind::Edited)),
        };
        let branch = branch(vec![
            say(0),
            say(1),
            Step::Message(message(2, MessageKind::Private)),
            Step::Message(message(3, MessageKind::System)),
            Step::Compaction,
            say(5),
            edit("e0", None),
            edit("e1", Some(20)),
            edit("e1", Some(21)),
            Step::Link,
        ]);
        let seen: Vec<_> = visible(&branch).into_iter().map(|v| (v.entry_id, v.seen.id.0)).collect();
        assert_eq!(seen, [("e1".to_owned(), 21), ("e5".to_owned(), 5)]);
    }
}
