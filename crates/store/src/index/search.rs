//! Full-text search over passages and summaries: takes an FTS5 expression and returns rows.
//!
//! Costs with a million messages and four million passages: some 50 ns to find that a passage matches, some 5
//! µs to rank it, because the index looks up its length. So matches are counted first, and the caller decides
//! what is ranked.

use std::collections::HashSet;

use rusqlite::{Connection, named_params, params};

use crate::FullTextIndex;
use crate::columns::{FromRow, Queries as _, from_row};
use crate::messages::sessions::{parameters, passes};
use crate::summaries::spans::IS_IN_SESSION;
use lcm_model::Message;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId, PI, SummaryId};

/// Which messages a search may find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only messages of this session; otherwise all of the project.
    pub conversation: Option<ConversationId>,
    /// Only messages of this role, in Pi's terms.
    pub role: Option<String>,
    /// Only results of this tool.
    pub tool: Option<String>,
    /// Only messages in sessions of this agent.
    pub agent: Option<String>,
    /// From this time on, in ms.
    pub after: Option<i64>,
    /// Up to this time, in ms.
    pub before: Option<i64>,
}

/// A passage that matches.
pub struct Hit {
    /// Its message.
    pub message: MessageId,
    /// The index of the passage within its message, from 0.
    pub passage: usize,
}

from_row!(Hit { message = "id", passage });

/// A summary that matches.
pub struct SummaryHit {
    /// The summary.
    pub summary: SummaryId,
    /// Higher is better. It is not comparable with a message's score.
    pub score: f64,
}

from_row!(SummaryHit { summary = "id", score });

impl<'c> FullTextIndex<'c> {
    /// The row of the newest passage, which is about their number.
    pub(crate) fn last_passage(&self) -> Result<i64> {
        let last = self.first(
            "SELECT first_passage + passages - 1 FROM messages
              WHERE first_passage IS NOT NULL ORDER BY first_passage DESC LIMIT 1",
            [],
        )?;
        Ok(last.unwrap_or(0))
    }

