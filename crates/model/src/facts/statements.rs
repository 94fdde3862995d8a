//! Rules, tasks and decisions, found by their words.
//!
//! Most of these words imply a rule only at the start of a clause: `never push` is an order, `it never
//! answers` is a story. So sentences are split into clauses, whose beginnings are matched; a few phrases
//! count anywhere.

use super::folding::{clauses, folded};
use super::sentences::{Sentence, SentencePlace, pieces};
use super::words::{
    ABOUT_WORK, BECAUSE, CHOICES, CHOSEN, CHOSEN_BY_USER, CLOSED, DECIDED, DESCRIBED, HEADINGS, NOT_SAID,
    NOT_TASKS, ORDERS, PERSISTENT, REASONS, REPORTED, REQUESTS, REVOKED, STORIES, TASK_HEADINGS, TASKS,
    TASKS_ANYWHERE, WEAK_ORDERS, asks,
};
use crate::Pattern;

/// The shortest and the longest quote in characters; those of scripts that write a word with one or two count
/// double.
const LENGTH: (usize, usize) = (8, LONGEST);
/// The longest quote in characters.
pub(super) const LONGEST: usize = 400;

/// The sentences of `text` that state a lasting rule, or revoke one.
pub fn rules(text: &str) -> Vec<&str> {
    found(text, Some(&HEADINGS), |folded, _| is_rule(folded))
}

/// The sentences of `text` that mention something to be done later.
pub fn tasks(text: &str) -> Vec<&str> {
    found(text, Some(&TASK_HEADINGS), |folded, place| place == SentencePlace::OpenBox || is_task(folded))
}

/// The sentences of `text` that state a decision with its reason, or a choice among alternatives.
pub fn decisions(text: &str) -> Vec<&str> {
    found(text, None, |folded, _| is_decision(folded))
}

/// The same in a message of the user: what the user says will be used, needs no reason.
pub fn decisions_of_user(text: &str) -> Vec<&str> {
    found(text, None, |folded, _| is_decision(folded) || CHOSEN_BY_USER.is_in(folded) && !asks(folded))
}

/// What a heading, such as `Rules:`, implies for the sentences below it.
#[derive(PartialEq, Eq)]
enum Below {
    Nothing,
    /// The next sentence shows whether a list or plain lines follow.
    Anything,
    Items,
    Lines,
}

/// The sentences for which `is_one` is true, and those in a list below one of `headings`.
fn found<'t>(
    text: &'t str,
    headings: Option<&Pattern>,
    is_one: impl Fn(&str, SentencePlace) -> bool,
) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut below = Below::Nothing;
    for Sentence { text, place } in pieces(text) {
        let item = matches!(place, SentencePlace::Item | SentencePlace::OpenBox);
        below = match below {
            Below::Anything if item => Below::Items,
            Below::Anything if place != SentencePlace::Paragraph => Below::Lines,
            Below::Items if item || place == SentencePlace::InItem => Below::Items,
            Below::Lines if place == SentencePlace::Text => Below::Lines,
            _ => Below::Nothing,
        };
        if text.len() > 4 * LENGTH.1 {
            continue;
        }
        let folded = folded(text);
        let listed = below == Below::Lines || below == Below::Items && item;
        let is_heading = text.ends_with([':', '：']);
        let is_one = listed || is_one(&folded, place);
        if is_heading && !listed && (is_one || headings.is_some_and(|headings| headings.is_in(&folded))) {
            below = Below::Anything;
        }
        if is_one && fits(text) {
            found.push(text);
        }
    }
    found
}

/// Whether a text's length is permitted.
fn fits(text: &str) -> bool {
    let characters: usize = text.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum();
    (LENGTH.0..=LENGTH.1).contains(&characters)
}

fn is_rule(folded: &str) -> bool {
    if NOT_SAID.is_in(folded) {
        return false;
    }
    let folded = said(folded);
    if asks(folded) {
        return clauses(folded).any(|clause| REQUESTS.is_in(clause));
    }
    // In scripts without spaces, words are matched anywhere.
    let anywhere = PERSISTENT.is_in(folded) || REVOKED.is_in(folded);
    if anywhere && !STORIES.is_in(folded) {
        return true;
    }
    let described = DESCRIBED.is_in(folded) && !ABOUT_WORK.is_in(folded);
    let is_order =
        |clause| ORDERS.iter().any(|(orders, others)| orders.is_in(clause) && !others.is_in(clause));
    clauses(folded).any(|clause| is_order(clause) && !(described && WEAK_ORDERS.is_in(clause)))
}

fn is_task(folded: &str) -> bool {
    let folded = said(folded);
    !folded.ends_with("? ")
        && !CLOSED.is_in(folded)
        && (TASKS_ANYWHERE.is_in(folded)
            || clauses(folded).any(|clause| TASKS.is_in(clause) && !NOT_TASKS.is_in(clause)))
}

