//! Full-text search over passages and summaries: an FTS5 expression in, ranked rows out.

use rusqlite::named_params;

use super::View;
use super::view::reading;
use crate::error::Result;
use crate::ids::{ConversationId, MessageId, SummaryId};

/// Which messages a search may find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those that this session shows; all of the project otherwise.
    pub conversation: Option<ConversationId>,
    /// Only of this role, as Pi names roles.
    pub role: Option<String>,
    /// Only results of this tool.
    pub tool: Option<String>,
}

/// A passage that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its message.
    pub message: MessageId,
    /// Which of the message's passages, from 0.
    pub passage: usize,
    /// The higher, the better.
    pub score: f64,
}

/// A summary that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummaryHit {
    /// The summary.
    pub summary: SummaryId,
    /// The higher, the better; not to be compared with a message's.
    pub score: f64,
}

impl View<'_> {
    /// The best passages for an FTS5 `expression`, best first, the newer first where they are equal.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn search_messages(&self, expression: &str, filter: &Filter, limit: usize) -> Result<Vec<Hit>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT m.id, f.rowid - m.first_passage AS passage, -bm25(messages_fts, 1.0, 0.6) AS score
                   FROM messages_fts f
                   JOIN messages m ON m.id =
                        (SELECT id FROM messages
                          WHERE first_passage <= f.rowid ORDER BY first_passage DESC LIMIT 1)
                  WHERE messages_fts MATCH :expression
                    AND (:conversation IS NULL OR EXISTS
                         (SELECT 1 FROM entries e
                           WHERE e.message_id = m.id AND e.conversation_id = :conversation))
                    AND (:role IS NULL OR m.role = :role)
                    AND (:tool IS NULL OR m.tool_name = :tool)
                  ORDER BY score DESC, f.rowid DESC
                  LIMIT :limit",
            )
            .map_err(reading)?;
        let hits = query
            .query_map(
                named_params! {
                    ":expression": expression,
                    ":conversation": filter.conversation.map(|c| c.0),
                    ":role": filter.role,
                    ":tool": filter.tool,
                    ":limit": limit,
                },
                |row| {
                    Ok(Hit {
                        message: MessageId(row.get("id")?),
                        passage: row.get("passage")?,
                        score: row.get("score")?,
                    })
                },
            )
            .map_err(reading)?;
        hits.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The best summaries for an FTS5 `expression`, best first.
    pub fn search_summaries(
        &self,
        expression: &str,
        conversation: Option<ConversationId>,
        limit: usize,
    ) -> Result<Vec<SummaryHit>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT s.id, -bm25(summaries_fts, 1.0, 0.6) AS score
                   FROM summaries_fts f
                   JOIN summaries s ON s.id = f.rowid
                  WHERE summaries_fts MATCH :expression
                    AND (:conversation IS NULL OR EXISTS
                         (SELECT 1 FROM entries e
                           WHERE e.message_id = s.first_message AND e.conversation_id = :conversation))
                  ORDER BY score DESC, s.id DESC
                  LIMIT :limit",
            )
            .map_err(reading)?;
        let hits = query
            .query_map(
                named_params! {
                    ":expression": expression,
                    ":conversation": conversation.map(|c| c.0),
                    ":limit": limit,
                },
                |row| Ok(SummaryHit { summary: SummaryId(row.get("id")?), score: row.get("score")? }),
            )
            .map_err(reading)?;
        hits.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Searchable messages and summaries that a search of this scope looks at.
    pub fn searchable(&self, conversation: Option<ConversationId>) -> Result<(usize, usize)> {
        self.connection
            .prepare_cached(
                "SELECT (SELECT count(*) FROM messages m
                          WHERE m.first_passage IS NOT NULL
                            AND (:conversation IS NULL OR EXISTS
                                 (SELECT 1 FROM entries e
                                   WHERE e.message_id = m.id AND e.conversation_id = :conversation))),
                        (SELECT count(*) FROM summaries s
                          WHERE :conversation IS NULL OR EXISTS
                                (SELECT 1 FROM entries e
                                  WHERE e.message_id = s.first_message AND e.conversation_id = :conversation))",
            )
            .and_then(|mut query| {
                query.query_row(named_params! {":conversation": conversation.map(|c| c.0)}, |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
            })
            .map_err(reading)
    }
}
