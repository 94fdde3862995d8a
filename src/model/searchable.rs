//! Extracts the searchable text directly from a message's JSON: a regular expression reads the whole history,
//! and building each message first would take most of the time.
//!
//! It knows the forms that make up nearly all of a history. Everything else is parsed like any other message.

use super::Message;
use super::base64::without_base64;
use super::message::{is_recall_tool, push_line};
use super::raw::Raw;

/// Arguments nested more deeply are parsed like any other message …
const DEEPEST: usize = 64;
/// … and so are those with more keys in one object.
const MOST_KEYS: usize = 64;

/// [`Message::searchable`] of a message's JSON.
pub fn searchable(json: &str) -> String {
    // No text is longer than its JSON.
    let mut out = String::with_capacity(json.len());
    match push_message(&mut out, &mut Raw::new(json)) {
        Some(()) => without_base64(out),
        None => Message::parse(json).searchable(),
    }
}

fn push_message(out: &mut String, raw: &mut Raw<'_>) -> Option<()> {
    let (mut role, mut tool, mut content) = (None, None, false);
    raw.fields(|key, raw| match key {
        "role" if role.is_none() => keep(&mut role, raw.plain()?),
        "toolName" if tool.is_none() => keep(&mut tool, raw.plain()?),
        "content" if !content => {
            content = true;
            if raw.peek()? == b'"' { raw.push_string(out) } else { raw.items(|raw| push_block(out, raw)) }
        }
        "role" | "toolName" | "content" => None,
        _ => raw.skip(),
    })?;
    match role? {
        "toolResult" if tool.is_some_and(is_recall_tool) => out.clear(),
        "user" | "assistant" | "toolResult" => {}
        _ => return None,
    }
    (content && raw.is_at_end()).then_some(())
}

fn push_block(out: &mut String, raw: &mut Raw<'_>) -> Option<()> {
    let (mut kind, mut name, mut said) = (None, None, false);
    raw.fields(|key, raw| match (key, kind) {
        ("type", None) => keep(&mut kind, raw.plain()?),
        ("text", Some("text")) if !said => {
            said = true;
            push_line(out, "");
            raw.push_string(out)
        }
        ("name", Some("toolCall")) if name.is_none() => {
            let tool = raw.plain()?;
            if !is_recall_tool(tool) {
                push_line(out, tool);
            }
            keep(&mut name, tool)
        }
        ("arguments", Some("toolCall")) if !said => {
            said = true;
            if is_recall_tool(name?) { raw.skip() } else { push_strings(out, raw, &mut Vec::new(), 0) }
        }
        ("type" | "text" | "name" | "arguments", None | Some("text" | "toolCall")) => None,
        _ => raw.skip(),
    })?;
    match kind? {
        "text" => said.then_some(()),
        "toolCall" => name.map(drop),
        "thinking" | "image" => Some(()),
        // An unknown kind of block.
        _ => None,
    }
}

/// Appends every string and number of a value. `keys` are those of the enclosing objects: if one occurs
/// twice, only the last counts.
fn push_strings<'a>(
    out: &mut String,
    raw: &mut Raw<'a>,
    keys: &mut Vec<&'a str>,
    depth: usize,
) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    match raw.peek()? {
        b'"' => {
            push_line(out, "");
            raw.push_string(out)
        }
        b'[' => raw.items(|raw| push_strings(out, raw, keys, depth + 1)),
        b'{' => {
            let outer = keys.len();
            raw.fields(|key, raw| {
                let own = &keys[outer..];
                // Keys with a meaning for serde_json are left to it.
                if own.len() == MOST_KEYS || own.contains(&key) || key.starts_with('$') {
                    return None;
                }
                keys.push(key);
                push_strings(out, raw, keys, depth + 1)
            })?;
            keys.truncate(outer);
            Some(())
        }
        b'-' | b'0'..=b'9' => {
            let number = raw.token().filter(|number| !number.contains(['e', 'E']))?;
            push_line(out, number);
            Some(())
        }
        _ => raw.skip(),
    }
}

fn keep<'a>(slot: &mut Option<&'a str>, value: &'a str) -> Option<()> {
    *slot = Some(value);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

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
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": {"{": ["\\\"", {"]": "}\u{1}\u{20ac}"}], "b\"": [[-5, 0.5], true, ""]}}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": [{"a": "1", "b": {"a": "2"}}, 7]}]}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "name": "a", "arguments": "text"}, {"type": "toolCall", "name": "b", "arguments": null}]}),
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
