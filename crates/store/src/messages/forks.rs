//! Finds the message that a fork of another agent's session copies. The copy has another record: another session's id, other ids,
//! or another time.

use rusqlite::{named_params, params};

use crate::columns::Queries as _;
use crate::{Head, Messages, NewMessage};
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{CODEX, ConversationId, Hash, MessageId};
use lcm_model::{agent_of, first_id, is_of_side_chain, may_carry, original_of, record_of, repeated, said};

/// Selects the messages `m` among these that may say the same as a new one, and whether they then are the same. A fork may copy
/// messages with new times, right after its start.
fn candidates(among: &str) -> String {
    format!(
        "SELECT id, lineage, height, is_named OR is_related FROM (
           SELECT m.id, m.lineage, m.height,
                  EXISTS (SELECT 1 FROM entries e WHERE e.message_id = m.id AND e.entry_id = :first) AS is_named,
                  m.timestamp = :time
                    OR EXISTS (SELECT 1 FROM entries own JOIN entries o ON o.message_id = own.message_id
                                 JOIN entries e ON e.conversation_id = o.conversation_id AND e.entry_id = o.entry_id || :number
                                WHERE own.conversation_id = :session AND own.entry_id = :record AND e.message_id = m.id)
                    OR EXISTS (SELECT 1 FROM conversations c
                                WHERE c.id = :session AND c.parent_session IS NOT NULL
                                  AND :time - c.started_at BETWEEN 0 AND 10000)
                    OR EXISTS (SELECT 1 FROM entries e JOIN conversations c ON c.id = e.conversation_id
                                WHERE e.message_id = m.id
                                  AND (c.parent_session IS NOT NULL
                                       AND m.timestamp - c.started_at BETWEEN 0 AND 10000
                                       OR c.id = :session AND :is_copy)) AS is_related
             FROM messages m
            WHERE {among} AND m.kind = :kind AND m.role = :role AND m.tokens = :tokens AND m.lineage <> :lineage
              AND (:may_be_again
                   OR NOT EXISTS (SELECT 1 FROM entries e
                                   WHERE e.message_id = m.id AND e.conversation_id = :session
                                     AND instr(e.entry_id, ':') = 0)))
          WHERE is_named OR is_related OR :first IS NOT NULL
          ORDER BY is_named DESC, id"
    )
}

/// Those below the same message.
const BELOW: &str = "ifnull(m.parent_id, 0) = :above";

/// First messages, at the same time or of a related session.
const FIRST: &str = ":above IS NULL AND m.parent_id IS NULL AND m.id IN (
       SELECT id FROM messages WHERE parent_id IS NULL AND timestamp = :time
       UNION ALL
       SELECT CASE WHEN n.conversation_id IS NOT NULL THEN n.first_request ELSE
                (SELECT min(f.id) FROM entries e JOIN messages f ON f.id = e.message_id
                  WHERE e.conversation_id = c.id AND e.kind = 1 AND f.kind = 0 AND f.role = 'user') END
         FROM conversations own
         JOIN conversations c
           ON c.session_id = own.parent_session OR c.parent_session IN (own.parent_session, own.session_id)
              OR c.id = own.id AND :is_copy
         LEFT JOIN counts n ON n.conversation_id = c.id
        WHERE own.id = :session)";

impl Messages<'_> {
    /// The stored message of which `new`, another agent's in `entry`, is a copy. It says the same below
    /// the same message: at the same time, or in a fork that one of both sessions is, or in a side chain of Codex that begins
    /// as its session. One that search ignores is none: nothing is below it. A session shows a message twice only in a side chain, or if
    /// its log repeats the id.
    pub fn copied(
        &self,
        conversation: ConversationId,
        entry: &str,
        new: &NewMessage<'_>,
    ) -> Result<Option<Head>> {
        if new.kind == MessageKind::System {
            return Ok(None);
        }
        let first = first_id(new.json);
        // The other messages of a record go with its first.
        let (record, number) = entry.rfind('/').map(|at| entry.split_at(at)).unzip();
        let is_side_chain = is_of_side_chain(entry);
        let candidates: Vec<(MessageId, Hash, i64, bool)> = self.connection.all(
            &candidates(if new.parent.is_some() { BELOW } else { FIRST }),
            named_params! {
                ":above": new.parent, ":kind": new.kind, ":role": new.role.as_str(), ":lineage": new.lineage,
                ":tokens": new.tokens, ":time": new.timestamp, ":first": first,
                ":record": record, ":number": number, ":session": conversation,
                ":may_be_again": is_side_chain || repeated(entry).is_some(),
                // Only Codex copies a session into a side chain, with new times.
                ":is_copy": is_side_chain && agent_of(new.json) == Some(CODEX),
            },
        )?;
        // An unreadable one says nothing. The last message of a fork may have another time, and name the first.
        let is_same = |(id, _, _, is_related): &(MessageId, Hash, i64, bool)| {
            self.json_of(*id)
                .is_ok_and(|json| said(&json) == said(new.json) && (*is_related || first_id(&json) == first))
        };
        Ok(candidates.into_iter().find(is_same).map(|(id, lineage, height, ..)| (id, lineage, height)))
    }

    /// Whether another entry of its session has the record of `entry`, which has nothing else.
    pub fn has_record(&self, conversation: ConversationId, entry: &str, json: &str) -> Result<bool> {
        let shown: Vec<(MessageId, String)> = self.connection.all(
            "SELECT e.message_id, e.entry_id FROM entries e
              WHERE e.conversation_id = ?1 AND e.message_id IS NOT NULL AND e.entry_id >= ?2 AND e.entry_id < ?2 || 'A'",
            params![conversation, record_of(entry)],
        )?;
        let has_it = |(id, other): (MessageId, String)| {
            may_carry(&other)
                && record_of(&other) == record_of(entry)
                && self.json_of(id).is_ok_and(|other| original_of(&other) == original_of(json))
        };
        Ok(shown.into_iter().any(has_it))
    }

    /// The hashes of the records that entries of a session have, none of purged ones, and their times.
    pub fn records_at(
        &self,
        conversation: ConversationId,
        entries: &[String],
    ) -> Result<Vec<(Option<Hash>, i64)>> {
        let of_one = |entry: &String| {
            let found: Option<(MessageId, i64)> = self.connection.first(
                "SELECT m.id, m.timestamp FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND e.entry_id = ?2",
                params![conversation, entry],
            )?;
            let Some((message, time)) = found else { return Ok((None, 0)) };
            // An unreadable one has none.
            let json = self.json_of(message).ok();
            let record = json.as_deref().and_then(original_of);
            Ok((record.map(|record| Hash::plain(record.as_bytes())), time))
        };
        entries.iter().map(of_one).collect()
    }
}
