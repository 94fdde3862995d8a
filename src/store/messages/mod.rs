//! What was said: entries, branches and sessions, and how a message lies in its row.
//!
//! Nothing here changes or removes a message.

pub(super) mod branch;
pub(super) mod codec;
pub(super) mod export;
pub(super) mod importing;
pub(super) mod notes;
pub(super) mod packed;
pub(super) mod row_ranges;
pub(super) mod sessions;
pub(super) mod tree;
