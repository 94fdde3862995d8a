//! Summaries and their edges.

use std::cell::LazyCell;
use std::collections::HashSet;

use rusqlite::{Row, Rows, named_params};

use super::extras::Extras;
use crate::dag::{Node, Sources};
use crate::error::Result;
use crate::ids::{ConversationId, Handle, Hash, MessageId, SummaryId};
use crate::model::Quote;
use crate::store::columns::{Queries as _, tokens_at};
use crate::store::messages::codec;
use crate::store::{Filter, Summaries, Turn};

/// A summary as stored, without its edges.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSummary {
    pub id: SummaryId,
    pub hash: Hash,
    pub depth: u32,
    pub text: String,
    pub tokens: usize,
    /// Whether it was made without a model.
    pub degraded: bool,
    /// `provider/model`; `None` for an extract.
    pub model: Option<String>,
    pub prompt_version: u32,
    /// The usage of its model calls, as JSON.
    pub usage: Option<String>,
    pub created_at: i64,
    /// Verbatim quotes from its messages, in order.
    pub quotes: Vec<Quote>,
    pub messages: usize,
    pub from_time: i64,
    pub to_time: i64,
}

/// The neighbors of a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Edges {
    pub sources: Sources,
    pub parents: Vec<SummaryId>,
}

/// The text in a summary's row.
pub(in crate::store) fn text_of(row: &Row<'_>) -> rusqlite::Result<Result<String>> {
    match row.get("packed")? {
        Some(packed) => Ok(codec::decode(packed, row.get("codec")?, row.get("bytes")?)),
        None => row.get("text").map(Ok),
    }
}

fn stored_summary(row: &Row<'_>) -> rusqlite::Result<Result<StoredSummary>> {
    let text = match text_of(row)? {
        Ok(text) => text,
        Err(error) => return Ok(Err(error)),
    };
    let Extras { quotes, usage, .. } = Extras::from_sql(row.get("extras")?);
    Ok(Ok(StoredSummary {
        id: row.get("id")?,
        hash: row.get("hash")?,
        depth: row.get("depth")?,
        text,
        tokens: tokens_at(row, "tokens")?,
        degraded: row.get::<_, String>("state")? == "degraded",
        model: row.get("model")?,
        prompt_version: row.get("prompt_version")?,
        usage: usage.map(|usage| usage.get().to_owned()),
        created_at: row.get("created_at")?,
        quotes: quotes.unwrap_or_default(),
        messages: row.get("messages")?,
        from_time: row.get("from_time")?,
        to_time: row.get("to_time")?,
    }))
}

