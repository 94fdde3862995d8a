//! Purges: the only way in which messages leave the store, and only at the user's request.
//!
//! A purged message leaves a row as a placeholder: parent, height, time and a random number. Its lineage is
//! made from that number and the lineage above, so that the doctor can verify it and nobody can find the text
//! by guessing: see [`super::rebase`]. A copy of the message in another session's file is recognized by its
//! entry's id, its position and its time; one of another agent's message by its text: see [`super::purged`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rusqlite::{named_params, params};

use super::copies::Copy;
use super::holding::Holding;
use super::purge_plan::{Purge, PurgePlan, Tombstone};
use super::purged::nonce;
use super::vacuum;
use crate::columns::{Queries as _, from_row};
use crate::messages::codec;
use crate::messages::entries::own_id;
use crate::messages::sessions::is_pi_s;
use crate::messages::stored::BY_LINEAGE;
use crate::{SyncedWriter, Upkeep, UpkeepWriter};
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, EntryId, Handle, Hash, MessageId, Nonce, SummaryId};
use lcm_model::{Needles, agent_of_session};

from_row!(Tombstone { id, parent = "parent_id", kind, is_request, timestamp });

/// What the versions of a message have in common: the session, unless they may be [anywhere](is_anywhere)
/// ([`ConversationId::NONE`]); the entry's id in the session's file; and the time, ms.
pub type VersionKey = (ConversationId, String, i64);

/// Whether versions of a message of this session and time may be in any of Pi's sessions. Forks keep ids and times; of messages
/// without a time, ms 0, many may have one id.
pub fn is_anywhere(session: &str, timestamp: i64) -> bool {
    agent_of_session(session).is_none() && timestamp != 0
}

