//! Purges: the only way in which messages leave the store, and only at the user's request.
//!
//! A purged message leaves a row as a placeholder: parent, height, time and a random number. Its lineage is
//! made from that number and the lineage above, so that the doctor can verify it and nobody can find the text
//! by guessing: see [`super::rebase`]. A copy of the message in another session's file is recognized by its
//! entry's id, its position and its time.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{OptionalExtension as _, params};
use uuid::Uuid;

use super::copies::Copy;
use super::purge_plan::{Purge, PurgePlan, PurgedSession, Tombstone};
use super::vacuum;
use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, Handle, Hash, MessageId, Nonce, SummaryId};
use crate::store::columns::{hash_at, kind_from_sql, reading};
use crate::store::messages::codec;
use crate::store::{Messages, Summaries, Upkeep, UpkeepWriter};

pub(in crate::store) fn purging(error: rusqlite::Error) -> Error {
    Error::storing("failed to purge the history store", error)
}

impl Upkeep<'_> {
    /// What a purge would remove.
    ///
    /// # Errors
    /// When the database can't be read; so for all methods here.
    pub fn purge_plan(&self, purge: Purge) -> Result<PurgePlan> {
        self.plan_over(purge, &self.tombstones()?)
    }

    /// All messages, parents before children, renditions after their originals.
    pub(in crate::store) fn tombstones(&self) -> Result<Vec<Tombstone>> {
        let mut query = self
            .connection
            .prepare_cached(
                "SELECT id, parent_id, kind, role = 'user' FROM messages ORDER BY height, kind = 3, id",
            )
            .map_err(reading)?;
        let tombstones = query
            .query_map([], |row| {
                Ok(Tombstone {
                    id: row.get(0)?,
                    parent: row.get(1)?,
                    kind: kind_from_sql(row.get(2)?),
                    is_request: row.get(3)?,
                })
            })
            .map_err(reading)?;
        tombstones.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    fn plan_over(&self, purge: Purge, tombstones: &[Tombstone]) -> Result<PurgePlan> {
        let asked = self.purged_by(purge)?;
        if asked.is_empty() {
            return Ok(PurgePlan::default());
        }
        let mut traces = self.beginnings_of(&asked);
        let mut plan = self.following(asked, tombstones)?;
        let (mut answers, mut accounts) = (BTreeSet::new(), BTreeSet::new());
        let mut copies = self.copies()?;
        copies.retain(|copy| !plan.messages.contains(&copy.id));
        loop {
            traces = traces.naming(self.names_of(&plan)?);
            let (more, rest) = copies.into_iter().partition(|copy: &Copy| copy.repeats(&traces));
            copies = rest;
            if more.is_empty() {
                break;
            }
            for copy in &more {
                if copy.is_answer { &mut answers } else { &mut accounts }.insert(copy.id);
            }
            plan.messages.extend(more.into_iter().map(|copy: Copy| copy.id));
            plan = self.following(plan.messages, tombstones)?;
        }
        (plan.answers, plan.accounts) = (answers, accounts);
        plan.naming = self.keeping_names(&plan, tombstones)?;
        self.add_whereabouts(&mut plan)?;
        Ok(plan)
    }

    /// What a purge of these messages removes with them: their renditions, and the summaries made from them.
    fn following(&self, messages: BTreeSet<MessageId>, tombstones: &[Tombstone]) -> Result<PurgePlan> {
        let is_among = |id: Option<i64>| id.is_some_and(|id| messages.contains(&MessageId(id)));
        let renditions = tombstones
            .iter()
            .filter(|tombstone| tombstone.kind == MessageKind::Edited && is_among(tombstone.parent));
        let renditions: BTreeSet<MessageId> = renditions.map(|tombstone| MessageId(tombstone.id)).collect();
        let mut summaries = self.summaries_naming(&messages, tombstones)?;
        for message in messages.iter().chain(&renditions) {
            summaries.extend(Summaries::new(self.connection).leaves_over(*message)?);
        }
        let mut waiting: Vec<SummaryId> = summaries.iter().copied().collect();
        while let Some(summary) = waiting.pop() {
            let parents = Summaries::new(self.connection).edges(summary)?.parents;
            waiting.extend(parents.into_iter().filter(|parent| summaries.insert(*parent)));
        }
        Ok(PurgePlan { messages, renditions, summaries, ..PurgePlan::default() })
    }

    fn purged_by(&self, purge: Purge) -> Result<BTreeSet<MessageId>> {
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
                ("SELECT id FROM messages WHERE timestamp < ?1 AND kind IN (0, 1, 2)", time)
            }
        };
        let mut query = self.connection.prepare_cached(sql).map_err(reading)?;
        let ids = query.query_map([value], |row| row.get(0).map(MessageId)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
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
        let tombstones: HashMap<i64, &Tombstone> =
            tombstones.iter().map(|tombstone| (tombstone.id, tombstone)).collect();
        let mut query = (self.connection)
            .prepare_cached("SELECT id, first_message FROM summaries WHERE depth = 0")
            .map_err(reading)?;
        let leaves = query.query_map([], |row| Ok((SummaryId(row.get(0)?), row.get(1)?))).map_err(reading)?;
        let mut told = BTreeSet::new();
        for leaf in leaves {
            let (leaf, first): (SummaryId, i64) = leaf.map_err(reading)?;
            let said = tombstones.get(&first).filter(|tombstone| tombstone.kind == MessageKind::Edited);
            let mut at = tombstones
                .get(&said.and_then(|tombstone| tombstone.parent).unwrap_or(first))
                .and_then(|tombstone| tombstone.parent);
            let (mut passed, mut requested) = (0, false);
            while let Some(tombstone) = at.and_then(|id| tombstones.get(&id)) {
                if messages.contains(&MessageId(tombstone.id)) {
                    told.insert(leaf);
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
        Ok(told)
    }

    fn add_whereabouts(&self, plan: &mut PurgePlan) -> Result<()> {
        let mut when = (self.connection)
            .prepare_cached("SELECT timestamp FROM messages WHERE id = ?1")
            .map_err(reading)?;
        let mut sessions = BTreeSet::new();
        for message in &plan.messages {
            if !plan.answers.contains(message) && !plan.accounts.contains(message) {
                let time: i64 = when.query_row([message.0], |row| row.get(0)).map_err(reading)?;
                let (from, to) = plan.times.unwrap_or((time, time));
                plan.times = Some((from.min(time), to.max(time)));
            }
            sessions.extend(
                Messages::new(self.connection).sessions_of(*message)?.into_iter().map(|session| session.0),
            );
        }
        let mut query = (self.connection)
            .prepare_cached("SELECT session_id, file FROM conversations WHERE id = ?1")
            .map_err(reading)?;
        for id in sessions {
            let session = query.query_row([id], |row| {
                Ok(PurgedSession {
                    conversation: ConversationId(id),
                    session_id: row.get(0)?,
                    file: row.get(1)?,
                })
            });
            plan.sessions.push(session.map_err(reading)?);
        }
        Ok(())
    }

    /// At most two purgeable messages with this short id.
    pub fn purgeable_like(&self, handle: &Handle) -> Result<Vec<MessageId>> {
        let (low, high) = handle.range();
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id FROM messages WHERE lineage BETWEEN ?1 AND ?2 AND kind IN (0, 1, 2) LIMIT 2",
            )
            .map_err(reading)?;
        let ids = query.query_map([low.0, high.0], |row| row.get(0).map(MessageId)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// The message that an entry of a session shows, if it can be purged.
    pub fn purgeable_at(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<MessageId>> {
        self.connection
            .prepare_cached(
                "SELECT m.id FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND m.kind IN (0, 1, 2)",
            )
            .and_then(|mut query| {
                query.query_row(params![conversation.0, entry_id], |row| row.get(0).map(MessageId)).optional()
            })
            .map_err(reading)
    }

    /// The session with this id, or at most two whose ids begin with it. A very short prefix may be a typo.
    pub fn sessions_like(&self, beginning: &str) -> Result<Vec<ConversationId>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT id FROM conversations
                  WHERE session_id = ?1
                     OR (length(?1) >= 8 AND substr(session_id, 1, length(?1)) = ?1
                         AND NOT EXISTS (SELECT 1 FROM conversations WHERE session_id = ?1))
                  LIMIT 2",
            )
            .map_err(reading)?;
        let ids = query.query_map([beginning], |row| row.get(0).map(ConversationId)).map_err(reading)?;
        ids.collect::<rusqlite::Result<_>>().map_err(reading)
    }

    /// Pi's summaries of abandoned branches in a session: they may mention purged text.
    pub fn branch_summaries(&self, conversation: ConversationId) -> Result<Vec<(MessageId, Hash)>> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT DISTINCT m.id, m.lineage FROM entries e JOIN messages m ON m.id = e.message_id
                  WHERE e.conversation_id = ?1 AND m.kind = 0 AND m.role = 'branchSummary'",
            )
            .map_err(reading)?;
        let found = query
            .query_map([conversation.0], |row| Ok((MessageId(row.get("id")?), hash_at(row, "lineage")?)))
            .map_err(reading)?;
        found.collect::<rusqlite::Result<_>>().map_err(reading)
    }
}

