//! The user's rules and decisions: clauses that limit what may be done, or that answer the model's question,
//! and whether a summary contains them.
//!
//! A summary words a rule differently, but keeps some of its words. So a sentence of the summary that has
//! some of the rule's words, weighted by rarity here and there, counts as containing the rule; it needs more
//! of them if nothing in it says that something is limited.

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
const BREAKS: [&str; 14] =
    ["; ", ", ", " (", "、", "，", "；", " – ", " — ", " and ", " und ", " et ", " y ", " so ", ":) "];
/// What continues a clause after one.
const GOES_ON: [&str; 8] = ["not ", "that ", "without ", "nicht ", "per ", "par ", "por ", "pro "];
/// What links a clause to the one before, in this order.
const LINKS: [&str; 7] = ["ok ", "and ", "also ", "so ", "please ", "und ", "y "];

/// Words for limits: no, only, at most, always, in the languages most used with agents.
const LIMITS: &str = concat!(
    r"(?i)^(?:nobody|nothing) |(?-u:\b)(?:w/o|no|not|never|don'?t|cannot|can'?t|(?:i|we) won't|zero|without|only|just the|must|should|shall|has to|have to",
    r"|\w+ needs? to|max|minimum|at most|at least|always|keep|kept|stays?|instead|before|if|unless|insists on|forb[ia]d\w*|ban(?:s|ned)",
    r"|unchanged|untouched|exempt\w*|except|by default|at a time|frozen|freeze|spared?|avoid|exclusively|off[ -]limits",
    r"|remains?|forever|wants|verboten|interdit\w*|prohib\w*|proib\w*|exig\w*",
    r"|ohne|nie|niemals|nicht|nur|keine?[nmrs]?|soll\w*|muss|müssen|darf|dürfen|immer|erst|höchstens|mindestens|ausschließlich|unbedingt|sans|jamais|toujours|seulement|uniquement|aucune?|au (?:plus|moins)|pas|doit|doivent",
    r"|sin|nunca|siempre|s[oó]lo|debe\w*|tiene que|antes de|não|sempre|apenas|só|deve\w*|senza|mai|deve|devono",
    r"|solo|soltanto|almeno|al (?:massimo|menos)|no máximo|como máximo|nessun\w*|ning[uú]n\w*|nenhum\w*)(?-u:\b)",
    r"|ない[でよ]|必ず|のみ|だけ|ください|不要|不能|别|必须|只|禁止|마세요|반드시|только|никогда|обязательно|максимум|никто|\bне\b|всегда|нельзя",
);
static LIMIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LIMITS).ok());
/// What begins or marks a report instead of an order, and what begins an order that decides nothing: to look, to
/// run, to go on.
const STORIES: &str = concat!(
    r"(?i)^(?:so |and |but |now )*(?:it|it's|it'd|they|we|he|she|that|that's|this|there|i'm|i was|i had|es|il|elle)(?-u:\b)",
    r"|(?-u:\b)(?:was|were|had|did|is|are|has|will|would|may|might|war|waren|ist|sind|était|est|sigue|estaba)(?-u:\b)",
    r"|^(?:the|an?|der|die|das) \S+(?: \S+)?$|(?:^|: )(?:(?:please|pls|now|then|and|so|ok),? )*(?:read|look|show|list|find|search|check|explain",
    r"|tell|describe|summarize|review|run|try|test|go|continue)(?-u:\b)",
);
static STORY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(STORIES).ok());
/// Long words without meaning.
const FILLERS: &str = " must should never always only with that this from have will when then than they them their there what \
    which into just also need needs keep make please nicht ohne immer oder aber wird werden para como pour dans avec good \
    lgtm approved great fine nice perfect thanks very looks works enough cool super bien merci gracias danke genial parfait okay exactly right correct agreed sounds though nothing nobody instead able wait ";

/// The rules found, each as shown and as meant, the number of sentences that contain each word, and the
/// question or the sentence of the model just before, and whether it is a question.
#[derive(Default)]
pub(super) struct Rules {
    said: Vec<(String, String, usize)>,
    spread: HashMap<String, f64>,
    before: (String, bool),
}

