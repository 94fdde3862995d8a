//! Fuzzes tool calls with any arguments and any cursors.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::{Block, Notepad, call, lcm_describe, lcm_expand, lcm_grep, lcm_note};
use lcm_ingest::Handover;
use lcm_model::dag::{Sources, visible};
use lcm_model::error::{Code, Result};
use lcm_model::ids::Hash;
use lcm_model::{State, Summary, parse_batch};
use lcm_recall::Scope;
use lcm_store::{Batch, NewSummary, PreparedText, Store};

const TOOLS: [&str; 5] = [lcm_grep::NAME, lcm_expand::NAME, lcm_describe::NAME, lcm_note::NAME, "lcm_other"];
/// The most bytes of an answer that a host keeps.
const MOST_BYTES: usize = 50 * 1024;
/// More pages than the history has at a few words per page.
const MOST_PAGES: usize = 500;
/// What the model must never see, and a part of it that a fuzzed query may contain.
const PRIVATE: &str = "kept-from-the-model";
const PART_OF_IT: &str = "-from-the-";

static HISTORY: LazyLock<History> = LazyLock::new(History::new);

/// Calls the tool that the first byte selects, with the rest as arguments; `@0`, `@1` … stand for ids in the
/// history.
pub(crate) fn arguments(bytes: &[u8]) {
    let Some((tool, arguments)) = bytes.split_first() else { return };
    let mut arguments = String::from_utf8_lossy(arguments).into_owned();
    for (at, id) in HISTORY.ids.iter().enumerate() {
        arguments = arguments.replace(&format!("@{at}"), id);
    }
    HISTORY.answer(TOOLS[usize::from(*tool) % TOOLS.len()], &arguments);
}

/// Requests a page at the cursor in `bytes`, after two bytes that select the question. The pages that follow
/// must end.
pub(crate) fn cursors(bytes: &[u8]) {
    let Some(([what, how], cursor)) = bytes.split_first_chunk::<2>() else { return };
    let (tool, mut arguments) = question(usize::from(*what), *how);
    let mut next = Some(String::from_utf8_lossy(cursor).into_owned());
    let mut pages = 0;
    while let Some(cursor) = next {
        arguments["cursor"] = cursor.as_str().into();
        let answer = HISTORY.answer(tool, &arguments.to_string()).unwrap_or_default();
        next = named_cursor(&answer);
        pages += 1;
        assert!(next.as_ref() != Some(&cursor) && pages < MOST_PAGES, "{arguments} leads nowhere");
    }
}

fn question(what: usize, how: u8) -> (&'static str, Value) {
    let has = |bit: u8| how & (1 << bit) > 0;
    let Some(id) = HISTORY.ids.get(what % (HISTORY.ids.len() + 1)) else {
        let (mode, sort) = (
            ["text", "regex"][usize::from(how & 1)],
            ["relevance", "newest", "oldest"][usize::from(how >> 1) % 3],
        );
        let scope = ["messages", "summaries", "all"][usize::from(how >> 3) % 3];
        return (
            lcm_grep::NAME,
            json!({"query": "line", "mode": mode, "sort": sort, "scope": scope, "limit": 1 + (how >> 5)}),
        );
    };
    let mut arguments = json!({"summary_id": id, "max_tokens": 400 + usize::from(how >> 5) * 400, "raw": has(0), "turn": has(1)});
    if has(2) {
        arguments["query"] = "line".into();
    }
    if has(3) {
        arguments["lines"] = "2-90".into();
    }
    if has(4) {
        arguments["depth"] = 2.into();
    }
    (lcm_expand::NAME, arguments)
}

/// The cursor at the end of an answer. No message of the history contains such text.
fn named_cursor(answer: &str) -> Option<String> {
    let (_, rest) = answer.rsplit_once("\"cursor\":\"")?;
    rest.split_once('"').map(|(cursor, _)| cursor.to_owned())
}

/// A session with a summary, and the scope to ask from.
struct History {
    runtime: Runtime,
    store: Store,
    scope: Scope,
    /// Ids of its messages and its summary.
    ids: Vec<String>,
}

