//! Which of several matches a reader wants first.

use serde_json::{Value, json};

use super::asking::Asking;
use super::support::Session;

/// The results of these roles, in order.
fn results(answer: &str, role: &str) -> Vec<String> {
    let is_one = |line: &&str| line.starts_with("m-") && line.contains(&format!("· {role}"));
    answer.lines().filter(is_one).map(|line| line.replace(['«', '»'], "")).collect()
}

/// A test run.
fn run(session: Session, output: &str) -> Session {
    let call =
        json!([{"type": "toolCall", "id": output, "name": "bash", "arguments": {"command": "make -s"}}]);
    session.message(json!({"role": "assistant", "content": call, "stopReason": "toolUse"})).message(json!({
        "role": "toolResult", "toolCallId": output, "toolName": "bash",
        "content": [{"type": "text", "text": output}], "isError": false
    }))
}

async fn found(session: Session, query: Value) -> String {
    Asking::about(&session.user("Go on.")).await.grep(json!({"query": query})).await
}

#[tokio::test]
async fn a_file_read_again_is_one_result_the_newest() {
    let read = |session: Session| {
        session.tool("read", json!({"path": "a.rs"}), "fn heron_nest() -> Egg { Egg::blue() }").user("Next.")
    };
    let session = read(read(read(Session::new().user("Look at it."))));
    let asking = Asking::about(&session).await;
    let answer = asking.grep(json!({"query": "heron_nest Egg"})).await;
    let reads = results(&answer, "toolResult");
    assert_eq!(reads.len(), 1, "{answer}");
    assert!(reads[0].contains(&asking.message(8).await), "the newest: {answer}");
    for position in [2, 5] {
        let also = asking.message(position).await;
        assert!(
            reads[0].split_once("(also in ").is_some_and(|(_, also_in)| also_in.contains(&also)),
            "{answer}"
        );
    }
    let answer = asking.grep(json!({"query": "heron_nest Egg", "tool": "read", "sort": "oldest"})).await;
    let oldest = asking.message(2).await;
    assert!(results(&answer, "toolResult")[0].starts_with(&oldest), "the oldest: {answer}");
}

#[tokio::test]
async fn words_said_again_are_one_result_the_best_and_other_numbers_are_another() {
    let said = Session::new().user("The heron nests at the mill.").assistant("Yes.");
    let answer = found(said.user("The heron nests at the mill."), json!("heron mill")).await;
    assert!(answer.matches("The «heron»").count() == 1 && answer.contains("(also in m-"), "{answer}");
    let runs = run(run(Session::new().user("Test."), "heron: 3 of 4"), "heron: 4 of 4");
    let answer = found(runs, json!("heron")).await;
    assert_eq!(results(&answer, "toolResult").len(), 2, "{answer}");
}

#[tokio::test]
async fn a_decision_comes_before_those_who_repeat_it() {
    let session = Session::new()
        .assistant("Let's go with the heron parser because it is small and quick.")
        .user("Fine.")
        .assistant("The heron parser is here now and it is small and quick.");
    let answer = found(session, json!("what was decided about the heron parser")).await;
    assert!(results(&answer, "assistant")[0].contains("Let's go"), "{answer}");
}

#[tokio::test]
async fn advice_begins_with_the_rule_or_preference_about_it() {
    for (standing, comes_first) in [
        ("Always list the eggs when I ask about a nest.", true),
        ("I'd prefer round nests, can you draw one of them?", true),
        ("Yesterday I saw a big nest near a pond.", false),
    ] {
        let session = Session::new()
            .user(standing)
            .assistant("Noted.")
            .user("Today the nest is dry.")
            .assistant("Nice.");
        let asking = Asking::about(&session.user("Go on.")).await;
        let answer = asking.grep(json!({"query": "how should I build a nest"})).await;
        let first = results(&answer, "user")[0].contains(standing.split_at(20).0);
        assert_eq!(first, comes_first, "{standing}: {answer}");
        let answer = asking.grep(json!({"query": "when did I build a nest"})).await;
        assert!(results(&answer, "user")[0].contains("Today"), "not advice: {answer}");
    }
}

#[tokio::test]
async fn the_words_of_the_one_who_is_asked_for_come_before_those_of_the_other() {
    for (query, role) in [
        ("how large is my heron budget", "user"),
        ("when did I set the heron budget", "user"),
        ("what heron budget did you want for my pond", "assistant"),
        ("the heron budget you suggested", "assistant"),
    ] {
        // The message between the two others is the best one unless the query asks for their role.
        let session = match role {
            "user" => Session::new()
                .user("The heron budget is 5 eggs.")
                .assistant("The heron budget is 7 eggs.")
                .user("The heron budget is 9 eggs."),
            _ => Session::new()
                .assistant("The heron budget is 5 eggs.")
                .user("The heron budget is 7 eggs.")
                .assistant("The heron budget is 9 eggs."),
        };
        let first = |answer: &str| answer.lines().find(|line| line.starts_with("m-")).map(str::to_owned);
        let answer = found(session.assistant("Well."), json!(query)).await;
        assert!(first(&answer).is_some_and(|line| line.contains(&format!("· {role}"))), "{query}: {answer}");
    }
}
