//! Where other agents keep their logs, and which of them are of this project.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use super::agents::{files, fixtures};
use super::import::Machine;
use super::support::ask_in;
use lcm_model::ids::ConversationId;
use lcm_model::{Message, original_of};
use lcm_recall::Scope;

#[tokio::test]
async fn only_this_projects_sessions_are_imported_from_an_agents_folder() {
    for (agent, home) in [("claude-code", ".claude/projects"), ("codex", ".codex/sessions")] {
        let machine = Machine::new();
        let to = machine.at("home").join(home);
        for (n, file) in files(&fixtures(agent)).into_iter().enumerate() {
            // The first file stays another project's.
            let cwd = if n == 0 { "/nowhere/else" } else { machine.home.cwd.as_str() };
            let text = fs::read_to_string(&file).unwrap().replace("/home/ada/kontor", cwd);
            let path = to.join(file.strip_prefix(fixtures(agent)).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            // One that was begun and has nothing yet.
            fs::write(path.with_file_name("rollout-empty.jsonl"), "").unwrap();
        }
        let report = machine.run(&format!("--from {agent}")).await;
        assert!(report.starts_with("2 sessions: "), "{report}");
        let report = machine.run(&format!("--from {agent} --all")).await;
        assert!(report.starts_with("3 sessions of 2 projects: "), "{report}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn linked_folders_are_read_once_and_folders_that_cannot_be_read_are_named() {
    use std::os::unix::fs::symlink;
    let machine = Machine::new();
    let own = machine.at("home/.codex");
    fs::create_dir_all(own.join("sessions")).unwrap();
    // Another disk, with a link back.
    let disk = machine.at("disk");
    fs::create_dir(&disk).unwrap();
    let log = files(&fixtures("codex").join("0.44")).remove(0);
    let text = fs::read_to_string(&log).unwrap().replace("/home/ada/kontor", &machine.home.cwd);
    fs::write(disk.join(log.file_name().unwrap()), text).unwrap();
    symlink(&disk, own.join("sessions/2026")).unwrap();
    symlink(own.join("sessions"), disk.join("back")).unwrap();
    symlink(&disk, own.join("sessions/again")).unwrap();
    assert_eq!(machine.run("--from codex").await, "1 session: 4 messages new, 0 known already");

    // It leads to itself, so not even root can read it.
    symlink("archived_sessions", own.join("archived_sessions")).unwrap();
    let report = machine.run("--from codex").await;
    let said = "1 session: 0 messages new, 4 known already, 1 file could not be read (archived_sessions: ";
    let folder = format!("the folder {} can't be opened: ", own.join("archived_sessions").display());
    assert!(report.starts_with(&format!("{said}{folder}")), "{report}");
}

#[tokio::test]
async fn an_agents_project_is_found_by_path_hash_or_list() {
    let machine = Machine::new();
    let cwd = machine.home.cwd.clone();
    let hash = lcm_model::ids::Hash::plain(cwd.as_bytes()).to_string();
    for (agent, to, sessions) in
        [("gemini", "home/.gemini", 3), ("opencode", "home/.local/share/opencode", 4)]
    {
        for file in files(&fixtures(agent)) {
            let path = file.strip_prefix(fixtures(agent)).unwrap();
            let path: PathBuf = path.components().skip(1).collect();
            // A folder named by the hash of the project's path.
            let path = path
                .to_string_lossy()
                .replace("fdbb684a963852a31f334f8be6918aa99544c0b0d3acef740cd0940271d58373", &hash);
            let path = machine.at(to).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match fs::read_to_string(&file) {
                Ok(text) => {
                    let text = text.replace("/home/ada/kontor", &cwd);
                    let text = text
                        .replace("fdbb684a963852a31f334f8be6918aa99544c0b0d3acef740cd0940271d58373", &hash);
                    fs::write(&path, text).unwrap();
                }
                Err(_) => {
                    fs::copy(&file, &path).unwrap();
                    let database = rusqlite::Connection::open(&path).unwrap();
                    database
                        .execute("UPDATE session SET directory = ?1 WHERE id = 'ses_12'", [&cwd])
                        .unwrap();
                }
            }
        }
        // One of OpenCode's sessions is another project's.
        let own = if agent == "opencode" { 3 } else { sessions };
        let report = machine.run(&format!("--from {agent}")).await;
        assert!(report.starts_with(&format!("{own} sessions: ")), "{report}");
        let report = machine.run(&format!("--from {agent} --all")).await;
        let projects = if agent == "opencode" { 2 } else { 1 };
        assert!(report.starts_with(&format!("{sessions} sessions of {projects} project")), "{report}");
    }
}

#[tokio::test]
async fn logs_of_other_agents_are_mentioned_and_imported_at_once() {
    let (machine, mut logs) = (Machine::new(), Vec::new());
    for (agent, home) in [("claude-code", ".claude/projects"), ("codex", ".codex/sessions")] {
        for file in files(&fixtures(agent)) {
            let text = fs::read_to_string(&file).unwrap();
            let path = machine.at("home").join(home).join(file.strip_prefix(fixtures(agent)).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
            logs.push((path, text.replace("/home/ada/kontor", &machine.home.cwd)));
        }
    }
    let hint = |report: &str| report.lines().nth(1).map(ToOwned::to_owned);
    // Those of another project are not.
    assert_eq!(hint(&machine.run("").await), None);
    logs.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
    assert_eq!(
        hint(&machine.run("").await).unwrap(),
        "There are logs of Claude Code and Codex about this project: /lcm import --from all adds them."
    );
    assert!(machine.run("--from codex").await.starts_with("3 sessions: 16 messages new"));
    assert_eq!(
        hint(&machine.run("").await).unwrap(),
        "There are logs of Claude Code about this project: /lcm import --from claude-code adds them."
    );
    assert!(machine.run("--from all").await.starts_with("6 sessions: 19 messages new, 16 known already"));
    assert_eq!(hint(&machine.run("").await), None);
    assert_eq!(
        machine.run("--from all --all").await.split(" new").next(),
        Some("6 sessions of 1 project: 0 messages")
    );
}

#[tokio::test]
async fn an_export_of_lines_of_another_agent_is_imported_again() {
    for (agent, version) in
        [("claude-code", ""), ("codex", ""), ("gemini", "0.6"), ("gemini", "0.43"), ("gemini", "0.58")]
    {
        let machine = Machine::new();
        let logs = fixtures(agent).join(version);
        machine.run(&format!("--from {agent} \"{}\"", logs.display())).await;
        let (scope, out) = (Scope::at(ConversationId(0), None), machine.at("out"));
        let line = format!("export --from {agent} \"{}\"", out.display());
        ask_in(&machine.home, &machine.folders.session_dir, &scope, None, &line).await.unwrap();
        let other = Machine::new();
        other.run(&format!("--from {agent} \"{}\"", out.display())).await;
        // Each brings nothing where the other is, side chains included.
        for (machine, logs) in [(&machine, &out), (&other, &logs)] {
            let report = machine.run(&format!("--from {agent} \"{}\"", logs.display())).await;
            assert!(report.contains(": 0 messages new, "), "{agent}: {report}");
        }
        let mut all = [Vec::new(), Vec::new()];
        for (machine, all) in [&machine, &other].into_iter().zip(&mut all) {
            for session in machine.sessions().await {
                // A record without a time has that of its file.
                all.extend(machine.messages(&session).await.iter().map(|json| {
                    original_of(json).map(Cow::into_owned).unwrap_or_else(|| Message::parse(json).readable())
                }));
            }
            all.sort();
        }
        assert!(all[0] == all[1] && !all[0].is_empty(), "{agent}: {} and {}", all[0].len(), all[1].len());
    }
}

#[tokio::test]
async fn an_export_of_rows_says_that_it_cannot_be_imported() {
    let machine = Machine::new();
    machine.run(&format!("--from opencode \"{}\"", fixtures("opencode").join("1.0").display())).await;
    let (scope, out) = (Scope::at(ConversationId(0), None), machine.at("out"));
    let line = format!("export --from opencode \"{}\"", out.display());
    let told = ask_in(&machine.home, &machine.folders.session_dir, &scope, None, &line).await.unwrap().text;
    assert!(told.ends_with("/lcm export --jsonl --all writes files for /lcm import"), "{told}");
    let report = machine.run(&format!("--from opencode \"{}\"", out.display())).await;
    assert!(report.contains("could not be read") && report.contains("/lcm export --jsonl --all"), "{report}");
}
