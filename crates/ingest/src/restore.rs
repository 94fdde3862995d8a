//! Restores summaries from a session file: this extension's compaction entries and branch summaries carry the
//! new ones, so that a lost database is rebuilt without a model call.
//!
//! Anyone can write such a file, and a summary's id needs no secret. So it is text of an unknown author: its quotes must be in
//! its messages, what can be computed is computed again, and it displaces no summary that was made here.

use std::collections::HashMap;

use lcm_model::dag::{Sources, visible};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};
use lcm_model::quotes::{are_carried, proven};
use lcm_model::{CompactionDetails, Quote, Summary, SummaryRecord, tokens};
use lcm_store::{Batch, LastRows, NewSummary, PreparedText};

/// Where summaries come from that anyone may have made.
#[derive(Clone, Copy)]
pub struct SummaryOrigin {
    /// The session; `None`: any, but only with messages that are new since then.
    pub conversation: Option<ConversationId>,
    /// The last rows before they began to be read.
    pub since: LastRows,
}

/// Stores the summaries that the entry with this id and row carries and the store lacks, and records which ones
/// it carries.
///
/// A summary is stored only if it matches its id exactly, including its sources, and can be proven. Others are left out;
/// the next compaction makes them again.
pub(super) fn restore(
    batch: &Batch<'_>,
    (conversation, since): (ConversationId, LastRows),
    (entry_id, row): (&str, EntryId),
    details: &CompactionDetails,
) -> Result<()> {
    let origin = Some(SummaryOrigin { conversation: Some(conversation), since });
    // Reading the branch takes time in proportion to its length, so it happens only if something is missing.
    let mut messages: Option<HashMap<String, (MessageId, Hash)>> = None;
    for record in &details.summaries {
        let id = match batch.summaries().summary_by_hash(record.hash)? {
            Some(id) => Some(id),
            None if record.depth > 0 => restore_named(batch, origin, record)?,
            None => {
                // An unreadable branch is the doctor's task and must not keep the entry out.
                let leaf = details.leaf.as_deref().unwrap_or(entry_id);
                let read = || shown_on(batch, conversation, leaf).unwrap_or_default();
                add_leaf(batch, origin, record, messages.get_or_insert_with(read))?
            }
        };
        if let Some(id) = id {
            batch.summaries().add_carried(row, id)?;
        }
    }
    Ok(())
}

/// Stores a summary whose sources are given by their identities, if the store lacks it and has these, and returns its row if
/// the store has it now. Without an `origin`, it was made on this machine.
///
/// # Errors
/// When the store can't be read or written.
pub fn restore_named(
    batch: &Batch<'_>,
    origin: Option<SummaryOrigin>,
    record: &SummaryRecord,
) -> Result<Option<SummaryId>> {
    if let known @ Some(_) = batch.summaries().summary_by_hash(record.hash)? {
        return Ok(known);
    }
    let names =
        record.sources.iter().map(|id| Hash::parse(id)).collect::<Option<Vec<_>>>().unwrap_or_default();
    match batch.summaries().named(record.depth, &names)? {
        Some(sources) => add(batch, origin, record, sources, &names),
        None => Ok(None),
    }
}

/// The message of each entry on the branch that ends with an entry.
fn shown_on(
    batch: &Batch<'_>,
    conversation: ConversationId,
    entry_id: &str,
) -> Result<HashMap<String, (MessageId, Hash)>> {
    let branch = batch.messages().branch(conversation, entry_id)?;
    Ok(visible(&branch).into_iter().map(|v| (v.entry_id, (v.seen.id, v.seen.hash))).collect())
}

fn add_leaf(
    batch: &Batch<'_>,
    origin: Option<SummaryOrigin>,
    record: &SummaryRecord,
    messages: &HashMap<String, (MessageId, Hash)>,
) -> Result<Option<SummaryId>> {
    let sources: Option<Vec<_>> = record.sources.iter().map(|entry| messages.get(entry).copied()).collect();
    let Some(sources) = sources else { return Ok(None) };
    let (ids, hashes): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
    add(batch, origin, record, Sources::Messages(ids), &hashes)
}

fn add(
    batch: &Batch<'_>,
    origin: Option<SummaryOrigin>,
    record: &SummaryRecord,
    sources: Sources,
    hashes: &[Hash],
) -> Result<Option<SummaryId>> {
    let mut summary = record.summary.clone();
    if hashes.is_empty() || summary.identity(hashes) != summary.hash {
        return Ok(None);
    }
    if let Some(SummaryOrigin { conversation, since }) = origin {
        summary.tokens = tokens::estimate(&record.text);
        if !batch.summaries().are_free(&sources, conversation, since)? || !is_proven(batch, record, &sources)?
        {
            return Ok(None);
        }
    }
    let prepared = PreparedText::of(&summary.text);
    let summary = NewSummary { summary, sources, prepared };
    batch.summaries().add_summary(&summary, None, origin.is_some()).map(Some)
}

/// Whether a summary has the depth and the quotes that one made here from these sources could have.
fn is_proven(batch: &Batch<'_>, record: &SummaryRecord, sources: &Sources) -> Result<bool> {
    let Summary { depth, quotes, .. } = &record.summary;
    Ok(match sources {
        Sources::Messages(_) if quotes.is_empty() => *depth == 0,
        Sources::Messages(ids) => {
            let messages = ids.iter().map(|id| batch.messages().parsed(*id)).collect::<Result<Vec<_>>>()?;
            *depth == 0 && proven(quotes.clone(), &messages.iter().collect::<Vec<_>>()) == *quotes
        }
        Sources::Summaries(ids) => {
            let read = |id: &SummaryId| batch.summaries().summary(*id);
            let sources = ids.iter().map(read).collect::<Result<Vec<_>>>()?;
            let deepest = sources.iter().map(|source| source.depth).max().unwrap_or_default();
            let quoted: Vec<Quote> = sources.iter().flat_map(|source| source.quotes.clone()).collect();
            *depth == deepest.saturating_add(1) && are_carried(quotes, &quoted)
        }
    })
}
