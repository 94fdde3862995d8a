//! Search by relevance: passages ranked by the index, then reranked by what the index can't see.

use std::collections::{HashMap, HashSet};

use super::candidates::{Candidates, reach};
use super::dates::Date;
use super::exact;
use super::matches::{MatchedNode, RankedMatch, WEAK};
use super::phrases::{self, Phrase, PhraseText, stand_in};
use super::query::{Mark, Query, QueryTerm};
use super::rerank::{Lens, Weighed, frequent_words, weigh_roles};
use super::sessions::by_session;
use super::turns::{is_talk, read_together};
use super::wanted::Intent;
use super::{DEFAULT_LIMIT, Elsewhere, Kinds, NextPage, Search, SearchHit, SearchResults, Snippet, Sort};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, MessageId, SummaryId};
use lcm_model::text;
use lcm_model::{passages, searchable};
use lcm_store::Filter;

/// The best passages, which make up the results; lower-ranked ones are not found.
const PASSAGES: usize = 500;
/// Passages checked for other words of messages with a phrase.
const TRIED: usize = 1_000;
/// The weight of a quoted phrase, in addition to its words.
const QUOTED: f64 = 3.0;
/// The best messages, whose text is read to rerank them; the others keep the index's order.
const WEIGHED: usize = 60;
/// The same for a mere talk, and if terms were too frequent for the index: only the text can tell.
const WEIGHED_CLOSELY: usize = 150;
/// Passages reranked per message.
const WEIGHED_PASSAGES: usize = 3;
/// The weight of a message from a date that the query names.
const DATED: f64 = 2.0;
/// After this many results, far weaker ones wait for the next page.
const ALWAYS_SHOWN: usize = 5;
/// The weight of a summary compared to a message, each relative to the best of its kind.
const SUMMARY_WEIGHT: f64 = 0.8;

pub(super) fn find(search: &Search<'_>) -> Result<SearchResults> {
    let query = Query::parse(&search.question.query);
    if query.terms.is_empty() {
        return Err(Error::invalid(format!(
            "there is no word in `{}` to look for: a regular expression finds other signs too",
            text::one_line(&search.question.query, 60)
        )));
    }
    let from = match &search.question.cursor {
        Some(cursor) => cursor.trim().parse().map_err(|_| search.foreign_cursor())?,
        None => 0,
    };
    let phrases = Phrase::all_in(&search.question.query)?;
    let quoted = phrases::rows(search, &phrases, &search.filter)?;
    // Nothing else would be found, and similar words are not wanted.
    let mut reach = if quoted.is_empty() && !phrases.is_empty() && !search.takes_summaries() {
        Candidates::default()
    } else {
        reach(search, &query, &search.filter)?
    };
    reach.quoted = quoted;
    let marks: Vec<Mark> =
        query.marks.iter().cloned().chain(reach.marks.drain(..)).chain(alike(&query)).collect();
    let mut candidates = matches(search, &query, &phrases, &reach)?;
    if let (true, Some(phrase)) = (candidates.is_empty(), phrases.iter().find(|phrase| phrase.may_be_data)) {
        let exact = exact::find(search, &[&phrase.written], &search.filter)?;
        (reach.quoted, reach.stopped_at) = (exact.rows, exact.stopped_at);
        candidates = matches(search, &query, &phrases, &reach)?;
    }
    let stopped_at = reach.stopped_at;
    if candidates.is_empty() {
        return Ok(SearchResults {
            elsewhere: elsewhere(search, &query, &phrases)?,
            missing: missing(search, &phrases)?,
            stopped_at,
            ..SearchResults::default()
        });
    }
    let by_sessions = search.question.kinds == Kinds::Sessions;
    let candidates = match by_sessions {
        true => by_session(search, candidates)?,
        false => in_order(search.question.sort, candidates, phrases.is_empty()),
    };
    let wants_more = by_sessions || search.limit() > DEFAULT_LIMIT;
    let shown = match search.question.sort {
        Sort::Relevance => shown(&candidates, from, search.limit(), wants_more),
        _ => candidates.len().saturating_sub(from).min(search.limit()),
    };
    let hits =
        candidates.iter().skip(from).take(shown).map(|candidate| hit(search, &marks, candidate.target));
    let hits = hits.collect::<Result<_>>()?;
    let more = candidates.len().saturating_sub(from + shown);
    let next = (more > 0).then(|| NextPage { cursor: (from + shown).to_string(), more: Some(more) });
    Ok(SearchResults { hits, next, stopped_at, ..SearchResults::default() })
}

