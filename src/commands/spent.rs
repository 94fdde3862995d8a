//! What summaries cost, and how well the provider's prompt cache works, from the providers' reports.

use serde::Serialize;
use serde_json::Value;

use lcm_model::dag::{BranchEntry, Step};
use lcm_model::error::Result;
use lcm_model::text::{dollars, grouped};
use lcm_model::{Usage, read_json};
use lcm_recall::Scope;
use lcm_store::View;

/// The cost of model calls for summaries.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct SummaryCost {
    /// Summaries with reported calls.
    pub summaries: usize,
    pub tokens: usize,
    /// By the prices in Pi; 0 without prices.
    pub dollars: f64,
}

/// How a branch's requests used the provider's cache.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cache {
    pub requests: usize,
    pub prompt_tokens: usize,
    /// Tokens of these that came from the cache.
    pub read_tokens: usize,
    /// Requests with less than half of the previous prompt cached.
    pub misses: usize,
    /// How many of these directly follow a compaction, which changes the prompt.
    pub after_compaction: usize,
}

impl SummaryCost {
    pub fn of(usages: &[Value]) -> Self {
        let mut cost = Self::default();
        for usage in usages.iter().map(Usage::of) {
            cost.summaries += 1;
            cost.tokens += usage.tokens();
            cost.dollars += usage.dollars;
        }
        cost
    }

    pub fn in_words(&self) -> String {
        let dollars = if self.dollars > 0.0 { format!(", {}", dollars(self.dollars)) } else { String::new() };
        format!("{} tokens{dollars}", grouped(self.tokens))
    }
}

impl Cache {
    /// The cache use of the branch; `None` if no provider reported any.
    pub fn of(view: &View<'_>, scope: &Scope) -> Result<Option<Self>> {
        let Some(leaf) = &scope.leaf else { return Ok(None) };
        let (cache, is_reported) = Self::read(view, &view.messages().branch(scope.conversation, leaf)?)?;
        Ok(is_reported.then_some(cache))
    }

    /// The cache use of these entries, and whether any provider reported cache use.
    pub fn read(view: &View<'_>, branch: &[BranchEntry]) -> Result<(Self, bool)> {
        let mut cache = Self::default();
        let (mut before, mut is_compacted, mut is_reported) = (0, false, false);
        for entry in branch {
            let message = match &entry.step {
                Step::Message(message) if message.role == "assistant" => message,
                step => {
                    is_compacted |= matches!(step, Step::Compaction);
                    continue;
                }
            };
            let json = view.messages().message(message.id)?.json;
            let usage = Usage::of(&read_json(&json).unwrap_or_default()["usage"]);
            // A failed request reports no tokens.
            if usage.prompt() == 0 {
                continue;
            }
            is_reported |= usage.cache_read + usage.cache_write > 0;
            if usage.cache_read < before / 2 {
                cache.misses += 1;
                cache.after_compaction += usize::from(is_compacted);
            }
            (before, is_compacted) = (usage.prompt(), false);
            cache.requests += 1;
            cache.prompt_tokens += usage.prompt();
            cache.read_tokens += usage.cache_read;
        }
        Ok((cache, is_reported))
    }

    pub fn in_words(&self) -> String {
        let Self { requests, prompt_tokens, read_tokens, misses, after_compaction } = *self;
        let percent = percent(read_tokens, prompt_tokens);
        let valid = requests - misses;
        let others = match after_compaction {
            1 if misses == 1 => "the other".to_owned(),
            all if all == misses => "the others".to_owned(),
            some => format!("{some} of the others"),
        };
        let which = match (misses, after_compaction) {
            (0, _) if requests == 1 => "the only request".to_owned(),
            (0, _) => format!("all of {} requests", grouped(requests)),
            (_, 0) => format!("{valid} of {requests} requests"),
            _ => format!("{valid} of {requests} requests, {others} came after a compaction"),
        };
        let prompts = grouped(prompt_tokens);
        format!("{percent}% of {prompts} prompt tokens came from it; it was valid in {which}")
    }
}

/// A part of tokens in percent, rounded as the viewer does.
pub(super) fn percent(part: usize, all: usize) -> usize {
    (part * 200 + all) / (all * 2).max(1)
}