impl UpkeepWriter<'_> {
    /// Purges, and records that the file needs a vacuum.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn purge(&self, purge: Purge) -> Result<PurgePlan> {
        let tombstones = self.tombstones()?;
        let plan = self.plan_over(purge, &tombstones)?;
        if plan.messages.is_empty() {
            return Ok(plan);
        }
        self.unlist_files(&plan.messages)?;
        self.unindex(&plan)?;
        self.drop_summaries(&plan.summaries.iter().copied().collect::<Vec<_>>())?;
        for rendition in &plan.renditions {
            self.run("UPDATE entries SET message_id = NULL WHERE message_id = ?1", params![rendition.0])?;
            self.run("DELETE FROM messages WHERE id = ?1", params![rendition.0])?;
        }
        let mut nonces: HashMap<i64, Nonce> = HashMap::new();
        for message in &plan.messages {
            let nonce = nonce();
            self.run(
                "UPDATE messages SET kind = 4, role = 'purged', tool_name = NULL, tokens = 0, json = ?2, codec = ?3, bytes = 0,
                        first_passage = NULL, passages = 0, broken_line = NULL
                  WHERE id = ?1",
                params![message.0, nonce, codec::PURGED],
            )?;
            // An entry whose id was already taken has a hash of its message in its stored id.
            self.run(
                "UPDATE entries SET entry_id = substr(entry_id, 1, length(entry_id) - 65) || ' purged ' || ?1
                  WHERE message_id = ?1 AND substr(entry_id, -65, 1) = ' '",
                params![message.0],
            )?;
            nonces.insert(message.0, nonce);
        }
        self.rebase(&tombstones, &plan.renditions, &nonces)?;
        // Claims are named by a hash of their sources.
        self.run("DELETE FROM claims", params![])?;
        for index in ["messages_fts", "summaries_fts"] {
            // Deleted rows leave their words in the index until segments are merged.
            self.run(&format!("INSERT INTO {index} ({index}) VALUES ('optimize')"), params![])?;
        }
        vacuum::note(self.connection).map_err(purging)?;
        Ok(plan)
    }

    /// Removes the passages and the summaries from the index.
    fn unindex(&self, plan: &PurgePlan) -> Result<()> {
        for message in &plan.messages {
            self.run(
                "DELETE FROM messages_fts
                  WHERE rowid >= (SELECT first_passage FROM messages WHERE id = ?1)
                    AND rowid < (SELECT first_passage + passages FROM messages WHERE id = ?1)",
                params![message.0],
            )?;
        }
        for summary in &plan.summaries {
            self.run("DELETE FROM summaries_fts WHERE rowid = ?1", params![summary.0])?;
        }
        Ok(())
    }

    /// Clears the file lists of Pi's compactions below these messages, which may name files from them.
    fn unlist_files(&self, messages: &BTreeSet<MessageId>) -> Result<()> {
        let mut query =
            self.connection.prepare("SELECT id FROM entries WHERE files IS NOT NULL").map_err(reading)?;
        let listing = query.query_map([], |row| row.get(0).map(EntryId)).map_err(reading)?;
        for entry in listing.collect::<rusqlite::Result<Vec<_>>>().map_err(reading)? {
            if self.stands_below(entry, |message| Ok(messages.contains(&message)))? {
                self.run("UPDATE entries SET files = NULL WHERE id = ?1", params![entry.0])?;
            }
        }
        Ok(())
    }

    pub(in crate::store) fn run(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<usize> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(purging)
    }
}

/// 244 random bits.
fn nonce() -> Nonce {
    let mut nonce = [0; 32];
    nonce[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    nonce[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    nonce
}
