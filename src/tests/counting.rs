//! Exact totals equal those of plain loops over the files: with forks, branches, edits, purges and imports.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asking::{Asking, ask};
use super::forks::write_lines;
use super::import::Machine;
use super::purge_agents::{purge, stored};
use super::support::Session;
use crate::tools::{self, Block};
use lcm_model::ids::ConversationId;
use lcm_model::text::{parse_iso, timestamp};
use lcm_recall::Scope;
use lcm_testing::cases;

const WORDS: [&str; 6] = ["walrus", "narwhal", "beluga", "orca", "dugong", "harbor"];
const BY: [&str; 7] = ["session", "day", "role", "tool", "path", "outcome", "agent"];
const FILES: [&str; 2] = ["src/tank.rs", "docs/pool.md"];
const DAYS: [&str; 2] = ["2026-11-20", "2026-11-21"];

/// A step of a session: what is added below the entry before.
#[derive(Clone, Debug)]
enum Step {
    Ask(Vec<usize>),
    Answer(Vec<usize>),
    Tool {
        reads: bool,
        file: usize,
        failed: bool,
        output: Vec<usize>,
    },
    Bash {
        failed: bool,
        output: Vec<usize>,
    },
    /// Hides or rewrites an earlier message.
    Edit {
        target: usize,
        hides: bool,
    },
    /// Goes back to an earlier entry.
    Back(usize),
}

fn text() -> impl Strategy<Value = Vec<usize>> {
    // Some are cut into several passages.
    prop_oneof![9 => prop::collection::vec(0..WORDS.len(), 1..6), 1 => prop::collection::vec(0..WORDS.len(), 150..300)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => text().prop_map(Step::Ask),
        3 => text().prop_map(Step::Answer),
        2 => (any::<bool>(), 0..FILES.len(), any::<bool>(), text())
            .prop_map(|(reads, file, failed, output)| Step::Tool { reads, file, failed, output }),
        1 => (any::<bool>(), text()).prop_map(|(failed, output)| Step::Bash { failed, output }),
        1 => (0..9_usize, any::<bool>()).prop_map(|(target, hides)| Step::Edit { target, hides }),
        1 => (0..9_usize).prop_map(Step::Back),
    ]
}

