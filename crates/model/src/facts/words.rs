//! Words that mark a sentence as a rule, a task or a decision, in the languages most used with agents. The
//! patterns are in `words.txt`.
//!
//! A sentence is folded first (see `folding`): lower case, no marks of emphasis, one blank between words and
//! around punctuation, and one at each end. So a blank in a pattern marks the end of a word, and patterns
//! ignore case and start with a word.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use crate::Pattern;

/// The patterns of each section of `words.txt`, as alternatives.
static SECTIONS: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| sections(include_str!("words.txt")));

/// Patterns for at most this many words, such as `node:test`.
const WIDTHS: [(&str, &str); 4] = [
    ("{W1}", "(?:[^ ,:?][^ ,?]* )?"),
    ("{W3}", "(?:[^ ,:?][^ ,?]* ){0,3}"),
    ("{W6}", "(?:[^ ,:?][^ ,?]* ){0,6}"),
    ("{W12}", "(?:[^ ,:?][^ ,?]* ){0,12}"),
];

/// Bytes of states that each pattern may keep in memory. With the usual 2 MB, the longest ones throw their states away all the
/// time, and reading is five times slower.
const CACHE: usize = 16 * 1024 * 1024;

/// The patterns of sections, anywhere.
macro_rules! anywhere {
    ($($section:literal),+) => { Pattern::of(|| compiled("", &[$($section),+])) };
}

/// The patterns of sections, at the start of a clause, after filler words.
macro_rules! starting {
    ($($section:literal),+) => { Pattern::of(|| compiled("^(?:{FILL} )*", &[$($section),+])) };
}

fn sections(text: &'static str) -> Vec<(&'static str, String)> {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((name, String::new()));
        } else if let (Some(pattern), Some((_, patterns))) =
            (line.strip_prefix('"').and_then(|line| line.strip_suffix('"')), sections.last_mut())
        {
            if !patterns.is_empty() {
                patterns.push('|');
            }
            patterns.push_str(pattern);
        }
    }
    sections
}

fn compiled(start: &str, names: &[&str]) -> Option<Regex> {
    let section =
        |name: &&str| SECTIONS.iter().find(|(called, _)| called == name).map(|(_, all)| all.as_str());
    let all: Vec<&str> = names.iter().filter_map(section).collect();
    debug_assert_eq!(all.len(), names.len(), "{names:?}");
    let mut pattern = format!("{start}(?:{})", all.join("|"));
    // A section refers only to sections after it.
    for (name, patterns) in SECTIONS.iter() {
        let reference = format!("{{{name}}}");
        if pattern.contains(&reference) {
            pattern = pattern.replace(&reference, &format!("(?:{patterns})"));
        }
    }
    for (name, words) in WIDTHS {
        pattern = pattern.replace(name, words);
    }
    let made = RegexBuilder::new(&pattern).dfa_size_limit(CACHE).build();
    debug_assert!(made.is_ok(), "{made:?}");
    made.ok()
}

/// Rules at the start of a clause, each with what only resembles one.
pub(super) static ORDERS: [(Pattern, Pattern); 7] = [
    (starting!("surely"), starting!("not-surely")),
    (starting!("orders.en"), starting!("not-orders.en")),
    (starting!("facts.en"), starting!("not-facts.en")),
    (starting!("orders.de"), starting!("not-orders.de")),
    (starting!("facts.de"), starting!("not-facts.de")),
    (starting!("orders.fr"), starting!("not-orders.fr")),
    (starting!("orders.es", "orders.it-pt"), starting!("not-orders.es", "not-orders.it-pt")),
];
/// A rule anywhere in a sentence.
pub(super) static PERSISTENT: Pattern = anywhere!(
    "persistent.en", "persistent.de", "persistent.fr", "persistent.es", "persistent.it-pt", "persistent.zh",
    "persistent.ja"
);
/// A revoked rule.
pub(super) static REVOKED: Pattern = anywhere!("revoked");
/// A story that sounds like a rule.
pub(super) static STORIES: Pattern = anywhere!("stories");
/// Descriptions of a product.
pub(super) static DESCRIBED: Pattern = anywhere!("described");
/// Not about a product.
pub(super) static ABOUT_WORK: Pattern = anywhere!("about-work");
/// Orders that count only outside product descriptions.
pub(super) static WEAK_ORDERS: Pattern = starting!("weak-orders");
/// A rule in the form of a question.
pub(super) static REQUESTS: Pattern = starting!("requests");
/// A task at the start of a clause.
pub(super) static TASKS: Pattern = starting!("tasks");
/// A task anywhere in a sentence.
pub(super) static TASKS_ANYWHERE: Pattern = anywhere!("tasks-anywhere");
/// What only starts like a task.
pub(super) static NOT_TASKS: Pattern = starting!("not-tasks");
/// A decision.
pub(super) static DECIDED: Pattern = anywhere!("decided");
/// A decision, if it has a reason.
pub(super) static CHOICES: Pattern = anywhere!("choices");
/// An order that is a decision if it has a cause.
pub(super) static CHOSEN: Pattern = anywhere!("chosen");
/// A decision if the user says it.
pub(super) static CHOSEN_BY_USER: Pattern = anywhere!("chosen-by-user");
/// A cause.
pub(super) static BECAUSE: Pattern = anywhere!("because");
/// A reason, or the rejected alternative.
pub(super) static REASONS: Pattern = anywhere!("reasons");

/// A heading above rules.
pub(super) static HEADINGS: Pattern = anywhere!("headings");
/// A heading above tasks.
pub(super) static TASK_HEADINGS: Pattern = anywhere!("task-headings");
/// A line that ends with a colon and contains one of these announces pasted text.
pub(super) static CUE: Pattern = anywhere!("announcing");
/// Names of languages.
pub(super) static LANGUAGES: Pattern = anywhere!("LANG");
/// From here on, a sentence reports the words of someone or something else.
pub(super) static REPORTED: Pattern = anywhere!("reported");
/// Phrases that say nothing is left to do.
pub(super) static CLOSED: Pattern = anywhere!("closed");
/// Words of licenses and the like, which users paste but never write.
pub(super) static NOT_SAID: Pattern = anywhere!("pasted");
/// Beginnings of questions.
static QUESTIONS: Pattern = starting!("questions");

/// Whether a sentence is a question, with or without a question mark.
pub(super) fn asks(folded: &str) -> bool {
    folded.ends_with("? ") || folded.ends_with("?, ") || QUESTIONS.is_in(&folded[1.min(folded.len())..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_used_and_every_pattern_compiles() {
        let code = include_str!("words.rs");
        for (name, patterns) in SECTIONS.iter() {
            let is_reference = SECTIONS.iter().any(|(_, all)| all.contains(&format!("{{{name}}}")));
            assert!(
                is_reference
                    || code.contains(&format!("\"{name}\""))
                    || code.contains(&format!("{{{name}}}")),
                "{name}"
            );
            assert!(!patterns.is_empty() && compiled("", &[name]).is_some(), "{name}");
        }
    }
}
