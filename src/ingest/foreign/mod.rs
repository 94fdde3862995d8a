//! Sessions of other agents: each record of a log becomes a message in Pi's words, in a session of its own, with the record itself behind
//! it, byte for byte. What differs between agents stands in a small file for each, as an [`Agent`]; all else is here.
//!
//! What was said makes the tree. What was not (settings, counts, compactions, kinds that a reader does not know) hangs beside it and has
//! the role `system`, which no search reads: so the sessions of a fork share what they say, whatever else their logs have.

mod claude_code;
mod codex;
mod gemini;
mod opencode;
mod session;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::file::{LINE, Line, Lines};
use super::stringify::stringify;
use crate::error::{Error, Result};
use crate::ids::AGENTS;
use crate::ids::Hash;
use crate::model::{Fields, read_json};
use crate::text::parse_iso;
use session::ForeignSession;

/// Records that are looked through for what a log says of itself.
const HEAD: usize = 200;
/// Folders in folders that are looked through for logs.
const DEEPEST: usize = 6;

/// Another agent.
pub struct Agent {
    /// What it is called in commands, as in [`AGENTS`].
    pub name: &'static str,
    /// What it calls itself.
    pub title: &'static str,
    /// The variable that names its folder, and where that is without it, below the home folder.
    home: (&'static str, &'static str),
    /// The folders in there that have logs, or logs themselves.
    logs: &'static [&'static str],
    /// Is a file one of its logs?
    is_log: fn(&Path) -> bool,
    /// Opens the sessions of a log.
    open: fn(&Path, &CancellationToken) -> Result<Vec<Log>>,
    /// Reads a record.
    read: fn(&mut Context, &Record<'_>) -> Reading,
    /// Does it write records again when they change? Then each version of a record is kept, and what it says is stored once.
    rewrites: bool,
}

/// All of them.
static ALL: [&Agent; AGENTS.len()] = [&claude_code::AGENT, &codex::AGENT, &gemini::AGENT, &opencode::AGENT];

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Agent {}

/// The agent of this name.
///
/// # Errors
/// When there is none.
pub fn agent(name: &str) -> Result<&'static Agent> {
    ALL.into_iter().find(|agent| agent.name == name).ok_or_else(|| {
        let name = crate::text::one_line(name, 40);
        Error::invalid(format!("--from takes {}, and {name} is none of them", AGENTS.join(", ")))
    })
}

impl Agent {
    /// The logs below `path`, or where the agent keeps them: in the home folder `home`, if it is told, else in the user's.
    pub(super) fn find(&self, path: Option<&Path>, home: Option<&Path>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        match path {
            Some(file) if file.is_file() => found.push(file.to_owned()),
            Some(folder) => self.look_into(folder, 0, &mut found),
            None => {
                let own = self.folder(home);
                self.logs.iter().for_each(|logs| self.look_into(&own.join(logs), 0, &mut found));
            }
        }
        found.sort();
        found
    }

    fn folder(&self, home: Option<&Path>) -> PathBuf {
        let (variable, usual) = self.home;
        match (home, std::env::var_os(variable).filter(|set| !set.is_empty())) {
            (Some(home), _) => home.join(usual),
            (None, Some(set)) => set.into(),
            (None, None) => std::env::home_dir().unwrap_or_default().join(usual),
        }
    }

    fn look_into(&self, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        if folder.is_file() && (self.is_log)(folder) {
            found.push(folder.to_owned());
        }
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            // A link may lead back to where it lies.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => self.look_into(&path, depth + 1, found),
                Ok(kind) if !kind.is_dir() && (self.is_log)(&path) => found.push(path),
                _ => {}
            }
        }
    }

    /// Opens the sessions of a log.
    ///
    /// # Errors
    /// When it can't be read, or is none.
    pub(super) fn open(
        &'static self,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<Vec<ForeignSession>> {
        let logs = (self.open)(path, cancel)?;
        if logs.is_empty() {
            return Err(self.strange());
        }
        Ok(logs.into_iter().map(|log| ForeignSession::new(self, log)).collect())
    }

    fn strange(&self) -> Error {
        Error::invalid(format!("it is no log of {}'s", self.title))
    }
}

/// A session as a log has it.
struct Log {
    /// The agent's id of it; of a side chain, that of the session it belongs to.
    session: String,
    /// The folder it was about.
    cwd: Option<String>,
    /// The SHA-256 of that folder's path, in hex, where the agent notes no more.
    cwd_hash: Option<String>,
    /// The session that it was forked from.
    parent: Option<String>,
    /// What stands in front of the ids of a side chain's entries.
    prefix: String,
    /// The agent's version, until a record tells another.
    version: String,
    records: Box<dyn Records>,
}

/// The records of a session, one after the other.
trait Records: Send {
    fn next(&mut self) -> Result<Option<Raw>>;
}

/// A record, as it stands in a log.
enum Raw {
    Text(String),
    /// A record whose kind and id are told by where it lies.
    Row {
        kind: &'static str,
        id: String,
        json: String,
    },
    /// What could not be read: the end is still to be written, or it is too long.
    Broken,
}

impl Records for std::vec::IntoIter<String> {
    fn next(&mut self) -> Result<Option<Raw>> {
        Ok(Iterator::next(self).map(Raw::Text))
    }
}

