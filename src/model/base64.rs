//! Base64 data in text: no one searches for it, and it would fill the index.

/// A run of this many letters, digits, `+`, `/` and `=` is data, not words.
const LONGEST_WORD: usize = 200;

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
    if !has_long_run(text.as_bytes()) && !text.contains(";base64,") {
        return text;
    }
    let mut out = String::new();
    let (mut copied, mut run) = (0, 0);
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        if is_of_base64(byte) {
            continue;
        }
        if at - run >= LONGEST_WORD || (at > run && text.as_bytes()[..run].ends_with(b";base64,")) {
            out.push_str(&text[copied..run]);
            out.push('…');
            copied = at;
        }
        run = at + 1;
    }
    if copied == 0 {
        return text;
    }
    out.push_str(&text[copied..]);
    out
}
