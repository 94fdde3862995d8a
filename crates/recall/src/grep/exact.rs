//! Finds data that the index does not have, such as base64 and lists of hashes, by reading the messages.

use std::time::Instant;

use regex::{Regex, RegexBuilder};

use super::Search;
use super::literal::Required;
use super::scan;
use lcm_model::error::Result;
use lcm_model::ids::MessageId;
use lcm_model::{camel_humps, passages, searchable};
use lcm_store::tasks::go_on;
use lcm_store::{Filter, Packed, RowOrder};

/// The fewest characters of data.
const LONG_ENOUGH: usize = 7;
/// Words with shorter humps on average are data.
const HUMP: usize = 3;
/// Longer words may be data.
const VERY_LONG: usize = 16;
/// The most passages found: the newest.
const MOST: usize = 500;

/// Passages that have some data.
#[derive(Debug, Default)]
pub(super) struct Exact {
    /// Their rows, oldest first.
    pub rows: Vec<i64>,
    /// If there was no time for all messages, the time of the last one that was read, in ms since the epoch.
    pub stopped_at: Option<i64>,
}

/// Whether a text may be a part of data: letters and digits in one word, capitals in no order, or a very long word.
pub(super) fn may_be_data(text: &str) -> bool {
    let has = |word: &str, is: fn(char) -> bool| word.contains(is);
    let is_odd = |word: &str| {
        let is_mixed = has(word, |c| c.is_ascii_digit()) && has(word, |c| c.is_ascii_alphabetic());
        let is_random = word.len() >= LONG_ENOUGH && camel_humps(word).len() * HUMP > word.len();
        is_mixed || is_random || word.len() >= VERY_LONG
    };
    text.len() >= LONG_ENOUGH && text.split(|c: char| !c.is_alphanumeric()).any(is_odd)
}

/// A regular expression that matches one of `texts`, in any case and with any white space between words.
pub(super) fn pattern_of(texts: &[&str]) -> String {
    let spaced = |text: &&str| -> String {
        text.split_whitespace().map(regex::escape).collect::<Vec<_>>().join(r"\s+")
    };
    format!("(?i){}", texts.iter().map(spaced).collect::<Vec<_>>().join("|"))
}

/// Finds the passages that have one of `texts`, in any case and with any white space between words.
pub(super) fn find(search: &Search<'_>, texts: &[&str], filter: &Filter) -> Result<Exact> {
    let pattern = pattern_of(texts);
    let Ok(regex) = RegexBuilder::new(&pattern).build() else { return Ok(Exact::default()) };
    let sieve = Required::of(&pattern).and_then(|required| required.sieve());
    let end = Instant::now().checked_add(search.question.patience);
    let (mut found, mut stopped) = (Vec::new(), None);
    let look = |packed: Packed| {
        go_on(search.cancel)?;
        let id = packed.id;
        let may_match = |json: &[u8]| sieve.as_ref().is_none_or(|sieve| sieve.lets_through(json));
        let Some(json) = packed.unpack_if(may_match)? else { return Ok(None) };
        let passages = passages_with(&regex, &searchable(&json));
        Ok((!passages.is_empty()).then_some((id, passages)))
    };
    let rows = |take: &mut dyn FnMut(Packed) -> Result<bool>| {
        search.view.messages().messages_in_turn(RowOrder::NewestFirst, None, filter, |packed| {
            let is_late = end.is_some_and(|end| Instant::now() >= end);
            stopped = is_late.then_some(packed.id);
            Ok(!is_late && take(packed)?)
        })
    };
    scan::in_order(rows, look, |one: (MessageId, Vec<usize>)| {
        found.push(one);
        Ok(found.len() < MOST)
    })?;
    let mut exact = Exact::default();
    for (id, passages) in found {
        for passage in passages {
            exact.rows.extend(search.view.index().passage(id, passage)?);
        }
    }
    exact.rows.sort_unstable();
    if let Some(id) = stopped {
        exact.stopped_at = Some(search.view.messages().message(id)?.timestamp);
    }
    Ok(exact)
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
