//! `/lcm tree`: draws the summaries of a branch within the available columns.

use serde_json::{Value, json};

use super::sessions::heading;
use super::style::fit;
use super::{Answer, Command, CommandContext};
use lcm_model::error::Result;
use lcm_model::text::{count, grouped, local_span, timestamp};
use lcm_recall::SummaryCard;
use lcm_recall::describe::{Item, Overview};

pub(crate) const COMMAND: Command = Command {
    name: "tree",
    help: "the summaries of this branch, and what each covers",
    usage: &[("tree", "draws the DAG of this branch, oldest first, each summary above its sources")],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// The default width in columns, and the smallest.
const WIDTH: usize = 80;
const NARROWEST: usize = 40;
/// Below this width, times would leave no room for a title.
const ROOMY: usize = 72;

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    asked.rest.none()?;
    let (Overview { visible, frontier, totals, .. }, tokens) = asked.overview().await?;
    let (mut here, mut has_degraded) = (0, false);
    let mut lines = Vec::new();
    let width = asked.request.columns.unwrap_or(WIDTH).max(NARROWEST);
    for item in &frontier {
        push(item, "● ", "  ", width, &mut lines);
        each(item, &mut |card| {
            here += 1;
            has_degraded |= card.degraded;
        });
    }
    let total = count(visible, "message");
    let size = grouped(tokens.frontier);
    let total = heading(asked).await? + &total;
    let mut out = format!("{total} on this branch, represented by about {size} tokens\n{}", lines.join("\n"));
    if !lines.is_empty() {
        out += "\n● represents the branch now, or from the next fold on";
    }
    if has_degraded {
        out += "\n! degraded: made without a model, replaced once one answers";
    }
    // Summaries of the session that cover nothing on this branch.
    let elsewhere = totals.summaries.saturating_sub(here);
    if elsewhere > 0 {
        out += &format!("\n{} of other branches, or replaced by these", count(elsewhere, "more summary"));
    }
    let json = json!({
        "messages": visible, "frontierTokens": tokens.frontier, "elsewhere": elsewhere,
        "frontier": frontier.iter().map(as_json).collect::<Value>(),
    });
    Ok(Answer::new(out, json))
}

fn as_json(item: &Item) -> Value {
    match item {
        Item::Messages { count, first, last } => {
            json!({"kind": "messages", "messages": count, "first": first, "last": last})
        }
        Item::Summary(card, sources) => json!({
            "kind": "summary", "id": card.handle, "depth": card.depth, "degraded": card.degraded,
            "messages": card.messages, "tokens": card.tokens, "from": timestamp(card.from_time),
            "to": timestamp(card.to_time), "title": card.title,
            "sources": sources.iter().map(as_json).collect::<Value>(),
        }),
    }
}

/// Visits every summary of an item.
pub(super) fn each(item: &Item, visit: &mut impl FnMut(&SummaryCard)) {
    if let Item::Summary(card, sources) = item {
        visit(card);
        sources.iter().for_each(|source| each(source, visit));
    }
}

/// Adds a line for `item` prefixed with `first`, and lines for its sources prefixed with `then`.
fn push(item: &Item, first: &str, then: &str, width: usize, lines: &mut Vec<String>) {
    match item {
        Item::Messages { count: messages, first: from, last } => {
            let range = if *messages == 1 { from.clone() } else { format!("{from} to {last}") };
            let line = format!("{first}{} without a summary: {range}", count(*messages, "message"));
            lines.push(fit(&line, width));
        }
        Item::Summary(card, sources) => {
            lines.push(fit(&format!("{first}{}", line(card, width)), width));
            for (n, source) in sources.iter().enumerate() {
                let (branch, below) =
                    if n + 1 == sources.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                push(source, &format!("{then}{branch}"), &format!("{then}{below}"), width, lines);
            }
        }
    }
}

fn line(card: &SummaryCard, width: usize) -> String {
    let SummaryCard { handle, depth, messages, title, .. } = card;
    let degraded = if card.degraded { "!" } else { "" };
    let span = local_span(card.from_time, card.to_time);
    let span = if width < ROOMY { String::new() } else { format!(" {span}") };
    format!("{handle} D{depth}{degraded}{span} {messages}× {title}")
}
