//! Gives new identities to everything after a purged message, as `git rebase` does.
//!
//! A lineage is a hash of everything above it. So the lineage of any later message, and the hash of any
//! summary of it, would confirm a correct guess of the purged text to anyone with the file, and a short
//! secret could be found by trying. After a purge they are all computed from the random number in its place,
//! and nothing in the file depends on the text.

use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::params;
use uuid::Uuid;

use super::purge_plan::Tombstone;
use super::purged::random;
use crate::columns::Queries as _;
use crate::{Upkeep, UpkeepWriter};
use lcm_model::dag::{MessageKind, Sources};
use lcm_model::error::Result;
use lcm_model::ids::{Hash, MessageId, Nonce, SummaryId};
use lcm_model::replacements;

/// The changed identities by row: old and new.
type Changed = HashMap<i64, (Hash, Hash)>;

impl Upkeep<'_> {
    fn lineage(&self, message: MessageId) -> Result<Hash> {
        self.one("SELECT lineage FROM messages WHERE id = ?1", [message])
    }

    /// The number in place of a purged message.
    pub fn nonce(&self, message: MessageId) -> Result<Option<Nonce>> {
        let stored: Vec<u8> = self.one("SELECT json FROM messages WHERE id = ?1", [message])?;
        Ok(stored.try_into().ok())
    }
}

impl UpkeepWriter<'_> {
    /// Gives new identities to the `purged` messages, from these numbers, and to everything that follows from
    /// them. `tombstones` are all messages, parents before children, including those that are `gone`.
    pub(crate) fn rebase(
        &self,
        tombstones: &[Tombstone],
        gone: &BTreeSet<MessageId>,
        purged: &HashMap<MessageId, Nonce>,
    ) -> Result<()> {
        let mut changed = Changed::new();
        let mut taken = HashSet::new();
        for tombstone in tombstones.iter().filter(|tombstone| !gone.contains(&tombstone.id)) {
            let above = tombstone.parent.and_then(|parent| changed.get(&parent.0)).copied();
            if above.is_none() && !purged.contains_key(&tombstone.id) {
                continue;
            }
            let old = self.lineage(tombstone.id)?;
            let above = match (above, tombstone.parent) {
                (Some(above), _) => above,
                (None, Some(parent)) => self.lineage(parent).map(|same| (same, same))?,
                (None, None) => (Hash::ROOT, Hash::ROOT),
            };
            // An unreadable message cannot confirm a guess either.
            let Some(new) = self.new_lineage(tombstone, old, above, purged.get(&tombstone.id))? else {
                continue;
            };
            // Several edits of one message may change nothing visible.
            let others = (1..).map(|n: usize| above.1.edited(&n.to_string()));
            let new =
                if purged.contains_key(&tombstone.id) { self.free(tombstone, new, above.1)? } else { new };
            let new = std::iter::once(new).chain(others).find(|new| taken.insert(*new)).unwrap_or(new);
            self.change("UPDATE messages SET lineage = ?2 WHERE id = ?1", params![tombstone.id, new])?;
            changed.insert(tombstone.id.0, (old, new));
        }
        self.rename_summaries(&changed)?;
        // A hash that a summary had before is one of its sources, and would confirm a guess.
        self.change("DELETE FROM synced_summaries WHERE hash NOT IN (SELECT hash FROM summaries)", [])
    }

    /// `lineage`, unless another placeholder has it: a pack can name one number twice. Then the message gets a number of its own.
    fn free(&self, tombstone: &Tombstone, lineage: Hash, above: Hash) -> Result<Hash> {
        let is_taken: bool = self.one(
            "SELECT EXISTS (SELECT 1 FROM messages
              WHERE parent_id IS ?1 AND substr(lineage, 1, 16) = substr(?2, 1, 16) AND id <> ?3)",
            params![tombstone.parent, lineage, tombstone.id],
        )?;
        if !is_taken {
            return Ok(lineage);
        }
        let nonce = random();
        self.change(
            "UPDATE messages SET json = ?2 WHERE id = ?1 AND kind = 4",
            params![tombstone.id, nonce],
        )?;
        Ok(above.purged(&nonce))
    }

    /// The lineage of a message below a parent whose own changed from `was` to `is`. `None` if its text can't
    /// be read.
    fn new_lineage(
        &self,
        tombstone: &Tombstone,
        old: Hash,
        (was, is): (Hash, Hash),
        nonce: Option<&Nonce>,
    ) -> Result<Option<Hash>> {
        if let Some(nonce) = nonce {
            return Ok(Some(is.purged(nonce)));
        }
        if tombstone.kind == MessageKind::Purged {
            return Ok(self.nonce(tombstone.id)?.map(|nonce| is.purged(&nonce)));
        }
        let Ok(message) = self.messages().message(tombstone.id) else {
            return Ok(None);
        };
        if tombstone.kind != MessageKind::Edited {
            return Ok(Some(is.child(&message.json)));
        }
        let original = tombstone.parent.and_then(|parent| self.messages().message(parent).ok());
        let Some(original) = original else { return Ok(None) };
        if original.json == message.json {
            // The edit changed nothing visible: its own text is unknown, and not needed.
            return Ok(Some(is.edited(&message.json)));
        }
        let edits = replacements(&original.json, &message.json);
        let edit = edits.into_iter().find(|edit| was.edited(edit) == old);
        // An edit may have said more than it shows. The old identity would confirm a guess, so it gets a random one.
        Ok(Some(is.edited(&edit.unwrap_or_else(|| Uuid::new_v4().to_string()))))
    }

    /// Gives new hashes to the summaries of these messages. Compactions carry them under the old hashes,
    /// which are now invalid; the next one carries them again.
    fn rename_summaries(&self, messages: &Changed) -> Result<()> {
        let all: Vec<(i64, Hash)> = self.all("SELECT id, hash FROM summaries ORDER BY depth, id", [])?;
        let mut changed = Changed::new();
        let mut broken = BTreeSet::new();
        for (id, old) in all {
            let sources = self.summaries().sources(SummaryId(id))?;
            let (rows, known): (Vec<i64>, _) = match &sources {
                Sources::Messages(ids) => (ids.iter().map(|id| id.0).collect(), messages),
                Sources::Summaries(ids) => (ids.iter().map(|id| id.0).collect(), &changed),
            };
            if rows.iter().any(|row| broken.contains(row)) && matches!(sources, Sources::Summaries(_)) {
                broken.insert(id);
                continue;
            }
            if !rows.iter().any(|row| known.contains_key(row)) {
                continue;
            }
            let new = self.summaries().identities(&sources)?;
            let before: Vec<Hash> = (rows.iter().zip(&new))
                .map(|(row, new)| known.get(row).map_or(*new, |(old, _)| *old))
                .collect();
            let summary = self.summaries().summary(SummaryId(id));
            let hash =
                summary.map(|summary| (summary.identity(&before) == old).then(|| summary.identity(&new)));
            // Drop a summary whose old hash did not match: the doctor would reject it.
            let Ok(Some(hash)) = hash else {
                broken.insert(id);
                continue;
            };
            self.change("UPDATE summaries SET hash = ?2 WHERE id = ?1", params![id, hash])?;
            self.change("DELETE FROM carried WHERE summary_id = ?1", [id])?;
            changed.insert(id, (old, hash));
        }
        for id in &broken {
            self.change("DELETE FROM summaries_fts WHERE rowid = ?1", [id])?;
        }
        self.drop_summaries(&broken.into_iter().map(SummaryId).collect::<Vec<_>>())
    }
}
