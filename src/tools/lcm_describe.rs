//! `lcm_describe`: a map of the history, in few words.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lines::{list, message, titled};
use super::parameters::{self, read, schema};
use super::{Block, lcm_expand};
use crate::error::{Error, Result};
use crate::model::Files;
use crate::recall::describe::{
    Below, End, Item, Line, MessagePortrait, Overview, Part, Portrait, SummaryPortrait, by_id, earliest,
    overview, recent,
};
use crate::recall::{Scope, SummaryCard};
use crate::store::Store;
use crate::text::{count, minute, time_span};

pub(super) const NAME: &str = "lcm_describe";

/// Lines of a list before it is cut.
const MOST_LINES: usize = 60;
/// Files that are named.
const MOST_FILES: usize = 30;
/// Levels of the frontier that an overview shows.
const LEVELS: usize = 2;

/// What a call says.
#[derive(Debug, Deserialize, JsonSchema)]
struct Parameters {
    /// overview (default): counts and the summaries of this branch. recent, earliest: the newest or oldest messages.
    /// by_id: one summary or message with its lineage.
    #[serde(default)]
    section: Part,
    /// For by_id: id of a summary (s-…) or a message (m-…); any unique prefix.
    #[serde(default, deserialize_with = "parameters::word")]
    summary_id: Option<String>,
}

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Describe history",
        "description": "Map the history: how much there is, which summaries stand for which stretch of time, what a \
            summary was made from and condensed into, where a message belongs.",
        "promptSnippet": "Map the conversation history: summaries, time spans, lineage",
        "parameters": schema::<Parameters>(),
    })
}

pub(super) async fn answer(store: &Store, scope: &Scope, arguments: &str) -> Result<Vec<Block>> {
    let parameters: Parameters = read(NAME, arguments)?;
    let scope = scope.clone();
    store
        .read(move |view| {
            Ok(match (parameters.section, parameters.summary_id) {
                (Part::ById, None) => {
                    return Err(Error::invalid(
                        "section by_id needs a summary_id, e.g. {\"section\":\"by_id\",\"summary_id\":\"s-1a2b3c4d5e\"}",
                    ));
                }
                (Part::ById | Part::Overview, Some(id)) => match by_id(view, &scope, &id)? {
                    Portrait::Summary(portrait) => of_summary(&portrait),
                    Portrait::Message(portrait) => of_message(&portrait),
                },
                (Part::Overview, None) => of_all(&overview(view, &scope)?),
                (Part::Recent, _) => of_end("newest", &recent(view, &scope)?),
                (Part::Earliest, _) => of_end("oldest", &earliest(view, &scope)?),
            })
        })
        .await
        .map(|text| vec![Block::Text(text)])
}

fn of_all(overview: &Overview) -> String {
    let mut out = format!("This session: {} stored", count(overview.totals.messages, "message"));
    let _ = write!(out, ", {} visible on this branch", overview.visible);
    if let Some((from, to)) = overview.times {
        let _ = write!(out, ", {} UTC", time_span(from, to));
    }
    let depths: Vec<String> =
        overview.depths.iter().rev().map(|depth| format!("{} D{}", depth.summaries, depth.depth)).collect();
    if depths.is_empty() {
        out.push_str(". No summaries yet.\n");
    } else {
        let summaries = count(overview.totals.summaries, "summary");
        let _ =
            writeln!(out, ". {summaries} ({}), {} degraded.", depths.join(", "), overview.totals.degraded);
    }
    let others = overview.sessions.saturating_sub(1);
    let project = count(overview.project_messages, "message");
    let _ = writeln!(out, "This project: {}, {project}.\n", count(others, "other session"));
    let mut lines = Vec::new();
    for item in &overview.frontier {
        push_item(item, 0, &mut lines);
    }
    out.push_str("This branch, oldest first:\n");
    out.push_str(&cut(lines, "the rest: by_id with the id of a summary").join("\n"));
    out
}

fn push_item(item: &Item, level: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(level);
    match item {
        Item::Summary(card, children) => {
            lines.push(format!("{indent}- {}", titled(card)));
            if level + 1 < LEVELS {
                children.iter().for_each(|child| push_item(child, level + 1, lines));
            }
        }
        Item::Messages { count: n, first, last } => {
            lines.push(format!("{indent}- {} without a summary: {first} to {last}", count(*n, "message")));
        }
    }
}

fn of_end(which: &str, end: &End) -> String {
    let shown = end.messages.len();
    let heading =
        format!("The {which} {shown} of {} on this branch, oldest first", count(end.visible, "message"));
    let messages = list(&heading, end.messages.iter().map(line));
    format!("{messages}\n{}", list(&format!("The {which} leaf summaries"), end.leaves.iter().map(titled)))
}

fn of_summary(portrait: &SummaryPortrait) -> String {
    let card = &portrait.card;
    let made = match &card.model {
        Some(model) => format!("made by {model}"),
        None => "made without a model".to_owned(),
    };
    let holds = if portrait.holds { "" } else { "It does not stand for anything on this branch.\n" };
    let mut out = format!(
        "{}\n{made} · {} UTC · {} tokens\n{holds}",
        titled(card),
        minute(portrait.created_at),
        card.tokens
    );
    let below = match &portrait.below {
        Below::Summaries(children) => list("Made from, in order", lines_of(children)),
        Below::Messages(messages) => {
            list("Made from, in order", cut(messages.iter().map(line).collect(), "lcm_expand shows them"))
        }
    };
    let above = list("Condensed into, nearest first", lines_of(&portrait.above));
    let _ = write!(out, "{above}\n{below}\n{}\n{}", files(&portrait.files), expand_hint(&card.handle));
    out
}

fn of_message(portrait: &MessagePortrait) -> String {
    let position = match portrait.position {
        Some((at, of)) => format!("message {} of {of} on this branch", at + 1),
        None => "not visible on this branch".to_owned(),
    };
    let Line { card, headline, .. } = &portrait.line;
    format!(
        "{}: {headline}\n{position} · {} bytes of text, {} of JSON · {} tokens\n{}\n{}\n{}",
        message(card),
        portrait.bytes,
        portrait.json_bytes,
        portrait.tokens,
        list("Covered by, from the leaf summary up", lines_of(&portrait.above)),
        files(&portrait.files),
        expand_hint(&card.handle)
    )
}

fn line(line: &Line) -> String {
    let covering = line.leaf.as_ref().map(|leaf| format!(" · in {leaf}")).unwrap_or_default();
    format!("{}{covering}: {}", message(&line.card), line.headline)
}

fn lines_of(cards: &[SummaryCard]) -> Vec<String> {
    cut(cards.iter().map(titled).collect(), "lcm_expand shows them")
}

/// `lines`, the last of too many replaced by how many there are and how to see them.
fn cut(mut lines: Vec<String>, how: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.truncate(MOST_LINES);
        lines.push(format!("… {more} more ({how})"));
    }
    lines
}

fn files(files: &Files) -> String {
    let named = |paths: Vec<&String>| {
        let shown: Vec<&str> = paths.iter().take(MOST_FILES).map(|path| path.as_str()).collect();
        let more = paths.len().saturating_sub(MOST_FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") + &more }
    };
    format!(
        "Files changed: {}. Files only read: {}.",
        named(files.modified.iter().collect()),
        named(files.only_read().collect())
    )
}

fn expand_hint(id: &str) -> String {
    format!("In full: {} {}", lcm_expand::NAME, json!({"summary_id": id}))
}
