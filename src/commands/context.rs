//! `/lcm context`: how full the model's context is, what was pruned of it, what happens next, and how the cache holds.

use std::fmt;

use serde::Serialize;

use super::spent::{Cache, Change};
use super::{Answer, Asked, Command, args};
use crate::config::{Pruning, Settings};
use crate::dag::{Step, Visible, visible};
use crate::error::Result;
use crate::pruning::{Limits, Live, Piece, Zone, plan};
use crate::recall::Scope;
use crate::store::View;
use crate::text::{count, grouped};

const NAME: &str = "context";

pub(super) const COMMAND: Command = Command {
    name: NAME,
    help: "how full the context is, what was pruned, what happens next",
    usage: &[(
        "context",
        "tells the context's tokens and zone, what of it was pruned, what happens at how many tokens, and how the provider's \
         cache has held since the prompt's beginning last changed; /ctx-status is the same",
    )],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// The context. Tokens of the whole are Pi's, all others estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    /// None while Pi does not know.
    tokens: Option<usize>,
    window: Option<usize>,
    zone: Option<Zone>,
    pruning: Pruning,
    yellow_at: Option<usize>,
    red_at: Option<usize>,
    /// What a batch frees at least, and what it could free now.
    batch: Batch,
    pruned: Pruned,
    /// In the order in which it comes.
    next: Vec<Next>,
    /// Since the prompt's beginning last changed.
    cache: Stable,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Batch {
    at_least: Option<usize>,
    now: usize,
}

/// What stands in the context in a shorter form.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    results: usize,
    turns: usize,
    /// Of these turns, beside the users'.
    messages: usize,
    tokens_saved: usize,
}

/// What happens at so many tokens.
#[derive(Serialize)]
struct Next {
    at: usize,
    what: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stable {
    /// None where nothing of ours or of Pi's has changed it.
    changed_by: Option<Change>,
    requests: usize,
    turns: usize,
    prompt_tokens: usize,
    /// Of these, what came out of the provider's cache; none where it does not tell.
    read_tokens: Option<usize>,
}

async fn answer(asked: &Asked<'_>) -> Result<Answer> {
    args::none(NAME, &asked.rest)?;
    let (scope, live, settings) = (asked.scope.clone(), asked.live.clone(), asked.settings.clone());
    let read = move |view: &View<'_>| Context::read(view, &scope, &live, &settings);
    Ok(Answer::of(&asked.store().read(read).await?))
}

impl Context {
    fn read(view: &View<'_>, scope: &Scope, live: &Live, settings: &Settings) -> Result<Self> {
        let branch = match &scope.leaf {
            Some(leaf) => view.branch(scope.conversation, leaf)?,
            None => Vec::new(),
        };
        let first = live.shown_from.as_ref();
        let from = first.and_then(|first| branch.iter().position(|entry| entry.entry_id == *first));
        let mut shown = visible(&branch);
        shown.retain(|message| message.index >= from.unwrap_or_default());
        let model = live.model.as_deref();
        let limits = live.context_window.map(|window| Limits::of(settings, model, window));
        let mut batch = Batch { at_least: limits.map(|limits| limits.least), now: 0 };
        if let (Some(limits), Some(tokens)) = (limits, live.context_tokens) {
            batch.now = plan(&Piece::read_all(view, &shown)?, &limits, tokens).freed;
        }
        let change = branch.iter().rposition(|entry| Change::by(&entry.step).is_some());
        let since = &branch[change.map_or(0, |at| at + 1)..];
        let (cache, is_told) = Cache::read(view, since)?;
        let is_request = |step: &Step| matches!(step, Step::Message(message) if message.role == "user");
        Ok(Self {
            tokens: live.context_tokens,
            window: live.context_window,
            zone: limits.zip(live.context_tokens).map(|(limits, tokens)| limits.zone(tokens)),
            pruning: settings.pruning,
            yellow_at: limits.and_then(|limits| limits.yellow),
            red_at: limits.and_then(|limits| limits.red),
            batch,
            pruned: Pruned::of(&shown),
            next: next(live, settings, limits.as_ref()),
            cache: Stable {
                changed_by: change.and_then(|at| Change::by(&branch[at].step)),
                requests: cache.requests,
                turns: since.iter().filter(|entry| is_request(&entry.step)).count(),
                prompt_tokens: cache.prompt_tokens,
                read_tokens: is_told.then_some(cache.read_tokens),
            },
        })
    }

