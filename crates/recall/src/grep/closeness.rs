//! Scores what the index can't see in a passage: how close the query's words are.

use super::candidates::Candidates;
use super::query::Query;
use super::words::{are_kin, words};
use lcm_model::policy::float;
use lcm_model::{as_indexed, folded, humps, plain};

/// Two words of the query are near each other with at most this many words between them.
const NEAR: usize = 6;
/// The bonus if all words are near their neighbors.
const NEIGHBORS: f64 = 2.5;
/// The weights of neighbors in reverse order, and of the farthest neighbors.
const REVERSED: f64 = 0.7;
const FARTHEST: f64 = 0.6;
/// The words of a window, and its bonus if it contains the whole query.
const WINDOW: usize = 12;
const WITHIN: f64 = 0.5;
/// The bonus for an identifier made of the query's words.
const MADE_OF: f64 = 2.0;
/// The most words of a query and of an identifier that are compared.
const LONGEST_IDENTIFIER: usize = 12;
/// The weight of a synonym.
const MEANS_THE_SAME: f64 = 0.5;
/// The weight of a word that the index did not count.
const USUALLY_TOLD: f64 = 3.0;
/// The bonus for all words of the query in a row, and again for the query exactly.
const AS_IT_STANDS: f64 = 1.5;

/// How a passage compares with the query.
pub(super) struct Closeness {
    /// The bonus for having the query's words close together and in order.
    pub gain: f64,
    /// How well it has each word of the query.
    pub has: Vec<f64>,
}

/// A query to compare passages with.
pub(super) struct Lens<'a> {
    query: &'a Query,
    words: Vec<QueryWord<'a>>,
    /// The weight of all words.
    worth: f64,
}

/// A word of the query.
struct QueryWord<'a> {
    word: &'a str,
    /// The index words that replace it.
    stand_ins: &'a [String],
    synonyms: &'a [&'static str],
    /// The weight of finding it in a passage.
    worth: f64,
}

/// The positions of a query word, or its replacement, among a passage's words, each with its weight.
type Places = Vec<(usize, f64)>;

impl<'a> Lens<'a> {
    pub fn new(query: &'a Query, reach: &'a Candidates) -> Self {
        let wanted = |word: &'a String| QueryWord {
            word,
            stand_ins: reach.stand_ins.get(word).map(Vec::as_slice).unwrap_or_default(),
            synonyms: query.synonyms.get(word).map(Vec::as_slice).unwrap_or_default(),
            worth: reach.worth.get(&*as_indexed(word)).copied().unwrap_or(USUALLY_TOLD),
        };
        let words: Vec<QueryWord<'_>> = query.words.iter().map(wanted).collect();
        Self { query, worth: words.iter().map(|wanted| wanted.worth).sum(), words }
    }

    /// Compares a passage with the query.
    pub fn read(&self, passage: &str) -> Closeness {
        let passage = &*plain(passage);
        let places = self.places(passage);
        let mut gain = self.as_it_stands(passage);
        if places.len() > 1 {
            gain *= 1.0 + NEIGHBORS * neighbors(&places);
            gain *= 1.0 + WITHIN * self.best_window(&places).powf(1.5);
            gain *= 1.0 + MADE_OF * self.best_identifier(passage);
        }
        Closeness { gain, has: best(&places) }
    }

    /// How well a text has each word of the query.
    pub fn has(&self, text: &str) -> Vec<f64> {
        best(&self.places(&plain(text)))
    }

    fn places(&self, text: &str) -> Vec<Places> {
        let pieces = pieces(text);
        self.words.iter().map(|wanted| wanted.places(&pieces)).collect()
    }

    /// The share of the query that these words make, rarer ones more.
    pub fn share(&self, has: &[f64]) -> f64 {
        let found: f64 = has.iter().zip(&self.words).map(|(has, wanted)| has * wanted.worth).sum();
        if self.worth > 0.0 { found / self.worth } else { 0.0 }
    }

    fn as_it_stands(&self, passage: &str) -> f64 {
        let Query { phrase, whole, .. } = self.query;
        let lower = passage.to_lowercase();
        let plain: Vec<&str> = words(&lower).map(|(_, word)| word).collect();
        let has_all = !phrase.is_empty() && plain.windows(phrase.len()).any(|window| window == *phrase);
        AS_IT_STANDS.powi(i32::from(has_all) + i32::from(lower.contains(whole)))
    }

    /// The best share of the query within a few words.
    fn best_window(&self, places: &[Places]) -> f64 {
        let of_word = |(n, places): (usize, &Places)| -> Vec<(usize, usize, f64)> {
            places.iter().map(|(at, counts)| (*at, n, *counts)).collect()
        };
        let mut all: Vec<(usize, usize, f64)> = places.iter().enumerate().flat_map(of_word).collect();
        all.sort_by_key(|(at, ..)| *at);
        let mut best: f64 = 0.0;
        for (n, (start, ..)) in all.iter().enumerate() {
            let mut has = vec![0.0_f64; places.len()];
            for (_, word, counts) in all[n..].iter().take_while(|(at, ..)| *at <= start + WINDOW) {
                has[*word] = has[*word].max(*counts);
            }
            best = best.max(self.share(&has));
        }
        best
    }

    /// The highest share of query words in an identifier that contains them all, in any order.
    fn best_identifier(&self, passage: &str) -> f64 {
        if self.words.len() > LONGEST_IDENTIFIER {
            return 0.0;
        }
        let between = |c: char| !(c.is_alphanumeric() || c == '_' || c == '-');
        let share = |identifier: &str| {
            let pieces: Vec<String> =
                words(identifier).flat_map(|(_, word)| humps(word)).map(str::to_lowercase).collect();
            let has = |wanted: &QueryWord<'_>| pieces.iter().any(|piece| are_kin(piece, wanted.word));
            let fits = (self.words.len()..=LONGEST_IDENTIFIER).contains(&pieces.len());
            let share = float(self.words.len()) / float(pieces.len().max(1));
            if fits && self.words.iter().all(has) { share } else { 0.0 }
        };
        passage.split(between).map(share).fold(0.0, f64::max)
    }
}

