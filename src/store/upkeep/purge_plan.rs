//! What a purge is asked for, and what it would remove: the types that planning, the search for copies and the rebase share.

use std::collections::BTreeSet;

use crate::dag::MessageKind;
use crate::ids::{ConversationId, MessageId, SummaryId};

/// What is to be purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// One message.
    Message(MessageId),
    /// Everything that a session shows on any branch.
    Session(ConversationId),
    /// Everything that was said before this, ms since the epoch.
    Before(i64),
}

/// What a purge removes, and where else it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgePlan {
    /// The messages, with those that only repeat them.
    pub messages: BTreeSet<MessageId>,
    /// Of these, answers of our tools that repeat or name what is removed.
    pub answers: BTreeSet<MessageId>,
    /// Of these, our accounts of branches that were left, where they carry a summary that is removed.
    pub accounts: BTreeSet<MessageId>,
    /// Messages that stay and name something by a short id that it loses, from which a guess could be confirmed.
    pub naming: BTreeSet<MessageId>,
    /// What is shown of them in place of the original, since an edit.
    pub renditions: BTreeSet<MessageId>,
    /// The summaries that were made from them, and those that were made from these.
    pub summaries: BTreeSet<SummaryId>,
    /// Time of the first of the messages that were asked for, and of the last, ms.
    pub times: Option<(i64, i64)>,
    /// The sessions that show any of them.
    pub sessions: Vec<PurgedSession>,
}

/// A session that shows what is purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedSession {
    /// Its row.
    pub conversation: ConversationId,
    /// Pi's id.
    pub session_id: String,
    /// Its file, where it has one.
    pub file: Option<String>,
}

/// A message without its text.
pub(in crate::store) struct Tombstone {
    pub id: i64,
    pub parent: Option<i64>,
    pub kind: MessageKind,
    pub is_request: bool,
}
