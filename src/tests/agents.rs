//! `/lcm import --from AGENT`: sessions of other agents. The logs in `fixtures/` are made by hand after what is known of the formats; their
//! folders are called by the versions that write such logs.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::import::Machine;
use super::support::Session;
use crate::commands::import::Importer;
use crate::model::{AGENTS, original_of};
use crate::recall::Scope;
use crate::tools::{Block, call};

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
    assert_eq!(REPORTS.map(|(agent, _)| agent), AGENTS);
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

#[tokio::test]
async fn a_search_of_the_project_tells_who_said_it_and_can_ask_for_one_agent() {
    let machine = Machine::new();
    let said = Session::new()
        .user("Tell me the flamingo rule.")
        .assistant("It rounds half to even.")
        .user("Thanks.");
    machine.write("a.jsonl", "pi-session", &said.entries);
    machine.run("").await;
    for (agent, _) in REPORTS {
        machine.run(&format!("--from {agent} \"{}\"", fixtures(agent).display())).await;
    }
    let ask = async |rest: serde_json::Value| {
        let mut arguments = json!({"query": "flamingo", "session": "project", "role": "user"});
        arguments.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let store = machine.home.store.clone();
        let scope = store
            .read(|view| {
                Ok(Scope::at(view.messages().conversation("pi-session")?.unwrap().id, Some("e3".into())))
            })
            .await
            .unwrap();
        let cancel = CancellationToken::new();
        match call(&store, &scope, "lcm_grep", &arguments.to_string(), None, &cancel).await.unwrap().remove(0)
        {
            Block::Text(text) => text,
            Block::Image { .. } => panic!("a picture"),
        }
    };
    let all = ask(json!({})).await;
    for who in ["· user · #1", "· claude-code user ·", "· codex user ·"] {
        assert!(all.contains(who), "{who}: {all}");
    }
    let one = ask(json!({"agent": "codex"})).await;
    assert!(one.contains("· codex user ·") && !one.contains("claude-code"), "{one}");
    assert_eq!(one.matches("in another session").count(), 3, "{one}");
    let own = ask(json!({"agent": "pi"})).await;
    assert!(own.contains("· user ·") && !own.contains("codex user"), "{own}");
}

#[tokio::test]
async fn only_this_project_s_sessions_are_taken_from_where_an_agent_keeps_them() {
    for (agent, home) in [("claude-code", ".claude/projects"), ("codex", ".codex/sessions")] {
        let mut machine = Machine::new();
        let to = machine.at("home").join(home);
        for (n, file) in files(&fixtures(agent)).into_iter().enumerate() {
            // The first stays another project's.
            let cwd = if n == 0 { "/nowhere/else" } else { machine.home.cwd.as_str() };
            let text = fs::read_to_string(&file).unwrap().replace("/home/ada/kontor", cwd);
            let path = to.join(file.strip_prefix(fixtures(agent)).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        machine.folders.home = Some(machine.at("home"));
        let report = machine.run(&format!("--from {agent}")).await;
        assert!(report.starts_with("2 sessions: "), "{report}");
        let report = machine.run(&format!("--from {agent} --all")).await;
        assert!(report.starts_with("3 sessions of 2 projects: "), "{report}");
    }
}

#[tokio::test]
async fn a_log_that_grows_is_continued_and_a_half_written_line_waits() {
    let file = files(&fixtures("codex").join("0.44")).remove(0);
    let whole = fs::read_to_string(&file).unwrap();
    let machine = Machine::new();
    let path = machine.at("log.jsonl");
    let cut = whole.find("apply_patch").unwrap();
    fs::write(&path, &whole[..cut]).unwrap();
    let line = format!("--from codex \"{}\"", path.display());
    assert_eq!(machine.run(&line).await, "1 session: 1 message new, 0 known already, 1 broken line left out");
    fs::write(&path, &whole).unwrap();
    assert_eq!(machine.run(&line).await, "1 session: 3 messages new, 1 known already");
    let at_once = Machine::new();
    at_once.run(&format!("--from codex \"{}\"", file.display())).await;
    assert_eq!(machine.digest().await, at_once.digest().await);
}

#[tokio::test]
async fn what_is_no_log_is_told_in_one_sentence() {
    let machine = Machine::new();
    let path = machine.at("notes.jsonl");
    fs::write(&path, "{\"a\":1}\nnot json\n").unwrap();
    for (agent, title) in [("claude-code", "Claude Code"), ("codex", "Codex")] {
        let report = machine.run(&format!("--from {agent} \"{}\"", path.display())).await;
        let expected = format!("1 file could not be read (notes.jsonl: it is no log of {title}'s)");
        assert!(report.ends_with(&expected), "{report}");
    }
    let refused = |line: &'static str| {
        let machine = &machine;
        async move {
            Importer::default().run(&machine.home, &machine.folders, line).await.unwrap_err().to_string()
        }
    };
    assert_eq!(refused("--from codex /nowhere").await, "there is no /nowhere");
    assert_eq!(refused("--from clippy").await, "--from takes claude-code, codex, and clippy is none of them");
}
