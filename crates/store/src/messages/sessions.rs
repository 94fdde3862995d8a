//! The sessions of a project and their key facts.

use rusqlite::{Row, ToSql, params};

use crate::columns::{FromRow, Queries as _, writing};
use crate::messages::counts::Counts;
use crate::messages::entries::END;
use crate::{Filter, MessageWriter, Messages};
use lcm_model::error::Result;
use lcm_model::ids::{AGENTS, ConversationId, MessageId, PI};
use lcm_model::{agent_of_session, is_of_side_chain};

/// Whether the session `c` is one of Pi's. Other agents' messages can be searched, but never enter a context.
pub(crate) fn is_pi_s() -> String {
    format!("({})", AGENTS.map(|agent| format!("c.session_id NOT GLOB '{agent}:*'")).join(" AND "))
}

/// Whether anything is left of the session `c`.
const IS_LEFT: &str = "EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
                                 WHERE e.conversation_id = c.id AND m.kind <> 4)";

/// Whether the message `m` passes the [`Filter`] whose [`parameters`] are bound.
pub(crate) fn passes() -> String {
    format!(
        "(:role IS NULL OR m.role = :role)
         AND (:tool IS NULL OR m.tool_name = :tool COLLATE NOCASE)
         AND (:after IS NULL OR m.timestamp >= :after)
         AND (:before IS NULL OR m.timestamp <= :before)
         AND (:conversation IS NULL OR EXISTS
              (SELECT 1 FROM entries e WHERE e.message_id = m.id AND e.conversation_id = :conversation))
         AND (:agent IS NULL OR EXISTS
              (SELECT 1 FROM entries e JOIN conversations c ON c.id = e.conversation_id
                WHERE e.message_id = m.id
                  AND iif(:agent = '{PI}', {is_pi_s}, c.session_id GLOB :agent || ':*')))",
        is_pi_s = is_pi_s()
    )
}

/// The parameters of a query for messages that pass `filter`, with `others`.
pub(crate) fn parameters<'a>(
    filter: &'a Filter,
    others: &[(&'static str, &'a dyn ToSql)],
) -> Vec<(&'static str, &'a dyn ToSql)> {
    let mut all: Vec<(&'static str, &dyn ToSql)> = vec![
        (":role", &filter.role),
        (":tool", &filter.tool),
        (":after", &filter.after),
        (":before", &filter.before),
        (":conversation", &filter.conversation),
        (":agent", &filter.agent),
    ];
    all.extend_from_slice(others);
    all
}

/// A session, as other sessions see it.
pub struct SessionFacts {
    pub session_id: String,
    pub messages: usize,
    pub from_time: i64,
    pub to_time: i64,
    pub first_request: Option<MessageId>,
}

/// A session as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSession {
    pub id: ConversationId,
    pub session_id: String,
    pub file: Option<String>,
    /// The file of the session it was forked from.
    pub parent: Option<String>,
    pub started_at: i64,
    /// When it was last opened, in ms.
    pub seen_at: i64,
}

impl FromRow for StoredSession {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            session_id: row.get("session_id")?,
            file: row.get("file")?,
            // Only the head of an exported file and the order of sessions need these: damage to them costs no more.
            parent: row.get("parent_session").unwrap_or_default(),
            started_at: row.get("started_at").unwrap_or_default(),
            seen_at: row.get("seen_at").unwrap_or_default(),
        })
    }
}

