//! From Pi's session tree to disk.
//!
//! The store is a fold over session entries: handing an entry over twice changes nothing, and the same entries give the
//! same rows whichever way they came, so start, resume, fork, `/tree`, a crash and an import need no cases of their own.

pub mod adopt;
pub mod export;
pub mod file;
mod finding;
mod fold;
pub mod foreign;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
pub mod import;
mod order;
mod persistor;
mod restore;
mod salvage;
mod stringify;
pub mod viewer;

pub use fold::{Handover, PreparedHandover, restore_carried, restore_lost};
pub use persistor::{Persistor, PiSession};
