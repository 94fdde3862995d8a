//! Search by relevance: passages by what the index says, weighed again by what it cannot see.

use std::collections::{HashMap, HashSet};

use super::candidates::{Candidates, reach};
use super::query::{Mark, Query, Term};
use super::rerank::{Lens, frequent_words, role_weight};
use super::{DEFAULT_LIMIT, Elsewhere, Findings, Found, Hit, Kinds, Next, Search, Snippet, Sort};
use crate::error::{Error, Result};
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::model::{passages, searchable};
use crate::recall::cards::{MessageCard, SummaryCard};
use crate::store::Filter;
use crate::text;

/// Passages, best first, that make results; what ranks behind them is not found.
const PASSAGES: usize = 500;
/// Passages that are held against the filter to find them.
const TRIED: usize = 6_000;
/// Messages, best first, whose text is looked at to weigh them again; the others follow as the index ranks them.
const WEIGHED: usize = 60;
/// The same where terms were too frequent for the index, and only the text can tell.
const WEIGHED_CLOSELY: usize = 150;
/// Passages of one message that are weighed.
const WEIGHED_PASSAGES: usize = 3;
/// What the newest message gains on the oldest: of those that say the same, the newer one is wanted.
const NEWEST: f64 = 0.03;
/// What a message takes over from the better of the two beside it.
const FROM_NEIGHBOR: f64 = 0.3;
/// After this many results, those far weaker than the best are left for the next page.
const ALWAYS_SHOWN: usize = 5;
/// How much weaker that is.
const WEAK: f64 = 0.35;
/// Messages that a session is shown by.
const OF_A_SESSION: usize = 3;
/// What each further message adds to its session's score, beside the one before.
const FURTHER: f64 = 0.5;
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
    if query.terms.is_empty() {
        return Err(Error::invalid(format!(
            "there is no word in `{}` to look for: mode \"regex\" finds other signs too",
            text::one_line(&search.question.query, 60)
        )));
    }
    let from = match &search.question.cursor {
        Some(cursor) => cursor.trim().parse().map_err(|_| search.foreign_cursor())?,
        None => 0,
    };
    let mut reach = reach(search, &query)?;
    let marks: Vec<Mark> =
        query.marks.iter().cloned().chain(reach.marks.drain(..)).chain(alike(&query)).collect();
    let candidates = candidates(search, &query, &reach)?;
    if candidates.is_empty() {
        return Ok(Findings { elsewhere: elsewhere(search, &query, &reach)?, ..Findings::default() });
    }
    let by_sessions = search.question.kinds == Kinds::Sessions;
    let candidates = match by_sessions {
        true => by_session(search, candidates)?,
        false => in_order(search.question.sort, candidates),
    };
    let wants_more = by_sessions || search.question.limit > DEFAULT_LIMIT;
    let shown = match search.question.sort {
        Sort::Relevance => shown(&candidates, from, search.limit(), wants_more),
        _ => candidates.len().saturating_sub(from).min(search.limit()),
    };
    let hits =
        candidates.iter().skip(from).take(shown).map(|candidate| hit(search, &marks, candidate.target));
    let hits = hits.collect::<Result<_>>()?;
    let more = candidates.len().saturating_sub(from + shown);
    let next = (more > 0).then(|| Next { cursor: (from + shown).to_string(), more: Some(more) });
    Ok(Findings { hits, next, ..Findings::default() })
}

/// What means the same as the query's words tells little of where a passage matches.
fn alike(query: &Query) -> impl Iterator<Item = Mark> {
    query.synonyms.values().flatten().map(|word| Mark { word: (*word).to_owned(), weight: 2 })
}

/// By time, only what is not far weaker than the best is worth showing.
fn in_order(sort: Sort, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    if sort != Sort::Relevance {
        let best = candidates.first().map_or(0.0, |candidate| candidate.score);
        candidates.retain(|candidate| candidate.score >= best * WEAK);
        candidates.sort_by_key(|candidate| candidate.target);
        if sort == Sort::Recent {
            candidates.reverse();
        }
    }
    candidates
}

/// A session, by its messages that fit.
struct Group {
    session: ConversationId,
    score: f64,
    /// What the next message's score counts.
    share: f64,
    best: Vec<Candidate>,
}

