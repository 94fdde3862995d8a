//! Reads [`Settings`] from files and the environment, and reports what is invalid.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::definitions::variable;
use super::value;
use super::{DEFINITIONS, Definition, Guidance, PiCompaction, SETTINGS_FILE, Settings, default_values};
use crate::files;
use crate::text::one_line;

/// The similarity from which a name counts as a typo of a setting's, 1 being equal.
const ALIKE: f64 = 0.8;

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
pub struct Sources {
    /// Pi's agent folder, with the global `settings.json`.
    pub agent_dir: PathBuf,
    /// The project's folder, with `.pi/settings.json`.
    pub cwd: PathBuf,
    /// Whether the user trusts the project. Otherwise its settings are not read.
    pub project_trusted: bool,
    /// Whether this Pi supports `compaction.modelOverrides`.
    #[serde(default)]
    pub model_overrides: bool,
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

/// A source and its values.
struct Layer {
    /// In words: `in <file>`, `in the environment`.
    place: String,
    /// By the name the user wrote.
    values: Vec<(String, Value)>,
    /// Where relative paths start.
    base: PathBuf,
    origin: Origin,
}

/// The effective values with their origins, and the problems found.
pub(super) struct Gathered {
    pub settings: Settings,
    /// By setting, as in JSON.
    pub values: Map<String, Value>,
    /// By setting; a missing one has its default.
    pub origins: HashMap<&'static str, Origin>,
    pub problems: Vec<String>,
}

impl Sources {
    /// The file of a source, if it is one.
    pub fn file(&self, origin: Origin) -> Option<PathBuf> {
        match origin {
            Origin::Global => Some(self.agent_dir.join("settings.json")),
            Origin::Project => Some(self.cwd.join(".pi").join("settings.json")),
            Origin::Default | Origin::Environment => None,
        }
    }
}

/// Reads the settings. A missing or invalid value leaves the one of the next weaker source.
pub fn load(sources: &Sources) -> Loaded {
    let Gathered { settings, problems, .. } = gather(sources);
    Loaded { settings, notice: notice(&problems) }
}

/// The same with the origins of the values.
pub(super) fn gather(sources: &Sources) -> Gathered {
    let mut origins = HashMap::new();
    let mut held = default_values(&sources.agent_dir);
    let (mut problems, mut pi) = (Vec::new(), PiCompaction::default());
    for layer in layers(sources, &mut problems, &mut pi) {
        // If a setting occurs under several spellings, its proper name counts.
        let by_right =
            |name: &str| layer.definition(name).is_none_or(|definition| layer.rightly(definition) == name);
        let mut values: Vec<_> = layer.values.iter().collect();
        values.sort_by_key(|(name, _)| by_right(name));
        for (name, value) in values {
            let Some(definition) = layer.definition(name) else {
                let meant = meant(name, layer.is_environment());
                problems.push(format!("{name} {} is not a setting{meant}", layer.place));
                continue;
            };
            if let Some(value) = value::accepted(definition, value, &layer.base) {
                origins.insert(definition.key, layer.origin);
                held.insert(definition.key.to_owned(), value);
            } else {
                let shown = one_line(&value.to_string(), 40);
                problems.push(format!(
                    "{name} {} is {shown}, but must be {}; using {}",
                    layer.place,
                    definition.expected(),
                    held[definition.key]
                ));
            }
        }
    }
    let mut settings = Settings { pi, ..Settings::of(&held) };
    settings.guidance = Guidance::read(sources, &settings, &mut problems);
    Gathered { settings, values: held, origins, problems }
}

impl Layer {
    fn is_environment(&self) -> bool {
        self.origin == Origin::Environment
    }

    /// A setting's proper name in this source.
    fn rightly(&self, definition: &Definition) -> String {
        if self.is_environment() { definition.variable() } else { definition.key.to_owned() }
    }

    fn definition(&self, name: &str) -> Option<&'static Definition> {
        let is_it = |known: &str| if self.is_environment() { variable(known) == name } else { known == name };
        DEFINITIONS.iter().find(|definition| definition.names().any(is_it))
    }
}

