//! One HTTP request: sent once, with its answer read completely and within bounds.
//!
//! The process has one client, created when first needed. It trusts the system's certificates, and does not follow
//! redirects, which would forward the key.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;

use super::eligibility::Plan;
use crate::llm::{Failure, Kind};

/// The largest answer, in bytes; ours are far smaller.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// A server that takes longer to connect counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Servers close idle connections, and a request sent at that moment is lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server's answer.
pub(super) struct Response {
    pub status: u16,
    pub retry_after_ms: Option<u64>,
    pub text: String,
}

/// The process's client; `None` on a system without trusted certificates: Node brings its own, so Pi must ask.
pub(super) fn client() -> Option<Client> {
    static CLIENT: OnceLock<Option<Client>> = OnceLock::new();
    let make = || {
        // Fails if it is already installed.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder().redirect(Policy::none()).no_proxy();
        builder.connect_timeout(CONNECT_TIMEOUT).pool_idle_timeout(IDLE_TIMEOUT).build().ok()
    };
    CLIENT.get_or_init(make).clone()
}

/// Sends a JSON body.
///
/// # Errors
/// When no complete answer arrives, whatever its status. There is no time limit here.
pub(super) async fn post(client: &Client, plan: &Plan, body: String) -> Result<Response, Failure> {
    let request = client.post(plan.url.clone()).headers(plan.headers.clone()).body(body);
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let retry_after_ms = retry_after(response.headers(), Timestamp::now());
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            let reason = format!("its answer is larger than {} MB", MOST_BYTES >> 20);
            return Err(Failure { status: Some(status), ..Failure::unreachable(reason) });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Response { status, retry_after_ms, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Uses the innermost error's message; the outer ones say only that something failed.
fn unreachable(error: reqwest::Error) -> Failure {
    let (kind, what) = match error.is_connect() {
        true => (Kind::Unconnected, "it can't be reached"),
        false => (Kind::Broken, "the connection broke"),
    };
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Failure::of(kind, format!("{what}: {cause}"))
}

/// The delay in ms, if given: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let text = |value: Option<&HeaderValue>| value?.to_str().ok().map(|text| text.trim().to_owned());
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
            assert_eq!(retry_after(&headers, now), ms, "{said:?}");
        }
    }
}
