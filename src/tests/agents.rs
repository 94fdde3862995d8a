//! `/lcm import --from AGENT`: sessions of other agents. The logs in `fixtures/` are made by hand after what is known of the formats; their
//! folders are called by the versions that write such logs.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use super::import::Machine;
use crate::model::{AGENTS, original_of};

/// The folder of an agent's fixtures.
fn fixtures(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/fixtures").join(agent)
}

/// All files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

/// What each agent's fixtures come to.
const REPORTS: [(&str, &str); 2] = [
    ("claude-code", "3 sessions: 19 messages new, 0 known already, 1 record of unknown kinds kept unread"),
    ("codex", "3 sessions: 16 messages new, 0 known already, 2 records of unknown kinds kept unread"),
];

#[tokio::test]
async fn each_version_s_log_is_imported_and_a_second_time_nothing_changes() {
    for (agent, report) in REPORTS {
        let machine = Machine::new();
        let line = format!("--from {agent} \"{}\"", fixtures(agent).display());
        assert_eq!(machine.run(&line).await, report);
        let digest = machine.digest().await;
        assert!(digest.iter().all(|row| row.starts_with(&format!("{agent}:"))), "{digest:#?}");
        let again = machine.run(&line).await;
        assert!(again.contains(": 0 messages new, "), "{again}");
        assert_eq!(machine.digest().await, digest);
    }
    assert_eq!(REPORTS.map(|(agent, _)| agent).len(), AGENTS.len() - 2);
}

#[tokio::test]
async fn every_line_comes_back_byte_for_byte() {
    for agent in ["claude-code", "codex"] {
        let machine = Machine::new();
        machine.run(&format!("--from {agent} \"{}\"", fixtures(agent).display())).await;
        let mut stored: Vec<String> = Vec::new();
        for session in machine.sessions().await {
            let messages = machine.messages(&session).await;
            stored.extend(messages.iter().filter_map(|json| original_of(json)).map(Cow::into_owned));
        }
        let mut written: Vec<String> = Vec::new();
        for file in files(&fixtures(agent)) {
            written.extend(fs::read_to_string(file).unwrap().lines().map(ToOwned::to_owned));
        }
        stored.sort();
        written.sort();
        assert_eq!(stored, written);
    }
}
