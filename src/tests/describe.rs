//! `lcm_describe`, and the tools' schemas.

use serde_json::{Value, json};

use super::asking::Asking;
use super::support::Session;
use crate::tools;
use lcm_model::ids::ConversationId;
use lcm_model::{Quote, QuoteKind};
use lcm_recall::Scope;

/// Ten turns: the first eight messages under a D1, the next four under a leaf, eight uncovered.
async fn mapped() -> (Asking, [String; 4]) {
    let asking = Asking::about(&Session::new().chat(10, 3)).await;
    let one = asking.leaf(0..4, "First steps").await;
    let two = asking.leaf(4..8, "Extract of more").await;
    let top = asking.condensed(1, &[one, two], "Title: The beginning").await;
    let three = asking.leaf(8..12, "## Later on").await;
    let mut names = Vec::new();
    for id in [one, two, top, three] {
        names.push(asking.name(id).await);
    }
    (asking, names.try_into().unwrap())
}

#[tokio::test]
async fn the_overview_counts_and_divides_the_branch_by_its_summaries() {
    let (asking, [one, two, top, three]) = mapped().await;
    let asking = asking.with_session("two", &Session::new().user("a plan").user("b")).await;
    let (from, to) = (asking.message(12).await, asking.message(19).await);
    let span = "2025-11-20 09:12–2026-11-20 09:00 UTC";
    assert_eq!(
        asking.describe(json!({})).await,
        format!(
            "This session: 20 messages stored, 20 visible on this branch, {span}. 4 summaries (1 D1, 3 D0), 1 degraded, by scripted/model.\n\
             This project: 22 messages, 2 sessions.\n\n\
             This branch, oldest first:\n\
             - {top} · D1 · {span} · 8 messages: The beginning\n  \
             - {one} · D0 · {span} · 4 messages: First steps\n  \
             - {two} · D0 · {span} · 4 messages · degraded: Extract of more\n\
             - {three} · D0 · {span} · 4 messages: Later on\n\
             - 8 messages without a summary: {from} to {to}\n\n\
             Other sessions, the last used first; lcm_grep searches one with \"session\":\n\
             - two · 2025-11-20 09:12 UTC · 2 messages: a plan"
        )
    );
}

#[tokio::test]
async fn the_tree_has_as_many_levels_as_fit() {
    let asking = Asking::about(&Session::new().chat(40, 2)).await;
    let mut pairs = Vec::new();
    for n in 0..39 {
        let leaves =
            [asking.leaf(n * 2..n * 2 + 1, "Left").await, asking.leaf(n * 2 + 1..n * 2 + 2, "Right").await];
        pairs.push(asking.condensed(1, &leaves, "Pair").await);
    }
    let tree = async || {
        let answer = asking.describe(json!({})).await;
        let lines = answer.lines().filter(|line| line.trim_start().starts_with("- s-"));
        let level = |line: &str| (line.len() - line.trim_start().len()) / 2;
        lines.map(|line| (level(line), line.ends_with("(2 summaries under it)"))).collect::<Vec<_>>()
    };
    assert_eq!(tree().await, vec![(0, true); 39]);
    asking.condensed(2, &pairs, "All").await;
    assert_eq!(tree().await, [vec![(0, false)], vec![(1, true); 39]].concat());
}

#[tokio::test]
async fn each_other_session_has_a_line_with_its_name_for_lcm_grep() {
    let mut asking = Asking::about(&Session::new().user("here")).await;
    for n in 0..12 {
        let session = Session::new().user(&format!("walrus {n}")).assistant("noted");
        asking = asking.with_session(&format!("019a4f00-1234-7000-8000-{n:012}"), &session).await;
    }
    let asking = asking
        .with_session(
            "019b0000-aaaa-7000-8000-000000000000",
            &Session::new().user("beluga").assistant("noted"),
        )
        .await;
    let answer = asking.describe(json!({})).await;
    let (_, lines) = answer.split_once("with \"session\":\n").unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 11, "{answer}");
    assert!(lines[0].starts_with("- 019b0000 · ") && lines[0].ends_with(" · 2 messages: beluga"), "{answer}");
    assert!(
        lines[1].ends_with(" · 2 messages: walrus 11")
            && lines[10].starts_with("… 3 more; those of pi: lcm_grep {"),
        "{answer}"
    );
    let (_, how) = lines[10].split_once("lcm_grep ").unwrap();
    let listed = asking.grep(serde_json::from_str(how).unwrap()).await;
    assert_eq!(listed.matches("\nSession ").count(), 13, "without the current request: {listed}");
    let (name, _) = lines[1][2..].split_once(' ').unwrap();
    let found = asking.grep(json!({"query": "walrus", "session": name})).await;
    assert!(found.contains("«walrus» 11") && !found.contains("«walrus» 1\n"), "{found}");
}

