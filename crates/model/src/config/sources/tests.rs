//! Sources of settings: files, variables, and what is wrong with them.

#![expect(clippy::needless_pass_by_value, reason = "a literal reads better")]

use serde_json::json;

use super::super::Kind;
use super::*;

struct World {
    dir: tempfile::TempDir,
    sources: SettingSources,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (agent_dir, cwd) = (dir.path().join("agent"), dir.path().join("project"));
        std::fs::create_dir_all(cwd.join(".pi")).unwrap();
        std::fs::create_dir_all(&agent_dir).unwrap();
        let sources = SettingSources { agent_dir, cwd, project_trusted: true, ..SettingSources::default() };
        Self { dir, sources }
    }

    fn global(self, lcm: Value) -> Self {
        let text = format!("\u{feff}{}", json!({"theme": "dark", "lcm": lcm}));
        std::fs::write(self.sources.agent_dir.join("settings.json"), text).unwrap();
        self
    }

    fn project(self, lcm: Value) -> Self {
        std::fs::write(self.sources.cwd.join(".pi/settings.json"), json!({"lcm": lcm}).to_string()).unwrap();
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
    assert!(compaction_models.is_empty());
    assert_eq!(leaf_chunk_tokens, 16_000);
}

#[test]
fn numbers_are_whole_in_any_notation_and_as_large_as_javascript_can_count() {
    let world = World::new();
    let read = |number: &str| {
        let text = format!(
            r#"{{"compaction": {{"reserveTokens": {number}}}, "lcm": {{"leafChunkTokens": {number}}}}}"#
        );
        std::fs::write(world.sources.agent_dir.join("settings.json"), text).unwrap();
        let Settings { pi, leaf_chunk_tokens, .. } = world.load().settings;
        (pi.reserve_tokens, leaf_chunk_tokens)
    };
    for number in ["20000", "2e4", "20000.0"] {
        assert_eq!(read(number), (20_000, 20_000), "{number}");
    }
    for number in ["20000.5", "-20000", "9007199254740993", "18446744073709551615", "1e300", "\"20000\""] {
        assert_eq!(read(number), (16_384, 16_000), "{number}");
    }
    assert_eq!(read("9007199254740991").0, 9_007_199_254_740_991);
}

#[test]
fn every_setting_can_be_set_in_a_file_and_in_the_environment() {
    for definition in DEFINITIONS {
        let (json, text) = match &definition.kind {
            Kind::Switch { default } => (json!(!default), if *default { "off" } else { "1" }.to_owned()),
            Kind::Number { range, .. } => (json!(range.start()), range.start().to_string()),
            Kind::Text => (json!("keep names"), "keep names".into()),
            Kind::Folder { .. } => {
                // On Windows, an absolute path includes its drive.
                let folder = std::env::temp_dir().join("elsewhere");
                (json!(folder), folder.to_string_lossy().into_owned())
            }
            Kind::Word { words: [_, other] } => (json!(other), other.to_uppercase()),
            Kind::Names { .. } if definition.key == "alsoRead" => {
                (json!(["codex", "gemini"]), "codex,gemini".into())
            }
            Kind::Names { .. } => (json!(["a/b", "c/d/e"]), "a/b, c/d/e".into()),
        };
        for name in definition.names() {
            let from_file = World::new().global(json!({name: json})).load();
            let from_variable = World::new().environment(&variable(name), &text).load();
            for loaded in [from_file, from_variable] {
                assert_eq!(loaded.notice, None, "{name}");
                assert_eq!(json!(loaded.settings)[definition.key], json, "{name}");
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
        .environment("LCM_DEBUG_MODE", "maybe")
        .environment("LCM_STATUS", "");
    let loaded = world.load();
    assert_eq!(loaded.settings, Settings::defaults(&world.sources.agent_dir));
    let file = world.sources.agent_dir.join("settings.json");
    let notice = loaded.notice.unwrap();
    let says = |what: &str| assert!(notice.contains(what), "{what} in:\n{notice}");
    says("10 settings are invalid:");
    says(&format!(
        "- leafChunkTokens in {} is \"many\", but must be a whole number from 500 to 100000; using 16000",
        file.display()
    ));
    says("is not a setting: did you mean leafChunkTokens?\n");
    says("zebra");
    says("- LCM_MAX_DEPTHS in the environment is not a setting: did you mean LCM_MAX_DEPTH?");
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
fn a_question_ends_without_a_period() {
    let notice = World::new().global(json!({"alsoread": ["codex"]})).load().notice.unwrap();
    assert!(notice.ends_with("is not a setting: did you mean alsoRead?"), "{notice}");
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
    let cases =
        [("~", home.clone()), ("~/lcm", home.join("lcm")), ("/abs", "/abs".into()), ("here", "here".into())];
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
    let world =
        World::new().global(json!({"compactionModels": [{"provider": "a", "id": "b"}, "openrouter/x/y"]}));
    assert_eq!(world.load().settings.compaction_models, ["a/b", "openrouter/x/y"]);
    let world =
        World::new().global(json!({"compactionModels": ["a/b"]})).project(json!({"compactionModels": []}));
    assert!(world.load().settings.compaction_models.is_empty());
    let world = World::new().environment("LCM_COMPACTION_MODELS", "a/b, session");
    assert_eq!(world.load().settings.compaction_models, ["a/b", "session"]);
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

#[test]
fn pis_compaction_is_near_from_three_fifths_of_its_threshold_on() {
    let pi = PiCompaction::default();
    let full = (200_000 - 16_384) * 6 / 10;
    assert!(pi.is_near(full + 1, Some(200_000)));
    for (tokens, window) in [(full - 1, Some(200_000)), (0, Some(200_000)), (199_000, None)] {
        assert!(!pi.is_near(tokens, window));
    }
    assert!(pi.is_near(5_000, Some(8_000)), "Pi is always above a negative threshold");
    let off = PiCompaction { enabled: false, ..pi };
    assert!(!off.is_near(190_000, Some(200_000)));
}