impl Upkeep<'_> {
    /// What a purge would remove.
    pub fn purge_plan(&self, purge: &Purge) -> Result<PurgePlan> {
        self.plan_over(purge, &self.tombstones()?)
    }

    /// All messages, parents before children, renditions after their originals.
    pub(crate) fn tombstones(&self) -> Result<Vec<Tombstone>> {
        self.all(
            "SELECT id, parent_id, kind, role = 'user' AS is_request, timestamp FROM messages ORDER BY height, kind = 3, id",
            [],
        )
    }

    fn plan_over(&self, purge: &Purge, tombstones: &[Tombstone]) -> Result<PurgePlan> {
        let Holding { places, messages: asked, summaries: telling, lists } = match purge {
            Purge::Text(text) => self.holding(&Needles::of([text.clone()]))?,
            purge => Holding { messages: self.purged_by(purge)?, ..Holding::default() },
        };
        if asked.is_empty() && telling.is_empty() && lists.is_empty() {
            return Ok(PurgePlan::default());
        }
        let asked = &asked | &self.versions_of(&asked, tombstones)?;
        let asked = &asked | &self.said_in_forks(&asked)?;
        let mut traces = self.beginnings_of(&asked);
        let mut copies = self.copies()?;
        let mut repeating = &self.results_of_scripts(&asked)? | &self.records_of(&asked, &traces)?;
        let mut plan = self.following(&asked | &repeating, &telling, tombstones)?;
        copies.retain(|copy| !plan.messages.contains(&copy.id));
        loop {
            traces = traces.naming(self.names_of(&plan)?);
            let (more, rest) = copies.into_iter().partition(|copy: &Copy| copy.repeats(&traces));
            copies = rest;
            if more.is_empty() {
                break;
            }
            repeating.extend(more.into_iter().map(|copy: Copy| copy.id));
            plan.messages.extend(&repeating);
            plan = self.following(plan.messages, &telling, tombstones)?;
        }
        let others = &plan.messages - &repeating;
        let ignores =
            |tombstone: &&Tombstone| tombstone.kind == MessageKind::System && others.contains(&tombstone.id);
        plan.ignored = tombstones.iter().filter(ignores).map(|tombstone| tombstone.id).collect();
        if plan.ignored.len() == others.len() {
            plan.ignored.clear();
        }
        (plan.repeating, plan.places, plan.lists) = (repeating, places, lists);
        plan.naming = self.keeping_names(&plan, tombstones)?;
        self.add_whereabouts(&mut plan)?;
        Ok(plan)
    }

    /// What a purge of these messages removes with them: their renditions, and the summaries made from them. Those that are
    /// `telling` go too.
    fn following(
        &self,
        messages: BTreeSet<MessageId>,
        telling: &BTreeSet<SummaryId>,
        tombstones: &[Tombstone],
    ) -> Result<PurgePlan> {
        let is_among = |id: Option<MessageId>| id.is_some_and(|id| messages.contains(&id));
        let renditions = tombstones
            .iter()
            .filter(|tombstone| tombstone.kind == MessageKind::Edited && is_among(tombstone.parent));
        let renditions: BTreeSet<MessageId> = renditions.map(|tombstone| tombstone.id).collect();
        let mut summaries = &self.summaries_naming(&messages, tombstones)? | telling;
        for message in messages.iter().chain(&renditions) {
            summaries.extend(self.summaries().leaves_over(*message)?);
        }
        let mut waiting: Vec<SummaryId> = summaries.iter().copied().collect();
        while let Some(summary) = waiting.pop() {
            let parents = self.summaries().parents(summary)?;
            waiting.extend(parents.into_iter().filter(|parent| summaries.insert(*parent)));
        }
        Ok(PurgePlan { messages, renditions, summaries, ..PurgePlan::default() })
    }

    fn purged_by(&self, purge: &Purge) -> Result<BTreeSet<MessageId>> {
        let (sql, value) = match purge {
            Purge::Message(message) => {
                ("SELECT id FROM messages WHERE id = ?1 AND kind IN (0, 1, 2)", message.0)
            }
            Purge::Session(conversation) => (
                "SELECT DISTINCT m.id FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND m.kind IN (0, 1, 2)",
                conversation.0,
            ),
            Purge::Before(time) => {
                ("SELECT id FROM messages WHERE timestamp < ?1 AND kind IN (0, 1, 2)", *time)
            }
            Purge::Text(_) => return Ok(BTreeSet::new()),
            Purge::Elsewhere(messages) => return Ok(messages.keys().copied().collect()),
        };
        self.all(sql, [value])
    }

    /// Leaf summaries whose model saw one of these messages as preceding context: the last few messages, back
    /// to the last request.
    fn summaries_naming(
        &self,
        messages: &BTreeSet<MessageId>,
        tombstones: &[Tombstone],
    ) -> Result<BTreeSet<SummaryId>> {
        /// Slightly more than any version has included.
        const BEFORE: usize = 8;
        let tombstones: HashMap<MessageId, &Tombstone> =
            tombstones.iter().map(|tombstone| (tombstone.id, tombstone)).collect();
        let leaves: Vec<(SummaryId, MessageId)> =
            self.all("SELECT id, first_message FROM summaries WHERE depth = 0", [])?;
        let mut found = BTreeSet::new();
        for (leaf, first) in leaves {
            let said = tombstones.get(&first).filter(|tombstone| tombstone.kind == MessageKind::Edited);
            let mut at = tombstones
                .get(&said.and_then(|tombstone| tombstone.parent).unwrap_or(first))
                .and_then(|tombstone| tombstone.parent);
            let (mut passed, mut requested) = (0, false);
            while let Some(tombstone) = at.and_then(|id| tombstones.get(&id)) {
                if messages.contains(&tombstone.id) {
                    found.insert(leaf);
                    break;
                }
                passed += usize::from(tombstone.kind == MessageKind::Conversation);
                requested |= tombstone.is_request && tombstone.kind == MessageKind::Conversation;
                if passed >= BEFORE && requested {
                    break;
                }
                at = tombstone.parent;
            }
        }
        Ok(found)
    }

    /// The other versions of these messages: a session file that was edited leaves the earlier text, and everything below it
    /// once more; forks have it too.
    fn versions_of(
        &self,
        messages: &BTreeSet<MessageId>,
        tombstones: &[Tombstone],
    ) -> Result<BTreeSet<MessageId>> {
        let mut keys = HashSet::new();
        for tombstone in tombstones.iter().filter(|of| messages.contains(&of.id)) {
            keys.extend(self.keys(tombstone)?);
        }
        Ok(self.keyed(&keys)?.into_iter().map(|(_, message)| message).collect())
    }

    /// The messages that have a text and one of these keys.
    pub fn keyed(&self, keys: &HashSet<VersionKey>) -> Result<Vec<(VersionKey, MessageId)>> {
        let tombstones = if keys.is_empty() { Vec::new() } else { self.tombstones()? };
        let times: HashSet<i64> = keys.iter().map(|(.., time)| *time).collect();
        let mut found = Vec::new();
        let has_text = |kind| !matches!(kind, MessageKind::Edited | MessageKind::Purged);
        let at_one = tombstones.iter().filter(|of| has_text(of.kind) && times.contains(&of.timestamp));
        for tombstone in at_one {
            let keyed = self.keys(tombstone)?.into_iter().filter(|key| keys.contains(key));
            found.extend(keyed.map(|key| (key, tombstone.id)));
        }
        Ok(found)
    }

    fn keys(&self, Tombstone { id, timestamp, .. }: &Tombstone) -> Result<Vec<VersionKey>> {
        let is_pi_s = is_pi_s();
        let sql = format!(
            "SELECT iif({is_pi_s} AND ?2 <> 0, 0, c.id), e.entry_id FROM entries e JOIN conversations c ON c.id = e.conversation_id
              WHERE e.message_id = ?1 AND e.kind = 1"
        );
        let shown: Vec<(ConversationId, String)> = self.all(&sql, params![id, timestamp])?;
        Ok(shown.into_iter().map(|(scope, entry)| (scope, own_id(&entry).to_owned(), *timestamp)).collect())
    }

    fn add_whereabouts(&self, plan: &mut PurgePlan) -> Result<()> {
        let mut sessions = BTreeSet::new();
        for message in &plan.messages {
            let (time, is_note): (i64, bool) = self.one(
                "SELECT timestamp, kind = 0 AND tool_name IS 'lcm_note' FROM messages WHERE id = ?1",
                [message],
            )?;
            plan.notes += usize::from(is_note);
            if !plan.repeating.contains(message) {
                let (from, to) = plan.times.unwrap_or((time, time));
                plan.times = Some((from.min(time), to.max(time)));
            }
            sessions.extend(self.messages().sessions_of(*message)?);
        }
        for id in sessions {
            plan.sessions.push(self.one("SELECT * FROM conversations WHERE id = ?1", [id])?);
        }
        Ok(())
    }

    /// At most two purgeable messages with this short id.
    pub fn purgeable_like(&self, handle: &Handle) -> Result<Vec<MessageId>> {
        let (low, high) = handle.range();
        let sql = format!("{BY_LINEAGE} AND m.kind IN (0, 1, 2) LIMIT 2");
        self.all(&sql, named_params! {":low": low, ":high": high})
    }

    /// The message that an entry of a session shows, if it can be purged.
    pub fn purgeable_at(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<MessageId>> {
        self.first(
            "SELECT m.id FROM entries e JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND m.kind IN (0, 1, 2)",
            params![conversation, entry_id],
        )
    }

    /// Pi's summaries of abandoned branches in a session: they may mention purged text.
    pub fn branch_summaries(&self, conversation: ConversationId) -> Result<Vec<(MessageId, Hash)>> {
        self.all(
            "SELECT DISTINCT m.id, m.lineage FROM entries e JOIN messages m ON m.id = e.message_id
              WHERE e.conversation_id = ?1 AND m.kind = 0 AND m.role = 'branchSummary'",
            [conversation],
        )
    }
}

