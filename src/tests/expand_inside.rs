//! Matching lines inside a message or a summary.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asking::Asking;
use super::support::Session;
use crate::tools;
use lcm_model::error::Code;
use lcm_model::tokens;

/// A log with a line that says `needle` after each `every` lines.
fn log(lines: usize, every: usize) -> String {
    let line = |n: usize| match n % every {
        0 => format!("{n} ERROR the needle broke\n"),
        _ => format!("{n} hay and straw\n"),
    };
    (1..=lines).map(line).collect()
}

/// The numbers of the matching lines, in order.
fn numbers(answer: &str) -> Vec<usize> {
    answer.lines().filter_map(|line| line.split_once(": ")?.0.parse().ok()).collect()
}

fn next(answer: &str) -> Option<Value> {
    let (_, rest) = answer.split_once(" left: lcm_expand ")?;
    serde_json::from_str(rest.lines().next().unwrap()).ok()
}

#[tokio::test]
async fn matching_lines_come_with_their_numbers_and_neighbors() {
    let asking = Asking::about(&Session::new().tool("bash", json!({"command": "x"}), &log(1_000, 400))).await;
    let id = asking.message(1).await;
    let answer = asking.expand(json!({"summary_id": id, "query": "needle broken"})).await;
    assert_eq!(
        answer,
        format!(
            "{id} · toolResult bash · 2026-11-20 09:00 UTC · 1,000 lines:\n\
             399- 399 hay and straw\n400: 400 ERROR the «needle» broke\n401- 401 hay and straw\n\
             799- 799 hay and straw\n800: 800 ERROR the «needle» broke\n801- 801 hay and straw\n\
             2 of 2 lines of {id} that best match `needle broken`.\n\
             More of one: lcm_expand {{\"summary_id\":\"{id}\",\"lines\":\"380-420\"}}"
        )
    );
    let lines = asking.expand(json!({"summary_id": id, "lines": "380-420"})).await;
    assert!(lines.contains("\n400 ERROR the needle broke\n"), "{lines}");
}

#[tokio::test]
async fn every_matching_line_is_reached_within_the_budget() {
    let asking = Asking::about(&Session::new().tool("bash", json!({"command": "x"}), &log(2_000, 20))).await;
    let mut arguments = json!({"summary_id": asking.message(1).await, "query": "needle", "max_tokens": 400});
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let answer = asking.expand(arguments).await;
        assert!(tokens::estimate(&answer) <= 400, "{}", tokens::estimate(&answer));
        assert!(answer.contains(" of 100 lines of "), "{answer}");
        found.extend(numbers(&answer));
        pages += 1;
        match next(&answer) {
            Some(next) => arguments = next,
            None => break,
        }
    }
    assert_eq!((found, pages > 5), ((1..=100).map(|n| n * 20).collect::<Vec<_>>(), true));
}

#[tokio::test]
async fn inside_a_summary_the_best_lines_of_its_messages_come_first() {
    let session = Session::new()
        .user("Why SQLite?\nThe store should be one file.")
        .assistant("Decided: SQLite, because one file is easy to copy.")
        .tool("bash", json!({"command": "ls"}), "store.db\nnotes.txt")
        .user("SQLite elsewhere");
    let asking = Asking::about(&session).await;
    let leaves =
        [asking.leaf(0..2, "# Storage\nSQLite was chosen.").await, asking.leaf(2..4, "Files\nlisted").await];
    let top = asking.condensed(1, &leaves, "Everything").await;
    let (top, first) = (asking.name(top).await, asking.name(leaves[0]).await);
    let ids = [asking.message(0).await, asking.message(1).await];
    let answer = asking.expand(json!({"summary_id": top, "query": "why decided SQLite file"})).await;
    let shown: Vec<&str> =
        answer.lines().filter(|line| line.ends_with(" line:") || line.ends_with(" lines:")).collect();
    assert_eq!(shown.iter().map(|line| &line[..12]).collect::<Vec<_>>(), [&first, &ids[0], &ids[1]]);
    assert!(answer.contains("1: «Decided: SQLite», because one «file» is easy to copy.\n"), "{answer}");
    assert!(!answer.contains("elsewhere"), "other messages are left out: {answer}");
    assert!(
        answer.contains(&format!(
            " of {top} and 4 messages under it that best match `why decided SQLite file`."
        ))
    );
    let one = asking
        .expand(json!({"summary_id": top, "query": "why decided SQLite file", "max_tokens": 200}))
        .await;
    assert!(one.contains("«Decided: SQLite»") && next(&one).is_some(), "{one}");
}

