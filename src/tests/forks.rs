//! Forks of other agents' sessions. Each agent copies a session in its own way, and each copy is stored in full; but
//! what is purged goes from all, and no fork brings it back.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agents::{files, fixtures};
use super::asking::ask;
use super::import::Machine;
use super::purge_agents::{purge, stored};
use crate::maintenance::export::{Exporter, Format};
use lcm_model::Message;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;

pub const SESSION: &str = "22222222-2222-4222-8222-222222222222";
pub const FORK: &str = "f2222222-2222-4222-8222-222222222222";
const CODEX: &str = "c0000000-0000-4000-8000-000000000002";

/// A session of an agent, and forks of it, each with one message of its own.
struct Forked {
    agent: &'static str,
    session: PathBuf,
    /// Each in a folder or file of its own.
    forks: Vec<PathBuf>,
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn write_lines(path: &Path, records: &[Value]) {
    write(path, &records.iter().map(|record| format!("{record}\n")).collect::<String>());
}

/// Claude Code: `--fork-session`, which keeps the ids; `/branch`, which names their origin; and its SDK, which makes new ones and
/// stores the last message with the time of the fork.
fn of_claude_code(machine: &Machine) -> Forked {
    let session = machine.at(&format!("claude/{SESSION}.jsonl"));
    let file = files(&fixtures("claude-code/2.0"))
        .into_iter()
        .find(|file| file.ends_with(session.file_name().unwrap()));
    let records = lines(&file.unwrap());
    write_lines(&session, &records);
    let fork = |name: &str, copy: &dyn Fn(&mut Value, usize)| {
        let mut forked = records.clone();
        for (n, record) in forked.iter_mut().enumerate() {
            if !record["sessionId"].is_null() {
                record["sessionId"] = FORK.replace('f', name).into();
                copy(record, n);
            }
        }
        let last = forked.last().unwrap();
        let own = json!({
            "parentUuid": last["uuid"], "sessionId": last["sessionId"], "version": "2.1.0", "cwd": "/home/ada/kontor",
            "type": "user", "uuid": format!("own-{name}"), "timestamp": "2026-03-11T09:00:00.000Z",
            "message": {"role": "user", "content": format!("Now for fork {name}.")}
        });
        forked.push(own);
        let path = machine.at(&format!("fork-{name}/{}.jsonl", FORK.replace('f', name)));
        write_lines(&path, &forked);
        path
    };
    let last = records.len() - 1;
    let forks = vec![
        fork("a", &|record, _| record["version"] = "2.1.0".into()),
        fork("b", &|record, _| {
            record["forkedFrom"] = json!({"sessionId": SESSION, "messageUuid": record["uuid"]});
        }),
        fork("c", &|record, n| {
            record["forkedFrom"] = json!({"sessionId": SESSION, "messageUuid": record["uuid"]});
            for field in ["uuid", "parentUuid", "logicalParentUuid"] {
                if let Some(id) = record[field].as_str() {
                    record[field] = format!("new-{id}").into();
                }
            }
            if n == last {
                record["timestamp"] = "2026-03-11T08:00:00.000Z".into();
            }
        }),
    ];
    Forked { agent: "claude-code", session, forks }
}

/// Codex writes its own metadata, and then each line with a new time. A subagent may also begin with its session's lines.
fn of_codex(machine: &Machine) -> Forked {
    let records = lines(&files(&fixtures("codex/0.44"))[0]);
    let session = machine.at("codex/rollout-1.jsonl");
    write_lines(&session, &records);
    let fork = |name: &str, source: Value| {
        let id = CODEX.replace("c0", name);
        let mut forked = vec![
            json!({"timestamp": "2026-01-06T10:00:00.000Z", "type": "session_meta", "payload": {
                "id": id, "forked_from_id": CODEX, "cwd": "/home/ada/kontor", "cli_version": "0.90.0", "source": source,
            }}),
        ];
        for (n, record) in records.iter().enumerate() {
            let mut record = record.clone();
            record["timestamp"] = format!("2026-01-06T10:00:00.0{:02}Z", n + 1).into();
            forked.push(record);
        }
        forked.push(json!({"timestamp": "2026-01-06T10:05:00.000Z", "type": "response_item", "payload": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("Now for fork {name}.")}]
        }}));
        let path = machine.at(&format!("fork-{name}/rollout-2.jsonl"));
        write_lines(&path, &forked);
        path
    };
    let spawned = json!({"subagent": {"thread_spawn": {"parent_thread_id": CODEX}}});
    let forks = vec![fork("d1", json!("cli")), fork("d2", json!("cli")), fork("d3", spawned)];
    Forked { agent: "codex", session, forks }
}

