//! Summaries and their edges.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::ops::Deref;

use rusqlite::{Params, Row, named_params};

use super::extras::Extras;
use super::redo::IS_DEGRADED;
use super::spans::IS_IN_SESSION;
use crate::columns::{FromRow, Queries as _, tokens_at};
use crate::messages::codec;
use crate::{Continue, Filter, Summaries, TimeOrder};
use lcm_model::dag::{Node, Sources};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Handle, Hash, MessageId, SummaryId};
use lcm_model::{State, Summary};

/// A summary as stored, with its span.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSummary {
    pub id: SummaryId,
    pub summary: Summary,
    pub messages: usize,
    pub from_time: i64,
    pub to_time: i64,
}

impl Deref for StoredSummary {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

/// The text in a summary's row.
pub(crate) fn text_of(row: &Row<'_>) -> rusqlite::Result<Result<String>> {
    match row.get::<_, Option<Vec<u8>>>("packed")? {
        Some(packed) => Ok(codec::decode(packed, row.get("codec")?, row.get("bytes")?)),
        None => row.get("text").map(Ok),
    }
}

impl FromRow for Result<StoredSummary> {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let Extras { quotes, usage, .. } = Extras::from_sql(row.get("extras")?);
        let is_extract = row.get::<_, String>("state")? == State::Degraded.as_str();
        let summary = Summary {
            hash: row.get("hash")?,
            depth: row.get("depth")?,
            text: String::new(),
            tokens: tokens_at(row, "tokens")?,
            state: if is_extract { State::Degraded } else { State::Ok },
            model: row.get("model")?,
            prompt_version: row.get("prompt_version")?,
            usage,
            created_at: row.get("created_at")?,
            quotes: quotes.unwrap_or_default(),
        };
        let (id, messages) = (row.get("id")?, row.get("messages")?);
        let (from_time, to_time) = (row.get("from_time")?, row.get("to_time")?);
        Ok(text_of(row)?.map(|text| {
            let summary = Summary { text, ..summary };
            StoredSummary { id, summary, messages, from_time, to_time }
        }))
    }
}

impl Summaries<'_> {
    /// A summary.
    ///
    /// # Errors
    /// When the row does not exist or the database can't be read.
    pub fn summary(&self, id: SummaryId) -> Result<StoredSummary> {
        self.one("SELECT * FROM summaries WHERE id = ?1", [id])?
    }

    /// The summaries condensed from this one.
    pub fn parents(&self, id: SummaryId) -> Result<Vec<SummaryId>> {
        self.all("SELECT summary_id FROM summary_sources WHERE source_id = ?1 ORDER BY summary_id", [id])
    }

    /// The summaries that may be valid on a branch: those that start with one of its visible messages.
    ///
    /// A project has far fewer summaries than a long branch has messages, so this reads a range and filters
    /// it.
    pub fn nodes_on(&self, visible: &[MessageId]) -> Result<Vec<Node>> {
        let (Some(lowest), Some(highest)) = (visible.iter().min(), visible.iter().max()) else {
            return Ok(Vec::new());
        };
        let wanted: LazyCell<HashSet<MessageId>, _> = LazyCell::new(|| visible.iter().copied().collect());
        self.nodes_of("first_message BETWEEN ?1 AND ?2", [lowest, highest], |message| {
            wanted.contains(&message)
        })
    }

    /// The summaries after `newest` that start with a message for which `shows` is true.
    pub fn nodes_since(&self, newest: SummaryId, shows: impl Fn(MessageId) -> bool) -> Result<Vec<Node>> {
        self.nodes_of("id > ?1", [newest], shows)
    }

    /// The last summary of any session.
    pub fn newest_summary(&self) -> Result<SummaryId> {
        self.one("SELECT coalesce(max(id), 0) FROM summaries", [])
    }

    fn nodes_of(
        &self,
        condition: &str,
        params: impl Params,
        shows: impl Fn(MessageId) -> bool,
    ) -> Result<Vec<Node>> {
        let sql = format!(
            "SELECT id, depth, {IS_DEGRADED}, prompt_version, first_message
               FROM summaries WHERE {condition} ORDER BY id"
        );
        let mut nodes = Vec::new();
        self.each(&sql, params, |row| {
            if shows(row.get(4)?) {
                let (id, depth, degraded, prompt_version, _): (_, _, _, _, MessageId) = row.try_into()?;
                nodes.push(Node { id, depth, degraded, prompt_version, sources: self.sources(id)? });
            }
            Ok(())
        })?;
        Ok(nodes)
    }

    /// The leaf summaries that cover a message, oldest first.
    pub fn leaves_over(&self, message: MessageId) -> Result<Vec<SummaryId>> {
        self.all(
            "SELECT summary_id FROM summary_sources WHERE message_id = ?1 ORDER BY summary_id",
            [message],
        )
    }

    /// At most two summaries whose ids have this prefix, of one session if given.
    pub fn summaries_like(
        &self,
        handle: &Handle,
        conversation: Option<ConversationId>,
    ) -> Result<Vec<SummaryId>> {
        let (low, high) = handle.range();
        self.all(
            &format!(
                "SELECT id FROM summaries s
                  WHERE hash BETWEEN :low AND :high AND (:conversation IS NULL OR {IS_IN_SESSION})
                  LIMIT 2"
            ),
            named_params! {":low": low, ":high": high, ":conversation": conversation},
        )
    }

    /// Calls `visit` with the summaries in order of the time they begin at, `from` where it continues, until it returns
    /// `false`. Only the session and the times of `filter` apply, as in
    /// [`FullTextIndex::search_summaries`](crate::FullTextIndex::search_summaries).
    pub fn summaries_in_turn(
        &self,
        turn: TimeOrder,
        from: Option<Continue<SummaryId>>,
        filter: &Filter,
        mut visit: impl FnMut(StoredSummary) -> Result<bool>,
    ) -> Result<()> {
        let (comes, order) = turn.sql(from.as_ref(), "summaries", "from_time");
        let sql = format!(
            "SELECT * FROM summaries s INDEXED BY summaries_by_time
              WHERE {comes}
                AND (:after IS NULL OR s.to_time >= :after)
                AND (:before IS NULL OR s.from_time <= :before)
                AND (:conversation IS NULL OR {IS_IN_SESSION})
              ORDER BY {order}"
        );
        let params = named_params! {
            ":conversation": filter.conversation, ":row": from.map(Continue::row),
            ":after": filter.after, ":before": filter.before
        };
        self.each_while(&sql, params, |row| visit(<Result<StoredSummary>>::from_row(row)??))
    }

    /// The summary with this identity.
    pub fn summary_by_hash(&self, hash: Hash) -> Result<Option<SummaryId>> {
        self.first("SELECT id FROM summaries WHERE hash = ?1", [hash])
    }

    /// What this summary was made from.
    pub fn sources(&self, id: SummaryId) -> Result<Sources> {
        let edges: Vec<(Option<MessageId>, Option<SummaryId>)> = self.all(
            "SELECT message_id, source_id FROM summary_sources WHERE summary_id = ?1 ORDER BY ordinal",
            [id],
        )?;
        let summaries: Vec<_> = edges.iter().filter_map(|edge| edge.1).collect();
        Ok(if summaries.is_empty() {
            Sources::Messages(edges.iter().filter_map(|edge| edge.0).collect())
        } else {
            Sources::Summaries(summaries)
        })
    }
}
