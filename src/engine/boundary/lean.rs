//! What an open session keeps for the policy: the ledger, the last decisions, and what is to be summarized.

use std::collections::VecDeque;

use serde_json::Value;

use crate::compaction::Shown;
use crate::config::Settings;
use crate::policy::{self, Action, Alone, Cost, Decided, Decision, Ledger, Moment, Prices, Request};
use crate::pruning::{Live, Usage};

/// So many decisions are kept for whoever asks.
const KEPT: usize = 6;
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
    /// Prices of the model that writes summaries.
    summarizer: Option<Prices>,
    /// The leaf of the last request that the ledger has, and where the prompt had changed last by then.
    last: Option<(String, usize)>,
}

impl Lean {
    /// Adds the request that has just been answered, and decides what is to be done before the next.
    pub fn decide(&mut self, live: &Live, shown: &Shown, settings: &Settings) -> Decision {
        let prices = Prices::of(live.cost);
        if let Some(usage) = live.usage {
            self.add(usage, live, shown, prices, settings);
        }
        let summarizer = live.summarizer.map_or(prices, Prices::of);
        self.summarizer = Some(summarizer);
        let moment = Moment {
            items: &shown.items,
            block: shown.block,
            next_block: shown.next_block,
            prices,
            summarizer,
            is_cold: live.is_cold,
            can_fold: live.can_fold,
            allowance: self.ledger.allowance(),
        };
        let decision = policy::decide(moment);
        self.summarize = match decision.action {
            Action::Summarize(cut) if settings.background => {
                Some((live.leaf_id.clone(), shown.visible[cut].entry_id.clone()))
            }
            _ => None,
        };
        let told = Decided { request: self.ledger.requests, tokens: live.context_tokens, decision };
        // The same as before is told once.
        let same = |last: &Decided| {
            (last.decision.action == decision.action) && last.decision.reason == decision.reason
        };
        if decision.action == Action::Leave && self.told.back().is_some_and(same) {
            self.told.pop_back();
        }
        self.told.push_back(told);
        while self.told.len() > KEPT {
            self.told.pop_front();
        }
        decision
    }

    /// The leaf of the last request that the ledger has.
    pub fn last_leaf(&self) -> Option<String> {
        self.last.as_ref().map(|(leaf, _)| leaf.clone())
    }

    /// Adds what model calls for summaries used, as Pi reports usage.
    pub fn pay(&mut self, usage: &Value) {
        let Ok(Usage { input, output, cache_read, cache_write }) = serde_json::from_value(usage.clone())
        else {
            return;
        };
        let Prices { input: price, output: answer, .. } =
            self.summarizer.unwrap_or_else(|| Prices::of(Cost::default()));
        self.ledger.add_cost(price, input + cache_read + cache_write, answer, output);
    }

    fn add(&mut self, usage: Usage, live: &Live, shown: &Shown, prices: Prices, settings: &Settings) {
        let Usage { input, output, cache_read, cache_write } = usage;
        let prompt = input + cache_read + cache_write;
        if prompt == 0 {
            return;
        }
        let is_told = cache_read + cache_write > 0;
        let request = Request {
            prompt,
            read: (is_told || self.ledger.requests == 0).then_some(cache_read),
            output,
            grown: shown.grown,
            hidden: shown.hidden,
            is_changed: self.last.as_ref().is_some_and(|(_, change)| *change != shown.last_change),
            is_elsewhere: self.last.is_some() && !shown.goes_on,
        };
        let pi = &settings.pi;
        let threshold = live.context_window.map(|window| window.saturating_sub(pi.reserve_tokens));
        let alone = Alone {
            threshold: threshold.filter(|_| pi.enabled),
            kept: pi.keep_recent_tokens,
            prompt: live.prompt_tokens.unwrap_or(PROMPT),
        };
        self.ledger.add(request, prices, alone);
        self.last = Some((live.leaf_id.clone(), shown.last_change));
    }
}
