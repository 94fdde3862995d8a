//! Divides long texts into pages by estimated tokens. The pages together are the text, byte for byte.

use std::ops::Range;

use lcm_model::{text, tokens};

/// The most bytes per answer: hosts show and keep about this much of a tool's output.
const MAX_BYTES: usize = 48_000;
/// Bytes per token when an answer is divided in advance. Whitespace has more.
const BYTES_PER_TOKEN: usize = 6;
/// Approximate tokens of a section's header.
pub(super) const HEADER: usize = 45;
/// The fewest tokens or bytes for which a section is begun.
const WORTH_BEGINNING: usize = 80;

/// A part of a text.
pub(super) struct Slice {
    /// The part.
    pub text: String,
    /// Its range in the whole text, in bytes.
    pub range: Range<usize>,
    /// The size of the whole text in bytes.
    pub total: usize,
}

impl Slice {
    /// The number of bytes after this part.
    pub fn left(&self) -> usize {
        self.total - self.range.end
    }
}

/// The room left in one answer.
pub(super) struct Budget {
    tokens: usize,
    bytes: usize,
    fresh: bool,
}

impl Budget {
    /// The budget for one page.
    pub fn new(tokens: usize) -> Self {
        Self { tokens, bytes: MAX_BYTES, fresh: true }
    }

    /// The budget for one of several parts of an answer, which together stay within all limits.
    pub fn part(tokens: usize) -> Self {
        Self { tokens, bytes: MAX_BYTES.min(tokens * BYTES_PER_TOKEN), fresh: true }
    }

    /// Takes as much of `text` from byte `from` as fits, at least one character if nothing was taken before.
    /// `None` if too little room is left to begin.
    pub fn take(&mut self, text: &str, from: usize) -> Option<Slice> {
        if !self.fresh && (self.tokens < WORTH_BEGINNING || self.bytes < WORTH_BEGINNING) {
            return None;
        }
        let rest = &text[from..];
        let room = if self.fresh { self.tokens } else { self.tokens - HEADER };
        let piece = &rest[..cut(rest, room, self.bytes)];
        self.spend(tokens::estimate(piece) + HEADER, piece.len());
        Some(Slice { text: piece.to_owned(), range: from..from + piece.len(), total: text.len() })
    }

    /// Takes something indivisible of about `tokens`. Returns whether it fits.
    pub fn take_whole(&mut self, tokens: usize) -> bool {
        let fits = self.fresh || tokens <= self.tokens;
        if fits {
            self.spend(tokens, tokens * 4);
        }
        fits
    }

    fn spend(&mut self, tokens: usize, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(tokens);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.fresh = false;
    }
}

/// The number of bytes of `text` that make a page: as many as both limits allow, back to a line break if
/// there is one in the last half; at least one character.
fn cut(text: &str, max_tokens: usize, max_bytes: usize) -> usize {
    let mut high = text.floor_char_boundary(max_bytes.min(text.len()));
    let mut low = 0;
    if tokens::estimate(&text[..high]) <= max_tokens {
        low = high;
    }
    // A longer prefix never has fewer tokens, so a binary search finds the longest one that fits.
    while low < high {
        let middle = text.ceil_char_boundary(low + (high - low).div_ceil(2));
        if tokens::estimate(&text[..middle]) <= max_tokens {
            low = middle;
        } else {
            high = text.floor_char_boundary(middle - 1);
        }
    }
    match text::cut_at_line(text, low).len() {
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lcm_testing::{cases, everything};

    fn pages(text: &str, tokens: usize) -> Vec<Slice> {
        let mut pages = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let page = Budget::new(tokens).take(text, at).unwrap();
            at = page.range.end;
            pages.push(page);
        }
        pages
    }

    proptest! {
        #![proptest_config(cases(256))]
        #[test]
        fn pages_joined_are_the_text_and_none_is_over_its_budget(
            lines in prop::collection::vec("[a-z0-9 {}é日\u{1f600}]{0,60}|</content>|\\PC{0,20}", 0..60),
            tokens in 1_usize..200,
        ) {
            let text = lines.join("\n");
            let pages = pages(&text, tokens);
            prop_assert_eq!(pages.iter().map(|page| page.text.as_str()).collect::<String>(), text.clone());
            for page in pages {
                let one_character = page.text.chars().count() == 1;
                prop_assert!(one_character || tokens::estimate(&page.text) <= tokens);
            }
        }
    }

    #[test]
    fn pages_end_at_line_breaks_if_possible() {
        let text = "some words on a line\n".repeat(500);
        let pages = pages(&text, 300);
        assert!(pages.len() > 5);
        assert!(pages.iter().all(|page| page.text.ends_with('\n')));
    }

    #[test]
    fn many_megabytes_round_trip_byte_for_byte() {
        // Whitespace costs few tokens, so pages are as long as the limit in bytes allows, and not too many.
        let line = |n: usize| format!("{n:07}{:80}日本 😀\r\n", "");
        let megabytes = if everything() { 50 } else { 10 };
        let text: String = (0..megabytes * 10_400).map(line).collect();
        assert!(text.len() > megabytes * 1_000_000);
        let (mut at, mut pages) = (0, 0);
        while at < text.len() {
            let page = Budget::new(8_000).take(&text, at).unwrap();
            assert!(text.as_bytes()[at..].starts_with(page.text.as_bytes()));
            at = page.range.end;
            pages += 1;
        }
        assert!(at == text.len() && pages > megabytes * 20, "{pages}");
    }

    #[test]
    fn a_page_of_whitespace_is_bounded() {
        let pages = pages(&" ".repeat(200_000), 4_000);
        assert_eq!(pages.iter().map(|page| page.text.len()).max(), Some(MAX_BYTES));
    }
}
