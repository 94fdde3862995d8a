//! The state of the work: the block's sections besides its summaries, all taken from messages, so that no
//! summarizer can lose them.
//!
//! The user's requests verbatim, rules and open tasks, decisions, checks with their outcome, and the current
//! state of files.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use lcm_model::dag::Visible;
use lcm_model::error::Result;
use lcm_model::facts::{Facts, File, Meaning, Said, tidy};
use lcm_model::text::has_words;
use lcm_model::{Message, QuoteKind, text, tokens, without_base64};
use lcm_store::View;

use super::disk::{self, FileChange};
use super::redact::masked;
use super::state::{self, FIELDS};

/// The most earlier requests to read, and the most characters of one.
const REQUESTS: usize = 40;
const REQUEST: usize = 600;
/// The most files to compare with the disk.
const COMPARED: usize = 40;
/// How many of the last touched files are listed.
const LAST_FILES: usize = 5;
/// Characters of the summarizer's lines, of a command and its failure, of a path, and of a quote.
const STATE: usize = 240;
const CHECK: usize = 140;
const PATH: usize = 200;
const QUOTE: usize = 400;
/// The most user messages that count as one request.
const MOST_ADDED: usize = 12;

/// The block's sections besides its summaries. Lines are sorted by which are kept first when room is short.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// The user's last request, unless it stays raw.
    pub request: Option<UserRequest>,
    /// Goal, progress, checks.
    pub state: Vec<String>,
    /// Rules and open tasks.
    pub constraints: Vec<String>,
    /// Earlier requests, newest first.
    pub requests: Vec<String>,
    /// Newest first.
    pub decisions: Vec<String>,
    /// Newest first.
    pub modified: Vec<String>,
    /// Newest first.
    pub read: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct UserRequest {
    /// The id of its message.
    pub handle: String,
    pub text: String,
    /// Whether the agent has answered it.
    pub is_answered: bool,
}

pub(super) struct StandingInputs<'a> {
    pub view: &'a View<'a>,
    /// The visible messages, and how many of them come before the kept tail.
    pub visible: &'a [Visible],
    pub before: usize,
    pub facts: &'a Facts,
    /// The summaries' quotes, with the positions where those summaries start.
    pub quotes: Vec<(usize, QuoteKind, String)>,
    /// The text of the newest leaf summary.
    pub newest: Option<&'a str>,
    /// The project's folder, whose files are compared with what the agent saw.
    pub folder: Option<&'a Path>,
    pub redact: bool,
}

