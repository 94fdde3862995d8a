//! Numbers with a unit, read so that different spellings compare equal: `1,500 ms` and `1500ms`, `97 %` and
//! `97 percent`.

use regex::Captures;

use super::{is_among, is_letter};
use lcm_model::{Pattern, pattern};

/// A number with what precedes or follows it. Case matters only for `k`, `M` and short units.
static NUMBERS: Pattern = pattern!(
    r"(?<port>(?-u:\b)(?i:ports?)[ :=]{1,2}|localhost:|(?-u:\B):)?(?<coin>[$€£] ?)?(?<n>[0-9]+(?:[.,'_\u{a0}\u{202f}][0-9]+)*)\+?",
    r"(?<times>[ \u{a0}]?(?:k|K|M|thousand|million|billion)(?-u:\b))?",
    r"(?:[ \u{a0}\u{202f}-]?(?<unit>%|€|£|°[CF](?-u:\b)|(?i:percent|prozent|por ciento|pour cent",
    r"|ms|ns|us|µs|s|sec\w*|sek\w*|seg\w*|min|minut\w*|h|hours?|heures?|horas?|stunden?|days?|jours?|d[ií]as?|tagen?|giorni",
    r"|weeks?|semaines?|semanas?|wochen?|months?|mois|meses|mesi|monate?n?|years?|ans|años|anos|anni|jahre?n?|j",
    r"|[kmgt]i?b(?:/s)?|bytes|px|rem|dpi|mm|cm|kg|ppm|bit|cores?|v?cpus?|gpus?|eur|euros?|usd|dollars?|gbp|[kmg]bit/s|[kmg]bps",
    r"|fps|[kmg]?hz|rpm|rps|qps|[a-z]{3,}/s)(?-u:\b)|(?:[KMGT]i|[GTg]|[mk]?[VW]|[mkµ]Wh|[mµ]A|mAh|dBm?)(?-u:\b)",
    r"|毫秒|ミリ秒|밀리초|мс|秒|초|сек\p{L}*|分钟|分鐘|分|분|мин\p{L}*|小时|小時|時間|시간|час\p{L}*|天|日|일|дн[яе]\p{L}*|день",
    r"|件|行|条|ドル|円|美元|달러|руб\p{L}*|строк\p{L}*|행|건|(?:zeilen|zeichen|líneas|lignes)(?-u:\b))",
    r"| (?:[a-z]{4,} )?(?<things>[A-Za-z][a-z]+[a-rt-z]s|[A-Z]{2,}s)(?-u:\b))?",
);
/// Units with several names, each with the beginnings of these.
const UNITS: [(&str, &[&str]); 12] = [
    ("€", &["eur"]),
    ("$", &["usd", "dollar", "ドル", "美元", "달러"]),
    ("core", &["core", "cpu", "vcpu"]),
    ("ms", &["ms", "毫秒", "ミリ秒", "밀리초", "мс"]),
    ("min", &["min", "分", "분", "мин"]),
    ("h", &["hour", "heure", "hora", "stunde", "小", "時", "시간", "час"]),
    ("year", &["year", "ans", "año", "ano", "anni", "jahr"]),
    ("d", &["day", "j", "dia", "día", "tag", "giorn", "天", "日", "일", "дн", "день"]),
    ("week", &["week", "sema", "woche"]),
    ("month", &["month", "mois", "mese", "mesi", "monat"]),
    ("%", &["percent", "prozent", "por ciento", "pour cent"]),
    ("s", &["sec", "sek", "seg", "秒", "초", "сек"]),
];
/// Words that end like a plural but count nothing.
const NO_THINGS: &str = " was has this its does always less plus minus thus bus class process status fails crashes works needs takes uses \
    runs returns makes gives comes goes stays keeps access address pass across ";
/// What joins numbers that share a unit.
const JOINTS: [&str; 10] = ["of", "to", "-", "–", "→", "->", "and", "or", "/", "bis"];
/// Bytes of a word that does not describe a number; from how many things on the model's count is worth keeping.
const SHORT: usize = 3;
const MANY: f64 = 10.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Number {
    /// In lowercase; all things that are counted have the same.
    unit: String,
    amount: f64,
    /// Whether its unit is written after the next number.
    shares_unit: bool,
    start: usize,
    end: usize,
}

