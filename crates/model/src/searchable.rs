//! Extracts the searchable text directly from a message's JSON: a regular expression reads the whole history,
//! and building each message first would take most of the time.
//!
//! It knows the forms that make up nearly all of a history. Everything else fails, as [`odd`], and is parsed
//! like any other message.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Message;
use super::message::{SCRIPT_TOOL, is_recall_tool, push_line};

/// An object with more keys is parsed like any other message.
const MOST_KEYS: usize = 64;
/// How serde_json presents a number that it keeps as written: as an object with this key.
const NUMBER: &str = "$serde_json::private::Number";

/// [`Message::take_searchable`] of a message's JSON.
pub fn searchable(json: &str) -> String {
    // No text is longer than its JSON.
    let mut out = String::with_capacity(json.len());
    let mut reader = serde_json::Deserializer::from_str(json);
    match AppendedValue(What::Message, &mut out).deserialize(&mut reader).and_then(|()| reader.end()) {
        Ok(()) => out,
        Err(_) => Message::parse(json).take_searchable(),
    }
}

/// A kind of value.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Message,
    Content,
    Block,
    Text,
    /// Arguments, of which every string and number is wanted.
    Arguments,
}

/// A value whose text is appended.
struct AppendedValue<'o>(What, &'o mut String);

fn odd<E: Error>() -> E {
    E::custom("not a usual message")
}

impl<'de> DeserializeSeed<'de> for AppendedValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AppendedValue<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a message")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.0 {
            What::Content => self.1.push_str(text),
            What::Text | What::Arguments => push_line(self.1, text),
            What::Message | What::Block => return Err(odd()),
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        if self.0 == What::Arguments { Ok(()) } else { Err(odd()) }
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.visit_bool(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let item = match self.0 {
            What::Content => What::Block,
            What::Arguments => What::Arguments,
            _ => return Err(odd()),
        };
        while items.next_element_seed(AppendedValue(item, &mut *self.1))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        match self.0 {
            What::Message => push_message(self.1, map),
            What::Block => push_block(self.1, map),
            What::Arguments => push_arguments(self.1, map),
            What::Content | What::Text => Err(odd()),
        }
    }
}

fn push_message<'de, A: MapAccess<'de>>(out: &mut String, mut map: A) -> Result<(), A::Error> {
    let (mut role, mut tool, mut content) = (None, None, false);
    while let Some(key) = map.next_key::<&str>()? {
        match key {
            "role" if role.is_none() => role = Some(map.next_value::<&str>()?),
            "toolName" if tool.is_none() => tool = Some(map.next_value::<&str>()?),
            "content" if !content => {
                content = true;
                map.next_value_seed(AppendedValue(What::Content, out))?;
            }
            // Whether a script's output is searched depends on its calls.
            "role" | "toolName" | "content" | "nestedCalls" => return Err(odd()),
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
    }
    match role.filter(|_| content) {
        Some("toolResult") if tool.is_some_and(is_recall_tool) => out.clear(),
        Some("user" | "assistant" | "toolResult") => {}
        _ => return Err(odd()),
    }
    Ok(())
}

fn push_block<'de, A: MapAccess<'de>>(out: &mut String, mut map: A) -> Result<(), A::Error> {
    let (mut kind, mut name, mut said) = (None, None, false);
    while let Some(key) = map.next_key::<&str>()? {
        match (key, kind, name) {
            ("type", None, _) => kind = Some(map.next_value::<&str>()?),
            ("text", Some("text"), _) if !said => {
                said = true;
                map.next_value_seed(AppendedValue(What::Text, out))?;
            }
            ("name", Some("toolCall"), None) => {
                let tool = map.next_value::<&str>()?;
                if tool == SCRIPT_TOOL {
                    return Err(odd());
                }
                if !is_recall_tool(tool) {
                    push_line(out, tool);
                }
                name = Some(tool);
            }
            ("arguments", Some("toolCall"), Some(tool)) if !said && !is_recall_tool(tool) => {
                said = true;
                map.next_value_seed(AppendedValue(What::Arguments, out))?;
            }
            ("arguments", Some("toolCall"), Some(tool)) if is_recall_tool(tool) => {
                _ = map.next_value::<IgnoredAny>()?;
            }
            ("type" | "text" | "name" | "arguments", None | Some("text" | "toolCall"), _) => {
                return Err(odd());
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
    }
    match kind {
        Some("text") if said => Ok(()),
        Some("toolCall") if name.is_some() => Ok(()),
        Some("thinking" | "image") => Ok(()),
        // An unknown kind of block.
        _ => Err(odd()),
    }
}

fn push_arguments<'de, A: MapAccess<'de>>(out: &mut String, mut map: A) -> Result<(), A::Error> {
    let mut keys = Vec::new();
    while let Some(key) = map.next_key::<&str>()? {
        if key == NUMBER && keys.is_empty() {
            let number = map.next_value::<String>()?;
            if number.contains(['e', 'E']) {
                return Err(odd());
            }
            push_line(out, &number);
            continue;
        }
        // Of equal keys only the last counts; others have a meaning for serde_json.
        if keys.len() == MOST_KEYS || keys.contains(&key) || key.starts_with('$') {
            return Err(odd());
        }
        keys.push(key);
        map.next_value_seed(AppendedValue(What::Arguments, out))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn same(json: &str) {
        assert_eq!(searchable(json), Message::parse(json).take_searchable(), "{json}");
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
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": {"{": ["\\\"", {"]": "}\u{1}\u{20ac}"}], "b\"": [[-5, 0.5], true, ""]}}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": [{"a": "1", "b": {"a": "2"}}, 7]}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": "text"}, {"type": "toolCall", "name": "b", "arguments": null}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": deep}]}),
            json!({"role": "toolResult", "toolName": "lcm_expand", "content": [{"type": "text", "text": "echo"}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "codemode", "arguments": {"code": "tools.lcm_grep({query: 'x'})"}}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "codemode", "arguments": {"code": "tools.lcm_grep(await tools.read())"}}]}),
            json!({"role": "toolResult", "toolName": "codemode", "content": "echo", "nestedCalls": {"calls": [{"name": "lcm_grep"}]}}),
            json!({"role": "toolResult", "toolName": "codemode", "content": "said", "nestedCalls": {"calls": [{"name": "lcm_grep"}, {"name": "bash"}]}}),
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
            r#"{"role":"user","content":[{"type":"text","text":"\ud800 x \u00e9\/\b\f\ud83d\ude00"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"\u00e9\/\b\f\u20AC\uffff \\u00e9"}]}"#,
            r#"{"role":"assistant","content":[{"type":"toolCall","name":"a","arguments":{"x":"\ud83d\ude00","y":"\udc00"}}]}"#,
            r#"{"role":"assistant","content":[{"type":"toolCall","name":"a","arguments": { "x" : [ "y" , 1E5, -0, 1.0e-3 ] , "x" : "z" } }]}"#,
            r#"{"role":"assistant","content":[{"type":"toolCall","name":"a","arguments":{"x":"y","$serde_json::private::Number":"5"}}]}"#,
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
                2 => json!({"type": "toolCall", "name": text, "arguments": {(text.as_str()): {"a": text, "b": [text, -0.5]}}}),
                3 if texts.len() > 4 => json!({"type": "other", "text": text}),
                _ => json!({"type": "text", "text": text}),
            }).collect();
            same(&json!({"role": role, "content": blocks, "timestamp": 5}).to_string());
        }
    }
}
