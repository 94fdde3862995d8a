//! An open session's state for the policy: the ledger, the last decisions, and what to summarize.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use crate::compaction::Shown;
use crate::config::Settings;
use crate::model::Usage;
use crate::policy::{self, Action, Alone, Cost, Decided, Decision, Folds, Ledger, Moment, Prices, Request};
use crate::pruning::Live;

/// How many decisions are kept for display.
const KEPT: usize = 6;
/// How many turns to wait for summaries before making stubs again.
const PATIENCE: usize = 4;
/// The ledger counts in millionths.
const MILLION: f64 = 1_000_000.0;
/// Approximate tokens of system prompt and tools, if Pi does not report them.
const PROMPT: usize = 8_000;

/// The policy's part of an open session.
#[derive(Default)]
pub(in super::super) struct Lean {
    /// The session's costs.
    pub ledger: Ledger,
    /// The last decisions, oldest first.
    pub decisions: VecDeque<Decided>,
    /// A branch, and the entry before which everything is to be summarized.
    pub summarize: Option<(String, String)>,
    /// Whether it is too early to write summaries for a compaction by Pi.
    pub is_early: bool,
    /// Whether the provider reports how much of a prompt came from its cache.
    pub reports_cache: bool,
    /// Whether the provider's cache has expired, so that the next request is uncached.
    is_cold: bool,
    /// Whether a change was not yet in the last request.
    late_change: bool,
    /// Entries that a stub would hardly shorten, or that must stay.
    refused: HashSet<String>,
    /// Consecutive turns spent waiting for summaries.
    waited: usize,
    /// Prices of the model that writes summaries.
    summarizer: Option<Prices>,
    /// The prices, and Pi's own compaction behavior, as of the last request.
    terms: Option<(Prices, Alone)>,
    /// The leaf of the last request in the ledger, and the position of the prompt's last change by then.
    last: Option<(String, Option<usize>)>,
}

impl Lean {
    /// Whether history may be folded now. It may not after waiting in vain for summaries because no model
    /// answers.
    pub fn folds(&self, live: &Live, settings: &Settings) -> Folds {
        match () {
            () if !settings.background || self.waited >= PATIENCE => Folds::Never,
            () if live.can_fold => Folds::Now,
            () => Folds::Later,
        }
    }

    /// Decides what to do before the next request.
    pub fn decide(&mut self, live: &Live, shown: &Shown, folds: Folds) -> Decision {
        let prices = Prices::of(live.cost);
        self.summarizer = Some(live.summarizer.map_or(prices, Prices::of));
        let summarizer = live.summarizer.map_or_else(|| prices.in_session(), Prices::of);
        let new = policy::new_tokens(&shown.items);
        let alone = self.terms.map(|(_, alone)| alone);
        let outlook = self.ledger.outlook(new, live.is_cold, prices, alone);
        let moment = Moment {
            items: &shown.items,
            block: live.block_tokens,
            largest_block: shown.largest_block,
            prices,
            summarizer,
            is_cold: live.is_cold,
            folds,
            allowance: outlook.allowance,
            reserved: outlook.reserved,
            step: outlook.step,
        };
        self.is_early = !policy::may_prepare(moment, outlook.is_near);
        policy::decide(moment)
    }

    /// Records what was decided and done. `before` is the entry before which everything is to be summarized.
    pub fn record(&mut self, decision: Decision, live: &Live, before: Option<String>) {
        self.waited = match (decision.action, &before) {
            (Action::Summarize(_), _) => self.waited + 1,
            // Check again later whether a model answers.
            (Action::Leave, None) => self.waited.saturating_sub(1),
            _ => 0,
        };
        self.expect(live);
        self.summarize = before.map(|before| (live.leaf_id.clone(), before));
        let is_same = |last: &Decided| match (last.decision.action, decision.action) {
            (Action::Leave, Action::Leave) => last.decision.reason == decision.reason,
            (Action::Summarize(_), Action::Summarize(_)) => true,
            _ => false,
        };
        // A continuing state is listed once.
        if self.decisions.back().is_some_and(is_same) {
            self.decisions.pop_back();
        }
        self.decisions.push_back(Decided {
            request: self.ledger.requests,
            tokens: live.context_tokens,
            decision,
        });
        while self.decisions.len() > KEPT {
            self.decisions.pop_front();
        }
    }

