//! Numbers with a unit, read so that two spellings of one are found equal: `1,500 ms` and `1500ms`, `97 %` and `97 percent`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::captures;

/// A color; a number, with what stands before or after it. Only of `k` and `M` the case tells something.
const NUMBER: &str = concat!(
    r"#(?<color>[0-9A-Fa-f]{6})(?-u:\b)",
    r"|(?<port>(?i:port)[ :=]{1,2}|localhost:)?(?<coin>[$€£] ?)?(?<n>[0-9]+(?:[.,'_\u{a0}\u{202f}][0-9]+)*)",
    r"(?<times>[ \u{a0}]?(?:k|K|M|thousand|million|billion)(?-u:\b))?",
    r"(?:(?<minutes>m)(?-u:\b)|[ \u{a0}\u{202f}-]?(?<unit>%|°[CF](?-u:\b)|(?i:percent|prozent|por ciento|pour cent|ms|ns|us|µs|s|sec\w*|sek\w*|seg\w*",
    r"|min|minut\w*|h|hours?|heures?|horas?|stunden?|days?|jours?|d[ií]as?|tagen?|giorni|weeks?|semaines?|semanas?|wochen?",
    r"|months?|mois|meses|mesi|monate?n?|[kmgt]i?b|bytes|px|fps|[kmg]?hz|rpm|rps|qps|(?:req|requests|ops|items|rows|events)/s)(?-u:\b)",
    r"|(?:[KMGT]i|[GT]|[mk]?[VW]|[mkµ]Wh|[mµ]A|mAh|dBm?)(?-u:\b)|毫秒|ミリ秒|秒|分钟|分鐘|小时|小時|時間|天",
    r"|(?:rows|records|users|requests|tokens|connections|customers|messages|documents)(?-u:\b)",
    r"|(?:items|lines|files|characters|retries|attempts|replicas|workers|threads|pods|nodes|shards|jobs|zeilen|zeichen|líneas|lignes)(?-u:\b)))?",
);
/// Units that have several names, each with how these begin.
const UNITS: [(&str, &[&str]); 9] = [
    ("requests", &["req"]),
    ("ms", &["ms", "毫秒", "ミリ秒"]),
    ("min", &["min", "分"]),
    ("h", &["hour", "heure", "hora", "stunde", "小", "時"]),
    ("d", &["day", "jour", "dia", "día", "tag", "giorn", "天"]),
    ("week", &["week", "sema", "woche"]),
    ("month", &["month", "mois", "mese", "mesi", "monat"]),
    ("%", &["percent", "prozent", "por ciento", "pour cent"]),
    ("s", &["sec", "sek", "seg", "秒"]),
];
/// What a person sets limits to; how many of these a model has seen tells little.
const COUNTED: &str = " items lines files characters retries attempts replicas workers threads pods nodes shards jobs zeilen zeichen líneas lignes ";
/// What joins numbers that have one unit together.
const JOINTS: [&str; 9] = ["to", "-", "–", "→", "->", "and", "or", "/", "bis"];
/// What ends the words that may tell what a number is of.
const MARKS: &str = ".;:!?()|\n,\"*`[]#~=";

static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NUMBER).ok());

/// A number.
#[derive(Clone, Debug, Default)]
pub(super) struct Number {
    /// In small letters; `version` and `color` are no amounts.
    unit: String,
    amount: f64,
    /// By how much it may be off where it was rounded.
    half: f64,
    /// As it stands, or as it is looked for where it can be written in but one way.
    spelling: String,
    /// The unit is said with the next number.
    shares_unit: bool,
    start: usize,
    end: usize,
}

impl Number {
    /// Does it tell anything by itself?
    pub(super) fn is_telling(&self, of_user: bool) -> bool {
        match self.unit.as_str() {
            "" => false,
            // The model tries many.
            "color" => of_user,
            "%" => self.amount > 0.0 && self.amount < 100.0,
            // So many users: more than a few.
            "rows" | "records" | "users" | "requests" | "tokens" | "messages" => self.amount >= 100.0,
            unit if super::is_among(COUNTED, unit) => of_user && self.amount > 1.0,
            _ => true,
        }
    }

