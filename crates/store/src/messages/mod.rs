//! Messages, entries, branches and sessions, and the encoding of a message in its row.
//!
//! Nothing here changes or removes a message.

pub(super) mod adding;
pub(super) mod branch;
pub(super) mod codec;
pub(super) mod counts;
pub(super) mod entries;
pub(super) mod export;
pub(super) mod importing;
pub(super) mod notes;
pub(super) mod packed;
pub(super) mod row_ranges;
pub(super) mod sessions;
pub(super) mod shown;
pub(super) mod stored;
pub(super) mod tree;

crate::view::handles!(messages: "Messages, entries and sessions." Messages, "Adds messages, entries and sessions." MessageWriter);
