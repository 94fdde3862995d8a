//! Restores summaries from a session file: this extension's compaction entries and branch summaries carry the
//! new ones, so that a lost database is rebuilt without a model call.

use std::collections::HashMap;

use lcm_model::dag::{Sources, visible};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};
use lcm_model::{CompactionDetails, SummaryRecord};
use lcm_store::{Batch, NewSummary, PreparedText, Summary};

/// Stores the summaries that the entry `entry_id` carries and the store lacks, and records which ones it
/// carries.
///
/// A summary is stored only if it matches its id exactly, including its sources. Others (from a hand-edited
/// file, or with a missing source) are left out; the next compaction makes them again.
pub(super) fn restore(
    batch: &Batch<'_>,
    conversation: ConversationId,
    entry_id: &str,
    row: EntryId,
    details: &CompactionDetails,
) -> Result<()> {
    // Reading the branch takes time in proportion to its length, so it happens only if something is missing.
    let mut messages: Option<HashMap<String, (MessageId, Hash)>> = None;
    for record in &details.summaries {
        let Some(hash) = hash_of(&record.id) else { continue };
        let id = match batch.summaries().summary_by_hash(hash)? {
            Some(id) => Some(id),
            None if record.depth > 0 => add_named(batch, record, hash)?,
            None => {
                if messages.is_none() {
                    // An unreadable branch is the doctor's task and must not keep the entry out.
                    let leaf = details.leaf.as_deref().unwrap_or(entry_id);
                    messages = Some(shown_on(batch, conversation, leaf).unwrap_or_default());
                }
                add_leaf(batch, record, hash, messages.as_ref().unwrap_or(&HashMap::new()))?
            }
        };
        if let Some(id) = id {
            batch.summaries().add_carried(row, id)?;
        }
    }
    Ok(())
}

/// Stores the summaries that an export added to a session, if the store lacks them and has their sources.
pub(super) fn restore_supplement(batch: &Batch<'_>, summaries: &[SummaryRecord]) -> Result<()> {
    for record in summaries {
        if let Some(hash) = hash_of(&record.id)
            && batch.summaries().summary_by_hash(hash)?.is_none()
        {
            add_named(batch, record, hash)?;
        }
    }
    Ok(())
}

fn hash_of(id: &str) -> Option<Hash> {
    Hash::from_slice(&hex::decode(id).ok()?).ok()
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
    record: &SummaryRecord,
    hash: Hash,
    messages: &HashMap<String, (MessageId, Hash)>,
) -> Result<Option<SummaryId>> {
    let sources: Option<Vec<_>> = record.sources.iter().map(|entry| messages.get(entry).copied()).collect();
    let Some(sources) = sources else { return Ok(None) };
    let (ids, hashes): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
    add(batch, record, hash, Sources::Messages(ids), &hashes)
}

/// Stores a summary whose sources are given by their identities.
fn add_named(batch: &Batch<'_>, record: &SummaryRecord, hash: Hash) -> Result<Option<SummaryId>> {
    let names = record.sources.iter().map(|id| hash_of(id)).collect::<Option<Vec<_>>>().unwrap_or_default();
    match batch.summaries().named(record.depth, &names)? {
        Some(sources) => add(batch, record, hash, sources, &names),
        None => Ok(None),
    }
}

fn add(
    batch: &Batch<'_>,
    record: &SummaryRecord,
    hash: Hash,
    sources: Sources,
    hashes: &[Hash],
) -> Result<Option<SummaryId>> {
    let summary = Summary {
        hash,
        depth: record.depth,
        text: record.text.clone(),
        tokens: record.tokens,
        state: record.state,
        model: record.model.clone(),
        prompt_version: record.prompt_version,
        usage: record.usage.as_ref().map(ToString::to_string),
        created_at: record.created_at,
        quotes: record.quotes.clone(),
    };
    if hashes.is_empty() || summary.identity(hashes) != hash {
        return Ok(None);
    }
    let prepared = PreparedText::of(&summary.text);
    let summary = NewSummary { summary, sources, prepared };
    batch.summaries().add_summary(&summary).map(Some)
}
