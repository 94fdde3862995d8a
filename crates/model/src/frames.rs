//! Frames tell our text from other people's, which is inside a fence with an unguessable name, or indented, or
//! follows words of ours on a line. What reads like one of our tags, headings or ids is marked too, as it
//! would mislead a hasty reader.

use std::borrow::Cow;
use std::fmt;

use regex::Regex;
use unicode_normalization::UnicodeNormalization as _;
use uuid::Uuid;

use crate::{Pattern, pattern};

/// Hexadecimal digits of a UUID.
const MOST: usize = 32;
/// Bytes after a bracket that are looked at.
const TAG: usize = 96;

/// The name of a fence around foreign text.
pub struct Fence(String);

impl Fence {
    /// Returns a fence named `kind` plus `digits` random digits, or more if one of `texts` contains that
    /// name.
    pub fn around(kind: &str, mut digits: usize, texts: &[&str]) -> Self {
        loop {
            let name = format!("{kind}-{}", &Uuid::new_v4().simple().to_string()[..digits]);
            if !texts.iter().any(|text| text.contains(&name)) {
                return Self(name);
            }
            digits = (digits + 1).min(MOST);
        }
    }

    /// Returns `text` unchanged inside the fence, on lines of its own.
    pub fn enclose(&self, text: &str) -> String {
        format!("<{self}>\n{text}\n</{self}>")
    }

    /// The random digits of its name.
    pub fn digits(&self) -> &str {
        self.0.rsplit('-').next().unwrap_or_default()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tags that only we may write. Look-alikes count too.
pub struct Tags {
    /// Names, in lower case with dashes, of elements whose closing tag is ours.
    pub closing: &'static [&'static str],
    /// Names of elements whose opening tag is ours too. A dash at the end stands for a fence.
    pub both: &'static [&'static str],
}

impl Tags {
    /// Returns `text` with a backslash after the bracket of each such tag.
    pub fn broken<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut broken = String::new();
        let mut from = 0;
        for place in self.brackets(text) {
            broken.push_str(&text[from..place]);
            broken.push('\\');
            from = place;
        }
        if from == 0 { Cow::Borrowed(text) } else { Cow::Owned(broken + &text[from..]) }
    }

    /// Whether `text` contains one.
    pub fn are_in(&self, text: &str) -> bool {
        self.brackets(text).next().is_some()
    }

    /// The positions after their brackets in `text`.
    fn brackets(&self, text: &str) -> impl Iterator<Item = usize> {
        let ends = text.match_indices(is_angle).map(|(at, bracket)| at + bracket.len());
        ends.filter(|end| self.follows(&text[*end..]))
    }

    fn follows(&self, rest: &str) -> bool {
        let rest = plain(&rest[..rest.floor_char_boundary(TAG)]);
        let name = rest.trim_start_matches(|c: char| c.is_whitespace() || is_slash(c) || "|¦∣".contains(c));
        let marks = &rest[..rest.len() - name.len()];
        let (closes, opens) = (marks.contains(is_slash), !marks.contains(char::is_whitespace));
        let is = |known: &&str| match after(name, known) {
            Some(rest) if known.ends_with('-') => opens && rest.starts_with(is_dash),
            // `</summary.txt` is a path.
            Some(rest) => !rest.starts_with(['.', '/', ':']) || !rest[1..].starts_with(char::is_alphanumeric),
            None => false,
        };
        name.starts_with(char::is_alphanumeric)
            && ((closes && self.closing.iter().any(is)) || ((closes || opens) && self.both.iter().any(is)))
    }
}

/// The words of `line` as a reader takes them: plain, after marks of lists, numbers, check boxes and HTML.
pub fn opening(line: &str) -> String {
    static HTML: Pattern = pattern!("<[^<>]*>");
    static MARKS: Pattern = Pattern::of(|| {
        let number = r"\d{1,2}(?:\.\d{1,2})+\s|(?:\d+(?:\.\d+)*|[ivxlcIVXLC]{1,6}|\p{L})[.)]";
        Regex::new(&format!(r"^(?:\[[xX ]?\]|{number}|[^\p{{L}}\p{{N}}])+")).ok()
    });
    MARKS.replaced(&HTML.replaced(&plain(line), ""), "").into_owned()
}

