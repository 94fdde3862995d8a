//! The rules, read from their tables, and what they find in a text.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::values::{Check, Found};

/// The rules that are shipped.
pub(super) static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::parse(concat!(include_str!("keys.tsv"), include_str!("places.tsv"))));

/// How far a pattern looks, in bytes: so that a text of nothing but keywords takes no longer than its length demands. A longer
/// value is masked to its end.
const WINDOW: usize = 2_048;

/// How far before a keyword its run of key characters may begin.
const BEFORE: usize = 100;

/// How large the search for the keywords may grow, in bytes: with all states in memory it need not make them again.
const TABLE: usize = 32 << 20;

/// What the patterns of the tables refer to.
const NAMED: [(&str, &str); 8] = [
    // How a name may go on without being the name of something else, as `token_type` would be.
    (
        "{END}",
        "(?:[_-]?(?:base|value|prod|production|dev|test|staging|live|hex|base64|key|string|[0-9]{1,2}))?",
    ),
    (
        "{SIGN}",
        concat!(
            // A value of a type, on the next line of YAML, or in a field of its own.
            r#"\]?(?:\\?["'`])?\]?(?<sign>(?::[ \t]?[&'\w<>?\[\]. ]{2,24}| (?:as )?(?-i:[sS]tring))[ \t]?=[ \t]?"#,
            r#"|:[ \t]?[|>][-+]?[ \t]*\n[ \t]+|["',]{0,2}\s*["']?(?:parameter)?value["']?[ \t]*[:=][ \t]*"#,
            r#"|[ \t]{0,3}(?:=>|:=|\?=|={1,2}|<-|::[ \t]|:\*{0,2}|\|)[ \t]{0,3}|,[ \t]{0,3}|\t| \(|\()"#,
        ),
    ),
    // A text may be cut off, so no mark has to end.
    (
        "{VALUE}",
        r#"(?:[@bru]?(?:\\"([^"\\\n]{4,})|"([^"\n]{4,})|'([^'\n]{4,})|`([^`\n]{4,}))|([^\s"'`,;&|<>()\[\]{}\\]{6,}))"#,
    ),
    // The arguments of a command up to the one that matters, and that one.
    ("{ARGS}", r"\b[^\n|;]{0,300}?[ \t]"),
    ("{ARG}", r#"[ =]?(?:\\?"([^"\\\n]{4,})|'([^'\n]{4,})|([^\s"'\\]{4,}))"#),
    // A word with a digit, without the sign that ends its sentence.
    ("{WORD}", r#"["'`]?([^\s"'`]*\d(?:[^\s"'`]*[^\s"'`.,;:?)])?)"#),
    // What is between the word for a password and the password, in some languages.
    (
        "{IS}",
        " (?:is|was|to|be|now|as|are|lautet|ist|es|est|è|é|är|er|on|jest|je|este|là|adalah)(?: just| now| still)?[: ]+",
    ),
    // The same in a script that has no spaces between words.
    ("{ASCII}", r"([!#-&(-_a-~]*\d(?:[!#-&(-_a-~]*[!#-&*+/-9<-@A-Z\[-_a-~-])?)"),
];

/// All rules, and one search for the keywords of all.
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// By first byte, in lower case.
    keywords: Vec<Vec<Keyword>>,
    /// Finds where a keyword starts; none if it does not compile.
    finder: Option<Regex>,
}

/// A line of a table.
pub(super) struct Rule {
    /// What a mask calls the secret; none where the place says it.
    kind: Option<&'static str>,
    check: Check,
    pattern: String,
    /// Compiled when its keyword is first seen, since a session has few of all vendors' keys; none if it does not compile.
    regex: OnceLock<Option<Regex>>,
}

struct Keyword {
    word: &'static [u8],
    start: Start,
    rule: usize,
}

/// Where a pattern begins.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// At the keyword, which begins a word.
    Word,
    /// At the keyword, wherever it is.
    Anywhere,
    /// Where the run of key characters begins that the keyword is in, which has at least so many before it.
    Run(usize),
}

