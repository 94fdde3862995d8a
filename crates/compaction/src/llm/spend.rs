//! The spend guard: limits the tokens for summaries per hour.
//!
//! It guards against the unexpected: a bug, or a provider, that makes the same work repeat endlessly.
//! Ordinary work never reaches it. Each process counts by itself, for the lifetime of a session.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use lcm_model::config::Settings;
use lcm_model::locks::lock;
use lcm_model::{Usage, text};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Counts and limits tokens.
pub struct Spend(Mutex<SpendCounts>);

struct SpendCounts {
    /// The most tokens per hour; 0 means no limit.
    limit: usize,
    /// When the hour began, and the tokens since.
    began: Instant,
    tokens: usize,
}

impl Spend {
    pub(super) fn new(settings: &Settings) -> Self {
        let limit = settings.model_tokens_per_hour;
        Self(Mutex::new(SpendCounts { limit, began: Instant::now(), tokens: 0 }))
    }

    /// Sets a new limit; what was spent stays counted.
    pub fn limit(&self, settings: &Settings) {
        lock(&self.0).limit = settings.model_tokens_per_hour;
    }

    /// Permission for a call; otherwise what the user must know.
    pub(super) fn admit(&self) -> Result<(), String> {
        let mut counts = lock(&self.0);
        if counts.began.elapsed() >= HOUR {
            (counts.began, counts.tokens) = (Instant::now(), 0);
        }
        if counts.limit == 0 || counts.tokens < counts.limit {
            return Ok(());
        }
        let most = text::grouped(counts.limit);
        Err(format!(
            "the limit of {most} tokens of model calls within an hour is reached (setting `modelTokensPerHour`), so summaries are made without a model for now and replaced later"
        ))
    }

    /// Counts a call: as reported, otherwise `estimate` tokens.
    pub(super) fn note(&self, usage: Option<&Value>, estimate: usize) {
        let tokens =
            usage.map(|usage| Usage::of(usage).tokens()).filter(|tokens| *tokens > 0).unwrap_or(estimate);
        let mut counts = lock(&self.0);
        counts.tokens = counts.tokens.saturating_add(tokens);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ProviderState;
    use super::*;

    fn guard(model_tokens_per_hour: usize) -> ProviderState {
        ProviderState::new(&Settings { model_tokens_per_hour, ..Settings::default() })
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_limited_by_the_hour_and_reported_once() {
        let providers = guard(200);
        for is_first in [true, false] {
            for admitted in [true, true, false, false] {
                assert_eq!(providers.admit(), admitted);
                if admitted {
                    providers.spend.note(None, 100);
                }
            }
            let notice = providers.take_notice();
            assert_eq!(notice.is_some_and(|said| said.contains("limit of 200 tokens")), is_first);
            tokio::time::advance(HOUR).await;
        }
    }

    #[tokio::test]
    async fn reported_tokens_count_and_a_limit_may_change() {
        let spend = guard(0).spend;
        spend.note(Some(&json!({"input": 900, "output": 100})), 5);
        assert!(spend.admit().is_ok());
        spend.limit(&Settings { model_tokens_per_hour: 1_000, ..Settings::default() });
        assert!(spend.admit().is_err());
    }
}
