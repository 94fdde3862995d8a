//! What can be read from the store, with one handle per topic.

use rusqlite::Connection;

use super::{Database, FullTextIndex, Messages, Summaries, Synced, Upkeep};

/// A consistent view of the store. Queries are methods of the handles.
#[derive(Clone, Copy)]
pub struct View<'c> {
    pub(super) connection: &'c Connection,
}

/// Defines a topic's two handles: one for reading in a [`View`], and one for writing in a
/// [`Batch`](super::Batch), which can also read.
macro_rules! handles {
    ($reads:literal $Reader:ident, $writes:literal $Writer:ident) => {
        #[doc = $reads]
        #[derive(Clone, Copy)]
        pub struct $Reader<'c> {
            connection: &'c rusqlite::Connection,
        }

        #[doc = $writes]
        pub struct $Writer<'t>($Reader<'t>);

        impl<'c> $Reader<'c> {
            pub(crate) fn new(connection: &'c rusqlite::Connection) -> Self {
                Self { connection }
            }
        }

        impl<'t> $Writer<'t> {
            /// `connection` is in a write transaction.
            pub(crate) fn new(connection: &'t rusqlite::Connection) -> Self {
                Self($Reader::new(connection))
            }
        }

        impl<'t> std::ops::Deref for $Writer<'t> {
            type Target = $Reader<'t>;
            fn deref(&self) -> &$Reader<'t> {
                &self.0
            }
        }
    };
}
pub(super) use handles;

impl<'c> View<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }

    /// Messages, entries and sessions.
    pub fn messages(&self) -> Messages<'c> {
        Messages::new(self.connection)
    }

    /// Summaries, and claims on those in progress.
    pub fn summaries(&self) -> Summaries<'c> {
        Summaries::new(self.connection)
    }

    /// The full-text index.
    pub fn index(&self) -> FullTextIndex<'c> {
        FullTextIndex::new(self.connection)
    }

    /// What audits, backups and purges read.
    pub fn upkeep(&self) -> Upkeep<'c> {
        Upkeep::new(self.connection)
    }

    /// What a sync target has of this history.
    pub fn synced(&self) -> Synced<'c> {
        Synced::new(self.connection)
    }

    /// Facts about the database itself.
    pub fn database(&self) -> Database<'c> {
        Database::new(self.connection)
    }
}
