//! `/lcm search WORDS`: finds messages and summaries in all places, best match first.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::sessions::{of_session, session};
use super::style::{Ink, Style};
use super::{Answer, Command, CommandContext};
use crate::tools::{
    self, as_words, at_that_time, bounds, contradictions, counted, if_unfiltered, in_marks, marked, named,
    only_similar, totals_as_data, unfiltered, unquoted, ways, widened,
};
use lcm_model::Role;
use lcm_model::error::{Error, Result};
use lcm_model::ids::Handle;
use lcm_model::text::{age, count, grouped, in_line, local_minute, now, one_line, parse_local, timestamp};
use lcm_recall::grep::{
    self, Branches, COUNTED_BY, CountBy, Counts, DEFAULT_LIMIT, Kinds, Location, MOST_RESULTS, Mode,
    Question, ROLES, SearchHit, SearchResults, Searched, Sort, WRITERS, grep,
};
use lcm_recall::{Card, MessageCard, Scope, SummaryCard, span};
use lcm_store::View;

const NAME: &str = "search";
pub(crate) const PROJECT: &str = "--project";
const REGEX: &str = "--regex";
const IGNORE_CASE: &str = "--ignore-case";
const MESSAGES: &str = "--messages";
const SUMMARIES: &str = "--summaries";
const BRANCH: &str = "--branch";
const FULL: &str = "--full";
pub(crate) const MORE: &str = "--more";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "search this session; --project: all sessions",
    usage: &[
        ("search", "in the TUI: opens a panel to search, browse and read matches"),
        ("search WORDS", "the best matches in this session, messages and summaries, one per line"),
        ("search WORDS --project", "searches all sessions of this project"),
        ("search WORDS --agent codex", "searches what that agent said in this project"),
        (
            "search PATTERN --regex [--ignore-case]",
            "matches of a regular expression, newest first; --ignore-case: in upper or lower case",
        ),
        ("search WORDS --more", "up to 100 matches instead of 20; --limit N: up to N"),
        (
            "search WORDS [--messages | --summaries] [--branch] [--full]",
            "only messages, only summaries, only this branch; longer excerpts",
        ),
        (
            "search WORDS --role user --after 3d",
            "filters; likewise --tool, --file, --session and --before; --sort recent or oldest",
        ),
        (
            "search WORDS --count day",
            "how many messages have all the words, with the first and the last: by session, day, role, tool, path, outcome or agent",
        ),
        ("search -- WORDS", "for words that look like options"),
    ],
    arguments: &[
        (PROJECT, "in all sessions of this project"),
        (REGEX, "a regular expression, Rust syntax, newest first"),
        (IGNORE_CASE, "ignore upper and lower case"),
        (MESSAGES, "only messages"),
        (SUMMARIES, "only summaries"),
        (BRANCH, "only the current branch"),
        (FULL, "longer excerpts"),
        (MORE, "up to 100 matches"),
    ],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

pub(crate) const LIMIT: &str = "--limit";
pub(crate) const ROLE: &str = "--role";
pub(crate) const TOOL: &str = "--tool";
pub(crate) const FILE: &str = "--file";
pub(crate) const AFTER: &str = "--after";
pub(crate) const BEFORE: &str = "--before";
pub(crate) const SORT: &str = "--sort";
pub(crate) const COUNT: &str = "--count";
const SESSION: &str = "--session";
pub(crate) const AGENT: &str = "--agent";

/// The options with a value.
pub(crate) const VALUED: [&str; 10] = [LIMIT, ROLE, TOOL, FILE, AFTER, BEFORE, SORT, COUNT, AGENT, SESSION];

/// Which values an option takes, after a colon, if it takes only some.
pub(super) fn values(option: &str) -> String {
    let some = match option {
        COUNT => &COUNTED_BY[..],
        ROLE => &ROLES[..],
        AGENT => &WRITERS[..],
        SORT => &["relevance", "recent", "oldest"],
        _ => return String::new(),
    };
    format!(": {}", some.join(", "))
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let (question, limit) = question(asked)?;
    let (scope, manner, cancel) = (asked.scope.clone(), asked.manner, asked.cancel.clone());
    asked.store().read(move |view| find(view, &scope, question, limit, manner, &cancel)).await
}

/// An expression without the quotation marks around it, which in a shell would not be part of it.
fn bare(expression: &str) -> &str {
    let inside = |mark: char| {
        let inside = expression.trim().strip_prefix(mark)?.strip_suffix(mark)?;
        (!inside.is_empty() && !inside.contains(mark)).then_some(inside)
    };
    inside('"').or_else(|| inside('\'')).unwrap_or(expression)
}

