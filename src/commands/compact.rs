//! `/lcm compact --dry-run`: what a compaction would do now. Pi runs the compaction itself.

use std::sync::Arc;

use serde_json::json;

use super::style::table;
use super::{Answer, Command, CommandContext, Summarizer};
use lcm_compaction::{Forecast, Session, forecast};
use lcm_model::error::{Error, Result};
use lcm_model::text::{count, grouped};

const DRY_RUN: &str = "--dry-run";

pub(super) const COMMAND: Command = Command {
    name: "compact",
    help: "compact now; WORDS: with a focus; --dry-run: only the plan",
    usage: &[
        ("compact", "compacts this branch now, as Pi's own /compact does"),
        ("compact WORDS", "the same, with a focus on WORDS"),
        ("compact --dry-run", "shows what a compaction would do now; calls no model, changes nothing"),
    ],
    arguments: &[(DRY_RUN, "only the plan")],
    is_long: false,
    answer: |asked| Box::pin(plan(asked)),
};

/// Answers options; Pi runs everything else.
async fn plan(asked: &CommandContext<'_>) -> Result<Answer> {
    let text = asked.rest.text.as_str();
    if let Some(option) = text.split_whitespace().next().filter(|word| word.starts_with("--")) {
        return Err(Error::invalid(format!(
            "/lcm compact has no option {option}: it takes --dry-run, or words to focus on"
        )));
    }
    if !asked.rest.has(DRY_RUN) {
        return Err(Error::invalid("/lcm compact needs a running Pi"));
    }
    let (store, scope, settings) = (asked.store(), asked.scope, asked.settings);
    let nothing =
        || Ok(Answer::sentence("There is nothing to compact: Pi keeps all of this branch as it is."));
    let Some(leaf) = &scope.leaf else { return nothing() };
    let (conversation, memory, live) = (scope.conversation, Arc::default(), &asked.request.live);
    let session = Session { store, conversation, memory, settings, can_recall: true };
    let Some(forecast) = forecast(session, leaf, live).await? else {
        return nothing();
    };
    if forecast.is_pis {
        return Ok(Answer::sentence(format!(
            "Pi would compact this branch by itself: {} to compact, fewer than minMessagesForCompaction ({}).",
            count(forecast.covered.0, "message"),
            settings.min_messages_for_compaction
        )));
    }
    Ok(planned(&forecast, &asked.request.summarizers, asked.request.columns))
}

fn planned(forecast: &Forecast, models: &[Summarizer], columns: Option<usize>) -> Answer {
    let Forecast { kept, covered, ready, leaves, healed, condensed, budget, refused, .. } = *forecast;
    let json = json!({
        "kept": {"messages": kept.0, "tokens": kept.1},
        "covered": {"messages": covered.0, "tokens": covered.1},
        "ready": {"summaries": ready.0, "messages": ready.1},
        "leaves": {"summaries": leaves.0, "tokens": leaves.1},
        "condensed": condensed, "healed": healed, "budget": budget, "refused": refused.is_some(), "models": models,
    });
    let tokens = |n: usize| format!("about {} tokens", grouped(n));
    let messages = |n: usize| count(n, "message");
    let summaries = count(ready.0, "ready summary");
    let mut rows = vec![
        ("keep", format!("{} at the end, {}, unchanged", messages(kept.0), tokens(kept.1))),
        ("cover", format!("{} before that, {}", messages(covered.0), tokens(covered.1))),
        ("reuse", format!("{summaries}, covering {}", messages(ready.1))),
    ];
    let written = match (leaves.0, condensed) {
        (0, 0) => "nothing, all summaries are ready".to_owned(),
        (n, _) => {
            format!("{} and {condensed} condensed, from {}", count(n, "leaf summary"), tokens(leaves.1))
        }
    };
    rows.push(("write", written));
    if healed > 0 {
        let healed = count(healed, "summary");
        rows.push(("rewrite", format!("{healed} that no model made, or that /lcm redo names")));
    }
    rows.push(("show", format!("a block of at most {} tokens", grouped(budget))));
    let models: Vec<String> = models.iter().map(Summarizer::in_words).collect();
    rows.push(("ask", if models.is_empty() { "no model".to_owned() } else { models.join(", then ") }));
    let rows = table(&rows, 11, columns);
    let mut text = format!("No model was called, and nothing was changed. A compaction would\n{rows}");
    if let Some((shown, keeps)) = refused {
        text += &format!(
            "\n\nPi refuses it now: since the last one there are {}, and it keeps {} (compaction.keepRecentTokens). In the TUI or rpc \
             mode, /lcm compact then folds when a turn ends, if that frees enough.",
            tokens(shown),
            grouped(keeps)
        );
    }
    Answer::new(text, json)
}
