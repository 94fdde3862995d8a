//! Splits a message's own text into sentences.
//!
//! Users paste logs, code and documents into their messages, Pi inserts files and skills, and these are not the user's own
//! statements. A line is classified by its beginning, by its share of code punctuation, and by the lines around it. The
//! rest is split at periods, and wrapped lines are joined.

use std::ops::Range;

use regex::Regex;

use super::words::CUE;
use crate::{Pattern, pattern};

pub(super) struct Sentence<'t> {
    pub(super) text: &'t str,
    pub(super) place: SentencePlace,
}

/// Where a sentence is, in particular in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SentencePlace {
    /// After a blank line, or at the start of the text.
    Paragraph,
    /// On the next line, or later on the same line.
    Text,
    /// It starts a list item.
    Item,
    /// It starts a list item with an unchecked box.
    OpenBox,
    /// It continues a list item.
    InItem,
}

/// The sentences of `text`, in order, as slices of it, without code fences, quoted lines and anything that
/// looks like a log or code.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().map(|piece| piece.text)
}

/// What the user typed of `text`: without what [`sentences`] leaves out, where no words join.
pub fn typed(text: &str) -> String {
    let shown = |line: &TextLine| match line.kind {
        LineKind::Pasted => "\0",
        LineKind::Said | LineKind::Blank => &text[line.start..line.end],
    };
    lines(text).iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// The part of `text` that Pi inserted: the files of its command line, or a skill. These may contain the tag that ends them,
/// so the part goes to the last one.
fn inserted(text: &str) -> Range<usize> {
    let tags = [("<file name=\"", "</file>"), ("<skill name=\"", "</skill>")];
    let found = tags.into_iter().filter_map(|(open, close)| {
        let start = text.find(open)?;
        let end = text[start..].rfind(close).map(|at| start + at + close.len());
        let begins_line = start == 0 || text[..start].ends_with('\n');
        end.or_else(|| begins_line.then_some(text.len())).map(|end| start..end)
    });
    found.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end)).unwrap_or(0..0)
}

/// The sentences of `text` and where they are.
pub(super) fn pieces(text: &str) -> Vec<Sentence<'_>> {
    let lines = lines(text);
    let mut pieces = Vec::new();
    let (mut at, mut blank) = (0, true);
    while let Some(line) = lines.get(at) {
        let first = at;
        at += 1;
        if line.kind != LineKind::Said {
            blank |= line.kind == LineKind::Blank;
            continue;
        }
        while lines.get(at).is_some_and(|next| goes_on(text, &lines[at - 1], next)) {
            at += 1;
        }
        let (block, bullet) = bare(&text[line.start..lines[at - 1].end]);
        let (mut place, rest) = match bullet {
            Bullet::None => {
                (if blank { SentencePlace::Paragraph } else { SentencePlace::Text }, SentencePlace::Text)
            }
            Bullet::Box => (SentencePlace::OpenBox, SentencePlace::InItem),
            Bullet::Some => (SentencePlace::Item, SentencePlace::InItem),
        };
        // Text indented below an item belongs to it.
        let above = first.checked_sub(1).and_then(|_| pieces.last()).map(|piece: &Sentence| piece.place);
        if place == SentencePlace::Text
            && text[line.start..].starts_with("  ")
            && above.is_some_and(|above| {
                matches!(above, SentencePlace::Item | SentencePlace::OpenBox | SentencePlace::InItem)
            })
        {
            place = SentencePlace::InItem;
        }
        split(block, |text| {
            pieces.push(Sentence { text, place });
            place = rest;
        });
        blank = false;
    }
    pieces
}

/// A line, by its range in the text.
struct TextLine {
    start: usize,
    end: usize,
    kind: LineKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Said,
    Pasted,
    Blank,
}

