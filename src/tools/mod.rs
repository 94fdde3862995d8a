//! The tools: their descriptions, parameters and answers for the model.
//!
//! Arguments are read leniently: unknown properties are ignored, which the answer says, numbers may be strings, limits are clamped.
//! An invalid call is answered with one sentence on what would be right. Everything in [`specs`] is constant,
//! because a change would invalidate the host's cached prompt.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod lcm_describe;
mod lcm_expand;
mod lcm_grep;
mod lcm_note;
mod lines;
mod parameters;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use lcm_grep::{
    NAME as GREP, absent, as_words, at_that_time, bounds, contradictions, counted, given, if_unfiltered,
    left_out, named, only_similar, totals_as_data, unfiltered, unquoted, ways, widened,
};
use lcm_model::error::{Error, Result};
use lcm_model::text::one_line;
use lcm_model::{RECALL_TOOLS, read_json};
pub use lcm_note::{Notepad, stored as stored_notes};
use lcm_recall::{Image, Scope};
use lcm_store::tasks::go_on;
use lcm_store::{Store, View};
pub use lines::{in_marks, marked};

/// A part of an answer, as Pi shows it to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Text.
    Text(String),
    /// A stored image.
    Image(Image),
    /// The whole answer for programs, as the tool's `outputSchema` describes it.
    Data(Value),
}

/// How a model finds ids.
const IDS: &str = "lcm_grep and lcm_describe show ids";

/// How a tool that only reads answers a call.
type ToolAnswer = fn(&View<'_>, &Scope, &str, &CancellationToken) -> Result<Vec<Block>>;

/// The tools as Pi registers them; the fourth only if `notes` are enabled.
pub fn specs(notes: bool) -> Value {
    let mut specs = vec![lcm_grep::spec(), lcm_expand::spec(), lcm_describe::spec()];
    specs.extend(notes.then(lcm_note::spec));
    json!(specs)
}

/// Answers a call of the tool `name` with `arguments`, a JSON object, seen from `scope`. Notes are enabled if
/// there is a `notepad`.
///
/// # Errors
/// [`lcm_model::error::Code::Invalid`] with what is wrong with the call, worded for the model;
/// [`lcm_model::error::Code::Cancelled`]; or that the store can't be read.
pub async fn call(
    store: &Store,
    scope: &Scope,
    name: &str,
    arguments: &str,
    notepad: Option<&Notepad>,
    cancel: &CancellationToken,
) -> Result<Vec<Block>> {
    go_on(cancel)?;
    let answer: ToolAnswer = match (name, notepad) {
        (lcm_grep::NAME, _) => lcm_grep::answer,
        (lcm_expand::NAME, _) => lcm_expand::answer,
        (lcm_describe::NAME, _) => lcm_describe::answer,
        (lcm_note::NAME, Some(notepad)) => return lcm_note::answer(store, scope, arguments, notepad).await,
        (lcm_note::NAME, None) => {
            return Err(Error::invalid("notes are off: the user can turn them on with the setting `notes`"));
        }
        (other, _) => return Err(unknown(other)),
    };
    let ignored = ignored(name, arguments);
    let (scope, arguments, cancel) = (scope.clone(), arguments.to_owned(), cancel.clone());
    let mut blocks = store.read(move |view| answer(view, &scope, &arguments, &cancel)).await?;
    if ignored.is_empty() {
        return Ok(blocks);
    }
    for block in &mut blocks {
        if let Block::Data(data) = block
            && name == GREP
        {
            data["note"] = format!("{ignored} {}", data["note"].as_str().unwrap_or_default()).trim().into();
        }
    }
    // Before the answer, which is to something else than was meant.
    if let Some(Block::Text(text)) = blocks.first_mut() {
        text.insert_str(0, &format!("{ignored}\n"));
    }
    Ok(blocks)
}

/// Which arguments the tool `name` does not have: a filter by another name would find too much, without a word.
fn ignored(name: &str, arguments: &str) -> String {
    let specs = specs(false);
    let spec = specs.as_array().into_iter().flatten().find(|spec| spec["name"] == name);
    let known = spec.and_then(|spec| spec["parameters"]["properties"].as_object());
    let (Some(known), Ok(Value::Object(given))) = (known, read_json(arguments)) else { return String::new() };
    let unknown = given.iter().filter(|(key, value)| !known.contains_key(*key) && !value.is_null());
    let unknown: Vec<String> = unknown.map(|(key, _)| format!("`{}`", one_line(key, 40))).take(3).collect();
    if unknown.is_empty() {
        return String::new();
    }
    let known: Vec<&str> = known.keys().map(String::as_str).collect();
    // Such as `id` for `summary_id`.
    let is_part = |known: &&&str| given.keys().any(|key| known.ends_with(&format!("_{key}")));
    let meant = known.iter().find(is_part).map(|known| format!(" Did you mean {known}?")).unwrap_or_default();
    format!("Ignored: {}.{meant} {name} takes {}.", unknown.join(", "), known.join(", "))
}

/// The error for a call of `name`, which is not a tool.
pub fn unknown(name: &str) -> Error {
    let name = one_line(name, 60);
    Error::invalid(format!("there is no tool `{name}`: there are {}", RECALL_TOOLS.join(", ")))
}
