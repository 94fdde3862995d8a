//! How values are stored in columns, and the errors of failed queries.

use rusqlite::types::FromSql;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Params, Row, RowIndex};

use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};

/// The error of a failed change, with SQLite's cause.
pub(super) fn writing(error: rusqlite::Error) -> Error {
    Error::storing("failed to write to the history store", error)
}

/// Queries by cached statements. A failed change has the error of [`writing`].
pub(super) trait Queries {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>>;

    /// All rows, in order.
    fn all<T: FromRow, C: FromIterator<T>>(&self, sql: &str, params: impl Params) -> Result<C> {
        let mut query = self.prepared(sql)?;
        let rows = query.query_map(params, T::from_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls `visit` with each row, in order.
    fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.each_while(sql, params, |row| visit(row).map(|()| true))
    }

    /// Calls `visit` with each row, in order, until it returns `false`.
    fn each_while(
        &self,
        sql: &str,
        params: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut query = self.prepared(sql)?;
        let mut rows = query.query(params)?;
        while let Some(row) = rows.next()? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }

    /// The first row; an error if there is none.
    fn one<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<T> {
        Ok(self.prepared(sql)?.query_row(params, T::from_row)?)
    }

    /// The first row, if there is one.
    fn first<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<Option<T>> {
        Ok(self.prepared(sql)?.query_row(params, T::from_row).optional()?)
    }

    /// The value of `key` in `_metadata`.
    fn fact(&self, key: &str) -> Result<Option<String>> {
        self.first("SELECT value FROM _metadata WHERE key = ?1", [key])
    }

    /// Sets that value.
    fn set_fact(&self, key: &str, value: &str) -> Result<()> {
        self.change("INSERT OR REPLACE INTO _metadata (key, value) VALUES (?1, ?2)", [key, value])
    }

    /// Sets that value unless there is one. Whether there was none.
    fn add_fact(&self, key: &str, value: &str) -> Result<bool> {
        self.changes_any("INSERT OR IGNORE INTO _metadata (key, value) VALUES (?1, ?2)", [key, value])
    }

    /// Changes rows.
    fn change(&self, sql: &str, params: impl Params) -> Result<()> {
        self.changes_any(sql, params).map(drop)
    }

    /// Changes rows. Whether there are any.
    fn changes_any(&self, sql: &str, params: impl Params) -> Result<bool> {
        self.prepared(sql).and_then(|mut change| change.execute(params)).map(|rows| rows > 0).map_err(writing)
    }

    /// Adds a row, and returns its number.
    fn insert(&self, sql: &str, params: impl Params) -> Result<i64> {
        self.prepared(sql).and_then(|mut insert| insert.insert(params)).map_err(writing)
    }
}

impl Queries for Connection {
    fn prepared(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.prepare_cached(sql)
    }
}

/// What a row is read as: a column, several of them in order, or a struct.
pub(super) trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self>;
}

impl FromRow for () {
    fn from_row(_: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(())
    }
}

impl<T: FromSql> FromRow for Option<T> {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        row.get(0)
    }
}

macro_rules! column {
    ($($Type:ty),*) => {$(
        impl FromRow for $Type {
            fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
                row.get(0)
            }
        }
    )*};
}

column!(i64, u64, usize, bool, String, Vec<u8>, ConversationId, EntryId, MessageId, SummaryId, Hash);

macro_rules! several_columns {
    ($($($T:ident)*;)*) => {$(
        impl<$($T: FromSql),*> FromRow for ($($T),*) {
            fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
                row.try_into()
            }
        }
    )*};
}

several_columns!(A B; A B C; A B C D; A B C D E; A B C D E F;);

/// Reads a struct from the columns with the names of its fields, or with the given names.
macro_rules! from_row {
    ($Type:ident { $($field:ident $(= $column:literal)?),* $(,)? }) => {
        impl crate::columns::FromRow for $Type {
            fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
                Ok(Self { $($field: row.get(from_row!(@ $field $($column)?))?),* })
            }
        }
    };
    (@ $field:ident) => { stringify!($field) };
    (@ $field:ident $column:literal) => { $column };
}
pub(super) use from_row;

/// Upper limit for a message's token count.
pub(super) const MOST_TOKENS: usize = 1 << 40;

/// A token count, capped so that sums cannot overflow even if the database was made by someone else.
pub(super) fn tokens_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<usize> {
    Ok(row.get::<_, Option<usize>>(column)?.unwrap_or_default().min(MOST_TOKENS))
}
