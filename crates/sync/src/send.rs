//! Sends what no pack has yet, and writes packs again whose text was purged.

use std::collections::{HashMap, HashSet};

use super::encryption::encrypted;
use super::machine::ThisMachine;
use super::pack::{
    HIGHEST, PURGED, PackHeader, PackName, PackReader, PackSession, PackWriter, PurgedEntry, Record, SESSION,
    SUMMARY,
};
use super::{Refused, Report, Run, key};
use lcm_compaction::redacted_json;
use lcm_ingest::export::{LinePositions, line};
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::{ConversationId, EntryId, Hash};
use lcm_model::{Entry, SummaryRecord};
use lcm_store::tasks::{blocking, go_on};
use lcm_store::{Batch, ExportedEntry, Machine, Shows, SyncedEntry, View};

/// Entries that are read at once.
const READ: usize = 1000;

/// A pack with what it has.
struct Pack {
    bytes: Vec<u8>,
    entries: Vec<EntryId>,
    summaries: Vec<Hash>,
    messages: usize,
}

/// What a pack is made of.
struct PackBuilder<'v> {
    view: View<'v>,
    pack: PackWriter,
    label: &'v str,
    redacts: bool,
    session: Option<ConversationId>,
    is_empty: bool,
}

/// Sends everything that no pack has, in packs with the numbers from `number` on.
///
/// # Errors
/// When the store or the target can't be used. What was sent stays.
pub(super) async fn send(run: &Run<'_>, mut number: i64, report: &mut Report) -> Result<()> {
    loop {
        go_on(run.cancel)?;
        if number >= HIGHEST {
            return Err(Error::store(
                "this machine's folder at the sync target has a pack with too high a number: remove it",
            ));
        }
        let (machine, redacts) = (run.machine.clone(), run.options.redacts);
        // The others are to know of this machine, even if it has nothing to say.
        let is_first = number == 1;
        let pack = run.store().read(move |view| next_pack(view, &machine, redacts, is_first)).await?;
        let Some((pack, purged)) = pack else { return Ok(()) };
        let Pack { bytes, entries, summaries, messages } = pack;
        report.sent.packs += 1;
        report.sent.bytes += bytes.len();
        report.sent.messages += messages;
        report.sent.summaries += summaries.len();
        let name = put(run, number, bytes, run.machine.recipients.clone()).await?;
        let ThisMachine { id, label, recipients, .. } = &run.machine;
        let machine = Machine { id: id.clone(), label: label.clone(), number, purged };
        let recipients = recipients.join(" ");
        let note = move |batch: &Batch<'_>| {
            batch.synced().add(entries)?;
            batch.synced().add_summaries(&summaries)?;
            batch.synced().note_machine(&machine)?;
            batch.synced().note_own(purged, &recipients)?;
            batch.synced().note_masked(redacts)?;
            batch.synced().note_encrypted(!recipients.is_empty())?;
            batch.synced().add_pack(&name, None)
        };
        run.write(note).await?;
        number += 1;
    }
}

async fn put(run: &Run<'_>, number: i64, mut bytes: Vec<u8>, recipients: Vec<String>) -> Result<String> {
    if !recipients.is_empty() {
        bytes = blocking(move || encrypted(&bytes, &recipients)).await?;
    }
    let name = PackName { machine: run.machine.id.clone(), number, hash: Hash::plain(&bytes) };
    run.target.put(&name, bytes).await?;
    Ok(name.to_string())
}

