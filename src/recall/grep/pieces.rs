//! Splits a literal into words and pieces of words, as the index sees them.

use super::query::quote;

/// Words per phrase: the index walks the lists of all of them at once.
const MOST_IN_A_PHRASE: usize = 6;

/// A run of letters and digits in a literal, in lowercase.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    /// Whether it begins a word.
    pub begins: bool,
    /// Whether it ends a word.
    pub ends: bool,
    /// The pieces of one chain are consecutive in the index too.
    pub chain: usize,
    /// Its position in its chain.
    pub at: usize,
}

impl Piece {
    /// Whether it is a whole word.
    pub fn is_whole(&self) -> bool {
        self.begins && self.ends
    }
}

/// The words and pieces of words that the index can look up. A non-ASCII neighbor may belong to the word or
/// not, so the piece counts as open on that side.
pub(super) fn pieces(literal: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut start = None;
    let (mut chain, mut at) = (0, 0);
    let mut before = ' ';
    let closed = |c: Option<char>| c.is_some_and(|c| c.is_ascii() && !c.is_ascii_alphanumeric());
    for (end, c) in literal.char_indices().chain([(literal.len(), ' ')]) {
        if c.is_ascii_alphanumeric() {
            start.get_or_insert(end);
        } else if let Some(from) = start.take() {
            let text = literal[from..end].to_ascii_lowercase();
            let begins = closed(literal[..from].chars().next_back());
            let ends = closed(literal[end..].chars().next());
            pieces.push(Piece { text, begins, ends, chain, at });
            at += 1;
        }
        if !c.is_ascii() {
            (chain, at) = (chain + 1, 0);
            // The index stores ideographs in pairs.
            if is_paired(before) && is_paired(c) {
                pieces.push(Piece { text: format!("{before}{c}"), begins: true, ends: true, chain, at });
                chain += 1;
            }
        }
        before = c;
    }
    pieces
}

/// The index expressions for whole words, longest first, with consecutive words as one phrase.
pub(super) fn phrases(pieces: &[Piece]) -> Vec<String> {
    let together =
        |one: &Piece, other: &Piece| one.chain == other.chain && one.is_whole() && other.is_whole();
    let whole = pieces.chunk_by(together).filter(|chain| chain[0].is_whole());
    let mut phrases: Vec<String> = (whole.flat_map(|chain| chain.chunks(MOST_IN_A_PHRASE)))
        .map(|words| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    phrases.sort_by_key(|phrase| usize::MAX - phrase.len());
    phrases.iter().map(|phrase| quote(phrase)).collect()
}

/// Ideographs that are letters in every version of Unicode.
fn is_paired(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_know_their_open_ends_and_their_positions() {
        let piece =
            |text: &str, begins, ends, chain, at| Piece { text: text.into(), begins, ends, chain, at };
        assert_eq!(pieces("Word"), [piece("word", false, false, 0, 0)]);
        assert_eq!(
            pieces("fn parse_line("),
            [
                piece("fn", false, true, 0, 0),
                piece("parse", true, true, 0, 1),
                piece("line", true, true, 0, 2)
            ]
        );
        assert_eq!(
            pieces("naïve.x"),
            [piece("na", false, false, 0, 0), piece("ve", false, true, 1, 0), piece("x", true, false, 1, 1)]
        );
        assert_eq!(
            pieces("-- 构建失.x"),
            [piece("构建", true, true, 2, 0), piece("建失", true, true, 4, 0), piece("x", true, false, 5, 0)]
        );
    }

    #[test]
    fn consecutive_whole_words_form_a_phrase() {
        let asked = |literal: &str| phrases(&pieces(literal));
        assert_eq!(asked("word"), Vec::<String>::new());
        assert_eq!(asked("fn parse_line(x) … Result<"), ["\"parse line x\"", "\"result\""]);
        assert_eq!(asked("(a) é (bcd), 构建"), ["\"构建\"", "\"bcd\"", "\"a\""]);
        assert_eq!(asked(" a b c d e f g h "), ["\"a b c d e f\"", "\"g h\""]);
    }
}
