//! Sessions of other agents. Each record of a log becomes a message in Pi's format and carries the record
//! itself, byte for byte. What differs between agents is in one small file per agent, as an [`Agent`]; the
//! rest is here.
//!
//! Messages form the tree. Other records (settings, counts, compactions, unknown kinds) hang off it with the
//! role `system`, which search ignores. A fork is stored in full.

mod claude_code;
mod codex;
mod gemini;
mod opencode;
mod session;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::damage::whole_objects;
use super::file::{LINE, Line, Lines, Unreadable};
use super::stringify::stringify;
use lcm_model::error::{Error, Result};
use lcm_model::ids::AGENTS;
use lcm_model::text::{megabytes, nearest, one_line};
use lcm_model::{Fields, files, read_json};
pub(super) use session::ForeignSession;

/// Maximum records to read for a log's metadata.
const HEAD: usize = 2_000;
/// Maximum depth of folders to search for logs.
const DEEPEST: usize = 6;
/// The folder of an export with a folder per session for its side chains' logs.
pub const SIDE_CHAINS: &str = "subagents";

/// Another agent.
pub struct Agent {
    /// Its name in commands, as in [`AGENTS`].
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The environment variable that names its folder, and the default below the home folder.
    home: (&'static str, &'static str),
    /// The folders in it that have logs, or the logs themselves.
    logs: &'static [&'static str],
    /// Whether a file is one of its logs.
    is_log: fn(&Path) -> bool,
    /// Whether a log has only a side chain, by its name. Its session's own log is imported first.
    pub(super) is_side_chain: fn(&Path) -> bool,
    /// The files that are written instead of the log when its sessions grow.
    beside: fn(&Path) -> Vec<PathBuf>,
    open: fn(&Path, &CancellationToken) -> Result<Vec<LogSession>>,
    read: fn(&mut ReaderState, &Record<'_>) -> ReadRecord,
    /// Whether it writes a record again when it changes. Then each version is kept, and each message is
    /// stored once.
    rewrites: bool,
}

/// What a search for logs found.
#[derive(Default)]
pub(super) struct FoundLogs {
    pub logs: Vec<PathBuf>,
    /// The folders that could not be read.
    pub unreadable: Vec<Unreadable>,
    /// The folders so far, without links.
    seen: HashSet<PathBuf>,
    /// Whether files that `export --from` wrote are logs too: in a folder that the user names.
    has_exports: bool,
}

/// All other agents.
static ALL: [&Agent; AGENTS.len()] = [&claude_code::AGENT, &codex::AGENT, &gemini::AGENT, &opencode::AGENT];

pub fn all_agents() -> Vec<&'static Agent> {
    ALL.to_vec()
}

/// Returns the agent with this name.
pub fn agent(name: &str) -> Result<&'static Agent> {
    ALL.into_iter().find(|agent| agent.name == name).ok_or_else(|| {
        let near = nearest(name, AGENTS.into_iter()).map(|agent| format!(": did you mean {agent}?"));
        let (name, near) = (one_line(name, 40), near.unwrap_or_default());
        Error::invalid(format!("--from takes {}, and {name} is none of them{near}", AGENTS.join(", ")))
    })
}

impl Agent {
    /// Finds the logs below `path`, or in the agent's folder, which is below `home` if that is given.
    pub(super) fn find(&self, path: Option<&Path>, home: Option<&Path>) -> FoundLogs {
        let mut found = FoundLogs { has_exports: path.is_some(), ..FoundLogs::default() };
        match path {
            Some(file) if file.is_file() => found.logs.push(file.to_owned()),
            Some(folder) => self.look_into(folder, 0, &mut found),
            None => {
                let own = self.folder(home);
                self.logs.iter().for_each(|logs| self.look_into(&own.join(logs), 0, &mut found));
            }
        }
        found.logs.sort();
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

    fn look_into(&self, folder: &Path, depth: usize, found: &mut FoundLogs) {
        if folder.is_file() {
            found.logs.extend((self.is_log)(folder).then(|| folder.to_owned()));
            return;
        }
        // A link may lead back to its own folder.
        if folder.canonicalize().is_ok_and(|real| !found.seen.insert(real)) {
            return;
        }
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => {
                let error =
                    Error::invalid(format!("the folder {} can't be opened: {error}", folder.display()));
                return found.unreadable.push(Unreadable::new(folder, &error));
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_dir = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => path.is_dir(),
                kind => kind.is_ok_and(|kind| kind.is_dir()),
            };
            if is_dir && depth < DEEPEST {
                self.look_into(&path, depth + 1, found);
            } else if !is_dir
                && ((self.is_log)(&path)
                    || found.has_exports && path.extension().is_some_and(|end| end == "log"))
                && path.metadata().is_ok_and(|about| about.len() > 0)
            {
                found.logs.push(path);
            }
        }
    }

    /// When a log was last written, or put where it is.
    pub(super) fn written_at(&self, log: &Path) -> Option<SystemTime> {
        let files = std::iter::once(log.to_owned()).chain((self.beside)(log));
        files.filter_map(|file| changed_at(&file)).max()
    }

