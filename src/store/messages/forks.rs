//! Finds the message that a fork of another agent's session copies. The copy has another record: another session's id, other ids,
//! or another time.

use rusqlite::{named_params, params};

use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{ConversationId, Hash, MessageId};
use crate::model::{forked_from, is_of_side_chain, original_of, own_id, said};
use crate::store::columns::Queries as _;
use crate::store::{Messages, NewMessage};

/// Messages `m` that may say the same as a new one. A fork may copy messages with new times, right after its start.
macro_rules! candidates {
    ($where:literal) => {
        concat!(
            "SELECT m.id, m.lineage, m.height FROM messages m
              WHERE ",
            $where,
            " AND m.kind = :kind AND m.role = :role AND m.lineage <> :lineage
                AND ((m.timestamp = :time AND :kind <> 2)
                  OR EXISTS (SELECT 1 FROM entries e WHERE e.message_id = m.id AND e.entry_id = :first)
                  OR EXISTS (SELECT 1 FROM conversations c
                              WHERE c.id = :session AND c.parent_session IS NOT NULL AND :kind <> 2
                                AND :time - c.started_at BETWEEN 0 AND 10000)
                  OR EXISTS (SELECT 1 FROM entries e JOIN conversations c ON c.id = e.conversation_id
                              WHERE e.message_id = m.id AND :kind <> 2
                                AND (c.parent_session IS NOT NULL
                                     AND m.timestamp - c.started_at BETWEEN 0 AND 10000
                                     OR c.id = :session AND :is_side_chain)))
              ORDER BY m.id"
        )
    };
}

/// Those below the same message.
const BELOW: &str = candidates!("ifnull(m.parent_id, 0) = :above");

/// First messages, at the same time or of a related session.
const FIRST: &str = candidates!(
    ":above IS NULL AND m.parent_id IS NULL AND m.id IN (
       SELECT id FROM messages WHERE parent_id IS NULL AND timestamp = :time
       UNION ALL
       SELECT n.first_request FROM conversations own
         JOIN conversations c
           ON c.session_id = own.parent_session OR c.parent_session IN (own.parent_session, own.session_id)
              OR c.id = own.id AND :is_side_chain
         JOIN counts n ON n.conversation_id = c.id
        WHERE own.id = :session)"
);

impl Messages<'_> {
    /// The stored message of which `new`, another agent's in `entry`, is a copy, with its lineage and height. It says the same below
    /// the same message: at the same time, or in a fork that one of both sessions is, or in a side chain that begins as its session.
    /// One that search ignores is a copy only by its id.
    pub fn copied(
        &self,
        conversation: ConversationId,
        entry: &str,
        new: &NewMessage<'_>,
    ) -> Result<Option<(MessageId, Hash, i64)>> {
        let first = forked_from(new.json).or_else(|| own_id(new.json));
        if new.kind == MessageKind::System && first.is_none() {
            return Ok(None);
        }
        let candidates: Vec<(MessageId, Hash, i64)> = self.connection.all(
            if new.parent.is_some() { BELOW } else { FIRST },
            named_params! {
                ":above": new.parent, ":kind": new.kind, ":role": new.role.as_str(), ":lineage": new.lineage,
                ":time": new.timestamp, ":first": first, ":session": conversation,
                ":is_side_chain": is_of_side_chain(entry),
            },
        )?;
        for candidate in candidates {
            if said(&self.json_of(candidate.0)?) == said(new.json) {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
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
