//! The part of a text that shows why it was found: one line around the matches, which are highlighted.

use std::ops::Range;

use super::query::Mark;
use super::words::{are_kin, words};
use lcm_model::text::is_unsafe;
use lcm_model::{folded, is_ideograph};

/// Characters of a snippet.
pub(super) const WIDTH: usize = 240;
/// Matches at most this many bytes apart are highlighted as one.
const TOGETHER: usize = 2;
/// A shorter word is not searched within others.
const INSIDE: usize = 3;

/// A piece of text on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The line, with whitespace folded.
    pub text: String,
    /// The ranges of the matches, in order and disjoint.
    pub marks: Vec<Range<usize>>,
    /// Whether there is text before it.
    pub cut_before: bool,
    /// Whether there is text after it.
    pub cut_after: bool,
}

/// A match of one of the wanted words.
pub(super) struct Sighting {
    range: Range<usize>,
    /// The index of the word.
    pub mark: usize,
}

impl Snippet {
    /// The window of `text` with the best part of `within`: the greatest weight of distinct `marks`, as close
    /// together as possible.
    pub(super) fn best(text: &str, within: &Range<usize>, marks: &[Mark], width: usize) -> Self {
        let sightings = sightings(text, within, marks);
        let mut best = (0, within.start..within.start);
        for (n, first) in sightings.iter().enumerate() {
            let end = forward(text, first.range.start, width);
            let inside = || sightings[n..].iter().take_while(|sighting| sighting.range.end <= end);
            let mut seen: Vec<usize> = inside().map(|sighting| sighting.mark).collect();
            seen.sort_unstable();
            seen.dedup();
            let weight: usize = seen.into_iter().map(|mark| marks[mark].weight).sum();
            let last = inside().map(|sighting| sighting.range.end).max().unwrap_or(first.range.end);
            let range = first.range.start..last;
            if weight > best.0 || weight == best.0 && range.len() < best.1.len() {
                best = (weight, range);
            }
        }
        let ranges = sightings.into_iter().map(|sighting| sighting.range).collect();
        // Adjacent matches are highlighted as one: neighboring words, the parts of a path.
        let one = |between: &str| between.len() <= TOGETHER && !between.contains(char::is_alphanumeric);
        Self::around(text, &best.1, joined(ranges, |gap| one(&text[gap])), width)
    }

    /// The window of `text` around `center`, with the `marks` inside it highlighted.
    pub(super) fn around(text: &str, center: &Range<usize>, marks: Vec<Range<usize>>, width: usize) -> Self {
        let center = center.start..center.end.min(forward(text, center.start, width));
        let spare = width.saturating_sub(text[center.clone()].chars().count());
        let start = at_word(text, back(text, center.start, spare / 2), center.start);
        let end = forward(text, start, width).max(center.end);
        let start = if end == text.len() { back(text, end, width).min(start) } else { start };
        fold(text, start..end, marks)
    }
}

/// The matches in `text[within]`, in order: whole words and other forms of a word, or, of a word that has none, parts of
/// others.
pub(super) fn sightings(text: &str, within: &Range<usize>, marks: &[Mark]) -> Vec<Sighting> {
    let mut found = as_they_stand(text, within, marks);
    let mut parts: Vec<Sighting> = Vec::new();
    let mut is_whole = vec![false; marks.len()];
    for (range, word) in words(&text[within.clone()]) {
        let range = range.start + within.start..range.end + within.start;
        let lower = folded(word);
        for (mark, wanted) in marks.iter().map(|mark| mark.word.as_str()).enumerate() {
            if are_kin(&lower, wanted) {
                is_whole[mark] = true;
                found.push(Sighting { range: range.clone(), mark });
            } else if wanted.len() >= INSIDE || wanted.contains(is_ideograph) {
                parts.extend(inside(&range, word, &lower, wanted).map(|range| Sighting { range, mark }));
            }
        }
    }
    found.extend(parts.into_iter().filter(|part| !is_whole[part.mark]));
    found.sort_by_key(|sighting| (sighting.range.start, sighting.range.end));
    found
}

/// The exact matches of marks with several words: those that end with a word, if there are any.
fn as_they_stand(text: &str, within: &Range<usize>, marks: &[Mark]) -> Vec<Sighting> {
    // Unlike Unicode lowercasing, this keeps the length of each character.
    let lower = text[within.clone()].to_ascii_lowercase();
    let mut found = Vec::new();
    for (mark, wanted) in marks.iter().map(|mark| mark.word.as_str()).enumerate() {
        if wanted.contains(|c: char| !c.is_alphanumeric()) {
            let ends = |at: &usize| !lower[at + wanted.len()..].starts_with(char::is_alphanumeric);
            let stand: Vec<usize> = lower.match_indices(wanted).map(|(at, _)| at).collect();
            let has_whole = stand.iter().any(ends);
            found.extend(stand.into_iter().filter(|at| !has_whole || ends(at)).map(|at| {
                let start = within.start + at;
                Sighting { range: start..start + wanted.len(), mark }
            }));
        }
    }
    found
}

/// The positions of `wanted` within a word; the whole word if lowercasing changes the length of its
/// characters.
fn inside<'a>(
    range: &Range<usize>,
    word: &str,
    lower: &'a str,
    wanted: &'a str,
) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let same_lengths = word.chars().zip(lower.chars()).all(|(one, other)| one.len_utf8() == other.len_utf8());
    let (range, comparable) = (range.clone(), word.len() == lower.len() && same_lengths);
    lower.match_indices(wanted).map(move |(at, piece)| {
        let start = range.start + at;
        if comparable { start..start + piece.len() } else { range.clone() }
    })
}

