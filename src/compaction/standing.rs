//! Where the work stands: what a block says beside its summaries, all of it from messages, so that no summarizer can lose it.
//!
//! The user's requests word for word, rules and open tasks, decisions, checks with their outcome, and files as they are.

use std::path::Path;

use crate::dag::Visible;
use crate::error::Result;
use crate::facts::disk::{self, Change};
use crate::facts::{Facts, File, replaces};
use crate::model::{Message, QuoteKind};
use crate::store::View;
use crate::{text, tokens};

use super::redact::redacted;
use super::state::{self, FIELDS};

/// Most requests before the last one that are read, and most characters of one.
const REQUESTS: usize = 40;
const REQUEST: usize = 600;
/// Most files that are compared with the disk.
const COMPARED: usize = 40;
/// Files that are named as the last ones touched.
const LAST_FILES: usize = 5;
/// Characters of a line of the summarizer's.
const STATE: usize = 240;

/// What a block says beside its summaries. Lines are in the order in which they are kept when room is short.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// The user's last request, where it does not stay raw.
    pub request: Option<Request>,
    /// Goal, progress, checks.
    pub state: Vec<String>,
    /// Rules and open tasks.
    pub constraints: Vec<String>,
    /// Requests before the last one, newest first.
    pub requests: Vec<String>,
    /// Newest first.
    pub decisions: Vec<String>,
    /// Newest first.
    pub modified: Vec<String>,
    /// Newest first.
    pub read: Vec<String>,
}

/// A request of the user's.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The message that it is in.
    pub handle: String,
    pub text: String,
    /// The agent has answered it.
    pub is_answered: bool,
}

/// What standing is told from.
pub(super) struct Source<'a> {
    pub view: &'a View<'a>,
    /// The visible messages, and how many of them come before the kept tail.
    pub visible: &'a [Visible],
    pub before: usize,
    pub facts: &'a Facts,
    /// What summaries quote, oldest first.
    pub quotes: Vec<(QuoteKind, String)>,
    /// The text of the newest leaf summary.
    pub newest: Option<&'a str>,
    /// The project's folder, where files are compared with what was seen of them.
    pub folder: Option<&'a Path>,
    /// Are secrets masked?
    pub redact: bool,
}

impl Standing {
    /// Reads it.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(super) fn of(source: &Source<'_>) -> Result<Self> {
        let request = source.request()?;
        let (modified, read) = source.files()?;
        Ok(Self {
            state: source.state(),
            constraints: source.constraints(),
            requests: source.requests(request.is_some())?,
            decisions: source.decisions(),
            request,
            modified,
            read,
        })
    }
}