/// The question, and how many hits are wanted.
fn question(asked: &CommandContext<'_>) -> Result<(Question, usize)> {
    let rest = &asked.rest;
    let (has, value) = (|option| rest.has(option), |option| rest.value(option));
    let query = match rest.query()? {
        query if has(REGEX) && !asked.manner.is_shell => bare(&query).to_owned(),
        query => query,
    };
    if query.trim().is_empty() {
        return Err(Error::invalid(
            "/lcm search needs words to search for; --regex . matches every message with text",
        ));
    }
    let kinds = match (has(MESSAGES), has(SUMMARIES)) {
        (true, false) => Kinds::Messages,
        (false, true) => Kinds::Summaries,
        _ => Kinds::All,
    };
    let chosen = |option, known| value(option).map(|written| one_of(option, written, known)).transpose();
    let (role, agent) = (chosen(ROLE, &ROLES[..])?, chosen(AGENT, &WRITERS[..])?);
    let count = chosen(COUNT, &COUNTED_BY[..])?.map(|by| serde_json::from_value(by.into())).transpose();
    let written = |option| value(option).map(ToOwned::to_owned);
    // A user writes times as they are shown; the question's are UTC.
    let [after, before] = [AFTER, BEFORE]
        .map(|option| written(option).map(|written| parse_local(written.trim()).map_or(written, timestamp)));
    span([AFTER, BEFORE], [after.as_deref(), before.as_deref()], now())?;
    let limit = value(LIMIT).map(limit).transpose()?;
    let mut question = Question {
        query: if has(REGEX) && has(IGNORE_CASE) { format!("(?i){query}") } else { query },
        mode: if has(REGEX) { Mode::Regex } else { Mode::Text },
        kinds,
        session: match has(PROJECT) {
            true => Some("project".to_owned()),
            false => value(SESSION).map(ToOwned::to_owned),
        },
        branches: if has(BRANCH) { Branches::Current } else { Branches::All },
        sort: value(SORT).map(sort).transpose()?.unwrap_or_default(),
        after,
        before,
        full: has(FULL),
        count: count.map_err(|error| Error::invalid(error.to_string()))?,
        role,
        tool: written(TOOL),
        agent,
        path: written(FILE),
        also_current: true,
        // The user can stop it.
        patience: Duration::MAX,
        ..Question::default()
    };
    if question.is_of_messages() || question.count.is_some() {
        if has(SUMMARIES) {
            return Err(Error::invalid(format!(
                "{ROLE}, {TOOL}, {FILE}, {AGENT} and {COUNT} apply to messages, which {SUMMARIES} excludes: remove one of them"
            )));
        }
        question.kinds = Kinds::Messages;
    }
    contradictions(&question)?;
    Ok((question, limit.unwrap_or(if has(MORE) { MOST_RESULTS } else { DEFAULT_LIMIT })))
}

fn one_of(option: &str, written: &str, known: &[&str]) -> Result<String> {
    let found = known.iter().find(|known| known.eq_ignore_ascii_case(written));
    found.map(|found| (*found).to_owned()).ok_or_else(|| no(option, written, &known.join(", ")))
}

fn sort(written: &str) -> Result<Sort> {
    match written {
        "relevance" => Ok(Sort::Relevance),
        "recent" => Ok(Sort::Recent),
        "oldest" => Ok(Sort::Oldest),
        _ => Err(no(SORT, written, "relevance, recent, oldest")),
    }
}

fn limit(written: &str) -> Result<usize> {
    let number = written.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| no(LIMIT, written, "a whole number of at least 1"))
}

fn no(option: &str, written: &str, takes: &str) -> Error {
    Error::invalid(format!("{option} takes {takes}, not {}", one_line(written, 40)))
}

