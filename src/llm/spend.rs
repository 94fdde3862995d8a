//! The spend guard: how many calls and tokens may go into summaries, within an hour and within a session.
//!
//! It is there for what nobody foresees: a fault of ours, or a provider, that makes the same work come up again and again.
//! Ordinary work never meets it. Each process counts for itself, as long as a session is open in it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::config::Settings;
use crate::text;

const HOUR: Duration = Duration::from_secs(60 * 60);
/// What an hour is counted in.
const PART: Duration = Duration::from_secs(60);

/// What may be spent; none is no limit.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    hour: Used,
    session: Used,
}

/// What was spent, or the most that may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    calls: usize,
    tokens: usize,
}

/// Keeps count.
pub(super) struct Spend {
    limits: Mutex<Limits>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    session: Used,
    /// By when a part of an hour began, oldest first.
    hour: VecDeque<(Instant, Used)>,
    /// What the user has been told.
    told: Vec<&'static str>,
    notice: Option<String>,
}

impl Spend {
    pub(super) fn new(settings: &Settings) -> Self {
        let spend = Self { limits: Mutex::default(), counts: Mutex::default() };
        spend.limit(settings);
        spend
    }

    /// Other limits from here on; what was spent stays counted.
    pub(super) fn limit(&self, settings: &Settings) {
        let limits = Limits {
            hour: Used { calls: settings.model_calls_per_hour, tokens: settings.model_tokens_per_hour },
            session: Used {
                calls: settings.model_calls_per_session,
                tokens: settings.model_tokens_per_session,
            },
        };
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Leave to make one call, which counts from now on.
    ///
    /// # Errors
    /// The setting that stands against it.
    pub(super) fn admit(&self) -> Result<(), &'static str> {
        let mut counts = self.lock();
        counts.forget(Instant::now());
        let hour = counts.hour.iter().fold(Used::default(), |sum, (_, used)| sum.and(*used));
        let limits = *self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let session = counts.session;
        let held = [
            (hour.calls, limits.hour.calls, "modelCallsPerHour", "model calls within an hour"),
            (hour.tokens, limits.hour.tokens, "modelTokensPerHour", "tokens of model calls within an hour"),
            (session.calls, limits.session.calls, "modelCallsPerSession", "model calls in this session"),
            (
                session.tokens,
                limits.session.tokens,
                "modelTokensPerSession",
                "tokens of model calls in this session",
            ),
        ];
        let Some((_, most, setting, what)) =
            held.into_iter().find(|(used, most, ..)| *most > 0 && used >= most)
        else {
            counts.add(Used { calls: 1, tokens: 0 });
            return Ok(());
        };
        if !counts.told.contains(&setting) {
            counts.told.push(setting);
            let most = text::grouped(most);
            counts.notice = Some(format!(
                "the limit of {most} {what} is reached (setting `{setting}`), so summaries are made without a model for now and replaced later"
            ));
        }
        Err(setting)
    }

    /// What an admitted call used: as reported, else `estimate` tokens.
    pub(super) fn note(&self, usage: Option<&Value>, estimate: usize) {
        let tokens = usage.map(reported).filter(|tokens| *tokens > 0).unwrap_or(estimate);
        self.lock().add(Used { calls: 0, tokens });
    }

    /// What the user should hear, once for each limit.
    pub(super) fn take_notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn add(&mut self, used: Used) {
        let now = Instant::now();
        self.session = self.session.and(used);
        match self.hour.back_mut() {
            Some((began, sum)) if now.duration_since(*began) < PART => *sum = sum.and(used),
            _ => self.hour.push_back((now, used)),
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.hour.front().is_some_and(|(began, _)| now.duration_since(*began) >= HOUR) {
            self.hour.pop_front();
        }
    }
}

impl Used {
    fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

/// All tokens of a report in Pi's shape.
fn reported(usage: &Value) -> usize {
    let count =
        |key: &str| usage[key].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
    let parts = ["input", "output", "cacheRead", "cacheWrite"].map(count).iter().sum();
    count("totalTokens").max(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guard(calls_per_hour: usize, tokens_per_hour: usize, calls_per_session: usize) -> Spend {
        Spend::new(&Settings {
            model_calls_per_hour: calls_per_hour,
            model_tokens_per_hour: tokens_per_hour,
            model_calls_per_session: calls_per_session,
            ..Settings::default()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_by_the_hour_and_by_the_session_and_told_of_once() {
        let spend = guard(2, 0, 5);
        let mut outcomes = Vec::new();
        for _ in 0..4 {
            outcomes.push((spend.admit(), spend.admit(), spend.admit()));
            tokio::time::advance(HOUR).await;
        }
        let (hour, session) = (Err("modelCallsPerHour"), Err("modelCallsPerSession"));
        assert_eq!(outcomes[..2], [(Ok(()), Ok(()), hour); 2]);
        assert_eq!(outcomes[2..], [(Ok(()), session, session), (session, session, session)]);
        assert!(spend.take_notice().unwrap().contains("limit of 5 model calls in this session"));
        assert_eq!(spend.take_notice(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_count_as_reported_or_as_estimated() {
        let spend = guard(0, 1_000, 0);
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
