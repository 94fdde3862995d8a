//! Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl`, with a record in each
//! line, in order; after some days packed, as `.jsonl.zst`. A record has its kind, and its content under
//! `payload`; before 0.32 the line was the content. Records have no ids, but newer ones a number. Going back to
//! an earlier prompt makes another log of the same session, `rollout-<time>-<session>_<log>.jsonl`, which
//! continues the one before and its numbers.
//!
//! The kinds are those of `codex-rs/protocol/src/protocol.rs` and `codex-rs/history/src/rollout_payload.rs` in
//! openai/codex, the inserted texts those of `codex-rs/core/src/context`.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Agent, ForeignMessage, LogSession, ReadRecord, ReaderState, Record, as_text, call, head, image, is_among,
    parted, text, thinking,
};
use lcm_model::error::Result;
use lcm_model::ids::CODEX;
use lcm_model::{Fields, read_json};

pub(super) static AGENT: Agent = Agent {
    name: CODEX,
    title: "Codex",
    home: ("CODEX_HOME", ".codex"),
    logs: &["sessions", "archived_sessions"],
    is_log: |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("rollout-") && (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"))
    },
    is_side_chain: |_| false,
    beside: |_| Vec::new(),
    open,
    read,
    rewrites: false,
};

/// The beginnings of texts that Codex itself inserts into user messages.
const OWN: [&str; 4] = [
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>",
];
/// The tags of further ones, which are the whole text.
const OWN_TAGS: &str = "codex_internal_context external_context goal_context hook_prompt recommended_plugins skill \
     subagent_notification task_model_guidance turn_aborted";

/// Records without a message.
const SILENT: &str = "session_meta turn_context event_msg world_state token_usage_record security_risk_score \
     retained_context realtime_item inter_agent_communication_metadata";
/// Items without a message.
const SILENT_ITEMS: &str = "ghost_snapshot compaction compaction_summary compaction_trigger context_compaction \
     configuration_update additional_tools";

