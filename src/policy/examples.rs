//! The policy by example: moments small enough to calculate by hand, at the edges of each rule.
//!
//! The cache is read at 1 and written at 4 per token, so all amounts are whole numbers and compare exactly.

use super::*;

const PRICES: Prices = Prices { input: 3.0, output: 15.0, read: 1.0, write: 4.0 };
/// 1.25 per summarized token.
const SUMMARIZER: Prices = Prices { input: 1.0, output: 5.0, read: 1.0, write: 1.0 };
const ENOUGH: f64 = 1e9;

fn text(shown: usize, sent: usize) -> Item {
    Item { shown, sent, can_begin: true, ..Item::default() }
}

fn request() -> Item {
    Item { is_request: true, ..text(0, 9) }
}

fn result(shown: usize, sent: usize) -> Item {
    Item { is_result: true, stub: Some(50), can_begin: false, ..text(shown, sent) }
}

fn moment(items: &[Item]) -> Moment<'_> {
    Moment {
        items,
        block: 0,
        largest_block: 4_000,
        prices: PRICES,
        summarizer: SUMMARIZER,
        is_cold: false,
        folds: Folds::Now,
        allowance: ENOUGH,
        reserved: 0.0,
        step: Step::Later,
    }
}

/// A moment without folds.
fn results(items: &[Item]) -> Moment<'_> {
    Moment { folds: Folds::Never, ..moment(items) }
}

/// The action and its reason, the tokens it frees, and what it costs, has been carried for and saves.
fn parts(decision: Decision) -> (Action, Reason, usize, [f64; 3]) {
    let Decision { action, reason, frees, costs, carried, saves } = decision;
    (action, reason, frees, [costs, carried, saves])
}

/// Where the shortest tail begins.
fn cut(items: &[Item], pi_compacts: bool) -> Option<usize> {
    super::cut(items, TAIL, pi_compacts)
}

fn leaves(decision: Decision, why: Reason) -> bool {
    decision.action == Action::Leave && decision.reason == why
}

#[test]
fn a_stub_is_made_once_carrying_has_cost_as_much() {
    let behind = |tokens| [request(), result(8_000, 3), text(tokens, 1), text(300, 0)];
    // What was never sent is written anyway.
    let due = behind(7_900);
    let costs = 4.0 * 50.0 - 8_000.0 + 3.0 * 7_900.0;
    let amounts = [costs, 2.0 * 7_950.0, 7_950.0];
    assert_eq!(parts(decide(results(&due))), (Action::Stub(1), Reason::Due, 7_950, amounts));
    let early = behind(7_901);
    let decision = decide(results(&early));
    assert!(leaves(decision, Reason::NotYet), "{decision:?}");
    assert_eq!((decision.frees, decision.saves), (7_950, 7_950.0));

    let at_most = |allowance| decide(Moment { allowance, ..results(&due) });
    assert_eq!(at_most(costs).action, Action::Stub(1));
    assert!(leaves(at_most(costs - 1.0), Reason::NotAffordable));
    // With a cold cache, everything after it is written again anyway.
    let cold = decide(Moment { is_cold: true, ..results(&early) });
    let amounts = [4.0 * 50.0 - 4.0 * 8_000.0, 2.0 * 7_950.0, 7_950.0];
    assert_eq!(parts(cold), (Action::Stub(1), Reason::Cold, 7_950, amounts));
    // Fewer than a thousand tokens are not worth a change.
    let filler = Item { stub: None, ..result(6_000, 3) };
    for (shown, frees, done) in
        [(1_050, 1_000, (Action::Stub(1), Reason::Cold)), (1_049, 999, (Action::Leave, Reason::NotYet))]
    {
        let few = [request(), result(shown, 9), filler, text(1, 1)];
        let decision = decide(Moment { is_cold: true, ..results(&few) });
        assert_eq!(((decision.action, decision.reason), decision.frees), (done, frees));
    }
}

#[test]
fn what_follows_the_last_sent_message_is_new() {
    assert_eq!(new_tokens(&[text(5, 2), text(7, 0), text(9, 1), text(20, 0), result(30, 0)]), 50);
    assert_eq!(new_tokens(&[text(5, 1)]), 0);
    assert_eq!(new_tokens(&[text(5, 0), text(7, 0)]), 0, "the context has just been folded");
}