/// Synonyms say little about where a passage matches.
fn alike(query: &Query) -> impl Iterator<Item = Mark> {
    query.synonyms.values().flatten().map(|word| Mark { word: (*word).to_owned(), weight: 2 })
}

/// When sorting by time, far weaker matches are left out, unless each has what was quoted.
fn in_order(sort: Sort, mut candidates: Vec<RankedMatch>, without_weak: bool) -> Vec<RankedMatch> {
    if sort != Sort::Relevance {
        let best = candidates.first().map_or(0.0, |candidate| candidate.score);
        candidates.retain(|candidate| !without_weak || candidate.score >= best * WEAK);
        candidates.sort_by_key(|candidate| candidate.target);
        if sort == Sort::Recent {
            candidates.reverse();
        }
    }
    candidates
}

/// How many results from `from` on make an answer; with `wants_more`, weak ones too.
fn shown(candidates: &[RankedMatch], from: usize, limit: usize, wants_more: bool) -> usize {
    let rest = candidates.get(from..).unwrap_or_default();
    let best = candidates.first().map_or(0.0, |candidate| candidate.score);
    // Later pages include the weak ones.
    let strong = match from {
        0 if !wants_more => {
            rest.iter().skip(ALWAYS_SHOWN).take_while(|candidate| candidate.score >= best * WEAK).count()
        }
        _ => rest.len(),
    };
    rest.len().min(limit).min(ALWAYS_SHOWN + strong)
}

/// All matches, best first; among equals, newer first.
fn matches(
    search: &Search<'_>,
    query: &Query,
    phrases: &[Phrase],
    reach: &Candidates,
) -> Result<Vec<RankedMatch>> {
    let kinds = search.question.kinds;
    let mut messages =
        if kinds == Kinds::Summaries { Vec::new() } else { messages(search, query, phrases, reach)? };
    let mut summaries =
        if search.takes_summaries() { summaries(search, query, phrases)? } else { Vec::new() };
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

fn by_score(one: &RankedMatch, other: &RankedMatch) -> std::cmp::Ordering {
    other.score.total_cmp(&one.score).then(other.target.cmp(&one.target))
}

fn rescale(candidates: &mut [RankedMatch], best: f64) {
    let top = candidates.first().map_or(1.0, |candidate| candidate.score);
    for candidate in candidates {
        candidate.score *= best / top;
    }
}

/// The messages found so far, each with its passages and their scores.
struct MatchedMessages<'a> {
    search: &'a Search<'a>,
    /// What all of them say word for word.
    phrases: &'a [Phrase],
    messages: Vec<(MessageId, Vec<(usize, f64)>)>,
    /// Where each stands in the list; none for those that lack a phrase.
    places: HashMap<MessageId, Option<usize>>,
    passages: usize,
}

impl MatchedMessages<'_> {
    /// Takes the passages with the highest scores.
    fn take_best(&mut self, reach: &Candidates) -> Result<()> {
        // The passages are sorted, so a message is placed by its best passage, and its own passages are in
        // order.
        for (row, score) in &reach.passages {
            if self.passages == PASSAGES {
                return Ok(());
            }
            self.take(*row, *score, true)?;
        }
        if self.messages.len() > self.search.limit() {
            return Ok(());
        }
        // Those most frequent in the store may all be filtered out.
        let had: HashSet<i64> = reach.passages.iter().map(|(row, _)| *row).collect();
        for row in reach.beyond(self.search)?.into_iter().filter(|row| !had.contains(row)) {
            if self.passages == PASSAGES {
                break;
            }
            self.take(row, 0.0, true)?;
        }
        Ok(())
    }

    /// Takes passages that have the phrases, best first, or in the order of the answer, and the passages of the same
    /// messages that have other words of the query.
    fn take_quoted(&mut self, reach: &Candidates) -> Result<()> {
        let scores: HashMap<i64, f64> = reach.passages.iter().copied().collect();
        let score = |row: &i64| scores.get(row).copied().unwrap_or_default() + QUOTED;
        let mut quoted: Vec<(i64, f64)> = reach.quoted.iter().map(|row| (*row, score(row))).collect();
        match self.search.question.sort {
            Sort::Relevance => {
                quoted.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
            }
            Sort::Recent => quoted.reverse(),
            Sort::Oldest => {}
        }
        for (row, score) in quoted {
            if self.passages == PASSAGES {
                break;
            }
            self.take(row, score, true)?;
        }
        for (row, score) in reach.passages.iter().take(TRIED) {
            self.take(*row, *score, false)?;
        }
        for (_, passages) in &mut self.messages {
            passages.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        }
        self.messages.sort_by(|one, other| other.1[0].1.total_cmp(&one.1[0].1).then(other.0.cmp(&one.0)));
        Ok(())
    }

    /// Takes a passage if it may be a result; with `further`, also of a message that was not found yet.
    fn take(&mut self, row: i64, score: f64, further: bool) -> Result<()> {
        self.search.go_on()?;
        let Some(hit) = self.search.view.index().hit(row, &self.search.filter)? else { return Ok(()) };
        let place = match self.places.get(&hit.message) {
            Some(place) => *place,
            None if !further => None,
            None => {
                let is_one = self.search.lets_through(hit.message)?
                    && stand_in(self.search, self.phrases, hit.message)?;
                let place = is_one.then_some(self.messages.len());
                self.messages.extend(is_one.then(|| (hit.message, Vec::new())));
                self.places.insert(hit.message, place);
                place
            }
        };
        if let Some(place) = place
            && self.messages[place].1.iter().all(|(passage, _)| *passage != hit.passage)
        {
            self.messages[place].1.push((hit.passage, score));
            self.passages += 1;
        }
        Ok(())
    }
}