/// The next pack, with the number of purged entries; `None` if there is nothing to send.
fn next_pack(
    view: &View<'_>,
    machine: &ThisMachine,
    redacts: bool,
    is_first: bool,
) -> Result<Option<(Pack, usize)>> {
    let purged = view.synced().purged()?;
    let header = PackHeader::new(machine, purged, redacts);
    let mut builder = PackBuilder::of(view, &header, &machine.label)?;
    let (mut entries, mut summaries, mut messages) = (Vec::new(), Vec::new(), 0);
    'full: loop {
        let unsent = view.synced().unsent(entries.last().copied().unwrap_or(EntryId(0)), READ)?;
        let is_last = unsent.len() < READ;
        for entry in unsent {
            if builder.pack.is_full() {
                break 'full;
            }
            builder.entry(&entry)?;
            messages += usize::from(entry.entry.is_said);
            entries.push(entry.entry.row);
        }
        if is_last {
            break;
        }
    }
    // Masked messages have other hashes, by which no summary would be accepted.
    if !redacts && !builder.pack.is_full() {
        for (id, hash) in view.synced().unsent_summaries(READ)? {
            let sources = view.summaries().identities(&view.summaries().sources(id)?)?;
            let summary = view.summaries().summary(id)?.summary;
            builder.pack.write(SUMMARY, &SummaryRecord::of(summary, &sources))?;
            summaries.push(hash);
            if builder.pack.is_full() {
                break;
            }
        }
    }
    if entries.is_empty() && summaries.is_empty() && !is_first {
        return Ok(None);
    }
    Ok(Some((Pack { bytes: builder.pack.finish()?, entries, summaries, messages }, purged)))
}

impl<'v> PackBuilder<'v> {
    fn of(view: &View<'v>, header: &PackHeader, label: &'v str) -> Result<Self> {
        Ok(Self {
            view: *view,
            pack: PackWriter::new(header)?,
            label,
            redacts: header.redacted,
            session: None,
            is_empty: true,
        })
    }

    fn entry(&mut self, synced: &SyncedEntry) -> Result<()> {
        let SyncedEntry { conversation, entry, purged } = synced;
        self.is_empty = false;
        if self.session != Some(*conversation) {
            self.session = Some(*conversation);
            self.begin(*conversation)?;
        }
        if let Some((nonce, timestamp)) = *purged {
            let ExportedEntry { id, parent: parent_id, .. } = entry.clone();
            return self.pack.write(PURGED, &PurgedEntry { id, parent_id, timestamp, nonce: Hash(nonce) });
        }
        let line_of =
            |entry: &ExportedEntry| line(&self.view, *conversation, entry, &mut LinePositions::default());
        let line = line_of(entry);
        let line = if self.redacts { line.map(|line| redacted_json(&line)) } else { line.map(Some) };
        // An unreadable message keeps its place: what is below it must not wait for it.
        let line = match line {
            Ok(Some(line)) => line,
            _ => line_of(&ExportedEntry { shows: Shows::Link, ..entry.clone() })?,
        };
        self.pack.record(&line)
    }

    fn begin(&mut self, conversation: ConversationId) -> Result<()> {
        let Some(session) = self.view.messages().sessions(Some(conversation))?.pop() else { return Ok(()) };
        let origin = self.view.synced().origin(conversation)?;
        self.pack.write(
            SESSION,
            &PackSession {
                id: session.session_id,
                parent_session: session.parent,
                started_at: session.started_at,
                origin: origin.unwrap_or_else(|| self.label.to_owned()),
            },
        )
    }
}

