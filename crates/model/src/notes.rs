//! Notes: the model's scratchpad, lines that every block shows verbatim until they are removed.
//!
//! They have no table. The calls of [`NOTE_TOOL`] by the model and its scripts and the user's changes are messages
//! of the session; the changes on a branch, applied in order, give its notes. So a fork has its origin's notes, `/tree` goes
//! back to earlier ones, and a session file alone contains them.

use serde::Serialize;
use serde_json::Value;

use super::message::{Message, NOTE_TOOL};
use super::{Role, read_json};
use crate::error::{Error, Result};
use crate::text::grouped;
use crate::tokens;

/// The most tokens of all notes together, by our estimate. Every request pays for them, in addition to the
/// block's own budget.
pub const MOST_TOKENS: usize = 2_000;
/// The minimal text around a note's own text in its line.
const AROUND: &str = "- 12: \"\"";

/// The field of such a message's details that contains the change.
const CHANGE: &str = "lcmNote";

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Its number, unique on this branch forever.
    pub number: u32,
    pub text: String,
    /// Whether the user wrote it or changed it last.
    #[serde(rename = "byUser")]
    pub by_user: bool,
}

/// The notes of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    list: Vec<Note>,
    /// The highest number assigned so far.
    given: u32,
}

/// A change of the notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum Change {
    /// Adds one.
    Add {
        /// The assigned number, once known: earlier changes may be purged since.
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
        text: String,
    },
    /// Replaces the text of one.
    Replace { number: u32, text: String },
    /// Replaces a part of one's text.
    Edit {
        number: u32,
        /// The part, verbatim; it must occur once.
        old: String,
        text: String,
    },
    /// Removes one.
    Remove { number: u32 },
    /// Removes all.
    Clear,
}

impl Change {
    /// A change that adds a note.
    pub fn add(text: &str) -> Self {
        Self::Add { number: None, text: Self::line(text) }
    }

    /// Converts a text to a note's: its own words in one line.
    pub fn line(text: &str) -> String {
        plain(text.trim())
    }

    /// Parses the arguments of a call, leniently: numbers may be strings.
    ///
    /// # Errors
    /// [`crate::error::Code::Invalid`] with what is missing.
    pub fn read(arguments: &Value) -> Result<Vec<Self>> {
        match arguments["changes"].as_array() {
            Some(changes) if !changes.is_empty() => changes.iter().map(Self::read_one).collect(),
            _ => Err(Error::invalid("changes is empty: give at least one note to add, change or remove")),
        }
    }

    /// Parses a change by the fields it has: a text alone adds, a note alone removes.
    fn read_one(change: &Value) -> Result<Self> {
        let given = |key: &str| text_of(&change[key]).filter(|text| !text.is_empty());
        let number = match &change["note"] {
            Value::Null => None,
            note => Some(number_of(note).ok_or_else(|| Error::invalid("note must be a note's number"))?),
        };
        // Old hosts send zero for null.
        match (number.filter(|number| *number > 0), given("old"), given("text")) {
            (None, None, Some(text)) => Ok(Self::Add { number: None, text: Self::line(&text) }),
            (None, Some(_), _) => Err(Error::invalid("note is missing: which note has this old text")),
            (None, None, None) => {
                Err(Error::invalid("text is missing: what the note is to say, or the note to remove"))
            }
            // A part of a note may start or end with a space.
            (Some(number), Some(old), text) => {
                Ok(Self::Edit { number, old: plain(&old), text: plain(&text.unwrap_or_default()) })
            }
            (Some(number), None, Some(text)) => Ok(Self::Replace { number, text: Self::line(&text) }),
            (Some(number), None, None) => Ok(Self::Remove { number }),
        }
    }