/// `text[window]` on one line, with its marks moved accordingly.
fn fold(text: &str, window: Range<usize>, marks: Vec<Range<usize>>) -> Snippet {
    let mut snippet = Snippet {
        cut_before: !text[..window.start].trim().is_empty(),
        cut_after: !text[window.end..].trim().is_empty(),
        ..Snippet::default()
    };
    let inside = marks.into_iter().map(|mark| mark.start.max(window.start)..mark.end.min(window.end));
    let inside = inside.filter(|mark| !mark.is_empty()).collect();
    let mut marks = joined(inside, |_| false).into_iter().peekable();
    let mut open = None;
    for (at, c) in text[window.clone()].char_indices().map(|(at, c)| (at + window.start, c)) {
        if let Some(mark) = marks.next_if(|mark| mark.start <= at) {
            open = Some((snippet.text.len(), mark.end));
        }
        if !c.is_whitespace() {
            snippet.text.push(if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c });
        } else if !snippet.text.is_empty() && !snippet.text.ends_with(' ') {
            snippet.text.push(' ');
        }
        if let Some((start, end)) = open
            && end <= at + c.len_utf8()
        {
            let end = snippet.text.trim_end().len();
            snippet.marks.extend((start < end).then_some(start..end));
            open = None;
        }
    }
    snippet.text.truncate(snippet.text.trim_end().len());
    snippet
}

/// Sorts ranges and merges those that overlap, touch, or have only a gap between them that `is_one` accepts.
fn joined(mut ranges: Vec<Range<usize>>, is_one: impl Fn(Range<usize>) -> bool) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end || is_one(last.end..range.start) => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range),
        }
    }
    out
}

/// `n` characters after `from`.
fn forward(text: &str, from: usize, n: usize) -> usize {
    text[from..].char_indices().nth(n).map_or(text.len(), |(at, _)| from + at)
}

/// `n` characters before `from`.
fn back(text: &str, from: usize, n: usize) -> usize {
    if n == 0 { from } else { text[..from].char_indices().rev().nth(n - 1).map_or(0, |(at, _)| at) }
}

/// The first word boundary in `start..end`, if it is near.
fn at_word(text: &str, start: usize, end: usize) -> usize {
    const NEAR: usize = 24;
    if start == 0 {
        return start;
    }
    let near = forward(text, start, NEAR).min(end);
    text[start..near].find(char::is_whitespace).map_or(start, |blank| start + blank)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::query::Query;
    use super::*;

    fn shown(text: &str, query: &str) -> String {
        let marks = Query::parse(query).marks;
        let snippet = Snippet::best(text, &(0..text.len()), &marks, WIDTH);
        let mut out = String::new();
        let mut at = 0;
        for mark in &snippet.marks {
            out.push_str(&format!("{}[{}]", &snippet.text[at..mark.start], &snippet.text[mark.clone()]));
            at = mark.end;
        }
        out.push_str(&snippet.text[at..]);
        out
    }

    #[test]
    fn forms_pieces_and_ideographs_are_highlighted() {
        assert_eq!(shown("It compacts\n\n the cache", "compaction cached"), "It [compacts] the [cache]");
        assert_eq!(shown("let x = getUserName();", "user name"), "let x = get[UserName]();");
        assert_eq!(shown("昨天构建失败了", "构建失败"), "昨天[构建失败]了");
        assert_eq!(shown("nothing of it", "else"), "nothing of it");
        let filler = "lorem ipsum dolor ".repeat(40);
        let phrase = shown(&format!("invalid themes {filler} Invalid Theme!"), "\"invalid theme\"");
        assert!(phrase.ends_with("[Invalid Theme]!"), "{phrase}");
    }

    #[test]
    fn a_word_hides_what_only_has_it_inside() {
        let text = format!("A report on the import. {} The port is 5433.", "lorem ipsum ".repeat(40));
        let shown = shown(&text, "which port");
        assert!(shown.contains("The [port] is 5433") && !shown.contains("re[port]"), "{shown}");
    }

    #[test]
    fn the_window_shows_the_most_different_words() {
        let filler = "lorem ipsum dolor ".repeat(40);
        let text = format!("cache cache cache {filler} cache of tokens {filler}");
        let shown = shown(&text, "tokens cache");
        assert!(shown.contains("[cache] of [tokens]"), "{shown}");
        assert!(shown.chars().count() < WIDTH + 10, "{shown}");
    }

    #[test]
    fn among_equal_windows_the_tightest_is_shown() {
        let before = "import printer from './printer'; ".repeat(4);
        let line = "warn  admin-printer checksum mismatch on part 7, got 8f3a-11c2-77e0";
        let shown = shown(&format!("{before}\n{line}\n{before}"), "checksum mismatch of the admin printer");
        assert!(shown.contains("got 8f3a-11c2-77e0"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_query_shows_a_part_of_any_text(
            text in "([a-cA-CȺİK日本é \n_/.]|\\PC){0,400}",
            query in "([a-cA-CȺİK日本é \"_/.]|\\PC){0,20}",
        ) {
            let marks = Query::parse(&query).marks;
            let snippet = Snippet::best(&text, &(0..text.len()), &marks, WIDTH);
            prop_assert!(snippet.text.chars().count() <= WIDTH);
            prop_assert!(snippet.marks.iter().all(|mark| !snippet.text[mark.clone()].trim().is_empty()));
            prop_assert!(snippet.marks.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn a_window_never_breaks_a_character() {
        let text = "é日\u{1f600}\n\u{1b}".repeat(300);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let snippet = Snippet::around(&text, &(at..at), std::iter::once(at..text.len()).collect(), WIDTH);
            assert!(snippet.text.chars().count() <= WIDTH && !snippet.text.contains('\u{1b}'));
        }
    }
}
