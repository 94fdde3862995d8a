//! What the session would have cost with Pi alone, from the sizes of the real requests.
//!
//! Pi alone would have sent everything up to its threshold, and then a summary of its own and the tail that its
//! settings keep. Nothing is simulated but that: growth, answers and cache hits are those of the session.

use super::{Prices, float, whole};

/// Tokens of a summary that Pi writes, as measured with real models.
const SUMMARY: usize = 2_500;
/// The part of a request's results, in tokens, that Pi shows to the model that summarizes.
const SHOWN: usize = 500;

/// The bill of the session as it is, and with Pi alone. Costs are in millionths of the prices' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Alone {
    /// The number of answered requests.
    pub requests: usize,
    /// What they and the summaries have cost.
    pub paid: f64,
    /// What they would have cost with Pi alone.
    pub alone: f64,
    /// How often Pi alone would have compacted, and how many tokens that would have left to a summary alone.
    pub compactions: usize,
    pub dropped: usize,
    /// Tokens of the context that Pi alone would have sent last.
    context: usize,
    /// The part of it that a summary would be made of, and the part that is thinking bound to what comes before.
    shown: f64,
    bound: f64,
}

/// An answered request. All sizes are in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnsweredRequest {
    /// The prompt.
    pub prompt: usize,
    /// The part of it that the provider's cache had.
    pub read: usize,
    /// The answer, and the part of it that is thinking bound to what comes before.
    pub output: usize,
    pub bound: usize,
    /// The results of its calls.
    pub results: usize,
    /// The part of the prompt that no earlier prompt had; all of it in a session's first.
    pub grown: usize,
    /// This extension's tools.
    pub own: usize,
    /// Whether the context does not continue the last request: the first one, or another branch.
    pub is_first: bool,
    /// Whether the cache had expired, by what the provider reports.
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
    pub fn add(&mut self, request: AnsweredRequest, prices: Prices, pi: Threshold) {
        let Prices { input, output, read, write } = prices;
        let answer = output * float(request.output);
        self.requests += 1;
        self.paid += read * float(request.read) + write * float(request.prompt - request.read) + answer;
        if request.is_first {
            self.context = request.prompt.saturating_sub(request.own);
            (self.shown, self.bound) = (float(self.context.saturating_sub(pi.prompt)), 0.0);
            self.alone += read * float(request.read)
                + write * float(self.context.saturating_sub(request.read))
                + answer;
            return;
        }
        let mut sent = self.context;
        if pi.at.is_some_and(|at| self.context + request.grown > at) {
            // What is kept includes the newest messages; the thinking in it no longer fits. The summary is a request
            // of its own, which has nothing cached.
            let all = self.context + request.grown;
            let kept = share(pi.kept, all);
            self.alone += input * self.shown * (1.0 - kept) + output * float(SUMMARY);
            self.compactions += 1;
            self.dropped += all - whole(float(all) * kept);
            let left = (pi.prompt + SUMMARY + pi.kept.saturating_sub(whole(self.bound * kept))).min(all);
            (self.shown, self.bound) = (self.shown * kept, 0.0);
            sent = left.saturating_sub(request.grown);
            self.alone += (write - read) * float(sent.saturating_sub(pi.prompt));
        }
        self.context = sent + request.grown;
        self.shown += float(request.output + request.results.min(SHOWN));
        self.bound += float(request.bound);
        let again = if request.is_cold { write } else { read };
        self.alone += again * float(sent) + write * float(request.grown) + answer;
    }

    /// Tokens of the last request.
    pub const fn context(&self) -> usize {
        self.context
    }
}

/// How much of `all` a part is, at most all.
fn share(part: usize, all: usize) -> f64 {
    (float(part) / float(all.max(1))).min(1.0)
}
