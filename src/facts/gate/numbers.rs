//! Parses numbers with a unit, so that different spellings compare equal: `1,500 ms` and `1500ms`, `97 %` and
//! `97 percent`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::patterns::{captures, is_letter};

/// A color; a number with what precedes or follows it. Case matters only for `k` and `M`.
const NUMBER: &str = concat!(
    r"(?-u:\b)(?<clock>[0-9]{1,2}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?)(?-u:\b)",
    r"|#(?<color>[0-9A-Fa-f]{6})(?-u:\b)|(?-u:\b)(?:(?<hours>[0-9]+)h)?(?<mins>[0-9]+)m(?<secs>[0-9]+(?:\.[0-9]+)?)s(?-u:\b)",
    r"|(?-u:\b)(?<whole>[0-9]+)h(?<rest>[0-9]{1,2})m?(?-u:\b)",
    r"|(?<exact>[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
    r"|[0-9](?:\.[0-9]+)?e-[0-9]+|[0-2]?[0-9]:[0-5][0-9])(?-u:\b)",
    r"|(?<port>(?-u:\b)(?i:ports?)[ :=]{1,2}|localhost:|(?-u:\B):)?",
    r"(?<coin>[$€£] ?)?(?<n>[0-9]+(?:[.,'_\u{a0}\u{202f}][0-9]+)*",
    r"(?<pre>-(?:rc|beta|alpha|pre|dev)[\w.]*)?)",
    r"(?<times>[ \u{a0}]?(?:k|K|M|thousand|million|billion)(?-u:\b))?",
    r"(?:(?<minutes>m)(?-u:\b)|[ \u{a0}\u{202f}-]?(?<unit>%|€|£|°[CF](?-u:\b)|(?i:percent|prozent|por ciento|pour cent",
    r"|ms|ns|us|µs|s|sec\w*|sek\w*|seg\w*|saniye",
    r"|min|minut\w*|dakika|h|hours?|heures?|horas?|stunden?|days?|jours?|d[ií]as?|tagen?|giorni|weeks?|semaines?|semanas?|wochen?",
    r"|months?|mois|meses|mesi|monate?n?|[kmgt]i?b|bytes",
    r"|px|rem|dpi|mm|cm|kg|ppm|bit|cores?|v?cpus?|gpus?|eur|euros?",
    r"|usd|dollars?|gbp|x|fold|[kmg]bit/s|[kmg]bps|[kmgt]b/s|px",
    r"|fps|[kmg]?hz|rpm|rps|qps|(?:req|requests|ops|items|rows|events)/s)(?-u:\b)",
    r"|(?:[KMGT]i|[GTg]|[mk]?[VW]|[mkµ]Wh|[mµ]A|mAh|dBm?)(?-u:\b)",
    r"|毫秒|ミリ秒|밀리초|мс|秒|초",
    r"|сек\p{L}*|分钟|分鐘|分|분|мин\p{L}*|小时|小時|時間|시간",
    r"|ドル|美元|час\p{L}*|天|日|일|дн[яе]\p{L}*|день|件|行|条|строк\p{L}*|행|건",
    r"))?",
);
/// Units with several names, each with the beginnings of these.
const UNITS: [(&str, &[&str]); 13] = [
    ("€", &["eur"]),
    ("$", &["usd", "dollar", "ドル", "美元"]),
    ("core", &["core", "cpu", "vcpu"]),
    ("x", &["fold"]),
    ("requests", &["req"]),
    ("ms", &["ms", "毫秒", "ミリ秒", "밀리초", "мс"]),
    ("min", &["min", "分", "분", "мин", "dakika"]),
    ("h", &["hour", "heure", "hora", "stunde", "小", "時", "시간", "час", "ore", "uur", "uren", "godzin"]),
    ("d", &["day", "jour", "dia", "día", "tag", "giorn", "天", "日", "일", "дн", "день"]),
    ("week", &["week", "sema", "woche"]),
    ("month", &["month", "mois", "mese", "mesi", "monat"]),
    ("%", &["percent", "prozent", "por ciento", "pour cent"]),
    ("s", &["sec", "sek", "seg", "秒", "초", "сек", "saniye"]),
];
/// What joins numbers that share a unit.
const JOINTS: [&str; 10] = ["of", "to", "-", "–", "→", "->", "and", "or", "/", "bis"];
/// What ends the words that may describe a number.
const MARKS: &str = ".;:!?()|\n,\"*`[]#~=";

static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NUMBER).ok());

