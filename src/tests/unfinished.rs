//! Sessions of OpenCode that are still being written, and what is purged next to other parts of a message.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::forks::{exported, said, write};
use super::import::Machine;
use super::purge_agents::{purge, stored};
use crate::commands::import::Importer;
use lcm_model::text::now;

const NOON: i64 = 1_762_000_000_000;

/// An empty database of OpenCode's.
fn database_of_opencode(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    let tables =
        "CREATE TABLE session (id, parent_id, directory, version, title, time_created, time_updated);
                  CREATE TABLE message (id, session_id, time_created, data);
                  CREATE TABLE part (id, message_id, data);";
    database.execute_batch(tables).unwrap();
    database
}

#[tokio::test]
async fn a_purged_version_of_a_record_of_opencode_does_not_stand_for_what_a_fork_copies_next_to_it() {
    let machine = Machine::new();
    let storage = machine.at("storage");
    let put = |session: &str, began: i64, more: &Value| {
        let (id, message) = (format!("ses_{session}"), format!("msg_{session}"));
        let about =
            json!({"id": id, "version": "1.0", "directory": "/home/ada/kontor", "time": {"created": began}});
        let prompt = json!({"id": message, "role": "user", "time": {"created": NOON}});
        write(&storage.join(format!("session/p/{id}.json")), &about.to_string());
        write(&storage.join(format!("message/{id}/{message}.json")), &prompt.to_string());
        let parts = [
            json!({"id": format!("prt_{session}1"), "type": "text", "text": "The password is hunter2.", "metadata": more}),
            json!({"id": format!("prt_{session}2"), "type": "file", "url": "file:///notes", "mime": "text/plain"}),
            json!({"id": format!("prt_{session}3"), "type": "text", "text": "The notes are empty.", "synthetic": true}),
        ];
        for part in &parts {
            let path = storage.join(format!("part/{message}/{}.json", part["id"].as_str().unwrap()));
            write(&path, &part.to_string());
        }
        parts[1..].iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let line = format!("--from opencode \"{}\"", storage.display());
    for more in [json!(1), json!(2)] {
        put("10", NOON - 9, &more);
        machine.run(&line).await;
    }
    let secret = stored(&machine).await.into_iter().find(|(.., json)| json.contains("hunter2")).unwrap();
    purge(&machine, secret.0).await;
    let kept = put("20", NOON + 9, &json!(2));
    machine.run(&line).await;
    assert!(stored(&machine).await.iter().all(|(.., json)| !json.contains("hunter2")));
    let logs = exported(&machine, "opencode", "logs").await;
    let of_fork = logs.iter().find(|log| log.contains("ses_20")).unwrap();
    assert!(kept.iter().all(|record| of_fork.contains(record)), "{of_fork}");
}

/// Writes a session of OpenCode that began a minute before `now`: a prompt, two calls at once, of which the first may still run, and
/// another prompt.
fn at_work(machine: &Machine, session: &str, now: i64, is_running: bool) -> PathBuf {
    let storage = machine.at("home/.local/share/opencode/storage");
    let (id, directory) = (format!("ses_{session}"), &machine.home.cwd);
    let about =
        json!({"id": id, "version": "1.0", "directory": directory, "time": {"created": now - 60_000}});
    write(&storage.join(format!("session/p/{id}.json")), &about.to_string());
    let call = |name: &str, status: &str| json!({"type": "tool", "callID": name, "tool": "bash", "state": {"status": status, "input": {}, "output": name}});
    let ended = if is_running {
        json!({"created": now - 40_000})
    } else {
        json!({"created": now - 40_000, "completed": now - 9})
    };
    let messages = [
        ("user", json!({"created": now - 50_000}), vec![json!({"type": "text", "text": "Run both."})]),
        (
            "assistant",
            ended,
            vec![call("one", if is_running { "running" } else { "completed" }), call("two", "completed")],
        ),
        (
            "user",
            json!({"created": now - 30_000}),
            vec![json!({"type": "text", "text": "The password is hunter2."})],
        ),
    ];
    for (n, (role, time, parts)) in messages.iter().enumerate() {
        let message = format!("msg_{session}{n}");
        let of = json!({"id": message, "role": role, "time": time});
        write(&storage.join(format!("message/{id}/{message}.json")), &of.to_string());
        for (m, part) in parts.iter().enumerate() {
            write(&storage.join(format!("part/{message}/prt_{session}{n}{m}.json")), &part.to_string());
        }
    }
    storage
}

#[tokio::test]
async fn what_follows_a_call_that_runs_is_read_once_it_ended_so_that_a_fork_shares_it() {
    let machine = Machine::new();
    let now = now();
    let import =
        async |storage: PathBuf| machine.run(&format!("--from opencode \"{}\"", storage.display())).await;
    let report = import(at_work(&machine, "10", now, true)).await;
    assert!(report.contains(": 1 message new, 0 known already"), "{report}");
    let report = import(at_work(&machine, "10", now, false)).await;
    assert!(report.contains(": 5 messages new, 1 known already"), "{report}");
    let fork = at_work(&machine, "20", now, false);
    let about =
        json!({"id": "ses_20", "version": "1.0", "directory": machine.home.cwd, "time": {"created": now}});
    write(&fork.join("session/p/ses_20.json"), &about.to_string());
    let report = import(fork.clone()).await;
    assert!(report.contains(": 0 messages new, "), "{report}");
    let secret = stored(&machine).await.into_iter().find(|(.., json)| json.contains("hunter2")).unwrap();
    purge(&machine, secret.0).await;
    let again = fork.join("session/p/ses_30.json");
    at_work(&machine, "30", now, false);
    write(&again, &about.to_string().replace("ses_20", "ses_30"));
    assert!(import(fork).await.contains(": 0 messages new, "));
    assert!(stored(&machine).await.iter().all(|(.., json)| !json.contains("hunter2")));
}

#[tokio::test]
async fn what_a_killed_opencode_left_unfinished_is_read_an_hour_later_or_if_its_clock_was_wrong() {
    for time in [now() - 3_600_000, now() + 86_400_000, i64::MIN + 60_000] {
        left_unfinished(time).await;
    }
}

async fn left_unfinished(time: i64) {
    let machine = Machine::new();
    let storage = at_work(&machine, "10", time, true);
    let report = machine.run(&format!("--from opencode \"{}\"", storage.display())).await;
    // A result is missing.
    assert!(report.contains(": 5 messages new, "), "{report}");
}

#[tokio::test]
async fn a_session_that_was_at_work_is_read_again_when_a_session_starts() {
    let mut machine = Machine::new();
    machine.folders.home = Some(machine.at("home"));
    let importer = Importer::default();
    for (is_running, messages) in [(true, 1), (false, 6)] {
        at_work(&machine, "10", now(), is_running);
        importer.also_read(&machine.home, &machine.folders, &["opencode".to_owned()]).await.unwrap();
        assert_eq!(said(&machine).await.len(), messages);
        let read_at =
            machine.home.store.read(|view| view.messages().agent_read_at("opencode")).await.unwrap();
        assert_eq!(read_at.is_none(), is_running, "OpenCode may have been killed, and write no more");
    }
}

#[tokio::test]
async fn a_message_in_one_row_is_read_once_it_ended() {
    let machine = Machine::new();
    let path = machine.at("opencode.db");
    let database = database_of_opencode(&path);
    let now = now();
    database
        .execute_batch("CREATE TABLE session_message (id, session_id, type, seq, time_created, data)")
        .unwrap();
    database
        .execute(
            "INSERT INTO session VALUES ('ses_1', NULL, '/home/ada/kontor', '1.17', 't', ?1, ?1)",
            [now - 9_000],
        )
        .unwrap();
    let add = |n: i64, kind: &str, data: Value| {
        let sql = "INSERT INTO session_message VALUES (?1, 'ses_1', ?2, ?3, ?4, ?5)";
        database.execute(sql, (format!("msg_{n}"), kind, n, now, data.to_string())).unwrap();
    };
    let answer = json!([{"type": "text", "text": "In the"}]);
    add(1, "user", json!({"time": {"created": now - 8_000}, "text": "Where is it?"}));
    add(2, "assistant", json!({"time": {"created": now - 7_000}, "content": answer}));
    add(3, "user", json!({"time": {"created": now - 6_000}, "text": "And the other?"}));
    let import = async || machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    assert!(import().await.contains(": 1 message new, "));
    let whole = json!({"time": {"created": now - 7_000, "completed": now}, "content": [{"type": "text", "text": "In the garden."}]});
    database.execute("UPDATE session_message SET data = ?1 WHERE id = 'msg_2'", [whole.to_string()]).unwrap();
    assert!(import().await.contains(": 2 messages new, 1 known already"));
    assert_eq!(said(&machine).await, ["Where is it?", "In the garden.", "And the other?"]);
}
