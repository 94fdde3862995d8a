//! `/lcm tree`: the summaries of a branch, drawn within 80 columns.

use std::fmt;

use serde::Serialize;

use super::{Answer, Asked, Command, args};
use crate::error::Result;
use crate::model::is_ideograph;
use crate::recall::SummaryCard;
use crate::recall::describe::{Item, Overview};
use crate::text::{count, grouped, time_span, timestamp};

const NAME: &str = "tree";

pub(super) const COMMAND: Command = Command {
    name: NAME,
    help: "the summaries of this branch, and what each stands for",
    usage: &[(
        "tree",
        "draws the summaries of this branch, those on top first, each above what it was made from",
    )],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// Columns of a line.
const WIDTH: usize = 80;

/// The branch as its summaries divide it. Tokens are estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tree {
    messages: usize,
    frontier_tokens: usize,
    frontier: Vec<Node>,
}

/// A piece of it, oldest first.
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

/// Messages in a row without a summary.
#[derive(Serialize)]
struct Messages {
    messages: usize,
    first: String,
    last: String,
}

async fn answer(asked: &Asked<'_>) -> Result<Answer> {
    args::none(NAME, &asked.rest)?;
    let Overview { visible, frontier_tokens, frontier, .. } = asked.overview().await?;
    let frontier = frontier.into_iter().map(Node::of).collect();
    Ok(Answer::of(&Tree { messages: visible, frontier_tokens, frontier }))
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
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, size) = (count(self.messages, "message"), grouped(self.frontier_tokens));
        let mut lines =
            vec![format!("{total} on this branch; its summaries and the rest: about {size} tokens")];
        for node in &self.frontier {
            push(node, "", "", &mut lines);
        }
        f.write_str(&lines.join("\n"))
    }
}

/// A line for `node` behind `first`; those for what is under it behind `then`.
fn push(node: &Node, first: &str, then: &str, lines: &mut Vec<String>) {
    match node {
        Node::Messages(Messages { messages, first: from, last }) => {
            let range = if *messages == 1 { from.clone() } else { format!("{from} to {last}") };
            lines.push(fit(&format!("{first}{} without a summary: {range}", count(*messages, "message"))));
        }
        Node::Summary(summary) => {
            lines.push(fit(&format!("{first}{}", line(summary))));
            for (n, child) in summary.sources.iter().enumerate() {
                let (branch, below) =
                    if n + 1 == summary.sources.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                push(child, &format!("{then}{branch}"), &format!("{then}{below}"), lines);
            }
        }
    }
}

fn line(summary: &Summary) -> String {
    let Summary { id, depth, messages, title, span, .. } = summary;
    let degraded = if summary.degraded { " DEGRADED" } else { "" };
    format!("{id} D{depth}{degraded} {span} {messages}× {title}")
}

/// `line`, cut where a terminal would break it.
fn fit(line: &str) -> String {
    let columns = |c: char| if is_ideograph(c) { 2 } else { 1 };
    if line.chars().map(columns).sum::<usize>() <= WIDTH {
        return line.to_owned();
    }
    let mut width = 1;
    let fitting = line.chars().take_while(|c| {
        width += columns(*c);
        width <= WIDTH
    });
    fitting.collect::<String>() + "…"
}
