//! What a sync target has of this history: see docs/sync.md.
//!
//! A target's packs have entries. Rows of entries are never removed, so ranges of rows tell what was sent or received, and
//! all others are still to be sent. A purge takes its entries out of the ranges: they are sent again, as purged.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Row, named_params, params};

use crate::columns::{FromRow, Queries as _, from_row};
use crate::messages::export::ExportedEntry;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Hash, MessageId, Nonce, SummaryId};

crate::view::handles!(synced: "What a sync target has." Synced, "Records what a sync target has." SyncedWriter);

/// The key of the target's name.
const TARGET: &str = "sync_target";
/// The key of the project's name there, if it was given for the last sync alone.
const NAME: &str = "sync_name";
/// The key of the number of purged entries when own packs were last compared with the history, and of their recipients.
const COMPARED: &str = "sync_compared";
/// The key that is there if the last sync left nothing unread.
const COMPLETE: &str = "sync_complete";
/// The key that is there if a pack is encrypted, or was one that the target has lost.
const ENCRYPTED: &str = "sync_encrypted";
/// The key that is there if an own pack is not masked.
const UNMASKED: &str = "sync_unmasked";

/// The key of the number of messages that were removed unasked since the user last confirmed it, whatever the target.
const UNASKED: &str = "sync_unasked";

/// An entry to send.
pub struct SyncedEntry {
    pub conversation: ConversationId,
    pub entry: ExportedEntry,
    /// The number in place of its message, if that is purged, and the message's time, ms.
    pub purged: Option<(Nonce, i64)>,
}

impl FromRow for SyncedEntry {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let purged = match row.get::<_, Option<Nonce>>(8)? {
            Some(nonce) => Some((nonce, row.get(9)?)),
            None => None,
        };
        Ok(Self { conversation: row.get(7)?, entry: ExportedEntry::from_row(row)?, purged })
    }
}

/// A machine that has written packs.
pub struct Machine {
    /// A random number, 32 hexadecimal digits.
    pub id: String,
    /// What its user calls it.
    pub label: String,
    /// The number of its newest pack.
    pub number: i64,
    /// How many entries showed a purged message when it wrote that.
    pub purged: usize,
}

/// Digits of a machine's id that name it to people.
const NAMED: usize = 8;

impl Machine {
    /// What tells it from the others of `all`: its label, with the beginning of its id if another has the same one.
    pub fn name(&self, all: &[Self]) -> String {
        let is_shared = all.iter().any(|other| other.label == self.label && other.id != self.id);
        if is_shared { format!("{} ({:.NAMED$})", self.label, self.id) } else { self.label.clone() }
    }
}

from_row!(Machine { id, label, number, purged });

/// The columns of a [`SyncedEntry`]. Of the entries that show one message the first counts, as those of forks do where they are
/// received.
macro_rules! entries {
    ($which:literal) => {
        concat!(
            "SELECT e.id, e.entry_id, p.entry_id, CASE m.kind WHEN 4 THEN 0 ELSE e.kind END, e.message_id, e.target,
                    coalesce(e.kind = 1 AND m.kind IN (0, 1) AND NOT EXISTS
                             (SELECT 1 FROM entries o WHERE o.message_id = e.message_id AND o.kind = 1 AND o.id < e.id), 0),
                    e.conversation_id,
                    CASE m.kind WHEN 4 THEN m.json END, m.timestamp
               FROM entries e
               LEFT JOIN entries p ON p.id = e.parent_id
               LEFT JOIN messages m ON m.id = e.message_id
              WHERE ",
            $which
        )
    };
}