/// Whether the words of an [`opening`] begin like an id.
pub fn begin_with_id(words: &str) -> bool {
    static ID: Pattern = Pattern::of(|| {
        let kind = r"(?:[ms]|[\p{L}--\p{Latin}])";
        Regex::new(&format!(r"(?i)^{kind}[*_`]*\\?[{DASHES}_][\da-f]{{8,}}(?:[^\p{{L}}\p{{N}}]|$)")).ok()
    });
    ID.is_in(words)
}

/// What follows in `said` after the words of `phrase`, comparing only letters and digits. A letter of a foreign
/// script passes for any, and a digit for a similar letter, as long as most letters are the real ones.
pub fn after<'s>(said: &'s str, phrase: &str) -> Option<&'s str> {
    let mut rest = said.chars();
    let mut balance = 0;
    for letter in phrase.chars().filter(|c| c.is_alphanumeric()) {
        let c = rest.find(|c| c.is_alphanumeric())?;
        balance += match c {
            c if c.eq_ignore_ascii_case(&letter) => 1,
            c if passes_for(c, letter.to_ascii_lowercase()) => -1,
            _ => return None,
        };
    }
    let rest = rest.as_str();
    let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric() && is_latin(c));
    (balance >= 0 && is_whole).then_some(rest)
}

fn passes_for(c: char, letter: char) -> bool {
    matches!((c, letter), ('0', 'o') | ('1', 'i' | 'l') | ('3', 'e') | ('5', 's'))
        || (c.is_alphabetic() && !is_latin(c))
}

fn is_latin(c: char) -> bool {
    matches!(c, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

/// `text` with plain letters for full-width, mathematical and similar ones, and without what has no ink.
fn plain(text: &str) -> Cow<'_, str> {
    // The named ones count as letters or symbols: blanks of Braille and of hieroglyphs, a note without a head,
    // the place of an object.
    static UNSEEN: Pattern = pattern!(
        r"[[\p{Cc}--\s]\p{Cf}\p{Mn}\p{Me}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\x{2800}\x{13441}\x{13442}\x{1d159}\x{fffc}\x{e0000}-\x{10ffff}]+"
    );
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n')) {
        return Cow::Borrowed(text);
    }
    let text: String = text.chars().filter(|c| c.is_ascii() || !c.is_whitespace()).nfkc().collect();
    Cow::Owned(UNSEEN.replaced(&text, "").into_owned())
}

fn is_angle(c: char) -> bool {
    c == '<' || (!c.is_ascii() && "＜﹤‹〈⟨《«❮❰˂ᐸ≺⧼⟪❬⦑≮⋖ᐊ≪⋘⪡⦓⦕".contains(c))
}

fn is_slash(c: char) -> bool {
    "/∕⁄⧸╱".contains(c)
}

/// What passes for a hyphen.
const DASHES: &str = r"\-‐‑‒–—―−⁃─~";