/// Writes own packs again that differ from the history, since something in them was purged, or are for other recipients, and
/// removes the old ones. Those that the own key does not open are added to `closed`.
///
/// # Errors
/// When the store or the target can't be used: the next sync goes on.
pub(super) async fn rewrite(
    run: &Run<'_>,
    listed: &[PackName],
    closed: &mut HashSet<String>,
    report: &mut Report,
) -> Result<()> {
    let purged = run.store().read(|view| view.synced().purged()).await?;
    let (mut is_whole, mut there) = (true, HashMap::new());
    for name in listed.iter().filter(|name| name.machine == run.machine.id) {
        go_on(run.cancel)?;
        let Some(bytes) = run.target.get(name).await? else { continue };
        let (old, machine) = (name.clone(), run.machine.clone());
        let again = match blocking(move || PackReader::open(&old, bytes, &machine.db_dir)).await {
            Ok(None) => {
                let (name, key) = (name.to_string(), key(&run.machine.db_dir)?);
                closed.insert(name.clone());
                run.write(move |batch| batch.synced().add_pack(&name, Some(&key))).await?;
                continue;
            }
            Ok(Some(mut reader)) => {
                // Without recipients, who can read what is there stays as it is.
                if !run.machine.recipients.is_empty() {
                    reader.header.recipients.clone_from(&run.machine.recipients);
                }
                let (content, recipients) = (reader.content, reader.header.recipients.clone());
                let again = run.store().read(move |view| rewritten(view, reader)).await;
                again.map(|again| (again, content, recipients))
            }
            Err(error) => Err(error),
        };
        let (again, content, recipients) = match again {
            Ok(again) => again,
            // It is none of ours, or damaged.
            Err(error) if error.code() == Code::Invalid => {
                let refused = Refused { pack: name.to_string(), reason: error.to_string() };
                if !report.refused.contains(&refused) {
                    report.refused.push(refused);
                }
                continue;
            }
            Err(error) if error.code() == Code::Format => {
                is_whole = false;
                continue;
            }
            Err(error) => return Err(error),
        };
        let (old, is_encrypted) = (name.to_string(), !recipients.is_empty());
        let new = match again {
            Rewritten::Pack(now) => {
                let now_content = Hash::plain(&now);
                // An encrypted pack has another name each time: one that was stopped here may be there twice.
                let known = there.get(&(name.number, now_content));
                let new = match known {
                    Some(known) => Clone::clone(known),
                    None if now_content == content => old.clone(),
                    None => put(run, name.number, now, recipients).await?,
                };
                there.insert((name.number, now_content), new.clone());
                if new == old {
                    continue;
                }
                Some(new)
            }
            Rewritten::Nothing => None,
            Rewritten::Lacking => {
                run.write(move |batch| batch.synced().remove_pack(&old)).await?;
                is_whole = false;
                continue;
            }
        };
        let note = move |batch: &Batch<'_>| {
            batch.synced().remove_pack(&old)?;
            batch.synced().note_encrypted(is_encrypted)?;
            new.iter().try_for_each(|new| batch.synced().add_pack(new, None))
        };
        run.write(note).await?;
        run.target.remove(name).await?;
        report.rewritten += 1;
    }
    if is_whole {
        let recipients = run.machine.recipients.join(" ");
        run.write(move |batch| batch.synced().note_compared(purged, &recipients)).await?;
    }
    Ok(())
}

/// A pack as it would be written now.
enum Rewritten {
    Pack(Vec<u8>),
    /// Nothing of it is left.
    Nothing,
    /// It has what this history has lost, and is to be read first.
    Lacking,
}

fn rewritten(view: &View<'_>, mut reader: PackReader) -> Result<Rewritten> {
    let header = reader.header.clone();
    let mut builder = PackBuilder::of(view, &header, &header.label)?;
    let mut conversation = None;
    while let Some(record) = reader.next()? {
        match record {
            Record::Session(session) => conversation = view.messages().conversation(&session.id)?,
            Record::Entry(Entry { id, .. }) | Record::Purged(PurgedEntry { id, .. }) => {
                let Some(session) = conversation else { return Ok(Rewritten::Lacking) };
                match view.synced().entry(session, &id)? {
                    Some(entry) => builder.entry(&entry)?,
                    // What is left of it after an edit of the session file has another id, and is sent with that.
                    None if view.messages().is_set_aside(session, &id)? => {}
                    None => return Ok(Rewritten::Lacking),
                }
            }
            Record::Summary(record) => {
                if view.summaries().summary_by_hash(record.hash)?.is_some() {
                    builder.is_empty = false;
                    builder.pack.write(SUMMARY, &record)?;
                }
            }
        }
    }
    if builder.is_empty { Ok(Rewritten::Nothing) } else { builder.pack.finish().map(Rewritten::Pack) }
}
