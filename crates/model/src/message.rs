//! A message of any role, parsed as far as possible: no message is ever rejected.
//!
//! It yields three texts: for search, for a reader of the message, and for the summarizer. Thinking and
//! system messages are stored, but appear only in the second.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use super::Files;
use super::agents::agent_of;
use super::entry::Fields;
use super::json::{read_json, read_text};
use crate::{text, tokens};

/// The tool that changes notes, and the type of messages about the user's changes.
pub const NOTE_TOOL: &str = "lcm_note";
/// Our tools that look up history, whose results search leaves out.
pub const RECALL_TOOLS: [&str; 3] = ["lcm_grep", "lcm_expand", "lcm_describe"];
/// Pi's own tools whose calls have a file path.
pub const FILE_TOOLS: [&str; 3] = ["read", "write", "edit"];
/// Pi's tool that runs a script, which calls other tools.
pub const SCRIPT_TOOL: &str = "codemode";
/// The characters that Pi counts for an image.
const PI_IMAGE: usize = 4_800;

/// The author of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    ToolResult,
    /// A command the user ran with `!`.
    Bash,
    /// A message of an extension.
    Custom,
    /// Pi's summary of an abandoned branch.
    BranchSummary,
    /// Prompt and tool state recorded by newer hosts.
    System,
    /// A role that this version does not know.
    Other(String),
}

impl Role {
    fn parse(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "toolResult" => Self::ToolResult,
            "bashExecution" => Self::Bash,
            "custom" | "hookMessage" => Self::Custom,
            "branchSummary" => Self::BranchSummary,
            "system" => Self::System,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Pi's name for the role, which is stored and shown.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "toolResult",
            Self::Bash => "bashExecution",
            Self::Custom => "custom",
            Self::BranchSummary => "branchSummary",
            Self::System => "system",
            Self::Other(name) => name,
        }
    }
}

/// One part of a message's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// The model's thinking: stored, never searched, never summarized.
    Thinking(String),
    /// A tool call.
    ToolCall {
        /// Links the call to its result.
        id: String,
        name: String,
        arguments: Value,
    },
    /// An image.
    Image {
        /// The type, such as `image/png`.
        mime_type: String,
        data: String,
    },
}

/// A call that a tool made while it ran, such as a script's. Pi records it in the tool's result, without a
/// result of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedCall {
    pub name: String,
    /// `Null` if they are too long for Pi's record.
    pub arguments: Value,
    pub outcome: CallOutcome,
}

/// How a nested call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It succeeded.
    Done,
    /// It failed, with the beginning of what it said.
    Failed(String),
    /// It was still running when its tool ended.
    Unfinished,
}

/// A parsed message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its author.
    pub role: Role,
    /// Its own time in ms since the epoch, if it has one.
    pub timestamp: Option<i64>,
    /// The tool, if it is a tool result or a change by the user that a tool can make too.
    pub tool: Option<String>,
    /// The call, if it is a tool result.
    pub tool_call_id: Option<String>,
    /// Whether the user hid it from the model (`!!`): never summarized, invisible to the tools.
    pub private: bool,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Whether it is an answer that failed or was interrupted.
    pub cut_off: bool,
    /// Why the request for this answer failed: searched and shown, never summarized.
    pub failure: Option<String>,
    /// Whether it comes from a session of another agent.
    pub foreign: bool,
    /// Files listed in Pi's summary of a branch; empty for all other roles.
    pub listed: Files,
    /// The content, in order.
    pub parts: Vec<Part>,
    /// The calls that its tool made, in order, if it is a tool result.
    pub nested: Vec<NestedCall>,
}

