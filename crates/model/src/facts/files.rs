//! The files that the agent or its scripts read and changed, by successful calls of Pi's own tools.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FILE_TOOLS, Message};

/// The most messages recorded about a file since the model saw all of it.
const MOST_SEEN: usize = 8;

/// Files that tool calls read and modified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Read, and possibly modified too.
    pub read: BTreeSet<String>,
    pub modified: BTreeSet<String>,
}

impl Files {
    /// Adds what `other` touched.
    pub fn extend(&mut self, other: Self) {
        self.read.extend(other.read);
        self.modified.extend(other.modified);
    }

    /// The lists in the `details` of a compaction or a branch summary, in Pi's format.
    pub fn listed(details: &Value) -> Self {
        let list = |key: &str| -> BTreeSet<String> {
            let names = details[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(ToOwned::to_owned).collect()
        };
        Self { read: list("readFiles"), modified: list("modifiedFiles") }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.modified.is_empty()
    }

    /// Files that were read but never modified, which is what Pi lists as read.
    pub fn only_read(&self) -> impl Iterator<Item = &String> {
        self.read.difference(&self.modified)
    }
}

/// What the agent did with a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct File {
    /// The position of the last read's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<usize>,
    /// The position of the last call that wrote or edited it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<usize>,
    /// The positions of messages that show the contents, back to one that shows all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<usize>,
    /// Whether the first of them shows all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FileUse {
    /// Reads all of it.
    #[default]
    Read,
    /// Reads some lines.
    ReadPart,
    /// Reads it without showing it to the model.
    Scan,
    /// Replaces all of it.
    Write,
    /// Replaces a part of it.
    Edit,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    /// The position of its message.
    pub at: usize,
    pub kind: FileUse,
    pub path: Option<String>,
    /// The command that is run.
    pub command: Option<String>,
}

impl Call {
    /// The call of a tool in a message at position `at`, if it touches a file or runs a command.
    pub(super) fn of(at: usize, name: &str, arguments: &Value) -> Option<Self> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let is_part = arguments.get("offset").is_some() || arguments.get("limit").is_some();
        let kind = match name {
            "read" if is_part => FileUse::ReadPart,
            "write" => FileUse::Write,
            "edit" => FileUse::Edit,
            _ => FileUse::Read,
        };
        let path = text("path").filter(|_| FILE_TOOLS.contains(&name)).map(tidy);
        let command = text("command").filter(|_| name == "bash").map(ToOwned::to_owned);
        (path.is_some() || command.is_some()).then_some(Self { at, kind, path, command })
    }

    /// The calls in a message at position `at`, by their ids.
    pub(super) fn all(at: usize, message: &Message) -> HashMap<String, Self> {
        let calls = message.own_calls();
        calls.filter_map(|(id, name, of)| Some((id.to_owned(), Self::of(at, name, of)?))).collect()
    }

    /// The same call by a script, which gets the result in the model's place.
    pub(super) fn by_script(self) -> Self {
        let kind = match self.kind {
            FileUse::Read | FileUse::ReadPart => FileUse::Scan,
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// The call, corrected by its result.
    pub(super) fn with_result(&self, text: &str) -> Self {
        let kind = match self.kind {
            FileUse::Read if !read_lines(text).1 => FileUse::ReadPart,
            kind => kind,
        };
        Self { kind, ..self.clone() }
    }
}

/// A path without meaningless parts: a leading `@`, and `.` components.
pub fn tidy(path: &str) -> String {
    let path = path.strip_prefix('@').unwrap_or(path).replace("/./", "/");
    let mut path = path.as_str();
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path.to_owned()
}

/// The lines in a result of Pi's `read`, and whether they reach the end of the file: otherwise a note at the
/// end says so.
pub fn read_lines(result: &str) -> (&str, bool) {
    // For a line that is too long, Pi shows nothing.
    if result.starts_with("[Line ") && result.contains("exceeds") {
        return ("", false);
    }
    match result.rsplit_once("\n\n[") {
        Some((lines, note)) if note.trim_end().ends_with(" to continue.]") => (lines, false),
        _ => (result, true),
    }
}

impl File {
    /// Records a call at position `at` with its result at `result`.
    pub(super) fn touch(&mut self, kind: FileUse, at: usize, result: usize) {
        match kind {
            FileUse::Read | FileUse::ReadPart | FileUse::Scan => self.read = Some(result),
            FileUse::Write | FileUse::Edit => self.edited = Some(at),
        }
        if kind == FileUse::Scan {
            return;
        }
        if matches!(kind, FileUse::Read | FileUse::Write) {
            self.seen.clear();
            self.whole = true;
        }
        let shown = if matches!(kind, FileUse::Read | FileUse::ReadPart) { result } else { at };
        if self.seen.last() != Some(&shown) {
            self.seen.push(shown);
        }
        self.limit();
    }

    /// Adds what a later range, which starts `offset` messages after this one, did with the file.
    pub(super) fn join(&mut self, later: &Self, offset: usize) {
        let moved = |at: Option<usize>| at.map(|at| at + offset);
        self.read = moved(later.read).or(self.read);
        self.edited = moved(later.edited).or(self.edited);
        if later.whole {
            self.seen.clear();
            self.whole = true;
        }
        self.seen.extend(later.seen.iter().map(|at| at + offset));
        self.limit();
    }

    /// Merges the same file recorded under another name.
    pub fn merged(&self, other: &Self) -> Self {
        let starts = [self, other].into_iter().filter(|file| file.whole).filter_map(|file| file.seen.first());
        let start = starts.max().copied();
        let mut seen: Vec<usize> = [self.seen.as_slice(), &other.seen].concat();
        seen.retain(|at| start.is_none_or(|start| *at >= start));
        seen.sort_unstable();
        seen.dedup();
        let read = self.read.max(other.read);
        Self { read, edited: self.edited.max(other.edited), seen, whole: start.is_some() }
    }

    /// The last position at which it was touched.
    pub fn last(&self) -> usize {
        self.read.max(self.edited).unwrap_or_default()
    }

    fn limit(&mut self) {
        let excess = self.seen.len().saturating_sub(MOST_SEEN);
        self.seen.drain(..excess);
        self.whole &= excess == 0;
    }
}
