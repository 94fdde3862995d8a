//! A session entry: one node of Pi's session tree, reduced to what the store keeps.
//!
//! `message` entries of every role, `custom_message` and `branch_summary` form the conversation and extend a
//! lineage. `context_edit` changes what the model sees of an earlier entry; `compaction` may carry our
//! summaries. All other kinds, known or not, only link their children to their parent.

use serde_json::value::RawValue;

use super::json::{read_json, read_text, unmarked};
use super::{CompactionDetails, Files, Message, Role};
use crate::error::{Error, Result};
use crate::ids::Nonce;
use crate::text;

/// An entry as it was handed over.
#[derive(Debug)]
pub struct Entry {
    /// Unique only within its session: forks copy entries with their ids.
    pub id: String,
    /// The entry above it; absent for a root.
    pub parent: Option<String>,
    /// When it was appended, in ms since the epoch; 0 if the entry does not say.
    pub timestamp: i64,
    /// Its meaning for the conversation.
    pub content: Content,
}

/// What an entry contributes.
#[derive(Debug)]
pub enum Content {
    /// A message, as the exact JSON to store: the output of `JSON.stringify`; for entries that hold the
    /// message in their own fields, those fields without the entry's place in the tree. It is not parsed yet,
    /// because entries are handed over on Pi's own thread, which must not wait for that.
    Message(String),
    /// Changes what the model sees of `target` from here on.
    Edit {
        /// Id of the edited entry.
        target: String,
        /// What it replaces the target with, `{"content": …}`, without what is not shown; `None` hides the target.
        replacement: Option<String>,
    },
    /// A compaction; if it is ours, with the summaries it carries.
    Compaction(Option<CompactionDetails>),
    /// A compaction by others, with the files it lists.
    OtherCompaction(Files),
    /// The placeholder of a message that was purged from the old database it is read from.
    Purged(Nonce),
    /// A label, a model change, anything unknown.
    Other,
}

/// Parses a JSON array of session entries, in order. An element without an id is left out: no tree can
/// contain it, and nothing can refer to it.
pub fn parse_batch(json: &str) -> Result<Vec<Entry>> {
    let raw: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|error| Error::storing("the entries handed over are not a JSON array", error))?;
    Ok(raw.into_iter().filter_map(|value| parse(value.get())).collect())
}

/// Parses one session entry.
pub fn parse_one(json: &str) -> Result<Entry> {
    parse(json).ok_or_else(|| Error::store("the entry handed over is no JSON object with an id"))
}

/// Reads each field by itself, so that an unexpected one never costs the entry its place in the tree, and all
/// entries below it theirs.
fn parse(json: &str) -> Option<Entry> {
    let fields = Fields::of(json)?;
    let timestamp = fields.time().unwrap_or_default();
    let content = match (fields.text("type").unwrap_or_default().as_str(), fields.json("message")) {
        ("message", Some(message)) => Content::Message(message.to_owned()),
        ("custom_message" | "branch_summary", _) => Content::Message(without_place(&fields.0)),
        ("context_edit", _) => match fields.text("targetId") {
            Some(target) => Content::Edit { target, replacement: fields.json("replacement").map(shown) },
            None => Content::Other,
        },
        ("compaction", _) => compaction(fields.json("details")),
        _ => Content::Other,
    };
    Some(Entry { id: fields.text("id")?, parent: fields.text("parentId"), timestamp, content })
}

/// The part of a replacement that the model sees, so that what is stored proves the edit's identity.
fn shown(replacement: &str) -> String {
    let content = Fields::of(replacement).and_then(|fields| fields.find("content"));
    content
        .map_or_else(|| replacement.to_owned(), |(key, value)| object([(key.get(), value.get())].into_iter()))
}

fn compaction(details: Option<&str>) -> Content {
    let Some(details) = details else { return Content::Compaction(None) };
    if let Some(ours) = CompactionDetails::parse(details) {
        return Content::Compaction(Some(ours));
    }
    match read_json(details).map(|details| Files::listed(&details)) {
        Ok(files) if !files.is_empty() => Content::OtherCompaction(files),
        _ => Content::Compaction(None),
    }
}

