//! Messages of other agents that are twice in one log, alike, or imported by two processes at once.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::forks::{FORK, SESSION, exported, said, write_lines};
use super::import::{Machine, ask_import};
use crate::commands::import::Importer;
use lcm_ingest::import::Home;
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
    for first in [1, 3, all.len()] {
        let machine = Machine::new();
        let log = machine.at(&format!("fork/{FORK}.jsonl"));
        let import =
            async |path: &Path| machine.run(&format!("--from claude-code \"{}\"", path.display())).await;
        write_lines(&log, &all[..first]);
        import(&log).await;
        write_lines(&log, &all);
        import(&log).await;
        assert_eq!(said(&machine).await, TEXTS, "{first}");
        let logs = exported(&machine, "claude-code", "logs").await;
        assert!(logs.contains(&fs::read_to_string(&log).unwrap()), "{logs:#?}");
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
    }
}

#[tokio::test]
async fn two_processes_import_a_log_at_once() {
    let machine = Machine::new();
    let texts: Vec<String> = (0..3000).map(|n| format!("Message {n}.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let log = machine.at(&format!("{SESSION}.jsonl"));
    write_lines(&log, &chain(SESSION, &texts));
    let store = Store::of_project(Some(&machine.at("db")), &machine.home.cwd).unwrap();
    let other = Home { store, ..machine.home.clone() };
    let line = format!("--from claude-code \"{}\"", log.display());
    let (one, two) = (Importer::default(), Importer::default());
    let (one, two) = tokio::join!(
        ask_import(&one, &machine.home, &machine.folders, &line),
        ask_import(&two, &other, &machine.folders, &line)
    );
    for report in [one, two] {
        report.unwrap();
    }
    assert_eq!(said(&machine).await, texts);
    let logs = exported(&machine, "claude-code", "logs").await;
    assert!(logs.contains(&fs::read_to_string(&log).unwrap()));
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
