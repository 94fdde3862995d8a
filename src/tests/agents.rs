//! `/lcm import --from AGENT`: sessions of other agents. The logs in `fixtures/` are written by hand from
//! the sources that each reader names; each folder is named after the version that writes such logs.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::import::{Machine, ask_import};
use super::support::{Session, ask_in};
use crate::commands::import::Importer;
use crate::maintenance::export::{Exporter, Format};
use crate::tools::{Block, call};
use lcm_model::ids::AGENTS;
use lcm_model::ids::ConversationId;
use lcm_model::original_of;
use lcm_recall::Scope;

/// The folder of an agent's fixtures. Databases are kept as SQL.
pub fn fixtures(agent: &str) -> PathBuf {
    static BUILT: LazyLock<TempDir> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let of = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/fixtures");
        for file in files(&of) {
            let path = dir.path().join(file.strip_prefix(&of).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(&file, &path).unwrap();
            if file.extension().is_some_and(|ending| ending == "sql") {
                fs::remove_file(&path).unwrap();
                let database = rusqlite::Connection::open(path.with_extension("db")).unwrap();
                database.execute_batch(&fs::read_to_string(&file).unwrap()).unwrap();
            }
        }
        dir
    });
    BUILT.path().join(agent)
}

/// All files of a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
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

/// The expected report for each agent's fixtures.
const REPORTS: [(&str, &str); 4] = [
    (
        "claude-code",
        "3 sessions: 19 messages new, 0 known already; 1 record of an unknown kind is stored, but not searched",
    ),
    (
        "codex",
        "3 sessions: 16 messages new, 0 known already; 2 records of unknown kinds are stored, but not searched",
    ),
    (
        "gemini",
        "3 sessions: 14 messages new, 0 known already; 2 records of unknown kinds are stored, but not searched",
    ),
    (
        "opencode",
        "4 sessions: 20 messages new, 0 known already; 3 records of unknown kinds are stored, but not searched",
    ),
];

