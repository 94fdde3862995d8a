//! What a model call used, from Pi's report.

use serde_json::Value;

/// Tokens and cost of a call; whatever the provider did not report is 0.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    /// Of the prompt, neither read from the cache nor written to it.
    pub input: usize,
    /// Of the answer.
    pub output: usize,
    pub cache_read: usize,
    pub cache_write: usize,
    total: usize,
    /// By the prices in Pi.
    pub dollars: f64,
}

/// The largest windows take ten million tokens: a report of more than twice that is an error of its server.
pub const MOST_REPORTED: usize = 20_000_000;

impl Usage {
    /// Reads a report; one that no request can have used counts as none.
    pub fn of(report: &Value) -> Self {
        let count = |key: &str| {
            let more = || report[key].as_f64().is_some_and(|count| count >= 1.0).then_some(usize::MAX);
            report[key].as_u64().and_then(|count| count.try_into().ok()).or_else(more).unwrap_or(0)
        };
        let usage = Self {
            input: count("input"),
            output: count("output"),
            cache_read: count("cacheRead"),
            cache_write: count("cacheWrite"),
            total: count("totalTokens"),
            dollars: report["cost"]["total"].as_f64().unwrap_or_default(),
        };
        if usage.tokens() > MOST_REPORTED { Self::default() } else { usage }
    }

    /// Tokens of the prompt.
    pub fn prompt(&self) -> usize {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// All tokens.
    pub fn tokens(&self) -> usize {
        self.total.max(self.prompt().saturating_add(self.output))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_that_no_request_can_have_used_counts_as_none() {
        let dollars = |input: Value| {
            let usage = Usage::of(&json!({"input": input, "output": 5, "cost": {"total": 3.0}}));
            (usage.tokens(), usage.dollars)
        };
        assert_eq!(dollars(json!(1_000)), (1_005, 3.0));
        for absurd in [json!(1_000_000_000_000_000_000_u64), json!(u64::MAX), json!(1e18), json!(21_000_000)]
        {
            assert_eq!(dollars(absurd), (0, 0.0));
        }
    }
}