#[test]
fn stubs_begin_at_the_affordable_place_where_they_are_worth_most() {
    let between = |tokens| [result(8_000, 3), text(tokens, 1), result(8_000, 3)];
    for (tokens, from) in [(1_000, 0), (7_900, 0), (7_901, 2), (40_000, 2)] {
        assert_eq!(decide(results(&between(tokens))).action, Action::Stub(from), "{tokens}");
    }
    // From the first result on: 2 × (200 − 8,000) + 3 × 5,000.
    let items = between(5_000);
    for (allowance, from) in [(-600.0, 0), (-601.0, 2)] {
        let decision = decide(Moment { allowance, ..results(&items) });
        assert_eq!(decision.action, Action::Stub(from), "{allowance}");
    }
}

#[test]
fn results_the_model_works_with_stay() {
    let filler = |shown| Item { stub: None, ..result(shown, 9) };
    // The newest 6,000 tokens in the current turn, or 2,000 in earlier turns.
    assert_eq!(stub_places(&[request(), result(301, 2), filler(5_700)], 0), [1]);
    assert_eq!(stub_places(&[request(), result(300, 2), filler(5_700)], 0), [0; 0]);
    assert_eq!(stub_places(&[result(301, 2), request(), filler(1_700)], 0), [0]);
    assert_eq!(stub_places(&[result(300, 2), request(), filler(1_700)], 0), [0; 0]);
    // Only results count.
    assert_eq!(stub_places(&[request(), result(300, 2), filler(5_700), text(9_000, 2)], 0), [0; 0]);
    // Seen too rarely, or not longer than its stub.
    assert_eq!(stub_places(&[request(), result(7_000, 1)], 0), [0; 0]);
    let short = Item { stub: Some(7_000), ..result(7_000, 2) };
    assert_eq!(stub_places(&[request(), short], 0), [0; 0]);
    let two = [result(301, 2), result(301, 2), filler(6_000)];
    assert_eq!((stub_places(&two, 0), stub_places(&two, 1)), (vec![0, 1], vec![1]));
}

/// Sixteen thousand tokens that may be folded, and a tail.
fn past(sent: usize, tail: Item) -> Vec<Item> {
    let mut items = vec![text(2_000, sent); 8];
    items.push(tail);
    items
}

#[test]
fn a_fold_costs_the_block_the_tail_and_the_summaries() {
    let items = past(5, text(4_000, 1));
    // The block takes 600 tokens and a tenth of what is folded.
    let change = 4.0 * 2_200.0 + 3.0 * 4_000.0 - 16_000.0;
    let fold = |reason, costs| (Action::Fold(8), reason, 13_800, [costs, 80_000.0, 13_800.0]);
    assert_eq!(parts(decide(moment(&items))), fold(Reason::Due, change));
    let cold = Moment { is_cold: true, ..moment(&items) };
    assert_eq!(parts(decide(cold)), fold(Reason::Cold, 4.0 * 2_200.0 - 4.0 * 16_000.0));
    // A tail that was never sent is written anyway.
    let fresh = past(5, text(4_000, 0));
    assert_eq!(decide(moment(&fresh)).costs, change - 12_000.0);
    // An existing block goes into the next one, which has the maximum size.
    let more = decide(Moment { block: 20_000, ..moment(&items) });
    assert_eq!((more.frees, more.costs), (32_000, 4.0 * 4_000.0 + 12_000.0 - 36_000.0));
    // What was never sent is folded too, but frees nothing that was sent.
    let mut unsent = past(5, text(4_000, 0));
    unsent[7].sent = 0;
    let decision = decide(moment(&unsent));
    assert_eq!((decision.frees, decision.carried), (11_800, 70_000.0));
}

