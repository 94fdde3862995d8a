//! `/lcm tree`: draws the summaries of a branch within the available columns.

use std::fmt;

use serde::Serialize;

use super::columns::fit;
use super::{Answer, Command, CommandContext, args};
use crate::error::Result;
use crate::recall::SummaryCard;
use crate::recall::describe::{Item, Overview};
use crate::text::{count, grouped, time_span, timestamp};

const NAME: &str = "tree";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
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

/// The branch divided by its summaries. Tokens are estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tree {
    messages: usize,
    frontier_tokens: usize,
    /// Summaries of the session that cover nothing on this branch.
    elsewhere: usize,
    /// The pieces of the branch, oldest first, each with its topmost summary.
    frontier: Vec<Node>,
    #[serde(skip)]
    width: usize,
}

/// A piece of the branch.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Node {
    Summary(Summary),
    Messages(Messages),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    id: String,
    depth: u32,
    degraded: bool,
    messages: usize,
    tokens: usize,
    from: String,
    to: String,
    title: String,
    #[serde(skip)]
    span: String,
    sources: Vec<Node>,
}

/// Consecutive messages without a summary.
#[derive(Serialize)]
struct Messages {
    messages: usize,
    first: String,
    last: String,
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    args::none(NAME, &asked.rest)?;
    let (Overview { visible, frontier, totals, .. }, tokens) = asked.overview().await?;
    let frontier: Vec<Node> = frontier.into_iter().map(Node::of).collect();
    let here: usize = frontier.iter().map(Node::summaries).sum();
    Ok(Answer::of(&Tree {
        messages: visible,
        frontier_tokens: tokens.frontier,
        elsewhere: totals.summaries.saturating_sub(here),
        frontier,
        width: asked.columns.unwrap_or(WIDTH).max(NARROWEST),
    }))
}

impl Node {
    fn of(item: Item) -> Self {
        match item {
            Item::Messages { count, first, last } => {
                Self::Messages(Messages { messages: count, first, last })
            }
            Item::Summary(card, children) => {
                let SummaryCard {
                    handle, depth, degraded, messages, from_time, to_time, tokens, title, ..
                } = card;
                Self::Summary(Summary {
                    id: handle,
                    depth,
                    degraded,
                    messages,
                    tokens,
                    from: timestamp(from_time),
                    to: timestamp(to_time),
                    title,
                    span: time_span(from_time, to_time),
                    sources: children.into_iter().map(Self::of).collect(),
                })
            }
        }
    }

    /// The number of summaries in it.
    fn summaries(&self) -> usize {
        match self {
            Self::Messages(_) => 0,
            Self::Summary(summary) => 1 + summary.sources.iter().map(Self::summaries).sum::<usize>(),
        }
    }

    fn is_degraded(&self) -> bool {
        match self {
            Self::Messages(_) => false,
            Self::Summary(summary) => summary.degraded || summary.sources.iter().any(Self::is_degraded),
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, size) = (count(self.messages, "message"), grouped(self.frontier_tokens));
        writeln!(f, "{total} on this branch; frontier about {size} tokens")?;
        let mut lines = Vec::new();
        for node in &self.frontier {
            push(node, "● ", "  ", self.width, &mut lines);
        }
        f.write_str(&lines.join("\n"))?;
        if !lines.is_empty() {
            write!(f, "\n● frontier: what represents the branch now")?;
        }
        if self.frontier.iter().any(Node::is_degraded) {
            write!(f, "\n! degraded: made without a model, replaced once one answers")?;
        }
        if self.elsewhere > 0 {
            write!(f, "\n{} of other branches, or superseded", count(self.elsewhere, "more summary"))?;
        }
        Ok(())
    }
}

/// Adds a line for `node` prefixed with `first`, and lines for its sources prefixed with `then`.
fn push(node: &Node, first: &str, then: &str, width: usize, lines: &mut Vec<String>) {
    match node {
        Node::Messages(Messages { messages, first: from, last }) => {
            let range = if *messages == 1 { from.clone() } else { format!("{from} to {last}") };
            let line = format!("{first}{} without a summary: {range}", count(*messages, "message"));
            lines.push(fit(&line, width));
        }
        Node::Summary(summary) => {
            lines.push(fit(&format!("{first}{}", line(summary, width)), width));
            for (n, child) in summary.sources.iter().enumerate() {
                let (branch, below) =
                    if n + 1 == summary.sources.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                push(child, &format!("{then}{branch}"), &format!("{then}{below}"), width, lines);
            }
        }
    }
}

fn line(summary: &Summary, width: usize) -> String {
    let Summary { id, depth, messages, title, span, .. } = summary;
    let degraded = if summary.degraded { "!" } else { "" };
    let span = if width < ROOMY { String::new() } else { format!(" {span}") };
    format!("{id} D{depth}{degraded}{span} {messages}× {title}")
}
