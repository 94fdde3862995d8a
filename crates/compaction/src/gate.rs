//! The gate: adds, in one line, the exact details that a summary has lost.
//!
//! A detail is what a rule finds on any text: a file's path, a number with its unit, an error's code. Other
//! things that matter, such as names and decisions, a prompt asks for. `errors`, `numbers` and `paths` define
//! what a detail looks like, and when a text has it: in any spelling that a reader would take for the same.

use std::collections::HashMap;

use serde_json::Value;

use numbers::Number;

use lcm_model::{Message, Part, Role};

mod errors;
mod numbers;
mod paths;

/// The most details that are collected; bytes of a message that count as prose, the rest was probably pasted;
/// bytes of output that are read at each end.
const MOST: usize = 4_000;
const PROSE: usize = 20_000;
const OUTPUT: usize = 200_000;
/// The least room for details in bytes; that for errors and changed files.
const LEAST: usize = 120;
const VITAL: usize = 200;
/// The weight of a detail: in output, in the model's text, in the user's, as an error or a changed file.
const IN_OUTPUT: u32 = 1;
const BY_ASSISTANT: u32 = 2;
const BY_USER: u32 = 4;
const IS_VITAL: u32 = 6;
/// What being in several messages adds at most; errors from which on output alone makes none important.
const REPEATED: u32 = 4;
const FEW: usize = 2;
/// Beginnings of sentences that only announce what the model looks at.
const PLANS: [&str; 5] = ["let me ", "let's ", "i'll ", "i will ", "i'm going to "];

#[derive(Clone, Debug)]
enum DetailKind {
    /// A file; the flag says whether another has the same name.
    Path(bool),
    Number(Number),
    Error,
}

/// A detail that a summary must not lose.
#[derive(Clone, Debug)]
pub struct Detail {
    kind: DetailKind,
    /// Its text after `Also: `.
    text: String,
    /// The text to look for, in lowercase; for a file, the whole path.
    key: String,
    weight: u32,
    /// The last message that contains it.
    seen: usize,
}

/// Returns the details of `messages`, most important first. What the model read from a file may be left out.
pub fn details<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<Detail> {
    let mut reader = Reader::default();
    for (at, message) in messages.into_iter().enumerate() {
        reader.at = at;
        reader.read(message);
    }
    // Of many errors that only output has, those that recur matter.
    let errors = reader.found.values().filter(|detail| matches!(detail.kind, DetailKind::Error)).count();
    let least = if errors > FEW { BY_ASSISTANT } else { IN_OUTPUT };
    let mut all = paths::one_each(reader.found.into_values().filter(|detail| detail.weight >= least));
    all.sort_by(|a, b| (b.weight, b.seen, &a.text).cmp(&(a.weight, a.seen, &b.text)));
    all
}

/// Returns `summary` with a last line `Also: …` of those of `details` that it lacks, as far as they fit into 8 %
/// of its bytes, or little more if it is short: errors and changed files first.
#[must_use]
pub fn added(details: &[Detail], summary: String) -> String {
    let room = (summary.len() * 8 / 100).max(LEAST);
    added_within(details, summary, room, VITAL)
}

/// The same within `room` bytes, or `vital` for errors and changed files if that is more.
#[must_use]
pub fn added_within(details: &[Detail], summary: String, room: usize, vital: usize) -> String {
    let (lower, numbers) = (paths::unfolded(&summary).to_lowercase(), numbers::numbers(&summary));
    let missing = details.iter().filter(|detail| match &detail.kind {
        DetailKind::Path(has_twin) => !paths::is_in(&lower, &detail.key, *has_twin),
        DetailKind::Error => !errors::is_in(&lower, &detail.key),
        DetailKind::Number(number) => !numbers.iter().any(|said| number.is_said_by(said)),
    });
    let mut line = String::from("Also:");
    for detail in missing {
        let most = if detail.weight >= IS_VITAL { room.max(vital) } else { room };
        if line.len() + detail.text.len() + 2 <= most {
            line.push_str(if line.ends_with(':') { " " } else { ", " });
            line.push_str(&detail.text);
        }
    }
    if line.ends_with(':') { summary } else { format!("{summary}\n{line}") }
}

#[derive(Default)]
struct Reader {
    at: usize,
    found: HashMap<String, Detail>,
}

