//! The spend guard: limits the tokens for summaries per hour and per session.
//!
//! It guards against the unexpected: a bug, or a provider, that makes the same work repeat endlessly.
//! Ordinary work never reaches it. Each process counts by itself, for the lifetime of a session.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::config::Settings;
use crate::model::Usage;
use crate::sync::lock;
use crate::text;

const HOUR: Duration = Duration::from_secs(60 * 60);
/// The granularity of the hour's count.
const PART: Duration = Duration::from_secs(60);

/// The most tokens that may be spent; 0 means no limit.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    hour: usize,
    session: usize,
}

/// Counts and limits tokens.
pub struct Spend(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    limits: Limits,
    /// Tokens.
    session: usize,
    /// Tokens by the start of each part of the hour, oldest first.
    hour: VecDeque<(Instant, usize)>,
    /// The limits the user was told about.
    reported: Vec<&'static str>,
    notice: Option<String>,
}

impl Spend {
    pub(super) fn new(settings: &Settings) -> Self {
        let spend = Self(Mutex::default());
        spend.limit(settings);
        spend
    }

    /// Sets new limits; what was spent stays counted.
    pub fn limit(&self, settings: &Settings) {
        lock(&self.0).limits =
            Limits { hour: settings.model_tokens_per_hour, session: settings.model_tokens_per_session };
    }

    /// Permission for one call.
    ///
    /// # Errors
    /// The setting whose limit is reached.
    pub(super) fn admit(&self) -> Result<(), &'static str> {
        let mut counts = lock(&self.0);
        counts.forget(Instant::now());
        let hour = counts.hour.iter().fold(0_usize, |sum, (_, tokens)| sum.saturating_add(*tokens));
        let held = [
            (hour, counts.limits.hour, "modelTokensPerHour", "within an hour"),
            (counts.session, counts.limits.session, "modelTokensPerSession", "in this session"),
        ];
        let reached = held.into_iter().find(|(used, most, ..)| *most > 0 && used >= most);
        let Some((_, most, setting, within)) = reached else { return Ok(()) };
        if !counts.reported.contains(&setting) {
            counts.reported.push(setting);
            let most = text::grouped(most);
            counts.notice = Some(format!(
                "the limit of {most} tokens of model calls {within} is reached (setting `{setting}`), so summaries are made without a model for now and replaced later"
            ));
        }
        Err(setting)
    }

    /// Counts an admitted call: as reported, otherwise `estimate` tokens.
    pub(super) fn note(&self, usage: Option<&Value>, estimate: usize) {
        let tokens =
            usage.map(|usage| Usage::of(usage).tokens()).filter(|tokens| *tokens > 0).unwrap_or(estimate);
        lock(&self.0).add(tokens);
    }

    /// A message for the user, once per limit.
    pub fn take_notice(&self) -> Option<String> {
        lock(&self.0).notice.take()
    }
}

impl Counts {
    fn add(&mut self, tokens: usize) {
        let now = Instant::now();
        self.session = self.session.saturating_add(tokens);
        match self.hour.back_mut() {
            Some((began, sum)) if now.duration_since(*began) < PART => *sum = sum.saturating_add(tokens),
            _ => self.hour.push_back((now, tokens)),
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.hour.front().is_some_and(|(began, _)| now.duration_since(*began) >= HOUR) {
            self.hour.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guard(model_tokens_per_hour: usize, model_tokens_per_session: usize) -> Spend {
        Spend::new(&Settings { model_tokens_per_hour, model_tokens_per_session, ..Settings::default() })
    }

    /// Requests a call, which then uses 100 tokens.
    fn call(spend: &Spend) -> Result<(), &'static str> {
        spend.admit().inspect(|()| spend.note(None, 100))
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_limited_by_the_hour_and_by_the_session_and_reported_once() {
        let spend = guard(200, 500);
        let mut outcomes = Vec::new();
        for _ in 0..4 {
            outcomes.push([call(&spend), call(&spend), call(&spend)]);
            tokio::time::advance(HOUR).await;
        }
        let (hour, session) = (Err("modelTokensPerHour"), Err("modelTokensPerSession"));
        assert_eq!(outcomes[..2], [[Ok(()), Ok(()), hour]; 2]);
        assert_eq!(outcomes[2..], [[Ok(()), session, session], [session; 3]]);
        assert!(spend.take_notice().unwrap().contains("limit of 500 tokens of model calls in this session"));
        assert_eq!(spend.take_notice(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_count_as_reported_or_as_estimated() {
        let spend = guard(1_000, 0);
        for (usage, estimate) in [
            (Some(json!({"input": 300, "output": 100, "cacheRead": 100})), 9_999),
            (Some(json!({"input": 0, "output": 0, "totalTokens": 0})), 200),
            (None, 299),
        ] {
            assert_eq!(spend.admit(), Ok(()));
            spend.note(usage.as_ref(), estimate);
        }
        assert_eq!(spend.admit(), Ok(()));
        spend.note(Some(&json!({"totalTokens": 1})), 0);
        assert_eq!(spend.admit(), Err("modelTokensPerHour"));
        assert!(spend.take_notice().unwrap().contains("1,000 tokens"));
        tokio::time::advance(HOUR).await;
        assert_eq!(spend.admit(), Ok(()));
    }
}
