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
    /// From here on the model sees a stub of ours instead of what the entry `target` showed, or nothing. To
    /// us the message is still visible.
    Stub {
        target: String,
        /// Estimated tokens of the replacement; 0 if there is none.
        tokens: usize,
    },
    /// Everything before it was compacted.
    Compaction,
}

impl Step {
    /// The entry whose visible message this changes.
    pub(super) fn target(&self) -> Option<&str> {
        match self {
            Self::Edit { target, .. } | Self::Stub { target, .. } => Some(target),
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
    /// For a pruned message, the estimated tokens of its replacement; 0 if there is none.
    pub pruned: Option<usize>,
}

impl Visible {
    /// Its estimated tokens in the context.
    pub fn shown_tokens(&self) -> usize {
        self.pruned.unwrap_or(self.seen.tokens)
    }

    /// Whether the raw part may start with it: not a result whose call would be missing, nor a hidden
    /// message.
    pub fn can_begin(&self) -> bool {
        self.seen.role != "toolResult" && !self.is_hidden()
    }

    /// Whether it was pruned without a replacement.
    pub fn is_hidden(&self) -> bool {
        self.pruned == Some(0)
    }
}

/// How many messages from `at` on, up to the last hidden one, belong to a turn whose stub is above them. A
/// raw part that starts among them would leave the hidden ones out of both the block and the context.
pub fn hidden_from(visible: &[Visible], at: usize) -> usize {
    let rest = visible.get(at..).unwrap_or_default();
    let turn = rest.iter().position(|message| message.seen.role == "user" && !message.is_hidden());
    rest[..turn.unwrap_or(rest.len())].iter().rposition(Visible::is_hidden).map_or(0, |last| last + 1)
}

/// Whether the raw part may start at this position.
pub fn can_begin_at(visible: &[Visible], at: usize) -> bool {
    visible.get(at).is_some_and(Visible::can_begin) && hidden_from(visible, at) == 0
}

/// The visible messages of a branch, with context edits applied: an entry's last edit counts, wherever it is
/// on the branch. A message that we pruned stays visible, until another extension edits it.
pub fn visible(branch: &[BranchEntry]) -> Vec<Visible> {
    let mut edits: HashMap<&str, Option<&BranchMessage>> = HashMap::new();
    let mut pruned: HashMap<&str, usize> = HashMap::new();
    for entry in branch {
        match &entry.step {
            Step::Edit { target, rendition } => {
                edits.insert(target, rendition.as_ref());
                pruned.remove(target.as_str());
            }
            Step::Stub { target, tokens } => {
                pruned.insert(target, *tokens);
            }
            Step::Link | Step::Message(_) | Step::Compaction => {}
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
            pruned: pruned.get(entry.entry_id.as_str()).copied(),
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

    #[test]
    fn the_raw_part_never_starts_within_a_stubbed_turn() {
        let said = |id, role: &str| {
            let message = BranchMessage { role: role.into(), ..message(id, MessageKind::Conversation) };
            Step::Message(message)
        };
        let stub = |target: &str, tokens| Step::Stub { target: target.into(), tokens };
        let branch = branch(vec![
            said(0, "user"),
            said(1, "assistant"),
            said(2, "bashExecution"),
            said(3, "assistant"),
            said(4, "bashExecution"),
            said(5, "user"),
            said(6, "assistant"),
            stub("e0", 9),
            stub("e1", 0),
            stub("e3", 0),
            stub("e5", 9),
            stub("e6", 0),
        ]);
        let visible = visible(&branch);
        let hidden: Vec<usize> = (0..8).map(|at| hidden_from(&visible, at)).collect();
        assert_eq!(hidden, [0, 3, 2, 1, 0, 0, 1, 0]);
        let begins: Vec<usize> = (0..8).filter(|at| can_begin_at(&visible, *at)).collect();
        assert_eq!(begins, [0, 4, 5]);
    }

    #[test]
    fn a_pruned_message_stays_visible_until_others_edit_it() {
        let say = |id| Step::Message(message(id, MessageKind::Conversation));
        let stub = |target: &str, tokens| Step::Stub { target: target.into(), tokens };
        let edit = |target: &str| Step::Edit { target: target.into(), rendition: None };
        let branch = branch(vec![
            say(0),
            say(1),
            say(2),
            say(3),
            stub("e0", 9),
            stub("e1", 0),
            stub("e2", 9),
            edit("e2"),
            stub("e0", 0),
        ]);
        let seen: Vec<_> = visible(&branch).into_iter().map(|v| (v.seen.id.0, v.pruned)).collect();
        assert_eq!(seen, [(0, Some(0)), (1, Some(0)), (3, None)]);
    }
}