#[tokio::test]
async fn logs_of_each_version_are_imported_and_a_second_import_changes_nothing() {
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
async fn every_line_is_returned_byte_for_byte() {
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
async fn a_byte_order_mark_at_the_start_of_a_log_changes_nothing_but_its_line() {
    for (agent, report) in REPORTS.into_iter().take(3) {
        let (plain, marked) = (Machine::new(), Machine::new());
        plain.run(&format!("--from {agent} \"{}\"", fixtures(agent).display())).await;
        for file in files(&fixtures(agent)) {
            let path = marked.at("logs").join(file.strip_prefix(fixtures(agent)).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("\u{feff}{}", fs::read_to_string(file).unwrap())).unwrap();
        }
        assert_eq!(marked.run(&format!("--from {agent} \"{}\"", marked.at("logs").display())).await, report);
        let ((records, words), (own, same)) =
            (records_and_words(&plain).await, records_and_words(&marked).await);
        assert_eq!(same, words, "{agent}");
        let is_marked = |record: &&String| record.starts_with('\u{feff}');
        assert!(own.iter().any(|record| is_marked(&record)));
        let without = |record: &String| record.trim_start_matches('\u{feff}').to_owned();
        assert_eq!(own.iter().map(without).collect::<Vec<_>>(), records, "{agent}");
    }
}

#[tokio::test]
async fn an_export_writes_the_agents_own_records() {
    let machine = Machine::new();
    machine.run(&format!("--from codex \"{}\"", fixtures("codex").display())).await;
    let folder = machine.at("logs");
    let export = async |format, path: &Path| {
        let scope = Scope::at(ConversationId(0), None);
        let exporter = Exporter {
            home: machine.home.clone(),
            scope,
            viewer_template: None,
            cancel: CancellationToken::new(),
            all: false,
            force: false,
        };
        exporter.export(format, path.to_owned()).await
    };
    let exported = export(Format::Log("codex"), &folder).await.unwrap();
    let lines = |files: &[PathBuf]| {
        let mut lines: Vec<String> = (files.iter())
            .flat_map(|file| {
                fs::read_to_string(file).unwrap().lines().map(ToOwned::to_owned).collect::<Vec<_>>()
            })
            .collect();
        lines.sort();
        lines
    };
    assert_eq!((exported.files.len(), exported.messages), (4, 16));
    assert_eq!(lines(&exported.files), lines(&files(&fixtures("codex"))));
    let refused = export(Format::Log("gemini"), &folder).await.unwrap_err().to_string();
    assert_eq!(refused, "this project has no sessions of gemini: /lcm import --from gemini adds them");
    let says =
        format!("{} is a file: --from needs a folder, for one file per session", exported.files[0].display());
    for path in [exported.files[0].clone(), exported.files[0].join("below")] {
        assert_eq!(export(Format::Log("codex"), &path).await.unwrap_err().to_string(), says);
    }
}

#[tokio::test]
async fn session_files_of_other_agents_are_the_same_after_an_import_and_said_to_be_only_for_it() {
    let machine = Machine::new();
    machine.write("a.jsonl", "pi-session", &Session::new().user("Of the flamingo.").entries);
    machine.run("").await;
    machine.run(&format!("--from codex \"{}\"", fixtures("codex").display())).await;
    let scope = Scope::at(ConversationId(1), None);
    let answer =
        ask_in(&machine.home, &machine.at(""), &scope, None, "export --jsonl --all out").await.unwrap();
    let said = "\n3 files are other agents' sessions, for /lcm import only: Pi can't open them";
    assert!(answer.text.ends_with(said), "{}", answer.text);
    assert_eq!(answer.answer["onlyForImport"], 3);
    let own = ask_in(&machine.home, &machine.at(""), &scope, None, "export --jsonl").await.unwrap();
    assert!(!own.text.contains("import only") && own.answer["onlyForImport"] == 0, "{}", own.text);

    let other = Machine::new();
    let folder = Path::new(&machine.home.cwd).join("out");
    assert_eq!(
        other.run(&folder.display().to_string()).await,
        "4 sessions: 17 messages new, 0 known already"
    );
    for session in machine.sessions().await {
        assert_eq!(other.messages(&session).await, machine.messages(&session).await);
    }
    let again = other.run(&format!("--from codex \"{}\"", fixtures("codex").display())).await;
    assert!(again.starts_with("3 sessions: 0 messages new, 16 known already"), "{again}");
}

#[tokio::test]
async fn a_purge_names_the_agents_whose_logs_stay_and_no_import_brings_them_back() {
    for (agent, _) in REPORTS {
        let machine = Machine::new();
        let line = format!("--from {agent} \"{}\"", fixtures(agent).display());
        machine.run(&line).await;
        machine.write("a.jsonl", "pi-session", &Session::new().user("Of the flamingo.").entries);
        machine.run("").await;
        let scope = Scope::at(ConversationId(0), None);
        let ask = async |line: &str| ask(&machine.home.store, &scope, line).await.unwrap().text;
        for session in machine.sessions().await {
            let answer = ask(&format!("purge {session} --yes")).await;
            let is_named = answer.contains(&format!("logs of other agents, if they still exist: {agent}"));
            assert_eq!(is_named, session.starts_with(agent), "{answer}");
        }
        let again = machine.run(&line).await;
        assert!(again.contains(": 0 messages new, "), "{again}");
        assert_eq!(ask("search flamingo --project").await, "Nothing found for flamingo, thinking aside.");
    }
}

#[tokio::test]
async fn a_project_search_names_the_agent_and_can_filter_by_it() {
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
    let ask = async |rest: Value| {
        let mut arguments = json!({"query": "flamingo", "session": "project", "role": "user"});
        arguments.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let store = machine.home.store.clone();
        let scope = store
            .read(|view| {
                Ok(Scope::at(view.messages().conversation("pi-session")?.unwrap(), Some("e3".into())))
            })
            .await
            .unwrap();
        let cancel = CancellationToken::new();
        match call(&store, &scope, "lcm_grep", &arguments.to_string(), None, &cancel).await.unwrap().remove(0)
        {
            Block::Text(text) => text,
            other => panic!("{other:?}"),
        }
    };
    let all = ask(json!({})).await;
    for who in ["· user ·", "· claude-code user ·", "· codex user ·", "· gemini user ·", "· opencode user ·"]
    {
        assert!(all.contains(who), "{who}: {all}");
    }
    let one = ask(json!({"agent": "codex"})).await;
    assert!(one.contains("· codex user ·") && !one.contains("claude-code"), "{one}");
    assert!(one.contains("Session codex:c0000000") && !one.contains("Not summarized"), "{one}");
    let own = ask(json!({"agent": "pi"})).await;
    assert!(own.contains("· user ·") && !own.contains("codex user"), "{own}");
}

#[tokio::test]
async fn a_shown_message_names_its_agent() {
    let machine = Machine::new();
    machine.run(&format!("--from codex \"{}\"", fixtures("codex").display())).await;
    let scope = Scope::at(ConversationId(0), None);
    let found = ask(&machine.home.store, &scope, "search stork --project").await.unwrap().answer;
    let id = found["hits"][0]["id"].as_str().unwrap();
    let shown = ask(&machine.home.store, &scope, &format!("show {id}")).await.unwrap();
    assert!(shown.text.starts_with(&format!("{id} · codex assistant · ")), "{}", shown.text);
    assert_eq!(shown.answer["agent"], "codex");
}

#[tokio::test]
async fn a_growing_log_is_continued_and_an_incomplete_line_waits() {
    let file = files(&fixtures("codex").join("0.44")).remove(0);
    let whole = fs::read_to_string(&file).unwrap();
    let machine = Machine::new();
    let path = machine.at("log.jsonl");
    let cut = whole.find("apply_patch").unwrap();
    fs::write(&path, &whole[..cut]).unwrap();
    let line = format!("--from codex \"{}\"", path.display());
    assert_eq!(
        machine.run(&line).await,
        "1 session: 1 message new, 0 known already, 1 unfinished last line left for the next import"
    );
    fs::write(&path, &whole).unwrap();
    assert_eq!(machine.run(&line).await, "1 session: 3 messages new, 1 known already");
    let at_once = Machine::new();
    at_once.run(&format!("--from codex \"{}\"", file.display())).await;
    assert_eq!(machine.digest().await, at_once.digest().await);
}

#[tokio::test]
async fn a_session_in_two_logs_is_stored_once_and_counted_right() {
    let file = files(&fixtures("codex").join("0.44")).remove(0);
    let whole = fs::read_to_string(&file).unwrap();
    let machine = Machine::new();
    fs::create_dir(machine.at("logs")).unwrap();
    fs::write(machine.at("logs/rollout-1.jsonl"), &whole[..whole.find("apply_patch").unwrap()]).unwrap();
    fs::write(machine.at("logs/rollout-2.jsonl"), &whole).unwrap();
    let line = format!("--from codex \"{}\"", machine.at("logs").display());
    assert_eq!(
        machine.run(&line).await,
        "1 session: 4 messages new, 1 known already, 1 unfinished last line left for the next import"
    );
    let at_once = Machine::new();
    at_once.run(&format!("--from codex \"{}\"", file.display())).await;
    assert_eq!(machine.digest().await, at_once.digest().await);
}

#[tokio::test]
async fn a_file_that_is_not_a_log_is_reported_in_one_sentence() {
    let machine = Machine::new();
    let path = machine.at("notes.jsonl");
    fs::write(&path, "{\"a\":1}\nnot json\n").unwrap();
    for (agent, title) in [
        ("claude-code", "Claude Code"),
        ("codex", "Codex"),
        ("gemini", "Gemini CLI"),
        ("opencode", "OpenCode"),
    ] {
        let report = machine.run(&format!("--from {agent} \"{}\"", path.display())).await;
        let expected = format!("1 file could not be read (notes.jsonl: it is not a log of {title})");
        assert!(report.ends_with(&expected), "{report}");
    }
    let refused = |line: &'static str| {
        let machine = &machine;
        async move {
            ask_import(&Importer::default(), &machine.home, &machine.folders, line)
                .await
                .unwrap_err()
                .to_string()
        }
    };
    assert_eq!(refused("--from codex /nowhere").await, "there is no /nowhere");
    assert_eq!(
        refused("--from clippy").await,
        "--from takes claude-code, codex, gemini, opencode, and clippy is none of them"
    );
}

/// The records of a session's messages, and their texts.
pub async fn records_and_words(machine: &Machine) -> (Vec<String>, Vec<String>) {
    let (mut records, mut words) = (Vec::new(), Vec::new());
    for session in machine.sessions().await {
        for json in machine.messages(&session).await {
            records.extend(original_of(&json).map(Cow::into_owned));
            let message: Value = serde_json::from_str(&json).unwrap();
            if message["role"] != "system" {
                words.push(format!("{} {}", message["role"].as_str().unwrap(), message["content"]));
            }
        }
    }
    (records, words)
}

#[tokio::test]
async fn a_rewritten_record_is_kept_in_each_version_and_its_messages_once() {
    let machine = Machine::new();
    machine.run(&format!("--from gemini \"{}\"", fixtures("gemini").display())).await;
    let (mut records, words) = records_and_words(&machine).await;
    assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len(), "{words:#?}");
    for file in files(&fixtures("gemini")) {
        let whole = fs::read_to_string(&file).unwrap();
        match file.extension().and_then(OsStr::to_str) {
            Some("jsonl") => {
                for line in whole.lines() {
                    let at = records.iter().position(|record| record == line);
                    records.swap_remove(at.unwrap_or_else(|| panic!("{line}")));
                }
            }
            Some("json") => records.retain(|record| !whole.contains(record.trim_end_matches('}'))),
            _ => {}
        }
    }
    // A session in one object is stored as its messages, and as the text around them.
    assert_eq!(records.len(), 1, "{records:#?}");
    assert!(records[0].contains("\"messages\": [\n    \n  ]"), "{records:#?}");
}

