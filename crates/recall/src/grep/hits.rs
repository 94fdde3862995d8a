//! Shows results: the text around each match, where it is, and what stands beside it. Results that repeat an earlier one,
//! such as the same file read again, are folded into it.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use super::candidates::Candidates;
use super::query::{Mark, Query};
use super::rank::{MatchedNode, RankedMatch};
use super::{Kinds, Location, Question, Search, SearchHit, Snippet, Sort, snippet};
use crate::cards::{Card, MessageCard, SessionName, SummaryCard};
use lcm_model::error::Result;
use lcm_model::ids::MessageId;
use lcm_model::policy::float;
use lcm_model::text::one_line;
use lcm_model::{passages, searchable};
use lcm_store::{StoredMessage, StoredSummary};

/// Characters of a passage that is shown in full.
const FULL: usize = 800;
/// Characters of a snippet below its session.
const OF_SESSION: usize = 200;
/// The most messages shown on each side of a result.
const MOST_NEIGHBORS: usize = 5;
/// Characters of one of them.
const HEADLINE: usize = 120;
/// The least share of words that two equal snippets have in common.
const SAME: f64 = 0.9;

/// Shows `matches` of a query.
pub(super) fn of(
    search: &Search<'_>,
    query: &Query,
    candidates: &Candidates,
    matches: &[RankedMatch],
) -> Result<Vec<SearchHit>> {
    // Synonyms say little about where a passage matches.
    let synonyms = query.synonyms.values().flatten();
    let synonyms = synonyms.map(|word| Mark { word: (*word).to_owned(), weight: 2 });
    let marks: Vec<Mark> = query.marks.iter().chain(&candidates.marks).cloned().chain(synonyms).collect();
    let best = |text: &str, within| Snippet::best(text, &within, &marks, search.width());
    let hit = |one: &RankedMatch| match one.target {
        MatchedNode::Message(id, passage) => {
            let stored = search.view.messages().message(id)?;
            let text = searchable(&stored.json);
            let within = passages(&text).get(passage).cloned().unwrap_or(0..0);
            search.hit(id, &stored, best(&text, within))
        }
        MatchedNode::Summary(id) => {
            let summary = search.view.summaries().summary(id)?;
            search.summary_hit(&summary, best(&summary.text, 0..summary.text.len()))
        }
    };
    matches.iter().map(hit).collect()
}

impl Search<'_> {
    /// Characters of a snippet.
    pub(super) fn width(&self) -> usize {
        match self.question.kinds {
            _ if self.question.full => FULL,
            Kinds::Sessions => OF_SESSION,
            _ => snippet::WIDTH,
        }
    }

    /// The messages before and after a message, in order.
    fn neighbors(&self, message: MessageId) -> Result<Vec<(MessageCard, String)>> {
        let around = match self.question.context.min(MOST_NEIGHBORS) {
            0 => return Ok(Vec::new()),
            most => self.sight.around(message, most)?,
        };
        let found = around.before.into_iter().chain(around.after);
        let named = found.map(|id| {
            let stored = self.view.messages().message(id)?;
            Ok((MessageCard::of(&stored), one_line(&searchable(&stored.json), HEADLINE)))
        });
        named.collect()
    }

    /// That session, if it is another one, results are grouped by session, or all are searched from outside.
    fn heading(&self, message: MessageId, place: Location) -> Result<Option<SessionName>> {
        let is_named = self.question.kinds == Kinds::Sessions
            || matches!(place, Location::OtherSession | Location::OtherSessionBranch)
            || self.scope.is_outside && self.filter.conversation.is_none();
        let session = if is_named { self.session_of(message)? } else { None };
        let Some(session) = session else { return Ok(None) };
        let mut names = self.names.borrow_mut();
        Ok(Some(match names.entry(session) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(SessionName::of(self.view, session)?).clone(),
        }))
    }

    /// Shows a message.
    pub(super) fn hit(&self, id: MessageId, stored: &StoredMessage, snippet: Snippet) -> Result<SearchHit> {
        let leaf = self.sight.leaf_over(id)?.map(|leaf| self.view.summaries().summary(leaf)).transpose()?;
        let place = self.sight.place(id)?;
        Ok(SearchHit {
            card: Card::Message(MessageCard::of(stored)),
            covering: leaf.map(|leaf| leaf.hash.summary_handle()),
            place,
            session: self.heading(id, place)?,
            snippet,
            also: Vec::new(),
            neighbors: self.neighbors(id)?,
        })
    }

    /// Shows a summary.
    pub(super) fn summary_hit(&self, summary: &StoredSummary, snippet: Snippet) -> Result<SearchHit> {
        let place = match self.sight.branch()?.forest.span(summary.id) {
            Some(_) => Location::Here,
            // One that was superseded has its messages here.
            None => match self.sight.place_of_summary(summary.id)? {
                Location::Here => Location::OtherBranch,
                place => place,
            },
        };
        let last = self.view.summaries().span(summary.id)?.last;
        let session = self.heading(self.view.messages().original(last)?, place)?;
        let card = Card::Summary(SummaryCard::of(summary));
        let (also, neighbors) = (Vec::new(), Vec::new());
        Ok(SearchHit { card, covering: None, place, session, snippet, also, neighbors })
    }
}