fn messages(
    search: &Search<'_>,
    query: &Query,
    phrases: &[Phrase],
    reach: &Candidates,
) -> Result<Vec<RankedMatch>> {
    let mut found =
        MatchedMessages { search, phrases, messages: Vec::new(), places: HashMap::new(), passages: 0 };
    if phrases.is_empty() {
        found.take_best(reach)?;
    } else {
        found.take_quoted(reach)?;
    }
    let mut found = found.messages;
    let (lens, wanted) = (Lens::new(query, reach), Intent::by(&query.phrase));
    let mut behind = found.split_off(found.len().min(WEIGHED));
    let mut weighed = Vec::new();
    let weigh_all = |found: Vec<(MessageId, Vec<(usize, f64)>)>, weighed: &mut Vec<Weighed>| {
        for (message, passages) in found {
            search.go_on()?;
            weighed.push(weigh(search, &lens, &wanted, reach, message, &passages)?);
        }
        Ok::<_, Error>(())
    };
    weigh_all(found, &mut weighed)?;
    if !reach.frequent.is_empty() || weighed.iter().all(|one| one.is_talk) {
        let last = behind.split_off(behind.len().min(WEIGHED_CLOSELY - WEIGHED));
        weigh_all(behind, &mut weighed)?;
        behind = last;
    }
    weigh_roles(&mut weighed);
    read_together(search, &lens, &mut weighed)?;
    let dates = Date::all_in(&search.question.query);
    let ranked = weighed.into_iter().map(|one| {
        let is_dated = dates.iter().any(|date| date.has(one.time));
        // Only now, or the answer beside a question would get a share of it.
        let said = if one.is_talk { wanted.said_by(one.is_user) } else { 1.0 };
        let score = one.score * said * if is_dated { DATED } else { 1.0 };
        RankedMatch { target: MatchedNode::Message(one.message, one.passage), score }
    });
    let mut candidates: Vec<RankedMatch> = ranked.collect();
    candidates.sort_by(by_score);
    let unweighed = |(message, passages): (MessageId, Vec<(usize, f64)>)| {
        let (passage, score) = passages[0];
        RankedMatch { target: MatchedNode::Message(message, passage), score }
    };
    candidates.extend(behind.into_iter().map(unweighed));
    Ok(candidates)
}

/// Weighs a message by its best passage.
fn weigh(
    search: &Search<'_>,
    lens: &Lens<'_>,
    wanted: &Intent,
    reach: &Candidates,
    message: MessageId,
    found: &[(usize, f64)],
) -> Result<Weighed> {
    let stored = search.view.messages().message(message)?;
    let text = searchable(&stored.json);
    let ranges = passages(&text);
    let read = found.iter().take(WEIGHED_PASSAGES).map(|(passage, score)| {
        let shown = ranges.get(*passage).map_or("", |range| &text[range.clone()]);
        let reading = lens.read(shown);
        (*passage, (score + frequent_words(&reach.frequent, shown)) * reading.gain, reading.has)
    });
    let best = read.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
    let (passage, score, has) = best.unwrap_or_default();
    let shown = ranges.get(passage).map_or("", |range| &text[range.clone()]);
    let is_user = stored.role == "user";
    Ok(Weighed {
        message,
        passage,
        score: score * wanted.weight(&stored.role, shown),
        has,
        length: text.len(),
        is_user,
        is_talk: is_talk(&stored.role),
        is_output: stored.role == "toolResult",
        time: stored.timestamp,
    })
}

