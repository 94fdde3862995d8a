//! Masks keys, tokens and passwords in the summarizer's input. The store keeps every byte, and the session's
//! own model has seen them; but another provider may write a summary, which needs no keys.
//!
//! The rules are data: `keys.tsv` lists keys with a recognizable shape, mostly from a public rule set, and
//! `places.tsv` lists values that are secret because of their position, such as after `password=`. One search
//! finds the keywords of all rules; a rule's pattern is tried only at its keyword. Hashes, UUIDs and base64
//! are left alone.
//!
//! A pattern that does not compile fails a test. If one got through anyway, the rest of the line after its
//! keyword is masked, and if the keywords themselves do not compile, everything is: a broken rule lets
//! nothing pass.

mod rules;
#[cfg(test)]
mod tests;
mod values;

use serde_json::Value;

use lcm_model::{CallOutcome, Message, Part, read_json};

use rules::RULES;

/// `text` with every recognized secret masked, as `[masked: aws key]`, or `[masked]` if only its position
/// identifies it.
pub(super) fn redacted(text: &str) -> String {
    RULES.redacted(text)
}

/// `text`, or only what may be shown of it if `masks`.
pub(super) fn masked(text: &str, masks: bool) -> String {
    if masks { redacted(text) } else { text.to_owned() }
}

/// JSON with every recognized secret masked in its strings; `None` if it is no JSON.
pub fn redacted_json(json: &str) -> Option<String> {
    let mut value = read_json(json).ok()?;
    redact_value(&mut value);
    serde_json::to_string(&value).ok()
}

/// The message as a summarizer may see it.
pub(super) fn redacted_message(mut message: Message) -> Message {
    for part in &mut message.parts {
        match part {
            Part::Text(text) | Part::Thinking(text) => *text = redacted(text),
            Part::ToolCall { arguments, .. } => redact_value(arguments),
            Part::Image { .. } => {}
        }
    }
    for call in &mut message.nested {
        redact_value(&mut call.arguments);
        if let CallOutcome::Failed(said) = &mut call.outcome {
            *said = redacted(said);
        }
    }
    message
}

fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = redacted(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| redact_field(name, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// In arguments, name and value are separate, so a short value is checked together with its name.
fn redact_field(name: &str, field: &mut Value) {
    let Value::String(text) = field else { return redact_value(field) };
    let head = format!("\"{name}\": \"");
    let line = redacted(&format!("{head}{text}\""));
    let masked = line.strip_prefix(&head).and_then(|rest| rest.strip_suffix('"'));
    *text = match masked {
        Some(masked) if !text.contains(['"', '\n']) => masked.to_owned(),
        _ => redacted(text),
    };
}
