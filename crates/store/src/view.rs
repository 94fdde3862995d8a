//! What can be read from the store and what one write transaction can change, with one handle per topic.

use rusqlite::{CachedStatement, Connection, Transaction};

use super::columns::Queries;

/// A consistent view of the store. Queries are methods of the handles.
#[derive(Clone, Copy)]
pub struct View<'c> {
    pub(super) connection: &'c Connection,
}

/// One write transaction. It can read whatever a [`View`] can, including its own changes.
pub struct Batch<'t>(View<'t>);

/// Defines a topic with its two handles: one for reading in a [`View`], and one for writing in a [`Batch`], which can
/// also read. Each can reach the other topics.
macro_rules! handles {
    ($topic:ident: $reads:literal $Reader:ident $(, $writes:literal $Writer:ident)?) => {
        #[doc = $reads]
        #[derive(Clone, Copy)]
        pub struct $Reader<'c>(crate::View<'c>);

        crate::view::handles!(@ $Reader (crate::View));

        impl<'c> $Reader<'c> {
            pub(crate) fn new(connection: &'c rusqlite::Connection) -> Self {
                Self(crate::View::new(connection))
            }
        }

        impl<'c> crate::View<'c> {
            #[doc = $reads]
            pub fn $topic(&self) -> $Reader<'c> {
                $Reader::new(self.connection)
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

            impl<'t> crate::Batch<'t> {
                #[doc = $writes]
                pub fn $topic(&self) -> $Writer<'t> {
                    $Writer::new(self.connection)
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

handles!(@ Batch (View));

impl Queries for View<'_> {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepared(sql)
    }
}

impl<'c> View<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection }
    }
}

impl<'t> Batch<'t> {
    pub(super) fn new(tx: &'t Transaction<'_>) -> Self {
        Self(View::new(tx))
    }
}
