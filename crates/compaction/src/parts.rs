//! Divides a history that exceeds a model's window into parts that fit.
//!
//! It is cut before the headers of messages and summaries, as written in the prompt. A single message that is
//! too large loses its middle, and says where the rest is.

use super::prompts::HEADER;
use crate::llm::size;
use lcm_model::text;

/// Bytes per token when a text is cut by tokens; dense text is cut again.
const BYTES: usize = 3;

/// `history` in parts of at most `most` tokens each, in order. Only the middle of a message or summary that
/// alone is larger is left out.
pub(super) fn cut(history: &str, most: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut taken = 0;
    for section in sections(history) {
        let section = shortened(section, most);
        // Slightly more than their sum, never less.
        let tokens = size(&section) + 1;
        match parts.last_mut() {
            Some(part) if taken + tokens <= most => {
                part.push('\n');
                part.push_str(&section);
                taken += tokens;
            }
            _ => {
                parts.push(section);
                taken = tokens;
            }
        }
    }
    parts
}

/// Each message or summary with its header; text before the first header is one too.
fn sections(history: &str) -> Vec<&str> {
    let begins = format!("\n{HEADER}");
    let headers = history.match_indices(&begins).map(|(at, _)| at + 1);
    let cuts: Vec<usize> = std::iter::once(0).chain(headers).chain([history.len()]).collect();
    let pieces = cuts.windows(2).map(|ends| history[ends[0]..ends[1]].trim_end());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// The id in a header.
fn handle_of(line: &str) -> Option<&str> {
    line.strip_prefix(HEADER)?.split(' ').next()
}

fn shortened(section: &str, most: usize) -> String {
    let whole = handle_of(section).map(|id| format!(", whole in {id}")).unwrap_or_default();
    let mut bytes = most * BYTES;
    let mut short = section.to_owned();
    while size(&short) + 1 > most && bytes > 0 {
        short = text::head_and_tail(section, bytes, |gone| format!("[… {gone} bytes left out{whole} …]"));
        bytes = bytes * 3 / 4;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(messages: usize, words: usize) -> String {
        let message = |at| {
            format!("{HEADER}m-{at:010x} user 2026-11-20 09:12]\nmessage{at} {}\n\n", "word ".repeat(words))
        };
        (0..messages).map(message).collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn every_message_is_whole_in_one_part_and_no_part_is_too_large() {
        let whole = history(40, 60);
        for most in [100, 333, 1_000, 100_000] {
            let parts = cut(&whole, most);
            assert!(parts.iter().all(|part| size(part) <= most), "{most}");
            let all = parts.join("\n\n");
            let words = |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&all), words(&whole), "{most}");
            assert!(parts.iter().all(|part| part.starts_with(HEADER)), "{most}");
        }
        assert_eq!(cut(&whole, 100_000).len(), 1);
        assert!(cut(&whole, 333).len() > 5);
    }

    #[test]
    fn a_message_too_large_by_itself_loses_its_middle_and_names_itself() {
        for filling in ["word ", "字", "a1;"] {
            let large = format!(
                "{HEADER}m-00000000ff toolResult read 2026-11-20 09:12]\nBEGIN {} END",
                filling.repeat(3_000)
            );
            let whole = format!("{}\n\n{large}\n\n{}", history(3, 20), history(3, 20));
            let parts = cut(&whole, 400);
            assert!(parts.iter().all(|part| size(part) <= 400));
            let short = parts.iter().find(|part| part.contains("BEGIN")).unwrap();
            assert!(
                short.contains("END") && short.contains("bytes left out, whole in m-00000000ff"),
                "{short}"
            );
            assert_eq!(parts.concat().matches(HEADER).count(), 7);
        }
    }

    #[test]
    fn a_line_that_only_resembles_a_header_is_not_one() {
        for line in ["[m-0123456789 user 2026-11-20 09:12]", "[12345678 user]", "m-0123456789", ""] {
            assert_eq!(handle_of(line), None, "{line}");
        }
        assert_eq!(handle_of(&format!("{HEADER}s-0123456789 D0 x]")), Some("s-0123456789"));
        assert_eq!(cut("no header at all", 100), ["no header at all"]);
    }
}
