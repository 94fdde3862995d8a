//! Records of other agents in a purge. A record may have several messages, of which the first carries it, and an agent that rewrites
//! its messages writes a record each time. Purging a message therefore removes every message that carries a record with its text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rusqlite::params;
use serde_json::Value;

use super::copies::{BEGINNING, Traces};
use super::purged::{Print, message_print};
use crate::columns::Queries as _;
use crate::messages::sessions::is_pi_s;
use crate::{Messages, Upkeep};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, MessageId};
use lcm_model::text::folded;
use lcm_model::{Message, Part, Role, each_string, is_rewritten, original_of, read_json, record_of};

/// A message that an entry shows, the message above it, and the entry's id.
type ShownEntry = (MessageId, Option<MessageId>, String);

impl Upkeep<'_> {
    /// The entries of other agents' sessions that show a message.
    fn agents_entries(&self, message: MessageId) -> Result<Vec<(EntryId, ConversationId, String)>> {
        let sql = format!(
            "SELECT e.id, e.conversation_id, e.entry_id FROM entries e JOIN conversations c ON c.id = e.conversation_id
              WHERE e.message_id = ?1 AND NOT {}",
            is_pi_s()
        );
        self.connection.all(&sql, [message])
    }

    /// The other messages that carry a record of these.
    pub(crate) fn carriers_of(&self, messages: &BTreeSet<MessageId>) -> Result<BTreeSet<MessageId>> {
        let mut carriers: BTreeSet<MessageId> = BTreeSet::new();
        for message in messages {
            for (_, conversation, entry) in self.agents_entries(*message)? {
                let record = record_of(&entry);
                // Ids that begin with another's are near it.
                let near: Vec<(MessageId, String)> = self.connection.all(
                    "SELECT m.id, e.entry_id FROM entries e JOIN messages m ON m.id = e.message_id
                      WHERE e.conversation_id = ?1 AND m.kind IN (0, 1, 2) AND e.entry_id >= ?2 AND e.entry_id < ?2 || 'A'",
                    params![conversation, record],
                )?;
                let carries = |id: &MessageId| {
                    let json = Messages::new(self.connection).json_of(*id);
                    json.is_ok_and(|json| original_of(&json).is_some())
                };
                let own = near.into_iter().filter(|(_, other)| record_of(other) == record).map(|(id, _)| id);
                let found = own.filter(|id| !messages.contains(id) && carries(id));
                carriers.extend(found);
            }
        }
        Ok(carriers)
    }

    /// The record of a message that another message carries, since the record has both.
    pub fn record_with(&self, message: MessageId) -> Result<Option<String>> {
        let carriers = self.carriers_of(&BTreeSet::from([message]))?;
        let Some(carrier) = carriers.range(..message).next_back() else { return Ok(None) };
        let json = Messages::new(self.connection).json_of(*carrier)?;
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
            let (role, tokens, time): (String, i64, i64) = self
                .connection
                .one("SELECT role, tokens, timestamp FROM messages WHERE id = ?1", [message])?;
            let json = Messages::new(self.connection).json_of(*message).unwrap_or_default();
            if let Some(print) = message_print(&json, time) {
                said.entry(print).or_default().push(*message);
                looks.insert((role, tokens));
            }
        }
        let mut copies = BTreeSet::new();
        if said.is_empty() {
            return Ok(copies);
        }
        let all: Vec<(MessageId, String, i64, i64)> = self
            .connection
            .all("SELECT id, role, tokens, timestamp FROM messages WHERE kind IN (0, 1, 2)", [])?;
        for (id, role, tokens, time) in all {
            if messages.contains(&id) || !looks.contains(&(role, tokens)) {
                continue;
            }
            let json = Messages::new(self.connection).json_of(id).unwrap_or_default();
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
        self.connection.one(
            "SELECT (SELECT timestamp FROM messages WHERE id = ?1) = (SELECT timestamp FROM messages WHERE id = ?2)
                 OR EXISTS (SELECT 1 FROM entries e JOIN conversations c ON c.id = e.conversation_id
                              JOIN entries f JOIN conversations d ON d.id = f.conversation_id
                             WHERE e.message_id = ?1 AND f.message_id = ?2
                               AND ifnull(c.parent_session, c.session_id) IN (d.session_id, d.parent_session)
                                OR e.message_id = ?1 AND f.message_id = ?2 AND c.session_id = d.parent_session)",
            [one, other],
        )
    }

    /// The messages in the sessions of other agents that show one of these whose records repeat one or belong to it.
    pub(crate) fn records_near(
        &self,
        messages: &BTreeSet<MessageId>,
        traces: &Traces,
    ) -> Result<BTreeSet<MessageId>> {
        let mut sessions: BTreeMap<ConversationId, Links> = BTreeMap::new();
        for message in messages {
            for (_, session, entry) in self.agents_entries(*message)? {
                let above: Option<MessageId> =
                    self.connection.one("SELECT parent_id FROM messages WHERE id = ?1", [message])?;
                let json = Messages::new(self.connection).json_of(*message).unwrap_or_default();
                sessions.entry(session).or_default().add(&json, &entry, [Some(*message), above]);
            }
        }
        let mut near: BTreeSet<MessageId> = BTreeSet::new();
        for (session, links) in sessions {
            let mut shown: Vec<ShownEntry> = self.connection.all(
                "SELECT m.id, m.parent_id, e.entry_id FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND m.kind IN (0, 1, 2)",
                [session],
            )?;
            shown.retain(|(id, ..)| !messages.contains(id));
            shown.sort_by(|(.., one), (.., other)| record_of(one).cmp(record_of(other)));
            // One record after the other: a session may not fit into memory.
            for of_one in shown.chunk_by(|(.., one), (.., other)| record_of(one) == record_of(other)) {
                near.extend(self.repeating(of_one, &links, traces));
            }
        }
        Ok(near)
    }

    /// Those of a record's messages that carry it, if it repeats or belongs to a purged message, or that search ignores, if they repeat
    /// one themselves.
    fn repeating(&self, shown: &[ShownEntry], links: &Links, traces: &Traces) -> Vec<MessageId> {
        let messages = Messages::new(self.connection);
        // Unreadable ones show and carry nothing.
        let read = |(id, above, _): &ShownEntry| Some((*id, *above, messages.json_of(*id).ok()?));
        let messages: Vec<(MessageId, Option<MessageId>, String)> = shown.iter().filter_map(read).collect();
        let (mut own, mut going) = (String::new(), Vec::new());
        for (id, _, json) in &messages {
            let message = Message::parse(json);
            let shown = folded(&message.readable());
            if message.role == Role::System && traces.are_quoted(&shown) {
                going.push(*id);
            }
            own += &(shown + "\n");
        }
        let goes = |above: Option<MessageId>, json: &str| {
            let Some(record) = original_of(json) else { return false };
            let record = read_json(&record).unwrap_or_else(|_| record.as_ref().into());
            let mut strings: Vec<String> = Vec::new();
            each_string(&record, &mut |said| strings.push(said.to_owned()));
            let is_event = own.trim().is_empty() && links.repeated_next_to(above, &strings);
            let is_linked = is_event || links.reach(record, &own);
            is_linked || traces.are_told(&folded(&strings.join("\n")), &own)
        };
        let carrying = messages.iter().filter(|(_, above, json)| goes(*above, json));
        going.extend(carrying.map(|(id, ..)| *id));
        going
    }
}

