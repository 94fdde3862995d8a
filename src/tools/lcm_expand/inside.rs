//! Finds the best matching lines, with their numbers, in a message, or in a summary and everything under it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Block, DEEPEST, Expansion, HEADER, Heading, Location, Original, call, headings, lines};
use lcm_model::error::Result;
use lcm_model::text::{count, one_line};
use lcm_model::tokens;
use lcm_recall::grep::{Lookup, Snippet};
use lcm_recall::{Card, NodeId, SummaryCard};
use lcm_store::tasks::go_on;

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
/// Lines before and after a match in the suggested call.
const AROUND_A_LINE: usize = 20;

/// A matching line.
#[derive(Clone, Copy)]
struct Match {
    weight: usize,
    /// The index of its text.
    text: usize,
    /// Its index in the text, from 0.
    line: usize,
}

/// A text with its matching lines.
type MatchedText = (SearchedText, BTreeSet<usize>);

/// A text to search.
struct SearchedText {
    of: Card,
    text: String,
    /// Whether it is output of our own tools.
    is_echo: bool,
}

impl Expansion<'_> {
    pub(super) fn inside(&self, target: NodeId, cancel: &CancellationToken) -> Result<Vec<Block>> {
        let query = self.request.query.as_deref().unwrap_or_default();
        let lookup = Lookup::new(query);
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
        let (texts, taken) = self.fitting(&headings, &matches[from..], &lookup)?;
        let query = one_line(query, 80);
        let looked = match messages(&headings) {
            1 => String::new(),
            n => format!(" and {} under it", count(n, "message")),
        };
        let beyond = match all - messages(&headings) {
            0 => String::new(),
            n => {
                let last = count(n, "message");
                format!(" The last {last} were not looked through: look inside a summary under it.")
            }
        };
        let mut out = String::new();
        let mut place = place;
        for (text, found) in &texts {
            // Stated once: everything under a summary has the same place.
            text.push(&mut out, found, std::mem::replace(&mut place, Location::Here), &lookup);
        }
        if texts.is_empty() {
            out = format!(
                "No line of {handle}{looked} has a word of `{query}`.{beyond} lcm_grep searches the whole history."
            );
            return Ok(vec![Block::Text(out)]);
        }
        let (matching, left) = (count(matches.len(), "line"), matches.len() - from - taken);
        let _ = write!(out, "{taken} of {matching} of {handle}{looked} that best match `{query}`.{beyond}");
        if left > 0 {
            let next = self.next(&handle, &format!("q{}", from + taken));
            let _ = write!(out, " {left} left: {next}");
        }
        // The lines around the first match.
        let first = texts.iter().find_map(|(text, found)| Some((text.of.message()?, found.first()? + 1)));
        if let Some((card, line)) = first {
            let lines = format!("{}-{}", line.saturating_sub(AROUND_A_LINE).max(1), line + AROUND_A_LINE);
            let further = call(&json!({"summary_id": card.handle, "lines": lines}));
            let _ = write!(out, "\nMore of one: {further}");
        }
        Ok(vec![Block::Text(out)])
    }

    /// What to search: a message, or a summary with the summaries and then the messages under it.
    fn texts_of(&self, target: NodeId) -> Result<(Vec<Heading>, Location, String)> {
        let Self { view, sight, .. } = self;
        Ok(match target {
            NodeId::Message(id) => {
                let handle = view.messages().message(id)?.lineage.message_handle();
                (vec![Heading::Message(id)], sight.place(id)?, handle)
            }
            NodeId::Summary(id) => {
                let mut headings = headings(view, id, DEEPEST)?;
                headings.retain(|heading| !matches!(heading, Heading::Children(_)));
                (headings, sight.place_of_summary(id)?, view.summaries().summary(id)?.hash.summary_handle())
            }
        })
    }

    fn read(&self, heading: Heading) -> Result<SearchedText> {
        match heading {
            Heading::Summary(id) | Heading::Children(id) => {
                let summary = self.view.summaries().summary(id)?;
                Ok(SearchedText {
                    of: Card::Summary(SummaryCard::of(&summary)),
                    text: summary.summary.text,
                    is_echo: false,
                })
            }
            Heading::Message(id) => {
                let Original { card, text, is_echo, .. } = Original::read(self.view, id, false)?;
                Ok(SearchedText { of: Card::Message(card), text, is_echo })
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
            go_on(cancel)?;
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

    /// The texts of the first of `matches` that fit on a page, in order, each with these lines; and their
    /// number.
    fn fitting(
        &self,
        headings: &[Heading],
        matches: &[Match],
        lookup: &Lookup,
    ) -> Result<(Vec<MatchedText>, usize)> {
        let mut budget = self.budget();
        let mut texts: BTreeMap<usize, MatchedText> = BTreeMap::new();
        let mut taken = 0;
        for found in matches.iter().take(MOST_LINES) {
            let known = texts.remove(&found.text);
            let header = if known.is_some() { 0 } else { HEADER };
            let (text, mut lines) = match known {
                Some(known) => known,
                None => (self.read(headings[found.text])?, BTreeSet::new()),
            };
            let cost = text.excerpt(&BTreeSet::from([found.line]), lookup);
            let cost: usize = cost.iter().map(|(_, snippet)| tokens::estimate(&snippet.text) + 8).sum();
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
        Ok((texts.into_values().collect(), taken))
    }
}

impl SearchedText {
    /// The lines `wanted`, and those directly before and after each, with their numbers from 0.
    fn excerpt(&self, wanted: &BTreeSet<usize>, lookup: &Lookup) -> Vec<(usize, Snippet)> {
        let last = wanted.last().copied().unwrap_or_default() + 1;
        let is_near = |at: usize| (at.saturating_sub(1)..=at + 1).any(|near| wanted.contains(&near));
        let shown = self.text.lines().enumerate().take(last + 1).filter(|(at, _)| is_near(*at));
        let snippet = |(at, line)| match wanted.contains(&at) {
            true => (at, lookup.show(line, WIDTH)),
            false => (at, Snippet::plain(line, BESIDE)),
        };
        shown.map(snippet).filter(|(_, snippet)| !snippet.text.is_empty()).collect()
    }

    fn push(&self, out: &mut String, found: &BTreeSet<usize>, place: Location, lookup: &Lookup) {
        let name = match &self.of {
            Card::Message(card) => lines::message(card),
            Card::Summary(card) => lines::summary(card),
        };
        let total = count(self.text.lines().count(), "line");
        let _ = writeln!(out, "{name}{} · {total}:", lines::place(place));
        for (at, snippet) in self.excerpt(found, lookup) {
            let sign = if found.contains(&at) { ':' } else { '-' };
            let _ = writeln!(out, "{}{sign} {}", at + 1, lines::marked(&snippet, lines::in_marks));
        }
    }
}
