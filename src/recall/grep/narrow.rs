//! The messages that can hold a required literal, as the index tells, so that not all of a history is read.
//!
//! The index holds stems of words, and where they stand; a literal begins and ends anywhere, also within a word. Its whole words
//! are looked up, those that stand together as a phrase. Of one that may be part of a longer word, the index's own words say in
//! which it can be. Each of them may be frequent and the literal rare: so what counts is where all are, each in its
//! place. What holds one that the index cannot tell of is not narrowed at all, and messages whose lines were cut within words are
//! always read.

use std::collections::HashSet;

use super::literal::{Literal, Required};
use super::pieces::{Piece, phrases, pieces};
use crate::error::Result;
use crate::ids::MessageId;
use crate::store::{Kept, Pages, View};

/// Places in the index that are looked at for one search: as many as the store has passages, within these bounds. To look at one
/// takes some 70 ns, to read a passage a microsecond.
const PLACES: (usize, usize) = (100_000, 4_000_000);
/// Passages that may be left; with more, everything is read. In a large store it is one in so many.
const MOST_LEFT: usize = 20_000;
const ONE_IN: usize = 16;
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

/// A passage's row, and behind it, in its lowest bits, the place in it where a chain of pieces would begin.
type Place = i64;
const PLACE_BITS: u32 = 16;

/// A look at the index for one search.
pub(super) struct Narrowing<'a> {
    view: &'a View<'a>,
    /// Fails where nobody waits any more.
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

    /// Looks up every piece, also where few passages are left without it.
    #[cfg(test)]
    pub fn by_every_piece(self) -> Self {
        Self { few: 0, ..self }
    }

    /// The messages that may hold one of the literals, the newest first; `None` where the index does not tell.
    ///
    /// # Errors
    /// When the store can't be read, and what `go_on` says.
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

    /// The passages that may hold a literal, oldest first. One passage has all of it, since it stands on one line.
    fn holding(&mut self, literal: &Literal) -> Result<Option<Vec<i64>>> {
        let line = literal.text.split(char::is_control).max_by_key(|line| line.len()).unwrap_or_default();
        let pieces = pieces(line);
        let mut left: Option<Vec<i64>> = None;
        // Whole words cost least to look up.
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
        // Of those the ones that words begin with, and long ones are rare.
        open.sort_by_key(|piece| (!piece.begins, usize::MAX - piece.text.len()));
        let mut chain: Option<(usize, Vec<Place>)> = None;
        for piece in open {
            if self.are_few(left.as_ref()) {
                break;
            }
            let Some(mut places) = self.places_of(piece, left.as_deref())? else { continue };
            // In the index one stands as far behind the other as in the literal.
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

    /// No piece takes more than half of what may still be looked at: others may be rarer.
    fn share(&self) -> usize {
        self.places / 2
    }

    /// The passages with a phrase of whole words; `None` where they are too many.
    fn passages_with(&mut self, phrase: &str) -> Result<Option<Vec<i64>>> {
        (self.go_on)()?;
        let (rows, are_all) = self.view.index().oldest_passages(phrase, self.share())?;
        self.places -= rows.len();
        Ok(are_all.then_some(rows))
    }

    /// The places of words that `piece` can be, or be part of, in those passages that are left; `None` where they are too many,
    /// or the index does not tell.
    fn places_of(&mut self, piece: &Piece, left: Option<&[i64]>) -> Result<Option<Vec<Place>>> {
        let Some(words) = self.words_with(piece)? else { return Ok(None) };
        let at = i64::try_from(piece.at).unwrap_or_default();
        let mut places = Vec::new();
        let mut rest = self.share();
        for word in words {
            (self.go_on)()?;
            let looked_at = self.view.index().places_of(&word, rest, |row, offset| {
                if left.is_none_or(|left| left.binary_search(&row).is_ok()) {
                    // What does not fit into the bits comes round again, for all pieces of a chain alike.
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

    /// The words of the index that `piece` can be, or be part of; `None` where they are too many, or the index does not tell.
    fn words_with(&mut self, piece: &Piece) -> Result<Option<HashSet<String>>> {
        if piece.text.len() < if piece.begins { LONG_ENOUGH.0 } else { LONG_ENOUGH.1 } {
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

/// What stands in both, in order; both are in order.
fn in_both(mut one: Vec<i64>, other: &[i64]) -> Vec<i64> {
    let mut other = other.iter().peekable();
    one.retain(|row| {
        while other.next_if(|before| *before < row).is_some() {}
        other.peek() == Some(&row)
    });
    one
}