impl UpkeepWriter<'_> {
    /// Purges, and records that the file needs a vacuum.
    pub fn purge(&self, purge: &Purge) -> Result<PurgePlan> {
        let tombstones = self.tombstones()?;
        let plan = self.plan_over(purge, &tombstones)?;
        if plan.is_empty() {
            return Ok(plan);
        }
        self.unlist_files(&plan.messages)?;
        for entry in &plan.lists {
            self.change("UPDATE entries SET files = NULL WHERE id = ?1", [entry])?;
        }
        self.unindex(&plan)?;
        self.drop_summaries(&plan.summaries.iter().copied().collect::<Vec<_>>())?;
        for rendition in &plan.renditions {
            self.change("UPDATE entries SET message_id = NULL WHERE message_id = ?1", params![rendition])?;
            self.change("DELETE FROM messages WHERE id = ?1", params![rendition])?;
        }
        let mut nonces: HashMap<MessageId, Nonce> = HashMap::new();
        let elsewhere = if let Purge::Elsewhere(numbers) = purge { numbers } else { &BTreeMap::new() };
        for message in &plan.messages {
            let nonce =
                elsewhere.get(message).map_or_else(|| self.nonce_for(*message), |nonce| Ok(*nonce))?;
            self.change(
                "UPDATE messages SET kind = 4, role = 'purged', tool_name = NULL, tokens = 0, json = ?2, codec = ?3, bytes = 0,
                        first_passage = NULL, passages = 0
                  WHERE id = ?1",
                params![message, nonce, codec::PURGED],
            )?;
            nonces.insert(*message, nonce);
        }
        self.rebase(&tombstones, &plan.renditions, &nonces)?;
        SyncedWriter::new(self.connection).forget(&plan.messages, &plan.lists)?;
        // Claims are named by a hash of their sources.
        self.change("DELETE FROM claims", [])?;
        for index in ["messages_fts", "summaries_fts"] {
            // Deleted rows leave their words in the index until segments are merged.
            self.change(&format!("INSERT INTO {index} ({index}) VALUES ('optimize')"), [])?;
        }
        vacuum::note(self.connection)?;
        Ok(plan)
    }

    /// Gives placeholders the numbers that they have on another machine, where the same messages were purged too.
    pub fn renumber(&self, numbers: &HashMap<MessageId, Nonce>) -> Result<()> {
        for (message, nonce) in numbers {
            self.change("UPDATE messages SET json = ?2 WHERE id = ?1 AND kind = 4", params![message, nonce])?;
        }
        self.rebase(&self.tombstones()?, &BTreeSet::new(), numbers)
    }

    /// Removes summaries with their edges. The list must include every summary condensed from them.
    pub fn drop_summaries(&self, summaries: &[SummaryId]) -> Result<()> {
        // Delete edges before summaries, whichever end is in the list.
        for sql in [
            "DELETE FROM carried WHERE summary_id = ?1",
            "DELETE FROM summary_sources WHERE summary_id = ?1",
            "DELETE FROM summary_sources WHERE source_id = ?1",
            "DELETE FROM summaries WHERE id = ?1",
        ] {
            summaries.iter().try_for_each(|summary| self.change(sql, [summary]))?;
        }
        Ok(())
    }

    /// The number in place of a message. One that is unreadable is not recognized again.
    fn nonce_for(&self, message: MessageId) -> Result<Nonce> {
        let json = self.messages().json_of(message).unwrap_or_default();
        let time = self.one("SELECT timestamp FROM messages WHERE id = ?1", [message])?;
        Ok(nonce(&json, time))
    }

    /// Removes the passages and the summaries from the index.
    fn unindex(&self, plan: &PurgePlan) -> Result<()> {
        for message in &plan.messages {
            self.change(
                "DELETE FROM messages_fts
                  WHERE rowid >= (SELECT first_passage FROM messages WHERE id = ?1)
                    AND rowid < (SELECT first_passage + passages FROM messages WHERE id = ?1)",
                params![message],
            )?;
        }
        for summary in &plan.summaries {
            self.change("DELETE FROM summaries_fts WHERE rowid = ?1", params![summary])?;
        }
        Ok(())
    }

    /// Clears the file lists of Pi's compactions below these messages, which may name files from them.
    fn unlist_files(&self, messages: &BTreeSet<MessageId>) -> Result<()> {
        let listing: Vec<EntryId> = self.all("SELECT id FROM entries WHERE files IS NOT NULL", [])?;
        for entry in listing {
            if self.is_below(entry, |message| Ok(messages.contains(&message)))? {
                self.change("UPDATE entries SET files = NULL WHERE id = ?1", [entry])?;
            }
        }
        Ok(())
    }
}
