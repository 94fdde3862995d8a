//! What other agents' logs contain apart from the usual records. The shapes were seen in logs that their
//! users published; the words are our own.

use std::fs;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::agents::records_and_words;
use super::asking::ask;
use super::import::Machine;
use crate::tools::{Block, call};
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;

/// Writes a log with a record in each line, below `logs`.
fn write(machine: &Machine, name: &str, records: &[Value]) {
    let path = machine.at("logs").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(path, lines.concat()).unwrap();
}

/// Imports the logs. Returns the report, and the role and content of each message, in order.
async fn import(machine: &Machine, agent: &str) -> (String, Vec<String>) {
    let line = format!("--from {agent} \"{}\"", machine.at("logs").display());
    let report = machine.run(&line).await;
    let (records, words) = records_and_words(machine).await;
    let again = machine.run(&line).await;
    assert!(again.contains(": 0 messages new, "), "{again}");
    assert_eq!(records_and_words(machine).await.0, records);
    (report, words)
}

/// A message as [`import`] returns it.
fn says(role: &str, words: &str) -> String {
    format!("{role} {}", json!([{"type": "text", "text": words}]))
}

const CLAUDE: &str = "44444444-4444-4444-8444-444444444444.jsonl";

fn claude(uuid: &str, above: &str, rest: Value) -> Value {
    let mut record = json!({
        "uuid": uuid, "parentUuid": above, "sessionId": &CLAUDE[..36], "cwd": "/home/ada/kontor",
        "version": "2.1.219", "timestamp": "2026-07-25T09:00:00.000Z"
    });
    record.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    record
}

#[tokio::test]
async fn a_message_typed_while_claude_code_works_is_the_users() {
    let machine = Machine::new();
    let typed = |uuid: &str, above: &str, attachment: Value| {
        let mut attachment = attachment;
        attachment["type"] = "queued_command".into();
        claude(uuid, above, json!({"type": "attachment", "attachment": attachment}))
    };
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let records = [
        claude(
            "a",
            "",
            json!({"type": "user", "message": {"role": "user", "content": "Round the invoices."}}),
        ),
        typed(
            "b",
            "a",
            json!({"prompt": "And the refunds.", "commandMode": "prompt", "origin": {"kind": "human"}}),
        ),
        typed("c", "b", json!({"prompt": [image, {"type": "text", "text": "As shown here."}]})),
        typed("d", "c", json!({"prompt": "The build has ended.", "commandMode": "task-notification"})),
        typed("e", "d", json!({"prompt": "The tests have ended.", "origin": {"kind": "task-notification"}})),
        typed("f", "e", json!({"prompt": "Be brief.", "isMeta": true})),
        claude(
            "g",
            "f",
            json!({"type": "attachment", "attachment": {"type": "date_change", "newDate": "2026-07-26"}}),
        ),
    ];
    write(&machine, CLAUDE, &records);
    let (report, words) = import(&machine, "claude-code").await;
    assert_eq!(report, "1 session: 3 messages new, 0 known already");
    assert_eq!(words[..2], [says("user", "Round the invoices."), says("user", "And the refunds.")]);
    assert!(words[2].starts_with("user ") && words[2].contains("As shown here."), "{words:#?}");
}

