//! What can be read: one handle for each room.

use rusqlite::Connection;

use super::{Database, FullTextIndex, Messages, Summaries, Upkeep};

/// A consistent view of the store. The queries are methods of the rooms' handles.
#[derive(Clone, Copy)]
pub struct View<'c> {
    pub(super) connection: &'c Connection,
}

/// Defines the two handles of a room: what a [`View`] reads there, and what a [`Batch`](super::Batch), which reads the same, changes.
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
            pub(in crate::store) fn new(connection: &'c rusqlite::Connection) -> Self {
                Self { connection }
            }
        }

        impl<'t> $Writer<'t> {
            /// `connection` is in a writing transaction.
            pub(in crate::store) fn new(connection: &'t rusqlite::Connection) -> Self {
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

    /// What was said, and in which session.
    #[must_use]
    pub fn messages(&self) -> Messages<'c> {
        Messages::new(self.connection)
    }

    /// Summaries, and who is about to make which.
    #[must_use]
    pub fn summaries(&self) -> Summaries<'c> {
        Summaries::new(self.connection)
    }

    /// The full-text index.
    #[must_use]
    pub fn index(&self) -> FullTextIndex<'c> {
        FullTextIndex::new(self.connection)
    }

    /// What audits, backups and purges look at.
    #[must_use]
    pub fn upkeep(&self) -> Upkeep<'c> {
        Upkeep::new(self.connection)
    }

    /// What the database says of itself.
    #[must_use]
    pub fn database(&self) -> Database<'c> {
        Database::new(self.connection)
    }
}
