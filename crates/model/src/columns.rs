//! Ids and kinds as columns of SQLite, as `rusqlite` reads and writes them. Only the store turns this on.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};

use crate::dag::MessageKind;
use crate::error::Error;
use crate::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};

/// So that `?` turns a failed query into an error of ours, with SQLite's cause.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::storing("failed to read the history store", error)
    }
}

/// The kinds, at their numbers in `messages`.
const KINDS: [MessageKind; 5] = [
    MessageKind::Conversation,
    MessageKind::Private,
    MessageKind::System,
    MessageKind::Edited,
    MessageKind::Purged,
];

impl FromSql for MessageKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let kind = usize::try_from(i64::column_result(value)?).ok().and_then(|kind| KINDS.get(kind));
        Ok(kind.copied().unwrap_or(Self::System))
    }
}

impl ToSql for MessageKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok((*self as i64).into())
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
