//! Adding messages. Nothing here changes or removes one.

use std::ops::Range;

use rusqlite::named_params;

use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{Hash, MessageId};
use crate::model::{Role, parts, passages};
use crate::store::columns::{kind_to_sql, writing};
use crate::store::messages::codec;
use crate::store::{IndexWriter, MessageWriter};

/// A message to store.
pub struct NewMessage<'a> {
    /// Its identity.
    pub lineage: Hash,
    /// The message before it, or the one it is a rendition of.
    pub parent: Option<MessageId>,
    /// Messages above it.
    pub height: i64,
    /// What it is to its conversation.
    pub kind: MessageKind,
    /// Who speaks.
    pub role: &'a Role,
    /// The tool whose result it is.
    pub tool: Option<&'a str>,
    /// Estimated tokens.
    pub tokens: usize,
    /// ms since the epoch.
    pub timestamp: i64,
    /// What is kept, byte for byte.
    pub json: &'a str,
    /// What search looks at; empty for what must not be found.
    pub searchable: &'a str,
    /// Made of `json` and `searchable`.
    pub prepared: &'a Prepared,
}

/// What is stored of a message and follows from it alone, so that it can be made ready on another thread than the writer's.
pub struct Prepared {
    packed: Vec<u8>,
    codec: i64,
    /// Each passage of the searchable text, with its parts.
    passages: Vec<(Range<usize>, String)>,
    /// Is there a line so long that it was cut between two of them?
    has_broken_line: bool,
}

impl Prepared {
    /// Packs a message's JSON, and takes what search looks at to pieces.
    #[must_use]
    pub fn of(json: &str, searchable: &str) -> Self {
        let (packed, codec) = codec::encode(json);
        let ranges = passages(searchable);
        let is_broken_at = |end: usize| end < searchable.len() && !searchable[..end].ends_with('\n');
        Self {
            packed,
            codec,
            has_broken_line: ranges.iter().any(|range| is_broken_at(range.end)),
            passages: ranges.into_iter().map(|range| (range.clone(), parts(&searchable[range]))).collect(),
        }
    }
}

impl MessageWriter<'_> {
    /// Stores a message unless its lineage is there, and says which row it is.
    ///
    /// # Errors
    /// When the database can't be written; so for all methods here.
    pub fn add_message(&self, message: &NewMessage<'_>) -> Result<MessageId> {
        self.add_message_at(None, message)
    }

    /// The same, in the row that it had before it was lost, where that is known.
    pub(in crate::store) fn add_message_at(
        &self,
        row: Option<MessageId>,
        message: &NewMessage<'_>,
    ) -> Result<MessageId> {
        if let Some(id) = self.message_by_lineage(message.lineage)? {
            return Ok(id);
        }
        let Prepared { packed, codec, passages, has_broken_line } = message.prepared;
        let passages = match message.kind {
            MessageKind::Conversation => passages.as_slice(),
            _ => &[],
        };
        let first_passage =
            if passages.is_empty() { None } else { Some(IndexWriter::new(self.connection).next_passage()?) };
        let id = self
            .connection
            .prepare_cached(
                "INSERT INTO messages (id, lineage, parent_id, height, kind, role, tool_name, tokens, timestamp,
                                       json, codec, bytes, first_passage, passages, broken_line)
                 VALUES (:id, :lineage, :parent, :height, :kind, :role, :tool, :tokens, :timestamp,
                         :json, :codec, :bytes, :first_passage, :passages, :broken_line)",
            )
            .and_then(|mut insert| {
                insert.insert(named_params! {
                    ":id": row.map(|row| row.0),
                    ":lineage": message.lineage.0,
                    ":parent": message.parent.map(|parent| parent.0),
                    ":height": message.height,
                    ":kind": kind_to_sql(message.kind),
                    ":role": message.role.as_str(),
                    ":tool": message.tool,
                    ":tokens": message.tokens,
                    ":timestamp": message.timestamp,
                    ":json": packed,
                    ":codec": codec,
                    ":bytes": message.json.len(),
                    ":first_passage": first_passage,
                    ":passages": passages.len(),
                    ":broken_line": (*has_broken_line && first_passage.is_some()).then_some(1),
                })
            })
            .map_err(writing)?;
        for (rowid, (range, parts)) in (first_passage.unwrap_or_default()..).zip(passages) {
            let body = &message.searchable[range.clone()];
            IndexWriter::new(self.connection).add_passage(rowid, body, parts)?;
        }
        Ok(MessageId(id))
    }
}
