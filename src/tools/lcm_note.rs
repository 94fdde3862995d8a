//! `lcm_note`: the model's notes, which every block shows verbatim.

use std::sync::Mutex;

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::Block;
use super::parameters::{checked, schema};
use lcm_model::error::{Error, Result};
use lcm_model::locks::lock;
use lcm_model::text::{count, grouped};
use lcm_model::{Change, MOST_TOKENS, NOTE_TOOL, Notes, read_json};
use lcm_recall::Scope;
use lcm_store::Store;

pub(super) const NAME: &str = NOTE_TOOL;

/// The arguments of a call. The description is short, because every request carries it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "calls are interpreted from their stored form")]
struct NoteParameters {
    /// text: add; note + text: rewrite; note + old + text: replace that part; note: remove.
    changes: Vec<NoteArguments>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "calls are interpreted from their stored form")]
struct NoteArguments {
    note: Option<usize>,
    old: Option<String>,
    text: Option<String>,
}

/// Notes as changed by calls whose results Pi does not show yet: one message may contain several calls.
#[derive(Debug, Default)]
pub struct Notepad(Mutex<Option<(Option<String>, Notes)>>);

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Keep notes",
        "description": "Notes that every compaction keeps word for word: plan, decisions, findings. No passwords.",
        // Each number follows the one before.
        "executionMode": "sequential",
        "parameters": schema::<NoteParameters>(),
    })
}

pub(super) async fn answer(
    store: &Store,
    scope: &Scope,
    arguments: &str,
    notepad: &Notepad,
) -> Result<Vec<Block>> {
    checked::<NoteParameters>(NAME, arguments)?;
    let named = |error: Error| Error::invalid(format!("{NAME}: {error}"));
    let changes = Change::read(&read_json(arguments).unwrap_or_default()).map_err(named)?;
    let known = lock(&notepad.0).clone().filter(|(leaf, _)| *leaf == scope.leaf);
    let mut notes = match known {
        Some((_, notes)) => notes,
        None => stored(store, scope).await?,
    };
    let numbers = notes.apply_all(&changes).map_err(named)?;
    let done = |word: &str, is: fn(&Change) -> bool| {
        let of = changes.iter().zip(&numbers).filter(|(change, _)| is(change));
        let of: Vec<String> = of.map(|(_, number)| number.to_string()).collect();
        (!of.is_empty()).then(|| format!("{word} {}. ", of.join(", ")))
    };
    // Additions come first: their number is parsed from this text.
    let done = [
        done("Added", |change| matches!(change, Change::Add { .. })),
        done("Changed", |change| matches!(change, Change::Replace { .. } | Change::Edit { .. })),
        done("Removed", |change| matches!(change, Change::Remove { .. } | Change::Clear)),
    ];
    let done: String = done.into_iter().flatten().collect();
    let (many, tokens, most) = (count(notes.list().len(), "note"), notes.tokens(), grouped(MOST_TOKENS));
    *lock(&notepad.0) = Some((scope.leaf.clone(), notes));
    Ok(vec![Block::Text(format!("{done}{many}, {} of {most} tokens.", grouped(tokens)))])
}

/// The notes of the branch, as stored.
pub async fn stored(store: &Store, scope: &Scope) -> Result<Notes> {
    let Some(leaf) = scope.leaf.clone() else { return Ok(Notes::default()) };
    let conversation = scope.conversation;
    store.read(move |view| view.messages().notes(conversation, &leaf)).await
}
