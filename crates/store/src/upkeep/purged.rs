//! The placeholders of purged messages: they identify copies, so that these are not stored again.
//!
//! A message of Pi is recognized by its entry's id, its position and its time. Forks of other agents' sessions change all of
//! them. So the placeholder of another agent's message has, beside a random number, hashes of what it said and of its text.

use std::collections::{HashMap, HashSet};

use rusqlite::{named_params, params};
use uuid::Uuid;

use crate::columns::Queries as _;
use crate::messages::codec;
use crate::messages::entries::{IS_VERSION, own_id};
use crate::messages::sessions::is_pi_s;
use crate::{Head, Upkeep, UpkeepWriter};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId, Nonce};
use lcm_model::text::folded;
use lcm_model::{Message, Part, Role, each_string, original_of, read_json, record_of, said, slot_of};

/// A shorter text is recognized only in a message of the same time: many say the same.
const LONG: usize = 32;
/// The random bytes of a placeholder; two prints follow.
const RANDOM: usize = 16;

/// The start of a hash.
pub(super) type Print = [u8; 8];

/// The prints of all purged messages.
#[derive(Default)]
pub struct PurgedTexts(HashSet<Print>);

impl PurgedTexts {
    /// What stands for another agent's message if it is a copy of a purged one, or if its record has the text of one.
    pub fn placeholder_of(&self, json: &str, time: i64) -> Option<Nonce> {
        if self.0.is_empty() {
            return None;
        }
        let is_purged = message_print(json, time).is_some_and(|print| self.0.contains(&print));
        (is_purged || self.are_in(json)).then(|| nonce(json, time))
    }

    fn are_in(&self, json: &str) -> bool {
        let Some(record) = original_of(json).and_then(|record| read_json(&record).ok()) else { return false };
        let mut is_found = false;
        each_string(&record, &mut |text| {
            is_found |= text_print(text).is_some_and(|print| self.0.contains(&print));
        });
        is_found
    }
}

/// The purged messages of Pi's sessions with one time, by an entry's id in its session's file: that entry's id, the message above,
/// and the number in its place.
#[derive(Default)]
pub struct PurgedVersions(HashMap<String, Vec<(String, Option<MessageId>, Nonce)>>);

impl PurgedVersions {
    /// The number in the place of a purged message if an entry with this id, below `parent`, shows a version of it. Entries of the
    /// first session-file version have ids of ours first, and ids of Pi's later.
    pub fn number_of(&self, entry_id: &str, parent: Option<MessageId>) -> Option<Nonce> {
        let of = |own| self.0.get(own).into_iter().flatten();
        let ours = of("v1-").filter(|(_, above, _)| *above == parent);
        let nearest =
            of(own_id(entry_id)).chain(ours).max_by_key(|(id, above, _)| (*above == parent, id == entry_id));
        nearest.map(|(.., nonce)| *nonce)
    }
}

pub(super) fn random() -> Nonce {
    let mut nonce = Nonce::default();
    nonce[..RANDOM].copy_from_slice(Uuid::new_v4().as_bytes());
    nonce[RANDOM..].copy_from_slice(Uuid::new_v4().as_bytes());
    nonce
}

/// The random number in place of a message that is being purged, with the prints of another agent's.
pub(super) fn nonce(json: &str, time: i64) -> Nonce {
    let mut nonce = random();
    let Some(whole) = message_print(json, time) else { return nonce };
    nonce[RANDOM..RANDOM + 8].copy_from_slice(&whole);
    if let Some(text) = longest_text(&Message::parse(json)).and_then(|text| text_print(&text)) {
        nonce[RANDOM + 8..].copy_from_slice(&text);
    }
    nonce
}

/// The print of what another agent's message says, unless that is nothing.
pub(super) fn message_print(json: &str, time: i64) -> Option<Print> {
    let said = said(json)?;
    let message = Message::parse(json);
    let (length, time) = (message.readable().trim().len(), time.to_string());
    match length {
        0 => None,
        LONG.. => Some(print(&[said])),
        _ => Some(print(&[said, &time])),
    }
}

fn text_print(text: &str) -> Option<Print> {
    let text = folded(text);
    (text.len() >= LONG).then(|| print(&[&text]))
}

/// The longest text of the user or the model. Results of tools are often the same.
fn longest_text(message: &Message) -> Option<String> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) | Part::Thinking(text) => Some(text),
        _ => None,
    });
    let is_said = matches!(message.role, Role::User | Role::Assistant);
    texts.max_by_key(|text| text.len()).filter(|_| is_said).cloned()
}

fn print(of: &[&str]) -> Print {
    let mut print = Print::default();
    print.iter_mut().zip(Hash::of_all(of).0).for_each(|(to, byte)| *to = byte);
    print
}