#[tokio::test]
async fn text_that_claude_code_adds_to_a_message_is_not_the_users() {
    let machine = Machine::new();
    let user = |uuid: &str, above: &str, content: Value| {
        claude(uuid, above, json!({"type": "user", "message": {"role": "user", "content": content}}))
    };
    let part = |words: &str| json!({"type": "text", "text": words});
    let reminder = "<system-reminder>\nThe user opened src/money.ts.\n</system-reminder>";
    let records = [
        user("a", "", json!([part(reminder), part("Round the invoices.")])),
        user("b", "a", json!("<task-notification>\n<status>completed</status>\n</task-notification>")),
        user("c", "b", json!([part("[Request interrupted by user]")])),
        user("d", "c", json!("<command-name>/rounding</command-name>\n<command-args>refunds</command-args>")),
        user("e", "d", json!("What does <task-notification> mean?")),
        user("f", "e", json!(format!("{reminder}\n\n{reminder}\nRound the refunds."))),
        user(
            "g",
            "f",
            json!(
                "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
            ),
        ),
        user("h", "g", json!("<local-command-stdout>Set model to opus</local-command-stdout>")),
        user("i", "h", json!("<bash-input>git log</bash-input>")),
        user("j", "i", json!("<bash-stdout>refunds</bash-stdout><bash-stderr></bash-stderr>")),
    ];
    write(&machine, CLAUDE, &records);
    let (report, words) = import(&machine, "claude-code").await;
    assert_eq!(report, "1 session: 5 messages new, 0 known already");
    let said = [
        "Round the invoices.", "/rounding refunds", "What does <task-notification> mean?",
        "Round the refunds.", "<bash-input>git log</bash-input>",
    ];
    assert_eq!(words, said.map(|words| says("user", words)));
}

#[tokio::test]
async fn records_about_a_claude_code_session_are_of_known_kinds() {
    let machine = Machine::new();
    let about = |kind: &str| json!({"type": kind, "sessionId": &CLAUDE[..36]});
    let mut records = vec![claude(
        "a",
        "",
        json!({"type": "user", "message": {"role": "user", "content": "Round the invoices."}}),
    )];
    records.extend(
        ["atis-latch", "bridge-session", "continued-in", "cost-state", "frame-link", "relocated"].map(about),
    );
    write(&machine, CLAUDE, &records);
    let (report, words) = import(&machine, "claude-code").await;
    assert_eq!(report, "1 session: 1 message new, 0 known already");
    assert_eq!(words, [says("user", "Round the invoices.")]);
}

const CODEX: &str = "c0000000-0000-4000-8000-000000000009";

fn codex(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-09-09T10:00:00.000Z", "type": kind, "payload": payload})
}

fn codex_meta(rest: Value) -> Value {
    let mut payload = json!({"id": CODEX, "cwd": "/home/ada/kontor", "cli_version": "0.154.0"});
    payload.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    codex("session_meta", payload)
}

fn codex_says(role: &str, words: &[&str]) -> Value {
    let content: Vec<Value> =
        words.iter().map(|words| json!({"type": "input_text", "text": words})).collect();
    codex("response_item", json!({"type": "message", "role": role, "content": content}))
}

#[tokio::test]
async fn text_that_codex_inserts_into_a_message_is_not_the_users() {
    let machine = Machine::new();
    let aborted = "<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>";
    let records = [
        codex_meta(json!({})),
        codex_says(
            "user",
            &["# AGENTS.md instructions for /home/ada", "<environment_context>…</environment_context>"],
        ),
        codex_says("user", &[aborted]),
        codex_says("user", &["<skill>\n<name>rounding</name>\n</skill>", "Round the invoices."]),
        codex_says("user", &["<skill> is a tag. Where is </skill>?"]),
        codex_says("user", &["<hook_prompt hook_run_id=\"1\">Go on.</hook_prompt>"]),
    ];
    write(&machine, &format!("rollout-{CODEX}.jsonl"), &records);
    let (report, words) = import(&machine, "codex").await;
    assert_eq!(report, "1 session: 2 messages new, 0 known already");
    assert_eq!(
        words,
        [says("user", "Round the invoices."), says("user", "<skill> is a tag. Where is </skill>?")]
    );
}