/// What the lines above imply for the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// How many fences are open, one inside the other, and what the outermost began with: the mark and its length.
    Fence(usize, char, usize),
    /// An element of HTML, up to the tag that ends it.
    Element(&'static str),
    Diff,
    Comment,
    /// A line such as `the log says:` came before; the flag says whether the announced text has begun.
    Announced(bool),
}

fn lines(text: &str) -> Vec<TextLine> {
    let mut lines: Vec<TextLine> = Vec::new();
    let mut within = Within::Nothing;
    let inserted = inserted(text);
    let mut start = 0;
    for line in parts(text, &inserted) {
        let end = start + line.len();
        let bare = line.trim();
        let mut kind = LineKind::Pasted;
        if inserted.contains(&start) {
            within = Within::Nothing;
        } else if let Within::Fence(depth, mark, length) = within {
            within = match depth + usize::from(opens_within(bare, mark, length)) {
                depth if !closes(bare, mark, length) => Within::Fence(depth, mark, length),
                1 => Within::Nothing,
                depth => Within::Fence(depth - 1, mark, length),
            };
        } else if let Within::Element(end) = within {
            if bare.contains(end) {
                within = Within::Nothing;
            }
        } else if let Some((fence, opened)) = opened(line) {
            within = opened;
            if !line[..fence].trim().is_empty() {
                lines.push(TextLine { start, end: start + fence, kind: LineKind::Said });
            }
        } else if bare.is_empty() {
            kind = LineKind::Blank;
            if within != Within::Announced(false) {
                within = Within::Nothing;
            }
        } else {
            (kind, within) = judged(line, bare, within);
        }
        lines.push(TextLine { start, end, kind });
        start = end + usize::from(text[end..].starts_with('\n'));
    }
    // A line between two pasted lines, or indented below one, belongs to them.
    for at in 1..lines.len() {
        let next = lines.get(at + 1).map(|line| line.kind);
        let line = &lines[at];
        if line.kind == LineKind::Said
            && lines[at - 1].kind == LineKind::Pasted
            && (next == Some(LineKind::Pasted) || text[line.start..line.end].starts_with([' ', '\t']))
            && !text[lines[at - 1].start..lines[at - 1].end].trim_start().starts_with(['>', '`', '~'])
        {
            lines[at].kind = LineKind::Pasted;
        }
    }
    lines
}

/// The lines of `text`. The part that Pi `inserted` ends a line.
fn parts<'t>(text: &'t str, inserted: &Range<usize>) -> impl Iterator<Item = &'t str> {
    let (before, rest) = text.split_at(inserted.start);
    let (within, after) = rest.split_at(inserted.len());
    let before = (!before.is_empty()).then(|| before.strip_suffix('\n').unwrap_or(before));
    let within = (!inserted.is_empty()).then_some(within);
    let after = if within.is_some() { after.strip_prefix('\n').unwrap_or(after) } else { after };
    before.into_iter().chain(within).chain([after]).flat_map(|part| part.split('\n'))
}

/// The length of the run of `mark` that a line starts with.
fn run(line: &str, mark: char) -> usize {
    line.len() - line.trim_start_matches(mark).len()
}

/// What a line opens, and where.
fn opened(line: &str) -> Option<(usize, Within)> {
    let bare = line.trim();
    let tildes = run(bare, '~');
    if tildes >= 3 {
        return Some((0, Within::Fence(1, '~', tildes)));
    }
    if let Some(at) = line.find("```").filter(|_| line.matches("```").count() % 2 == 1) {
        return Some((at, Within::Fence(1, '`', run(&line[at..], '`'))));
    }
    let element = ELEMENTS.iter().find(|(open, _)| {
        let rest = bare.get(..open.len()).filter(|start| start.eq_ignore_ascii_case(open));
        rest.is_some_and(|_| bare[open.len()..].starts_with(['>', ' ']))
    });
    let (_, end) = element.filter(|(_, end)| !bare.contains(end))?;
    Some((0, Within::Element(end)))
}