/// OpenCode gives new ids to the session, the messages and their parts. The session begins with the fork.
fn of_opencode(machine: &Machine) -> Forked {
    let session = machine.at("opencode/storage");
    let forks = ["20", "30"].map(|name| machine.at(&format!("fork-{name}/storage")));
    for (to, name) in std::iter::once(&session).chain(&forks).zip(["10", "20", "30"]) {
        let renamed = |text: &str| {
            ["ses_", "msg_", "prt_"].iter().fold(text.to_owned(), |text, kind| {
                text.replace(&format!("{kind}10"), &format!("{kind}{name}"))
            })
        };
        for file in files(&fixtures("opencode/1.0")) {
            let path = file.strip_prefix(fixtures("opencode/1.0").join("storage")).unwrap().to_string_lossy();
            // The session of a subagent is not copied.
            if !path.contains("11.json") && !path.contains("ses_11") && !path.contains("msg_111") {
                let began = |text: String| match name == "10" || !path.starts_with("session") {
                    true => text,
                    false => text.replace("1762000000000", "1762000800000"),
                };
                write(&to.join(renamed(&path)), &began(renamed(&fs::read_to_string(&file).unwrap())));
            }
        }
        if name != "10" {
            let id = format!("msg_{name}9");
            let own = json!({"id": id, "role": "user", "time": {"created": 1_762_000_900_000_i64}});
            write(&to.join(format!("message/ses_{name}/{id}.json")), &own.to_string());
            let says = json!({"id": "prt_9", "type": "text", "text": format!("Now for fork {name}.")});
            write(&to.join(format!("part/{id}/prt_9.json")), &says.to_string());
        }
    }
    Forked { agent: "opencode", session, forks: forks.into() }
}

const ALL: [fn(&Machine) -> Forked; 3] = [of_claude_code, of_codex, of_opencode];

/// The conversation's messages that are stored, as text.
pub async fn said(machine: &Machine) -> Vec<String> {
    let stored = stored(machine).await.into_iter().filter(|(_, said, _)| *said);
    stored.map(|(.., json)| Message::parse(&json).readable()).collect()
}

/// Exports of a machine's project, without an open session.
pub fn exporter(machine: &Machine, all: bool) -> Exporter {
    Exporter {
        home: machine.home.clone(),
        scope: Scope::at(ConversationId(0), None),
        viewer_template: None,
        cancel: CancellationToken::new(),
        all,
        force: false,
    }
}

pub async fn exported(machine: &Machine, agent: &'static str, to: &str) -> Vec<String> {
    let written = exporter(machine, false).export(Format::Log(agent), machine.at(to)).await.unwrap();
    written.files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[tokio::test]
async fn a_fork_is_stored_as_it_stands_and_a_second_import_adds_nothing() {
    for forked in ALL {
        let machine = Machine::new();
        let Forked { agent, session, forks } = forked(&machine);
        let import = async |path: &Path| machine.run(&format!("--from {agent} \"{}\"", path.display())).await;
        import(&session).await;
        let own = said(&machine).await;
        for (n, fork) in forks.iter().enumerate() {
            import(fork).await;
            let said = said(&machine).await;
            assert!(
                own.iter().all(|text| said.iter().filter(|said| *said == text).count() >= 2),
                "{agent} {n}"
            );
            let digest = machine.digest().await;
            assert!(import(fork).await.contains(": 0 messages new, "));
            assert_eq!(machine.digest().await, digest);
        }
        let logs = exported(&machine, agent, "logs").await;
        for path in std::iter::once(&session).chain(&forks).flat_map(|path| match path.is_dir() {
            true => files(path),
            false => vec![path.clone()],
        }) {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.trim_end();
            let is_whole = |log: &&String| log.contains(text);
            assert_eq!(logs.iter().filter(is_whole).count(), 1, "{}: {logs:#?}", path.display());
        }
        let scope = Scope::at(ConversationId(0), None);
        let doctor = ask(&machine.home.store, &scope, "doctor").await.unwrap().text;
        assert!(doctor.ends_with("Everything is in order."), "{doctor}");
    }
}

#[tokio::test]
async fn a_purge_takes_the_copies_of_forks_and_no_fork_brings_it_back() {
    for forked in ALL {
        for n in 0.. {
            let machine = Machine::new();
            let Forked { agent, session, forks } = forked(&machine);
            let import =
                async |path: &Path| machine.run(&format!("--from {agent} \"{}\"", path.display())).await;
            import(&session).await;
            let conversation: Vec<_> =
                stored(&machine).await.into_iter().filter(|(_, said, _)| *said).collect();
            let Some((id, _, json)) = conversation.get(n) else { break };
            import(&forks[0]).await;
            purge(&machine, *id).await;
            let text = Message::parse(json).readable();
            // A short text may be said again: it is recognized at the same time only, and some forks have others.
            let is_recognized = text.len() >= 32;
            let line = text.lines().max_by_key(|line| line.len()).unwrap_or_default();
            let escaped = json!(line).to_string();
            let is_left = async || {
                let stored = stored(&machine).await;
                let is_shown = |json: &str| Message::parse(json).readable() == text;
                let has_it = |json: &str| {
                    json.contains(escaped.trim_matches('"'))
                        && !Message::parse(json).readable().contains(line)
                };
                stored
                    .iter()
                    .any(|(.., json)| is_shown(json) && is_recognized || line.len() >= 32 && has_it(json))
            };
            assert!(!is_left().await, "{agent} {n}: {text}");
            for log in [&session, &forks[0]] {
                let again = import(log).await;
                assert!(again.contains(": 0 messages new, "), "{agent} {n}: {again}");
            }
            for fork in &forks[1..] {
                import(fork).await;
                assert!(!is_left().await, "{agent} {n}: {text}");
            }
            let scope = Scope::at(ConversationId(0), None);
            let doctor = ask(&machine.home.store, &scope, "doctor").await.unwrap().text;
            assert!(doctor.ends_with("Everything is in order."), "{doctor}");
        }
    }
}