impl Upkeep<'_> {
    /// The prints of all purged messages.
    pub fn purged_texts(&self) -> Result<PurgedTexts> {
        let nonces: Vec<Vec<u8>> = self.all("SELECT json FROM messages WHERE kind = 4", [])?;
        let prints = |nonce: Vec<u8>| {
            let prints = nonce.get(RANDOM..).unwrap_or_default().chunks_exact(8);
            prints.filter_map(|print| print.try_into().ok()).collect::<Vec<Print>>()
        };
        Ok(PurgedTexts(nonces.into_iter().flat_map(prints).collect()))
    }

    /// The entries of another agent's session whose message was purged, their records, and which messages these were.
    pub fn purged_records(&self, conversation: ConversationId) -> Result<HashSet<String>> {
        let entries: Vec<String> = self.all(
            "SELECT e.entry_id FROM messages m JOIN entries e ON e.message_id = m.id
              WHERE m.kind = 4 AND e.conversation_id = ?1",
            [conversation],
        )?;
        let names =
            entries.iter().flat_map(|entry| [Some(entry.as_str()), Some(record_of(entry)), slot_of(entry)]);
        Ok(names.flatten().map(ToOwned::to_owned).collect())
    }

    /// The message with a text, below `parent` with this time, that an entry with this id shows; or what an entry shows that has
    /// this id in the store, too.
    pub fn same_message(
        &self,
        entry_id: &str,
        parent: Option<MessageId>,
        timestamp: i64,
    ) -> Result<Option<Head>> {
        self.first(
            &format!(
                "SELECT m.id, m.lineage, m.height FROM messages m JOIN entries e ON e.message_id = m.id
                  WHERE m.parent_id IS :parent AND m.timestamp = :time AND :time <> 0 AND m.kind <> 3 AND e.kind = 1 AND {IS_VERSION}
                    AND (m.kind <> 4 OR e.entry_id = :id)
                  ORDER BY e.entry_id = :id DESC LIMIT 1"
            ),
            named_params! {":parent": parent, ":time": timestamp, ":id": entry_id, ":own": own_id(entry_id)},
        )
    }

    /// The purged messages of Pi's sessions with this time; without one, only those of this session.
    pub fn purged_at(&self, conversation: ConversationId, timestamp: i64) -> Result<PurgedVersions> {
        let sql = format!(
            "SELECT e.entry_id, m.parent_id, m.json FROM messages m INDEXED BY messages_marked
               JOIN entries e ON e.message_id = m.id JOIN conversations c ON c.id = e.conversation_id
              WHERE m.kind = 4 AND m.timestamp = ?1 AND {} AND (?1 <> 0 OR c.id = ?2)",
            is_pi_s()
        );
        let mut versions = PurgedVersions::default();
        for version in self.all::<(String, _, _), Vec<_>>(&sql, params![timestamp, conversation])? {
            let own = own_id(&version.0).to_owned();
            if own.starts_with("v1-") {
                versions.0.entry("v1-".into()).or_default().push(version.clone());
            }
            versions.0.entry(own).or_default().push(version);
        }
        Ok(versions)
    }

    /// Whether an entry shows the placeholder of a purged message.
    pub fn shows_purged(&self, conversation: ConversationId, entry_id: &str) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM entries e JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1 AND m.kind = 4)",
            params![conversation, entry_id],
        )
    }

    /// Whether any message above an entry was purged.
    pub fn is_below_purged(&self, entry: EntryId) -> Result<bool> {
        self.is_below(entry, |message| {
            self.one("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND kind = 4)", [message])
        })
    }

    pub(crate) fn is_below(&self, entry: EntryId, is_it: impl Fn(MessageId) -> Result<bool>) -> Result<bool> {
        let mut at = Some(entry);
        let mut seen = HashSet::new();
        while let Some(id) = at.filter(|id| seen.insert(*id)) {
            let (parent, message): (_, Option<MessageId>) =
                self.one("SELECT parent_id, message_id FROM entries WHERE id = ?1", [id])?;
            if message.map_or(Ok(false), &is_it)? {
                return Ok(true);
            }
            at = parent;
        }
        Ok(false)
    }
}

impl UpkeepWriter<'_> {
    /// Adds a placeholder below a message, unless it is there.
    pub fn add_purged(&self, above: Option<Head>, nonce: &Nonce, timestamp: i64) -> Result<Head> {
        let (parent, lineage, height) =
            above.map_or((None, Hash::ROOT, 0), |(id, lineage, height)| (Some(id), lineage, height + 1));
        let lineage = lineage.purged(nonce);
        if let Some(id) = self.messages().message_by_lineage(lineage)? {
            return Ok((id, lineage, height));
        }
        let id = self.insert(
            "INSERT INTO messages (lineage, parent_id, height, kind, role, tokens, timestamp, json, codec, bytes, passages)
             VALUES (?1, ?2, ?3, 4, 'purged', 0, ?4, ?5, ?6, 0, 0)",
            params![lineage, parent, height, timestamp, nonce, codec::PURGED],
        )?;
        Ok((MessageId(id), lineage, height))
    }
}