/// Elements of HTML that hold what others wrote.
const ELEMENTS: [(&str, &str); 5] = [
    ("<pre", "</pre>"),
    ("<code", "</code>"),
    ("<blockquote", "</blockquote>"),
    ("<document", "</document"),
    ("<attachment", "</attachment>"),
];

/// Whether a line within a fence opens another: only the others say what they contain.
fn opens_within(bare: &str, mark: char, length: usize) -> bool {
    let run = run(bare, mark);
    run >= length && !bare[run..].trim().is_empty() && !bare[run..].contains(mark)
}

/// Whether a line within a fence ends it.
fn closes(bare: &str, mark: char, length: usize) -> bool {
    let before = bare.trim_end_matches(mark);
    bare.len() - before.len() >= length && !before.contains(&mark.to_string().repeat(length))
}

/// Classifies a line that is not blank, by itself and by what is above it.
fn judged(line: &str, bare: &str, within: Within) -> (LineKind, Within) {
    let pasted = looks_pasted(line, bare);
    match within {
        Within::Diff if bare.starts_with(['+', '-', '@', '\\']) || line.starts_with(' ') => {
            (LineKind::Pasted, within)
        }
        Within::Comment => (LineKind::Pasted, if bare.contains("*/") { Within::Nothing } else { within }),
        // An announced log ends where lines no longer look like one.
        Within::Announced(_) if pasted => (LineKind::Pasted, Within::Nothing),
        Within::Announced(_) => (LineKind::Pasted, Within::Announced(true)),
        _ if bare.starts_with("@@ ") || bare.starts_with("+++ ") || bare.starts_with("diff --git") => {
            (LineKind::Pasted, Within::Diff)
        }
        _ if bare.starts_with("/*") && !bare.contains("*/") => (LineKind::Pasted, Within::Comment),
        _ if pasted => (LineKind::Pasted, Within::Nothing),
        _ if bare.ends_with([':', '：']) && bare.len() <= 300 && CUE.is_in(&super::folding::folded(bare)) => {
            (LineKind::Said, Within::Announced(false))
        }
        _ => (LineKind::Said, Within::Nothing),
    }
}

/// Beginnings of lines of logs, code and quotes.
static PASTED: Pattern = Pattern::of(|| {
    let starts = [
        r">|\||</?[A-Za-z!?]|\+[^ \d]|@@|\$ |% |❯|➜|//|/\*|\*/|#!|#\[|\}|\)|'''|[=~_*#-]{4}",
        r"\[?[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}|\[?[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}",
        r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[ *[0-9]+\.[0-9]+\]|[IWEF][0-9]{4} |0x[0-9a-f]{4}",
        r"\[(?:[a-z0-9_.:/-]{2,30}|INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL|NOTICE)\]",
        r"(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL|CRITICAL|SEVERE|ERR!?)[:\] |]",
        r"(?:[Ee]rror|[Ww]arning|[Ff]atal|[Pp]anic|warn|err|info|debug|remote|hint)(?:\[[^\]]*\]| TS[0-9]+)?:",
        r"[A-Za-z_.$]*(?:Error|Exception|Warning)(?:: | \[)|Caused by|Traceback \(|stack backtrace|thread '|goroutine [0-9]",
        r"panicked at|(?:note|help): [`a-z]|-->|at [^ ]+ ?\(?[^ ]*:[0-9]|at [^ ]+ \(|File \x22|[^ ]*[A-Za-z0-9_)/\\-]\.[a-z]{1,5}(?::[0-9]|\([0-9])",
        r"npm (?:ERR|error|WARN|warn|notice)|make(?:\[[0-9]+\])?: |test [^ ]+ \.\.\. |PASS|FAIL|=== RUN|--- |not ok |ok [0-9]|✓|✗|✖|×|√",
        r"diff --git|index [0-9a-f]{7}|commit [0-9a-f]{7}|Author: |Date: |\x22[^\x22]*\x22 ?:|>>>|PS [A-Z]:|[a-z0-9_-]+@[a-z0-9_-]+:[^ ]*[$#] ",
        r"(?:const|let|var|static|final|local) [^ ]+(?::? [^ ]+)? ?=|#(?:include|define)|from [^ ]+ import |import [^ ]+(?: from [^ ]+)?;?$",
        r"(?:pub |export |async |public |private |default )*(?:fn|func|function|def|class|struct|enum|interface|impl|trait|type) [^ ]+ ?[({<:=]",
        r"(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP) [A-Z*a-z_]+ |(?:if|for|while|switch) ?\(.*[)({]$|return [^ ]+;|elif |else:",
    ];
    Regex::new(&format!("^(?:{})", starts.join("|"))).ok()
});