/// What links records to the purged messages of a session, however short their text is and in whatever form a record repeats it.
#[derive(Default)]
struct Links {
    /// The agent's ids of messages that it rewrites.
    messages: BTreeSet<String>,
    /// The lines of the arguments of purged calls, by call; none of a call whose result is purged.
    calls: BTreeMap<String, BTreeSet<String>>,
    /// Fields of records, such as the branch, that have an argument by chance.
    usual: BTreeSet<(String, String)>,
    /// Their texts of which no beginning is compared, with what is above a record next to them: themselves, or what is above them.
    texts: BTreeMap<String, BTreeSet<Option<MessageId>>>,
}

impl Links {
    fn add(&mut self, json: &str, entry: &str, above: [Option<MessageId>; 2]) {
        let message = Message::parse(json);
        let record = original_of(json).and_then(|record| read_json(&record).ok()).unwrap_or_default();
        if is_rewritten(entry) {
            self.messages.extend(record_of(entry).rsplit(':').next().map(str::to_owned));
        }
        if let Some(call) = &message.tool_call_id {
            self.calls.entry(call.clone()).or_default();
        }
        for part in &message.parts {
            match part {
                Part::ToolCall { id, arguments, .. } => {
                    let lines = self.calls.entry(id.clone()).or_default();
                    each_string(arguments, &mut |said| lines.extend(lines_of(said)));
                    let fields = record.as_object().into_iter().flatten();
                    let texts =
                        fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                    self.usual.extend(texts.filter(|(_, text)| lines.contains(text)));
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
    }

    /// Whether the strings of a record below `above` have all of a purged text that is next to it.
    fn repeated_next_to(&self, above: Option<MessageId>, strings: &[String]) -> bool {
        strings.iter().any(|said| self.texts.get(&folded(said)).is_some_and(|next| next.contains(&above)))
    }

    /// Whether a record belongs to a purged message: it contains another version of it, or is an event of its call, or repeats the
    /// call's arguments.
    fn reach(&self, mut record: Value, own: &str) -> bool {
        if self.has_message(&record) {
            return true;
        }
        let calls = self.calls_in(&record, false);
        if calls.is_empty() || own.trim().is_empty() {
            return !calls.is_empty();
        }
        if let Value::Object(fields) = &mut record {
            let is_usual = |name: &str, text: &str| self.usual.contains(&(name.to_owned(), text.to_owned()));
            fields.retain(|name, value| !value.as_str().is_some_and(|text| is_usual(name, text)));
        }
        let mut repeated: Vec<String> = Vec::new();
        let is_argument = |line: &String| calls.iter().any(|lines| lines.contains(line));
        each_string(&record, &mut |said| repeated.extend(lines_of(said).filter(is_argument)));
        // Lines that are shown are mostly shown in this order; searching for each from the start would take too long.
        let mut from = 0;
        repeated.iter().any(|line| {
            let shown = own[from..].find(line).map(|at| from + at).or_else(|| own.find(line));
            from = shown.map_or(from, |at| at + line.len());
            shown.is_none()
        })
    }

    /// The purged calls whose ids are in fields for ids.
    fn calls_in(&self, value: &Value, is_id: bool) -> Vec<&BTreeSet<String>> {
        let is_named = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.ends_with("id") || name.ends_with("ids")
        };
        match value {
            Value::String(call) if is_id => self.calls.get(call).into_iter().collect(),
            Value::Array(items) => items.iter().flat_map(|item| self.calls_in(item, is_id)).collect(),
            Value::Object(fields) => {
                fields.iter().flat_map(|(name, field)| self.calls_in(field, is_named(name))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn has_message(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.has_message(item)),
            Value::Object(fields) => {
                let is_it =
                    fields.get("id").and_then(Value::as_str).is_some_and(|id| self.messages.contains(id));
                is_it || fields.values().any(|field| self.has_message(field))
            }
            _ => false,
        }
    }
}

/// The lines of a text with whitespace folded, except the shortest, which many texts have.
fn lines_of(text: &str) -> impl Iterator<Item = String> {
    const SHORTEST: usize = 4;
    text.lines().map(folded).filter(|line| line.len() >= SHORTEST)
}