impl Source<'_> {
    fn message(&self, at: usize) -> Result<Message> {
        Ok(Message::parse(&self.view.json_of(self.visible[at].seen.id)?))
    }

    fn handle(&self, at: usize) -> String {
        self.visible.get(at).map(|message| message.original.message_handle()).unwrap_or_default()
    }

    fn masked(&self, text: &str) -> String {
        if self.redact { redacted(text) } else { text.to_owned() }
    }

    /// The places of the user's messages before `end`, newest first.
    fn asked(&self, end: usize) -> impl Iterator<Item = usize> {
        (0..end).rev().filter(|at| self.visible[*at].seen.role == "user")
    }

    fn request(&self) -> Result<Option<Request>> {
        let last = self.asked(self.visible.len()).next();
        let Some(at) = last.filter(|at| *at < self.before) else { return Ok(None) };
        let answer = self.message(self.visible.len() - 1)?;
        let is_answered = answer.role == crate::model::Role::Assistant
            && !answer.cut_off
            && answer.tool_calls().next().is_none();
        let text = self.masked(self.message(at)?.searchable().trim());
        Ok(Some(Request { handle: self.handle(at), text, is_answered }))
    }

    fn requests(&self, without_last: bool) -> Result<Vec<String>> {
        let line = |at: usize| {
            let text = text::head_and_tail(self.message(at)?.searchable().trim(), REQUEST, |gone| {
                format!("[… {gone} bytes left out …]")
            });
            Ok(format!("- {}: \"{}\"", self.handle(at), text::one_line(&self.masked(&text), 2 * REQUEST)))
        };
        self.asked(self.before).skip(usize::from(without_last)).take(REQUESTS).map(line).collect()
    }

    fn state(&self) -> Vec<String> {
        let (_, said) = state::split(self.newest.unwrap_or_default());
        let mut lines = Vec::new();
        let mut missing = Vec::new();
        for (field, said) in FIELDS.iter().zip(said) {
            match said {
                Some(said) => lines.push(format!("{}: {}", capitalized(field), text::one_line(&said, STATE))),
                None => missing.push(*field),
            }
        }
        if !missing.is_empty() {
            lines.push(format!("Not recorded: {}", missing.join(", ")));
        }
        let checks = || self.facts.checks.iter().rev();
        if let Some(check) = checks().find(|check| check.failure.is_some()) {
            let failure = check.failure.as_deref().unwrap_or_default();
            lines.push(format!(
                "Last failing check: `{}` ({}): {failure}",
                check.command,
                self.handle(check.at)
            ));
        }
        if let Some(check) = checks().find(|check| check.failure.is_none()) {
            lines.push(format!("Last passing check: `{}` ({})", check.command, self.handle(check.at)));
        }
        let files: Vec<&str> =
            newest(self.facts).into_iter().take(LAST_FILES).map(|(path, _)| path.as_str()).collect();
        if !files.is_empty() {
            lines.push(format!("Files touched last: {}", files.join(", ")));
        }
        lines.iter().map(|line| self.masked(line)).collect()
    }

    /// Rules that hold, open tasks, and rules that a later one replaced; the newest first of each.
    fn constraints(&self) -> Vec<String> {
        let said = |said: &crate::facts::Said| said.text.clone();
        let quoted = |kind: QuoteKind| {
            self.quotes.iter().filter(move |(is, _)| *is == kind).map(|(_, text)| text::one_line(text, 400))
        };
        let rules = merged(quoted(QuoteKind::Rule), self.facts.rules.iter().map(said));
        let tasks = merged(quoted(QuoteKind::Task), self.facts.tasks.iter().map(said));
        let is_replaced = |at: usize| rules[at + 1..].iter().any(|newer| replaces(newer, &rules[at]));
        let (replaced, current): (Vec<usize>, Vec<usize>) =
            (0..rules.len()).rev().partition(|at| is_replaced(*at));
        let line = |kind: &str, text: &str| format!("- {kind}: \"{}\"", self.masked(text));
        let current = current.into_iter().map(|at| line("rule", &rules[at]));
        let tasks = tasks.iter().rev().map(|task| line("task", task));
        let replaced = replaced.into_iter().map(|at| line("replaced rule", &rules[at]));
        current.chain(tasks).chain(replaced).collect()
    }

    fn decisions(&self) -> Vec<String> {
        self.facts.decisions.iter().rev().map(|said| format!("- {}", self.masked(&said.text))).collect()
    }

    fn files(&self) -> Result<(Vec<String>, Vec<String>)> {
        let changes = match self.folder {
            Some(folder) => changes(self.view, self.visible, self.facts, folder)?,
            None => Vec::new(),
        };
        let (mut modified, mut read) = (Vec::new(), Vec::new());
        for (path, file) in newest(self.facts) {
            let change = match changes.iter().find(|(changed, ..)| changed == path) {
                Some((_, Change::Changed, _)) => ", changed on disk since you saw it",
                Some((_, Change::Deleted, _)) => ", deleted on disk since you saw it",
                None => "",
            };
            let shown = path.replace(['\n', '\r'], " ");
            match (file.edited, file.read) {
                (Some(edited), _) => modified.push(format!("{shown} ({}{change})", self.handle(edited))),
                (None, Some(at)) => read.push(format!("{shown} ({}{change})", self.handle(at))),
                (None, None) => {}
            }
        }
        Ok((modified, read))
    }
}

/// Files, the one touched last first.
fn newest(facts: &Facts) -> Vec<(&String, &File)> {
    let mut files: Vec<(&String, &File)> = facts.files.iter().collect();
    files.sort_by_key(|(_, file)| std::cmp::Reverse(file.last()));
    files
}

/// Returns which files changed on disk since the agent saw them, with the message that showed them last. Of many only the newest are
/// compared.
///
/// # Errors
/// When the store can't be read.
pub(super) fn changes(
    view: &View<'_>,
    visible: &[Visible],
    facts: &Facts,
    folder: &Path,
) -> Result<Vec<(String, Change, String)>> {
    let mut changes = Vec::new();
    for (path, file) in newest(facts).into_iter().take(COMPARED) {
        let seen = file.seen.iter().filter_map(|at| visible.get(*at));
        let read = |message: &Visible| Ok(Message::parse(&view.json_of(message.seen.id)?));
        let messages = seen.map(read).collect::<Result<Vec<_>>>()?;
        if let Some(change) = disk::change(folder, path, &messages, file.whole) {
            let handle = visible.get(file.last()).map(|message| message.original.message_handle());
            changes.push((path.clone(), change, handle.unwrap_or_default()));
        }
    }
    Ok(changes)
}

/// Sentences of both, each once: what one says as a part of the other is said by the longer.
fn merged(quoted: impl Iterator<Item = String>, found: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = found.collect();
    for quote in quoted {
        let (key, mut is_there) = (quote.to_lowercase(), false);
        for one in &mut all {
            let known = one.to_lowercase();
            if known.contains(&key) {
                is_there = true;
            } else if key.contains(known.trim_end_matches(['.', '!', '。'])) {
                one.clone_from(&quote);
                is_there = true;
            }
        }
        if !is_there {
            // A summary says where it is from no more closely: it comes before what was found since.
            all.insert(0, quote);
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|one| seen.insert(one.clone()));
    all
}

fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

impl Request {
    /// Returns its lines in a block, in at most `most` tokens: of a long one the beginning and the end.
    pub(super) fn lines(&self, most: usize) -> String {
        let label = if self.is_answered { "Last request, answered" } else { "Request under way" };
        let mut bytes = self.text.len();
        loop {
            let text = text::head_and_tail(&self.text, bytes, |gone| {
                format!("[… {gone} bytes left out: lcm_expand {} …]", self.handle)
            });
            let lines = format!("{label} ({}):\n{text}", self.handle);
            if bytes == 0 || tokens::estimate(&lines) <= most {
                return lines;
            }
            bytes = bytes * 3 / 4;
        }
    }
}