fn is_decision(folded: &str) -> bool {
    !asks(folded)
        && (DECIDED.is_in(folded)
            || CHOICES.is_in(folded) && REASONS.is_in(folded)
            || CHOSEN.is_in(folded) && BECAUSE.is_in(folded))
}

/// A sentence up to where it reports someone else's words.
fn said(folded: &str) -> &str {
    &folded[..REPORTED.found(folded).next().map_or(folded.len(), |found| found.start())]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The numbers of wanted sentences, wanted ones found, returned ones, and correct ones.
    fn figures(labelled: &str) -> [usize; 4] {
        let bare = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").trim_end_matches(['.', '!', '。']).to_lowercase()
        };
        let [mut sought, mut found, mut given, mut right] = [0; 4];
        for line in labelled.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let wanted: Vec<String> = message["rules"]
                .as_array()
                .unwrap()
                .iter()
                .map(|rule| bare(rule.as_str().unwrap()))
                .collect();
            let got: Vec<String> = rules(message["text"].as_str().unwrap()).into_iter().map(bare).collect();
            let are_same = |one: &String, other: &String| one.contains(other) || other.contains(one);
            sought += wanted.len();
            found += wanted.iter().filter(|one| got.iter().any(|other| are_same(one, other))).count();
            given += got.len();
            right += got.iter().filter(|one| wanted.iter().any(|other| are_same(one, other))).count();
        }
        [sought, found, given, right]
    }

    /// The word lists were made with the first set at hand, and later with the second, whose messages are
    /// about work other than programming. Do not look at the third when changing them.
    #[test]
    fn most_rules_in_eight_languages_are_found_with_few_errors() {
        let sets = [
            (include_str!("labelled/seen.jsonl"), [95, 88]),
            (include_str!("labelled/elsewhere.jsonl"), [95, 97]),
            (include_str!("labelled/unseen.jsonl"), [95, 88]),
        ];
        for (labelled, [recall, precision]) in sets {
            let [sought, found, given, right] = figures(labelled);
            assert!(labelled.lines().count() > 180 && sought > 100, "{sought}");
            assert!(100 * found >= recall * sought, "recall: {found} of {sought}");
            assert!(100 * right >= precision * given, "precision: {right} of {given}");
        }
    }

    #[test]
    fn never_and_always_begin_a_rule_whatever_it_is_about() {
        for said in [
            "Never write the password into the logs of the mailer.",
            "Never delete users from the database.",
            "Always validate requests before you handle them.",
        ] {
            assert_eq!(rules(&format!("The form is too slow. {said}")), [said]);
        }
        assert_eq!(rules("Add a form. It should only show users that are active."), [""; 0]);
    }

    #[test]
    fn a_colon_within_a_word_ends_nothing() {
        for said in ["Use node:test, not jest.", "Use npm:zod instead of joi."] {
            assert_eq!(rules(said), [said]);
        }
    }

    #[test]
    fn a_rule_about_error_messages_is_no_report_of_one() {
        for said in
            ["所有错误信息必须用中文写。", "规则：以后所有的错误信息都必须用中文写。", "日志信息一律用英文。"]
        {
            assert_eq!(rules(said), [said]);
        }
        for said in ["错误信息是：必须先登录", "日志显示必须先登录"] {
            assert_eq!(rules(said), [""; 0]);
        }
    }

    #[test]
    fn decisions_are_found_in_what_agents_say() {
        for said in [
            "We keep the lexer because it is fast.",
            "I decided to use SQLite instead of files.",
            "I'll use a BTreeMap so that the order is stable.",
            "Let's go with tokio rather than threads.",
        ] {
            assert_eq!(decisions(said), [said], "{said}");
        }
    }

    #[test]
    fn what_the_user_chooses_needs_no_reason() {
        for said in [
            "Let's use zod for validation.", "We'll use JWT for sessions.", "OK, let's switch to Postgres.",
            "Use port 8080 for the server.",
        ] {
            assert_eq!(decisions_of_user(said), [said]);
            assert_eq!(decisions(said), [""; 0], "{said}");
        }
        for said in ["Let's add a button.", "Should we use zod for validation?", "What do we use for dates?"]
        {
            assert_eq!(decisions_of_user(said), [""; 0], "{said}");
        }
    }

    #[test]
    fn open_tasks_are_found_and_completed_ones_are_not() {
        for said in [
            "TODO: update the docs.",
            "Put it on the list that the lexer has no test yet.",
            "Als Nächstes: die Doku.",
        ] {
            assert_eq!(tasks(said), [said], "{said}");
        }
        for said in [
            "The cleanup went in last night, nothing left to do there.",
            "Fix the parser.",
            "What is left to do?",
        ] {
            assert_eq!(tasks(said), [""; 0], "{said}");
        }
    }
}