fn said(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

/// The entries of a session file, after those it was forked with.
fn entries(steps: &[Step], mut entries: Vec<Value>, name: &str) -> Vec<Value> {
    let mut leaf = entries.last().map(|entry| entry["id"].clone()).unwrap_or_default();
    let add = |kind: &str, field: &str, content: Value, leaf: &mut Value, entries: &mut Vec<Value>| {
        let id = format!("{name}{}", entries.len());
        let mut entry =
            json!({"type": kind, "id": id, "parentId": leaf.take(), "timestamp": "2026-11-22T09:00:00.000Z"});
        match field {
            "" => entry.as_object_mut().unwrap().extend(content.as_object().unwrap().clone()),
            field => entry[field] = content,
        }
        *leaf = id.into();
        entries.push(entry);
    };
    for (at, step) in steps.iter().enumerate() {
        let day = DAYS[at % 2].to_owned() + "T09:00:00Z";
        let time = parse_iso(&day).unwrap() + i64::try_from(at).unwrap();
        let block = |words: &[usize]| json!([{"type": "text", "text": said(words)}]);
        let message = |message: Value, leaf: &mut Value, entries: &mut Vec<Value>| {
            let mut message = message;
            message["timestamp"] = time.into();
            add("message", "message", message, leaf, entries);
        };
        match step {
            Step::Ask(words) => {
                message(json!({"role": "user", "content": said(words)}), &mut leaf, &mut entries);
            }
            Step::Answer(words) => {
                let answer = json!({"role": "assistant", "content": block(words), "stopReason": "stop"});
                message(answer, &mut leaf, &mut entries);
            }
            Step::Tool { reads, file, failed, output } => {
                let (id, tool) = (format!("{name}-call{at}"), if *reads { "read" } else { "edit" });
                let call =
                    json!({"type": "toolCall", "id": id, "name": tool, "arguments": {"path": FILES[*file]}});
                let answer = json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
                message(answer, &mut leaf, &mut entries);
                let result = json!({"role": "toolResult", "toolCallId": id, "toolName": tool, "isError": failed, "content": block(output)});
                message(result, &mut leaf, &mut entries);
            }
            Step::Bash { failed, output } => {
                let run = json!({"role": "bashExecution", "command": "swim", "output": said(output), "exitCode": u8::from(*failed)});
                message(run, &mut leaf, &mut entries);
            }
            Step::Edit { target, hides } => {
                let targets: Vec<&Value> =
                    entries.iter().filter(|entry| !entry["message"].is_null()).collect();
                if let Some(target) = targets.get(target % targets.len().max(1)) {
                    let replacement = if *hides {
                        Value::Null
                    } else {
                        json!({"content": [{"type": "text", "text": "harbor"}]})
                    };
                    let edit = json!({"targetId": target["id"], "replacement": replacement});
                    add("context_edit", "", edit, &mut leaf, &mut entries);
                }
            }
            Step::Back(to) if !entries.is_empty() => leaf = entries[to % entries.len()]["id"].clone(),
            Step::Back(_) => {}
        }
    }
    entries
}

/// A message as a plain loop over the files sees it.
#[derive(Clone, Debug)]
struct Seen {
    session: String,
    message: Value,
    paths: Vec<String>,
}

/// The messages of the files, in order, each once: what stands above it tells whether it is the same.
fn messages_in(files: &[(&str, Vec<Value>)], gone: &BTreeSet<String>) -> Vec<Seen> {
    let (mut known, mut all) = (BTreeSet::new(), Vec::new());
    for (session, entries) in files {
        let mut above: BTreeMap<&str, (String, BTreeMap<String, String>)> = BTreeMap::new();
        for entry in entries {
            let (mut chain, mut calls) =
                entry["parentId"].as_str().map(|parent| above[parent].clone()).unwrap_or_default();
            let message = &entry["message"];
            if !message.is_null() {
                chain += &message.to_string();
                let mut paths = Vec::new();
                for part in message["content"].as_array().into_iter().flatten() {
                    if let Some(path) = part["arguments"]["path"].as_str() {
                        paths.push(path.to_owned());
                        let is_purged = gone.contains(&message.to_string());
                        let path = if is_purged { "" } else { path };
                        calls.insert(part["id"].as_str().unwrap().to_owned(), path.to_owned());
                    }
                }
                let called = message["toolCallId"].as_str().and_then(|call| calls.get(call));
                paths.extend(called.filter(|path| !path.is_empty()).cloned());
                if known.insert(chain.clone()) && !gone.contains(&message.to_string()) {
                    all.push(Seen { session: (*session).to_owned(), message: message.clone(), paths });
                }
            }
            above.insert(entry["id"].as_str().unwrap(), (chain, calls));
        }
    }
    all
}

fn words_of(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str().or(part["name"].as_str()));
    let texts: Vec<&str> = [&message["content"], &message["output"]]
        .into_iter()
        .filter_map(Value::as_str)
        .chain(texts)
        .collect();
    texts.join(" ")
}

