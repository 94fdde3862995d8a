//! Replaces tool results with short stubs. The policy decides which, and when.
//!
//! Stubs are in Pi's session; the store still sees the original results. What was pruned stays pruned.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::dag::{MessageKind, Visible};
use crate::error::Result;
use crate::model::{Message, NOTE_TOOL, Part, Role};
use crate::policy::Cost;
use crate::store::View;
use crate::text::{count, megabytes, one_line};
use crate::tokens;

/// A stub takes at most this share of what it replaces: 1/n.
const STUB_SHARE: usize = 2;
/// Characters of a tool's name, of a call's arguments, and of a line of its result.
const NAME: usize = 60;
const ARGUMENTS: usize = 120;
const LINE: usize = 120;

/// A context, as Pi describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Live {
    /// The last entry of the branch.
    pub leaf_id: String,
    /// The first entry that the branch's last compaction left raw; absent if there is none.
    pub shown_from: Option<String>,
    /// Tokens of the branch's last block; 0 if there is none.
    pub block_tokens: usize,
    /// The block itself, if requested.
    pub block: Option<String>,
    /// Tokens of the context as Pi counts them; absent if Pi does not know.
    pub context_tokens: Option<usize>,
    /// The model's context window in tokens.
    pub context_window: Option<usize>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
    /// Entries that another extension is about to edit; they are skipped.
    pub edited: Vec<String>,
    /// Prices of the model's tokens.
    pub cost: Cost,
    /// Prices of the model that writes summaries; `None` if it is the session's own, asked within the
    /// session.
    pub summarizer: Option<Cost>,
    /// The usage that the provider reported for the request just answered.
    pub usage: Option<Value>,
    /// Tokens of system prompt and tools.
    pub prompt_tokens: Option<usize>,
    /// Tokens of this extension's tools within that.
    pub own_tokens: usize,
    /// Whether the provider's cache no longer has the context.
    pub is_cold: bool,
    /// Whether a compaction can be appended now.
    pub can_fold: bool,
    /// Whether appended entries reach only the request after the next, because the host does not wait.
    pub is_late: bool,
}

/// A stub in place of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The result's entry.
    pub target: String,
    /// The stub.
    pub text: String,
}

impl Draft {
    /// The edit for Pi. The field `lcm`, which Pi keeps but never sends, identifies our stubs.
    pub fn to_json(&self) -> Value {
        let content = json!([{"type": "text", "text": self.text}]);
        json!({"type": "context_edit", "targetId": self.target, "replacement": {"content": content, "lcm": {}}})
    }
}

/// Stubs for the messages at `places` of a context. Three kinds of messages
/// get none: a note, which appears nowhere else until a block shows it; a message that another extension has
/// edited; and one that a stub would hardly shorten.
pub fn stubs(view: &View<'_>, context: &[Visible], places: &[usize]) -> Result<Vec<Draft>> {
    let Some(first) = places.first() else { return Ok(Vec::new()) };
    // Calls precede their results, rarely by much.
    let begin = context[..*first].iter().rposition(|message| message.seen.role == "user").unwrap_or_default();
    let mut calls: HashMap<String, (String, Value)> = HashMap::new();
    let mut drafts = Vec::new();
    for (at, visible) in context.iter().enumerate().skip(begin) {
        let is_stubbable = places.binary_search(&at).is_ok();
        if visible.seen.role != "assistant" && !is_stubbable {
            continue;
        }
        let message = Message::parse(&view.messages().json_of(visible.seen.id)?);
        for part in &message.parts {
            if let Part::ToolCall { id, name, arguments } = part {
                calls.insert(id.clone(), (name.clone(), arguments.clone()));
            }
        }
        let is_edited = visible.seen.kind == MessageKind::Edited;
        let is_note = message.tool.as_deref() == Some(NOTE_TOOL);
        if !is_stubbable || is_edited || is_note || message.role != Role::ToolResult {
            continue;
        }
        let called = message.tool_call_id.as_deref().and_then(|id| calls.get(id));
        let text = of_result(&message, &visible.original.message_handle(), called);
        if tokens::estimate(&text) * STUB_SHARE <= visible.seen.tokens {
            drafts.push(Draft { target: visible.entry_id.clone(), text });
        }
    }
    Ok(drafts)
}

/// The stub of a tool's result, whose short id is `handle` and whose call was `called`.
fn of_result(message: &Message, handle: &str, called: Option<&(String, Value)>) -> String {
    let Message { tool, parts, is_error, .. } = message;
    let name = called.map(|(name, _)| name.as_str()).or(tool.as_deref()).unwrap_or("a tool");
    let arguments = called.map(|(_, arguments)| one_line(&arguments.to_string(), ARGUMENTS));
    let arguments = arguments.map(|arguments| format!(" {arguments}")).unwrap_or_default();
    let said = message.text();
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let pictures = parts.iter().filter(|part| matches!(part, Part::Image { .. })).count();
    let text = (!said.is_empty()).then(|| [count(said.lines().count(), "line"), size(said.len())].join(", "));
    let images = (pictures > 0).then(|| count(pictures, "image"));
    let gave = text.into_iter().chain(images).collect::<Vec<_>>().join(", ");
    let verb = if *is_error { "failed with" } else { "gave" };
    let (name, id) = (one_line(name, NAME), json!({"summary_id": handle}));
    let head =
        format!("[{name}{arguments} {verb} {gave}; left out to save context. All of it: lcm_expand {id}]");
    [vec![head], glimpse(&lines)].concat().join("\n")
}

/// The first and the last line.
fn glimpse(lines: &[&str]) -> Vec<String> {
    match lines {
        [] => Vec::new(),
        [line] => vec![one_line(line, LINE)],
        [first, last] => vec![one_line(first, LINE), one_line(last, LINE)],
        [first, .., last] => vec![one_line(first, LINE), "…".into(), one_line(last, LINE)],
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => count(bytes, "byte"),
        _ => megabytes(bytes as u64),
    }
}
