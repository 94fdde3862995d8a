//! What an open session keeps for the policy: the ledger, the last decisions, and what is to be summarized.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use crate::compaction::Shown;
use crate::config::Settings;
use crate::policy::{self, Action, Alone, Cost, Decided, Decision, Folds, Ledger, Moment, Prices, Request};
use crate::pruning::{Live, Usage};

/// So many decisions are kept for whoever asks.
const KEPT: usize = 6;
/// So many turns summaries are waited for; then stubs are made again.
const PATIENCE: usize = 4;
/// The ledger counts in millionths.
const MILLION: f64 = 1_000_000.0;
/// System prompt and tools, roughly, where Pi does not tell.
const PROMPT: usize = 8_000;

/// The policy's part of an open session.
#[derive(Default)]
pub(in super::super) struct Lean {
    /// What the session costs.
    pub ledger: Ledger,
    /// What was decided last, oldest first.
    pub told: VecDeque<Decided>,
    /// All before this entry is to be summarized, and on which branch.
    pub summarize: Option<(String, String)>,
    /// The provider tells what of a prompt came out of its cache.
    pub tells_cache: bool,
    /// The provider's cache has expired: it will have nothing of the next request.
    is_cold: bool,
    /// A change that the last request did not have yet.
    late_change: bool,
    /// Entries that a stub would hardly shorten, or that have to stay.
    refused: HashSet<String>,
    /// How often in a row summaries were waited for.
    waited: usize,
    /// Prices of the model that writes summaries.
    summarizer: Option<Prices>,
    /// The prices, and how Pi alone compacts, with the last request.
    terms: Option<(Prices, Alone)>,
    /// The leaf of the last request that the ledger has, and where the prompt had changed last by then.
    last: Option<(String, Option<usize>)>,
}

impl Lean {
    /// Whether the past may be folded at such a moment. Where summaries are waited for in vain, no model answering, it may not.
    pub fn folds(&self, live: &Live, settings: &Settings) -> Folds {
        match () {
            () if !settings.background || self.waited >= PATIENCE => Folds::Never,
            () if live.can_fold => Folds::Now,
            () => Folds::Later,
        }
    }

    /// Decides what is to be done before the next request.
    pub fn decide(&mut self, live: &Live, shown: &Shown, folds: Folds) -> Decision {
        let prices = Prices::of(live.cost);
        self.summarizer = Some(live.summarizer.map_or(prices, Prices::of));
        let summarizer = live.summarizer.map_or_else(|| prices.in_session(), Prices::of);
        policy::decide(Moment {
            items: &shown.items,
            block: live.block_tokens,
            largest_block: shown.largest_block,
            prices,
            summarizer,
            is_cold: live.is_cold,
            folds,
            allowance: self.ledger.allowance(),
            behind: self.ledger.behind(),
        })
    }

    /// Notes what was decided and done. `before` is the entry before which all is to be summarized.
    pub fn tell(&mut self, decision: Decision, live: &Live, before: Option<String>) {
        self.waited = match (decision.action, &before) {
            (Action::Summarize(_), _) => self.waited + 1,
            // It is looked again whether a model answers by now.
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
        // A state that continues is listed once.
        if self.told.back().is_some_and(is_same) {
            self.told.pop_back();
        }
        self.told.push_back(Decided { request: self.ledger.requests, tokens: live.context_tokens, decision });
        while self.told.len() > KEPT {
            self.told.pop_front();
        }
    }

    /// Notes what is known of the next request.
    pub fn expect(&mut self, live: &Live) {
        self.is_cold = live.is_cold;
    }

    /// Leaves alone what was refused, and what somebody else is about to edit.
    pub fn sift(&self, live: &Live, shown: &mut Shown) {
        for (item, message) in shown.items.iter_mut().zip(&shown.visible) {
            if self.refused.contains(&message.entry_id) || live.edited.contains(&message.entry_id) {
                item.stub = None;
            }
        }
    }

    /// Notes that these entries can't give way.
    pub fn refuse(&mut self, entries: impl IntoIterator<Item = String>) {
        self.refused.extend(entries);
    }

    /// The leaf of the last request that the ledger has.
    pub fn last_leaf(&self) -> Option<String> {
        self.last.as_ref().map(|(leaf, _)| leaf.clone())
    }

    /// Adds what model calls for summaries used since the first request, as Pi reports usage: what they cost, or where that is
    /// not told, their tokens at the prices of the model that was expected to write them.
    pub fn pay(&mut self, usage: &Value) {
        // Before the first request it is not known what Pi alone would have paid for the same.
        if self.terms.is_none() {
            return;
        }
        if let Some(dollars) = usage["cost"]["total"].as_f64().filter(|dollars| *dollars > 0.0) {
            self.ledger.add_paid(dollars * MILLION);
            return;
        }
        let Ok(Usage { input, output, cache_read, cache_write }) = serde_json::from_value(usage.clone())
        else {
            return;
        };
        let Prices { input: price, output: answer, .. } =
            self.summarizer.unwrap_or_else(|| Prices::of(Cost::default()));
        self.ledger.add_cost(price, input + cache_read + cache_write, answer, output);
    }

    /// Notes that Pi compacts, asked by its user: that it would have done alone too.
    pub fn pi_compacts(&mut self, reason: Option<&str>) {
        if let (Some("manual"), Some((prices, alone))) = (reason, self.terms) {
            self.ledger.compact_alone(prices, alone);
        }
    }

    /// Whether what was decided before the last request has changed the prompt.
    fn has_just_changed(&self) -> bool {
        let last = self.told.back().filter(|last| last.request == self.ledger.requests);
        last.is_some_and(|last| matches!(last.decision.action, Action::Stub(_) | Action::Fold(_)))
    }

    /// Adds the request that has just been answered. `shown` is `None` if the context could not be read in time; the growth of the
    /// prompt is used instead.
    pub fn add(&mut self, live: &Live, shown: Option<&Shown>, settings: &Settings) {
        let Some(Usage { input, output, cache_read, cache_write }) = live.usage else { return };
        let context = live.context_tokens.unwrap_or_default();
        // A provider may tell nothing of what it took, or what can't be.
        let prompt = match input.saturating_add(cache_read).saturating_add(cache_write) {
            0 => context.saturating_sub(output),
            told => told,
        };
        if prompt == 0 || live.context_window.is_some_and(|window| prompt > 2 * window) {
            return;
        }
        self.tells_cache |= cache_read + cache_write > 0;
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
            read: (self.tells_cache || self.ledger.requests == 0).then_some(cache_read),
            output,
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
