//! Texts that a purge looks for, however JSON escapes them, and in any case, as a search does.

use std::collections::BTreeSet;

use memchr::memmem;
use serde_json::Value;

use crate::{Message, Part, each_string, folded, is_noting, read_json};

/// How often a text may be JSON within JSON: another agent's record is a string that holds such strings.
const NESTED: usize = 4;

/// Texts to look for, each as it is written in JSON at any depth.
pub struct Needles {
    forms: Vec<memmem::Finder<'static>>,
}

impl Needles {
    pub fn of(texts: impl IntoIterator<Item = String>) -> Self {
        let mut forms = BTreeSet::new();
        for mut form in texts.into_iter().filter(|text| !text.is_empty()) {
            for _ in 0..NESTED {
                forms.insert(form.clone());
                let quoted = Value::from(form).to_string();
                form = quoted[1..quoted.len() - 1].to_owned();
            }
        }
        let finder = |form: String| memmem::Finder::new(&folded(&form)).into_owned();
        Self { forms: forms.into_iter().map(finder).collect() }
    }

    /// Whether there is nothing to look for.
    pub const fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether a text has one of them.
    pub fn are_in(&self, text: &str) -> bool {
        let text = folded(text);
        self.forms.iter().any(|form| form.find(text.as_bytes()).is_some())
    }

    /// Whether JSON has one of them, however its strings are escaped.
    pub fn are_held(&self, json: &str) -> bool {
        let mut found = self.are_in(json);
        if !found
            && json.contains("\\u")
            && let Ok(value) = read_json(json)
        {
            each_string(&value, &mut |text| found |= self.are_in(text));
        }
        found
    }

    /// The kind of place in a message.
    pub fn place(&self, json: &str) -> &'static str {
        let message = Message::parse(json);
        let has = |part: &Part| match part {
            Part::Text(text) | Part::Thinking(text) => self.are_in(text),
            Part::ToolCall { arguments, .. } => self.are_held(&arguments.to_string()),
            Part::Image { .. } => false,
        };
        let found: Vec<&Part> = message.parts.iter().filter(|part| has(part)).collect();
        let any = |is: fn(&&&Part) -> bool| found.iter().any(|part| is(&part));
        if is_noting(&message) {
            "note"
        } else if any(|part| matches!(part, Part::Text(_))) {
            "message text"
        } else if any(|part| matches!(part, Part::ToolCall { .. })) {
            "call arguments"
        } else if any(|part| matches!(part, Part::Thinking(_))) {
            "thinking"
        } else {
            "message details"
        }
    }
}
