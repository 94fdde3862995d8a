//! Where an answer is read, and its colours there: marks around words while a text is made, a terminal's own codes at its end.
//!
//! In between, what was said and could move a terminal's cursor is taken out, which must not take the colours along.

/// Where an answer is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// In a shell, not in Pi.
    pub is_shell: bool,
    /// By somebody at a terminal.
    pub is_terminal: bool,
    /// In colours.
    pub has_colours: bool,
}

/// What a word is, for its colour: a mark that no text has, and the terminal's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// A name to go on with.
    Id,
    /// What was looked for.
    Match,
    /// A heading.
    Head,
    /// What is beside the point.
    Faint,
    /// All is well.
    Good,
    /// It is not.
    Bad,
}

const INKS: [(Ink, char, &str); 6] = [
    (Ink::Id, '\u{fdd0}', "\u{1b}[36m"),
    (Ink::Match, '\u{fdd1}', "\u{1b}[1;31m"),
    (Ink::Head, '\u{fdd2}', "\u{1b}[1m"),
    (Ink::Faint, '\u{fdd3}', "\u{1b}[2m"),
    (Ink::Good, '\u{fdd4}', "\u{1b}[32m"),
    (Ink::Bad, '\u{fdd5}', "\u{1b}[1;31m"),
];
const END: (char, &str) = ('\u{fdd6}', "\u{1b}[0m");

impl Manner {
    /// `text` in a colour, if there are any.
    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        let mark = INKS.iter().find(|(known, ..)| *known == ink).filter(|_| self.has_colours);
        mark.map_or_else(|| text.to_owned(), |(_, mark, _)| format!("{mark}{text}{}", END.0))
    }

    /// A text as it is written out.
    #[must_use]
    pub fn shown(self, text: String) -> String {
        if !self.is_terminal && !self.has_colours {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let code =
                INKS.iter().map(|(_, mark, code)| (*mark, *code)).chain([END]).find(|(mark, _)| *mark == c);
            match code {
                Some((_, code)) if self.has_colours => out += code,
                _ if self.is_terminal && moves_the_cursor(c) => {}
                _ => out.push(c),
            }
        }
        out
    }
}

/// A sentence that quotes what somebody wrote, for a terminal that is to show it and do nothing else.
#[must_use]
pub fn legible(sentence: &str) -> String {
    sentence.chars().filter(|c| !moves_the_cursor(*c)).collect()
}

/// Would a terminal do something else than show it?
fn moves_the_cursor(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_can_do_nothing_to_a_terminal_and_is_left_alone_elsewhere() {
        let said = "a\u{1b}[2J\u{9b}31m\tb\u{202e}\r\n";
        let at = |is_terminal, has_colours| Manner { is_shell: true, is_terminal, has_colours };
        assert_eq!(at(true, false).shown(said.to_owned()), "a[2J31m\tb\n");
        assert_eq!(at(false, false).shown(said.to_owned()), said);
        let painted = |manner: Manner| manner.shown(format!("{}{said}", manner.paint(Ink::Id, "m-1")));
        assert_eq!(painted(at(true, true)), "\u{1b}[36mm-1\u{1b}[0ma[2J31m\tb\n");
        assert_eq!(painted(at(false, true)), format!("\u{1b}[36mm-1\u{1b}[0m{said}"));
        assert_eq!(painted(at(false, false)), format!("m-1{said}"));
    }
}
