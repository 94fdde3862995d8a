//! Uses the index to find the messages that may contain a required literal, so that not all of the history is
//! read.
//!
//! The index holds stems of words and their positions, but a literal may begin and end within a word. Its
//! whole words are looked up, adjacent ones as a phrase. For a piece that may be part of a longer word, the
//! index's own words show which words that can be. Each piece may be frequent even if the literal is rare, so
//! the positions of all pieces must fit together. A literal with no piece that the index can look up is not
//! narrowed at all, and messages with lines split within words are always read.

use std::collections::HashSet;

use super::literal::{Literal, Required};
use super::pieces::{Piece, phrases, pieces};
use crate::error::Result;
use crate::ids::MessageId;
use crate::store::{Kept, Pages, View};

/// The most positions read per search: as many as there are passages, within these bounds. Reading a position
/// takes some 70 ns, reading a passage a microsecond.
const PLACES: (usize, usize) = (100_000, 4_000_000);
/// The most passages that may remain; with more, everything is read. In a large store it is one in `ONE_IN`.
const MOST_LEFT: usize = 20_000;
const ONE_IN: usize = 16;
/// With this few passages left, narrowing further would cost more than it saves.
const FEW: usize = 300;
/// The most index words that may contain a piece.
const MOST_WORDS: usize = 5_000;
/// Pages of index words read per search: some 800 MB.
const PAGES: usize = 200_000;
/// The fewest letters of a piece to look up words that contain it.
const LONG_ENOUGH: usize = 3;

/// Fails if the search was cancelled.
type GoOn<'a> = &'a dyn Fn() -> Result<()>;

/// A passage's row, with the position where a chain of pieces would begin in its lowest bits.
type Place = i64;
const PLACE_BITS: u32 = 16;

/// The index lookups for one search.
pub(super) struct Narrowing<'a> {
    view: &'a View<'a>,
    /// Fails if the search was cancelled.
    go_on: GoOn<'a>,
    pages: Pages,
    places: usize,
    most_left: usize,
    few: usize,
}

impl<'a> Narrowing<'a> {
    /// # Errors
    /// When the store can't be read.
    pub fn new(view: &'a View<'a>, go_on: GoOn<'a>) -> Result<Self> {
        let passages = usize::try_from(view.index().last_passage()?).unwrap_or_default();
        Ok(Self {
            view,
            go_on,
            pages: Pages(PAGES),
            places: passages.clamp(PLACES.0, PLACES.1),
            most_left: MOST_LEFT.max(passages / ONE_IN),
            few: FEW,
        })
    }

    /// Looks up every piece, even if few passages are left.
    #[cfg(test)]
    pub fn by_every_piece(self) -> Self {
        Self { few: 0, ..self }
    }

