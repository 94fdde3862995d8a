//! Where an answer is read: its width, and its colors, which are marker characters while the text is built, and
//! terminal codes at the end.
//!
//! In between, quoted terminal codes are removed, and the colors must survive that.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use lcm_model::text::legible;

/// Where an answer is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// In a shell rather than in Pi.
    pub is_shell: bool,
    /// On a terminal.
    pub is_terminal: bool,
    /// With colors.
    pub has_colors: bool,
}

/// The meaning of a word, for its color: a marker character that no text contains, and the terminal code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// An id for further commands.
    Id,
    /// A match.
    Match,
    /// A heading.
    Head,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
}

const INKS: [(Ink, char, &str); 5] = [
    (Ink::Id, '\u{fdd0}', "\u{1b}[36m"),
    (Ink::Match, '\u{fdd1}', "\u{1b}[1;31m"),
    (Ink::Head, '\u{fdd2}', "\u{1b}[1m"),
    (Ink::Good, '\u{fdd4}', "\u{1b}[32m"),
    (Ink::Bad, '\u{fdd5}', "\u{1b}[1;31m"),
];
const END: (char, &str) = ('\u{fdd6}', "\u{1b}[0m");

impl Style {
    const COLORED: Self = Self { is_shell: true, is_terminal: false, has_colors: true };

    /// `text` in a color, if colors are on.
    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        let mark = INKS.iter().find(|(known, ..)| *known == ink).filter(|_| self.has_colors);
        mark.map_or_else(|| text.to_owned(), |(_, mark, _)| format!("{mark}{text}{}", END.0))
    }

    /// Prepares a text for output.
    pub fn shown(self, text: String) -> String {
        let text = if self.is_terminal { legible(&text).into_owned() } else { text };
        if self.has_colors { colored(&marked(text)) } else { text }
    }
}

/// `text` with markers in its first paragraph, unless it has some: on ids, verdicts, and the beginnings of
/// lines.
fn marked(text: String) -> String {
    static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?m)\b([ms]-[0-9a-f]{10})\b|^((?:● )?[A-Z0-9].*?)(?:  |: |, )|\b(ok)\b|\b(WRONG)\b").ok()
    });
    let Some(parts) =
        PARTS.as_ref().filter(|_| !text.contains(|c| INKS.iter().any(|(_, mark, _)| *mark == c)))
    else {
        return text;
    };
    let mark = |found: &Captures<'_>| {
        let inks = [Ink::Id, Ink::Head, Ink::Good, Ink::Bad];
        let part =
            inks.into_iter().zip(found.iter().skip(1)).find_map(|(ink, part)| Some((ink, part?.as_str())));
        part.map_or_else(String::new, |(ink, part)| {
            found[0].replacen(part, &Style::COLORED.paint(ink, part), 1)
        })
    };
    let end = text.find("\n\n").unwrap_or(text.len());
    parts.replace_all(&text[..end], mark).into_owned() + &text[end..]
}

/// `text` with terminal codes for the markers. No color extends past its line, even if a quoted text contains
/// a marker.
fn colored(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_open = false;
    for c in text.chars() {
        let ink = INKS.iter().map(|(_, mark, code)| (*mark, *code)).chain([END]).find(|(mark, _)| *mark == c);
        if let Some((mark, code)) = ink {
            is_open = mark != END.0;
            out += code;
            continue;
        }
        if c == '\n' && std::mem::take(&mut is_open) {
            out += END.1;
        }
        out.push(c);
    }
    if is_open { out + END.1 } else { out }
}

/// `line`, truncated to `width` columns.
pub(super) fn fit(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut taken = 1;
    let fitting = line.chars().take_while(|c| {
        taken += c.width().unwrap_or_default();
        taken <= width
    });
    fitting.collect::<String>().trim_end().to_owned() + "…"
}

/// Names and values, in lines of which values begin after `indent` columns.
pub(super) fn table(rows: &[(&str, String)], indent: usize, width: Option<usize>) -> String {
    let row = |(name, value): &(&str, String)| format!("{name:<indent$}{}", hanging(value, indent, width));
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// `text` after `indent` columns, wrapped between words at `width`, with further lines indented equally.
pub(super) fn hanging(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::new();
    let mut taken = indent;
    for word in text.split(' ') {
        let columns = word.width();
        if taken > indent && taken + 1 + columns > width {
            out += &format!("\n{}", " ".repeat(indent));
            taken = indent;
        } else if taken > indent {
            out.push(' ');
            taken += 1;
        }
        out += word;
        taken += columns;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_cannot_control_a_terminal_and_is_unchanged_elsewhere() {
        let said = "a\u{1b}[2J\u{9b}31m\tb\u{202e}\r\n";
        let at = |is_terminal, has_colors| Style { is_shell: true, is_terminal, has_colors };
        assert_eq!(at(true, false).shown(said.to_owned()), "a�[2J�31m\tb�\n");
        assert_eq!(at(false, false).shown(said.to_owned()), said);
        let painted = |manner: Style| manner.shown(format!("{}{said}", manner.paint(Ink::Id, "m-1")));
        assert_eq!(painted(at(true, true)), "\u{1b}[36mm-1\u{1b}[0ma�[2J�31m\tb�\n");
        assert_eq!(painted(at(false, true)), format!("\u{1b}[36mm-1\u{1b}[0m{said}"));
        assert_eq!(painted(at(false, false)), format!("m-1{said}"));
        let marks = "\u{fdd1}a\nb\u{fdd0}".to_owned();
        assert_eq!(at(true, true).shown(marks), "\u{1b}[1;31ma\u{1b}[0m\nb\u{1b}[36m\u{1b}[0m");
    }

    #[test]
    fn a_line_is_cut_before_it_is_too_wide() {
        assert_eq!(fit("plain", 5), "plain");
        assert_eq!(fit("plainer", 5), "plai…");
        assert_eq!(fit("三つ目の要約", 8), "三つ目…");
        assert_eq!(fit("🦀🦀🦀", 5), "🦀🦀…");
        assert_eq!(hanging("one two three", 4, Some(11)), "one two\n    three");
        assert_eq!(hanging("one two three", 4, None), "one two three");
        assert_eq!(fit("e\u{301}e\u{301}e", 3), "e\u{301}e\u{301}e");
    }
}
