//! Checks the two indexes: they must have one row for each passage and each summary, and no others.

use super::messages::leads_back;
use super::report::{Check, Remedy};
use crate::error::Result;
use crate::ids::SummaryId;
use crate::store::{Index, View};

pub(super) fn check(view: &View<'_>, check: &mut Check) -> Result<()> {
    passages(view, check)?;
    summaries(view, check)?;
    lengths(view, Index::Messages, check)?;
    lengths(view, Index::Summaries, check)
}

/// Checks the lengths an index ranks by. SQLite's own check ignores them, but a search fails if they can't be
/// read.
fn lengths(view: &View<'_>, index: Index, check: &mut Check) -> Result<()> {
    for row in view.upkeep().rows_of_no_length(index)? {
        check.find(Remedy::Fix, "the length of the index is unknown", || format!("row {row}"));
    }
    let rows = u64::try_from(view.upkeep().indexed_rows(index)?.len()).ok();
    if view.upkeep().counted_rows(index)? != rows {
        check.find(Remedy::Fix, "the row count of the index is wrong", || index.of().into());
    }
    Ok(())
}

fn passages(view: &View<'_>, check: &mut Check) -> Result<()> {
    let indexed = view.upkeep().indexed_rows(Index::Messages)?;
    check.saw(indexed.len(), "passage");
    let mut indexed = indexed.into_iter().peekable();
    let mut free = i64::MIN;
    for (message, first, count) in view.upkeep().passage_ranges()? {
        let name = || {
            view.messages()
                .message(message)
                .map_or_else(|_| format!("row {}", message.0), |m| m.lineage.message_handle())
        };
        if first < free {
            check.find(Remedy::Rebuild, "two messages claim the same passages", name);
        }
        let end = first.saturating_add(count);
        beyond(&mut indexed, first, check);
        let mut there = 0;
        while indexed.next_if(|row| *row < end).is_some() {
            there += 1;
        }
        if there != count && first >= free {
            check.find(Remedy::Fix, "a passage is not in the index", name);
        }
        free = free.max(end);
    }
    beyond(&mut indexed, i64::MAX, check);
    Ok(())
}

/// Reports the rows before `end`, which belong to no message.
fn beyond(indexed: &mut std::iter::Peekable<impl Iterator<Item = i64>>, end: i64, check: &mut Check) {
    while let Some(row) = indexed.next_if(|row| *row < end) {
        check.find(Remedy::Fix, "the index has a passage without a message", || format!("row {row}"));
    }
}

fn summaries(view: &View<'_>, check: &mut Check) -> Result<()> {
    let indexed = view.upkeep().indexed_rows(Index::Summaries)?;
    check.saw(indexed.len(), "summary");
    let stored = view.upkeep().summary_rows()?;
    for row in indexed.iter().filter(|row| stored.binary_search(row).is_err()) {
        check.find(Remedy::Fix, "the index has a summary that does not exist", || format!("row {row}"));
    }
    for row in stored {
        let summary = view.summaries().summary(SummaryId(row))?;
        let name = || summary.hash.summary_handle();
        if indexed.binary_search(&row).is_err() {
            check.find(Remedy::Fix, "a summary is not in the index", name);
        } else if leads_back(view, Index::Summaries, &summary.text, row) == Some(false) {
            check.find(Remedy::Fix, "a search for a summary's words does not find it", name);
        }
    }
    Ok(())
}
