//! What requests cost with us and with Pi alone, at round prices.

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
    let change =
        Request { prompt: 40_000, read: Some(3_000), grown: 3_000, is_changed: true, ..Request::default() };
    ledger.add(change, PRICES, ALONE);
    assert_eq!(ledger.alone_tokens - before, 3_000);
}

#[test]
fn tokens_of_our_tools_count_against_us_but_not_against_a_change() {
    let mut ledger = Ledger::default();
    ledger.add(Request { prompt: 10_000, read: Some(0), own: 1_000, ..Request::default() }, PRICES, ALONE);
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
    let first = Request { prompt: 10_000, read: Some(4_000), output: 100, own: 1_000, ..Request::default() };
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
        let next = Request { prompt, read: Some(90_000), grown, summarizable: grown, ..Request::default() };
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
