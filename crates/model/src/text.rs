//! Text helpers: shortening without splitting a character, terminal safety, and formatting times.
//!
//! Times are UTC everywhere, so that the same history reads the same on every machine.

use std::borrow::Cow;
use std::fmt::Write as _;

use jiff::civil::DateTime;
use jiff::{Timestamp, Zoned, tz::TimeZone};

use crate::is_ideograph;

/// Replaces what can't be shown.
const UNSHOWN: &str = "\u{fffd}";
/// Of an output's left-out middle, the most lines about errors that are shown, and the bytes of one.
const MOST_ERRORS: usize = 3;
const ERROR: usize = 160;
/// Words in such lines.
const TROUBLE: [&str; 6] = ["error", "fatal", "panic", "exception", "errno", "failed"];

/// The one of `names` that `name` may be a misspelling of.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// The similarity from which it may be, 1 being equal.
    const ALIKE: f64 = 0.8;
    let alike = |known: &str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    names.filter(|known| alike(known) >= ALIKE).max_by(|a, b| alike(a).total_cmp(&alike(b)))
}

/// `text` with one blank between words.
pub fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `max` characters of `text` on one line, with blanks collapsed and `…` after a cut.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if count > 0 {
            line.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= max {
                line.truncate(line.trim_end_matches([' ', '…']).len());
                line.push('…');
                return line;
            }
            line.push(if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c });
            count += 1;
        }
    }
    line
}

/// Whether a terminal would obey it instead of showing it: control characters other than line feed and tab,
/// and marks that reverse the text around them.
pub fn is_unsafe(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{feff}')
}

/// Returns `text` safe for a terminal, with `�` for each unsafe character. Line ends become those of Unix.
pub fn legible(text: &str) -> Cow<'_, str> {
    match text.contains(is_unsafe) {
        true => Cow::Owned(text.replace("\r\n", "\n").replace(is_unsafe, UNSHOWN)),
        false => Cow::Borrowed(text),
    }
}

/// Returns a whole name safe for one of our lines, with `�` for line feeds and tabs too.
pub fn in_line(name: &str) -> String {
    name.replace(|c| is_unsafe(c) || matches!(c, '\n' | '\t'), UNSHOWN)
}

/// Returns equivalent JSON that is safe for a terminal. Unsafe characters occur only in strings, where they
/// can be escaped.
pub fn legible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_unsafe(c) {
            true => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            false => out.push(c),
        }
    }
    out
}

/// The first lines about errors in the middle of an output that is too long, each after a line break.
pub(crate) fn errors_within(output: &str, max: usize) -> String {
    if output.len() <= max {
        return String::new();
    }
    let middle = output.floor_char_boundary(max * 2 / 3)..output.ceil_char_boundary(output.len() - max / 3);
    let is_error = |line: &&str| {
        let lower = line.to_lowercase();
        TROUBLE.iter().any(|word| lower.contains(word))
    };
    let lines = output[middle].lines().skip(1).filter(is_error).take(MOST_ERRORS);
    let lines: String = lines.map(|line| format!("\n{}", &line[..line.floor_char_boundary(ERROR)])).collect();
    if lines.len() < max / 2 { lines } else { String::new() }
}

/// At most about `max` bytes of `text`: its head and its tail, with `note(bytes left out)` between them.
pub fn head_and_tail(text: &str, max: usize, note: impl Fn(usize) -> String) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    // Two thirds are head: a command's purpose is at the start, its outcome at the end.
    let head = text.floor_char_boundary(max * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - max / 3);
    format!("{}\n{}\n{}", &text[..head], note(tail - head), &text[tail..])
}

/// The longest prefix of `text` with at most `max` bytes that splits no character; it ends with a line if a
/// line ends in its last half.
pub fn cut_at_line(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let hard = text.floor_char_boundary(max);
    match text[..hard].rfind('\n') {
        Some(line) if line >= hard / 2 => &text[..line + 1],
        _ => &text[..hard],
    }
}

/// `ms` since the epoch as `2026-11-20 09:12` in UTC, as the model reads it; a plain number outside the calendar's
/// range.
pub fn minute(ms: i64) -> String {
    strftime(ms, TimeZone::UTC, MINUTE)
}

/// The same in this machine's time zone, as people read it.
pub fn local_minute(ms: i64) -> String {
    strftime(ms, TimeZone::system(), MINUTE)
}

