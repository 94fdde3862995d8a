//! Reads [`Settings`] from files and the environment, and reports what is invalid.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::definitions::variable;
use super::{
    DEFINITIONS, Definition, Guidance, PiCompaction, SETTINGS_FILE, Settings, default_values, value,
};
use crate::error::{Error, Result};
use crate::files;
use crate::text::{nearest, one_line};

/// Where a setting's value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Nothing sets it.
    #[default]
    Default,
    /// Pi's global settings.
    Global,
    /// The project's settings.
    Project,
    /// An environment variable.
    Environment,
}

/// The sources of settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingSources {
    /// Pi's agent folder, with the global `settings.json`.
    pub agent_dir: PathBuf,
    /// The project's folder, with `.pi/settings.json`.
    pub cwd: PathBuf,
    /// Whether the user trusts the project. Otherwise its settings are not read.
    pub project_trusted: bool,
    /// `LCM_*` variables.
    #[serde(default)]
    pub environment: HashMap<String, String>,
}

/// The settings after loading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loaded {
    /// The effective values.
    pub settings: Settings,
    /// What the user should know: every unknown name and invalid value, one per line.
    pub notice: Option<String>,
}

/// The effective values with their origins, and the problems found.
#[derive(Default)]
pub(super) struct Gathered {
    pub settings: Settings,
    /// By setting, as in JSON.
    pub values: Map<String, Value>,
    /// By setting; a missing one has its default.
    pub origins: HashMap<&'static str, Origin>,
    pub problems: Vec<String>,
}

impl SettingSources {
    /// The file of a source, if it is one.
    pub fn file(&self, origin: Origin) -> Option<PathBuf> {
        match origin {
            Origin::Global => Some(self.agent_dir.join("settings.json")),
            Origin::Project => Some(self.cwd.join(".pi").join("settings.json")),
            Origin::Default | Origin::Environment => None,
        }
    }

    /// Checks that the user's own settings can be read: what a mistake in the file hides may be whom to encrypt to.
    ///
    /// # Errors
    /// When they can't.
    pub fn check(&self) -> Result<()> {
        let path = self.file(Origin::Global).unwrap_or_default();
        json_in(&path).map(drop).map_err(|error| {
            Error::invalid(format!("{} can't be read: {error}: fix it first", path.display()))
        })
    }
}

