//! What a session has cost since it was opened, and what the same requests would have cost with Pi alone.
//!
//! Pi alone sends everything up to its threshold, then a summary and a kept tail. The ledger tracks that
//! context along with the real one and counts the difference: what Pi alone would have sent in addition, and
//! what was written again because the policy changed the prompt. Sizes and cache hits are those of the real
//! requests.

use std::collections::VecDeque;

use super::prices::Prices;
use super::{BEHIND, LEAST_FOLD, RISK, Step, tokens};

/// Tokens of a summary that Pi writes, as measured with real models.
const SUMMARY: usize = 2_500;
/// The maximum tokens of a tool result that Pi gives its summarizer.
pub const SUMMARIZED_RESULT: usize = 500;
/// Pi alone is about to compact if, after the next request, this many more would exceed its threshold, each
/// as large as the largest of the next one and this many before it.
const REACH: usize = 3;

/// An answered request. All sizes are in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The prompt.
    pub prompt: usize,
    /// The part of it read from the provider's cache; `None` if the provider does not report it.
    pub read: Option<usize>,
    /// The answer.
    pub output: usize,
    /// The part of the prompt that no earlier prompt contained.
    pub grown: usize,
    /// What Pi would give its summarizer of that; in the first request on a branch, of everything.
    pub summarizable: usize,
    /// What stubs leave out of the prompt.
    pub hidden: usize,
    /// The part of the prompt that this extension's tools take.
    pub own: usize,
    /// Whether a stub or a compaction has changed the prompt since the last request.
    pub is_changed: bool,
    /// Whether the provider's cache had expired, by the clock.
    pub is_cold: bool,
    /// Whether it is on another branch instead of continuing the last request.
    pub is_elsewhere: bool,
}

/// How Pi alone compacts. All sizes are in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    /// The context size above which it compacts; `None` if it never does.
    pub threshold: Option<usize>,
    /// What it keeps.
    pub kept: usize,
    /// System prompt and tools.
    pub prompt: usize,
}

/// What is known about the next request; see [`Ledger::outlook`].
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// The most that a change may cost, in millionths of the prices' unit.
    pub allowance: f64,
    /// The part of the allowance that is for catching up with Pi alone: what its last compaction cost; 0 if
    /// prompts are hardly larger now.
    pub reserved: f64,
    /// Whether the context is as large as Pi alone's, and savings so far do not make up for compacting at
    /// another request than Pi alone.
    pub step: Step,
    /// Whether Pi will compact within a few requests, as far as is known.
    pub is_near: bool,
}

/// The costs of a session, in millionths of the prices' unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// The number of answered requests.
    pub requests: usize,
    /// What they and the summaries cost.
    pub paid: f64,
    /// What they would have cost without stubs and folds.
    pub alone: f64,
    /// What this extension's tools in the prompts cost. Pi alone would have paid that much less.
    pub own: f64,
    /// Tokens of the last prompt that Pi alone would have sent.
    pub alone_tokens: usize,
    /// Tokens of that prompt that Pi alone would give its summarizer.
    summarizable: usize,
    /// What Pi alone's last compaction cost.
    compaction: f64,
    /// The same, plus what prompts larger than Pi alone's have cost since.
    lag: f64,
    /// Tokens of the last prompt.
    prompt: usize,
    /// The total growth of unchanged prompts: as estimated, and as the provider counts it.
    growth: (usize, usize),
    /// The requests that Pi alone would keep, oldest first: the growth of each, and how much of it is the
    /// answer at its start.
    newest: VecDeque<(usize, usize)>,
    /// Tokens of the last answer.
    answer: usize,
}

impl Ledger {
    /// Adds a request.
    pub fn add(&mut self, request: Request, prices: Prices, alone: Alone) {
        let Request { prompt, read, output, summarizable, is_changed, .. } = request;
        let is_first = self.requests == 0 || request.is_elsewhere;
        let grown = self.counted(request.grown, prompt, is_changed || is_first);
        let cached = read.unwrap_or(prompt.saturating_sub(grown)).min(prompt);
        let sent = prices.read * tokens(cached) + prices.write * tokens(prompt - cached);
        let cost = sent + prices.output * tokens(output);
        self.prompt = prompt;
        self.requests += 1;
        let answer = std::mem::replace(&mut self.answer, output);
        let share = tokens(request.own.min(prompt)) / tokens(prompt.max(1));
        self.own += share * sent;
        self.paid += cost;
        self.alone += cost;
        if is_first {
            self.alone_tokens = prompt + request.hidden;
            self.summarizable = summarizable;
            (self.compaction, self.lag) = (0.0, 0.0);
            return;
        }
        self.summarizable += summarizable;
        self.grow(grown, answer, alone);
        let again = (prompt - cached).saturating_sub(grown);
        // A provider's cache may expire sooner or later than the clock says.
        let is_cold = read.is_some() && again > cached && (request.is_cold || !is_changed);
        // What Pi alone pays more per token to write it again instead of reading it.
        let rewriting = if is_cold { 0.0 } else { prices.write - prices.read };
        // Pi alone would have compacted before this request, and would keep what is new.
        if alone.threshold.is_some_and(|threshold| self.alone_tokens > threshold) {
            self.compact(prices, alone, grown, rewriting);
        }
        let price = if is_cold { prices.write } else { prices.read };
        self.alone += price * (tokens(self.alone_tokens) - tokens(prompt));
        self.lag += price * tokens(self.behind());
        if is_changed {
            self.alone -= rewriting * tokens(again);
        }
    }

