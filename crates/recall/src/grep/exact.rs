//! Finds data that the index does not have, such as base64 and lists of hashes, by reading the messages.

use std::time::Instant;

use regex::{Regex, RegexBuilder};

use super::Search;
use super::phrases::{Phrase, stand_in};
use super::query::quote;
use super::sieve::Sieve;
use lcm_model::error::Result;
use lcm_model::ids::MessageId;
use lcm_model::{DATA_MARK, passages, searchable};

/// The most passages found: the newest.
const MOST: usize = 500;

/// Finds the rows, oldest first, of the passages that have one of `texts`, in messages of which the index lacks data. If
/// there was no time for all of these, with the time of the last one that was read, in ms since the epoch.
pub(super) fn find(search: &Search<'_>, texts: &[&str]) -> Result<(Vec<i64>, Option<i64>)> {
    let end = Instant::now().checked_add(search.question.patience);
    let (mut rows, mut stopped_at) = (Vec::new(), None);
    each(search, texts, |message, first, passages| {
        if rows.len() >= MOST {
            return Ok(false);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            stopped_at = Some(search.view.messages().message(message)?.timestamp);
            return Ok(false);
        }
        rows.extend(passages.into_iter().filter_map(|at| first.checked_add_unsigned(at as u64)));
        Ok(true)
    })?;
    rows.sort_unstable();
    Ok((rows, stopped_at))
}

/// All messages that have a phrase, of which the index lacks data.
pub(super) fn messages(search: &Search<'_>, phrase: &Phrase) -> Result<Vec<MessageId>> {
    let mut found = Vec::new();
    each(search, &[&phrase.written], |message, _, passages| {
        let has = !passages.is_empty() && stand_in(search, std::slice::from_ref(phrase), message)?;
        found.extend(has.then_some(message));
        Ok(true)
    })?;
    Ok(found)
}

/// Calls `visit` with each message of which the index lacks data, newest first, until it returns `false`: with the row
/// of its first passage, and the passages that have one of `texts`, in any case and with any white space between words.
fn each(
    search: &Search<'_>,
    texts: &[&str],
    mut visit: impl FnMut(MessageId, i64, Vec<usize>) -> Result<bool>,
) -> Result<()> {
    let spaced = |text: &&str| -> String {
        text.split_whitespace().map(regex::escape).collect::<Vec<_>>().join(r"\s+")
    };
    let pattern = format!("(?i){}", texts.iter().map(spaced).collect::<Vec<_>>().join("|"));
    let Ok(regex) = RegexBuilder::new(&pattern).build() else { return Ok(()) };
    let sieve = Sieve::of(&pattern);
    let (index, filter) = (search.view.index(), &search.filter);
    let lacking = index.passages(filter)?.from(&format!("parts : {}", quote(DATA_MARK)), 0)?;
    let mut first = i64::MAX;
    for row in lacking.into_iter().rev() {
        // The others of a message that was read.
        if row >= first {
            continue;
        }
        search.go_on()?;
        let Some(hit) = index.hit(row, filter)? else { continue };
        first = row - i64::try_from(hit.passage).unwrap_or_default();
        let json = search.view.messages().json_of(hit.message)?;
        let found = match &sieve {
            Some(sieve) if !sieve.lets_through(json.as_bytes()) => Vec::new(),
            _ => passages_with(&regex, &searchable(&json)),
        };
        if !visit(hit.message, first, found)? {
            break;
        }
    }
    Ok(())
}

/// The passages in which a match begins.
fn passages_with(regex: &Regex, text: &str) -> Vec<usize> {
    let ranges = passages(text);
    let mut found: Vec<usize> = (regex.find_iter(text))
        .filter_map(|one| ranges.iter().rposition(|range| range.contains(&one.start())))
        .collect();
    found.dedup();
    found
}