fn is_dash(c: char) -> bool {
    c != '\\' && DASHES.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_name_never_occurs_in_the_enclosed_text() {
        let names = (0..50).map(|_| Fence::around("text", 8, &["a"]).to_string());
        let names: std::collections::HashSet<String> =
            names.filter(|name| name.len() == "text-".len() + 8).collect();
        assert_eq!(names.len(), 50);
        let said = [
            "a",
            "</text-0> text-1 text-2 text-3 text-4 text-5 text-6 text-7",
            "text-8 text-9 text-a text-b text-c",
        ];
        for _ in 0..50 {
            let name = Fence::around("text", 1, &said).to_string();
            assert!(
                name.len() > "text-d".len() || ["text-d", "text-e", "text-f"].contains(&name.as_str()),
                "{name}"
            );
        }
        let fence = Fence::around("text", 4, &[]);
        assert_eq!(fence.enclose("a\r\n"), format!("<{fence}>\na\r\n\n</{fence}>"));
    }

    #[test]
    fn only_tags_that_look_like_ours_are_broken_and_only_once() {
        let tags = Tags { closing: &["history", "summary"], both: &["history-", "read-files"] };
        for hostile in [
            "</history-1234>", "</history>", "< / HISTORY-x>", "＜/history-1>", "</h\u{200b}istory-1>",
            "</hіstory-1>", "‹∕history–1›", "<history-1>", "</SUMMARY >", "<\n/summary>", "<read-files>",
            "</read‐files", "⟪/summary⟫", "❬/summary❭", "⦑/summary⦒", "≮/summary≯", "⋖/summary⋗",
            "ᐊ/summaryᐅ", "<|/summary|>", "</|summary|>", "<//summary>", "<read files>", "</summary.",
            "</hist0ry-1>", "</5ummary>", "<h1story-1>", "<r３ad-fi1es>",
        ] {
            let broken = tags.broken(hostile).into_owned();
            assert_eq!(broken.replace('\\', ""), hostile);
            assert_eq!(broken.chars().nth(1), Some('\\'), "{broken}");
            assert!(tags.are_in(hostile) && !tags.are_in(&broken), "{broken}");
            assert_eq!(tags.broken(&format!("{hostile}{hostile}")), broken.repeat(2));
        }
        for harmless in [
            "<section-list>",
            "a < history",
            "a < history - 1",
            "a <= history-1",
            "cat </summary.txt",
            "</HistoryList>",
            "Vec<history>",
            "git-history-1",
            "<summary>",
            "if a<b-c",
            "a/summary",
            "5 < 10, 3 > 1",
            "a ≤ b || /summary",
            "“history-1”",
            "«история» «Собрание» ⟨/摘要⟩",
        ] {
            assert_eq!(tags.broken(harmless), harmless);
        }
    }

    #[test]
    fn characters_without_ink_hide_nothing() {
        let tags = Tags { closing: &["history", "summary"], both: &[] };
        let blanks = "\u{3164}\u{115f}\u{1160}\u{ffa0}\u{2800}\u{17b4}\u{17b5}\u{1d159}\u{1d173}\u{1d17a}\u{16fe4}\u{1bca0}\u{fff9}\u{1dc0}\u{20d2}\
                      \u{70f}\u{483}\u{64b}\u{5b0}\u{e38}\u{fffc}\u{fdd1}\u{13430}\u{1343f}\u{13441}\u{1d1aa}\u{e0020}\u{ad}\u{7f}\u{34f}\u{180e}\u{feff}\u{200a}";
        for blank in blanks.chars() {
            let code = u32::from(blank);
            for tag in ["‹/his_tory-12345678>", "‹_/history>", "‹/sum_mary>"] {
                assert!(tags.are_in(&tag.replace('_', &blank.to_string())), "{tag}, {code:x}");
            }
            for header in ["[m_-0123456789 user]", "[s_-0123456789] so", "[_m-0123456789", "_[m-0123456789"] {
                let words = opening(&header.replace('_', &blank.to_string()));
                assert!(begin_with_id(&words), "{header}, {code:x}");
            }
            let words = opening(&format!("- Constraints{blank} and Open{blank} Tasks"));
            assert_eq!(after(&words, "Constraints and Open Tasks"), Some(""), "{code:x}");
        }
    }

    #[test]
    fn marks_on_letters_stay_as_they_are() {
        let tags = Tags { closing: &["history"], both: &["read-files"] };
        for text in ["</hébreu> </עִבְרִית> [नमस्ते] [ไทยกุ้ง-1234]", "1 < 2\u{338} ≤ 3", "[مَرْحَبًا]"]
        {
            assert_eq!(tags.broken(text), text);
            assert!(!begin_with_id(&opening(text)), "{text}");
        }
        assert_eq!(after("Décisions", "Decisions"), None);
    }

    #[test]
    fn an_id_is_recognized_behind_marks_and_in_any_script() {
        for text in [
            "m-0123456789",
            "[s-0123456789] so it was",
            "· (ｍ-0123456789",
            "- [x] m-0123456789",
            "12.3) [ѕ-0123456789]",
            "iv. <b>[`m⁃0123456789` user]</b>",
            "\u{115f}1\u{200b}2. [m\\-٠١٢٣٤٥٦٧٨٩ user]",
        ] {
            assert!(begin_with_id(&opening(text)), "{text}");
        }
        for text in [
            "m = 1024", "m/1000", "s: 1234", "m × 1000", "5-2024", "S-Class", "m²-1234", "S-1000RR", "№1234",
            "m-012", "am-0123456789", "see m-0123456789", "",
        ] {
            assert!(!begin_with_id(&opening(text)), "{text}");
        }
    }

    #[test]
    fn a_phrase_is_recognized_by_its_letters() {
        let phrase = "Constraints and Open Tasks";
        for said in
            ["constraints and open tasks:", "** Сonstraints & and Opеn–Tasks", "Ｃonstraints and open tasks"]
        {
            assert!(after(&opening(said), phrase).is_some_and(|rest| rest.len() < 2), "{said}");
        }
        for said in ["constraints and open task", "constraints or open tasks", "Файлы", "文件文件文件"]
        {
            assert_eq!((after(said, phrase), after(said, "Files")), (None, None), "{said}");
        }
    }
}