    /// Is it full enough for a batch, which is not worth it yet?
    fn waits(&self) -> Option<usize> {
        let is_in = self.pruning != Pruning::Off && self.zone.is_some_and(|zone| zone > Zone::Green);
        self.batch.at_least.filter(|_| is_in)
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

/// What is still to come as the context grows.
fn next(live: &Live, settings: &Settings, limits: Option<&Limits>) -> Vec<Next> {
    let (Some(window), Some(limits)) = (live.context_window, limits) else { return Vec::new() };
    let is_pruned = settings.pruning != Pruning::Off;
    let red = match settings.pruning {
        Pruning::Turns => "red: whole older turns give way to one line each",
        _ => "red: smaller results of tools in older turns give way too",
    };
    let steps = [
        (
            limits.yellow.filter(|_| is_pruned),
            "yellow: bulky results of tools in older turns give way to stubs",
        ),
        (limits.red.filter(|_| is_pruned), red),
        (settings.compact_at.tokens(live.model.as_deref(), window), "the extension compacts (compactAt)"),
        (window.checked_sub(settings.pi.reserve_tokens).filter(|_| settings.pi.enabled), "Pi compacts"),
    ];
    let tokens = live.context_tokens.unwrap_or_default();
    let to_come =
        |(at, what): (Option<usize>, &'static str)| at.filter(|at| *at > tokens).map(|at| Next { at, what });
    let mut next: Vec<Next> = steps.into_iter().filter_map(to_come).collect();
    next.sort_by_key(|next| next.at);
    next
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tokens, self.window, self.zone) {
            (Some(tokens), Some(window), Some(zone)) => {
                let share = tokens * 100 / window.max(1);
                writeln!(
                    f,
                    "Context  {} of {} tokens ({share}%), {}",
                    grouped(tokens),
                    grouped(window),
                    zone.as_str()
                )?;
            }
            _ => writeln!(f, "Context  how full it is, Pi knows with the model's next answer")?,
        }
        self.fmt_pruning(f)?;
        for (at, Next { at: tokens, what }) in self.next.iter().enumerate() {
            writeln!(
                f,
                "{}  from {} tokens on: {what}",
                if at == 0 { "Next   " } else { "       " },
                grouped(*tokens)
            )?;
        }
        write!(f, "Cache    {}", self.cache)
    }
}

impl Context {
    fn fmt_pruning(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pruned { results, turns, messages, tokens_saved } = &self.pruned;
        write!(f, "Pruned   ")?;
        match (results + turns, self.pruning) {
            (0, Pruning::Off) => writeln!(f, "nothing: the setting `pruning` is off")?,
            (0, mode) => writeln!(f, "nothing yet ({})", mode.as_str())?,
            (_, mode) => {
                let stubs = (*results > 0).then(|| count(*results, "result"));
                let whole = (*turns > 0).then(|| {
                    format!("{} with {}", count(*turns, "whole turn"), count(*messages, "more message"))
                });
                let what: Vec<String> = stubs.into_iter().chain(whole).collect();
                writeln!(
                    f,
                    "{}: about {} tokens saved ({})",
                    what.join(", "),
                    grouped(*tokens_saved),
                    mode.as_str()
                )?;
            }
        }
        match self.waits() {
            Some(least) => writeln!(
                f,
                "         {} tokens could be freed now; the next batch frees {} or more",
                grouped(self.batch.now),
                grouped(least)
            ),
            None => Ok(()),
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
        let turns = count(*turns, "turn");
        write!(f, "the prompt has only grown since {since}, {} in {turns}", count(*requests, "request"))?;
        match read_tokens {
            Some(read) => {
                let percent = read * 100 / (*prompt_tokens).max(1);
                write!(f, "; {percent}% of {} prompt tokens came out of the cache", grouped(*prompt_tokens))
            }
            // Of none yet nobody can tell.
            None if *requests == 0 => Ok(()),
            None => write!(f, "; the provider does not tell of its cache"),
        }
    }
}