/// A log with a record in each line.
impl Records for Lines {
    fn next(&mut self) -> Result<Option<Raw>> {
        loop {
            match Lines::next(self, LINE)? {
                None => return Ok(None),
                Some(Line::Text(line)) if line.trim().is_empty() => {}
                Some(Line::Text(line)) if self.is_cut() && Fields::of(&line).is_none() => {
                    return Ok(Some(Raw::Broken));
                }
                Some(Line::Text(line)) => return Ok(Some(Raw::Text(line))),
                Some(Line::TooLong) => return Ok(Some(Raw::Broken)),
            }
        }
    }
}

/// What the first lines of a log say, each by `read` until it says that this is all.
fn head(path: &Path, cancel: &CancellationToken, mut read: impl FnMut(&Fields<'_>) -> bool) -> Result<Lines> {
    let mut lines = Lines::open(path, cancel)?;
    for _ in 0..HEAD {
        let Some(Line::Text(line)) = lines.next(LINE)? else { break };
        if Fields::of(&line).is_some_and(|fields| read(&fields)) {
            break;
        }
    }
    Lines::open(path, cancel)
}

/// A record with its fields; none where it is no object.
struct Record<'a> {
    json: &'a str,
    fields: Option<Fields<'a>>,
    /// Which record of its log it is, from 1.
    number: usize,
    /// Its kind and id, where it does not say them itself.
    row: Option<(&'static str, String)>,
}

impl Record<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.fields.as_ref()?.text(name)
    }

    fn value(&self, name: &str) -> Value {
        self.fields.as_ref().map(|fields| fields.value(name)).unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.fields.as_ref().and_then(|fields| fields.json(name)) == Some("true")
    }

    fn kind(&self) -> String {
        self.text("type").unwrap_or_default()
    }

    /// All of it, `null` where it is no JSON.
    fn whole(&self) -> Value {
        read_json(self.json).unwrap_or_default()
    }

    /// The time of an ISO date in a field.
    fn time(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|iso| parse_iso(&iso))
    }
}

/// What a reader remembers of a session.
#[derive(Default)]
struct Context {
    version: String,
    /// The message that the next records are parts of.
    message: Message,
    /// The tools that were called, by the ids of the calls.
    tools: HashMap<String, String>,
}

/// A message whose parts are records of their own.
#[derive(Default)]
struct Message {
    role: &'static str,
    time: Option<i64>,
    /// What an agent wrote to go on with after it compacted.
    is_summary: bool,
}

impl Context {
    fn called(&mut self, id: &str, tool: &str) {
        self.tools.insert(id.to_owned(), tool.to_owned());
    }

    /// The result of a call.
    fn result(&self, call: &str, is_error: bool, content: Vec<Value>) -> Shown {
        let tool = self.tools.get(call).cloned().unwrap_or_default();
        Shown { result: Some((call.to_owned(), tool, is_error)), ..Shown::said("toolResult", content) }
    }
}

/// What a record comes to.
#[derive(Default)]
struct Reading {
    /// The agent's own id of it; else it is called by its number.
    id: Option<String>,
    /// Where it hangs.
    place: Place,
    /// ms since the epoch; else that of the record before.
    time: Option<i64>,
    /// What it says, if it says something: the first message carries the record.
    shown: Vec<Shown>,
    /// The reader does not know its kind.
    is_unknown: bool,
    /// What follows takes the place of this message and of all after it; of everything where there is no such message.
    rewinds_to: Option<String>,
}

/// Where a record hangs.
#[derive(Default)]
enum Place {
    /// Below what was said last.
    #[default]
    Last,
    /// Below a record that is named.
    Below(String),
}

/// A message in Pi's words.
struct Shown {
    role: &'static str,
    /// The agent's own id of the message, where it is not the record's.
    id: Option<String>,
    /// Of a tool's result: the call, the tool, whether it failed.
    result: Option<(String, String, bool)>,
    content: Vec<Value>,
}

impl Shown {
    fn said(role: &'static str, content: Vec<Value>) -> Self {
        Self { role, id: None, result: None, content }
    }

    /// What no search reads.
    fn aside(content: Vec<Value>) -> Self {
        Self::said("system", content)
    }

    fn fields(&self, time: i64) -> String {
        let mut out = format!("\"role\":\"{}\"", self.role);
        if let Some((call, tool, is_error)) = &self.result {
            let (call, tool) = (Value::from(call.as_str()), Value::from(tool.as_str()));
            let _ = write!(out, ",\"toolCallId\":{call},\"toolName\":{tool},\"isError\":{is_error}");
        }
        let content = serde_json::to_string(&self.content).unwrap_or_default();
        // Numbers are written as Pi would write them.
        let content = stringify(&content).unwrap_or(content);
        let _ = write!(out, ",\"content\":{content},\"timestamp\":{time}");
        out
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thinking(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text})
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

/// An image that is given as a `data:` URL.
fn image(url: &str) -> Option<Value> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    kind.starts_with("image/").then(|| json!({"type": "image", "data": data, "mimeType": kind}))
}

/// What is enough of a SHA-256 to tell the versions of one record apart, in hex.
fn digest(of: &str) -> String {
    Hash::plain(of.as_bytes()).to_string()[..16].to_owned()
}

/// A text of its own, or whatever else it is as JSON.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
