//! Divides searchable text into passages, which are the rows of the full-text index, and finds the parts of
//! words that are indexed too.
//!
//! A long tool output with one match must not lose to a short message, so messages are searched by passage.
//! The index stores no text, so a passage is cut from its message again to be shown; therefore the division
//! never changes without a migration.

use std::borrow::Cow;
use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::data::{DATA_MARK, as_indexed, camel_humps, is_random, without_data};
use super::folding::{folded, is_diacritic, is_invisible, plain};

/// A message of up to this many bytes stays whole.
const WHOLE: usize = 750;
/// The approximate size of a passage of a longer one, in bytes.
const PASSAGE: usize = 500;
/// A last line shorter than this is repeated in the next passage, because it may introduce it.
const OVERLAP: usize = 120;
/// A longer word, in bytes, is data.
const LONGEST_WORD: usize = 64;
/// The word before a part in the index that stands next to ideographs: a private-use character, as [`DATA_MARK`].
pub const PART_MARK: &str = "\u{e1ce}";
/// The beginning of a [`seam`].
const SEAM: char = '\u{e1cf}';

/// The byte ranges of the passages of `text`, cut at line breaks where possible.
pub fn passages(text: &str) -> Vec<Range<usize>> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    if text.len() <= WHOLE {
        return vec![Range { start: 0, end: text.len() }];
    }
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut end = 0;
    let mut last_line = 0;
    for line in text.split_inclusive('\n') {
        if end > start && end - start + line.len() > PASSAGE {
            ranges.push(start..end);
            // The repeated line must not be all of the next passage.
            start = if end - last_line < OVERLAP && last_line > start { last_line } else { end };
        }
        last_line = end;
        end += line.len();
        // A line longer than a passage is cut between words where possible.
        while end - start > WHOLE {
            let cut = between_words(text, start + PASSAGE / 2, text.floor_char_boundary(start + PASSAGE));
            ranges.push(start..cut);
            start = cut;
        }
    }
    if end > start {
        ranges.push(start..end);
    }
    ranges
}

/// Whether it is no part of a word.
fn is_between(c: char) -> bool {
    !(c.is_alphanumeric() || is_diacritic(c) || is_invisible(c))
}

/// The last place up to `end` that is not within a word; `end` if there is none from `start` on.
fn between_words(text: &str, start: usize, end: usize) -> usize {
    let window = &text[text.floor_char_boundary(start)..end];
    match window.char_indices().rev().find(|(_, c)| is_between(*c)) {
        Some((at, c)) if !text[end..].starts_with(is_between) => end - window.len() + at + c.len_utf8(),
        _ => end,
    }
}

/// What the index gets of a passage.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// Its words in one spelling and without data; `None` if it is just that.
    pub body: Option<String>,
    /// See [`parts`].
    pub parts: String,
}

/// `text` as the index has its words.
pub fn spelled(text: &str) -> String {
    folded(&as_indexed(&plain(text)))
}

/// The word in the index of a passage that begins between these words, spelled like it. By that, a phrase is found that
/// begins in the passage before.
pub fn seam(last: &str, first: &str) -> String {
    let hash = Sha256::digest(format!("{last} {first}"));
    format!("{SEAM}{:02x}{:02x}", hash[0], hash[1])
}

impl Indexed {
    /// All passages of `text`, each spelled when it is asked for.
    pub fn each(text: &str) -> impl Iterator<Item = (Range<usize>, Self)> {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let (mut at, mut last) = (0, "");
        let index = move |range: Range<usize>| {
            let mut indexed = Self::of(&text[range.clone()]);
            last = text[at..range.start].rsplit(is_between).find(is_word).unwrap_or(last);
            at = range.start;
            // Next to ideographs, a word is only a part.
            let before = last.rsplit(is_ideograph).next().unwrap_or_default();
            let first = text[range.clone()].split(is_between).find(is_word).unwrap_or_default();
            let first = first.split(is_ideograph).next().unwrap_or_default();
            if !before.is_empty() && !first.is_empty() {
                indexed.parts.push(' ');
                indexed.parts += &seam(&spelled(before), &spelled(first));
            }
            (range, indexed)
        };
        passages(text).into_iter().map(index)
    }