/// The groups of a message.
fn groups_of(by: &str, seen: &Seen) -> Vec<Option<String>> {
    let message = &seen.message;
    let text = |key: &str| message[key].as_str().map(ToOwned::to_owned);
    let is_run = message["role"] == "bashExecution";
    let failed = message["isError"] == true || message["exitCode"] == 1;
    vec![match by {
        "session" => Some(seen.session.clone()),
        "day" => Some(timestamp(message["timestamp"].as_i64().unwrap())[..10].to_owned()),
        "role" => text("role"),
        "tool" => text("toolName"),
        "outcome" => (is_run || message["role"] == "toolResult")
            .then(|| if failed { "error" } else { "ok" }.to_owned()),
        "agent" => {
            Some(if seen.session.starts_with("claude-code:") { "claude-code" } else { "pi" }.to_owned())
        }
        _ if seen.paths.is_empty() => None,
        _ => return seen.paths.iter().cloned().map(Some).collect(),
    }]
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

async fn call(machine: &Machine, scope: &Scope, arguments: &Value) -> Value {
    let (arguments, cancel) = (arguments.to_string(), CancellationToken::new());
    let answer = tools::call(&machine.home.store, scope, "lcm_grep", &arguments, None, &cancel).await;
    match answer.unwrap().pop() {
        Some(Block::Data(data)) => data,
        other => panic!("{other:?}"),
    }
}

/// The totals of an answer, by key.
fn totals(data: &Value) -> BTreeMap<Option<String>, u64> {
    let groups = data["groups"].as_array().unwrap().iter();
    groups
        .map(|group| (group["key"].as_str().map(ToOwned::to_owned), group["messages"].as_u64().unwrap()))
        .collect()
}

async fn check(own: Vec<Step>, forked: Vec<Step>, cut: usize, other: Vec<Vec<usize>>, purged: usize) {
    let machine = Machine::new();
    let own = entries(&own, Vec::new(), "a");
    let fork = entries(&forked, own[..cut % (own.len() + 1)].to_vec(), "b");
    // A fork of entries alone has the same messages as its origin.
    machine.write("2026-11-20_one.jsonl", "one", &own);
    let mut files = vec![("one", own)];
    machine.run("").await;
    machine.write("2026-11-21_two.jsonl", "two", &fork);
    files.push(("two", fork));
    machine.run("").await;
    let session = "33333333-3333-4333-8333-333333333333";
    let mut log = Vec::new();
    let mut chain = Vec::new();
    for (at, words) in other.iter().enumerate() {
        let (role, time) = (["user", "assistant"][at % 2], format!("2026-11-20T10:{at:02}:00.000Z"));
        let content = json!([{"type": "text", "text": said(words)}]);
        let above = at.checked_sub(1).map(|above| format!("u{above}"));
        log.push(json!({"parentUuid": above, "cwd": machine.home.cwd, "sessionId": session, "version": "2.1.38", "type": role,
            "message": {"role": role, "content": content}, "uuid": format!("u{at}"), "timestamp": time}));
        let message = json!({"role": role, "content": content, "timestamp": parse_iso(&time)});
        chain.push(json!({"id": format!("u{at}"), "parentId": above, "message": message}));
    }
    write_lines(&machine.at(&format!("claude/{session}.jsonl")), &log);
    machine.run(&format!("--from claude-code \"{}\"", machine.at("claude").display())).await;
    let foreign = format!("claude-code:{session}");
    files.push((&foreign, chain));

    let mut gone = BTreeSet::new();
    let all = stored(&machine).await;
    let own: Vec<_> = all.iter().filter(|(_, said, json)| *said && !json.contains("claude-code")).collect();
    if let Some((id, _, json)) = own.get(purged) {
        purge(&machine, *id).await;
        gone.insert(json.clone());
    }
    let seen = messages_in(&files, &gone);
    let scope = Scope::at(ConversationId(i64::MAX), None);
    for (query, mode, holds) in [
        ("walrus", "text", (&|text: &str| text.contains("walrus")) as &dyn Fn(&str) -> bool),
        ("Walrus ORCA", "text", &|text: &str| text.contains("walrus") && text.contains("orca")),
        ("\"walrus orca\" dugong", "text", &|text: &str| {
            text.contains("walrus orca") && text.contains("dugong")
        }),
        ("(beluga|orca) (walrus )+", "regex", &|text: &str| {
            text.contains("beluga walrus ") || text.contains("orca walrus ")
        }),
        (".", "regex", &|_: &str| true),
    ] {
        for by in BY {
            for (filter, passes) in [
                (json!({}), (&|_: &Seen| true) as &dyn Fn(&Seen) -> bool),
                (json!({"role": "user"}), &|seen: &Seen| seen.message["role"] == "user"),
                (json!({"tool": "read"}), &|seen: &Seen| seen.message["toolName"] == "read"),
                (json!({"after": DAYS[1]}), &|seen: &Seen| {
                    groups_of("day", seen)[0].as_deref() >= Some(DAYS[1])
                }),
                (json!({"agent": "claude-code"}), &|seen: &Seen| seen.session.starts_with("claude")),
            ] {
                let mut arguments =
                    json!({"query": query, "mode": mode, "count": by, "session": "project", "limit": 100});
                arguments.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
                let found = call(&machine, &scope, &arguments).await;
                let mut expected: BTreeMap<Option<String>, u64> = BTreeMap::new();
                let mut total = 0_u64;
                for seen in seen.iter().filter(|seen| holds(&words_of(&seen.message)) && passes(seen)) {
                    total += 1;
                    groups_of(by, seen).into_iter().for_each(|key| *expected.entry(key).or_default() += 1);
                }
                assert_eq!(
                    (found["total"].as_u64().unwrap(), totals(&found)),
                    (total, expected),
                    "{arguments}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn totals_equal_those_of_plain_loops_over_the_files(
        own in prop::collection::vec(step(), 1..14),
        forked in prop::collection::vec(step(), 0..8),
        cut in any::<usize>(),
        other in prop::collection::vec(text(), 0..4),
        purged in 0..12_usize,
    ) {
        block_on(check(own, forked, cut, other, purged));
    }
}

#[tokio::test]
async fn a_count_says_what_it_counted_and_names_the_first_and_the_last() {
    let session = Session::new()
        .user("How do we deploy the walrus?")
        .tool("bash", json!({"command": "deploy walrus"}), "deployed the walrus")
        .assistant("The walrus is deployed, and see src/tank.rs.")
        .user("and the tanks?");
    let asking = Asking::about(&session).await;
    let ids = [asking.message(0).await, asking.message(2).await, asking.message(3).await];
    let answer = asking.grep(json!({"query": "the deployed walrus", "count": "role"})).await;
    assert_eq!(
        answer,
        format!(
            "4 messages of this session match `the deployed walrus` (all of deployed, walrus, in any form).\n\
             assistant: 2, first {0}, last {2}\ntoolResult: 1, first {1}, last {1}\nuser: 1, first {3}, last {3}",
            asking.message(1).await,
            ids[1],
            ids[2],
            ids[0]
        )
    );
    let cut = asking.grep(json!({"query": "walrus", "count": "role", "limit": 1})).await;
    assert!(cut.contains("2 groups with 2 messages are left out"), "{cut}");
    let path = asking.grep(json!({"query": "src/tank.rs", "count": "path"})).await;
    assert!(
        path.starts_with("1 message of this session matches `src/tank.rs`.\n(of no call on a file): 1, "),
        "{path}"
    );
    let read = |id: &str, path: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": path}});
    let both = json!([{"type": "text", "text": "Both."}, read("c1", "a.rs"), read("c2", "b.rs")]);
    let both = Session::new().message(json!({"role": "assistant", "content": both})).user("and now?");
    let path = Asking::about(&both).await.grep(json!({"query": "both", "count": "path"})).await;
    assert!(path.contains(" A message counts for each of its files.\na.rs: 1, "), "{path}");
    // One file, however it is named.
    let named = [read("c1", "/project/src/a.rs"), read("c2", "./src/a.rs"), read("c3", "src/a.rs")];
    let named = named.map(|call| json!({"role": "assistant", "content": [call]}));
    let named = named.into_iter().fold(Session::new(), Session::message).user("and now?");
    let of_file = Asking::about(&named).await;
    for path in ["/project/src/a.rs", "./src/a.rs", "src/a.rs"] {
        let answer = of_file.grep(json!({"query": "read", "path": path, "count": "path"})).await;
        assert!(answer.starts_with("3 messages ") && answer.contains("\nsrc/a.rs: 3, "), "{answer}");
    }
    // As Codex edits.
    let patch =
        "*** Begin Patch\n*** Update File: c.rs\n@@\n-both\n*** Add File: d/e.rs\n+new\n*** End Patch";
    let patch = json!({"type": "toolCall", "id": "p", "name": "apply_patch", "arguments": {"input": patch}});
    let patched = Session::new().message(json!({"role": "assistant", "content": [patch]})).user("and now?");
    let path = Asking::about(&patched).await.grep(json!({"query": "both", "count": "path"})).await;
    assert!(path.contains("\nc.rs: 1, ") && path.contains("\nd/e.rs: 1, "), "{path}");
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let data =
        Session::new().user(&format!("{hash} a\n").repeat(40)).user("9f86d081884c said").user("and now?");
    let of_data = Asking::about(&data).await;
    for query in ["9f86d081884c", "\"9f86d081884c\""] {
        let answer = of_data.grep(json!({"query": query, "count": "role"})).await;
        assert!(
            answer.starts_with("2 messages of this session match"),
            "what the index lacks counts: {answer}"
        );
    }
    // A word that is a part of a quoted one counts too.
    let talk = Session::new().user("a login timeout").user("the log of a login timeout").user("and now?");
    let of_talk = Asking::about(&talk).await;
    let answer = of_talk.grep(json!({"query": "log \"login timeout\"", "count": "role"})).await;
    assert!(answer.starts_with("1 message of this session matches"), "{answer}");
    let nothing = asking.grep(json!({"query": "walrus penguin", "count": "day"})).await;
    assert_eq!(
        nothing,
        "0 messages of this session match `walrus penguin` (all of walrus, penguin, in any form). Without count, messages with some of the words may match too."
    );
    let nothing = asking.command("search walrus penguin --count day").await;
    assert!(
        nothing.ends_with(" Without --count, messages with some of the words may match too."),
        "{nothing}"
    );
    assert_eq!(
        asking.refusal("lcm_grep", json!({"query": "walrus", "count": "day", "scope": "summaries"})).await,
        "count is of messages and scope is summaries: leave one of them out"
    );
    let shown = asking.command("search walrus --count tool").await;
    assert!(
        shown.contains("\n  3  (no tool's output), first m-") && shown.contains("\n  1  bash, first "),
        "{shown}"
    );
    let shown = asking.command("search walrus --count outcome").await;
    assert!(shown.contains("\n  3  (not of a tool or command), first m-"), "{shown}");
    let data = asking.json("search walrus --count tool").await;
    assert_eq!((&data["total"], &data["groups"][1]["key"]), (&json!(4), &json!("bash")));
    let refused = ask(&asking.store.store, &asking.scope, "search walrus --count month").await.unwrap_err();
    assert!(refused.to_string().starts_with("--count takes session, day, role,"), "{refused}");
}
