//! How values are stored in columns, and the errors of failed queries.

use rusqlite::{Row, RowIndex};

use crate::dag::MessageKind;
use crate::error::Error;
use crate::ids::Hash;

/// The error of a failed query, with SQLite's cause.
pub(super) fn reading(error: rusqlite::Error) -> Error {
    Error::storing("failed to read the history store", error)
}

/// The error of a failed change, with SQLite's cause.
pub(super) fn writing(error: rusqlite::Error) -> Error {
    Error::storing("failed to write to the history store", error)
}

pub(super) fn kind_to_sql(kind: MessageKind) -> i64 {
    match kind {
        MessageKind::Conversation => 0,
        MessageKind::Private => 1,
        MessageKind::System => 2,
        MessageKind::Edited => 3,
        MessageKind::Purged => 4,
    }
}

pub(super) fn kind_from_sql(kind: i64) -> MessageKind {
    match kind {
        0 => MessageKind::Conversation,
        1 => MessageKind::Private,
        3 => MessageKind::Edited,
        4 => MessageKind::Purged,
        _ => MessageKind::System,
    }
}

pub(super) fn hash_at(row: &Row<'_>, column: &str) -> rusqlite::Result<Hash> {
    row.get::<_, [u8; 32]>(column).map(Hash)
}

/// Upper limit for a message's token count.
const MOST_TOKENS: usize = 1 << 40;

/// A token count, capped so that sums cannot overflow even if the database was made by someone else.
pub(super) fn tokens_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<usize> {
    Ok(row.get::<_, Option<usize>>(column)?.unwrap_or_default().min(MOST_TOKENS))
}
