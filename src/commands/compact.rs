//! `/lcm compact --dry-run`: what a compaction would do now. The compaction itself is Pi's to run.

use crate::compaction::{Forecast, forecast};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::recall::Scope;
use crate::store::Store;
use crate::text::{count, grouped};

/// What it does, in a line.
pub(super) const HELP: &str =
    "compact now; words after it say what to focus on. --dry-run: the plan, without a call";

/// Answers `/lcm compact <rest>` where `rest` begins with an option; `window` is the model's, in tokens.
///
/// # Errors
/// When the option is none, or the store can't be read.
pub async fn plan(
    store: &Store,
    scope: &Scope,
    settings: &Settings,
    window: Option<usize>,
    rest: &str,
) -> Result<String> {
    if rest.trim() != "--dry-run" {
        let option = rest.split_whitespace().next().unwrap_or_default();
        return Err(Error::invalid(format!(
            "/lcm compact has no option {option}: it takes --dry-run alone, or words that say what to focus on"
        )));
    }
    let nothing = "There is nothing to compact: Pi keeps all of this branch as it is.";
    let Some(leaf) = &scope.leaf else { return Ok(nothing.into()) };
    let found = forecast(store, scope.conversation, settings, leaf, window).await?;
    Ok(found.map_or_else(|| nothing.into(), |forecast| render(&forecast, settings)))
}

fn render(forecast: &Forecast, settings: &Settings) -> String {
    let row = |name: &str, value: String| format!("\n{name:<10} {value}");
    let tokens = |n: usize| format!("about {} tokens", grouped(n));
    let messages = |n: usize| count(n, "message");
    let mut out = "No model was asked, and nothing was changed. A compaction now would".to_owned();
    let Forecast { kept, covered, ready, leaves, .. } = *forecast;
    out += &row("keep", format!("{} at the end, {}, as they are", messages(kept.0), tokens(kept.1)));
    out += &row("cover", format!("{} before that, {}", messages(covered.0), tokens(covered.1)));
    out += &row("take", format!("{} that are ready, of {}", count(ready.0, "summary"), messages(ready.1)));
    let written = match (leaves.0, forecast.condensed) {
        (0, 0) => "nothing: all is ready".to_owned(),
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
        out += &row("try again", format!("{} that no model wrote", count(forecast.healed, "summary")));
    }
    out += &row("show", format!("a block of at most {} tokens", grouped(forecast.budget)));
    let models = settings.compaction_models.iter().map(String::as_str).chain(["the session's own model"]);
    out += &row("ask", models.collect::<Vec<_>>().join(", then "));
    out
}
