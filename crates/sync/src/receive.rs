//! Reads the packs of all machines that were not read yet.
//!
//! A pack may have what builds on another machine's pack: such parts wait until that was read. Purges and summaries
//! come last, once everything that they are about is there.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::pack::{PackHeader, PackName, PackReader, PackSession, PurgedEntry, Record};
use super::{Packs, Refused, Report, Run, UNASKED, key};
use lcm_ingest::{Handover, PreparedHandover, SummaryOrigin, restore_named};
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::{ConversationId, Hash, MessageId, Nonce};
use lcm_model::text::one_line;
use lcm_model::{Content, Entry, SummaryRecord};
use lcm_store::tasks::{blocking, go_on};
use lcm_store::{Batch, Machine, Purge, Version, is_anywhere, own_id};

/// Characters of JSON in one transaction: an open session can write in between.
const SLICE: usize = 256 * 1024;
/// Entries in one transaction.
const ENTRIES: usize = 1000;
/// Bytes of summaries after which a sync reads no more packs: all are kept until the end.
const MOST_SUMMARIES: usize = 64 * 1024 * 1024;
/// Summaries in one transaction.
const SUMMARIES: usize = 100;
/// Characters of another machine's label.
const LABEL: usize = 60;

/// An entry whose message was purged on another machine, with its session's id.
type PurgedElsewhere = (String, PurgedEntry);

/// What is done once all packs are read.
#[derive(Default)]
struct Deferred {
    purged: Vec<PurgedElsewhere>,
    summaries: Vec<SummaryRecord>,
    packs: Vec<String>,
    /// The bytes of the summaries' texts.
    size: usize,
}

/// A part of a pack.
#[derive(Default)]
struct Slice {
    session: Option<PackSession>,
    /// The session of the next part, if another one begins.
    next_session: Option<PackSession>,
    entries: Option<PreparedHandover>,
    /// Their ids.
    ids: Vec<String>,
    /// Those that come purged, also among the entries.
    purged: Vec<PurgedElsewhere>,
    summaries: Vec<SummaryRecord>,
}

