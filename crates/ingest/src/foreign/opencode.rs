//! OpenCode: `~/.local/share/opencode/opencode.db`, with a row for each message and each of its parts.
//! Earlier versions had files below `storage/`, and before that below `project/<folder>/storage/session/`,
//! where messages contain their parts. All are rewritten as a part grows.
//!
//! The kinds are those of `packages/opencode/src/session/message-v2.ts` and
//! `packages/schema/src/session-message.ts` in anomalyco/opencode.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Agent, ForeignMessage, LogSession, PartialMessage, Raw, ReadRecord, ReaderState, Record, Records,
    as_text, call, image, is_among, read_file, text, thinking,
};
use crate::old_sessions::is_database;
use lcm_model::error::{Error, Result};
use lcm_model::ids::OPENCODE;
use lcm_model::locks::lock;
use lcm_model::read_json;
use lcm_model::text::now;
use lcm_store::{OpenCode, OpenCodePlace};

pub(super) static AGENT: Agent = Agent {
    name: OPENCODE,
    title: "OpenCode",
    home: ("XDG_DATA_HOME", ".local/share"),
    logs: &["opencode/opencode.db", "opencode/storage/session", "opencode/project"],
    is_log,
    is_side_chain: |_| false,
    beside,
    open,
    read,
    rewrites: true,
};

/// Kinds of parts and messages without text.
const SILENT: &str = "step-start step-finish snapshot patch agent retry compaction file idle agent-switched \
     model-switched location-switched skill";
/// How long a message may grow, ms: if OpenCode was killed, it never ends.
const LONGEST: i64 = 60 * 60 * 1000;
/// Maximum number of parent sessions above a subagent's.
const MOST_ABOVE: usize = 8;

/// A database, or the file of a session: `session/<project>/<session>.json`.
fn is_log(path: &Path) -> bool {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    let [own, folder, above] = [Some(path), path.parent(), path.parent().and_then(Path::parent)].map(name);
    own == "opencode.db"
        || (own.starts_with("ses_") && own.ends_with(".json") && above == "session" && folder != "share")
}

/// A database may have its newest rows in its WAL file. A session's file is older than the last messages.
fn beside(path: &Path) -> Vec<PathBuf> {
    if is_database(path) {
        return vec![PathBuf::from(format!("{}-wal", path.display()))];
    }
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::parent);
    folder.map_or_else(Vec::new, |folder| json_files(&folders(path, folder, &id).0))
}

/// The folders of a session's messages and of their parts.
fn folders(path: &Path, folder: &Path, id: &str) -> (PathBuf, PathBuf) {
    if path.parent().is_some_and(|folder| folder.ends_with("info")) {
        return (folder.join("message").join(id), folder.join("part").join(id));
    }
    let storage = folder.parent().unwrap_or(folder);
    (storage.join("message").join(id), storage.join("part"))
}

fn open(path: &Path, cancel: &CancellationToken) -> Result<Vec<LogSession>> {
    if is_database(path) {
        return in_database(path, cancel);
    }
    if path.extension().is_some_and(|ending| ending == "log") {
        return Err(Error::invalid(
            "its records do not say what they are: import what /lcm export --jsonl --all writes instead",
        ));
    }
    let Some(folder) = path.parent().and_then(Path::parent) else { return Ok(Vec::new()) };
    let json = read_file(path)?;
    let session: Value = read_json(&json).unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_one = |id: &&str| !id.is_empty() && Path::new(id).components().count() == 1;
    // A session whose own file is damaged has its messages in a folder of its name.
    let is_damaged = session.is_null() && folders(path, folder, &name).0.is_dir();
    let id = session["id"].as_str().filter(is_one).or_else(|| is_damaged.then_some(&*name));
    let Some(id) = id else { return Ok(Vec::new()) };
    let (messages, parts) = folders(path, folder, id);
    let messages = json_files(&messages);
    // Older versions store it with each answer.
    let told = || messages.iter().find_map(|file| root(&read_json(&read_file(file).ok()?).ok()?));
    let cwd = session["directory"].as_str().map(ToOwned::to_owned).or_else(told);
    let records = FileSession {
        next: VecDeque::from([("session", path.to_owned())]),
        messages: messages.into(),
        parts,
    };
    let above = |of: &str| {
        let session: Value = read_json(&read_file(&path.with_file_name(format!("{of}.json"))).ok()?).ok()?;
        session["parentID"].as_str().map(ToOwned::to_owned)
    };
    let version = session["version"].as_str().unwrap_or_default().to_owned();
    let log = log(id, session["parentID"].as_str(), above, Box::new(records));
    Ok(vec![LogSession { cwd, version, ..log }])
}