    /// The passages to search: all, or with a session or another agent those of its messages, so that others, which
    /// may be far more, use up no limit. Some others may be among them: `filter` still applies to each.
    pub fn passages(&self, filter: &Filter) -> Result<Passages<'c>> {
        let messages = match (filter.conversation, filter.agent.as_deref()) {
            (Some(session), _) => Some(self.rows_of(session)?),
            (None, Some(agent)) if agent != PI => Some(self.rows_of_agent(agent)?),
            _ => None,
        };
        let ranges = match messages {
            Some(rows) => self.passages_of(rows)?,
            None => vec![(1, self.last_passage()?)],
        };
        Ok(Passages { connection: self.connection, ranges })
    }

    /// The ranges of the rows of an agent's messages.
    fn rows_of_agent(&self, agent: &str) -> Result<Vec<(i64, i64)>> {
        let sql = "SELECT id FROM conversations WHERE session_id GLOB ?1 || ':*'";
        let sessions: Vec<ConversationId> = self.all(sql, [agent])?;
        let rows = |session| Ok(self.messages().counts(session)?.rows);
        sessions.into_iter().filter_map(|session| rows(session).transpose()).collect()
    }

    /// The ranges of the rows of a session's messages, few enough to search each: ranges near each other are one.
    fn rows_of(&self, session: ConversationId) -> Result<Vec<(i64, i64)>> {
        /// The most ranges.
        const MOST: usize = 64;
        /// Rows of other sessions that are cheaper to search than to leave out.
        const NEAR: i64 = 500;
        let counts = self.messages().counts(session)?;
        let Some((lowest, highest)) = counts.rows else { return Ok(Vec::new()) };
        let own = i64::try_from(counts.messages).unwrap_or(i64::MAX);
        if highest - lowest <= own.saturating_add(NEAR) {
            return Ok(vec![(lowest, highest)]);
        }
        // A fork shows old messages and new ones, and other sessions were stored in between.
        let sql = "SELECT message_id FROM entries WHERE conversation_id = ?1 AND message_id IS NOT NULL";
        let mut rows: Vec<i64> = self.all(sql, [session])?;
        rows.sort_unstable();
        let mut ranges: Vec<(i64, i64)> = rows.into_iter().map(|row| (row, row)).collect();
        let mut near = NEAR;
        while near == NEAR || ranges.len() > MOST {
            ranges = merged(ranges, near);
            near *= 4;
        }
        Ok(ranges)
    }

    /// The ranges of the passages of messages in these ranges of rows.
    fn passages_of(&self, messages: Vec<(i64, i64)>) -> Result<Vec<(i64, i64)>> {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for (lowest, highest) in messages {
            // Passages are numbered in the order of their messages.
            let range: Option<(i64, i64)> = self.first(
                "SELECT first_passage,
                        (SELECT first_passage + passages - 1 FROM messages
                          WHERE id <= ?2 AND first_passage IS NOT NULL ORDER BY id DESC LIMIT 1)
                   FROM messages WHERE id BETWEEN ?1 AND ?2 AND first_passage IS NOT NULL ORDER BY id LIMIT 1",
                [lowest, highest],
            )?;
            // A message that was lost and restored has passages after all others.
            let whole = (0, i64::MAX - 1);
            ranges.extend(range.map(|(first, last)| if first <= last { (first, last) } else { whole }));
        }
        ranges.sort_unstable();
        Ok(merged(ranges, 1))
    }

    /// The message of the passage in row `passage`, if it passes `filter`.
    pub fn hit(&self, passage: i64, filter: &Filter) -> Result<Option<Hit>> {
        self.first(
            &format!(
                "SELECT m.id, :passage - m.first_passage AS passage
               FROM messages m
              WHERE m.id = (SELECT id FROM messages
                             WHERE first_passage <= :passage ORDER BY first_passage DESC LIMIT 1)
                AND {}",
                passes()
            ),
            parameters(filter, &[(":passage", &passage)]).as_slice(),
        )
    }

    /// When the message of a passage was said, in ms since the epoch.
    pub fn time(&self, passage: i64) -> Result<i64> {
        self.one(
            "SELECT timestamp FROM messages WHERE first_passage <= ?1 ORDER BY first_passage DESC LIMIT 1",
            [passage],
        )
    }

    /// The messages directly before and after this one, if they are searchable and stored next to it.
    pub fn neighbors(&self, message: MessageId) -> Result<Vec<MessageId>> {
        self.all(
            "SELECT p.id FROM messages m JOIN messages p ON p.id = m.parent_id
              WHERE m.id = ?1 AND p.first_passage IS NOT NULL AND p.kind = 0
             UNION ALL
             SELECT id FROM messages
              WHERE id = ?1 + 1 AND parent_id = ?1 AND first_passage IS NOT NULL AND kind = 0",
            [message],
        )
    }

    /// The best summaries for an FTS5 `expression`, best first. Only the session and the times of `filter`
    /// apply: the summary's time range must overlap them.
    pub fn search_summaries(
        &self,
        expression: &str,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<SummaryHit>> {
        self.all(
            &format!(
                "SELECT s.id, -bm25(summaries_fts, 1.0, 0.6) AS score
                   FROM summaries_fts f
                   JOIN summaries s ON s.id = f.rowid
                  WHERE summaries_fts MATCH :expression
                    AND (:after IS NULL OR s.to_time >= :after)
                    AND (:before IS NULL OR s.from_time <= :before)
                    AND (:conversation IS NULL OR {IS_IN_SESSION})
                  ORDER BY score DESC, s.id DESC
                  LIMIT :limit"
            ),
            named_params! {
                ":expression": expression,
                ":conversation": filter.conversation,
                ":after": filter.after,
                ":before": filter.before,
                ":limit": limit,
            },
        )
    }

    /// The numbers of searchable messages and summaries in this scope. A session's messages are counted up to
    /// `most`.
    pub fn searchable(&self, conversation: Option<ConversationId>, most: usize) -> Result<(usize, usize)> {
        let messages = match conversation {
            None => self.one("SELECT count(*) FROM messages WHERE first_passage IS NOT NULL", [])?,
            Some(id) => self.one(
                "SELECT count(DISTINCT id) FROM
                   (SELECT m.id FROM entries e JOIN messages m ON m.id = e.message_id
                     WHERE e.conversation_id = ?1 AND m.first_passage IS NOT NULL LIMIT ?2)",
                params![id, most],
            )?,
        };
        let summaries = self.one(
            &format!("SELECT count(*) FROM summaries s WHERE :conversation IS NULL OR {IS_IN_SESSION}"),
            named_params! {":conversation": conversation},
        )?;
        Ok((messages, summaries))
    }

    /// The session with this id, or at most two whose ids begin with it, also without the agent's name: enough to see that it is
    /// ambiguous.
    pub fn conversations_like(&self, beginning: &str) -> Result<Vec<ConversationId>> {
        self.all(
            "SELECT id FROM conversations
              WHERE ?1 IN (substr(session_id, 1, length(?1)), substr(session_id, instr(session_id, ':') + 1, length(?1)))
                AND (session_id = ?1 OR NOT EXISTS (SELECT 1 FROM conversations WHERE session_id = ?1))
              LIMIT 2",
            [beginning],
        )
    }

    /// The messages that mention a file: those with its path among their words, and the results of tool calls
    /// that name it.
    pub fn messages_about(
        &self,
        path: &str,
        expression: &str,
        filter: &Filter,
        most: usize,
    ) -> Result<HashSet<MessageId>> {
        let mut about = HashSet::new();
        for row in self.passages(filter)?.newest(expression, 0, most)? {
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
        let read = |id: MessageId| self.messages().json_of(id).ok().map(|json| Message::parse(&json));
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
        let sql = "SELECT id, parent_id, role = 'toolResult' FROM messages WHERE id > ?1 AND id <= ?1 + ?2 ORDER BY id";
        let (mut results, mut last) = (Vec::new(), calling);
        self.each_while(sql, params![calling, BEHIND], |row| {
            if row.get::<_, Option<MessageId>>(1)? != Some(last) {
                return Ok(true);
            }
            // Mostly the next row: the others need not be read.
            let is_result = row.get(2)?;
            if is_result {
                last = row.get(0)?;
                results.push(last);
            }
            Ok(is_result)
        })?;
        Ok(results)
    }
}

/// Sorted ranges, those at most `near` apart as one.
fn merged(ranges: Vec<(i64, i64)>, near: i64) -> Vec<(i64, i64)> {
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(near) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The passages to search.
pub struct Passages<'c> {
    connection: &'c Connection,
    /// The ranges of their rows, each by its first and last, in order.
    ranges: Vec<(i64, i64)>,
}

/// The rows that match `?1` from `?2` to `?3`.
const MATCHING: &str = "messages_fts WHERE messages_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3";

impl Passages<'_> {
    /// Counts passages from row `from` on that match an FTS5 `expression`, up to `most`.
    pub fn count(&self, expression: &str, from: i64, most: usize) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {MATCHING} LIMIT ?4)");
        self.ranges.iter().filter(|(_, last)| *last >= from).try_fold(0, |found, (first, last)| {
            let left = most - found;
            let more: usize = self.connection.one(&sql, params![expression, first.max(&from), last, left])?;
            Ok(found + more)
        })
    }

    /// The rows of the newest matching passages from `from` on, at most `most`, newest first.
    pub fn newest(&self, expression: &str, from: i64, most: usize) -> Result<Vec<i64>> {
        let sql = format!("SELECT rowid FROM {MATCHING} ORDER BY rowid DESC LIMIT ?4");
        let mut found = Vec::new();
        for (first, last) in self.ranges.iter().rev().take_while(|(_, last)| *last >= from) {
            let left = most - found.len();
            let rows: Vec<i64> =
                self.connection.all(&sql, params![expression, first.max(&from), last, left])?;
            found.extend(rows);
        }
        Ok(found)
    }

    /// The rows of all matching passages from `from` on, oldest first. That is the order of the index's
    /// lists, and takes about half the work of the opposite one.
    pub fn from(&self, expression: &str, from: i64) -> Result<Vec<i64>> {
        self.matching("rowid", expression, from)
    }

    /// All matching passages with their scores; higher is better.
    pub fn ranked(&self, expression: &str) -> Result<Vec<(i64, f64)>> {
        self.matching("rowid, -bm25(messages_fts, 1.0, 0.6)", expression, 0)
    }

    fn matching<T: FromRow>(&self, columns: &str, expression: &str, from: i64) -> Result<Vec<T>> {
        let sql = format!("SELECT {columns} FROM {MATCHING}");
        let mut found = Vec::new();
        for (first, last) in self.ranges.iter().filter(|(_, last)| *last >= from) {
            let rows: Vec<T> = self.connection.all(&sql, params![expression, first.max(&from), last])?;
            found.extend(rows);
        }
        Ok(found)
    }

    /// The messages with a matching passage that pass `filter`.
    pub fn messages(&self, expression: &str, filter: &Filter) -> Result<Vec<MessageId>> {
        let sql = format!(
            "SELECT DISTINCT m.id
               FROM (SELECT rowid AS passage FROM {MATCHING}) CROSS JOIN messages m
                 ON m.id = (SELECT id FROM messages
                             WHERE first_passage <= passage ORDER BY first_passage DESC LIMIT 1)
                AND {}",
            passes()
        );
        let mut found = Vec::new();
        for (first, last) in &self.ranges {
            let params = parameters(filter, &[("?1", &expression), ("?2", first), ("?3", last)]);
            let messages: Vec<MessageId> = self.connection.all(&sql, params.as_slice())?;
            found.extend(messages);
        }
        Ok(found)
    }

    /// Some of the passages with a word, spelled as in the index: the first `most`.
    pub fn with(&self, word: &str, most: usize) -> Result<Vec<i64>> {
        let sql = "SELECT DISTINCT doc FROM temp.index_places WHERE term = ?1";
        let mut found = Vec::new();
        self.connection.each_while(sql, [word], |row| {
            let row = row.get(0)?;
            let is_among = self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&row));
            found.extend(is_among.then_some(row));
            Ok(found.len() < most)
        })?;
        Ok(found)
    }

    /// About how many passages these are.
    pub fn size(&self) -> i64 {
        self.ranges.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, i64::saturating_add)
    }

    /// The first of the newest `most` rows.
    pub fn newest_from(&self, most: i64) -> i64 {
        let mut left = most.max(0);
        for (first, last) in self.ranges.iter().rev() {
            let here = (last - first).saturating_add(1);
            if here > left {
                return last.saturating_add(1).saturating_sub(left);
            }
            left -= here;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rusqlite::Connection;

    use super::*;

    #[test]
    fn the_results_of_a_call_are_found_without_reading_what_follows() {
        let mut memory = Connection::open_in_memory().unwrap();
        memory.execute_batch(include_str!("../db/schema.sql")).unwrap();
        for (row, role) in (1..).zip(["assistant", "toolResult", "toolResult"].iter().chain(&["user"; 60])) {
            let sql = "INSERT INTO messages VALUES
                       (?1, CAST(?1 AS BLOB), nullif(?1 - 1, 0), 0, 0, ?2, NULL, 1, 1, x'7b7d', 0, 2, NULL, 0)";
            memory.execute(sql, params![row, role]).unwrap();
        }
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&steps);
        let count = move || counted.fetch_add(1, Ordering::Relaxed) == usize::MAX;
        memory.progress_handler(1, Some(count)).unwrap();
        let found = FullTextIndex::new(&memory).results_behind(MessageId(1)).unwrap();
        assert_eq!(found, [MessageId(2), MessageId(3)]);
        assert!(steps.load(Ordering::Relaxed) < 100);
    }
}
