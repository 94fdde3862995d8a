//! What can be read from the store, with one handle per topic.

use rusqlite::{CachedStatement, Connection};

use super::columns::Queries;
use super::{Database, FullTextIndex, Messages, Summaries, Synced, Upkeep};

/// A consistent view of the store. Queries are methods of the handles.
#[derive(Clone, Copy)]
pub struct View<'c> {
    pub(super) connection: &'c Connection,
}

/// Defines a topic's two handles: one for reading in a [`View`], and one for writing in a
/// [`Batch`](super::Batch), which can also read. Each can reach the other topics.
macro_rules! handles {
    ($reads:literal $Reader:ident $(, $writes:literal $Writer:ident)?) => {
        #[doc = $reads]
        #[derive(Clone, Copy)]
        pub struct $Reader<'c>(crate::View<'c>);

        crate::view::handles!(@ $Reader (crate::View));

        impl<'c> $Reader<'c> {
            pub(crate) fn new(connection: &'c rusqlite::Connection) -> Self {
                Self(crate::View::new(connection))
            }
        }

        $(
            #[doc = $writes]
            pub struct $Writer<'t>($Reader<'t>);

            crate::view::handles!(@ $Writer ($Reader));

            impl<'t> $Writer<'t> {
                /// `connection` is in a write transaction.
                pub(crate) fn new(connection: &'t rusqlite::Connection) -> Self {
                    Self($Reader::new(connection))
                }
            }
        )?
    };
    (@ $Handle:ident ($($Target:tt)+)) => {
        impl<'c> std::ops::Deref for $Handle<'c> {
            type Target = $($Target)+<'c>;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    };
}
pub(super) use handles;

impl Queries for View<'_> {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepared(sql)
    }
}

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