/// The best session first, each with the best of its messages. A session's score adds up theirs, each next one for less: many weak
/// ones do not outdo the one that says it.
fn by_session(search: &Search<'_>, candidates: Vec<Candidate>) -> Result<Vec<Candidate>> {
    let mut groups: Vec<Group> = Vec::new();
    for candidate in candidates {
        let Target::Message(message, _) = candidate.target else { continue };
        let Some(session) = search.session_of(message)? else { continue };
        let at = groups.iter().position(|group| group.session == session).unwrap_or_else(|| {
            groups.push(Group { session, score: 0.0, share: 1.0, best: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.score += group.share * candidate.score;
        group.share *= FURTHER;
        let least = group.best.first().map_or(0.0, |best| best.score * WEAK);
        if group.best.len() < OF_A_SESSION && candidate.score >= least {
            group.best.push(candidate);
        }
    }
    groups.sort_by(|one, other| other.score.total_cmp(&one.score));
    Ok(groups.into_iter().flat_map(|group| group.best).collect())
}

/// How many results from `from` on make an answer; the weak ones too for who `wants_more`.
fn shown(candidates: &[Candidate], from: usize, limit: usize, wants_more: bool) -> usize {
    let rest = candidates.get(from..).unwrap_or_default();
    let best = candidates.first().map_or(0.0, |candidate| candidate.score);
    // So does who goes on.
    let strong = match from {
        0 if !wants_more => {
            rest.iter().skip(ALWAYS_SHOWN).take_while(|candidate| candidate.score >= best * WEAK).count()
        }
        _ => rest.len(),
    };
    rest.len().min(limit).min(ALWAYS_SHOWN + strong)
}

/// All that fits, best first, the newer first where they are equal.
fn candidates(search: &Search<'_>, query: &Query, reach: &Candidates) -> Result<Vec<Candidate>> {
    let kinds = search.question.kinds;
    let mut messages = if kinds == Kinds::Summaries { Vec::new() } else { messages(search, query, reach)? };
    let mut summaries = if search.takes_summaries() { summaries(search, query)? } else { Vec::new() };
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

fn messages(search: &Search<'_>, query: &Query, reach: &Candidates) -> Result<Vec<Candidate>> {
    let filter = search.filter();
    let mut found: Vec<(MessageId, Vec<(usize, f64)>)> = Vec::new();
    let mut places: HashMap<MessageId, usize> = HashMap::new();
    let mut passages = 0;
    for (row, score) in reach.passages.iter().take(TRIED) {
        let Some(hit) = search.view.index().hit(*row, &filter)? else { continue };
        if !search.lets_through(hit.message)? {
            continue;
        }
        // Best first: so a message stands where its best passage does, and its passages are in order.
        let place = *places.entry(hit.message).or_insert_with(|| {
            found.push((hit.message, Vec::new()));
            found.len() - 1
        });
        found[place].1.push((hit.passage, *score));
        passages += 1;
        if passages == PASSAGES {
            break;
        }
    }
    let weighed = if reach.frequent.is_empty() { WEIGHED } else { WEIGHED_CLOSELY };
    let behind = found.split_off(found.len().min(weighed));
    let (mut candidates, lens) = (Vec::new(), Lens::new(query, reach));
    for (message, passages) in &found {
        search.go_on()?;
        candidates.push(weigh(search, &lens, reach, *message, passages)?);
    }
    take_from_neighbors(search, &mut candidates)?;
    candidates.sort_by(by_score);
    let unweighed = |(message, passages): (MessageId, Vec<(usize, f64)>)| {
        let (passage, score) = passages[0];
        Candidate { target: Target::Message(message, passage), score }
    };
    candidates.extend(behind.into_iter().map(unweighed));
    Ok(candidates)
}

/// A question and its answer stand side by side: each lends the other some of its score.
fn take_from_neighbors(search: &Search<'_>, candidates: &mut [Candidate]) -> Result<()> {
    let message = |candidate: &Candidate| match candidate.target {
        Target::Message(message, _) => Some(message),
        Target::Summary(_) => None,
    };
    let scores: HashMap<MessageId, f64> =
        candidates.iter().filter_map(|candidate| Some((message(candidate)?, candidate.score))).collect();
    let newest = candidates.iter().filter_map(message).map(|message| message.0).max().unwrap_or_default();
    for candidate in candidates {
        let Some(message) = message(candidate) else { continue };
        let neighbors = search.view.index().neighbors(message)?;
        let best = neighbors.iter().filter_map(|beside| scores.get(beside)).copied().fold(0.0, f64::max);
        candidate.score += FROM_NEIGHBOR * best;
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let age = message.0 as f64 / newest.max(1) as f64;
        candidate.score *= 1.0 + NEWEST * age;
    }
    Ok(())
}

/// A message as its best passage, looked at.
fn weigh(
    search: &Search<'_>,
    lens: &Lens<'_>,
    reach: &Candidates,
    message: MessageId,
    found: &[(usize, f64)],
) -> Result<Candidate> {
    let stored = search.view.messages().message(message)?;
    let text = searchable(&stored.json);
    let ranges = passages(&text);
    let weighed = found.iter().take(WEIGHED_PASSAGES).map(|(passage, score)| {
        let shown = ranges.get(*passage).map_or("", |range| &text[range.clone()]);
        (*passage, (score + frequent_words(&reach.frequent, shown)) * lens.closeness(shown))
    });
    let best = weighed.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
    let (passage, score) = best.unwrap_or_default();
    Ok(Candidate { target: Target::Message(message, passage), score: score * role_weight(&stored.role) })
}

fn summaries(search: &Search<'_>, query: &Query) -> Result<Vec<Candidate>> {
    let (filter, mut scores): (_, HashMap<SummaryId, f64>) = (search.filter(), HashMap::new());
    for Term { expression, weight, .. } in &query.terms {
        search.go_on()?;
        for hit in search.view.index().search_summaries(expression, &filter, PASSAGES)? {
            *scores.entry(hit.summary).or_default() += hit.score * weight;
        }
    }
    let nothing_known = Candidates::default();
    let (mut candidates, lens) = (Vec::new(), Lens::new(query, &nothing_known));
    for (summary, score) in scores {
        if !search.lets_summary_through(summary)? {
            continue;
        }
        let closeness = lens.closeness(&search.view.summaries().summary(summary)?.text);
        candidates.push(Candidate { target: Target::Summary(summary), score: score * closeness });
    }
    candidates.sort_by(by_score);
    Ok(candidates)
}

fn hit(search: &Search<'_>, marks: &[Mark], target: Target) -> Result<Hit> {
    match target {
        Target::Message(id, passage) => {
            let stored = search.view.messages().message(id)?;
            let text = searchable(&stored.json);
            let within = passages(&text).get(passage).cloned().unwrap_or(0..0);
            Ok(Hit {
                found: Found::Message(MessageCard::of(&stored), search.covering(id)?),
                place: search.place(id)?,
                session: search.heading(id)?,
                snippet: Snippet::best(&text, &within, marks, search.width()),
                like: None,
                beside: search.beside(id)?,
            })
        }
        Target::Summary(id) => {
            let summary = search.view.summaries().summary(id)?;
            Ok(Hit {
                found: Found::Summary(SummaryCard::of(&summary)),
                place: search.place_of_summary(id)?,
                session: None,
                snippet: Snippet::best(&summary.text, &(0..summary.text.len()), marks, search.width()),
                like: None,
                beside: Vec::new(),
            })
        }
    }
}

/// What wider bounds would find of a query that found nothing.
fn elsewhere(search: &Search<'_>, query: &Query, reach: &Candidates) -> Result<Elsewhere> {
    let mut elsewhere = Elsewhere::default();
    if search.question.kinds == Kinds::Messages && !search.is_of_messages() {
        elsewhere.summaries = summaries(search, query)?.len();
    }
    if search.conversation.is_some() && search.question.kinds != Kinds::Summaries {
        let filter = Filter { conversation: None, ..search.filter() };
        let mut found: HashSet<MessageId> = HashSet::new();
        for (row, _) in reach.passages.iter().take(PASSAGES) {
            found.extend(search.view.index().hit(*row, &filter)?.map(|hit| hit.message));
        }
        search.go_on()?;
        let mut sessions: HashSet<ConversationId> = HashSet::new();
        for message in found {
            let places = search.view.messages().sessions_of(message)?;
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
