//! Why there is no usable answer, and what follows: retry, ask another model, or do without.
//!
//! Pi passes on a provider's text, from which the status and the kind are parsed.

use std::time::Duration;

use serde_json::Value;

use lcm_model::read_json;

/// The most characters of a provider's error message that are passed on.
const COMPLAINT: usize = 500;

/// Statuses of transient failures.
const PASSING: [u16; 10] = [408, 425, 429, 500, 502, 503, 504, 520, 524, 529];

/// Phrases about an exhausted account rather than a transient failure, whatever the status.
const USED_UP: [&str; 7] = [
    "insufficient_quota", "quota exceeded", "usage limit reached", "usagelimiterror", "out of budget",
    "available balance", "billing",
];

/// Phrases for a broken connection, if there is no status …
const CUT: [&str; 13] = [
    "connection", "econnre", "enotfound", "ehostunreach", "enetunreach", "eai_again", "fetch failed",
    "network", "socket", "other side closed", "premature close", "terminated", "ended without",
];

/// … for an answer that could not be parsed …
const UNPARSED: [&str; 3] = ["unexpected end", "in json at position", "not valid json"];

/// … and for a provider that is overloaded or stopped halfway.
const BUSY: [&str; 7] = [
    "stream ended", "answer is incomplete", "timed out", "timeout", "overloaded", "rate limit", "unavailable",
];

/// Phrases about a question that exceeds the window, with any status.
const TOO_LONG: [&str; 6] = [
    "exceeds context size", "exceeds the available context size", "exceed_context_size",
    "context_length_exceeded", "maximum context length", "prompt is too long",
];

/// Phrases for a refusal by the model or a content filter.
const REFUSALS: [&str; 4] = ["refus", "content_filter", "content filter", "sensitive"];

/// Why there is no usable answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    pub reason: String,
    pub kind: Kind,
    /// What the call used nevertheless.
    pub usage: Option<Value>,
    /// The delay in ms that the provider asks for.
    pub retry_after_ms: Option<u32>,
    /// The answer was cut off because thinking took most of its tokens.
    pub was_thinking: bool,
}

/// Kinds of failures, by what to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No answer, for a transient reason: retry.
    #[default]
    Broken,
    /// No answer in time, and a retry would likely time out too: ask the next model.
    Late,
    /// The provider rejects the question or the account: ask the next model.
    Rejected,
    /// The model or its provider refuses to answer: ask the next model.
    Refused,
    /// A useless answer.
    Useless,
    /// The question exceeds the model's window, so it was not asked or not answered.
    TooLong {
        /// How many estimated tokens would have fit; 0 if that is not known yet.
        room: u32,
    },
    /// Not asked, because a limit on calls or tokens is reached.
    Spent,
    /// No model was asked: there is none, or each is skipped after earlier failures.
    Unasked,
}

impl Failure {
    /// No answer, for a transient reason.
    pub fn unreachable(reason: impl Into<String>) -> Self {
        let reason = Some(reason.into()).filter(|reason: &String| !reason.trim().is_empty());
        Self { reason: reason.unwrap_or_else(|| "no reason given".into()), ..Self::default() }
    }

    /// A useless answer.
    pub fn useless(reason: impl Into<String>) -> Self {
        Self::of(Kind::Useless, reason)
    }

    /// No answer, of this kind.
    pub(super) fn of(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, ..Self::unreachable(reason) }
    }

    pub(super) fn late(limit: Duration) -> Self {
        Self::of(Kind::Late, format!("no answer within {} s", limit.as_secs_f32()))
    }

    /// Parses a provider's message, which may start with a status and contain JSON.
    pub fn said(text: &str) -> Self {
        let text = text.trim();
        let word = text.split([':', ' ']).next().unwrap_or_default();
        let status = word.parse().ok().filter(|status: &u16| (100..600).contains(status));
        let rest = if status.is_some() { text[word.len()..].trim_start_matches([':', ' ']) } else { text };
        let json = read_json(rest).ok().filter(Value::is_object);
        let reason = match (status, &json) {
            (Some(status @ 300..400), _) => {
                format!("{status}: it redirects to another address, which never gets the key")
            }
            (Some(status), _) => format!("{status}: {}", complaint(json.as_ref(), rest)),
            (None, Some(json)) => complaint(Some(json), rest),
            (None, None) => in_words(text),
        };
        Self::of(kind_of(status, text), reason)
    }

    /// Whether the model answered, though uselessly; otherwise it could not be reached.
    pub fn answered(&self) -> bool {
        self.kind == Kind::Useless
    }

    /// The same, prefixed with the model's name.
    pub(super) fn by(self, name: &str) -> Self {
        Self { reason: format!("{name}: {}", self.reason), ..self }
    }

    /// Its kind, for the log.
    pub(super) fn outcome(&self) -> &'static str {
        match self.kind {
            Kind::Broken => "unreachable",
            Kind::Late => "late",
            Kind::Rejected => "rejected",
            Kind::Refused => "refused",
            Kind::Useless => "useless",
            Kind::TooLong { .. } => "long",
            Kind::Spent => "spent",
            Kind::Unasked => "unasked",
        }
    }

    /// Whether the provider is in trouble and would fail whatever it is asked.
    pub(super) fn is_of_provider(&self) -> bool {
        !matches!(self.kind, Kind::Useless | Kind::Refused | Kind::Rejected | Kind::TooLong { .. })
    }
}