/// A number.
#[derive(Clone, Debug, Default)]
pub(super) struct Number {
    /// In lowercase; `version` and `color` are not amounts.
    pub(super) unit: String,
    pub(super) amount: f64,
    /// The possible rounding error.
    half: f64,
    /// The original text, or the text to look for if there is only one spelling.
    spelling: String,
    /// Whether its unit is written after the next number.
    shares_unit: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Number {
    /// Whether it is probably a year.
    pub(super) fn is_year(&self, text: &str) -> bool {
        self.unit.is_empty()
            && (1990.0..2100.0).contains(&self.amount)
            && text[self.start..self.end].len() == 4
    }

    /// Returns a key that is the same for all spellings within one text.
    pub(super) fn key(&self) -> String {
        format!("{}{}{}", if self.is_name() { &self.spelling } else { "" }, self.amount, self.unit)
    }

    /// Returns the text to look for, if there is only one spelling.
    pub(super) fn only_spelling(&self) -> Option<&str> {
        self.is_name().then_some(&self.spelling)
    }

    fn is_name(&self) -> bool {
        matches!(self.unit.as_str(), "version" | "color")
    }

    /// Whether `other`, from a summary, is the same number, possibly rounded or without its unit.
    pub(super) fn is_said_by(&self, other: &Self) -> bool {
        let ((unit, times), (other_unit, other_times)) = (base(&self.unit), base(&other.unit));
        if unit.is_empty() || other_unit.is_empty() {
            let is_rounded = unit == other_unit && self.amount >= 10.0;
            return self.is_about(other.amount, if is_rounded { other.half } else { 0.0 })
                && (unit.is_empty() || self.amount >= 10.0);
        }
        let half = other.half * other_times / times;
        // Bytes may be converted by thousands.
        let half = if unit == "b" && self.unit != other.unit { half.max(self.amount * 0.08) } else { half };
        unit == other_unit && self.is_about(other.amount * other_times / times, half)
    }

    /// Whether it is `amount`, if that was rounded by at most `half`.
    fn is_about(&self, amount: f64, half: f64) -> bool {
        let rounded = if half > self.half { half.min(self.amount / 10.0) } else { 0.0 };
        (self.amount - amount).abs() <= rounded + 1e-9 * self.amount
    }

    /// Returns the original text, after at most `most` words that describe it, and a word that says what is
    /// counted.
    pub(super) fn shown(&self, text: &str, most: usize) -> String {
        let window = &text[text.floor_char_boundary(self.start.saturating_sub(30))..self.start];
        let words = window.rsplit(|c| MARKS.contains(c)).next().unwrap_or_default();
        // The first may be half a word.
        let cut = usize::from(words.len() == window.len() && window.len() > 26);
        let words: Vec<&str> = words.split_whitespace().skip(cut).collect();
        let mut out = words[words.len().saturating_sub(most)..].to_vec();
        let is_negative = out.last() == Some(&"-");
        out.truncate(out.len() - usize::from(is_negative));
        let mark = if text[..self.start].ends_with('v') { "v" } else { ["", "-"][usize::from(is_negative)] };
        let is_marked = matches!(out.last(), Some(&"v" | &"V"));
        out.truncate(out.len() - usize::from(is_marked));
        let number = [mark, &text[self.start..self.end]].concat();
        out.push(&number);
        out.extend(self.shares_unit.then_some(self.unit.as_str()));
        out.extend(self.counted(text));
        out.join(" ")
    }

    /// The word after a number without a unit.
    pub(super) fn counted<'t>(&self, text: &'t str) -> Option<&'t str> {
        let rest = text[self.end..].strip_prefix(' ').filter(|_| self.unit.is_empty())?;
        let word = &rest[..rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len())];
        (word.chars().count() > 3 && word.chars().all(char::is_lowercase)).then_some(word)
    }
}

/// The numbers in `text`. One without a unit gets that of the next, if they belong together.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut all: Vec<Number> = captures(&NUMBERS, text).filter_map(|found| read(text, &found)).collect();
    for at in (1..all.len()).rev() {
        let (before, next) = all.split_at_mut(at);
        let (number, next) = (&mut before[at - 1], &next[0]);
        let between = text[number.end..next.start].trim();
        let are_joined = JOINTS.contains(&between) || (between == "," && next.shares_unit);
        // `1 h 52 min` is one number.
        if let (("s", times), ("s", next_times)) = (base(&number.unit), base(&next.unit))
            && times > next_times
            && (between.is_empty() || between == "and")
            && next.amount * next_times < times
        {
            number.amount = number.amount * times / next_times + next.amount;
            (number.unit, number.half, number.end) = (next.unit.clone(), next.half, next.end);
            all.remove(at);
            continue;
        }
        if number.unit.is_empty() && are_joined && !next.unit.is_empty() && !next.is_name() {
            (number.unit, number.shares_unit) = (next.unit.clone(), true);
        }
    }
    all
}

