//! Purges of other agents' messages: no record keeps the text, and no import brings it back.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::agents::fixtures;
use super::asking::ask;
use super::import::Machine;
use super::support::Session;
use lcm_model::Message;
use lcm_model::ids::{AGENTS, ConversationId, MessageId};
use lcm_recall::Scope;
use lcm_store::Purge;

/// The database of a machine's project.
pub fn database(machine: &Machine) -> Connection {
    let folder = machine.at("db").read_dir().unwrap();
    let mut files = folder.map(|file| file.unwrap().path());
    Connection::open(files.find(|path: &PathBuf| path.extension().unwrap() == "db").unwrap()).unwrap()
}

/// The stored messages, and whether each is conversation.
pub async fn stored(machine: &Machine) -> Vec<(MessageId, bool, String)> {
    let rows: Vec<(i64, bool)> = {
        let database = database(machine);
        let sql = "SELECT id, kind = 0 FROM messages WHERE kind <> 4 ORDER BY id";
        let mut rows = database.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let read = machine.home.store.read(move |view| {
        let read = |(id, said)| Ok((MessageId(id), said, view.messages().message(MessageId(id))?.json));
        rows.into_iter().map(read).collect()
    });
    read.await.unwrap()
}

pub async fn purge(machine: &Machine, message: MessageId) {
    machine.home.store.write(move |batch| batch.upkeep().purge(&Purge::Message(message))).await.unwrap();
}

#[tokio::test]
async fn a_purge_takes_each_record_with_the_text_and_no_import_brings_it_back() {
    for agent in AGENTS {
        let line = format!("--from {agent} \"{}\"", fixtures(agent).display());
        for n in 0.. {
            let machine = Machine::new();
            machine.run(&line).await;
            let said = stored(&machine).await.into_iter().filter(|(_, said, _)| *said).nth(n);
            let Some((id, _, json)) = said else { break };
            let text = Message::parse(&json).readable();
            let line_of_it = text.lines().max_by_key(|line| line.len()).unwrap_or_default().trim();
            purge(&machine, id).await;
            if line_of_it.len() >= 32 && text.starts_with(line_of_it) {
                let escaped = json!(line_of_it).to_string();
                for (_, _, json) in stored(&machine).await {
                    let is_shown = Message::parse(&json).readable().contains(line_of_it);
                    assert!(is_shown || !json.contains(escaped.trim_matches('"')), "{line_of_it}: {json}");
                }
            }
            let digest = machine.digest().await;
            let again = machine.run(&line).await;
            assert!(again.contains(": 0 messages new, "), "{text}: {again}");
            assert_eq!(machine.digest().await, digest, "{text}");
            let scope = Scope::at(ConversationId(0), None);
            let doctor = ask(&machine.home.store, &scope, "doctor").await.unwrap().text;
            assert!(doctor.ends_with("Everything is in order."), "{doctor}");
        }
    }
}

#[tokio::test]
async fn the_message_that_carries_a_record_goes_with_any_other_of_it() {
    let machine = Machine::new();
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let record = json!({
        "type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "cwd": machine.home.cwd, "version": "2.0.14",
        "timestamp": "2026-05-05T10:00:00.000Z",
        "message": {"role": "user", "content": [result("a", "fine"), result("b", "hunter2")]}
    });
    let log = machine.at("44444444-4444-4444-8444-444444444444.jsonl");
    std::fs::write(&log, format!("{record}\n")).unwrap();
    let line = format!("--from claude-code \"{}\"", log.display());
    machine.run(&line).await;
    let (second, ..) = stored(&machine).await.pop().unwrap();
    purge(&machine, second).await;
    assert_eq!(stored(&machine).await, []);
    assert!(machine.run(&line).await.contains(": 0 messages new, "));
    assert_eq!(stored(&machine).await, []);
    // Claude Code's SDK gives each record of a fork another id.
    let mut fork = record;
    fork["uuid"] = "f1".into();
    fork["forkedFrom"] = json!({"sessionId": "s", "messageUuid": "u1"});
    let log = machine.at("55555555-5555-4555-8555-555555555555.jsonl");
    std::fs::write(&log, format!("{fork}\n")).unwrap();
    machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
    assert_eq!(stored(&machine).await, []);
}

#[tokio::test]
async fn a_record_without_a_time_has_that_of_the_next_at_a_logs_start() {
    let machine = Machine::new();
    let id = "55555555-5555-4555-8555-555555555555";
    let title = json!({"type": "summary", "summary": "Zebras", "leafUuid": "u1"});
    let said = json!({
        "type": "user", "uuid": "u1", "parentUuid": null, "sessionId": id, "cwd": machine.home.cwd, "version": "2.0.14",
        "timestamp": "2026-05-05T10:00:00.000Z", "message": {"role": "user", "content": "Where do zebras live?"}
    });
    let log = machine.at(&format!("{id}.jsonl"));
    std::fs::write(&log, format!("{title}\n{said}\n")).unwrap();
    machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
    let scope = Scope::at(ConversationId(0), None);
    let answer = ask(&machine.home.store, &scope, &format!("purge claude-code:{id}")).await.unwrap();
    let removed = ": 1 message of 2026-05-05 10:00, and 1 message that search ignores.\n  m-";
    assert!(answer.text.contains(removed) && answer.text.matches("\n  ").count() == 1, "{}", answer.text);
    let before = ask(&machine.home.store, &scope, "purge before 2026-05-05").await.unwrap_err().to_string();
    assert!(before.starts_with("there is nothing to remove"), "{before}");
}

/// A record of Claude Code.
pub fn claude(machine: &Machine, id: &str, role: &str, content: Value, more: Value) -> Value {
    let mut record = json!({
        "type": role, "uuid": id, "sessionId": "s", "cwd": machine.home.cwd, "version": "2.0.14",
        "timestamp": "2026-05-05T10:00:00.000Z", "message": {"role": role, "content": content}
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

/// Writes a log of Gemini CLI.
pub fn gemini(machine: &Machine, name: &str, session: &str, records: &[Value]) -> String {
    let log = machine.at("chats").join(name);
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let head = json!({"sessionId": session, "projectHash": "a"});
    let lines: String = [&head].into_iter().chain(records).map(|record| format!("{record}\n")).collect();
    std::fs::write(&log, lines).unwrap();
    format!("--from gemini \"{}\"", log.display())
}

/// A version of an answer of Gemini CLI.
fn version(tokens: u32, calls: Value) -> Value {
    let time = "2026-05-22T15:00:00.000Z";
    json!({"id": "g1", "timestamp": time, "type": "gemini", "content": "hunter2", "tokens": tokens, "toolCalls": calls})
}

#[tokio::test]
async fn a_purged_record_without_a_message_does_not_stand_for_a_new_message() {
    let machine = Machine::new();
    let mut records = vec![version(0, json!([])), version(1, json!([]))];
    let line = gemini(&machine, "session-a.jsonl", "s", &records);
    machine.run(&line).await;
    let said = stored(&machine).await.into_iter().find(|(_, said, _)| *said).unwrap();
    purge(&machine, said.0).await;
    records.push(version(1, json!([{"id": "t", "name": "ls", "args": {}, "status": "executing"}])));
    gemini(&machine, "session-a.jsonl", "s", &records);
    assert!(machine.run(&line).await.contains(": 1 message new, "));
    assert!(stored(&machine).await.iter().all(|(.., json)| !json.contains("hunter2")));
    // A copy's entries have the same parent and time, and no digest distinguishes them either.
    machine.home.store.write(move |batch| batch.upkeep().purge(&Purge::Before(i64::MAX))).await.unwrap();
    let copy = gemini(&machine, "session-b.jsonl", "t", &records);
    machine.run(&copy).await;
    assert!(stored(&machine).await.iter().all(|(_, said, _)| !said));
}

#[tokio::test]
async fn an_event_that_repeats_any_part_of_a_message_goes_with_it() {
    let machine = Machine::new();
    let record = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-05-05T10:00:00.000Z", "type": kind, "payload": payload}).to_string()
    };
    let [thought, part] = ["I think that the password is hunter2", "The second part is that it is hunter2"];
    let content = json!([{"type": "input_text", "text": "Short."}, {"type": "input_text", "text": part}]);
    let lines = [
        record("session_meta", json!({"id": "s", "cwd": machine.home.cwd})),
        record("event_msg", json!({"type": "agent_reasoning", "text": thought})),
        record("response_item", json!({"type": "reasoning", "summary": [{"text": thought}]})),
        record("event_msg", json!({"type": "user_message", "message": part})),
        record("response_item", json!({"type": "message", "role": "user", "content": content})),
    ];
    let log = machine.at("rollout-2026-05-05T10-00-00-11111111-1111-4111-8111-111111111111.jsonl");
    std::fs::write(&log, lines.join("\n")).unwrap();
    machine.run(&format!("--from codex \"{}\"", log.display())).await;
    let said: Vec<_> = stored(&machine).await.into_iter().filter(|(_, said, _)| *said).collect();
    assert_eq!(said.len(), 2);
    for (message, ..) in said {
        purge(&machine, message).await;
    }
    assert!(stored(&machine).await.iter().all(|(.., json)| !json.contains("hunter2")));
}

#[tokio::test]
async fn messages_whose_text_only_begins_alike_stay() {
    let machine = Machine::new();
    let said = |n| format!("Successfully modified file: /home/ada/kontor/src/{n}.rs");
    let call = |n| {
        let result = json!({"functionResponse": {"response": {"output": said(n)}}});
        let call = json!({"id": "t", "name": "edit", "args": {}, "status": "success", "result": [result]});
        json!({"id": format!("g{n}"), "type": "gemini", "content": format!("I edit {n}."), "toolCalls": [call]})
    };
    let own = json!({"id": "g4", "type": "gemini", "content": said(4), "note": said(2)});
    let mut records = [1, 2, 3].map(call).to_vec();
    records.extend([own, json!({"id": "g5", "type": "gemini", "content": "Again.", "note": said(1)})]);
    machine.run(&gemini(&machine, "session-a.jsonl", "s", &records)).await;
    let all = stored(&machine).await;
    let result = all.iter().find(|(.., json)| Message::parse(json).readable().trim() == said(2));
    purge(&machine, result.map(|(id, ..)| *id).unwrap()).await;
    let left = stored(&machine).await;
    assert!(left.iter().all(|(.., json)| !json.contains("src/2.rs")));
    let stays = |text: &str| left.iter().any(|(.., json)| Message::parse(json).readable().contains(text));
    assert!(["I edit 1.", "I edit 3.", "Again."].into_iter().all(stays));
    assert!(!stays("I edit 2.") && !stays(&said(4)));
}

#[tokio::test]
async fn a_result_that_comes_before_a_purged_text_does_not_bring_it_back() {
    let machine = Machine::new();
    let storage = machine.at("project/kontor/storage/session");
    let write = |name: &str, record: Value| {
        let path = storage.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, record.to_string()).unwrap();
    };
    let answer = |state: Value| {
        let parts = json!([{"type": "tool", "callID": "c", "tool": "ls", "state": state}, {"type": "text", "text": "hunter2"}]);
        json!({"role": "assistant", "path": {"cwd": machine.home.cwd}, "time": {"created": 1}, "parts": parts})
    };
    write("info/ses_1.json", json!({"id": "ses_1", "version": "0.3"}));
    write("message/ses_1/msg_1.json", answer(json!({"status": "running", "input": {}})));
    let line = format!("--from opencode \"{}\"", storage.join("info/ses_1.json").display());
    machine.run(&line).await;
    // The call carries the record.
    let (said, ..) = stored(&machine).await.pop().unwrap();
    purge(&machine, said).await;
    write("message/ses_1/msg_1.json", answer(json!({"status": "completed", "input": {}, "output": "a.rs"})));
    assert!(machine.run(&line).await.contains(": 1 message new, "));
    let left = stored(&machine).await;
    assert!(left.iter().any(|(.., json)| json.contains("a.rs")));
    assert!(left.iter().all(|(.., json)| !json.contains("hunter2")));
}

#[tokio::test]
async fn the_answer_says_what_a_purge_does_not_find_in_other_agents_records() {
    let machine = Machine::new();
    machine.run(&format!("--from codex \"{}\"", fixtures("codex").display())).await;
    machine.write("a.jsonl", "pi-session", &Session::new().user("Of Pi.").entries);
    machine.run("").await;
    let scope = Scope::at(ConversationId(0), None);
    for session in machine.sessions().await {
        // The agent's own name of the session.
        let line = format!("purge {} --yes", session.trim_start_matches("codex:"));
        let answer = ask(&machine.home.store, &scope, &line).await.unwrap().text;
        let is_limited = answer.contains("repeats it, or another agent's record in another form");
        assert_eq!(is_limited, session.starts_with("codex:"), "{answer}");
    }
}

#[tokio::test]
async fn a_rewritten_history_goes_with_any_message_in_it_however_short() {
    let machine = Machine::new();
    let message = |id: &str, text: &str| json!({"id": id, "type": "user", "content": text});
    let history = json!({"$set": {"messages": [message("g1", "I begin."), message("g2", "hunter2")]}});
    let records = [history, message("g3", "I go on.")];
    let line = gemini(&machine, "session-a.jsonl", "s", &records);
    machine.run(&line).await;
    let all = stored(&machine).await;
    let secret = all.iter().find(|(.., json)| Message::parse(json).text() == "hunter2").unwrap();
    purge(&machine, secret.0).await;
    let left = stored(&machine).await;
    assert!(left.iter().all(|(.., json)| !json.contains("hunter2")));
    assert!(left.iter().any(|(.., json)| Message::parse(json).text() == "I go on."));
    assert!(machine.run(&line).await.contains(": 0 messages new, "));
    assert_eq!(stored(&machine).await, left);
}

#[tokio::test]
async fn no_later_version_of_a_purged_message_brings_it_back() {
    let call = |output: &str| {
        let result = json!([{"functionResponse": {"id": "t", "response": {"output": output}}}]);
        json!([{"id": "t", "name": "cat", "args": {}, "status": "success", "result": result}])
    };
    let parts = json!([{"text": "I think.", "thought": true}, {"text": "hunter2"}]);
    let history =
        json!({"$set": {"messages": [{"id": "g1", "type": "gemini", "content": parts, "toolCalls": []}]}});
    for (before, after) in [
        (version(0, json!([])), history),
        (version(0, call("It is hunter3.")), version(1, call("<masked>It is hunter3"))),
    ] {
        let machine = Machine::new();
        let line = gemini(&machine, "session-a.jsonl", "s", std::slice::from_ref(&before));
        machine.run(&line).await;
        let said: Vec<_> = stored(&machine).await.into_iter().filter(|(_, said, _)| *said).collect();
        purge(&machine, said.last().unwrap().0).await;
        let left = stored(&machine).await;
        gemini(&machine, "session-a.jsonl", "s", &[before, after]);
        assert!(machine.run(&line).await.contains(": 0 messages new, "));
        assert_eq!(stored(&machine).await, left);
    }
}

/// Writes a log of Codex.
pub fn codex(machine: &Machine, records: &[(&str, Value)]) -> String {
    let time = "2026-05-05T10:00:00.000Z";
    let meta = ("session_meta", json!({"id": "s", "cwd": machine.home.cwd}));
    let line = |(kind, payload): &(&str, Value)| {
        json!({"timestamp": time, "type": kind, "payload": payload}).to_string()
    };
    let lines: Vec<String> = [meta].iter().chain(records).map(line).collect();
    let log = machine.at("rollout-2026-05-05T10-00-00-11111111-1111-4111-8111-111111111111.jsonl");
    std::fs::write(&log, lines.join("\n")).unwrap();
    format!("--from codex \"{}\"", log.display())
}

#[tokio::test]
async fn an_event_next_to_a_message_that_repeats_all_of_it_goes_with_it_however_short() {
    let machine = Machine::new();
    let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let event = |text: &str| ("event_msg", json!({"type": "user_message", "message": text}));
    let line = codex(
        &machine,
        &[
            ("response_item", said("I begin.")),
            event("hunter2"),
            ("response_item", said("hunter2")),
            event("hunter2\n"),
            event("hunter2 it is not"),
            ("response_item", said("I go on.")),
            event("hunter2"),
        ],
    );
    machine.run(&line).await;
    let all = stored(&machine).await;
    purge(&machine, all[3].0).await;
    assert_eq!(stored(&machine).await, [&all[..2], &all[5..]].concat());
}

#[tokio::test]
async fn a_text_that_search_ignores_goes_with_the_message_that_it_repeats() {
    let machine = Machine::new();
    let output = "The password of the staging server is hunter2.";
    let answer = json!([{"functionResponse": {"id": "t", "response": {"output": output}}}]);
    let call = json!([{"id": "t", "name": "cat", "args": {}, "status": "success", "result": answer}]);
    let turn = |id: &str, kind: &str, content: &Value| json!({"id": id, "type": kind, "content": content});
    let history = [
        turn("h1", "gemini", &json!([{"text": "I look."}])),
        turn("h2", "user", &answer),
        turn("h3", "user", &json!("<session_context>A day in May, in the project's folder.")),
    ];
    let line =
        gemini(&machine, "session-a.jsonl", "s", &[version(0, call), json!({"$set": {"messages": history}})]);
    machine.run(&line).await;
    let all = stored(&machine).await;
    let result = all.iter().find(|(_, said, json)| *said && Message::parse(json).text().contains("password"));
    purge(&machine, result.unwrap().0).await;
    let left = stored(&machine).await;
    assert!(left.iter().all(|(.., json)| !json.contains("hunter2")));
    assert!(left.iter().any(|(.., json)| json.contains("A day in May")));
    assert!(machine.run(&line).await.contains(": 0 messages new, "));
    assert_eq!(stored(&machine).await, left);
}

#[tokio::test]
async fn a_record_that_a_log_repeats_does_not_bring_a_purged_message_back() {
    let machine = Machine::new();
    let said = |id: &str, text: &str| claude(&machine, id, "user", json!(text), json!({}));
    let mut records = vec![said("u1", "I begin."), said("u2", "hunter2"), said("u3", "I go on.")];
    for n in [1, 2] {
        records[n]["parentUuid"] = json!(format!("u{n}"));
    }
    let log = machine.at("44444444-4444-4444-8444-444444444444.jsonl");
    let write = |records: &[Value]| {
        std::fs::write(&log, records.iter().map(|record| format!("{record}\n")).collect::<String>()).unwrap();
    };
    write(&records);
    let line = format!("--from claude-code \"{}\"", log.display());
    machine.run(&line).await;
    let all = stored(&machine).await;
    purge(&machine, all[1].0).await;
    records.push(records[1].clone());
    write(&records);
    for _ in 0..2 {
        assert!(machine.run(&line).await.contains(": 0 messages new, "));
        assert_eq!(stored(&machine).await, [&all[..1], &all[2..]].concat());
    }
}

#[tokio::test]
async fn a_session_that_begins_when_a_purged_one_did_is_stored() {
    let codex = |id: &str, text: &str| {
        let time = "2026-01-05T10:00:00.000Z";
        let content = json!([{"type": "input_text", "text": text}]);
        [
            json!({"timestamp": time, "type": "session_meta", "payload": {"id": id, "cwd": "/home/ada/kontor"}}),
            json!({"timestamp": time, "type": "response_item", "payload": {"type": "message", "role": "user", "content": content}}),
        ]
    };
    for agent in ["codex", "gemini"] {
        let machine = Machine::new();
        for (id, text) in [("a", "The password is hunter2."), ("b", "Where do zebras live?")] {
            let line = match agent {
                "codex" => {
                    let log = machine.at(&format!("rollout-{id}.jsonl"));
                    let lines: String = codex(id, text).iter().map(|record| format!("{record}\n")).collect();
                    std::fs::write(&log, lines).unwrap();
                    format!("--from codex \"{}\"", log.display())
                }
                _ => {
                    let said = json!({"id": id, "timestamp": "2026-01-05T10:00:00.000Z", "type": "user", "content": text});
                    gemini(&machine, &format!("session-{id}.jsonl"), id, &[said])
                }
            };
            assert_eq!(machine.run(&line).await, "1 session: 1 message new, 0 known already", "{agent}");
            if id == "a" {
                let said = stored(&machine).await.into_iter().find(|(_, said, _)| *said).unwrap();
                purge(&machine, said.0).await;
                let again = machine.run(&line).await;
                assert!(
                    again.ends_with(": 0 messages new, 0 known already, 1 message stays purged"),
                    "{agent}: {again}"
                );
            }
        }
    }
}
