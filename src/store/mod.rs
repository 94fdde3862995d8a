//! The store: one SQLite database per project, and the only home of SQL.
//!
//! One thread writes, in short `BEGIN IMMEDIATE` transactions; readers have connections of their own. Nothing outside
//! this folder sees a connection: work is handed in as a closure over a [`View`] (reading) or a [`Batch`] (one writing
//! transaction), and neither can be held across an `await`.

mod adopt;
mod audit;
mod backup;
mod batch;
mod beside;
mod branch;
mod calibration;
mod claims;
mod codec;
mod connection;
mod copies;
mod export;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod importing;
mod migrations;
mod notes;
mod packed;
mod project;
mod purge;
mod purged;
mod read_only;
mod rebase;
mod repair;
mod row_ranges;
mod salvage;
mod search;
mod sessions;
mod sizes;
mod stemming;
mod strange;
mod summaries;
mod tree;
mod trouble;
mod vacuum;
mod view;
mod vocabulary;
mod worker;

pub use adopt::{OldNote, OldSummary, OldTimes};
pub use audit::{
    AuditedConversation, AuditedEdge, AuditedEntry, AuditedMessage, AuditedSummary, Dangling, Facts,
    FileFacts, Horizon, Index, Source,
};
pub use backup::{BackupFacts, backup_name};
pub use batch::{Batch, EntryRole, NewEntry, NewMessage, NewSummary, Prepared, PreparedText};
#[cfg(test)]
pub(crate) use codec::unseal;
pub use connection::Place;
pub use export::{ExportedEntry, ExportedSession, Shows};
pub use packed::{Packed, Turn};
pub use project::{History, histories, history_before, is_open_elsewhere, project_of, real_path};
pub use purge::{Purge, PurgePlan, PurgedSession};
pub use purged::beside_purged;
pub use read_only::{Apart, places};
pub use repair::{Orphan, Text};
pub use row_ranges::{Around, RowRanges};
pub use salvage::{OldSession, OldStore};
pub use search::{Filter, Hit, SummaryHit};
pub use sessions::SessionFacts;
pub use sizes::Sizes;
pub use stemming::{Kept, holds};
pub use summaries::{DepthCount, Edges, StoredSummary};
pub use tree::Tree;
pub use view::{Conversation, StoredMessage, Totals, View};
pub use vocabulary::Pages;
pub use worker::Store;
