//! Checks what the compiler can't: where SQL is, what may change a message, file headers, versions.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the product: its path from the root, its text.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.retain(|(name, _)| !name.starts_with("src/tests/"));
    assert!(found.len() > 100, "only {} files were found", found.len());
    found
}

/// The lines of code, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn only_the_store_contains_sql() {
    for (name, text) in sources() {
        // Tests may damage a file.
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let sql = code(product).find(|line| {
            ["SELECT ", "INSERT INTO", "DELETE FROM", "PRAGMA "].iter().any(|word| line.contains(word))
        });
        assert!(name.starts_with("crates/store/") || sql.is_none(), "{name}: {sql:?}");
    }
}

#[test]
fn no_code_path_changes_or_removes_a_message() {
    for (name, text) in sources() {
        for line in code(&text) {
            let touches = ["UPDATE messages", "DELETE FROM messages", "REPLACE INTO messages", "DROP TABLE"];
            // Removals that the user confirmed, and the identities that change with them.
            let purges = ["store/src/upkeep/purge.rs", "store/src/upkeep/rebase.rs"]
                .iter()
                .any(|file| name.ends_with(file));
            assert!(purges || !touches.iter().any(|words| line.contains(words)), "{name}: {line}");
        }
    }
}

#[test]
fn every_file_starts_with_its_idea() {
    for (name, text) in sources() {
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