/// Reads the packs among `listed` that are new here. Returns those that are not encrypted to this machine.
///
/// # Errors
/// When the store or the target can't be used. What was read stays.
pub(super) async fn receive(
    run: &Run<'_>,
    listed: &[PackName],
    known: &Packs,
    report: &mut Report,
) -> Result<HashSet<String>> {
    let mut closed = HashSet::new();
    let mut waiting: Vec<&PackName> =
        listed.iter().filter(|name| !known.contains_key(&name.to_string())).collect();
    if waiting.is_empty() {
        return Ok(closed);
    }
    // Until this has ended well.
    run.write(|batch| batch.synced().note_complete(false)).await?;
    run.progress.set(0, waiting.len());
    let (all, mut end) = (waiting.len(), Deferred::default());
    loop {
        let (before, mut still) = (report.received.messages, Vec::new());
        let number = waiting.len();
        for name in waiting {
            go_on(run.cancel)?;
            match pack(run, name, &mut end, report).await {
                Ok(Outcome::Gone) => {}
                Ok(Outcome::Read) => report.received.packs += 1,
                Ok(Outcome::Closed) => drop(closed.insert(name.to_string())),
                Err(error) if error.code() == Code::Gap => still.push(name),
                Err(error) if matches!(error.code(), Code::Invalid | Code::Format) => {
                    report.refused.push(Refused { pack: name.to_string(), reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
            run.progress.set((report.received.packs + report.refused.len() + closed.len()).min(all), all);
        }
        waiting = still;
        let is_further = waiting.len() < number || report.received.messages > before;
        if waiting.is_empty() || !is_further {
            break;
        }
    }
    report.waiting = waiting.len();
    finish(run, end, report).await?;
    Ok(closed)
}

/// What became of a pack.
enum Outcome {
    Read,
    Gone,
    /// It is not encrypted to this machine.
    Closed,
}

/// Stores what a pack has.
///
/// # Errors
/// [`Code::Gap`] if some of it builds on what is not here: the rest is stored. [`Code::Invalid`] if it is no pack.
async fn pack(run: &Run<'_>, name: &PackName, end: &mut Deferred, report: &mut Report) -> Result<Outcome> {
    if end.size > MOST_SUMMARIES {
        return Err(Error::gap("the next sync reads it"));
    }
    let Some(bytes) = run.target.get(name).await? else { return Ok(Outcome::Gone) };
    report.received.bytes += bytes.len();
    let (opened, db_dir) = (name.clone(), run.machine.db_dir.clone());
    let Some(mut reader) = blocking(move || PackReader::open(&opened, bytes, &db_dir)).await? else {
        // It never changes: it is not asked for again.
        let (name, key) = (name.to_string(), key(&run.machine.db_dir)?);
        let note = move |batch: &Batch<'_>| {
            batch.synced().note_encrypted(true)?;
            batch.synced().add_pack(&name, Some(&key))
        };
        run.write(note).await?;
        return Ok(Outcome::Closed);
    };
    let PackHeader { machine, label, purged, redacted, recipients, .. } = reader.header.clone();
    let purged = usize::try_from(purged).unwrap_or(usize::MAX);
    let machine = Machine { id: machine, label: one_line(&label, LABEL), number: name.number, purged };
    let is_own = machine.id == run.machine.id;
    // What is masked is another text, and adds nothing where the original is.
    let skips_known = is_own || redacted;
    let (mut session, mut is_whole, mut late) = (None, true, Deferred::default());
    loop {
        let read = blocking(move || Ok((next_slice(&mut reader, session, skips_known)?, reader))).await?;
        let (slice, left) = read;
        reader = left;
        let Some(mut slice) = slice else { break };
        session = slice.next_session.take().or_else(|| slice.session.clone());
        late.size += slice.summaries.iter().map(|summary| summary.text.len()).sum::<usize>();
        late.summaries.append(&mut slice.summaries);
        if slice.ids.is_empty() {
            continue;
        }
        late.purged.extend(slice.purged.iter().cloned());
        let write = move |batch: &Batch<'_>| add(batch, slice, is_own);
        let Added { messages, summaries, is_new_session, lacks } = run.write(write).await?;
        report.received.summaries += summaries;
        report.received.messages += messages;
        report.received.sessions += usize::from(is_new_session);
        is_whole &= !lacks;
        go_on(run.cancel)?;
    }
    let is_silent = late.purged.is_empty() && late.summaries.is_empty();
    // What was purged may be here although the rest builds on a pack that never comes.
    end.purged.append(&mut late.purged);
    if !is_whole {
        return Err(Error::gap("some of it builds on another pack"));
    }
    let note = move |batch: &Batch<'_>| {
        if is_own {
            batch.synced().note_own(purged, &recipients.join(" "))?;
            batch.synced().note_masked(redacted)?;
        }
        batch.synced().note_encrypted(!recipients.is_empty())?;
        batch.synced().note_machine(&machine)
    };
    run.write(note).await?;
    let name = name.to_string();
    if is_silent {
        run.write(move |batch| batch.synced().add_pack(&name, None)).await?;
        return Ok(Outcome::Read);
    }
    end.packs.push(name);
    end.summaries.append(&mut late.summaries);
    end.size += late.size;
    Ok(Outcome::Read)
}

/// Reads the next part of a pack, of one session, on any thread.
fn next_slice(
    reader: &mut PackReader,
    session: Option<PackSession>,
    skips_known: bool,
) -> Result<Option<Slice>> {
    let mut slice = Slice { session, ..Slice::default() };
    let (mut entries, mut size, mut is_empty) = (Vec::new(), 0, true);
    while size < SLICE && entries.len() < ENTRIES {
        let Some(record) = reader.next()? else { break };
        is_empty = false;
        size += reader.size;
        match record {
            Record::Session(session) if entries.is_empty() => slice.session = Some(session),
            Record::Session(session) => {
                slice.next_session = Some(session);
                break;
            }
            Record::Entry(entry) => entries.push(entry),
            Record::Purged(purged) => {
                let session = slice.session.as_ref().map(|session| session.id.clone()).unwrap_or_default();
                slice.purged.push((session, purged.clone()));
                entries.push(Entry {
                    id: purged.id,
                    parent: purged.parent_id,
                    timestamp: purged.timestamp,
                    content: Content::Purged(purged.nonce.0),
                });
            }
            Record::Summary(summary) => slice.summaries.push(summary),
        }
    }
    if is_empty {
        return Ok(None);
    }
    if slice.session.is_none() && !entries.is_empty() {
        return Err(Error::invalid("it has an entry of no session"));
    }
    slice.ids = entries.iter().map(|entry| entry.id.clone()).collect();
    slice.entries = Some(Handover { entries, skips_known, ..Handover::default() }.prepare());
    Ok(Some(slice))
}

struct Added {
    messages: usize,
    summaries: usize,
    is_new_session: bool,
    /// Whether an entry builds on one that is not here.
    lacks: bool,
}

/// Stores a part of a pack, without the entries that build on what is not here.
fn add(batch: &Batch<'_>, slice: Slice, is_own: bool) -> Result<Added> {
    let (Some(session), Some(entries)) = (&slice.session, slice.entries) else {
        return Ok(Added { messages: 0, summaries: 0, is_new_session: false, lacks: false });
    };
    let known = batch.messages().conversation(&session.id)?;
    let row = match known {
        Some(row) => row,
        None => {
            let parent = session.parent_session.as_deref();
            let row = batch.messages().conversation_row(&session.id, None, parent, session.started_at)?;
            if !is_own {
                batch.synced().note_origin(row, &one_line(&session.origin, LABEL))?;
            }
            row
        }
    };
    let was_left = batch.messages().is_left(row)?;
    // An entry that shows something else here is sent too.
    let mut differing = HashSet::new();
    for (id, digest) in entries.messages() {
        if batch.messages().shows(row, id, digest)? == Some(false) {
            differing.insert(id.to_owned());
        }
    }
    for (_, PurgedEntry { id, timestamp, .. }) in &slice.purged {
        let shown = batch.messages().version(row, id)?;
        if shown.is_some_and(|shown| !shown.is_purged && shown.timestamp != *timestamp) {
            differing.insert(id.clone());
        }
    }
    let before = batch.summaries().newest_summary()?;
    let (mut lacks, since) = (false, batch.messages().last_rows()?);
    let messages = entries.store_since(batch, row, since, |_| {
        lacks = true;
        Ok(())
    })?;
    // Compactions carry summaries.
    let summaries = batch.summaries().nodes_since(before, |_| true)?.len();
    let mut rows = Vec::new();
    let placed: HashSet<&str> = slice.purged.iter().map(|(_, purged)| purged.id.as_str()).collect();
    for id in slice.ids.iter().filter(|id| !differing.contains(*id)) {
        // So is a placeholder, unless an own pack has it, so that the others see that it is here.
        if is_own && placed.contains(id.as_str()) || !batch.upkeep().shows_purged(row, id)? {
            rows.extend(batch.messages().entry_row(row, id)?);
        }
    }
    batch.synced().add(rows)?;
    // One of which everything is purged is counted nowhere.
    let is_new_session = !was_left && batch.messages().is_left(row)?;
    Ok(Added { messages, summaries, is_new_session, lacks })
}

/// Removes what was purged elsewhere, and adds the summaries whose messages are here.
async fn finish(run: &Run<'_>, end: Deferred, report: &mut Report) -> Result<()> {
    let Deferred { purged, mut summaries, mut packs, .. } = end;
    if report.waiting > 0 {
        // A summary may come before its messages.
        packs.clear();
    }
    if !purged.is_empty() {
        let confirms = run.options.confirms_purges;
        let purge = move |batch: &Batch<'_>| {
            let (texts, numbers) = to_purge(batch, &purged)?;
            let purge = Purge::Elsewhere(texts);
            let removed = batch.upkeep().purge_plan(&purge)?.messages.len();
            if removed > 0 {
                let unasked = if confirms { 0 } else { batch.synced().unasked()? + removed };
                if unasked > UNASKED {
                    return Ok(Err(removed));
                }
                batch.upkeep().purge(&purge)?;
                batch.synced().note_unasked(unasked)?;
            }
            if !numbers.is_empty() {
                batch.upkeep().renumber(&numbers)?;
            }
            Ok(Ok(removed))
        };
        match run.write(purge).await? {
            Ok(removed) => report.purged = removed,
            Err(asked) => {
                report.unconfirmed = asked;
                // They are read again.
                packs.clear();
            }
        }
        if report.purged > 0 {
            // Another process may be reading: the store tries again when it is opened.
            let _ = run.store().vacuum().await;
        }
    }
    // Sources before what was condensed from them.
    summaries.sort_by_key(|summary| summary.depth);
    for slice in summaries.chunks(SUMMARIES).map(<[_]>::to_vec) {
        go_on(run.cancel)?;
        report.received.summaries += run.write(move |batch| add_summaries(batch, slice)).await?;
    }
    run.write(move |batch| packs.iter().try_for_each(|name| batch.synced().add_pack(name, None))).await
}

/// Which of these messages still have a text here, and which have a larger number in their place: of two numbers the smaller
/// one stays, on all machines.
fn to_purge(
    batch: &Batch<'_>,
    purged: &[PurgedElsewhere],
) -> Result<(BTreeMap<MessageId, Nonce>, HashMap<MessageId, Nonce>)> {
    let messages = batch.messages();
    // It has the time of an entry that shows it, of whichever came first.
    let is_untimed = |message| messages.parsed(message).is_ok_and(|message| message.timestamp.is_none());
    // The number of the very entry counts, before that of another version.
    let mut texts: BTreeMap<MessageId, (bool, Nonce)> = BTreeMap::new();
    let (mut numbers, mut keys) = (HashMap::new(), HashMap::new());
    for (session, PurgedEntry { id: entry, timestamp, nonce: Hash(nonce), .. }) in purged {
        let here = messages.conversation(session)?;
        let scope = if is_anywhere(session, *timestamp) { Some(ConversationId::NONE) } else { here };
        if let Some(scope) = scope {
            let number = keys.entry((scope, own_id(entry).to_owned(), *timestamp)).or_insert(*nonce);
            *number = (*number).min(*nonce);
        }
        let shown = here.map(|here| messages.version(here, entry)).transpose()?.flatten();
        let Some(Version { message, timestamp: time, is_purged, .. }) = shown else { continue };
        if !is_purged && (time == *timestamp || is_untimed(message)) {
            let number = texts.entry(message).or_insert((false, *nonce));
            *number = (*number).min((false, *nonce));
        } else if is_purged && time == *timestamp {
            let number = numbers.entry(message).or_insert(*nonce);
            *number = (*number).min(*nonce);
        }
    }
    for (key, message) in batch.upkeep().keyed(&keys.keys().cloned().collect())? {
        let number = texts.entry(message).or_insert((true, keys[&key]));
        *number = (*number).min((true, keys[&key]));
    }
    let mut renumbered = HashMap::new();
    for (message, nonce) in numbers {
        if batch.upkeep().nonce(message)?.is_some_and(|own| nonce < own) {
            renumbered.insert(message, nonce);
        }
    }
    Ok((texts.into_iter().map(|(message, (_, nonce))| (message, nonce)).collect(), renumbered))
}

/// Adds summaries of messages that no summary made here covers. Returns how many are new.
fn add_summaries(batch: &Batch<'_>, summaries: Vec<SummaryRecord>) -> Result<usize> {
    let mut added = 0;
    for summary in summaries {
        let is_known = batch.summaries().summary_by_hash(summary.hash)?.is_some();
        // It is of no session that was here before.
        let origin =
            SummaryOrigin { conversation: Some(ConversationId::NONE), since: batch.messages().last_rows()? };
        // The hash of one that is not taken could confirm a guess of what was purged.
        if restore_named(batch, Some(origin), &summary)?.is_some() {
            batch.synced().add_summaries(&[summary.hash])?;
            added += usize::from(!is_known);
        }
    }
    Ok(added)
}
