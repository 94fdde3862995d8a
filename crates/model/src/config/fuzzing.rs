//! Fuzzes settings files and variables.

use std::collections::HashMap;
use std::fs;

use serde_json::{Value, json};

use super::edit::edited;
use super::{DEFINITIONS, Kind, SettingSources, Settings, load};

/// Separates the file from the variables, which are `NAME=value` lines.
const BETWEEN: &str = "\n%\n";

/// Loads settings, which must stay within bounds, and edits one value of the file, which must change nothing
/// else.
pub fn settings(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (file, variables) = text.split_once(BETWEEN).unwrap_or((&text, ""));
    let environment = variables.lines().filter_map(|line| line.split_once('='));
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    is_within_bounds(&loaded(file, environment));
    for value in [Some(&json!(3)), None] {
        if let Ok(after) = edited(file, &["maxDepth"], value) {
            is_the_only_change(file, &after, value.is_some());
        }
    }
}

fn loaded(file: &str, environment: HashMap<String, String>) -> Settings {
    let folder = std::env::temp_dir().join(format!("lcm-fuzzing-{}-settings", std::process::id()));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join("settings.json"), file));
    assert!(written.is_ok(), "{written:?}");
    let sources = SettingSources {
        agent_dir: folder.clone(),
        cwd: folder.clone(),
        environment,
        ..SettingSources::default()
    };
    let settings = load(&sources).settings;
    let _ = fs::remove_dir_all(folder);
    settings
}

fn is_within_bounds(settings: &Settings) {
    let settings = json!(settings);
    for definition in DEFINITIONS {
        if let Kind::Number { range, .. } = &definition.kind {
            let value = settings[definition.key].as_u64().and_then(|value| usize::try_from(value).ok());
            assert!(value.is_some_and(|value| range.contains(&value)), "{} is {value:?}", definition.key);
        }
    }
}

fn is_the_only_change(before: &str, after: &str, is_set: bool) {
    // An empty file counts as one without settings.
    let read = |text: &str| match text.trim_start_matches('\u{feff}').trim() {
        "" => Ok(json!({})),
        text => serde_json::from_str::<Value>(text),
    };
    // What serde_json reads as its own number type can't be compared.
    let Ok(mut expected) = read(before) else { return };
    let found = read(after).unwrap_or_default();
    let Some(top) = expected.as_object_mut() else { return };
    if is_set {
        top.entry("lcm").or_insert(json!({}));
    }
    if let Some(lcm) = top.get_mut("lcm").and_then(Value::as_object_mut) {
        match is_set {
            true => lcm.insert("maxDepth".into(), json!(3)),
            false => lcm.remove("maxDepth"),
        };
    }
    assert_eq!(expected, found, "{before:?} became {after:?}");
}
