//! One branch of a session, from root to leaf, and what the model sees of it.

use std::collections::HashMap;

use crate::ids::{EntryId, Hash, MessageId};

/// The kind of a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Part of the conversation.
    Conversation,
    /// Hidden from the model by the user (`!!`): never summarized, invisible to the tools.
    Private,
    /// Prompt and tool state.
    System,
    /// The version of another message that a context edit shows; not part of a lineage.
    Edited,
    /// Its content was deleted for good; its place in the lineage remains.
    Purged,
}

/// A message on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchMessage {
    pub id: MessageId,
    pub hash: Hash,
    pub kind: MessageKind,
    pub role: String,
    pub tokens: usize,
    pub timestamp: i64,
}

/// What an entry does on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Only links its children to its parent.
    Link,
    /// Shows a message.
    Message(BranchMessage),
    /// From here on the model sees this instead of what the entry `target` showed, or nothing.
    Edit { target: String, rendition: Option<BranchMessage> },
    /// Everything before it was compacted.
    Compaction,
}

impl Step {
    /// The entry whose visible message this changes.
    pub(super) fn target(&self) -> Option<&str> {
        match self {
            Self::Edit { target, .. } => Some(target),
            Self::Link | Self::Message(_) | Self::Compaction => None,
        }
    }
}

/// One entry on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchEntry {
    pub row: EntryId,
    pub entry_id: String,
    pub step: Step,
}

/// A message that the model sees, or would see without compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visible {
    /// The entry's index on the branch.
    pub index: usize,
    pub entry_id: String,
    /// The message as it is shown: itself, or its edited rendition. Summaries refer to this one.
    pub seen: BranchMessage,
    /// The row of the original message.
    pub id: MessageId,
    /// Its identity, whose start is the id that the model gets.
    pub original: Hash,
}

impl Visible {
    /// Whether the raw part may start with it: not a result, whose call would be missing.
    pub fn can_begin(&self) -> bool {
        self.seen.role != "toolResult"
    }
}

/// The visible messages of a branch, with context edits applied: an entry's last edit counts, wherever it is
/// on the branch.
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
            id: message.id,
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
    fn the_last_edit_counts_and_only_conversation_messages_are_visible() {
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
