//! Imports from another database what replaying its entries does not restore: summaries, which compaction
//! carries which, lists of files, and when sessions were seen.

use std::collections::HashSet;

use rusqlite::{Row, params};

use super::salvage::OldStore;
use crate::error::Result;
use crate::ids::Hash;
use crate::model::Files;
use crate::store::columns::{FromRow as _, Queries as _, from_row};
use crate::store::summaries::extras::from_sql;
use crate::store::{Messages, NewSummary, PreparedText, StoredSummary, SummaryWriter, UpkeepWriter};

/// A summary in an old database, with the hashes of its sources.
#[derive(Clone, Debug)]
pub struct OldSummary {
    summary: StoredSummary,
    sources: Vec<Hash>,
}

/// A fact that an old database records about an entry.
#[derive(Clone, Debug)]
pub struct OldNote {
    session_id: String,
    entry_id: String,
    what: Noted,
}

#[derive(Clone, Debug)]
enum Noted {
    /// It carries this summary.
    Carried(Hash),
    /// It lists these files.
    Files(Files),
}

/// A session's times in an old database.
#[derive(Clone, Debug)]
pub struct OldTimes {
    pub session_id: String,
    started_at: i64,
    seen_at: i64,
}

from_row!(OldTimes { session_id, started_at, seen_at });

impl OldStore {
    /// Its summaries, sources before the summaries condensed from them. Unreadable ones are left out, along
    /// with those condensed from them.
    ///
    /// # Errors
    /// When the table can't be read at all; so for all methods here.
    pub fn summaries(&self) -> Result<Vec<OldSummary>> {
        let mut found = Vec::new();
        self.connection().each("SELECT * FROM summaries ORDER BY depth, id", [], |row| {
            let Ok(Ok(summary)) = <Result<StoredSummary>>::from_row(row) else { return Ok(()) };
            let sources = self.connection().all(
                "SELECT coalesce(m.lineage, s.hash) FROM summary_sources e
                   LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN summaries s ON s.id = e.source_id
                  WHERE e.summary_id = ?1 ORDER BY e.ordinal",
                [summary.id],
            );
            found.extend(sources.ok().map(|sources| OldSummary { summary, sources }));
            Ok(())
        })?;
        Ok(found)
    }

    /// The facts it records about entries.
    pub fn notes(&self) -> Result<Vec<OldNote>> {
        let carried: Vec<_> = self.each_readable(
            "SELECT c.session_id, e.entry_id, s.hash FROM carried r JOIN entries e ON e.id = r.entry_id
               JOIN conversations c ON c.id = e.conversation_id JOIN summaries s ON s.id = r.summary_id",
            |row| note(row, Noted::Carried(row.get(2)?)),
        )?;
        let listed: Vec<_> = self.each_readable(
            "SELECT c.session_id, e.entry_id, e.files FROM entries e JOIN conversations c ON c.id = e.conversation_id
              WHERE e.files IS NOT NULL",
            |row| note(row, Noted::Files(from_sql(row.get(2)?).unwrap_or_default())),
        )?;
        Ok([carried, listed].concat())
    }

    /// What a query finds, without the rows that can't be read.
    fn each_readable<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C> {
        let mut query = self.connection().prepare(sql)?;
        let found = query.query_map([], read)?;
        Ok(found.filter_map(std::result::Result::ok).collect())
    }

    /// When its sessions were seen.
    pub fn times(&self) -> Result<Vec<OldTimes>> {
        self.each_readable("SELECT session_id, started_at, seen_at FROM conversations", OldTimes::from_row)
    }

    /// The identities of the messages that its sessions show.
    pub fn lineages(&self) -> Result<HashSet<Hash>> {
        self.each_readable(
            "SELECT m.lineage FROM entries e JOIN messages m ON m.id = e.message_id",
            Hash::from_row,
        )
    }
}

fn note(row: &Row<'_>, what: Noted) -> rusqlite::Result<OldNote> {
    Ok(OldNote { session_id: row.get(0)?, entry_id: row.get(1)?, what })
}

impl UpkeepWriter<'_> {
    /// Stores a summary from an old database if all of its sources exist here. Returns whether it exists here
    /// now.
    pub fn adopt_summary(&self, old: &OldSummary) -> Result<bool> {
        let summaries = SummaryWriter::new(self.connection);
        if summaries.summary_by_hash(old.summary.hash)?.is_some() {
            return Ok(true);
        }
        // A summary that its hash does not confirm is left out; the next compaction remakes it.
        if old.summary.identity(&old.sources) != old.summary.hash {
            return Ok(false);
        }
        let Some(sources) = summaries.named(old.summary.depth, &old.sources)? else { return Ok(false) };
        let prepared = PreparedText::of(&old.summary.text);
        let summary = old.summary.summary.clone();
        summaries.add_summary(&NewSummary { summary, sources, prepared }).map(|_| true)
    }

    /// Records a fact from an old database, if its entry and its summary exist here.
    pub fn adopt_note(&self, note: &OldNote) -> Result<()> {
        let (messages, summaries) = (Messages::new(self.connection), SummaryWriter::new(self.connection));
        let Some(session) = messages.conversation(&note.session_id)? else { return Ok(()) };
        let Some(entry) = messages.entry_row(session, &note.entry_id)? else { return Ok(()) };
        match &note.what {
            Noted::Carried(hash) => match summaries.summary_by_hash(*hash)? {
                Some(summary) => summaries.add_carried(entry, summary),
                None => Ok(()),
            },
            Noted::Files(_) if self.is_below_purged(entry)? => Ok(()),
            Noted::Files(files) => summaries.note_entry_files(entry, files),
        }
    }

    /// Merges a session's times: it started at the earlier time of both databases. It was last opened when
    /// the old one says, or at `before` (ms), its time here before the import, if that is later.
    pub fn adopt_times(&self, times: &OldTimes, before: Option<i64>) -> Result<()> {
        self.connection.change(
            "UPDATE conversations SET started_at = min(started_at, ?2), seen_at = ?3 WHERE session_id = ?1",
            params![times.session_id, times.started_at, before.unwrap_or(i64::MIN).max(times.seen_at)],
        )
    }

    /// How many of these messages are missing here.
    pub fn lacking(&self, mut lineages: HashSet<Hash>) -> Result<usize> {
        // Reading all once takes a second for a million; looking each up, a minute.
        self.connection.each("SELECT lineage FROM messages", [], |row| {
            let _ = row.get(0).map(|known| lineages.remove(&known));
            Ok(())
        })?;
        Ok(lineages.len())
    }
}