/// The JSON of one of Pi's settings files; `None` if there is none.
pub(super) fn json_in(path: &Path) -> io::Result<Option<Value>> {
    match files::read_text(path, SETTINGS_FILE) {
        Ok(json) => Ok(Some(serde_json::from_str(json.trim_start_matches('\u{feff}'))?)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the settings. A missing or invalid value leaves the one of the next weaker source.
pub fn load(sources: &SettingSources) -> Loaded {
    let Gathered { settings, problems, .. } = gather(sources);
    Loaded { settings, notice: notice(&problems) }
}

/// The same with the origins of the values. The strongest source comes last.
pub(super) fn gather(sources: &SettingSources) -> Gathered {
    let mut found = Gathered { values: default_values(&sources.agent_dir), ..Gathered::default() };
    let mut pi = PiCompaction::default();
    for (origin, base) in [(Origin::Global, &sources.agent_dir), (Origin::Project, &sources.cwd)] {
        let path = sources.file(origin).filter(|_| origin != Origin::Project || sources.project_trusted);
        let Some((path, all)) = path.and_then(|path| found.read(&path).map(|all| (path, all))) else {
            continue;
        };
        pi.add(&all["compaction"]);
        let place = format!("in {}", path.display());
        match &all["lcm"] {
            Value::Null => {}
            Value::Object(values) => found.add(values.iter(), &place, base, origin),
            other => {
                let shown = one_line(&other.to_string(), 40);
                found.problems.push(format!("lcm {place} is {shown}, but must be an object of settings"));
            }
        }
    }
    // Sorted by name, so that messages are always the same.
    let set = sources.environment.iter().filter(|(_, text)| !text.trim().is_empty());
    let set: BTreeMap<&String, Value> = set
        .map(|(name, text)| {
            let definition = definition(name, Origin::Environment);
            (name, definition.map_or(Value::Null, |definition| value::from_text(definition, text)))
        })
        .collect();
    let set = set.iter().map(|(name, value)| (*name, value));
    found.add(set, "in the environment", &sources.cwd, Origin::Environment);
    found.settings = Settings { pi, ..Settings::of(&found.values) };
    found.settings.guidance = Guidance::read(sources, &found.settings, &mut found.problems);
    found
}

impl Gathered {
    /// The JSON of one of Pi's settings files.
    fn read(&mut self, path: &Path) -> Option<Value> {
        json_in(path).unwrap_or_else(|error| {
            // Pi itself reports a file that is not JSON.
            if !matches!(error.get_ref(), Some(why) if why.is::<serde_json::Error>()) {
                self.problems.push(format!("{} can't be read: {error}", path.display()));
            }
            None
        })
    }

    /// Adds the values of a source, by the names the user wrote; relative paths start at `base`.
    fn add<'v>(
        &mut self,
        values: impl Iterator<Item = (&'v String, &'v Value)>,
        place: &str,
        base: &Path,
        origin: Origin,
    ) {
        let mut values: Vec<_> =
            values.map(|(name, value)| (name, definition(name, origin), value)).collect();
        // If a setting occurs under several spellings, its proper name counts.
        values.sort_by_key(|(name, definition, _)| {
            definition.is_none_or(|definition| spelled(definition.key, origin) == **name)
        });
        for (name, definition, value) in values {
            let Some(definition) = definition else {
                let meant = meant(name, origin);
                self.problems.push(format!("{name} {place} is not a setting{meant}"));
                continue;
            };
            if origin == Origin::Project && !is_of_project(definition, value) {
                let only = "only Pi's global settings can say so";
                self.problems.push(format!("{name} {place} is left out: {only}"));
                continue;
            }
            if let Some(value) = value::accepted(definition, value, base) {
                self.origins.insert(definition.key, origin);
                self.values.insert(definition.key.to_owned(), value);
            } else {
                let (shown, held) = (one_line(&value.to_string(), 40), &self.values[definition.key]);
                let expected = definition.expected();
                self.problems
                    .push(format!("{name} {place} is {shown}, but must be {expected}; using {held}"));
            }
        }
    }
}

/// Whether a project may set this value: it can't choose where its users' histories go, nor who can read them there.
pub(super) fn is_of_project(definition: &Definition, value: &Value) -> bool {
    match definition.key {
        "syncTarget" => value == "",
        "syncRedact" => value != false,
        "syncRecipients" => false,
        _ => true,
    }
}

/// The setting of this name in such a source.
fn definition(name: &str, origin: Origin) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.names().any(|known| spelled(known, origin) == name))
}

/// A setting's name in such a source.
fn spelled(key: &str, origin: Origin) -> String {
    if origin == Origin::Environment { variable(key) } else { key.to_owned() }
}

impl PiCompaction {
    /// Reads Pi's setting `compaction`. What it lacks has Pi's default.
    pub fn of(compaction: &Value) -> Self {
        let mut pi = Self::default();
        pi.add(compaction);
        pi
    }

    /// Adds the setting's values of a stronger source.
    fn add(&mut self, compaction: &Value) {
        let number = |values: &Value, key: &str| value::number(&values[key]);
        let [reserve, keep] = ["reserveTokens", "keepRecentTokens"];
        self.enabled = compaction["enabled"].as_bool().unwrap_or(self.enabled);
        self.reserve_tokens = number(compaction, reserve).unwrap_or(self.reserve_tokens);
        self.keep_recent_tokens = number(compaction, keep).unwrap_or(self.keep_recent_tokens);
        for (model, values) in compaction["modelOverrides"].as_object().into_iter().flatten() {
            let found = self.model_overrides.entry(model.clone()).or_default();
            found.reserve_tokens = number(values, reserve).or(found.reserve_tokens);
            found.keep_recent_tokens = number(values, keep).or(found.keep_recent_tokens);
        }
    }
}

/// `: did you mean …?`, if a setting has a similar name.
pub(super) fn meant(name: &str, origin: Origin) -> String {
    let names: Vec<String> = DEFINITIONS.iter().map(|definition| spelled(definition.key, origin)).collect();
    let meant = nearest(name, names.iter().map(String::as_str));
    meant.map_or_else(String::new, |known| format!(": did you mean {known}?"))
}

fn notice(problems: &[String]) -> Option<String> {
    match problems {
        [] => None,
        [one] => {
            let end = if one.ends_with('?') { "" } else { "." };
            Some(format!("a setting is invalid: {one}{end}"))
        }
        many => Some(format!("{} settings are invalid:\n- {}", many.len(), many.join("\n- "))),
    }
}

#[cfg(test)]
mod tests;