#[tokio::test]
async fn codexs_newer_records_are_of_known_kinds() {
    let machine = Machine::new();
    let item = |payload: Value| codex("response_item", payload);
    let records = [
        codex_meta(json!({})),
        codex("world_state", json!({"full": true, "state": {"model": "gpt-6"}})),
        codex("token_usage_record", json!({"response_id": "r", "usage": {"total_tokens": 9}})),
        codex("inter_agent_communication_metadata", json!({"trigger_turn": true})),
        codex("security_risk_score", json!({"scores": {}})),
        codex("retained_context", json!({})),
        codex("realtime_item", json!({})),
        item(json!({"type": "compaction_trigger"})),
        item(json!({"type": "context_compaction", "encrypted_content": "x"})),
        item(
            json!({"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {"query": "rates"}}),
        ),
        item(json!({"type": "tool_search_output", "call_id": "t", "tools": [{"name": "exchange_rates"}]})),
        item(json!({"type": "agent_message", "author": "/root/ibis", "recipient": "/root",
            "content": [{"type": "input_text", "text": "The ibis has ended."}, {"type": "encrypted_content", "encrypted_content": "x"}]})),
        item(
            json!({"type": "image_generation_call", "id": "ig", "status": "completed", "revised_prompt": "a stork", "result": "iVBORw0KGgo="}),
        ),
    ];
    write(&machine, &format!("rollout-{CODEX}.jsonl"), &records);
    let (report, words) = import(&machine, "codex").await;
    assert_eq!(report, "1 session: 5 messages new, 0 known already");
    for (n, (role, part)) in [
        ("assistant", "\"query\":\"rates\""),
        ("toolResult", "exchange_rates"),
        ("assistant", "The ibis has ended."),
        ("assistant", "a stork"),
        ("toolResult", "image/png"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(words[n].starts_with(role) && words[n].contains(part), "{words:#?}");
    }
}

#[tokio::test]
async fn a_side_chain_of_codex_belongs_to_the_session_that_began() {
    let machine = Machine::new();
    write(
        &machine,
        &format!("rollout-1-{CODEX}.jsonl"),
        &[codex_meta(json!({"session_id": CODEX})), codex_says("user", &["Round the invoices."])],
    );
    let spawned = json!({"subagent": {"thread_spawn": {"parent_thread_id": "c1", "depth": 2}}});
    let chains = [
        json!({"id": "c2", "session_id": CODEX, "parent_thread_id": "c1", "source": spawned}),
        json!({"id": "c3", "session_id": CODEX, "parent_thread_id": CODEX, "source": {"subagent": {"other": "guardian"}}}),
        json!({"id": "c4", "parent_thread_id": CODEX, "source": {"subagent": "review"}}),
    ];
    for (n, meta) in chains.into_iter().enumerate() {
        let records = [codex_meta(meta), codex_says("user", &[&format!("Look at refund {n}.")])];
        write(&machine, &format!("rollout-2-c{}.jsonl", n + 2), &records);
    }
    let (report, words) = import(&machine, "codex").await;
    assert_eq!(report, "1 session: 4 messages new, 0 known already");
    assert_eq!(machine.sessions().await, [format!("codex:{CODEX}")]);
    assert_eq!(words.len(), 4, "{words:#?}");
}

#[tokio::test]
async fn an_interrupted_answer_of_opencode_is_read() {
    let machine = Machine::new();
    let put = |path: &str, json: Value| {
        let path = machine.at("logs/storage").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json.to_string()).unwrap();
    };
    put("session/p/ses_1.json", json!({"id": "ses_1", "version": "0.15.0", "directory": "/home/ada/kontor"}));
    let time = json!({"created": 1_761_605_069_305_i64});
    put("message/ses_1/msg_1.json", json!({"id": "msg_1", "role": "assistant", "time": time}));
    let begun = json!({"start": 1_761_605_070_397_i64});
    put(
        "part/msg_1/prt_1.json",
        json!({"id": "prt_1", "type": "text", "text": "They are rou", "time": begun}),
    );
    assert_eq!(import(&machine, "opencode").await.0, "1 session: 0 messages new, 0 known already");

    let time = json!({"created": 1_761_605_069_305_i64, "completed": 1_761_605_070_674_i64});
    let error = json!({"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}});
    put(
        "message/ses_1/msg_1.json",
        json!({"id": "msg_1", "role": "assistant", "time": time, "error": error}),
    );
    let (report, words) = import(&machine, "opencode").await;
    assert_eq!(report, "1 session: 1 message new, 0 known already");
    assert_eq!(words, [says("assistant", "They are rou")]);
}

#[tokio::test]
async fn gemini_clis_request_to_continue_is_not_the_users() {
    let machine = Machine::new();
    let user = |id: &str, words: &str| json!({"id": id, "timestamp": "2026-04-23T12:53:48.927Z", "type": "user", "content": [{"text": words}]});
    let records = [
        json!({"sessionId": "g", "projectHash": "h", "startTime": "2026-04-23T12:52:52.759Z", "kind": "main"}),
        user("1", "Round the invoices."),
        user("2", "System: Please continue."),
    ];
    write(&machine, "chats/session-2026-04-23T12-52-g.jsonl", &records);
    let (report, words) = import(&machine, "gemini").await;
    assert_eq!(report, "1 session: 1 message new, 0 known already");
    assert_eq!(words, [says("user", "Round the invoices.")]);
}

#[tokio::test]
async fn what_claude_code_says_for_a_compaction_is_no_message() {
    let machine = Machine::new();
    let says_in = |agent: &str, role: &str, content: Value| {
        let message = json!({"role": role, "content": content});
        claude(role, "", json!({"isSidechain": true, "agentId": agent, "type": role, "message": message}))
    };
    for (agent, name) in [("acompact-70d8e7", "agent-acompact-70d8e7.jsonl"), ("ae5", "agent-ae5.jsonl")] {
        let records = [
            says_in(agent, "user", json!(format!("Your task for {agent}."))),
            says_in(agent, "assistant", json!([{"type": "text", "text": format!("A summary by {agent}.")}])),
        ];
        write(&machine, &format!("{}/subagents/{name}", &CLAUDE[..36]), &records);
    }
    let (report, words) = import(&machine, "claude-code").await;
    assert_eq!(report, "1 session: 2 messages new, 0 known already");
    assert_eq!(words, [says("user", "Your task for ae5."), says("assistant", "A summary by ae5.")]);
}

#[tokio::test]
async fn a_result_in_a_record_that_claude_code_inserts_is_the_calls() {
    let machine = Machine::new();
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "rates"}, {"type": "text", "text": "Be brief."}]);
    let call = json!([{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]);
    let records = [
        claude("a", "", json!({"type": "assistant", "message": {"role": "assistant", "content": call}})),
        claude(
            "b",
            "a",
            json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": result}}),
        ),
    ];
    write(&machine, CLAUDE, &records);
    let (report, words) = import(&machine, "claude-code").await;
    assert_eq!(report, "1 session: 2 messages new, 0 known already");
    assert_eq!(words[1], says("toolResult", "rates"));
}

#[tokio::test]
async fn a_session_whose_first_record_is_long_began_with_it() {
    let machine = Machine::new();
    let image = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0K".repeat(64 * 1024)});
    let content = json!([{"type": "image", "source": image}, {"type": "text", "text": "What is this?"}]);
    let asked = json!({"type": "user", "message": {"role": "user", "content": content}});
    let told = json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "A heron."}]}});
    write(&machine, CLAUDE, &[claude("u1", "", asked), claude("u2", "u1", told)]);
    import(&machine, "claude-code").await;
    let began =
        machine.home.store.read(|view| Ok(view.messages().sessions(None)?[0].started_at)).await.unwrap();
    assert_eq!(began, 1_784_970_000_000);
}

