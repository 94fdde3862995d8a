//! Records of other agents whose values have another type than usual: each is kept, and stops no import.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;

use serde_json::{Value, json};

use super::agents::{files, fixtures};
use super::import::Machine;
use lcm_model::original_of;

/// Copies of a record in which one value at a time has a wrong type.
fn misshapen(record: &Value) -> Vec<Value> {
    let wrong = [json!(null), json!(7), json!("word"), json!(["word", {}]), json!({"word": {}})];
    let inner = |with: &dyn Fn(&mut Value, Value), value: &Value| {
        let made = wrong.iter().cloned().chain(misshapen(value));
        made.map(|value| {
            let mut copy = record.clone();
            with(&mut copy, value);
            copy
        })
        .collect::<Vec<_>>()
    };
    match record {
        Value::Object(fields) => (fields.iter())
            .flat_map(|(name, value)| inner(&|copy, value| copy[name.as_str()] = value, value))
            .collect(),
        Value::Array(items) => (items.iter().enumerate())
            .flat_map(|(n, value)| inner(&|copy, value| copy[n] = value, value))
            .collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn a_record_of_any_shape_is_kept() {
    for agent in ["claude-code", "codex", "gemini"] {
        let machine = Machine::new();
        for file in
            files(&fixtures(agent)).iter().filter(|file| file.extension() == Some(OsStr::new("jsonl")))
        {
            let whole = fs::read_to_string(file).unwrap();
            let mut lines: Vec<String> = whole.lines().map(ToOwned::to_owned).collect();
            let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            lines.extend(records.iter().flat_map(misshapen).map(|record| record.to_string()));
            let path = machine.at("log").join(file.strip_prefix(fixtures(agent)).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
        let report = machine.run(&format!("--from {agent} \"{}\"", machine.at("log").display())).await;
        assert!(!report.contains("broken") && !report.contains("could not be read"), "{report}");
        let mut stored: HashSet<String> = HashSet::new();
        for session in machine.sessions().await {
            let messages = machine.messages(&session).await;
            stored.extend(messages.iter().filter_map(|json| original_of(json)).map(Cow::into_owned));
        }
        for file in files(&machine.at("log")) {
            let whole = fs::read_to_string(file).unwrap();
            assert!(whole.lines().all(|line| stored.contains(line)), "{agent}");
        }
    }
}

#[tokio::test]
async fn a_packed_log_is_the_same_log() {
    let machine = Machine::new();
    let log = files(&fixtures("codex/0.44")).remove(0);
    fs::create_dir(machine.at("logs")).unwrap();
    let packed = zstd::encode_all(fs::read(&log).unwrap().as_slice(), 3).unwrap();
    fs::write(machine.at("logs/rollout-1.jsonl.zst"), &packed).unwrap();
    let line = format!("--from codex \"{}\"", machine.at("logs").display());
    assert_eq!(machine.run(&line).await, "1 session: 4 messages new, 0 known already");
    let plain = Machine::new();
    plain.run(&format!("--from codex \"{}\"", log.display())).await;
    assert_eq!(machine.digest().await, plain.digest().await);
    assert_eq!(
        machine.run(&format!("--from codex \"{}\"", log.display())).await,
        "1 session: 0 messages new, 4 known already"
    );
    fs::write(machine.at("logs/rollout-1.jsonl.zst"), &packed[..packed.len() / 2]).unwrap();
    let report = machine.run(&line).await;
    assert!(report.contains("1 file could not be read (rollout-1.jsonl.zst: it can't be "), "{report}");
}
