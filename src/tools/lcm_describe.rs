//! `lcm_describe`: a compact map of the history.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::lines::{self, list, message, titled};
use super::parameters::{read, schema};
use super::{Block, IDS, lcm_expand};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, PI};
use lcm_model::text::{count, grouped, in_line, minute, one_line, time_span};
use lcm_model::{Files, agent_of_session};
use lcm_recall::describe::{
    End, HEADLINE, Item, MessageLine, MessagePortrait, Overview, Portrait, Section, SummaryPortrait,
    SummarySources, end, overview, portrait,
};
use lcm_recall::grep::Location;
use lcm_recall::{Scope, SummaryCard, name_of, resolve};
use lcm_store::{SessionFacts, View};

pub(super) const NAME: &str = "lcm_describe";

/// The most lines of a list.
const MOST_LINES: usize = 60;
/// The most files listed.
const MOST_FILES: usize = 30;
/// Characters of a path.
const PATH: usize = 200;
/// The most other sessions listed.
const MOST_SESSIONS: usize = 10;
/// The most sessions of other agents listed.
const MOST_OF_AGENTS: usize = 3;
/// The most quotes shown.
const MOST_QUOTES: usize = 20;

/// The arguments of a call.
#[derive(Debug, Deserialize, JsonSchema)]
struct DescribeParameters {
    /// Default: overview (counts, the tree of summaries, other sessions). by_id: one summary or message with its lineage.
    #[serde(default)]
    section: Section,
    /// For by_id: id of a summary or message.
    summary_id: Option<String>,
}

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Describe history",
        "description": "Map the history when you don't know what to search for: how it began, its summaries, other sessions, \
            what a summary was made from.",
        "parameters": schema::<DescribeParameters>(),
    })
}

pub(super) fn answer(
    view: &View<'_>,
    scope: &Scope,
    arguments: &str,
    _: &CancellationToken,
) -> Result<Vec<Block>> {
    let parameters: DescribeParameters = read(NAME, arguments)?;
    let text = match (parameters.section, parameters.summary_id) {
        (Section::ById, None) => {
            return Err(Error::invalid(
                "section by_id needs a summary_id, e.g. {\"section\":\"by_id\",\"summary_id\":\"s-1a2b3c4d5e\"}",
            ));
        }
        (Section::ById | Section::Overview, Some(id)) => {
            match portrait(view, scope, resolve(view, scope, &id, IDS)?)? {
                Portrait::Summary(portrait) => of_summary(&portrait),
                Portrait::Message(portrait) => of_message(&portrait),
            }
        }
        (Section::Recent | Section::Earliest, Some(_)) => {
            return Err(Error::invalid(
                "sections recent and earliest take no summary_id: leave it out, or ask for section by_id",
            ));
        }
        (Section::Overview, None) => of_all(&overview(view, scope)?) + &others(view, scope)?,
        (Section::Recent, _) => of_end("newest", &end(view, scope, true)?),
        (Section::Earliest, _) => of_end("oldest", &end(view, scope, false)?),
    };
    Ok(vec![Block::Text(text)])
}

fn of_all(overview: &Overview) -> String {
    let mut out = format!("This session: {} stored", count(overview.totals.messages, "message"));
    let _ = write!(out, ", {} visible on this branch", grouped(overview.visible));
    if let Some((from, to)) = overview.times {
        let _ = write!(out, ", {} UTC", time_span(from, to));
    }
    let depths: Vec<String> =
        overview.depths.iter().rev().map(|depth| format!("{} D{}", depth.summaries, depth.depth)).collect();
    if depths.is_empty() {
        out.push_str(". No summaries yet.\n");
    } else {
        let summaries = count(overview.totals.summaries, "summary");
        let mut models = Vec::new();
        overview.frontier.iter().for_each(|item| models_of(item, &mut models));
        let models: Vec<String> = models.iter().map(|model| lines::name(model)).collect();
        let by = if models.is_empty() { String::new() } else { format!(", by {}", models.join(", ")) };
        let _ = writeln!(
            out,
            ". {summaries} ({}), {} degraded{by}.",
            depths.join(", "),
            overview.totals.degraded
        );
    }
    let (sessions, messages) =
        (count(overview.sessions, "session"), count(overview.project_messages, "message"));
    let _ = writeln!(out, "This project: {messages}, {sessions}.\n");
    out.push_str("This branch, oldest first:\n");
    out.push_str(&cut(tree(&overview.frontier), "the rest: by_id with the id of a summary").join("\n"));
    out
}

