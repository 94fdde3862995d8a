//! Orders what was found: the messages of the passages, weighed by their text, by who wrote them and by what stands beside
//! them.
//!
//! Short turns of a talk are read together: the answer stands beside the question, and neither repeats the words of the
//! other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::candidates::Candidates;
use super::closeness::{Lens, frequent_words};
use super::dates::Date;
use super::exact;
use super::phrases::{PhraseText, stand_in};
use super::query::{Query, QueryTerm};
use super::wanted::Intent;
use super::{Kinds, Search, Sort};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId, SummaryId};
use lcm_model::policy::float;
use lcm_model::{passages, searchable};

/// The best passages make up the results, unless more are asked for: so many of messages, and of sessions.
const PASSAGES: [usize; 2] = [500, 3_000];
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
/// A match with less than this share of the best score is weak.
const WEAK: f64 = 0.32;
/// After this many results, weak ones wait for the next page.
const ALWAYS_SHOWN: usize = 5;
/// The weight of a summary compared to a message, each relative to the best of its kind.
const SUMMARY_WEIGHT: f64 = 0.8;

/// The weight of a user's messages in a session with tools.
const USER: f64 = 1.5;
/// The highest weight in a mere talk, where the user's words weigh the more the fewer they are.
const RARE_USER: f64 = 6.0;
/// The weight of a tool's output.
const OUTPUT: f64 = 0.8;

/// The most bytes of turns that are read as one, about a passage.
const TOGETHER: usize = 700;
/// The share of the score of the turns read with a message that it gets, by their distance.
const FROM_TURN: [f64; 3] = [0.3, 0.25, 0.125];
/// The share of the better neighbor's score, if they are too long to be read as one.
const FROM_NEIGHBOR: f64 = 0.3;
/// The bonus if the message, with the turns around it, has all words of the query.
const COVERS: f64 = 1.0;

/// Messages shown of the best sessions; of the others, one.
const SHOWN: [usize; 2] = [3, 2];
/// The weight of each further message in its session's score, relative to the one before.
const FURTHER: f64 = 0.5;