/// The entry's JSON without `id` and `parentId`, which differ between sessions that show the same message (Pi
/// assigns the ids of a version 1 session file when it migrates it).
fn without_place(fields: &[RawField<'_>]) -> String {
    let placed = |(key, _): &&RawField<'_>| matches!(key.get(), r#""id""# | r#""parentId""#);
    object(fields.iter().filter(|field| !placed(field)).map(|(key, value)| (key.get(), value.get())))
}

/// `json` of a message with its content replaced, as Pi shows it after a context edit.
///
/// `replacement` is the edit's own JSON, `{"content": …}`.
pub fn with_replacement(json: &str, replacement: &str) -> String {
    let content = Fields::of(replacement).and_then(|edit| edit.find("content"));
    let (Some(message), Some((key, content))) = (fields(json), content) else {
        return replacement.to_owned();
    };
    let role = Message::parse(json).role;
    let blocks = matches!(role, Role::Assistant | Role::ToolResult);
    // Pi wraps a plain string for roles whose content is a list of blocks.
    let wrapped = (blocks && content.get().starts_with('"'))
        .then(|| format!("[{{\"type\":\"text\",\"text\":{}}}]", content.get()));
    let content = (key.get(), wrapped.as_deref().unwrap_or(content.get()));
    let mut edited: Vec<_> = message.iter().map(|(key, value)| (key.get(), value.get())).collect();
    match edited.iter_mut().find(|(key, _)| *key == content.0) {
        Some(field) => *field = content,
        // Manually edited files may contain messages without content.
        None if blocks || matches!(role, Role::User | Role::Custom) => edited.push(content),
        None => {}
    }
    object(edited.into_iter())
}

/// The replacements with which [`with_replacement`] could have made `rendition` from `json`.
pub fn replacements(json: &str, rendition: &str) -> Vec<String> {
    let mut found = vec![rendition.to_owned()];
    if let Some((_, content)) = Fields::of(rendition).and_then(|edited| edited.find("content")) {
        let content = content.get();
        found.push(format!("{{\"content\":{content}}}"));
        let wrapped = content.strip_prefix("[{\"type\":\"text\",\"text\":");
        found.extend(
            wrapped.and_then(|rest| rest.strip_suffix("}]")).map(|text| format!("{{\"content\":{text}}}")),
        );
    }
    found.retain(|replacement| with_replacement(json, replacement) == rendition);
    found
}

type RawField<'a> = (&'a RawValue, &'a RawValue);

/// The fields of a JSON object, each parsed separately.
#[derive(Default)]
pub struct Fields<'a>(Vec<RawField<'a>>);

impl<'a> Fields<'a> {
    /// The fields of `json`, if it is an object.
    pub fn of(json: &'a str) -> Option<Self> {
        fields(unmarked(json)).map(Self)
    }

    /// The time, ms, that entries and most agents' records have as an ISO date.
    pub fn time(&self) -> Option<i64> {
        text::parse_iso(&self.text("timestamp")?)
    }

    fn find(&self, name: &str) -> Option<RawField<'a>> {
        let is_it = |key: &str| key.strip_prefix('"').and_then(|key| key.strip_suffix('"')) == Some(name);
        self.0.iter().find(|(key, _)| is_it(key.get())).copied()
    }

    /// A string field.
    pub fn text(&self, name: &str) -> Option<String> {
        read_text(self.json(name)?)
    }

    /// A field as JSON; `None` if it is missing or `null`.
    pub fn json(&self, name: &str) -> Option<&'a str> {
        self.find(name).map(|(_, value)| value.get()).filter(|json| *json != "null")
    }

    /// Whether it has the field, `null` or not.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// A field's own fields, if it is an object.
    pub fn within(&self, name: &str) -> Option<Self> {
        Self::of(self.json(name)?)
    }

    /// A field as a value; `null` if it is missing.
    pub fn value(&self, name: &str) -> serde_json::Value {
        self.json(name).and_then(|json| read_json(json).ok()).unwrap_or_default()
    }
}