    /// Grows Pi alone's context by a request, of which `answer` tokens are the previous answer.
    fn grow(&mut self, grown: usize, answer: usize, alone: Alone) {
        self.alone_tokens += grown;
        self.newest.push_back((grown, answer.min(grown)));
        while self.newest.iter().skip(1).map(|(grown, _)| grown).sum::<usize>() >= alone.kept {
            self.newest.pop_front();
        }
    }

    /// Counts a compaction that the user requested, which Pi alone would have made too.
    pub fn compact_alone(&mut self, prices: Prices, alone: Alone) {
        self.compact(prices, alone, 0, prices.write - prices.read);
    }

    /// Pi alone writes a summary, and writes what it keeps to the cache again, except for `grown` tokens,
    /// which are new anyway.
    fn compact(&mut self, prices: Prices, alone: Alone, grown: usize, rewriting: f64) {
        if self.alone_tokens <= alone.prompt + alone.kept {
            return;
        }
        let kept = self.kept(alone);
        let still = self.summarizable * kept.min(self.alone_tokens) / self.alone_tokens.max(1);
        let summarized = std::mem::replace(&mut self.summarizable, SUMMARY + still) - still;
        self.compaction = prices.input * tokens(summarized)
            + prices.output * tokens(SUMMARY)
            + rewriting * tokens(SUMMARY + kept - grown);
        self.alone += self.compaction;
        self.lag = self.compaction;
        self.alone_tokens = self.alone_tokens.min(alone.prompt + SUMMARY + kept);
    }

    /// What Pi alone keeps. It begins with an answer, so a request whose results do not fit is dropped, and
    /// one of which only the answer does not fit is kept whole. What came before the first request counts as
    /// small messages.
    fn kept(&self, alone: Alone) -> usize {
        let sum: usize = self.newest.iter().map(|(grown, _)| grown).sum();
        let (oldest, answer) = self.newest.front().copied().unwrap_or_default();
        let fits = if sum - answer >= alone.kept { sum - oldest } else { sum.max(alone.kept) };
        fits.max(self.newest.back().map(|(grown, _)| *grown).unwrap_or_default())
    }

    /// A prompt's growth as the provider counts it. For a changed prompt, this scales our estimate by the
    /// error of earlier ones.
    fn counted(&mut self, estimated: usize, prompt: usize, is_changed: bool) -> usize {
        if is_changed {
            return self.scaled(estimated);
        }
        let grown = prompt.saturating_sub(self.prompt);
        if estimated > 0 {
            self.growth = (self.growth.0 + estimated, self.growth.1 + grown);
        }
        grown
    }

    /// An estimate converted to the provider's tokens.
    fn scaled(&self, estimated: usize) -> usize {
        let (estimates, counts) = self.growth;
        (estimated * counts).checked_div(estimates).unwrap_or(estimated)
    }

    /// Adds a payment outside the requests.
    pub fn add_paid(&mut self, cost: f64) {
        self.paid += cost;
        self.lag -= cost;
    }

    /// Adds the cost of summaries outside the requests: tokens of prompts and answers, each at its price.
    pub fn add_cost(&mut self, price: f64, prompts: usize, answer_price: f64, answers: usize) {
        self.add_paid(price * tokens(prompts) + answer_price * tokens(answers));
    }

    /// What the requests would have cost with Pi alone.
    pub fn with_pi_alone(&self) -> f64 {
        self.alone - self.own
    }

    /// What is known before a request with an estimated `new` tokens that no prompt has contained yet.
    /// `alone` is `None` if it is unknown how Pi alone compacts.
    pub fn outlook(&self, new: usize, is_cold: bool, prices: Prices, alone: Option<Alone>) -> Outlook {
        let grown = self.scaled(new);
        let mut next = self.clone();
        let (mut step, mut is_near) = (Step::Later, true);
        if let Some((alone, threshold)) = alone.and_then(|alone| Some((alone, alone.threshold?))) {
            let before = self.newest.iter().rev().take(REACH).map(|(grown, _)| *grown);
            let largest = before.max().unwrap_or_default().max(grown);
            let is_beyond = |context: usize| context + grown > threshold;
            is_near = self.newest.is_empty() || is_beyond(self.prompt + REACH * largest);
            if is_beyond(self.alone_tokens) && !is_beyond(self.prompt) {
                // Pi alone compacts before this request, and we do not.
                next.grow(grown, self.answer, alone);
                next.prompt += grown;
                let rewriting = if is_cold { 0.0 } else { prices.write - prices.read };
                next.compact(prices, alone, grown, rewriting);
            } else {
                // Missing it costs the whole prompt, written once more.
                let is_affordable = self.allowance() >= prices.write * tokens(self.prompt + grown);
                if !is_affordable && self.prompt.abs_diff(self.alone_tokens) < LEAST_FOLD {
                    step = match () {
                        () if is_beyond(self.alone_tokens) => Step::Now,
                        () if is_beyond(self.alone_tokens + REACH * largest) => Step::Soon,
                        () => Step::Later,
                    };
                }
            }
        }
        let (allowance, reserved) = match next.allowance() {
            // Catching up with Pi alone may always cost as much as its compaction and the delay have cost.
            allowance if next.behind() >= BEHIND => (allowance.max(next.lag), next.compaction),
            allowance => (allowance, 0.0),
        };
        Outlook { allowance, reserved, step, is_near }
    }

    /// Tokens by which the last prompt exceeded what Pi alone would have sent.
    fn behind(&self) -> usize {
        self.prompt.saturating_sub(self.alone_tokens)
    }

    /// The most that a change may cost.
    fn allowance(&self) -> f64 {
        RISK * self.alone + self.alone - self.paid
    }
}

#[cfg(test)]
mod tests;
