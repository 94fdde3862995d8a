//! `lcm_grep`: a search, with one line per result.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::parameters::{read, schema};
use super::{Block, lines};
use lcm_model::error::{Error, Result};
use lcm_model::text::{self, count};
use lcm_recall::grep::{
    Branches, Kinds, Location, MOST_COUNTED, Mode, Question, SearchHit, SearchResults, Searched, Sort,
    fold_equals, grep,
};
use lcm_recall::{Card, Scope};
use lcm_store::View;

/// How long a regular expression may search before the answer says how far it got.
const PATIENCE: Duration = Duration::from_secs(10);
pub const NAME: &str = "lcm_grep";

/// Bytes of an answer: about as many tokens as the longest page of `lcm_expand`.
const MOST_BYTES: usize = 32_000;

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Search history",
        "description": "Search everything ever said in this session, compacted or not: requests, replies, tool calls and output. \
            Start here: the snippets often are the answer; else lcm_expand an id.",
        "parameters": schema::<Question>(),
    })
}

pub(super) fn answer(
    view: &View<'_>,
    scope: &Scope,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<Vec<Block>> {
    let mut question = Question { patience: PATIENCE, ..read(NAME, arguments)? };
    contradictions(&question)?;
    let now = text::now();
    loop {
        let mut findings = grep(view, scope, &question, cancel)?;
        let found = findings.hits.len();
        findings.hits = fold_equals(findings.hits, question.sort);
        let answer = render(&question, &findings, now);
        if answer.len() <= MOST_BYTES || found <= 1 {
            return Ok(vec![Block::Text(answer)]);
        }
        // As many as fit; the cursor leads to the rest.
        question.limit = (found * MOST_BYTES / answer.len()).max(1);
    }
}

/// Rejects arguments that exclude each other.
fn contradictions(question: &Question) -> Result<()> {
    let role = question.role.as_deref().unwrap_or("toolResult");
    if let (Some(tool), true) = (&question.tool, role != "toolResult") {
        return Err(Error::invalid(format!(
            "role {role} and tool {} exclude each other, only toolResult messages come from a tool: leave one of them out",
            text::one_line(tool, 40)
        )));
    }
    if question.kinds == Kinds::Sessions && (question.mode == Mode::Regex || question.sort != Sort::Relevance)
    {
        return Err(Error::invalid(
            "scope sessions ranks words, the best session first: leave mode and sort out, or choose another scope",
        ));
    }
    let of_messages = [
        ("role", question.role.is_some()),
        ("tool", question.tool.is_some()),
        ("path", question.path.is_some()),
        ("agent", question.is_of_another_agent()),
    ];
    match of_messages.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) if question.kinds == Kinds::Summaries => Err(Error::invalid(format!(
            "{name} is of messages and scope is summaries: leave one of them out"
        ))),
        _ => Ok(()),
    }
}

fn render(question: &Question, findings: &SearchResults, now: i64) -> String {
    let mut out = String::new();
    let mut covering: Option<&String> = None;
    let mut session: Option<&String> = None;
    for hit in &findings.hits {
        let _ = match (&hit.card, &hit.session) {
            (Card::Message(card), Some(id)) if session.replace(id) != Some(id) => {
                writeln!(out, "Session {}, {} UTC:", lines::name(id), text::minute(card.timestamp))
            }
            (Card::Message(_), None) if hit.covering.as_ref() != covering => {
                covering = hit.covering.as_ref();
                match covering {
                    Some(summary) => writeln!(out, "In {summary}:"),
                    None => writeln!(out, "Not summarized:"),
                }
            }
            _ => Ok(()),
        };
        push_hit(&mut out, hit, now);
    }
    if let Some(stopped) = findings.stopped_at {
        let is_regex = question.mode == Mode::Regex;
        let way = if is_regex && question.sort == Sort::Oldest { "up to" } else { "back to" };
        let _ = write!(
            out,
            "Stopped after {} s: searched {way} {} UTC so far. ",
            question.patience.as_secs(),
            text::minute(stopped)
        );
        let _ = match &findings.next {
            Some(next) if is_regex => writeln!(
                out,
                "The rest: the same lcm_grep with \"cursor\":\"{}\", or narrow it with after, before, path or role.",
                next.cursor
            ),
            _ => writeln!(out, "For the rest, narrow it with after, before, path or role."),
        };
        return out;
    }
    match findings.hits.first() {
        Some(first) => out.push_str(&closing(first, question, findings)),
        None if question.cursor.is_some() => out.push_str("No more results."),
        None => out.push_str(&nothing(question, findings)),
    }
    out
}

