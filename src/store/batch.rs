//! What one writing transaction can add. There is no method here that changes or removes a message.

use std::ops::{Deref, Range};

use rusqlite::{Transaction, named_params, params};
use serde_json::value::RawValue;

use super::messages::codec;
use super::summaries::beside::Beside;
use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};
use crate::model::{Quote, Role, State, SummaryRecord, parts, passages};
use crate::store::View;
use crate::store::view::{kind_to_sql, reading};

/// One writing transaction; what a [`View`] can read, it can read too, its own additions included.
pub struct Batch<'t> {
    view: View<'t>,
}

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

/// What is stored of a summary's text, made ready likewise.
#[derive(Clone, Debug)]
pub struct PreparedText {
    /// None where it is no smaller packed.
    packed: Option<Vec<u8>>,
    codec: i64,
    parts: String,
}

impl PreparedText {
    /// Packs a text, and takes it to pieces for the index.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::with(codec::encode(text), text)
    }

    /// The same for a text that is needed at once and made anew later: more quickly, and packed less well.
    #[must_use]
    pub fn at_once(text: &str) -> Self {
        Self::with(codec::encode_quickly(text), text)
    }

    fn with((packed, codec): (Vec<u8>, i64), text: &str) -> Self {
        Self { packed: (packed.len() < text.len()).then_some(packed), codec, parts: parts(text) }
    }
}

/// An entry to store.
pub struct NewEntry<'a> {
    /// Pi's id.
    pub entry_id: &'a str,
    /// The entry above.
    pub parent: Option<EntryId>,
    /// What it does.
    pub role: EntryRole<'a>,
    /// The last message at or above it.
    pub head: Option<MessageId>,
}

/// What an entry does.
pub enum EntryRole<'a> {
    /// It only links.
    Link,
    /// It shows a message.
    Message(MessageId),
    /// It replaces (or, with `None`, hides) what another entry shows.
    Edit {
        /// Pi's id of that entry.
        target: &'a str,
        /// The rendition.
        rendition: Option<MessageId>,
    },
    /// We show a stub in place of what another entry shows.
    Stub {
        /// Pi's id of that entry.
        target: &'a str,
        /// Estimated tokens of the stub; 0 where nothing is shown.
        tokens: usize,
        /// So many hiding edits right below it are ours too.
        hides: usize,
    },
    /// A compaction.
    Compaction,
}

/// A summary to store, with its edges.
#[derive(Clone, Debug)]
pub struct NewSummary {
    /// Its identity.
    pub hash: Hash,
    /// 0 for a leaf.
    pub depth: u32,
    /// The text.
    pub text: String,
    /// Estimated tokens of the text.
    pub tokens: usize,
    /// How it came about.
    pub state: State,
    /// `provider/model`, none for an extract.
    pub model: Option<String>,
    /// Version of its prompts.
    pub prompt_version: u32,
    /// JSON of what its calls used.
    pub usage: Option<String>,
    /// ms since the epoch.
    pub created_at: i64,
    /// What its messages say word for word.
    pub quotes: Vec<Quote>,
    /// What it was made from.
    pub sources: crate::dag::Sources,
    /// Made of `text`.
    pub prepared: PreparedText,
}

impl NewSummary {
    /// The identity that it has if it was made from what is called so.
    pub(super) fn identity(&self, sources: &[Hash]) -> Hash {
        let Self { depth, state, prompt_version, text, quotes, .. } = self;
        SummaryRecord::identity(*depth, *state, *prompt_version, text, quotes, sources)
    }
}

fn writing(error: rusqlite::Error) -> Error {
    Error::storing("failed to write to the history store", error)
}

impl<'t> Deref for Batch<'t> {
    type Target = View<'t>;
    fn deref(&self) -> &View<'t> {
        &self.view
    }
}

impl<'t> Batch<'t> {
    pub(super) fn new(tx: &'t Transaction<'_>) -> Self {
        Self { view: View::new(tx) }
    }

