//! The formula at the prices of the day, and against every fixed fold point on synthetic sessions.

use serde_json::json;

use super::*;
use crate::config::{Context, Settings};

const SMALL: Cost = Cost { input: 0.1, output: 0.5, cache_read: 0.01, cache_write: 0.125 };
/// Opus 5.5, Fable 5.2, GPT-6.2 Sol, Gemini 4 Argon, and September's Sonnet.
const MODELS: [(f64, f64, f64, f64); 5] = [
    (4.0, 20.0, 0.2, 5.0),
    (8.0, 40.0, 0.2, 10.0),
    (2.0, 10.0, 0.1, 2.5),
    (2.0, 10.0, 0.1, 0.0),
    (3.0, 15.0, 0.3, 3.75),
];

fn cost((input, output, cache_read, cache_write): (f64, f64, f64, f64)) -> Cost {
    Cost { input, output, cache_read, cache_write }
}

fn terms(cost: Cost) -> Terms {
    let growth = Growth::default();
    let (prices, summarizer) = (Prices::of(cost), Prices::of(SMALL));
    Terms {
        base: 11_425,
        growth,
        prices,
        summarizer,
        fixed: None,
        raised: 1.0,
        tier: None,
        threshold: None,
        window: Window::default(),
    }
}

#[test]
fn the_point_follows_the_prices() {
    let points = MODELS.map(|model| terms(cost(model)).point().unwrap());
    assert_eq!(points, [35_391, 45_272, 35_928, 33_473, 28_161]);
    let uncached = terms(Cost { input: 3.0, output: 15.0, ..Cost::default() });
    assert_eq!(uncached.point(), Some(15_425), "without a cache, as soon as it frees enough");
    // Free models are taken for typical ones.
    assert_eq!(terms(Cost::default()).point(), Some(28_161));
}

#[test]
fn growth_counts_once_ten_requests_are_known() {
    let mut some = terms(cost(MODELS[0]));
    let before = some.point().unwrap();
    for _ in 0..9 {
        some.growth.add(9_000, 0);
    }
    assert_eq!(some.point(), Some(before));
    some.growth.add(9_000, 0);
    assert!(some.point().unwrap() > before + 40_000);
    let calm = Terms { growth: Growth { requests: 10, tokens: 0, thinking: 0 }, ..some };
    assert_eq!(calm.point(), Some(calm.base + LEAST), "nothing is added");
    let thinks = Terms { growth: Growth { requests: 10, tokens: 10_000, thinking: 5_000 }, ..some };
    let silent = Terms { growth: Growth { requests: 10, tokens: 10_000, thinking: 0 }, ..some };
    assert!(thinks.point() > silent.point(), "thinking that would be lost is worth a later fold");
}

#[test]
fn a_fold_is_due_at_a_prompt_before_it_is_within_a_run() {
    let (some, point) = (terms(cost(MODELS[0])), 35_391);
    let due = |tokens, is_prompt, is_bound| some.is_due(Moment { tokens, is_prompt, is_bound });
    assert!(!due(point, true, true) && due(point + 1, true, true));
    assert!(!due(point * 16 / 10, false, true) && due(point * 16 / 10 + 2, false, true));
    assert!(!due(point * 12 / 10, false, false) && due(point * 12 / 10 + 2, false, false));
    let uncached = terms(Cost { input: 3.0, output: 15.0, ..Cost::default() });
    assert!(uncached.is_due(Moment { tokens: 15_426, is_prompt: false, is_bound: true }));
}

