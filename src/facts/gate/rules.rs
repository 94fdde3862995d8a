//! The user's rules and decisions: clauses that limit what may be done, or that answer the model's question,
//! and whether a summary contains them.
//!
//! A summary words a rule differently, but keeps some of its words. So a sentence of the summary that has
//! some of the rule's words, weighted by rarity, counts as containing the rule; it needs more of them if
//! nothing in it says that something is limited.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::numbers::{Number, numbers};
use super::patterns::is_among;
use super::{Anchor, Kind};
use crate::facts::folding::folded;
use crate::facts::sentences::sentences;
use crate::facts::words::asks;
use crate::text::one_line;

/// The most rules; the fewest words that describe one; its characters in the line; bytes of an order, and of
/// a message that gives orders in passing.
const MOST: usize = 100;
const FEWEST: usize = 2;
const LONGEST: usize = 80;
const ORDER: usize = 60;
const ANSWER: usize = 500;
/// The share of its words, by weight, that must recur in a sentence; and in one that limits nothing, if it
/// does.
const ECHO: f64 = 0.2;
const UNLIMITED: f64 = 0.35;
/// Letters by which two forms of a word count as equal: `locks`, `locking`.
const STEM: usize = 4;
/// What separates clauses.
const BREAKS: [&str; 12] =
    ["; ", ", ", " (", "、", "，", "；", " – ", " — ", " and ", " und ", " et ", " y "];
/// What continues a clause after one.
const GOES_ON: [&str; 7] = ["not ", "without ", "nicht ", "per ", "par ", "por ", "pro "];

/// Words for limits: no, only, at most, always, in the languages most used with agents.
const LIMITS: &str = concat!(
    r"(?i)^(?:nobody|nothing) |(?-u:\b)(?:w/o|no|not|never|don'?t|cannot|can'?t|(?:i|we) won't|zero|without|only|just the|must|should|shall|has to|have to",
    r"|needs? to|max|minimum|at most|at least|always|keep|kept|stays?|instead|before|if|unless|insists on|forb[ia]d\w*|ban(?:s|ned)",
    r"|unchanged|untouched|remains?|forever|wants|verboten|interdit\w*|prohib\w*|proib\w*|exig\w*",
    r"|ohne|nie|niemals|nicht|nur|keine?[nmrs]?|soll\w*|muss|müssen|darf|dürfen|immer|erst|sans|jamais|toujours|seulement|pas|doit|doivent",
    r"|sin|nunca|siempre|s[oó]lo|debe\w*|tiene que|antes de|não|sempre|apenas|só|deve\w*|senza|mai|deve|devono)(?-u:\b)",
    r"|ない[でよ]|必ず|のみ|だけ|ください|不要|不能|别|必须|只|禁止|마세요|반드시|только|никогда|никто|\bне\b|всегда|нельзя",
);
static LIMIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LIMITS).ok());
/// What begins or marks a report instead of an order, and what begins an order that decides nothing: to look, to
/// run, to go on.
const STORIES: &str = concat!(
    r"(?i)^(?:so |and |but |now )*(?:it|it's|it'd|they|we|he|she|that|that's|this|there|i'm|i was|i had|es|il|elle)(?-u:\b)",
    r"|(?-u:\b)(?:was|were|had|did|is|are|has|will|would|may|might|war|waren|ist|sind|était|est|sigue|estaba)(?-u:\b)",
    r"|^(?:the|an?|der|die|das) |(?:^|: )(?:(?:please|pls|now|then|and|so|ok),? )*(?:read|look|show|list|find|search|check|explain",
    r"|tell|describe|summarize|review|run|try|test|go|continue)(?-u:\b)",
);
static STORY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(STORIES).ok());
/// Long words without meaning.
const FILLERS: &str = " must should never always only with that this from have will when then than they them their there what \
    which into just also need needs keep make please nicht ohne immer oder aber wird werden para como pour dans avec good great fine nice perfect thanks very \
    looks works enough cool super bien merci gracias danke genial parfait okay exactly right correct agreed sounds though nothing nobody instead able wait ";

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
                let mut is_explained = at == 0 || text.len() > ANSWER;
                let is_digit = |c: char| c.is_ascii_digit();
                let is_short = |said: &str| telling(said).count() < FEWEST && !said.contains(is_digit);
                for clause in clauses(sentence) {
                    // After the first message, users mostly order and decide; after a limit, they explain it.
                    let is_order = !is_explained && clause.len() <= ORDER && !has_any(&STORY, clause);
                    let is_limit = has_any(&LIMIT, clause);
                    is_explained |= is_limit;
                    if !(is_order || is_limit) || clause.ends_with(" yet") {
                        continue;
                    }
                    // `no, separate` means nothing without the question, nor one word without its sentence.
                    let is_whole = question.is_empty() && is_limit;
                    let asked = format!("{question} {sentence}");
                    let meant = match (is_short(clause) && !is_whole, is_short(sentence)) {
                        (false, _) => clause,
                        (true, false) => sentence,
                        (true, true) => &asked,
                    };
                    // What is before a colon only introduces it, unless a mere word follows.
                    let last = meant.rsplit(": ").next().filter(|last| !is_short(last)).unwrap_or(meant);
                    let shown = one_line(last, if meant == asked { 2 * LONGEST } else { LONGEST });
                    let is_known = self.said.iter().any(|(known, ..)| known.contains(&shown));
                    if self.said.len() < MOST && (is_whole || !is_short(meant)) && !is_known {
                        self.said.push((shown, meant.to_owned(), at));
                    }
                }
            }
        }
    }

    pub(super) fn anchors(self, weight: u32) -> impl Iterator<Item = Anchor> {
        let Self { said, spread, .. } = self;
        said.into_iter().map(move |(text, meant, seen)| {
            let tells = |word: String| (1.0 / spread.get(&word).unwrap_or(&1.0), word);
            let about = about_of(&meant).into_iter().map(tells).map(|(tells, word)| (word, tells)).collect();
            let number = numbers(&meant).into_iter().find(Number::has_unit);
            Anchor { kind: Kind::Rule, text, weight, key: meant, number, about, has_twin: false, seen }
        })
    }
}