impl StandingInputs<'_> {
    /// The sections, all of them computed now.
    pub(super) fn standing(&self) -> Result<Standing> {
        let talk = self.last_request()?;
        let (modified, read) = self.files()?;
        Ok(Standing {
            request: self.request(&talk)?,
            state: self.state(),
            constraints: self.constraints(),
            requests: self.requests(&talk)?,
            decisions: self.decisions(),
            modified,
            read,
        })
    }

    fn message(&self, at: usize) -> Result<Message> {
        self.view.messages().parsed(self.visible[at].seen.id)
    }

    fn handle(&self, at: usize) -> String {
        self.visible.get(at).map(|message| message.original.message_handle()).unwrap_or_default()
    }

    fn masked(&self, text: &str) -> String {
        masked(text, self.redact)
    }

    /// The positions of the user's messages before `end`, newest first.
    fn asked(&self, end: usize) -> impl Iterator<Item = usize> {
        (0..end).rev().filter(|at| self.visible[*at].seen.role == "user")
    }

    /// The positions of the user's messages in the last request, newest first: the request itself, and what
    /// the user added while the agent worked on it. It starts after the last finished answer before them.
    fn last_request(&self) -> Result<Vec<usize>> {
        let mut asked = Vec::new();
        for at in self.asked(self.visible.len()).take(MOST_ADDED) {
            asked.push(at);
            let before = self.visible[..at].iter().rposition(is_talk);
            match before.map(|before| self.is_finished(before)).transpose()? {
                Some(false) => {}
                None | Some(true) => break,
            }
        }
        Ok(asked)
    }

    /// Whether the message at this position is an answer after which the agent waits for the user.
    fn is_finished(&self, at: usize) -> Result<bool> {
        if self.visible[at].seen.role != "assistant" {
            return Ok(false);
        }
        let answer = self.message(at)?;
        Ok(!answer.cut_off && answer.own_calls().next().is_none())
    }

    fn request(&self, last: &[usize]) -> Result<Option<UserRequest>> {
        let gone: Vec<usize> = last.iter().rev().copied().filter(|at| *at < self.before).collect();
        let Some(first) = gone.first() else { return Ok(None) };
        let last = self.visible.iter().rposition(is_talk).unwrap_or_default();
        let texts = gone
            .iter()
            .map(|at| Ok(self.masked(without_base64(&self.message(*at)?.take_searchable()).trim())));
        Ok(Some(UserRequest {
            handle: self.handle(*first),
            text: texts.collect::<Result<Vec<_>>>()?.join("\n\n"),
            is_answered: self.is_finished(last)?,
        }))
    }

    fn requests(&self, last: &[usize]) -> Result<Vec<String>> {
        let line = |at: usize| {
            // Mask before shortening: half a key is not recognized.
            let text = self.masked(without_base64(&self.message(at)?.take_searchable()).trim());
            let text = text::head_and_tail(&text, REQUEST, |gone| format!("[… {gone} bytes left out …]"));
            Ok(format!("- {}: \"{}\"", self.handle(at), text::one_line(&text, 2 * REQUEST)))
        };
        self.asked(self.before).filter(|at| !last.contains(at)).take(REQUESTS).map(line).collect()
    }

    fn state(&self) -> Vec<String> {
        let (_, said) = state::split(self.newest.unwrap_or_default());
        let mut lines = Vec::new();
        let mut missing = Vec::new();
        for (field, said) in FIELDS.iter().zip(said) {
            match said {
                // Nothing proves these, so they don't stand among what the messages say as if it were the same.
                Some(said) => {
                    let said = text::one_line(&said, STATE);
                    let (first, rest) = field.split_at(1);
                    lines.push(format!("{}{rest}, in the summary's words: \"{said}\"", first.to_uppercase()));
                }
                None => missing.push(*field),
            }
        }
        if !missing.is_empty() {
            lines.push(format!("Not recorded: {}", missing.join(", ")));
        }
        let latest = |fails: bool| self.facts.checks.iter().rfind(|check| check.failure.is_some() == fails);
        // The later of the two first.
        let mut last: Vec<_> = [latest(true), latest(false)].into_iter().flatten().collect();
        last.sort_by_key(|check| std::cmp::Reverse(check.at));
        for check in last {
            let [command, failure] = [Some(&check.command), check.failure.as_ref()]
                .map(|text| text.map(|text| text::one_line(&self.masked(text), CHECK)));
            let (command, handle) = (command.unwrap_or_default(), self.handle(check.at));
            lines.push(match failure {
                Some(failure) => format!("Last failing check: `{command}` ({handle}): {failure}"),
                None => format!("Last passing check: `{command}` ({handle})"),
            });
        }
        let files = newest(self.facts, self.folder).into_iter().take(LAST_FILES);
        let files: Vec<String> = files.map(|(path, _)| text::one_line(&path, PATH)).collect();
        if !files.is_empty() {
            lines.push(format!("Files touched last: {}", files.join(", ")));
        }
        lines.iter().map(|line| self.masked(line)).collect()
    }

    /// Rules in force, open tasks, and replaced rules; the newest of each first.
    fn constraints(&self) -> Vec<String> {
        let quoted = |kind: QuoteKind| {
            let quotes = self.quotes.iter().filter(move |(_, is, _)| *is == kind);
            quotes.map(|(at, _, text)| (*at, text::one_line(text, QUOTE)))
        };
        let said = |said: &Said| (said.at, said.text.clone());
        // A summarizer keeps quoting tasks if it does not know that they are done.
        let open = self.facts.still_open(quoted(QuoteKind::Task).collect());
        let meant = |said: Vec<(usize, String)>| -> Vec<(usize, Meaning, String)> {
            said.into_iter().map(|(at, text)| (at, Meaning::of(&text), text)).collect()
        };
        let rules = meant(merged(quoted(QuoteKind::Rule), self.facts.rules.iter().map(said)));
        let tasks = meant(merged(open.into_iter(), self.facts.tasks.iter().map(said)));
        let remarks = meant(self.facts.remarks.iter().map(said).collect());
        let is_replaced =
            |at: usize| rules[at + 1..].iter().any(|(_, newer, _)| newer.replaces(&rules[at].1));
        let (replaced, current): (Vec<usize>, Vec<usize>) =
            (0..rules.len()).rev().partition(|at| is_replaced(*at));
        let quote = |text: &str| format!("\"{}\"", self.masked(text));
        // What the user said later about a rule or a task may end it, in words that no list has.
        let line = |kind: &str, (at, meaning, text): &(usize, Meaning, String)| {
            let repeats = |remark: &str| has_words(remark, text.trim_end_matches(['.', '!', '。']));
            let is_about = |(when, remark, said): &&(usize, Meaning, String)| {
                when > at && remark.is_about(meaning) && !repeats(said)
            };
            let later = remarks.iter().rfind(is_about).map(|(.., said)| format!("; later: {}", quote(said)));
            format!("- {kind}: {}{}", quote(text), later.unwrap_or_default())
        };
        let current = current.into_iter().map(|at| line("rule", &rules[at]));
        let tasks = tasks.iter().rev().map(|task| line("task", task));
        let replaced = replaced.into_iter().map(|at| format!("- replaced rule: {}", quote(&rules[at].2)));
        current.chain(tasks).chain(replaced).collect()
    }

    fn decisions(&self) -> Vec<String> {
        self.facts.decisions.iter().rev().map(|said| format!("- \"{}\"", self.masked(&said.text))).collect()
    }

    /// The files that calls in the kept tail name: what these did, the agent still sees.
    fn named_in_tail(&self) -> Result<HashSet<String>> {
        let mut named = HashSet::new();
        let Some(folder) = self.folder else { return Ok(named) };
        for at in (self.before..self.visible.len()).filter(|at| self.visible[*at].seen.role == "assistant") {
            let message = self.message(at)?;
            let paths = message.calls().filter_map(|(_, arguments)| arguments["path"].as_str());
            named.extend(paths.map(|path| disk::within(folder, &tidy(path))));
        }
        Ok(named)
    }

    fn files(&self) -> Result<(Vec<String>, Vec<String>)> {
        let changes = self.folder.map(|folder| changes(self.view, self.visible, self.facts, folder));
        let changes = changes.transpose()?.unwrap_or_default();
        let in_tail = self.named_in_tail()?;
        let (mut modified, mut read) = (Vec::new(), Vec::new());
        for (path, file) in newest(self.facts, self.folder) {
            let change = changes.iter().find(|(changed, ..)| *changed == path && !in_tail.contains(&path));
            let change = match change {
                Some((_, FileChange::Deleted, _)) => ", deleted on disk since you saw it".into(),
                Some((_, FileChange::Changed, _)) => ", changed on disk since you saw it".into(),
                None => String::new(),
            };
            let shown = text::one_line(&path, PATH);
            match (file.edited, file.read) {
                (Some(edited), _) => modified.push(format!("{shown} ({}{change})", self.handle(edited))),
                (None, Some(at)) => read.push(format!("{shown} ({}{change})", self.handle(at))),
                (None, None) => {}
            }
        }
        Ok((modified, read))
    }
}

