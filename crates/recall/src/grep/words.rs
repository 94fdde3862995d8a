//! Words, approximately as the index sees them. The index keeps stems only, so related words are compared
//! here to show where a passage matches.

use std::ops::Range;

use lcm_model::{folded, humps, is_diacritic, is_invisible};

/// Endings in which two forms of a word may differ.
pub(super) const SUFFIXES: &[&str] = &[
    "", "s", "es", "e", "d", "ed", "er", "ers", "ing", "ings", "ion", "ions", "ly", "y", "ies", "ied",
    "ation", "ations", "ement", "ment", "ments", "able", "al", "ive", "ity", "ness", "ous", "ence", "ance",
    "ible", "ful", "less", "ism", "ist",
];
/// The fewest letters that two forms of a word share.
const STEM: usize = 3;

/// Words that say nothing about what is wanted.
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "for", "from", "get", "had", "has", "have", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "should", "so", "that", "the",
    "their", "then", "there", "these", "they", "this", "to", "us", "was", "we", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Words that say nothing in a sentence either, or speak of the talk itself, as in `what did I mention?`;
/// among keywords, they were chosen.
const LOOSE_WORDS: &str = "\
across between brought didn discussed doesn don during ever he her hers him his isn many mention mentioned
more much only out over she some talked than them through throughout up while";

/// Whether it says nothing in a sentence.
pub(super) fn is_loose_word(word: &str) -> bool {
    LOOSE_WORDS.split_whitespace().any(|loose| word.eq_ignore_ascii_case(loose))
}

/// Whether it is a function word.
pub(super) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word.to_lowercase().as_str()).is_ok()
}

/// The runs of letters and digits in `text`, with their positions. What belongs to a letter, or is invisible, breaks
/// no word.
pub(super) fn words(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let between = |c: char| !(c.is_alphanumeric() || is_diacritic(c) || is_invisible(c));
    let mut at = 0;
    text.split_inclusive(between).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim_end_matches(between);
        word.contains(char::is_alphanumeric).then(|| (start..start + word.len(), word))
    })
}

/// Whether two lowercase words are forms of the same word.
pub(super) fn are_kin(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    if one.as_bytes().first() != other.as_bytes().first() {
        return false;
    }
    let common = one.char_indices().zip(other.chars()).take_while(|((_, a), b)| a == b).last();
    let Some(stem) = common.map(|((at, c), _)| at + c.len_utf8()).filter(|stem| *stem >= STEM) else {
        return false;
    };
    SUFFIXES.contains(&&one[stem..]) && SUFFIXES.contains(&&other[stem..])
}

/// Endings of number, tense and possession.
const INFLECTIONS: [&str; 9] = ["", "s", "es", "d", "ed", "ing", "e", "y", "ies"];

/// Whether two lowercase words are one word, but for its number, tense or possession. The index's stems join others, too:
/// `custom` and `customer`, `import` and `important`.
pub(super) fn is_form_of(one: &str, other: &str) -> bool {
    let mut common = 0;
    for ((at, a), b) in one.char_indices().zip(other.chars()) {
        if a != b {
            break;
        }
        common = at + a.len_utf8();
    }
    let (stem, ends) = (&one[..common], [&one[common..], &other[common..]]);
    // `stopped` doubles the last letter of `stop`.
    let doubled = |end: &str| {
        let rest = stem.chars().next_back().and_then(|last| end.strip_prefix(last));
        rest.is_some_and(|rest| ["ed", "ing"].contains(&rest))
    };
    let is_ending = |end: &str| end == "ied" || INFLECTIONS.contains(&end) || doubled(end);
    one == other || stem.len() >= STEM && ends.into_iter().all(is_ending)
}

/// Whether a text has a form of a lowercase word, also as a part of an identifier.
pub(super) fn has_form(text: &str, wanted: &str) -> bool {
    let is_it = |word: &str| is_form_of(&folded(word), wanted);
    words(text).any(|(_, word)| is_it(word) || humps(word).into_iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_have_its_number_or_tense() {
        for (one, other) in [
            ("customer", "customers"),
            ("retry", "retries"),
            ("retry", "retried"),
            ("stop", "stopped"),
            ("make", "making"),
            ("cache", "cached"),
            ("class", "classes"),
            ("x", "x"),
        ] {
            assert!(is_form_of(one, other) && is_form_of(other, one), "{one} {other}");
        }
        for (one, other) in
            [("customer", "custom"), ("important", "import"), ("general", "generic"), ("as", "a")]
        {
            assert!(!is_form_of(one, other), "{one} {other}");
        }
        assert!(has_form("call getUserName(Tokens)", "token") && has_form("getUserName", "user"));
    }

    #[test]
    fn function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!(is_function_word("The") && !is_function_word("token"));
    }

    #[test]
    fn forms_of_one_word_match_and_lookalikes_do_not() {
        for (one, other) in
            [("compact", "compaction"), ("cached", "caches"), ("query", "queries"), ("x", "x")]
        {
            assert!(are_kin(one, other), "{one} {other}");
        }
        for (one, other) in [("cat", "category"), ("use", "user1"), ("日本", "日本語"), ("a", "as")] {
            assert!(!are_kin(one, other), "{one} {other}");
        }
    }

    #[test]
    fn words_come_with_their_positions() {
        let found: Vec<_> = words("é, src/main.rs").collect();
        assert_eq!(found, [(0..2, "é"), (4..7, "src"), (8..12, "main"), (13..15, "rs")]);
    }
}
