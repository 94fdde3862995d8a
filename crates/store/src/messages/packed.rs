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

/// The order in which rows are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// The last stored row first.
    NewestFirst,
    /// The first stored row first.
    OldestFirst,
}

impl RowOrder {
    /// The bounds of the rows after `:beyond`, and the sort order.
    pub(crate) fn sql(self) -> (&'static str, &'static str) {
        match self {
            Self::NewestFirst => {
                ("-9223372036854775808 AND coalesce(:beyond - 1, 9223372036854775807)", "DESC")
            }
            Self::OldestFirst => {
                ("coalesce(:beyond + 1, -9223372036854775808) AND 9223372036854775807", "ASC")
            }
        }
    }
}

impl Messages<'_> {
    /// Calls `visit` with the searchable messages that pass `filter`, in order of `turn`, after `beyond` if
    /// given, until it returns `false`.
    pub fn messages_in_turn(
        &self,
        turn: RowOrder,
        beyond: Option<MessageId>,
        filter: &Filter,
        mut visit: impl FnMut(Packed) -> Result<bool>,
    ) -> Result<()> {
        let (bounds, order) = turn.sql();
        let sql = format!(
            "SELECT m.id, m.json, m.codec, m.bytes FROM messages m
              WHERE m.kind = 0 AND m.id BETWEEN {bounds} AND {}
              ORDER BY m.id {order}",
            passes()
        );
        self.each_while(&sql, parameters(filter, &[(":beyond", &beyond)]).as_slice(), |row| {
            visit(Packed { id: row.get("id")?, json: StoredJson::from_row(row)? })
        })
    }
}
