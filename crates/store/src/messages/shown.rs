//! Reads which messages a branch shows, from its entries and an index alone: reading the messages takes ten
//! times as long.

use std::collections::HashMap;

use crate::Messages;
use crate::columns::Queries as _;
use lcm_model::dag::{MessageKind, Visible};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, MessageId};

/// A visible message of a branch.
pub struct Shown {
    /// What the model sees: the message, or an edited rendition.
    pub seen: MessageId,
    pub original: MessageId,
    /// Whether the user said it.
    pub is_request: bool,
}

impl From<&Visible> for Shown {
    fn from(visible: &Visible) -> Self {
        Self { seen: visible.seen.id, original: visible.id, is_request: visible.seen.role == "user" }
    }
}

/// The messages that are not plain, and requests: kind and whether the user said it.
type Unusual = HashMap<MessageId, (MessageKind, bool)>;

impl Messages<'_> {
    /// The visible messages of the branch that ends at `leaf`, as [`lcm_model::dag::visible`] finds them; empty if
    /// the store doesn't know `leaf`.
    ///
    /// # Errors
    /// When the database can't be read, or entries form a cycle.
    pub fn shown(&self, conversation: ConversationId, leaf: &str) -> Result<Vec<Shown>> {
        let mut messages: Vec<(EntryId, MessageId)> = Vec::new();
        // From the entry that is edited to its rendition; the last edit counts.
        let mut edits: HashMap<EntryId, Option<MessageId>> = HashMap::new();
        let mut lowest_and_highest: Option<(MessageId, MessageId)> = None;
        self.walk(
            conversation,
            leaf,
            ENTRY,
            |_| false,
            |row| {
                let message = row.get(3)?;
                if let Some(message) = message {
                    let (lowest, highest) = lowest_and_highest.unwrap_or((message, message));
                    lowest_and_highest = Some((lowest.min(message), highest.max(message)));
                }
                match (row.get::<_, i64>(2)?, message) {
                    (1, Some(message)) => {
                        messages.push((row.get(0)?, message));
                    }
                    (2, rendition) => {
                        let target: String = row.get(4)?;
                        if let Some(target) = self.entry_row(conversation, &target)? {
                            edits.entry(target).or_insert(rendition);
                        }
                    }
                    _ => {}
                }
                Ok(())
            },
        )?;
        let Some((lowest, highest)) = lowest_and_highest else { return Ok(Vec::new()) };
        let unusual = self.unusual(lowest, highest)?;
        let is_plain =
            |id: &MessageId| unusual.get(id).is_none_or(|(kind, _)| *kind == MessageKind::Conversation);
        let shown = messages.into_iter().rev().filter(|(_, original)| is_plain(original));
        Ok(shown
            .filter_map(|(entry, original)| {
                let seen = edits.get(&entry).copied().unwrap_or(Some(original))?;
                let is_request = unusual.get(&seen).is_some_and(|(_, is_request)| *is_request);
                Some(Shown { seen, original, is_request })
            })
            .collect())
    }

    fn unusual(&self, lowest: MessageId, highest: MessageId) -> Result<Unusual> {
        let read = |index| {
            let sql = format!(
                "SELECT id, kind, role = 'user' FROM messages {index}
                  WHERE (kind <> 0 OR role = 'user') AND id BETWEEN ?1 AND ?2"
            );
            self.all::<(_, _, _), Vec<_>>(&sql, [lowest, highest])
        };
        // The index may be damaged.
        let rows = read("INDEXED BY messages_unusual").or_else(|_| read("NOT INDEXED"))?;
        Ok(rows.into_iter().map(|(id, kind, is_request)| (id, (kind, is_request))).collect())
    }
}

/// The columns that [`Messages::shown`] reads, and the parent.
const ENTRY: &str =
    "SELECT id, parent_id, kind, message_id, target FROM entries WHERE id <= ?1 ORDER BY id DESC";
