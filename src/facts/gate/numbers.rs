//! Parses numbers with a unit, so that different spellings compare equal: `1,500 ms` and `1500ms`, `97 %` and
//! `97 percent`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::patterns::{captures, is_among, is_letter};

/// A color; a number with what precedes or follows it. Case matters only for `k` and `M`.
const NUMBER: &str = concat!(
    r"#(?<color>[0-9A-Fa-f]{6})(?-u:\b)|(?-u:\b)(?:(?<hours>[0-9]+)h)?(?<mins>[0-9]+)m(?<secs>[0-9]+(?:\.[0-9]+)?)s(?-u:\b)",
    r"|(?<exact>[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
    r"|[0-9](?:\.[0-9]+)?e-[0-9]+)(?-u:\b)",
    r"|(?<port>(?-u:\b)(?i:ports?)[ :=]{1,2}|localhost:|(?-u:\B):)?",
    r"(?<coin>[$€£] ?)?(?<n>[0-9]+(?:[.,'_\u{a0}\u{202f}][0-9]+)*",
    r"(?<pre>-(?:rc|beta|alpha|pre|dev)[\w.]*)?)\+?",
    r"(?<times>[ \u{a0}]?(?:k|K|M|thousand|million|billion)(?-u:\b))?",
    r"(?:(?<minutes>m)(?-u:\b)|[ \u{a0}\u{202f}-]?(?<unit>%|€|£|°[CF](?-u:\b)|(?i:percent|prozent|por ciento|pour cent",
    r"|ms|ns|us|µs|s|sec\w*|sek\w*|seg\w*|saniye",
    r"|min|minut\w*|dakika|h|hours?|heures?|horas?|stunden?|days?|jours?|d[ií]as?|tagen?|giorni|weeks?|semaines?|semanas?|wochen?",
    r"|months?|mois|meses|mesi|monate?n?|years?|ans|años|anos|anni|jahre?n?|j|[kmgt]i?b(?:/s)?|bytes",
    r"|px|rem|dpi|mm|cm|kg|ppm|bit|cores?|v?cpus?|gpus?|eur|euros?",
    r"|usd|dollars?|gbp|[kmg]bit/s|[kmg]bps|px",
    r"|fps|[kmg]?hz|rpm|rps|qps|[a-z]{3,}/s)(?-u:\b)",
    r"|(?:[KMGT]i|[GTg]|[mk]?[VW]|[mkµ]Wh|[mµ]A|mAh|dBm?)(?-u:\b)",
    r"|毫秒|ミリ秒|밀리초|мс|秒|초",
    r"|сек\p{L}*|分钟|分鐘|分|분|мин\p{L}*|小时|小時|時間|시간",
    r"|час\p{L}*|天|日|일|дн[яе]\p{L}*|день|件|行|条|ドル|円|美元|달러|руб\p{L}*|строк\p{L}*|행|건",
    r"|(?:rows|records|users|requests|tokens|connections|customers|messages|documents)(?-u:\b)",
    r"|(?:items|lines|files|characters|retries|attempts|replicas|workers|threads|pods|nodes|shards|jobs|zeilen|zeichen|líneas|lignes)(?-u:\b))",
    r"| (?:[a-z]{4,} )?(?<things>[A-Za-z][a-z]{2,}[a-rt-z]s|[A-Z]{2,}s)(?-u:\b))?",
);
/// Units with several names, each with the beginnings of these.
const UNITS: [(&str, &[&str]); 13] = [
    ("€", &["eur"]),
    ("$", &["usd", "dollar", "ドル", "美元", "달러"]),
    ("core", &["core", "cpu", "vcpu"]),
    ("requests", &["req"]),
    ("ms", &["ms", "毫秒", "ミリ秒", "밀리초", "мс"]),
    ("min", &["min", "分", "분", "мин", "dakika"]),
    ("h", &["hour", "heure", "hora", "stunde", "小", "時", "시간", "час", "ore", "uur", "uren", "godzin"]),
    ("year", &["year", "ans", "año", "ano", "anni", "jahr"]),
    ("d", &["day", "j", "dia", "día", "tag", "giorn", "天", "日", "일", "дн", "день"]),
    ("week", &["week", "sema", "woche"]),
    ("month", &["month", "mois", "mese", "mesi", "monat"]),
    ("%", &["percent", "prozent", "por ciento", "pour cent"]),
    ("s", &["sec", "sek", "seg", "秒", "초", "сек", "saniye"]),
];
/// What is counted; `things` are any others.
const COUNTED: &str = " things rows records users requests tokens messages connections customers documents items lines files \
    characters retries attempts replicas workers threads pods nodes shards jobs zeilen zeichen líneas lignes ";
