//! What to purge and what that would remove: the types shared by the plan, the search for copies and the
//! rebase.

use std::collections::{BTreeMap, BTreeSet};

use crate::StoredSession;
use lcm_model::dag::MessageKind;
use lcm_model::ids::{ConversationId, EntryId, MessageId, Nonce, SummaryId};

/// What to purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// One message.
    Message(MessageId),
    /// Everything that a session shows on any branch.
    Session(ConversationId),
    /// Everything before this time, in ms since the epoch.
    Before(i64),
    /// Everything that holds this text, whether or not search finds it.
    Text(String),
    /// Messages that were purged on another machine, with the numbers in their places there.
    Elsewhere(BTreeMap<MessageId, Nonce>),
}

/// What a purge removes, and where else it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgePlan {
    /// The messages, including those that only repeat them.
    pub messages: BTreeSet<MessageId>,
    /// Of these, those that only repeat, name or summarize what is removed.
    pub repeating: BTreeSet<MessageId>,
    /// Those of the others that search ignores, if it does not ignore all.
    pub ignored: BTreeSet<MessageId>,
    /// How many of all change notes.
    pub notes: usize,
    /// Remaining messages that mention a removed short id, which could confirm a guess of the text.
    pub naming: BTreeSet<MessageId>,
    /// The edited renditions of the messages.
    pub renditions: BTreeSet<MessageId>,
    /// The summaries made from them, directly or through other summaries.
    pub summaries: BTreeSet<SummaryId>,
    /// Where a requested text is: how many places of each kind.
    pub places: BTreeMap<&'static str, usize>,
    /// Compactions of others whose lists of files go.
    pub lists: BTreeSet<EntryId>,
    /// Time of the first and the last requested message, in ms.
    pub times: Option<(i64, i64)>,
    /// The sessions that show purged messages.
    pub sessions: Vec<StoredSession>,
}

impl PurgePlan {
    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.summaries.is_empty() && self.lists.is_empty()
    }
}

/// A message without its text.
pub(crate) struct Tombstone {
    pub id: MessageId,
    pub parent: Option<MessageId>,
    pub kind: MessageKind,
    pub is_request: bool,
    /// ms.
    pub timestamp: i64,
}
