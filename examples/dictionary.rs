//! Makes a dictionary for packing messages: `cargo run --example dictionary -- OUT BYTES FILE…`
//!
//! A message of a kilobyte is mostly what every other message has too: Pi's field names, the names of tools, models and
//! stop reasons, and the words that code and talk about code are made of. The samples are our own: the demo's session
//! (`.jsonl`), and this repository's files, each cut into pieces and put where a session has such text. No user's text is
//! ever among them.
//!
//! A dictionary that was shipped never changes, or what it packed can't be read any more: a better one gets a name and a
//! coding of its own in `crates/store/src/messages/codec.rs`.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::fs;

use serde_json::{Value, json};

/// As much of a file as one tool result or edit has.
const PIECE: usize = 2_500;
/// No more pieces than this of one file, or long files would outweigh all others.
const PIECES: usize = 5;
/// The wire formats and models that sessions name most.
const MODELS: [(&str, &str, &str); 6] = [
    ("anthropic-messages", "anthropic", "claude-sonnet-4-5"),
    ("anthropic-messages", "anthropic", "claude-opus-4-5"),
    ("openai-completions", "openrouter", "z-ai/glm-4.6"),
    ("openai-responses", "openai", "gpt-5.1-codex"),
    ("openai-codex-responses", "openai-codex", "gpt-5.2-codex"),
    ("google-generative-ai", "google", "gemini-3-pro-preview"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(out), Some(bytes)) = (arguments.next(), arguments.next()) else {
        return Err("usage: cargo run --example dictionary -- OUT BYTES FILE…".into());
    };
    let mut samples: Vec<String> = Vec::new();
    for file in arguments {
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        match file.strip_suffix(".jsonl") {
            Some(_) => samples.extend(messages(&text)?),
            None => samples.extend(pieces(&file, &text)),
        }
    }
    let dictionary = zstd::dict::from_samples(&samples, bytes.parse()?)?;
    fs::write(&out, &dictionary)?;
    let total: usize = samples.iter().map(String::len).sum();
    println!("{out}: {} bytes from {} samples of {total} bytes", dictionary.len(), samples.len());
    Ok(())
}

/// The messages of a session file, said by one model after the other.
fn messages(session: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let mut messages = Vec::new();
    for (at, line) in session.lines().enumerate() {
        let entry: Value = serde_json::from_str(line)?;
        let Some(message) = entry.get("message") else { continue };
        messages.push(said_by(at, message.clone()).to_string());
    }
    Ok(messages)
}

fn said_by(at: usize, mut message: Value) -> Value {
    let (api, provider, model) = MODELS[at % MODELS.len()];
    let is_anthropic = provider == "anthropic";
    if message.get("api").is_some() {
        message["api"] = api.into();
        message["provider"] = provider.into();
        message["model"] = model.into();
    }
    let rename = |id: &mut Value| {
        if let (true, Some(name)) = (is_anthropic, id.as_str()) {
            *id = name.replace("call_", "toolu_01").into();
        }
    };
    if let Some(id) = message.get_mut("toolCallId") {
        rename(id);
    }
    for block in message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(id) = block.get_mut("id") {
            rename(id);
        }
    }
    message
}

/// A file as it stands in sessions: read, printed, written, changed.
fn pieces(name: &str, text: &str) -> Vec<String> {
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() && pieces.len() < PIECES {
        let end = rest.floor_char_boundary(PIECE);
        let (piece, after) = rest.split_at(end);
        rest = after;
        pieces.push(piece);
    }
    pieces
        .into_iter()
        .enumerate()
        .map(|(at, piece)| standing(at + name.len(), name, piece).to_string())
        .collect()
}

fn standing(at: usize, path: &str, text: &str) -> Value {
    let id = format!("toolu_01{at:022}");
    let result = |tool: &str, more: Value| {
        let mut message = json!({
            "role": "toolResult", "toolCallId": id, "toolName": tool, "content": [{"type": "text", "text": text}],
            "isError": false, "timestamp": 1_763_629_920_000_usize + 61_337 * at
        });
        if !more.is_null() {
            message["details"] = more;
        }
        message
    };
    let call = |tool: &str, arguments: Value| {
        said_by(
            at,
            json!({
                "role": "assistant", "content": [{"type": "toolCall", "id": id, "name": tool, "arguments": arguments}],
                "api": "", "provider": "", "model": "",
                "usage": {"input": 3, "output": 101 + at, "cacheRead": 37_808, "cacheWrite": 492, "totalTokens": 38_404 + at,
                          "cost": {"input": 0.000_009, "output": 0.001_515, "cacheRead": 0.011_342, "cacheWrite": 0.001_845,
                                   "total": 0.014_711}},
                "stopReason": "toolUse", "timestamp": 1_763_629_920_000_usize + 61_337 * at
            }),
        )
    };
    let (old, new) = text.split_at(text.floor_char_boundary(text.len() / 2));
    match at % 6 {
        0 | 1 => result("read", Value::Null),
        2 => result("bash", Value::Null),
        3 => call("edit", json!({"path": path, "oldText": old, "newText": new})),
        4 => call("write", json!({"path": path, "content": text})),
        _ => result("edit", json!({"diff": numbered(text), "firstChangedLine": at})),
    }
}

/// Lines as an edit's diff shows them.
fn numbered(text: &str) -> String {
    let lines = text.lines().zip(1..).map(|(line, n)| match n % 5 {
        0 => format!("+{n:>3} {line}"),
        1 => format!("-{n:>3} {line}"),
        _ => format!(" {n:>3} {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}
