//! Parses JSON as JavaScript writes it, including what serde_json rejects.

use serde_json::Value;

/// serde_json stops at 128 levels; those around a value count too.
const DEEPEST: usize = 100;
/// The start of serde_json's own keys, for numbers and for raw values, when such a key comes first in an
/// object.
const SERDE_KEY: &str = r#"{"$serde_json::private::"#;

/// Parses JSON as `JSON.stringify` writes it, including what serde_json rejects: a lone surrogate becomes
/// U+FFFD, a value nested too deeply becomes a string of its JSON, and a key that has a meaning for
/// serde_json itself gets a space. A [byte order mark](unmarked) is skipped.
pub fn read_json(json: &str) -> serde_json::Result<Value> {
    serde_json::from_str(json).or_else(|_| {
        let json = without_lone_surrogates(unmarked(json)).replace(SERDE_KEY, &format!("{SERDE_KEY} "));
        serde_json::from_str(&shallow(&json))
    })
}

/// The text after a byte order mark, with which a file may begin.
pub fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The text of a JSON string; `None` if it is none.
pub fn read_text(json: &str) -> Option<String> {
    let text = || read_json(json).ok()?.as_str().map(ToOwned::to_owned);
    serde_json::from_str(json).ok().or_else(text)
}

/// `json` with every lone `\uD8xx`–`\uDFxx` escape replaced by U+FFFD.
fn without_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match surrogate(rest) {
            Some(high @ 0xd800..0xdc00) => match surrogate(&rest[6..]) {
                Some(0xdc00..0xe000) if high < 0xdc00 => 12,
                _ => 0,
            },
            Some(_) => 0,
            // Any other escape: keep the backslash and the next character together.
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        if length == 0 {
            out.push_str("\\ufffd");
            rest = &rest[6..];
        } else {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out.push_str(rest);
    out
}

/// The surrogate that `text` starts with as a `\uXXXX` escape.
fn surrogate(text: &str) -> Option<u32> {
    let unit = u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

/// `json` with each value nested deeper than [`DEEPEST`] replaced by a string of its JSON.
fn shallow(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut depth, mut copied) = (0_usize, 0);
    let mut bytes = json.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let mut escaped = false;
                // To the end of the string.
                bytes.find(|(_, byte)| {
                    let was_escaped = escaped;
                    escaped = !was_escaped && *byte == b'\\';
                    !was_escaped && *byte == b'"'
                });
            }
            b'[' | b'{' => {
                if depth == DEEPEST {
                    out.push_str(&json[copied..at]);
                    copied = at;
                }
                depth += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == DEEPEST {
                    out.push_str(&Value::from(&json[copied..=at]).to_string());
                    copied = at + 1;
                }
            }
            _ => {}
        }
    }
    out.push_str(&json[copied..]);
    out
}
