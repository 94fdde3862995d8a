//! The user's rules and decisions: sentences that limit what may be done, and whether a summary contains
//! them.
//!
//! A summary words a rule differently, but keeps some of its words. So a sentence of the summary that has
//! some of the rule's words, weighted by rarity, counts as containing the rule.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::patterns::is_among;
use super::{Anchor, Kind};
use crate::facts::folding::folded;
use crate::facts::sentences::sentences;
use crate::facts::words::asks;

/// The most rules; the fewest words that describe one; the share of their weight that must recur.
const MOST: usize = 100;
const FEWEST: usize = 2;
const ECHO: f64 = 0.2;
/// Letters by which two forms of a word count as equal.
const STEM: usize = 5;

/// Words for limits: no, only, at most, always, in the languages most used with agents.
const LIMITS: &str = concat!(
    r"(?i)(?-u:\b)(?:no|not|nobody|nothing|never|don'?t|cannot|can'?t|won't|zero|without|only|just the|must|should|shall|has to|have to",
    r"|needs? to|want|max|minimum|at most|at least|always|each|every|all|keep|stays?|same|use|instead|before|until|after|later",
    r"|ohne|nie|niemals|nicht|nur|keine?[nmrs]?|soll\w*|muss|müssen|darf|dürfen|immer|erst|sans|jamais|toujours|seulement|pas|doit|doivent",
    r"|sin|nunca|siempre|s[oó]lo|debe\w*|não|sempre|apenas|só|deve\w*|senza|mai|deve|devono)(?-u:\b)",
    r"|ない[でよ]|必ず|のみ|だけ|ください|不要|必须|只|禁止|마세요|반드시|только|никогда|всегда|нельзя",
);
static LIMIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LIMITS).ok());
/// Long words without meaning.
const FILLERS: &str = " must should never always only with that this from have will when then than they them their there what \
    which into just also need needs keep make please nicht ohne immer oder aber wird werden para como pour dans avec ";

/// The rules found, and the number of sentences that contain each word.
#[derive(Default)]
pub(super) struct Rules {
    said: Vec<(String, usize)>,
    spread: HashMap<String, f64>,
}

impl Rules {
    pub(super) fn read(&mut self, text: &str, at: usize, by_user: bool) {
        for sentence in sentences(text) {
            for word in telling(sentence).collect::<HashSet<_>>() {
                *self.spread.entry(word).or_default() += 1.0;
            }
            let is_rule = || LIMIT.as_ref().is_some_and(|limit| limit.is_match(sentence));
            if by_user && self.said.len() < MOST && is_rule() && !asks(&folded(sentence)) {
                self.said.push((sentence.to_owned(), at));
            }
        }
    }

    pub(super) fn anchors(self, weight: u32) -> impl Iterator<Item = Anchor> {
        let Self { said, spread } = self;
        said.into_iter().filter_map(move |(sentence, seen)| {
            let words: HashSet<String> = telling(&sentence).collect();
            let about: Vec<_> = words
                .into_iter()
                .map(|word| (1.0 / spread.get(&word).unwrap_or(&1.0), word))
                .map(|(tells, word)| (word, tells))
                .collect();
            (about.len() >= FEWEST).then(|| Anchor {
                kind: Kind::Rule,
                text: shown(&sentence).to_owned(),
                weight,
                key: sentence,
                number: None,
                about,
                has_twin: false,
                seen,
            })
        })
    }
}

/// The limiting clause, without its surroundings.
fn shown(sentence: &str) -> &str {
    let limit = LIMIT.as_ref().and_then(|limit| limit.find(sentence)).map_or(0, |limit| limit.start());
    let breaks = [", ", "; ", ": ", " (", "、", " – ", " — "];
    let start = breaks.iter().filter_map(|mark| Some(sentence[..limit].rfind(mark)? + mark.len())).max();
    let rest = &sentence[start.unwrap_or(0)..];
    let end = breaks
        .iter()
        .filter_map(|mark| {
            Some(rest[rest.floor_char_boundary(20)..].find(mark)? + rest.floor_char_boundary(20))
        })
        .min();
    rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', '!', '。', ' '])
}

/// Whether the `words` of one sentence express what a rule is `about`.
pub(super) fn is_echoed(about: &[(String, f64)], words: &HashSet<String>) -> bool {
    let all: f64 = about.iter().map(|(_, tells)| tells).sum();
    let said: f64 = about.iter().filter(|(word, _)| words.contains(word)).map(|(_, tells)| tells).sum();
    said >= ECHO * all
}

/// The words that describe a sentence, by their beginnings; in scripts without spaces, pairs of characters.
pub(super) fn telling(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let mut all = Vec::new();
    for word in lower.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let letters: Vec<char> = word.chars().collect();
        let is_wide = |c: &char| *c >= '\u{2e80}';
        if letters.iter().any(is_wide) {
            all.extend(
                letters.windows(2).filter(|pair| pair.iter().all(is_wide)).map(|pair| pair.iter().collect()),
            );
        } else if word.contains(|c: char| c.is_ascii_digit()) {
            all.push(word.to_owned());
        } else if letters.len() > 3 && !is_among(FILLERS, word) {
            all.push(letters.into_iter().take(STEM).collect());
        }
    }
    all.into_iter()
}
