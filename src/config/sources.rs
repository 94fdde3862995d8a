//! Reads [`Settings`] from files and the environment, and reports what is invalid.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definitions::variable;
use super::value::{self, Places};
use super::{DEFINITIONS, Definition, Guidance, PiCompaction, SETTINGS_FILE, Settings};
use crate::files;
use crate::text::one_line;

/// The similarity from which a name counts as a typo of a setting's, 1 being equal.
const ALIKE: f64 = 0.8;

const BY_CONTEXT: &str = "use `context`, lean or full, instead";

/// Settings of earlier versions, each with its replacement.
const RETIRED: &[(&str, &str)] = &[
    ("backgroundSessionModel", BY_CONTEXT),
    ("compactAt", BY_CONTEXT),
    ("modelCallsPerHour", "use `modelTokensPerHour` instead"),
    ("modelCallsPerSession", "use `modelTokensPerSession` instead"),
    ("pruneRed", BY_CONTEXT),
    ("pruneYellow", BY_CONTEXT),
    ("pruning", BY_CONTEXT),
    ("recentBoost", "the newest summaries are always longer"),
    ("softThreshold", BY_CONTEXT),
];

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
    /// By setting; a missing one has its default.
    pub origins: HashMap<&'static str, Origin>,
    pub problems: Vec<String>,
}

impl Sources {
    /// The file of a source, if it is one.
    #[must_use]
    pub fn file(&self, origin: Origin) -> Option<PathBuf> {
        match origin {
            Origin::Global => Some(self.agent_dir.join("settings.json")),
            Origin::Project => Some(self.cwd.join(".pi").join("settings.json")),
            Origin::Default | Origin::Environment => None,
        }
    }
}

/// Reads the settings. A missing or invalid value leaves the one of the next weaker source.
#[must_use]
pub fn load(sources: &Sources) -> Loaded {
    let Gathered { settings, problems, .. } = gather(sources);
    Loaded { settings, notice: notice(&problems) }
}