    /// Opens the sessions of a log.
    ///
    /// # Errors
    /// When it can't be read, or is not a log.
    pub(super) fn open(
        &'static self,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<Vec<ForeignSession>> {
        let logs = (self.open)(path, cancel)?;
        if logs.is_empty() {
            return Err(Error::foreign(format!("it is not a log of {}", self.title)));
        }
        let began = began(path, cancel)?;
        Ok(logs.into_iter().map(|log| ForeignSession::new(self, log, began)).collect())
    }
}

/// When a file was last written, or put where it is: a copy may keep the time of its original.
fn changed_at(file: &Path) -> Option<SystemTime> {
    let about = file.metadata().ok()?;
    #[cfg(unix)]
    let put = {
        use std::{os::unix::fs::MetadataExt as _, time::Duration};
        u64::try_from(about.ctime()).ok().map(|at| SystemTime::UNIX_EPOCH + Duration::from_secs(at))
    };
    #[cfg(not(unix))]
    let put = about.created().ok();
    about.modified().ok().max(put)
}

struct LogSession {
    /// The agent's id of the session; for a side chain, of the session it belongs to.
    session: String,
    cwd: Option<String>,
    /// The SHA-256 of the folder's path, in hex, if the agent stores only that.
    cwd_hash: Option<String>,
    /// The session it was forked from.
    parent: Option<String>,
    /// The entry of the same session that it continues, if it is not its first log.
    continues: Option<String>,
    /// The prefix of its entries' ids, if it is not the only log of its session; of a side chain it ends with a colon.
    prefix: String,
    /// The agent's version, until a record names another.
    version: String,
    records: Box<dyn Records>,
    /// Records that can't be read so far, and sessions next to it.
    broken: usize,
}

impl LogSession {
    /// A session in one log, of which no more is known.
    fn of(session: String, records: Box<dyn Records>) -> Self {
        let (cwd, cwd_hash, parent, continues, prefix, version) = Default::default();
        Self { session, cwd, cwd_hash, parent, continues, prefix, version, records, broken: 0 }
    }
}

/// The records of a session, in order.
trait Records: Send {
    fn next(&mut self) -> Result<Option<Raw>>;

    /// The number of the last one's line.
    fn line(&self) -> Option<usize> {
        None
    }

    /// The numbers and lengths of the lines so far that are too long.
    fn too_long(&self) -> &[(usize, u64)] {
        &[]
    }
}

/// A record of a log.
enum Raw {
    Text(String),
    /// A record whose kind and id are given by its location.
    Row {
        kind: &'static str,
        id: String,
        json: String,
    },
    /// The end of a log, which breaks off: the agent may still be writing it.
    Cut(String),
    /// Unreadable, or too long; of a message, its parts follow.
    Broken {
        is_message: bool,
    },
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
                Some(Line::Text(line)) if self.is_cut && Fields::of(&line).is_none() => {
                    return Ok(Some(Raw::Cut(line)));
                }
                Some(Line::Text(line)) => return Ok(Some(Raw::Text(line))),
                Some(Line::TooLong) => return Ok(Some(Raw::Broken { is_message: false })),
            }
        }
    }

    fn line(&self) -> Option<usize> {
        Some(self.number)
    }

    fn too_long(&self) -> &[(usize, u64)] {
        &self.too_long
    }
}

/// Passes the first lines of a log to `read` until it returns true.
fn head(path: &Path, cancel: &CancellationToken, mut read: impl FnMut(&Fields<'_>) -> bool) -> Result<Lines> {
    let mut lines = Lines::open(path, cancel)?;
    for _ in 0..HEAD {
        let Some(Line::Text(line)) = lines.next(LINE)? else { break };
        let is_enough = match Fields::of(&line) {
            Some(fields) => read(&fields),
            None => (whole_objects(&line).into_iter())
                .filter_map(|at| Fields::of(&line[at]))
                .any(|fields| read(&fields)),
        };
        if is_enough {
            break;
        }
    }
    Lines::open(path, cancel)
}

/// A session's file, or one that belongs to it.
fn read_file(path: &Path) -> Result<String> {
    files::read_text(path, LINE as u64).map_err(|error| {
        let [bytes, most] = [path.metadata().map_or(0, |about| about.len()), LINE as u64].map(megabytes);
        Error::invalid(match error.kind() {
            ErrorKind::FileTooLarge => {
                format!("it has {bytes}, and only {most} are read: shorten it in a copy, and import that")
            }
            _ => format!("it can't be read: {error}"),
        })
    })
}

/// The first time in a log, ms; without one, when it was written.
fn began(path: &Path, cancel: &CancellationToken) -> Result<i64> {
    let mut time = None;
    if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".jsonl")) {
        head(path, cancel, |fields| {
            time = fields.time();
            time.is_some()
        })?;
    }
    let written = || path.metadata().ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok();
    Ok(time.or_else(|| i64::try_from(written()?.as_millis()).ok()).unwrap_or_default())
}