/// The same with seconds.
pub fn local_second(ms: i64) -> String {
    strftime(ms, TimeZone::system(), "%Y-%m-%d %H:%M:%S")
}

/// The minute with the zone's name, where it might be mistaken.
pub fn zoned_minute(ms: i64) -> String {
    strftime(ms, TimeZone::system(), "%Y-%m-%d %H:%M %Z")
}

/// `ms` since the epoch in ISO format, to the millisecond.
pub fn timestamp(ms: i64) -> String {
    strftime(ms, TimeZone::UTC, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// Two times as `2026-11-20 09:12–10:40` in UTC; the date is repeated only if it differs.
pub fn time_span(from: i64, to: i64) -> String {
    span_in(&TimeZone::UTC, from, to)
}

/// The same in this machine's time zone.
pub fn local_span(from: i64, to: i64) -> String {
    span_in(&TimeZone::system(), from, to)
}

const MINUTE: &str = "%Y-%m-%d %H:%M";

fn span_in(zone: &TimeZone, from: i64, to: i64) -> String {
    // A clock that was wrong may have put the end first.
    let (from, to) = (from.min(to), from.max(to));
    let same_day = strftime(from, zone.clone(), "%F") == strftime(to, zone.clone(), "%F");
    let end = strftime(to, zone.clone(), if same_day { "%H:%M" } else { MINUTE });
    let start = strftime(from, zone.clone(), MINUTE);
    if start == strftime(to, zone.clone(), MINUTE) { start } else { format!("{start}–{end}") }
}

fn strftime(ms: i64, zone: TimeZone, format: &str) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_zoned(zone).strftime(format).to_string(),
        Err(_) => ms.to_string(),
    }
}

/// Parses an ISO time, as in session entries, to ms since the epoch.
pub fn parse_iso(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Parses a time as a person writes it, to ms since the epoch: ISO, `today` or `yesterday`; in this machine's time zone unless it
/// names one.
pub fn parse_local(text: &str) -> Option<i64> {
    let today = || Zoned::now().date();
    let local = match text {
        "today" => today().into(),
        "yesterday" => today().yesterday().ok()?.into(),
        _ => match parse_iso(text) {
            Some(time) => return Some(time),
            None => text.parse::<DateTime>().ok()?,
        },
    };
    local.to_zoned(TimeZone::system()).ok().map(|time| time.timestamp().as_millisecond())
}

/// The current time, in ms since the epoch.
pub fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// How long ago `then` was, in the largest unit that fits: `3d`, `2h`, `5m`, `now`.
pub fn age(then: i64, now: i64) -> String {
    let minutes = now.saturating_sub(then) / 60_000;
    match minutes {
        ..=0 => "now".into(),
        1..=59 => format!("{minutes}m"),
        60..=1_439 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1_440),
    }
}

/// Money: `$1.25`, `$0.021`; a small amount never shows as zero.
pub fn dollars(amount: f64) -> String {
    if amount >= 1.0 {
        format!("${amount:.2}")
    } else if amount >= 0.0005 {
        format!("${amount:.3}")
    } else {
        "less than $0.001".into()
    }
}

/// A human-readable byte count: `2.1 MB`, or `377 bytes`.
pub fn megabytes(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    let bytes = bytes as f64;
    if bytes < 100_000.0 { format!("{:.0} KB", bytes / 1e3) } else { format!("{:.1} MB", bytes / 1e6) }
}

/// `25502` as `25,502`.
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = (digits.as_bytes().rchunks(3).rev())
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// `1 message`, `8,431 messages`.
pub fn count(n: usize, noun: &str) -> String {
    let plural = match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o'])) {
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with("ch") => format!("{noun}es"),
        None => format!("{noun}s"),
    };
    format!("{} {}", grouped(n), if n == 1 { noun } else { &plural })
}

