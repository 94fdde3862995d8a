//! Records of other agents in a purge. A record may have several messages, of which the first carries it, and an agent writes what is
//! said in further records: its events, and another version of a message that it rewrites. These go with the message.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rusqlite::params;
use serde_json::Value;

use super::copies::{BEGINNING, Traces};
use super::purged::{Print, message_print};
use crate::Upkeep;
use crate::columns::Queries as _;
use crate::messages::sessions::is_pi_s;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId};
use lcm_model::text::folded;
use lcm_model::{Message, Part, Role, each_string, is_rewritten, original_of, read_json, record_of};

/// A message, the message above it, and the id of an entry that shows it.
type ShownEntry = (MessageId, Option<MessageId>, String);

impl Upkeep<'_> {
    /// The entries of other agents' sessions that show a message.
    fn agents_entries(&self, message: MessageId) -> Result<Vec<(ConversationId, String)>> {
        let sql = format!(
            "SELECT e.conversation_id, e.entry_id FROM entries e JOIN conversations c ON c.id = e.conversation_id
              WHERE e.message_id = ?1 AND NOT {}",
            is_pi_s()
        );
        self.all(&sql, [message])
    }

    /// The messages that carry the record of an entry.
    fn carriers_of(&self, session: ConversationId, entry: &str) -> Result<Vec<MessageId>> {
        let record = record_of(entry);
        // Ids that begin with another's are near it.
        let near: Vec<(MessageId, String)> = self.all(
            "SELECT m.id, e.entry_id FROM entries e JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1 AND m.kind IN (0, 1, 2) AND e.entry_id >= ?2 AND e.entry_id < ?2 || 'A'",
            params![session, record],
        )?;
        let carries = |id: &MessageId| {
            let json = self.messages().json_of(*id);
            json.is_ok_and(|json| original_of(&json).is_some())
        };
        let own = near.into_iter().filter(|(_, other)| record_of(other) == record).map(|(id, _)| id);
        Ok(own.filter(carries).collect())
    }

    /// The record of a message that another message carries, since the record has both.
    pub fn record_with(&self, message: MessageId) -> Result<Option<String>> {
        let mut carriers = BTreeSet::new();
        for (session, entry) in self.agents_entries(message)? {
            carriers.extend(self.carriers_of(session, &entry)?);
        }
        let Some(carrier) = carriers.range(..message).next_back() else { return Ok(None) };
        let json = self.messages().json_of(*carrier)?;
        Ok(original_of(&json).map(Cow::into_owned))
    }

    /// The messages of other agents' forks that say the same as one of these: at the same time, or in a session that has the same
    /// origin.
    pub(crate) fn said_in_forks(&self, messages: &BTreeSet<MessageId>) -> Result<BTreeSet<MessageId>> {
        let mut said: HashMap<Print, Vec<MessageId>> = HashMap::new();
        // Most messages need not be read to see that they say something else.
        let mut looks: HashSet<(String, i64)> = HashSet::new();
        for message in messages {
            if self.agents_entries(*message)?.is_empty() {
                continue;
            }
            let (role, tokens, time): (String, i64, i64) =
                self.one("SELECT role, tokens, timestamp FROM messages WHERE id = ?1", [message])?;
            let json = self.messages().json_of(*message).unwrap_or_default();
            if let Some(print) = message_print(&json, time) {
                said.entry(print).or_default().push(*message);
                looks.insert((role, tokens));
            }
        }
        let mut copies = BTreeSet::new();
        if said.is_empty() {
            return Ok(copies);
        }
        let all: Vec<(MessageId, String, i64, i64)> =
            self.all("SELECT id, role, tokens, timestamp FROM messages WHERE kind IN (0, 1, 2)", [])?;
        for (id, role, tokens, time) in all {
            if messages.contains(&id) || !looks.contains(&(role, tokens)) {
                continue;
            }
            let json = self.messages().json_of(id).unwrap_or_default();
            let same = message_print(&json, time).and_then(|print| said.get(&print));
            for message in same.into_iter().flatten() {
                if self.are_related(*message, id)? {
                    copies.insert(id);
                    break;
                }
            }
        }
        Ok(copies)
    }

    /// Whether two messages have one time, or sessions with the same origin show them.
    fn are_related(&self, one: MessageId, other: MessageId) -> Result<bool> {
        self.one(
            "SELECT (SELECT timestamp FROM messages WHERE id = ?1) = (SELECT timestamp FROM messages WHERE id = ?2)
                 OR EXISTS (SELECT 1 FROM entries e JOIN conversations c ON c.id = e.conversation_id
                              JOIN entries f JOIN conversations d ON d.id = f.conversation_id
                             WHERE e.message_id = ?1 AND f.message_id = ?2
                               AND ifnull(c.parent_session, c.session_id) IN (d.session_id, d.parent_session)
                                OR e.message_id = ?1 AND f.message_id = ?2 AND c.session_id = d.parent_session)",
            [one, other],
        )
    }

    /// The other messages that carry a record of these, or that are or carry one of their sessions that repeats or belongs to one.
    pub(crate) fn records_of(
        &self,
        messages: &BTreeSet<MessageId>,
        traces: &Traces,
    ) -> Result<BTreeSet<MessageId>> {
        let mut sessions: BTreeMap<ConversationId, Links> = BTreeMap::new();
        let mut found = BTreeSet::new();
        for message in messages {
            for (session, entry) in self.agents_entries(*message)? {
                found.extend(self.carriers_of(session, &entry)?);
                let json = self.messages().json_of(*message).unwrap_or_default();
                let above: Option<MessageId> =
                    self.one("SELECT parent_id FROM messages WHERE id = ?1", [message])?;
                let links = sessions.entry(session).or_default();
                links.add(&Message::parse(&json), &entry, [Some(*message), above]);
            }
        }
        for (session, links) in sessions {
            let mut shown: Vec<ShownEntry> = self.all(
                "SELECT m.id, m.parent_id, e.entry_id FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND m.kind IN (0, 1, 2)",
                [session],
            )?;
            shown.retain(|(id, ..)| !messages.contains(id));
            shown.sort_by(|(.., one), (.., other)| record_of(one).cmp(record_of(other)));
            // One record after the other: a session may not fit into memory.
            for of_one in shown.chunk_by(|(.., one), (.., other)| record_of(one) == record_of(other)) {
                found.extend(self.repeating(of_one, &links, traces));
            }
        }
        Ok(&found - messages)
    }

    /// Those of a record's messages that carry it, if it repeats or belongs to a purged message, or that search ignores, if they repeat
    /// one themselves.
    fn repeating(&self, shown: &[ShownEntry], links: &Links, traces: &Traces) -> Vec<MessageId> {
        let (mut own, mut records, mut going) = (String::new(), Vec::new(), Vec::new());
        let mut is_result = false;
        for (id, above, _) in shown {
            // An unreadable one shows and carries nothing.
            let Ok(json) = self.messages().json_of(*id) else { continue };
            let message = Message::parse(&json);
            let said = folded(&message.readable());
            if message.role == Role::System && traces.are_told(&said, "") {
                going.push(*id);
            }
            own += &(said + "\n");
            is_result |= message.tool_call_id.is_some_and(|call| links.calls.contains(&call));
            records.extend(original_of(&json).map(|record| (*id, *above, record.into_owned())));
        }
        let is_silent = own.trim().is_empty();
        let goes = |above: Option<MessageId>, record: &str| {
            let record = read_json(record).unwrap_or_else(|_| record.into());
            let mut strings: Vec<String> = Vec::new();
            each_string(&record, &mut |said| strings.push(said.to_owned()));
            is_result
                || links.reach(&record, "", is_silent)
                || is_silent && strings.iter().any(|said| links.is_repeated_below(above, said))
                || traces.are_told(&folded(&strings.join("\n")), &own)
        };
        going.extend(records.iter().filter(|(_, above, record)| goes(*above, record)).map(|(id, ..)| *id));
        going
    }
}