#[test]
fn summaries_start_before_the_fold_is_due() {
    // 4,800 for the change, and 1.25 for each token to summarize.
    let unread = |unread| {
        let mut items = past(1, text(4_000, 1));
        items[0].unread = unread;
        items
    };
    let started = decide(moment(&unread(12_160)));
    assert_eq!(parts(started), (Action::Summarize(8), Reason::Due, 13_800, [20_000.0, 16_000.0, 13_800.0]));
    assert!(leaves(decide(moment(&unread(12_168))), Reason::NothingToGain));
    let items = unread(12_160);
    assert!(leaves(decide(Moment { allowance: 19_999.0, ..moment(&items) }), Reason::NothingToGain));
    assert_eq!(decide(Moment { allowance: 20_000.0, ..moment(&items) }).action, Action::Summarize(8));
    // They come after the cold prompt, so the fold costs as much as with a warm cache.
    assert_eq!(decide(Moment { is_cold: true, ..moment(&items) }).costs, 20_000.0);
    // The change alone would save here, but the summaries must also be affordable.
    let large = Moment { block: 20_000, ..moment(&items) };
    assert_eq!(decide(Moment { allowance: 15_200.0, ..large }).action, Action::Summarize(8));
    assert!(leaves(decide(Moment { allowance: 15_199.0, ..large }), Reason::NothingToGain));
}

#[test]
fn a_fold_waits_until_carrying_has_cost_as_much() {
    let with_tail = |tail| {
        let items = past(1, text(tail, 1));
        let decision = decide(Moment { largest_block: 2_198, ..moment(&items) });
        (decision.action, decision.reason)
    };
    assert_eq!(with_tail(7_736), (Action::Fold(8), Reason::Due));
    assert_eq!(with_tail(7_737), (Action::Leave, Reason::NotYet));
    let items = past(5, text(4_000, 1));
    for folds in [Folds::Later, Folds::Never] {
        assert_eq!(decide(Moment { folds, ..moment(&items) }).action, Action::Leave, "{folds:?}");
    }
    // It frees at least 4,000 tokens.
    for (old, action) in [(5_111, Action::Fold(1)), (5_110, Action::Leave)] {
        let items = [text(old, 9), text(4_000, 1)];
        assert_eq!(decide(moment(&items)).action, action);
    }
}

/// Pi alone has compacted: a fold need not be due, takes all it can, and waits for its summaries.
#[test]
fn after_pi_alones_compaction_a_fold_is_made_at_once() {
    let mut items = past(1, text(8_000, 1));
    assert_eq!(decide(moment(&items)).action, Action::Leave);
    let behind = |items: &[Item], allowance, folds| {
        decide(Moment { reserved: 20_000.0, allowance, folds, ..moment(items) })
    };
    let costs = 4.0 * 2_198.0 + 3.0 * 8_000.0 - 16_000.0;
    let small = |allowance| {
        let moment = Moment { largest_block: 2_198, reserved: 1.0, allowance, ..moment(&items) };
        decide(moment).action
    };
    assert_eq!([costs - 1.0, costs].map(small), [Action::Leave, Action::Fold(8)]);
    items[7].unread = 10;
    let waits = behind(&items, 1e6, Folds::Now);
    assert_eq!((waits.action, waits.reason), (Action::Summarize(8), Reason::Behind));
}

#[test]
fn a_fold_that_catches_up_with_pi_alone_leaves_the_shortest_tail_that_is_affordable() {
    let items = [Item { unread: 2_000, ..text(2_000, 3) }; 20];
    let summarizer = Prices { input: 10.0, output: 0.0, ..SUMMARIZER };
    let fold = |allowance, reserved| decide(Moment { allowance, reserved, summarizer, ..moment(&items) });
    // 36,000, 30,000 or 20,000 tokens to summarize, and for the longer tails 14,400 or 50,400 to write them again.
    for (allowance, cut) in [(360_000.0, 18), (359_999.0, 15), (314_399.0, 10)] {
        let decision = fold(allowance, 1.0);
        assert_eq!((decision.action, decision.reason), (Action::Summarize(cut), Reason::Behind));
    }
    assert_eq!(fold(250_399.0, 1.0).action, Action::Leave);
    assert_eq!(fold(359_999.0, 0.0).action, Action::Leave, "only then");
}

#[test]
fn a_compaction_is_prepared_if_it_is_near_or_its_summaries_are_affordable() {
    let items = [Item { unread: 1_000, ..text(4_000, 1) }, text(4_000, 1)];
    let may = |allowance, is_near| may_prepare(Moment { allowance, ..moment(&items) }, is_near);
    assert!(may(1_250.0, false) && !may(1_249.0, false) && may(1_249.0, true));
}

