//! The database: where its file is, how it is opened, and the thread that owns the connection.
//!
//! Queries about messages and summaries are elsewhere.

pub(super) mod connection;
pub(super) mod opencode;
pub(super) mod opening;
pub(super) mod project;
pub(super) mod read_only;
pub(super) mod schema;
pub(super) mod sizes;
pub(super) mod trouble;
pub(super) mod untrusted;
pub(super) mod worker;

crate::view::handles!(database: "Facts about the database itself." Database, "Records facts about the database itself." DatabaseWriter);
