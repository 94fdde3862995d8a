//! Finds results that repeat an earlier one: the same file read again, the same edit retried.

use std::collections::BTreeSet;

use super::{Kinds, Question, SearchHit, Sort};

/// The least share of words that two equal snippets have in common.
const SAME: f64 = 0.9;

/// A snippet's words, and separately those with digits, in which results of one command differ.
struct SnippetWords<'a> {
    words: BTreeSet<&'a str>,
    numbers: BTreeSet<&'a str>,
}

/// Folds results that repeat another of the same role and tool at the same place into one, which names them.
/// Of equal outputs, that is the newest, unless the oldest comes first: the same file, read again. Of equal
/// words, it is the best.
#[must_use]
pub fn fold_equals(hits: Vec<SearchHit>, question: &Question) -> Vec<SearchHit> {
    let is_by_session = question.kinds == Kinds::Sessions;
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let said: Vec<SnippetWords<'_>> = hits.iter().map(|hit| SnippetWords::by(&hit.snippet.text)).collect();
    let speaker = |at: usize| hits[at].card.message().map(|card| (&card.role, &card.tool));
    for at in 0..hits.len() {
        let is_like = |group: &&mut Vec<usize>| {
            let one = group[0];
            speaker(one).is_some_and(|who| Some(who) == speaker(at))
                && hits[one].place == hits[at].place
                && (!is_by_session || hits[one].session == hits[at].session)
                && said[one].is_like(&said[at])
        };
        match groups.iter_mut().find(is_like) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let mut hits: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let folded = groups.into_iter().filter_map(|mut group| {
        // When a tool's output was stored.
        let age = |at: &usize| {
            let card =
                hits[*at].as_ref().and_then(|hit| hit.card.message()).filter(|card| card.tool.is_some());
            card.map(|card| (card.timestamp, card.sequence))
        };
        let newest = group.iter().copied().max_by_key(age).filter(|at| age(at).is_some());
        let shown = newest.filter(|_| question.sort != Sort::Oldest).unwrap_or(group[0]);
        group.retain(|at| *at != shown);
        let handle = |at: usize| Some(hits[at].take()?.card.handle().to_owned());
        let also = group.into_iter().filter_map(handle).collect();
        Some(SearchHit { also, ..hits[shown].take()? })
    });
    folded.collect()
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
