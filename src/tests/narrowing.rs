//! Narrowing never skips a matching message: compares it with a scan of all texts.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::Runtime;

use super::asking::Asking;
use super::extent::cases;
use super::support::Session;
use crate::model::searchable;
use crate::recall::grep::narrowed;

/// Words with endings that stemming cuts, letters that the index folds, digits, underscores, ideographs.
const TEXT: &str = "([ -~\n]|[a-z]{1,6}(ational|ization|iveness|ability|bly|ment|ing|ting|ed|ies|es|s|y|er|ion)?|[A-Z][a-z]{2,5}[A-Z][a-z]{2,4}|[a-z]{2,4}_[a-z]{2,4}|[0-9a-f]{4,9}|[éÉñßK\u{212a}ſç\u{301}ǅ²½]|[日本構築失敗가나東]{1,4}|かがキ|\u{3099}|・|…){0,40}";

/// Parts of the texts, whole words or not, some in another case.
fn literals(texts: &[String], dice: &[(usize, usize, bool)]) -> Vec<(String, bool)> {
    let all: Vec<char> = texts.join("\n").chars().collect();
    let piece = |(at, length, any_case): &(usize, usize, bool)| {
        let from = at % all.len().max(1);
        // Some contain several words.
        let length = 3 + length % if length % 2 == 0 { 14 } else { 40 };
        let text: String = all[from..(from + length).min(all.len())].iter().collect();
        (text, *any_case)
    };
    dice.iter().map(piece).filter(|(text, _)| !text.is_empty()).collect()
}

proptest! {
    #![proptest_config(cases(40))]
    #[test]
    fn narrowing_never_skips_a_match(
        texts in proptest::collection::vec(TEXT, 1..8),
        long in TEXT,
        dice in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<bool>()), 24),
        by_all in any::<bool>(),
    ) {
        // A line of a thousand characters is cut within words.
        let mut line = long.replace('\n', " ");
        while !line.is_empty() && line.len() < 1_200 {
            let _ = write!(line, "{}", long.replace('\n', "x"));
            line.push('w');
        }
        let texts: Vec<String> = texts.into_iter().chain([line]).collect();
        let session = texts.iter().fold(Session::new(), |session, text| session.user(text));
        Runtime::new().unwrap().block_on(async {
            let asking = Asking::about(&session).await;
            for (literal, any_case) in literals(&texts, &dice) {
                let pattern = format!("{}{}", if any_case { "(?i)" } else { "" }, regex::escape(&literal));
                let regex = regex::Regex::new(&pattern).unwrap();
                let (lost, narrowed) = asking.store.store.read(move |view| {
                    let narrowed = narrowed(view, &pattern, by_all)?;
                    let mut lost = Vec::new();
                    let (turn, all) = (crate::store::Turn::NewestFirst, crate::store::Filter::default());
                    view.messages().messages_in_turn(turn, None, &all, |packed| {
                        let (id, text) = (packed.id, searchable(&packed.unpack()?));
                        let is_left = narrowed.as_ref().is_none_or(|left| left.contains(&id));
                        if regex.is_match(&text) && !is_left {
                            lost.push(text);
                        }
                        Ok(true)
                    })?;
                    Ok((lost, narrowed.is_some()))
                }).await.unwrap();
                assert!(lost.is_empty(), "{literal:?} (narrowed: {narrowed}) is in {lost:?}");
            }
        });
    }
}

#[tokio::test]
async fn a_rare_literal_leaves_few_candidates() {
    let mut session = Session::new();
    for n in 0..60 {
        session = session.user(&format!("Message {n} tells of the compactions and of handle{n}."));
    }
    let session = session.user("It ended with EADDRINUSE, then with getUserNames(), then 构建失败了.");
    let session = session.user(&format!("{} brokenWord {}", "x ".repeat(240), "y ".repeat(300)));
    let asking = Asking::about(&session).await;
    for (pattern, most) in [
        ("EADDRINUSE", 2),
        ("rNa", 2),
        ("(?i)addrinuse", 2),
        ("UserName", 2),
        ("构建失", 2),
        ("handle7\\b", 3),
        ("nothing like this|zqxv", 1),
        ("compaction", 61),
    ] {
        let narrowed = asking.store.store.read(move |view| narrowed(view, pattern, false)).await.unwrap();
        let narrowed = narrowed.unwrap_or_else(|| panic!("{pattern} is not narrowed"));
        assert!(!narrowed.is_empty() && narrowed.len() <= most, "{pattern}: {}", narrowed.len());
        assert!(narrowed.is_sorted_by(|one, other| one > other), "{pattern}");
    }
    for pattern in ["\\w+", "ation", "x?", "he"] {
        let narrowed = asking.store.store.read(move |view| narrowed(view, pattern, false)).await.unwrap();
        assert!(narrowed.is_none(), "{pattern}");
    }
}

#[tokio::test]
async fn common_words_leave_few_candidates_if_they_are_rarely_adjacent() {
    let mut session = Session::new();
    for n in 0..60 {
        let order = ["older_parser of tokenizers, names", "names of tokenizers: parser_older"][n % 2];
        session = session.user(&format!("Message {n} tells of the {order}, and of a re_parser_tokenizers."));
    }
    let session = session.user("Here is a parser_tokenizers_of_names, and the reparser_tokenized.");
    let asking = Asking::about(&session).await;
    for (pattern, left) in [
        ("older_parse", 30),
        ("parser_token", 61),
        ("eparser_token", 1),
        (" parser_tokenizers_of_name", 1),
        ("parser_tokenizers_of_name", 1),
        ("tokenizers, names", 30),
        (r"\(tokenizers, names\)", 30),
        ("tokenizers of names", 1),
        ("names_of_older", 0),
        ("(?i)OLDER_PARSER|EPARSER_TOKEN", 31),
    ] {
        let narrowed = asking.store.store.read(move |view| narrowed(view, pattern, true)).await.unwrap();
        let narrowed = narrowed.unwrap_or_else(|| panic!("{pattern} is not narrowed"));
        assert_eq!(narrowed.len(), left, "{pattern}");
    }
}

#[tokio::test]
async fn a_pattern_finds_old_messages_newest_first() {
    let mut session = Session::new();
    for n in 0..1_400 {
        let rare = if n % 500 == 3 { "EADDRINUSE" } else { "nothing" };
        session = session.user(&format!("Message {n} of many says {rare}, in line {}.", n % 7));
    }
    let asking = Asking::about(&session.user("Go on.")).await;
    for pattern in ["EADDRINUSE", "E[A]DDRINUSE|zqxv", "says [^n]\\w+,"] {
        let answer = asking.grep(json!({"query": pattern, "mode": "regex"})).await;
        let found: Vec<&str> = answer.lines().filter(|line| line.starts_with("m-")).collect();
        assert_eq!(found.len(), 3, "{pattern}: {answer}");
        for (line, n) in found.iter().zip([1_003, 503, 3]) {
            assert!(line.contains(&format!("Message {n} of")), "{pattern}: {answer}");
        }
    }
    let mut cursor = None;
    let mut numbers = Vec::new();
    loop {
        let asked = json!({"query": "in line 5", "mode": "regex", "limit": 90, "cursor": cursor});
        let answer = asking.grep(asked).await;
        let number = |line: &str| line.split_once("Message ")?.1.split(' ').next()?.parse::<usize>().ok();
        numbers.extend(answer.lines().filter_map(number));
        let next =
            answer.split_once("\"cursor\":\"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<usize> = (0..1_400).rev().filter(|n| n % 7 == 5).collect();
    assert_eq!(numbers, expected);
}
