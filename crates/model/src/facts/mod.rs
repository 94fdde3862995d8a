//! Facts extracted from a range of history without a model: files, checks, rules, decisions, open tasks.
//!
//! A summary contains what a model found worth mentioning. These facts do not depend on it: they are
//! extracted once per leaf summary, stored with it, and joined for the block. Positions count from the first
//! message of their range.

mod checks;
mod files;
mod folding;
mod related;
mod sentences;
mod statements;
mod topics;
mod words;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

pub use checks::Check;
pub use files::{File, Files, read_lines, tidy};
pub use related::Meaning;
pub use sentences::typed;
pub use statements::{decisions, rules};

use crate::text::has_words;
use crate::{CallOutcome, Message, Role, text};

/// The most facts of a kind from one message.
const MOST_OF_MESSAGE: usize = 12;
/// The most facts of a kind kept for a range, the newest.
const MOST: usize = 120;
/// The same for open tasks and completed work, which are compared with each other.
const MOST_TASKS: usize = 40;
/// The same for remarks, of which only those about a rule or a task are ever shown.
const MOST_REMARKS: usize = 400;
/// Characters of a decision.
const DECISION: usize = 400;

/// The facts of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Files by path, from successful calls.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, File>,
    /// Commands that test or build, each with its last outcome, oldest first.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub checks: VecDeque<Check>,
    /// The user's rules.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub rules: VecDeque<Said>,
    /// Other short sentences of the user, which may be about a rule or a task.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub remarks: VecDeque<Said>,
    /// The user's open tasks, unless reported as done since.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub tasks: VecDeque<Said>,
    /// Reports of completed work.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub done: VecDeque<Said>,
    /// Decisions of the user or the agent.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub decisions: VecDeque<Said>,
}

/// A sentence from a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The position of its message.
    pub at: usize,
    /// The sentence, on one line.
    pub text: String,
}

