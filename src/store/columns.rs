//! How values are stored in columns, and the errors of failed queries.

use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Params, Row, RowIndex, ToSql};

use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};

/// The error of a failed query, with SQLite's cause.
pub(super) fn reading(error: rusqlite::Error) -> Error {
    Error::storing("failed to read the history store", error)
}

/// So that `?` does for reading what [`writing`] does for a change.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        reading(error)
    }
}

/// The error of a failed change, with SQLite's cause.
pub(super) fn writing(error: rusqlite::Error) -> Error {
    Error::storing("failed to write to the history store", error)
}

/// Queries by cached statements. Their errors are those of [`reading`] and [`writing`].
pub(super) trait Queries {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>>;

    /// All rows, in order.
    fn all<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C> {
        self.prepared(sql).and_then(|mut query| query.query_map(params, row)?.collect()).map_err(reading)
    }

    /// The first row; an error if there is none.
    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.prepared(sql).and_then(|mut query| query.query_row(params, row)).map_err(reading)
    }

    /// The first row, if there is one.
    fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.prepared(sql).and_then(|mut query| query.query_row(params, row).optional()).map_err(reading)
    }

    /// The value of `key` in `_metadata`.
    fn fact(&self, key: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM _metadata WHERE key = ?1", [key], |row| row.get(0))
    }

    /// Sets that value.
    fn set_fact(&self, key: &str, value: &str) -> Result<()> {
        self.change("INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)", [key, value]).map(drop)
    }

    /// Changes rows, and returns how many.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.prepared(sql).and_then(|mut change| change.execute(params)).map_err(writing)
    }
}

impl Queries for Connection {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.prepare_cached(sql)
    }
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

/// Ids and hashes are stored as what they wrap.
macro_rules! columns {
    ($($name:ident)*) => {$(
        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                FromSql::column_result(value).map(Self)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }
    )*};
}

columns!(ConversationId EntryId MessageId SummaryId Hash);

/// Upper limit for a message's token count.
const MOST_TOKENS: usize = 1 << 40;

/// A token count, capped so that sums cannot overflow even if the database was made by someone else.
pub(super) fn tokens_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<usize> {
    Ok(row.get::<_, Option<usize>>(column)?.unwrap_or_default().min(MOST_TOKENS))
}