impl QueryWord<'_> {
    fn places(&self, pieces: &[(usize, String)]) -> Places {
        let counts = |piece: &str| {
            let is_meant =
                are_kin(piece, self.word) || self.stand_ins.iter().any(|stem| piece.starts_with(stem));
            let counts = if is_meant { 1.0 } else { MEANS_THE_SAME };
            (is_meant || self.synonyms.iter().any(|alike| are_kin(piece, alike))).then_some(counts)
        };
        pieces.iter().filter_map(|(at, piece)| Some((*at, counts(piece)?))).collect()
    }
}

/// How well each word is found.
fn best(places: &[Places]) -> Vec<f64> {
    places.iter().map(|places| places.iter().map(|(_, counts)| *counts).fold(0.0, f64::max)).collect()
}

/// The share of the query's neighboring words that are also near each other in a passage.
fn neighbors(places: &[Places]) -> f64 {
    let all: f64 = places.windows(2).map(|pair| nearest(&pair[0], &pair[1])).sum();
    all / float(places.len() - 1)
}

/// How near one word is to the next.
fn nearest(one: &Places, next: &Places) -> f64 {
    let mut best: f64 = 0.0;
    for (from, counts) in one {
        for (to, others) in next {
            let apart = from.abs_diff(*to);
            if (1..=NEAR + 1).contains(&apart) {
                let nearness = 1.0 - (1.0 - FARTHEST) * float(apart - 1) / float(NEAR);
                let order = if from < to { 1.0 } else { REVERSED };
                best = best.max(counts.min(*others) * nearness * order);
            }
        }
    }
    best
}

/// The score for frequent words in a passage.
pub(super) fn frequent_words(frequent: &[(String, f64)], passage: &str) -> f64 {
    if frequent.is_empty() {
        return 0.0;
    }
    let lower = folded(passage);
    let has = |wanted: &str| words(&lower).any(|(_, word)| are_kin(word, wanted));
    frequent.iter().filter(|(word, _)| has(word)).map(|(_, worth)| worth).sum()
}

/// The words of a passage in lowercase, identifiers whole and split, each with its position.
fn pieces(passage: &str) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for (_, word) in words(passage) {
        let humps = humps(word);
        if humps.len() > 1 {
            pieces.push((at, word.to_lowercase()));
        }
        for hump in humps {
            pieces.push((at, hump.to_lowercase()));
            at += 1;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closeness(query: &str, passage: &str) -> f64 {
        let (query, reach) = (Query::parse(query), Candidates::default());
        Lens::new(&query, &reach).read(passage).gain
    }

    #[test]
    fn adjacent_ordered_and_joined_words_rank_higher() {
        let far = " lorem ipsum dolor sit amet".repeat(3);
        for (query, better, worse) in [
            ("printer checksum", "the printer has a checksum", "the checksum of the printer"),
            ("printer checksum", "printer with its checksum", &format!("printer{far} checksum")),
            ("type content", "if contentType is set", "the content of a type is set"),
            ("type content", "contentType", "defaultContentTypeName"),
            ("repaired printer", "the printer was fixed", "the printer was sold"),
            ("content_", "`content_` first", "content first"),
        ] {
            assert!(closeness(query, better) > closeness(query, worse), "{query}: {better}");
        }
    }
}