#[test]
fn a_fold_comes_before_a_limit_or_not_at_all() {
    let limited = |limit| Terms { threshold: Some(limit), ..terms(cost(MODELS[0])) };
    assert_eq!((limited(30_000).point(), limited(30_000).limit()), (Some(28_000), Some("Pi compacts")));
    let within = Moment { tokens: 28_001, is_prompt: false, is_bound: true };
    assert!(limited(30_000).is_due(within));
    assert_eq!(limited(16_000).point(), None, "what every request carries leaves no room");
    assert!(!limited(16_000).is_due(within));
    let small = |base| Terms {
        base,
        window: Window { tokens: Some(20_000), prompt: Some(4_000) },
        threshold: None,
        ..limited(0)
    };
    assert_eq!(small(9_000).point(), Some(14_904), "before the window is full");
    assert_eq!(small(13_700).point(), None, "the window leaves no room");
    for (fixed, point, limit) in [(50_000, 50_000, None), (95_000, 88_000, Some("Pi compacts"))] {
        let terms = Terms { fixed: Some(fixed), ..limited(90_000) };
        assert_eq!((terms.point(), terms.limit()), (Some(point), limit));
    }
    let low = Terms { fixed: Some(1_000), ..limited(90_000) };
    assert_eq!((low.point(), low.is_least(), limited(90_000).is_least()), (Some(15_425), true, false));
    let tiered = |tier| Terms { tier: Some(tier), ..terms(cost(MODELS[0])) };
    assert_eq!((tiered(30_000).point(), tiered(30_000).limit()), (Some(28_000), Some("prices rise")));
    assert_eq!(
        tiered(12_000).point(),
        Some(35_391),
        "a tier below what every request carries can't be avoided"
    );
    assert_eq!(Terms { raised: 1.5, ..limited(90_000) }.point(), Some(53_087));
}

#[test]
fn in_a_small_window_everything_is_a_share_of_its_room() {
    let window = |tokens| Window { tokens: Some(tokens), prompt: Some(2_500) };
    let settings = Settings::defaults("".as_ref());
    let sizes = |tokens| (tail(window(tokens)), settings.largest_block(window(tokens)));
    assert_eq!(
        [8_192, 16_384, 32_768, 128_000].map(sizes),
        [(265, 132), (2_047, 1_023), (4_000, 2_805), (4_000, 4_000)]
    );
    assert_eq!(Window { tokens: Some(8_192), prompt: None }.prompt(), 2_048);
    let tiny = Terms { base: 3_600, window: window(8_192), ..terms(cost(MODELS[0])) };
    assert_eq!(tiny.point(), Some(3_831));
    assert_eq!(
        [(3_831, false), (3_832, false), (3_400, true)].map(|(at, is_cut)| tiny.is_full(at, is_cut)),
        [false, true, true]
    );
    assert!(!tiny.is_full(2_000, true), "the model has said all that it may");
}

/// What a session of equal requests costs if it is folded at `point`.
fn session(terms: Terms, requests: usize, added: usize, point: usize) -> f64 {
    let Prices { read, write, .. } = terms.prices;
    let (mut tokens, mut cost) = (5_000_usize, 0.0);
    for _ in 0..requests {
        if tokens > point {
            let source = float(tokens.saturating_sub(terms.base));
            cost += source * terms.summarizer.input + source * 0.06 * terms.summarizer.output;
            cost += float(terms.base) * (write - read);
            tokens = terms.base;
        }
        cost += float(tokens) * read + float(added) * write;
        tokens += added;
    }
    cost
}

#[test]
fn the_formula_is_near_the_best_fixed_point() {
    for model in MODELS {
        for added in [300, 1_000, 3_000] {
            let mut growth = Growth::default();
            (0..20).for_each(|_| growth.add(added, 0));
            let terms = Terms { growth, ..terms(cost(model)) };
            let ours = session(terms, 600, added, terms.point().unwrap());
            let best = (15..300).map(|at| session(terms, 600, added, at * 1_000)).fold(f64::MAX, f64::min);
            assert!(ours <= 1.06 * best, "{model:?} {added}: {}", ours / best);
        }
    }
}

/// A turn of a model at Opus's prices with a context of so many tokens, 1,200 of them new.
fn turn(tokens: usize, is_prompt: bool) -> Turn {
    let read = tokens.saturating_sub(1_400);
    let usage = json!({"input": 0, "output": 200, "cacheRead": read, "cacheWrite": 1_200});
    let cost = Cost { input: 4.0, output: 20.0, cache_read: 0.2, cache_write: 5.0 };
    let live = Live {
        context_tokens: Some(tokens),
        context_window: Some(1_000_000),
        cost,
        summarizer: Some(SMALL),
        prompt_tokens: Some(3_400),
        own_tokens: 900,
        can_recall: true,
        ..Live::default()
    };
    Turn { live, usage, is_prompt, is_bound: true, goes_on: true, ..Turn::default() }
}

