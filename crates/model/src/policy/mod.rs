//! Where to fold: a pure function of sizes, prices and growth.
//!
//! A fold replaces all of the context but a tail by a block, so that later requests no longer pay for it. If
//! each request adds `g` tokens and a fold comes whenever the context has grown by `D`, carrying the growth
//! costs `r·D/2` per request on average (`r`: the price of a token from the cache) and folding `F·g/D` (`F`:
//! the price of a fold). The sum is least at `D = √(2·F·g/r)`: the economic order quantity (Harris, "How many
//! parts to make at once", 1913). The minimum is flat, so no input has to be precise: an error of 30 % costs
//! 2 %.
//!
//! A fold also takes the model's thinking out of the tail, because a provider may bind it to what comes before it.
//! So a run may grow beyond the fold point; at a prompt, where no thinking is under way, the context may not.

mod alone;
mod folding;
mod prices;
mod simulation;

pub use folding::{Due, Folding, Live, Receipt, Turn};
pub use prices::{Cost, Prices};
pub use simulation::{RecordedRequest, Simulated, simulate};

/// Tokens of the newest messages that a fold leaves as they are.
pub const TAIL: usize = 4_000;
/// What a fold frees at least, in tokens.
const LEAST: usize = 4_000;
/// In a small window both are less: at most this share of the room for the conversation, 1/n.
const TAIL_SHARE: usize = 4;
const LEAST_SHARE: usize = 8;
/// Pi shortens answers so that this many tokens of the window stay unused.
const UNUSED: usize = 4_096;
/// Until the next answer after a compaction, Pi counts 3.5 characters a token, not 4. Our count is this share of its own,
/// in percent.
const COUNTED: usize = 87;
/// Tokens before the conversation, if Pi does not report them: at most this share of the window, 1/n.
const PROMPT: usize = 8_000;
const PROMPT_SHARE: usize = 4;
/// What the formula counts for summaries: tokens of their source, and of their text.
const SUMMARIZED: f64 = 20_000.0;
const SUMMARY: f64 = 1_200.0;
/// The growth per request until enough requests are known, at most a tail.
const TYPICAL_GROWTH: usize = 1_000;
const ENOUGH: usize = 10;
/// How far beyond the fold point a run may go where thinking is bound, and where it is not.
const BOUND: f64 = 1.6;
const FREE: f64 = 1.2;

/// A model's window in tokens, and what each request has before the conversation: system prompt and tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub tokens: Option<usize>,
    pub prompt: Option<usize>,
}

/// What a session's requests have added so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    requests: usize,
    tokens: usize,
    thinking: usize,
}

/// What the fold point depends on. All sizes are in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What every request carries after a fold: system prompt, tools, block, tail.
    pub base: usize,
    /// What requests add.
    pub growth: Growth,
    /// The model's prices.
    pub prices: Prices,
    /// The prices of the model that writes summaries.
    pub summarizer: Prices,
    /// The fold point that the user has set, if any.
    pub fixed: Option<usize>,
    /// How much higher the point is because look-ups have eaten the savings; 1 otherwise.
    pub raised: f64,
    /// Prices rise above this.
    pub tier: Option<usize>,
    /// Pi compacts above this; `None` if it does not or can't.
    pub threshold: Option<usize>,
    /// The model's window.
    pub window: Window,
}

/// A moment at which entries can be appended to the session.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Tokens of the context.
    pub tokens: usize,
    /// Whether the run has ended, so that the next request begins with a prompt.
    pub is_prompt: bool,
    /// Whether the model's thinking is bound to what stands before it.
    pub is_bound: bool,
}

impl Window {
    /// Tokens before the conversation; approximate if Pi does not report them.
    pub fn prompt(self) -> usize {
        self.prompt.unwrap_or_else(|| PROMPT.min(self.tokens.unwrap_or(usize::MAX) / PROMPT_SHARE))
    }

    /// Above so many tokens, Pi leaves no room for an answer.
    pub fn most(self) -> Option<usize> {
        self.tokens.map(|tokens| tokens.saturating_sub(UNUSED))
    }

    /// A share, 1/n, of the room for the conversation and the next answer.
    pub fn share(self, n: usize) -> usize {
        self.most().map_or(usize::MAX, |most| (most * COUNTED / 100).saturating_sub(self.prompt()) / n)
    }
}

impl Growth {
    /// Adds a request that added `tokens` to the context, `thinking` of them thought by the model.
    pub fn add(&mut self, tokens: usize, thinking: usize) {
        self.requests += 1;
        self.tokens += tokens;
        self.thinking += thinking;
    }