    /// Returns what is the same for all spellings that stand in one text.
    pub(super) fn key(&self) -> String {
        format!("{}{}{}", if self.is_name() { &self.spelling } else { "" }, self.amount, self.unit)
    }

    /// Returns how it is looked for, if there is but one way to write it.
    pub(super) fn only_spelling(&self) -> Option<&str> {
        self.is_name().then_some(&self.spelling)
    }

    fn is_name(&self) -> bool {
        matches!(self.unit.as_str(), "version" | "color")
    }

    /// Is `other`, as a summary has it, the same number, perhaps rounded or without its unit?
    pub(super) fn is_said_by(&self, other: &Self) -> bool {
        let off = (self.amount - other.amount).abs();
        if other.unit.is_empty() {
            return off < 1e-9 && (self.unit == "port" || self.amount >= 100.0);
        }
        let rounded = if other.half > self.half { other.half.min(self.amount / 10.0) } else { 1e-9 };
        self.unit == other.unit && off <= rounded
    }

    /// Returns it as it stands, after at most three words that tell what it is of.
    pub(super) fn shown(&self, text: &str) -> String {
        let window = &text[text.floor_char_boundary(self.start.saturating_sub(30))..self.start];
        let words = window.rsplit(|c| MARKS.contains(c)).next().unwrap_or_default();
        // The first may be half of one.
        let cut = usize::from(words.len() == window.len() && window.len() > 26);
        let words: Vec<&str> = words.split_whitespace().skip(cut).collect();
        let mut out = words[words.len().saturating_sub(3)..].to_vec();
        let is_negative = out.last() == Some(&"-");
        out.truncate(out.len() - usize::from(is_negative));
        let number = [if is_negative { "-" } else { "" }, &text[self.start..self.end]].concat();
        out.push(&number);
        out.extend(self.shares_unit.then_some(self.unit.as_str()));
        out.join(" ")
    }
}

/// The numbers of `text`. One without a unit has that of the next, where they are said together.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut all: Vec<Number> = captures(&NUMBERS, text).filter_map(|found| read(text, &found)).collect();
    for at in (1..all.len()).rev() {
        let (before, next) = all.split_at_mut(at);
        let (number, next) = (&mut before[at - 1], &next[0]);
        let between = text[number.end..next.start].trim();
        let are_joined = JOINTS.contains(&between) || (between == "," && next.shares_unit);
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
    // Part of a name, a date, an address.
    let before = text[..start].trim_end_matches('v');
    if before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | '.')) {
        return None;
    }
    let digits = group("n").replace(['\'', '_', '\u{a0}', '\u{202f}'], "");
    let parts: Vec<&str> = digits.split('.').collect();
    if parts.len() > 2 {
        let is_date = |part: &&str| part.len() > 3 || (part.len() > 1 && part.starts_with('0'));
        let is_version = parts.len() == 3 && !parts.iter().any(is_date);
        return is_version.then(|| Number { unit: "version".into(), ..plain });
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
        // As Go and Kubernetes write it.
        ("", "", "") if !group("minutes").is_empty() => "min".to_owned(),
        // `MiB`, `Mi` and `MB` are taken for the same.
        ("", "", "kib" | "mib" | "gib" | "tib" | "ki" | "mi" | "gi" | "ti" | "g" | "t") => {
            group("unit").to_lowercase()[..1].to_owned() + "b"
        }
        ("", "", unit) => canonical(unit).to_owned(),
        ("", coin, _) => coin.to_owned(),
        _ => "port".to_owned(),
    };
    Some(Number { unit, amount: digits.parse::<f64>().ok()? * times, half, ..plain })
}

/// One name for a unit that has several.
fn canonical(unit: &str) -> &str {
    let is_one = |names: &&[&str]| names.iter().any(|name| unit.starts_with(name));
    let unit = unit.trim_end_matches("/s");
    UNITS.iter().find(|(_, names)| is_one(names)).map_or(unit, |(name, _)| name)
}
