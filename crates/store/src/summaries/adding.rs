//! Adds summaries, with their edges and their index entries.

use rusqlite::{named_params, params};

use crate::SummaryWriter;
use crate::columns::Queries as _;
use crate::messages::codec;
use crate::summaries::extras::Extras;
use lcm_model::dag::Sources;
use lcm_model::error::{Error, Result};
use lcm_model::facts::Facts;
use lcm_model::ids::SummaryId;
use lcm_model::{Indexed, Summary};

/// A summary to store, with its edges.
pub struct NewSummary {
    pub summary: Summary,
    pub sources: Sources,
    /// Made from its text.
    pub prepared: PreparedText,
}

/// The stored form of a summary's text, which any thread can prepare.
pub struct PreparedText {
    /// `None` if compression gains nothing.
    packed: Option<Vec<u8>>,
    codec: i64,
    indexed: Indexed,
}

impl PreparedText {
    /// Compresses a text, and splits it for the index.
    pub fn of(text: &str) -> Self {
        Self::with(codec::encode(text), text)
    }

    /// The same for a short-lived text that is needed at once: faster, but larger.
    pub fn at_once(text: &str) -> Self {
        Self::with(codec::encode_quickly(text), text)
    }

    fn with((packed, codec): (Option<Vec<u8>>, i64), text: &str) -> Self {
        Self { packed, codec, indexed: Indexed::of(text) }
    }
}

impl SummaryWriter<'_> {
    /// Stores a summary with its edges unless it exists, and returns its row; with the facts of its messages, if known, and
    /// whether a session file brought it.
    ///
    /// # Errors
    /// Also when a source is missing or its identity has changed: otherwise the summary would bring back what
    /// was purged while it was made.
    pub fn add_summary(&self, new: &NewSummary, facts: Option<&Facts>, restored: bool) -> Result<SummaryId> {
        let NewSummary { summary, sources, prepared } = new;
        if let Some(id) = self.summary_by_hash(summary.hash)? {
            self.is_redone(id)?;
            return Ok(id);
        }
        if summary.identity(&self.identities(sources)?) != summary.hash {
            return Err(Error::store(
                "something that was being summarized has been purged meanwhile; the next compaction does without it",
            ));
        }
        let span = self.span_of(sources)?;
        let PreparedText { packed, codec, indexed } = prepared;
        let is_packed = packed.is_some();
        let quotes = (!summary.quotes.is_empty()).then(|| summary.quotes.clone());
        let extras = Extras { quotes, facts: facts.cloned(), usage: summary.usage.clone(), restored };
        let id = self.insert(
            "INSERT INTO summaries (hash, depth, text, tokens, state, model, prompt_version, created_at,
                                        first_message, last_message, messages, from_time, to_time,
                                        packed, codec, bytes, extras)
                 VALUES (:hash, :depth, :text, :tokens, :state, :model, :prompt_version, :created_at,
                         :first, :last, :messages, :from_time, :to_time, :packed, :codec, :bytes, :extras)",
            named_params! {
                ":hash": summary.hash,
                ":depth": summary.depth,
                ":text": if is_packed { "" } else { &summary.text },
                ":packed": packed,
                ":codec": is_packed.then_some(codec),
                ":bytes": is_packed.then_some(summary.text.len()),
                ":extras": extras.to_sql(),
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
            },
        )?;
        self.add_edges(SummaryId(id), sources)?;
        let sql = "INSERT INTO summaries_fts (rowid, body, parts) VALUES (?1, ?2, ?3)";
        let body = indexed.body.as_deref().unwrap_or(&summary.text);
        self.change(sql, params![id, body, indexed.parts])?;
        Ok(SummaryId(id))
    }

    fn add_edges(&self, summary: SummaryId, sources: &Sources) -> Result<()> {
        let (column, rows) = match sources {
            Sources::Messages(messages) => ("message_id", messages.iter().map(|id| id.0).collect::<Vec<_>>()),
            Sources::Summaries(summaries) => ("source_id", summaries.iter().map(|id| id.0).collect()),
        };
        let sql = format!("INSERT INTO summary_sources (summary_id, ordinal, {column}) VALUES (?1, ?2, ?3)");
        (rows.iter().enumerate())
            .try_for_each(|(ordinal, row)| self.change(&sql, params![summary, ordinal, row]))
    }
}