    /// The user's change in a message that is not a tool result.
    pub fn of_user(json: &str) -> Option<Self> {
        let value = read_json(json).ok().filter(|value| value["customType"] == NOTE_TOOL)?;
        let change = &value["details"][CHANGE];
        let text = || change["text"].as_str().map(Self::line);
        let number = change["number"].as_u64().and_then(|number| u32::try_from(number).ok());
        match change["action"].as_str()? {
            "add" => Some(Self::Add { number, text: text()? }),
            "replace" => Some(Self::Replace { number: number?, text: text()? }),
            "remove" => Some(Self::Remove { number: number? }),
            "clear" => Some(Self::Clear),
            _ => None,
        }
    }

    /// The changes that a script made whose result this is. Pi records no results of its calls, so the numbers of
    /// added notes are counted.
    pub fn of_script(result: &Message) -> Vec<Self> {
        let noting = result.nested_done().filter(|(name, _)| *name == NOTE_TOOL);
        noting.filter_map(|(_, arguments)| Self::read(arguments).ok()).flatten().collect()
    }

    /// The changes requested by the call in the message `asking` whose result is `result`.
    pub fn called(asking: &Message, result: &Message) -> Vec<Self> {
        let is_it = |id: &str, name: &str| name == NOTE_TOOL && result.tool_call_id.as_deref() == Some(id);
        let mut calls = asking.own_calls().filter(|(id, name, _)| is_it(id, name));
        let called = calls.find_map(|(.., arguments)| Self::read(arguments).ok());
        // The first number in a result is that of the first added note; the others follow it.
        let answer = result.readable();
        let digits = answer.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
        let mut next = digits.and_then(|digits| digits.parse::<u64>().ok());
        let numbered = |change: Self| match change {
            Self::Add { .. } => {
                let given = next;
                next = next.map(|number| number.saturating_add(1));
                change.numbered(given)
            }
            other => other,
        };
        called.unwrap_or_default().into_iter().map(numbered).collect()
    }

    /// The same change with its assigned number, if it adds.
    pub fn numbered(self, given: Option<u64>) -> Self {
        match self {
            Self::Add { text, .. } => {
                Self::Add { number: given.and_then(|number| u32::try_from(number).ok()), text }
            }
            other => other,
        }
    }

    /// The details of the message about the user's change.
    pub fn details(&self) -> Value {
        serde_json::json!({ CHANGE: self })
    }
}

/// The text with spaces in place of characters that would end its line.
fn plain(text: &str) -> String {
    let blank = |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
    text.chars().map(blank).collect()
}

/// A text in a call.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(word) => Some(word.to_string()),
        _ => None,
    }
}

/// A note's number in a call.
fn number_of(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => whole(text),
        number => whole(&number.to_string()),
    }
}

/// Parses a number like JavaScript, as Pi does before it makes the call; the session contains what the model
/// wrote.
fn whole(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok();
    }
    let number = text.parse::<f64>().ok()?.trunc();
    (0.0..=f64::from(u32::MAX)).contains(&number).then_some(number as u32)
}

/// Estimated tokens of a note's line in a block.
fn tokens_of(text: &str) -> usize {
    tokens::estimate(text) + tokens::estimate(AROUND)
}

/// Whether this message records a change: a successful result of the tool, or the user's change.
pub fn is_noting(message: &Message) -> bool {
    message.tool.as_deref() == Some(NOTE_TOOL)
        && (message.role == Role::Custom || (message.role == Role::ToolResult && !message.is_error))
}

impl Notes {
    /// The notes, oldest first.
    pub fn list(&self) -> &[Note] {
        &self.list
    }

    /// The same notes, with texts mapped by `map`.
    pub fn with_texts(mut self, map: impl Fn(&str) -> String) -> Self {
        self.list.iter_mut().for_each(|note| note.text = map(&note.text));
        self
    }

    /// Estimated tokens of all of them in a block.
    pub fn tokens(&self) -> usize {
        self.list.iter().map(|note| tokens_of(&note.text)).sum()
    }

