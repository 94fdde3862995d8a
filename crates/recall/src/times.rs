//! Parses times as a model or a user writes them: ISO, or how long ago.

use lcm_model::error::{Error, Result};
use lcm_model::text;

const MINUTE: i64 = 60_000;
const DAY: i64 = 1_440 * MINUTE;

/// Parses the parameters `names`, after which and before which, with the values `written`, in ms since the
/// epoch; days are UTC.
///
/// # Errors
/// When one is not a time, or nothing can lie between them.
pub fn span(names: [&str; 2], written: [Option<&str>; 2], now: i64) -> Result<[Option<i64>; 2]> {
    let [after, before] = [0, 1].map(|at| point_in_time(names[at], written[at], now));
    let (after, before) = (after?, before?);
    if after.zip(before).is_some_and(|(after, before)| after > before) {
        let [after, before] = names;
        return Err(Error::invalid(format!(
            "{after} is later than {before}: nothing can lie between, exchange them"
        )));
    }
    Ok([after, before])
}

fn point_in_time(name: &str, written: Option<&str>, now: i64) -> Result<Option<i64>> {
    let Some(written) = written else { return Ok(None) };
    read(written.trim(), now).map(Some).ok_or_else(|| {
        Error::invalid(format!(
            "{name} `{}` is not a time: write an ISO date or time such as 2026-11-20 or 2026-11-20T09:30Z, or how long ago, \
             such as 2h, 3d or yesterday",
            text::one_line(written, 40)
        ))
    })
}

fn read(written: &str, now: i64) -> Option<i64> {
    let today = now - now.rem_euclid(DAY);
    match written {
        "now" => return Some(now),
        "today" => return Some(today),
        "yesterday" => return Some(today - DAY),
        _ => {}
    }
    let iso =
        ["", "Z", ":00Z", "T00:00:00Z"].iter().find_map(|end| text::parse_iso(&format!("{written}{end}")));
    iso.or_else(|| {
        let written = written.strip_suffix("ago").unwrap_or(written).trim();
        let digits = written.find(|c: char| !c.is_ascii_digit())?;
        let unit = match written[digits..].trim() {
            "m" | "min" | "minute" | "minutes" => MINUTE,
            "h" | "hour" | "hours" => 60 * MINUTE,
            "d" | "day" | "days" => DAY,
            "w" | "week" | "weeks" => 7 * DAY,
            _ => return None,
        };
        now.checked_sub(written[..digits].parse::<i64>().ok()?.checked_mul(unit)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso_or_relative() {
        let now = text::parse_iso("2026-11-20T09:30:00Z").unwrap();
        for (written, expected) in [
            ("2026-11-20T09:30:00Z", now),
            ("2026-11-20T09:30Z", now),
            ("2026-11-20T09:30", now),
            ("2026-11-20", now - 570 * MINUTE),
            ("today", now - 570 * MINUTE),
            ("yesterday", now - 570 * MINUTE - DAY),
            ("2h", now - 120 * MINUTE),
            ("3 days ago", now - 3 * DAY),
            ("1w", now - 7 * DAY),
            ("now", now),
        ] {
            assert_eq!(point_in_time("after", Some(written), now).unwrap(), Some(expected), "{written}");
        }
        for written in ["", "h", "2x", "soon", "-1h", "99999999999999999999d", "9223372036854775807w"] {
            assert!(point_in_time("after", Some(written), now).is_err(), "{written}");
        }
    }
}
