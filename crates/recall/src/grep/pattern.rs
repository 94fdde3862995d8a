//! Searches the text itself by regular expression: in linear time, on all cores, newest or oldest first,
//! until an answer is full.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Instant;

use regex::{Regex, RegexBuilder};

use super::scan;
use super::sieve::Sieve;
use super::{Kinds, NextPage, Search, SearchHit, SearchResults, Snippet, Sort};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{MessageId, SummaryId};
use lcm_model::{searchable, text};
use lcm_store::tasks::go_on;
use lcm_store::{Continue, Packed, StoredSummary, TimeOrder};

/// The maximum size of a compiled expression in bytes.
const SIZE_LIMIT: usize = 1 << 20;
/// The most matches highlighted in one text.
const POINTED_OUT: usize = 32;

/// Where a search ran out of time: at a message, and whether that was searched.
type Stop = (MessageId, bool);

/// An answer being filled.
#[derive(Default)]
struct ResultPage {
    findings: SearchResults,
    /// The cursor of its last hit.
    last: String,
}

impl ResultPage {
    /// Adds a match at `cursor`; if the page is full, records that there is more. Returns whether to
    /// continue.
    fn add(
        &mut self,
        search: &Search<'_>,
        cursor: String,
        hit: impl FnOnce() -> Result<SearchHit>,
    ) -> Result<bool> {
        if self.findings.hits.len() >= search.limit() {
            self.findings.next = Some(NextPage { cursor: std::mem::take(&mut self.last), more: None });
            return Ok(false);
        }
        self.findings.hits.push(hit()?);
        self.last = cursor;
        Ok(true)
    }
}

pub(super) fn find(search: &Search<'_>) -> Result<SearchResults> {
    let regex = compile(&search.question.query)?;
    let mut page = ResultPage::default();
    let (is_of_summaries, from) = start(search)?;
    if !is_of_summaries && search.question.kinds != Kinds::Summaries {
        let found = |id: MessageId, snippet| {
            search.go_on()?;
            if !search.lets_through(id)? {
                return Ok(true);
            }
            let hit = || search.hit(id, &search.view.messages().message(id)?, snippet);
            page.add(search, format!("m{}", id.0), hit)
        };
        let from = from.map(|from| match from {
            Continue::After(row) => Continue::After(MessageId(row)),
            Continue::At(row) => Continue::At(MessageId(row)),
        });
        let stop = each(search, &regex, from, found)?;
        // Unless the answer was full before.
        if let Some((at, is_searched)) = stop.filter(|_| page.findings.next.is_none()) {
            let from = if is_searched { "m" } else { "n" };
            page.findings.next = Some(NextPage { cursor: format!("{from}{}", at.0), more: None });
            page.findings.stopped_at = Some(search.view.messages().message(at)?.timestamp);
        }
    }
    if search.takes_summaries() && page.findings.next.is_none() {
        let from = from.filter(|_| is_of_summaries).map(|from| Continue::After(SummaryId(from.row())));
        let visit = |summary: StoredSummary| {
            search.go_on()?;
            let Some(snippet) = snippet(&regex, &summary.text, search.width()) else { return Ok(true) };
            if !search.lets_summary_through(summary.id)? {
                return Ok(true);
            }
            page.add(search, format!("s{}", summary.id.0), || search.summary_hit(&summary, snippet))
        };
        search.view.summaries().summaries_in_turn(turn(search), from, &search.filter, visit)?;
    }
    Ok(page.findings)
}

/// A pattern's results are always ordered by time.
fn turn(search: &Search<'_>) -> TimeOrder {
    match search.question.sort {
        Sort::Oldest => TimeOrder::OldestFirst,
        Sort::Relevance | Sort::Recent => TimeOrder::NewestFirst,
    }
}

/// Where the search continues: whether among the summaries, which come last, and at which row. A cursor begins with `m` after a message,
/// with `n` at one, with `s` after a summary.
fn start(search: &Search<'_>) -> Result<(bool, Option<Continue<i64>>)> {
    let Some(cursor) = &search.question.cursor else { return Ok((false, None)) };
    let (kind, digits) = cursor.trim().split_at_checked(1).unwrap_or_default();
    match (kind, digits.parse::<i64>()) {
        ("m" | "s", Ok(row)) => Ok((kind == "s", Some(Continue::After(row)))),
        ("n", Ok(row)) => Ok((false, Some(Continue::At(row)))),
        _ => Err(search.foreign_cursor()),
    }
}

