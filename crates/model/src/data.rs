//! Data in text, such as base64, hex dumps and hashes. Its words are of no use in a search and would fill the index, so
//! the index omits it, or keeps only the beginning of a word. Its exact text is still found, by reading the messages.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;

use crate::Pattern;

/// The word that marks a passage in the index whose data was omitted: a private-use character, which texts do not have.
pub const DATA_MARK: &str = "\u{e1cd}";
/// The fewest characters of a part of data.
const LEAST_PART: usize = 7;
/// Words with shorter humps on average are data.
const PART_HUMP: usize = 3;
/// The fewest digits of a number, and the fewest characters of any other word, that may be data.
const PART_NUMBER: usize = 10;
const PART_WORD: usize = 16;

/// A run of this many letters, digits, `+`, `/` and `=` is data, not words.
const LONGEST_WORD: usize = 200;
/// Such a run, or one of any length after its mark.
static PATTERN: Pattern =
    Pattern::of(|| Regex::new(&format!("(;base64,)[A-Za-z0-9+/=]+|[A-Za-z0-9+/=]{{{LONGEST_WORD},}}")).ok());

/// The characters of a random word that are indexed. They alone decide whether it is one, so that a query may
/// have a part of them, or more.
const HEAD: usize = 12;
/// The fewest humps in the head of a random word, and the most letters of one.
const RANDOM_HUMPS: usize = 5;
const RANDOM_HUMP: usize = 3;
/// The same for hexadecimal digits, of which words have few.
const HEX_HUMPS: usize = 3;
/// The fewest characters of random words.
const RANDOM: usize = 8;
const HEX: usize = 4;
/// The most characters of a hump of data with letters of one case, on average; only digits make humps there.
const ONE_CASE_HUMP: usize = 5;

/// Text with less than one digit in as many bytes has no data in lines.
const DIGITS: usize = 10;
/// The fewest characters of a line of base64.
const LINE: usize = 40;
/// What else may be on such a line: a margin, quotation marks, a line number.
const MARGIN: usize = 12;
/// The fewest ids in a list, their fewest characters, and the share of the text that they are.
const IDS: usize = 4;
const ID: usize = 16;
const IDS_SHARE: usize = 3;
/// The fewest bytes on a line of a hex dump.
const DUMPED: u64 = 8;

fn is_of_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The runs of at least `length` bytes. Scanning backward from the end of a window skips most bytes.
fn long_runs(mut text: &[u8], length: usize, is_of_run: fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        while let Some(window) = text.get(..length) {
            match window.iter().rposition(|byte| !is_of_run(*byte)) {
                Some(end) => text = &text[end + 1..],
                None => {
                    let end = text.iter().position(|byte| !is_of_run(*byte)).unwrap_or(text.len());
                    return text.split_off(..end);
                }
            }
        }
        None
    })
}

/// `text` with an ellipsis for each long run of base64.
pub fn without_base64(text: &str) -> Cow<'_, str> {
    // Almost no text contains any, and this check is fast.
    let has_base64 = || long_runs(text.as_bytes(), LONGEST_WORD, is_of_base64).next().is_some();
    match has_base64() || text.contains(";base64,") {
        true => PATTERN.replaced(text, "${1}…"),
        false => Cow::Borrowed(text),
    }
}

/// What the index gets of `text`, and whether it lacks more than the ends of words.
pub(super) fn without_data(text: &str) -> (Cow<'_, str>, bool) {
    let mut rest = without_base64(text);
    let cut = |rest: &mut Cow<'_, str>, cuts: Vec<Range<usize>>| {
        if !cuts.is_empty() {
            *rest = Cow::Owned(without(rest, &cuts));
        }
    };
    let cuts = data_in_lines(&rest);
    cut(&mut rest, cuts);
    // Most text has no long word with a digit, and this check is fast.
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let has_digit = |run: &[u8]| run.iter().any(u8::is_ascii_digit);
    let has_ids = long_runs(rest.as_bytes(), HEAD + 1, is_of_id).any(has_digit);
    if has_ids {
        let cuts = ids_in_bulk(&rest);
        cut(&mut rest, cuts);
    }
    let lacks = matches!(rest, Cow::Owned(_));
    if has_ids {
        let cuts = tails_of_words(&rest);
        cut(&mut rest, cuts);
    }
    (rest, lacks)
}

/// `text` with the words that the index has of it.
pub fn as_indexed(text: &str) -> Cow<'_, str> {
    match tails_of_words(text).as_slice() {
        [] => Cow::Borrowed(text),
        cuts => Cow::Owned(without(text, cuts)),
    }
}

/// `text` without these ranges, which are in order.
fn without(text: &str, cuts: &[Range<usize>]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        kept.push_str(&text[at..cut.start]);
        at = cut.end;
    }
    kept.push_str(&text[at..]);
    kept
}

/// The pieces of `text` between characters that satisfy `between`, each with its place.
fn pieces(text: &str, between: fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    text.split_inclusive(between).map(move |piece| {
        let start = end;
        end += piece.len();
        (start, piece.trim_end_matches(between))
    })
}