impl History {
    #[expect(clippy::unwrap_used, reason = "a fuzz target panics on a broken invariant")]
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let store = Store::open(None, "project", "/project").unwrap();
        let (scope, ids) = runtime.block_on(store.write(fill)).unwrap();
        Self { runtime, store, scope, ids }
    }

    /// The text of an answer; `None` if the call was rejected with a sentence.
    fn answer(&self, tool: &str, arguments: &str) -> Option<String> {
        let (notepad, cancel) = (Notepad::default(), CancellationToken::new());
        let call = call(&self.store, &self.scope, tool, arguments, Some(&notepad), &cancel);
        match self.runtime.block_on(call) {
            Ok(blocks) => {
                let texts = blocks.iter().filter_map(|block| {
                    if let Block::Text(text) = block { Some(text.as_str()) } else { None }
                });
                let text: String = texts.collect();
                assert!(text.len() <= MOST_BYTES, "{tool} {arguments} gave {} bytes", text.len());
                assert!(
                    arguments.contains(PART_OF_IT) || !text.contains(PRIVATE),
                    "{tool} {arguments} shows the private text"
                );
                Some(text)
            }
            Err(error) => {
                let said = error.to_string();
                assert_eq!(error.code(), Code::Invalid, "{tool} {arguments}: {said}");
                assert!(said.len() < 2_000, "{tool} {arguments}: {said}");
                None
            }
        }
    }
}

/// Stores the session and a leaf summary of its first messages.
fn fill(batch: &Batch<'_>) -> Result<(Scope, Vec<String>)> {
    let conversation = batch.messages().conversation_row("one", None, None, 0)?;
    let entries = session();
    let leaf = format!("e{}", entries.len());
    let handover =
        Handover { entries: parse_batch(&Value::from(entries).to_string())?, ..Handover::default() };
    handover.prepare().store(batch, conversation)?;
    let branch = visible(&batch.messages().branch(conversation, &leaf)?);
    let (rows, hashes): (Vec<_>, Vec<_>) =
        branch.iter().take(3).map(|message| (message.seen.id, message.seen.hash)).unzip();
    let text = "The port.\nIt is 8443; a line of the log says so.";
    let mut summary = Summary {
        hash: Hash::ROOT,
        depth: 0,
        text: text.into(),
        tokens: 20,
        state: State::Ok,
        model: None,
        prompt_version: 1,
        usage: None,
        created_at: 1_763_700_000_000,
        quotes: Vec::new(),
    };
    summary.hash = summary.identity(&hashes);
    let handle = summary.hash.summary_handle();
    let (sources, prepared) = (Sources::Messages(rows), PreparedText::of(text));
    batch.summaries().add_summary(&NewSummary { summary, sources, prepared }, None, false)?;
    let mut ids: Vec<String> = branch.iter().map(|message| message.original.message_handle()).collect();
    ids.push(handle);
    Ok((Scope::at(conversation, Some(leaf)), ids))
}

/// A few turns: one with a long result and an image, one hidden from the model.
fn session() -> Vec<Value> {
    let log: String =
        (0..120).map(|n| format!("line {n}: значение «日本» 😀 </content> not found\n")).collect();
    let call = |name: &str, arguments: Value| json!([{"type": "toolCall", "id": name, "name": name, "arguments": arguments}]);
    let messages = [
        json!({"role": "user", "content": "The port is 8443. Never push to main."}),
        json!({"role": "assistant", "content": call("bash", json!({"command": "cat log"})), "stopReason": "toolUse"}),
        json!({"role": "toolResult", "toolCallId": "bash", "toolName": "bash", "isError": false,
            "content": [{"type": "text", "text": log}, {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}),
        json!({"role": "bashExecution", "command": "env", "output": PRIVATE, "excludeFromContext": true}),
        json!({"role": "user", "content": "Look at the line of src/main.rs."}),
        json!({"role": "assistant", "content": call("read", json!({"path": "src/main.rs"})), "stopReason": "toolUse"}),
        json!({"role": "toolResult", "toolCallId": "read", "toolName": "read", "isError": true, "content": [{"type": "text", "text": "no such line"}]}),
        json!({"role": "user", "content": "What now?"}),
    ];
    let entry = |(at, message): (usize, Value)| {
        let parent = if at > 0 { format!("e{at}").into() } else { Value::Null };
        json!({"type": "message", "id": format!("e{}", at + 1), "parentId": parent, "timestamp": "2026-11-20T09:12:00.000Z", "message": message})
    };
    messages.into_iter().enumerate().map(entry).collect()
}
