//! Reads from a provider's headers when to retry.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The delay in ms, if given: `retry-after-ms`, or `retry-after` in seconds or as a date.
pub(super) fn in_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = |value: Option<&reqwest::header::HeaderValue>| {
        value?.to_str().ok().map(|text| text.trim().to_owned())
    };
    let ms = text(headers.get("retry-after-ms")).and_then(|ms| ms.parse::<f64>().ok()).and_then(whole);
    ms.or_else(|| {
        let said = text(headers.get(RETRY_AFTER))?;
        if let Ok(seconds) = said.parse::<f64>() {
            return whole(seconds * 1_000.0);
        }
        let then = rfc2822::parse(&said).ok()?.timestamp();
        Some(u64::try_from(then.as_millisecond() - now.as_millisecond()).unwrap_or_default())
    })
}

/// Rounds up, to 0 at least.
fn whole(ms: f64) -> Option<u64> {
    if !ms.is_finite() {
        return None;
    }
    format!("{:.0}", ms.max(0.0).ceil()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_retry_after_is_parsed() {
        let now: Timestamp = "2026-11-06T08:49:37Z".parse().unwrap();
        let cases = [
            (vec![("retry-after", "2")], Some(2_000)),
            (vec![("retry-after", " 0.5 ")], Some(500)),
            (vec![("retry-after", "Fri, 06 Nov 2026 08:50:07 GMT")], Some(30_000)),
            (vec![("retry-after", "Fri, 06 Nov 2026 08:49:00 GMT")], Some(0)),
            (vec![("retry-after", "-3")], Some(0)),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "inf")], None),
            (vec![("retry-after-ms", "12.2"), ("retry-after", "9")], Some(13)),
            (vec![("retry-after-ms", "?"), ("retry-after", "9")], Some(9_000)),
            (vec![], None),
        ];
        for (said, ms) in cases {
            let headers =
                said.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            assert_eq!(in_ms(&headers, now), ms, "{said:?}");
        }
    }
}
