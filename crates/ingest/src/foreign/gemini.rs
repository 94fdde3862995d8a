//! Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, with a message in each line, which
//! is written again after its tools have answered. Earlier versions rewrote the session as one JSON object in
//! a `.json` file. A subagent's messages are in `chats/<session>/<id>.jsonl`.
//!
//! The project's folder is in the file `.project_root` or in `~/.gemini/projects.json`; older versions store
//! only its hash. The kinds are those of `packages/core/src/services/chatRecordingTypes.ts` in
//! google-gemini/gemini-cli.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{
    Agent, ForeignMessage, LogSession, ReadRecord, ReaderState, Record, Records, SIDE_CHAINS, as_text, call,
    head, image, is_among, read_file, text, thinking,
};
use crate::damage::whole_objects;
use lcm_model::error::Result;
use lcm_model::ids::AGENTS;
use lcm_model::text::parse_iso;
use lcm_model::{Fields, files, read_json, unmarked};

pub(super) static AGENT: Agent = Agent {
    name: AGENTS[2],
    title: "Gemini CLI",
    home: ("GEMINI_CLI_HOME", ""),
    logs: &[".gemini/tmp"],
    is_log,
    is_side_chain: is_subagent_s,
    beside: |_| Vec::new(),
    open,
    read,
    rewrites: true,
};

/// The beginnings of user messages that Gemini CLI itself inserts: the project's state, output of hooks, its
/// summary after a compaction, and a request after an answer that broke off.
const OWN: [&str; 4] =
    ["<session_context>", "<hook_context>", "<state_snapshot>", "System: Please continue."];
/// Maximum size, in bytes, of the files that name a project's folder.
const MOST: u64 = 1024 * 1024;

fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_json = name.ends_with(".json") || name.ends_with(".jsonl");
    (name.starts_with("session-") && is_json && folder(path) == "chats") || is_subagent_s(path)
}

fn is_subagent_s(path: &Path) -> bool {
    let chats = [("jsonl", "chats"), ("log", SIDE_CHAINS)];
    let above = path.parent().map(folder).unwrap_or_default();
    path.extension().is_some_and(|ending| chats.iter().any(|chat| ending == chat.0 && above == chat.1))
}

/// The name of the file's folder.
fn folder(path: &Path) -> String {
    path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

fn open(path: &Path, cancel: &CancellationToken) -> Result<Vec<LogSession>> {
    let (mut session, mut hash, mut is_log) = (None, None, false);
    let mut look = |fields: &Fields<'_>| {
        session = session.take().or_else(|| fields.text("sessionId"));
        hash = hash.take().or_else(|| fields.text("projectHash"));
        session.is_some() && hash.is_some()
    };
    let ending = path.extension().unwrap_or_default();
    let exported = if ending == "log" { exported(&read_file(path)?) } else { None };
    let records: Box<dyn Records> = match exported {
        Some(records) => {
            for fields in records.iter().filter_map(|record| Fields::of(record)) {
                is_log |= is_message(&fields);
                look(&fields);
            }
            Box::new(records.into_iter())
        }
        None if ending == "json" => {
            let whole = read_file(path)?;
            // What a damaged or cut session begins with.
            let begin =
                whole.split_once("\"messages\"").map(|(begin, _)| begin.trim_end().trim_end_matches(','));
            let begin = begin.map(|begin| format!("{begin}}}")).unwrap_or_default();
            Fields::of(&whole).or_else(|| Fields::of(&begin)).iter().for_each(|fields| {
                look(fields);
            });
            let mut objects = whole_objects(&whole).into_iter().filter_map(|at| Fields::of(&whole[at]));
            is_log = objects.any(|fields| is_message(&fields));
            Box::new(messages(whole).into_iter())
        }
        None => Box::new(head(path, cancel, |fields| {
            is_log |= is_message(fields);
            look(fields)
        })?),
    };
    // Without its first line, a log has no id but its name.
    let name = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let Some(session) = session.filter(|_| hash.is_some()).or_else(|| is_log.then(name)) else {
        return Ok(Vec::new());
    };
    let above = is_subagent_s(path).then(|| folder(path));
    Ok(vec![LogSession {
        prefix: if above.is_some() { format!("{session}:") } else { String::new() },
        cwd: project(path),
        cwd_hash: hash,
        ..LogSession::of(above.unwrap_or(session), records)
    }])
}

fn is_message(fields: &Fields<'_>) -> bool {
    let kind = fields.text("type").unwrap_or_default();
    fields.text("id").is_some() && is_among("user gemini info error warning", &kind)
}

/// Splits a session that is one JSON object into records: its metadata, then each message byte for byte. A damaged one stays
/// whole.
fn messages(whole: String) -> Vec<String> {
    #[derive(Deserialize)]
    struct GeminiSession<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    let Ok(GeminiSession { messages }) = serde_json::from_str(unmarked(&whole)) else { return vec![whole] };
    let at = |message: &RawValue| message.get().as_ptr().addr() - whole.as_ptr().addr();
    let mut about = whole.clone();
    if let (Some(first), Some(last)) = (messages.first(), messages.last()) {
        about.replace_range(at(first)..at(last) + last.get().len(), "");
    }
    std::iter::once(about).chain(messages.iter().map(|message| message.get().to_owned())).collect()
}

/// The records that `export --from` wrote, if they are whole: those of a session that was one JSON object may have several lines.
fn exported(log: &str) -> Option<Vec<String>> {
    let records = serde_json::Deserializer::from_str(log).into_iter::<&RawValue>();
    records.map(|record| record.ok().map(|record| record.get().to_owned())).collect()
}

