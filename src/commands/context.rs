//! `/lcm context`: how full the model's context is, what was decided about it and why, and how well the cache
//! works.

use std::fmt;

use serde::Serialize;

use super::spent::{Cache, Change};
use super::{Answer, Command, CommandContext, Doing, args};
use crate::config;
use crate::dag::{Step, Visible, visible};
use crate::error::Result;
use crate::policy::{Action, Decided, Reason};
use crate::pruning::Live;
use crate::recall::Scope;
use crate::store::View;
use crate::text::{count, dollars, grouped};
use crate::tokens;

const NAME: &str = "context";

pub(super) const COMMAND: Command = Command {
    name: NAME,
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

/// The context. The total tokens are Pi's, all others estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    /// `None` while Pi does not know.
    tokens: Option<usize>,
    window: Option<usize>,
    /// The setting.
    context: config::Context,
    /// `None` before the first compaction.
    block: Option<Parts>,
    pruned: Pruned,
    /// Oldest first.
    decided: Vec<Decided>,
    /// Tokens at which Pi compacts automatically, if it does.
    pi_compacts_at: Option<usize>,
    /// `None` before the first request.
    cost: Option<Bill>,
    /// Since the beginning of the prompt last changed.
    cache: Stable,
}

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

/// The block, in tokens.
#[derive(Serialize)]
struct Parts {
    tokens: usize,
    /// Each section with its heading.
    sections: Vec<(String, usize)>,
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
    args::none(NAME, &asked.rest)?;
    let (scope, live) = (asked.scope.clone(), asked.live.clone());
    let read = move |view: &View<'_>| Shown::read(view, &scope, &live);
    let Shown { pruned, cache } = asked.store().read(read).await?;
    let (live, settings, doing) = (asked.live, asked.settings, asked.doing);
    Ok(Answer::of(&Context {
        tokens: live.context_tokens,
        window: live.context_window,
        context: settings.context,
        block: live.block.as_deref().map(Parts::of),
        pruned,
        decided: doing.decided.clone(),
        pi_compacts_at: settings.pi.with(live.model.as_deref()).threshold(live.context_window),
        cost: Bill::of(doing, live),
        cache,
    }))
}

/// The session's part.
struct Shown {
    pruned: Pruned,
    cache: Stable,
}

impl Shown {
    fn read(view: &View<'_>, scope: &Scope, live: &Live) -> Result<Self> {
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
        Ok(Self {
            pruned: Pruned::of(&shown),
            cache: Stable {
                changed_by: change.and_then(|at| Change::by(&branch[at].step)),
                requests: cache.requests,
                turns: since.iter().filter(|entry| is_request(&entry.step)).count(),
                prompt_tokens: cache.prompt_tokens,
                read_tokens: is_reported.then_some(cache.read_tokens),
            },
        })
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
}

/// The smallest difference in dollars worth mentioning.
const LEAST: f64 = 0.001;
/// Costs are counted in millionths.
const MILLION: f64 = 1_000_000.0;

impl Parts {
    fn of(block: &str) -> Self {
        let section = |text: &str| {
            let heading = text.lines().next().unwrap_or_default().to_owned();
            (heading, tokens::estimate(text))
        };
        let sections = block.split("\n### ").skip(1).map(section).collect();
        Self { tokens: tokens::estimate(block), sections }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", grouped(self.tokens))?;
        for (at, (heading, tokens)) in self.sections.iter().enumerate() {
            write!(f, "{} {heading} {}", if at == 0 { ":" } else { "," }, grouped(*tokens))?;
        }
        Ok(())
    }
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
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tokens, self.window) {
            (Some(tokens), Some(window)) => {
                let share = tokens * 100 / window.max(1);
                write!(f, "Context  {} of {} tokens ({share}%)", grouped(tokens), grouped(window))?;
            }
            _ => write!(f, "Context  unknown until the model's next answer")?,
        }
        writeln!(f, ", {}", self.context.as_str())?;
        if let Some(block) = &self.block {
            writeln!(f, "Block    {block}")?;
        }
        writeln!(f, "Stubs    {}", self.pruned)?;
        for (at, decided) in self.decided.iter().rev().enumerate() {
            writeln!(f, "{}  {}", if at == 0 { "Decided" } else { "       " }, DecisionLine(decided))?;
        }
        if let Some(at) = self.pi_compacts_at {
            writeln!(f, "Next     from {} tokens on Pi compacts", grouped(at))?;
        }
        if let Some(cost) = &self.cost {
            writeln!(f, "Cost     {cost}")?;
        }
        write!(f, "Cache    {}", self.cache)
    }
}

