//! What keeps a history in order: it is copied, exported and purged here.
//!
//! Each file does the work and returns a value; `commands/` reads the arguments and words the answer.

pub mod backup;
pub mod export;
pub mod purge;