    /// Makes all of the model's changes or none. Returns the notes' numbers, change by change.
    ///
    /// # Errors
    /// [`crate::error::Code::Invalid`] with the invalid change and what would be right; nothing is changed
    /// then.
    pub fn apply_all(&mut self, changes: &[Change]) -> Result<Vec<u32>> {
        let mut notes = self.clone();
        let apply = |(at, change): (usize, &Change)| {
            notes.apply(change, false).map_err(|error| match changes.len() {
                1 => error,
                _ => Error::invalid(format!("change {}: {error}; none was made", at + 1)),
            })
        };
        let numbers = changes.iter().enumerate().map(apply).collect::<Result<_>>()?;
        *self = notes;
        Ok(numbers)
    }

    /// Makes a change. Returns the note's number, or 0 for all.
    ///
    /// # Errors
    /// [`crate::error::Code::Invalid`] with what would be right; nothing is changed then.
    pub fn apply(&mut self, change: &Change, by_user: bool) -> Result<u32> {
        match change {
            Change::Add { number, text } => {
                self.check(text, None)?;
                self.given = number.filter(|number| *number > self.given).unwrap_or(self.given + 1);
                self.list.push(Note { number: self.given, text: text.clone(), by_user });
                Ok(self.given)
            }
            Change::Replace { number, text } => {
                let at = self.place(*number, by_user)?;
                self.check(text, Some(at))?;
                self.list[at] = Note { number: *number, text: text.clone(), by_user };
                Ok(*number)
            }
            Change::Edit { number, old, text } => {
                let whole = &self.list[self.place(*number, by_user)?].text;
                match whole.matches(old.as_str()).count() {
                    1 => {
                        let text = Change::line(&whole.replacen(old, text, 1));
                        self.apply(&Change::Replace { number: *number, text }, by_user)
                    }
                    0 => {
                        Err(Error::invalid(format!("note {number} has no such text: give old word for word")))
                    }
                    many => Err(Error::invalid(format!(
                        "note {number} has this text {many} times: give more of it as old"
                    ))),
                }
            }
            Change::Remove { number } => {
                let at = self.place(*number, by_user)?;
                Ok(self.list.remove(at).number)
            }
            Change::Clear => {
                self.list.clear();
                Ok(0)
            }
        }
    }

    /// Checks whether a note may have this text, replacing the one at `at`, if any.
    fn check(&self, text: &str, at: Option<usize>) -> Result<()> {
        if text.is_empty() {
            return Err(Error::invalid("the text is empty: say what the note is to say"));
        }
        if let Some(same) = self.list.iter().find(|note| note.text == text) {
            return Err(Error::invalid(format!("note {} says that already", same.number)));
        }
        let before = at.map_or(0, |at| tokens_of(&self.list[at].text));
        let all = self.tokens() - before + tokens_of(text);
        if all > MOST_TOKENS {
            return Err(Error::invalid(format!(
                "with it the notes would take {} tokens and {} is the most: say it shorter, or shorten or remove others",
                grouped(all),
                grouped(MOST_TOKENS)
            )));
        }
        Ok(())
    }

    /// The index of the note with this number. Only the user may change the user's notes.
    fn place(&self, number: u32, by_user: bool) -> Result<usize> {
        match self.list.iter().position(|note| note.number == number) {
            Some(at) if self.list[at].by_user && !by_user => {
                Err(Error::invalid(format!("note {number} is the user's: only /lcm notes changes it")))
            }
            Some(at) => Ok(at),
            None if self.list.is_empty() => {
                Err(Error::invalid(format!("there is no note {number}: there are none")))
            }
            None => Err(Error::invalid(format!("there is no note {number}, only {}", self.numbers()))),
        }
    }

    /// The existing numbers. Texts are not repeated in errors, or a purge would have to search here too.
    fn numbers(&self) -> String {
        let numbers: Vec<String> = self.list.iter().map(|note| note.number.to_string()).collect();
        numbers.join(", ")
    }
}

#[cfg(test)]
mod tests;