/// Whether it is a message of the conversation between user and agent, including tool results.
fn is_talk(message: &Visible) -> bool {
    matches!(message.seen.role.as_str(), "user" | "assistant" | "toolResult")
}

/// Files, last touched first; those in the project's folder with relative paths.
fn newest(facts: &Facts, folder: Option<&Path>) -> Vec<(String, File)> {
    let mut files: BTreeMap<String, File> = BTreeMap::new();
    for (path, file) in &facts.files {
        let path = folder.map_or_else(|| path.clone(), |folder| disk::within(folder, path));
        files.entry(path).and_modify(|known| *known = known.merged(file)).or_insert_with(|| file.clone());
    }
    let mut files: Vec<(String, File)> = files.into_iter().collect();
    files.sort_by_key(|(_, file)| std::cmp::Reverse(file.last()));
    files
}

/// Returns the files that changed on disk since the agent saw them, with the message that showed them last.
/// If there are many, only the newest are compared.
pub(super) fn changes(
    view: &View<'_>,
    visible: &[Visible],
    facts: &Facts,
    folder: &Path,
) -> Result<Vec<(String, FileChange, String)>> {
    let mut changes = Vec::new();
    for (path, file) in newest(facts, Some(folder)).into_iter().take(COMPARED) {
        let seen = file.seen.iter().filter_map(|at| visible.get(*at));
        let messages = seen.map(|message| view.messages().parsed(message.seen.id));
        let messages = messages.collect::<Result<Vec<_>>>()?;
        if let Some(change) = disk::change(folder, &path, &messages, file.whole) {
            let handle = visible.get(file.last()).map(|message| message.original.message_handle());
            changes.push((path, change, handle.unwrap_or_default()));
        }
    }
    Ok(changes)
}

