//! Checks the code's layout: floors, homes of outside crates, file headers, versions.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up; see the crate's documentation.
const FLOORS: [&[&str]; 10] = [
    &["error", "files", "frames", "ids", "log", "sync", "text", "tokens"],
    &["config", "dag", "model"],
    &["facts", "policy"],
    &["llm", "store"],
    &["branch"],
    &["compaction", "ingest", "recall"],
    &["doctor", "tools", "upkeep"],
    &["commands", "mcp"],
    &["cli", "engine"],
    &["binding", "fuzzing"],
];

/// Outside crates that only one module uses.
const HOMES: [(&str, &str); 9] = [
    ("rusqlite", "store"),
    ("zstd", "store"),
    ("reqwest", "llm"),
    ("rustls", "llm"),
    ("clap", "cli"),
    ("clap_complete", "cli"),
    ("rmcp", "mcp"),
    ("napi", "binding"),
    ("napi_derive", "binding"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the product: its top module, its path from `src`, its text.
fn sources() -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name =
                    path.strip_prefix(root().join("src")).unwrap().to_string_lossy().replace('\\', "/");
                let module = name.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
                found.push((module, name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.retain(|(module, ..)| module != "tests");
    found
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|modules| modules.contains(&module))
}

/// The lines of code, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

/// The top modules that code names after `crate::`, in a path or in a braced list.
fn named(text: &str) -> Vec<String> {
    let mut modules = Vec::new();
    let code = code(text).collect::<Vec<_>>().join("\n");
    for rest in code.split("crate::").skip(1) {
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap().split(',').collect(),
            None => vec![rest],
        };
        for name in names {
            let word = name.trim().split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
            modules.push(word.to_owned());
        }
    }
    modules
}

#[test]
fn a_module_only_imports_from_lower_floors() {
    let mut arrows = 0;
    for (module, name, text) in sources() {
        if module == "lib" {
            continue;
        }
        let floor = floor_of(&module).unwrap_or_else(|| panic!("{name} is on no floor"));
        // Only tests can name `tests`: without them it is not compiled.
        for target in named(&text).into_iter().filter(|target| *target != module && target != "tests") {
            let below = floor_of(&target).unwrap_or_else(|| panic!("{name} names `{target}`, on no floor"));
            // Modules on the ground floor may use each other.
            assert!(
                below < floor || floor == 0,
                "{name}, on floor {floor}, names `{target}` on floor {below}"
            );
            arrows += 1;
        }
    }
    assert!(arrows > 100, "only {arrows} imports were seen: is `crate::` still how they are written?");
}

#[test]
fn each_major_outside_crate_has_one_home() {
    for (outside, home) in HOMES {
        let path = format!("{outside}::");
        let users: Vec<String> = (sources().into_iter())
            .filter(|(_, _, text)| code(text).any(|line| line.contains(&path)))
            .map(|(module, ..)| module)
            .collect();
        assert!(!users.is_empty(), "{outside} is used nowhere");
        assert!(users.iter().all(|user| user == home), "{outside} is used by {users:?}, its home is {home}");
    }
}

#[test]
fn only_the_store_contains_sql() {
    for (module, name, text) in sources() {
        let sql = code(&text).find(|line| {
            ["SELECT ", "INSERT INTO", "DELETE FROM", "PRAGMA "].iter().any(|word| line.contains(word))
        });
        assert!(module == "store" || sql.is_none(), "{name}: {sql:?}");
    }
}

#[test]
fn no_code_path_changes_or_removes_a_message() {
    for (_, name, text) in sources() {
        for line in code(&text) {
            let touches = ["UPDATE messages", "DELETE FROM messages", "REPLACE INTO messages", "DROP TABLE"];
            // Removals that the user confirmed, and the identities that change with them.
            let purges =
                ["store/upkeep/purge.rs", "store/upkeep/rebase.rs"].iter().any(|file| name.ends_with(file));
            assert!(purges || !touches.iter().any(|words| line.contains(words)), "{name}: {line}");
        }
    }
}

#[test]
fn every_file_starts_with_its_idea() {
    for (_, name, text) in sources() {
        assert!(text.starts_with("//! "), "{name}");
    }
    for folder in ["scripts", "demo", "bench", "__test__", "__test__/support", "__test__/main-job"] {
        for entry in fs::read_dir(root().join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "mjs") {
                assert!(fs::read_to_string(&path).unwrap().starts_with("/*"), "{}", path.display());
            }
        }
    }
}

#[test]
fn package_crate_and_changelog_have_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |file: &str| fs::read_to_string(Path::new(&root()).join(file)).unwrap();
    let package: serde_json::Value = serde_json::from_str(&read("package.json")).unwrap();
    assert_eq!(package["version"], version);
    let lock: serde_json::Value = serde_json::from_str(&read("package-lock.json")).unwrap();
    assert_eq!(lock["version"], version);
    assert!(
        read("fuzz/Cargo.lock").contains(&format!("name = \"pi-lossless-context\"\nversion = \"{version}\""))
    );
    let changelog = read("CHANGELOG.md");
    assert!(changelog.contains(&format!("## [{version}]")) || changelog.contains("## [Unreleased]"));
}

#[test]
fn the_npm_lock_names_no_registry() {
    let lock = fs::read_to_string(root().join("package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""), "run npm with the repository's .npmrc");
}
