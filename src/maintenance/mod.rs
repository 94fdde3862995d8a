//! Maintains a history: copies, exports and purges.
//!
//! Each file does the work and returns a value; `commands/` parses the arguments and words the answer.

pub mod backup;
pub mod export;
pub mod purge;
