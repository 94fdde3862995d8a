//! Adds messages. Nothing here changes or removes one.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::{ErrorCode, params};

use crate::MessageWriter;
use crate::columns::{Queries as _, writing};
use crate::messages::codec;
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{Hash, MessageId};
use lcm_model::{Indexed, Role, agent_of, passages};

/// A message to store.
pub struct NewMessage<'a> {
    pub lineage: Hash,
    /// The message before it, or the original of which it is a rendition.
    pub parent: Option<MessageId>,
    /// The number of messages above it.
    pub height: i64,
    pub kind: MessageKind,
    pub role: &'a Role,
    pub tool: Option<&'a str>,
    pub tokens: usize,
    pub timestamp: i64,
    /// The stored JSON, byte for byte; not needed if it is packed.
    pub json: &'a str,
    /// The text to index; empty if search must not find it.
    pub searchable: &'a str,
    /// Made from `json` and `searchable`.
    pub prepared: &'a Prepared,
}

/// The stored form of a message. It depends on the message alone, so that another thread than the writer's
/// can prepare it.
pub struct Prepared {
    /// The packed JSON; `None` if it is stored as it is.
    packed: Option<Vec<u8>>,
    codec: i64,
    /// The length of the JSON.
    bytes: usize,
    /// How many passages the searchable text has.
    count: usize,
    /// The first ones, up to [`INDEXED`], with what the index gets of them.
    indexed: Vec<(Range<usize>, Indexed)>,
}

/// How much of a text is spelled for the index in advance, in bytes: in one piece, all of it takes as much memory again.
const INDEXED: usize = 8 * 1024 * 1024;

impl Prepared {
    /// Compresses a message's JSON, and splits its searchable text into passages. Other agents' messages come by
    /// the hundred megabytes, and compressing them took most of the time.
    pub fn of(json: &str, searchable: &str) -> Self {
        let pack = if agent_of(json).is_some() { codec::encode_quickly } else { codec::encode };
        let (packed, codec) = pack(json);
        let count = passages(searchable).len();
        let indexed = Indexed::each(searchable).take_while(|(range, _)| range.end <= INDEXED).collect();
        Self { packed, codec, bytes: json.len(), count, indexed }
    }

    /// Whether the message's JSON is not needed to store it.
    pub fn is_packed(&self) -> bool {
        self.packed.is_some()
    }
}

impl MessageWriter<'_> {
    /// Stores a message unless its lineage exists, and returns its row. [`MessageWriter::count_added`] counts it.
    pub fn add_message(&self, message: &NewMessage<'_>) -> Result<MessageId> {
        let Prepared { packed, codec, bytes, count, indexed } = message.prepared;
        let passages = if message.kind == MessageKind::Conversation { *count } else { 0 };
        let first_passage = if passages == 0 { None } else { Some(self.index().last_passage()? + 1) };
        let mut insert = self.prepared(
            "INSERT INTO messages (lineage, parent_id, height, kind, role, tool_name, tokens, timestamp,
                                   json, codec, bytes, first_passage, passages)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?;
        let id = match insert.insert(params![
            message.lineage,
            message.parent,
            message.height,
            message.kind,
            message.role.as_str(),
            message.tool,
            message.tokens,
            message.timestamp,
            packed.as_deref().unwrap_or(message.json.as_bytes()),
            codec,
            bytes,
            first_passage,
            passages,
        ]) {
            Ok(id) => id,
            // Few are stored already: looking for each first costs more.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                let sql = "SELECT id FROM messages
                            WHERE parent_id IS ?1 AND substr(lineage, 1, 16) = substr(?2, 1, 16)
                              AND lineage = ?2";
                let known = self.first(sql, params![message.parent, message.lineage])?;
                return known.ok_or_else(|| writing(error));
            }
            Err(error) => return Err(writing(error)),
        };
        if let Some(first) = first_passage {
            let is_complete = indexed.len() == passages;
            let rest = (!is_complete).then(|| Indexed::each(message.searchable).skip(indexed.len()));
            let rest = rest.into_iter().flatten().map(Cow::Owned);
            for (row, passage) in (first..).zip(indexed.iter().map(Cow::Borrowed).chain(rest)) {
                let (range, Indexed { body, parts }) = passage.as_ref();
                let body = body.as_deref().unwrap_or(&message.searchable[range.clone()]);
                let sql = "INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)";
                self.change(sql, params![row, body, parts])?;
            }
        }
        Ok(MessageId(id))
    }
}