    /// The mean of a request, at least 1.
    fn mean(&self, window: Window) -> f64 {
        let mean = float(self.tokens) / float(self.requests.max(1));
        if self.requests < ENOUGH { float(TYPICAL_GROWTH.min(tail(window))) } else { mean.max(1.0) }
    }
}

/// Tokens of the newest messages that a fold leaves as they are.
pub fn tail(window: Window) -> usize {
    TAIL.min(window.share(TAIL_SHARE))
}

/// A fold frees at least so many tokens, or it is not worth what it costs.
pub fn least_freed(window: Window) -> usize {
    LEAST.min(window.share(LEAST_SHARE))
}

impl Terms {
    /// What a fold costs, in millionths of the prices' unit: writing what is left again, summaries, and the
    /// thinking in the tail, which is lost.
    pub fn fold_cost(&self) -> f64 {
        let Prices { read, write, output, .. } = self.prices;
        float(self.base) * (write - read)
            + SUMMARIZED * self.summarizer.input
            + SUMMARY * self.summarizer.output
            + self.thinking() * output
    }

    /// Tokens of thinking in a tail.
    fn thinking(&self) -> f64 {
        let each = float(self.growth.thinking) / float(self.growth.requests.max(1));
        each * (float(TAIL) / self.mean_growth()).clamp(1.0, 20.0)
    }

    fn mean_growth(&self) -> f64 {
        self.growth.mean(self.window)
    }

    /// Tokens that a request adds.
    pub fn growth_per_request(&self) -> usize {
        whole(self.mean_growth())
    }

    /// The context size from which on a fold pays; `None` if a fold could not free enough below the limit.
    pub fn point(&self) -> Option<usize> {
        let point = self.best().max(self.least()).min(self.most().0);
        (point >= self.least()).then_some(point)
    }

    /// What keeps the point below the size that the formula or the user wants, if anything.
    pub fn limit(&self) -> Option<&'static str> {
        let (most, why) = self.most();
        (self.best() > most).then_some(why)
    }

    /// Whether the point is above that size, because a fold would not free enough there.
    pub fn is_least(&self) -> bool {
        self.best() < self.least()
    }

    /// The point by the user's setting or the formula, without limits.
    fn best(&self) -> usize {
        let further = (2.0 * self.fold_cost() * self.mean_growth() / self.prices.read).sqrt();
        self.fixed.unwrap_or_else(|| whole((float(self.base) + further) * self.raised))
    }

    /// The smallest context that is worth a fold.
    fn least(&self) -> usize {
        self.base + least_freed(self.window)
    }

    /// The largest context that stays below tier and threshold with two more requests, and leaves room for one in the
    /// window; and what limits it, in words. A tier that leaves no room for a fold does not count.
    fn most(&self) -> (usize, &'static str) {
        let room = |limit: usize| limit.saturating_sub(whole(2.0 * self.mean_growth()));
        let tier = self.tier.map(room).filter(|most| *most >= self.least());
        let window = self.window.most().map(|most| most.saturating_sub(self.growth_per_request()));
        let limits = [
            (self.threshold.map(room), "Pi compacts"),
            (tier, "prices rise"),
            (window, "the window is full"),
        ];
        let limits = limits.into_iter().filter_map(|(most, why)| Some((most?, why)));
        limits.min_by_key(|(most, _)| *most).unwrap_or((usize::MAX, ""))
    }

    /// Whether a context of so many tokens leaves no room for an answer. If the last answer was cut short, Pi may count
    /// more.
    pub(crate) fn is_full(&self, tokens: usize, is_cut: bool) -> bool {
        let counted = if is_cut { tokens * 100 / COUNTED } else { tokens };
        self.window.most().is_some_and(|most| counted + self.growth_per_request() > most)
    }

    pub(crate) fn is_due(&self, moment: Moment) -> bool {
        let Some(point) = self.point() else { return false };
        let further = match () {
            () if moment.is_prompt || self.prices.read >= self.prices.write => 1.0,
            () if moment.is_bound => BOUND,
            () => FREE,
        };
        moment.tokens > whole(float(point) * further).min(self.most().0)
    }
}

/// A count as a number to multiply: counts are far below 2⁵².
pub fn float(count: usize) -> f64 {
    count as f64
}

/// A number as a count, rounded down.
pub fn whole(tokens: f64) -> usize {
    tokens as usize
}

#[cfg(test)]
mod tests;