impl Synced<'_> {
    /// The packs that were read or written, and those that could not be opened, with the key that did not open them.
    pub fn packs(&self) -> Result<HashMap<String, Option<String>>> {
        self.all("SELECT name, closed_to FROM packs", [])
    }

    /// At most `most` entries after a row that no pack has, parents before children.
    pub fn unsent(&self, after: EntryId, most: usize) -> Result<Vec<SyncedEntry>> {
        let ranges: Vec<(i64, i64)> =
            self.all("SELECT first, last FROM synced WHERE last > ?1 ORDER BY first", [after])?;
        let (mut from, mut unsent) = (after.0 + 1, Vec::new());
        for (first, last) in ranges.into_iter().chain([(i64::MAX, i64::MAX)]) {
            if from < first && unsent.len() < most {
                let more: Vec<SyncedEntry> = self.all(
                    entries!("e.id >= :from AND e.id < :to ORDER BY e.id LIMIT :most"),
                    named_params! {":from": from, ":to": first, ":most": most - unsent.len()},
                )?;
                unsent.extend(more);
            }
            from = last.saturating_add(1);
        }
        Ok(unsent)
    }

    /// An entry of a session; `None` if it is not stored.
    pub fn entry(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<SyncedEntry>> {
        self.first(entries!("e.conversation_id = ?1 AND e.entry_id = ?2"), params![conversation, entry_id])
    }

    /// At most `most` summaries that no pack has, sources before what was condensed from them.
    pub fn unsent_summaries(&self, most: usize) -> Result<Vec<(SummaryId, Hash)>> {
        self.all(
            "SELECT id, hash FROM summaries WHERE hash NOT IN (SELECT hash FROM synced_summaries)
              ORDER BY depth, id LIMIT ?1",
            [most],
        )
    }

    /// The number of entries that show a purged message.
    pub fn purged(&self) -> Result<usize> {
        self.one("SELECT count(*) FROM messages m JOIN entries e ON e.message_id = m.id WHERE m.kind = 4", [])
    }

    /// The target of the last sync, if there was one, as the command takes it again: with the name that was given.
    pub fn target(&self) -> Result<Option<String>> {
        let (place, name) = (self.fact(TARGET)?, self.fact(NAME)?);
        let named = name.map(|name| format!(" --name {name}")).unwrap_or_default();
        Ok(place.and_then(|place| Some(place.rsplit_once(' ')?.0.to_owned() + &named)))
    }

    /// Whether the tables are about this target.
    pub fn is_about(&self, target: &str) -> Result<bool> {
        self.fact(TARGET).map(|own| own.as_deref() == Some(target))
    }

    /// Whether nothing was purged since own packs were compared with the history, and they are for these recipients.
    pub fn is_compared(&self, recipients: &str) -> Result<bool> {
        self.is_as_compared(self.purged()?, recipients)
    }

    fn is_as_compared(&self, purged: usize, recipients: &str) -> Result<bool> {
        let compared = self.fact(COMPARED)?.unwrap_or_else(|| as_compared(0, ""));
        Ok(compared == as_compared(purged, recipients))
    }

    /// Whether a pack there is encrypted.
    pub fn is_encrypted(&self) -> Result<bool> {
        self.fact(ENCRYPTED).map(|fact| fact.is_some())
    }

    /// Whether an own pack there is not masked.
    pub fn is_unmasked(&self) -> Result<bool> {
        self.fact(UNMASKED).map(|fact| fact.is_some())
    }

    /// Whether the last sync left nothing unread.
    pub fn is_complete(&self) -> Result<bool> {
        self.fact(COMPLETE).map(|fact| fact.is_some())
    }

    /// The number of messages that were removed unasked, because they were purged elsewhere.
    pub fn unasked(&self) -> Result<usize> {
        Ok(self.fact(UNASKED)?.and_then(|number| number.parse().ok()).unwrap_or(0))
    }

    /// The machines that have written packs.
    pub fn machines(&self) -> Result<Vec<Machine>> {
        self.all("SELECT * FROM machines ORDER BY label, id", [])
    }

    /// The label of the machine that a session came from, if it came from another one.
    pub fn origin(&self, conversation: ConversationId) -> Result<Option<String>> {
        self.first("SELECT label FROM origins WHERE conversation_id = ?1", [conversation])
    }
}