fn read(text: &str, found: &Captures<'_>) -> Option<Number> {
    let group = |name| found.name(name).map_or("", |group| group.as_str().trim());
    let (start, end) = found.get(0).map(|whole| (whole.start(), whole.end()))?;
    let spelling = text[start..end].trim_start_matches(['v', '#']).to_lowercase();
    let plain = Number { spelling, start, end, ..Number::default() };
    if !group("color").is_empty() {
        return Some(Number { unit: "color".into(), ..plain });
    }
    if !group("clock").is_empty() {
        let parts = group("clock").split(':').map(|part| part.parse().unwrap_or(0.0));
        let amount = parts.fold(0.0, |all: f64, part: f64| all * 60.0 + part);
        let half = if group("clock").contains('.') { 0.0 } else { 0.5 };
        // Otherwise a time of the day.
        return group("clock").starts_with('0').then(|| Number { unit: "s".into(), amount, half, ..plain });
    }
    if !group("mins").is_empty() {
        let [h, m, s] = ["hours", "mins", "secs"].map(|name| group(name).parse().unwrap_or(0.0));
        return Some(Number { unit: "s".into(), amount: h * 3_600.0 + m * 60.0 + s, half: 0.5, ..plain });
    }
    if !group("whole").is_empty() {
        let [h, m] = ["whole", "rest"].map(|name| group(name).parse().unwrap_or(0.0));
        return Some(Number { unit: "min".into(), amount: h * 60.0 + m, half: 0.5, ..plain });
    }
    if !group("exact").is_empty() {
        let is_part = text[..start].ends_with(|c: char| is_letter(c) || matches!(c, '_' | '-' | '.'));
        return (!is_part).then(|| Number { unit: "version".into(), ..plain });
    }
    // Text after a version is not its unit.
    let end = found.name("n").map_or(end, |n| n.end());
    let spelling = group("n").to_lowercase();
    let version = Number { unit: "version".into(), spelling, end, ..plain.clone() };
    // A part of a name, a date or an address.
    let before = text[..start].trim_end_matches('v');
    let joined = before.strip_suffix('-').unwrap_or(before);
    if before.ends_with(['_', '#', '.']) || joined.ends_with(is_letter) {
        return None;
    }
    let digits = group("n").trim_end_matches(group("pre")).replace(['\'', '_', '\u{a0}', '\u{202f}'], "");
    let parts: Vec<&str> = digits.split('.').collect();
    if parts.len() > 2 {
        let is_date = |part: &&str| part.len() > 3 || (part.len() > 1 && part.starts_with('0'));
        let is_version = parts.len() == 3 && !parts.iter().any(is_date);
        return is_version.then_some(version);
    }
    // `12,500`, but `2,5`.
    let are_thousands =
        digits.split(',').skip(1).all(|group| group.split('.').next().map_or(0, str::len) == 3);
    let digits = digits.replace(',', if are_thousands { "" } else { "." });
    let times = match group("times") {
        "" => 1.0,
        "k" | "K" | "thousand" => 1e3,
        "billion" => 1e9,
        _ => 1e6,
    };
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = times * 0.5 / 10_f64.powi(i32::try_from(decimals).ok()?);
    let unit = match (group("port"), group("coin"), group("unit").to_lowercase().as_str()) {
        // The notation of Go and Kubernetes.
        ("", "", "") if !group("minutes").is_empty() => "min".to_owned(),
        // `MiB`, `Mi` and `MB` count as equal.
        ("", "", "kib" | "mib" | "gib" | "tib" | "ki" | "mi" | "gi" | "ti" | "g" | "t") => {
            group("unit").to_lowercase()[..1].to_owned() + "b"
        }
        ("", "", unit) => canonical(unit).to_owned(),
        ("", coin, _) => coin.to_owned(),
        _ => "port".to_owned(),
    };
    Some(Number { unit, amount: digits.parse::<f64>().ok()? * times, half, ..plain })
}

/// The canonical name of a unit.
fn canonical(unit: &str) -> &str {
    let is_one = |names: &&[&str]| names.iter().any(|name| unit.starts_with(name));
    let unit = unit.trim_end_matches("/s");
    UNITS.iter().find(|(_, names)| is_one(names)).map_or(unit, |(name, _)| name)
}

/// The base unit, and the factor to it.
fn base(unit: &str) -> (&str, f64) {
    match unit {
        "ns" => ("s", 1e-9),
        "us" | "µs" => ("s", 1e-6),
        "ms" => ("s", 1e-3),
        "min" => ("s", 60.0),
        "h" => ("s", 3_600.0),
        "d" => ("s", 86_400.0),
        "week" => ("s", 604_800.0),
        "bytes" => ("b", 1.0),
        "kb" => ("b", 1_024.0),
        "mb" => ("b", 1_048_576.0),
        "gb" => ("b", 1_073_741_824.0),
        "tb" => ("b", 1_099_511_627_776.0),
        "cm" => ("mm", 10.0),
        unit => (unit, 1.0),
    }
}