/// The sources in order of precedence, the strongest last.
fn layers(sources: &Sources, problems: &mut Vec<String>, pi: &mut PiCompaction) -> Vec<Layer> {
    let mut layers = Vec::new();
    let places = [(Origin::Global, &sources.agent_dir), (Origin::Project, &sources.cwd)];
    for (origin, base) in places {
        let path = sources.file(origin).filter(|_| origin != Origin::Project || sources.project_trusted);
        layers
            .extend(path.and_then(|path| file(&path, (origin, base), sources.model_overrides, problems, pi)));
    }
    // Sorted by name, so that messages are always the same.
    let set: BTreeMap<_, _> =
        sources.environment.iter().filter(|(_, text)| !text.trim().is_empty()).collect();
    let mut environment = Layer {
        place: "in the environment".into(),
        values: Vec::new(),
        base: sources.cwd.clone(),
        origin: Origin::Environment,
    };
    for (name, text) in set {
        let value = match environment.definition(name) {
            Some(definition) => value::from_text(definition, text),
            None => Value::Null,
        };
        environment.values.push((name.clone(), value));
    }
    layers.push(environment);
    layers
}

/// The `lcm` key of one of Pi's settings files; Pi's own compaction settings go into `pi`.
fn file(
    path: &Path,
    (origin, base): (Origin, &Path),
    reads_overrides: bool,
    problems: &mut Vec<String>,
    pi: &mut PiCompaction,
) -> Option<Layer> {
    let place = format!("in {}", path.display());
    let json = match files::read_text(path, SETTINGS_FILE) {
        Ok(json) => json,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
        Err(error) => {
            problems.push(format!("{} can't be read: {error}", path.display()));
            return None;
        }
    };
    // Ignored, since Pi itself reports a file that is not JSON.
    let all: Value = serde_json::from_str(json.trim_start_matches('\u{feff}')).ok()?;
    let compaction = &all["compaction"];
    let number =
        |values: &Value, key: &str| values[key].as_u64().and_then(|tokens| usize::try_from(tokens).ok());
    let [reserve, keep] = ["reserveTokens", "keepRecentTokens"];
    pi.enabled = compaction["enabled"].as_bool().unwrap_or(pi.enabled);
    pi.reserve_tokens = number(compaction, reserve).unwrap_or(pi.reserve_tokens);
    pi.keep_recent_tokens = number(compaction, keep).unwrap_or(pi.keep_recent_tokens);
    for (model, values) in
        compaction["modelOverrides"].as_object().filter(|_| reads_overrides).into_iter().flatten()
    {
        let found = pi.model_overrides.entry(model.clone()).or_default();
        found.reserve_tokens = number(values, reserve).or(found.reserve_tokens);
        found.keep_recent_tokens = number(values, keep).or(found.keep_recent_tokens);
    }
    match all.get("lcm")? {
        Value::Object(values) => Some(Layer {
            place,
            values: values.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            base: base.to_owned(),
            origin,
        }),
        Value::Null => None,
        other => {
            let shown = one_line(&other.to_string(), 40);
            problems.push(format!("lcm {place} is {shown}, but must be an object of settings"));
            None
        }
    }
}

/// `: did you mean …?`, if a setting has a similar name.
pub(super) fn meant(name: &str, is_environment: bool) -> String {
    let names = DEFINITIONS.iter().map(|definition| match is_environment {
        true => definition.variable(),
        false => definition.key.to_owned(),
    });
    let alike = |known: &String| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let best = names.map(|known| (alike(&known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((likeness, known)) if likeness >= ALIKE => format!(": did you mean {known}?"),
        _ => String::new(),
    }
}

fn notice(problems: &[String]) -> Option<String> {
    match problems {
        [] => None,
        [one] => Some(format!("a setting is invalid: {one}.")),
        many => Some(format!("{} settings are invalid:\n- {}", many.len(), many.join("\n- "))),
    }
}

#[cfg(test)]
mod tests;