/// The log of a session. A subagent's session becomes part of the session that started it.
fn log(
    id: &str,
    parent: Option<&str>,
    above: impl Fn(&str) -> Option<String>,
    records: Box<dyn Records>,
) -> LogSession {
    let mut session = parent.unwrap_or(id).to_owned();
    for _ in 0..MOST_ABOVE {
        let Some(next) = above(&session).filter(|next| *next != session) else { break };
        session = next;
    }
    let prefix = if parent.is_some() { format!("{id}:") } else { String::new() };
    LogSession { prefix, ..LogSession::of(session, records) }
}

/// The files in a folder, by id, which is by time.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    files
}

/// The folder that a message names.
fn root(message: &Value) -> Option<String> {
    let paths = [&message["path"], &message["metadata"]["assistant"]["path"]];
    paths.iter().find_map(|path| path["cwd"].as_str().or(path["root"].as_str())).map(ToOwned::to_owned)
}

/// A session whose messages and parts are files.
struct FileSession {
    /// The next files to read, with their kinds.
    next: VecDeque<(&'static str, PathBuf)>,
    /// The messages after them.
    messages: VecDeque<PathBuf>,
    /// The folder that holds the folders of parts.
    parts: PathBuf,
}

impl Records for FileSession {
    fn next(&mut self) -> Result<Option<Raw>> {
        if self.next.is_empty()
            && let Some(message) = self.messages.pop_front()
        {
            let parts = json_files(&self.parts.join(message.file_stem().unwrap_or_default()));
            self.next.push_back(("message", message));
            self.next.extend(parts.into_iter().map(|part| ("part", part)));
        }
        let Some((kind, path)) = self.next.pop_front() else { return Ok(None) };
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // A file that is being written is complete at the next import.
        let whole = read_file(&path).ok().filter(|json| read_json(json).is_ok());
        let broken = Raw::Broken { is_message: kind == "message" };
        Ok(Some(whole.map_or(broken, |json| Raw::Row { kind, id, json })))
    }
}

fn in_database(path: &Path, cancel: &CancellationToken) -> Result<Vec<LogSession>> {
    let database = OpenCode::open(path, cancel)?;
    let (sessions, mut lost) = database.sessions()?;
    if sessions.is_empty() && lost > 0 {
        return Err(Error::invalid("OpenCode's database can't be read: none of its sessions can"));
    }
    let database = Arc::new(Mutex::new(database));
    let parents: HashMap<&str, &Option<String>> =
        sessions.iter().map(|session| (session.id.as_str(), &session.parent)).collect();
    let above = |of: &str| (*parents.get(of)?).clone();
    let logs = sessions.iter().map(|session| {
        let records = RowSession {
            database: Arc::clone(&database),
            session: session.id.clone(),
            is_listed: false,
            next: VecDeque::from([session.place]),
        };
        LogSession {
            cwd: Some(session.directory.clone()),
            version: session.version.clone(),
            // The first session reports those that can't be read.
            broken: std::mem::take(&mut lost),
            ..log(&session.id, session.parent.as_deref(), above, Box::new(records))
        }
    });
    Ok(logs.collect())
}

/// A session in the database.
struct RowSession {
    database: Arc<Mutex<OpenCode>>,
    session: String,
    /// Whether `next` has its messages.
    is_listed: bool,
    next: VecDeque<OpenCodePlace>,
}

impl Records for RowSession {
    fn next(&mut self) -> Result<Option<Raw>> {
        let database = lock(&self.database);
        if self.next.is_empty() && !self.is_listed {
            self.next = database.rows(&self.session)?.into();
            self.is_listed = true;
        }
        let Some(place) = self.next.pop_front() else { return Ok(None) };
        let row = database.row(place)?;
        let broken = Raw::Broken { is_message: place.is_message() };
        Ok(Some(row.map_or(broken, |(kind, id, json)| Raw::Row { kind, id, json })))
    }
}

fn read(context: &mut ReaderState, record: &Record<'_>) -> ReadRecord {
    let whole = record.whole();
    let (kind, id) = record.row.clone().unzip();
    let created = [&whole["time"]["created"], &whole["metadata"]["time"]["created"]];
    let time = created.iter().find_map(|time| time.as_i64().or(time.as_f64().map(|time| time as i64)));
    let has_ended = !whole["time"]["completed"].is_null() || !whole["error"].is_null();
    let (shown, is_open) = match kind {
        Some("session") => (Some(Vec::new()), false),
        Some("message") => {
            context.message = PartialMessage {
                role: if whole["role"] == "user" { "user" } else { "assistant" },
                time,
                is_summary: whole["summary"] == true,
                has_ended,
            };
            let parts = whole["parts"].as_array().into_iter().flatten();
            (Some(parts.filter_map(|of| part(context, of)).flatten().collect()), false)
        }
        Some("part") => (part(context, &whole), !context.message.has_ended && is_open(&whole)),
        _ => (message(context, &whole), whole["type"] == "assistant" && !has_ended),
    };
    let time = if kind == Some("part") { context.message.time } else { time };
    // What follows would be stored before its end, and a fork has it after.
    let now = now();
    let is_growing = is_open && time.is_some_and(|began| (now - LONGEST..=now).contains(&began));
    let (is_unknown, shown) = (shown.is_none(), shown.unwrap_or_default());
    ReadRecord { id, time, is_unknown, is_growing, shown, ..ReadRecord::default() }
}

/// Whether a part has no end yet.
fn is_open(part: &Value) -> bool {
    match part["type"].as_str() {
        Some("text" | "reasoning") => !part["time"]["start"].is_null() && part["time"]["end"].is_null(),
        Some("tool") => part["state"]["status"] == "pending" || part["state"]["status"] == "running",
        _ => false,
    }
}

/// The messages of a part; `None` for an unknown kind.
fn part(context: &mut ReaderState, of: &Value) -> Option<Vec<ForeignMessage>> {
    let said = |name: &str| of[name].as_str().unwrap_or_default();
    let PartialMessage { role, is_summary, has_ended, .. } = context.message;
    let says = |content: Value| {
        if is_summary {
            ForeignMessage::system(vec![content])
        } else {
            ForeignMessage::said(role, vec![content])
        }
    };
    Some(match said("type") {
        // A growing part is read once it is complete.
        "text" | "reasoning" if (!has_ended && is_open(of)) || said("text").is_empty() => Vec::new(),
        // Text that OpenCode inserts, and text that the user hides from the model.
        "text" if of["synthetic"] == true || of["ignored"] == true => {
            vec![ForeignMessage::system(vec![text(said("text"))])]
        }
        "text" => vec![says(text(said("text")))],
        "reasoning" => vec![says(thinking(said("text")))],
        "subtask" => vec![says(text(said("prompt")))],
        "tool" => tool(context, said("callID"), said("tool"), &of["state"]),
        "tool-invocation" => {
            let of = &of["toolInvocation"];
            let [id, name] = ["toolCallId", "toolName"].map(|name| of[name].as_str().unwrap_or_default());
            let status = if of["state"] == "result" { "completed" } else { "running" };
            tool(context, id, name, &json!({"status": status, "input": of["args"], "output": of["result"]}))
        }
        "file" => image(said("url")).map(says).into_iter().collect(),
        kind if is_among(SILENT, kind) => Vec::new(),
        _ => return None,
    })
}

/// A tool's call once it is complete, and its result once there is one.
fn tool(context: &mut ReaderState, id: &str, name: &str, state: &Value) -> Vec<ForeignMessage> {
    context.called(id, name);
    let called = ForeignMessage::said("assistant", vec![call(id, name, &state["input"])]);
    let mut answer: Vec<Value> = match &state["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str().map(text)).collect(),
        _ => Vec::new(),
    };
    let error = &state["error"];
    let ended = [&state["output"], error.get("message").unwrap_or(error)];
    answer.extend(ended.into_iter().filter(|said| !said.is_null()).map(|said| text(&as_text(said))));
    let attached = state["attachments"].as_array().into_iter().flatten();
    answer.extend(attached.filter_map(|file| image(file["url"].as_str()?)));
    match state["status"].as_str() {
        Some("completed") => {
            // A command that fails completes as a call.
            let has_failed = state["metadata"]["exit"].as_i64().is_some_and(|code| code != 0);
            vec![called, context.result(id, has_failed, answer)]
        }
        Some("error") => vec![called, context.result(id, true, answer)],
        Some("running") => vec![called],
        _ => Vec::new(),
    }
}

/// The messages of a one-row message; `None` for an unknown kind.
fn message(context: &mut ReaderState, of: &Value) -> Option<Vec<ForeignMessage>> {
    let said = |name: &str| of[name].as_str().unwrap_or_default();
    let content = vec![text(said("text"))];
    Some(match said("type") {
        "user" => vec![ForeignMessage::said("user", content)],
        "synthetic" | "system" => vec![ForeignMessage::system(content)],
        "compaction" => vec![ForeignMessage::system(vec![text(said("summary"))])],
        "assistant" => {
            context.message = PartialMessage { role: "assistant", ..PartialMessage::default() };
            let parts = of["content"].as_array().into_iter().flatten();
            let shown = parts.filter_map(|of| match of["type"].as_str() {
                Some("tool") => {
                    let [id, name] = ["id", "name"].map(|name| of[name].as_str().unwrap_or_default());
                    Some(tool(context, id, name, &of["state"]))
                }
                _ => part(context, of),
            });
            shown.flatten().collect()
        }
        "shell" => {
            let [id, status] = ["shellID", "status"].map(said);
            let output =
                of["output"].get("text").or_else(|| of["output"].get("output")).unwrap_or(&of["output"]);
            let state = json!({
                "status": if status == "running" { "running" } else { "completed" },
                "input": {"command": of["command"]}, "output": output
            });
            tool(context, id, "shell", &state)
        }
        kind if is_among(SILENT, kind) => Vec::new(),
        _ => return None,
    })
}
