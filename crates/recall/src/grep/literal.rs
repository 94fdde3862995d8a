//! Finds literals that any match of a regular expression must contain, so that most texts need not be read.
//!
//! It may let through texts that don't match, but never excludes one that does.

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The most alternatives; more exclude too little.
const MOST: usize = 32;
/// The most characters of a class that may be one letter in different cases.
const CASES: usize = 4;

/// A match contains one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Required(pub Vec<Literal>);

/// A run of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Literal {
    /// In lowercase if case is ignored.
    pub text: String,
    /// Whether case is ignored.
    pub any_case: bool,
}

impl Required {
    /// What `pattern` requires, if anything.
    pub fn of(pattern: &str) -> Option<Self> {
        let parsed = ParserBuilder::new().multi_line(true).build().parse(pattern).ok()?;
        required(&parsed)
    }

    /// A filter for stored messages that contain none of the literals.
    pub(crate) fn sieve(&self) -> Option<Sieve> {
        let pieces: Option<Vec<String>> = (self.0.iter())
            .map(|literal| {
                let piece = as_stored(&literal.text).max_by_key(|piece| piece.len())?;
                let escaped = regex::escape(piece);
                Some(if literal.any_case { format!("(?i:{escaped})") } else { escaped })
            })
            .collect();
        Some(Sieve(RegexBuilder::new(&pieces?.join("|")).build().ok()?))
    }

    /// Its selectivity: the length of its shortest literal.
    fn worth(&self) -> usize {
        self.0.iter().map(|literal| literal.text.len()).min().unwrap_or_default()
    }
}

/// The parts of a literal that look the same in JSON and in the searched text: without characters that JSON
/// escapes, and without any that reading a message inserts.
fn as_stored(literal: &str) -> impl Iterator<Item = &str> {
    let pieces = literal.split(|c: char| c.is_control() || matches!(c, '"' | '\\' | '\u{fffd}' | '…'));
    pieces.flat_map(|piece| piece.split("$ ")).filter(|piece| !piece.is_empty())
}

/// Excludes messages that can't match by their JSON alone.
pub(super) struct Sieve(Regex);

impl Sieve {
    /// Whether the message must be read.
    pub(crate) fn lets_through(&self, json: &[u8]) -> bool {
        self.0.is_match(json) || has_odd_escapes(json)
    }
}

/// Whether the JSON may have an escape that `JSON.stringify` never writes.
fn has_odd_escapes(json: &[u8]) -> bool {
    let is_odd = |at: usize| !json[at..].starts_with(b"\\u000") && !json[at..].starts_with(b"\\u001");
    memmem::find(json, b"\\/").is_some() || memmem::find_iter(json, b"\\u").any(is_odd)
}

fn required(hir: &Hir) -> Option<Required> {
    let mut all = Vec::new();
    let mut run = Literal::default();
    collect(hir, &mut run, &mut all);
    end(&mut run, &mut all);
    // Take the first of equals, so that the result is always the same.
    all.into_iter().rev().max_by_key(Required::worth)
}

/// Walks a concatenation. `run` grows while its parts are literals.
fn collect(hir: &Hir, run: &mut Literal, all: &mut Vec<Required>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => run.text.push_str(text),
            Err(_) => end(run, all),
        },
        HirKind::Class(class) => match one_letter(class) {
            Some(letter) => {
                run.any_case = true;
                run.text.push(letter);
            }
            None => end(run, all),
        },
        HirKind::Capture(capture) => collect(&capture.sub, run, all),
        HirKind::Concat(parts) => parts.iter().for_each(|part| collect(part, run, all)),
        HirKind::Repetition(repetition) => {
            end(run, all);
            if repetition.min > 0 {
                all.extend(required(&repetition.sub));
            }
        }
        HirKind::Alternation(branches) => {
            end(run, all);
            let branches: Option<Vec<Required>> = branches.iter().map(required).collect();
            let literals: Vec<Literal> =
                branches.into_iter().flatten().flat_map(|required| required.0).collect();
            if (1..=MOST).contains(&literals.len()) {
                all.push(Required(literals));
            }
        }
    }
}

fn end(run: &mut Literal, all: &mut Vec<Required>) {
    let mut literal = std::mem::take(run);
    if !literal.text.is_empty() {
        if literal.any_case {
            literal.text = literal.text.chars().map(small).collect();
        }
        all.push(Required(vec![literal]));
    }
}

/// The lowercase letter, if a class consists only of its cases.
fn one_letter(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let mut letters = class.iter().flat_map(|range| range.start()..=range.end()).take(CASES + 1);
    let first = small(letters.next()?);
    let mut count = 1;
    let same = letters.all(|letter| {
        count += 1;
        small(letter) == first
    });
    (same && count <= CASES).then_some(first)
}

/// The lowercase form of a letter, if that is one character. In a regular expression, the long s equals s.
fn small(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (letter, lower.next(), lower.next()) {
        ('ſ', ..) => 's',
        (_, Some(small), None) => small,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::RegexBuilder;

    use super::*;

    fn literals(pattern: &str) -> Vec<String> {
        let required = Required::of(pattern).map(|required| required.0).unwrap_or_default();
        required.into_iter().map(|literal| literal.text).collect()
    }

    #[test]
    fn the_longest_literal_in_every_match_is_required() {
        for (pattern, expected) in [
            ("panicked at .*:[0-9]+", &["panicked at "][..]),
            ("let (foo)bar = \\d+;", &["let foobar = "]),
            ("(?i)task failed", &["task failed"]),
            ("foo|barbar|baz\\d", &["foo", "barbar", "baz"]),
            ("(abc)+x?", &["abc"]),
            ("(abc)*x", &["x"]),
            ("^\\bfoo\\b$", &["foo"]),
            ("a?|b", &[]),
            ("\\w+\\d{3}", &[]),
            ("[ab]c?", &[]),
        ] {
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn the_sieve_ignores_characters_that_json_escapes() {
        let sieve = |pattern| Required::of(pattern).and_then(|required| required.sieve());
        assert!(sieve(r#"""#).is_none() && sieve("\n").is_none() && sieve(r"\$ ").is_none());
        assert!(sieve(r#"say "hello" now"#).unwrap().lets_through(br#""say \"hello\" now""#));
        assert!(sieve("a\nbcd").unwrap().lets_through(br#""a\nbcd""#));
        assert!(
            sieve("é").unwrap().lets_through(br#""\u00e9""#) && !sieve("é").unwrap().lets_through(br#""x""#)
        );
        assert!(sieve("word").unwrap().lets_through(br#""\u0077ord""#));
        assert!(!sieve("word").unwrap().lets_through(br#""another \n \u001b[0m thing""#));
    }

    proptest! {
        #[test]
        fn every_match_contains_the_required_literals(
            pattern in r"(\(\?i\))?([a-cK]{1,3}|\\d\+|\[ab\]|\(ab\|c\)|x\?|\\b|ſ){1,5}",
            text in "[a-cA-CKk\u{212a}sSſ0-9x\" \n\\\\]{0,12}",
        ) {
            let regex = RegexBuilder::new(&pattern).multi_line(true).build();
            prop_assume!(regex.is_ok());
            if regex.unwrap().is_match(&text)
                && let Some(sieve) = Required::of(&pattern).and_then(|required| required.sieve())
            {
                let json = serde_json::json!({"role": "user", "content": text}).to_string();
                prop_assert!(sieve.lets_through(json.as_bytes()), "{pattern} {json}");
            }
        }
    }
}