/// The session's folder, if it is recorded.
fn project(path: &Path) -> Option<String> {
    let chats = path.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "chats"))?;
    let (own, all) = (chats.parent()?, chats.ancestors().nth(3)?);
    let read = |path: PathBuf| files::read_text(&path, MOST).ok();
    let noted = read(own.join(".project_root")).map(|root| root.trim().to_owned());
    noted.or_else(|| {
        let projects: Value = read_json(&read(all.join("projects.json"))?).ok()?;
        let name = own.file_name()?.to_string_lossy();
        let mut projects = projects["projects"].as_object()?.iter();
        projects.find(|(_, called)| **called == *name).map(|(root, _)| root.clone())
    })
}

fn read(_: &mut ReaderState, record: &Record<'_>) -> ReadRecord {
    let whole = record.whole();
    let id = || whole["id"].as_str();
    let set = &whole["$set"];
    let messages = match &set["messages"] {
        // Gemini CLI has rewritten its history; its new messages follow.
        Value::Array(messages) => messages.iter().collect(),
        _ if id().is_some() => vec![&whole],
        _ => Vec::new(),
    };
    let read: Vec<(&str, Option<Vec<ForeignMessage>>)> = (messages.into_iter())
        .filter_map(|message| {
            let id = message["id"].as_str()?;
            let named = |shown: ForeignMessage| ForeignMessage { id: Some(id.to_owned()), ..shown };
            Some((id, shown(message).map(|shown| shown.into_iter().map(named).collect())))
        })
        .collect();
    let times =
        [&whole["timestamp"], &whole["startTime"], &set["lastUpdated"], &set["messages"][0]["timestamp"]];
    let is_known = !set.is_null() || !whole["$rewindTo"].is_null() || !whole["sessionId"].is_null();
    ReadRecord {
        id: id().map(ToOwned::to_owned),
        time: times.into_iter().find_map(Value::as_str).and_then(parse_iso),
        is_unknown: read.iter().any(|(_, shown)| shown.is_none()) || (read.is_empty() && !is_known),
        rewinds_to: whole["$rewindTo"].as_str().map(ToOwned::to_owned),
        shown: read.into_iter().flat_map(|(_, shown)| shown.unwrap_or_default()).collect(),
        ..ReadRecord::default()
    }
}

/// A message and its tool results; `None` for an unknown kind.
fn shown(message: &Value) -> Option<Vec<ForeignMessage>> {
    let content = &message["content"];
    let said = parts(content);
    let first = said.first().and_then(|part| part["text"].as_str()).unwrap_or_default();
    // Tool results are stored with their calls.
    let is_answer = content.as_array().into_iter().flatten().any(|part| !part["functionResponse"].is_null());
    let is_own = is_answer || OWN.iter().any(|own| first.trim_start().starts_with(own));
    let thoughts =
        message["thoughts"].as_array().filter(|_| said.iter().all(|part| part["type"] != "thinking"));
    let mut shown = match message["type"].as_str()? {
        "user" if is_own => vec![ForeignMessage::system(said)],
        "user" => vec![ForeignMessage::said("user", said)],
        "gemini" => {
            let thoughts = thoughts.into_iter().flatten().map(|thought| {
                let [subject, description] = ["subject", "description"].map(|name| as_text(&thought[name]));
                thinking(&format!("{subject}\n{description}"))
            });
            vec![ForeignMessage::said("assistant", thoughts.chain(said).collect())]
        }
        "info" | "error" | "warning" => vec![ForeignMessage::system(said)],
        _ => return None,
    };
    shown.retain(|shown| !shown.content.is_empty());
    let calls = message["toolCalls"].as_array().into_iter().flatten();
    shown.extend(calls.flat_map(tool));
    Some(shown)
}

/// A tool's call, and its result if there is one.
fn tool(of: &Value) -> Vec<ForeignMessage> {
    let [id, name, status] = ["id", "name", "status"].map(|field| of[field].as_str().unwrap_or_default());
    let mut context = ReaderState::default();
    context.called(id, name);
    let mut shown = vec![ForeignMessage::said("assistant", vec![call(id, name, &of["args"])])];
    if matches!(status, "success" | "error" | "cancelled") && !of["result"].is_null() {
        let content = parts(&of["result"]);
        // A command that fails succeeds as a call; its exit code stands below its output.
        let said = content.last().map(|part| as_text(&part["text"])).unwrap_or_default();
        let code = said.lines().rev().find_map(|line| line.strip_prefix("Exit Code: ")?.parse::<i64>().ok());
        let has_failed = name == "run_shell_command" && code.is_some_and(|code| code != 0);
        shown.push(context.result(id, status != "success" || has_failed, content));
    }
    shown
}

/// The text of a message's parts. Calls are also in the message's tools, with their results.
fn parts(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts.iter().flat_map(self::parts).collect(),
        Value::String(said) if said.is_empty() => Vec::new(),
        Value::String(said) => vec![text(said)],
        Value::Object(part) => {
            let said = |name: &str| part.get(name).and_then(Value::as_str);
            if let Some(words) = said("text") {
                let is_thought = part.get("thought").is_some_and(|thought| thought == true);
                return vec![if is_thought { thinking(words) } else { text(words) }];
            }
            if let Some(data) = part.get("inlineData") {
                let [kind, bytes] = ["mimeType", "data"].map(|name| data[name].as_str().unwrap_or_default());
                return image(&format!("data:{kind};base64,{bytes}")).into_iter().collect();
            }
            let answer = part.get("functionResponse").map(|response| &response["response"]);
            let said = answer.map(|answer| answer.get("output").or(answer.get("error")).unwrap_or(answer));
            said.map(|said| text(&as_text(said))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
