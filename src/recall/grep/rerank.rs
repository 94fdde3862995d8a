//! What the index cannot see of a passage: how near the words of the query stand to each other, and who said them.

use super::query::{Query, squeezed};
use super::words::{are_kin, words};
use crate::model::humps;

/// Two words of the query with at most this many others between them are neighbors.
const NEAR: usize = 6;
/// What all neighbors together add.
const NEIGHBORS: f64 = 1.5;
/// What the query gains as it stands, word by word or sign by sign.
const AS_IT_STANDS: f64 = 1.5;
/// Letters of a query that is looked for without what stands between its words.
const LONG_ENOUGH: usize = 6;

/// What the person said weighs more than what a tool printed.
pub(super) fn role_weight(role: &str) -> f64 {
    match role {
        "user" => 1.5,
        "toolResult" => 0.85,
        _ => 1.0,
    }
}

/// By how much a passage gains from holding the words of the query together, as they were asked.
pub(super) fn closeness(query: &Query, passage: &str) -> f64 {
    let lower = passage.to_lowercase();
    let plain: Vec<&str> = words(&lower).map(|(_, word)| word).collect();
    let mut gain = 1.0 + NEIGHBORS * share_of_neighbors(&query.words, &pieces(passage));
    if !query.phrase.is_empty() && plain.windows(query.phrase.len()).any(|window| window == query.phrase) {
        gain *= AS_IT_STANDS;
    }
    let is_written_together =
        || query.squeezed.len() >= LONG_ENOUGH && squeezed(passage).contains(&query.squeezed);
    if lower.contains(&query.whole) || is_written_together() {
        gain *= AS_IT_STANDS;
    }
    gain
}

/// What the frequent words that a passage has add to its score.
pub(super) fn frequent_words(frequent: &[(String, f64)], passage: &str) -> f64 {
    if frequent.is_empty() {
        return 0.0;
    }
    let lower = passage.to_lowercase();
    let has = |wanted: &str| words(&lower).any(|(_, word)| are_kin(word, wanted));
    frequent.iter().filter(|(word, _)| has(word)).map(|(_, worth)| worth).sum()
}

/// The words of a passage in lower case, identifiers whole and in pieces, each with its position.
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

/// The share of neighboring words of the query that are near each other in `pieces` too.
fn share_of_neighbors(query: &[String], pieces: &[(usize, String)]) -> f64 {
    let places = |wanted: &String| -> Vec<usize> {
        pieces.iter().filter(|(_, piece)| are_kin(piece, wanted)).map(|(at, _)| *at).collect()
    };
    let positions: Vec<Vec<usize>> = query.iter().map(places).collect();
    let near = |pair: &&[Vec<usize>]| {
        pair[0].iter().any(|one| pair[1].iter().any(|other| one != other && one.abs_diff(*other) <= NEAR + 1))
    };
    #[expect(clippy::cast_precision_loss, reason = "both are small")]
    match positions.len() {
        0 | 1 => 0.0,
        n => positions.windows(2).filter(near).count() as f64 / (n - 1) as f64,
    }
}
