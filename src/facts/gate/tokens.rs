//! Finds words in a text that look like names: identifiers, codes, options, parts of URLs.

use super::patterns::{LINE, is_among, is_letter};

/// The longest and shortest name, in bytes.
const LENGTH: std::ops::Range<usize> = 2..80;

/// How a name looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `max_age`, `maxAge`.
    Compound,
    /// Letters and digits: `E0308`, `utf8mb4`, `SEARCH-771`.
    Mixed,
    /// `CHF`.
    Capitals,
    /// `order.total`, `Cache::get`, `gh-ost`, `fix/login`, `@acme/ui`.
    Joined,
    /// `--apply`.
    Option,
    /// An ordinary word.
    Plain,
}

/// A word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    /// Where it starts.
    pub(super) start: usize,
    pub(super) shape: Shape,
    /// Whether it is between backticks.
    pub(super) is_ticked: bool,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The words of `text`. What is between backticks is one word if it has no blanks.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    text.split('`')
        .enumerate()
        .scan(0, |at, (index, span)| {
            let start = *at;
            *at += span.len() + 1;
            Some((start, span, index % 2 == 1))
        })
        .flat_map(|(start, span, is_ticked)| {
            let is_whole = is_ticked && LENGTH.contains(&span.len()) && !span.contains(char::is_whitespace);
            let whole = is_whole.then(|| {
                // A call is named by its function.
                let name = span.split('(').next().unwrap_or(span);
                let text = if shape(name) == Shape::Plain { span.trim_end_matches("()") } else { name };
                let shape = if text.chars().all(is_part) { shape(text) } else { Shape::Joined };
                Token { text, start, shape, is_ticked }
            });
            let rest = if is_whole { "" } else { span };
            whole.into_iter().chain(parts(rest, start, is_ticked))
        })
}

fn parts(span: &str, offset: usize, is_ticked: bool) -> impl Iterator<Item = Token<'_>> {
    span.split_inclusive(|c: char| !is_part(c))
        .scan(offset, move |at, piece| {
            let start = *at;
            *at += piece.len();
            let word = piece.trim_end_matches(|c: char| !is_part(c));
            let left = word.trim_start_matches(|c: char| !(is_letter(c) || "_-#@/.".contains(c)));
            let start = start + word.len() - left.len();
            let text = left.trim_end_matches(['.', ':', '/', '-', '#', '@', '$', '%']);
            Some(Token { text, start, shape: shape(text), is_ticked })
        })
        .filter(|token| LENGTH.contains(&token.text.len()))
}

fn is_part(c: char) -> bool {
    is_letter(c) || "_-./:#@$%".contains(c)
}

/// How a word looks.
pub(super) fn shape(word: &str) -> Shape {
    let body = word.trim_start_matches(['-', '#', '@', '/', '.', '_', '$']);
    let has = |is: fn(char) -> bool| body.contains(is);
    let mut pairs = body.chars().zip(body.chars().skip(1));
    let is_joined = |(at, c): (usize, char)| "-./:".contains(c) && at > 0;
    if !has(char::is_alphabetic) {
        return if word.starts_with('#') { Shape::Mixed } else { Shape::Plain };
    }
    if word.starts_with("--") || word.starts_with('-') && body.len() > 3 {
        return Shape::Option;
    }
    let is_version = || body.strip_prefix('v').is_some_and(|rest| !rest.contains(char::is_alphabetic));
    let is_color = word.starts_with('#') && body.len() == 6 && body.chars().all(|c| c.is_ascii_hexdigit());
    // `and/or`.
    let is_either = || {
        word.split_once('/').is_some_and(|(one, other)| {
            [one, other].iter().all(|part| !part.is_empty() && part.chars().all(char::is_alphabetic))
        })
    };
    // `int64` is no code, unlike `E0308` and `node-7`.
    let is_kind = body.chars().all(|c| c.is_lowercase() || c.is_ascii_digit())
        && !body.starts_with("0x")
        && has(|c| c.is_ascii_digit());
    if is_kind || is_color || is_either() || word.contains("://") || word.ends_with("n't") || is_version() {
        return Shape::Plain;
    }
    if has(|c| c.is_ascii_digit())
        && (body.starts_with("0x") || !body.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Shape::Mixed;
    }
    if body.char_indices().any(is_joined) || word.starts_with(['@', '/']) {
        return Shape::Joined;
    }
    let bytes = body.as_bytes();
    let is_word = |four: &[u8]| {
        four[..2].iter().all(u8::is_ascii_uppercase) && four[2..].iter().all(u8::is_ascii_lowercase)
    };
    if body.contains('_')
        || pairs.any(|(one, next)| one.is_lowercase() && next.is_uppercase())
        || bytes.windows(4).any(is_word)
    {
        return Shape::Compound;
    }
    if body.len() > 2 && body.chars().all(char::is_uppercase) {
        return Shape::Capitals;
    }
    Shape::Plain
}

/// Words before a name that they define.
const DECLARING: &str = " fn func fun function def defp defn defun defmodule defmacro class struct enum trait interface type \
    module const let var val object record protocol actor extension contract event error input typedef table index view \
    procedure trigger column constraint policy sub message service rpc model union mixin macro_rules #define proc entity variable output ";
/// What comes before an error that code throws.
const THROWING: [&str; 5] = ["raise ", "throw", "revert ", "fail(", "err("];

/// Whether the name after `before` is defined there.
pub(super) fn is_declared(before: &str) -> bool {
    let before = before.trim_end_matches(['*', '&', ' ', '(', '"']);
    let word = before.rsplit(|c: char| !(c.is_alphabetic() || c == '#')).next().unwrap_or_default();
    word.len() < 12 && is_among(DECLARING, &word.to_lowercase())
}

/// Whether `after` assigns to the name before it.
pub(super) fn is_set(after: &str) -> bool {
    after.trim_start_matches([' ', '"']).starts_with([':', '='])
}

/// Whether code throws the name after `before`.
pub(super) fn is_thrown(before: &str) -> bool {
    let line = before[before.floor_char_boundary(before.len().saturating_sub(LINE))..].to_lowercase();
    let line = line.rsplit('\n').next().unwrap_or_default();
    THROWING.iter().any(|word| line.contains(word))
}