fn find(
    view: &View<'_>,
    scope: &Scope,
    mut question: Question,
    limit: usize,
    manner: Style,
    cancel: &CancellationToken,
) -> Result<Answer> {
    if let Some(by) = question.count {
        question.limit = limit;
        let counts = grep::count(view, scope, &mut question, by, cancel)?;
        return totals(&question, by, &counts, manner);
    }
    let now = now();
    let (mut lines, mut hits) = (Vec::new(), Vec::new());
    let (searched, other_sessions, missing, lacking, absent, weak, is_full, more) = loop {
        question.limit = (limit - hits.len()).min(MOST_RESULTS);
        let SearchResults {
            hits: page,
            next,
            searched,
            other_sessions,
            missing,
            unknown,
            absent,
            weak,
            is_full,
            ..
        } = grep(view, scope, &mut question, cancel)?;
        let is_over = page.is_empty();
        let more = next.as_ref().and_then(|next| next.more);
        question.cursor = next.map(|next| next.cursor);
        for hit in page {
            let named = hit.session.as_ref().map(|named| named.conversation);
            let session = named.map(|id| session(view, id, id == scope.conversation)).transpose()?;
            let (line, mut json) = shown(hit, now, manner);
            json["session"] = serde_json::to_value(session).unwrap_or_default();
            lines.push(line);
            hits.push(json);
        }
        if is_over || question.cursor.is_none() || hits.len() >= limit {
            break (searched, other_sessions, missing, unknown, absent, weak, is_full, more);
        }
    };
    let is_denied = hits.is_empty() || !lacking.is_empty() || !absent.is_empty();
    let aside = match is_denied && view.messages().has_private()? {
        true => ", thinking and `!!` commands aside",
        false => ", thinking aside",
    };
    let similar = only_similar(&question, &lacking, aside);
    let others = in_others(&question, other_sessions, manner);
    let unfiltered = unfiltered(&question, "--");
    let in_result = if similar.is_empty() { String::new() } else { at_that_time(&question, "--") + &others };
    let above = [
        if similar.is_empty() { widened(&question) } else { "" },
        &similar,
        &in_result,
        &tools::absent(&question, &absent, aside),
        &unfiltered,
    ]
    .concat();
    let is_cut = question.cursor.is_some();
    let more_hits = match is_cut {
        true => more_hits(more, !manner.is_shell && limit < MOST_RESULTS),
        false if is_full => "These are the best of more matches: --count has exact totals.".to_owned(),
        false => String::new(),
    };
    let is_cut = is_cut || is_full;
    let more_hits = (more_hits + &tools::left_out(weak)).trim_start().to_owned();
    // Who names a session knows of others.
    let is_open = similar.is_empty() && question.session.is_none() && question.branches == Branches::All;
    let more_hits = if is_open { format!("{more_hits} {others}").trim().to_owned() } else { more_hits };
    let text = match lines.is_empty() {
        true => {
            let nothing = nothing(&question, searched, &missing, aside, other_sessions, manner);
            format!("{nothing} {}", ways(&question, "--")).trim_end().to_owned()
        }
        false if above.is_empty() => lines.join("\n") + &hint(&more_hits, manner),
        false => format!("{}\n\n{}{}", above.trim_end(), lines.join("\n"), hint(&more_hits, manner)),
    };
    let json = json!({"query": question.query, "hits": hits, "isCut": is_cut, "more": more, "isWidened": question.is_widened, "otherSessions": other_sessions, "missing": missing, "unknown": lacking, "absent": absent, "weak": weak, "asWords": as_words(&question)});
    Ok(Answer::new(text, json))
}

/// Exact totals, and what was counted.
fn totals(question: &Question, by: CountBy, counts: &Counts, manner: Style) -> Result<Answer> {
    let (groups, rest) = counts.groups.split_at(counts.groups.len().min(question.limit));
    let note = counted(question, counts, rest, "--", local_minute);
    let figures: Vec<String> = groups.iter().map(|group| grouped(group.messages)).collect();
    let width = figures.iter().map(String::len).max().unwrap_or_default();
    let mut out = note.clone();
    for (group, figure) in groups.iter().zip(figures) {
        let name = match &group.session {
            Some(session) => of_session(session),
            None => named(group, by),
        };
        let [first, last] = [&group.first, &group.last].map(|id| manner.paint(Ink::Id, id));
        out += &format!("\n  {figure:>width$}  {name}, first {first}, last {last}");
    }
    let mut json = totals_as_data(counts, groups, &note);
    json["query"] = question.query.as_str().into();
    Ok(Answer::new(out, json))
}