/// Whether a line looks like a log, code or a quote.
fn looks_pasted(line: &str, bare: &str) -> bool {
    // Also in a list item.
    let is_quote = self::bare(line).0.starts_with(['>', '＞']);
    let is_fenced = bare.len() > 6 && bare.starts_with("```") && bare.ends_with("```");
    if is_quote || is_fenced || PASTED.is_in(bare) || bare.ends_with([';', '{', '}', '\\']) {
        return true;
    }
    if (line.starts_with('\t') || line.starts_with("    ")) && matches!(self::bare(line).1, Bullet::None) {
        return true;
    }
    let signs = bare.bytes().filter(|byte| b"{}[]=<>;|&$\\".contains(byte)).count();
    signs >= 3 && signs * 12 > bare.len()
}

/// The marker of a list item.
enum Bullet {
    None,
    Some,
    Box,
}

static BULLET: Pattern = pattern!(
    r"^[ \t]*(?:(?:[-*+–—•·◦▪●‣・]|#{1,6}|\(?[0-9]{1,2}[.)]|[a-z]\)|\[[ xX]?\]) +|[•·◦▪●‣・] *|[0-9]{1,2}[、．)] *)+"
);

/// A line without its list marker.
fn bare(line: &str) -> (&str, Bullet) {
    let trimmed = line.trim_start();
    let marked = BULLET.found(line).next().map_or(0, |mark| mark.end());
    if marked == 0 {
        // `-no emojis`, but not a command's option.
        return match trimmed.strip_prefix('-') {
            Some(rest) if rest.starts_with(char::is_alphabetic) && rest.contains(' ') => (rest, Bullet::Some),
            _ => (trimmed, Bullet::None),
        };
    }
    let (mark, rest) = line.split_at(marked);
    let open = mark.contains("[ ]") || mark.contains("[]");
    let heading = mark.trim_start().starts_with('#');
    let bullet = match (open, heading) {
        (true, _) => Bullet::Box,
        (false, true) => Bullet::None,
        (false, false) => Bullet::Some,
    };
    (rest, bullet)
}

/// Whether the sentence at the end of `line` continues in the next line.
fn goes_on(text: &str, line: &TextLine, next: &TextLine) -> bool {
    if next.kind != LineKind::Said {
        return false;
    }
    let (above, below) = (text[line.start..line.end].trim_end(), &text[next.start..next.end]);
    let start = below.trim_start();
    if !start.starts_with(char::is_lowercase) || above.ends_with([':', '：']) {
        return false;
    }
    let last = above.rsplit(' ').next().unwrap_or_default().to_lowercase();
    let word = start.split(' ').next().unwrap_or_default().len();
    let wrapped = (60..=110).contains(&above.len()) && above.len() + word > 72;
    let hangs = below.starts_with("  ") && !matches!(bare(above).1, Bullet::None);
    matches!(bare(below).1, Bullet::None)
        && (wrapped || hangs || above.ends_with(',') || super::folding::LINKS.contains(&last.as_str()))
}

