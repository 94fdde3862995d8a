//! Checks messages: each must have its original text and position. A lineage hashes the message's text and
//! its parent's lineage, so a matching one proves the text to the last byte, along with everything above.
//!
//! The same walk divides the passages again and looks up some of them in the index, so that each message is
//! decompressed only once.

use std::collections::{HashMap, HashSet};

use tokio_util::sync::CancellationToken;

use super::report::{Check, Remedy};
use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{Hash, MessageId};
use crate::model::{Message, parts, passages, replacements};
use crate::store::{AuditedMessage, Facts, Index, View};
use crate::sync::go_on;

/// Every message up to this number is looked up in the index, then as many again, evenly distributed.
const ASKED: usize = 2_000;
/// The bytes of a passage to look up.
const ASKED_WITH: usize = 60;

/// No two versions' estimates differ by more than this factor.
const OTHER_ESTIMATES: i64 = 4;

/// The findings for a message whose text is wrong.
pub(super) const NOT_ITS_TEXT: [&str; 3] = [
    "the text can't be unpacked",
    "the text's length does not match the recorded one",
    "the lineage does not match text and position",
];

/// What the other checks need to know about a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tombstone {
    pub hash: Hash,
    pub parent: Option<MessageId>,
    pub kind: MessageKind,
    pub time: i64,
}

/// The walk along all messages.
#[derive(Default)]
pub(super) struct Walk {
    pub check: Check,
    pub index: Check,
    pub tombstones: HashMap<MessageId, Tombstone>,
    /// Messages with the wrong text.
    pub damaged: HashSet<MessageId>,
    /// Renditions equal to their originals. After a purge, only the edit's own text would give their identity.
    pub unchanged: HashSet<MessageId>,
    /// Messages whose recorded facts don't follow from their text, with the right ones.
    pub facts: Vec<(MessageId, Facts)>,
    /// The number of purged messages.
    pub purged: usize,
    /// How many there are.
    messages: usize,
    number: usize,
}

impl Walk {
    pub fn new(messages: usize, index: Check) -> Self {
        let tombstones = HashMap::with_capacity(messages);
        let mut check = Check::new("Messages");
        check.saw(0, "message");
        Self { check, index, tombstones, messages, ..Self::default() }
    }

    /// Checks them until `cancel` is raised.
    pub fn all(&mut self, view: &View<'_>, cancel: &CancellationToken) {
        let walked = view.upkeep().audit_messages(|message| {
            go_on(cancel)?;
            self.message(view, &message)
        });
        if self.purged > 0 && walked.is_ok() {
            self.check.notes.push(format!("{} of them purged", self.purged));
        }
        self.check.run(|_| walked);
    }

    fn message(&mut self, view: &View<'_>, message: &AuditedMessage) -> Result<()> {
        self.number += 1;
        self.check.saw(1, "message");
        if let Some(hash) = message.lineage {
            let AuditedMessage { parent, kind, timestamp: time, .. } = *message;
            self.tombstones.insert(message.id, Tombstone { hash, parent, kind, time });
        }
        if message.kind == MessageKind::Purged {
            self.purged(message);
            return Ok(());
        }
        let name = || name(message);
        let mut is_not_its_text = |what| {
            self.check.find(Remedy::Rebuild, what, name);
            self.damaged.insert(message.id);
        };
        let [packed, length, lineage_differs] = NOT_ITS_TEXT;
        let Ok(json) = &message.json else {
            is_not_its_text(packed);
            return Ok(());
        };
        if usize::try_from(message.bytes) != Ok(json.len()) {
            is_not_its_text(length);
            return Ok(());
        }
        let (lineage, height) = match (message.kind, message.parent, message.above) {
            (_, Some(_), None) => {
                self.check.find(Remedy::Rebuild, "the parent message is missing", name);
                return Ok(());
            }
            (MessageKind::Edited, Some(original), Some((above, height))) => {
                let lineage = match view.messages().message(original) {
                    Ok(original) if original.json == *json => {
                        self.unchanged.insert(message.id);
                        message.lineage
                    }
                    Ok(original) => rendition_of(&original.json, above, json, message.lineage),
                    Err(_) => None,
                };
                (lineage, height)
            }
            (MessageKind::Edited, ..) => (None, 0),
            (_, _, Some((above, height))) => (Some(above.child(json)), height.saturating_add(1)),
            (_, None, None) => (Some(Hash::ROOT.child(json)), 0),
        };
        if lineage.is_none() || lineage != message.lineage {
            is_not_its_text(lineage_differs);
            return Ok(());
        }
        if height != message.height {
            self.check.find(Remedy::Rebuild, "the recorded number of messages above is wrong", name);
        }
        let parsed = Message::parse(json);
        self.facts(message, &parsed);
        self.passages(view, message, &parsed)
    }

