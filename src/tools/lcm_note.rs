//! `lcm_note`: a few short notes that every block shows.

use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Block;
use super::parameters::{self, read, schema};
use crate::error::{Error, Result};
use crate::model::{Change, MOST_CHARACTERS, MOST_NOTES, MOST_TOKENS, NOTE_TOOL, Notes, read_json};
use crate::recall::Scope;
use crate::store::Store;
use crate::text::count;

pub(super) const NAME: &str = NOTE_TOOL;

/// What a call says.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "what a call means is read as it is from a stored one")]
struct Parameters {
    /// add a note; replace or remove one.
    action: Action,
    /// The note to replace or remove, by the number it was given.
    #[serde(default, deserialize_with = "parameters::count")]
    number: Option<usize>,
    /// What the note is to say: one line of at most 200 characters.
    #[serde(default, deserialize_with = "parameters::word")]
    text: Option<String>,
}

/// What to do.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Add,
    Replace,
    Remove,
}

/// Notes as calls have changed them whose results Pi does not show yet: several calls may stand in one message.
#[derive(Debug, Default)]
pub struct Notepad(Mutex<Option<(Option<String>, Notes)>>);

impl Notepad {
    fn lock(&self) -> MutexGuard<'_, Option<(Option<String>, Notes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, leaf: Option<&String>) -> Option<Notes> {
        self.lock().as_ref().filter(|(at, _)| at.as_ref() == leaf).map(|(_, notes)| notes.clone())
    }
}

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Keep a note",
        "description": format!(
            "Keep a few short notes that stand word for word before you after every compaction, until you remove them: what the \
             user wants for good, what was decided, what is still to be done. At most {MOST_NOTES} notes of {MOST_CHARACTERS} \
             characters, {MOST_TOKENS} tokens together, so replace and remove what is no longer so. No passwords or keys."
        ),
        "promptSnippet": "Keep short notes that survive compaction",
        // Each is numbered after the one before.
        "executionMode": "sequential",
        "parameters": schema::<Parameters>(),
    })
}

pub(super) async fn answer(
    store: &Store,
    scope: &Scope,
    arguments: &str,
    notepad: &Notepad,
) -> Result<Vec<Block>> {
    let _: Parameters = read(NAME, arguments)?;
    let named = |error: Error| Error::invalid(format!("{NAME}: {error}"));
    let change = Change::read(&read_json(arguments).unwrap_or_default()).map_err(named)?;
    let mut notes = match (notepad.at(scope.leaf.as_ref()), scope.leaf.clone()) {
        (Some(notes), _) => notes,
        (None, None) => Notes::default(),
        (None, Some(leaf)) => {
            let conversation = scope.conversation;
            store.read(move |view| view.notes(conversation, &leaf)).await?
        }
    };
    let number = notes.apply(&change, false).map_err(named)?;
    let done = match change {
        Change::Add { .. } => "is kept",
        Change::Replace { .. } => "was replaced",
        Change::Remove { .. } | Change::Clear => "was removed",
    };
    let (many, tokens) = (count(notes.list().len(), "note"), notes.tokens());
    *notepad.lock() = Some((scope.leaf.clone(), notes));
    // The first number is the note's: it is read again from here.
    Ok(vec![Block::Text(format!(
        "Note {number} {done}. {many} of {MOST_NOTES}, {tokens} of {MOST_TOKENS} tokens."
    ))])
}
