//! The policy in simulated sessions: what they cost with it and with Pi alone, computed independently.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::ledger::{Alone, Ledger, Outlook, Request};
use super::prices::{Cost, Prices};
use super::{
    Action, Decision, Folds, Item, Moment, Reason, SUMMARIZED_RESULT, decide, may_prepare, new_tokens, shown,
    stub_places, tail, tokens,
};
use crate::tests::extent::cases;

const PROMPT: usize = 3_000;
const STUB: usize = 60;
const BLOCK: usize = 4_000;
/// Tokens of Pi's own summary.
const SUMMARY: usize = 2_500;
const REQUEST: usize = 60;
/// The share of Pi's threshold from which summaries for it are written ahead, in percent.
const SOON: usize = 60;

/// A request's answer and the results of its calls, in tokens.
#[derive(Clone, Copy, Debug)]
struct Step {
    answer: usize,
    /// The results together, and how many there are.
    result: usize,
    calls: usize,
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
    /// Calls per request.
    calls: usize,
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
            calls: self.calls,
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
    calls: 1,
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
    calls: 1,
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

/// Where Pi cuts: it keeps 20,000 tokens, starting at the next message that the context may begin with, or
/// else at the last one.
fn pi_cut(items: &[Item]) -> usize {
    let mut kept = 0;
    let fits = items.iter().rposition(|item| {
        kept += item.shown;
        kept >= 20_000
    });
    let Some(fits) = fits else { return 0 };
    let next = (fits..items.len()).find(|at| items[*at].can_begin);
    next.or_else(|| items.iter().rposition(|item| item.can_begin)).unwrap_or_default()
}

/// Tokens of this extension's block after `old` has been folded into it. A block that is too large is
/// condensed.
fn folded(block: usize, old: &[Item]) -> usize {
    let next = super::next_block(block, old);
    if next > BLOCK { BLOCK / 2 } else { next }
}

/// A running session.
struct Session {
    world: World,
    items: Vec<Item>,
    block: usize,
    ledger: Ledger,
    paid: f64,
    /// What summaries for Pi's next compaction have cost.
    ahead: f64,
    /// The length of the prompt's start that the provider has cached.
    cached: usize,
    /// Whether the prompt has changed since the last request.
    is_changed: bool,
}

impl Session {
    fn prompt(&self) -> usize {
        PROMPT + self.block + shown(&self.items)
    }

    /// How Pi alone compacts.
    fn alone(&self) -> Alone {
        Alone { threshold: Some(self.world.window - 16_384), kept: 20_000, prompt: PROMPT }
    }

    fn pay(&mut self, price: f64, read: usize, answer_price: f64, answer: usize) {
        self.paid += price * tokens(read) + answer_price * tokens(answer);
        self.ledger.add_cost(price, read, answer_price, answer);
    }

    /// What the policy decides. Where the cache is cold, a prompt is about to be sent, so nothing can be folded.
    fn decide(&self, is_cold: bool) -> Decision {
        decide(self.moment(is_cold, self.outlook(is_cold)))
    }

    fn outlook(&self, is_cold: bool) -> Outlook {
        self.ledger.outlook(new_tokens(&self.items), is_cold, self.world.prices, Some(self.alone()))
    }

    fn moment(&self, is_cold: bool, outlook: Outlook) -> Moment<'_> {
        let World { prices, summarizer, .. } = self.world;
        Moment {
            items: &self.items,
            block: self.block,
            largest_block: BLOCK,
            prices,
            summarizer,
            is_cold,
            folds: if is_cold { Folds::Later } else { Folds::Now },
            allowance: outlook.allowance,
            reserved: outlook.reserved,
            step: outlook.step,
        }
    }

    /// Writes summaries ahead of Pi's compaction, as the engine does if a cheap model can.
    fn prepare(&mut self) {
        let is_soon = self.prompt() * 100 >= (self.world.window - 16_384) * SOON;
        let outlook = self.outlook(false);
        let may = is_soon && may_prepare(self.moment(false, outlook), outlook.is_near);
        if let Some(at) = tail(&self.items).filter(|_| may && self.world.summarizer == CHEAP) {
            let before = self.paid;
            self.summarize(at);
            self.ahead += self.paid - before;
        }
    }

    fn act(&mut self, decision: Decision) {
        match decision.action {
            Action::Leave => {}
            Action::Summarize(at) => {
                self.summarize(at);
                if decision.reason == Reason::Behind {
                    self.act(self.decide(false));
                }
            }
            Action::Fold(at) => {
                self.block = folded(self.block, &self.items[..at]);
                self.drop_before(at);
            }
            Action::Stub(from) => {
                self.cached = self.cached.min(PROMPT + self.block + shown(&self.items[..from]));
                for at in stub_places(&self.items, from) {
                    self.items[at] = Item { shown: STUB, stub: None, is_result: false, ..self.items[at] };
                }
                self.is_changed = true;
            }
        }
    }

    fn summarize(&mut self, at: usize) {
        let Prices { input, output, .. } = self.world.summarizer;
        let unread = self.items[..at].iter().map(|item| item.unread).sum();
        self.pay(input, unread, output, unread / 20);
        self.items[..at].iter_mut().for_each(|item| item.unread = 0);
    }