    /// The messages that may contain one of the literals, newest first; `None` if the index can't tell.
    ///
    /// # Errors
    /// When the store can't be read or `go_on` fails.
    pub fn candidates(mut self, required: &Required) -> Result<Option<Vec<MessageId>>> {
        let mut rows = Vec::new();
        for literal in &required.0 {
            match self.holding(literal)? {
                Some(holding) => rows.extend(holding),
                None => return Ok(None),
            }
        }
        rows.sort_unstable();
        rows.dedup();
        if rows.len() > self.most_left {
            return Ok(None);
        }
        let mut all: HashSet<MessageId> = self.view.index().with_broken_lines()?.into_iter().collect();
        for row in rows {
            all.extend(self.view.index().message_at(row)?);
        }
        let mut all: Vec<MessageId> = all.into_iter().collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Some(all))
    }

    /// The passages that may contain a literal, oldest first. A literal is on one line, so one passage
    /// contains all of it.
    fn holding(&mut self, literal: &Literal) -> Result<Option<Vec<i64>>> {
        let line = literal.text.split(char::is_control).max_by_key(|line| line.len()).unwrap_or_default();
        let pieces = pieces(line);
        let mut left: Option<Vec<i64>> = None;
        // Whole words are the cheapest to look up.
        for phrase in phrases(&pieces) {
            if self.are_few(left.as_ref()) {
                break;
            }
            let Some(rows) = self.passages_with(&phrase)? else { continue };
            left = Some(match left {
                Some(left) => in_both(left, &rows),
                None => rows,
            });
        }
        let mut open: Vec<&Piece> = pieces.iter().filter(|piece| !piece.is_whole()).collect();
        // Next, pieces that begin a word. Long pieces are rare.
        open.sort_by_key(|piece| (!piece.begins, usize::MAX - piece.text.len()));
        let mut chain: Option<(usize, Vec<Place>)> = None;
        for piece in open {
            if self.are_few(left.as_ref()) {
                break;
            }
            let Some(mut places) = self.places_of(piece, left.as_deref())? else { continue };
            // The distance between pieces is the same in the index as in the literal.
            if let Some((_, others)) = chain.take_if(|(chain, _)| *chain == piece.chain) {
                places = in_both(places, &others);
            }
            let mut rows: Vec<i64> = places.iter().map(|place| place >> PLACE_BITS).collect();
            rows.dedup();
            left = Some(rows);
            chain = Some((piece.chain, places));
        }
        Ok(left)
    }

    fn are_few(&self, left: Option<&Vec<i64>>) -> bool {
        left.is_some_and(|left| left.len() <= self.few)
    }

    /// A piece gets at most half of the remaining positions: later ones may be rarer.
    fn share(&self) -> usize {
        self.places / 2
    }

    /// The passages with a phrase of whole words; `None` if there are too many.
    fn passages_with(&mut self, phrase: &str) -> Result<Option<Vec<i64>>> {
        (self.go_on)()?;
        let (rows, are_all) = self.view.index().oldest_passages(phrase, self.share())?;
        self.places -= rows.len();
        Ok(are_all.then_some(rows))
    }

    /// The positions, in the remaining passages, of words that `piece` may be or be part of. `None` if there
    /// are too many or the index can't tell.
    fn places_of(&mut self, piece: &Piece, left: Option<&[i64]>) -> Result<Option<Vec<Place>>> {
        let Some(words) = self.words_with(piece)? else { return Ok(None) };
        let at = i64::try_from(piece.at).unwrap_or_default();
        let mut places = Vec::new();
        let mut rest = self.share();
        for word in words {
            (self.go_on)()?;
            let looked_at = self.view.index().places_of(&word, rest, |row, offset| {
                if left.is_none_or(|left| left.binary_search(&row).is_ok()) {
                    // A position too large for the bits wraps around, equally for all pieces of a chain.
                    places.push(row << PLACE_BITS | (offset - at) & ((1 << PLACE_BITS) - 1));
                }
            })?;
            if looked_at > rest {
                self.places -= self.share();
                return Ok(None);
            }
            rest -= looked_at;
        }
        self.places -= self.share() - rest;
        places.sort();
        places.dedup();
        Ok(Some(places))
    }

    /// The index words that `piece` may be or be part of; `None` if there are too many or the index can't
    /// tell.
    fn words_with(&mut self, piece: &Piece) -> Result<Option<HashSet<String>>> {
        if piece.text.len() < LONG_ENOUGH {
            return Ok(None);
        }
        let Some(kept) = Kept::of(&piece.text, piece.begins) else { return Ok(None) };
        let mut words = HashSet::new();
        let from = kept.beginning().unwrap_or_default();
        let to = kept.beginning().map(|beginning| format!("{beginning}\u{10ffff}"));
        let go_on = self.go_on;
        let all_read = self.view.index().index_words(from, to.as_deref(), &mut self.pages, |word| {
            if kept.may_be(word) {
                words.insert(String::from_utf8_lossy(word).into_owned());
            }
            words.len() <= MOST_WORDS && go_on().is_ok()
        })?;
        go_on()?;
        Ok(all_read.then_some(words))
    }
}

/// The intersection of two sorted lists, in order.
fn in_both(mut one: Vec<i64>, other: &[i64]) -> Vec<i64> {
    let mut other = other.iter().peekable();
    one.retain(|row| {
        while other.next_if(|before| *before < row).is_some() {}
        other.peek() == Some(&row)
    });
    one
}
