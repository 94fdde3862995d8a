//! What summaries cost, and how well the provider's prompt cache holds, from what the providers reported.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dag::{BranchEntry, Step};
use crate::error::Result;
use crate::recall::Scope;
use crate::store::View;
use crate::text::{dollars, grouped};

/// What model calls for summaries took.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Cost {
    /// Summaries whose calls were reported.
    pub summaries: usize,
    pub tokens: usize,
    /// As the providers' prices stand in Pi; 0 where they do not.
    pub dollars: f64,
}

/// How the prompts of a branch's requests met the provider's cache.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cache {
    pub requests: usize,
    pub prompt_tokens: usize,
    /// Of these, what came out of the cache.
    pub read_tokens: usize,
    /// Requests that found less than half of the prompt before them there.
    pub misses: usize,
    /// Of these, the first ones after a compaction: it changes the prompt.
    pub after_compaction: usize,
    /// Of these, the first ones after something was pruned: nothing else of ours changes the prompt.
    pub after_pruning: usize,
}

/// What changed a prompt's beginning last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Change {
    Compaction,
    Pruning,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Usage {
    input: usize,
    output: usize,
    cache_read: usize,
    cache_write: usize,
    total_tokens: usize,
    cost: Price,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Price {
    total: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedUsage {
    usage: Usage,
}

impl Usage {
    fn prompt(&self) -> usize {
        self.input + self.cache_read + self.cache_write
    }
}

impl Cost {
    pub fn of(usages: &[String]) -> Self {
        let mut cost = Self::default();
        for usage in usages.iter().filter_map(|usage| serde_json::from_str::<Usage>(usage).ok()) {
            cost.summaries += 1;
            cost.tokens += usage.total_tokens.max(usage.prompt() + usage.output);
            cost.dollars += usage.cost.total;
        }
        cost
    }
}

impl Cache {
    /// Of the branch; none where no provider told of its cache.
    pub fn of(view: &View<'_>, scope: &Scope) -> Result<Option<Self>> {
        let Some(leaf) = &scope.leaf else { return Ok(None) };
        Self::along(view, &view.messages().branch(scope.conversation, leaf)?)
    }

    /// Of the entries of a branch; none where no provider told of its cache.
    pub fn along(view: &View<'_>, branch: &[BranchEntry]) -> Result<Option<Self>> {
        let (cache, is_told) = Self::read(view, branch)?;
        Ok(is_told.then_some(cache))
    }

    /// The same, and whether any provider told of its cache.
    pub fn read(view: &View<'_>, branch: &[BranchEntry]) -> Result<(Self, bool)> {
        let mut cache = Self::default();
        let (mut before, mut change, mut is_told) = (0, None, false);
        for entry in branch {
            let message = match &entry.step {
                Step::Message(message) if message.role == "assistant" => message,
                step => {
                    change = Change::by(step).or(change);
                    continue;
                }
            };
            let json = view.messages().message(message.id)?.json;
            let ReportedUsage { usage } = serde_json::from_str(&json).unwrap_or_default();
            // One that failed was never told of.
            if usage.prompt() == 0 {
                continue;
            }
            is_told |= usage.cache_read + usage.cache_write > 0;
            if usage.cache_read < before / 2 {
                cache.misses += 1;
                cache.after_compaction += usize::from(change == Some(Change::Compaction));
                cache.after_pruning += usize::from(change == Some(Change::Pruning));
            }
            (before, change) = (usage.prompt(), None);
            cache.requests += 1;
            cache.prompt_tokens += usage.prompt();
            cache.read_tokens += usage.cache_read;
        }
        Ok((cache, is_told))
    }
}

impl Change {
    /// How a step of a branch changes the beginning of the prompts behind it.
    pub fn by(step: &Step) -> Option<Self> {
        match step {
            Step::Compaction => Some(Self::Compaction),
            Step::Stub { .. } => Some(Self::Pruning),
            Step::Link | Step::Message(_) | Step::Edit { .. } => None,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", grouped(self.tokens))?;
        if self.dollars > 0.0 { write!(f, ", {}", dollars(self.dollars)) } else { Ok(()) }
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, prompt_tokens, read_tokens, misses, after_compaction, after_pruning } = self;
        let percent = read_tokens * 100 / (*prompt_tokens).max(1);
        write!(f, "{percent}% of {} prompt tokens came from it; ", grouped(*prompt_tokens))?;
        match misses {
            0 => write!(f, "it was valid in all of {requests} requests"),
            _ if *after_pruning > 0 => write!(
                f,
                "it was valid in {} of {requests} requests, {after_compaction} of the others came after a compaction, {after_pruning} after \
                 a pruning",
                requests - misses
            ),
            _ => write!(
                f,
                "it was valid in {} of {requests} requests, {after_compaction} of the others came after a compaction",
                requests - misses
            ),
        }
    }
}