    /// Pi compacts, with this extension's summaries or its own.
    fn compact(&mut self, is_lean: bool) {
        let own = if is_lean { tail(&self.items).unwrap_or_default() } else { 0 };
        let cut = own.max(pi_cut(&self.items));
        if is_lean {
            self.summarize(cut);
            self.block = folded(self.block, &self.items[..cut]);
        } else {
            let Prices { input, output, .. } = self.world.prices;
            let digests: usize = self.items[..cut].iter().map(digest).sum();
            self.pay(input, self.block + digests, output, SUMMARY);
            self.block = SUMMARY;
        }
        self.drop_before(cut);
    }

    fn drop_before(&mut self, at: usize) {
        self.items.drain(..at);
        self.ahead = 0.0;
        self.items.iter_mut().for_each(|item| item.sent = 0);
        (self.cached, self.is_changed) = (PROMPT, true);
    }

    fn send(&mut self, step: Step, new: &[Item]) {
        if step.is_late {
            self.cached = 0;
        }
        let (prompt, cached, prices) = (self.prompt(), self.cached, self.world.prices);
        self.paid += prices.read * tokens(cached)
            + prices.write * tokens(prompt - cached)
            + prices.output * tokens(step.answer);
        let request = Request {
            prompt,
            read: Some(cached),
            output: step.answer,
            grown: shown(new),
            summarizable: new.iter().map(digest).sum(),
            hidden: 0,
            own: 0,
            is_changed: self.is_changed,
            is_cold: step.is_late,
            is_elsewhere: false,
        };
        self.ledger.add(request, prices, self.alone());
        (self.cached, self.is_changed) = (prompt, false);
        self.items.iter_mut().for_each(|item| item.sent += 1);
        self.items.push(text(step.answer));
        let each = step.result / step.calls;
        if each > 0 {
            let result = Item {
                shown: each,
                is_result: true,
                stub: (each >= super::BULKY).then_some(STUB),
                unread: each.min(SUMMARIZED_RESULT),
                ..Item::default()
            };
            self.items.extend(std::iter::repeat_n(result, step.calls));
        }
    }
}

fn text(tokens: usize) -> Item {
    Item { shown: tokens, unread: tokens, can_begin: true, ..Item::default() }
}

/// The cost of a session, with the policy or with Pi alone. Summaries for a
/// compaction by Pi that does not come are left out.
fn cost(shape: Shape<'_>, world: World, is_lean: bool) -> f64 {
    let mut session = Session {
        world,
        items: Vec::new(),
        block: 0,
        ledger: Ledger::default(),
        paid: 0.0,
        ahead: 0.0,
        cached: 0,
        is_changed: false,
    };
    for step in shape.steps() {
        let old = session.items.iter().rposition(|item| item.sent > 0).map_or(0, |at| at + 1);
        let mut new = session.items[old..].to_vec();
        if is_lean {
            session.act(session.decide(false));
        }
        if step.is_prompt {
            let request = Item { is_request: true, ..text(REQUEST) };
            session.items.push(request);
            new.push(request);
        }
        if session.prompt() > world.window - 16_384 {
            session.compact(is_lean);
        }
        if is_lean && step.is_late && step.is_prompt {
            session.act(session.decide(true));
        }
        session.send(step, &new);
        if is_lean {
            session.prepare();
        }
    }
    session.paid - session.ahead
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

/// Answers or results, in tokens: of about one size, or of several.
fn sizes(most: usize) -> impl Strategy<Value = Vec<usize>> {
    let even = (0..most).prop_map(|size| vec![size / 2, size, size * 3 / 2]);
    let uneven = proptest::collection::vec(prop_oneof![0_usize..500, 0..most], 1..12);
    prop_oneof![even, uneven]
}

/// The sessions are the same each time.
#[test]
fn no_session_costs_notably_more_than_with_pi_alone() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(cases(3_000), rng);
    let steps = (prop_oneof![1_usize..60, 1_usize..400], 1_usize..50, 0_u32..40);
    let calls = prop_oneof![Just(1), 2_usize..12];
    let write = prop_oneof![Just(0.0), 1.0_f64..2.0];
    let window = prop_oneof![64_000_usize..250_000, 64_000_usize..1_000_000];
    let world = (0.0_f64..1.0, write, window, any::<bool>());
    let sessions = (steps, calls, sizes(2_000), sizes(30_000), world);
    let run = runner.run(&sessions, |((steps, turn, late), calls, answers, results, world)| {
        let (read, write, window, is_cheap) = world;
        let cost = Cost { input: 3.0, output: 15.0, cache_read: 3.0 * read, cache_write: 3.0 * write };
        let prices = Prices::of(cost);
        let summarizer = if is_cheap { CHEAP } else { prices.in_session() };
        let shape = Shape { steps, turn, answers: &answers, results: &results, calls, late };
        let ratio = ratio(shape, World { prices, summarizer, window });
        prop_assert!(ratio <= 1.02, "{ratio}");
        Ok(())
    });
    run.unwrap();
}
