//! Stores Pi's session tree.
//!
//! The store follows from the entries alone: handing over an entry twice changes nothing, and the same
//! entries give the same rows in whatever way they arrive. So start, resume, fork, `/tree`, crashes and
//! imports need no special cases.

mod damage;
mod edited;
pub mod export;
pub mod file;
mod finding;
pub mod foreign;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzzing;
pub mod import;
mod old_sessions;
mod order;
mod persistor;
mod reading;
mod restore;
mod storing;
mod stringify;
pub mod viewer;

pub use import::differing;
pub use old_sessions::{Rebuilding, SharedOldStore, take_over};
pub use persistor::{Persistor, PiSession};
pub use restore::{SummaryOrigin, restore_named};
pub use storing::{Handover, PreparedHandover};