    /// The row of a session, made if it is new; its file and the time it was seen are brought up to date.
    ///
    /// # Errors
    /// When the database can't be written; so for all methods here.
    pub fn conversation_row(
        &self,
        session_id: &str,
        file: Option<&str>,
        parent_session: Option<&str>,
        now: i64,
    ) -> Result<ConversationId> {
        self.connection
            .prepare_cached(
                "INSERT INTO conversations (session_id, file, parent_session, started_at, seen_at)
                 VALUES (:session_id, :file, :parent_session, :now, :now)
                 ON CONFLICT (session_id) DO UPDATE
                 SET file = coalesce(excluded.file, file), seen_at = excluded.seen_at
                 RETURNING id",
            )
            .and_then(|mut insert| {
                insert.query_row(
                    named_params! {
                        ":session_id": session_id, ":file": file, ":parent_session": parent_session, ":now": now
                    },
                    |row| row.get(0).map(ConversationId),
                )
            })
            .map_err(writing)
    }

    /// Stores a message unless its lineage is there, and says which row it is.
    pub fn add_message(&self, message: &NewMessage<'_>) -> Result<MessageId> {
        self.add_message_at(None, message)
    }

    /// The same, in the row that it had before it was lost, where that is known.
    pub(super) fn add_message_at(
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
        let first_passage = if passages.is_empty() { None } else { Some(self.next_passage()?) };
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
            self.index_with(
                "INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)",
                rowid,
                body,
                parts,
            )?;
        }
        Ok(MessageId(id))
    }

    /// Stores an entry unless it is there, and says which row it is.
    pub fn add_entry(&self, conversation: ConversationId, entry: &NewEntry<'_>) -> Result<EntryId> {
        let (kind, message, target) = match &entry.role {
            EntryRole::Link => (0, None, None),
            EntryRole::Message(message) => (1, Some(*message), None),
            EntryRole::Edit { target, rendition } => (2, *rendition, Some(*target)),
            EntryRole::Compaction => (3, None, None),
            EntryRole::Stub { target, .. } => (4, None, Some(*target)),
        };
        let (stub_tokens, hides) = match &entry.role {
            EntryRole::Stub { tokens, hides, .. } => (Some(tokens), Some(hides).filter(|hides| **hides > 0)),
            _ => (None, None),
        };
        self.connection
            .prepare_cached(
                "INSERT INTO entries (conversation_id, entry_id, parent_id, kind, message_id, head_id, target,
                                      stub_tokens, hides)
                 VALUES (:conversation, :entry_id, :parent, :kind, :message, :head, :target, :stub_tokens, :hides)",
            )
            .and_then(|mut insert| {
                insert.insert(named_params! {
                    ":conversation": conversation.0,
                    ":entry_id": entry.entry_id,
                    ":parent": entry.parent.map(|parent| parent.0),
                    ":kind": kind,
                    ":message": message.map(|message| message.0),
                    ":head": entry.head.map(|head| head.0),
                    ":target": target,
                    ":stub_tokens": stub_tokens,
                    ":hides": hides,
                })
            })
            .map(EntryId)
            .map_err(writing)
    }

    /// Stores a summary with its edges unless it is there, and says which row it is.
    ///
    /// # Errors
    /// Also when a source is missing, or has another identity than its own holds: what was purged while the summary was made
    /// must not come back by it.
    pub fn add_summary(&self, summary: &NewSummary) -> Result<SummaryId> {
        self.add_summary_with(summary, None)
    }

    /// The same with the facts of its messages, where these are known.
    ///
    /// # Errors
    /// As [`Batch::add_summary`].
    pub fn add_summary_with(&self, summary: &NewSummary, facts: Option<&Facts>) -> Result<SummaryId> {
        if let Some(id) = self.summary_by_hash(summary.hash)? {
            return Ok(id);
        }
        if summary.identity(&self.identities(&summary.sources)?) != summary.hash {
            return Err(Error::store(
                "something that was being summarized has been purged meanwhile; the next compaction does without it",
            ));
        }
        let span = self.span_of(&summary.sources)?;
        let PreparedText { packed, codec, parts } = &summary.prepared;
        let is_packed = packed.is_some();
        let usage = summary.usage.clone().and_then(|usage| RawValue::from_string(usage).ok());
        let quotes = (!summary.quotes.is_empty()).then(|| summary.quotes.clone());
        let beside = Beside { quotes, facts: facts.cloned(), usage };
        let id = self
            .connection
            .prepare_cached(
                "INSERT INTO summaries (hash, depth, text, tokens, state, model, prompt_version, created_at,
                                        first_message, last_message, messages, from_time, to_time,
                                        packed, codec, bytes, beside)
                 VALUES (:hash, :depth, :text, :tokens, :state, :model, :prompt_version, :created_at,
                         :first, :last, :messages, :from_time, :to_time, :packed, :codec, :bytes, :beside)",
            )
            .and_then(|mut insert| {
                insert.insert(named_params! {
                    ":hash": summary.hash.0,
                    ":depth": summary.depth,
                    ":text": if is_packed { "" } else { &summary.text },
                    ":packed": packed,
                    ":codec": is_packed.then_some(codec),
                    ":bytes": is_packed.then_some(summary.text.len()),
                    ":beside": beside.to_sql(),
                    ":tokens": summary.tokens,
                    ":state": summary.state.as_str(),
                    ":model": summary.model,
                    ":prompt_version": summary.prompt_version,
                    ":created_at": summary.created_at,
                    ":first": span.first.0,
                    ":last": span.last.0,
                    ":messages": span.messages,
                    ":from_time": span.from_time,
                    ":to_time": span.to_time,
                })
            })
            .map_err(writing)?;
        self.add_edges(SummaryId(id), &summary.sources)?;
        let sql = "INSERT INTO summaries_fts (rowid, body, parts) VALUES (?1, ?2, ?3)";
        self.index_with(sql, id, &summary.text, parts)?;
        Ok(SummaryId(id))
    }

    /// Notes that a compaction entry carries a summary in its details.
    pub fn add_carried(&self, entry: EntryId, summary: SummaryId) -> Result<()> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO carried (entry_id, summary_id) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![entry.0, summary.0]))
            .map(drop)
            .map_err(writing)
    }

    /// What a child of `entry` extends: row, lineage and height of the last message at or above it.
    pub fn head_of(&self, entry: EntryId) -> Result<Option<(MessageId, Hash, i64)>> {
        self.head(entry).map_err(reading)
    }

    /// How many hiding edits right below an entry are ours.
    pub fn hidden_below(&self, entry: EntryId) -> Result<usize> {
        self.connection
            .prepare_cached("SELECT coalesce(hides, 0) FROM entries WHERE id = ?1")
            .and_then(|mut query| query.query_row([entry.0], |row| row.get(0)))
            .map_err(reading)
    }

    /// The message that an entry shows, if it shows one.
    pub fn shown_by(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<MessageId>> {
        self.message_of(conversation, entry_id).map_err(reading)
    }

    /// The message of this identity.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn message_by_lineage(&self, lineage: Hash) -> Result<Option<MessageId>> {
        use rusqlite::OptionalExtension as _;
        self.connection
            .prepare_cached("SELECT id FROM messages WHERE lineage = ?1")
            .and_then(|mut query| query.query_row([lineage.0], |row| row.get(0).map(MessageId)).optional())
            .map_err(reading)
    }

    fn next_passage(&self) -> Result<i64> {
        use rusqlite::OptionalExtension as _;
        let next = self
            .connection
            .prepare_cached(
                "SELECT first_passage + passages FROM messages
                  WHERE first_passage IS NOT NULL ORDER BY first_passage DESC LIMIT 1",
            )
            .and_then(|mut query| query.query_row([], |row| row.get(0)).optional())
            .map_err(reading)?;
        Ok(next.unwrap_or(1))
    }

    pub(super) fn index(&self, sql: &str, rowid: i64, body: &str) -> Result<()> {
        self.index_with(sql, rowid, body, &parts(body))
    }

    fn index_with(&self, sql: &str, rowid: i64, body: &str, parts: &str) -> Result<()> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut insert| insert.execute(params![rowid, body, parts]))
            .map(drop)
            .map_err(writing)
    }

    fn add_edges(&self, summary: SummaryId, sources: &crate::dag::Sources) -> Result<()> {
        use crate::dag::Sources::{Messages, Summaries};
        let edges: Vec<(Option<i64>, Option<i64>)> = match sources {
            Messages(messages) => messages.iter().map(|message| (Some(message.0), None)).collect(),
            Summaries(summaries) => summaries.iter().map(|source| (None, Some(source.0))).collect(),
        };
        let mut insert = self
            .connection
            .prepare_cached(
                "INSERT INTO summary_sources (summary_id, ordinal, message_id, source_id) VALUES (?1, ?2, ?3, ?4)",
            )
            .map_err(writing)?;
        for (ordinal, (message, source)) in edges.into_iter().enumerate() {
            insert.execute(params![summary.0, ordinal, message, source]).map_err(writing)?;
        }
        Ok(())
    }
}