fn push_hit(out: &mut String, hit: &SearchHit, now: i64) {
    let (name, sequence) = match &hit.card {
        Card::Message(card) if hit.session.is_some() => (lines::undated(card), card.sequence),
        Card::Message(card) => (lines::hit(card, now), card.sequence),
        Card::Summary(card) => (lines::summary(card), 0),
    };
    let place = match (hit.place, &hit.card) {
        (Location::OtherBranch, Card::Summary(_)) => " · of another branch, or superseded",
        (Location::OtherSession, _) if hit.session.is_some() => "",
        (place, _) => lines::place(place),
    };
    let neighbors = |out: &mut String, is_before: bool| {
        for (card, headline) in
            hit.neighbors.iter().filter(|(card, _)| (card.sequence < sequence) == is_before)
        {
            let _ = writeln!(out, "  {}: {headline}", lines::hit(card, now));
        }
    };
    neighbors(out, true);
    let also = match hit.also.as_slice() {
        [] => String::new(),
        handles => format!(" (also in {})", handles.join(", ")),
    };
    let _ = writeln!(out, "{name}{place}: {}{also}", lines::marked(&hit.snippet, lines::in_marks));
    neighbors(out, false);
}

fn closing(first: &SearchHit, question: &Question, findings: &SearchResults) -> String {
    let id = json!({"summary_id": first.card.handle()});
    let mut closing = format!("To read one in full: lcm_expand {id}.");
    if let Some(next) = &findings.next {
        let uncounted = if question.sort == Sort::Oldest { "Later ones" } else { "Older ones" };
        let more = next.more.map_or_else(|| uncounted.to_owned(), |more| format!("{more} more"));
        let _ = write!(closing, " {more}: the same lcm_grep with \"cursor\":\"{}\".", next.cursor);
    }
    closing
}

fn nothing(question: &Question, findings: &SearchResults) -> String {
    let whose = match question.session() {
        "this" => "this session",
        "project" => "this project",
        _ => "that session",
    };
    let query = text::one_line(&question.query, 80);
    let mut out = format!(
        "Nothing found for `{query}`{} in {} of {whose}.",
        bounds(question, findings.searched.times),
        searched(question.kinds, findings.searched)
    );
    out.push_str(&unquoted(&findings.missing));
    let elsewhere = findings.elsewhere;
    if elsewhere.summaries > 0 {
        let summaries = count(elsewhere.summaries, "summary");
        let _ = write!(out, " {summaries} of it would match: pass \"scope\":\"all\".");
    }
    if question.branches == Branches::Current {
        out.push_str(" Other branches and sessions were not searched: leave branch out.");
        return out;
    }
    let (sessions, messages) =
        (count(elsewhere.sessions, "other session"), count(elsewhere.messages, "message"));
    let _ = match (elsewhere.sessions, question.mode) {
        (0, _) => Ok(()),
        (_, Mode::Text) => {
            write!(out, " {messages} of {sessions} would match: pass \"session\":\"project\".")
        }
        (_, Mode::Regex) => {
            write!(out, " Not searched: {sessions} of this project; pass \"session\":\"project\".")
        }
    };
    out
}

/// Which quoted phrases occur nowhere.
pub fn unquoted(missing: &[String]) -> String {
    let missing: Vec<String> =
        missing.iter().map(|phrase| format!("\"{}\"", text::one_line(phrase, 80))).collect();
    match missing.as_slice() {
        [] => String::new(),
        phrases => format!(
            " Nowhere does it say {} word for word, whatever the case; without quotes, the words are searched.",
            phrases.join(" or ")
        ),
    }
}

/// The search's filters, in words.
fn bounds(question: &Question, [after, before]: [Option<i64>; 2]) -> String {
    let mut bounds = String::new();
    let mut add = |word: &str, what: Option<&str>| {
        if let Some(what) = what {
            let _ = write!(bounds, " {word} {}", text::one_line(what, 60));
        }
    };
    add("with role", question.role.as_deref());
    add("from the tool", question.tool.as_deref());
    add("of", question.agent.as_deref());
    add("about", question.path.as_deref());
    add("since", after.map(text::minute).as_deref());
    add("until", before.map(text::minute).as_deref());
    add("on", (question.branches == Branches::Current).then_some("the current branch"));
    bounds
}

fn searched(kinds: Kinds, searched: Searched) -> String {
    let more = if searched.messages == MOST_COUNTED { "at least " } else { "" };
    let messages = format!("{more}{}", count(searched.messages, "message"));
    let summaries = count(searched.summaries, "summary");
    match kinds {
        Kinds::Messages | Kinds::Sessions => messages,
        Kinds::Summaries => summaries,
        Kinds::All => format!("{messages} and {summaries}"),
    }
}