/// All messages that match, if there is time to look.
pub(super) fn matching(search: &Search<'_>) -> Result<BTreeSet<MessageId>> {
    let mut matching = BTreeSet::new();
    let stop = each(search, &compile(&search.question.query)?, None, |id, _| Ok(matching.insert(id)))?;
    match stop {
        None => Ok(matching),
        Some(_) => Err(Error::invalid(format!(
            "the expression takes more than {} s to count: narrow it with after, before, role, tool or session",
            search.question.patience.as_secs()
        ))),
    }
}

/// Calls `found` with each match, in order, `from` where the search continues, until it returns `false`. Returns where time ran out.
fn each(
    search: &Search<'_>,
    regex: &Regex,
    from: Option<Continue<MessageId>>,
    mut found: impl FnMut(MessageId, Snippet) -> Result<bool>,
) -> Result<Option<Stop>> {
    let turn = turn(search);
    let sieve = Sieve::of(&search.question.query);
    let (cancel, width, filter) = (search.cancel, search.width(), &search.filter);
    let end = Instant::now().checked_add(search.question.patience);
    let is_late = || end.is_some_and(|end| Instant::now() >= end);
    let (first, stopped) = (OnceLock::new(), Cell::new(None));
    // Gives the snippet of a match; none if there was no time to look.
    let look = |packed: Packed| {
        go_on(cancel)?;
        let id = packed.id;
        // One message of an expensive expression may take seconds, and many are read ahead. The first is
        // searched however late it is: each answer must get on.
        if is_late() && first.get() != Some(&id) {
            return Ok(Some((id, None)));
        }
        let may_match = |json: &[u8]| sieve.as_ref().is_none_or(|sieve| sieve.lets_through(json));
        let Some(json) = packed.unpack_if(may_match)? else { return Ok(None) };
        Ok(snippet(regex, &searchable(&json), width).map(|snippet| (id, Some(snippet))))
    };
    let mut take_in = |(id, snippet): (MessageId, Option<Snippet>)| match snippet {
        Some(snippet) => found(id, snippet),
        None => {
            stopped.set(Some((id, false)));
            Ok(false)
        }
    };
    let visit = |packed: Packed, take: &mut dyn FnMut(Packed) -> Result<bool>| {
        let (id, is_late) = (packed.id, is_late());
        first.get_or_init(|| id);
        if is_late && stopped.get().is_none() {
            stopped.set(Some((id, true)));
        }
        let may_be = search.about.as_ref().is_none_or(|about| about.contains(&id));
        Ok((!may_be || take(packed)?) && !is_late)
    };
    let rows = |take: &mut dyn FnMut(Packed) -> Result<bool>| {
        search.view.messages().messages_in_turn(turn, from, filter, |packed| visit(packed, take))
    };
    scan::in_order(rows, look, &mut take_in)?;
    Ok(stopped.get())
}

fn snippet(regex: &Regex, text: &str, width: usize) -> Option<Snippet> {
    let matches: Vec<_> = regex.find_iter(text).take(POINTED_OUT).map(|found| found.range()).collect();
    let first = matches.first()?.clone();
    Some(Snippet::around(text, &first, matches, width))
}

fn compile(pattern: &str) -> Result<Regex> {
    let compiled = RegexBuilder::new(pattern).size_limit(SIZE_LIMIT).multi_line(true).build();
    compiled.map_err(|error| {
        let shown = text::one_line(pattern, 60);
        Error::invalid(match error {
            regex::Error::CompiledTooBig(_) => {
                format!("the regular expression `{shown}` is too large: use fewer or smaller repetitions")
            }
            error => format!(
                "`{shown}` is not a valid regular expression in Rust syntax ({}): escape literal characters with \
                 a backslash, or search for words",
                cause(&error)
            ),
        })
    })
}

/// The last line of the crate's message says what is wrong; those before it draw an arrow.
fn cause(error: &regex::Error) -> String {
    let account = error.to_string();
    let last = account.lines().last().unwrap_or_default();
    text::one_line(last.strip_prefix("error: ").unwrap_or(last), 120)
}
