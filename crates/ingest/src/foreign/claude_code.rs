//! Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, with a record in each line that names its
//! parent. Side chains are in the same file; since 2.0 in their own files `agent-<id>.jsonl`, next to the
//! session's or in `<session>/subagents`.
//!
//! The format is not documented. This follows versions 1.0.83, 2.0.14, 2.1.38 and 2.1.219, the reader
//! daaain/claude-code-log, and `ai_working/claude_code_logging` in microsoft/amplifier.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Above, Agent, ForeignMessage, LogSession, ReadRecord, ReaderState, Record, as_text, call, head, is_among,
    parted, text, thinking,
};
use lcm_model::error::Result;
use lcm_model::ids::AGENTS;

pub(super) static AGENT: Agent = Agent {
    name: AGENTS[0],
    title: "Claude Code",
    home: ("CLAUDE_CONFIG_DIR", ".claude"),
    logs: &["projects"],
    is_log: |path| path.extension().is_some_and(|ending| ending == "jsonl") && stem(path) != "journal",
    is_side_chain: |path| stem(path).starts_with("agent-"),
    beside: |_| Vec::new(),
    open,
    read,
    rewrites: false,
};

/// Kinds without a message.
const SILENT: &str = "system summary file-history-snapshot file-history-delta queue-operation progress attachment last-prompt \
     custom-title ai-title agent-name agent-color agent-setting mode permission-mode pr-link \
     tag task-summary saved_hook_context content-replacement worktree-state \
     atis-latch attribution-snapshot bridge-session continued-in cost-state ended-by-model fork-context-ref frame-link \
     history-suppression isolation-latch marble-origami-commit marble-origami-reset marble-origami-snapshot observer-ref \
     relocated speculation-accept artifact-autoreact-ledger artifact-comment-monitor";

/// How texts that Claude Code adds to the user's begin and end.
const OWN: [(&str, &str); 7] = [
    ("<system-reminder>", "</system-reminder>"),
    ("<local-command-caveat>", "</local-command-caveat>"),
    ("<local-command-stdout>", "</local-command-stdout>"),
    ("<local-command-stderr>", "</local-command-stderr>"),
    ("<bash-stdout>", "</bash-stderr>"),
    ("<task-notification>", ""),
    ("[Request interrupted by user", "]"),
];

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn open(path: &Path, cancel: &CancellationToken) -> Result<Vec<LogSession>> {
    let (mut session, mut cwd, mut version, mut is_log) = (None, None, None, false);
    let records = head(path, cancel, |fields| {
        is_log |= fields.text("type").is_some()
            && (fields.text("uuid").is_some() || fields.text("sessionId").is_some())
            || fields.text("type").is_some_and(|kind| is_among(SILENT, &kind));
        session = session.take().or_else(|| fields.text("sessionId"));
        cwd = cwd.take().or_else(|| fields.text("cwd"));
        version = version.take().or_else(|| fields.text("version"));
        session.is_some() && cwd.is_some() && version.is_some()
    })?;
    let name = stem(path);
    let is_side_chain = (AGENT.is_side_chain)(path);
    // Records of a resumed session may have the id of the earlier session.
    let is_uuid = name.len() == 36 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let session = session.filter(|_| !is_uuid).unwrap_or_else(|| name.clone());
    let log = LogSession {
        cwd,
        prefix: if is_side_chain { format!("{name}:") } else { String::new() },
        version: version.unwrap_or_default(),
        ..LogSession::of(session, Box::new(records))
    };
    Ok(is_log.then_some(log).into_iter().collect())
}

fn read(context: &mut ReaderState, record: &Record<'_>) -> ReadRecord {
    if let Some(version) = record.text("version") {
        context.version = version;
    }
    let kind = record.kind();
    let content = || record.value("message").get_mut("content").map(Value::take).unwrap_or_default();
    let shown = match kind.as_str() {
        // The side chain that writes a summary for a compaction.
        "user" | "assistant"
            if record.text("agentId").is_some_and(|agent| agent.starts_with("acompact-")) =>
        {
            vec![ForeignMessage::system(blocks(context, &content()))]
        }
        // Text that Claude Code inserts, and its summary after a compaction.
        "user" if record.is("isMeta") || record.is("isCompactSummary") => {
            let inserted = |shown: ForeignMessage| {
                if shown.result.is_some() { shown } else { ForeignMessage::system(shown.content) }
            };
            user(context, &content()).into_iter().map(inserted).collect()
        }
        "user" => user(context, &content()),
        "attachment" => queued(context, &record.value("attachment")).into_iter().collect(),
        "assistant" => vec![ForeignMessage::said("assistant", blocks(context, &content()))],
        "summary" => vec![ForeignMessage::system(vec![text(&as_text(&record.value("summary")))])],
        "system" => vec![ForeignMessage::system(vec![text(&as_text(&record.value("content")))])],
        _ => Vec::new(),
    };
    ReadRecord {
        id: record.text("uuid"),
        above: above(record),
        // One that was typed meanwhile may be written late.
        is_prompt: kind == "user" && shown.iter().any(|shown| shown.role == "user"),
        side: record.is("isSidechain").then(|| record.text("agentId").unwrap_or_else(|| "side".to_owned())),
        time: record.time(),
        is_unknown: shown.is_empty() && !is_among(SILENT, &kind),
        shown,
        ..ReadRecord::default()
    }
}

