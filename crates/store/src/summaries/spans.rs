//! The run of messages a summary covers.

use super::extras::Extras;
use crate::columns::{Queries as _, from_row};
use crate::{LastRows, Summaries};
use lcm_model::dag::Sources;
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, MessageId, SummaryId};

/// Whether a summary `s` is of the session `:conversation`: a fork may continue what it begins with.
pub(crate) const IS_IN_SESSION: &str = "
    (EXISTS (SELECT 1 FROM entries e WHERE e.message_id = s.first_message AND e.conversation_id = :conversation)
     AND EXISTS (SELECT 1 FROM entries e WHERE e.message_id = s.last_message AND e.conversation_id = :conversation))";

/// The messages that a summary spans.
pub struct SourceSpan {
    pub first: MessageId,
    pub last: MessageId,
    pub messages: usize,
    pub from_time: i64,
    pub to_time: i64,
}

from_row!(SourceSpan { first = "first_message", last = "last_message", messages, from_time, to_time });

impl Summaries<'_> {
    /// The span of a future summary: from the start of its first source to the end of its last.
    pub(crate) fn span_of(&self, sources: &Sources) -> Result<SourceSpan> {
        let missing = || Error::store("a summary needs at least one source");
        match sources {
            Sources::Messages(messages) => {
                let (first, last) = messages.first().zip(messages.last()).ok_or_else(missing)?;
                let time = |id: &MessageId| self.one("SELECT timestamp FROM messages WHERE id = ?1", [id]);
                let (from_time, to_time) = (time(first)?, time(last)?);
                Ok(SourceSpan { first: *first, last: *last, messages: messages.len(), from_time, to_time })
            }
            Sources::Summaries(summaries) => {
                let spans = summaries.iter().map(|source| self.span(*source));
                let joined = spans.reduce(|one, next| {
                    let (SourceSpan { first, messages, from_time, .. }, next) = (one?, next?);
                    Ok(SourceSpan { first, from_time, messages: messages + next.messages, ..next })
                });
                joined.ok_or_else(missing)?
            }
        }
    }

    /// Whether a session file may summarize these sources, whose session began to be read after the rows `since`. It
    /// displaces no summary that was made here, and adds none to what its session, or any if there is none, had before.
    pub fn are_free(
        &self,
        sources: &Sources,
        conversation: Option<ConversationId>,
        since: LastRows,
    ) -> Result<bool> {
        let (column, rows, first) = match sources {
            Sources::Messages(messages) => {
                let rows = messages.iter().map(|id| id.0).collect::<Vec<_>>();
                ("message_id", rows.clone(), rows)
            }
            Sources::Summaries(summaries) => {
                let first = |id: &SummaryId| self.span(*id).map(|span| span.first.0);
                let first = summaries.iter().map(first).collect::<Result<_>>()?;
                ("source_id", summaries.iter().map(|id| id.0).collect(), first)
            }
        };
        // Sources that are summaries count as over themselves.
        let over = format!(
            "WITH RECURSIVE over (id) AS (
               SELECT summary_id FROM summary_sources WHERE {column} = ?1
               UNION SELECT s.summary_id FROM summary_sources s JOIN over ON s.source_id = over.id
             )
             SELECT extras FROM summaries WHERE id IN over OR '{column}' = 'source_id' AND id = ?1"
        );
        for row in rows {
            let over: Vec<Option<Vec<u8>>> = self.all(&over, [row])?;
            if over.into_iter().any(|extras| !Extras::from_sql(extras).restored) {
                return Ok(false);
            }
        }
        let (messages, is_new) = (self.messages(), |row| since.is_before(MessageId(row)));
        for row in first.into_iter().filter(|row| !is_new(*row)) {
            let is_of_it = match conversation {
                Some(conversation) => messages.showed(conversation, MessageId(row), since)?,
                None => true,
            };
            if is_of_it {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a summary covers.
    pub fn span(&self, id: SummaryId) -> Result<SourceSpan> {
        self.one("SELECT * FROM summaries WHERE id = ?1", [id])
    }

    /// Whether a leaf summary covers every message from its first to its last. If so, it is valid on any
    /// unedited branch that shows its last message.
    pub fn is_unbroken(&self, summary: SummaryId) -> Result<bool> {
        self.one(
            "SELECT last.height - first.height + 1 = s.messages AND first.kind = 0 AND last.kind = 0
               FROM summaries s
               JOIN messages first ON first.id = s.first_message
               JOIN messages last ON last.id = s.last_message
              WHERE s.id = ?1",
            [summary],
        )
    }
}
