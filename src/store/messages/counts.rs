//! The counts of sessions, kept with each added row: see `db/migrations/001_init.sql`.
//!
//! No trigger adds the messages: SQLite opens a savepoint for an insert that fires one, and the full-text index
//! writes all it has gathered at each savepoint.

use rusqlite::{Connection, Row, params};

use crate::error::Result;
use crate::ids::{ConversationId, EntryId, MessageId};
use crate::store::columns::{FromRow, Queries as _};
use crate::store::{MessageWriter, Messages};

/// The counts of the session `?1`, from its entries.
const COUNTED: &str = "
    SELECT ?1 AS conversation_id,
           count(DISTINCT CASE WHEN e.kind = 1 AND m.kind IN (0, 1) THEN m.id END) AS messages,
           count(DISTINCT CASE WHEN e.kind = 1 AND m.kind = 0 THEN m.id END) AS visible,
           min(CASE WHEN e.kind = 1 AND m.kind = 0 THEN m.timestamp END) AS from_time,
           max(CASE WHEN e.kind = 1 AND m.kind = 0 THEN m.timestamp END) AS to_time,
           min(CASE WHEN e.kind = 1 AND m.kind = 0 AND m.role = 'user' THEN m.id END) AS first_request,
           min(m.id) AS lowest,
           max(m.id) AS highest
      FROM entries e JOIN messages m ON m.id = e.message_id
     WHERE e.conversation_id = ?1";

/// The same of the project.
const COUNTED_IN_ALL: &str = "
    SELECT -1 AS conversation_id, count(*) AS messages, 0 AS visible, NULL AS from_time, NULL AS to_time,
           NULL AS first_request, NULL AS lowest, NULL AS highest
      FROM messages WHERE kind IN (0, 1) AND ?1 = -1";

/// The row of the whole project.
const PROJECT: ConversationId = ConversationId(-1);

/// What is counted of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that it shows on any branch, including those kept from the model.
    pub messages: usize,
    /// Those not kept from the model.
    pub visible: usize,
    /// Times of the first and the last of these, in ms.
    pub times: Option<(i64, i64)>,
    pub first_request: Option<MessageId>,
    /// The first and the last row of the messages that its entries refer to.
    pub rows: Option<(i64, i64)>,
}

impl FromRow for Counts {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let pair = |from: &str, to: &str| -> rusqlite::Result<_> {
            Ok(row.get::<_, Option<i64>>(from)?.zip(row.get::<_, Option<i64>>(to)?))
        };
        Ok(Self {
            messages: row.get("messages")?,
            visible: row.get("visible")?,
            times: pair("from_time", "to_time")?,
            first_request: row.get("first_request")?,
            rows: pair("lowest", "highest")?,
        })
    }
}

/// The query that counts a session or the project.
const fn counting(conversation: ConversationId) -> &'static str {
    if conversation.0 == PROJECT.0 { COUNTED_IN_ALL } else { COUNTED }
}

impl Messages<'_> {
    /// The counts of a session. Costs its length only if they are unknown.
    pub fn counts(&self, conversation: ConversationId) -> Result<Counts> {
        match self.recorded(conversation) {
            Ok(Some(counts)) => Ok(counts),
            // What is recorded may also be damaged.
            Ok(None) | Err(_) => self.counted(conversation),
        }
    }

    /// The number of messages stored for the project.
    pub fn project_messages(&self) -> Result<usize> {
        self.counts(PROJECT).map(|counts| counts.messages)
    }

    fn recorded(&self, conversation: ConversationId) -> Result<Option<Counts>> {
        self.connection.first("SELECT * FROM counts WHERE conversation_id = ?1", [conversation])
    }

    fn counted(&self, conversation: ConversationId) -> Result<Counts> {
        self.connection.one(counting(conversation), [conversation.0])
    }

    /// Whether what is recorded of a session, or of the whole project (`None`), is right. Costs its length.
    pub fn is_counted_right(&self, conversation: Option<ConversationId>) -> Result<bool> {
        let conversation = conversation.unwrap_or(PROJECT);
        Ok(match self.recorded(conversation) {
            Ok(None) => true,
            Ok(Some(recorded)) => self.counted(conversation)? == recorded,
            // A negative number.
            Err(_) => false,
        })
    }
}

impl MessageWriter<'_> {
    /// Counts a new message.
    pub(in crate::store) fn count_message(&self) -> Result<()> {
        self.connection
            .change("UPDATE counts SET messages = messages + 1 WHERE conversation_id = ?1", [PROJECT])
    }

    /// Counts the message of a new entry. A message that a session shows in several entries counts once.
    pub(in crate::store) fn count_entry(&self, entry: EntryId, message: MessageId) -> Result<()> {
        // Integers, NULL where nothing is to be counted.
        type Facts = (i64, bool, bool, Option<i64>, Option<i64>);
        let (conversation, is_new, is_visible, time, request): Facts = self.connection.one(
            "SELECT e.conversation_id,
                   e.kind = 1 AND m.kind IN (0, 1)
                     AND NOT EXISTS (SELECT 1 FROM entries o
                                      WHERE o.message_id = e.message_id AND o.conversation_id = e.conversation_id
                                        AND o.kind = 1 AND o.id <> e.id),
                   e.kind = 1 AND m.kind = 0,
                   CASE WHEN e.kind = 1 AND m.kind = 0 THEN m.timestamp END,
                   CASE WHEN e.kind = 1 AND m.kind = 0 AND m.role = 'user' THEN m.id END
              FROM entries e JOIN messages m ON m.id = ?2 WHERE e.id = ?1",
            (entry, message))?;
        self.connection.change(
            "UPDATE counts
                    SET messages = messages + ?2, visible = visible + (?2 AND ?3),
                        from_time = coalesce(min(from_time, ?4), from_time, ?4),
                        to_time = coalesce(max(to_time, ?4), to_time, ?4),
                        first_request = coalesce(min(first_request, ?5), first_request, ?5),
                        lowest = coalesce(min(lowest, ?6), ?6),
                        highest = coalesce(max(highest, ?6), ?6)
                  WHERE conversation_id = ?1",
            params![conversation, is_new, is_visible, time, request, message],
        )
    }

    /// Makes all counts unknown: they are recorded again at the next checkpoint.
    pub fn forget_counts(&self) -> Result<()> {
        self.connection.change("DELETE FROM counts", [])
    }
}

/// Records the counts that are unknown.
pub(in crate::store) fn count(connection: &Connection) -> Result<()> {
    let unknown: Vec<ConversationId> = connection.all(
        "SELECT id FROM (SELECT -1 AS id UNION ALL SELECT id FROM conversations)
          WHERE id NOT IN (SELECT conversation_id FROM counts)",
        [],
    )?;
    unknown.into_iter().try_for_each(|conversation| {
        connection.change(&format!("INSERT OR IGNORE INTO counts {}", counting(conversation)), [conversation])
    })
}
