//! What one write transaction can change, with one handle per topic.

use rusqlite::Transaction;

use super::{DatabaseWriter, MessageWriter, SummaryWriter, SyncedWriter, UpkeepWriter, View};

/// One write transaction. It can read whatever a [`View`] can, including its own changes.
pub struct Batch<'t>(View<'t>);

crate::view::handles!(@ Batch (View));

impl<'t> Batch<'t> {
    pub(super) fn new(tx: &'t Transaction<'_>) -> Self {
        Self(View::new(tx))
    }

    /// Adds messages, entries and sessions.
    pub fn messages(&self) -> MessageWriter<'t> {
        MessageWriter::new(self.connection)
    }

    /// Adds summaries and the data stored with them.
    pub fn summaries(&self) -> SummaryWriter<'t> {
        SummaryWriter::new(self.connection)
    }

    /// Repairs, purges and records backups.
    pub fn upkeep(&self) -> UpkeepWriter<'t> {
        UpkeepWriter::new(self.connection)
    }

    /// Records what a sync target has.
    pub fn synced(&self) -> SyncedWriter<'t> {
        SyncedWriter::new(self.connection)
    }

    /// Records facts about the database itself.
    pub fn database(&self) -> DatabaseWriter<'t> {
        DatabaseWriter::new(self.connection)
    }
}