/// The fields of a JSON object in order, as raw text. Keys too: `JSON.stringify` writes some that serde
/// cannot read.
fn fields(json: &str) -> Option<Vec<RawField<'_>>> {
    struct FieldsVisitor;
    impl<'de> serde::de::Visitor<'de> for FieldsVisitor {
        type Value = Vec<RawField<'de>>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some(field) = map.next_entry()? {
                fields.push(field);
            }
            Ok(fields)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    let fields = serde::Deserializer::deserialize_map(&mut reader, FieldsVisitor).ok()?;
    reader.end().ok().map(|()| fields)
}

fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let body: Vec<String> = fields.map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", body.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_its_exact_text() {
        let odd = r#"{"role":"user","content":"\ud800 lone","2":1e999,"1":{ "spaced" : 1 }}"#;
        let batch = format!(r#"[{{"type":"message","id":"a","parentId":null,"message":{odd}}}]"#);
        let entry = parse_batch(&batch).unwrap().remove(0);
        let Content::Message(json) = entry.content else { panic!("no message") };
        assert_eq!(json, odd);
        assert_eq!(Message::parse(&json).take_searchable(), "\u{fffd} lone");
    }

    #[test]
    fn an_odd_entry_keeps_its_place_in_the_tree() {
        for odd in [
            r#"{"type":"pin","id":"k","parentId":"a","targetId":["a","b"]}"#,
            r#"{"type":"label","id":"k","parentId":"a","targetId":5,"details":[]}"#,
            r#"{"type":"\ud800","id":"k","parentId":"a"}"#,
            r#"{"id":"k","parentId":"a"}"#,
            r#"{"type":"context_edit","id":"k","parentId":"a","targetId":{},"replacement":3}"#,
        ] {
            let entry = parse_batch(&format!("[{odd}]")).unwrap().pop().unwrap();
            assert_eq!((entry.id.as_str(), entry.parent.as_deref()), ("k", Some("a")), "{odd}");
        }
    }

    #[test]
    fn a_custom_message_is_the_same_message_under_every_id() {
        let of = |id: &str| {
            let json = format!(
                r#"[{{"type":"custom_message","id":"{id}","parentId":"x","customType":"note","content":"hi"}}]"#
            );
            match parse_batch(&json).unwrap().remove(0).content {
                Content::Message(json) => json,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(of("a"), r#"{"type":"custom_message","customType":"note","content":"hi"}"#);
        assert_eq!(of("a"), of("b"));
    }

    #[test]
    fn an_edit_is_what_it_shows() {
        for replacement in [r#"{"content":[ 1 ]}"#, r#"{"why":1, "content" : [ 1 ] ,"lc":null}"#] {
            let json =
                format!(r#"{{"type":"context_edit","id":"k","targetId":"a","replacement":{replacement}}}"#);
            let Content::Edit { replacement, .. } = parse_one(&json).unwrap().content else {
                panic!("{json}")
            };
            assert_eq!(replacement.as_deref(), Some(r#"{"content":[ 1 ]}"#));
        }
    }

    #[test]
    fn an_edit_replaces_only_the_content() {
        let json = r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"long"}],"isError":false}"#;
        assert_eq!(
            with_replacement(json, r#"{"content":"short"}"#),
            r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"short"}],"isError":false}"#
        );
    }

    #[test]
    fn the_replacement_is_recovered_from_the_rendition() {
        for (json, replacement) in [
            (r#"{"role":"toolResult","content":"long","n":1}"#, r#"{"content":"short"}"#),
            (r#"{"role":"user","content":"long"}"#, r#"{"content":[{"type":"text","text":"short"}]}"#),
            (r#"{"role":"user","content":"long"}"#, r#"{"content":7}"#),
            ("[1]", r#"{"content":"short"}"#),
        ] {
            let rendition = with_replacement(json, replacement);
            assert!(replacements(json, &rendition).iter().any(|found| found == replacement), "{rendition}");
        }
        assert!(replacements(r#"{"role":"user","content":1}"#, r#"{"role":"usher","content":2}"#).is_empty());
    }
}
