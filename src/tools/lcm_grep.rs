//! `lcm_grep`: a search, with one line per result.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::parameters::{read, schema};
use super::{Block, lines};
use lcm_model::error::{Error, Result};
use lcm_model::text::{self, count};
use lcm_recall::grep::{
    self, Branches, CountBy, Counts, DEFAULT_LIMIT, Group, Kinds, Location, MOST_COUNTED, MOST_RESULTS, Mode,
    Question, SearchHit, SearchResults, Searched, Sort, days_of, fold_equals, grep,
};
use lcm_recall::{Card, Scope};
use lcm_store::View;

/// How long a search may read messages before the answer says how far it got.
const PATIENCE: Duration = Duration::from_secs(10);
pub const NAME: &str = "lcm_grep";

/// What to do if the current branch does not have it.
const NOT_SEARCHED: &str = "Other branches and sessions were not searched: leave branch out.";

/// Bytes of an answer: about as many tokens as the longest page of `lcm_expand`.
const MOST_BYTES: usize = 32_000;

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Search history",
        "description": "Search everything ever said in this session, compacted or not: requests, replies, tool calls and output. \
            Start here: the snippets often are the answer; else lcm_expand an id.",
        "parameters": schema::<Question>(),
        "outputSchema": output_schema(),
    })
}

