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

impl Usage {
    pub fn of(report: &Value) -> Self {
        let count = |key: &str| report[key].as_u64().and_then(|count| count.try_into().ok()).unwrap_or(0);
        Self {
            input: count("input"),
            output: count("output"),
            cache_read: count("cacheRead"),
            cache_write: count("cacheWrite"),
            total: count("totalTokens"),
            dollars: report["cost"]["total"].as_f64().unwrap_or_default(),
        }
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
