//! `/lcm compact --dry-run`: what a compaction would do now. Pi runs the compaction itself.

use std::fmt;

use serde::Serialize;

use super::{Answer, Command, CommandContext, Sentence};
use crate::compaction::{Forecast, forecast};
use crate::error::{Error, Result};
use crate::text::{count, grouped};

pub(super) const COMMAND: Command = Command {
    name: "compact",
    help: "compact now; WORDS: with a focus; --dry-run: only the plan",
    usage: &[
        ("compact", "compacts this branch now, as Pi's own /compact does"),
        ("compact WORDS", "the same, with a focus on WORDS"),
        ("compact --dry-run", "shows what a compaction would do now; calls no model, changes nothing"),
    ],
    arguments: &[("--dry-run", "only the plan")],
    is_long: false,
    answer: |asked| Box::pin(plan(asked)),
};

/// What a compaction would do. Tokens are estimates.
#[derive(Serialize)]
struct Plan {
    kept: Part,
    covered: Part,
    ready: Ready,
    leaves: Leaves,
    condensed: usize,
    healed: usize,
    budget: usize,
    models: Vec<String>,
    #[serde(skip)]
    forecast: Forecast,
}

/// Messages, and their tokens.
#[derive(Serialize)]
struct Part {
    messages: usize,
    tokens: usize,
}

/// Existing summaries, and the messages they cover.
#[derive(Serialize)]
struct Ready {
    summaries: usize,
    messages: usize,
}

/// Leaf summaries to write, and the tokens of their sources.
#[derive(Serialize)]
struct Leaves {
    summaries: usize,
    tokens: usize,
}

/// Answers options; Pi runs everything else.
async fn plan(asked: &CommandContext<'_>) -> Result<Answer> {
    match asked.rest.as_str() {
        "--dry-run" => {}
        rest if rest.starts_with("--") => {
            let option = rest.split_whitespace().next().unwrap_or_default();
            return Err(Error::invalid(format!(
                "/lcm compact has no option {option}: it takes --dry-run, or words to focus on"
            )));
        }
        _ => return Err(Error::invalid("/lcm compact needs a running Pi")),
    }
    let (store, scope, settings) = (asked.store(), asked.scope, asked.settings);
    let found = match &scope.leaf {
        Some(leaf) => {
            forecast(store, scope.conversation, settings, leaf, asked.window, asked.live.model.as_deref())
                .await?
        }
        None => None,
    };
    let Some(forecast) = found else {
        return Ok(Sentence::answer("There is nothing to compact: Pi keeps all of this branch as it is."));
    };
    let named = settings.compaction_models.iter().map(String::as_str);
    let sibling = (named.len() > 0).then_some("the cheapest suitable model of the session's provider");
    let models = named.chain(sibling).chain(["the session's own model"]);
    let part = |(messages, tokens)| Part { messages, tokens };
    Ok(Answer::of(&Plan {
        kept: part(forecast.kept),
        covered: part(forecast.covered),
        ready: Ready { summaries: forecast.ready.0, messages: forecast.ready.1 },
        leaves: Leaves { summaries: forecast.leaves.0, tokens: forecast.leaves.1 },
        condensed: forecast.condensed,
        healed: forecast.healed,
        budget: forecast.budget,
        models: models.map(ToOwned::to_owned).collect(),
        forecast,
    }))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(&self.forecast, &self.models))
    }
}

fn render(forecast: &Forecast, models: &[String]) -> String {
    let row = |name: &str, value: String| format!("\n{name:<10} {value}");
    let tokens = |n: usize| format!("about {} tokens", grouped(n));
    let messages = |n: usize| count(n, "message");
    let mut out = "No model was called, and nothing was changed. A compaction now would".to_owned();
    let Forecast { kept, covered, ready, leaves, .. } = *forecast;
    out += &row("keep", format!("{} at the end, {}, as they are", messages(kept.0), tokens(kept.1)));
    out += &row("cover", format!("{} before that, {}", messages(covered.0), tokens(covered.1)));
    out += &row(
        "reuse",
        format!("{} that are ready, covering {}", count(ready.0, "summary"), messages(ready.1)),
    );
    let written = match (leaves.0, forecast.condensed) {
        (0, 0) => "nothing, all summaries are ready".to_owned(),
        (leaves, condensed) => {
            format!(
                "{} and {condensed} condensed, from {}",
                count(leaves, "leaf summary"),
                tokens(forecast.leaves.1)
            )
        }
    };
    out += &row("write", written);
    if forecast.healed > 0 {
        out += &row("rewrite", format!("{} made without a model", count(forecast.healed, "summary")));
    }
    out += &row("show", format!("a block of at most {} tokens", grouped(forecast.budget)));
    out += &row("ask", models.join(", then "));
    out
}
