//! Finds the best matching lines, with their numbers, in a message, or in a summary and everything under it.

use std::collections::{BTreeMap, BTreeSet};

use tokio_util::sync::CancellationToken;

use super::{Asked, DEEPEST, HEADER, Heading, Place, headings, read_message};
use crate::error::{Error, Result};
use crate::recall::grep::{Lookup, Snippet};
use crate::recall::resolve::Target;
use crate::recall::{Card, SummaryCard};
use crate::tokens;

/// Maximum number of messages searched under a summary.
const MOST_MESSAGES: usize = 20_000;
/// Maximum number of matching lines per answer.
const MOST_LINES: usize = 30;
/// The least weight of a line, in tenths of the best line's.
const TENTHS: usize = 3;
/// Characters of a matching line.
const WIDTH: usize = 240;
/// Characters of a neighboring line.
const BESIDE: usize = 120;

/// The matches in a message or summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The id of the searched message or summary.
    pub handle: String,
    /// Where it is, seen from the current branch.
    pub place: Place,
    /// The texts with the best lines, in order.
    pub excerpts: Vec<Excerpt>,
    /// The number of matching lines on all pages.
    pub matching: usize,
    /// The number of searched messages.
    pub messages: usize,
    /// The number of messages that were too many to search.
    pub passed_over: usize,
    /// How many matching lines are left, and the cursor for them.
    pub left: Option<(usize, String)>,
}

/// The matching lines of one text with their neighbors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The text's owner.
    pub of: Card,
    /// The number of its lines.
    pub total: usize,
    /// Some of them, in order.
    pub lines: Vec<MatchedLine>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedLine {
    /// Its number, from 1.
    pub number: usize,
    /// Whether it matches.
    pub matches: bool,
    /// The part that matches best, or the beginning.
    pub snippet: Snippet,
}

/// A matching line.
#[derive(Clone, Copy)]
struct Match {
    weight: usize,
    /// The index of its text.
    text: usize,
    /// Its index in the text, from 0.
    line: usize,
}

/// A text to search.
struct Text {
    of: Card,
    text: String,
    /// Whether it is output of our own tools.
    is_echo: bool,
}