/// Merges sentences of both in order, each once: if one contains the other, the longer one is kept.
fn merged(
    quoted: impl Iterator<Item = (usize, String)>,
    found: impl Iterator<Item = (usize, String)>,
) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = found.collect();
    for (at, quote) in quoted {
        let key = quote.to_lowercase();
        let mut is_there = false;
        for (_, one) in &mut all {
            let known = one.to_lowercase();
            if has_words(&known, &key) {
                is_there = true;
            } else if has_words(&key, known.trim_end_matches(['.', '!', '。'])) {
                one.clone_from(&quote);
                is_there = true;
            }
        }
        if !is_there {
            all.push((at, quote));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    let mut seen = HashSet::new();
    all.retain(|(_, text)| seen.insert(text.clone()));
    all
}

impl UserRequest {
    /// Returns its lines in a block, in at most `most` tokens; a long request keeps its beginning and end.
    /// Its text is quoted, so that nothing in it can open a section. On an abandoned branch (`left`), no
    /// request is current.
    pub(super) fn lines(&self, most: usize, left: bool) -> String {
        let label = match (left, self.is_answered) {
            (true, _) => "Last request on that branch",
            (false, true) => "Last request, answered",
            (false, false) => "Request under way",
        };
        // No token has more bytes on average.
        let mut bytes = self.text.len().min(16 * most);
        loop {
            let text = text::head_and_tail(&self.text, bytes, |gone| {
                format!("[… {gone} bytes left out: lcm_expand {} …]", self.handle)
            });
            let quoted: String = text.lines().map(|line| format!("\n> {line}")).collect();
            let lines = format!("{label} ({}):{quoted}", self.handle);
            if bytes == 0 || tokens::estimate(&lines) <= most {
                return lines;
            }
            bytes = bytes * 15 / 16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_sentence_replaces_its_beginning_but_no_other_words() {
        let of = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).enumerate().collect::<Vec<_>>();
        let merged = |quoted: &[&str], found: &[&str]| {
            let all = merged(of(quoted).into_iter(), of(found).into_iter());
            all.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        let [one, ten] = ["Never push to release-1.", "Never push to release-10."];
        assert_eq!(merged(&[ten], &[one]).len(), 2);
        assert_eq!(merged(&[one], &[ten]).len(), 2);
        assert_eq!(merged(&["Use tabs."], &["use tabs. Always."]), ["use tabs. Always."]);
        assert_eq!(merged(&["Use tabs, never spaces."], &["Use tabs."]), ["Use tabs, never spaces."]);
    }
}
