//! Keys, tokens and passwords are masked in what a summarizer is shown. The store keeps every byte, and the session's own
//! model has seen them; but a summary may be written by another provider, and nobody needs a key in a summary.
//!
//! What is looked for is data: `keys.tsv` has keys with a shape of their own, most of them from a public rule set, and
//! `places.tsv` has values that are secret because of where they are, such as after `password=`. One search finds the
//! keywords of all rules; only where one is found, its pattern is tried. Hashes, UUIDs and base64 stay as they are.
//!
//! A pattern that does not compile fails a test. If one ever got past it, the rest of the line after its keyword is
//! masked, and if the keywords themselves do not compile, everything is: nothing passes because a rule is broken.

#[cfg(test)]
mod labelled;
mod rules;
#[cfg(test)]
mod tests;
mod values;

use serde_json::Value;

use crate::model::{Message, Part};

use rules::RULES;

/// `text` with every secret that can be told masked, as `[masked: aws key]`, or `[masked]` where its place told it.
pub(super) fn redacted(text: &str) -> String {
    RULES.redacted(text)
}

/// The message as a summarizer may read it.
pub(super) fn redacted_message(mut message: Message) -> Message {
    for part in &mut message.parts {
        match part {
            Part::Text(text) | Part::Thinking(text) => *text = redacted(text),
            Part::ToolCall { arguments, .. } => redact_value(arguments),
            Part::Image { .. } => {}
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

/// In arguments a name and its value are apart, so a short value is looked at together with its name.
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