/// Whether `text` has `part` as whole words: `port 80` is not in `port 8080`, nor `release-1` in `release-1-beta`.
pub fn has_words(text: &str, part: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() && !is_ideograph(c) || "_-/@#".contains(c);
    let ends = |end: usize| {
        // A dot may end a sentence or go on with a name.
        let mut rest = text[end..].chars().skip_while(|c| ".:,".contains(*c));
        !rest.next().is_some_and(goes_on)
    };
    let begins = |at: usize| !text[..at].chars().next_back().is_some_and(goes_on);
    text.match_indices(part).any(|(at, _)| begins(at) && ends(at + part.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_whole_words() {
        for (text, part) in [
            ("Never push to release-1.", "push to release-1"),
            ("port 80, then", "port 80"),
            ("必须用制表符缩进", "制表符"),
            ("In main.rs, use tabs.", "use tabs"),
        ] {
            assert!(has_words(text, part), "{text}");
        }
        for (text, part) in [
            ("push to release-10", "push to release-1"),
            ("port 8080", "port 80"),
            ("table user_sessions", "table user"),
            ("release-1-beta", "release-1"),
            ("edit main.rs", "edit main"),
            ("in src/app", "src/a"),
            ("reuse tabs", "use tabs"),
        ] {
            assert!(!has_words(text, part), "{text}");
        }
    }

    #[test]
    fn a_noun_has_its_plural() {
        let plurals =
            [("summary", "2 summaries"), ("key", "2 keys"), ("branch", "2 branches"), ("1", "2 1s")];
        assert!(plurals.iter().all(|(noun, two)| count(2, noun) == *two) && count(1, "key") == "1 key");
    }

    #[test]
    fn one_line_never_breaks_a_character_and_marks_the_cut() {
        assert_eq!(one_line("a\n b\tc", 10), "a b c");
        assert_eq!(one_line("日本語テスト", 3), "日本語…");
        assert_eq!(one_line("cut… once", 4), "cut…");
        assert_eq!(one_line("\u{1b}[31mred \u{202e}\u{2028}x", 20), "\u{fffd}[31mred \u{fffd} x");
    }

    #[test]
    fn terminals_get_no_control_characters() {
        let hostile = "\u{1b}]0;x\u{7}\u{9b}2J\u{7f}\u{61c}\u{200f}\u{202e}\u{2069}a\r\n\tb\rc\u{2028}";
        let shown = legible(hostile);
        assert_eq!(shown, "�]0;x��2J�����a\n\tb�c�");
        assert_eq!(legible(&shown), shown);
        assert_eq!(in_line("a\n\tb\u{1b}"), "a��b�");
        let json = serde_json::to_string_pretty(&[hostile]).unwrap();
        let shown = legible_json(&json);
        assert!(!shown.contains(is_unsafe) && shown.contains("\\u202e"), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [hostile]);
    }

    #[test]
    fn head_and_tail_keep_both_ends_and_count_the_omitted_bytes() {
        let text = format!("{}{}", "é".repeat(50), "z".repeat(50));
        let short = head_and_tail(&text, 60, |gone| format!("[{gone}]"));
        assert!(short.starts_with("éé") && short.ends_with("zz"), "{short}");
        let gone: usize = short.lines().nth(1).unwrap().trim_matches(['[', ']']).parse().unwrap();
        let kept: usize = short.lines().step_by(2).map(str::len).sum();
        assert_eq!(kept + gone, text.len());
    }

    #[test]
    fn lines_about_errors_in_the_middle_are_found() {
        let log =
            |middle: &str| format!("{}{middle}{}", "info: fine\n".repeat(50), "info: fine\n".repeat(50));
        let errors = errors_within(&log("ERROR upstream said E_X\ninfo\nfatal: lease is held\n"), 300);
        assert_eq!(errors, "\nERROR upstream said E_X\nfatal: lease is held");
        assert_eq!(errors_within("error: short", 300), "");
        assert_eq!(errors_within(&log("error é\n"), 10), "");
    }

    #[test]
    fn times_are_utc_and_spans_name_the_day_once() {
        let nine = parse_iso("2026-11-20T09:12:30.000Z").unwrap();
        for (written, local) in [("2026-11-20", "2026-11-20 00:00"), ("2026-11-20T09:12", "2026-11-20 09:12")]
        {
            assert_eq!(local_minute(parse_local(written).unwrap()), local);
        }
        assert_eq!(parse_local("2026-11-20T09:12Z"), Some(nine - 30_000));
        assert!(parse_local("yesterday") < parse_local("today") && parse_local("today") <= Some(now()));
        assert_eq!(minute(nine), "2026-11-20 09:12");
        assert_eq!(time_span(nine, nine + 88 * 60_000), "2026-11-20 09:12–10:40");
        assert_eq!(time_span(nine, nine + 86_400_000), "2026-11-20 09:12–2026-11-21 09:12");
        assert_eq!(time_span(nine, nine + 20_000), "2026-11-20 09:12");
        assert_eq!(time_span(nine + 88 * 60_000, nine), "2026-11-20 09:12–10:40");
        assert_eq!(minute(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