impl SyncedWriter<'_> {
    /// Begins again if the last target was another one.
    pub fn begin(&self, target: &str) -> Result<()> {
        if self.is_about(target)? {
            return Ok(());
        }
        self.reset()?;
        self.change("DELETE FROM _metadata WHERE key = ?1", [ENCRYPTED])?;
        self.set_fact(TARGET, target)
    }

    /// Records the project's name at the target, if it was given for this sync alone.
    pub fn note_name(&self, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) => self.set_fact(NAME, name),
            None => self.change("DELETE FROM _metadata WHERE key = ?1", [NAME]),
        }
    }

    /// Forgets what the target has.
    pub fn reset(&self) -> Result<()> {
        for sql in [
            "DELETE FROM synced", "DELETE FROM synced_summaries", "DELETE FROM packs", "DELETE FROM machines",
        ] {
            self.change(sql, [])?;
        }
        self.change("DELETE FROM _metadata WHERE key IN (?1, ?2, ?3)", [COMPARED, COMPLETE, UNMASKED])
    }

    /// Records that packs have these entries.
    pub fn add(&self, rows: impl IntoIterator<Item = EntryId>) -> Result<()> {
        let rows: Vec<i64> = rows.into_iter().map(|row| row.0).collect();
        let mut runs = rows.chunk_by(|row, next| row + 1 == *next);
        runs.try_for_each(|run| self.add_range(run[0], run[run.len() - 1]))
    }

    fn add_range(&self, first: i64, last: i64) -> Result<()> {
        let (from, to): (Option<i64>, Option<i64>) = self.one(
            "SELECT min(first), max(last) FROM synced WHERE first <= ?2 + 1 AND last >= ?1 - 1",
            [first, last],
        )?;
        self.change("DELETE FROM synced WHERE first <= ?2 + 1 AND last >= ?1 - 1", [first, last])?;
        let (first, last) = (from.map_or(first, |from| from.min(first)), to.map_or(last, |to| to.max(last)));
        self.change("INSERT INTO synced (first, last) VALUES (?1, ?2)", [first, last])
    }

    /// Takes out the entries of purged messages, and these: they have changed.
    pub(crate) fn forget(&self, messages: &BTreeSet<MessageId>, entries: &BTreeSet<EntryId>) -> Result<()> {
        if !self.one::<bool>("SELECT EXISTS (SELECT 1 FROM synced)", [])? {
            return Ok(());
        }
        let mut rows: BTreeSet<i64> = entries.iter().map(|entry| entry.0).collect();
        for message in messages {
            let shown: Vec<i64> = self.all("SELECT id FROM entries WHERE message_id = ?1", [message])?;
            rows.extend(shown);
        }
        for row in rows {
            let range: Option<(i64, i64)> = self.first(
                "SELECT first, last FROM synced WHERE first <= ?1 AND last >= ?1 ORDER BY first DESC LIMIT 1",
                [row],
            )?;
            let Some((first, last)) = range else { continue };
            self.change("DELETE FROM synced WHERE first = ?1", [first])?;
            for (first, last) in [(first, row - 1), (row + 1, last)] {
                if first <= last {
                    self.change("INSERT INTO synced (first, last) VALUES (?1, ?2)", [first, last])?;
                }
            }
        }
        Ok(())
    }

    /// Records that packs have these summaries.
    pub fn add_summaries(&self, summaries: &[Hash]) -> Result<()> {
        summaries.iter().try_for_each(|hash| {
            self.change("INSERT OR IGNORE INTO synced_summaries (hash) VALUES (?1)", [hash])
        })
    }

    /// Records that a pack was read or written, or that this machine's key does not open it.
    pub fn add_pack(&self, name: &str, closed_to: Option<&str>) -> Result<()> {
        self.change("INSERT OR REPLACE INTO packs (name, closed_to) VALUES (?1, ?2)", [Some(name), closed_to])
    }

    /// Forgets a pack that was replaced.
    pub fn remove_pack(&self, name: &str) -> Result<()> {
        self.change("DELETE FROM packs WHERE name = ?1", [name])
    }

    /// Records that own packs agree with the history as it was when so many entries showed a purged message, and are for
    /// these recipients.
    pub fn note_compared(&self, purged: usize, recipients: &str) -> Result<()> {
        self.set_fact(COMPARED, &as_compared(purged, recipients))
    }

    /// Records that an own pack was written when so many entries showed a purged message, for these recipients. If another
    /// process has compared own packs otherwise since, they are compared again.
    pub fn note_own(&self, purged: usize, recipients: &str) -> Result<()> {
        match self.is_as_compared(purged, recipients)? {
            true => Ok(()),
            false => self.change("DELETE FROM _metadata WHERE key = ?1", [COMPARED]),
        }
    }

    /// Records whether a pack is encrypted.
    pub fn note_encrypted(&self, is_encrypted: bool) -> Result<()> {
        if is_encrypted { self.set_fact(ENCRYPTED, "1") } else { Ok(()) }
    }

    /// Records that an own pack was written or read, masked or not.
    pub fn note_masked(&self, is_masked: bool) -> Result<()> {
        if is_masked { Ok(()) } else { self.set_fact(UNMASKED, "1") }
    }

    /// Records whether nothing is left unread.
    pub fn note_complete(&self, is_complete: bool) -> Result<()> {
        match is_complete {
            true => self.set_fact(COMPLETE, "1"),
            false => self.change("DELETE FROM _metadata WHERE key = ?1", [COMPLETE]),
        }
    }

    /// Records that number.
    pub fn note_unasked(&self, number: usize) -> Result<()> {
        self.set_fact(UNASKED, &number.to_string())
    }

    /// Records what a machine's pack says, unless a newer one was read.
    pub fn note_machine(&self, machine: &Machine) -> Result<()> {
        let Machine { id, label, number, purged } = machine;
        self.change(
            "INSERT INTO machines (id, label, number, purged) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET label = excluded.label, number = excluded.number, purged = excluded.purged
                                      WHERE excluded.number >= number",
            params![id, label, number, purged],
        )
    }

    /// Records the machine that a session came from.
    pub fn note_origin(&self, conversation: ConversationId, label: &str) -> Result<()> {
        self.change(
            "INSERT OR IGNORE INTO origins (conversation_id, label) VALUES (?1, ?2)",
            params![conversation, label],
        )
    }
}

fn as_compared(purged: usize, recipients: &str) -> String {
    format!("{purged} {recipients}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_one_label_are_told_apart_by_their_ids() {
        let machine =
            |id: &str, label: &str| Machine { id: id.repeat(16), label: label.into(), number: 1, purged: 0 };
        let all = [machine("0a", "ann@vm"), machine("0b", "ann@vm"), machine("0c", "bob@vm")];
        let names: Vec<String> = all.iter().map(|machine| machine.name(&all)).collect();
        assert_eq!(names, ["ann@vm (0a0a0a0a)", "ann@vm (0b0b0b0b)", "bob@vm"]);
    }
}
