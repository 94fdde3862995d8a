//! The run of messages a summary covers.

use crate::Summaries;
use crate::columns::{Queries as _, from_row};
use lcm_model::dag::Sources;
use lcm_model::error::{Error, Result};
use lcm_model::ids::{MessageId, SummaryId};

/// The messages that a summary spans.
pub(crate) struct SourceSpan {
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
                let time = |id: &MessageId| {
                    self.connection.one("SELECT timestamp FROM messages WHERE id = ?1", [id])
                };
                let (from_time, to_time) = (time(first)?, time(last)?);
                Ok(SourceSpan { first: *first, last: *last, messages: messages.len(), from_time, to_time })
            }
            Sources::Summaries(summaries) => {
                let spans = summaries.iter().map(|source| self.stored_span(*source));
                let joined = spans.reduce(|one, next| {
                    let (SourceSpan { first, messages, from_time, .. }, next) = (one?, next?);
                    Ok(SourceSpan { first, from_time, messages: messages + next.messages, ..next })
                });
                joined.ok_or_else(missing)?
            }
        }
    }

    fn stored_span(&self, id: SummaryId) -> Result<SourceSpan> {
        self.connection.one("SELECT * FROM summaries WHERE id = ?1", [id])
    }

    /// Whether a leaf summary covers every message from its first to its last. If so, it is valid on any
    /// unedited branch that shows its last message.
    pub fn is_unbroken(&self, summary: SummaryId) -> Result<bool> {
        self.connection.one(
            "SELECT last.height - first.height + 1 = s.messages AND first.kind = 0 AND last.kind = 0
               FROM summaries s
               JOIN messages first ON first.id = s.first_message
               JOIN messages last ON last.id = s.last_message
              WHERE s.id = ?1",
            [summary],
        )
    }

    /// The last message of a summary's span.
    pub fn last_message_of(&self, summary: SummaryId) -> Result<MessageId> {
        self.connection.one("SELECT last_message FROM summaries WHERE id = ?1", [summary])
    }
}