fn has_any(words: &LazyLock<Option<Regex>>, text: &str) -> bool {
    words.as_ref().is_some_and(|words| words.is_match(text))
}

/// The clauses of a sentence; what says nothing by itself belongs to the next.
fn clauses(sentence: &str) -> Vec<&str> {
    let breaks = BREAKS.iter().flat_map(|mark| sentence.match_indices(mark));
    let goes_on = |next: usize| GOES_ON.iter().any(|word| sentence[next..].starts_with(word));
    let breaks = breaks.map(|(at, mark)| (at, at + mark.len())).filter(|(_, next)| !goes_on(*next));
    let mut breaks: Vec<(usize, usize)> = breaks.collect();
    breaks.sort_unstable();
    breaks.push((sentence.len(), sentence.len()));
    let (mut all, mut start) = (Vec::new(), 0);
    for (end, next) in breaks {
        if telling(sentence.get(start..end).unwrap_or_default()).next().is_some() {
            all.push(start..end);
            start = next;
        }
    }
    // As in `finance wins, always`.
    all.last_mut().into_iter().for_each(|last| last.end = sentence.len());
    let clauses = all.into_iter().filter_map(|clause| sentence.get(clause));
    let bare = |c: char| !c.is_alphanumeric() && !"`'\"-$@(/".contains(c);
    clauses
        .map(|clause| clause.trim_start_matches(bare).trim_end_matches(['.', '!', '。', ' ', ')']))
        .collect()
}

/// Whether the `words` of one sentence express what a rule is `about`.
pub(super) fn is_echoed(about: &[(String, f64)], words: &BTreeSet<String>) -> bool {
    let (limits, topic): (Vec<_>, Vec<_>) = about.iter().partition(|(word, _)| word == LIMITING);
    let all: f64 = topic.iter().map(|(_, tells)| tells).sum();
    // `deps` is the beginning of `dependencies`.
    let is_said = |word: &String| {
        words.contains(word) || word.len() == STEM - 1 && words.iter().any(|other| other.starts_with(word))
    };
    let said: f64 = topic.iter().filter(|(word, _)| is_said(word)).map(|(_, tells)| tells).sum();
    let is_vague = !limits.is_empty() && !words.contains(LIMITING);
    said > 0.0 && said >= all * if is_vague { UNLIMITED } else { ECHO }
}

/// Stands for a word that limits.
const LIMITING: &str = "\u{1}";

/// The words of a sentence that tell what it is about, and whether it limits something. Their order is fixed, so that
/// sums of their weights are the same each time.
pub(super) fn about_of(text: &str) -> BTreeSet<String> {
    telling(text).chain(has_any(&LIMIT, text).then(|| LIMITING.to_owned())).collect()
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
