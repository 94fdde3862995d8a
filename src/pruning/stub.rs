//! The text of a stub: what it replaces, its size, a glimpse of it, and the call that brings it back.

use serde_json::{Value, json};

use crate::model::{Message, Part};
use crate::text::{count, megabytes, one_line};

/// Characters of a tool's name, of a call's arguments, and of a line of its result.
const NAME: usize = 60;
const ARGUMENTS: usize = 120;
const LINE: usize = 120;

/// The stub of a tool's result, whose short id is `handle` and whose call was `called`.
pub(super) fn of_result(message: &Message, handle: &str, called: Option<&(String, Value)>) -> String {
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
