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
mod tests {
    use super::*;

    const PRICES: Prices = Prices { input: 3.0, output: 15.0, read: 0.3, write: 3.75 };
    const ALONE: Alone = Alone { threshold: Some(100_000), kept: 20_000, prompt: 3_000 };

    /// What the last of these requests saves, in a session where Pi alone would send 40,000 tokens more.
    fn saved_with_last(requests: &[Request]) -> f64 {
        let mut ledger = Ledger::default();
        let first =
            Request { prompt: 50_000, read: Some(0), grown: 50_000, hidden: 40_000, ..Request::default() };
        ledger.add(first, PRICES, ALONE);
        let mut before = 0.0;
        for request in requests {
            before = ledger.alone - ledger.paid;
            ledger.add(*request, PRICES, ALONE);
        }
        ledger.alone - ledger.paid - before
    }

    /// A request that grew by 1,000 tokens, with `read` tokens from the cache.
    fn grown(read: usize) -> Request {
        Request { prompt: 51_000, read: Some(read), grown: 1_000, ..Request::default() }
    }

    #[test]
    fn a_cache_that_outlives_the_clock_saves_only_reads() {
        let warm = saved_with_last(&[grown(50_000)]);
        assert!((warm - 0.3 * 40_000.0).abs() < 1.0, "{warm}");
        let late = saved_with_last(&[Request { is_cold: true, ..grown(50_000) }]);
        assert!((late - warm).abs() < 1.0, "{late}");
        let cold = saved_with_last(&[Request { is_cold: true, ..grown(0) }]);
        assert!((cold - 3.75 * 40_000.0).abs() < 1.0, "{cold}");
    }

    #[test]
    fn tokens_written_again_after_a_change_count_against_it() {
        let change = Request { is_changed: true, ..grown(10_000) };
        let saved = saved_with_last(&[change]);
        assert!((saved - (0.3 * 40_000.0 - 3.45 * 40_000.0)).abs() < 1.0, "{saved}");
    }

    #[test]
    fn requests_without_an_estimate_do_not_affect_the_scale() {
        let unseen = Request { prompt: 70_000, read: Some(50_000), ..Request::default() };
        let seen = Request { prompt: 70_500, read: Some(70_000), grown: 500, ..Request::default() };
        let mut ledger = Ledger::default();
        ledger.add(Request { prompt: 50_000, read: Some(0), ..Request::default() }, PRICES, ALONE);
        ledger.add(unseen, PRICES, ALONE);
        ledger.add(seen, PRICES, ALONE);
        let before = ledger.alone_tokens;
        let change = Request {
            prompt: 40_000,
            read: Some(3_000),
            grown: 3_000,
            is_changed: true,
            ..Request::default()
        };
        ledger.add(change, PRICES, ALONE);
        assert_eq!(ledger.alone_tokens - before, 3_000);
    }

    #[test]
    fn tokens_of_our_tools_count_against_us_but_not_against_a_change() {
        let mut ledger = Ledger::default();
        ledger.add(
            Request { prompt: 10_000, read: Some(0), own: 1_000, ..Request::default() },
            PRICES,
            ALONE,
        );
        assert!((ledger.alone - ledger.with_pi_alone() - 3_750.0).abs() < 1e-6 && ledger.allowance() > 0.0);
    }

    #[test]
    fn pi_alone_also_pays_for_a_compaction_the_user_requests() {
        let mut ledger = Ledger::default();
        let first = Request { prompt: 90_000, read: Some(0), summarizable: 80_000, ..Request::default() };
        ledger.add(first, PRICES, ALONE);
        let before = ledger.alone;
        ledger.compact_alone(PRICES, ALONE);
        let summary = 3.0 * (80_000.0 - 80_000.0 * 20.0 / 90.0) + 15.0 * 2_500.0 + 3.45 * 22_500.0;
        assert!((ledger.alone - before - summary).abs() < 10.0, "{}", ledger.alone - before);
        assert_eq!(ledger.alone_tokens, 25_500);
        let compacted = ledger.alone;
        ledger.compact_alone(PRICES, Alone { kept: 90_000, ..ALONE });
        assert!((ledger.alone - compacted).abs() < 1e-6, "there is nothing more to compact");
    }

