//! The store: one SQLite database per project. All SQL is here.
//!
//! One thread writes, in short `BEGIN IMMEDIATE` transactions; readers have their own connections. No
//! connection leaves this folder: callers pass closures over a [`View`] (to read) or a [`Batch`] (one write
//! transaction), and can't hold either across an `await`. Every method fails when the database can't be read or
//! written; `# Errors` lists what else can go wrong.

pub mod branch;
mod columns;
mod db;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzzing;
mod index;
mod messages;
mod summaries;
mod synced;
pub mod tasks;
#[cfg(test)]
mod tests;
mod upkeep;
mod view;

pub use db::opencode::{OpenCode, OpenCodePlace};
pub use db::opening::{joinable, replace};
pub use db::project::{database_of, merge_log, project_of, real_path};
pub use db::read_only::{ReadOnly, places};
pub use db::sizes::Sizes;
pub use db::worker::Store;
pub use db::{Database, DatabaseWriter};
pub use index::FullTextIndex;
pub use index::search::{Filter, Passages};
pub use index::vocabulary::Pages;
pub use messages::adding::{NewMessage, Prepared};
pub use messages::codec::reading;
#[cfg(any(test, feature = "testing"))]
pub use messages::codec::unseal;
pub use messages::counts::LastRows;
pub use messages::entries::{END, Head, NewEntry, Version, is_current, own_id, repeated_id};
pub use messages::export::{ExportedEntry, Shows};
pub use messages::packed::{Continue, Packed, TimeOrder};
pub use messages::row_ranges::{Around, RowRanges};
pub use messages::sessions::{SessionFacts, StoredSession};
pub use messages::shown::Shown;
pub use messages::stored::StoredMessage;
pub use messages::{MessageWriter, Messages};
pub use summaries::adding::{NewSummary, PreparedText};
pub use summaries::counts::{DepthCount, Totals};
pub use summaries::records::StoredSummary;
pub use summaries::{Summaries, SummaryWriter};
pub use synced::{Machine, Synced, SyncedEntry, SyncedWriter};
pub use upkeep::audit::AuditedMessage;
pub use upkeep::backup::{BackupFacts, backup_name};
pub use upkeep::old::{OldEntries, OldStore, PurgedEntries, RECOVERED, old_key};
pub use upkeep::purge::{VersionKey, is_anywhere};
pub use upkeep::purge_plan::{Purge, PurgePlan};
pub use upkeep::purged::{PurgedTexts, PurgedVersions};
pub use upkeep::{Upkeep, UpkeepWriter};
pub use view::{Batch, View};