impl Reader {
    fn read(&mut self, message: &Message) {
        for part in &message.parts {
            match (part, &message.role) {
                (Part::Text(text), Role::User) => self.prose(text, BY_USER),
                (Part::Text(text), Role::Assistant) => self.prose(text, BY_ASSISTANT),
                (Part::Text(text), Role::ToolResult | Role::Bash)
                    if message.tool.as_deref() != Some("read") && !message.is_recall_echo() =>
                {
                    self.output(text);
                }
                (Part::ToolCall { arguments, .. }, _) => self.call(arguments),
                _ => {}
            }
        }
        message.nested_done().for_each(|(_, arguments)| self.call(arguments));
    }

    fn prose(&mut self, text: &str, weight: u32) {
        let (prose, pasted) = text.split_at(text.floor_char_boundary(PROSE));
        self.output(pasted);
        for (at, part) in prose.split("```").enumerate() {
            if at % 2 == 1 {
                self.output(part);
                continue;
            }
            for sentence in part.lines().flat_map(|line| line.split(". ")) {
                let start = sentence[..sentence.floor_char_boundary(24)].to_lowercase();
                let is_plan = weight < BY_USER && PLANS.iter().any(|plan| start.contains(plan));
                let is_of_trace = start.trim_start().starts_with("at ");
                for path in paths::paths(sentence).filter(|_| !is_plan && !is_of_trace) {
                    // The model mentions many files in passing that are not of the project.
                    let is_marked = path.contains('/') || sentence.contains(&format!("`{path}"));
                    if weight == BY_USER || is_marked {
                        self.path(path, weight);
                    }
                }
            }
            for (key, text) in errors::told(part) {
                self.note(DetailKind::Error, key, text, IS_VITAL);
            }
            for number in numbers::numbers(part).into_iter().filter(|one| one.is_telling(weight == BY_USER)) {
                self.note(DetailKind::Number(number.clone()), number.key(), number.shown(part), weight);
            }
        }
    }

    /// What a call writes, or what its command creates, changes or moves.
    fn call(&mut self, arguments: &Value) {
        let text = |key: &str| arguments[key].as_str();
        let is_change = ["edits", "newText", "content"].iter().any(|key| !arguments[*key].is_null());
        if let Some(path) = text("path").filter(|_| is_change) {
            self.path(path, IS_VITAL);
        }
    }

    fn output(&mut self, text: &str) {
        let (start, end) =
            (text.floor_char_boundary(OUTPUT), text.ceil_char_boundary(text.len().saturating_sub(OUTPUT)));
        for part in [&text[..start], &text[end.max(start)..]] {
            for (key, text) in errors::printed(part) {
                self.note(DetailKind::Error, key, text, IN_OUTPUT);
            }
        }
    }

    fn path(&mut self, path: &str, weight: u32) {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./");
        if !paths::is_noise(path) {
            self.note(DetailKind::Path(false), path.to_lowercase(), path.to_owned(), weight);
        }
    }

    fn note(&mut self, kind: DetailKind, key: String, text: String, weight: u32) {
        let at = self.at;
        // Output must not use up the room for prose.
        let room = if weight > BY_ASSISTANT { MOST } else { MOST / 2 };
        if let Some(known) = self.found.get_mut(&key) {
            known.say_again(weight, at);
        } else if self.found.len() < room {
            self.found.insert(key.clone(), Detail { kind, text, key, weight, seen: at });
        }
    }
}

impl Detail {
    fn say_again(&mut self, weight: u32, at: usize) {
        let most = weight.max(IS_VITAL) + REPEATED;
        self.weight = (self.weight.max(weight) + u32::from(self.seen != at)).min(most);
        self.seen = self.seen.max(at);
    }
}

/// Whether `text` contains `word` as a whole word, not next to any of the characters `more` either.
fn has(text: &str, word: &str, more: &str) -> bool {
    let goes_on = |c: char| is_letter(c) || c == '_' || more.contains(c);
    let is_whole = |(at, _): (usize, &str)| {
        let after = &text[at + word.len()..];
        // The period at the end of a sentence is not part of a name.
        let after = if more.contains('.') { after.strip_prefix('.').unwrap_or(after) } else { after };
        !after.starts_with(goes_on) && !text[..at].ends_with(goes_on)
    };
    !word.is_empty() && text.match_indices(word).any(is_whole)
}

/// Whether it can be part of a word. Chinese and Japanese have no spaces between a name and its neighbors.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !('\u{2e80}'..'\u{fb00}').contains(&c)
}

fn is_among(words: &str, word: &str) -> bool {
    !word.is_empty() && !word.contains(' ') && words.contains(&format!(" {word} "))
}

#[cfg(test)]
mod tests;