impl Number {
    /// Whether it is worth keeping.
    pub(super) fn is_telling(&self, of_user: bool) -> bool {
        match self.unit.as_str() {
            "" => false,
            "%" => self.amount > 0.0 && self.amount < 100.0,
            "things" => self.amount >= if of_user { 2.0 } else { MANY },
            _ => self.amount > 0.0,
        }
    }

    /// Returns a key that is the same for all spellings within one text.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.amount, self.unit)
    }

    /// Whether `other`, from a summary, is the same number, possibly without its unit.
    pub(super) fn is_said_by(&self, other: &Self) -> bool {
        let is_bare = || other.unit.is_empty() && (self.amount >= MANY || self.amount.fract() > 0.0);
        (self.amount - other.amount).abs() < 1e-9 && (self.unit == other.unit || is_bare())
    }

    /// Returns the original text, after a word that describes it.
    pub(super) fn shown(&self, text: &str) -> String {
        let before = text[..self.start].trim_end_matches(' ');
        let word = before.rsplit(|c: char| !is_letter(c)).next().unwrap_or_default();
        let unit = if self.shares_unit { format!(" {}", self.unit) } else { String::new() };
        let number = format!("{}{unit}", text[self.start..self.end].trim_start_matches(':'));
        if word.len() > SHORT { format!("{word} {number}") } else { number }
    }
}

/// The numbers in `text`. One without a unit gets that of the next, if they belong together.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut all: Vec<Number> = NUMBERS.captures(text).filter_map(|found| read(text, &found)).collect();
    for at in (1..all.len()).rev() {
        let (before, next) = all.split_at_mut(at);
        let (number, next) = (&mut before[at - 1], &next[0]);
        let between = text[number.end..next.start].trim();
        let are_joined = JOINTS.contains(&between) || between == "," && next.shares_unit;
        if number.unit.is_empty() && are_joined && !next.unit.is_empty() {
            (number.unit, number.shares_unit) = (next.unit.clone(), true);
        }
    }
    all
}

fn read(text: &str, found: &Captures<'_>) -> Option<Number> {
    let group = |name| found.name(name).map_or("", |group| group.as_str().trim());
    let whole = found.get(0)?;
    let things = if is_among(NO_THINGS, group("things")) { "" } else { group("things") };
    let end = if group("unit").is_empty() && things.is_empty() {
        found.name("times").or(found.name("n"))?.end()
    } else {
        whole.end()
    };
    let place = Number { start: whole.start(), end, ..Number::default() };
    // A part of a name, a date, a version or an address.
    let before = &text[..whole.start()];
    if text[whole.end()..].starts_with(is_letter)
        || before.ends_with(|c: char| is_letter(c) || matches!(c, '_' | '#' | '.' | ';'))
    {
        return None;
    }
    let digits = group("n").replace(['\'', '_', '\u{a0}', '\u{202f}'], "");
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
    let unit = match (group("port"), group("coin"), group("unit")) {
        ("", "", "") if things.is_empty() => String::new(),
        ("", "", "") => "things".to_owned(),
        ("", "", unit) => canonical(&unit.to_lowercase()),
        ("", coin, ..) => coin.to_owned(),
        _ => "port".to_owned(),
    };
    Some(Number { unit, amount: digits.parse::<f64>().ok()? * times, ..place })
}

/// The canonical name of a unit. `MiB`, `Mi` and `MB` count as equal.
fn canonical(unit: &str) -> String {
    if let "kib" | "mib" | "gib" | "tib" | "ki" | "mi" | "gi" | "ti" | "g" | "t" = unit {
        return unit[..1].to_owned() + "b";
    }
    let unit = unit.trim_end_matches("/s");
    let is_one = |names: &&[&str]| names.iter().any(|name| unit.starts_with(name));
    UNITS.iter().find(|(_, names)| is_one(names)).map_or(unit, |(name, _)| name).to_owned()
}
