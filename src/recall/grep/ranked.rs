//! Search by relevance: passages by what the index says, weighed again by what it cannot see.

use std::collections::{HashMap, HashSet};

use super::query::Query;
use super::words::{are_kin, words};
use super::{Elsewhere, Findings, Found, Hit, Kinds, Next, Search, Sessions, Snippet};
use crate::error::{Error, Result};
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::model::{Message, passages};
use crate::recall::cards::{MessageCard, SummaryCard};
use crate::store::Filter;
use crate::text;

/// Passages that the index is asked for; what ranks behind them is not found.
const PASSAGES: usize = 500;
/// Messages, best first, whose text is looked at to weigh them again; the others follow as the index ranks them.
const WEIGHED: usize = 60;
/// Passages of one message that are weighed.
const WEIGHED_PASSAGES: usize = 3;
/// Two words of the query with at most this many others between them are neighbours.
const NEAR: usize = 6;
/// After this many results, those far weaker than the best are left for the next page.
const ALWAYS_SHOWN: usize = 5;
/// How much weaker that is.
const WEAK: f64 = 0.25;
/// What a summary counts beside a message, each measured against the best of its kind.
const SUMMARY_WEIGHT: f64 = 0.8;

/// Something that fits, before it is shown.
struct Candidate {
    target: Target,
    score: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Summary(SummaryId),
    /// A message and the passage that fits best.
    Message(MessageId, usize),
}

pub(super) fn find(search: &Search<'_>) -> Result<Findings> {
    let query = Query::parse(&search.question.query);
    if query.tiers.is_empty() {
        return Err(Error::invalid(format!(
            "there is no word in `{}` to look for: mode \"regex\" finds other signs too",
            text::one_line(&search.question.query, 60)
        )));
    }
    let from = match &search.question.cursor {
        Some(cursor) => cursor.trim().parse().map_err(|_| search.foreign_cursor())?,
        None => 0,
    };
    let candidates = candidates(search, &query)?;
    if candidates.is_empty() {
        return Ok(Findings { elsewhere: elsewhere(search, &query)?, ..Findings::default() });
    }
    let shown = shown(&candidates, from, search.limit());
    let hits =
        candidates.iter().skip(from).take(shown).map(|candidate| hit(search, &query, candidate.target));
    let hits = hits.collect::<Result<_>>()?;
    let more = candidates.len().saturating_sub(from + shown);
    let next = (more > 0).then(|| Next { cursor: (from + shown).to_string(), more: Some(more) });
    Ok(Findings { hits, next, ..Findings::default() })
}

/// How many results from `from` on make an answer.
fn shown(candidates: &[Candidate], from: usize, limit: usize) -> usize {
    let rest = candidates.get(from..).unwrap_or_default();
    let best = candidates.first().map_or(0.0, |candidate| candidate.score);
    // Who asks for more wants the weak ones too.
    let strong = match from {
        0 => rest.iter().skip(ALWAYS_SHOWN).take_while(|candidate| candidate.score >= best * WEAK).count(),
        _ => rest.len(),
    };
    rest.len().min(limit).min(ALWAYS_SHOWN + strong)
}

/// All that fits, best first, the newer first where they are equal.
fn candidates(search: &Search<'_>, query: &Query) -> Result<Vec<Candidate>> {
    let kinds = search.question.kinds;
    let mut messages = if kinds == Kinds::Summaries { Vec::new() } else { messages(search, query)? };
    let mut summaries = if kinds == Kinds::Messages { Vec::new() } else { summaries(search, query)? };
    if kinds == Kinds::All {
        rescale(&mut messages, 1.0);
        rescale(&mut summaries, SUMMARY_WEIGHT);
        messages.append(&mut summaries);
        messages.sort_by(by_score);
    } else {
        messages.append(&mut summaries);
    }
    Ok(messages)
}

fn by_score(one: &Candidate, other: &Candidate) -> std::cmp::Ordering {
    other.score.total_cmp(&one.score).then(other.target.cmp(&one.target))
}

fn rescale(candidates: &mut [Candidate], best: f64) {
    let top = candidates.first().map_or(1.0, |candidate| candidate.score);
    for candidate in candidates {
        candidate.score *= best / top;
    }
}

fn messages(search: &Search<'_>, query: &Query) -> Result<Vec<Candidate>> {
    let filter = Filter {
        conversation: search.conversation(),
        role: search.question.role.clone(),
        tool: search.question.tool.clone(),
    };
    let mut scores: HashMap<(MessageId, usize), f64> = HashMap::new();
    for tier in &query.tiers {
        search.go_on()?;
        for hit in search.view.search_messages(&tier.expression, &filter, PASSAGES)? {
            if search.branch.is_current_request(hit.message) {
                continue;
            }
            *scores.entry((hit.message, hit.passage)).or_default() += hit.score * tier.weight;
        }
    }
    let mut by_message: HashMap<MessageId, Vec<(usize, f64)>> = HashMap::new();
    for ((message, passage), score) in scores {
        by_message.entry(message).or_default().push((passage, score));
    }
    let mut found: Vec<(MessageId, Vec<(usize, f64)>)> = by_message.into_iter().collect();
    for (_, passages) in &mut found {
        passages.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    }
    found.sort_by(|one, other| other.1[0].1.total_cmp(&one.1[0].1).then(other.0.cmp(&one.0)));
    let behind = found.split_off(found.len().min(WEIGHED));
    let mut candidates = Vec::new();
    for (message, passages) in &found {
        search.go_on()?;
        candidates.push(weigh(search, query, *message, passages)?);
    }
    candidates.sort_by(by_score);
    let unweighed = |(message, passages): (MessageId, Vec<(usize, f64)>)| {
        let (passage, score) = passages[0];
        Candidate { target: Target::Message(message, passage), score }
    };
    candidates.extend(behind.into_iter().map(unweighed));
    Ok(candidates)
}

