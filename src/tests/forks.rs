//! Forks of other agents' sessions. Each agent copies a session in its own way; each message is stored once, and each
//! record as it is.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agents::{files, fixtures};
use super::asking::ask;
use super::import::Machine;
use super::purge_agents::{database, purge, stored};
use crate::commands::import::Importer;
use crate::ids::ConversationId;
use crate::ingest::import::Home;
use crate::model::Message;
use crate::recall::Scope;
use crate::store::Store;
use crate::upkeep::export::{Exporter, Format};

const SESSION: &str = "22222222-2222-4222-8222-222222222222";
const FORK: &str = "f2222222-2222-4222-8222-222222222222";
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

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn write_lines(path: &Path, records: &[Value]) {
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

/// OpenCode gives new ids to the session, the messages and their parts.
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
                write(&to.join(renamed(&path)), &renamed(&fs::read_to_string(&file).unwrap()));
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
async fn said(machine: &Machine) -> Vec<String> {
    let stored = stored(machine).await.into_iter().filter(|(_, said, _)| *said);
    stored.map(|(.., json)| Message::parse(&json).readable()).collect()
}

async fn exported(machine: &Machine, agent: &'static str, to: &str) -> Vec<String> {
    let exporter = Exporter {
        home: machine.home.clone(),
        scope: Scope::at(ConversationId(0), None),
        viewer_template: None,
        cancel: CancellationToken::new(),
        all: false,
        force: false,
    };
    let written = exporter.export(Format::Log(agent), machine.at(to)).await.unwrap();
    written.files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[tokio::test]
async fn a_fork_that_comes_first_shares_its_messages_too() {
    for forked in ALL {
        let machine = Machine::new();
        let Forked { agent, session, forks } = forked(&machine);
        let import = async |path: &Path| machine.run(&format!("--from {agent} \"{}\"", path.display())).await;
        // A subagent is not imported before its session.
        let forks = if agent == "codex" { &forks[..2] } else { &forks[..] };
        import(forks.last().unwrap()).await;
        let own = said(&machine).await.len() - 1;
        for fork in forks.iter().rev().skip(1) {
            import(fork).await;
        }
        let report = import(&session).await;
        assert!(report.contains(&format!(": 0 messages new, {own} known already")), "{agent}: {report}");
        assert_eq!(said(&machine).await.len(), own + forks.len());
    }
}

#[tokio::test]
async fn a_purge_takes_the_records_of_all_forks_and_no_fork_brings_it_back() {
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
            let left = said(&machine).await.len();
            let text = Message::parse(json).readable();
            let line = text.lines().max_by_key(|line| line.len()).unwrap_or_default();
            let escaped = json!(line).to_string();
            let is_left = async || {
                let stored = stored(&machine).await;
                let has_it = |json: &str| json.contains(escaped.trim_matches('"'));
                line.len() >= 32
                    && stored
                        .iter()
                        .any(|(.., json)| has_it(json) && !Message::parse(json).readable().contains(line))
            };
            assert!(!is_left().await, "{agent}: {text}");
            for log in [&session, &forks[0]] {
                let again = import(log).await;
                assert!(again.contains(": 0 messages new, "), "{agent} {n}: {again}");
            }
            // Codex copies messages with new times.
            let later = if agent == "codex" { &[][..] } else { &forks[1..] };
            for (more, fork) in later.iter().enumerate() {
                let report = import(fork).await;
                assert_eq!(
                    said(&machine).await.len(),
                    left + more + 1,
                    "{agent} {n}: {report}\n{:#?}",
                    said(&machine).await
                );
                assert!(!is_left().await, "{agent}: {text}");
            }
            let scope = Scope::at(ConversationId(0), None);
            let doctor = ask(&machine.home.store, &scope, "doctor").await.unwrap().text;
            assert!(doctor.ends_with("Everything is in order."), "{doctor}");
        }
    }
}

