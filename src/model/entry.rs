//! A session entry: one node of Pi's session tree, reduced to what the store folds over.
//!
//! `message` entries of every role, `custom_message` and `branch_summary` make conversation and extend a lineage.
//! `context_edit` changes what the model sees of an earlier entry; `compaction` may carry summaries of ours. All other
//! kinds, known or not, only link their children to their parent.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::read_json;
use super::{CompactionDetails, Message, Role};
use crate::error::{Error, Result};
use crate::text;

/// One entry as it is handed over.
#[derive(Debug)]
pub struct Entry {
    /// Unique within its session only: forks copy entries with their ids.
    pub id: String,
    /// The entry above, absent for a root.
    pub parent: Option<String>,
    /// When it was appended, ms since the epoch; 0 where the entry does not say.
    pub timestamp: i64,
    /// What it means for the conversation.
    pub content: Content,
}

/// What an entry contributes.
#[derive(Debug)]
pub enum Content {
    /// A message, as the exact JSON to keep: what `JSON.stringify` gave for it; for entries that hold their message in
    /// their own fields, the entry's fields without its place in the tree. It is not read yet: entries are handed over
    /// on Pi's own thread, which must not wait for that.
    Message(String),
    /// What the model sees of `target` from here on.
    Edit {
        /// Id of the edited entry.
        target: String,
        /// The replacement as JSON, `None` where the target is hidden.
        replacement: Option<String>,
    },
    /// A compaction, with the summaries it carries if it is one of ours.
    Compaction(Option<CompactionDetails>),
    /// A label, a model change, anything unknown.
    Other,
}

/// An entry's fields as they stand. Each is read on its own, so that a field of another shape than expected never costs
/// the entry its place in the tree, and with it all that hangs below.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_id: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    target_id: Option<&'a RawValue>,
    #[serde(borrow)]
    replacement: Option<&'a RawValue>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

/// The field as text, if it is text.
fn string(field: Option<&RawValue>) -> Option<String> {
    match read_json(field?.get()).ok()? {
        serde_json::Value::String(text) => Some(text),
        _ => None,
    }
}

/// Reads a JSON array of session entries, in order. An element without an id is no entry and is left out: no tree can
/// hold it, and none can name it.
///
/// # Errors
/// When `json` is not an array at all.
pub fn parse_batch(json: &str) -> Result<Vec<Entry>> {
    let raw: Vec<&RawValue> = serde_json::from_str(json)
        .map_err(|error| Error::storing("the entries handed over are not a JSON array", error))?;
    Ok(raw.into_iter().filter_map(|value| parse(value.get())).collect())
}

fn parse(json: &str) -> Option<Entry> {
    let raw: Raw<'_> = serde_json::from_str(json).ok()?;
    let timestamp = string(raw.timestamp).and_then(|iso| text::parse_iso(&iso)).unwrap_or_default();
    let content = match (string(raw.kind).unwrap_or_default().as_str(), raw.message) {
        ("message", Some(message)) => Content::Message(message.get().to_owned()),
        ("custom_message" | "branch_summary", _) => Content::Message(without_place(json)),
        ("context_edit", _) => match string(raw.target_id) {
            Some(target) => {
                Content::Edit { target, replacement: raw.replacement.map(|value| value.get().to_owned()) }
            }
            None => Content::Other,
        },
        ("compaction", _) => {
            Content::Compaction(raw.details.and_then(|details| CompactionDetails::parse(details.get())))
        }
        _ => Content::Other,
    };
    Some(Entry { id: string(raw.id)?, parent: string(raw.parent_id), timestamp, content })
}

/// The entry's JSON without `id` and `parentId`, which differ between sessions that show the same message (a session
/// file of version 1 gets its ids when Pi migrates it).
fn without_place(json: &str) -> String {
    match fields(json) {
        Some(fields) => object(fields.iter().filter(|(key, _)| key != "id" && key != "parentId")),
        None => json.to_owned(),
    }
}

/// `json` of a message with its content replaced, as Pi shows it after a context edit.
///
/// `replacement` is the edit's own JSON, `{"content": …}`.
#[must_use]
pub fn with_replacement(json: &str, replacement: &str) -> String {
    let content = fields(replacement).and_then(|fields| fields.into_iter().find(|(key, _)| key == "content"));
    let (Some(fields), Some((_, content))) = (fields(json), content) else {
        return replacement.to_owned();
    };
    let is_text = content.get().starts_with('"');
    let blocks = matches!(Message::parse(json).role, Role::Assistant | Role::ToolResult);
    // Pi wraps a bare string for the roles whose content is a list of blocks.
    let content = match is_text && blocks {
        true => RawValue::from_string(format!("[{{\"type\":\"text\",\"text\":{}}}]", content.get()))
            .unwrap_or(content),
        false => content,
    };
    let edited: Vec<_> = fields
        .into_iter()
        .map(|(key, value)| if key == "content" { (key, content.clone()) } else { (key, value) })
        .collect();
    object(edited.iter())
}

type Field = (String, Box<RawValue>);

/// The fields of a JSON object in their order, each value as the text it is.
fn fields(json: &str) -> Option<Vec<Field>> {
    struct Fields;
    impl<'de> serde::de::Visitor<'de> for Fields {
        type Value = Vec<Field>;
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
    serde::Deserializer::deserialize_map(&mut reader, Fields).ok()
}

fn object<'a>(fields: impl Iterator<Item = &'a Field>) -> String {
    let body: Vec<String> = fields
        .map(|(key, value)| format!("{}:{}", serde_json::Value::from(key.as_str()), value.get()))
        .collect();
    format!("{{{}}}", body.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_the_exact_text_it_came_as() {
        let odd = r#"{"role":"user","content":"\ud800 lone","2":1e999,"1":{ "spaced" : 1 }}"#;
        let batch = format!(r#"[{{"type":"message","id":"a","parentId":null,"message":{odd}}}]"#);
        let entry = parse_batch(&batch).unwrap().remove(0);
        let Content::Message(json) = entry.content else { panic!("no message") };
        assert_eq!(json, odd);
        assert_eq!(Message::parse(&json).searchable(), "\u{fffd} lone");
    }

    #[test]
    fn an_entry_of_an_odd_shape_keeps_its_place_in_the_tree() {
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
    fn an_edit_replaces_the_content_and_nothing_else() {
        let json = r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"long"}],"isError":false}"#;
        assert_eq!(
            with_replacement(json, r#"{"content":"short"}"#),
            r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"short"}],"isError":false}"#
        );
    }
}
