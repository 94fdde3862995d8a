//! What a session has cost since it was opened, and what the same requests would have cost with Pi alone.
//!
//! Pi alone shows everything up to its threshold, then a summary and a kept tail. The ledger follows that context beside the
//! real one and counts the difference: what Pi alone would have shown in addition, and what was written again because the
//! policy changed the prompt. Sizes and cache hits are those of the real requests.

use serde::Serialize;

use super::prices::Prices;
use super::{RISK, tokens};

/// Tokens of the summary that Pi writes, as real models do.
const SUMMARY: usize = 2_500;

/// A request that was answered. All in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Its prompt.
    pub prompt: usize,
    /// Of that, what was read from the provider's cache; none where it does not tell.
    pub read: Option<usize>,
    /// The answer.
    pub output: usize,
    /// What was part of a prompt for the first time.
    pub grown: usize,
    /// What stubs leave out of it.
    pub hidden: usize,
    /// Since the request before, a stub or a compaction has changed the prompt.
    pub is_changed: bool,
    /// It does not go on with the request before, but stands on another branch.
    pub is_elsewhere: bool,
}

/// How Pi alone compacts. All in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    /// The context beyond which it does; none where it does not.
    pub threshold: Option<usize>,
    /// What it keeps.
    pub kept: usize,
    /// System prompt and tools.
    pub prompt: usize,
}

/// Costs are in millionths of the prices' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// Requests that were answered.
    pub requests: usize,
    /// What they and the summaries cost.
    pub paid: f64,
    /// What they would have cost with Pi alone.
    pub alone: f64,
    /// Tokens of the prompt that Pi alone would have sent last.
    pub alone_tokens: usize,
    /// Tokens of the last answer, and of the prompt before it.
    #[serde(skip)]
    answer: usize,
    #[serde(skip)]
    prompt: usize,
    /// What unchanged prompts have grown by: as we think, and as the provider counts.
    #[serde(skip)]
    growth: (usize, usize),
}

impl Ledger {
    /// Adds a request.
    pub fn add(&mut self, request: Request, prices: Prices, alone: Alone) {
        let Request { prompt, read, output, grown, hidden, is_changed, is_elsewhere } = request;
        let is_first = self.requests == 0 || is_elsewhere;
        let grown = self.counted(grown, prompt, is_changed || is_first);
        let cached = read.unwrap_or(prompt.saturating_sub(grown)).min(prompt);
        let cost = prices.read * tokens(cached)
            + prices.write * tokens(prompt - cached)
            + prices.output * tokens(output);
        let answer = std::mem::replace(&mut self.answer, output);
        self.prompt = prompt;
        self.requests += 1;
        self.paid += cost;
        self.alone += cost;
        if is_first {
            self.alone_tokens = prompt + hidden;
            return;
        }
        let before = self.alone_tokens;
        self.alone_tokens += grown;
        // Pi alone would have compacted before this request; what is new is part of what it keeps.
        if alone.threshold.is_some_and(|threshold| before + answer > threshold) {
            let kept = alone.kept.saturating_sub(grown);
            self.alone += prices.input * tokens(before) + prices.output * tokens(SUMMARY);
            self.alone += (prices.write - prices.read) * tokens(SUMMARY + kept);
            self.alone_tokens = self.alone_tokens.min(alone.prompt + SUMMARY + kept + grown);
        }
        let again = (prompt - cached).saturating_sub(grown);
        let is_cold = !is_changed && again > cached;
        let price = if is_cold { prices.write } else { prices.read };
        self.alone += price * (tokens(self.alone_tokens) - tokens(prompt));
        if is_changed {
            self.alone -= (prices.write - prices.read) * tokens(again);
        }
    }

    /// What a prompt has grown by as the provider counts tokens, where `estimated` is what we think. Where the prompt has been
    /// changed, that is told by how far off we were before.
    fn counted(&mut self, estimated: usize, prompt: usize, is_changed: bool) -> usize {
        if is_changed {
            let (estimates, counts) = self.growth;
            return (estimated * counts).checked_div(estimates).unwrap_or(estimated);
        }
        let grown = prompt.saturating_sub(self.prompt);
        self.growth = (self.growth.0 + estimated, self.growth.1 + grown);
        grown
    }

    /// Adds what was paid beside the requests, for summaries: tokens of prompts and of answers, each at its price.
    pub fn add_cost(&mut self, price: f64, prompts: usize, answer_price: f64, answers: usize) {
        self.paid += price * tokens(prompts) + answer_price * tokens(answers);
    }

    /// What an action may cost at most.
    #[must_use]
    pub fn allowance(&self) -> f64 {
        RISK * self.alone + self.alone - self.paid
    }
}
