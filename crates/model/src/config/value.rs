//! Parses one value, from JSON or from the text of an environment variable.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Definition, Kind};
use crate::ids::AGENTS;

/// The session's own model, in a list of models.
const OWN_MODEL: &str = "session";

/// The form of `value` that is kept; relative paths start at `base`. `None` if the setting does not accept it.
pub(super) fn accepted(definition: &Definition, value: &Value, base: &Path) -> Option<Value> {
    Some(match &definition.kind {
        Kind::Switch { .. } => value.as_bool()?.into(),
        Kind::Number { range, .. } => number(value).filter(|n| range.contains(n))?.into(),
        Kind::Text => {
            let text = value.as_str()?.trim();
            let looks_like_path = text.starts_with(['~', '/', '.', '\\']) || text.ends_with(".md");
            let file = (looks_like_path && !text.contains('\n')).then(|| at_home(text, base)).flatten();
            file.map_or_else(|| text.into(), |file| file.to_string_lossy().into())
        }
        Kind::Folder { .. } => {
            let path = value.as_str().map(str::trim).filter(|path| !path.is_empty())?;
            at_home(path, base)?.to_string_lossy().into()
        }
        Kind::Word { words } => words.iter().find(|word| value == **word).copied()?.into(),
        Kind::Names { read, .. } => {
            let names = match value {
                // A single name needs no list.
                Value::String(names) => listed(names),
                Value::Array(names) => names.clone(),
                name => vec![name.clone()],
            };
            names.iter().map(read).collect::<Option<Vec<_>>>()?.into()
        }
    })
}

/// Converts the text of an environment variable to JSON. Invalid text is kept, to be reported.
pub(super) fn from_text(definition: &Definition, text: &str) -> Value {
    let text = text.trim();
    match definition.kind {
        Kind::Switch { .. } => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Value::Bool(true),
            "false" | "0" | "no" | "off" => Value::Bool(false),
            _ => text.into(),
        },
        Kind::Number { .. } => text.replace('_', "").parse::<u64>().map_or_else(|_| text.into(), Value::from),
        Kind::Word { .. } => text.to_ascii_lowercase().into(),
        Kind::Text | Kind::Folder { .. } | Kind::Names { .. } => text.into(),
    }
}

/// Names that commas separate; `[]` is none, as in a file.
pub fn listed(names: &str) -> Vec<Value> {
    if names.trim() == "[]" {
        return Vec::new();
    }
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Value::from).collect()
}

/// JavaScript's largest integer without rounding; Pi takes no larger ones, and they would change on their way
/// through the shim.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// A whole number in any notation of JSON: for Pi, `1e5` is one.
pub(super) fn number(value: &Value) -> Option<usize> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=LARGEST).contains(number))?;
    format!("{number:.0}").parse().ok()
}

/// A path that may start with `~` for the home folder, or else starts at `base`; `None` without a home folder.
pub fn at_home(path: &str, base: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\']));
    match rest {
        Some(rest) => Some(std::env::home_dir()?.join(rest.trim_start_matches(['/', '\\']))),
        None => Some(base.join(path)),
    }
}

/// An agent whose sessions can be stored.
pub(super) fn agent(value: &Value) -> Option<String> {
    let name = value.as_str()?.trim();
    AGENTS.contains(&name).then(|| name.to_owned())
}

/// Whom packs are encrypted to. Anything is accepted: without what was meant, they would be sent as they are.
pub(super) fn recipient(value: &Value) -> Option<String> {
    Some(value.as_str().map_or_else(|| value.to_string(), |key| key.trim().to_owned()))
}

/// `"provider/id"` or `{"provider", "id"}`; an id may contain slashes. `"session"` is the session's own.
pub(super) fn model(value: &Value) -> Option<String> {
    if value.as_str().is_some_and(|word| word.trim() == OWN_MODEL) {
        return Some(OWN_MODEL.to_owned());
    }
    let (provider, id) = match value {
        Value::String(name) => name.split_once('/')?,
        other => (other["provider"].as_str()?, other["id"].as_str()?),
    };
    let (provider, id) = (provider.trim(), id.trim());
    (!provider.is_empty() && !id.is_empty()).then(|| format!("{provider}/{id}"))
}
