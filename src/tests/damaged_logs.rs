//! Damaged logs of other agents give what they have, what is broken is counted and named, and the order of the file connects what
//! the damage cut. And what makes a branch: a rewind or a side chain.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::agents::{files, fixtures};
use super::forks::said;
use super::import::Machine;
use lcm_model::Message;
use lcm_model::dag::Step;

const SESSION: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

/// A record of Claude Code, the n-th, below another.
fn record(n: usize, above: Option<usize>, kind: &str, content: Value) -> Value {
    let name = |n: usize| format!("11111111-2222-4333-8444-{n:012}");
    json!({
        "parentUuid": above.map(name), "isSidechain": false, "cwd": "/home/someone/project", "sessionId": SESSION, "version": "2.1.38",
        "timestamp": format!("2025-11-20T00:53:{n:02}.000Z"), "type": kind, "uuid": name(n),
        "message": {"role": kind, "content": content},
    })
}

/// Alternating messages, each below the one before.
fn walnuts(count: usize) -> Vec<Value> {
    let say = |n: usize| {
        let kind = if n.is_multiple_of(2) { "user" } else { "assistant" };
        record(
            n,
            n.checked_sub(1),
            kind,
            json!([{"type": "text", "text": format!("number {n} walnut{n} fine")}]),
        )
    };
    (0..count).map(say).collect()
}

fn lines(records: &[Value]) -> Vec<String> {
    records.iter().map(ToString::to_string).collect()
}

fn write(machine: &Machine, text: impl AsRef<[u8]>) -> PathBuf {
    let log = machine.at(&format!("{SESSION}.jsonl"));
    fs::write(&log, text).unwrap();
    log
}

async fn import(machine: &Machine, agent: &str, log: &Path) -> String {
    machine.run(&format!("--from {agent} \"{}\"", log.display())).await
}

/// The texts on the branch where each session ends.
async fn on_branch(machine: &Machine) -> Vec<String> {
    let read = machine.home.store.read(|view| {
        let mut texts = Vec::new();
        for session in view.messages().sessions(None)? {
            let last = view.messages().last_entry(session.id)?.unwrap();
            for entry in view.messages().branch(session.id, &last)? {
                if let Step::Message(message) = entry.step {
                    let message = Message::parse(&view.messages().message(message.id)?.json);
                    if message.role != lcm_model::Role::System {
                        texts.push(message.readable());
                    }
                }
            }
        }
        Ok(texts)
    });
    read.await.unwrap()
}

fn numbers(texts: &[String]) -> Vec<usize> {
    let number = |text: &String| text.split("walnut").nth(1)?.split(' ').next()?.parse().ok();
    texts.iter().filter_map(number).collect()
}

#[tokio::test]
async fn whole_records_on_damaged_lines_are_found_and_stay_one_conversation() {
    let whole = lines(&walnuts(8));
    let torn = &whole[4][..150];
    let late = &whole[4][..whole[4].len() - 20];
    for (name, damaged, lost, broken) in [
        (
            "zero bytes before a record",
            vec![whole[..2].join("\n"), format!("{}{}", "\0".repeat(300), whole[2]), whole[3..].join("\n")],
            vec![],
            "1 broken line (aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee.jsonl: line 3)",
        ),
        (
            "zero bytes after one",
            vec![whole[..3].join("\n") + &"\0".repeat(5), whole[3..].join("\n")],
            vec![],
            ": line 3)",
        ),
        (
            "a record that breaks off before the next",
            vec![whole[..4].join("\n"), format!("{torn}{}", whole[5]), whole[6..].join("\n")],
            vec![4],
            ": line 5)",
        ),
        (
            "one that breaks off late",
            vec![whole[..4].join("\n"), format!("{late}{}", whole[5]), whole[6..].join("\n")],
            vec![4],
            ": line 5)",
        ),
        (
            "two records in a line",
            vec![whole[..4].join("\n"), format!("{}{}", whole[4], whole[5]), whole[6..].join("\n")],
            vec![],
            ": line 5)",
        ),
        (
            "three with bytes that are no text",
            vec![
                whole[..2].join("\n"),
                format!("{}\u{fffd}{}, {}", whole[2], whole[3], whole[4]),
                whole[5..].join("\n"),
            ],
            vec![],
            ": line 3)",
        ),
        ("a line that is gone", vec![whole[..3].join("\n"), whole[4..].join("\n")], vec![3], ""),
        ("no first line", vec![whole[1..].join("\n")], vec![0], ""),
        ("a byte order mark", vec![format!("\u{feff}{}", whole.join("\n"))], vec![], ""),
        (
            "a cut end",
            vec![whole[..7].join("\n"), whole[7][..90].to_owned()],
            vec![7],
            "1 unfinished last line left for the next import",
        ),
        (
            "all of it",
            vec![
                whole[0].clone(),
                format!("{}\0\0{}", whole[1], whole[2]),
                "\0\0".into(),
                format!("{}{torn}{}", whole[3], whole[5]),
                whole[6].clone(),
                whole[7][..9].into(),
            ],
            vec![4, 7],
            "3 broken lines (aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee.jsonl: lines 2, 3, 4), 1 unfinished",
        ),
    ] {
        let machine = Machine::new();
        let end = if name.contains("cut") || name == "all of it" { "" } else { "\n" };
        let log = write(&machine, damaged.join("\n") + end);
        let report = import(&machine, "claude-code", &log).await;
        assert!(
            report.contains(broken) && (!broken.is_empty() || !report.contains("broken")),
            "{name}: {report}"
        );
        assert!(!report.contains("unknown kind"), "{name}: {report}");
        let expected: Vec<usize> = (0..8).filter(|n| !lost.contains(n)).collect();
        assert_eq!(numbers(&on_branch(&machine).await), expected, "{name}");
        let again = import(&machine, "claude-code", &log).await;
        assert!(again.contains(": 0 messages new"), "{name}: {again}");
        // Once the end is written, the log goes on.
        if name == "a cut end" {
            write(&machine, whole.join("\n") + "\n");
            assert!(import(&machine, "claude-code", &log).await.contains(": 1 message new"));
            assert_eq!(numbers(&on_branch(&machine).await).len(), 8);
        }
    }
}