impl Message {
    /// Parses a stored message. A JSON value that is not an object becomes the content of an unknown role.
    /// Invalid JSON becomes one text part, so that it can still be found and shown.
    pub fn parse(json: &str) -> Self {
        // Each text is copied once: it may be long.
        let read = Fields::of(json);
        let is_object = read.is_some();
        let fields = read.unwrap_or_default();
        let text = |key| fields.text(key);
        let is = |key| fields.json(key) == Some("true");
        let role = match (text("role"), text("type").as_deref()) {
            (Some(role), _) => Role::parse(&role),
            // Entries that hold the message in their own fields.
            (None, Some("custom_message")) => Role::Custom,
            (None, Some("branch_summary")) => Role::BranchSummary,
            _ => Role::Other(if is_object { "unknown" } else { "unreadable" }.into()),
        };
        let parts = match role {
            Role::Bash => {
                let [command, output] = ["command", "output"].map(|key| text(key).unwrap_or_default());
                vec![Part::Text(format!("$ {command}\n{output}"))]
            }
            Role::BranchSummary => text("summary").map(Part::Text).into_iter().collect(),
            _ if is_object => fields.json("content").map(parts_of).unwrap_or_default(),
            _ => parts_of(json),
        };
        Self {
            timestamp: fields.value("timestamp").as_f64().map(|ms| ms as i64),
            tool: match role {
                // So that the user's changes of notes are found along with the model's.
                Role::Custom => text("customType").filter(|kind| kind == NOTE_TOOL),
                _ => text("toolName"),
            },
            tool_call_id: text("toolCallId"),
            private: is("excludeFromContext"),
            is_error: is("isError") || fields.value("exitCode").as_i64().is_some_and(|code| code != 0),
            cut_off: matches!(text("stopReason").as_deref(), Some("aborted" | "error")),
            failure: text("stopReason").filter(|reason| reason == "error").and(text("errorMessage")),
            foreign: agent_of(json).is_some(),
            listed: match role {
                Role::BranchSummary => Files::listed(&fields.value("details")),
                _ => Files::default(),
            },
            parts,
            nested: match role {
                Role::ToolResult => nested_of(fields.value("nestedCalls")),
                _ => Vec::new(),
            },
            role,
        }
    }

    /// Takes the content out, as the text for search: text, tool calls as names and argument strings, bash as `$ command` and output.
    /// Calls and results of our own tools are left out, since otherwise every search would find itself and
    /// copies of its results.
    pub fn take_searchable(&mut self) -> String {
        let is_left_out = self.role == Role::System || self.is_recall_echo();
        let mut out = String::new();
        for part in std::mem::take(&mut self.parts) {
            match part {
                _ if is_left_out => {}
                // It may be long.
                Part::Text(text) if out.is_empty() => out = text,
                Part::Text(text) => push_line(&mut out, &text),
                Part::ToolCall { name, arguments, .. } if !is_recall_call(&name, &arguments) => {
                    push_line(&mut out, &name);
                    each_string(&arguments, &mut |text| push_line(&mut out, text));
                }
                Part::ToolCall { .. } | Part::Thinking(_) | Part::Image { .. } => {}
            }
        }
        if let Some(failure) = self.failure.take().filter(|_| !is_left_out) {
            push_line(&mut out, &failure);
        }
        out
    }

    /// The call that it answers, or that it begins with.
    pub fn call(&self) -> Option<&str> {
        let made = self.parts.first().and_then(|part| match part {
            Part::ToolCall { id, .. } => Some(id.as_str()),
            _ => None,
        });
        self.tool_call_id.as_deref().or(made)
    }