impl Facts {
    /// Returns the facts of a range. `messages` are the relevant ones with their positions.
    pub fn of<'m>(messages: impl IntoIterator<Item = (usize, &'m Message)>) -> Self {
        Self::read(messages, true)
    }

    /// The same for files and checks only, which takes far less time.
    pub fn without_statements<'m>(messages: impl IntoIterator<Item = (usize, &'m Message)>) -> Self {
        Self::read(messages, false)
    }

    fn read<'m>(messages: impl IntoIterator<Item = (usize, &'m Message)>, has_statements: bool) -> Self {
        let mut facts = Self::default();
        // Calls without a result yet.
        let mut calls = HashMap::new();
        for (at, message) in messages {
            if has_statements {
                facts.read_statements(at, message);
            }
            match message.role {
                Role::Assistant => calls = files::Call::all(at, message),
                Role::ToolResult if message.is_recall_echo() => {}
                Role::ToolResult => {
                    if let Some(call) = message.tool_call_id.as_ref().and_then(|id| calls.remove(id)) {
                        facts.read_result(at, &call, message);
                    }
                    facts.read_nested(at, message);
                }
                Role::Bash => {
                    let said = message.text();
                    let (command, output) = said.split_once('\n').unwrap_or((&said, ""));
                    let command = command.trim_start_matches("$ ");
                    facts.checks.extend(Check::of(at, command, output, message.is_error));
                }
                Role::BranchSummary => facts.list(at, &message.listed),
                _ => {}
            }
            if !matches!(message.role, Role::Assistant | Role::ToolResult) {
                calls.clear();
            }
        }
        // A range may end in the middle of one message's results.
        for call in calls.into_values() {
            facts.touch(call.at, call.at, &call);
        }
        facts.limit();
        facts
    }

    fn read_statements(&mut self, at: usize, message: &Message) {
        // Whom it was said to, and why, is not known here.
        if message.foreign {
            return;
        }
        let said = |text: &str| Said { at, text: text::one_line(text, DECISION.max(statements::LONGEST)) };
        for text in message.texts() {
            let by_user = message.role == Role::User;
            if !by_user && message.role != Role::Assistant {
                continue;
            }
            let done = related::done(text, by_user).into_iter().take(MOST_OF_MESSAGE).map(said);
            let closing = self.close(done);
            let decisions = if by_user { statements::decisions_of_user(text) } else { decisions(text) };
            self.decisions.extend(decisions.into_iter().take(MOST_OF_MESSAGE).map(said));
            if by_user {
                let rules: Vec<Said> = ends(rules(text)).into_iter().map(said).collect();
                let tasks: Vec<Said> = ends(statements::tasks(text)).into_iter().map(said).collect();
                let remarks = ends(related::remarks(text)).into_iter().map(said);
                self.hear(
                    remarks.filter(|one| ![&closing, &rules, &tasks].iter().any(|all| all.contains(one))),
                );
                self.rules.extend(rules.into_iter().filter(|rule| !closing.contains(rule)));
                self.tasks.extend(tasks);
            }
        }
    }

    fn read_result(&mut self, at: usize, call: &files::Call, result: &Message) {
        let output = result.text();
        if let Some(command) = &call.command {
            self.checks.extend(Check::of(at, command, &output, result.is_error));
        } else if !result.is_error {
            self.touch(call.at, at, &call.with_result(&output));
        }
    }

    /// Reads the calls that a script made.
    fn read_nested(&mut self, at: usize, result: &Message) {
        // What it shows could be from any of several commands.
        let commands = result.nested.iter().filter(|nested| nested.name == "bash").count();
        let shown = if commands == 1 { result.text() } else { String::new() };
        for nested in &result.nested {
            let Some(call) = files::Call::of(at, &nested.name, &nested.arguments) else { continue };
            if let Some(command) = &call.command {
                self.checks.extend(Check::in_script(at, command, &nested.outcome, &shown));
            } else if nested.outcome == CallOutcome::Done {
                self.touch(at, at, &call.by_script());
            }
        }
    }

    /// Records that a call touched its file: `at` is the call's position, `result` that of its result.
    fn touch(&mut self, at: usize, result: usize, call: &files::Call) {
        if let Some(path) = &call.path {
            self.files.entry(path.clone()).or_default().touch(call.kind, at, result);
        }
    }

    /// Adds files that Pi lists: only that they were read or changed is known.
    pub fn list(&mut self, at: usize, files: &Files) {
        for path in &files.read {
            self.files.entry(path.clone()).or_default().read.get_or_insert(at);
        }
        for path in &files.modified {
            self.files.entry(path.clone()).or_default().edited.get_or_insert(at);
        }
    }

    /// Returns the paths that were read and those that were changed.
    pub fn touched(&self) -> Files {
        let paths = |was: fn(&File) -> bool| {
            self.files.iter().filter(move |(_, file)| was(file)).map(|(path, _)| path.clone())
        };
        Files {
            read: paths(|file| file.read.is_some()).collect(),
            modified: paths(|file| file.edited.is_some()).collect(),
        }
    }

    /// Adds reports of completed work, and drops the tasks that they close. Returns those that close one: they
    /// are no rules, whatever their words.
    fn close(&mut self, done: impl Iterator<Item = Said>) -> Vec<Said> {
        let done: Vec<Said> = done.collect();
        let mut closing = Vec::new();
        if !done.is_empty() && !self.tasks.is_empty() {
            let tasks: Vec<Meaning> = self.tasks.iter().map(|task| Meaning::of(&task.text)).collect();
            let mut is_open = vec![true; tasks.len()];
            closing.extend(
                done.iter().filter(|said| Meaning::of(&said.text).close(&tasks, &mut is_open)).cloned(),
            );
            let mut is_open = is_open.into_iter();
            self.tasks.retain(|_| is_open.next().unwrap_or(true));
        }
        self.done.extend(done);
        closing
    }

    /// Adds remarks. One that takes a rule back is a rule.
    fn hear(&mut self, remarks: impl Iterator<Item = Said>) {
        for said in remarks {
            let is_rule = related::may_take_back(&said.text) && {
                let meant = Meaning::of(&said.text);
                self.rules.iter().any(|rule| meant.takes_back(&Meaning::of(&rule.text)))
            };
            if is_rule { &mut self.rules } else { &mut self.remarks }.push_back(said);
        }
    }

    /// Returns the quoted tasks, with the positions where their ranges start, that nothing since has closed.
    /// A task that is also among the open tasks is open.
    pub fn still_open(&self, quoted: Vec<(usize, String)>) -> Vec<(usize, String)> {
        let is_same = |one: &str, other: &str| has_words(one, other.trim_end_matches(['.', '!', '。']));
        let is_known = |(_, text): &(usize, String)| {
            self.tasks.iter().any(|task| is_same(&task.text, text) || is_same(text, &task.text))
        };
        let (mut open, unknown): (Vec<_>, Vec<_>) = quoted.into_iter().partition(is_known);
        let tasks: Vec<Meaning> = unknown.iter().map(|(_, text)| Meaning::of(text)).collect();
        let mut is_open = vec![true; tasks.len()];
        for done in &self.done {
            let since = unknown.iter().filter(|(at, _)| *at <= done.at).count();
            Meaning::of(&done.text).close(&tasks[..since], &mut is_open[..since]);
        }
        open.extend(unknown.into_iter().zip(is_open).filter_map(|(task, is_open)| is_open.then_some(task)));
        open
    }

    /// Adds the facts of a range that starts `offset` messages after this one.
    pub fn join(&mut self, later: &Self, offset: usize) {
        for (path, file) in &later.files {
            self.files.entry(path.clone()).or_default().join(file, offset);
        }
        self.checks.extend(later.checks.iter().map(|check| Check { at: check.at + offset, ..check.clone() }));
        let moved = |said: &Said| Said { at: said.at + offset, text: said.text.clone() };
        let closing = self.close(later.done.iter().map(moved));
        self.hear(later.remarks.iter().map(moved));
        self.rules.extend(later.rules.iter().map(moved).filter(|rule| !closing.contains(rule)));
        self.decisions.extend(later.decisions.iter().map(moved));
        self.tasks.extend(later.tasks.iter().map(moved));
        self.limit();
    }

    /// Keeps the newest facts of each kind; of each check the last outcome, of a repeated sentence the last
    /// occurrence.
    fn limit(&mut self) {
        newest(&mut self.checks, MOST, |check| check.command.clone());
        for (said, most) in [
            (&mut self.rules, MOST),
            (&mut self.remarks, MOST_REMARKS),
            (&mut self.tasks, MOST_TASKS),
            (&mut self.done, MOST_TASKS),
            (&mut self.decisions, MOST),
        ] {
            newest(said, most, |said| said.text.clone());
        }
    }
}

/// At most [`MOST_OF_MESSAGE`], from the beginning and the end: what is pasted into a long message is between.
fn ends(mut found: Vec<&str>) -> Vec<&str> {
    let surplus = found.len().saturating_sub(MOST_OF_MESSAGE);
    let first = found.len().min(MOST_OF_MESSAGE / 2);
    found.drain(first..first + surplus);
    found
}

/// Keeps the newest of equal keys, and at most `most` in total.
fn newest<T>(all: &mut VecDeque<T>, most: usize, key: impl Fn(&T) -> String) {
    let mut seen = HashSet::new();
    let kept: Vec<T> =
        std::mem::take(all).into_iter().rev().filter(|one| seen.insert(key(one))).take(most).collect();
    all.extend(kept.into_iter().rev());
}