/// Products with versions; words that end like a plural but are singular.
const VERSIONED: &str = " node python java jdk php ruby rails django laravel angular react vue next postgres postgresql mysql \
    mariadb ubuntu debian alpine android ios api sdk kotlin go golang rust swift xcode unity terraform kubernetes elixir phoenix vite \
    redis spring boot gradle version typescript eslint webpack symfony macos windows gcc clang cmake nginx cuda torch pytorch \
    tensorflow numpy pandas helm npm pnpm \
    yarn deno bun openjdk dotnet electron qt tomcat kafka mongodb elasticsearch zig ghc erlang otp glibc openssl chrome firefox safari ";
/// Words after which a number is a setting's value.
const SETTERS: &str = " on to at is = was below above under over most least than limit max min maximum minimum exactly size count threshold \
    every about by depth level timeout retries workers replicas batch width height steps epochs seed loss accuracy recall precision score \
    auc f1 ratio factor rate ";
const NO_THINGS: &str = " was has this its does always less plus minus thus bus class process status \
    fails crashes works needs takes uses runs returns makes gives comes goes stays keeps \
    access address pass across ";
/// What joins numbers that share a unit.
const JOINTS: [&str; 10] = ["of", "to", "-", "–", "→", "->", "and", "or", "/", "bis"];
/// Bytes of a word that does not describe a number.
const SHORT: usize = 3;
/// What ends the words that may describe a number.
const MARKS: &str = ".;:!?()|\n,\"*`[]#~=";

static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NUMBER).ok());

/// A number.
#[derive(Clone, Debug, Default)]
pub(super) struct Number {
    /// In lowercase; `version` and `color` are not amounts.
    unit: String,
    amount: f64,
    /// The possible rounding error.
    half: f64,
    /// The original text, or the text to look for if there is only one spelling.
    spelling: String,
    /// Whether it is a setting's value, without a unit.
    is_set: bool,
    /// Whether its unit is written after the next number.
    shares_unit: bool,
    start: usize,
    end: usize,
}

impl Number {
    /// Whether it is meaningful by itself.
    pub(super) fn is_telling(&self, of_user: bool) -> bool {
        match self.unit.as_str() {
            "" => {
                self.is_set && (self.amount >= if of_user { 2.0 } else { 10.0 } || of_user && self.half < 0.5)
            }
            // The model tries many.
            "color" => of_user,
            "%" => self.amount > 0.0 && self.amount < 100.0,
            // More than a few.
            unit if is_count(unit) => self.amount > if of_user { 1.0 } else { 9.0 },
            _ => self.is_name() || self.amount > 0.0,
        }
    }

    /// Returns a key that is the same for all spellings within one text.
    pub(super) fn key(&self) -> String {
        format!("{}{}{}", if self.is_name() { &self.spelling } else { "" }, self.amount, self.unit)
    }

    /// Returns the text to look for, if there is only one spelling.
    pub(super) fn only_spelling(&self) -> Option<&str> {
        self.is_name().then_some(&self.spelling)
    }

    pub(super) fn has_unit(&self) -> bool {
        !self.unit.is_empty() && !self.is_name()
    }

    fn is_name(&self) -> bool {
        matches!(self.unit.as_str(), "version" | "color")
    }

    /// Whether `other`, from a summary, is the same number, possibly rounded or without its unit.
    pub(super) fn is_said_by(&self, other: &Self) -> bool {
        let off = (self.amount - other.amount).abs();
        // Servers write `250m` for megabytes too.
        let are_same =
            |one: &Self, next: &Self| one.unit == "min" && one.spelling.ends_with('m') && next.unit == "mb";
        if are_same(self, other) || are_same(other, self) {
            return off < 1e-9;
        }
        if is_count(&self.unit) && (is_count(&other.unit) || other.unit.is_empty() && self.amount >= 10.0) {
            return off < 1e-9 || other.half > self.half && off <= other.half.min(self.amount / 10.0);
        }
        if self.unit.is_empty() {
            return off < 1e-9;
        }
        if other.unit.is_empty() {
            return off < 1e-9 && (self.unit == "port" || self.amount >= 100.0 || self.amount.fract() > 0.0);
        }
        let ((unit, times), (other_unit, other_times)) = (base(&self.unit), base(&other.unit));
        let (amount, half, other_half) = (self.amount * times, self.half * times, other.half * other_times);
        let rounded = if other_half > half { other_half.min(amount / 10.0) } else { 1e-9 * amount };
        // Bytes may be converted by thousands.
        let rounded =
            if unit == "b" && self.unit != other.unit { rounded.max(amount * 0.08) } else { rounded };
        unit == other_unit && (amount - other.amount * other_times).abs() <= rounded + 1e-9 * amount
    }