/// The same with the origins of the values.
pub(super) fn gather(sources: &Sources) -> Gathered {
    let mut origins = HashMap::new();
    let home = std::env::home_dir();
    let mut settings = Settings::defaults(&sources.agent_dir);
    let mut problems = Vec::new();
    for layer in layers(sources, &mut problems, &mut settings.pi) {
        let places = Places { home: home.as_deref(), base: &layer.base };
        // If a setting occurs under several spellings, its proper name counts.
        let by_right =
            |name: &str| layer.definition(name).is_none_or(|definition| layer.rightly(definition) == name);
        let mut values: Vec<_> = layer.values.iter().collect();
        values.sort_by_key(|(name, _)| by_right(name));
        for (name, value) in values {
            let Some(definition) = layer.definition(name) else {
                let retired = RETIRED.iter().find(|(old, _)| old == name || variable(old) == *name);
                problems.push(match retired {
                    Some((_, remedy)) => format!("{name} {} was removed: {remedy}", layer.place),
                    None => format!(
                        "{name} {} is not a setting{}",
                        layer.place,
                        meant(name, layer.is_environment())
                    ),
                });
                continue;
            };
            if value::put(definition, value, places, &mut settings).is_ok() {
                origins.insert(definition.key, layer.origin);
            } else {
                let shown = one_line(&value.to_string(), 40);
                problems.push(format!(
                    "{name} {} is {shown}, but must be {}; using {}",
                    layer.place,
                    definition.expected(),
                    held(definition, &settings)
                ));
            }
        }
    }
    settings.guidance = Guidance::read(sources, &settings, &mut problems);
    Gathered { settings, origins, problems }
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
        DEFINITIONS.iter().find(|definition| match self.is_environment() {
            true => {
                definition.variable() == name || definition.also.iter().any(|also| variable(also) == name)
            }
            false => definition.is_called(name),
        })
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

/// The effective value of a setting, in JSON.
fn held(definition: &Definition, settings: &Settings) -> String {
    serde_json::to_value(settings).map(|all| all[definition.key].to_string()).unwrap_or_default()
}

fn notice(problems: &[String]) -> Option<String> {
    match problems {
        [] => None,
        [one] => Some(format!("a setting is invalid: {one}.")),
        many => Some(format!("{} settings are invalid:\n- {}", many.len(), many.join("\n- "))),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a literal reads better")]
mod tests {
    use serde_json::json;

    use super::super::Kind;
    use super::*;

    struct World {
        dir: tempfile::TempDir,
        sources: Sources,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (agent_dir, cwd) = (dir.path().join("agent"), dir.path().join("project"));
            std::fs::create_dir_all(cwd.join(".pi")).unwrap();
            std::fs::create_dir_all(&agent_dir).unwrap();
            let sources = Sources { agent_dir, cwd, project_trusted: true, ..Sources::default() };
            Self { dir, sources }
        }

        fn global(self, lcm: Value) -> Self {
            let text = format!("\u{feff}{}", json!({"theme": "dark", "lcm": lcm}));
            std::fs::write(self.sources.agent_dir.join("settings.json"), text).unwrap();
            self
        }

        fn project(self, lcm: Value) -> Self {
            std::fs::write(self.sources.cwd.join(".pi/settings.json"), json!({"lcm": lcm}).to_string())
                .unwrap();
            self
        }

        fn environment(mut self, name: &str, text: &str) -> Self {
            self.sources.environment.insert(name.into(), text.into());
            self
        }

        fn load(&self) -> Loaded {
            load(&self.sources)
        }
    }

    #[test]
    fn without_settings_the_defaults_apply() {
        let world = World::new();
        let loaded = world.load();
        assert_eq!(loaded, Loaded { settings: Settings::defaults(&world.sources.agent_dir), notice: None });
        let Settings { enabled, db_dir, compaction_models, leaf_chunk_tokens, .. } = loaded.settings;
        assert!(enabled);
        assert_eq!(db_dir, world.sources.agent_dir.join("lcm"));
        assert_eq!(compaction_models, ["anthropic/claude-haiku-4-5"]);
        assert_eq!(leaf_chunk_tokens, 16_000);
    }

    #[test]
    fn environment_overrides_project_and_project_overrides_global() {
        let world = World::new()
            .global(json!({"maxDepth": 2, "leafChunkTokens": 1000, "leafPassConcurrency": 1}))
            .project(json!({"maxDepth": 3, "leafChunkTokens": 2000}))
            .environment("LCM_MAX_DEPTH", "4");
        let Settings { max_depth, leaf_chunk_tokens, leaf_pass_concurrency, .. } = world.load().settings;
        assert_eq!((max_depth, leaf_chunk_tokens, leaf_pass_concurrency), (4, 2_000, 1));
    }

    #[test]
    fn pis_own_compaction_settings_are_read() {
        let world = World::new();
        assert_eq!(world.load().settings.pi, PiCompaction::default());
        let write = |folder: &Path, compaction: Value| {
            std::fs::write(folder.join("settings.json"), json!({"compaction": compaction}).to_string())
                .unwrap();
        };
        write(&world.sources.agent_dir, json!({"reserveTokens": 5000, "keepRecentTokens": 3000}));
        let project = json!({"enabled": false, "keepRecentTokens": 1000, "reserveTokens": "odd"});
        write(&world.sources.cwd.join(".pi"), project);
        let pi = PiCompaction {
            enabled: false,
            reserve_tokens: 5_000,
            keep_recent_tokens: 1_000,
            model_overrides: BTreeMap::new(),
        };
        assert_eq!(world.load().settings.pi, pi);
    }

    #[test]
    fn model_overrides_are_read_where_pi_reads_them() {
        let mut world = World::new();
        let write = |folder: &Path, overrides: Value| {
            let compaction = json!({"compaction": {"reserveTokens": 5_000, "modelOverrides": overrides}});
            std::fs::write(folder.join("settings.json"), compaction.to_string()).unwrap();
        };
        write(
            &world.sources.agent_dir,
            json!({"a/one": {"reserveTokens": 1, "keepRecentTokens": 2}, "a/two": 3}),
        );
        write(&world.sources.cwd.join(".pi"), json!({"a/one": {"reserveTokens": 4}}));
        let held = |world: &World, model| {
            let pi = world.load().settings.pi.with(model);
            (pi.reserve_tokens, pi.keep_recent_tokens)
        };
        assert_eq!(held(&world, Some("a/one")), (5_000, 20_000));
        world.sources.model_overrides = true;
        assert_eq!(held(&world, Some("a/one")), (4, 2));
        assert_eq!([held(&world, Some("a/two")), held(&world, None)], [(5_000, 20_000); 2]);
    }

    #[test]
    fn settings_of_an_untrusted_project_are_ignored() {
        let mut world = World::new().project(json!({"enabled": false, "nonsense": 1}));
        world.sources.project_trusted = false;
        assert_eq!(world.load().settings, Settings::defaults(&world.sources.agent_dir));
        assert_eq!(world.load().notice, None);
    }

    #[test]
    fn every_setting_can_be_set_in_a_file_and_in_the_environment() {
        for definition in DEFINITIONS {
            let (json, text) = match &definition.kind {
                Kind::Switch { default, .. } => {
                    (json!(!default), if *default { "off" } else { "1" }.to_owned())
                }
                Kind::Number { range, .. } => (json!(range.start()), range.start().to_string()),
                Kind::Text { .. } => (json!("keep names"), "keep names".into()),
                Kind::Folder { .. } => {
                    // On Windows, an absolute path includes its drive.
                    let folder = std::env::temp_dir().join("elsewhere");
                    (json!(folder), folder.to_string_lossy().into_owned())
                }
                Kind::Identity { .. } => (json!("git"), "Git".into()),
                Kind::Context { .. } => (json!("full"), "Full".into()),
                Kind::Names { .. } if definition.key == "alsoRead" => {
                    (json!(["codex", "gemini"]), "codex,gemini".into())
                }
                Kind::Names { .. } => (json!(["a/b", "c/d/e"]), "a/b, c/d/e".into()),
            };
            for name in [&[definition.key], definition.also].concat() {
                let from_file = World::new().global(json!({name: json})).load();
                let from_variable = World::new().environment(&variable(name), &text).load();
                for loaded in [from_file, from_variable] {
                    assert_eq!(loaded.notice, None, "{name}");
                    assert_eq!(held(definition, &loaded.settings), json.to_string(), "{name}");
                }
            }
        }
    }

    #[test]
    fn invalid_values_and_unknown_names_are_reported_together_and_ignored() {
        let world = World::new()
            .global(json!({"leafChunkTokens": "many", "maxDepth": 21, "leafChunkToken": 1, "zebra": 1, "status": "no"}))
            .project(json!({"compactionModels": ["no-slash"], "leafPassConcurrency": 2.5, "dbDir": ""}))
            .environment("LCM_MAX_DEPTHS", "3")
            .environment("LCM_MODEL_CALLS_PER_HOUR", "3")
            .environment("LCM_DEBUG_MODE", "maybe")
            .environment("LCM_STATUS", "");
        let loaded = world.load();
        assert_eq!(loaded.settings, Settings::defaults(&world.sources.agent_dir));
        let file = world.sources.agent_dir.join("settings.json");
        let notice = loaded.notice.unwrap();
        let says = |what: &str| assert!(notice.contains(what), "{what} in:\n{notice}");
        says("11 settings are invalid:");
        says(&format!(
            "- leafChunkTokens in {} is \"many\", but must be a whole number from 500 to 100000; using 16000",
            file.display()
        ));
        says("is not a setting: did you mean leafChunkTokens?\n");
        says("zebra");
        says("- LCM_MAX_DEPTHS in the environment is not a setting: did you mean LCM_MAX_DEPTH?");
        says("- LCM_MODEL_CALLS_PER_HOUR in the environment was removed: use `modelTokensPerHour` instead");
        says("- LCM_DEBUG_MODE in the environment is \"maybe\", but must be true or false; using false");
        assert!(!notice.contains("LCM_STATUS"));
    }

    #[test]
    fn an_invalid_value_falls_back_to_the_weaker_source() {
        let world = World::new().global(json!({"maxDepth": 3})).project(json!({"maxDepth": -1}));
        let loaded = world.load();
        assert_eq!(loaded.settings.max_depth, 3);
        assert!(loaded.notice.unwrap().ends_with("from 1 to 20; using 3."));
    }

    #[test]
    fn the_proper_spelling_overrides_others() {
        let (right, other) = ("largeFileThresholdTokens", "largFileThresholdTokens");
        for lcm in [json!({right: 2000, other: 3000}), json!({other: 3000, right: 2000})] {
            assert_eq!(World::new().global(lcm).load().settings.large_file_threshold_tokens, 2_000);
        }
        let world = World::new().environment(&variable(right), "2000").environment(&variable(other), "3000");
        assert_eq!(world.load().settings.large_file_threshold_tokens, 2_000);
    }

    #[test]
    fn paths_start_where_users_expect() {
        let home = std::env::home_dir().unwrap();
        let world = World::new();
        let (agent, project) = (world.sources.agent_dir.clone(), world.sources.cwd.clone());
        let with = |world: World| world.load().settings.db_dir;
        assert_eq!(with(world.global(json!({"dbDir": "history"}))), agent.join("history"));
        let cases = [
            ("~", home.clone()),
            ("~/lcm", home.join("lcm")),
            ("/abs", "/abs".into()),
            ("here", "here".into()),
        ];
        for (text, expected) in cases {
            let world = World::new().project(json!({"dbDir": text}));
            assert_eq!(world.load().settings.db_dir, world.sources.cwd.join(&expected), "{text}");
            let world = World::new().environment("LCM_DB_DIR", text);
            assert_eq!(world.load().settings.db_dir, world.sources.cwd.join(expected), "{text}");
        }
        // A tilde that only begins a name is part of the name.
        let world = World::new().project(json!({"dbDir": "~cache"}));
        assert_eq!(world.load().settings.db_dir, world.sources.cwd.join("~cache"));
        assert!(project.ends_with("project"));
    }

    #[test]
    fn models_may_be_written_as_objects() {
        let world = World::new()
            .global(json!({"compactionModels": [{"provider": "a", "id": "b"}, "openrouter/x/y"]}));
        assert_eq!(world.load().settings.compaction_models, ["a/b", "openrouter/x/y"]);
        let world = World::new().global(json!({"compactionModels": []}));
        assert!(world.load().settings.compaction_models.is_empty());
    }

    #[test]
    fn invalid_json_is_left_to_pi_and_an_invalid_lcm_is_reported() {
        let world = World::new();
        std::fs::write(world.sources.agent_dir.join("settings.json"), "{").unwrap();
        assert_eq!(world.load().notice, None);
        let notice = world.global(json!(true)).load().notice.unwrap();
        assert!(notice.contains("is true, but must be an object of settings"), "{notice}");
    }

    #[test]
    fn an_unreadable_settings_file_is_reported() {
        let world = World::new();
        std::fs::create_dir(world.sources.agent_dir.join("settings.json")).unwrap();
        let notice = world.load().notice.unwrap();
        assert!(notice.contains("settings.json can't be read"), "{notice}");
        drop(world.dir);
    }
}
