//! The notes of a branch, computed from the messages on it that changed them.

use std::collections::{BTreeMap, BTreeSet};

use crate::Messages;
use crate::columns::Queries as _;
use lcm_model::dag::Step;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, MessageId};
use lcm_model::{Change, Message, NOTE_TOOL, Notes, Role, SCRIPT_TOOL, is_noting};

/// Maximum number of results of one message's calls.
const RESULTS: usize = 256;

impl Messages<'_> {
    /// The notes at `leaf`. Unreadable and purged messages change nothing. Costs the entries since the first
    /// note.
    pub fn notes(&self, conversation: ConversationId, leaf: &str) -> Result<Notes> {
        self.notes_without(conversation, leaf, &BTreeSet::new())
    }

    /// The same, as if the messages `gone` were removed.
    pub fn notes_without(
        &self,
        conversation: ConversationId,
        leaf: &str,
        gone: &BTreeSet<MessageId>,
    ) -> Result<Notes> {
        let mut noting = self.noting(conversation)?;
        noting.retain(|_, message| !gone.contains(message));
        let mut notes = Notes::default();
        let Some((first, _)) = noting.first_key_value() else { return Ok(notes) };
        // Parents have lower rows than their children.
        let (_, branch) = self.branch_since(conversation, leaf, |entry| entry < *first)?;
        for entry in branch {
            if let (Step::Message(_), Some(message)) = (&entry.step, noting.get(&entry.row)) {
                let (changes, by_user) = self.changes(*message, gone)?;
                for change in changes {
                    // A change that does not apply was rejected when it was requested, or it reverts to a
                    // purged one.
                    let _ = notes.apply(&change, by_user);
                }
            }
        }
        Ok(notes)
    }

    /// The entries of a session that may have changed notes on any branch, with their messages.
    fn noting(&self, conversation: ConversationId) -> Result<BTreeMap<EntryId, MessageId>> {
        self.all(
            "SELECT e.id, m.id FROM messages m INDEXED BY messages_marked
              CROSS JOIN entries e ON e.message_id = m.id AND e.conversation_id = ?1
              WHERE m.tool_name IN ('lcm_note', 'codemode') AND m.kind = 0 AND e.kind = 1",
            [conversation],
        )
    }

    /// A message's changes to the notes, and whether the user made them. The text of a model's note is in its
    /// call, or in the record of its script's calls.
    fn changes(&self, id: MessageId, gone: &BTreeSet<MessageId>) -> Result<(Vec<Change>, bool)> {
        let none = (Vec::new(), false);
        // Unreadable messages are left to the doctor, and must not block a compaction.
        let Ok(json) = self.json_of(id) else { return Ok(none) };
        if !json.contains(NOTE_TOOL) {
            return Ok(none);
        }
        let message = Message::parse(&json);
        if message.tool.as_deref() == Some(SCRIPT_TOOL) {
            return Ok((Change::of_script(&message), false));
        }
        if !is_noting(&message) {
            return Ok(none);
        }
        if message.role == Role::Custom {
            return Ok((Change::of_user(&json).into_iter().collect(), true));
        }
        let mut above = self.above(id)?;
        for _ in 0..RESULTS {
            let Some((id, role)) = above else { break };
            if role == "assistant" {
                let asking = if gone.contains(&id) { None } else { self.json_of(id).ok() };
                let changes = asking.map(|json| Change::called(&Message::parse(&json), &message));
                return Ok((changes.unwrap_or_default(), false));
            }
            above = self.above(id)?;
        }
        Ok(none)
    }

    /// The previous message and its role.
    pub fn above(&self, id: MessageId) -> Result<Option<(MessageId, String)>> {
        self.first(
            "SELECT p.id, p.role FROM messages m JOIN messages p ON p.id = m.parent_id WHERE m.id = ?1",
            [id],
        )
    }
}