/// A message as its best passage, looked at.
fn weigh(
    search: &Search<'_>,
    query: &Query,
    message: MessageId,
    found: &[(usize, f64)],
) -> Result<Candidate> {
    let stored = search.view.message(message)?;
    let text = Message::parse(&stored.json).searchable();
    let ranges = passages(&text);
    let weighed = found.iter().take(WEIGHED_PASSAGES).map(|(passage, score)| {
        let shown = ranges.get(*passage).map_or("", |range| &text[range.clone()]);
        (*passage, score * closeness(query, shown))
    });
    let best = weighed.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
    let (passage, score) = best.unwrap_or_default();
    Ok(Candidate { target: Target::Message(message, passage), score: score * role_weight(&stored.role) })
}

fn summaries(search: &Search<'_>, query: &Query) -> Result<Vec<Candidate>> {
    let mut scores: HashMap<SummaryId, f64> = HashMap::new();
    for tier in &query.tiers {
        search.go_on()?;
        for hit in search.view.search_summaries(&tier.expression, search.conversation(), PASSAGES)? {
            *scores.entry(hit.summary).or_default() += hit.score * tier.weight;
        }
    }
    let mut candidates = Vec::new();
    for (summary, score) in scores {
        let closeness = closeness(query, &search.view.summary(summary)?.text);
        candidates.push(Candidate { target: Target::Summary(summary), score: score * closeness });
    }
    candidates.sort_by(by_score);
    Ok(candidates)
}

/// What the person said weighs more than what a tool printed.
fn role_weight(role: &str) -> f64 {
    match role {
        "user" => 1.5,
        "toolResult" => 0.85,
        _ => 1.0,
    }
}

/// By how much a passage gains from holding the words of the query together, as they were asked.
fn closeness(query: &Query, passage: &str) -> f64 {
    let lower = passage.to_lowercase();
    let words: Vec<&str> = words(&lower).map(|(_, word)| word).collect();
    let mut gain = 1.0 + 1.5 * share_of_neighbours(&query.words, &words);
    if !query.phrase.is_empty() && words.windows(query.phrase.len()).any(|window| window == query.phrase) {
        gain *= 1.5;
    }
    if lower.contains(&query.whole) {
        gain *= 1.5;
    }
    gain
}

/// The share of neighbouring words of the query that are near each other in `words` too.
fn share_of_neighbours(query: &[String], words: &[&str]) -> f64 {
    let positions: Vec<Vec<usize>> = (query.iter())
        .map(|wanted| (0..words.len()).filter(|at| are_kin(words[*at], wanted)).collect())
        .collect();
    let near = |pair: &&[Vec<usize>]| {
        pair[0].iter().any(|one| pair[1].iter().any(|other| one != other && one.abs_diff(*other) <= NEAR + 1))
    };
    #[expect(clippy::cast_precision_loss, reason = "both are small")]
    match positions.len() {
        0 | 1 => 0.0,
        n => positions.windows(2).filter(near).count() as f64 / (n - 1) as f64,
    }
}

fn hit(search: &Search<'_>, query: &Query, target: Target) -> Result<Hit> {
    match target {
        Target::Message(id, passage) => {
            let stored = search.view.message(id)?;
            let text = Message::parse(&stored.json).searchable();
            let within = passages(&text).get(passage).cloned().unwrap_or(0..0);
            Ok(Hit {
                found: Found::Message(MessageCard::of(&stored), search.covering(id)?),
                place: search.place(id)?,
                snippet: Snippet::best(&text, &within, &query.marks),
            })
        }
        Target::Summary(id) => {
            let summary = search.view.summary(id)?;
            Ok(Hit {
                found: Found::Summary(SummaryCard::of(&summary)),
                place: search.place_of_summary(id)?,
                snippet: Snippet::best(&summary.text, &(0..summary.text.len()), &query.marks),
            })
        }
    }
}

/// What wider bounds would find of a query that found nothing.
fn elsewhere(search: &Search<'_>, query: &Query) -> Result<Elsewhere> {
    let expression = &query.tiers[0].expression;
    let mut elsewhere = Elsewhere::default();
    if search.question.kinds == Kinds::Messages {
        let found = search.view.search_summaries(expression, search.conversation(), PASSAGES)?;
        elsewhere.summaries = found.len();
    }
    if search.question.sessions == Sessions::This && search.question.kinds != Kinds::Summaries {
        search.go_on()?;
        let filter = Filter {
            role: search.question.role.clone(),
            tool: search.question.tool.clone(),
            ..Filter::default()
        };
        let hits = search.view.search_messages(expression, &filter, PASSAGES)?;
        let found: HashSet<MessageId> = hits.into_iter().map(|hit| hit.message).collect();
        let mut sessions: HashSet<ConversationId> = HashSet::new();
        for message in found {
            let places = search.view.sessions_of(message)?;
            // This session was searched: what of it fits is the very question that is being answered.
            if !places.contains(&search.scope.conversation) {
                elsewhere.messages += 1;
                sessions.extend(places);
            }
        }
        elsewhere.sessions = sessions.len();
    }
    Ok(elsewhere)
}