#[tokio::test]
async fn new_messages_of_a_rewritten_session_are_added() {
    let [json, lines] = ["0.6", "0.43"].map(|version| files(&fixtures("gemini").join(version)).remove(0));
    let lines = files(lines.parent().unwrap())
        .into_iter()
        .find(|file| file.to_string_lossy().contains("session-"))
        .unwrap();
    let whole: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let mut half = whole.clone();
    half["messages"].as_array_mut().unwrap().truncate(2);
    half["messages"][1].as_object_mut().unwrap().remove("toolCalls");
    let text = fs::read_to_string(&lines).unwrap();
    let cut = text.match_indices('\n').nth(5).unwrap().0 + 1;
    for (name, before, after) in [
        ("session-1.json", half.to_string(), fs::read_to_string(&json).unwrap()),
        ("session-2.jsonl", text[..cut].to_owned(), text.clone()),
    ] {
        let machine = Machine::new();
        let path = machine.at(name);
        let line = format!("--from gemini \"{}\"", path.display());
        fs::write(&path, before).unwrap();
        machine.run(&line).await;
        let (_, said) = records_and_words(&machine).await;
        fs::write(&path, &after).unwrap();
        assert!(machine.run(&line).await.starts_with("1 session: "));
        let (records, words) = records_and_words(&machine).await;
        assert!(said.iter().all(|word| words.contains(word)) && words.len() > said.len(), "{words:#?}");
        let digest = machine.digest().await;
        assert!(machine.run(&line).await.contains(": 0 messages new, "));
        assert_eq!(machine.digest().await, digest);

        let at_once = Machine::new();
        fs::write(at_once.at(name), &after).unwrap();
        at_once.run(&format!("--from gemini \"{}\"", at_once.at(name).display())).await;
        let (all, at_once) = records_and_words(&at_once).await;
        assert_eq!(words, at_once);
        assert!(all.iter().all(|record| records.contains(record)), "{records:#?}");
    }
}