/// A part of the text to mask.
struct Span {
    range: Range<usize>,
    kind: Option<&'static str>,
}

impl Rules {
    /// Reads tables; what is wrong in them shows when a keyword is found, and in a test.
    pub(super) fn parse(tables: &'static str) -> Self {
        let lines = tables.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let mut keywords: Vec<Vec<Keyword>> = (0..256).map(|_| Vec::new()).collect();
        let mut rules = Vec::new();
        for line in lines {
            let mut columns = line.splitn(4, '\t');
            let mut column = || columns.next().unwrap_or_default();
            let (kind, words, check, pattern) = (column(), column(), column(), column());
            for keyword in words.split(',').map(|word| Keyword::parse(word, rules.len())) {
                keywords[usize::from(keyword.first())].push(keyword);
            }
            rules.push(Rule::new(kind, check, pattern));
        }
        let finder = compiled(&finder(keywords.iter().flatten()));
        Self { rules, keywords, finder }
    }

    /// `text` with what the rules find masked.
    pub(super) fn redacted(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return "[masked]".to_owned() };
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for Span { range, kind } in merged(self.spans(text, finder)) {
            out.push_str(&text[done..range.start]);
            match kind {
                Some(kind) => out.extend(["[masked: ", kind, "]"]),
                None => out.push_str("[masked]"),
            }
            done = range.end;
        }
        out.push_str(&text[done..]);
        out
    }

    fn spans(&self, text: &str, finder: &Regex) -> Vec<Span> {
        let bytes = text.as_bytes();
        let (mut spans, mut at, mut covered) = (Vec::new(), 0, 0);
        while let Some(hit) = finder.find_at(bytes, at).map(|hit| hit.start()) {
            for keyword in &self.keywords[usize::from(bytes[hit].to_ascii_lowercase())] {
                let rule = &self.rules[keyword.rule];
                // Within what is masked already, only what has a name of its own is of interest.
                if (hit < covered && rule.kind.is_none()) || !keyword.is_at(bytes, hit) {
                    continue;
                }
                if let Some(range) = rule.find(text, keyword.begin(bytes, hit)) {
                    covered = covered.max(range.end);
                    spans.push(Span { range, kind: rule.kind });
                }
            }
            at = hit + 1;
        }
        spans
    }

    /// As if the keywords did not compile.
    #[cfg(test)]
    pub(super) fn without_keywords() -> Self {
        Self { finder: None, ..Self::parse("") }
    }

    /// What does not compile, or is not understood.
    #[cfg(test)]
    pub(super) fn broken(&self) -> Vec<&str> {
        let rules = self.rules.iter().filter(|rule| rule.regex().is_none() || rule.check == Check::Unknown);
        let finder = self.finder.is_none().then_some("the keywords");
        rules.map(|rule| rule.pattern.as_str()).chain(finder).collect()
    }
}

impl Rule {
    fn new(kind: &'static str, check: &str, pattern: &'static str) -> Self {
        let kind = Some(kind).filter(|kind| *kind != "-");
        let (check, pattern) = match pattern.strip_prefix("= ") {
            Some(value) => (Check::Named, assigned(value)),
            None => (Check::parse(check), pattern.to_owned()),
        };
        let pattern = NAMED.iter().fold(pattern, |pattern, (name, words)| pattern.replace(name, words));
        Self { kind, check, pattern: format!("^(?:{pattern})"), regex: OnceLock::new() }
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compiled(&self.pattern)).as_ref()
    }

    /// What is to be masked of what begins at `start`.
    fn find(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let Some(regex) = self.regex() else { return Some(start..line_end(text, start)) };
        let window = match self.check {
            // What has no condition ends by itself.
            Check::Shape(0.0) => text.len(),
            _ => text.ceil_char_boundary(text.len().min(start + WINDOW)),
        };
        let captures = regex.captures(&text.as_bytes()[start..window])?;
        let value = value(&captures)?;
        let value = start + value.start..start + value.end;
        let sign = captures.name("sign").map_or(0..0, |sign| start + sign.start()..start + sign.end());
        let found = Found { text, start, sign: &text[sign], value: &text[value.clone()], at: value.start };
        self.check.is_secret(&found).then(|| value.start..end(text, value.end, value.end == window))
    }
}

