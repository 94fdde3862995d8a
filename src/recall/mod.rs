//! Getting back what was said: [`grep`] finds it, [`describe`] maps it, [`expand`] recovers it.
//!
//! Everything here reads a [`View`](crate::store::View) and answers with plain values; how an answer is worded is the
//! business of the tools and the commands. What Pi's context edits changed or hid is shown as it was said. Private and
//! system messages are not found, named or shown.

pub mod describe;
pub mod expand;
pub mod grep;

mod branch;
mod cards;
mod page;
mod resolve;
mod times;
mod visibility;

pub use cards::{MessageCard, SummaryCard};
pub use page::Slice;
pub use times::point_in_time;

use crate::ids::ConversationId;

/// Where a question is asked from: the session and its current leaf.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The session.
    pub conversation: ConversationId,
    /// Pi's id of the last stored entry of the current branch; none before the first entry.
    pub leaf: Option<String>,
    /// Whether the user has sent a request since then, which is not stored yet.
    pub newer_request: bool,
}

impl Scope {
    /// A session at `leaf`, with everything the user has sent stored.
    #[must_use]
    pub const fn at(conversation: ConversationId, leaf: Option<String>) -> Self {
        Self { conversation, leaf, newer_request: false }
    }
}