/// A match that is not shown yet.
pub(super) struct RankedMatch {
    pub target: MatchedNode,
    pub score: f64,
    /// Whether it has all words of the query. Known only where the time decides the order.
    pub is_whole: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchedNode {
    Summary(SummaryId),
    /// A message and its best passage.
    Message(MessageId, usize),
}

/// A message with its passages and their scores.
type Matched = (MessageId, Vec<(usize, f64)>);

/// All matches, best first; among equals, newer first.
pub(super) fn all(search: &Search<'_>, query: &Query, found: &mut Candidates) -> Result<Vec<RankedMatch>> {
    let kinds = search.question.kinds;
    let mut messages = if kinds == Kinds::Summaries { Vec::new() } else { messages(search, query, found)? };
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

/// Groups the matches by session, or sorts them by time, as was asked.
pub(super) fn in_order(
    search: &Search<'_>,
    query: &Query,
    mut ranked: Vec<RankedMatch>,
) -> Result<Vec<RankedMatch>> {
    if search.question.kinds == Kinds::Sessions {
        return by_session(search, ranked);
    }
    if search.question.sort != Sort::Relevance {
        let best = ranked.first().map_or(0.0, |one| one.score);
        // Where the time decides, weak matches are left out, unless each has all words, or what was quoted.
        ranked.retain(|one| !query.phrases.is_empty() || one.is_whole || one.score >= best * WEAK);
        let time = |one: &RankedMatch| match one.target {
            MatchedNode::Message(message, _) => search.view.messages().time(message),
            MatchedNode::Summary(summary) => search.view.summaries().span(summary).map(|span| span.from_time),
        };
        let timed = ranked.into_iter().map(|one| Ok((time(&one)?, one)));
        let mut timed = timed.collect::<Result<Vec<_>>>()?;
        timed.sort_by_key(|(time, one)| (*time, one.target));
        ranked = timed.into_iter().map(|(_, one)| one).collect();
        if search.question.sort == Sort::Recent {
            ranked.reverse();
        }
    }
    Ok(ranked)
}

/// How many results from `from` on make an answer.
pub(super) fn shown(search: &Search<'_>, ranked: &[RankedMatch], from: usize) -> usize {
    let rest = ranked.get(from..).unwrap_or_default();
    let best = ranked.first().map_or(0.0, |one| one.score);
    let takes_weak = from > 0
        || search.question.kinds == Kinds::Sessions
        || search.question.sort != Sort::Relevance
        || search.question.limit > 0;
    let strong = match takes_weak {
        true => rest.len(),
        false => rest.iter().skip(ALWAYS_SHOWN).take_while(|one| one.score >= best * WEAK).count(),
    };
    rest.len().min(search.limit()).min(ALWAYS_SHOWN + strong)
}

/// A session with its matching messages.
struct Group {
    session: ConversationId,
    score: f64,
    /// The weight of the next message's score.
    share: f64,
    best: Vec<RankedMatch>,
}

/// The best session first, each with its best messages, fewer for worse sessions. Each further message counts
/// less in a session's score, so that many weak ones don't outweigh one good one.
fn by_session(search: &Search<'_>, candidates: Vec<RankedMatch>) -> Result<Vec<RankedMatch>> {
    let mut groups: Vec<Group> = Vec::new();
    for candidate in candidates {
        let MatchedNode::Message(message, _) = candidate.target else { continue };
        let Some(session) = search.session_of(message)? else { continue };
        let at = groups.iter().position(|group| group.session == session).unwrap_or_else(|| {
            groups.push(Group { session, score: 0.0, share: 1.0, best: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.score += group.share * candidate.score;
        group.share *= FURTHER;
        let least = group.best.first().map_or(0.0, |best| best.score * WEAK);
        if candidate.score >= least {
            group.best.push(candidate);
        }
    }
    groups.sort_by(|one, other| other.score.total_cmp(&one.score));
    let shown = SHOWN.into_iter().chain(std::iter::repeat(1));
    Ok(groups.into_iter().zip(shown).flat_map(|(group, shown)| group.best.into_iter().take(shown)).collect())
}

/// The messages that match, by their best passages.
fn matching(search: &Search<'_>, query: &Query, found: &mut Candidates) -> Result<Vec<Matched>> {
    let most = most_passages(search);
    let mut matching =
        Matching { search, query, messages: Vec::new(), places: HashMap::new(), passages: 0, most };
    if query.phrases.is_empty() {
        if !found.by_time.is_empty() {
            let scores: HashMap<i64, f64> = found.passages.iter().copied().collect();
            let score = |row: &i64| (*row, scores.get(row).copied().unwrap_or_default());
            let by_time: Vec<(i64, f64)> = found.by_time.iter().map(score).collect();
            found.is_full |= matching.take_all(&by_time, true)?;
            matching.passages = 0;
        }
        found.is_full |= matching.take_all(&found.passages, true)?;
        if matching.messages.len() <= search.limit() {
            // Those most frequent in the store may all be filtered out.
            let beyond: Vec<(i64, f64)> = found.beyond(search)?.into_iter().map(|row| (row, 0.0)).collect();
            matching.take_all(&beyond, true)?;
        }
    } else {
        found.is_full |= matching.take_all(&quoted(search, found)?, true)?;
        matching.passages = 0;
        // Other words of the query, in the same messages.
        matching.take_all(&found.passages[..found.passages.len().min(TRIED)], false)?;
    }
    let mut messages = matching.messages;
    for (_, passages) in &mut messages {
        passages.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    }
    messages.sort_by(|one, other| other.1[0].1.total_cmp(&one.1[0].1).then(other.0.cmp(&one.0)));
    Ok(messages)
}

/// How many passages make up the results: enough for the page that is asked for.
fn most_passages(search: &Search<'_>) -> usize {
    let from: usize = search.question.cursor.as_ref().and_then(|from| from.trim().parse().ok()).unwrap_or(0);
    let most = PASSAGES[usize::from(search.question.kinds == Kinds::Sessions)];
    most.max(from.saturating_add(search.limit()).saturating_mul(2))
}

/// The passages that have the phrases, best first, or in the order of the answer.
fn quoted(search: &Search<'_>, found: &Candidates) -> Result<Vec<(i64, f64)>> {
    let scores: HashMap<i64, f64> = found.passages.iter().copied().collect();
    let score = |row: &i64| scores.get(row).copied().unwrap_or_default() + QUOTED;
    let mut quoted: Vec<(i64, f64)> = found.quoted.iter().map(|row| (*row, score(row))).collect();
    if search.question.sort == Sort::Relevance {
        quoted.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    } else if quoted.len() > most_passages(search) {
        let timed = quoted.into_iter().map(|one| Ok((search.view.index().time(one.0)?, one)));
        let mut timed = timed.collect::<Result<Vec<_>>>()?;
        timed.sort_by_key(|(time, one)| (*time, one.0));
        quoted = timed.into_iter().map(|(_, one)| one).collect();
        if search.question.sort == Sort::Recent {
            quoted.reverse();
        }
    }
    Ok(quoted)
}

/// The messages found so far.
struct Matching<'a> {
    search: &'a Search<'a>,
    query: &'a Query,
    messages: Vec<Matched>,
    /// Where each stands in the list; none for those that may be no result, or lack a phrase.
    places: HashMap<MessageId, Option<usize>>,
    passages: usize,
    most: usize,
}

impl Matching<'_> {
    /// Takes passages until there are enough; with `further`, also those of messages that were not found yet. Returns whether
    /// some are left.
    fn take_all(&mut self, passages: &[(i64, f64)], further: bool) -> Result<bool> {
        for (row, score) in passages {
            if self.passages >= self.most {
                return Ok(true);
            }
            self.take(*row, *score, further)?;
        }
        Ok(false)
    }

    fn take(&mut self, row: i64, score: f64, further: bool) -> Result<()> {
        self.search.go_on()?;
        let Some(hit) = self.search.view.index().hit(row, &self.search.filter)? else { return Ok(()) };
        let place = match self.places.get(&hit.message) {
            Some(place) => *place,
            None if !further => None,
            None => {
                let is_one = self.search.lets_through(hit.message)?
                    && stand_in(self.search, &self.query.phrases, hit.message)?;
                let place = is_one.then_some(self.messages.len());
                self.messages.extend(is_one.then(|| (hit.message, Vec::new())));
                self.places.insert(hit.message, place);
                place
            }
        };
        if let Some(place) = place {
            let of_message = &mut self.messages[place].1;
            // No more than are weighed: those of a long message would take the places of others.
            if of_message.len() < WEIGHED_PASSAGES
                && of_message.iter().all(|(passage, _)| *passage != hit.passage)
            {
                of_message.push((hit.passage, score));
                self.passages += 1;
            }
        }
        Ok(())
    }
}

/// All messages, best first.
fn messages(search: &Search<'_>, query: &Query, found: &mut Candidates) -> Result<Vec<RankedMatch>> {
    let mut matched = matching(search, query, found)?;
    if let (true, Some(phrase)) = (matched.is_empty(), query.phrases.iter().find(|phrase| phrase.may_be_data))
    {
        (found.quoted, found.stopped_at) = exact::find(search, &[&phrase.written])?;
        matched = matching(search, query, found)?;
    }
    let (lens, wanted) = (Lens::new(query, found), Intent::by(&query.phrase));
    let (mut behind, mut weighed) = (matched.into_iter(), Vec::new());
    for one in behind.by_ref() {
        search.go_on()?;
        weighed.push(weigh(search, &lens, &wanted, found, &one)?);
        let is_close = weighed.len() < WEIGHED_CLOSELY
            && (!found.frequent.is_empty() || weighed.iter().all(|one| is_talk(&one.role)));
        if weighed.len() >= WEIGHED && !is_close {
            break;
        }
    }
    weigh_roles(&mut weighed);
    read_together(search, &lens, &mut weighed)?;
    let dates = Date::all_in(&search.question.query);
    let ranked = weighed.into_iter().map(|one| {
        let is_dated = dates.iter().any(|date| date.has(one.time));
        // Only now, or the answer beside a question would get a share of it.
        let said = if is_talk(&one.role) { wanted.said_by(one.role == "user") } else { 1.0 };
        let score = one.score * said * if is_dated { DATED } else { 1.0 };
        RankedMatch { target: MatchedNode::Message(one.message, one.passage), score, is_whole: false }
    });
    let mut ranked: Vec<RankedMatch> = ranked.collect();
    ranked.sort_by(by_score);
    let unweighed = |(message, passages): Matched| {
        let (passage, score) = passages[0];
        RankedMatch { target: MatchedNode::Message(message, passage), score, is_whole: false }
    };
    ranked.extend(behind.map(unweighed));
    if search.question.sort != Sort::Relevance {
        for one in &mut ranked {
            search.go_on()?;
            let MatchedNode::Message(message, _) = one.target else { continue };
            let text = search.view.messages().json_of(message)?;
            one.is_whole = is_whole(&lens.has(&searchable(&text)));
        }
    }
    Ok(ranked)
}

/// A message and its score.
struct Weighed {
    message: MessageId,
    /// Its best passage.
    passage: usize,
    score: f64,
    /// How well that passage has each word of the query.
    has: Vec<f64>,
    /// Bytes of the message's text.
    length: usize,
    role: String,
    /// In ms since the epoch.
    time: i64,
}

/// Weighs a message by its best passage.
fn weigh(
    search: &Search<'_>,
    lens: &Lens<'_>,
    wanted: &Intent,
    found: &Candidates,
    (message, matched): &Matched,
) -> Result<Weighed> {
    let stored = search.view.messages().message(*message)?;
    let text = searchable(&stored.json);
    let ranges = passages(&text);
    let read = matched.iter().take(WEIGHED_PASSAGES).map(|(passage, score)| {
        let shown = ranges.get(*passage).map_or("", |range| &text[range.clone()]);
        let reading = lens.read(shown);
        (*passage, (score + frequent_words(&found.frequent, shown)) * reading.gain, reading.has)
    });
    let best = read.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
    let (passage, score, has) = best.unwrap_or_default();
    let shown = ranges.get(passage).map_or("", |range| &text[range.clone()]);
    Ok(Weighed {
        message: *message,
        passage,
        score: score * wanted.weight(&stored.role, shown),
        has,
        length: text.len(),
        role: stored.role,
        time: stored.timestamp,
    })
}

/// Weighs the messages by who wrote them.
fn weigh_roles(weighed: &mut [Weighed]) {
    let bytes = |of_user: bool| -> usize {
        weighed.iter().filter(|one| (one.role == "user") == of_user).map(|one| one.length).sum()
    };
    let half_of_share = float(bytes(true) + bytes(false)) / float((2 * bytes(true)).max(1));
    let is_talk = weighed.iter().all(|one| is_talk(&one.role));
    let user = if is_talk { half_of_share.powf(0.7).clamp(1.0, RARE_USER) } else { USER };
    for one in weighed {
        one.score *= match one.role.as_str() {
            "user" => user,
            "toolResult" => OUTPUT,
            _ => 1.0,
        };
    }
}

/// What is known of a message beside a candidate.
struct TalkTurn {
    is_talk: bool,
    length: usize,
    /// How well it has each word of the query.
    has: Vec<f64>,
}

/// Adds to each message's score what the messages beside it say.
fn read_together(search: &Search<'_>, lens: &Lens<'_>, weighed: &mut [Weighed]) -> Result<()> {
    let scores: HashMap<MessageId, f64> = weighed.iter().map(|one| (one.message, one.score)).collect();
    let mut turns = HashMap::new();
    for one in weighed {
        let (mut has, mut from_turns, mut from_neighbor) = (one.has.clone(), 0.0, 0.0_f64);
        for step in [-1, 1] {
            let (mut at, mut length) = (one.message, one.length);
            for (distance, share) in FROM_TURN.iter().enumerate() {
                let Some(next) = search.neighbor(at, step)? else { break };
                let score = scores.get(&next).copied().unwrap_or_default();
                let together = is_talk(&one.role) && length <= TOGETHER && {
                    let turn = turn(search, lens, &mut turns, next)?;
                    length += turn.length;
                    let fits = turn.is_talk && length <= TOGETHER;
                    if fits {
                        has.iter_mut().zip(&turn.has).for_each(|(has, also)| *has = has.max(*also));
                    }
                    fits
                };
                if !together {
                    let neighbor = if distance == 0 { FROM_NEIGHBOR * score } else { 0.0 };
                    from_neighbor = from_neighbor.max(neighbor);
                    break;
                }
                from_turns += share * score;
                at = next;
            }
        }
        one.score += from_turns + from_neighbor;
        one.score *= 1.0 + COVERS * lens.share(&has).powf(1.5);
    }
    Ok(())
}

fn turn<'a>(
    search: &Search<'_>,
    lens: &Lens<'_>,
    turns: &'a mut HashMap<MessageId, TalkTurn>,
    id: MessageId,
) -> Result<&'a TalkTurn> {
    match turns.entry(id) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(unknown) => {
            let stored = search.view.messages().message(id)?;
            let text = searchable(&stored.json);
            let is_talk = is_talk(&stored.role);
            let has = if is_talk && text.len() <= TOGETHER { lens.has(&text) } else { Vec::new() };
            Ok(unknown.insert(TalkTurn { is_talk, length: text.len(), has }))
        }
    }
}

/// Whether the user or the model says it.
fn is_talk(role: &str) -> bool {
    matches!(role, "user" | "assistant")
}

/// The summaries that match, best first.
pub(super) fn summaries(search: &Search<'_>, query: &Query) -> Result<Vec<RankedMatch>> {
    let mut scores: HashMap<SummaryId, f64> = HashMap::new();
    for QueryTerm { expression, weight, .. } in &query.terms {
        search.go_on()?;
        for hit in search.view.index().search_summaries(expression, &search.filter, most_passages(search))? {
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
        let said = PhraseText::of(text);
        if !query.phrases.iter().all(|phrase| said.has(phrase)) {
            continue;
        }
        let closeness = lens.read(text);
        candidates.push(RankedMatch {
            target: MatchedNode::Summary(summary),
            score: score * closeness.gain,
            is_whole: is_whole(&closeness.has),
        });
    }
    candidates.sort_by(by_score);
    Ok(candidates)
}

/// Whether a text that has the query's words so well has all of them.
fn is_whole(has: &[f64]) -> bool {
    has.iter().all(|has| *has > 0.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_mere_talk_the_user_weighs_more_the_less_they_say() {
        let weigh = |messages: [(&str, usize); 3]| {
            let mut weighed = messages.map(|(role, length)| Weighed {
                message: MessageId(1),
                passage: 0,
                score: 1.0,
                has: Vec::new(),
                length,
                role: role.to_owned(),
                time: 0,
            });
            weigh_roles(&mut weighed);
            weighed.map(|one| one.score)
        };
        let short = weigh([("user", 100), ("assistant", 900), ("assistant", 900)]);
        assert!(short[0] > USER && short[0] <= RARE_USER && short[1..] == [1.0, 1.0], "{short:?}");
        assert_eq!(weigh([("user", 900), ("user", 900), ("assistant", 900)]), [1.0; 3]);
        assert_eq!(weigh([("user", 10), ("assistant", 900), ("toolResult", 9)]), [USER, 1.0, OUTPUT]);
    }
}
