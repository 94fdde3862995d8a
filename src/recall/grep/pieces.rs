//! The words, and pieces of words, of which a literal is made up as the index sees it.

use super::query::quote;

/// Words of one phrase: the index goes through the lists of all of them at once.
const MOST_IN_A_PHRASE: usize = 6;

/// A run of letters and digits in a literal, in small letters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    /// The word begins with it.
    pub begins: bool,
    /// The word ends with it.
    pub ends: bool,
    /// Those of one chain stand one behind the other in the index too.
    pub chain: usize,
    /// How many stand before it in its chain.
    pub at: usize,
}

impl Piece {
    /// Is it a whole word?
    pub fn is_whole(&self) -> bool {
        self.begins && self.ends
    }
}

/// The words and pieces of words of a literal that the index can be asked for. What stands beside a letter that is not of ASCII
/// may be one word with it or not: so it counts as open there.
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
            // The index has them in pairs.
            if is_paired(before) && is_paired(c) {
                pieces.push(Piece { text: format!("{before}{c}"), begins: true, ends: true, chain, at });
                chain += 1;
            }
        }
        before = c;
    }
    pieces
}

/// What the index can be asked for whole words with, the longest first: those that stand one behind the other together.
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

/// Ideographs that are letters to every version of Unicode.
fn is_paired(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_know_where_a_word_may_go_on_and_what_stands_before_them() {
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
    fn whole_words_that_stand_together_are_asked_for_together() {
        let asked = |literal: &str| phrases(&pieces(literal));
        assert_eq!(asked("word"), Vec::<String>::new());
        assert_eq!(asked("fn parse_line(x) … Result<"), ["\"parse line x\"", "\"result\""]);
        assert_eq!(asked("(a) é (bcd), 构建"), ["\"构建\"", "\"bcd\"", "\"a\""]);
        assert_eq!(asked(" a b c d e f g h "), ["\"a b c d e f\"", "\"g h\""]);
    }
}