/// A snippet's words, and separately those with digits, in which results of one command differ.
struct SnippetWords<'a> {
    words: BTreeSet<&'a str>,
    numbers: BTreeSet<&'a str>,
}

/// Folds results that repeat another of the same role and tool at the same place into one, which names them.
/// Of equal outputs, that is the newest, unless the oldest comes first: the same file, read again. Of equal
/// words, it is the best.
#[must_use]
pub fn fold_equals(hits: Vec<SearchHit>, question: &Question) -> Vec<SearchHit> {
    let is_by_session = question.kinds == Kinds::Sessions;
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let said: Vec<SnippetWords<'_>> = hits.iter().map(|hit| SnippetWords::by(&hit.snippet.text)).collect();
    let speaker = |at: usize| hits[at].card.message().map(|card| (&card.role, &card.tool));
    for at in 0..hits.len() {
        let is_like = |group: &&mut Vec<usize>| {
            let one = group[0];
            speaker(one).is_some_and(|who| Some(who) == speaker(at))
                && hits[one].place == hits[at].place
                && (!is_by_session || hits[one].session == hits[at].session)
                && said[one].is_like(&said[at])
        };
        match groups.iter_mut().find(is_like) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let mut hits: Vec<Option<SearchHit>> = hits.into_iter().map(Some).collect();
    let folded = groups.into_iter().filter_map(|mut group| {
        // When a tool's output was stored.
        let age = |at: &usize| {
            let card =
                hits[*at].as_ref().and_then(|hit| hit.card.message()).filter(|card| card.tool.is_some());
            card.map(|card| (card.timestamp, card.sequence))
        };
        let newest = group.iter().copied().max_by_key(age).filter(|at| age(at).is_some());
        let shown = newest.filter(|_| question.sort != Sort::Oldest).unwrap_or(group[0]);
        group.retain(|at| *at != shown);
        let handle = |at: usize| Some(hits[at].take()?.card.handle().to_owned());
        let also = group.into_iter().filter_map(handle).collect();
        Some(SearchHit { also, ..hits[shown].take()? })
    });
    folded.collect()
}

impl<'a> SnippetWords<'a> {
    fn by(text: &'a str) -> Self {
        let has_digit = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
        let (numbers, words) = text.split(' ').partition(has_digit);
        Self { words, numbers }
    }

    fn is_like(&self, other: &Self) -> bool {
        let common = self.words.intersection(&other.words).count();
        let all = self.words.union(&other.words).count();
        self.numbers == other.numbers && float(common) >= SAME * float(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        SnippetWords::by(one).is_like(&SnippetWords::by(other))
    }

    #[test]
    fn only_repeated_results_are_alike() {
        let line = "let the reader wait until all of the writers are done with it";
        assert!(are_alike(&format!("{line} 3 }}"), &format!("pub {line} 3 }}")));
        assert!(!are_alike("12 tests passed, 0 failed", "12 tests passed, 1 failed"));
        assert!(!are_alike("the build failed", "the build passed"));
    }
}