/// A hit's lines, and its JSON form. The marks are the matches' ranges in the snippet, in characters.
fn shown(hit: SearchHit, now: i64, manner: Style) -> (String, Value) {
    let (place, branch) = match hit.place {
        Location::Here => ("here", ""),
        Location::OtherBranch if matches!(hit.card, Card::Summary(_)) => {
            ("otherBranch", ", on another branch, or superseded")
        }
        Location::OtherBranch => ("otherBranch", ", on another branch"),
        Location::OtherSession => ("otherSession", ""),
        Location::OtherSessionBranch => ("otherSessionBranch", ", on an abandoned branch"),
    };
    let session = hit.session.as_ref().map(|session| format!(", in session {}", of_session(session)));
    let session = session.unwrap_or_default();
    let snippet = hit.snippet;
    let characters = |at: usize| snippet.text[..at].chars().count();
    let marks: Vec<_> =
        snippet.marks.iter().map(|mark| characters(mark.start)..characters(mark.end)).collect();
    let line = marked(&snippet, |found| match manner.is_shell {
        true => manner.paint(Ink::Match, found),
        false => in_marks(found),
    });
    let (head, mut json) = match hit.card {
        Card::Message(MessageCard { handle, role, tool, agent, timestamp: time, .. }) => {
            let who = match tool.as_ref().filter(|_| role == Role::ToolResult.as_str()) {
                Some(tool) => format!("{tool} output"),
                None => role.clone(),
            };
            let who = agent.map_or_else(|| who.clone(), |agent| format!("{agent} {who}"));
            let head = format!("{} {} {}", manner.paint(Ink::Id, &handle), in_line(&who), age(time, now));
            let json = json!({
                "kind": "message", "id": handle, "role": role, "tool": tool, "agent": agent, "depth": null,
                "time": timestamp(time), "place": place, "summary": hit.covering,
            });
            (head, json)
        }
        Card::Summary(SummaryCard { handle, depth, title, from_time, .. }) => {
            let head = format!("{} D{depth} {title}", manner.paint(Ink::Id, &handle));
            let json = json!({
                "kind": "summary", "id": handle, "role": null, "tool": null, "agent": null, "depth": depth,
                "time": timestamp(from_time), "place": place, "summary": null,
            });
            (head, json)
        }
    };
    json["snippet"] = snippet.text.as_str().into();
    json["marks"] = json!(marks);
    (format!("{head}{branch}{session}\n  {line}"), json)
}

/// The answer without a hit; `other_sessions` were not searched.
fn nothing(
    question: &Question,
    searched: Searched,
    missing: &[String],
    aside: &str,
    other_sessions: usize,
    manner: Style,
) -> String {
    let kinds = match question.kinds {
        Kinds::Summaries => " in summaries",
        Kinds::Messages if !question.is_of_messages() => " in messages",
        _ => "",
    };
    let query = one_line(&question.query, 80) + kinds + &bounds(question, searched.times, local_minute);
    let whose = if question.is_widened { " in any session" } else { "" };
    let aside = if question.kinds == Kinds::Summaries { "" } else { aside };
    let nothing = format!("Nothing found for {query}{whose}{aside}.{}", unquoted(question, missing));
    let has_case = question.mode == Mode::Regex && !question.query.starts_with("(?i)");
    let case = if has_case { format!(" Case counts: {IGNORE_CASE} ignores it.") } else { String::new() };
    let nothing = nothing + if_unfiltered(searched) + &case;
    let program = if manner.is_shell { "pi-lcm" } else { "/lcm" };
    let by_id = Handle::parse(&question.query).map(|id| format!("To look up an id: {program} show {id}. "));
    let by_id = by_id.unwrap_or_default();
    format!("{nothing} {by_id}{}", in_others(question, other_sessions, manner)).trim_end().to_owned()
}

/// How to search other branches and sessions, which were not.
fn in_others(question: &Question, other_sessions: usize, manner: Style) -> String {
    if question.branches == Branches::Current {
        return format!("Other branches and sessions were not searched: omit {BRANCH}.");
    }
    if other_sessions == 0 {
        return String::new();
    }
    let wider = if manner.is_shell { "omit --session".to_owned() } else { format!("add {PROJECT}") };
    format!("Not searched: {}; {wider}.", count(other_sessions, "other session"))
}

/// What to do next, after hits.
fn hint(more_hits: &str, manner: Style) -> String {
    let show = match (manner.is_shell, manner.is_terminal) {
        // Scripts get only hits.
        (true, false) => return String::new(),
        (true, true) => "pi-lcm",
        (false, _) => "/lcm",
    };
    format!("\n\nTo read one in full: {show} show ID. {more_hits}").trim_end().to_owned()
}

/// That not all hits are shown. `more` says how many are not, if that is known.
pub(crate) fn more_hits(more: Option<usize>, is_short: bool) -> String {
    let more = more.map_or_else(|| "There are more".to_owned(), |more| format!("{} more", grouped(more)));
    let way = if is_short { "add --more" } else { "raise --limit" };
    format!("{more}: {way}, or narrow the search.")
}
