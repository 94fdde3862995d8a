//! Regular expressions, each compiled when it is first needed. One that does not compile matches nothing.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Match, Regex};

/// A regular expression.
pub struct Pattern(LazyLock<Option<Regex>>);

impl Pattern {
    /// The one that `compile` makes.
    pub const fn of(compile: fn() -> Option<Regex>) -> Self {
        Self(LazyLock::new(compile))
    }

    /// Whether `text` has a match.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }

    /// All matches in `text`.
    pub fn found<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Match<'t>> {
        self.0.iter().flat_map(|pattern| pattern.find_iter(text))
    }

    /// All matches in `text`, with their groups.
    pub fn captures<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.0.iter().flat_map(|pattern| pattern.captures_iter(text))
    }

    /// `text` with `by` in place of each match.
    pub fn replaced<'t>(&self, text: &'t str, by: &str) -> Cow<'t, str> {
        self.0.as_ref().map_or(Cow::Borrowed(text), |pattern| pattern.replace_all(text, by))
    }
}

/// A [`Pattern`] given in parts.
#[macro_export]
macro_rules! pattern {
    ($($part:literal),+ $(,)?) => { $crate::Pattern::of(|| regex::Regex::new(concat!($($part),+)).ok()) };
}