/// A library error for a broken call, worded for users who do not know Pi's libraries.
fn in_words(text: &str) -> String {
    let lower = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let said: String = text.chars().take(COMPLAINT).collect();
    match () {
        () if says(&UNPARSED) => "its answer is not JSON".into(),
        () if says(&CUT) => format!("the connection broke: {said}"),
        () => said,
    }
}

fn kind_of(status: Option<u16>, text: &str) -> Kind {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match status {
        _ if says(&TOO_LONG) => Kind::TooLong { room: 0 },
        _ if says(&USED_UP) => Kind::Rejected,
        Some(status) if PASSING.contains(&status) => Kind::Broken,
        Some(200..300) => Kind::Broken,
        Some(_) => Kind::Rejected,
        None if says(&REFUSALS) => Kind::Refused,
        None if says(&CUT) || says(&UNPARSED) || says(&BUSY) => Kind::Broken,
        None => Kind::Rejected,
    }
}

/// What a provider says went wrong, truncated.
fn complaint(json: Option<&Value>, text: &str) -> String {
    let said = json.and_then(|json| {
        let error = &json["error"];
        [&error["message"], &json["message"], &json["detail"], error].into_iter().find_map(Value::as_str)
    });
    let said = said.unwrap_or(text).trim();
    // A proxy's or gateway's HTML page is for browsers.
    if said.is_empty() || said.starts_with('<') {
        return "no reason given".into();
    }
    said.chars().take(COMPLAINT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_through_pi_are_classified() {
        let cases = [
            ("429 slow down", "429: slow down", Kind::Broken),
            (r#"529 {"type":"error","error":{"message":"Overloaded"}}"#, "529: Overloaded", Kind::Broken),
            (r#"503: {"message":"later"}"#, "503: later", Kind::Broken),
            ("500 status code (no body)", "500: status code (no body)", Kind::Broken),
            ("429 insufficient_quota", "429: insufficient_quota", Kind::Rejected),
            ("401 bad key", "401: bad key", Kind::Rejected),
            ("404", "404: no reason given", Kind::Rejected),
            ("307", "307: it redirects to another address, which never gets the key", Kind::Rejected),
            ("Connection error.", "the connection broke: Connection error.", Kind::Broken),
            ("terminated", "the connection broke: terminated", Kind::Broken),
            (
                "Stream ended without finish_reason",
                "the connection broke: Stream ended without finish_reason",
                Kind::Broken,
            ),
            (
                "Provider finish_reason: content_filter",
                "Provider finish_reason: content_filter",
                Kind::Refused,
            ),
            (
                "The model refused to complete the request",
                "The model refused to complete the request",
                Kind::Refused,
            ),
            ("Unexpected end of JSON input", "its answer is not JSON", Kind::Broken),
            (r#"{"error":{"message":"Overloaded"}}"#, "Overloaded", Kind::Broken),
            (
                r#"400 {"error":{"code":400,"message":"request (9014 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
                "400: request (9014 tokens) exceeds the available context size (8192 tokens), try increasing it",
                Kind::TooLong { room: 0 },
            ),
            (
                "500 the request exceeds context size",
                "500: the request exceeds context size",
                Kind::TooLong { room: 0 },
            ),
            ("no model is chosen", "no model is chosen", Kind::Rejected),
            ("1234 things", "1234 things", Kind::Rejected),
            ("", "no reason given", Kind::Rejected),
        ];
        for (text, reason, kind) in cases {
            let failure = Failure::said(text);
            assert_eq!((failure.reason.as_str(), failure.kind), (reason, kind), "{text}");
        }
    }
}