#[test]
fn what_is_reserved_for_a_fold_is_not_spent_on_stubs() {
    let due = [request(), result(8_000, 3), text(7_900, 1), text(300, 0)];
    let costs = decide(results(&due)).costs;
    let stubs = |allowance, folds| decide(Moment { allowance, reserved: 5.0, folds, ..results(&due) }).action;
    assert_eq!(
        [costs + 4.0, costs + 5.0].map(|allowance| stubs(allowance, Folds::Later)),
        [Action::Leave, Action::Stub(1)]
    );
    assert_eq!(stubs(costs, Folds::Never), Action::Stub(1), "there is no fold to save for");
}

#[test]
fn in_step_with_pi_alone_only_summaries_are_made() {
    fn in_step(moment: Moment<'_>) -> Decision {
        decide(Moment { step: Step::Soon, ..moment })
    }
    fn now(moment: Moment<'_>) -> Decision {
        decide(Moment { step: Step::Now, ..moment })
    }
    let due = [request(), result(8_000, 3), text(7_900, 1), text(300, 0)];
    assert_eq!(decide(results(&due)).action, Action::Stub(1));
    assert!(leaves(in_step(results(&due)), Reason::NotAffordable));
    assert!(leaves(now(results(&due)), Reason::NotAffordable));
    let mut items = past(5, text(4_000, 1));
    assert_eq!(decide(moment(&items)).action, Action::Fold(8));
    assert!(leaves(in_step(moment(&items)), Reason::NotAffordable));
    assert_eq!(now(moment(&items)).action, Action::Fold(8));
    items[0].unread = 2_000;
    assert_eq!(in_step(moment(&items)).action, Action::Summarize(8));
}

#[test]
fn a_fold_takes_only_what_is_summarized_if_little_else_stays() {
    let unread_from = |first: usize| {
        let mut items = vec![text(2_000, 9); 10];
        items[first..].iter_mut().for_each(|item| item.unread = item.shown);
        cut(&items, false)
    };
    // 4,000 tokens stay, or up to 8,000 if everything before them is summarized.
    assert_eq!([9, 8, 7, 6].map(unread_from), [Some(8), Some(8), Some(7), Some(6)]);
    assert_eq!([5, 1, 0].map(unread_from), [Some(8); 3]);
    // By far the most is summarized.
    let of_twenty = |first: usize| {
        let mut items = vec![text(2_000, 9); 20];
        items[first..].iter_mut().for_each(|item| item.unread = item.shown);
        cut(&items, false)
    };
    assert_eq!([14, 13].map(of_twenty), [Some(14), Some(18)]);
    // Where Pi compacts now, a fold leaves no more than that would.
    let mut items = vec![text(2_000, 9); 20];
    items[14..].iter_mut().for_each(|item| item.unread = item.shown);
    assert_eq!(cut(&items, true), Some(18));
    // A result does not stay without its call.
    let mut items = vec![text(2_000, 9); 10];
    items[8].can_begin = false;
    assert_eq!(cut(&items, false), Some(7));
    items[6].unread = 1;
    items[6].can_begin = false;
    assert_eq!(cut(&items, false), Some(5));
    assert_eq!(cut(&[text(3_999, 9)], false), None);
    let first = [Item { unread: 1, ..text(2_000, 9) }, text(2_000, 9), text(2_000, 9)];
    assert_eq!(cut(&first, false), Some(1));
    // There is only a tail, and nothing to fold.
    let small = [text(2_000, 9), Item { unread: 1, ..text(2_000, 9) }];
    assert_eq!(cut(&small, false), Some(0));
}

#[test]
fn if_a_fold_and_stubs_are_due_the_one_worth_more_is_made() {
    // Stubs have carried 15,900 and cost −7,800. The fold is worth 8 × 2,000 × `sent`, less its cost.
    let items = |sent| {
        let mut items = vec![text(2_000, sent); 8];
        items.extend([request(), result(8_000, 3), text(10, 0)]);
        items
    };
    assert_eq!(decide(moment(&items(2))).action, Action::Stub(9));
    assert_eq!(decide(moment(&items(9))).action, Action::Fold(8));
    // Stubs that are worth more but not due do not prevent a fold.
    let behind = [items(3), vec![text(20_000, 1)]].concat();
    let decision = decide(moment(&behind));
    assert!(matches!(decision.action, Action::Fold(_)), "{decision:?}");
}