#[tokio::test]
async fn the_next_message_is_found_beyond_records_that_say_nothing() {
    let machine = Machine::new();
    let line = |second: usize, kind: &str, payload: Value| {
        let time = format!("2026-07-25T09:00:{second:02}.000Z");
        json!({"timestamp": time, "type": kind, "payload": payload})
    };
    let said = |second: usize, role: &str, words: &str| {
        let content = json!([{"type": "input_text", "text": words}]);
        line(second, "response_item", json!({"type": "message", "role": role, "content": content}))
    };
    let records = [
        line(0, "session_meta", json!({"id": "55555555", "cwd": "/home/ada/kontor"})),
        said(1, "user", "Which rule rounds the rates?"),
        line(2, "event_msg", json!({"type": "token_count", "info": null})),
        said(3, "assistant", "The flamingo rule."),
    ];
    write(&machine, "rollout-1.jsonl", &records);
    import(&machine, "codex").await;
    let store = machine.home.store.clone();
    let scope = Scope::at(ConversationId(0), None);
    let found = ask(&store, &scope, "search rounds --project").await.unwrap().answer;
    let asked = json!({"summary_id": found["hits"][0]["id"], "around": 1});
    let cancel = CancellationToken::new();
    let answer = call(&store, &scope, "lcm_expand", &asked.to_string(), None, &cancel).await.unwrap();
    let Block::Text(text) = &answer[0] else { panic!("an image") };
    assert!(text.contains("The flamingo rule."), "{text}");
}

