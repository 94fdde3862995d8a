//! `/lcm context`: how full the model's context is, what was decided about it and why, and how well the cache
//! works.

use serde::Serialize;
use serde_json::json;

use super::spent::{Cache, Change};
use super::style::hanging;
use super::{Answer, Command, CommandContext, Doing};
use crate::config::Context;
use crate::dag::{Step, Visible, visible};
use crate::error::Result;
use crate::policy::{Action, Decided, Reason};
use crate::pruning::Live;
use crate::recall::Scope;
use crate::store::View;
use crate::text::{count, dollars, grouped};
use crate::tokens;

pub(super) const COMMAND: Command = Command {
    name: "context",
    help: "how full the context is, the latest decisions, what happens next",
    usage: &[(
        "context",
        "shows the tokens in context, what was replaced with stubs, the last decisions and their reasons, the session's cost and its cost \
         with Pi alone, and how much of the prompt the provider's cache answered since the prompt last changed; /ctx-status is \
         the same",
    )],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// The session's cost since it was opened, in dollars, and the cost of the same requests with Pi alone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bill {
    requests: usize,
    paid: f64,
    with_pi_alone: f64,
    /// Whether the model has no price per token, so that a common model's prices are used.
    is_stand_in: bool,
    /// Whether caching is assumed, because the provider does not report it.
    is_assumed: bool,
}

/// What was replaced by stubs.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    results: usize,
    turns: usize,
    /// Messages of these turns, besides the user's.
    messages: usize,
    tokens_saved: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stable {
    /// `None` if neither we nor Pi changed it.
    changed_by: Option<Change>,
    requests: usize,
    turns: usize,
    prompt_tokens: usize,
    /// Tokens of these that came from the provider's cache; `None` if it does not report them.
    read_tokens: Option<usize>,
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    asked.rest.none()?;
    let (scope, live) = (asked.scope.clone(), asked.live.clone());
    let (pruned, cache) = asked.store().read(move |view| read(view, &scope, &live)).await?;
    let (live, settings, doing) = (asked.live, asked.settings, asked.doing);
    let (tokens, window, mode) = (live.context_tokens, live.context_window, settings.context);
    let block = live.block.as_deref().map(parts);
    let cost = Bill::of(doing, live);
    let pi_compacts_at = settings.pi.with(live.model.as_deref()).threshold(window);
    let size = match (tokens, window) {
        (Some(tokens), Some(window)) => {
            let share = tokens * 100 / window.max(1);
            format!("{} of {} tokens ({share}%)", grouped(tokens), grouped(window))
        }
        _ => "unknown until the model's next answer".to_owned(),
    };
    let mode_name = if mode == Context::Lean { "lean" } else { "full" };
    let mut rows = vec![("Context", format!("{size}, {mode_name}"))];
    rows.extend(block.as_ref().map(|(tokens, sections)| ("Block", block_line(*tokens, sections))));
    rows.push(("Stubs", pruned.in_words()));
    let names = ["Decided"].into_iter().chain(std::iter::repeat(""));
    rows.extend(names.zip(doing.decided.iter().rev().map(decision_line)));
    rows.extend(pi_compacts_at.map(|at| ("Next", format!("from {} tokens on Pi compacts", grouped(at)))));
    rows.extend(cost.as_ref().map(|cost| ("Cost", cost.in_words())));
    rows.push(("Cache", cache.in_words()));
    let row = |(name, value): &(&str, String)| format!("{name:<9}{}", hanging(value, 9, asked.columns));
    let rows: Vec<String> = rows.iter().map(row).collect();
    let block = block.map(|(tokens, sections)| json!({"tokens": tokens, "sections": sections}));
    let json = json!({
        "tokens": tokens, "window": window, "context": mode, "block": block, "pruned": pruned,
        "decided": doing.decided, "piCompactsAt": pi_compacts_at, "cost": cost, "cache": cache,
    });
    Ok(Answer::new(rows.join("\n"), json))
}

/// What was replaced by stubs on the branch, and the cache's state.
fn read(view: &View<'_>, scope: &Scope, live: &Live) -> Result<(Pruned, Stable)> {
    let branch = match &scope.leaf {
        Some(leaf) => view.messages().branch(scope.conversation, leaf)?,
        None => Vec::new(),
    };
    let first = live.shown_from.as_ref();
    let from = first.and_then(|first| branch.iter().position(|entry| entry.entry_id == *first));
    let mut shown = visible(&branch);
    shown.retain(|message| message.index >= from.unwrap_or_default());
    let change = branch.iter().rposition(|entry| Change::by(&entry.step).is_some());
    let since = &branch[change.map_or(0, |at| at + 1)..];
    let (cache, is_reported) = Cache::read(view, since)?;
    let is_request = |step: &Step| matches!(step, Step::Message(message) if message.role == "user");
    let stable = Stable {
        changed_by: change.and_then(|at| Change::by(&branch[at].step)),
        requests: cache.requests,
        turns: since.iter().filter(|entry| is_request(&entry.step)).count(),
        prompt_tokens: cache.prompt_tokens,
        read_tokens: is_reported.then_some(cache.read_tokens),
    };
    Ok((Pruned::of(&shown), stable))
}

/// The smallest difference in dollars worth mentioning.
const LEAST: f64 = 0.001;
/// Costs are counted in millionths.
const MILLION: f64 = 1_000_000.0;