#[tokio::test]
async fn a_summary_is_described_with_its_quotes() {
    let asking = Asking::about(&Session::new().user("Never touch main. Then write the tests.")).await;
    let quote = |kind, text: &str| Quote { kind, text: text.into() };
    let quotes =
        vec![quote(QuoteKind::Rule, "Never touch main."), quote(QuoteKind::Task, "Then write the tests.")];
    let id = asking.quoting(0..1, "Rules", quotes).await;
    let answer = asking.describe(json!({"section": "by_id", "summary_id": asking.name(id).await})).await;
    assert!(
        answer.contains(
            "\nRules and tasks, word for word, newest first:\n- task: \"Then write the tests.\"\n\
             - rule: \"Never touch main.\"\nIn full: "
        ),
        "{answer}"
    );
}

#[tokio::test]
async fn a_message_on_another_branch_is_described_with_its_location() {
    let session = Session::new()
        .user("root")
        .user("left")
        .at("e1")
        .user("edited")
        .entry("context_edit", json!({"targetId": "e3", "replacement": null}))
        .user("What now?");
    let asking = Asking::about(&session).await.with_session("two", &Session::new().user("beluga")).await;
    for (query, place) in [
        ("root", "message 1 of 2 on this branch · "),
        ("left", "on another branch · "),
        ("edited", "on this branch, changed or hidden by an edit · "),
        ("beluga", "in another session, two, 2025-11-20 09:12 UTC (beluga) · "),
    ] {
        let found = asking.grep(json!({"query": query, "session": "project"})).await;
        let (_, id) = found.split_once("m-").unwrap();
        let arguments = json!({"section": "by_id", "summary_id": format!("m-{}", &id[..10])});
        let answer = asking.describe(arguments).await;
        assert!(answer.lines().nth(1).unwrap().starts_with(place), "{query}: {answer}");
    }
}

#[tokio::test]
async fn both_ends_list_messages_and_the_nearest_leaves() {
    let (asking, [one, two, _, three]) = mapped().await;
    let recent = asking.describe(json!({"section": "recent"})).await;
    let ids = async |positions: std::ops::Range<usize>| {
        let mut ids = Vec::new();
        for position in positions {
            ids.push(asking.message(position).await);
        }
        ids
    };
    let shown = |answer: &str| -> Vec<String> {
        answer.lines().filter_map(|line| Some(line.strip_prefix("- ")?[..12].to_owned())).collect()
    };
    let asked = [asking.message(0).await, asking.message(2).await, asking.message(4).await].to_vec();
    let leaves = vec![one, two.clone(), three];
    assert_eq!(shown(&recent), [ids(5..20).await, asked, leaves.clone()].concat());
    assert!(recent.contains("\nWhat the user said before them:\n"), "{recent}");
    assert!(recent.starts_with("The newest 15 of 20 messages on this branch, oldest first:\n"));
    assert!(recent.lines().nth(1).unwrap().contains(&format!(" · in {two}: answer 4 word")), "{recent}");
    let earliest = asking.describe(json!({"section": "earliest"})).await;
    let asked = [asking.message(16).await, asking.message(18).await].to_vec();
    assert_eq!(shown(&earliest), [ids(0..15).await, asked, leaves].concat());
}

