//! The user's rules and decisions: clauses that a summary must repeat, and whether it contains them.
//!
//! A summary words a rule differently, but keeps some of its words. So a clause of the summary that has
//! some of the rule's words, weighted by rarity, counts as containing the rule.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::model::{Feature, Features};
use super::patterns::is_among;
use super::{Anchor, Kind};
use crate::facts::folding::folded;
use crate::facts::sentences::sentences;
use crate::facts::words::asks;

/// The most clauses; the bytes of one that are shown.
const MOST: usize = 200;
const MOST_WORDS: usize = 40;
const SHOWN: usize = 48;
/// Letters by which two forms of a word count as equal.
const STEM: usize = 5;

/// Words for limits: no, only, at most, always, in the languages most used with agents.
const LIMITS: &str = concat!(
    r"(?i)(?-u:\b)(?:no|not|nobody|never|don'?t|cannot|can'?t|won't|zero|without|only|just the|must|should|shall|has to|have to",
    r"|needs? to|max|minimum|at most|at least|always|each|every|all|keep|stays?|use|instead|before|until|after|later",
    r"|ohne|nie|niemals|nicht|nur|keine?[nmrs]?|soll\w*|muss|müssen|darf|dürfen|immer|erst|sans|jamais|toujours|seulement|pas|doit|doivent",
    r"|sin|nunca|siempre|s[oó]lo|debe\w*|não|sempre|apenas|só|deve\w*|senza|mai|deve|devono)(?-u:\b)",
    r"|ない[でよ]|必ず|のみ|だけ|ください|不要|必须|只|禁止|마세요|반드시|только|никогда|всегда|нельзя",
);
static LIMIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LIMITS).ok());
/// Words without meaning.
const FILLERS: &str = " must should never always only with that this from have will when then than they them their there what \
    which into just also need needs keep make please nicht ohne immer oder aber wird werden para como pour dans avec \
    the and for not but are was has its you all can any may get got use our out now yes via let too how der die das und \
    den ein mit von auf les des une que los las con por del una não uma ";
/// Beginnings of clauses without meaning.
const STARTS: [&str; 12] =
    ["and ", "but ", "so ", "also ", "then ", "und ", "y ", "e ", "please ", "though ", "since ", "ok "];

/// The clauses found, and the number of clauses that contain each word.
#[derive(Default)]
pub(super) struct Rules {
    said: Vec<(String, Features)>,
    spread: HashMap<String, f64>,
}

impl Rules {
    pub(super) fn read(&mut self, text: &str, by_user: bool) {
        for sentence in sentences(text) {
            for word in telling(sentence).collect::<HashSet<_>>() {
                *self.spread.entry(word).or_default() += 1.0;
            }
            if !by_user || self.said.len() >= MOST {
                continue;
            }
            let is_question = asks(&folded(sentence));
            for (place, clause) in clauses(sentence).enumerate() {
                let mut features = Features::default();
                features.set(Feature::Limit, LIMIT.as_ref().is_some_and(|limit| limit.is_match(clause)));
                features.set(Feature::Question, is_question);
                features.set(Feature::Start, place == 0);
                self.said.push((clause.to_owned(), features));
            }
        }
    }

    pub(super) fn anchors(self) -> impl Iterator<Item = Anchor> {
        let Self { said, spread } = self;
        said.into_iter().map(move |(text, features)| {
            let about = about(&text).into_iter().take(MOST_WORDS).map(|word| {
                let tells = 1.0 / spread.get(&word).unwrap_or(&1.0);
                (word, tells)
            });
            Anchor {
                kind: Kind::Rule,
                text: shown(&text).to_owned(),
                about: about.collect(),
                key: text,
                number: None,
                has_twin: false,
                features,
            }
        })
    }
}

/// What a clause is about: its words, except those for a limit unless there are no others.
fn about(clause: &str) -> HashSet<String> {
    let rest = LIMIT.as_ref().map_or(clause.into(), |limit| limit.replace_all(clause, " "));
    let words: HashSet<String> = telling(&rest).collect();
    if words.is_empty() { telling(clause).collect() } else { words }
}

/// The parts of a sentence, without words that join them.
pub(super) fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let mut rest = sentence;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let is_end = |at: usize, c: char, next: &str| match c {
            '、' | '。' | '，' | '；' | '—' | '–' | '→' | '\n' => true,
            ',' | ';' | ':' | '.' | '!' | '?' => next.starts_with(char::is_whitespace) || next.is_empty(),
            '(' => rest[..at].ends_with(' '),
            ' ' => [" and ", " und ", " but "].iter().any(|word| rest[at..].starts_with(word)),
            _ => false,
        };
        let end = rest.char_indices().find(|(at, c)| is_end(*at, *c, &rest[at + c.len_utf8()..]));
        let (clause, next) = match end {
            Some((at, ' ')) => (&rest[..at], rest[at + 1..].split_once(' ').map_or("", |(_, next)| next)),
            Some((at, c)) => (&rest[..at], &rest[at + c.len_utf8()..]),
            None => (rest, ""),
        };
        rest = next;
        Some(clause)
    })
    .map(|clause| {
        let mut clause = clause.trim().trim_matches(['.', '!', '?', ')', '*', ' ']);
        while let Some(next) = STARTS.iter().find_map(|start| clause.strip_prefix(start)) {
            clause = next;
        }
        clause
    })
    .filter(|clause| clause.len() > 3 && telling(clause).next().is_some())
}

/// As many of its words as fit, from three before the limit if that is late.
fn shown(clause: &str) -> &str {
    if clause.len() <= SHOWN {
        return clause;
    }
    let limit = LIMIT.as_ref().and_then(|limit| limit.find(clause)).map_or(0, |limit| limit.start());
    let start = clause[..limit].trim_end().rmatch_indices(' ').nth(2).map_or(0, |(at, _)| at + 1);
    let start = if limit < SHOWN / 3 { 0 } else { start };
    let end = clause.floor_char_boundary(start + SHOWN);
    let text = &clause[start..end];
    if end == clause.len() { text } else { text.rsplit_once(' ').map_or(text, |(words, _)| words) }
}

/// The share of what a rule is `about` that the `words` of one clause express.
pub(super) fn echo(about: &[(String, f64)], words: &HashSet<String>) -> f64 {
    let all: f64 = about.iter().map(|(_, tells)| tells).sum();
    // `drop` and `dropped`, `deps` and `dependencies`.
    let is_same = |word: &str, other: &str| {
        let (word, other) = (word.trim_end_matches('s'), other.trim_end_matches('s'));
        word.len().min(other.len()) > 2 && (word.starts_with(other) || other.starts_with(word))
    };
    let is_said = |word: &str| words.contains(word) || words.iter().any(|other| is_same(word, other));
    let said: f64 = about.iter().filter(|(word, _)| is_said(word)).map(|(_, tells)| tells).sum();
    said / all
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
        } else if letters.len() > 2 && !is_among(FILLERS, word) {
            all.push(letters.into_iter().take(STEM).collect());
        }
    }
    all.into_iter()
}