#[tokio::test]
async fn a_cancelled_search_inside_stops() {
    let asking = Asking::about(&Session::new().user("one").assistant("two")).await;
    let id = asking.message(0).await;
    let cancel = CancellationToken::new();
    let arguments = json!({"summary_id": id, "query": "one"}).to_string();
    let ask = async || {
        tools::call(&asking.store.store, &asking.scope, "lcm_expand", &arguments, None, &cancel).await
    };
    assert!(ask().await.is_ok());
    cancel.cancel();
    assert_eq!(ask().await.unwrap_err().code(), Code::Cancelled);
}

#[tokio::test]
async fn a_search_inside_without_a_match_says_so_and_symbols_match_literally() {
    let asking = Asking::about(&Session::new().user("let f = |x| x => y;\nnot this").assistant("ok")).await;
    let leaf = asking.leaf(0..2, "Code").await;
    let (leaf, id) = (asking.name(leaf).await, asking.message(0).await);
    assert_eq!(
        asking.expand(json!({"summary_id": leaf, "query": "walrus"})).await,
        format!(
            "No line of {leaf} and 2 messages under it has a word of `walrus`. lcm_grep searches the whole history."
        )
    );
    assert_eq!(numbers(&asking.expand(json!({"summary_id": id, "query": "=>"})).await), [1]);
    // As if it were left out.
    let whole = asking.expand(json!({"summary_id": id})).await;
    assert_eq!(asking.expand(json!({"summary_id": id, "query": " "})).await, whole);
}

#[tokio::test]
async fn conflicting_arguments_name_the_one_to_leave_out() {
    let asking = Asking::about(&Session::new().user("one").assistant("two")).await;
    let leaf = asking.leaf(0..2, "Both").await;
    let (leaf, id) = (asking.name(leaf).await, asking.message(0).await);
    for (arguments, sentence) in [
        (
            json!({"summary_id": id, "around": 2, "query": "one"}),
            "around and query exclude each other: remove one of them".to_owned(),
        ),
        (
            json!({"summary_id": id, "lines": "1-2", "query": "one"}),
            "query and lines exclude each other: remove one of them".to_owned(),
        ),
        (
            json!({"summary_id": id, "around": 2, "lines": "1"}),
            "around and lines exclude each other: remove one of them".to_owned(),
        ),
        (
            json!({"summary_id": id, "query": "one", "raw": true}),
            "raw and query exclude each other: JSON has one line, remove one of them".to_owned(),
        ),
        (
            json!({"summary_id": id, "around": 1, "cursor": "2"}),
            "around comes in one page: use either it or the cursor".to_owned(),
        ),
        (
            json!({"summary_id": leaf, "lines": "1-2"}),
            format!(
                "lines are of a message and {leaf} is a summary: look inside it with query, or take the id of one of its messages"
            ),
        ),
        (
            json!({"summary_id": leaf, "around": 1}),
            format!(
                "around is of a message and {leaf} is a summary: leave it out to see the messages of {leaf}, and take the id \
                 of one"
            ),
        ),
        (
            json!({"summary_id": leaf, "query": "one", "cursor": "q7"}),
            format!("the cursor `q7` belongs to no page of {leaf}: leave it out to start at the beginning"),
        ),
        (
            json!({"summary_id": id, "query": "one", "cursor": "1"}),
            format!("the cursor `1` belongs to no page of {id}: leave it out to start at the beginning"),
        ),
    ] {
        assert_eq!(asking.refusal("lcm_expand", arguments.clone()).await, sentence, "{arguments}");
    }
}