impl Asked<'_> {
    pub(super) fn inside(&self, target: Target, cancel: &CancellationToken) -> Result<Inside> {
        let lookup = Lookup::new(self.request.query.as_deref().unwrap_or_default());
        let (mut headings, place, handle) = self.texts_of(target)?;
        let messages =
            |headings: &[Heading]| headings.iter().filter(|h| matches!(h, Heading::Message(_))).count();
        let all = messages(&headings);
        headings.truncate(headings.len() - all + all.min(MOST_MESSAGES));
        let matches = self.matches(&headings, &lookup, cancel)?;
        let from = match &self.request.cursor {
            Some(cursor) => cursor.trim().strip_prefix('q').and_then(|from| from.parse().ok()),
            None => Some(0),
        };
        let from: usize =
            from.filter(|from| *from == 0 || *from < matches.len()).ok_or_else(|| self.foreign_cursor())?;
        let (excerpts, taken) = self.show(&headings, &matches[from..], &lookup)?;
        let left = matches.len() - from - taken;
        Ok(Inside {
            handle,
            place,
            excerpts,
            matching: matches.len(),
            messages: messages(&headings),
            passed_over: all - messages(&headings),
            left: (left > 0).then(|| (left, format!("q{}", from + taken))),
        })
    }

    /// What to search: a message, or a summary with the summaries and then the messages under it.
    fn texts_of(&self, target: Target) -> Result<(Vec<Heading>, Place, String)> {
        let Self { view, sight, .. } = self;
        Ok(match target {
            Target::Message(id) => {
                let handle = view.messages().message(id)?.lineage.message_handle();
                (vec![Heading::Message(id)], sight.place(id)?, handle)
            }
            Target::Summary(id) => {
                let mut headings = headings(view, id, DEEPEST)?;
                headings.retain(|heading| !matches!(heading, Heading::Children(_)));
                (headings, sight.place_of_summary(id)?, view.summaries().summary(id)?.hash.summary_handle())
            }
        })
    }

    fn read(&self, heading: Heading) -> Result<Text> {
        match heading {
            Heading::Summary(id) | Heading::Children(id) => {
                let summary = self.view.summaries().summary(id)?;
                Ok(Text { of: Card::Summary(SummaryCard::of(&summary)), text: summary.text, is_echo: false })
            }
            Heading::Message(id) => {
                let (card, message, text) = read_message(self.view, id, false)?;
                Ok(Text { of: Card::Message(card), text, is_echo: message.is_recall_echo() })
            }
        }
    }

    /// The lines that match well enough, best first. With several texts, output of our own tools is skipped
    /// because it repeats the others.
    fn matches(
        &self,
        headings: &[Heading],
        lookup: &Lookup,
        cancel: &CancellationToken,
    ) -> Result<Vec<Match>> {
        let mut found = Vec::new();
        for (at, heading) in headings.iter().enumerate() {
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let text = self.read(*heading)?;
            if headings.len() > 1 && text.is_echo {
                continue;
            }
            for (line, written) in text.text.lines().enumerate() {
                let weight = lookup.weigh(written);
                if weight > 0 {
                    found.push(Match { weight, text: at, line });
                }
            }
        }
        let best = found.iter().map(|found| found.weight).max().unwrap_or_default();
        found.retain(|found| found.weight * 10 >= best * TENTHS);
        // A stable sort: lines of equal weight stay in order.
        found.sort_by_key(|found| std::cmp::Reverse(found.weight));
        Ok(found)
    }

    /// The first of `matches` that fit on a page, in the order of the texts, and their number.
    fn show(
        &self,
        headings: &[Heading],
        matches: &[Match],
        lookup: &Lookup,
    ) -> Result<(Vec<Excerpt>, usize)> {
        let mut budget = self.budget();
        let mut texts: BTreeMap<usize, (Text, BTreeSet<usize>)> = BTreeMap::new();
        let mut taken = 0;
        for found in matches.iter().take(MOST_LINES) {
            let known = texts.remove(&found.text);
            let header = if known.is_some() { 0 } else { HEADER };
            let (text, mut lines) = match known {
                Some(known) => known,
                None => (self.read(headings[found.text])?, BTreeSet::new()),
            };
            let cost = excerpt_lines(&text.text, &BTreeSet::from([found.line]), lookup);
            let cost: usize = cost.iter().map(|line| tokens::estimate(&line.snippet.text) + 8).sum();
            let fits = budget.take_whole(cost + header);
            if fits {
                lines.insert(found.line);
                taken += 1;
            }
            if !lines.is_empty() {
                texts.insert(found.text, (text, lines));
            }
            if !fits {
                break;
            }
        }
        let excerpts = texts.into_values().map(|(text, lines)| Excerpt {
            total: text.text.lines().count(),
            lines: excerpt_lines(&text.text, &lines, lookup),
            of: text.of,
        });
        Ok((excerpts.collect(), taken))
    }
}

/// The lines `wanted` of a text, and those directly before and after each.
fn excerpt_lines(text: &str, wanted: &BTreeSet<usize>, lookup: &Lookup) -> Vec<MatchedLine> {
    let last = wanted.last().copied().unwrap_or_default() + 1;
    let is_near = |at: usize| (at.saturating_sub(1)..=at + 1).any(|near| wanted.contains(&near));
    let shown = text.lines().enumerate().take(last + 1).filter(|(at, _)| is_near(*at));
    shown
        .map(|(at, line)| {
            let matches = wanted.contains(&at);
            let snippet = if matches { lookup.show(line, WIDTH) } else { Snippet::plain(line, BESIDE) };
            MatchedLine { number: at + 1, matches, snippet }
        })
        .filter(|line| !line.snippet.text.is_empty())
        .collect()
}
