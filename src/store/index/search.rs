//! Full-text search over passages and summaries: takes an FTS5 expression and returns rows.
//!
//! Costs with a million messages and four million passages: some 50 ns to find that a passage matches, some 5
//! µs to rank it, because the index looks up its length. So matches are counted first, and the caller decides
//! what is ranked.

use std::collections::HashSet;

use rusqlite::{OptionalExtension as _, named_params, params};

use crate::error::Result;
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::model::Message;
use crate::store::columns::reading;
use crate::store::{FullTextIndex, Messages};

/// Which messages a search may find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only messages of this session; otherwise all of the project.
    pub conversation: Option<ConversationId>,
    /// Only messages of this role, in Pi's terms.
    pub role: Option<String>,
    /// Only results of this tool.
    pub tool: Option<String>,
    /// From this time on, in ms.
    pub after: Option<i64>,
    /// Up to this time, in ms.
    pub before: Option<i64>,
}

/// A passage that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its message.
    pub message: MessageId,
    /// The index of the passage within its message, from 0.
    pub passage: usize,
}

/// A summary that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummaryHit {
    /// The summary.
    pub summary: SummaryId,
    /// Higher is better. It is not comparable with a message's score.
    pub score: f64,
}

impl FullTextIndex<'_> {
    /// The first passage of the newest searchable message, which is about the number of passages.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn last_passage(&self) -> Result<i64> {
        let last = (self.connection)
            .prepare_cached(
                "SELECT first_passage FROM messages
                  WHERE first_passage IS NOT NULL ORDER BY first_passage DESC LIMIT 1",
            )
            .and_then(|mut query| query.query_row([], |row| row.get(0)).optional())
            .map_err(reading)?;
        Ok(last.unwrap_or(0))
    }

    /// Counts passages from row `from` on that match an FTS5 `expression`, up to `most`.
    pub fn count_passages(&self, expression: &str, from: i64, most: usize) -> Result<usize> {
        self.connection
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM messages_fts
                                        WHERE messages_fts MATCH ?1 AND rowid >= ?2 LIMIT ?3)",
            )
            .and_then(|mut query| query.query_row(params![expression, from, most], |row| row.get(0)))
            .map_err(reading)
    }

    /// The rows of the newest matching passages from `from` on, newest first.
    pub fn newest_passages(&self, expression: &str, from: i64, limit: usize) -> Result<Vec<i64>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT rowid FROM messages_fts
                  WHERE messages_fts MATCH ?1 AND rowid >= ?2 ORDER BY rowid DESC LIMIT ?3",
            )
            .map_err(reading)?;
        let rows = query.query_map(params![expression, from, limit], |row| row.get(0)).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The rows of all matching passages from `from` on, oldest first. That is the order of the index's
    /// lists, and takes about half the work of the opposite one.
    pub fn passages_from(&self, expression: &str, from: i64) -> Result<Vec<i64>> {
        let mut query = (self.connection)
            .prepare_cached("SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?1 AND rowid >= ?2")
            .map_err(reading)?;
        let rows = query.query_map(params![expression, from], |row| row.get(0)).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The rows of at most `most` matching passages, oldest first, and whether these are all.
    pub fn oldest_passages(&self, expression: &str, most: usize) -> Result<(Vec<i64>, bool)> {
        let mut query = (self.connection)
            .prepare_cached("SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?1 LIMIT ?2")
            .map_err(reading)?;
        let rows = query.query_map(params![expression, most + 1], |row| row.get(0)).map_err(reading)?;
        let mut rows: Vec<i64> = rows.collect::<rusqlite::Result<_>>().map_err(reading)?;
        let are_all = rows.len() <= most;
        rows.truncate(most);
        Ok((rows, are_all))
    }

    /// All matching passages with their scores; higher is better.
    pub fn ranked_passages(&self, expression: &str) -> Result<Vec<(i64, f64)>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT rowid, -bm25(messages_fts, 1.0, 0.6) FROM messages_fts WHERE messages_fts MATCH ?1",
            )
            .map_err(reading)?;
        let rows = query.query_map([expression], |row| Ok((row.get(0)?, row.get(1)?))).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The message of the passage in row `passage`, if it passes `filter`.
    pub fn hit(&self, passage: i64, filter: &Filter) -> Result<Option<Hit>> {
        self.connection
            .prepare_cached(
                "SELECT m.id, :passage - m.first_passage AS passage
                   FROM messages m
                  WHERE m.id = (SELECT id FROM messages
                                 WHERE first_passage <= :passage ORDER BY first_passage DESC LIMIT 1)
                    AND (:role IS NULL OR m.role = :role)
                    AND (:tool IS NULL OR m.tool_name = :tool)
                    AND (:after IS NULL OR m.timestamp >= :after)
                    AND (:before IS NULL OR m.timestamp <= :before)
                    AND (:conversation IS NULL OR EXISTS
                         (SELECT 1 FROM entries e
                           WHERE e.message_id = m.id AND e.conversation_id = :conversation))",
            )
            .and_then(|mut query| {
                query
                    .query_row(
                        named_params! {
                            ":passage": passage,
                            ":conversation": filter.conversation.map(|c| c.0),
                            ":role": filter.role,
                            ":tool": filter.tool,
                            ":after": filter.after,
                            ":before": filter.before,
                        },
                        |row| Ok(Hit { message: MessageId(row.get("id")?), passage: row.get("passage")? }),
                    )
                    .optional()
            })
            .map_err(reading)
    }

    /// The messages directly before and after this one, if they are searchable and stored next to it.
    pub fn neighbors(&self, message: MessageId) -> Result<Vec<MessageId>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT p.id FROM messages m JOIN messages p ON p.id = m.parent_id
                  WHERE m.id = ?1 AND p.first_passage IS NOT NULL AND p.kind = 0
                 UNION ALL
                 SELECT id FROM messages
                  WHERE id = ?1 + 1 AND parent_id = ?1 AND first_passage IS NOT NULL AND kind = 0",
            )
            .map_err(reading)?;
        let rows = query.query_map([message.0], |row| row.get(0).map(MessageId)).map_err(reading)?;
        rows.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The best summaries for an FTS5 `expression`, best first. Only the session and the times of `filter`
    /// apply: the summary's time range must overlap them.
    pub fn search_summaries(
        &self,
        expression: &str,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<SummaryHit>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT s.id, -bm25(summaries_fts, 1.0, 0.6) AS score
                   FROM summaries_fts f
                   JOIN summaries s ON s.id = f.rowid
                  WHERE summaries_fts MATCH :expression
                    AND (:after IS NULL OR s.to_time >= :after)
                    AND (:before IS NULL OR s.from_time <= :before)
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
                    ":conversation": filter.conversation.map(|c| c.0),
                    ":after": filter.after,
                    ":before": filter.before,
                    ":limit": limit,
                },
                |row| Ok(SummaryHit { summary: SummaryId(row.get("id")?), score: row.get("score")? }),
            )
            .map_err(reading)?;
        hits.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The numbers of searchable messages and summaries in this scope. A session's messages are counted up to
    /// `most`.
    pub fn searchable(&self, conversation: Option<ConversationId>, most: usize) -> Result<(usize, usize)> {
        let project = "SELECT count(*) FROM messages WHERE first_passage IS NOT NULL";
        let session = "SELECT count(DISTINCT id) FROM
                           (SELECT m.id FROM entries e JOIN messages m ON m.id = e.message_id
                             WHERE e.conversation_id = ?1 AND m.first_passage IS NOT NULL LIMIT ?2)";
        let messages = match conversation {
            None => self
                .connection
                .prepare_cached(project)
                .and_then(|mut query| query.query_row([], |row| row.get(0))),
            Some(id) => (self.connection.prepare_cached(session))
                .and_then(|mut query| query.query_row(params![id.0, most], |row| row.get(0))),
        };
        Ok((messages.map_err(reading)?, self.searchable_summaries(conversation)?))
    }

    fn searchable_summaries(&self, conversation: Option<ConversationId>) -> Result<usize> {
        self.connection
            .prepare_cached(
                "SELECT (SELECT count(*) FROM summaries s
                          WHERE :conversation IS NULL OR EXISTS
                                (SELECT 1 FROM entries e
                                  WHERE e.message_id = s.first_message AND e.conversation_id = :conversation))",
            )
            .and_then(|mut query| {
                query.query_row(named_params! {":conversation": conversation.map(|c| c.0)}, |row| {
                    row.get(0)
                })
            })
            .map_err(reading)
    }

    /// At most two sessions whose ids begin with `beginning`: enough to see that it is ambiguous.
    pub fn conversations_like(&self, beginning: &str) -> Result<Vec<ConversationId>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id FROM conversations WHERE substr(session_id, 1, length(?1)) = ?1 LIMIT 2",
            )
            .map_err(reading)?;
        let found = query.query_map([beginning], |row| row.get(0).map(ConversationId)).map_err(reading)?;
        found.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The messages that mention a file: those with its path among their words, and the results of tool calls
    /// that name it.
    pub fn messages_about(&self, path: &str, expression: &str, most: usize) -> Result<HashSet<MessageId>> {
        let mut about = HashSet::new();
        for row in self.newest_passages(expression, 0, most)? {
            let Some(hit) = self.hit(row, &Filter::default())? else { continue };
            if about.insert(hit.message) {
                about.extend(self.results_about(path, hit.message)?);
            }
        }
        Ok(about)
    }

    /// The results of a message's tool calls that name the file.
    fn results_about(&self, path: &str, calling: MessageId) -> Result<Vec<MessageId>> {
        let behind = self.results_behind(calling)?;
        if behind.is_empty() {
            return Ok(behind);
        }
        // Unreadable messages are left to the doctor.
        let read =
            |id: MessageId| Messages::new(self.connection).json_of(id).ok().map(|json| Message::parse(&json));
        let calls = read(calling).map(|message| message.calls_naming(path)).unwrap_or_default();
        let is_of_one = |id: &MessageId| {
            !calls.is_empty()
                && read(*id).and_then(|result| result.tool_call_id).is_some_and(|id| calls.contains(&id))
        };
        Ok(behind.into_iter().filter(is_of_one).collect())
    }

    /// The tool results directly after a message in its conversation. Other rows may be stored in between.
    fn results_behind(&self, calling: MessageId) -> Result<Vec<MessageId>> {
        /// Rows to scan.
        const BEHIND: i64 = 64;
        let mut query = (self.connection)
            .prepare_cached("SELECT id, parent_id, role = 'toolResult' FROM messages WHERE id > ?1 AND id <= ?1 + ?2 ORDER BY id")
            .map_err(reading)?;
        let mut rows = query.query(params![calling.0, BEHIND]).map_err(reading)?;
        let (mut results, mut last) = (Vec::new(), calling.0);
        while let Some(row) = rows.next().map_err(reading)? {
            if row.get::<_, Option<i64>>(1).map_err(reading)? != Some(last) {
                continue;
            }
            if !row.get::<_, bool>(2).map_err(reading)? {
                break;
            }
            last = row.get(0).map_err(reading)?;
            results.push(MessageId(last));
        }
        Ok(results)
    }
}