/// A decision in one sentence.
struct DecisionLine<'a>(&'a Decided);

impl fmt::Display for DecisionLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decided { request, decision, .. } = self.0;
        let frees = grouped(decision.frees);
        let [costs, carried, saves] =
            [decision.costs.max(0.0), decision.carried, decision.saves].map(|cost| dollars(cost / MILLION));
        write!(f, "after {}: ", count(*request, "request"))?;
        match decision.action {
            Action::Stub(_) => write!(f, "replaced results with stubs, {frees} tokens")?,
            Action::Fold(_) => write!(f, "folded older messages, {frees} tokens")?,
            Action::Summarize(_) => write!(f, "is summarizing older messages to fold them, {frees} tokens")?,
            Action::Leave => write!(f, "no change")?,
        }
        match decision.reason {
            Reason::NothingToGain => write!(f, ": nothing can be removed cheaply enough yet"),
            Reason::NotYet => {
                write!(f, ": keeping {frees} tokens has cost {carried}, removing them would cost {costs}")
            }
            Reason::NotAffordable => {
                write!(f, ": removing {frees} tokens costs {costs}, too much if the session ended now")
            }
            Reason::Due => write!(
                f,
                " (keeping them has cost {carried}, the change costs {costs} and saves {saves} per request)"
            ),
            Reason::Cold => write!(f, " (the prompt was not cached, so the change was free)"),
            Reason::Behind => write!(f, " (Pi alone would have compacted by now)"),
        }
    }
}

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { results, turns, messages, tokens_saved } = self;
        if results + turns == 0 {
            return write!(f, "none");
        }
        let stubs = (*results > 0).then(|| count(*results, "result"));
        let whole = (*turns > 0)
            .then(|| format!("{} with {}", count(*turns, "whole turn"), count(*messages, "more message")));
        let what: Vec<String> = stubs.into_iter().chain(whole).collect();
        write!(f, "{}, about {} tokens less", what.join(", "), grouped(*tokens_saved))
    }
}

impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, paid, with_pi_alone, is_stand_in, is_assumed } = self;
        write!(f, "{} in {} since it was opened", dollars(*paid), count(*requests, "request"))?;
        match with_pi_alone - paid {
            saved if saved.abs() < LEAST => write!(f, "; with Pi alone the same")?,
            saved => {
                let word = if saved > 0.0 { "less" } else { "more" };
                let alone = dollars(*with_pi_alone);
                write!(f, "; with Pi alone about {alone}, so {} {word}", dollars(saved.abs()))?;
            }
        }
        if *is_stand_in {
            write!(f, ", at typical prices")?;
        }
        if *is_assumed {
            write!(f, ", if the provider caches prompts (it does not report this)")
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Stable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changed_by, requests, turns, prompt_tokens, read_tokens } = self;
        let since = match changed_by {
            Some(Change::Compaction) => "the last compaction",
            Some(Change::Pruning) => "the last pruning",
            None => "the beginning",
        };
        write!(f, "the prompt has only grown since {since}, {}", count(*requests, "request"))?;
        if *turns > 0 {
            write!(f, " in {}", count(*turns, "turn"))?;
        }
        match read_tokens {
            Some(read) => {
                let percent = read * 100 / (*prompt_tokens).max(1);
                write!(f, "; {percent}% of {} prompt tokens came from the cache", grouped(*prompt_tokens))
            }
            // Nothing is known before the first request.
            None if *requests == 0 => Ok(()),
            None => write!(f, "; the provider does not report cache use"),
        }
    }
}