fn summaries(search: &Search<'_>, query: &Query, phrases: &[Phrase]) -> Result<Vec<RankedMatch>> {
    let mut scores: HashMap<SummaryId, f64> = HashMap::new();
    for QueryTerm { expression, weight, .. } in &query.terms {
        search.go_on()?;
        for hit in search.view.index().search_summaries(expression, &search.filter, PASSAGES)? {
            *scores.entry(hit.summary).or_default() += hit.score * weight;
        }
    }
    let nothing_known = Candidates::default();
    let (mut candidates, lens) = (Vec::new(), Lens::new(query, &nothing_known));
    for (summary, score) in scores {
        if !search.lets_summary_through(summary)? {
            continue;
        }
        let stored = search.view.summaries().summary(summary)?;
        let text = &stored.text;
        if !phrases.is_empty() {
            let said = PhraseText::of(text);
            if !phrases.iter().all(|phrase| said.has(phrase)) {
                continue;
            }
        }
        let closeness = lens.read(text).gain;
        candidates.push(RankedMatch { target: MatchedNode::Summary(summary), score: score * closeness });
    }
    candidates.sort_by(by_score);
    Ok(candidates)
}

fn hit(search: &Search<'_>, marks: &[Mark], target: MatchedNode) -> Result<SearchHit> {
    match target {
        MatchedNode::Message(id, passage) => {
            let stored = search.view.messages().message(id)?;
            let text = searchable(&stored.json);
            let within = passages(&text).get(passage).cloned().unwrap_or(0..0);
            search.hit(id, &stored, Snippet::best(&text, &within, marks, search.width()))
        }
        MatchedNode::Summary(id) => {
            let summary = search.view.summaries().summary(id)?;
            let within = 0..summary.text.len();
            search.summary_hit(&summary, Snippet::best(&summary.text, &within, marks, search.width()))
        }
    }
}

/// The phrases that nothing has of what was searched.
fn missing(search: &Search<'_>, phrases: &[Phrase]) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for phrase in phrases {
        let one = std::slice::from_ref(phrase);
        let mut stands = search.takes_summaries() && stands_in_summary(search, phrase)?;
        // Of a single phrase, all messages that may have it were read.
        let rows = if phrases.len() == 1 { Vec::new() } else { phrases::rows(search, one, &search.filter)? };
        for row in rows {
            if stands || search.question.kinds == Kinds::Summaries {
                break;
            }
            search.go_on()?;
            if let Some(hit) = search.view.index().hit(row, &search.filter)? {
                stands = search.lets_through(hit.message)? && stand_in(search, one, hit.message)?;
            }
        }
        if !stands && phrases.len() > 1 && phrase.may_be_data && search.question.kinds != Kinds::Summaries {
            stands = !exact::find(search, &[&phrase.written], &search.filter)?.rows.is_empty();
        }
        missing.extend((!stands).then(|| phrase.written.clone()));
    }
    Ok(missing)
}

/// Whether a summary has a phrase.
fn stands_in_summary(search: &Search<'_>, phrase: &Phrase) -> Result<bool> {
    let query = Query::parse(&phrase.written);
    Ok(!summaries(search, &query, std::slice::from_ref(phrase))?.is_empty())
}

/// What a wider search would find, for a query without results.
fn elsewhere(search: &Search<'_>, query: &Query, phrases: &[Phrase]) -> Result<Elsewhere> {
    let mut elsewhere = Elsewhere::default();
    if search.question.kinds == Kinds::Messages && !search.question.is_of_messages() {
        elsewhere.summaries = summaries(search, query, phrases)?.len();
    }
    if search.filter.conversation.is_some() && search.question.kinds != Kinds::Summaries {
        let filter = Filter { conversation: None, ..search.filter.clone() };
        let rows: Vec<i64> = match phrases {
            [] => reach(search, query, &filter)?.passages.into_iter().map(|(row, _)| row).collect(),
            _ => phrases::rows(search, phrases, &filter)?.into_iter().rev().collect(),
        };
        let mut found: HashSet<MessageId> = HashSet::new();
        for row in rows.into_iter().take(PASSAGES) {
            let Some(hit) = search.view.index().hit(row, &filter)? else { continue };
            if search.lets_through(hit.message)? && stand_in(search, phrases, hit.message)? {
                found.insert(hit.message);
            }
        }
        search.go_on()?;
        let mut sessions: HashSet<ConversationId> = HashSet::new();
        for message in found {
            let places = search.view.messages().sessions_of(message)?;
            // This session was searched: what matches there is the current request itself.
            if !places.contains(&search.scope.conversation) {
                elsewhere.messages += 1;
                sessions.extend(places);
            }
        }
        elsewhere.sessions = sessions.len();
    }
    Ok(elsewhere)
}