#[tokio::test]
async fn a_fork_shares_its_messages_and_keeps_its_records() {
    for forked in ALL {
        let machine = Machine::new();
        let Forked { agent, session, forks } = forked(&machine);
        let import = async |path: &Path| machine.run(&format!("--from {agent} \"{}\"", path.display())).await;
        import(&session).await;
        let own = said(&machine).await.len();
        for (n, fork) in forks.iter().enumerate() {
            let report = import(fork).await;
            assert_eq!(
                said(&machine).await.len(),
                own + n + 1,
                "{agent} {n}: {report}\n{:#?}",
                said(&machine).await
            );
            let known = format!(": 1 message new, {own} known already");
            assert!(report.contains(&known), "{agent} {n}: {report}");
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
        let sql = "SELECT sum(length(json)), sum(bytes) FROM messages WHERE codec = 2";
        let (packed, bytes): (usize, usize) =
            database(&machine).query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert!(packed * 4 < bytes, "{packed} of {bytes} bytes");
    }
}

/// Messages of Claude Code, each below the one before.
fn chain(session: &str, texts: &[&str]) -> Vec<Value> {
    let record = |(n, text): (usize, &&str)| {
        json!({
            "parentUuid": n.checked_sub(1).map(|above| format!("u{above}")), "sessionId": session, "version": "2.1.0",
            "cwd": "/home/ada/kontor", "type": if n % 2 == 0 { "user" } else { "assistant" }, "uuid": format!("u{n}"),
            "timestamp": format!("2026-05-05T10:00:{n:02}.000Z"), "message": {"content": text}
        })
    };
    texts.iter().enumerate().map(record).collect()
}

/// The same records in a fork by `/branch`.
fn branched(mut records: Vec<Value>) -> Vec<Value> {
    for record in &mut records {
        record["sessionId"] = FORK.into();
        record["forkedFrom"] = json!({"sessionId": SESSION, "messageUuid": record["uuid"]});
    }
    records
}

const TEXTS: [&str; 4] = ["Where is it?", "In the garden.", "Which garden?", "The one behind the house."];

#[tokio::test]
async fn a_log_that_has_each_message_twice_stores_it_once() {
    let all = chain(FORK, &TEXTS).into_iter().zip(branched(chain(SESSION, &TEXTS)));
    let all: Vec<Value> = all.flat_map(|(plain, named)| [plain, named]).collect();
    for first in [0, 1, 3, all.len()] {
        let machine = Machine::new();
        let (session, log) =
            (machine.at(&format!("{SESSION}.jsonl")), machine.at(&format!("fork/{FORK}.jsonl")));
        write_lines(&session, &chain(SESSION, &TEXTS));
        let import =
            async |path: &Path| machine.run(&format!("--from claude-code \"{}\"", path.display())).await;
        if first == 0 {
            import(&session).await;
        } else {
            write_lines(&log, &all[..first]);
            import(&log).await;
        }
        write_lines(&log, &all);
        import(&log).await;
        assert_eq!(said(&machine).await, TEXTS, "{first}");
        let logs = exported(&machine, "claude-code", "logs").await;
        assert!(logs.contains(&fs::read_to_string(&log).unwrap()), "{logs:#?}");
    }
}

#[tokio::test]
async fn a_record_with_two_messages_that_a_fork_repeats_is_stored_once() {
    let machine = Machine::new();
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let mut records = chain(SESSION, &TEXTS[..3]);
    records[2]["message"]["content"] = json!([result("a", "One."), result("b", "Two.")]);
    for name in [SESSION, FORK] {
        let mut records = records.clone();
        if name == FORK {
            records.push(records[2].clone());
            records.iter_mut().for_each(|record| record["version"] = "2.2.0".into());
        }
        let log = machine.at(&format!("{name}.jsonl"));
        write_lines(&log, &records);
        machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
    }
    // The last record of a fork by the SDK has another time.
    let mut forked = branched(records);
    forked[2]["timestamp"] = "2026-05-06T10:00:00.000Z".into();
    let log = machine.at(&format!("{}.jsonl", FORK.replace('f', "e")));
    write_lines(&log, &forked);
    machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
    assert_eq!(said(&machine).await.len(), 4);
}

#[tokio::test]
async fn a_fork_may_leave_out_what_says_nothing() {
    for is_fork_first in [true, false] {
        let machine = Machine::new();
        let mut records = chain(SESSION, &TEXTS);
        let progress = json!({
            "parentUuid": "u1", "sessionId": SESSION, "version": "2.1.0", "type": "progress", "uuid": "p1",
            "timestamp": "2026-05-05T10:00:01.500Z", "data": {"type": "hook_progress"}
        });
        records.insert(2, progress);
        records[3]["parentUuid"] = "p1".into();
        let mut logs = [(SESSION, records), (FORK, branched(chain(SESSION, &TEXTS)))];
        if is_fork_first {
            logs.reverse();
        }
        for (name, records) in logs {
            let log = machine.at(&format!("{name}.jsonl"));
            write_lines(&log, &records);
            machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
        }
        assert_eq!(said(&machine).await, TEXTS);
    }
}

#[tokio::test]
async fn messages_that_are_alike_stay_two_however_the_log_grows() {
    let mut records = chain(SESSION, &["Go on?", "Shall I?", "yes", "First.", "yes", "Second."]);
    for (n, above) in [(3, "u2"), (4, "u1"), (5, "u4")] {
        records[n]["parentUuid"] = above.into();
    }
    records[4]["timestamp"] = records[2]["timestamp"].clone();
    for first in 1..=records.len() {
        let machine = Machine::new();
        let log = machine.at(&format!("{SESSION}.jsonl"));
        for end in [first, records.len()] {
            write_lines(&log, &records[..end]);
            machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
        }
        assert_eq!(said(&machine).await.len(), records.len(), "{first}");
        let fork = machine.at(&format!("fork/{FORK}.jsonl"));
        write_lines(&fork, &branched(records.clone()));
        let report = machine.run(&format!("--from claude-code \"{}\"", fork.display())).await;
        assert_eq!(report, "1 session: 0 messages new, 6 known already");
    }
}

#[tokio::test]
async fn two_processes_import_a_fork_at_once() {
    let machine = Machine::new();
    let texts: Vec<String> = (0..3000).map(|n| format!("Message {n}.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (session, fork) =
        (machine.at(&format!("{SESSION}.jsonl")), machine.at(&format!("fork/{FORK}.jsonl")));
    write_lines(&session, &chain(SESSION, &texts));
    write_lines(&fork, &branched(chain(SESSION, &texts)));
    machine.run(&format!("--from claude-code \"{}\"", session.display())).await;
    let store = Store::of_project(Some(&machine.at("db")), &machine.home.cwd).unwrap();
    let other = Home { store, ..machine.home.clone() };
    let line = format!("--from claude-code \"{}\"", fork.display());
    let (one, two) = (Importer::default(), Importer::default());
    let (one, two) = tokio::join!(
        one.run(&machine.home, &machine.folders, &line),
        two.run(&other, &machine.folders, &line)
    );
    for report in [one, two] {
        assert_eq!(report.unwrap().text, "1 session: 0 messages new, 3,000 known already");
    }
    let logs = exported(&machine, "claude-code", "logs").await;
    assert!(logs.contains(&fs::read_to_string(&fork).unwrap()));
}

#[tokio::test]
async fn an_unreadable_message_does_not_keep_a_fork_out() {
    let machine = Machine::new();
    let (session, fork) =
        (machine.at(&format!("{SESSION}.jsonl")), machine.at(&format!("fork/{FORK}.jsonl")));
    write_lines(&session, &chain(SESSION, &TEXTS));
    write_lines(&fork, &branched(chain(SESSION, &TEXTS)));
    machine.run(&format!("--from claude-code \"{}\"", session.display())).await;
    database(&machine).execute("UPDATE messages SET json = x'00' WHERE id = 2", []).unwrap();
    let report = machine.run(&format!("--from claude-code \"{}\"", fork.display())).await;
    assert_eq!(report, "1 session: 3 messages new, 1 known already");
}

#[tokio::test]
async fn a_fork_of_a_fork_shares_its_messages_in_any_order_and_after_a_purge() {
    let says = |time: String, text: &str| {
        let content = json!([{"type": "input_text", "text": text}]);
        json!({"timestamp": time, "type": "response_item", "payload": {"type": "message", "role": "user", "content": content}})
    };
    let begins = |id: &str, from: Option<&str>| {
        let payload = json!({"id": id, "forked_from_id": from, "cwd": "/home/ada/kontor"});
        json!({"timestamp": "2026-01-05T10:00:00.000Z", "type": "session_meta", "payload": payload})
    };
    let mut logs = vec![vec![begins("a", None)]];
    logs[0]
        .extend(TEXTS.iter().enumerate().map(|(n, text)| says(format!("2026-01-05T10:00:0{n}.000Z"), text)));
    for (n, (id, from)) in [("b", "a"), ("c", "b")].into_iter().enumerate() {
        let mut log = vec![begins(id, Some(from))];
        log.extend(logs[n].clone());
        for (line, record) in log.iter_mut().enumerate() {
            record["timestamp"] = format!("2026-01-0{}T10:00:00.0{line:02}Z", n + 6).into();
        }
        log.push(says(format!("2026-01-0{}T11:00:00.000Z", n + 6), &format!("Now for {id}.")));
        logs.push(log);
    }
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let machine = Machine::new();
        for n in order {
            let log = machine.at(&format!("{n}/rollout-{n}.jsonl"));
            write_lines(&log, &logs[n]);
            machine.run(&format!("--from codex \"{}\"", log.display())).await;
        }
        let said = said(&machine).await;
        assert_eq!(said.len(), 6, "{order:?}: {said:#?}");
    }
    let machine = Machine::new();
    for (n, log) in logs.iter().enumerate() {
        let path = machine.at(&format!("{n}/rollout-{n}.jsonl"));
        write_lines(&path, log);
        machine.run(&format!("--from codex \"{}\"", path.display())).await;
        if n == 0 {
            let last = stored(&machine).await.pop().unwrap();
            purge(&machine, last.0).await;
        }
    }
    assert_eq!(said(&machine).await.len(), 6);
}

#[tokio::test]
async fn a_part_that_grew_carries_no_record_of_another_session() {
    let machine = Machine::new();
    let storage = machine.at("storage");
    let put = |session: &str, state: Value| {
        let file =
            |path: &str, json: Value| write(&storage.join(path.replace('#', session)), &json.to_string());
        let id = |kind: &str| format!("{kind}_{session}");
        file(
            "session/p/ses_#.json",
            json!({"id": id("ses"), "version": "1.0", "directory": "/home/ada/kontor"}),
        );
        file(
            "message/ses_#/msg_#.json",
            json!({"id": id("msg"), "role": "assistant", "time": {"created": 1_762_000_000_000_i64}}),
        );
        file(
            "part/msg_#/prt_#.json",
            json!({"id": id("prt"), "type": "tool", "callID": "c", "tool": "bash", "state": state}),
        );
    };
    let import = async || machine.run(&format!("--from opencode \"{}\"", storage.display())).await;
    put("a", json!({"status": "running", "input": {"command": "ls"}}));
    import().await;
    let done = json!({"status": "completed", "input": {"command": "ls"}, "output": "one and two"});
    put("a", done.clone());
    import().await;
    put("b", done);
    assert_eq!(import().await, "2 sessions: 0 messages new, 4 known already");
    let logs = exported(&machine, "opencode", "logs").await;
    let of_fork = logs.iter().find(|log| log.contains("ses_b")).unwrap();
    assert!(of_fork.lines().count() == 3 && !of_fork.contains("prt_a"), "{of_fork}");
}

#[tokio::test]
async fn a_fork_keeps_its_records_in_another_store() {
    let write = |machine: &Machine| {
        let sdk = |mut records: Vec<Value>| {
            for record in &mut records {
                for field in ["uuid", "parentUuid"] {
                    if let Some(id) = record[field].as_str() {
                        record[field] = format!("new-{id}").into();
                    }
                }
                record["sessionId"] = FORK.replace('f', "e").into();
            }
            records
        };
        let logs = [
            (SESSION.to_owned(), chain(SESSION, &TEXTS)),
            (FORK.to_owned(), branched(chain(SESSION, &TEXTS[..3]))),
            (FORK.replace('f', "e"), sdk(branched(chain(SESSION, &TEXTS)))),
        ];
        logs.map(|(name, records)| {
            let log = machine.at(&format!("logs/{name}.jsonl"));
            write_lines(&log, &records);
            log
        })
    };
    for (theirs, own) in [("01", "1"), ("10", "0"), ("01", "2"), ("12", "0"), ("012", "21"), ("210", "01")] {
        for is_database in [true, false] {
            let (from, to) = (Machine::new(), Machine::new());
            for (machine, order) in [(&from, theirs), (&to, own)] {
                let logs = write(machine);
                for n in order.bytes().map(|n| usize::from(n - b'0')) {
                    machine.run(&format!("--from claude-code \"{}\"", logs[n].display())).await;
                }
            }
            let exporter = Exporter {
                home: from.home.clone(),
                scope: Scope::at(ConversationId(0), None),
                viewer_template: None,
                cancel: CancellationToken::new(),
                all: true,
                force: false,
            };
            let path = match is_database {
                true => {
                    let copy = from.at("copy.db");
                    database(&from).execute("VACUUM INTO ?1", [copy.to_string_lossy()]).unwrap();
                    copy
                }
                false => {
                    exporter.export(Format::SessionFile, from.at("out")).await.unwrap();
                    from.at("out")
                }
            };
            let report = to.run(&format!("\"{}\"", path.display())).await;
            assert!(!report.contains("differ"), "{theirs} {own}: {report}");
            assert_eq!(said(&to).await, TEXTS, "{theirs} {own}");
            let logs = exported(&to, "claude-code", "exported").await;
            for log in write(&to)
                .iter()
                .filter(|log| logs.iter().any(|of| of.contains(log.file_stem().unwrap().to_str().unwrap())))
            {
                assert!(logs.contains(&fs::read_to_string(log).unwrap()), "{theirs} {own}: {logs:#?}");
            }
            let doctor =
                ask(&to.home.store, &Scope::at(ConversationId(0), None), "doctor").await.unwrap().text;
            assert!(doctor.ends_with("Everything is in order."), "{doctor}");
        }
    }
}

#[tokio::test]
async fn a_subagent_that_is_asked_the_same_later_has_its_own_messages() {
    let machine = Machine::new();
    let mut later = chain(SESSION, &TEXTS[..2]);
    for record in &mut later {
        record["timestamp"] = record["timestamp"].as_str().unwrap().replace("T10", "T11").into();
        record["uuid"] = format!("s{}", record["uuid"]).into();
    }
    later[1]["parentUuid"] = later[0]["uuid"].clone();
    for (name, records) in [(SESSION, chain(SESSION, &TEXTS[..2])), ("agent-1", later)] {
        let log = machine.at(&format!("{name}.jsonl"));
        write_lines(&log, &records);
        machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
    }
    assert_eq!(said(&machine).await.len(), 4);
}