/// What a script gets instead of the text: results, or totals with `count`.
fn output_schema() -> Value {
    let strings = |fields: &[&str]| -> Map<String, Value> {
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect()
    };
    let list = |fields: Map<String, Value>, required: &[&str]| json!({"type": "array", "items": {"type": "object", "properties": fields, "required": required}});
    let mut hit = strings(&[
        "id", "role", "tool", "agent", "title", "time", "session", "about", "place", "summary", "snippet",
    ]);
    hit.insert("also".into(), json!({"type": "array", "items": {"type": "string"}}));
    hit.insert("around".into(), list(strings(&["id", "text"]), &["id", "text"]));
    let mut group = strings(&["key", "about", "first", "last"]);
    group.insert("messages".into(), json!({"type": "integer"}));
    json!({
        "type": "object",
        "properties": {
            "hits": list(hit, &["id", "snippet"]),
            "cursor": {"type": "string"},
            "total": {"type": "integer"},
            "groups": list(group, &["messages", "first", "last"]),
            "note": {"type": "string"},
        },
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
    if let Some(by) = question.count {
        let counts = grep::count(view, scope, &mut question, by, cancel)?;
        return Ok(totals(&question, by, &counts));
    }
    let now = text::now();
    loop {
        let mut findings = grep(view, scope, &mut question, cancel)?;
        let found = findings.hits.len();
        findings.hits = fold_equals(findings.hits, &question);
        let (caveats, note) = (caveats(&question, &findings), note(&question, &findings));
        let results = caveats.clone() + &render(&question, &findings.hits, now);
        if results.len() + note.len() <= MOST_BYTES || found <= 1 {
            let data = data(&question, &findings, &(caveats + &note));
            return Ok(vec![Block::Text(results + &note), Block::Data(data)]);
        }
        // As many as fit; the cursor leads to the rest.
        question.limit = (found * MOST_BYTES / (results.len() + note.len())).max(1);
    }
}

/// Rejects arguments that exclude each other.
pub fn contradictions(question: &Question) -> Result<()> {
    let role = question.role.as_deref().unwrap_or("toolResult");
    if let (Some(tool), true) = (&question.tool, role != "toolResult") {
        return Err(Error::invalid(format!(
            "leave out role {role} or tool {}: only toolResult messages come from a tool",
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
        ("count", question.count.is_some()),
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

fn render(question: &Question, hits: &[SearchHit], now: i64) -> String {
    let mut out = String::new();
    let mut under = (None, None);
    for hit in hits {
        let session = hit.session.as_ref().map(|session| &session.id);
        let this = (session, hit.covering.as_ref().filter(|_| session.is_none()));
        // What is first, of this session and not summarized needs no heading.
        if this != under {
            let _ = writeln!(out, "{}:", heading(hit));
            under = this;
        }
        push_hit(&mut out, question, hit, now);
    }
    out
}

/// What stands above a hit: its session, if the hit names it, or the summary that covers it.
fn heading(hit: &SearchHit) -> String {
    match (&hit.session, &hit.covering) {
        (Some(session), _) => "Session ".to_owned() + &lines::session(session),
        (None, Some(summary)) => format!("In {summary}"),
        (None, None) => "Not summarized".to_owned(),
    }
}

fn push_hit(out: &mut String, question: &Question, hit: &SearchHit, now: i64) {
    let (name, sequence) = match &hit.card {
        Card::Message(card) if question.kinds == Kinds::Sessions => (lines::undated(card), card.sequence),
        Card::Message(card) => (lines::hit(card, now), card.sequence),
        Card::Summary(card) => (lines::summary(card), 0),
    };
    let place = match (hit.place, &hit.card) {
        (Location::OtherBranch, Card::Summary(_)) => " · of another branch, or superseded",
        (Location::OtherSession, _) => "",
        (Location::OtherSessionBranch, _) => " · on an abandoned branch",
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

/// The text below the results: how to go on.
fn note(question: &Question, findings: &SearchResults) -> String {
    if let Some(stopped) = findings.stopped_at {
        let is_regex = question.mode == Mode::Regex;
        let way = if is_regex && question.sort == Sort::Oldest { "up to" } else { "back to" };
        let rest = match &findings.next {
            Some(next) if is_regex => {
                format!(
                    "The rest: the same lcm_grep with \"cursor\":\"{}\", or narrow it with after, before, path or role.",
                    next.cursor
                )
            }
            _ => "For the rest, narrow it with after, before, path or role.".to_owned(),
        };
        let stop = format!(
            "Stopped after {} s: searched {way} {} UTC so far. {rest}\n",
            question.patience.as_secs(),
            text::minute(stopped)
        );
        return match findings.hits.first() {
            // A regular expression's cursor continues where time ran out.
            Some(first) if !is_regex => stop + &closing(first, question, findings),
            _ => stop,
        };
    }
    match findings.hits.first() {
        Some(first) => closing(first, question, findings),
        None if question.cursor.is_some() => "No more results.".to_owned(),
        None => nothing(question, findings),
    }
}

/// The results as data.
fn data(question: &Question, findings: &SearchResults, note: &str) -> Value {
    let hit = |hit: &SearchHit| {
        let (role, tool, agent, title, time) = match &hit.card {
            Card::Message(card) => (Some(&card.role), card.tool.as_ref(), card.agent, None, card.timestamp),
            Card::Summary(card) => (None, None, None, Some(&card.title), card.from_time),
        };
        let around = hit.neighbors.iter().map(|(card, text)| json!({"id": card.handle, "text": text}));
        given(json!({
            "id": hit.card.handle(),
            "role": role,
            "tool": tool,
            "agent": agent,
            "title": title,
            "time": text::timestamp(time),
            "session": hit.session.as_ref().map(|session| &session.id),
            "about": hit.session.as_ref().map(|session| &session.about),
            "place": match hit.place {
                Location::OtherBranch => Some("another branch"),
                Location::OtherSessionBranch => Some("abandoned branch"),
                Location::Here | Location::OtherSession => None,
            },
            "summary": hit.covering,
            "snippet": lines::marked(&hit.snippet, lines::in_marks),
            "also": (!hit.also.is_empty()).then_some(&hit.also),
            "around": (!hit.neighbors.is_empty()).then(|| around.collect::<Vec<_>>()),
        }))
    };
    let is_noted = findings.hits.is_empty()
        || findings.stopped_at.is_some()
        || !findings.unknown.is_empty()
        || !findings.absent.is_empty()
        || findings.weak > 0
        || question.is_widened
        || !as_words(question).is_empty();
    given(json!({
        "hits": findings.hits.iter().map(hit).collect::<Vec<_>>(),
        "cursor": findings.next.as_ref().map(|next| &next.cursor),
        "note": is_noted.then(|| note.trim_end()),
    }))
}

/// An object without the fields that are null.
pub fn given(mut data: Value) -> Value {
    if let Value::Object(fields) = &mut data {
        fields.retain(|_, value| !value.is_null());
    }
    data
}

/// The answer to a count.
fn totals(question: &Question, by: CountBy, counts: &Counts) -> Vec<Block> {
    let shown = counts.groups.len().min(if question.limit == 0 { DEFAULT_LIMIT } else { question.limit });
    let (groups, rest) = counts.groups.split_at(shown.min(MOST_RESULTS));
    let note = counted(question, counts, rest, "", text::minute);
    let line = |group: &Group| {
        let name = match &group.session {
            Some(session) => "Session ".to_owned() + &lines::session(session),
            None => named(group, by),
        };
        format!("{name}: {}, first {}, last {}\n", group.messages, group.first, group.last)
    };
    let data = totals_as_data(counts, groups, &note);
    let text = note + "\n" + &groups.iter().map(line).collect::<String>();
    vec![Block::Text(text.trim_end().to_owned()), Block::Data(data)]
}

/// Totals as data; `groups` are those that are shown.
pub fn totals_as_data(counts: &Counts, groups: &[Group], note: &str) -> Value {
    let group = |group: &Group| {
        let about = group.session.as_ref().map(|session| &session.about);
        given(json!({
            "messages": group.messages, "first": group.first, "last": group.last, "key": group.key, "about": about
        }))
    };
    json!({"total": counts.messages, "groups": groups.iter().map(group).collect::<Vec<_>>(), "note": note})
}

/// What the messages of a group have in common.
pub fn named(group: &Group, by: CountBy) -> String {
    match (&group.key, by) {
        (Some(day), CountBy::Day) => format!("{day} UTC"),
        (Some(key), _) => lines::name(key),
        (None, CountBy::Path) => "(of no call on a file)".to_owned(),
        (None, CountBy::Tool) => "(no tool's output)".to_owned(),
        (None, CountBy::Outcome) => "(not of a tool or command)".to_owned(),
        (None, _) => "(of no session)".to_owned(),
    }
}

/// What was counted, in one sentence. `rest` are the groups that are not shown, `dashes` begin the names of options, `minute` writes
/// a time.
pub fn counted(
    question: &Question,
    counts: &Counts,
    rest: &[Group],
    dashes: &str,
    minute: fn(i64) -> String,
) -> String {
    let query = text::one_line(&question.query, 80);
    let what = match counts.words.as_slice() {
        [] => format!("`{query}`"),
        [word] => format!("`{query}` ({word} in any form)"),
        words => format!("`{query}` (all of {}, in any form)", words.join(", ")),
    };
    let messages = count(counts.messages, "message");
    let matching = if counts.messages == 1 { "matches" } else { "match" };
    let none = if question.is_widened && counts.messages > 0 { ", none of them in this session" } else { "" };
    let bounds = bounds(question, counts.times, minute);
    let mut out = format!("{messages} of {}{bounds} {matching} {what}{none}.", whose(question));
    if counts.messages == 0 && !counts.words.is_empty() {
        let also = if counts.words.len() > 1 { "some of the words" } else { "similar words" };
        let _ = write!(out, " Without {dashes}count, messages with {also} may match too.");
    }
    if question.branches == Branches::Current {
        out += " Other branches and sessions were not searched.";
    } else if counts.other_sessions > 0 {
        let _ = write!(out, " Not searched: {}.", count(counts.other_sessions, "other session"));
    }
    if counts.groups.iter().map(|group| group.messages).sum::<usize>() > counts.messages {
        out += " A message counts for each of its files.";
    }
    if !rest.is_empty() {
        let messages = rest.iter().map(|group| group.messages).sum();
        let _ = write!(
            out,
            " {} with {} {} left out: {}.",
            count(rest.len(), "group"),
            count(messages, "message"),
            if rest.len() == 1 { "is" } else { "are" },
            match question.limit < MOST_RESULTS {
                true => format!("a larger {dashes}limit shows more"),
                false => "narrow the question".to_owned(),
            }
        );
    }
    format!("{out} {}", unfiltered(question, dashes)).trim_end().to_owned()
}

/// What the results lack, a line above them; empty without results.
fn caveats(question: &Question, findings: &SearchResults) -> String {
    if findings.hits.is_empty() {
        return String::new();
    }
    let mut caveats = only_similar(question, &findings.unknown, THINKING);
    if caveats.is_empty() {
        caveats = widened(question).to_owned();
    }
    if !caveats.is_empty() && question.branches == Branches::Current {
        caveats += NOT_SEARCHED;
    } else if findings.is_weak() {
        caveats += &not_searched(findings);
    }
    if !findings.unknown.is_empty() {
        caveats += &at_that_time(question, "");
    }
    caveats += &(absent(question, &findings.absent, THINKING) + &unfiltered(question, ""));
    if caveats.is_empty() { caveats } else { caveats.trim_end().to_owned() + "\n" }
}

fn closing(first: &SearchHit, question: &Question, findings: &SearchResults) -> String {
    let id = json!({"summary_id": first.card.handle()});
    let mut closing = format!("To read one in full: lcm_expand {id}.");
    if let Some(next) = &findings.next {
        let uncounted = match (question.sort, question.mode) {
            (Sort::Oldest, _) => "Later ones",
            (Sort::Relevance, Mode::Text) => "More",
            _ => "Older ones",
        };
        let more = next.more.map_or_else(|| uncounted.to_owned(), |more| format!("{more} more"));
        let project = if question.is_widened { "\"session\":\"project\"," } else { "" };
        let _ = write!(closing, " {more}: the same lcm_grep with {project}\"cursor\":\"{}\".", next.cursor);
    }
    if findings.next.is_none() && findings.is_full {
        closing += " These are the best of more matches: count has exact totals.";
    }
    closing += &left_out(findings.weak);
    // Who names a session knows of others.
    if question.session.is_none() && question.branches == Branches::All && !findings.is_weak() {
        let _ = write!(closing, " {}", not_searched(findings).trim_end());
    }
    closing.trim_end().to_owned()
}

/// That by time, weak matches are no results.
pub fn left_out(weak: usize) -> String {
    match weak {
        0 => String::new(),
        weak => format!(
            " Left out: {} with only some of the words; sort by relevance shows all.",
            count(weak, "match")
        ),
    }
}

fn nothing(question: &Question, findings: &SearchResults) -> String {
    let whose = whose(question);
    let query = text::one_line(&question.query, 80);
    let mut out = format!(
        "Nothing found for `{query}`{} in {} of {whose}.",
        bounds(question, findings.searched.times, text::minute),
        searched(question.kinds, findings.searched)
    );
    out.push_str(&unquoted(question, &findings.missing));
    if !findings.missing.is_empty() {
        out.push_str(" Thinking is not searched.");
    }
    out.push_str(if_unfiltered(findings.searched));
    if question.mode == Mode::Regex && question.query.contains(char::is_uppercase) {
        out += " Case matters, except after (?i).";
    }
    if findings.matching_summaries > 0 {
        let summaries = count(findings.matching_summaries, "summary");
        let _ = write!(out, " {summaries} of it would match: pass \"scope\":\"all\".");
    }
    if question.branches == Branches::Current {
        return format!("{out} {}{NOT_SEARCHED}", ways(question, ""));
    }
    format!("{out} {}{}", ways(question, ""), not_searched(findings)).trim_end().to_owned()
}

/// How to ask again where nothing was found.
pub fn ways(question: &Question, dashes: &str) -> String {
    at_that_time(question, dashes) + &unfiltered(question, dashes)
}

/// How to search the other sessions, which were not.
fn not_searched(findings: &SearchResults) -> String {
    match findings.other_sessions {
        0 => String::new(),
        sessions => {
            format!("Not searched: {}; pass \"session\":\"project\". ", count(sessions, "other session"))
        }
    }
}

fn whose(question: &Question) -> &'static str {
    match question.session() {
        "this" => "this session",
        "project" => "this project",
        _ => "that session",
    }
}

/// What was searched of that: only this branch, or all of it.
fn part(question: &Question) -> &'static str {
    match (question.branches, question.session()) {
        (Branches::Current, "this") => "this branch",
        _ => whose(question),
    }
}

/// Where results of the project are from that was asked of this session.
pub fn widened(question: &Question) -> &'static str {
    match question.is_widened {
        true => "This session has no exact match: these are of the whole project. ",
        false => "",
    }
}

/// What no search finds.
const THINKING: &str = ", thinking aside";

/// Which words nothing has, before results that have only similar ones. `aside` is not searched.
pub fn only_similar(question: &Question, unknown: &[String], aside: &str) -> String {
    has_not(question, unknown, aside, "only similar words, or parts")
}

/// Which words nothing has, where the results have others of the query. `aside` is not searched.
pub fn absent(question: &Question, absent: &[String], aside: &str) -> String {
    // What looks like a filter is spoken of anyway.
    let filters = as_words(question);
    let is_word = |word: &&String| !filters.iter().any(|filter| filter.eq_ignore_ascii_case(word));
    let words: Vec<String> = absent.iter().filter(is_word).cloned().collect();
    has_not(question, &words, aside, "the other words")
}

fn has_not(question: &Question, words: &[String], aside: &str, but: &str) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{}`", text::one_line(word, 80))).collect();
    match words.as_slice() {
        [] => String::new(),
        words => {
            let place = if is_filtered(question) {
                "With these filters, nothing"
            } else {
                &format!("Nothing in {}", part(question))
            };
            format!("{place} has {}{aside}: the results have {but}. ", words.join(" or "))
        }
    }
}

/// Whether not all of the session or project that is searched may be found, besides other branches.
fn is_filtered(question: &Question) -> bool {
    question.kinds == Kinds::Summaries
        || question.is_of_messages()
        || question.agent.is_some()
        || question.after.is_some()
        || question.before.is_some()
}

/// What a query says as if it had filters of its own, as the viewer's has. Quoted, it is a phrase.
pub fn as_words(question: &Question) -> Vec<&str> {
    let filters = ["role", "tool", "agent", "session", "file", "path", "after", "before"];
    let outside = question.query.split('"').step_by(2).flat_map(str::split_whitespace);
    let is_filter = |(key, value): (&str, &str)| {
        let key = key.to_ascii_lowercase();
        filters.contains(&&*key) && !value.is_empty() && !value.starts_with([':', '/'])
    };
    let is_taken = |word: &&str| question.mode == Mode::Text && word.split_once(':').is_some_and(is_filter);
    outside.filter(is_taken).collect()
}

/// That these are searched for as words, and what filters. `dashes` begin the names of options.
pub fn unfiltered(question: &Question, dashes: &str) -> String {
    let Some(word) = as_words(question).into_iter().next() else { return String::new() };
    let (key, value) = word.split_once(':').unwrap_or_default();
    let word = text::one_line(word, 60);
    let (key, value) = (key.to_ascii_lowercase(), text::one_line(value, 40));
    let filter = match (dashes, key.as_str()) {
        ("", "file") => format!("\"path\":\"{value}\""),
        ("", key) => format!("\"{key}\":\"{value}\""),
        (dashes, "path") => format!("{dashes}file {value}"),
        (dashes, key) => format!("{dashes}{key} {value}"),
    };
    format!("`{word}` is searched for as words; to filter, pass {filter}. ")
}

/// How to search what was said at the time that a query names; empty without one, or if that is done already.
pub fn at_that_time(question: &Question, dashes: &str) -> String {
    let is_asked = question.mode == Mode::Text && question.after.is_none() && question.before.is_none();
    let Some((after, before)) = days_of(&question.query, text::now()).filter(|_| is_asked) else {
        return String::new();
    };
    let filter = match dashes {
        "" => format!("\"after\":\"{after}\",\"before\":\"{before}\""),
        dashes => format!("{dashes}after {after} {dashes}before {before}"),
    };
    format!("For what was said then, pass {filter}. ")
}

/// Which quoted phrases occur nowhere.
pub fn unquoted(question: &Question, missing: &[String]) -> String {
    let missing: Vec<String> =
        missing.iter().map(|phrase| format!("\"{}\"", text::one_line(phrase, 80))).collect();
    match missing.as_slice() {
        [] => String::new(),
        phrases if is_filtered(question) || question.branches == Branches::Current => format!(
            " With these filters, nothing says {} in whole words; without quotes, the words are searched.",
            phrases.join(" or ")
        ),
        phrases => format!(
            " Nowhere in {} does it say {} in whole words, in upper or lower case; without quotes, the words are searched.",
            part(question),
            phrases.join(" or ")
        ),
    }
}

/// That the filters are why nothing was found.
pub fn if_unfiltered(searched: Searched) -> &'static str {
    if searched.is_elsewhere { " Without these filters, it is found." } else { "" }
}

/// The search's filters, in words.
pub fn bounds(question: &Question, times: [Option<i64>; 2], minute: fn(i64) -> String) -> String {
    let (mut bounds, [after, before]) = (String::new(), times.map(|time| time.map(minute)));
    let mut add = |word: &str, what: Option<&str>| {
        if let Some(what) = what {
            let _ = write!(bounds, " {word} {}", text::one_line(what, 60));
        }
    };
    add("with role", question.role.as_deref());
    add("from the tool", question.tool.as_deref());
    add("of", question.agent.as_deref());
    add("about", question.path.as_deref());
    add("since", after.as_deref());
    add("until", before.as_deref());
    add("on", (question.branches == Branches::Current).then_some("the current branch"));
    bounds
}

fn searched(kinds: Kinds, searched: Searched) -> String {
    let more = if searched.messages == MOST_COUNTED { "at least " } else { "" };
    let messages = format!("{more}{}", count(searched.messages, "searchable message"));
    let summaries = count(searched.summaries, "summary");
    match kinds {
        Kinds::Messages | Kinds::Sessions => messages,
        Kinds::Summaries => summaries,
        Kinds::All => format!("{messages} and {summaries}"),
    }
}