impl Keyword {
    fn parse(word: &'static str, rule: usize) -> Self {
        let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let least = word[..word.len() - letters.len()].parse().unwrap_or_default();
        let (word, start) = match (letters.strip_prefix('*'), word.strip_prefix('~')) {
            (Some(word), _) => (word, Start::Run(least)),
            (_, Some(word)) => (word, Start::Anywhere),
            _ => (word, Start::Word),
        };
        Self { word: word.as_bytes(), start, rule }
    }

    fn first(&self) -> u8 {
        self.word.first().copied().unwrap_or_default().to_ascii_lowercase()
    }

    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let word = bytes.get(at..at + self.word.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(self.word))
            && match self.start {
                Start::Word => begins_word(bytes, at),
                Start::Anywhere => true,
                Start::Run(least) => run(bytes, at) >= least,
            }
    }

    fn begin(&self, bytes: &[u8], hit: usize) -> usize {
        match self.start {
            Start::Run(_) => hit - run(bytes, hit),
            Start::Word | Start::Anywhere => hit,
        }
    }
}

/// How many key characters are before `at`.
fn run(bytes: &[u8], at: usize) -> usize {
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.~".contains(byte);
    bytes[..at].iter().rev().take(BEFORE).take_while(|byte| is_key(byte)).count()
}

/// A value that a vendor's name is given.
fn assigned(value: &str) -> String {
    let sign = r#"[ \t\w.-]{0,20}[\s'"\\]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,|\()[`'"\s=\\]{0,5}"#;
    format!(r"(?i)[\w-]+?{sign}({value})(?:[^\w-]|$)")
}

fn finder<'a>(keywords: impl Iterator<Item = &'a Keyword>) -> String {
    let words = keywords.map(|keyword| regex::escape(&String::from_utf8_lossy(keyword.word)));
    format!("(?i){}", words.collect::<Vec<_>>().join("|"))
}

fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).dfa_size_limit(TABLE).build().ok()
}

/// The last group that took part, or all.
fn value(captures: &Captures<'_>) -> Option<Range<usize>> {
    (0..captures.len()).rev().find_map(|group| captures.get(group)).map(|group| group.range())
}

/// Does a word begin at `at`, as after a line end in JSON, or as `Key` does in `apiKey`?
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let is_sign = !bytes[at].is_ascii_alphanumeric();
    is_sign
        || match bytes[..at] {
            [.., b'\\', b'n' | b'r' | b't'] | [] => true,
            [.., before] if before.is_ascii_lowercase() => bytes[at].is_ascii_uppercase(),
            [.., before] => !before.is_ascii_alphanumeric(),
        }
}

/// Where a secret ends that was found to end at `end`: no part of a word is left, nor of what the window `cut`.
fn end(text: &str, end: usize, cut: bool) -> usize {
    let more = |byte: &u8| match cut {
        true => !byte.is_ascii_whitespace() && !b"\"'`<".contains(byte),
        false => byte.is_ascii_alphanumeric() || *byte == b'_',
    };
    text.ceil_char_boundary(end + text.as_bytes()[end..].iter().take_while(|byte| more(byte)).count())
}

fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |length| start + length)
}

/// In order, those that touch made one, which has the first kind of them.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.range.start);
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                last.range.end = last.range.end.max(span.range.end);
                last.kind = last.kind.or(span.kind);
            }
            _ => out.push(span),
        }
    }
    out
}