/// The ids and hashes of a list of them.
fn ids_in_bulk(text: &str) -> Vec<Range<usize>> {
    let ids = pieces(text, |c| !(c.is_alphanumeric() || c == '-')).filter(|(_, id)| is_data(id));
    let ids: Vec<Range<usize>> = ids.map(|(start, id)| start..start + id.len()).collect();
    let bytes: usize = ids.iter().map(Range::len).sum();
    if ids.len() >= IDS && bytes * IDS_SHARE >= text.len() { ids } else { Vec::new() }
}

/// Whether it may be a part of data.
pub fn is_of_data(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_')
}

/// Whether a run of letters, digits and the signs of base64 is data: hexadecimal, a very long number, or with short
/// humps.
fn is_data(run: &str) -> bool {
    let has = |is: fn(&u8) -> bool| run.as_bytes().iter().any(is);
    let is_all = |is: fn(u8) -> bool| run.bytes().all(is);
    let (upper, lower) = (has(u8::is_ascii_uppercase), has(u8::is_ascii_lowercase));
    let hump = if upper && lower { RANDOM_HUMP } else { ONE_CASE_HUMP };
    // Dates and numbers in names are no humps.
    let words = run.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let humps = || 1 + words.map(|word| camel_humps(word).len() - 1).sum::<usize>();
    run.len() >= ID
        && has(u8::is_ascii_digit)
        && match upper || lower {
            true => is_all(|byte| byte.is_ascii_hexdigit() || byte == b'-') || humps() * hump >= run.len(),
            false => is_all(|byte| byte.is_ascii_digit()),
        }
}

/// The ends of long random words.
fn tails_of_words(text: &str) -> Vec<Range<usize>> {
    let words = pieces(text, |c| !c.is_alphanumeric());
    let random = words.filter(|(_, word)| word.len() > HEAD && is_random(word));
    random.map(|(start, word)| start + HEAD..start + word.len()).collect()
}

/// Whether a word looks like random letters and digits, as hashes and ids do, by its head.
pub(super) fn is_random(word: &str) -> bool {
    let head = &word[..word.floor_char_boundary(HEAD)];
    if word.len() < HEX || !word.is_ascii() || !head.contains(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let humps = camel_humps(head);
    let is_word = |hump: &&str| hump.len() > RANDOM_HUMP && !hump.starts_with(|c: char| c.is_ascii_digit());
    match head.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => humps.len() >= HEX_HUMPS,
        false => word.len() >= RANDOM && humps.len() >= RANDOM_HUMPS && !humps.iter().any(is_word),
    }
}

/// A line of data.
enum Line {
    Base64(Range<usize>),
    Dump { range: Range<usize>, address: Address, bytes: u64 },
}

/// The address at the beginning of a line, as hexadecimal and octal number.
type Address = [Option<u64>; 2];

/// Lines of base64 and of hex dumps, which are known by the lines beside them.
fn data_in_lines(text: &str) -> Vec<Range<usize>> {
    if text.bytes().filter(u8::is_ascii_digit).count() * DIGITS < text.len() {
        return Vec::new();
    }
    let mut at = 0;
    let lines: Vec<Option<Line>> = (text.split_inclusive('\n'))
        .map(|line| {
            let start = at;
            at += line.len();
            dump(line, start).or_else(|| base64(line, start))
        })
        .collect();
    let beside = |at: usize| lines.get(at).and_then(Option::as_ref);
    let is_data = |(at, line): &(usize, &Line)| {
        let (last, next) = (at.checked_sub(1).and_then(beside), beside(at + 1));
        last.is_some_and(|last| last.leads_to(line)) || next.is_some_and(|next| line.leads_to(next))
    };
    let known = lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.as_ref()?)));
    known.filter(is_data).map(|(_, line)| line.range().clone()).collect()
}

impl Line {
    fn range(&self) -> &Range<usize> {
        match self {
            Self::Base64(range) | Self::Dump { range, .. } => range,
        }
    }

    /// Whether `next` continues it: as long, or the last and shorter; with the address behind its bytes.
    fn leads_to(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Base64(one), Self::Base64(other)) => one.len() >= other.len(),
            (Self::Dump { address, bytes, .. }, Self::Dump { address: behind, .. }) => {
                let is_behind = |(at, behind): (&Option<u64>, &Option<u64>)| {
                    at.and_then(|at| at.checked_add(*bytes)).is_some_and(|end| Some(end) == *behind)
                };
                address.iter().zip(behind).any(is_behind)
            }
            _ => false,
        }
    }
}

/// A line of base64 that begins at `start`.
fn base64(line: &str, start: usize) -> Option<Line> {
    let (at, run) = pieces(line, |c| !is_of_data(c)).max_by_key(|(_, run)| run.len())?;
    let is_data = run.len() >= LINE && line.len() <= run.len() + MARGIN && is_data(run);
    is_data.then(|| Line::Base64(start + at..start + at + run.len()))
}