impl Messages<'_> {
    /// Pi's id of a session.
    pub fn session_id(&self, conversation: ConversationId) -> Result<String> {
        self.one("SELECT session_id FROM conversations WHERE id = ?1", [conversation])
    }

    /// At most `most` sessions of other agents that have messages, the one with the latest message first.
    pub fn sessions_of_agents(&self, most: usize) -> Result<Vec<ConversationId>> {
        self.all(
            &format!(
                "SELECT id FROM conversations c
                  WHERE NOT {is_pi_s}
                    AND EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
                                 WHERE e.conversation_id = c.id AND m.kind IN (0, 1))
                  ORDER BY (SELECT to_time FROM counts WHERE conversation_id = c.id) DESC, id DESC LIMIT ?1",
                is_pi_s = is_pi_s()
            ),
            [most],
        )
    }

    /// At most `most` other sessions that have messages: Pi's before other agents', those opened here before those of other
    /// machines, the last used first: as `pi -c` chooses.
    pub fn other_sessions(&self, conversation: ConversationId, most: usize) -> Result<Vec<ConversationId>> {
        self.all(
            &format!(
                "SELECT id FROM conversations c
                  WHERE id <> ?1
                    AND {IS_LEFT}
                  ORDER BY {is_pi_s} DESC,
                           file IS NULL AND EXISTS (SELECT 1 FROM origins o WHERE o.conversation_id = c.id),
                           max(seen_at, coalesce((SELECT to_time FROM counts WHERE conversation_id = c.id), 0)) DESC,
                           id DESC LIMIT ?2",
                is_pi_s = is_pi_s()
            ),
            params![conversation, most],
        )
    }

    /// The number of earlier sessions that have messages, and the newest `most` of them. A fork, whose origin
    /// has the file `parent`, counts as its origin, so that both get the same answer.
    pub fn sessions_before(
        &self,
        conversation: ConversationId,
        parent: Option<&str>,
        most: usize,
    ) -> Result<(usize, Vec<ConversationId>)> {
        let mut ids = self.all::<_, Vec<_>>(&format!(
                "WITH RECURSIVE origins (id, parent_session) AS (
                   SELECT id, parent_session FROM conversations WHERE id = ?1 OR file = ?2
                   UNION
                   SELECT c.id, c.parent_session FROM origins o JOIN conversations c ON c.file = o.parent_session)
                 SELECT id FROM conversations c
                  WHERE (id < (SELECT min(id) FROM origins) OR NOT EXISTS (SELECT 1 FROM origins))
                    AND {is_pi_s}
                    AND EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
                                 WHERE e.conversation_id = c.id AND m.kind = 0)
                  ORDER BY id DESC",
                is_pi_s = is_pi_s()
            ), params![conversation, parent])?;
        let count = ids.len();
        ids.truncate(most);
        Ok((count, ids))
    }

    /// Pi's id of a session's last stored entry. Pi continues below it when it opens the session again. For
    /// another agent it is the last one that is not of a side chain. Other versions of messages, which a sync may bring, don't count,
    /// and neither does a message that an import or a sync has added late, below older ones.
    pub fn last_entry(&self, conversation: ConversationId) -> Result<Option<String>> {
        let end = END.to_string();
        if agent_of_session(&self.session_id(conversation)?).is_none() {
            let Some(row) = self.last_row(conversation)? else { return Ok(None) };
            // Backwards from that row: an index of the session would be read whole.
            let last: Option<(String, Option<i64>)> = self.first(
                "SELECT e.entry_id, m.timestamp FROM entries e
                   LEFT JOIN messages m ON m.id = e.message_id AND e.kind = 1
                  WHERE e.id <= ?3 AND +e.conversation_id = ?1 AND instr(e.entry_id, ?2) = 0
                  ORDER BY e.id DESC LIMIT 1",
                params![conversation, end, row],
            )?;
            let newest = self.counts(conversation)?.times.map(|(_, newest)| newest);
            return match last {
                Some((_, time)) if time.is_some() && time < newest => self.first(
                    "SELECT e.entry_id FROM entries e JOIN messages m ON m.id = e.head_id
                      WHERE e.conversation_id = ?1 AND instr(e.entry_id, ?2) = 0
                        AND NOT EXISTS (SELECT 1 FROM entries c WHERE c.id = e.id + 1 AND c.parent_id = e.id)
                        AND NOT EXISTS (SELECT 1 FROM entries c WHERE c.parent_id = e.id AND c.parent_id IS NOT c.id - 1)
                      ORDER BY m.timestamp DESC, e.id DESC LIMIT 1",
                    params![conversation, end],
                ),
                last => Ok(last.map(|(entry, _)| entry)),
            };
        }
        let sql = "SELECT entry_id FROM entries WHERE conversation_id = ?1 AND instr(entry_id, ?2) = 0 ORDER BY id DESC";
        let ids: Vec<String> = self.all(sql, params![conversation, end])?;
        Ok(ids.iter().find(|id| !is_of_side_chain(id)).or(ids.first()).cloned())
    }

    /// The project's folder.
    pub fn project(&self) -> Result<String> {
        Ok(self.fact("cwd")?.unwrap_or_default())
    }

    /// The facts of a session. Messages hidden from the model are not counted.
    pub fn session_facts(&self, conversation: ConversationId) -> Result<SessionFacts> {
        let Counts { messages, times, first_request, .. } = self.counts(conversation)?;
        // Of one that was purged, only when it began is known.
        let began = || self.one("SELECT started_at FROM conversations WHERE id = ?1", [conversation]);
        let (from_time, to_time) = times.map_or_else(|| began().map(|began| (began, began)), Ok)?;
        let session_id = self.session_id(conversation)?;
        Ok(SessionFacts { session_id, messages, from_time, to_time, first_request })
    }

    /// All sessions, oldest first, or only this one.
    pub fn sessions(&self, only: Option<ConversationId>) -> Result<Vec<StoredSession>> {
        self.all("SELECT * FROM conversations WHERE ?1 IS NULL OR id = ?1 ORDER BY id", [only])
    }

    /// The session with Pi's id `session_id`, if the store knows it. Its row is read beside the index, so that
    /// opening a session detects a damaged table.
    pub fn conversation(&self, session_id: &str) -> Result<Option<ConversationId>> {
        self.first("SELECT id, seen_at FROM conversations WHERE session_id = ?1", [session_id])
    }

    /// The number of the project's sessions of which anything is left.
    pub fn conversations(&self) -> Result<usize> {
        self.one(&format!("SELECT count(*) FROM conversations c WHERE {IS_LEFT}"), [])
    }

    /// Whether anything is left of a session.
    pub fn is_left(&self, conversation: ConversationId) -> Result<bool> {
        self.one(
            &format!("SELECT EXISTS (SELECT 1 FROM conversations c WHERE id = ?1 AND {IS_LEFT})"),
            [conversation],
        )
    }

    /// The sessions that show a message.
    pub fn sessions_of(&self, id: MessageId) -> Result<Vec<ConversationId>> {
        self.all("SELECT DISTINCT conversation_id FROM entries WHERE message_id = ?1", [id])
    }

    /// Pi's ids of all stored sessions.
    pub fn session_ids(&self) -> Result<Vec<String>> {
        self.all("SELECT session_id FROM conversations", [])
    }
}

impl MessageWriter<'_> {
    /// The row of a session, created if it is new. Updates its file and when it was last seen.
    pub fn conversation_row(
        &self,
        session_id: &str,
        file: Option<&str>,
        parent_session: Option<&str>,
        now: i64,
    ) -> Result<ConversationId> {
        let sql = "INSERT INTO conversations (session_id, file, parent_session, started_at, seen_at)
             VALUES (?1, ?2, ?3, ?4, ?4)
             ON CONFLICT (session_id) DO UPDATE
             SET file = coalesce(excluded.file, file), seen_at = excluded.seen_at
             RETURNING id";
        let params = params![session_id, file, parent_session, now];
        self.prepared(sql).and_then(|mut add| add.query_row(params, |row| row.get(0))).map_err(writing)
    }

    /// Records the file of a session.
    pub fn note_file(&self, conversation: ConversationId, file: &str) -> Result<()> {
        self.change("UPDATE conversations SET file = ?2 WHERE id = ?1", params![conversation, file])
    }
}