fn settings() -> Settings {
    Settings::defaults(std::path::Path::new("/nowhere"))
}

#[test]
fn summaries_are_written_shortly_before_the_fold() {
    let (mut folding, settings) = (Folding::default(), settings());
    let mut due = |tokens, is_prompt| folding.turn(&turn(tokens, is_prompt), &settings);
    assert_eq!(due(10_000, false), Due { fold: false, prepare: false, retry: false });
    assert_eq!(due(20_000, false), Due { fold: false, prepare: false, retry: false });
    assert_eq!(due(34_000, false), Due { fold: false, prepare: true, retry: false });
    assert_eq!(due(36_000, false), Due { fold: false, prepare: true, retry: false }, "a run may go further");
    assert_eq!(due(36_000, true), Due { fold: true, prepare: true, retry: false });
    let full = Settings { context: Context::Full, ..settings.clone() };
    assert_eq!(folding.turn(&turn(36_000, true), &full), Due { fold: false, prepare: false, retry: false });
    let mut helpless = turn(36_000, true);
    helpless.live.can_recall = false;
    assert_eq!(folding.turn(&helpless, &settings), Due { fold: false, prepare: false, retry: false });
}

#[test]
fn a_fold_gets_a_receipt() {
    let (mut folding, settings) = (Folding::default(), settings());
    for tokens in [34_000, 35_000, 36_000] {
        folding.turn(&turn(tokens, true), &settings);
    }
    folding.pay(&json!({"input": 20_000, "output": 1_000, "cost": {"total": 0.0025}}));
    assert_eq!(folding.folded(), None);
    // The next request writes 9,000 tokens, 1,000 of which are new.
    let usage = json!({"input": 0, "output": 200, "cacheRead": 3_400, "cacheWrite": 9_000});
    folding.turn(&Turn { usage, ..turn(12_600, false) }, &settings);
    folding.turn(&turn(13_600, false), &settings);
    let [receipt] = folding.receipts[..] else { panic!("{:?}", folding.receipts) };
    assert_eq!((receipt.request, receipt.before, receipt.after), (3, 36_000, 12_400));
    assert!((receipt.saved - 2.0 * 0.2 * 23_600.0).abs() < 1.0, "{receipt:?}");
    assert!(receipt.cost > 2_500.0 + 8_000.0 * 4.8 && receipt.cost < 2_500.0 + 9_000.0 * 4.8, "{receipt:?}");
}

#[test]
fn a_long_prompt_after_a_fold_is_not_what_the_fold_has_left() {
    let (mut folding, settings) = (Folding::default(), settings());
    folding.turn(&turn(36_000, true), &settings);
    folding.folded();
    let usage = json!({"input": 0, "output": 200, "cacheRead": 3_400, "cacheWrite": 89_000});
    folding.turn(&Turn { usage, said: 80_000, ..turn(92_600, true) }, &settings);
    let receipt = folding.receipts[0];
    assert_eq!((receipt.before, receipt.after), (36_000, 12_400));
    assert!(receipt.cost < 9_000.0 * 4.8, "the prompt would have been written in any case: {receipt:?}");
    assert!(folding.terms(&turn(92_600, true).live, &settings).point() < Some(40_000));
}

#[test]
fn a_receipt_ends_where_another_branch_begins() {
    let (mut folding, settings) = (Folding::default(), settings());
    let elsewhere = |tokens| Turn { goes_on: false, ..turn(tokens, true) };
    folding.turn(&turn(36_000, true), &settings);
    folding.folded();
    // Back to before the fold, which no request has shown yet.
    for turn in [elsewhere(30_000), turn(31_200, true), turn(32_400, true)] {
        folding.turn(&turn, &settings);
    }
    folding.folded();
    for turn in [turn(12_600, true), turn(13_800, true), elsewhere(30_000), turn(31_200, true)] {
        folding.turn(&turn, &settings);
    }
    let [never, left] = folding.receipts[..] else { panic!("{:?}", folding.receipts) };
    assert_eq!((never.before, never.after), (36_000, 0));
    assert!(never.cost + never.saved < 1.0, "{never:?}");
    assert_eq!((left.before, left.after), (32_400, 12_400));
    assert!((left.saved - 2.0 * 0.2 * 20_000.0).abs() < 1.0, "{left:?}");
}