#[tokio::test]
async fn a_summary_is_described_with_its_sources_and_parents() {
    let (asking, [one, two, top, _]) = mapped().await;
    let span = "2025-11-20 09:12–2026-11-20 09:00 UTC";
    assert_eq!(
        asking.describe(json!({"section": "by_id", "summary_id": top})).await,
        format!(
            "{top} · D1 · {span} · 8 messages: The beginning\nmade by scripted/model · 2025-11-21 04:40 UTC · 5 tokens\n\
             Condensed into, nearest first: none\n\
             Made from, in order:\n- {one} · D0 · {span} · 4 messages: First steps\n\
             - {two} · D0 · {span} · 4 messages · degraded: Extract of more\n\
             In full: lcm_expand {{\"summary_id\":\"{top}\"}}"
        )
    );
    let leaf = asking.describe(json!({"section": "by_id", "summary_id": two})).await;
    assert!(leaf.contains("made without a model · 2025-11-21 04:40 UTC · "), "{leaf}");
    assert!(leaf.contains(&format!("Condensed into, nearest first:\n- {top} · ")), "{leaf}");
    assert!(
        leaf.contains(&format!("Made from, in order:\n- {} · user · ", asking.message(4).await)),
        "{leaf}"
    );
}

#[tokio::test]
async fn a_message_is_described_with_its_position_summaries_and_files() {
    let session = Session::new().user("go").tool("read", json!({"path": "src/a.rs"}), "x").tool(
        "edit",
        json!({"path": "src/b.rs", "edits": []}),
        "ok",
    );
    let asking = Asking::about(&session).await;
    let leaf = asking.leaf(0..5, "All of it").await;
    let top = asking.condensed(1, &[leaf], "More than all").await;
    let (leaf, top, id) = (asking.name(leaf).await, asking.name(top).await, asking.message(3).await);
    let answer = asking.describe(json!({"section": "by_id", "summary_id": id})).await;
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(
        lines[0],
        format!("{id} · assistant · 2026-11-20 09:00 UTC: edit {{\"path\":\"src/b.rs\",\"edits\":[]}}")
    );
    assert!(lines[1].starts_with("message 4 of 5 on this branch · "), "{answer}");
    assert_eq!(lines[2], "Covered by, from the leaf summary up:");
    assert!(
        lines[3].starts_with(&format!("- {leaf} · D0 · "))
            && lines[4].starts_with(&format!("- {top} · D1 · "))
    );
    assert_eq!(lines[5], "Files changed: src/b.rs. Files only read: none.");
    let answer = asking.describe(json!({"section": "by_id", "summary_id": top})).await;
    assert!(answer.contains("Files changed: src/b.rs. Files only read: src/a.rs."), "{answer}");
}

#[tokio::test]
async fn a_summary_of_another_session_says_of_which() {
    let asking = Asking::about(&Session::new().chat(3, 3)).await;
    let id = asking.leaf(0..6, "The first way").await;
    let id = asking.name(id).await;
    assert!(asking.command(&format!("show {id}")).await.contains(" tokens, part of this branch\n"));
    let own = asking.store.store.read(|view| view.messages().session_id(ConversationId(1))).await.unwrap();
    let asking = asking.with_session("other", &Session::new().user("now?")).await;
    let asking = Asking { scope: Scope::at(ConversationId(2), Some("e1".into())), ..asking };
    let answer = asking.describe(json!({"summary_id": id})).await;
    assert!(answer.contains(&format!("\nIt is in another session, {own}")), "{answer}");
    let shown = asking.command(&format!("show {id}")).await;
    assert!(shown.contains(&format!(" tokens, in session {own}")), "{shown}");
}

#[tokio::test]
async fn a_summary_of_another_branch_says_that_it_covers_nothing_here() {
    let session = Session::new().chat(3, 3).at("e2").user("another way");
    let asking = Asking::about(&session).await;
    let other = Asking { scope: asking.from("e6"), ..asking };
    let id = other.leaf(0..6, "The first way").await;
    let id = other.name(id).await;
    let asking = Asking { scope: other.from(session.leaf()), ..other };
    let answer = asking.describe(json!({"summary_id": id})).await;
    assert!(answer.contains("\nIt covers nothing on this branch.\n"), "{answer}");
    let found = asking.grep(json!({"query": "first way", "scope": "summaries"})).await;
    assert!(found.contains(" · of another branch, or superseded: The «first way»"), "{found}");
}

