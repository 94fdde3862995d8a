//! Compares a summary with anchors: it contains an anchor in any spelling that a reader would take for the
//! same.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::numbers::{Number, numbers};
use super::patterns::*;
use super::rules::{about_of, is_echoed};
use super::{Anchor, Kind};

/// Several files in one, as `src/{a,b}.rs`.
const BRACES: &str = r"([\w./@-]*)\{([\w.,/ -]+)\}([\w./-]*)";

/// Digits that distinguish a file's name, as in `0019_invoices`.
const STAMP: usize = 4;

/// Words for numbers, each at the place of its value.
const ONES: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
    seventeen eighteen nineteen";
const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let (ones, tens) = (ONES.replace(' ', "|"), TENS.replace(' ', "|"));
    let number =
        format!(r"(?:(?<tens>{tens})(?:[ -](?<digit>{ones}))?|(?<ones>{ones}))(?<hundred> hundred)?");
    let part = r"(?<part>half|(?:a )?quarter of) an?|an? (?<unit>\w+) and a half";
    let single = "(?:eine[nrm]?|une?|una|uma?) (?<single>minute|stunde|heure|hora|minuto|minuta)|an? (?<span>day|week|month|year)|an? (?<round>hundred|thousand|million)";
    Regex::new(&format!(r"\b(?:{number}(?<more> and a half)?|{part}|{single})\b")).ok()
});
static BRACE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(BRACES).ok());

/// A summary, prepared for comparison.
pub(super) struct Summary {
    pub(super) lower: String,
    /// Without what distinguishes `max_age` from `maxAge` and `max-age`.
    plain: String,
    numbers: Vec<Number>,
    /// The meaningful words of each sentence.
    sentences: Vec<BTreeSet<String>>,
}

impl Summary {
    pub(super) fn of(summary: &str) -> Self {
        let mut text = summary.to_owned();
        for found in captures(&BRACE, summary) {
            for name in found[2].split(',') {
                let _ = write!(text, "\n{}{}{}", &found[1], name.trim(), &found[3]);
            }
        }
        let lower = text.to_lowercase().replace("::", "/");
        let numbers = numbers(&text).into_iter().chain(numbers(&in_digits(&lower))).collect();
        let sentences = text.split_inclusive(['\n', '。', ';']).flat_map(|line| line.split(". "));
        let sentences = sentences.map(about_of).collect();
        Self { plain: squeezed(&lower), lower, numbers, sentences }
    }

    pub(super) fn holds(&self, anchor: &Anchor) -> bool {
        match (anchor.kind, &anchor.number) {
            (Kind::Rule, number) => {
                let is_said = |number: &Number| self.numbers.iter().any(|said| number.is_said_by(said));
                is_echoed(&anchor.about, &self.sentences) || number.as_ref().is_some_and(is_said)
            }
            (Kind::Path, _) => self.holds_path(anchor),
            // Any number may look like a small code.
            (Kind::Error, None) if anchor.key.len() < 3 => {
                ["code", "exit", "status", "with", "error", "errno", "signal", "xid", "msg"]
                    .iter()
                    .any(|word| has(&self.lower, &format!("{word} {}", anchor.key), ""))
            }
            (Kind::Name, _) => has(&self.plain, &squeezed(&anchor.key), ""),
            // A sentence says `access denied` for `AccessDenied`.
            (_, None) => {
                let key = squeezed(&anchor.key);
                has(&self.lower, &anchor.key, "")
                    || has(&self.plain, &key, "")
                    || key.len() > 8 && self.plain.replace(' ', "").contains(&key)
            }
            (_, Some(number)) => match number.only_spelling() {
                Some(key) => has(&self.lower, key, ".") || has(&self.lower, &format!("v{key}"), "."),
                None => self.numbers.iter().any(|said| number.is_said_by(said)),
            },
        }
    }

    /// By its name, with its folder if another file has the same name; by folder and name without extension,
    /// as a module; by name alone if that has several words.
    fn holds_path(&self, file: &Anchor) -> bool {
        let name = stem(end_of(&file.text, 1));
        let module = stem(end_of(&file.key, 2));
        let digits = name.chars().filter(char::is_ascii_digit).count();
        let is_unlike_words = name.contains(['-', '.']) || digits >= STAMP && digits < name.len();
        let is_own = !file.has_twin && (is_unlike_words || is_compound(name));
        let tick = if is_unlike_words { "" } else { "`" };
        has(&self.lower, end_of(&file.key, 1 + usize::from(file.has_twin)), "-.")
            || (is_own && has(&self.plain, &squeezed(&format!("{tick}{}", name.to_lowercase())), ""))
            || (module.contains('/')
                && [module, &module.replace('/', ".")].iter().any(|name| has(&self.lower, name, "-.")))
    }
}

/// Writes numbers as digits: `forty-five minutes`, `half an hour`, `a minute and a half`.
fn in_digits(lower: &str) -> String {
    let digits = |found: &Captures<'_>| {
        let at = |group| found.name(group).map_or("", |word| word.as_str());
        let place = |words: &str, word| words.split(' ').position(|other| other == word);
        let one = place(ONES, at("ones")).or(place(ONES, at("digit"))).unwrap_or_default();
        let number = place(TENS, at("tens")).map_or(0, |tens| 10 * tens + 20) + one;
        let number = if at("hundred").is_empty() { number } else { 100 * number };
        match (at("part"), at("unit"), at("more")) {
            _ if !at("single").is_empty() => format!("1 {}", at("single")),
            _ if !at("span").is_empty() => format!("1 {}", at("span")),
            _ if at("round") == "hundred" => "100".to_owned(),
            _ if !at("round").is_empty() => format!("1 {}", at("round")),
            ("", "", "") => number.to_string(),
            ("", "", _) => format!("{number}.5"),
            ("", unit, _) => format!("1.5 {unit}"),
            (part, ..) => if part.starts_with('h') { "0.5" } else { "0.25" }.to_owned(),
        }
    };
    WORDS.as_ref().map_or_else(|| lower.to_owned(), |words| words.replace_all(lower, digits).into_owned())
}

pub(super) fn squeezed(text: &str) -> String {
    text.replace(['_', '-'], "")
}

/// Whether `text` contains `word` as a whole word, not next to any of the characters `more` either.
pub(super) fn has(text: &str, word: &str, more: &str) -> bool {
    let goes_on = |c: char| is_letter(c) || c == '_';
    let is_whole = |(at, _): (usize, &str)| {
        let after = &text[at + word.len()..];
        // The period at the end of a sentence is not part of a name.
        let after =
            if more.contains('.') { after.strip_prefix('.').map_or(after, |next| next) } else { after };
        !after.starts_with(|c| goes_on(c) || more.contains(c))
            && !text[..at].ends_with(|c| goes_on(c) || more.contains(c))
    };
    !word.is_empty() && (word.ends_with('/') && text.contains(word) || text.match_indices(word).any(is_whole))
}