/// The record above. A compaction's first record names it apart.
fn above(record: &Record<'_>) -> Above {
    match record.text("parentUuid").or_else(|| record.text("logicalParentUuid")) {
        Some(above) => Above::Record(above),
        None if record.has("parentUuid") => Above::Start,
        None => Above::Before,
    }
}

/// A message that was typed while Claude Code worked: it has no record of its own.
fn queued(context: &mut ReaderState, attachment: &Value) -> Option<ForeignMessage> {
    let prompt = (attachment["type"] == "queued_command").then(|| blocks(context, &attachment["prompt"]))?;
    let notifies = [&attachment["commandMode"], &attachment["origin"]["kind"]];
    let is_typed = attachment["isMeta"] != true && notifies.iter().all(|of| **of != "task-notification");
    Some(if is_typed { ForeignMessage::said("user", prompt) } else { ForeignMessage::system(prompt) })
}

/// The user's message, or tool results.
fn user(context: &mut ReaderState, content: &Value) -> Vec<ForeignMessage> {
    let results: Vec<&Value> =
        (content.as_array().into_iter().flatten()).filter(|block| block["type"] == "tool_result").collect();
    let mut shown: Vec<ForeignMessage> = results
        .iter()
        .map(|block| {
            let call = block["tool_use_id"].as_str().unwrap_or_default();
            let content = blocks(&mut ReaderState::default(), &block["content"]);
            context.result(call, block["is_error"] == true, content)
        })
        .collect();
    let is_own = |block: &Value| {
        let words = block["text"].as_str().unwrap_or_default();
        own_in(words) == Some(words.trim_end().len())
    };
    let blocks: Vec<Value> = blocks(context, content).into_iter().flat_map(said).collect();
    if shown.is_empty() || !blocks.is_empty() {
        shown.extend(parted(blocks, is_own));
    }
    shown
}

/// Where the text at the start of a user's ends that is Claude Code's; a command without arguments is.
fn own_in(words: &str) -> Option<usize> {
    let text = words.trim_start();
    let ends = |end: &str| match end {
        "" => Some(text.trim_end().len()),
        end => text.find(end).map(|at| at + end.len()),
    };
    let own = OWN.iter().find_map(|(begin, end)| text.starts_with(begin).then(|| ends(end))?);
    let is_bare = || command(text).is_some_and(|(_, arguments)| arguments.is_empty());
    own.or_else(|| is_bare().then(|| text.trim_end().len())).map(|end| words.len() - text.len() + end)
}

/// A text in the user's name as what is Claude Code's and what the user has said. Of a command, that is the command.
fn said(block: Value) -> Vec<Value> {
    let Some(words) = block["text"].as_str() else { return vec![block] };
    if let Some((name, arguments)) = command(words.trim()).filter(|(_, arguments)| !arguments.is_empty()) {
        return vec![text(&format!("{name} {arguments}"))];
    }
    match own_in(words) {
        Some(end) if !words[end..].trim().is_empty() => {
            [vec![text(&words[..end])], said(text(words[end..].trim_start()))].concat()
        }
        _ => vec![block],
    }
}

/// The name and the arguments of a command that the user has typed.
fn command(words: &str) -> Option<(&str, &str)> {
    let of = |tag: &str| {
        let (_, rest) = words.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
    };
    let name = words.starts_with("<command-").then(|| of("command-name"))??;
    Some((name, of("command-args").unwrap_or_default()))
}

/// The content of a message.
fn blocks(context: &mut ReaderState, content: &Value) -> Vec<Value> {
    let said = |block: &Value, field: &str| block[field].as_str().unwrap_or_default().to_owned();
    match content {
        Value::String(said) => vec![text(said)],
        Value::Array(blocks) => (blocks.iter())
            .filter_map(|block| match said(block, "type").as_str() {
                "text" => Some(text(&said(block, "text"))),
                "thinking" => Some(thinking(&said(block, "thinking"))),
                "tool_use" | "server_tool_use" => {
                    let (id, name) = (said(block, "id"), said(block, "name"));
                    context.called(&id, &name);
                    Some(call(&id, &name, &block["input"]))
                }
                "image" => {
                    let source = &block["source"];
                    Some(json!({"type": "image", "data": source["data"], "mimeType": source["media_type"]}))
                }
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
