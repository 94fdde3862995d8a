//! Search by regular expression over the text itself: linear in its length, on all cores, newest first, stopped at the limit.

use regex::{Regex, RegexBuilder};

use super::literal::Required;
use super::{Elsewhere, Findings, Found, Hit, Kinds, Next, Search, Sessions, Snippet};
use super::{narrow, scan};
use crate::error::{Error, Result};
use crate::ids::{MessageId, SummaryId};
use crate::model::searchable;
use crate::recall::cards::{MessageCard, SummaryCard};
use crate::store::{Packed, StoredSummary};
use crate::text;

/// Bytes that a compiled expression may take.
const SIZE_LIMIT: usize = 1 << 20;
/// Messages that are read before the index is asked where a match can be.
const READ_FIRST: usize = 1_000;
/// Matches of one text that are pointed out.
const POINTED_OUT: usize = 32;

/// Where a search goes on: below the last row that was looked at, messages before summaries.
enum Start {
    Messages(Option<MessageId>),
    Summaries(Option<SummaryId>),
}

pub(super) fn find(search: &Search<'_>) -> Result<Findings> {
    let regex = compile(&search.question.query)?;
    let mut findings = Findings::default();
    let summaries_from = match start(search)? {
        Start::Summaries(before) => before,
        Start::Messages(before) => {
            if search.question.kinds != Kinds::Summaries {
                messages(search, &regex, before, &mut findings)?;
            }
            None
        }
    };
    if search.question.kinds != Kinds::Messages && findings.next.is_none() {
        summaries(search, &regex, summaries_from, &mut findings)?;
    }
    if findings.hits.is_empty()
        && search.question.cursor.is_none()
        && search.question.sessions != Sessions::Project
    {
        findings.elsewhere =
            Elsewhere { sessions: search.view.conversations()?.saturating_sub(1), ..Elsewhere::default() };
    }
    Ok(findings)
}

fn start(search: &Search<'_>) -> Result<Start> {
    let Some(cursor) = &search.question.cursor else { return Ok(Start::Messages(None)) };
    let row = |digits: &str| digits.parse::<i64>().map_err(|_| search.foreign_cursor());
    match cursor.trim().split_at_checked(1) {
        Some(("m", digits)) => Ok(Start::Messages(Some(MessageId(row(digits)?)))),
        Some(("s", digits)) => Ok(Start::Summaries(Some(SummaryId(row(digits)?)))),
        _ => Err(search.foreign_cursor()),
    }
}

fn messages(
    search: &Search<'_>,
    regex: &Regex,
    before: Option<MessageId>,
    findings: &mut Findings,
) -> Result<()> {
    let required = Required::of(&search.question.query);
    let sieve = required.as_ref().and_then(Required::sieve);
    let (cancel, width, filter) = (search.cancel, search.width(), search.filter());
    let look = |packed: Packed| {
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let id = packed.id;
        let json = packed.unpack()?;
        if sieve.as_ref().is_some_and(|sieve| !sieve.lets_through(&json)) {
            return Ok(None);
        }
        Ok(snippet(regex, &searchable(&json), width).map(|snippet| (id, snippet)))
    };
    let may_be = |id| search.about.as_ref().is_none_or(|about| about.contains(&id));
    // Where matches are dense, an answer is full before the index could tell anything.
    let (mut read, mut last) = (0, None);
    let newest = |take: &mut dyn FnMut(Packed) -> Result<bool>| {
        search.view.newest_messages(before, &filter, |packed| {
            (read, last) = (read + 1, Some(packed.id));
            Ok((!may_be(packed.id) || take(packed)?) && read < READ_FIRST)
        })
    };
    scan::in_order(newest, look, |one| found(search, findings, one))?;
    if read < READ_FIRST || findings.next.is_some() {
        return Ok(());
    }
    let among = match &required {
        Some(required) => narrow::candidates(search.view, required, &|| search.go_on())?,
        None => None,
    };
    let older = |take: &mut dyn FnMut(Packed) -> Result<bool>| {
        let visit = |packed: Packed| Ok(!may_be(packed.id) || take(packed)?);
        match &among {
            Some(messages) => {
                let from = messages.partition_point(|message| Some(*message) >= last);
                search.view.messages_among(&messages[from..], &filter, visit)
            }
            None => search.view.newest_messages(last, &filter, visit),
        }
    };
    scan::in_order(older, look, |one| found(search, findings, one))
}

/// Adds a match; says whether there is room for more.
fn found(search: &Search<'_>, findings: &mut Findings, (id, snippet): (MessageId, Snippet)) -> Result<bool> {
    search.go_on()?;
    if search.lets_through(id)? {
        findings.hits.push(Hit {
            found: Found::Message(MessageCard::of(&search.view.message(id)?), search.covering(id)?),
            place: search.place(id)?,
            snippet,
            beside: search.beside(id)?,
        });
    }
    Ok(!full(search, findings, || format!("m{}", id.0)))
}

fn summaries(
    search: &Search<'_>,
    regex: &Regex,
    before: Option<SummaryId>,
    findings: &mut Findings,
) -> Result<()> {
    search.view.newest_summaries(search.conversation(), before, |summary: StoredSummary| {
        search.go_on()?;
        let Some(snippet) = snippet(regex, &summary.text, search.width()) else { return Ok(true) };
        findings.hits.push(Hit {
            found: Found::Summary(SummaryCard::of(&summary)),
            place: search.place_of_summary(summary.id)?,
            snippet,
            beside: Vec::new(),
        });
        Ok(!full(search, findings, || format!("s{}", summary.id.0)))
    })
}

/// Is the answer full? Then what is older waits for the next.
fn full(search: &Search<'_>, findings: &mut Findings, cursor: impl Fn() -> String) -> bool {
    let full = findings.hits.len() >= search.limit();
    if full {
        findings.next = Some(Next { cursor: cursor(), more: None });
    }
    full
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
                "`{shown}` is no regular expression of Rust's regex crate ({}): escape what is meant as it stands with \
                 a backslash, or use mode \"text\"",
                cause(&error)
            ),
        })
    })
}

/// The last line of the crate's account says what is wrong; those before it draw an arrow.
fn cause(error: &regex::Error) -> String {
    let account = error.to_string();
    let last = account.lines().last().unwrap_or_default();
    text::one_line(last.strip_prefix("error: ").unwrap_or(last), 120)
}