#[test]
fn folds_come_later_once_lookups_have_twice_eaten_what_they_saved() {
    let (mut folding, settings) = (Folding::default(), settings());
    let point = |folding: &Folding| folding.terms(&turn(36_000, true).live, &settings).point().unwrap();
    let before = point(&folding);
    let mut notices = Vec::new();
    for _ in 0..4 {
        folding.turn(&turn(36_000, true), &settings);
        notices.push(folding.folded().is_some());
        folding.turn(&Turn { reads: vec![("src/a.rs".into(), 30_000)], ..turn(13_000, false) }, &settings);
    }
    assert_eq!(notices, [false, false, false, true], "a file is read again from the second time on");
    assert!(point(&folding) > before * 14 / 10);
}

#[test]
fn a_file_counts_as_read_before_for_a_few_folds() {
    let is_lookup = |folds| {
        let (mut folding, settings) = (Folding::default(), settings());
        let read = || Turn { reads: vec![("src/a.rs".into(), 30_000)], ..turn(13_000, false) };
        folding.turn(&read(), &settings);
        for _ in 0..folds {
            folding.folded();
        }
        folding.turn(&read(), &settings);
        folding.receipts.last().unwrap().lookups > 0.0
    };
    assert_eq!([1, 5, 6].map(is_lookup), [true, true, false]);
}

#[test]
fn with_pi_alone_the_same_session_costs_what_its_sizes_say() {
    let (mut folding, settings) = (Folding::default(), settings());
    for at in 0..20 {
        folding.turn(&turn(20_000 + at * 1_200, true), &settings);
    }
    let bill = folding.bill;
    assert_eq!(bill.requests, 20);
    // Nothing was folded: the difference is the tools.
    assert!((bill.paid - bill.alone - 20.0 * 900.0 * 0.2).abs() < 900.0 * 5.0, "{bill:?}");
}

#[test]
fn what_is_not_written_to_the_cache_costs_as_pi_counts_it() {
    for (input, written, cost) in [(1_200, 0, 4_800.0), (0, 1_200, 6_000.0), (200, 1_000, 5_800.0)] {
        let (mut folding, settings) = (Folding::default(), settings());
        let usage = json!({"input": input, "output": 200, "cacheRead": 18_600, "cacheWrite": written});
        folding.turn(&Turn { usage, ..turn(20_000, true) }, &settings);
        assert!((folding.bill.paid - cost - 0.2 * 18_600.0 - 20.0 * 200.0).abs() < 1e-6, "{folding:?}");
        let write = folding.terms(&turn(20_000, true).live, &settings).prices.write;
        assert!((write - cost / 1_200.0).abs() < 1e-9, "{write}");
    }
}

/// Pi's threshold is at 16,384 there, and it keeps 20,000.
#[test]
fn pi_compacts_in_a_small_window_once_there_is_more_than_it_keeps() {
    let (mut folding, settings) = (Folding::default(), settings());
    let prompt = settings.pi.compacts_from(Window { tokens: Some(32_768), prompt: Some(3_000) });
    assert_eq!(prompt, Some(23_000));
    let mut first = None;
    for tokens in (10_000..30_000).step_by(500) {
        let mut turn = turn(tokens, true);
        turn.live = Live { context_window: Some(32_768), prompt_tokens: Some(3_000), ..turn.live };
        folding.turn(&turn, &settings);
        first = first.or((folding.bill.compactions > 0).then_some(tokens));
    }
    assert!(first.is_some_and(|first| (23_000..25_500).contains(&first)), "{first:?}");
}