fn open(path: &Path, cancel: &CancellationToken) -> Result<Vec<LogSession>> {
    // A fork that copies lines begins with the metadata of all sessions above it, the first of them last.
    let mut metas: Vec<Value> = Vec::new();
    let (mut cwd, mut is_begun, mut is_log) = (None, false, false);
    let records = head(path, cancel, |fields| {
        is_log |= is_record(fields);
        match meta(fields) {
            Some(meta) if !is_begun => metas.push(meta),
            _ => is_begun = !metas.is_empty(),
        }
        cwd = cwd.take().or_else(|| folder(fields));
        is_begun && cwd.is_some()
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Without its first line, a log has no id but that in its name.
    if metas.is_empty() && is_log {
        metas.push(json!({"id": id_in(&name)}));
    }
    let [meta, ..] = metas.as_slice() else { return Ok(Vec::new()) };
    let said = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let own = said(&meta["id"]).unwrap_or_default();
    let first = metas.last().and_then(|first| said(&first["id"])).filter(|first| *first != own);
    // A side chain belongs to the session that started it, though another side chain may have asked for it.
    let subagent = &meta["source"]["subagent"];
    let parent = || said(&meta["parent_thread_id"]).filter(|_| !subagent.is_null());
    let above = said(&subagent["thread_spawn"]["parent_thread_id"]).or_else(parent);
    let above = above.map(|above| said(&meta["session_id"]).filter(|root| *root != own).unwrap_or(above));
    let base = &meta["history_base"];
    let begin = if above.is_some() { format!("{own}:") } else { String::new() };
    let of_log = |log: &str| if log == own { begin.clone() } else { format!("{begin}{log}.") };
    let log = name.split('.').next().and_then(|name| Some(name.split_once(&format!("-{own}_"))?.1));
    // A copy may have any name.
    let log = log.filter(|log| Uuid::parse_str(log).is_ok()).unwrap_or(&own);
    let last = base["end_ordinal_exclusive"].as_u64().filter(|_| log != own);
    Ok(vec![LogSession {
        prefix: of_log(log),
        continues: last
            .and_then(|end| Some(format!("{}{}", of_log(base["thread_id"].as_str()?), end.checked_sub(1)?))),
        cwd,
        parent: said(&meta["forked_from_id"]).map(|parent| first.unwrap_or(parent)),
        version: said(&meta["cli_version"]).unwrap_or_default(),
        ..LogSession::of(above.unwrap_or_else(|| own.clone()), Box::new(records))
    }])
}

/// Whether only Codex writes this.
fn is_record(fields: &Fields<'_>) -> bool {
    let kind = fields.text("type").unwrap_or_default();
    let has_payload = fields.value("payload").is_object();
    has_payload && (kind == "response_item" || is_among(SILENT, &kind))
        || (kind == "message" && fields.value("content").is_array() && fields.text("role").is_some())
}

/// The session's id in the name of a log, after the time; otherwise the log's name.
fn id_in(name: &str) -> String {
    let name = name.split('.').next().unwrap_or_default();
    let ids = name.match_indices('-').filter_map(|(at, _)| name.get(at + 1..at + 37));
    ids.into_iter().find(|id| Uuid::parse_str(id).is_ok()).unwrap_or(name).to_owned()
}

fn meta(fields: &Fields<'_>) -> Option<Value> {
    match fields.text("type").as_deref() {
        Some("session_meta") => Some(fields.value("payload")),
        Some(_) => None,
        None => Some(json!({"id": fields.text("id")?})).filter(|_| fields.text("timestamp").is_some()),
    }
}

/// The folder, which older versions only marks the model.
fn folder(fields: &Fields<'_>) -> Option<String> {
    let payload = fields.value("payload");
    if let Some(cwd) = payload["cwd"].as_str() {
        return Some(cwd.to_owned());
    }
    let content = if payload.is_object() { payload["content"].clone() } else { fields.value("content") };
    let context = content[0]["text"].as_str()?.strip_prefix(OWN[0])?;
    let marks = [("<cwd>", "</cwd>"), ("Current working directory: ", "\n")];
    marks.iter().find_map(|(begin, end)| Some(context.split_once(begin)?.1.split_once(end)?.0.to_owned()))
}

fn read(context: &mut ReaderState, record: &Record<'_>) -> ReadRecord {
    let kind = record.kind();
    let id = record.value("ordinal").as_u64().map(|ordinal| ordinal.to_string());
    let is_event = matches!(kind.as_str(), "event_msg" | "turn_context");
    if is_event && record.json("payload").is_some_and(|json| json.starts_with('{')) {
        return ReadRecord { id, time: record.time(), ..ReadRecord::default() };
    }
    let payload = record.value("payload");
    let is_bare = !payload.is_object();
    let (item, is_item) = match (is_bare, kind.as_str()) {
        (false, "response_item") => (payload, true),
        (true, _) if !kind.is_empty() => (read_json(record.json).unwrap_or_default(), true),
        _ => (payload, false),
    };
    if let (true, Some(version)) = (kind == "session_meta", item["cli_version"].as_str()) {
        context.version = version.to_owned();
    }
    let silent = is_among(SILENT, &kind)
        || (kind.is_empty() && (record.text("id").is_some() || record.text("record_type").is_some()));
    let shown = match (is_item, kind.as_str()) {
        (true, _) => response(context, &item),
        (false, "compacted") => Some(vec![ForeignMessage::system(vec![text(&as_text(&item["message"]))])]),
        (false, "inter_agent_communication") => {
            Some(vec![ForeignMessage::said("assistant", parts(&item["content"]))])
        }
        _ => silent.then(Vec::new),
    };
    let (is_unknown, shown) = (shown.is_none(), shown.unwrap_or_default());
    ReadRecord { id, time: record.time(), is_unknown, shown, ..ReadRecord::default() }
}

/// A message, call or result; `None` for an unknown kind.
fn response(context: &mut ReaderState, item: &Value) -> Option<Vec<ForeignMessage>> {
    let said = |name: &str| item[name].as_str().unwrap_or_default();
    let id = said("call_id");
    let shown = match said("type") {
        "message" => {
            let content = parts(&item["content"]);
            match said("role") {
                "assistant" => ForeignMessage::said("assistant", content),
                "user" => return Some(parted(content, |part| part["text"].as_str().is_some_and(is_own))),
                _ => ForeignMessage::system(content),
            }
        }
        "reasoning" => {
            let thoughts = [&item["summary"], &item["content"]];
            let thoughts = thoughts.iter().flat_map(|thoughts| thoughts.as_array().into_iter().flatten());
            let thoughts = thoughts.map(|thought| thinking(&as_text(&thought["text"])));
            ForeignMessage::said("assistant", thoughts.collect())
        }
        // What another agent said to this one.
        "agent_message" => ForeignMessage::said("assistant", parts(&item["content"])),
        "function_call" => {
            called(context, id, said("name"), &read_json(said("arguments")).unwrap_or_default())
        }
        "custom_tool_call" => called(context, id, said("name"), &json!({"input": item["input"]})),
        "local_shell_call" => called(context, id, "local_shell", &item["action"]),
        "web_search_call" => called(context, said("id"), "web_search", &item["action"]),
        "tool_search_call" => called(context, id, "tool_search", &item["arguments"]),
        "function_call_output" | "custom_tool_call_output" => {
            let output = &item["output"];
            let content = parts(if output.is_object() { &output["content"] } else { output });
            let is_error = output["success"] == false || content.first().is_some_and(has_failed);
            context.result(id, is_error, content)
        }
        "tool_search_output" => context.result(id, false, vec![text(&as_text(&item["tools"]))]),
        "image_generation_call" => {
            let (id, drawn) = (said("id"), image(&format!("data:image/png;base64,{}", said("result"))));
            let call = called(context, id, "image_generation", &json!({"prompt": item["revised_prompt"]}));
            let drawn = drawn.filter(|_| !said("result").is_empty());
            let drawn = drawn.map(|drawn| context.result(id, false, vec![drawn]));
            return Some(std::iter::once(call).chain(drawn).collect());
        }
        kind if is_among(SILENT_ITEMS, kind) => return Some(Vec::new()),
        _ => return None,
    };
    Some(vec![shown])
}

/// Whether a command's result says that it failed: in JSON, or above its output.
fn has_failed(result: &Value) -> bool {
    let said = as_text(&result["text"]);
    let marks = ["Exit code: ", "Process exited with code "];
    let marked = |line: &str| marks.iter().find_map(|mark| line.strip_prefix(mark)?.parse().ok());
    let code = match read_json(&said) {
        Ok(json) => json["metadata"]["exit_code"].as_i64(),
        Err(_) => said.lines().take_while(|line| !line.starts_with("Output:")).find_map(marked),
    };
    code.is_some_and(|code| code != 0)
}

fn is_own(text: &str) -> bool {
    let text = text.trim();
    let tag = text.strip_prefix('<').and_then(|tag| tag.split(['>', ' ']).next()).unwrap_or_default();
    OWN.iter().any(|own| text.starts_with(own))
        || is_among(OWN_TAGS, tag) && text.find(&format!("</{tag}>")) == text.len().checked_sub(tag.len() + 3)
}

fn called(context: &mut ReaderState, id: &str, name: &str, arguments: &Value) -> ForeignMessage {
    context.called(id, name);
    ForeignMessage::said("assistant", vec![call(id, name, arguments)])
}

fn parts(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => (parts.iter())
            .filter_map(|part| match part["image_url"].as_str() {
                Some(url) => image(url),
                None => part["text"].as_str().map(text),
            })
            .collect(),
        Value::Null => Vec::new(),
        other => vec![text(&as_text(other))],
    }
}
