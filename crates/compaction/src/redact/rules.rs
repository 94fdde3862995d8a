//! The rules, parsed from their tables, and what they find in a text.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::values::{Condition, PatternMatch};

/// The built-in rules.
pub(super) static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::parse(concat!(include_str!("keys.tsv"), include_str!("places.tsv"))));

/// How far a pattern looks, in bytes, so that even a text of nothing but keywords takes linear time. A longer
/// value is masked to its end.
const WINDOW: usize = 2_048;

/// How far before a keyword its run of key characters may start.
const BEFORE: usize = 100;

/// The size limit of the keyword search, in bytes: with all its states in memory, it need not rebuild them.
const TABLE: usize = 32 << 20;

/// The names that patterns in the tables refer to.
const NAMED: [(&str, &str); 8] = [
    // Endings after which a name still names the secret, unlike `token_type`.
    (
        "{END}",
        "(?:[_-]?(?:base|value|prod|production|dev|test|staging|live|hex|base64|key|string|[0-9]{1,2}))?",
    ),
    (
        "{SIGN}",
        concat!(
            // A value with a type, on the next line of YAML, or in a separate field.
            r#"\]?(?:\\?["'`])?\]?(?<sign>(?::[ \t]?[&'\w<>?\[\]. ]{2,24}| (?:as )?(?-i:[sS]tring))[ \t]?=[ \t]?"#,
            r#"|:[ \t]?[|>][-+]?[ \t]*\n[ \t]+|["',]{0,2}\s*["']?(?:parameter)?value["']?[ \t]*[:=][ \t]*"#,
            r#"|[ \t]{0,3}(?:=>|:=|\?=|={1,2}|<-|::[ \t]|:\*{0,2}|\|)[ \t]{0,3}|,[ \t]{0,3}|\t| \(|\()"#,
        ),
    ),
    // A text may be truncated, so a quotation mark need not be closed.
    (
        "{VALUE}",
        r#"(?:[@bru]?(?:\\"([^"\\\n]{4,})|"([^"\n]{4,})|'([^'\n]{4,})|`([^`\n]{4,}))|([^\s"'`,;&|<>()\[\]{}\\]{6,}))"#,
    ),
    // The arguments of a command up to the secret one, and that one.
    ("{ARGS}", r"\b[^\n|;]{0,300}?[ \t]"),
    ("{ARG}", r#"[ =]?(?:\\?"([^"\\\n]{4,})|'([^'\n]{4,})|([^\s"'\\]{4,}))"#),
    // A word with a digit, without the sentence's final punctuation.
    ("{WORD}", r#"["'`]?([^\s"'`]*\d(?:[^\s"'`]*[^\s"'`.,;:?)])?)"#),
    // What comes between the word for a password and the password, in several languages.
    (
        "{IS}",
        " (?:is|was|to|be|now|as|are|lautet|ist|es|est|è|é|är|er|on|jest|je|este|là|adalah)(?: just| now| still)?[: ]+",
    ),
    // The same in a script without spaces between words.
    ("{ASCII}", r"([!#-&(-_a-~]*\d(?:[!#-&(-_a-~]*[!#-&*+/-9<-@A-Z\[-_a-~-])?)"),
];

/// All rules, and one search for all their keywords.
pub(super) struct Rules {
    pub rules: Vec<Rule>,
    /// By first byte, in lowercase.
    keywords: Vec<Vec<Keyword>>,
    /// Finds where a keyword starts; `None` if it does not compile.
    pub finder: Option<Regex>,
}

/// A line of a table.
pub(super) struct Rule {
    /// The secret's name in a mask; `None` if only its position identifies it.
    kind: Option<&'static str>,
    pub check: Condition,
    pub pattern: String,
    /// Compiled when its keyword is first found, since a session has few vendors' keys; `None` if it does not
    /// compile.
    regex: OnceLock<Option<Regex>>,
}

struct Keyword {
    word: &'static [u8],
    start: Start,
    rule: usize,
}

/// Where a pattern starts.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// At the keyword, at the start of a word.
    Word,
    /// At the keyword, anywhere.
    Anywhere,
    /// At the start of the run of key characters around the keyword, which has at least this many before it.
    Run(usize),
}

/// A part of the text to mask.
struct MaskedRange {
    range: Range<usize>,
    kind: Option<&'static str>,
}

impl Rules {
    /// Parses tables. Errors in them show when a keyword is found, and in a test.
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
        let words = keywords.iter().flatten().map(|keyword| String::from_utf8_lossy(keyword.word));
        let words: Vec<String> = words.map(|word| regex::escape(&word)).collect();
        let finder = compiled(&format!("(?i){}", words.join("|")));
        Self { rules, keywords, finder }
    }

    /// `text` with everything the rules find masked.
    pub(super) fn redacted(&self, text: &str) -> String {
        let Some(finder) = &self.finder else { return "[masked]".to_owned() };
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for MaskedRange { range, kind } in merged(self.spans(text, finder)) {
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

    fn spans(&self, text: &str, finder: &Regex) -> Vec<MaskedRange> {
        let bytes = text.as_bytes();
        let (mut spans, mut at, mut covered) = (Vec::new(), 0, 0);
        while let Some(hit) = finder.find_at(bytes, at).map(|hit| hit.start()) {
            for keyword in &self.keywords[usize::from(bytes[hit].to_ascii_lowercase())] {
                let rule = &self.rules[keyword.rule];
                // Within an already masked part, only named secrets matter.
                if (hit < covered && rule.kind.is_none()) || !keyword.is_at(bytes, hit) {
                    continue;
                }
                if let Some(range) = rule.find(text, keyword.begin(bytes, hit)) {
                    covered = covered.max(range.end);
                    spans.push(MaskedRange { range, kind: rule.kind });
                }
            }
            at = hit + 1;
        }
        spans
    }
}

impl Rule {
    fn new(kind: &'static str, check: &str, pattern: &'static str) -> Self {
        let kind = Some(kind).filter(|kind| *kind != "-");
        let (check, pattern) = match pattern.strip_prefix("= ") {
            Some(value) => (Condition::Named, assigned(value)),
            None => (Condition::parse(check), pattern.to_owned()),
        };
        let pattern = NAMED.iter().fold(pattern, |pattern, (name, words)| pattern.replace(name, words));
        Self { kind, check, pattern: format!("^(?:{pattern})"), regex: OnceLock::new() }
    }

    pub(super) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compiled(&self.pattern)).as_ref()
    }

    /// What to mask of the text that starts at `start`.
    fn find(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let Some(regex) = self.regex() else {
            return Some(start..text[start..].find('\n').map_or(text.len(), |line| start + line));
        };
        let window = match self.check {
            // A pattern without a condition is bounded by itself.
            Condition::Shape(0.0) => text.len(),
            _ => text.ceil_char_boundary(text.len().min(start + WINDOW)),
        };
        let captures = regex.captures(&text.as_bytes()[start..window])?;
        // The last group that matched, or the whole match.
        let value = (0..captures.len()).rev().find_map(|group| captures.get(group))?;
        let value = start + value.start()..start + value.end();
        let sign = captures.name("sign").map_or(0..0, |sign| start + sign.start()..start + sign.end());
        let found =
            PatternMatch { text, start, sign: &text[sign], value: &text[value.clone()], at: value.start };
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

/// A value assigned to a vendor's name.
fn assigned(value: &str) -> String {
    let sign = r#"[ \t\w.-]{0,20}[\s'"\\]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,|\()[`'"\s=\\]{0,5}"#;
    format!(r"(?i)[\w-]+?{sign}({value})(?:[^\w-]|$)")
}

fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).dfa_size_limit(TABLE).build().ok()
}

/// Whether a word starts at `at`, including after a line break in JSON, and like `Key` in `apiKey`.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let is_sign = !bytes[at].is_ascii_alphanumeric();
    is_sign
        || match bytes[..at] {
            [.., b'\\', b'n' | b'r' | b't'] | [] => true,
            [.., before] if before.is_ascii_lowercase() => bytes[at].is_ascii_uppercase(),
            [.., before] => !before.is_ascii_alphanumeric(),
        }
}

/// The real end of a secret found to end at `end`: no part of a word may be left, or of what the window
/// `cut`.
fn end(text: &str, end: usize, cut: bool) -> usize {
    let more = |byte: &u8| match cut {
        true => !byte.is_ascii_whitespace() && !b"\"'`<".contains(byte),
        false => byte.is_ascii_alphanumeric() || *byte == b'_',
    };
    text.ceil_char_boundary(end + text.as_bytes()[end..].iter().take_while(|byte| more(byte)).count())
}

/// Sorts spans and merges those that overlap, keeping the first name.
fn merged(mut spans: Vec<MaskedRange>) -> Vec<MaskedRange> {
    spans.sort_by_key(|span| span.range.start);
    let mut out: Vec<MaskedRange> = Vec::new();
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