    /// The text for a reader: every part, with text exactly as stored. A message of one text part is just
    /// that text.
    pub fn readable(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => push_line(&mut out, text),
                Part::Thinking(text) => push_line(&mut out, &format!("[thinking]\n{text}\n[/thinking]")),
                Part::ToolCall { name, arguments, .. } => {
                    push_line(&mut out, &format!("[tool call {name}] {arguments}"));
                }
                Part::Image { mime_type, data } => {
                    push_line(&mut out, &format!("[{mime_type}, {} bytes of base64]", data.len()));
                }
            }
        }
        if let Some(failure) = &self.failure {
            push_line(&mut out, &format!("[failed] {failure}"));
        }
        out
    }

    /// The text for the summarizer. Long tool output is shortened to about `max` bytes from head and tail, and
    /// lines about errors, with `handle`, the id that brings back the whole.
    pub fn for_summary(&self, max: usize, handle: &str) -> String {
        if self.is_recall_echo() {
            return "[earlier history, looked up and shown to the model]".into();
        }
        let omitted = |gone| format!("[… {gone} bytes left out, whole in {handle} …]");
        // A file that was read only handles errors.
        let is_output = self.tool.as_deref().is_some_and(|tool| tool != "read");
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) if matches!(self.role, Role::ToolResult | Role::Bash) => {
                    let errors = if is_output { text::errors_within(text, max) } else { String::new() };
                    let note = |gone| omitted(gone) + &errors;
                    push_line(&mut out, &text::head_and_tail(text, max - errors.len(), note));
                }
                // Users paste whole files, so their messages are kept longer than tool output.
                Part::Text(text) => push_line(&mut out, &text::head_and_tail(text, max * 4, omitted)),
                Part::ToolCall { name, arguments, .. } if is_recall_call(name, arguments) => {
                    push_line(&mut out, &format!("[looked up earlier history: {arguments}]"));
                }
                Part::ToolCall { name, arguments, .. } => {
                    let call = format!("[tool call {name}] {arguments}");
                    push_line(&mut out, &text::head_and_tail(&call, max, omitted));
                }
                Part::Image { mime_type, .. } => push_line(&mut out, &format!("[{mime_type}]")),
                Part::Thinking(_) => {}
            }
        }
        out
    }

    /// The approximate tokens of the message in a context.
    pub fn tokens(&self) -> usize {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) | Part::Thinking(text) => tokens::estimate(text),
            Part::ToolCall { name, arguments, .. } => {
                tokens::estimate(name) + tokens::estimate(&arguments.to_string())
            }
            Part::Image { .. } => tokens::IMAGE,
        });
        // Every message has a few tokens of framing.
        parts.sum::<usize>() + 4
    }

    /// Its tokens as Pi counts them to find the part to keep: a quarter of the characters.
    pub fn pi_tokens(&self) -> usize {
        let characters = |text: &str| text.encode_utf16().count();
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) | Part::Thinking(text) => characters(text),
            Part::ToolCall { name, arguments, .. } => characters(name) + characters(&arguments.to_string()),
            Part::Image { .. } => PI_IMAGE,
        });
        parts.sum::<usize>().div_ceil(4)
    }

    /// Returns its texts, joined by line breaks.
    pub fn text(&self) -> String {
        self.texts().collect::<Vec<_>>().join("\n")
    }

    /// Returns its texts, in order.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The id, name and arguments of each call it makes itself.
    pub fn own_calls(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall { id, name, arguments } => Some((id.as_str(), name.as_str(), arguments)),
            _ => None,
        })
    }

    /// Whether it makes the call with this id, by itself or through a tool: Pi numbers the calls of a tool
    /// below the id of its own.
    pub fn makes(&self, call: &str) -> bool {
        let is_it =
            |id| call.strip_prefix(id).is_some_and(|below| below.is_empty() || below.starts_with('/'));
        self.own_calls().any(|(id, ..)| is_it(id))
    }

    /// The arguments of its call with this id.
    pub fn call_of(&self, call: &str) -> Option<&Value> {
        self.own_calls().find(|(id, ..)| *id == call).map(|(.., arguments)| arguments)
    }

    /// The names and arguments of the calls it makes, or that its tool made with success.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.own_calls().map(|(_, name, arguments)| (name, arguments)).chain(self.nested_done())
    }

    /// Those that its tool made with success.
    pub fn nested_done(&self) -> impl Iterator<Item = (&str, &Value)> {
        let done = self.nested.iter().filter(|call| call.outcome == CallOutcome::Done);
        done.map(|call| (call.name.as_str(), &call.arguments))
    }

    /// The files in calls of Pi's own tools, and those that Pi lists in it.
    pub fn files(&self) -> Files {
        let mut files = self.listed.clone();
        for (name, arguments) in self.calls() {
            let Some(path) = text_at(arguments, "path") else { continue };
            match name {
                name if !FILE_TOOLS.contains(&name) => false,
                "read" => files.read.insert(path.to_owned()),
                _ => files.modified.insert(path.to_owned()),
            };
        }
        files
    }

    /// Whether a message with this JSON may contain a call that [`Message::files`] would use. A quick check
    /// to skip most messages unparsed.
    pub fn may_name_files(json: &str) -> bool {
        json.contains(r#""path""#)
    }

    /// The ids of its calls whose arguments contain a file's path, exactly or at the end of a longer path.
    pub fn calls_naming(&self, path: &str) -> Vec<String> {
        let sought = words(path);
        let names = |(id, _, arguments): (&str, &str, &Value)| {
            let mut is_named = false;
            each_string(arguments, &mut |text| {
                let said = words(text);
                is_named |= !sought.is_empty() && said.windows(sought.len()).any(|some| some == sought);
            });
            is_named.then(|| id.to_owned())
        };
        self.own_calls().filter_map(names).collect()
    }

    /// Whether it is a result of our own tools alone, called by the model or by its script.
    pub fn is_recall_echo(&self) -> bool {
        let is_script =
            || !self.nested.is_empty() && self.nested.iter().all(|call| is_recall_tool(&call.name));
        let is_one = |tool: &str| is_recall_tool(tool) || (tool == SCRIPT_TOOL && is_script());
        self.role == Role::ToolResult && self.tool.as_deref().is_some_and(is_one)
    }

    /// One line on what the message is about, of at most `max` characters.
    pub fn headline(&self, max: usize) -> String {
        let mut line = String::new();
        for part in &self.parts {
            let piece = match part {
                Part::Text(text) => text::one_line(text, max),
                Part::ToolCall { name, arguments, .. } => text::one_line(&format!("{name} {arguments}"), max),
                Part::Image { mime_type, .. } => mime_type.clone(),
                Part::Thinking(_) => continue,
            };
            let separator = if line.is_empty() { "" } else { " · " };
            let _ = write!(line, "{separator}{piece}");
        }
        text::one_line(&line, max)
    }
}

