//! `/lcm context`: how full the model's context is, where it is folded, what folds have brought, and how well the
//! cache works.

use serde::Serialize;
use serde_json::{Value, json};

use super::spent::{Cache, percent};
use super::style::table;
use super::{Answer, Command, CommandContext, Doing};
use lcm_model::config::{Context, Settings};
use lcm_model::dag::Step;
use lcm_model::error::Result;
use lcm_model::policy::{Live, Prices, Receipt};
use lcm_model::text::{count, dollars, grouped};
use lcm_model::tokens;
use lcm_recall::Scope;
use lcm_store::View;

pub(super) const COMMAND: Command = Command {
    name: "context",
    help: "how full the context is, where it is folded, what that saved",
    usage: &[(
        "context",
        "shows the tokens in context, the fold point and its terms, the last folds with what each cost and saved, the session's cost and \
         its cost with Pi alone, and how much of the prompt the provider's cache answered since the prompt last changed; /ctx-status is \
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

/// The fold point and its terms, in tokens; the cost of a fold in dollars.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    tokens: usize,
    carried: usize,
    growth: usize,
    fold: f64,
    /// Whether the user has set it.
    is_fixed: bool,
    /// Whether look-ups have raised it.
    is_raised: bool,
    /// Whether less would not be worth a fold.
    #[serde(skip)]
    is_least: bool,
    /// Before what it has to come, if that lowers it.
    #[serde(skip)]
    limit: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stable {
    is_compacted: bool,
    requests: usize,
    turns: usize,
    prompt_tokens: usize,
    /// Tokens of these that came from the provider's cache; `None` if it does not report them.
    read_tokens: Option<usize>,
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    asked.rest.none()?;
    let scope = asked.scope.clone();
    let cache = asked.store().read(move |view| read(view, &scope)).await?;
    let (live, settings, doing) = (&asked.request.live, asked.settings, asked.doing);
    let (tokens, window, mode) = (live.context_tokens, live.context_window, settings.context);
    let block = live.block.as_deref().map(parts);
    let cost = Bill::of(doing, live);
    let point = Point::of(doing, live, settings);
    let pi = settings.pi.with(live.model.as_deref());
    let pi_compacts_at = pi.compacts_from(live.window()).filter(|_| pi.misfit(live.window()).is_none());
    let size = match (tokens, window) {
        (Some(tokens), Some(window)) => {
            let share = percent(tokens, window);
            format!("{} of {} tokens ({share}%)", grouped(tokens), grouped(window))
        }
        _ => "unknown until the model's next answer".to_owned(),
    };
    let mode_name = if mode == Context::Lean { "lean" } else { "full" };
    let mut rows = vec![("Context", format!("{size}, {mode_name}"))];
    rows.extend(block.as_ref().map(|(tokens, sections)| ("Block", block_line(*tokens, sections))));
    rows.extend(point.as_ref().map(|point| ("Folds", point.in_words(tokens))));
    rows.extend(pi.misfit(live.window()).map(|why| ("Settings", why)));
    rows.extend(pi_compacts_at.map(|at| ("Pi", format!("compacts from {} tokens on", grouped(at)))));
    let summarizer = asked.request.summarizers.first();
    let pause = doing.pause_in_words().map(|pause| format!("; {pause}")).unwrap_or_default();
    rows.extend(summarizer.map(|one| ("Summaries", format!("by {}{pause}", one.in_words()))));
    let names = ["Last fold"].into_iter().chain(std::iter::repeat(""));
    rows.extend(names.zip(doing.folding.receipts.iter().rev().map(receipt_line)));
    if doing.folding.dropped > 0 {
        let dropped = count(doing.folding.dropped, "reasoning block");
        rows.push(("Reasoning", format!("the provider dropped {dropped} of earlier answers")));
    }
    rows.extend(cost.as_ref().map(|cost| ("Cost", cost.in_words())));
    rows.push(("Cache", cache.in_words()));
    let block = block.map(|(tokens, sections)| json!({"tokens": tokens, "sections": sections}));
    let folds: Vec<Value> = doing.folding.receipts.iter().map(receipt_json).collect();
    let json = json!({
        "tokens": tokens, "window": window, "context": mode, "block": block, "foldPoint": point,
        "folds": folds, "dropped": doing.folding.dropped, "piCompactsAt": pi_compacts_at,
        "summarizer": summarizer, "cost": cost, "cache": cache,
    });
    Ok(Answer::new(table(&rows, 11, asked.request.columns), json))
}

/// The cache's state since the branch's last compaction.
fn read(view: &View<'_>, scope: &Scope) -> Result<Stable> {
    let branch = scope.leaf.as_ref().map(|leaf| view.messages().branch(scope.conversation, leaf));
    let branch = branch.transpose()?.unwrap_or_default();
    let change = branch.iter().rposition(|entry| matches!(entry.step, Step::Compaction));
    let since = &branch[change.map_or(0, |at| at + 1)..];
    let (cache, is_reported) = Cache::read(view, since)?;
    let is_request = |step: &Step| matches!(step, Step::Message(message) if message.role == "user");
    Ok(Stable {
        is_compacted: change.is_some(),
        requests: cache.requests,
        turns: since.iter().filter(|entry| is_request(&entry.step)).count(),
        prompt_tokens: cache.prompt_tokens,
        read_tokens: is_reported.then_some(cache.read_tokens),
    })
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

/// A fold with its costs in dollars.
fn receipt_json(fold: &Receipt) -> Value {
    let Receipt { request, before, after, cost, saved, lookups } = *fold;
    let [cost, saved, lookups] = [cost, saved, lookups].map(|cost| cost / MILLION);
    json!({"request": request, "before": before, "after": after, "cost": cost, "saved": saved, "lookups": lookups})
}

/// A fold in one sentence.
fn receipt_line(fold: &Receipt) -> String {
    let Receipt { request, before, after, cost, saved, lookups } = *fold;
    let when = format!("after {}", count(request, "request"));
    if after == 0 {
        return format!("{when}: {} tokens folded", grouped(before));
    }
    let [cost, saved] = [cost, saved].map(|cost| dollars(cost / MILLION));
    let lookups = match lookups / MILLION {
        cost if cost >= LEAST => format!("; look-ups and files read again cost {}", dollars(cost)),
        _ => String::new(),
    };
    let (before, after) = (grouped(before), grouped(after));
    format!("{when}: {before} tokens became {after}, for {cost}; saved {saved} since{lookups}")
}

impl Point {
    /// `None` if nothing is folded before Pi compacts.
    fn of(doing: &Doing, live: &Live, settings: &Settings) -> Option<Self> {
        if settings.context == Context::Full || !settings.background {
            return None;
        }
        let terms = doing.folding.terms(live, settings);
        Some(Self {
            tokens: terms.point()?,
            carried: terms.base,
            growth: terms.growth_per_request(),
            fold: terms.fold_cost() / MILLION,
            is_fixed: terms.fixed.is_some(),
            is_raised: terms.raised > 1.0,
            is_least: terms.is_least(),
            limit: terms.limit(),
        })
    }

    /// `context` is how many tokens there are now.
    fn in_words(&self, context: Option<usize>) -> String {
        let Self { tokens, carried, growth, fold, is_fixed, is_raised, is_least, limit } = *self;
        let due = match context {
            Some(context) if context > tokens => ", when a run has ended and the summaries are written",
            _ => "",
        };
        let why = if is_fixed {
            "by the setting foldAt".to_owned()
        } else {
            format!("{} carried, {} a request, {} a fold", grouped(carried), grouped(growth), dollars(fold))
        };
        let raised = match (is_least, is_raised) {
            (true, _) => "; raised, because less would not pay for a fold",
            (_, true) => "; raised, because look-ups had eaten what folds saved",
            _ => "",
        };
        let limited = limit.map(|what| format!("; limited, because {what} soon after")).unwrap_or_default();
        format!("at {}{due}: {why}{raised}{limited}", grouped(tokens))
    }
}

impl Bill {
    /// `None` before the first request.
    pub(super) fn of(doing: &Doing, live: &Live) -> Option<Self> {
        let bill = &doing.folding.bill;
        (bill.requests > 0).then(|| Self {
            is_assumed: !doing.folding.reports_cache,
            requests: bill.requests,
            paid: bill.paid / MILLION,
            with_pi_alone: bill.alone / MILLION,
            is_stand_in: Prices::is_stand_in(live.cost),
        })
    }

    pub(super) fn in_words(&self) -> String {
        let Self { requests, paid, with_pi_alone, is_stand_in, is_assumed } = *self;
        // As shown, so that the difference is that of the figures beside it.
        let shown = |amount: f64| {
            let parts = if amount >= 1.0 { 100.0 } else { 1_000.0 };
            (amount * parts).round() / parts
        };
        let alone = match shown(with_pi_alone) - shown(paid) {
            saved if saved.abs() < LEAST / 2.0 => "the same".to_owned(),
            saved => {
                let word = if saved > 0.0 { "less" } else { "more" };
                format!("about {}, so {} {word}", dollars(with_pi_alone), dollars(saved.abs()))
            }
        };
        let typical = if is_stand_in { ", at typical prices" } else { "" };
        let cached =
            if is_assumed { ", if the provider caches prompts (it does not report this)" } else { "" };
        let requests = count(requests, "request");
        format!(
            "{} with summaries, in {requests} since it was opened; with Pi alone {alone}{typical}{cached}",
            dollars(paid)
        )
    }
}

impl Stable {
    fn in_words(&self) -> String {
        let Self { is_compacted, requests, turns, prompt_tokens, read_tokens } = *self;
        let since = if is_compacted { "the last compaction" } else { "the beginning" };
        if requests == 0 {
            return format!("no request since {since}");
        }
        let turns = if turns > 0 { format!(" in {}", count(turns, "turn")) } else { String::new() };
        let cache = match read_tokens {
            Some(read) => {
                let percent = percent(read, prompt_tokens);
                format!("; {percent}% of {} prompt tokens came from the cache", grouped(prompt_tokens))
            }
            None => "; the provider does not report cache use".to_owned(),
        };
        format!("the prompt has only grown since {since}, {}{turns}{cache}", count(requests, "request"))
    }
}
