//! Recall of past messages: [`grep`] finds them, [`describe`] maps them, [`Original`] is one of them.
//!
//! Everything here reads a [`View`](lcm_store::View) and returns plain values; the tools and the commands
//! word the answers. Messages that Pi's context edits changed or hid are shown in the original. Private and
//! system messages are never found, named or shown.

pub mod describe;
pub mod grep;

mod cards;
mod original;
mod resolve;
mod times;
mod visibility;

pub use cards::{Card, MessageCard, SessionName, SummaryCard, name_of};
pub use original::{Image, Original, whole};
pub use resolve::{NodeId, resolve};
pub use times::span;
pub use visibility::Visibility;

use lcm_model::ids::ConversationId;

/// Where a question comes from: the session and its current leaf.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The session.
    pub conversation: ConversationId,
    /// Pi's id of the last stored entry of the current branch; `None` before the first entry.
    pub leaf: Option<String>,
    /// Whether the user has since sent a request that is not stored yet.
    pub newer_request: bool,
    /// Whether the question comes from outside: then results of all sessions name each one's.
    pub is_outside: bool,
    /// Pi's id of the tool call that asks; `None` if no call does.
    pub call: Option<String>,
}

impl Scope {
    /// A session at `leaf`, with every request of the user stored.
    #[must_use]
    pub const fn at(conversation: ConversationId, leaf: Option<String>) -> Self {
        Self { conversation, leaf, newer_request: false, is_outside: false, call: None }
    }
}