impl Rules {
    pub(super) fn read(&mut self, text: &str, at: usize, by_user: bool) {
        for sentence in sentences(text) {
            for word in telling(sentence).collect::<HashSet<_>>() {
                *self.spread.entry(word).or_default() += 1.0;
            }
            let (before, was_question) = std::mem::take(&mut self.before);
            let is_question = asks(&folded(sentence));
            if is_question || !by_user {
                self.before = (sentence.to_owned(), is_question);
                continue;
            }
            let mut is_explained = at == 0 || text.len() > ANSWER;
            let is_digit = |c: char| c.is_ascii_digit();
            let is_short = |said: &str| telling(said).count() < FEWEST && !said.contains(is_digit);
            let asked = format!("{before} {sentence}");
            let mut last = "";
            for clause in clauses(sentence) {
                let end = sentence.find(clause).map_or(sentence.len(), |at| at + clause.len());
                let pair = sentence.get(sentence.find(last).unwrap_or_default()..end).unwrap_or(sentence);
                last = clause;
                // After the first message, users mostly order and decide; after a limit, they explain it.
                let is_order = !is_explained && clause.chars().count() <= ORDER && !has_any(&STORY, clause);
                // A mere `no` answers.
                let is_limit = has_any(&LIMIT, clause.trim_start_matches("no, "));
                is_explained |= is_limit;
                if !(is_order || is_limit) || clause.ends_with(" yet") {
                    continue;
                }
                // One word means nothing without the clause before it or its sentence, nor `no, separate` or `cache
                // it` without what was said before.
                let is_whole = !was_question && is_limit;
                let mut all = [clause, pair, sentence].into_iter();
                let meant = all.find(|said| is_whole || !is_short(said)).unwrap_or(&asked);
                let is_answer = meant == asked;
                // A word before a colon only introduces it, unless a mere word follows.
                let introduced =
                    meant.rsplit_once(": ").filter(|(topic, rest)| is_short(topic) && !is_short(rest));
                let mut shown = match introduced {
                    _ if is_answer && !was_question => one_line(sentence, LONGEST),
                    _ if is_answer => one_line(meant, 2 * LONGEST),
                    Some((_, rest)) => one_line(rest, LONGEST),
                    None => one_line(meant, LONGEST),
                };
                for link in LINKS {
                    if shown.get(..link.len()).is_some_and(|start| start.eq_ignore_ascii_case(link)) {
                        shown.drain(..link.len());
                    }
                }
                let is_known = self.said.iter().any(|(known, ..)| known.contains(&shown));
                let is_approval = is_answer && !was_question && !sentence.contains(' ');
                let is_one = is_whole || !is_short(meant) && !is_approval;
                if self.said.len() < MOST && is_one && !is_known {
                    // A clause with the next replaces the clause.
                    self.said.pop_if(|(known, ..)| shown.starts_with(known.as_str()));
                    self.said.push((shown, meant.to_owned(), at));
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

/// Whether one of a summary's `sentences` expresses what a rule is `about`. A word tells less the more of them have
/// it: then it is the topic of the summary, not of the rule.
pub(super) fn is_echoed(about: &[(String, f64)], sentences: &[BTreeSet<String>]) -> bool {
    // `deps` is the beginning of `dependencies`.
    let has = |words: &BTreeSet<String>, word: &String| {
        words.contains(word) || word.len() == STEM - 1 && words.iter().any(|other| other.starts_with(word))
    };
    let tells = |(word, tells): &(String, f64)| {
        let spread = sentences.iter().filter(|words| has(words, word)).fold(0.0, |sum, _| sum + 1.0);
        (word.clone(), tells / f64::max(spread, 1.0).sqrt())
    };
    let (limits, topic): (Vec<_>, Vec<_>) = about.iter().map(tells).partition(|(word, _)| word == LIMITING);
    let all: f64 = topic.iter().map(|(_, tells)| tells).sum();
    sentences.iter().any(|words| {
        let said: f64 = topic.iter().filter(|(word, _)| has(words, word)).map(|(_, tells)| tells).sum();
        let is_vague = !limits.is_empty() && !words.contains(LIMITING);
        said > 0.0 && said >= all * if is_vague { UNLIMITED } else { ECHO }
    })
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
                letters
                    .windows(2)
                    // Hiragana alone is grammar.
                    .filter(|pair| {
                        pair.iter().all(is_wide) && !pair.iter().all(|c| ('ぁ'..='ゟ').contains(c))
                    })
                    .map(|pair| pair.iter().collect()),
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
