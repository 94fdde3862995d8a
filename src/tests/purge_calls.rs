//! Purges of other agents' calls and results: what belongs to the same call goes, and nothing else.

use serde_json::{Value, json};

use super::import::Machine;
use super::purge_agents::{claude, codex, purge, stored};
use lcm_model::Message;

#[tokio::test]
async fn the_results_and_the_events_of_a_purged_call_go_with_it() {
    let machine = Machine::new();
    let call =
        |id: &str, input: Value| json!([{"type": "tool_use", "id": id, "name": "Write", "input": input}]);
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "File created."}]);
    let records = [
        claude(&machine, "u1", "assistant", call("toolu_1", json!({"content": "key\nhunter2\n"})), json!({})),
        claude(
            &machine,
            "u2",
            "user",
            result("toolu_1"),
            json!({"toolUseResult": {"content": "key\nhunter2\n"}}),
        ),
        json!({"type": "progress", "uuid": "u3", "toolUseID": "toolu_1", "data": {"output": "hunter2"}}),
        claude(&machine, "u4", "assistant", call("toolu_2", json!({"content": "a = 1"})), json!({})),
        claude(&machine, "u5", "user", result("toolu_2"), json!({"toolUseResult": {"content": "a = 1"}})),
    ];
    let log = machine.at("44444444-4444-4444-8444-444444444444.jsonl");
    std::fs::write(&log, records.map(|record| format!("{record}\n")).concat()).unwrap();
    machine.run(&format!("--from claude-code \"{}\"", log.display())).await;
    let all = stored(&machine).await;
    assert_eq!(all.len(), 5);
    purge(&machine, all[0].0).await;
    assert_eq!(stored(&machine).await, all[3..]);
}

#[tokio::test]
async fn the_events_of_a_call_go_with_its_result_and_the_call_stays() {
    let machine = Machine::new();
    let record = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-05-05T10:00:00.000Z", "type": kind, "payload": payload}).to_string()
    };
    let event = |kind: &str, call: &str, out: &str| {
        record("event_msg", json!({"type": kind, "call_id": call, "stdout": out}))
    };
    let item = |kind: &str, call: &str, field: &str, value: &str| {
        record("response_item", json!({"type": kind, "name": "shell", "call_id": call, field: value}))
    };
    let lines = [
        record("session_meta", json!({"id": "s", "cwd": machine.home.cwd})),
        item("function_call", "call_1", "arguments", r#"{"command":["cat","key"]}"#),
        event("exec_command_end", "call_1", "hunter2"),
        item("function_call_output", "call_1", "output", "Exit code: 0\nOutput:\nhunter2"),
        event("exec_command_end", "call_2", "fine"),
    ];
    let log = machine.at("rollout-2026-05-05T10-00-00-11111111-1111-4111-8111-111111111111.jsonl");
    std::fs::write(&log, lines.join("\n")).unwrap();
    machine.run(&format!("--from codex \"{}\"", log.display())).await;
    let all = stored(&machine).await;
    let (result, ..) = all.iter().rfind(|(_, said, _)| *said).unwrap();
    purge(&machine, *result).await;
    let left = stored(&machine).await;
    assert_eq!(left.len(), all.len() - 2);
    assert!(left.iter().all(|(.., json)| !json.contains("hunter2")));
    assert!(left.iter().any(|(_, said, _)| *said));
}

#[tokio::test]
async fn calls_that_begin_and_end_in_any_order_do_not_stand_for_a_purged_one() {
    let storage = |machine: &Machine| machine.at("project/kontor/storage/session");
    let write = |machine: &Machine, states: [Value; 2]| {
        let part =
            |(n, state)| json!({"type": "tool", "callID": format!("c{n}"), "tool": "bash", "state": state});
        let parts: Vec<Value> = states.into_iter().enumerate().map(part).collect();
        let answer = json!({"role": "assistant", "path": {"cwd": machine.home.cwd}, "time": {"created": 1}, "parts": parts});
        for (name, record) in [
            ("info/ses_1.json", json!({"id": "ses_1", "version": "0.3"})),
            ("message/ses_1/msg_1.json", answer),
        ] {
            let path = storage(machine).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, record.to_string()).unwrap();
        }
    };
    let state = |status: &str, command: &str, output: Value| json!({"status": status, "input": {"command": command}, "output": output});
    let none = Value::Null;
    for (before, after) in [
        (
            [state("running", "make", none.clone()), state("completed", "cat key", json!("hunter2"))],
            [state("completed", "make", json!("Built.")), state("completed", "cat key", json!("hunter2"))],
        ),
        (
            [state("pending", "make", none.clone()), state("running", "echo hunter2", none.clone())],
            [state("running", "make", none.clone()), state("running", "echo hunter2", none)],
        ),
    ] {
        let machine = Machine::new();
        write(&machine, before);
        let line = format!("--from opencode \"{}\"", storage(&machine).join("info/ses_1.json").display());
        machine.run(&line).await;
        let all = stored(&machine).await;
        let secret =
            all.iter().find(|(.., json)| Message::parse(json).readable().contains("hunter2")).unwrap();
        purge(&machine, secret.0).await;
        write(&machine, after);
        for new in [1, 0] {
            let report = machine.run(&line).await;
            assert!(report.contains(&format!(": {new} message")), "{report}");
            assert!(stored(&machine).await.iter().all(|(.., json)| !json.contains("hunter2")));
        }
    }
}

#[tokio::test]
async fn an_events_number_or_kind_is_no_id_of_a_call() {
    for id in ["1", "exec_command_end"] {
        let machine = Machine::new();
        let end = |call: &str, out: &str| json!({"type": "exec_command_end", "call_id": call, "stdout": out, "exit_code": 1});
        let line = codex(
            &machine,
            &[
                ("response_item", json!({"type": "function_call", "call_id": id, "arguments": "{}"})),
                ("event_msg", end(id, "hunter2")),
                (
                    "response_item",
                    json!({"type": "function_call_output", "call_id": id, "output": "hunter2"}),
                ),
                ("event_msg", end("call_2", "fine")),
            ],
        );
        machine.run(&line).await;
        let all = stored(&machine).await;
        purge(&machine, all[3].0).await;
        assert_eq!(stored(&machine).await, [&all[..2], &all[4..]].concat(), "{id}");
    }
}