#[tokio::test]
async fn a_summary_within_a_longer_one_is_replaced() {
    let asking = Asking::about(&Session::new().chat(3, 3)).await;
    let id = asking.leaf(0..4, "The first way").await;
    let id = asking.name(id).await;
    assert!(asking.command(&format!("show {id}")).await.contains(" tokens, part of this branch\n"));
    asking.leaf(0..6, "The whole way").await;
    let shown = asking.command(&format!("show {id}")).await;
    let says = " tokens, part of this branch, replaced by a longer summary from the next fold on\n";
    assert!(shown.contains(says), "{shown}");
    let tree = asking.command("tree").await;
    assert!(tree.ends_with("\n1 more summary of other branches, or replaced by these"), "{tree}");
}

#[tokio::test]
async fn by_id_needs_an_id_and_an_empty_session_has_a_description() {
    let asking = Asking::about(&Session::new()).await;
    assert_eq!(
        asking.refusal("lcm_describe", json!({"section": "by_id"})).await,
        "section by_id needs a summary_id, e.g. {\"section\":\"by_id\",\"summary_id\":\"s-1a2b3c4d5e\"}"
    );
    assert_eq!(
        asking.describe(json!({})).await,
        "This session: 0 messages stored, 0 visible on this branch. No summaries yet.\n\
         This project: 0 messages, 0 sessions.\n\nThis branch, oldest first:\n"
    );
    assert_eq!(
        asking.describe(json!({"section": "recent"})).await,
        "The newest 0 of 0 messages on this branch, oldest first: none\nThe newest leaf summaries: none"
    );
    assert_eq!(
        asking.refusal("lcm_guess", json!({})).await,
        "there is no tool `lcm_guess`: there are lcm_grep, lcm_expand, lcm_describe"
    );
}

#[test]
fn schemas_are_plain() {
    fn check(value: &Value, at: &str) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let at = format!("{at}.{key}");
                    let known = ["type", "properties", "items", "required", "description", "enum"]
                        .contains(&key.as_str());
                    assert!(known || at.ends_with(&format!(".properties.{key}")), "{at}");
                    assert!(key != "type" || value.is_string() || value.is_object(), "{at}: {value}");
                    check(value, &at);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| assert!(item.is_string(), "{at}: {item}")),
            other => assert!(other.is_string(), "{at}: {other}"),
        }
    }
    for tool in tools::specs(true).as_array().unwrap() {
        check(&tool["parameters"], tool["name"].as_str().unwrap());
        assert_eq!(tool["parameters"]["type"], "object");
        for property in tool["parameters"]["properties"].as_object().unwrap().values() {
            assert!(property["type"].is_string(), "{property}");
        }
    }
}

#[test]
fn the_tools_keep_their_order_and_their_budget() {
    assert_eq!(tools::specs(false), tools::specs(false));
    let specs = tools::specs(false);
    assert_eq!(
        specs[0]["parameters"]["properties"]["mode"],
        json!({
            "description": "text (default): best first. regex: Rust syntax, newest first.",
            "type": "string",
            "enum": ["text", "regex"]
        })
    );
    assert_eq!(specs[0]["parameters"]["required"], json!(["query"]));
    assert_eq!(specs[1]["parameters"]["required"], json!(["summary_id"]));
    assert_eq!(specs[2]["parameters"].get("required"), None);
    // Without notes the tool list has no entry for them.
    let noting = tools::specs(true);
    assert_eq!(noting.as_array().unwrap()[..3], *specs.as_array().unwrap());
    assert_eq!(noting[3]["parameters"]["required"], json!(["changes"]));
    // What search leaves out the results of.
    let names: Vec<&str> =
        specs.as_array().unwrap().iter().filter_map(|spec| spec["name"].as_str()).collect();
    assert_eq!(names, lcm_model::RECALL_TOOLS);
    // What every request carries: o200k counts 897 tokens, at most 925. Our estimate is high.
    let sent = noting.as_array().unwrap().iter().map(|tool| {
        let wire = json!({"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]});
        lcm_model::tokens::estimate(&wire.to_string())
    });
    let sent: Vec<usize> = sent.collect();
    let all: usize = sent.iter().sum();
    assert!(all < 1_200, "the tools take {all} tokens of each request {sent:?}: shorten a description");
}