/// What links records to the purged messages of a session, however short their text is.
#[derive(Default)]
struct Links {
    /// The agent's ids of messages that it rewrites.
    messages: BTreeSet<String>,
    /// The ids of calls, whose results may repeat their arguments.
    calls: BTreeSet<String>,
    /// The ids of calls that are purged, or whose results are: their events go.
    events: BTreeSet<String>,
    /// Their texts of which no beginning is compared, with what is above a record next to them: themselves, or what is above them.
    texts: BTreeMap<String, BTreeSet<Option<MessageId>>>,
}

impl Links {
    fn add(&mut self, message: &Message, entry: &str, above: [Option<MessageId>; 2]) {
        if is_rewritten(entry) {
            self.messages.extend(record_of(entry).rsplit(':').next().map(str::to_owned));
        }
        self.events.extend(message.tool_call_id.clone());
        for part in &message.parts {
            match part {
                Part::ToolCall { id, .. } => {
                    self.calls.insert(id.clone());
                    self.events.insert(id.clone());
                }
                Part::Text(text) | Part::Thinking(text) if message.role != Role::System => {
                    let text = folded(text);
                    if (1..BEGINNING).contains(&text.len()) {
                        self.texts.entry(text).or_default().extend(above);
                    }
                }
                _ => {}
            }
        }
        self.calls.remove("");
        self.events.remove("");
    }

    /// Whether a text is all of a purged one that is next to a record below `above`.
    fn is_repeated_below(&self, above: Option<MessageId>, text: &str) -> bool {
        self.texts.get(&folded(text)).is_some_and(|next| next.contains(&above))
    }

    /// Whether a record, or its field of this name, contains another version of a message, or is an event of a call.
    fn reach(&self, value: &Value, name: &str, is_silent: bool) -> bool {
        let is_id = || ["id", "ids"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        match value {
            Value::String(id) => {
                name == "id" && self.messages.contains(id) || is_silent && self.events.contains(id) && is_id()
            }
            Value::Array(items) => items.iter().any(|item| self.reach(item, name, is_silent)),
            Value::Object(fields) => fields.iter().any(|(name, field)| self.reach(field, name, is_silent)),
            _ => false,
        }
    }
}