    /// Checks a purged message: its lineage must follow from its random number and the lineage above, and
    /// nothing of its text may be recorded.
    fn purged(&mut self, message: &AuditedMessage) {
        self.purged += 1;
        let above = match (message.parent, message.above) {
            (Some(_), None) => {
                self.check.find(Remedy::Rebuild, "the parent message is missing", || name(message));
                return;
            }
            (_, above) => above,
        };
        let (lineage, height) =
            above.map_or((Hash::ROOT, 0), |(lineage, height)| (lineage, height.saturating_add(1)));
        let proven = message.nonce.map(|nonce| lineage.purged(&nonce));
        let says_nothing = message.bytes == 0 && message.passages == 0 && message.first_passage.is_none();
        if proven.is_none() || proven != message.lineage || height != message.height || !says_nothing {
            self.check.find(Remedy::Rebuild, "it was purged, but its position is wrong", || name(message));
        }
    }

    /// Compares the recorded facts of a message with its text.
    fn facts(&mut self, message: &AuditedMessage, parsed: &Message) {
        let tokens = i64::try_from(parsed.tokens()).unwrap_or(i64::MAX);
        let right = Facts {
            role: parsed.role.as_str().to_owned(),
            tool: parsed.tool.clone(),
            // A message without a time takes its entry's.
            timestamp: parsed.timestamp.unwrap_or(message.timestamp),
            tokens,
        };
        let is_right = message.facts.as_ref().is_some_and(|noted| {
            // It may be another version's estimate: only an impossible one is wrong.
            let is_possible = noted.tokens > 0
                && (tokens / OTHER_ESTIMATES..=tokens.saturating_mul(OTHER_ESTIMATES))
                    .contains(&noted.tokens);
            *noted == Facts { tokens: noted.tokens, ..right.clone() } && is_possible
        });
        if is_right {
            return;
        }
        self.check.find(Remedy::Fix, "role, tool, tokens or time do not match the text", || name(message));
        // Check its summaries against the right time.
        if let Some(tombstone) = self.tombstones.get_mut(&message.id) {
            tombstone.time = right.timestamp;
        }
        self.facts.push((message.id, right));
    }

    /// Divides the passages again, and looks up some of them.
    fn passages(&mut self, view: &View<'_>, message: &AuditedMessage, parsed: &Message) -> Result<()> {
        let text = match message.kind {
            MessageKind::Conversation => parsed.searchable(),
            _ => String::new(),
        };
        let ranges = passages(&text);
        let noted = usize::try_from(message.passages).unwrap_or(usize::MAX);
        if ranges.len() != noted || ranges.is_empty() != message.first_passage.is_none() {
            self.index
                .find(Remedy::Rebuild, "the recorded passages of the message are wrong", || name(message));
            return Ok(());
        }
        let Some(first) = message.first_passage else { return Ok(()) };
        let step = (self.messages / ASKED).max(1);
        if self.number > ASKED && !self.number.is_multiple_of(step) {
            return Ok(());
        }
        // Check both ends: a shift shows at either.
        let last = ranges.len() - 1;
        for n in if last == 0 { vec![0] } else { vec![0, last] } {
            let row = first.saturating_add(i64::try_from(n).unwrap_or(i64::MAX));
            if let Some(found) = leads_back(view, Index::Messages, &text[ranges[n].clone()], row) {
                self.index.saw(1, "passage looked up");
                if !found {
                    self.index.find(Remedy::Fix, "a search for a passage's words does not find it", || {
                        name(message)
                    });
                }
            }
        }
        Ok(())
    }
}

/// The identity of this rendition among the possible ones.
fn rendition_of(original: &str, lineage: Hash, json: &str, noted: Option<Hash>) -> Option<Hash> {
    let mut hashes = replacements(original, json).into_iter().map(|edit| lineage.edited(&edit));
    hashes.find(|hash| Some(*hash) == noted)
}

/// Whether the first words of `text` find `row` in the index. `None` if the text has no suitable words, or if
/// the index lacks the row or can't be queried.
pub(super) fn leads_back(view: &View<'_>, index: Index, text: &str, row: i64) -> Option<bool> {
    let words = first_words(text).filter(|_| view.upkeep().has_row(index, row).unwrap_or(false))?;
    let mut expression = format!("body : {}", quoted(words));
    let parts = parts(text);
    if let Some(parts) = first_words(&parts) {
        expression += &format!(" AND parts : {}", quoted(parts));
    }
    view.upkeep().finds(index, &expression, row).ok()
}

fn quoted(words: &str) -> String {
    format!("\"{}\"", words.replace('"', "\"\""))
}

/// The beginning of `text`, up to a word boundary.
fn first_words(text: &str) -> Option<&str> {
    let text = text.split('\0').next().unwrap_or_default().trim_start();
    let words = match text.len() <= ASKED_WITH {
        true => text,
        false => {
            let short = &text[..text.floor_char_boundary(ASKED_WITH)];
            // A longer first word is used whole.
            match short.rfind(char::is_whitespace) {
                Some(end) => &short[..end],
                None => text.split(char::is_whitespace).next().unwrap_or_default(),
            }
        }
    };
    words.contains(|c: char| c.is_ascii_alphanumeric()).then_some(words)
}

fn name(message: &AuditedMessage) -> String {
    match message.lineage {
        Some(hash) => hash.message_handle(),
        None => format!("row {}", message.id.0),
    }
}