/// The words of a path or a command in lowercase, without the separators, which differ between systems.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The text for search of a message's JSON.
pub fn searchable(json: &str) -> String {
    Message::parse(json).take_searchable()
}

fn is_recall_tool(name: &str) -> bool {
    RECALL_TOOLS.contains(&name)
}

/// Whether a call only looks up history: of one of our own tools, or of a script that calls no others.
fn is_recall_call(name: &str, arguments: &Value) -> bool {
    let is_script = || name == SCRIPT_TOOL && text_at(arguments, "code").is_some_and(only_recalls);
    is_recall_tool(name) || is_script()
}

/// Whether a script calls our own tools, and no others.
fn only_recalls(code: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut called = code.split("tools.").skip(1).map(|from| from.split(|c| !is_word(c)).next()).peekable();
    called.peek().is_some() && called.all(|name| name.is_some_and(is_recall_tool))
}

fn text_at<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn push_line(out: &mut String, line: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(line);
}

/// Calls `sink` with every string and number in a value, such as a tool call's arguments, as it is written.
pub fn each_string(value: &Value, sink: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => sink(text),
        Value::Array(items) => items.iter().for_each(|item| each_string(item, sink)),
        Value::Object(fields) => fields.values().for_each(|field| each_string(field, sink)),
        Value::Number(number) => sink(&number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

fn nested_of(mut nested: Value) -> Vec<NestedCall> {
    let Some(Value::Array(calls)) = nested.get_mut("calls").map(Value::take) else { return Vec::new() };
    let call = |mut call: Value| NestedCall {
        outcome: match text_at(&call, "status") {
            Some("ok") => CallOutcome::Done,
            Some("error") => CallOutcome::Failed(text_at(&call, "error").unwrap_or_default().to_owned()),
            _ => CallOutcome::Unfinished,
        },
        name: text_at(&call, "name").unwrap_or_default().to_owned(),
        arguments: call.get_mut("arguments").map(Value::take).unwrap_or_default(),
    };
    calls.into_iter().map(call).collect()
}

/// The parts of a message's content, which is JSON.
fn parts_of(content: &str) -> Vec<Part> {
    match serde_json::from_str::<Vec<&RawValue>>(content) {
        Ok(blocks) => blocks.into_iter().map(|block| part_of(block.get())).collect(),
        Err(_) => vec![read_text(content).map_or_else(|| part_of(content), Part::Text)],
    }
}

fn part_of(block: &str) -> Part {
    let fields = Fields::of(block).unwrap_or_default();
    let text = |key| fields.text(key).unwrap_or_default();
    match text("type").as_str() {
        "text" => Part::Text(text("text")),
        "thinking" => Part::Thinking(text("thinking")),
        "toolCall" => {
            Part::ToolCall { id: text("id"), name: text("name"), arguments: fields.value("arguments") }
        }
        "image" => Part::Image { mime_type: text("mimeType"), data: text("data") },
        // An unknown kind of block, or no JSON, kept readable.
        _ => Part::Text(read_json(block).map_or_else(|_| block.to_owned(), |block| block.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_an_answer_failed_is_searched_and_shown() {
        let json = |reason| {
            format!(
                r#"{{"role":"assistant","content":[],"stopReason":"{reason}","errorMessage":"529 overloaded"}}"#
            )
        };
        assert_eq!(Message::parse(&json("error")).readable(), "[failed] 529 overloaded");
        assert_eq!(Message::parse(&json("error")).take_searchable(), "529 overloaded");
        assert_eq!(Message::parse(&json("error")).for_summary(100, "m"), "");
        assert_eq!(Message::parse(&json("aborted")).take_searchable(), "");
    }

    #[test]
    fn search_text_has_words_calls_and_output_but_no_thinking() {
        let json = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Look:"},
            {"type":"toolCall","id":"c","name":"edit","arguments":{"path":"a.rs","edits":[{"oldText":"x\n"}],"n":3}},
            {"type":"image","mimeType":"image/png","data":"AAAA"}]}"#;
        let mut message = Message::parse(json);
        assert_eq!(message.files().modified.into_iter().collect::<Vec<_>>(), ["a.rs"]);
        assert_eq!(message.take_searchable(), "Look:\nedit\na.rs\nx\n\n3");
    }

    #[test]
    fn our_own_tools_results_are_not_searched() {
        let mut message = Message::parse(r#"{"role":"toolResult","toolName":"lcm_grep","content":"needle"}"#);
        assert_eq!(message.readable(), "needle");
        assert_eq!(message.take_searchable(), "");
    }

    #[test]
    fn the_calls_of_a_script_are_in_its_result() {
        let json = r#"{"role":"toolResult","toolName":"codemode","content":"done","nestedCalls":{"calls":[
            {"id":"c/1","name":"read","status":"ok","arguments":{"path":"a.rs"}},
            {"id":"c/2","name":"edit","status":"error","arguments":{"path":"b.rs"},"error":"no such text"},
            {"id":"c/3","name":"write","status":"unfinished","arguments":{"path":"c.rs"}},
            {"id":"c/4","name":"edit","status":"ok","argumentsBytes":9000},7]}}"#;
        let mut message = Message::parse(json);
        let files = message.files();
        assert!(files.read.into_iter().eq(["a.rs"]) && files.modified.is_empty());
        assert_eq!(message.nested[1].outcome, CallOutcome::Failed("no such text".into()));
        assert_eq!(message.nested[2].outcome, CallOutcome::Unfinished);
        assert!(message.nested[3].arguments.is_null() && message.nested.len() == 5);
        assert_eq!(message.take_searchable(), "done");
    }

    #[test]
    fn no_message_is_rejected() {
        for odd in [
            "[1]",
            "not json",
            r#"{"role":"toolResult","content":7,"nestedCalls":{"calls":9}}"#,
            r#"{"content":7}"#,
            r#"{"role":"oracle","content":[{"type":"smell"}]}"#,
        ] {
            assert!(!Message::parse(odd).readable().is_empty(), "{odd}");
        }
    }

    #[test]
    fn deeply_nested_values_are_read() {
        let deep = format!("{}\"]\\\" needle\"{}", r#"[{"a":"#.repeat(500), "}]".repeat(500));
        let json = format!(
            r#"{{"role":"bashExecution","details":{deep},"output":"hay","excludeFromContext":true}}"#
        );
        let mut message = Message::parse(&json);
        assert!(message.private && message.take_searchable() == "$ \nhay", "{message:?}");
        let message = Message::parse(&format!(r#"{{"role":"user","content":{deep}}}"#));
        assert!(message.role == Role::User && message.readable().contains("needle"), "{message:?}");
    }

    #[test]
    fn serdes_own_keys_have_no_meaning() {
        for key in ["Number", "RawValue"] {
            let odd = format!(r#"{{"$serde_json::private::{key}":"no \"{{\" number"}}"#);
            let message = Message::parse(&format!(r#"{{"role":"user","content":"hay","details":{odd}}}"#));
            assert!(message.role == Role::User && message.readable() == "hay", "{message:?}");
        }
    }

    #[test]
    fn lone_surrogates_become_replacement_characters_and_pairs_stay() {
        let lone = Message::parse(r#"{"role":"user","content":"a\ud83d b\ude00 \\ud83d \ud83d\ude00"}"#);
        assert_eq!(lone.readable(), "a\u{fffd} b\u{fffd} \\ud83d 😀");
    }
}
