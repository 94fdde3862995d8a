//! Bounds of a search: pages, pauses, cancellation, the size of an answer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asking::{Asking, work};
use super::support::Session;
use crate::tools;
use lcm_model::error::Code;
use lcm_recall::grep::{Mode, Question, grep};

#[tokio::test]
async fn pages_of_results_neither_repeat_nor_skip() {
    let asking = Asking::about(&Session::new().chat(30, 12)).await;
    for mode in ["text", "regex"] {
        let mut seen = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let answer =
                asking.grep(json!({"query": "answer", "mode": mode, "limit": "7", "cursor": cursor})).await;
            seen.extend(
                answer.lines().filter(|line| line.starts_with("m-")).map(|line| line[..12].to_owned()),
            );
            let Some((_, next)) = answer.split_once("\"cursor\":\"") else { break };
            cursor = next.split('"').next().unwrap().into();
        }
        let found = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((found, seen.len()), (30, 30), "{mode}");
    }
}

#[tokio::test]
async fn a_cancelled_search_stops() {
    let asking = Asking::about(&work()).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    for mode in ["text", "regex"] {
        let arguments = json!({"query": "port", "mode": mode}).to_string();
        let answer =
            tools::call(&asking.store.store, &asking.scope, "lcm_grep", &arguments, None, &cancel).await;
        assert_eq!(answer.unwrap_err().code(), Code::Cancelled);
    }
}

/// What a regular expression finds in as many answers as it takes with `patience`, and how many stopped early.
async fn in_many_answers(session: Session, query: &str, patience: Duration) -> (Vec<String>, usize) {
    let asking = Asking::about(&session.user("tail")).await;
    let mut question =
        Question { query: query.into(), mode: Mode::Regex, limit: 20, patience, ..Question::default() };
    let (mut found, mut stopped) = (Vec::new(), 0);
    loop {
        let (scope, mut asked) = (asking.scope.clone(), question.clone());
        let findings = asking
            .store
            .store
            .read(move |view| grep(view, &scope, &mut asked, &CancellationToken::new()))
            .await
            .unwrap();
        found.extend(findings.hits.iter().map(|hit| hit.snippet.text.clone()));
        let Some(next) = findings.next else { return (found, stopped) };
        assert!(findings.stopped_at.is_some());
        stopped += 1;
        question.cursor = Some(next.cursor);
    }
}

#[tokio::test]
async fn a_slow_regular_expression_stops_and_can_be_continued() {
    let session = (0..40).fold(Session::new(), |session, n| session.user(&format!("needle {n}")));
    let (found, stopped) = in_many_answers(session, "^needle \\d+$", Duration::ZERO).await;
    let expected: Vec<String> = (0..40).rev().map(|n| format!("needle {n}")).collect();
    assert_eq!(found, expected);
    assert!(stopped > 20, "{stopped}");
}

/// Messages are read ahead in no time; an expression with many states takes long for each.
/// This session may have what the time did not suffice to read.
#[tokio::test]
async fn a_search_that_stops_early_is_not_done_in_the_project() {
    let other = Session::new().user("a beluga");
    let asking = Asking::about(&Session::new().chat(100, 5)).await.with_session("two", &other).await;
    for (patience, is_widened) in [(Duration::ZERO, false), (Duration::MAX, true)] {
        let mut question =
            Question { query: "bel.ga".into(), mode: Mode::Regex, patience, ..Question::default() };
        let scope = asking.scope.clone();
        let read = asking.store.store.read(move |view| {
            let results = grep(view, &scope, &mut question, &CancellationToken::new())?;
            Ok((results.hits.len(), results.stopped_at.is_none(), question.is_widened))
        });
        assert_eq!(read.await.unwrap(), (usize::from(is_widened), is_widened, is_widened));
    }
}

#[tokio::test]
async fn a_search_stops_even_if_everything_is_read() {
    let mut dice = 7_u32;
    let mut letter = || {
        dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        ["a", "b", " "][(dice >> 16) as usize % 3]
    };
    let session = (0..12).fold(Session::new(), |session, n| {
        let text: String = (0..8_000).map(|_| letter()).collect();
        session.user(&format!("{text}é{n}"))
    });
    let patience = Duration::from_millis(50);
    let (found, stopped) = in_many_answers(session, "a.{900}[xyz]|é\\d+$", patience).await;
    let found: Vec<&str> = found.iter().map(|text| text.rsplit('é').next().unwrap()).collect();
    assert_eq!(found, ["11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0"]);
    assert!(stopped > 1, "{stopped}");
}

#[tokio::test]
async fn an_answer_is_bounded_and_its_cursor_leads_to_every_result() {
    let said = |n: usize| format!("many words about walrus {n} and what it did today ").repeat(60);
    let session = (0..60).fold(Session::new(), |session, n| session.user(&said(n)).assistant(&said(100 + n)));
    let asking = Asking::about(&session).await;
    let all = async |mut arguments: Value| {
        let (mut found, mut pages) = (std::collections::BTreeSet::new(), 0);
        loop {
            let answer = asking.grep(arguments.clone()).await;
            assert!(answer.len() <= 32_000, "{} bytes", answer.len());
            found.extend(
                answer.lines().filter(|line| line.starts_with("m-")).map(|line| line[..12].to_owned()),
            );
            pages += 1;
            let Some((_, rest)) = answer.split_once("\"cursor\":\"") else { return (found, pages) };
            arguments["cursor"] = rest.split('"').next().unwrap().into();
        }
    };
    let (found, pages) = all(json!({"query": "walrus", "limit": 100, "context": 5, "full": true})).await;
    assert!(pages > 2, "{pages} pages");
    assert_eq!(found, all(json!({"query": "walrus", "limit": 5})).await.0);
}
