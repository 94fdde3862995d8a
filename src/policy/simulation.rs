//! The policy in simulated sessions: what they cost with it and with Pi alone, computed independently.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::ledger::{Alone, Ledger, Request};
use super::prices::{Cost, Prices};
use super::{Action, Folds, Item, Moment, SUMMARIZED_RESULT, decide, new_tokens, shown, stub_places, tokens};
use crate::tests::extent::cases;

const PROMPT: usize = 3_000;
const STUB: usize = 60;
const BLOCK: usize = 4_000;
/// Tokens of Pi's own summary.
const SUMMARY: usize = 2_500;
const REQUEST: usize = 60;

/// A request's answer and the results of its calls, in tokens.
#[derive(Clone, Copy, Debug)]
struct Step {
    answer: usize,
    result: usize,
    /// Whether a user's message precedes it.
    is_prompt: bool,
    /// Whether the provider's cache has expired before it.
    is_late: bool,
}

#[derive(Clone, Copy, Debug)]
struct Shape<'a> {
    steps: usize,
    /// Requests per turn.
    turn: usize,
    /// Equally frequent sizes, in tokens.
    answers: &'a [usize],
    results: &'a [usize],
    /// Requests with a cold cache, in percent.
    late: u32,
}

impl<'a> Shape<'a> {
    fn steps(self) -> impl Iterator<Item = Step> + 'a {
        let one = |sizes: &[usize], at: usize| sizes[(at * 7919) % sizes.len()];
        (0..self.steps).map(move |at| Step {
            answer: one(self.answers, at * 3 + 1),
            // In the last request of a turn, the model answers the user.
            result: if (at + 1) % self.turn == 0 { 0 } else { one(self.results, at) },
            is_prompt: at % self.turn == 0,
            is_late: at > 0 && (at * 37) % 100 < self.late as usize,
        })
    }
}

/// The model reads two large files after each prompt.
const BULKY: Shape<'_> = Shape {
    steps: 600,
    turn: 2,
    answers: &[30, 160],
    results: &[2_000, 3_500, 5_000, 6_500, 8_000],
    late: 0,
};
/// The model reads one large file after another.
const LONG: Shape<'_> = Shape { turn: 10, results: &[1_000, 1_750, 2_500, 3_250, 4_000], ..BULKY };

/// The sizes in three recorded conversations with 813 requests, in twentieths: two of Pi's own
/// (github.com/badlogic/pi-mono) and thirteen consecutive tasks of SWE-agent
/// (github.com/SWE-agent/SWE-agent). Most results are small, and a few have most of the tokens.
const REAL: Shape<'_> = Shape {
    steps: 600,
    turn: 5,
    answers: &[5, 21, 25, 28, 29, 31, 33, 36, 40, 46, 54, 65, 79, 96, 116, 141, 171, 224, 314, 774],
    results: &[2, 3, 7, 17, 22, 26, 28, 28, 30, 34, 40, 68, 101, 135, 203, 257, 318, 446, 756, 3_137],
    late: 0,
};

/// The conditions of a session.
#[derive(Clone, Copy, Debug)]
struct World {
    prices: Prices,
    summarizer: Prices,
    window: usize,
}

const CHEAP: Prices = Prices { input: 1.0, output: 5.0, read: 1.0, write: 1.0 };
const LIST: Prices = Prices { input: 3.0, output: 15.0, read: 0.3, write: 3.75 };
const WORLD: World = World { prices: LIST, summarizer: CHEAP, window: 128_000 };

/// Tokens of an item that Pi would give its summarizer.
fn digest(item: &Item) -> usize {
    item.shown.min(if item.is_result { SUMMARIZED_RESULT } else { item.shown })
}

/// Where Pi cuts: it keeps 20,000 tokens, starting at the next message that the context may begin with.
fn pi_cut(items: &[Item]) -> usize {
    let mut kept = 0;
    let fits = items.iter().rposition(|item| {
        kept += item.shown;
        kept >= 20_000
    });
    (fits.unwrap_or_default()..items.len()).find(|at| items[*at].can_begin).unwrap_or_default()
}

/// Tokens of this extension's block after `old` has been folded into it. A block that is too large is
/// condensed.
fn folded(block: usize, old: &[Item]) -> usize {
    let next = super::next_block(block, old);
    if next > BLOCK { BLOCK / 2 } else { next }
}

