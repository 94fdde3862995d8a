//! The placeholders of purged messages: they identify copies, so that these are not stored again.

use std::collections::HashSet;

use rusqlite::{named_params, params};

use crate::columns::Queries as _;
use crate::messages::codec;
use crate::{Head, Messages, NewMessage, Upkeep, UpkeepWriter};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId, Nonce, OPENCODE};
use lcm_model::{PURGED, agent_of, forked_from, is_numbered, purged_name, repeated, without_digests};

/// The stored id of an entry whose own id was taken, once its message is purged.
pub fn purged_variant(entry_id: &str, message: MessageId) -> String {
    format!("{entry_id} purged {}", message.0)
}

impl Upkeep<'_> {
    /// The placeholder of a purged message if `new` is a copy of it: same parent, same time, same entry id.
    /// Entries of the first session-file version have ids of ours first, and ids of Pi's later. A fork of
    /// another agent's session has other ids: it may name the first, or be one of OpenCode, which keeps the time. What a session
    /// of OpenCode copies is older than the session, as its own record says.
    pub fn purged_as(
        &self,
        conversation: ConversationId,
        entry_id: &str,
        call: Option<&str>,
        new: &NewMessage<'_>,
    ) -> Result<Option<Head>> {
        if let Some(first) = forked_from(new.json) {
            return self.connection.first(
                "SELECT id, lineage, height FROM messages m
                  WHERE kind = 4 AND parent_id IS ?1
                    AND EXISTS (SELECT 1 FROM entries e WHERE e.message_id = m.id AND e.entry_id IN (?2, ?3))",
                params![new.parent, entry_id, first],
            );
        }
        let agent = agent_of(new.json);
        let once_purged = |record: &str| purged_name(record, new.role.as_str(), call);
        let record = without_digests(entry_id);
        let side_chain = record.and_then(|record| record.split_once(':')).map(|(id, _)| id);
        // A purged entry that only had a record stands for another such record, if it was no version of a message: a fork copies none.
        let is_record = record.is_some_and(|record| record.ends_with('@'));
        // Only OpenCode copies messages it may rewrite.
        let of_any =
            record.filter(|_| agent == Some(OPENCODE)).map(|_| once_purged(if is_record { "@" } else { "" }));
        // Of the messages of a record, the first names what a fork copies.
        let (first, number) = agent.and_then(|_| entry_id.rsplit_once('/')).unzip();
        self.connection.first(
            "SELECT id, lineage, height FROM messages m
              WHERE kind = 4 AND parent_id IS :above AND timestamp = :time
                AND EXISTS (SELECT 1 FROM entries e
                             WHERE e.message_id = m.id
                               AND (e.entry_id IN (:entry, :entry || ' purged ' || m.id, :once_purged || m.id, :repeated)
                                    AND (:is_anywhere OR e.conversation_id = :session)
                                    OR (e.conversation_id = :session AND e.entry_id GLOB 'v1-[0-9]*')
                                    OR EXISTS (SELECT 1 FROM entries own JOIN entries o ON o.message_id = own.message_id
                                                WHERE own.conversation_id = :session AND own.entry_id = :first
                                                  AND e.entry_id = o.entry_id || '/' || :number)
                                    OR (substr(e.entry_id, -length(:of_any || m.id)) = :of_any || m.id
                                        AND instr(e.entry_id, '@' || :of_any) = 0
                                        AND NOT EXISTS (SELECT 1 FROM entries o
                                                         WHERE :is_record AND o.conversation_id = e.conversation_id
                                                           AND o.entry_id > substr(e.entry_id, 1, length(e.entry_id) - length(:of_any || m.id)) || ':'
                                                           AND o.entry_id < substr(e.entry_id, 1, length(e.entry_id) - length(:of_any || m.id)) || ';')
                                        AND NOT EXISTS (SELECT 1 FROM entries o
                                                         WHERE o.message_id = m.id AND o.conversation_id = :session)
                                        AND EXISTS (SELECT 1 FROM conversations c
                                                      JOIN entries o ON o.conversation_id = c.id
                                                      JOIN messages began ON began.id = o.message_id
                                                     WHERE c.id = :session AND began.timestamp > :time
                                                       AND o.entry_id > ifnull(:side_chain, substr(c.session_id, :own)) || '@'
                                                       AND o.entry_id < ifnull(:side_chain, substr(c.session_id, :own)) || 'A'))))",
            named_params! {
                ":above": new.parent, ":time": new.timestamp, ":session": conversation, ":entry": entry_id,
                ":once_purged": record.map(once_purged), ":repeated": repeated(entry_id),
                ":of_any": of_any, ":is_record": is_record,
                ":side_chain": side_chain.map(|id| format!("{id}:{id}")), ":own": OPENCODE.len() + 2,
                // The number of a line is not unique.
                ":is_anywhere": agent.is_none() || !is_numbered(entry_id),
                ":first": first, ":number": number,
            },
        )
    }

    /// Whether a message was purged that another entry with this id showed.
    pub fn is_variant_purged(&self, conversation: ConversationId, entry_id: &str) -> Result<bool> {
        let prefix = format!("{entry_id} purged ");
        self.connection.one(
            "SELECT EXISTS (SELECT 1 FROM entries
              WHERE conversation_id = ?1 AND entry_id > ?2 AND entry_id < ?2 || ':')",
            params![conversation, prefix],
        )
    }

    /// The last entry of the record of `entry_id` whose message is purged: its id has no digests any more.
    pub fn purged_entry(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<EntryId>> {
        self.connection.first(
            "SELECT id FROM entries
              WHERE conversation_id = ?1 AND entry_id > ?2 || ':' AND entry_id < ?2 || ';' AND instr(entry_id, ?3)
              ORDER BY id DESC",
            params![conversation, without_digests(entry_id), PURGED],
        )
    }

    /// Whether an entry shows the placeholder of a purged message.
    pub fn shows_purged(&self, conversation: ConversationId, entry_id: &str) -> Result<bool> {
        self.connection.one(
            "SELECT EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1 AND m.kind = 4)",
            params![conversation, entry_id],
        )
    }

    /// Whether any message above an entry was purged.
    pub fn is_below_purged(&self, entry: EntryId) -> Result<bool> {
        self.is_below(entry, |message| {
            self.connection
                .one("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND kind = 4)", [message])
        })
    }

    pub(crate) fn is_below(&self, entry: EntryId, is_it: impl Fn(MessageId) -> Result<bool>) -> Result<bool> {
        let mut at = Some(entry);
        let mut seen = HashSet::new();
        while let Some(id) = at.filter(|id| seen.insert(*id)) {
            let (parent, message): (_, Option<MessageId>) =
                self.connection.one("SELECT parent_id, message_id FROM entries WHERE id = ?1", [id])?;
            if message.map_or(Ok(false), &is_it)? {
                return Ok(true);
            }
            at = parent;
        }
        Ok(false)
    }
}

impl UpkeepWriter<'_> {
    /// Adds a placeholder from an old database.
    pub fn add_purged(&self, above: Option<Head>, nonce: &Nonce, timestamp: i64) -> Result<Head> {
        let (parent, lineage, height) =
            above.map_or((None, Hash::ROOT, 0), |(id, lineage, height)| (Some(id), lineage, height + 1));
        let lineage = lineage.purged(nonce);
        if let Some(id) = Messages::new(self.connection).message_by_lineage(lineage)? {
            return Ok((id, lineage, height));
        }
        let id = self.connection.insert(
            "INSERT INTO messages (lineage, parent_id, height, kind, role, tokens, timestamp, json, codec, bytes, passages)
             VALUES (?1, ?2, ?3, 4, 'purged', 0, ?4, ?5, ?6, 0, 0)",
            params![lineage, parent, height, timestamp, nonce, codec::PURGED],
        )?;
        Ok((MessageId(id), lineage, height))
    }
}
