//! Base64 data in text: no one searches for it, and it would fill the index.

use std::sync::LazyLock;

use regex::Regex;

/// A run of this many letters, digits, `+`, `/` and `=` is data, not words.
const LONGEST_WORD: usize = 200;
/// Such a run, or one of any length after its mark.
const DATA: &str = "(;base64,)[A-Za-z0-9+/=]+|[A-Za-z0-9+/=]{200,}";
static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(DATA).ok());

fn is_of_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Whether there is a run longer than any word. Scanning backward from the end of a window skips most bytes.
fn has_long_run(mut text: &[u8]) -> bool {
    while let Some(window) = text.get(..LONGEST_WORD) {
        match window.iter().rposition(|byte| !is_of_base64(*byte)) {
            Some(end) => text = &text[end + 1..],
            None => return true,
        }
    }
    false
}

/// `text` with an ellipsis for each run of base64.
pub(super) fn without_base64(text: String) -> String {
    // Almost no text contains any, and this check is fast.
    match &*PATTERN {
        Some(data) if has_long_run(text.as_bytes()) || text.contains(";base64,") => {
            data.replace_all(&text, "${1}…").into_owned()
        }
        _ => text,
    }
}