impl Summaries<'_> {
    /// A summary.
    ///
    /// # Errors
    /// When the row does not exist or the database can't be read.
    pub fn summary(&self, id: SummaryId) -> Result<StoredSummary> {
        self.connection.one("SELECT * FROM summaries WHERE id = ?1", [id], stored_summary)?
    }

    /// A summary's sources and the summaries condensed from it.
    pub fn edges(&self, id: SummaryId) -> Result<Edges> {
        let parents = self.connection.all(
            "SELECT summary_id FROM summary_sources WHERE source_id = ?1 ORDER BY summary_id",
            [id],
            |row| row.get(0),
        )?;
        Ok(Edges { sources: self.sources(id)?, parents })
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
        let mut query = (self.connection).prepare_cached(
            "SELECT id, depth, state = 'degraded' AS degraded, prompt_version, first_message
               FROM summaries WHERE first_message BETWEEN ?1 AND ?2
              ORDER BY id",
        )?;
        let rows = query.query([lowest, highest])?;
        self.nodes_of(rows, |message| wanted.contains(&message))
    }

    /// The summaries after `newest` that start with a message for which `shows` is true.
    pub fn nodes_since(&self, newest: SummaryId, shows: impl Fn(MessageId) -> bool) -> Result<Vec<Node>> {
        let mut query = (self.connection).prepare_cached(
            "SELECT id, depth, state = 'degraded' AS degraded, prompt_version, first_message
               FROM summaries WHERE id > ?1
              ORDER BY id",
        )?;
        self.nodes_of(query.query([newest])?, shows)
    }

    /// The last messages of all leaf summaries.
    pub fn last_messages(&self) -> Result<HashSet<MessageId>> {
        let lasts = self.connection.all::<_, Vec<_>>(
            "SELECT (SELECT message_id FROM summary_sources WHERE summary_id = s.id
                          ORDER BY ordinal DESC LIMIT 1)
                   FROM summaries s",
            [],
            |row| row.get::<_, Option<i64>>(0),
        )?;
        Ok(lasts.into_iter().flatten().map(MessageId).collect())
    }

    /// The last summary of any session.
    pub fn newest_summary(&self) -> Result<SummaryId> {
        self.connection.one("SELECT coalesce(max(id), 0) FROM summaries", [], |row| row.get(0))
    }

    fn nodes_of(&self, mut rows: Rows<'_>, shows: impl Fn(MessageId) -> bool) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        while let Some(row) = rows.next()? {
            if shows(row.get("first_message")?) {
                nodes.push(node(row)?);
            }
        }
        for node in &mut nodes {
            node.sources = self.sources(node.id)?;
        }
        Ok(nodes)
    }

    /// The leaf summaries that cover a message, oldest first.
    pub fn leaves_over(&self, message: MessageId) -> Result<Vec<SummaryId>> {
        self.connection.all(
            "SELECT summary_id FROM summary_sources WHERE message_id = ?1 ORDER BY summary_id",
            [message],
            |row| row.get(0),
        )
    }

    /// At most two summaries whose ids have this prefix, of one session if given.
    pub fn summaries_like(
        &self,
        handle: &Handle,
        conversation: Option<ConversationId>,
    ) -> Result<Vec<SummaryId>> {
        let (low, high) = handle.range();
        self.connection.all(
            "SELECT id FROM summaries s
              WHERE hash BETWEEN :low AND :high
                AND (:conversation IS NULL OR EXISTS
                     (SELECT 1 FROM entries e
                       WHERE e.message_id = s.first_message AND e.conversation_id = :conversation))
              LIMIT 2",
            named_params! {":low": low, ":high": high, ":conversation": conversation},
            |row| row.get(0),
        )
    }

    /// Calls `visit` with the summaries in order of `turn`, after `beyond` if given, until it returns
    /// `false`. Only the session and the times of `filter` apply, as in
    /// [`FullTextIndex::search_summaries`](crate::store::FullTextIndex::search_summaries).
    ///
    /// # Errors
    /// Also when `visit` fails.
    pub fn summaries_in_turn(
        &self,
        turn: Turn,
        beyond: Option<SummaryId>,
        filter: &Filter,
        mut visit: impl FnMut(StoredSummary) -> Result<bool>,
    ) -> Result<()> {
        let (compare, order) = turn.sql();
        let sql = format!(
            "SELECT * FROM summaries s
              WHERE (:beyond IS NULL OR s.id {compare} :beyond)
                AND (:after IS NULL OR s.to_time >= :after)
                AND (:before IS NULL OR s.from_time <= :before)
                AND (:conversation IS NULL OR EXISTS
                     (SELECT 1 FROM entries e
                       WHERE e.message_id = s.first_message AND e.conversation_id = :conversation))
              ORDER BY s.id {order}"
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query(named_params! {
            ":conversation": filter.conversation, ":beyond": beyond,
            ":after": filter.after, ":before": filter.before
        })?;
        while let Some(row) = rows.next()? {
            if !visit(stored_summary(row)??)? {
                break;
            }
        }
        Ok(())
    }

    /// The summary with this identity.
    pub fn summary_by_hash(&self, hash: Hash) -> Result<Option<SummaryId>> {
        self.connection.first("SELECT id FROM summaries WHERE hash = ?1", [hash], |row| row.get(0))
    }

    fn sources(&self, id: SummaryId) -> Result<Sources> {
        let mut query = (self.connection).prepare_cached(
            "SELECT message_id, source_id FROM summary_sources WHERE summary_id = ?1 ORDER BY ordinal",
        )?;
        let (mut messages, mut summaries) = (Vec::new(), Vec::new());
        let mut rows = query.query([id])?;
        while let Some(row) = rows.next()? {
            messages.extend(row.get::<_, Option<MessageId>>(0)?);
            summaries.extend(row.get::<_, Option<SummaryId>>(1)?);
        }
        Ok(if summaries.is_empty() { Sources::Messages(messages) } else { Sources::Summaries(summaries) })
    }
}

/// A node without its sources.
fn node(row: &Row<'_>) -> rusqlite::Result<Node> {
    Ok(Node {
        id: row.get("id")?,
        depth: row.get("depth")?,
        degraded: row.get("degraded")?,
        prompt_version: row.get("prompt_version")?,
        sources: Sources::Messages(Vec::new()),
    })
}