    fn nearly(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn each_token_is_paid_at_its_price() {
        let mut ledger = Ledger::default();
        let first =
            Request { prompt: 10_000, read: Some(4_000), output: 100, own: 1_000, ..Request::default() };
        ledger.add(first, PRICES, ALONE);
        let prompt = 0.3 * 4_000.0 + 3.75 * 6_000.0;
        assert!(nearly(ledger.paid, prompt + 1_500.0) && nearly(ledger.own, prompt / 10.0), "{ledger:?}");
        ledger.add_paid(5.0);
        ledger.add_cost(1.0, 1_000, 5.0, 100);
        let saved = -1_505.0;
        assert!(nearly(ledger.paid, ledger.alone - saved));
        assert!(nearly(ledger.allowance(), RISK * ledger.alone + saved), "{}", ledger.allowance());
        // If the provider does not report it, everything but new tokens was read.
        let (before, alone) = (ledger.paid, ledger.alone);
        ledger.add(Request { prompt: 11_000, grown: 900, ..Request::default() }, PRICES, ALONE);
        assert!(nearly(ledger.paid - before, 0.3 * 10_000.0 + 3.75 * 1_000.0), "{}", ledger.paid - before);
        assert!(nearly(ledger.alone - alone, ledger.paid - before));
    }

    #[test]
    fn pi_alone_compacts_above_its_threshold_but_not_at_it() {
        for (grown, compacts) in [(10_000, false), (10_001, true)] {
            let mut ledger = Ledger::default();
            let first = Request { prompt: 90_000, read: Some(0), summarizable: 50_000, ..Request::default() };
            ledger.add(first, PRICES, ALONE);
            let (paid, alone) = (ledger.paid, ledger.alone);
            let prompt = 90_000 + grown;
            let next =
                Request { prompt, read: Some(90_000), grown, summarizable: grown, ..Request::default() };
            ledger.add(next, PRICES, ALONE);
            let more = (ledger.alone - alone) - (ledger.paid - paid);
            if compacts {
                assert_eq!(ledger.alone_tokens, 25_500);
                let summarized = 60_001.0 - 12_000.0;
                let change = 3.0 * summarized + 15.0 * 2_500.0 + 3.45 * (2_500.0 + 20_000.0 - 10_001.0);
                assert!((more - (change - 0.3 * 74_501.0)).abs() < 10.0, "{more}");
            } else {
                assert!(ledger.alone_tokens == 100_000 && nearly(more, 0.0), "{more}");
            }
        }
    }

    /// A session of one request, with `hidden` of its 90,000 tokens behind stubs.
    fn opened(hidden: usize) -> Ledger {
        let mut ledger = Ledger::default();
        let prompt = 90_000 - hidden;
        let summarizable = 50_000;
        let first = Request { prompt, read: Some(0), hidden, summarizable, ..Request::default() };
        ledger.add(first, PRICES, ALONE);
        ledger
    }

    #[test]
    fn the_outlook_foresees_pi_alones_next_compaction() {
        let ledger = opened(40_000);
        let outlook = |new, is_cold| ledger.outlook(new, is_cold, PRICES, Some(ALONE));
        let before = ledger.allowance();
        let not_yet = outlook(10_000, false);
        assert!(
            nearly(not_yet.reserved, 0.0) && nearly(not_yet.allowance, before) && not_yet.step == Step::Later
        );
        let [warm, cold] = [false, true].map(|is_cold| outlook(10_001, is_cold));
        let rewritten = 3.45 * (2_500.0 + 20_000.0 - 10_001.0);
        assert!(nearly(warm.allowance - cold.allowance, (1.0 + RISK) * rewritten), "{warm:?} {cold:?}");
        assert!(nearly(warm.reserved - cold.reserved, rewritten) && cold.reserved > 0.0, "{warm:?} {cold:?}");
        assert!(nearly(cold.allowance, before + (1.0 + RISK) * cold.reserved), "{cold:?}");
        // It is unknown how Pi alone compacts, or we compact too.
        for (ledger, alone) in [(&ledger, None), (&opened(0), Some(ALONE))] {
            assert!(nearly(ledger.outlook(10_001, false, PRICES, alone).reserved, 0.0));
        }
    }

    #[test]
    fn a_context_as_large_as_pi_alones_is_in_step_before_a_compaction() {
        let step = |ledger: &Ledger, new| ledger.outlook(new, false, PRICES, Some(ALONE)).step;
        // Three more such requests exceed 100,000 tokens, or this one does.
        let steps = [2_500, 2_501, 10_000, 10_001].map(|new| step(&opened(0), new));
        assert_eq!(steps, [Step::Later, Step::Soon, Step::Soon, Step::Now]);
        assert_eq!([3_999, 4_000].map(|hidden| step(&opened(hidden), 3_000)), [Step::Soon, Step::Later]);
        let mut ledger = opened(0);
        let large = Request { prompt: 93_000, read: Some(90_000), grown: 3_000, ..Request::default() };
        ledger.add(large, PRICES, ALONE);
        assert_eq!(step(&ledger, 10), Step::Soon, "an earlier request was as large");
        // Savings make up for a prompt written once more.
        ledger.paid -= 3.75 * 93_010.0 - ledger.allowance();
        assert_eq!([11, 9].map(|new| step(&ledger, new)), [Step::Soon, Step::Later]);
    }

    #[test]
    fn pis_compaction_is_near_if_a_few_large_requests_reach_it() {
        let is_near = |ledger: &Ledger, new| ledger.outlook(new, false, PRICES, Some(ALONE)).is_near;
        let mut ledger = opened(0);
        assert!(is_near(&ledger, 10), "it is unknown how the context grows");
        let small = Request { prompt: 90_200, read: Some(90_000), grown: 200, ..Request::default() };
        ledger.add(small, PRICES, ALONE);
        assert_eq!([2_450, 2_451].map(|new| is_near(&ledger, new)), [false, true]);
    }

    #[test]
    fn catching_up_may_cost_as_much_as_pi_alones_compaction_and_the_delay() {
        let mut ledger = opened(40_000);
        let mut prompt = 50_000;
        ledger.add_paid(1e6);
        for (grown, delay) in [(10_001, 0.3 * 34_501.0), (1_000, 0.3 * 2.0 * 34_501.0)] {
            prompt += grown;
            let request = Request { prompt, read: Some(prompt - grown), grown, ..Request::default() };
            ledger.add(request, PRICES, ALONE);
            let outlook = ledger.outlook(0, false, PRICES, Some(ALONE));
            assert!(nearly(outlook.allowance, outlook.reserved + delay), "{outlook:?}");
        }
        // What has been spent on summaries is not available again.
        let before = ledger.outlook(0, false, PRICES, Some(ALONE)).allowance;
        ledger.add_paid(1_000.0);
        assert!(nearly(before - ledger.outlook(0, false, PRICES, Some(ALONE)).allowance, 1_000.0));
        ledger.prompt = ledger.alone_tokens + BEHIND - 1;
        let outlook = ledger.outlook(0, false, PRICES, Some(ALONE));
        assert!(nearly(outlook.reserved, 0.0) && outlook.allowance < 0.0, "{outlook:?}");
    }

    #[test]
    fn pi_alone_keeps_only_requests_that_fit() {
        let kept = |sizes: &[usize]| {
            let mut ledger = Ledger::default();
            let mut prompt = 101_000 - sizes.iter().sum::<usize>();
            ledger.add(Request { prompt, read: Some(0), ..Request::default() }, PRICES, ALONE);
            for grown in sizes {
                prompt += grown;
                let request = Request { prompt, grown: *grown, read: Some(prompt), ..Request::default() };
                ledger.add(request, PRICES, ALONE);
            }
            assert_eq!(ledger.behind(), prompt - ledger.alone_tokens);
            ledger.alone_tokens - ALONE.prompt - SUMMARY
        };
        assert_eq!(kept(&[9_000, 11_000]), 11_000);
        assert_eq!(kept(&[9_000, 10_000]), 20_000, "earlier history counts as small messages");
        assert_eq!(kept(&[1_000, 9_000, 10_000]), 19_000);
        assert_eq!(kept(&[30_000]), 30_000, "new tokens stay");
    }

    #[test]
    fn pi_alone_keeps_a_request_if_only_its_answer_does_not_fit() {
        let kept = |output| {
            let mut ledger = Ledger::default();
            let mut prompt = 80_000;
            ledger.add(Request { prompt, output, read: Some(0), ..Request::default() }, PRICES, ALONE);
            for grown in [11_000, 10_000] {
                prompt += grown;
                let request = Request { prompt, grown, read: Some(prompt), ..Request::default() };
                ledger.add(request, PRICES, ALONE);
            }
            ledger.alone_tokens - ALONE.prompt - SUMMARY
        };
        assert_eq!([1_000, 1_001].map(kept), [10_000, 21_000]);
    }

    #[test]
    fn a_changed_prompts_growth_is_scaled_by_earlier_errors() {
        let mut ledger = Ledger::default();
        let unchanged = |prompt, grown| Request { prompt, grown, read: Some(prompt), ..Request::default() };
        ledger.add(unchanged(50_000, 50_000), PRICES, ALONE);
        // The provider counts 1,500 and 2,500 for estimates of 1,000 each.
        ledger.add(unchanged(51_500, 1_000), PRICES, ALONE);
        ledger.add(unchanged(54_000, 1_000), PRICES, ALONE);
        let before = ledger.alone_tokens;
        ledger.add(Request { is_changed: true, ..unchanged(30_000, 3_000) }, PRICES, ALONE);
        assert_eq!(ledger.alone_tokens - before, 6_000);
    }

    #[test]
    fn a_cache_is_cold_if_more_is_written_again_than_read() {
        // Of 51,000 tokens, 1,000 are new, and half of the rest was read.
        for (read, is_changed, by_clock, cold) in [
            (25_000, false, false, false),
            (24_999, false, false, true),
            (24_999, true, false, false),
            (24_999, true, true, true),
        ] {
            let request = Request { is_changed, is_cold: by_clock, ..grown(read) };
            let saved = saved_with_last(&[request]);
            let price = if cold { 3.75 } else { 0.3 };
            let again = 50_000.0 - f64::from(u32::try_from(read).unwrap());
            let rewritten = if is_changed && !cold { 3.45 * again } else { 0.0 };
            assert!((saved - (price * 40_000.0 - rewritten)).abs() < 1.0, "{read} {is_changed}: {saved}");
        }
    }

    #[test]
    fn pi_alone_does_not_compact_what_it_would_keep() {
        let small = Alone { threshold: Some(0), ..ALONE };
        let mut ledger = Ledger::default();
        for prompt in [5_000, 6_000, 7_000] {
            let request = Request {
                prompt,
                read: Some(prompt - 1_000),
                grown: 1_000,
                summarizable: 1_000,
                ..Request::default()
            };
            ledger.add(request, PRICES, small);
        }
        assert!((ledger.alone - ledger.paid).abs() < 1e-6);
    }
}
