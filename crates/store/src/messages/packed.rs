//! Compressed messages, which any thread can decompress.

use super::codec;
use super::sessions::{parameters, passes};
use super::stored::StoredJson;
use crate::columns::{FromRow as _, Queries as _};
use crate::{Filter, Messages};
use lcm_model::error::Result;
use lcm_model::ids::MessageId;

/// A compressed message.
pub struct Packed {
    pub id: MessageId,
    json: StoredJson,
}

impl Packed {
    /// Its compressed size in bytes.
    pub fn size(&self) -> usize {
        self.json.stored.len()
    }

    /// Its JSON, if `is_wanted` by its bytes: to check that they are text takes as long as most searches in them.
    pub fn unpack_if(self, is_wanted: impl FnOnce(&[u8]) -> bool) -> Result<Option<String>> {
        let StoredJson { stored, codec, bytes } = self.json;
        let json = codec::decoded(stored.into(), codec, bytes)?;
        is_wanted(&json).then(|| codec::text(json)).transpose()
    }
}

/// The order in which messages and summaries are visited: by time, and those of one time as they were stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOrder {
    /// The last said first.
    NewestFirst,
    /// The first said first.
    OldestFirst,
}

/// Where a visit continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue<Id> {
    /// With what comes after this one.
    After(Id),
    /// With this one.
    At(Id),
}

impl TimeOrder {
    /// The condition that a row of `table` comes where a visit continues, at `:row`, and the sort order; its time is in
    /// the column `time`.
    pub(crate) fn sql<Id>(self, from: Option<&Continue<Id>>, table: &str, time: &str) -> (String, String) {
        let (after, order) = match self {
            Self::NewestFirst => ("<", "DESC"),
            Self::OldestFirst => (">", "ASC"),
        };
        let or_at = match from {
            None => return (":row IS NULL".into(), format!("{time} {order}, id {order}")),
            Some(Continue::After(_)) => "",
            Some(Continue::At(_)) => "=",
        };
        (
            format!("({time}, id) {after}{or_at} (SELECT {time}, id FROM {table} WHERE id = :row)"),
            format!("{time} {order}, id {order}"),
        )
    }
}

impl<Id> Continue<Id> {
    /// The row.
    pub fn row(self) -> Id {
        let (Self::After(row) | Self::At(row)) = self;
        row
    }
}

impl Messages<'_> {
    /// Calls `visit` with the searchable messages that pass `filter`, in order of time, `from` where it continues, until
    /// it returns `false`.
    pub fn messages_in_turn(
        &self,
        turn: TimeOrder,
        from: Option<Continue<MessageId>>,
        filter: &Filter,
        mut visit: impl FnMut(Packed) -> Result<bool>,
    ) -> Result<()> {
        let (comes, order) = turn.sql(from.as_ref(), "messages", "timestamp");
        // Sorting all rows would read them before the first is visited.
        let sql = format!(
            "SELECT id, json, codec, bytes FROM messages m INDEXED BY messages_by_time
              WHERE kind = 0 AND {comes} AND {}
              ORDER BY {order}",
            passes()
        );
        let row = from.map(Continue::row);
        self.each_while(&sql, parameters(filter, &[(":row", &row)]).as_slice(), |row| {
            visit(Packed { id: row.get("id")?, json: StoredJson::from_row(row)? })
        })
    }
}
