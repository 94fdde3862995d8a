//! Damaged lines of logs: the JSON objects in them that are whole.
//!
//! A crash leaves zero bytes before a record, or a record that breaks off with the next one behind it.

use std::ops::Range;

use serde::de::IgnoredAny;

/// Bytes that are parsed in vain, per byte of the line and at least: braces may be anywhere.
const IN_VAIN: usize = 16;
const LEAST_IN_VAIN: usize = 64 * 1024 * 1024;

/// Where the whole objects in a text are, in order. None is within another.
pub(super) fn whole_objects(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    let mut left = text.len().saturating_mul(IN_VAIN).max(LEAST_IN_VAIN);
    while let Some(start) = memchr::memchr(b'{', &text.as_bytes()[at..]).map(|more| at + more) {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
        at = match values.next() {
            Some(Ok(_)) => {
                let end = start + values.byte_offset();
                found.push(start..end);
                end
            }
            error => {
                let is_in_line = |error: &serde_json::Error| error.line() == 1 && !error.is_eof();
                let parsed = error.and_then(Result::err).filter(is_in_line).map(|error| error.column());
                match left.checked_sub(parsed.unwrap_or(text.len() - start)) {
                    Some(less) => left = less,
                    None => break,
                }
                start + 1
            }
        };
    }
    found
}

/// Whether what is left of a line says nothing: zero bytes, and what separates values.
pub(super) fn says_nothing(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '\0' | '\u{feff}' | ',' | '[' | ']' | '{' | '}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Vec<&str> {
        whole_objects(text).into_iter().map(|at| &text[at]).collect()
    }

    #[test]
    fn whole_objects_are_found_wherever_they_are() {
        for (line, expected) in [
            ("\0\0\0{\"a\":1}", &["{\"a\":1}"][..]),
            ("{\"a\":1}{\"b\":{}}", &["{\"a\":1}", "{\"b\":{}}"]),
            ("{\"a\":1},\r\n{\"b\":\"}\"} {", &["{\"a\":1}", "{\"b\":\"}\"}"]),
            ("{\"text\":\"half {\"a\":1}", &["{\"a\":1}"]),
            ("{\"text\":\"\\ud83d\"}x{\"a\":[", &["{\"text\":\"\\ud83d\"}"]),
            ("no {object} at all", &[]),
            ("", &[]),
        ] {
            assert_eq!(whole(line), expected, "{line}");
        }
    }

    #[test]
    fn a_long_line_of_braces_ends() {
        let line = "{\"a\":".repeat(200_000);
        assert!(whole(&line).is_empty());
        assert!(says_nothing("\0\0, \r\n]}") && !says_nothing("{a"));
    }
}
