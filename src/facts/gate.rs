//! The gate: what a model's summary lost of what later work rests on is put back by machine, in one line.
//!
//! Anchors are words that cannot be said in another way: files that were changed or named, names that were defined,
//! numbers with a unit or that something is set to, error codes, words that only machines use. What limits the work in the
//! user's words is one too, and looked for by what it is about. They are looked for where
//! they mean something: in what people and models say, in what an edit writes, and in those lines of tool output that look
//! like an error. `patterns` and `numbers` tell what an anchor is, `reader` where it is read, `rules` what limits, `summary` when it is there: a summary
//! has an anchor if it has it in any spelling a reader would take for the same.

use std::collections::HashMap;

use serde_json::Value;

use numbers::Number;
use patterns::{end_of, folder};
use reader::{ASSISTANT, BY_ASSISTANT, BY_USER, Reader, USER};
use summary::{Summary, has};

use crate::model::{Message, Part, Role};

mod numbers;
mod patterns;
mod reader;
mod rules;
mod summary;

/// A piece of what was said, in order. What the model read of a file need not be given.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// Words of the person.
    User(&'a str),
    /// Words of the model.
    Assistant(&'a str),
    /// A file that was edited or written.
    Edit {
        /// Which.
        path: &'a str,
        /// What was there; empty where nothing or nobody knows.
        old: &'a str,
        /// What is there now.
        new: &'a str,
    },
    /// Any other call of a tool: its command or its path.
    Call(&'a str),
    /// What a tool answered.
    Output(&'a str),
}

/// Returns the pieces of a message. What was read of a file and what our own tools found is no news.
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

/// What a call writes, runs or names.
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

/// What an anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    Path,
    /// Something with a name of its own in code.
    Name,
    /// A number with its unit.
    Number,
    /// An error's code or class.
    Error,
    /// A rule or a decision of the user's.
    Rule,
}

/// Something a summary must not lose.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// What it is.
    pub kind: Kind,
    /// As it is written after `Also: `.
    pub text: String,
    /// How much it matters.
    pub weight: u32,
    /// What is looked for, in small letters; of a path all of it.
    key: String,
    number: Option<Number>,
    /// The words that tell what a rule is about, each with how much it tells.
    about: Vec<(String, f64)>,
    /// Has another file the same name?
    has_twin: bool,
    /// The piece that had it last.
    seen: usize,
}

/// Returns what the stretch holds that a summary must not lose, most important first.
pub fn anchors<'a>(said: impl IntoIterator<Item = Said<'a>>) -> Vec<Anchor> {
    let mut reader = Reader::default();
    for (at, piece) in said.into_iter().enumerate() {
        reader.at = at;
        match piece {
            Said::User(text) => reader.prose(text, USER, BY_USER),
            Said::Assistant(text) => reader.prose(text, ASSISTANT, BY_ASSISTANT),
            Said::Edit { path, old, new } => reader.edit(path, old, new),
            Said::Call(text) => reader.call(text),
            Said::Output(text) => reader.output(text),
        }
    }
    reader.finish()
}

/// Returns those that `summary` does not have, in the same order.
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
    let mut line = String::from("Also:");
    for anchor in missing {
        // A number may be said within its rule.
        let is_new = !has(&line, &anchor.text, "-./");
        if is_new && line.len() + anchor.text.len() + 2 <= most_tokens * 4 {
            line.push_str(if line.ends_with(':') { " " } else { ", " });
            line.push_str(&anchor.text);
        }
    }
    Some(line).filter(|line| !line.ends_with(':'))
}

/// Returns how many tokens may be added to `summary`: 8 % of its own, and room for a few anchors where it is short.
#[must_use]
pub fn room(summary: &str) -> usize {
    (summary.len() / 4 * 8 / 100).max(24)
}

#[cfg(test)]
mod tests;