/// A record with its fields: none if it is not an object.
struct Record<'a> {
    json: &'a str,
    fields: Fields<'a>,
    /// Its kind and id, if it does not name them itself.
    row: Option<(&'static str, String)>,
}

impl Record<'_> {
    fn is(&self, name: &str) -> bool {
        self.json(name) == Some("true")
    }

    fn kind(&self) -> String {
        self.text("type").unwrap_or_default()
    }

    /// The whole record; `null` if it is not JSON.
    fn whole(&self) -> Value {
        read_json(self.json).unwrap_or_default()
    }
}

impl<'a> Deref for Record<'a> {
    type Target = Fields<'a>;

    fn deref(&self) -> &Fields<'a> {
        &self.fields
    }
}

#[derive(Default)]
struct ReaderState {
    version: String,
    /// The message that the next records are parts of.
    message: PartialMessage,
    /// The names of the called tools, by call id.
    tools: HashMap<String, String>,
}

/// A message whose parts are separate records.
#[derive(Default)]
struct PartialMessage {
    role: &'static str,
    time: Option<i64>,
    /// Whether it is the agent's summary after a compaction.
    is_summary: bool,
    /// Whether it has ended: an answer that was interrupted may leave parts without an end.
    has_ended: bool,
}

impl ReaderState {
    fn called(&mut self, id: &str, tool: &str) {
        self.tools.insert(id.to_owned(), tool.to_owned());
    }

    /// The result of a call.
    fn result(&self, call: &str, is_error: bool, content: Vec<Value>) -> ForeignMessage {
        let tool = self.tools.get(call).cloned().unwrap_or_default();
        ForeignMessage {
            result: Some((call.to_owned(), tool, is_error)),
            ..ForeignMessage::said("toolResult", content)
        }
    }
}

#[derive(Default)]
struct ReadRecord {
    /// The agent's id of the record; without one, the hash of its line.
    id: Option<String>,
    /// What it hangs below.
    above: Above,
    /// Whether it is a prompt of the user's: only that goes back.
    is_prompt: bool,
    /// The side chain that it is of, if its log has more than one conversation.
    side: Option<String>,
    /// In ms since the epoch; without one, the time of the record before.
    time: Option<i64>,
    /// Its messages, if any. The first new one carries the record.
    shown: Vec<ForeignMessage>,
    is_unknown: bool,
    /// Whether the agent is still writing it: the next import reads it, and what follows.
    is_growing: bool,
    /// The next messages replace this one and all after it, or everything if there is no such message.
    rewinds_to: Option<String>,
}

/// What a record says about the one above it.
#[derive(Default)]
enum Above {
    /// Nothing: it is the one before.
    #[default]
    Before,
    /// There is none.
    Start,
    /// The agent's id of that record.
    Record(String),
}

/// A message in Pi's format.
struct ForeignMessage {
    role: &'static str,
    /// The agent's id of the message, if it is not the record's.
    id: Option<String>,
    /// Of a tool result: the call, the tool, and whether it failed.
    result: Option<(String, String, bool)>,
    content: Vec<Value>,
}

impl ForeignMessage {
    fn said(role: &'static str, content: Vec<Value>) -> Self {
        Self { role, id: None, result: None, content }
    }

    /// A message that search ignores.
    fn system(content: Vec<Value>) -> Self {
        Self::said("system", content)
    }

    /// The call that it answers or makes.
    fn call(&self) -> Option<&str> {
        let made = self.content.first().filter(|part| part["type"] == "toolCall");
        let answered = self.result.as_ref().map(|(call, ..)| call.as_str());
        answered.or_else(|| made.and_then(|part| part["id"].as_str()))
    }

    /// Its role, and its fields before the time.
    fn fields(self) -> (&'static str, String) {
        let mut out = format!("\"role\":\"{}\"", self.role);
        if let Some((call, tool, is_error)) = &self.result {
            let (call, tool) = (Value::from(call.as_str()), Value::from(tool.as_str()));
            let _ = write!(out, ",\"toolCallId\":{call},\"toolName\":{tool},\"isError\":{is_error}");
        }
        out.push_str(",\"content\":");
        // A text may be long: each form of it goes before the next but one.
        let content = serde_json::to_string(&self.content).unwrap_or_default();
        drop(self.content);
        // Pi's format for numbers.
        let mut fields = stringify(&content).unwrap_or(content);
        fields.insert_str(0, &out);
        (self.role, fields)
    }
}

/// The user's message with these parts, and that of the agent with those that are its own.
fn parted(parts: Vec<Value>, is_own: impl Fn(&Value) -> bool) -> Vec<ForeignMessage> {
    let (own, said): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_own);
    let said = (!said.is_empty() || own.is_empty()).then(|| ForeignMessage::said("user", said));
    said.into_iter().chain((!own.is_empty()).then(|| ForeignMessage::system(own))).collect()
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

/// An image from a `data:` URL.
fn image(url: &str) -> Option<Value> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    kind.starts_with("image/").then(|| json!({"type": "image", "data": data, "mimeType": kind}))
}

fn is_among(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// A string as it is, any other value as JSON.
fn as_text(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| value.to_string().into(), Cow::from)
}
