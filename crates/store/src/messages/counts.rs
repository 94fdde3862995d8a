//! The counts of sessions, kept with each hand-over: see `db/schema.sql`.
//!
//! No trigger adds the messages: SQLite opens a savepoint for an insert that fires one, and the full-text index
//! writes all it has gathered at each savepoint.

use rusqlite::{Connection, Row, params};

use crate::columns::{FromRow, Queries as _};
use crate::{MessageWriter, Messages};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId};

/// The counts of the session `?1`, from those of its entries that meet a condition. Of the entries that show one message
/// the first counts.
macro_rules! counted {
    ($of:literal) => {
        concat!(
            "
    SELECT ?1 AS conversation_id,
           count(CASE WHEN e.kind = 1 AND m.kind IN (0, 1) THEN 1 END) AS messages,
           min(CASE WHEN e.kind = 1 AND m.kind = 0 THEN m.timestamp END) AS from_time,
           max(CASE WHEN e.kind = 1 AND m.kind = 0 THEN m.timestamp END) AS to_time,
           min(CASE WHEN e.kind = 1 AND m.kind = 0 AND m.role = 'user' THEN m.id END) AS first_request,
           min(m.id) AS lowest,
           max(m.id) AS highest
      FROM entries e JOIN messages m ON m.id = e.message_id
     WHERE NOT EXISTS (SELECT 1 FROM entries o
                        WHERE o.message_id = e.message_id AND o.conversation_id = ?1 AND o.kind = 1 AND o.id < e.id)
       AND ",
            $of
        )
    };
}

const COUNTED: &str = counted!("e.conversation_id = ?1");

/// The counts of the entries after row `?2`, all of the session `?1`.
const ADDED: &str = counted!("e.id > ?2");

/// The same of the project.
const COUNTED_IN_ALL: &str = "
    SELECT -1 AS conversation_id, count(*) AS messages, NULL AS from_time, NULL AS to_time,
           NULL AS first_request, NULL AS lowest, NULL AS highest
      FROM messages WHERE kind IN (0, 1) AND ?1 = -1";

/// The row of the whole project.
const PROJECT: ConversationId = ConversationId(-1);

/// What is counted of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that it shows on any branch, including those kept from the model.
    pub messages: usize,
    /// Times of the first and the last that is not kept from the model, in ms.
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

    /// The last rows, also for [`MessageWriter::count_added`].
    pub fn last_rows(&self) -> Result<LastRows> {
        let sql =
            "SELECT (SELECT coalesce(max(id), 0) FROM messages), (SELECT coalesce(max(id), 0) FROM entries)";
        self.one(sql, []).map(|(message, entry)| LastRows { message, entry })
    }

    /// Whether an entry of a session that was added before `since` shows a message.
    pub fn showed(&self, conversation: ConversationId, message: MessageId, since: LastRows) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM entries
                                   WHERE message_id = ?2 AND conversation_id = ?1 AND id <= ?3)";
        self.one(sql, (conversation, message, since.entry))
    }

    fn recorded(&self, conversation: ConversationId) -> Result<Option<Counts>> {
        self.first("SELECT * FROM counts WHERE conversation_id = ?1", [conversation])
    }

    fn counted(&self, conversation: ConversationId) -> Result<Counts> {
        self.one(counting(conversation), [conversation.0])
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

/// The last rows before others are added.
#[derive(Clone, Copy, Debug)]
pub struct LastRows {
    message: i64,
    pub(super) entry: i64,
}

impl LastRows {
    /// Whether a message was added after them.
    pub fn is_before(&self, message: MessageId) -> bool {
        message.0 > self.message
    }
}

impl MessageWriter<'_> {
    /// Counts what was added after `last`, with entries of one session only. Returns the number of messages, those kept
    /// from the model included.
    pub fn count_added(&self, conversation: ConversationId, last: LastRows) -> Result<usize> {
        let sql = "SELECT count(*) FROM messages WHERE id > ?1 AND kind IN (0, 1)";
        let messages: usize = self.one(sql, [last.message])?;
        let sql = "UPDATE counts SET messages = messages + ?2 WHERE conversation_id = ?1";
        self.change(sql, params![PROJECT, messages])?;
        let added: Counts = self.one(ADDED, (conversation, last.entry))?;
        let (from, to) = added.times.unzip();
        let (lowest, highest) = added.rows.unzip();
        // With the SELECT inside, SQLite would open a savepoint.
        self.change(
            "UPDATE counts
                SET messages = messages + ?2,
                    from_time = coalesce(min(from_time, ?3), from_time, ?3),
                    to_time = coalesce(max(to_time, ?4), to_time, ?4),
                    first_request = coalesce(min(first_request, ?5), first_request, ?5),
                    lowest = coalesce(min(lowest, ?6), lowest, ?6),
                    highest = coalesce(max(highest, ?7), highest, ?7)
              WHERE conversation_id = ?1",
            params![conversation, added.messages, from, to, added.first_request, lowest, highest],
        )?;
        Ok(messages)
    }
}

/// Records the counts that are unknown.
pub(crate) fn count(connection: &Connection) -> Result<()> {
    let unknown: Vec<ConversationId> = connection.all(
        "SELECT id FROM (SELECT -1 AS id UNION ALL SELECT id FROM conversations)
          WHERE id NOT IN (SELECT conversation_id FROM counts)",
        [],
    )?;
    unknown.into_iter().try_for_each(|conversation| {
        connection.change(&format!("INSERT OR IGNORE INTO counts {}", counting(conversation)), [conversation])
    })
}