#[tokio::test]
async fn opencodes_database_and_its_earlier_files_give_the_same_session() {
    let machine = Machine::new();
    let database = fixtures("opencode").join("1.2/opencode.db");
    let own = machine.at("opencode.db");
    fs::copy(database, &own).unwrap();
    let line = format!("--from opencode \"{}\"", own.display());
    machine.run(&line).await;
    let (_, said) = records_and_words(&machine).await;

    // The tool answers while another session writes.
    let writer = rusqlite::Connection::open(&own).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    let answered = json!({"type": "tool", "callID": "toolu_4", "tool": "read", "state": {
        "status": "completed", "input": {"filePath": "src/rates.rs"}, "output": "pub fn rate()", "title": "", "metadata": {},
        "time": {"start": 1, "end": 2}}});
    writer.execute("UPDATE part SET data = ?1 WHERE id = 'prt_1221'", [answered.to_string()]).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE session SET title = 'x'").unwrap();
    let report = machine.run(&line).await;
    assert!(report.starts_with("2 sessions: 1 message new, "), "{report}");
    let (records, words) = records_and_words(&machine).await;
    assert_eq!(words.len(), said.len() + 1, "{words:#?}");
    assert!(words.iter().any(|words| words.contains("pub fn rate()")));
    assert!(
        records.iter().any(|record| record.contains("running")) && records.contains(&answered.to_string())
    );

    // The earlier file format gives the same messages.
    let storage = machine.at("storage");
    for (path, json) in [
        (
            "session/4b0ea68d/ses_12.json",
            json!({"id": "ses_12", "version": "1.1.60", "directory": "/home/ada/kontor"}),
        ),
        (
            "message/ses_12/msg_121.json",
            json!({"id": "msg_121", "role": "user", "time": {"created": 1_771_000_001_000_i64}}),
        ),
        (
            "part/msg_121/prt_1211.json",
            json!({"id": "prt_1211", "type": "text", "text": "Is the flamingo rule used for exchange rates?"}),
        ),
    ] {
        let path = storage.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json.to_string()).unwrap();
    }
    let report = machine.run(&format!("--from opencode \"{}\"", storage.display())).await;
    assert_eq!(report, "1 session: 0 messages new, 1 known already");
    assert_eq!(records_and_words(&machine).await.1.len(), words.len());
}