    /// Spells `text` for the index, like a query.
    pub fn of(text: &str) -> Self {
        let plain = plain(text);
        let (words, lacks_data) = without_data(&plain);
        let mut parts = parts(&words);
        if lacks_data {
            parts.push(' ');
            parts += DATA_MARK;
        }
        // The index folds the case of ASCII itself.
        let body = match (text.is_ascii(), words) {
            (true, Cow::Borrowed(_)) => None,
            (true, Cow::Owned(words)) => Some(words),
            (false, words) => Some(folded(&words)),
        };
        Self { body, parts }
    }
}

/// The parts of words in `text` that a word tokenizer does not see: humps of camelCase and of identifiers
/// with digits, and pairs of neighboring ideographs.
fn parts(text: &str) -> String {
    let mut out = String::new();
    let mut push = |piece: &str| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(piece);
    };
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() || is_of_one_piece(word) {
            continue;
        }
        let is_mixed = !word.is_ascii() && word.contains(is_ideograph);
        if is_mixed {
            for run in word.split(|c| !is_ideograph(c)).filter(|run| !run.is_empty()) {
                bigrams(run).iter().for_each(|pair| push(pair));
                // A single one is looked for as the beginning of a pair.
                if let Some((at, _)) = run.char_indices().next_back().filter(|(at, _)| *at > 0) {
                    push(&run[at..]);
                }
            }
        }
        for run in word
            .split(|c| is_mixed && is_ideograph(c))
            .filter(|run| !run.is_empty() && run.len() <= LONGEST_WORD)
        {
            // 用docker部署: one word to a tokenizer.
            if is_mixed {
                push(PART_MARK);
                push(run);
            }
            let humps = humps(run);
            if humps.len() > 1 {
                humps.iter().for_each(|hump| push(hump));
            }
        }
    }
    out
}

/// A fast check that is true for most words: lowercase letters, possibly after one capital.
fn is_of_one_piece(word: &str) -> bool {
    let letters = word.as_bytes().split_first();
    letters
        .is_some_and(|(first, rest)| first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase))
}

/// Splits `getUserName2` into `get`, `User`, `Name`, `2`; a run of capitals stays together up to the word
/// that follows it. A random word has no parts.
pub fn humps(word: &str) -> Vec<&str> {
    if is_random(word) { vec![word] } else { camel_humps(word) }
}

/// Neighboring pairs of each run of ideographs; a single one stays single.
pub fn bigrams(text: &str) -> Vec<String> {
    let mut pairs = Vec::new();
    for run in text.split(|c: char| !is_ideograph(c)) {
        let run: Vec<char> = run.chars().collect();
        match run.len() {
            0 => {}
            1 => pairs.push(run[0].to_string()),
            _ => pairs.extend(run.windows(2).map(|pair| pair.iter().collect::<String>())),
        }
    }
    pairs
}

/// Han, kana or hangul: scripts without spaces.
pub fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_the_text_and_are_short() {
        let texts = [
            "short".to_owned(),
            "one line of some length\n".repeat(100),
            "x".repeat(5_000),
            format!("{}\n{}", "日本".repeat(900), "tail"),
            format!("{}\n\n\n{}", "a".repeat(700), "b\n".repeat(600)),
        ];
        for text in &texts {
            let ranges = passages(text);
            assert_eq!(ranges[0].start, 0);
            assert_eq!(ranges.last().unwrap().end, text.len());
            for pair in ranges.windows(2) {
                assert!(pair[1].start <= pair[0].end && pair[1].start > pair[0].start, "{pair:?}");
                assert!(pair[1].end > pair[0].end, "{pair:?}");
            }
            assert!(ranges.iter().all(|range| range.len() <= WHOLE && text.get(range.clone()).is_some()));
        }
        assert!(passages(" \n ").is_empty());
    }

    #[test]
    fn words_have_parts() {
        assert_eq!(parts("call getUserName2 in HTTPServer now"), "get User Name 2 HTTP Server");
        assert_eq!(parts("构建失败 of 东"), "构建 建失 失败 败 东");
        assert_eq!(parts("用docker部署"), format!("用 部署 署 {PART_MARK} docker"));
        assert_eq!(parts("plain Words of One piece only"), "");
        assert_eq!(parts("iOS 2nd X9 ABc éÀ ÀB"), "i OS 2 nd X 9 A Bc é À");
    }
}
