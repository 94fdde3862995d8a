//! Excludes messages that can't match a regular expression by their JSON alone, so that most need not be read.
//!
//! It may let through texts that don't match, but never excludes one that does.

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};

/// Finds one of the literals that every match begins with, or ends with.
pub(super) struct Sieve(Regex);

impl Sieve {
    /// The sieve for `pattern`, if its matches have such literals.
    pub fn of(pattern: &str) -> Option<Self> {
        let parsed = ParserBuilder::new().multi_line(true).build().parse(pattern).ok()?;
        let literals = |kind| -> Option<Vec<String>> {
            let found = Extractor::new().kind(kind).extract(&parsed);
            found.literals()?.iter().map(|literal| as_stored(literal.as_bytes())).collect()
        };
        let shortest = |literals: &Vec<String>| literals.iter().map(String::len).min().unwrap_or_default();
        let kinds = [ExtractKind::Suffix, ExtractKind::Prefix];
        let best = kinds.into_iter().filter_map(literals).max_by_key(shortest)?;
        let any: Vec<String> = best.iter().map(|literal| regex::escape(literal)).collect();
        Some(Self(RegexBuilder::new(&any.join("|")).build().ok()?))
    }

    /// Whether the message must be read.
    pub fn lets_through(&self, json: &[u8]) -> bool {
        self.0.is_match(json) || has_odd_escapes(json)
    }
}

/// The longest part of a literal that looks the same in JSON and in the searched text: without characters that JSON
/// escapes, and without any that reading a message inserts. A literal may begin or end within a character.
fn as_stored(literal: &[u8]) -> Option<String> {
    let is_changed = |c: char| c.is_control() || matches!(c, '"' | '\\' | '\u{fffd}' | '…');
    let pieces = literal.utf8_chunks().flat_map(|chunk| chunk.valid().split(is_changed));
    let pieces = pieces.flat_map(|piece| piece.split("$ ")).filter(|piece| !piece.is_empty());
    pieces.max_by_key(|piece| piece.len()).map(ToOwned::to_owned)
}

/// Whether the JSON may have an escape that `JSON.stringify` never writes.
fn has_odd_escapes(json: &[u8]) -> bool {
    let is_odd = |at: usize| !json[at..].starts_with(b"\\u000") && !json[at..].starts_with(b"\\u001");
    memmem::find(json, b"\\/").is_some() || memmem::find_iter(json, b"\\u").any(is_odd)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::RegexBuilder;

    use super::*;

    #[test]
    fn what_lacks_the_beginning_or_the_end_of_every_match_is_excluded() {
        for (pattern, text, may_match) in [
            ("panicked at .*:[0-9]+", "it panicked at noon", true),
            ("panicked at .*:[0-9]+", "it panicked", false),
            ("\\w+ failed$", "has failed", true),
            ("\\w+ failed$", "has passed", false),
            ("(?i)task failed", "TASK FAILED", true),
            ("(?i)task failed", "tasks", false),
            ("foo|bar\\d", "bar", true),
            ("foo|bar\\d", "baz", false),
        ] {
            assert_eq!(
                Sieve::of(pattern).unwrap().lets_through(text.as_bytes()),
                may_match,
                "{pattern}: {text}"
            );
        }
        for pattern in ["a?|b", "\\w+\\d{3}", "x?"] {
            assert!(Sieve::of(pattern).is_none_or(|sieve| sieve.lets_through(b"y")), "{pattern}");
        }
    }

    #[test]
    fn characters_that_json_escapes_are_left_out() {
        let sieve = Sieve::of;
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
        fn no_match_is_excluded(
            pattern in r"(\(\?i\))?([a-cK]{1,3}|\\d\+|\[ab\]|\(ab\|c\)|x\?|\\b|ſ){1,5}",
            text in "[a-cA-CKk\u{212a}sSſ0-9x\" \n\\\\]{0,12}",
        ) {
            let regex = RegexBuilder::new(&pattern).multi_line(true).build();
            prop_assume!(regex.is_ok());
            if regex.unwrap().is_match(&text)
                && let Some(sieve) = Sieve::of(&pattern)
            {
                let json = serde_json::json!({"role": "user", "content": text}).to_string();
                prop_assert!(sieve.lets_through(json.as_bytes()), "{pattern} {json}");
            }
        }
    }
}
