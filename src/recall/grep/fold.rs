//! Finds results that repeat an earlier one: the same file read again, the same edit retried.

use std::collections::BTreeSet;

use super::{Found, Hit};

/// The least share of words that two equal snippets have in common.
const SAME: f64 = 0.9;

/// A snippet's words, and separately those with digits, in which results of one command differ.
struct SnippetWords<'a> {
    words: BTreeSet<&'a str>,
    numbers: BTreeSet<&'a str>,
}

/// Sets `like` on each result whose snippet repeats an earlier one of the same role and tool.
pub(super) fn name_equals(hits: &mut [Hit]) {
    let said: Vec<SnippetWords<'_>> = hits.iter().map(|hit| SnippetWords::by(&hit.snippet.text)).collect();
    let mut first: Vec<usize> = Vec::new();
    let mut equals = Vec::new();
    for at in 0..hits.len() {
        let is_like =
            |&&one: &&usize| speaker(&hits[one]) == speaker(&hits[at]) && said[one].is_like(&said[at]);
        match first.iter().find(is_like) {
            Some(one) => equals.push((at, handle(&hits[*one]))),
            None => first.push(at),
        }
    }
    for (at, handle) in equals {
        hits[at].like = handle;
    }
}

fn handle(hit: &Hit) -> Option<String> {
    match &hit.found {
        Found::Message(card, _) => Some(card.handle.clone()),
        Found::Summary(_) => None,
    }
}

fn speaker(hit: &Hit) -> Option<(&str, Option<&str>)> {
    match &hit.found {
        Found::Message(card, _) => Some((card.role.as_str(), card.tool.as_deref())),
        Found::Summary(_) => None,
    }
}

impl<'a> SnippetWords<'a> {
    fn by(text: &'a str) -> Self {
        let has_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
        let (numbers, words) = text.split(' ').partition(has_digit);
        Self { words, numbers }
    }

    #[expect(clippy::cast_precision_loss, reason = "a snippet is short")]
    fn is_like(&self, other: &Self) -> bool {
        let common = self.words.intersection(&other.words).count() as f64;
        let all = self.words.union(&other.words).count() as f64;
        self.numbers == other.numbers && common >= SAME * all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        SnippetWords::by(one).is_like(&SnippetWords::by(other))
    }

    #[test]
    fn only_repeated_results_are_alike() {
        let line = "let the reader wait until all of the writers are done with it";
        assert!(are_alike(&format!("{line} 3 }}"), &format!("pub {line} 3 }}")));
        assert!(!are_alike("12 tests passed, 0 failed", "12 tests passed, 1 failed"));
        assert!(!are_alike("the build failed", "the build passed"));
    }
}
