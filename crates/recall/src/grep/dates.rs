//! Dates that a query names: what was said on one of them is what it asks for.

use super::words::words;
use lcm_model::{Pattern, pattern, text};

const DAY_MS: i64 = 86_400_000;

/// `2026-11-03`, `2026-11`.
static ISO: Pattern = pattern!(r"\b(\d{4})-(\d\d)(?:-(\d\d))?(?:\b|T)");
/// `3 November 2026`, `November 3rd`, `Nov 2026`, `November`.
static SPOKEN: Pattern = pattern!(
    r"(?ix)
        \b (?: (\d{1,2}) (?:st|nd|rd|th)? \s+ (?:of\s+)? )?
        (jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec) (uary|ruary|ch|il|ust|tember|ober|ember)? \b
        (?: \s+ (\d{1,2}) (?:st|nd|rd|th)? \b )?
        (?: ,? \s+ (\d{4}) \b )?"
);
/// Months whose name is also another word.
const AMBIGUOUS: &[&str] = &["mar", "may", "march"];
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A day or a month, of one year or of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    year: Option<u32>,
    month: u32,
    day: Option<u32>,
}

impl Date {
    /// The dates in `query`.
    pub(crate) fn all_in(query: &str) -> Vec<Self> {
        Self::written_in(query).into_iter().map(|(date, _)| date).collect()
    }

    /// The words of these dates, in lowercase: that no message writes one says nothing about the date.
    pub(crate) fn words_in(query: &str) -> Vec<String> {
        let written = Self::written_in(query).into_iter().map(|(_, written)| written);
        written.flat_map(|written| words(written).map(|(_, word)| word.to_lowercase())).collect()
    }

    /// The first of these dates as its first day and the one after its last, in ISO format. Without a year, it is the last
    /// such date before `now`, in ms.
    pub(crate) fn days_of(query: &str, now: i64) -> Option<(String, String)> {
        let Self { year, month, day } = *Self::all_in(query).first()?;
        let day_of = |ms| text::minute(ms)[..10].to_owned();
        let begins = |year: u32, month: u32, day: u32| {
            text::parse_iso(&format!("{year:04}-{month:02}-{day:02}T00:00:00Z"))
        };
        let year = match year {
            Some(year) => year,
            None => {
                let this = text::minute(now)[..4].parse().ok()?;
                if begins(this, month, day.unwrap_or(1))? <= now { this } else { this - 1 }
            }
        };
        let from = begins(year, month, day.unwrap_or(1))?;
        let until = match (day, month) {
            (Some(_), _) => from + DAY_MS,
            (None, 12) => begins(year + 1, 1, 1)?,
            (None, _) => begins(year, month + 1, 1)?,
        };
        Some((day_of(from), day_of(until)))
    }

    fn written_in(query: &str) -> Vec<(Self, &str)> {
        let number = |group: Option<regex::Match<'_>>| group.and_then(|digits| digits.as_str().parse().ok());
        let iso = ISO.captures(query).filter_map(|found| {
            let (year, month, day) = (number(found.get(1)), number(found.get(2))?, number(found.get(3)));
            Some((Self { year, month, day }, found.get(0)?.as_str()))
        });
        let spoken = SPOKEN.captures(query).filter_map(|found| {
            let name = found[2].to_lowercase();
            let year = number(found.get(5));
            let day = number(found.get(1).or(found.get(4)));
            let whole =
                name.clone() + &found.get(3).map_or(String::new(), |rest| rest.as_str().to_lowercase());
            let is_vague = AMBIGUOUS.contains(&whole.as_str()) && year.is_none() && day.is_none();
            let month = MONTHS.iter().position(|month| name.starts_with(month))? + 1;
            let month = u32::try_from(month).ok()?;
            (!is_vague).then_some((Self { year, month, day }, found.get(0)?.as_str()))
        });
        iso.chain(spoken).collect()
    }

    /// Whether the time, in ms, is on this date; days are UTC.
    pub fn has(&self, ms: i64) -> bool {
        let time = text::minute(ms);
        let mut numbers = time.split(['-', ' ']).map(|digits| digits.parse::<u32>().ok());
        let mut is = |wanted: Option<u32>| {
            let number = numbers.next().flatten();
            wanted.is_none() || wanted == number
        };
        is(self.year) && is(Some(self.month)) && is(self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_span_of_days() {
        let now = text::parse_iso("2026-11-29T12:00:00Z").unwrap();
        for (query, from, until) in [
            ("what happened in October", "2026-10-01", "2026-11-01"),
            ("on December 24th", "2025-12-24", "2025-12-25"),
            ("in December 2024", "2024-12-01", "2025-01-01"),
            ("on 2024-02-28", "2024-02-28", "2024-02-29"),
        ] {
            assert_eq!(Date::days_of(query, now), Some((from.into(), until.into())), "{query}");
        }
        assert_eq!(Date::days_of("nothing on 31 November", now), None);
        assert_eq!(Date::words_in("edit on the 2nd of November"), ["2nd", "of", "november"]);
    }

    #[test]
    fn a_date_is_named_in_many_ways() {
        let time = text::parse_iso("2026-11-03T09:30:00Z").unwrap();
        for query in [
            "what broke on 3 November 2026", "November 3rd, 2026", "the 3rd of november", "Nov 3",
            "deployed in November?", "since 2026-11-03T08:00", "2026-11",
        ] {
            let dates = Date::all_in(query);
            assert!(dates.len() == 1 && dates[0].has(time), "{query}: {dates:?}");
        }
        for query in ["4 November 2026", "October", "November 2025", "2026-11-04"] {
            let dates = Date::all_in(query);
            assert!(dates.len() == 1 && !dates[0].has(time), "{query}: {dates:?}");
        }
        for query in ["we may march on", "decide", "port 3000", "november_rain", "marching"] {
            assert_eq!(Date::all_in(query), [], "{query}");
        }
    }
}
