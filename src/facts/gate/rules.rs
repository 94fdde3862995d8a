//! The user's rules and decisions: clauses that limit what may be done, or that answer the model's question,
//! and whether a summary contains them.
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
use crate::text::one_line;

/// The most rules; the fewest words that describe one; its characters in the line; the share of its words, by
/// weight, that must recur.
const MOST: usize = 100;
const FEWEST: usize = 2;
const LONGEST: usize = 60;
const ECHO: f64 = 0.2;
/// Letters by which two forms of a word count as equal: `locks`, `locking`.
const STEM: usize = 4;
/// What separates clauses.
const BREAKS: [&str; 10] = ["; ", ", ", " (", "、", " – ", " — ", " and ", " und ", " et ", " y "];

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

/// The rules found, each as shown and as meant, the number of sentences that contain each word, and the
/// question that was just asked.
#[derive(Default)]
pub(super) struct Rules {
    said: Vec<(String, String, usize)>,
    spread: HashMap<String, f64>,
    question: String,
}

impl Rules {
    pub(super) fn read(&mut self, text: &str, at: usize, by_user: bool) {
        for sentence in sentences(text) {
            for word in telling(sentence).collect::<HashSet<_>>() {
                *self.spread.entry(word).or_default() += 1.0;
            }
            let question = std::mem::take(&mut self.question);
            if asks(&folded(sentence)) {
                sentence.clone_into(&mut self.question);
            } else if by_user {
                let is_limit = |clause: &&str| LIMIT.as_ref().is_some_and(|limit| limit.is_match(clause));
                for clause in clauses(sentence).into_iter().filter(is_limit) {
                    // `no, separate` means nothing without the question, nor one word without its sentence.
                    let is_enough = |said: &str| telling(said).count() >= FEWEST;
                    let asked = format!("{question} {sentence}");
                    let meant = match is_enough(clause) {
                        true => clause,
                        false if question.is_empty() => sentence,
                        false => &asked,
                    };
                    if self.said.len() < MOST && is_enough(meant) {
                        // What is before a colon only introduces it.
                        let shown = meant.rsplit(": ").next().unwrap_or(meant);
                        self.said.push((one_line(shown, LONGEST), meant.to_owned(), at));
                    }
                }
            }
        }
    }

    pub(super) fn anchors(self, weight: u32) -> impl Iterator<Item = Anchor> {
        let Self { said, spread, .. } = self;
        said.into_iter().map(move |(text, meant, seen)| {
            let words: HashSet<String> = telling(&meant).collect();
            let about = words
                .into_iter()
                .map(|word| (1.0 / spread.get(&word).unwrap_or(&1.0), word))
                .map(|(tells, word)| (word, tells))
                .collect();
            Anchor { kind: Kind::Rule, text, weight, key: meant, number: None, about, has_twin: false, seen }
        })
    }
}

/// The clauses of a sentence; what says nothing by itself belongs to the next.
fn clauses(sentence: &str) -> Vec<&str> {
    let breaks = BREAKS.iter().flat_map(|mark| sentence.match_indices(mark));
    let mut breaks: Vec<(usize, usize)> = breaks.map(|(at, mark)| (at, at + mark.len())).collect();
    breaks.sort_unstable();
    breaks.push((sentence.len(), sentence.len()));
    let (mut all, mut start) = (Vec::new(), 0);
    for (end, next) in breaks {
        let clause = sentence.get(start..end).unwrap_or_default();
        if telling(clause).next().is_some() {
            all.push(clause.trim_end_matches(['.', '!', '。', ' ', ')']));
            start = next;
        }
    }
    all
}

/// Whether the `words` of one sentence express what a rule is `about`.
pub(super) fn is_echoed(about: &[(String, f64)], words: &HashSet<String>) -> bool {
    let all: f64 = about.iter().map(|(_, tells)| tells).sum();
    let said: f64 = about.iter().filter(|(word, _)| words.contains(word)).map(|(_, tells)| tells).sum();
    said >= ECHO * all
}

/// The words that describe a sentence, by their beginnings; in scripts without spaces, pairs of characters.
pub(super) fn telling(text: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let is_acronym = word.chars().filter(|c| c.is_uppercase()).count() > 1;
        let word = word.to_lowercase();
        let letters: Vec<char> = word.chars().collect();
        let is_wide = |c: &char| *c >= '\u{2e80}';
        if letters.iter().any(is_wide) {
            all.extend(
                letters.windows(2).filter(|pair| pair.iter().all(is_wide)).map(|pair| pair.iter().collect()),
            );
        } else if word.contains(|c: char| c.is_ascii_digit()) {
            all.push(word);
        } else if is_acronym || letters.len() > 3 && !is_among(FILLERS, &word) {
            let ends = usize::from(letters.len() == STEM && letters.ends_with(&['s']));
            all.push(letters.into_iter().take(STEM - ends).collect());
        }
    }
    all.into_iter()
}