    /// Records what is known about the next request.
    pub fn expect(&mut self, live: &Live) {
        self.is_cold = live.is_cold;
    }

    /// Skips entries that were refused, and those that another extension is about to edit.
    pub fn sift(&self, live: &Live, shown: &mut Shown) {
        for (item, message) in shown.items.iter_mut().zip(&shown.visible) {
            if self.refused.contains(&message.entry_id) || live.edited.contains(&message.entry_id) {
                item.stub = None;
            }
        }
    }

    /// Records that these entries can't be replaced.
    pub fn refuse(&mut self, entries: impl IntoIterator<Item = String>) {
        self.refused.extend(entries);
    }

    /// The leaf of the last request in the ledger.
    pub fn last_leaf(&self) -> Option<String> {
        self.last.as_ref().map(|(leaf, _)| leaf.clone())
    }

    /// Adds what model calls for summaries used since the first request, in Pi's format: their cost or, if
    /// not reported, their tokens at the prices of the model expected to write them.
    pub fn pay(&mut self, usage: &Value) {
        // Before the first request, it is unknown what Pi alone would have paid.
        if self.terms.is_none() {
            return;
        }
        let usage = Usage::of(usage);
        if usage.dollars > 0.0 {
            self.ledger.add_paid(usage.dollars * MILLION);
            return;
        }
        let Prices { input: price, output: answer, .. } =
            self.summarizer.unwrap_or_else(|| Prices::of(Cost::default()));
        self.ledger.add_cost(price, usage.prompt(), answer, usage.output);
    }

    /// Records that the user made Pi compact, which Pi alone would have done too.
    pub fn pi_compacts(&mut self, reason: Option<&str>) {
        if let (Some("manual"), Some((prices, alone))) = (reason, self.terms) {
            self.ledger.compact_alone(prices, alone);
        }
    }

    /// Whether the decision before the last request changed the prompt.
    fn has_just_changed(&self) -> bool {
        let last = self.decisions.back().filter(|last| last.request == self.ledger.requests);
        last.is_some_and(|last| matches!(last.decision.action, Action::Stub(_) | Action::Fold(_)))
    }

    /// Adds the request that was just answered. If `shown` is `None` because the context could not be read in
    /// time, the growth of the prompt is used instead.
    pub fn add(&mut self, live: &Live, shown: Option<&Shown>, settings: &Settings) {
        let Some(usage) = live.usage.as_ref().map(Usage::of) else { return };
        let context = live.context_tokens.unwrap_or_default();
        // A provider may report nothing, or impossible numbers.
        let prompt = match usage.prompt() {
            0 => context.saturating_sub(usage.output),
            counted => counted,
        };
        if prompt == 0 || live.context_window.is_some_and(|window| prompt > 2 * window) {
            return;
        }
        self.reports_cache |= usage.cache_read + usage.cache_write > 0;
        let before = self.last.as_ref().and_then(|(_, before)| *before);
        let change = shown.map_or(before, |shown| Some(shown.last_change));
        let mut is_changed = match shown {
            Some(_) => before.is_some() && before != change,
            None => self.has_just_changed(),
        };
        if live.is_late {
            is_changed = std::mem::replace(&mut self.late_change, is_changed);
        }
        let is_elsewhere = self.last.is_some() && shown.is_some_and(|shown| !shown.goes_on);
        let is_first = self.ledger.requests == 0 || is_elsewhere;
        let nothing = Shown::default();
        let shown = shown.unwrap_or(&nothing);
        let request = Request {
            prompt,
            read: (self.reports_cache || self.ledger.requests == 0).then_some(usage.cache_read),
            output: usage.output,
            grown: shown.grown,
            summarizable: if is_first { shown.summarizable } else { shown.grown_summarizable },
            hidden: shown.hidden,
            own: live.own_tokens,
            is_changed,
            is_cold: std::mem::take(&mut self.is_cold),
            is_elsewhere,
        };
        let pi = settings.pi.with(live.model.as_deref());
        let alone = Alone {
            threshold: pi.threshold(live.context_window),
            kept: pi.keep_recent_tokens,
            prompt: live.prompt_tokens.unwrap_or(PROMPT),
        };
        let prices = Prices::of(live.cost);
        self.terms = Some((prices, alone));
        self.ledger.add(request, prices, alone);
        self.last = Some((live.leaf_id.clone(), change));
    }
}