/// The other sessions of the project; costs the length of those listed.
fn others(view: &View<'_>, scope: &Scope) -> Result<String> {
    let (mut of_pi, mut of_agents) = (Vec::new(), BTreeMap::<_, usize>::new());
    for id in view.messages().other_sessions(scope.conversation, i32::MAX as usize)? {
        match agent_of_session(&view.messages().session_id(id)?) {
            None => of_pi.push(id),
            Some(agent) => *of_agents.entry(agent).or_default() += 1,
        }
    }
    let (pis, agents) = (of_pi.len(), of_agents.values().sum());
    of_pi.truncate(MOST_SESSIONS);
    let each: Vec<String> = of_agents.iter().map(|(agent, sessions)| format!("{agent} {sessions}")).collect();
    let each = format!(" (in all: {})", each.join(", "));
    let most = of_agents.iter().max_by_key(|(_, sessions)| **sessions).map_or(PI, |(agent, _)| agent);
    let mut out = String::new();
    for (heading, ids, all, each, agent) in [
        ("Other sessions, the last used first; lcm_grep searches one with \"session\":", of_pi, pis, "", PI),
        (
            "Other agents here, the last active first:",
            view.messages().sessions_of_agents(MOST_OF_AGENTS)?,
            agents,
            &each,
            most,
        ),
    ] {
        let shown = ids.len();
        let listed = ids.into_iter().map(|id| session(view, id)).collect::<Result<Vec<_>>>()?;
        if shown > 0 {
            let _ = write!(out, "\n\n{heading}\n{}", listed.join("\n"));
        }
        if all > shown {
            let how = json!({"query": ".", "mode": "regex", "session": "project", "agent": agent, "count": "session"});
            let _ = write!(out, "\n… {} more{each}; those of {agent}: lcm_grep {how}", grouped(all - shown));
        }
    }
    Ok(out)
}

fn session(view: &View<'_>, id: ConversationId) -> Result<String> {
    let SessionFacts { session_id, messages, from_time, to_time, first_request } =
        view.messages().session_facts(id)?;
    let request = first_request.map(|request| view.messages().parsed(request)).transpose()?;
    let headline = request.map(|request| request.headline(HEADLINE)).unwrap_or_default();
    let (name, span) = (lines::name(&name_of(view, &session_id)?), time_span(from_time, to_time));
    Ok(format!("- {name} · {span} UTC · {}: {headline}", count(messages, "message")))
}

/// The models that wrote the summaries of an item, each once.
fn models_of(item: &Item, models: &mut Vec<String>) {
    if let Item::Summary(card, children) = item {
        children.iter().for_each(|child| models_of(child, models));
        models.extend(card.model.iter().filter(|model| !models.contains(model)).cloned().collect::<Vec<_>>());
    }
}

/// The frontier, with as many levels under it as fit into the lines.
fn tree(frontier: &[Item]) -> Vec<String> {
    let with = |levels| {
        let mut lines = Vec::new();
        frontier.iter().for_each(|item| push_item(item, 0, levels, &mut lines));
        lines
    };
    let depths = frontier.iter().filter_map(|item| match item {
        Item::Summary(card, _) => Some(card.depth),
        Item::Messages { .. } => None,
    });
    let mut lines = with(1);
    for levels in 2..=depths.max().unwrap_or_default() + 1 {
        let deeper = with(levels);
        if deeper.len() > MOST_LINES {
            break;
        }
        lines = deeper;
    }
    lines
}

