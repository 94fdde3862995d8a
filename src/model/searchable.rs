//! What search looks at, cut straight out of a message's JSON: a regular expression reads a whole history, and building each
//! message first would be most of its time.
//!
//! It knows the shapes that make up nearly all of a history. Whatever is not exactly of them is read as any other message.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Message;
use super::message::{each_string, is_recall_tool, push_line, without_base64};

/// Arguments nested more deeply than this are read as any other message.
const DEEPEST: usize = 64;

#[derive(Deserialize)]
struct Envelope<'a> {
    role: &'a str,
    #[serde(rename = "toolName", default)]
    tool: Option<&'a str>,
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(default)]
    name: &'a str,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

enum Content<'a> {
    Text(String),
    Blocks(Vec<Block<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Content<'de>;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("text or blocks")
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(block) = blocks.next_element()? {
                    all.push(block);
                }
                Ok(Content::Blocks(all))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// [`Message::searchable`] of a message's JSON.
#[must_use]
pub fn searchable(json: &str) -> String {
    quickly(json).unwrap_or_else(|_| Message::parse(json).searchable())
}

fn quickly(json: &str) -> serde_json::Result<String> {
    let message: Envelope<'_> = serde_json::from_str(json)?;
    match (message.role, message.tool) {
        ("toolResult", Some(tool)) if is_recall_tool(tool) => return Ok(String::new()),
        ("user" | "assistant" | "toolResult", _) => {}
        _ => return Err(serde_json::Error::custom("another role")),
    }
    let mut out = String::new();
    match message.content {
        Content::Text(text) => out = text,
        Content::Blocks(blocks) => blocks.iter().try_for_each(|block| push_block(&mut out, block))?,
    }
    Ok(without_base64(out))
}

fn push_block(out: &mut String, block: &Block<'_>) -> serde_json::Result<()> {
    match block.kind {
        "text" => push_line(out, &block.text),
        "thinking" | "image" => {}
        "toolCall" if is_recall_tool(block.name) => {}
        "toolCall" => {
            push_line(out, block.name);
            if let Some(arguments) = block.arguments {
                let arguments: Value = serde_json::from_str(arguments.get())?;
                if depth(&arguments) > DEEPEST {
                    return Err(serde_json::Error::custom("deeply nested"));
                }
                each_string(&arguments, &mut |text| push_line(out, text));
            }
        }
        _ => return Err(serde_json::Error::custom("a block of a kind to come")),
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn same(json: &str) {
        assert_eq!(searchable(json), Message::parse(json).searchable(), "{json}");
    }

    #[test]
    fn odd_messages_give_the_same_text_either_way() {
        let mut deep = json!("inside");
        for _ in 0..110 {
            deep = json!([deep, 1.50]);
        }
        let odd = [
            json!({"role": "user", "content": "plain \" and \n and é"}),
            json!({"role": "user", "content": null}),
            json!({"role": "user"}),
            json!({"role": "user", "content": [{"type": "text"}, {"type": "text", "text": null}, {"type": "text", "text": 5}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "b"}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": "1", "name": "bash"}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": {"x": [1, 2.50, "é\n"], "y": null}}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "lcm_grep", "arguments": {"query": "x"}}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": deep}]}),
            json!({"role": "toolResult", "toolName": "lcm_expand", "content": [{"type": "text", "text": "echo"}]}),
            json!({"role": "toolResult", "toolName": 5, "content": [{"type": "new", "text": "echo"}]}),
            json!({"role": "toolResult", "toolName": "b\n", "content": ["loose", 5]}),
            json!({"role": "system", "content": "hidden"}),
            json!({"role": "bashExecution", "command": "ls", "output": "a\nb"}),
            json!({"type": "branch_summary", "summary": "left"}),
            json!({"role": "user", "content": format!("a data:image/png;base64,{} b {}", "A".repeat(50), "9".repeat(300))}),
        ];
        odd.iter().for_each(|message| same(&message.to_string()));
        for json in [
            "",
            "5",
            "[]",
            "{",
            r#"{"role":"user","role":"system","content":"x"}"#,
            r#"{"role":"user","content":"\ud800 x"}"#,
        ] {
            same(json);
        }
    }

    proptest! {
        #[test]
        fn any_message_gives_the_same_text_either_way(
            role in "user|assistant|toolResult|custom|system",
            texts in proptest::collection::vec((any::<String>(), 0..5_usize), 0..6),
        ) {
            let blocks: Vec<Value> = texts.iter().map(|(text, kind)| match kind {
                0 => json!({"type": "thinking", "thinking": text}),
                1 => json!({"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": text, "n": [text.len(), text]}}),
                2 => json!({"type": "other", "text": text}),
                _ => json!({"type": "text", "text": text}),
            }).collect();
            same(&json!({"role": role, "content": blocks, "timestamp": 5}).to_string());
        }
    }
}
