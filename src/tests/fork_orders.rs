//! Forks of other agents' sessions in whatever order, twice in one log, while they grow, in two processes, and in another store.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::asking::ask;
use super::forks::{FORK, SESSION, exported, exporter, said, write, write_lines};
use super::import::Machine;
use super::purge_agents::{database, purge, stored};
use crate::commands::import::Importer;
use crate::upkeep::export::Format;
use lcm_ingest::import::Home;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;
use lcm_store::Store;

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

/// Writes a session of OpenCode with one call of a tool.
fn called(storage: &Path, session: &str, state: &Value) {
    let id = |kind: &str| format!("{kind}_{session}");
    for (path, json) in [
        ("session/p/ses_#.json", json!({"id": id("ses"), "version": "1.0", "directory": "/home/ada/kontor"})),
        (
            "message/ses_#/msg_#.json",
            json!({"id": id("msg"), "role": "assistant", "time": {"created": 1_762_000_000_000_i64}}),
        ),
        (
            "part/msg_#/prt_#.json",
            json!({"id": id("prt"), "type": "tool", "callID": "c", "tool": "bash", "state": state}),
        ),
    ] {
        write(&storage.join(path.replace('#', session)), &json.to_string());
    }
}

#[tokio::test]
async fn a_part_that_grew_carries_no_record_of_another_session() {
    let machine = Machine::new();
    let storage = machine.at("storage");
    let import = async || machine.run(&format!("--from opencode \"{}\"", storage.display())).await;
    called(&storage, "a", &json!({"status": "running", "input": {"command": "ls"}}));
    import().await;
    let done = json!({"status": "completed", "input": {"command": "ls"}, "output": "one and two"});
    called(&storage, "a", &done);
    import().await;
    called(&storage, "b", &done);
    assert_eq!(import().await, "2 sessions: 0 messages new, 4 known already");
    let logs = exported(&machine, "opencode", "logs").await;
    let of_fork = logs.iter().find(|log| log.contains("ses_b")).unwrap();
    assert!(of_fork.lines().count() == 3 && !of_fork.contains("prt_a"), "{of_fork}");
}

#[tokio::test]
async fn a_record_stays_readable_when_a_purge_takes_what_it_is_packed_with() {
    let machine = Machine::new();
    let storage = machine.at("storage");
    let import = async || machine.run(&format!("--from opencode \"{}\"", storage.display())).await;
    let running = json!({"status": "running", "input": {"command": "ls"}});
    called(&storage, "a", &running);
    import().await;
    called(&storage, "b", &running);
    import().await;
    called(
        &storage,
        "a",
        &json!({"status": "completed", "input": {"command": "ls"}, "output": "one and two"}),
    );
    import().await;
    let (result, ..) =
        stored(&machine).await.into_iter().find(|(.., json)| json.contains("\"toolResult\"")).unwrap();
    purge(&machine, result).await;
    assert!(
        stored(&machine).await.iter().any(|(.., json)| json.contains("prt_b") && json.contains("running"))
    );
    let scope = Scope::at(ConversationId(0), None);
    let doctor = ask(&machine.home.store, &scope, "doctor").await.unwrap().text;
    assert!(doctor.ends_with("Everything is in order."), "{doctor}");
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
            let exporter = exporter(&from, true);
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