fn push_item(item: &Item, level: u32, levels: u32, lines: &mut Vec<String>) {
    let indent = "  ".repeat(level as usize);
    match item {
        Item::Summary(card, children) => {
            let is_open = level + 1 < levels;
            let below = if is_open || children.is_empty() {
                String::new()
            } else {
                format!(" ({} under it)", count(children.len(), "summary"))
            };
            lines.push(format!("{indent}- {}{below}", titled(card)));
            if is_open {
                children.iter().for_each(|child| push_item(child, level + 1, levels, lines));
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
    let mut messages = list(&heading, end.messages.iter().map(line));
    if !end.requests.is_empty() {
        let side = if which == "newest" { "before" } else { "after" };
        messages.push('\n');
        messages.push_str(&list(&format!("What the user said {side} them"), end.requests.iter().map(line)));
    }
    format!("{messages}\n{}", list(&format!("The {which} leaf summaries"), end.leaves.iter().map(titled)))
}

fn of_summary(portrait: &SummaryPortrait) -> String {
    let card = &portrait.card;
    let made = match &card.model {
        Some(model) => format!("made by {}", lines::name(model)),
        None => "made without a model".to_owned(),
    };
    let holds = match &portrait.session {
        Some(session) => format!("It is in another session, {}\n", lines::session(session)),
        None if portrait.holds => String::new(),
        None => "It covers nothing on this branch.\n".to_owned(),
    };
    let mut out = format!(
        "{}\n{made} · {} UTC · {} tokens\n{holds}",
        titled(card),
        minute(portrait.created_at),
        card.tokens
    );
    let below = match &portrait.below {
        SummarySources::Summaries(children) => list("Made from, in order", lines_of(children)),
        SummarySources::Messages(messages) => {
            list("Made from, in order", cut(messages.iter().map(line).collect(), "lcm_expand shows them"))
        }
    };
    let above = list("Condensed into, nearest first", lines_of(&portrait.above));
    let _ = write!(out, "{above}\n{below}\n");
    if !portrait.quotes.is_empty() {
        let quotes = portrait.quotes.iter().rev().take(MOST_QUOTES);
        let quotes = quotes.map(|quote| format!("{}: \"{}\"", quote.kind.as_str(), in_line(&quote.text)));
        let _ = writeln!(out, "{}", list("Rules and tasks, word for word, newest first", quotes));
    }
    let _ = write!(out, "{}{}", files(&portrait.files), expand_hint(&card.handle));
    out
}

fn of_message(portrait: &MessagePortrait) -> String {
    let position = match (portrait.position, portrait.place, &portrait.session) {
        (Some((at, of)), ..) => format!("message {} of {} on this branch", grouped(at + 1), grouped(of)),
        (None, Location::Here, _) => "on this branch, changed or hidden by an edit".to_owned(),
        (None, Location::OtherSession, Some(session)) => {
            format!("in another session, {}", lines::session(session))
        }
        (None, Location::OtherSessionBranch, Some(session)) => {
            format!("on an abandoned branch of another session, {}", lines::session(session))
        }
        (None, ..) => "on another branch".to_owned(),
    };
    let MessageLine { card, headline, .. } = &portrait.line;
    format!(
        "{}: {headline}\n{position} · {} bytes of text, {} of JSON · {} tokens\n{}\n{}{}",
        message(card),
        portrait.bytes,
        portrait.json_bytes,
        portrait.tokens,
        list("Covered by, from the leaf summary up", lines_of(&portrait.above)),
        files(&portrait.files),
        expand_hint(&card.handle)
    )
}

fn line(line: &MessageLine) -> String {
    let covering = line.leaf.as_ref().map(|leaf| format!(" · in {leaf}")).unwrap_or_default();
    format!("{}{covering}: {}", message(&line.card), line.headline)
}

fn lines_of(cards: &[SummaryCard]) -> Vec<String> {
    cut(cards.iter().map(titled).collect(), "lcm_expand shows them")
}

/// `lines`; if there are too many, the last are replaced by their number and how to see them.
fn cut(mut lines: Vec<String>, how: &str) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.truncate(MOST_LINES);
        lines.push(format!("… {more} more ({how})"));
    }
    lines
}

/// A line on the files that Pi's tools touched; empty without any, as commands and other agents' tools may have touched some.
fn files(files: &Files) -> String {
    if files.modified.is_empty() && files.read.is_empty() {
        return String::new();
    }
    let named = |paths: Vec<&String>| {
        let shown: Vec<String> = paths.iter().take(MOST_FILES).map(|path| one_line(path, PATH)).collect();
        let more = paths.len().saturating_sub(MOST_FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") + &more }
    };
    format!(
        "Files changed: {}. Files only read: {}.\n",
        named(files.modified.iter().collect()),
        named(files.only_read().collect())
    )
}

fn expand_hint(id: &str) -> String {
    format!("In full: {} {}", lcm_expand::NAME, json!({"summary_id": id}))
}