/// The block's tokens, and those of each section with its heading.
fn parts(block: &str) -> (usize, Vec<(&str, usize)>) {
    let section = |text| (str::lines(text).next().unwrap_or_default(), tokens::estimate(text));
    (tokens::estimate(block), block.split("\n### ").skip(1).map(section).collect())
}

fn block_line(tokens: usize, sections: &[(&str, usize)]) -> String {
    let sections = sections.iter().map(|(heading, tokens)| format!("{heading} {}", grouped(*tokens)));
    let sections: Vec<String> = sections.collect();
    let colon = if sections.is_empty() { "" } else { ": " };
    format!("{} tokens{colon}{}", grouped(tokens), sections.join(", "))
}

/// A decision in one sentence.
fn decision_line(Decided { request, decision, .. }: &Decided) -> String {
    let frees = grouped(decision.frees);
    let [costs, carried, saves] =
        [decision.costs.max(0.0), decision.carried, decision.saves].map(|cost| dollars(cost / MILLION));
    let what = match decision.action {
        Action::Stub(_) => format!("replaced results with stubs, {frees} tokens"),
        Action::Fold(_) => format!("folded older messages, {frees} tokens"),
        Action::Summarize(_) => format!("is summarizing older messages to fold them, {frees} tokens"),
        Action::Leave => "no change".to_owned(),
    };
    let why = match decision.reason {
        Reason::NothingToGain => ": nothing can be removed cheaply enough yet".to_owned(),
        Reason::NotYet => {
            format!(": keeping {frees} tokens has cost {carried}, removing them would cost {costs}")
        }
        Reason::NotAffordable => {
            format!(": removing {frees} tokens costs {costs}, too much if the session ended now")
        }
        Reason::Due => {
            format!(
                " (keeping them has cost {carried}, the change costs {costs} and saves {saves} per request)"
            )
        }
        Reason::Cold => " (the prompt was not cached, so the change was free)".to_owned(),
        Reason::Behind => " (Pi alone would have compacted by now)".to_owned(),
    };
    format!("after {}: {what}{why}", count(*request, "request"))
}

impl Pruned {
    fn of(shown: &[Visible]) -> Self {
        let mut pruned = Self::default();
        for message in shown {
            let Some(tokens) = message.pruned else { continue };
            pruned.tokens_saved += message.seen.tokens.saturating_sub(tokens);
            match (tokens, message.seen.role.as_str()) {
                (0, _) => pruned.messages += 1,
                (_, "user") => pruned.turns += 1,
                _ => pruned.results += 1,
            }
        }
        pruned
    }

    fn in_words(&self) -> String {
        let Self { results, turns, messages, tokens_saved } = *self;
        if results + turns == 0 {
            return "none".to_owned();
        }
        let stubs = (results > 0).then(|| count(results, "result"));
        let whole = (turns > 0)
            .then(|| format!("{} with {}", count(turns, "whole turn"), count(messages, "more message")));
        let what: Vec<String> = stubs.into_iter().chain(whole).collect();
        format!("{}, about {} tokens less", what.join(", "), grouped(tokens_saved))
    }
}

impl Bill {
    /// `None` before the first request.
    pub(super) fn of(doing: &Doing, live: &Live) -> Option<Self> {
        let ledger = &doing.ledger;
        (ledger.requests > 0).then(|| Self {
            is_assumed: !doing.reports_cache,
            requests: ledger.requests,
            paid: ledger.paid / MILLION,
            with_pi_alone: ledger.with_pi_alone() / MILLION,
            is_stand_in: live.cost.input <= 0.0,
        })
    }

    pub(super) fn in_words(&self) -> String {
        let Self { requests, paid, with_pi_alone, is_stand_in, is_assumed } = *self;
        let alone = match with_pi_alone - paid {
            saved if saved.abs() < LEAST => "the same".to_owned(),
            saved => {
                let word = if saved > 0.0 { "less" } else { "more" };
                format!("about {}, so {} {word}", dollars(with_pi_alone), dollars(saved.abs()))
            }
        };
        let typical = if is_stand_in { ", at typical prices" } else { "" };
        let cached =
            if is_assumed { ", if the provider caches prompts (it does not report this)" } else { "" };
        let requests = count(requests, "request");
        format!("{} in {requests} since it was opened; with Pi alone {alone}{typical}{cached}", dollars(paid))
    }
}

impl Stable {
    fn in_words(&self) -> String {
        let Self { changed_by, requests, turns, prompt_tokens, read_tokens } = *self;
        let since = match changed_by {
            Some(Change::Compaction) => "the last compaction",
            Some(Change::Pruning) => "the last pruning",
            None => "the beginning",
        };
        let turns = if turns > 0 { format!(" in {}", count(turns, "turn")) } else { String::new() };
        let cache = match read_tokens {
            Some(read) => {
                let percent = read * 100 / prompt_tokens.max(1);
                format!("; {percent}% of {} prompt tokens came from the cache", grouped(prompt_tokens))
            }
            // Nothing is known before the first request.
            None if requests == 0 => String::new(),
            None => "; the provider does not report cache use".to_owned(),
        };
        format!("the prompt has only grown since {since}, {}{turns}{cache}", count(requests, "request"))
    }
}
