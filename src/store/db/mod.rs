//! The database: where its file is, how it is opened and brought to today's format, and the thread that owns the connection.
//!
//! No query about messages or summaries stands here.

pub(super) mod connection;
pub(super) mod migrations;
pub(super) mod opencode;
pub(super) mod project;
pub(super) mod read_only;
pub(super) mod sizes;
pub(super) mod strange;
pub(super) mod trouble;
pub(super) mod worker;

crate::store::view::handles!("What the database says of itself." Database, "Notes of the database itself." DatabaseWriter);