    /// Returns the original text, after one word that describes it, or two if it has no unit.
    pub(super) fn shown(&self, text: &str) -> String {
        let window = &text[text.floor_char_boundary(self.start.saturating_sub(30))..self.start];
        let words = window.rsplit(|c| MARKS.contains(c)).next().unwrap_or_default();
        // The first may be half a word.
        let cut = usize::from(words.len() == window.len() && window.len() > 26);
        let words: Vec<&str> = words.split_whitespace().skip(cut).collect();
        // A unit describes it too: then one long word is enough.
        let has_unit = !matches!(self.unit.as_str(), "" | "version");
        let most = if has_unit { 1 } else { 2 };
        let mut out = words[words.len().saturating_sub(most)..].to_vec();
        out.retain(|word| !has_unit || word.len() > SHORT || *word == "-");
        let is_negative = out.last() == Some(&"-");
        out.truncate(out.len() - usize::from(is_negative));
        let is_marked = self.unit == "version" && matches!(out.last(), Some(&"v" | &"V"));
        out.truncate(out.len() - usize::from(is_marked));
        let mark = if is_marked { "v" } else { ["", "-"][usize::from(is_negative)] };
        let number = [mark, &text[self.start..self.end]].concat();
        out.push(&number);
        out.extend(self.shares_unit.then_some(self.unit.as_str()));
        out.join(" ")
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
    let things = Some(group("things")).filter(|things| !is_among(NO_THINGS, things)).unwrap_or_default();
    let (start, end) = found.get(0).map(|whole| (whole.start(), whole.end()))?;
    let end = found
        .name("things")
        .filter(|_| things.is_empty())
        .map_or(end, |_| found.name("n").map_or(end, |n| n.end()));
    let spelling = text[start..end].trim_start_matches(['v', '#']).to_lowercase();
    let plain = Number { spelling, start, end, ..Number::default() };
    if !group("color").is_empty() {
        return Some(Number { unit: "color".into(), ..plain });
    }
    if !group("mins").is_empty() {
        let [h, m, s] = ["hours", "mins", "secs"].map(|name| group(name).parse().unwrap_or(0.0));
        return Some(Number { unit: "s".into(), amount: h * 3_600.0 + m * 60.0 + s, half: 0.5, ..plain });
    }
    if !group("exact").is_empty() {
        let is_part = text[..start].ends_with(|c: char| is_letter(c) || matches!(c, '_' | '-' | '.'));
        return (!is_part).then(|| Number { unit: "version".into(), ..plain });
    }
    let is_cut = text[end..].starts_with(is_letter);
    // Text after a version is not its unit.
    let end = found.name("n").map_or(end, |n| n.end());
    let spelling = group("n").to_lowercase();
    let version = Number { unit: "version".into(), spelling, end, ..plain.clone() };
    // A part of a name, a date or an address.
    let before = text[..start].trim_end_matches('v');
    if is_cut || before.ends_with(|c: char| is_letter(c) || matches!(c, '_' | '#' | '.' | ';')) {
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
    let before = text[..start].trim_end_matches([' ', '-', '=', '@', ':', '>', '`']);
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_of_product = is_among(VERSIONED, &word.to_lowercase());
    let is_beside = (1..3).contains(&(start - before.len()));
    if unit.is_empty() && is_beside && (is_of_product || decimals > 0 && word.starts_with(char::is_uppercase))
    {
        return Some(version);
    }
    let unit = if unit.is_empty() && !things.is_empty() { "things".to_owned() } else { unit };
    let word = text[..start]
        .trim_end_matches([' ', '`'])
        .rsplit(|c: char| !c.is_alphanumeric() && c != '=')
        .next()
        .unwrap_or_default();
    let is_set = is_among(SETTERS, &word.to_lowercase())
        && !text[end..].starts_with([':', '/', '-', '.', '\''])
        && !text[..start].ends_with(['-', '/', ':']);
    Some(Number { is_set, unit, amount: digits.parse::<f64>().ok()? * times, half, ..plain })
}

fn is_count(unit: &str) -> bool {
    is_among(COUNTED, unit)
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
        "µa" => ("a", 1e-6),
        "ma" => ("a", 1e-3),
        unit => (unit, 1.0),
    }
}