/// Abbreviations whose period does not end a sentence.
const ABBREVIATIONS: [&str; 30] = [
    "e.g", "i.e", "eg", "ie", "vs", "cf", "etc", "approx", "incl", "resp", "z.b", "d.h", "u.a", "bzw", "ca",
    "usw", "ggf", "evtl", "sog", "inkl", "p.ex", "ex", "ej", "mr", "dr", "st", "nr", "fig", "max", "min",
];

/// Calls `each` with the sentences of `block`.
fn split<'t>(block: &'t str, mut each: impl FnMut(&'t str)) {
    let mut give = |sentence: &'t str| {
        let sentence = sentence.trim();
        if !sentence.is_empty() {
            each(sentence);
        }
    };
    let quotes = block.bytes().filter(|byte| *byte == b'"').count() % 2 == 0;
    let (mut start, mut quoted) = (0, false);
    let mut chars = block.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        quoted ^= quotes && c == '"';
        let wide = matches!(c, '。' | '！' | '？');
        if quoted || !(wide || matches!(c, '.' | '!' | '?' | '…')) {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((at, c)) = chars.next_if(|(_, c)| ".!?…。！？)）\"”’'»」』*`".contains(*c))
        {
            quoted ^= quotes && c == '"';
            end = at + c.len_utf8();
        }
        let follows = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if quoted || !(wide || follows) || (c == '.' && abbreviated(&block[start..at])) {
            continue;
        }
        give(&block[start..end]);
        start = end;
    }
    give(&block[start..]);
}

/// Whether `text`, which is followed by a period, ends with an abbreviation.
fn abbreviated(text: &str) -> bool {
    let last = text.rsplit([' ', '\n', '(']).next().unwrap_or_default();
    last.len() <= 6 && ABBREVIATIONS.contains(&last.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&str> {
        sentences(text).collect()
    }

    #[test]
    fn sentences_end_at_periods_and_line_breaks() {
        assert_eq!(
            of("Fix it. Then run e.g. cargo test!  ok\nno emojis"),
            ["Fix it.", "Then run e.g. cargo test!", "ok", "no emojis"]
        );
        assert_eq!(of("不要改main.rs。然后测试！好"), ["不要改main.rs。", "然后测试！", "好"]);
        assert_eq!(
            of("See main.rs and v1.2 \"Stop. Go.\" there. End"),
            ["See main.rs and v1.2 \"Stop. Go.\" there.", "End"]
        );
    }

    #[test]
    fn list_markers_are_not_part_of_a_sentence() {
        assert_eq!(
            of("- a b\n2) c d\n  * [ ] e f\n-g h\n# i\n--j k"),
            ["a b", "c d", "e f", "g h", "i", "--j k"]
        );
    }

    #[test]
    fn wrapped_lines_are_joined() {
        assert_eq!(
            of("Please never\n  touch main.rs.\nThanks"),
            ["Please never\n  touch main.rs.", "Thanks"]
        );
        assert_eq!(of("- never push\n  to main\n- ok"), ["never push\n  to main", "ok"]);
        assert_eq!(of("use tabs\nno emojis"), ["use tabs", "no emojis"]);
    }

    #[test]
    fn pasted_text_is_left_out() {
        let texts = [
            "a\n```\nnever b\n```\nc",
            "a\n> never b\nc",
            "a\nerror: never b\n  you must c\n\nc",
            "a\n@@ -1 +1 @@\n-never b\n+always b\n\nc",
            "a\n/**\n * never b\n */\nc",
            "a\n    never b\nc",
            "a\nlet b = c;\nc",
            "a\n2024-01-01 never\nyou must\n2024-01-02 b\nc",
        ];
        for text in texts {
            assert_eq!(of(text), ["a", "c"], "{text}");
        }
        assert_eq!(of("the readme says:\nnever b\nalways c\n\nd"), ["the readme says:", "d"]);
        assert_eq!(of("look ```\nnever\n"), ["look"]);
    }
}
