//! The gate: adds, in one line, the important details that a model's summary has lost.
//!
//! A detail is a file, a name in code, a number, an error's code, or a clause in which the user limits what may
//! be done. `reader` collects candidates wherever they stand out by their form (`patterns`, `tokens`, `numbers`,
//! `rules`): in the user's and the model's text, in what an edit adds, in short outputs and lines about errors.
//! `model` estimates from their form and from where they occur which of them a summary's author would keep;
//! these are the anchors. `summary` decides whether a summary contains an anchor: a file by its name, a number
//! by its value, also rounded or in another unit, a clause by its words, the rarer the better.

use std::collections::HashMap;

use serde_json::Value;

use model::{Feature, Features};
use numbers::Number;
use patterns::{end_of, folder};
use reader::Reader;
use summary::{Summary, has};

use crate::model::{Message, Part, Role};

mod model;
mod numbers;
mod patterns;
mod reader;
mod rules;
mod summary;
mod tokens;

/// A part of the conversation, in order. What the model read from a file may be left out.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// The user's text.
    User(&'a str),
    /// The model's text.
    Assistant(&'a str),
    /// An edited or written file.
    Edit {
        /// Its path.
        path: &'a str,
        /// The old text; empty if there was none or it is unknown.
        old: &'a str,
        /// The new text.
        new: &'a str,
    },
    /// Any other tool call: its command or its path.
    Call(&'a str),
    /// A tool's output.
    Output(&'a str),
}

/// Returns the parts of a message, except file contents that were read and results of our own tools.
pub fn said(message: &Message) -> Vec<Said<'_>> {
    let mut pieces = Vec::new();
    for part in &message.parts {
        match (part, &message.role) {
            (Part::Text(text), Role::User) => pieces.push(Said::User(text)),
            (Part::Text(text), Role::Assistant) => pieces.push(Said::Assistant(text)),
            (Part::Text(text), Role::ToolResult | Role::Bash)
                if message.tool.as_deref() != Some("read") && !message.is_recall_echo() =>
            {
                pieces.push(Said::Output(text));
            }
            (Part::ToolCall { arguments, .. }, _) => pieces.extend(called(arguments)),
            _ => {}
        }
    }
    pieces
}

/// What a call writes, runs or refers to.
fn called(arguments: &Value) -> Vec<Said<'_>> {
    fn text<'v>(value: &'v Value, key: &str) -> &'v str {
        value[key].as_str().unwrap_or_default()
    }
    let path = text(arguments, "path");
    let edit = |edit| Said::Edit { path, old: text(edit, "oldText"), new: text(edit, "newText") };
    match (arguments["edits"].as_array(), path, text(arguments, "content"), text(arguments, "command")) {
        (Some(edits), ..) => edits.iter().map(edit).collect(),
        _ if arguments["newText"].is_string() => vec![edit(arguments)],
        (_, path, new, _) if !path.is_empty() && !new.is_empty() => vec![Said::Edit { path, old: "", new }],
        (.., command) if !command.is_empty() => vec![Said::Call(command)],
        (_, path, ..) if !path.is_empty() => vec![Said::Call(path)],
        _ => Vec::new(),
    }
}

/// The kind of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    Path,
    /// A name in code, or an error's code.
    Name,
    /// A number.
    Number,
    /// A rule or a decision by the user.
    Rule,
    /// A known error code.
    Error,
}

/// A detail that a summary must not lose.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Its kind.
    pub kind: Kind,
    /// Its text after `Also: `.
    pub text: String,
    /// The text to look for, in lowercase; for a file, the whole path.
    key: String,
    number: Option<Number>,
    /// What a rule is about: words, each with its weight.
    about: Vec<(String, f64)>,
    /// Whether another file has the same name.
    has_twin: bool,
    features: Features,
}

/// Returns the anchors of a range, most important first.
pub fn anchors<'a>(said: impl IntoIterator<Item = Said<'a>>) -> Vec<Anchor> {
    let mut reader = Reader::default();
    for (at, piece) in said.into_iter().enumerate() {
        reader.at = at;
        match piece {
            Said::User(text) => reader.prose(text, Feature::User),
            Said::Assistant(text) => reader.prose(text, Feature::Assistant),
            Said::Edit { path, old, new } => reader.edit(path, old, new),
            Said::Call(text) => reader.call(text),
            Said::Output(text) => reader.output(text),
        }
    }
    reader.finish()
}

/// Returns those that `summary` lacks, in the same order.
#[must_use]
pub fn missing<'a>(anchors: &'a [Anchor], summary: &str) -> Vec<&'a Anchor> {
    let summary = Summary::of(summary);
    let mut beside: HashMap<&str, usize> = HashMap::new();
    for file in anchors.iter().filter(|anchor| anchor.kind == Kind::Path) {
        *beside.entry(folder(&file.key)).or_default() += 1;
    }
    // Nobody lists every file of a folder that was changed as a whole.
    let is_of_many = |anchor: &Anchor| {
        let folder = folder(&anchor.key);
        beside.get(folder).is_some_and(|files| *files > 5)
            && has(&summary.lower, &format!("{}/", end_of(folder, 1)), "-.")
    };
    anchors.iter().filter(|anchor| !summary.holds(anchor) && !is_of_many(anchor)).collect()
}

/// Returns `Also: …` with as many of them as fit.
#[must_use]
pub fn also(missing: &[&Anchor], most_tokens: usize) -> Option<String> {
    let mut said: Vec<&str> = Vec::new();
    let mut room = (most_tokens * 4).saturating_sub("Also:".len());
    for anchor in missing {
        let text = anchor.text.as_str();
        if said.iter().any(|known| has(known, text, "-./")) {
            continue;
        }
        // A number may also be in its rule's text.
        let part = said.iter().position(|known| has(text, known, "-./"));
        let more = text.len() + 2 - part.map_or(0, |part| said[part].len() + 2);
        if more <= room {
            room -= more;
            match part {
                Some(part) => said[part] = text,
                None => said.push(text),
            }
        }
    }
    (!said.is_empty()).then(|| format!("Also: {}", said.join(", ")))
}

/// Returns how many tokens may be added to `summary`: 8 % of its own, or room for a few anchors if it is
/// short.
#[must_use]
pub fn room(summary: &str) -> usize {
    (summary.len() / 4 * 8 / 100).max(24)
}

#[cfg(test)]
mod tests;