#[tokio::test]
async fn what_is_broken_is_kept_as_it_is() {
    let machine = Machine::new();
    let whole = lines(&walnuts(3));
    let torn = &whole[1][..150];
    let log = write(&machine, format!("{}\n{torn}{}\n", whole[0], whole[2]));
    import(&machine, "claude-code", &log).await;
    let logs = super::forks::exported(&machine, "claude-code", "logs").await;
    assert_eq!(logs, [format!("{}\n{torn}\n{}\n", whole[0], whole[2])]);
}

/// The logs of an agent that have lines, or are one JSON value.
fn logs_of(agent: &str, ending: &str) -> Vec<PathBuf> {
    let is_meant = |path: &PathBuf| path.extension().is_some_and(|of| of == ending);
    files(&fixtures(agent)).into_iter().filter(is_meant).collect()
}

#[tokio::test]
async fn a_log_without_its_first_line_or_its_end_gives_the_rest() {
    for (agent, ending) in
        [("claude-code", "jsonl"), ("codex", "jsonl"), ("gemini", "jsonl"), ("gemini", "json")]
    {
        for log in logs_of(agent, ending) {
            let whole = Machine::new();
            let text = fs::read_to_string(&log).unwrap();
            import(&whole, agent, &log).await;
            let all = said(&whole).await;
            let on_side_chains = all.len() - on_branch(&whole).await.len();
            if all.len() < 3 {
                continue;
            }
            let first = text.find('\n').unwrap() + 1;
            let last = text.trim_end().len() - 5;
            for (what, damaged) in [
                ("no first line", &text[first..]),
                ("a cut end", &text[..last]),
                ("neither", &text[first..last]),
                ("a first line that begins late", &text[10..]),
            ] {
                let machine = Machine::new();
                let name = log.strip_prefix(fixtures(agent)).unwrap();
                let path = machine.at("logs").join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, damaged).unwrap();
                let report = import(&machine, agent, &path).await;
                assert!(!report.contains("could not be read"), "{}, {what}: {report}", log.display());
                let left = said(&machine).await;
                assert!(left.len() + 3 > all.len(), "{}, {what}: {left:#?} of {all:#?}", log.display());
                assert!(left.iter().all(|text| all.contains(text)), "{}, {what}: {left:#?}", log.display());
                assert_eq!(
                    on_branch(&machine).await.len() + on_side_chains,
                    left.len(),
                    "{}, {what}",
                    log.display()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_session_of_gemini_that_is_cut_anywhere_gives_its_whole_messages() {
    let message = |n: usize| json!({"id": format!("m{n}"), "timestamp": "2026-03-24T20:12:25.361Z", "type": if n.is_multiple_of(2) { "user" } else { "gemini" }, "content": format!("number {n} walnut{n} fine")});
    let session = json!({"sessionId": "s", "projectHash": "0", "startTime": "2026-03-24T20:12:25.361Z", "kind": "main", "messages": (0..8).map(message).collect::<Vec<_>>()});
    for text in [serde_json::to_string_pretty(&session).unwrap(), session.to_string()] {
        for end in (200..text.len()).step_by(37) {
            let whole = (0..8).filter(|n| text.find(&format!("walnut{n} fine")).unwrap() + 40 < end).count();
            let machine = Machine::new();
            let log = machine.at("session-2026-03-24T20-12-cut.json");
            fs::write(&log, &text[..end]).unwrap();
            let report = import(&machine, "gemini", &log).await;
            let found = numbers(&on_branch(&machine).await);
            assert!(
                found.len() >= whole && found.iter().enumerate().all(|(n, found)| n == *found),
                "{end}: {report} {found:?}"
            );
            assert!(
                whole == 0 || report.contains("1 broken line (session-2026-03-24T20-12-cut.json"),
                "{report}"
            );
            // The same session, once it is whole.
            fs::write(&log, &text).unwrap();
            import(&machine, "gemini", &log).await;
            assert!(whole == 0 || numbers(&said(&machine).await) == (0..8).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn a_damaged_file_of_opencode_costs_itself_alone() {
    let put = |machine: &Machine, damaged: &str| {
        let storage = machine.at("storage");
        let mut all = vec![(
            "session/p/ses_1.json".to_owned(),
            json!({"id": "ses_1", "version": "1.0", "directory": "/p", "time": {"created": 1}}),
        )];
        for n in 0..4_usize {
            let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
            all.push((format!("message/ses_1/msg_{n}.json"), json!({"id": format!("msg_{n}"), "role": role, "time": {"created": n + 2, "completed": n + 2}})));
            all.push((format!("part/msg_{n}/prt_{n}.json"), json!({"id": format!("prt_{n}"), "type": "text", "text": format!("number {n} walnut{n} fine")})));
        }
        for (name, json) in all {
            let (path, text) = (storage.join(&name), json.to_string());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if name == damaged { &text[..text.len() / 2] } else { &text }).unwrap();
        }
        storage
    };
    for (damaged, left) in [
        ("session/p/ses_1.json", 4),
        ("message/ses_1/msg_0.json", 4),
        ("message/ses_1/msg_3.json", 4),
        ("part/msg_1/prt_1.json", 3),
    ] {
        let machine = Machine::new();
        let storage = put(&machine, damaged);
        let report = import(&machine, "opencode", &storage).await;
        assert!(
            report.contains(&format!("{left} messages new, 0 known already, 1 broken line")),
            "{damaged}: {report}"
        );
        let texts = on_branch(&machine).await;
        assert_eq!(texts.len(), left, "{damaged}");
        put(&machine, "");
        import(&machine, "opencode", &storage).await;
        // Until it is known who said it, it does not count as the user's.
        let twice = usize::from(damaged == "message/ses_1/msg_0.json");
        assert_eq!(said(&machine).await.len(), 4 + twice, "{damaged}");
    }
}

#[tokio::test]
async fn calls_that_claude_code_made_at_once_stay_in_one_turn() {
    let call = |n: usize, above: usize| {
        record(
            n,
            Some(above),
            "assistant",
            json!([{"type": "tool_use", "id": format!("toolu_{n}"), "name": "Read", "input": {"file_path": "a"}}]),
        )
    };
    let result = |n: usize, of: usize| {
        record(
            n,
            Some(of),
            "user",
            json!([{"type": "tool_result", "tool_use_id": format!("toolu_{of}"), "content": format!("number {n} walnut{n} fine")}]),
        )
    };
    let says = |n: usize, above: Option<usize>, kind: &str| {
        record(n, above, kind, json!([{"type": "text", "text": format!("number {n} walnut{n} fine")}]))
    };
    let compaction = |n: usize, above: &str| {
        let mut boundary = record(n, None, "system", json!(null));
        boundary["subtype"] = "compact_boundary".into();
        boundary["logicalParentUuid"] = above.into();
        let mut summary = record(n + 1, Some(n), "user", json!("This session is being continued."));
        summary["isCompactSummary"] = true.into();
        vec![boundary, summary]
    };
    let side = |n: usize, above: Option<usize>, kind: &str, agent: Value| {
        let mut record = says(n, above, kind);
        record["isSidechain"] = true.into();
        record["agentId"] = agent;
        record
    };
    // What is typed while the model works has no record of its own.
    let typed = |n: usize, above: usize| {
        let mut record = record(n, Some(above), "attachment", Value::Null);
        record["attachment"] =
            json!({"type": "queued_command", "prompt": format!("number {n} walnut{n} fine")});
        record
    };
    let begins = || vec![says(0, None, "user"), call(1, 0), call(2, 1), call(3, 2)];
    let with = |more: Vec<Value>| [begins(), more].concat();
    let answered_below = |above: usize| {
        let ends = [says(7, Some(above), "assistant"), says(8, Some(7), "user")];
        with([vec![result(4, 1), result(5, 2), result(6, 3)], ends.to_vec()].concat())
    };
    for (name, records, branch, all) in [
        ("results below their calls", answered_below(6), 9, 9),
        (
            "results in another order",
            with(vec![result(4, 3), result(5, 1), result(6, 2), says(7, Some(4), "assistant")]),
            8,
            8,
        ),
        ("the next answer below the first result", answered_below(4), 9, 9),
        (
            "a call after a result",
            vec![
                says(0, None, "user"),
                call(1, 0),
                result(2, 1),
                call(3, 1),
                result(4, 3),
                says(5, Some(2), "assistant"),
            ],
            6,
            6,
        ),
        (
            "a compaction below a missing record",
            [
                with(vec![result(4, 1), result(5, 2), result(6, 3), says(7, Some(6), "assistant")]),
                compaction(8, "gone"),
                vec![says(10, Some(9), "assistant"), says(11, Some(10), "user")],
            ]
            .concat(),
            10,
            10,
        ),
        (
            "a compaction below the last",
            [
                with(vec![result(4, 1), result(5, 2), result(6, 3)]),
                compaction(8, "11111111-2222-4333-8444-000000000006"),
                vec![says(10, Some(9), "assistant")],
            ]
            .concat(),
            8,
            8,
        ),
        (
            "a message typed meanwhile and written late",
            with(vec![
                result(4, 1),
                result(5, 2),
                result(6, 3),
                says(7, Some(6), "assistant"),
                typed(8, 4),
                says(9, Some(7), "user"),
                says(10, Some(9), "assistant"),
            ]),
            11,
            11,
        ),
        (
            "a rewind",
            with(vec![
                result(4, 1),
                result(5, 2),
                result(6, 3),
                says(7, Some(6), "assistant"),
                says(8, Some(7), "user"),
                says(9, Some(8), "assistant"),
                says(10, Some(7), "user"),
                says(11, Some(10), "assistant"),
            ]),
            10,
            12,
        ),
        (
            "a rewind to the start",
            vec![
                says(0, None, "user"),
                says(1, Some(0), "assistant"),
                says(2, None, "user"),
                says(3, Some(2), "assistant"),
            ],
            2,
            4,
        ),
        (
            "a rewind while another goes on",
            vec![
                says(0, None, "user"),
                says(1, Some(0), "assistant"),
                says(2, Some(1), "user"),
                says(3, Some(1), "user"),
                says(4, Some(2), "assistant"),
                says(5, Some(3), "assistant"),
            ],
            4,
            6,
        ),
        (
            "a side chain",
            vec![
                says(0, None, "user"),
                call(1, 0),
                side(2, None, "user", Value::Null),
                side(3, Some(2), "assistant", Value::Null),
                result(4, 1),
                says(5, Some(4), "assistant"),
                side(6, Some(3), "assistant", Value::Null),
            ],
            4,
            7,
        ),
        (
            "two side chains at once",
            vec![
                says(0, None, "user"),
                call(1, 0),
                call(2, 1),
                side(3, None, "user", json!("a")),
                side(4, None, "user", json!("b")),
                side(5, Some(3), "assistant", json!("a")),
                side(6, Some(4), "assistant", json!("b")),
                result(7, 1),
                result(8, 2),
                says(9, Some(8), "assistant"),
            ],
            6,
            10,
        ),
    ] {
        let machine = Machine::new();
        let log = write(&machine, lines(&records).join("\n") + "\n");
        import(&machine, "claude-code", &log).await;
        assert_eq!(
            (on_branch(&machine).await.len(), said(&machine).await.len()),
            (branch, all),
            "{name}: {:#?}",
            on_branch(&machine).await
        );
        // However it grows, the tree is the same.
        let digest = machine.digest().await;
        let growing = Machine::new();
        for end in 1..=records.len() {
            let log = write(&growing, lines(&records[..end]).join("\n") + "\n");
            import(&growing, "claude-code", &log).await;
        }
        assert_eq!(growing.digest().await, digest, "{name}");
    }
}