/// A line of a hex dump that begins at `start`: an address, and bytes in groups.
fn dump(line: &str, start: usize) -> Option<Line> {
    let mut words = pieces(line, |c| c.is_ascii_whitespace()).filter(|(_, word)| !word.is_empty());
    let address = words.next()?.1.trim_end_matches(':').trim_start_matches("0x");
    if address.len() < HEX || u64::from_str_radix(address, 16).is_err() {
        return None;
    }
    let (mut bytes, mut end) = (0, start);
    for (at, group) in words {
        let digits = group.trim_start_matches("0x");
        if !matches!(digits.len(), 2 | 4 | 8 | 16) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            break;
        }
        bytes += digits.len() as u64 / 2;
        end = start + at + group.len();
    }
    let address = [16, 8].map(|radix| u64::from_str_radix(address, radix).ok());
    (bytes >= DUMPED).then_some(Line::Dump { range: start..end, address, bytes })
}

/// Splits `getUserName2` into `get`, `User`, `Name`, `2`, also if it is random.
pub(crate) fn camel_humps(word: &str) -> Vec<&str> {
    let mut humps = Vec::new();
    let mut start = 0;
    let mut chars = word.char_indices().peekable();
    let mut before = None;
    while let Some((at, c)) = chars.next() {
        if let Some(previous) = before.replace(c) {
            let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let boundary = (char::is_lowercase(previous) && c.is_uppercase())
                || (previous.is_uppercase() && c.is_uppercase() && next_is_lower)
                || previous.is_ascii_digit() != c.is_ascii_digit();
            if boundary {
                humps.push(&word[start..at]);
                start = at;
            }
        }
    }
    humps.push(&word[start..]);
    humps
}

/// Whether a text may be a part of data: letters and digits in one word, capitals in no order, a long number, or a very
/// long word.
pub fn may_be_data(text: &str) -> bool {
    let has = |word: &str, is: fn(char) -> bool| word.contains(is);
    let is_odd = |word: &str| {
        let is_mixed = has(word, |c| c.is_ascii_digit()) && has(word, |c| c.is_ascii_alphabetic());
        let is_random = word.len() >= LEAST_PART && camel_humps(word).len() * PART_HUMP > word.len();
        let is_number = word.len() >= PART_NUMBER && word.bytes().all(|byte| byte.is_ascii_digit());
        is_mixed || is_random || is_number || word.len() >= PART_WORD
    };
    text.len() >= LEAST_PART && text.split(|c: char| !c.is_alphanumeric()).any(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(text: &str) -> String {
        without_data(text).0.into_owned()
    }

    #[test]
    fn long_base64_is_no_text() {
        let data = "iVBORw0KGgo/+AAA".repeat(20);
        let text = format!("see data:image/png;base64,iVBOR== and {data}, é{data}é");
        assert_eq!(without_base64(&text), "see data:image/png;base64,… and …, é…é");
        assert_eq!(indexed(&text), without_base64(&text));
    }

    #[test]
    fn lines_of_data_are_known_by_their_neighbors() {
        let base64 = "q3Zx8RkT0bYv7NfLs1JdWcE5hUoGa2MiPp9+/yQ4".to_owned();
        assert_eq!(indexed(&format!("key:\n> {base64}\n> {base64}\n> q3Zx8=\n")), "key:\n> \n> \n> q3Zx8=\n");
        assert!(indexed(&format!("key: {base64}")).contains("q3Zx8RkT0bYv"));
        let dump = "00000010: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF....\n\
                    00000020: 0300 3e00 0100 0000 c010 0000 0000 0000  ..>.....\n";
        assert_eq!(indexed(dump), "  .ELF....\n  ..>.....\n");
        let octal = "0000020 45 4c 46 02 01 01 00 00\n0000030 00 00 00 00 00 00 00 00\n";
        assert_eq!(indexed(octal), "\n\n");
        for [path, next] in [
            [
                "backups/2026-11-20-09-12-30/server-2/part-0001",
                "backups/2026-11-21-09-12-30/server-2/part-0001",
            ],
            [
                "com/ExampleProject/UserService2Impl/AccountById",
                "com/ExampleProject/UserService2Impl/AccountByIp",
            ],
        ] {
            let paths = format!("{path}\n{next}\n");
            assert_eq!(indexed(&paths), paths);
        }
        let table = "2025 1000 2000 3000 4000 5000\n2026 1000 2000 3000 4000 5000\n";
        assert_eq!(indexed(table), table);
    }

    #[test]
    fn random_words_are_known_by_their_head() {
        for word in ["4f3a9c1b77ae0d52", "011CQzXr8sK2mN4pQ7tV", "a71c6e29b41d4f36a716446655440000", "41d4"] {
            assert!(is_random(word), "{word}");
            for length in HEAD + 1..=word.len() {
                assert!(is_random(&word[..length]), "{word}");
                assert_eq!(as_indexed(&word[..length]), word[..HEAD], "{word}");
            }
        }
        for word in [
            "getUserName2", "i18nextHttpBackend", "Uint8ClampedArray", "RSA2048SHA256Padding",
            "20261120T101112Z", "getIdByUrlOrByNameOrBy", "x86", "sha256sum", "v1alpha1", "abc123", "decade",
            "deadbeefcafebabe", "日本a1b2c3d4",
        ] {
            assert!(!is_random(word) && as_indexed(word) == word, "{word}");
        }
    }
}