/// Where it says so, an agent's record of a failed command does not: the call itself has succeeded.
#[tokio::test]
async fn commands_that_fail_count_as_failed() {
    let codex = |n: usize, output: &str| {
        let (id, arguments) = (format!("call_{n}"), json!({"command": ["make"]}).to_string());
        let item = |payload: Value| json!({"timestamp": "2026-07-25T09:00:00.000Z", "type": "response_item", "payload": payload});
        [
            item(json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": id})),
            item(json!({"type": "function_call_output", "call_id": id, "output": output})),
        ]
    };
    let outputs = [
        "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nno rule of kontor",
        "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 101\nOutput:\nno rule of kontor",
        "{\"output\":\"no rule of kontor\",\"metadata\":{\"exit_code\":1}}",
        "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1 of kontor",
        "{\"output\":\"kontor\",\"metadata\":{\"exit_code\":0}}",
        "Plan of kontor",
    ];
    let calls = outputs.iter().enumerate().flat_map(|(n, output)| codex(n, output));
    let began = json!({"timestamp": "2026-07-25T09:00:00.000Z", "type": "session_meta", "payload": {"id": "55555555", "cwd": "/home/ada/kontor"}});
    let codex: Vec<Value> = [began].into_iter().chain(calls).collect();
    let gemini = |id: &str, name: &str, output: &str| {
        let response = json!({"functionResponse": {"id": id, "name": name, "response": {"output": output}}});
        json!({"id": id, "name": name, "args": {"command": "make"}, "status": "success", "result": [response]})
    };
    let calls = [
        gemini(
            "one",
            "run_shell_command",
            "Command: make\nOutput: no rule of kontor\nExit Code: 2\nSignal: (none)",
        ),
        gemini("two", "run_shell_command", "Command: make\nOutput: kontor, Exit Code: 2\nExit Code: 0"),
        gemini("three", "read_file", "kontor\nExit Code: 2"),
    ];
    let gemini = [
        json!({"sessionId": "b0000000-0000-4000-8000-000000000043", "startTime": "2026-05-22T14:59:00.000Z", "kind": "main"}),
        json!({"id": "g1", "timestamp": "2026-05-22T14:59:11.000Z", "type": "gemini", "content": "I build.", "toolCalls": calls}),
    ];
    for (agent, name, records, expected) in [
        ("codex", "rollout-1.jsonl", codex, [("error", 3), ("ok", 3)]),
        ("gemini", "tmp/kontor/chats/session-1.jsonl", gemini.to_vec(), [("ok", 2), ("error", 1)]),
    ] {
        let machine = Machine::new();
        write(&machine, name, &records);
        import(&machine, agent).await;
        let scope = Scope::at(ConversationId(0), None);
        let counted =
            ask(&machine.home.store, &scope, "search kontor --role toolResult --count outcome --project")
                .await
                .unwrap();
        let counts = counted.answer["groups"].as_array().unwrap().clone();
        for (outcome, n) in expected {
            let of = counts.iter().find(|count| count["key"] == outcome).unwrap_or(&Value::Null);
            assert_eq!(of["messages"], n, "{agent}: {}", counted.answer);
        }
    }
}
