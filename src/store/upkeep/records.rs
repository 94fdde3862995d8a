//! Records of other agents in a purge. A record may have several messages, of which the first carries it, and an agent that rewrites
//! its messages writes a record each time. Purging a message therefore removes every message that carries a record with its text, and
//! the digests in the ids of its entries, which could confirm a guess.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{named_params, params};

use super::copies::{Copy, CopyKind};
use crate::error::Result;
use crate::ids::{ConversationId, EntryId, MessageId};
use crate::model::{Message, each_string, original_of, read_json, without_digests};
use crate::store::columns::Queries as _;
use crate::store::messages::sessions::IS_PI_S;
use crate::store::upkeep::purged::undigested;
use crate::store::{Messages, Upkeep, UpkeepWriter};
use crate::text::folded;

impl Upkeep<'_> {
    /// The entries of other agents' sessions that show a message.
    fn agents_entries(&self, message: MessageId) -> Result<Vec<(EntryId, ConversationId, String)>> {
        let sql = format!(
            "SELECT e.id, e.conversation_id, e.entry_id FROM entries e JOIN conversations c ON c.id = e.conversation_id
              WHERE e.message_id = ?1 AND NOT {IS_PI_S}"
        );
        self.connection.all(&sql, [message])
    }

    /// The other messages that carry a record of these.
    pub(in crate::store) fn carriers_of(
        &self,
        messages: &BTreeSet<MessageId>,
    ) -> Result<BTreeSet<MessageId>> {
        let mut carriers: BTreeSet<MessageId> = BTreeSet::new();
        for message in messages {
            for (_, conversation, entry) in self.agents_entries(*message)? {
                let record = record_of(&entry);
                // A message that may be rewritten carries the record whose digest follows an @. The first range lets the index find
                // them: an OR does not.
                let found: Vec<MessageId> = self.connection.all(
                    "SELECT m.id FROM entries e JOIN messages m ON m.id = e.message_id
                      WHERE e.conversation_id = :session AND m.kind IN (0, 1, 2)
                        AND e.entry_id >= :record AND e.entry_id < :record || 'A'
                        AND (e.entry_id = :record
                             OR (e.entry_id > :record || ':' AND e.entry_id < :record || ';' AND instr(e.entry_id, '@'))
                             OR (e.entry_id > :record || '@' AND e.entry_id < :record || 'A'))",
                    named_params! {":session": conversation, ":record": record},
                )?;
                carriers.extend(found);
            }
        }
        carriers.retain(|carrier| !messages.contains(carrier));
        Ok(carriers)
    }

    /// The messages in the sessions of other agents that show one of these, with the records that they carry.
    pub(in crate::store) fn records_near(&self, messages: &BTreeSet<MessageId>) -> Result<Vec<Copy>> {
        let mut sessions: BTreeSet<ConversationId> = BTreeSet::new();
        for message in messages {
            sessions.extend(self.agents_entries(*message)?.into_iter().map(|(_, session, _)| session));
        }
        let mut near: Vec<Copy> = Vec::new();
        for session in sessions {
            let shown: Vec<(MessageId, String)> = self.connection.all(
                "SELECT m.id, e.entry_id FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND m.kind IN (0, 1, 2)",
                [session],
            )?;
            let (mut carriers, mut own): (Vec<(Copy, String)>, HashMap<String, String>) = Default::default();
            for (id, entry) in shown.into_iter().filter(|(id, _)| !messages.contains(id)) {
                // Unreadable messages count as repeating nothing.
                let Ok(json) = Messages::new(self.connection).json_of(id) else { continue };
                let record = record_of(&entry).to_owned();
                let said = folded(&Message::parse(&json).readable());
                *own.entry(record.clone()).or_default() += &(said + "\n");
                carriers.extend(carried(id, &json).map(|copy| (copy, record)));
            }
            near.extend(
                carriers.into_iter().map(|(copy, record)| Copy { own: own[&record].clone(), ..copy }),
            );
        }
        Ok(near)
    }
}

/// The start of an entry's id that all messages of its record have.
fn record_of(entry: &str) -> &str {
    let first = || entry.rsplit_once('/').map_or(entry, |(first, _)| first);
    without_digests(entry).map_or_else(first, |name| name.trim_end_matches('@'))
}

/// The record of a message as a copy of others.
fn carried(id: MessageId, json: &str) -> Option<Copy> {
    let record = original_of(json)?;
    let mut text = String::new();
    match read_json(&record) {
        Ok(record) => each_string(&record, &mut |said| {
            text.push_str(said);
            text.push('\n');
        }),
        Err(_) => text.push_str(&record),
    }
    Some(Copy { id, kind: CopyKind::Record, names: BTreeSet::new(), text: folded(&text), own: String::new() })
}

impl UpkeepWriter<'_> {
    /// Takes the digests of a message that is being purged and of its record from the ids of its entries.
    pub(in crate::store) fn drop_digests(&self, message: MessageId) -> Result<()> {
        let role: String = self.connection.one("SELECT role FROM messages WHERE id = ?1", [message])?;
        for (entry, _, id) in self.agents_entries(message)? {
            if let Some(id) = undigested(&id, &role, message) {
                self.connection
                    .change("UPDATE entries SET entry_id = ?2 WHERE id = ?1", params![entry, id])?;
            }
        }
        Ok(())
    }
}
