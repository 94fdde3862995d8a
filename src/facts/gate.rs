//! The gate: adds, in one line, the important details that a model's summary has lost.
//!
//! Anchors are words that can't be paraphrased: changed or mentioned files, defined names, numbers with a
//! unit or as a setting's value, error codes, technical terms. The user's rules are anchors too, matched by
//! what they are about. Anchors are collected where they are meaningful: in the user's and the model's text,
//! in what an edit writes, and in tool output lines that look like errors. `patterns` and `numbers` define
//! what an anchor is, `reader` where to look, `rules` what counts as a rule, and `summary` when an anchor is
//! present: in any spelling that a reader would take for the same.

use std::collections::HashMap;

use serde_json::Value;

use numbers::Number;
use patterns::{end_of, folder};
use reader::{ASSISTANT, BY_ASSISTANT, BY_USER, EDITED, Reader, USER};
use summary::{Summary, has};

use crate::model::{Message, Part, Role};

mod numbers;
mod patterns;
mod reader;
mod rules;
mod summary;

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
    pieces.extend(message.nested_done().flat_map(|(_, arguments)| called(arguments)));
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

/// The least room for anchors in bytes; that for rules, and for errors and changed files.
const LEAST: usize = 120;
const RULES: usize = 400;
const VITAL: usize = 200;

/// The kind of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    Path,
    /// A name in code.
    Name,
    /// A number with its unit.
    Number,
    /// An error's code or class.
    Error,
    /// A rule or a decision by the user.
    Rule,
}

/// A detail that a summary must not lose.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Its kind.
    pub kind: Kind,
    /// Its text after `Also: `.
    pub text: String,
    /// Its importance.
    pub weight: u32,
    /// The text to look for, in lowercase; for a file, the whole path.
    key: String,
    number: Option<Number>,
    /// What a rule is about: words, each with its weight.
    about: Vec<(String, f64)>,
    /// Whether another file has the same name.
    has_twin: bool,
    /// The last part that contains it.
    seen: usize,
}

/// Returns the anchors of a range, most important first.
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

/// Returns `Also: …` with the user's rules, then errors and changed files, and as many of the others as fit
/// into what these leave of `room` bytes, or into half of it.
#[must_use]
pub fn also(missing: &[&Anchor], room: usize) -> Option<String> {
    let of =
        |is_one: fn(&Anchor) -> bool| missing.iter().copied().filter(move |anchor| is_one(anchor)).collect();
    let is_vital =
        |anchor: &Anchor| anchor.kind == Kind::Error || anchor.kind == Kind::Path && anchor.weight >= EDITED;
    let mut line = String::from("Also:");
    add(&mut line, of(|anchor| anchor.kind == Kind::Rule), room.max(RULES));
    add(&mut line, of(is_vital), room.max(VITAL));
    let left = room.saturating_sub(line.len());
    add(&mut line, of(|anchor| anchor.kind != Kind::Rule), left.max(room / 2));
    Some(line).filter(|line| !line.ends_with(':'))
}

/// Whether `summary` lacks more than the line can say, or more than half of all.
#[must_use]
pub fn is_poor(anchors: &[Anchor], missing: &[&Anchor], summary: &str) -> bool {
    let line = also(missing, room(summary)).unwrap_or_default();
    missing.len() > anchors.len() / 2 || missing.iter().any(|anchor| !has(&line, &anchor.text, "-./"))
}

/// Adds as many to `line` as fit into `room` bytes.
fn add(line: &mut String, anchors: Vec<&Anchor>, room: usize) {
    let most = line.len() + room;
    for anchor in anchors {
        // A number may already be in its rule's text.
        let is_new = !has(line, &anchor.text, "-./");
        if is_new && line.len() + anchor.text.len() + 2 <= most {
            line.push_str(if line.ends_with(':') { " " } else { ", " });
            line.push_str(&anchor.text);
        }
    }
}

/// Returns how many bytes may be added to `summary`: 8 % of its own, or room for a few anchors if it is
/// short.
#[must_use]
pub fn room(summary: &str) -> usize {
    (summary.len() * 8 / 100).max(LEAST)
}

#[cfg(test)]
mod tests;
