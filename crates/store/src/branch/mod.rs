//! Branches as compaction, recall, the doctor and the viewer read them: what the model sees, and the summaries
//! that cover it. A session keeps its branch in memory, so that only what is new is read again.
//!
//! What a summary says, and what to do about a branch, belongs to the modules above.

mod cover;
mod memory;

pub use cover::Cover;
pub use memory::{Known, Memory, Summaries};
