//! `/lcm tree`: the summaries of a branch, drawn within 80 columns.

use crate::model::is_ideograph;
use crate::recall::SummaryCard;
use crate::recall::describe::{Item, Overview};
use crate::text::{count, grouped, time_span};

/// Columns of a line.
const WIDTH: usize = 80;

pub(super) fn render(overview: &Overview) -> String {
    let total = count(overview.visible, "message");
    let size = grouped(overview.frontier_tokens);
    let mut lines = vec![format!("{total} on this branch; its summaries and the rest: about {size} tokens")];
    for item in &overview.frontier {
        push(item, "", "", &mut lines);
    }
    lines.join("\n")
}

/// A line for `item` behind `first`; those for what is under it behind `then`.
fn push(item: &Item, first: &str, then: &str, lines: &mut Vec<String>) {
    match item {
        Item::Messages { count: n, first: from, last } => {
            let range = if n == &1 { from.clone() } else { format!("{from} to {last}") };
            lines.push(fit(&format!("{first}{} without a summary: {range}", count(*n, "message"))));
        }
        Item::Summary(card, children) => {
            lines.push(fit(&format!("{first}{}", line(card))));
            for (n, child) in children.iter().enumerate() {
                let (branch, below) =
                    if n + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                push(child, &format!("{then}{branch}"), &format!("{then}{below}"), lines);
            }
        }
    }
}

fn line(card: &SummaryCard) -> String {
    let degraded = if card.degraded { " DEGRADED" } else { "" };
    let span = time_span(card.from_time, card.to_time);
    format!("{} D{}{degraded} {span} {}× {}", card.handle, card.depth, card.messages, card.title)
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