/// The cost of a session, with the policy or with Pi alone.
fn cost(shape: Shape<'_>, world: World, is_lean: bool) -> f64 {
    let World { prices, summarizer, window } = world;
    let (mut items, mut ledger, mut paid) = (Vec::<Item>::new(), Ledger::default(), 0.0);
    let alone = Alone { threshold: Some(window - 16_384), kept: 20_000, prompt: PROMPT };
    // The length of the prompt's start that the provider has cached.
    let (mut cached, mut is_changed, mut block) = (0, false, 0);
    for step in shape.steps() {
        let old = items.iter().rposition(|item| item.sent > 0).map_or(0, |at| at + 1);
        if step.is_prompt {
            items.push(Item {
                shown: REQUEST,
                unread: REQUEST,
                is_request: true,
                can_begin: true,
                ..Item::default()
            });
        }
        let (grown, summarizable) = (shown(&items[old..]), items[old..].iter().map(digest).sum());
        if PROMPT + block + shown(&items) > window - 16_384 {
            let cut = pi_cut(&items);
            let (price, output, summarized, answer) = if is_lean {
                let unread = items[..cut].iter().map(|item| item.unread).sum();
                (summarizer.input, summarizer.output, unread, unread / 20)
            } else {
                let digests: usize = items[..cut].iter().map(digest).sum();
                (prices.input, prices.output, block + digests, SUMMARY)
            };
            paid += price * tokens(summarized) + output * tokens(answer);
            ledger.add_cost(price, summarized, output, answer);
            block = if is_lean { folded(block, &items[..cut]) } else { SUMMARY };
            items.drain(..cut);
            items.iter_mut().for_each(|item| item.sent = 0);
            (cached, is_changed) = (PROMPT, true);
        }
        let outlook = ledger.outlook(new_tokens(&items), step.is_late, prices, Some(alone));
        let moment = Moment {
            items: &items,
            block,
            largest_block: BLOCK,
            prices,
            summarizer,
            is_cold: step.is_late,
            folds: Folds::Now,
            allowance: outlook.allowance,
            behind: outlook.behind,
            lag: outlook.lag,
            is_in_step: outlook.is_in_step,
        };
        let action = if is_lean { decide(moment).action } else { Action::Leave };
        if let Action::Summarize(at) = action {
            let unread: usize = items[..at].iter().map(|item| item.unread).sum();
            paid += summarizer.input * tokens(unread) + summarizer.output * tokens(unread / 20);
            ledger.add_cost(summarizer.input, unread, summarizer.output, unread / 20);
            items[..at].iter_mut().for_each(|item| item.unread = 0);
        }
        if let Action::Fold(at) = action {
            block = folded(block, &items[..at]);
            items.drain(..at);
            items.iter_mut().for_each(|item| item.sent = 0);
            (cached, is_changed) = (PROMPT, true);
        }
        if let Action::Stub(from) = action {
            cached = cached.min(PROMPT + block + shown(&items[..from]));
            for at in stub_places(&items, from) {
                items[at] = Item { shown: STUB, stub: None, is_result: false, ..items[at] };
            }
            is_changed = true;
        }
        if step.is_late {
            cached = 0;
        }
        let prompt = PROMPT + block + shown(&items);
        paid += prices.read * tokens(cached)
            + prices.write * tokens(prompt - cached)
            + prices.output * tokens(step.answer);
        let request = Request {
            prompt,
            read: Some(cached),
            output: step.answer,
            grown,
            summarizable,
            hidden: 0,
            own: 0,
            is_changed,
            is_cold: step.is_late,
            is_elsewhere: false,
        };
        ledger.add(request, prices, alone);
        (cached, is_changed) = (prompt, false);
        items.iter_mut().for_each(|item| item.sent += 1);
        items.push(Item { shown: step.answer, unread: step.answer, can_begin: true, ..Item::default() });
        if step.result > 0 {
            items.push(Item {
                shown: step.result,
                is_result: true,
                stub: (step.result >= super::BULKY).then_some(STUB),
                unread: step.result.min(900),
                ..Item::default()
            });
        }
    }
    paid
}

fn ratio(shape: Shape<'_>, world: World) -> f64 {
    cost(shape, world, true) / cost(shape, world, false)
}

#[test]
fn realistic_sessions_cost_less() {
    let read_at_a_fiftieth = Prices { read: 0.06, ..LIST };
    let uncached = Prices { read: 3.0, write: 3.0, ..LIST };
    let window = |window| World { window, ..WORLD };
    for (name, shape, world, most) in [
        ("bulky", BULKY, WORLD, 0.6),
        ("bulky, 200k", BULKY, window(200_000), 0.55),
        ("bulky, 1M", BULKY, window(1_000_000), 0.2),
        ("bulky, ten requests a turn", LONG, WORLD, 0.55),
        ("bulky, forty requests a turn", Shape { turn: 40, ..LONG }, WORLD, 0.55),
        ("bulky, a tenth of the prompts cold", Shape { late: 10, ..BULKY }, WORLD, 0.55),
        ("bulky, summaries at the session's prices", BULKY, World { summarizer: LIST, ..WORLD }, 0.68),
        (
            "bulky, summaries within the session",
            BULKY,
            World { summarizer: LIST.in_session(), ..WORLD },
            0.62,
        ),
        ("bulky, read at a fiftieth", BULKY, World { prices: read_at_a_fiftieth, ..WORLD }, 0.8),
        ("bulky, no cache", BULKY, World { prices: uncached, ..WORLD }, 0.5),
        ("real", REAL, WORLD, 0.42),
        ("real, 1M", REAL, window(1_000_000), 0.3),
        ("real, a tenth of the prompts cold", Shape { late: 10, ..REAL }, WORLD, 0.42),
    ] {
        let ratio = ratio(shape, world);
        assert!(ratio <= most, "{name}: {ratio:.3}");
    }
}

/// The cost does not depend on the window.
#[test]
fn a_larger_window_costs_the_same() {
    for shape in [BULKY, REAL] {
        let [small, large] = [128_000, 1_000_000].map(|window| cost(shape, World { window, ..WORLD }, true));
        assert!((large / small - 1.0).abs() < 0.1, "{small} {large}");
    }
}

/// The sessions are the same each time.
#[test]
fn no_session_costs_notably_more_than_with_pi_alone() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(cases(300), rng);
    let write = prop_oneof![Just(0.0), 1.0_f64..2.0];
    let sizes = (1_usize..400, 1_usize..50, 20_usize..2_000, 0_usize..12_000, 0_u32..40);
    let sessions = (sizes, 0.0_f64..1.0, write, 64_000_usize..1_000_000);
    let run = runner.run(&sessions, |((steps, turn, answer, result, late), read, write, window)| {
        let cost = Cost { input: 3.0, output: 15.0, cache_read: 3.0 * read, cache_write: 3.0 * write };
        let shape =
            Shape { steps, turn, answers: &[answer], results: &[result / 2, result, result * 3 / 2], late };
        let ratio = ratio(shape, World { prices: Prices::of(cost), window, ..WORLD });
        prop_assert!(ratio <= 1.02, "{ratio}");
        Ok(())
    });
    run.unwrap();
}
