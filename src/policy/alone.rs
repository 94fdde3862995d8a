//! What the session would have cost with Pi alone, from the sizes of the real requests.
//!
//! Pi alone would have sent everything up to its threshold, and then a summary of its own and the tail that its
//! settings keep. Nothing is simulated but that: growth, answers and cache hits are those of the session.

use super::{Prices, float};

/// Tokens of a summary that Pi writes, as measured with real models.
const SUMMARY: usize = 2_500;

/// The bill of the session as it is, and with Pi alone. Costs are in millionths of the prices' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alone {
    /// The number of answered requests.
    pub requests: usize,
    /// What they and the summaries have cost.
    pub paid: f64,
    /// What they would have cost with Pi alone.
    pub alone: f64,
    /// Tokens of the context that Pi alone would have sent last.
    context: usize,
}

/// An answered request. All sizes are in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The prompt.
    pub prompt: usize,
    /// The part of it that the provider's cache had.
    pub read: usize,
    /// The answer.
    pub output: usize,
    /// The part of the prompt that no earlier prompt had; all of it in a session's first.
    pub grown: usize,
    /// This extension's tools.
    pub own: usize,
    /// Whether the context does not continue the last request: the first one, or another branch.
    pub is_first: bool,
    /// Whether the cache had expired.
    pub is_cold: bool,
}

/// How Pi compacts: above how many tokens, what it keeps, and what stands before the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    pub at: Option<usize>,
    pub kept: usize,
    pub prompt: usize,
}

impl Alone {
    /// Adds a request.
    pub fn add(&mut self, request: Request, prices: Prices, pi: Threshold) {
        let Prices { input, output, read, write } = prices;
        let answer = output * float(request.output);
        self.requests += 1;
        self.paid += read * float(request.read) + write * float(request.prompt - request.read) + answer;
        if request.is_first {
            self.context = request.prompt.saturating_sub(request.own);
            self.alone += read * float(request.read)
                + write * float(self.context.saturating_sub(request.read))
                + answer;
            return;
        }
        let mut sent = self.context;
        if pi.at.is_some_and(|at| self.context + request.grown > at) {
            let left = (pi.prompt + SUMMARY + pi.kept).min(self.context);
            // It reads what it summarizes at the full price: a request of its own has nothing cached.
            self.alone += input * float(self.context.saturating_sub(pi.kept)) + output * float(SUMMARY);
            self.alone += (write - read) * float(left - pi.prompt.min(left));
            sent = left;
        }
        self.context = sent + request.grown;
        let again = if request.is_cold { write } else { read };
        self.alone += again * float(sent) + write * float(request.grown) + answer;
    }

    /// Adds what summaries have cost.
    pub fn pay(&mut self, cost: f64) {
        self.paid += cost;
    }
}
