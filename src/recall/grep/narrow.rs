//! The messages that can hold a required literal, as the index tells, so that not all of a history is read.
//!
//! The index holds stems of words, and where they stand; a literal begins and ends anywhere, also within a word. Its whole words
//! are looked up. Of one that may be part of a longer word, the index's own words say in which it can be. What holds one
//! that the index cannot tell of is not narrowed at all, and messages whose lines were cut within words are always read.

use std::collections::HashSet;

use super::literal::{Literal, Required};
use super::query::quote;
use crate::error::Result;
use crate::ids::MessageId;
use crate::store::{Kept, Pages, View};

/// Passages with a piece beyond which it is not looked up.
const MOST_PASSAGES: usize = 100_000;
/// Passages with all pieces beyond which reading everything is as quick.
const MOST_LEFT: usize = 20_000;
/// So few that looking further would cost more than it saves.
const FEW: usize = 300;
/// Words of the index that a piece may be part of.
const MOST_WORDS: usize = 5_000;
/// Pages of the index's words that are read for one search: some 800 MB of it.
const PAGES: usize = 200_000;
/// Letters of a piece that words are looked through for: that begin with it, or hold it anywhere.
const LONG_ENOUGH: (usize, usize) = (3, 4);

/// Says whether somebody still waits.
type GoOn<'a> = &'a dyn Fn() -> Result<()>;

/// A run of letters and digits in a literal, in small letters.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    text: String,
    /// The word begins with it.
    begins: bool,
    /// The word ends with it.
    ends: bool,
}

/// The messages that may hold one of the literals, the newest first; `None` where the index does not tell. `go_on` fails where
/// nobody waits any more.
///
/// # Errors
/// When the store can't be read, and what `go_on` says.
pub(super) fn candidates(
    view: &View<'_>,
    required: &Required,
    go_on: GoOn<'_>,
) -> Result<Option<Vec<MessageId>>> {
    let mut pages = Pages(PAGES);
    let mut rows = HashSet::new();
    for literal in &required.0 {
        match holding(view, literal, &mut pages, go_on)? {
            Some(holding) => rows.extend(holding),
            None => return Ok(None),
        }
    }
    if rows.len() > MOST_LEFT {
        return Ok(None);
    }
    let mut all: HashSet<MessageId> = view.with_broken_lines()?.into_iter().collect();
    for row in rows {
        all.extend(view.message_at(row)?);
    }
    let mut all: Vec<MessageId> = all.into_iter().collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    Ok(Some(all))
}

/// The passages that may hold a literal. One passage has all of it, since it stands on one line.
fn holding(
    view: &View<'_>,
    literal: &Literal,
    pages: &mut Pages,
    go_on: GoOn<'_>,
) -> Result<Option<HashSet<i64>>> {
    let mut left: Option<HashSet<i64>> = None;
    let line = literal.text.split(char::is_control).max_by_key(|line| line.len()).unwrap_or_default();
    let mut pieces = pieces(line);
    // Whole words cost least to look up, and long ones are rare.
    pieces.sort_by_key(|piece| (!piece.begins, !piece.ends, usize::MAX - piece.text.len()));
    for piece in &pieces {
        if left.as_ref().is_some_and(|left| left.len() <= FEW) {
            break;
        }
        let Some(rows) = passages_with(view, piece, pages, go_on)? else { continue };
        left = Some(match left {
            Some(left) => rows.into_iter().filter(|row| left.contains(row)).collect(),
            None => rows.into_iter().collect(),
        });
    }
    Ok(left)
}

/// The passages with words that `piece` can be, or be part of; `None` where they are too many, or the index does not tell.
fn passages_with(
    view: &View<'_>,
    piece: &Piece,
    pages: &mut Pages,
    go_on: GoOn<'_>,
) -> Result<Option<Vec<i64>>> {
    if piece.begins && piece.ends {
        let rows = view.newest_passages(&quote(&piece.text), 0, MOST_PASSAGES)?;
        return Ok((rows.len() < MOST_PASSAGES).then_some(rows));
    }
    if piece.text.len() < if piece.begins { LONG_ENOUGH.0 } else { LONG_ENOUGH.1 } {
        return Ok(None);
    }
    let Some(kept) = Kept::of(&piece.text, piece.begins) else { return Ok(None) };
    let mut words: HashSet<String> = HashSet::new();
    let from = kept.beginning().unwrap_or_default();
    let to = kept.beginning().map(|beginning| format!("{beginning}\u{10ffff}"));
    let all_read = view.index_words(from, to.as_deref(), pages, |word| {
        if kept.may_be(word) {
            words.insert(String::from_utf8_lossy(word).into_owned());
        }
        words.len() <= MOST_WORDS && go_on().is_ok()
    })?;
    go_on()?;
    if !all_read {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for word in words {
        go_on()?;
        let (with, are_all) = view.passages_with(&word, MOST_PASSAGES)?;
        rows.extend(with);
        if !are_all || rows.len() >= MOST_PASSAGES {
            return Ok(None);
        }
    }
    Ok(Some(rows))
}

/// The words and pieces of words of a literal that the index can be asked for. What stands beside a letter that is not of ASCII
/// may be one word with it or not: so it counts as open there.
fn pieces(literal: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = None;
    let mut before = ' ';
    let closed = |c: Option<char>| c.is_some_and(|c| c.is_ascii() && !c.is_ascii_alphanumeric());
    for (at, c) in literal.char_indices().chain([(literal.len(), ' ')]) {
        // The index has them in pairs.
        if is_paired(before) && is_paired(c) {
            pieces.push(Piece { text: format!("{before}{c}"), begins: true, ends: true });
        }
        before = c;
        if c.is_ascii_alphanumeric() {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            let text = literal[from..at].to_ascii_lowercase();
            let begins = closed(literal[..from].chars().next_back());
            pieces.push(Piece { text, begins, ends: closed(literal[at..].chars().next()) });
        }
    }
    pieces
}

/// Ideographs that are letters to every version of Unicode.
fn is_paired(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_know_where_a_word_may_go_on() {
        let read = |literal: &str| -> Vec<(String, bool, bool)> {
            pieces(literal).into_iter().map(|piece| (piece.text, piece.begins, piece.ends)).collect()
        };
        let piece = |text: &str, begins, ends| (text.to_owned(), begins, ends);
        assert_eq!(read("Word"), [piece("word", false, false)]);
        assert_eq!(
            read("fn parse_line("),
            [piece("fn", false, true), piece("parse", true, true), piece("line", true, true)]
        );
        assert_eq!(
            read("naïve.x"),
            [piece("na", false, false), piece("ve", false, true), piece("x", true, false)]
        );
        assert_eq!(read("-- 构建失"), [piece("构建", true, true), piece("建失", true, true)]);
    }
}
