//! Imports from another database what replaying its entries does not restore: summaries, which compaction
//! carries which, lists of files, and when sessions were seen.

use rusqlite::{Row, params};

use super::salvage::OldStore;
use crate::dag::Sources;
use crate::error::Result;
use crate::ids::{Hash, MessageId, SummaryId};
use crate::model::{Files, State};
use crate::store::columns::Queries as _;
use crate::store::summaries::extras::{Extras, from_sql};
use crate::store::summaries::records::text_of;
use crate::store::{Messages, NewSummary, PreparedText, Summaries, SummaryWriter, UpkeepWriter};

/// A summary in an old database, with the hashes of its sources.
#[derive(Clone, Debug)]
pub struct OldSummary {
    summary: NewSummary,
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

impl OldStore {
    /// Its summaries, sources before the summaries condensed from them. Unreadable ones are left out, along
    /// with those condensed from them.
    ///
    /// # Errors
    /// When the table can't be read at all; so for all methods here.
    pub fn summaries(&self) -> Result<Vec<OldSummary>> {
        let connection = self.connection();
        let mut query = connection.prepare("SELECT * FROM summaries ORDER BY depth, id")?;
        let mut rows = query.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let Ok(Some(summary)) = old_summary(row) else { continue };
            let id: i64 = row.get("id")?;
            let Ok(sources) = self.sources_of(id) else { continue };
            found.push(OldSummary { summary, sources });
        }
        Ok(found)
    }

    fn sources_of(&self, summary: i64) -> rusqlite::Result<Vec<Hash>> {
        let mut query = self.connection().prepare_cached(
            "SELECT coalesce(m.lineage, s.hash) AS hash FROM summary_sources e
               LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN summaries s ON s.id = e.source_id
              WHERE e.summary_id = ?1 ORDER BY e.ordinal",
        )?;
        let sources = query.query_map([summary], |row| row.get("hash"))?;
        sources.collect()
    }

    /// The facts it records about entries.
    pub fn notes(&self) -> Result<Vec<OldNote>> {
        let carried = self.noted(
            "SELECT c.session_id, e.entry_id, s.hash FROM carried r JOIN entries e ON e.id = r.entry_id
               JOIN conversations c ON c.id = e.conversation_id JOIN summaries s ON s.id = r.summary_id",
            |row| row.get(2).map(|hash| Noted::Carried(Hash(hash))),
        )?;
        let listed = self.noted(
            "SELECT c.session_id, e.entry_id, e.files FROM entries e JOIN conversations c ON c.id = e.conversation_id
              WHERE e.files IS NOT NULL",
            |row| row.get(2).map(|listed| Noted::Files(from_sql(listed).unwrap_or_default())),
        )?;
        Ok([carried, listed].concat())
    }

    fn noted(&self, sql: &str, what: impl Fn(&Row<'_>) -> rusqlite::Result<Noted>) -> Result<Vec<OldNote>> {
        let mut query = self.connection().prepare(sql)?;
        let notes = query.query_map([], |row| {
            Ok(OldNote { session_id: row.get(0)?, entry_id: row.get(1)?, what: what(row)? })
        })?;
        Ok(notes.filter_map(std::result::Result::ok).collect())
    }

    /// When its sessions were seen.
    pub fn times(&self) -> Result<Vec<OldTimes>> {
        let mut query =
            (self.connection()).prepare("SELECT session_id, started_at, seen_at FROM conversations")?;
        let times = query.query_map([], |row| {
            Ok(OldTimes { session_id: row.get(0)?, started_at: row.get(1)?, seen_at: row.get(2)? })
        })?;
        Ok(times.filter_map(std::result::Result::ok).collect())
    }

    /// The identities of the messages that its sessions show.
    pub fn lineages(&self) -> Result<Vec<Hash>> {
        let mut query = (self.connection())
            .prepare("SELECT DISTINCT m.lineage FROM entries e JOIN messages m ON m.id = e.message_id")?;
        let lineages = query.query_map([], |row| row.get("lineage"))?;
        Ok(lineages.filter_map(std::result::Result::ok).collect())
    }
}

fn old_summary(row: &Row<'_>) -> rusqlite::Result<Option<NewSummary>> {
    let Ok(text) = text_of(row)? else { return Ok(None) };
    let is_degraded = row.get::<_, String>("state")? == "degraded";
    let Extras { quotes, usage, .. } = Extras::from_sql(row.get("extras").unwrap_or_default());
    Ok(Some(NewSummary {
        prepared: PreparedText::of(&text),
        hash: row.get("hash")?,
        depth: row.get("depth")?,
        text,
        tokens: row.get("tokens")?,
        state: if is_degraded { State::Degraded } else { State::Ok },
        model: row.get("model")?,
        prompt_version: row.get("prompt_version")?,
        usage: usage.map(|usage| usage.get().to_owned()),
        created_at: row.get("created_at")?,
        quotes: quotes.unwrap_or_default(),
        sources: Sources::Messages(Vec::new()),
    }))
}

impl UpkeepWriter<'_> {
    /// Stores a summary from an old database if all of its sources exist here. Returns whether it exists here
    /// now.
    pub fn adopt_summary(&self, old: &OldSummary) -> Result<bool> {
        let mut summary = old.summary.clone();
        let known = Summaries::new(self.connection).summary_by_hash(summary.hash)?;
        if known.is_none() {
            let Some(sources) = self.sources_named(summary.depth, &old.sources)? else { return Ok(false) };
            summary.sources = sources;
            // A summary that its hash does not confirm is left out; the next compaction remakes it.
            let identities = Summaries::new(self.connection).identities(&summary.sources)?;
            if summary.identity(&identities) != summary.hash {
                return Ok(false);
            }
        }
        SummaryWriter::new(self.connection).add_summary(&summary)?;
        Ok(true)
    }

    fn sources_named(&self, depth: u32, names: &[Hash]) -> Result<Option<Sources>> {
        if depth == 0 {
            let found: Result<Option<Vec<MessageId>>> =
                names.iter().map(|name| Messages::new(self.connection).message_by_lineage(*name)).collect();
            return Ok(found?.filter(|found| !found.is_empty()).map(Sources::Messages));
        }
        let found: Result<Option<Vec<SummaryId>>> =
            names.iter().map(|name| Summaries::new(self.connection).summary_by_hash(*name)).collect();
        Ok(found?.filter(|found| !found.is_empty()).map(Sources::Summaries))
    }

    /// Records a fact from an old database, if its entry and its summary exist here.
    pub fn adopt_note(&self, note: &OldNote) -> Result<()> {
        let Some(session) = Messages::new(self.connection).conversation(&note.session_id)? else {
            return Ok(());
        };
        let Some(entry) = Messages::new(self.connection).entry_row(session.id, &note.entry_id)? else {
            return Ok(());
        };
        match &note.what {
            Noted::Carried(hash) => match Summaries::new(self.connection).summary_by_hash(*hash)? {
                Some(summary) => SummaryWriter::new(self.connection).add_carried(entry, summary),
                None => Ok(()),
            },
            Noted::Files(_) if self.is_below_purged(entry)? => Ok(()),
            Noted::Files(files) => SummaryWriter::new(self.connection).note_entry_files(entry, files),
        }
    }

    /// Merges a session's times: it started at the earlier time of both databases. It was last opened when
    /// the old one says, or at `before` (ms), its time here before the import, if that is later.
    pub fn adopt_times(&self, times: &OldTimes, before: Option<i64>) -> Result<()> {
        self.connection.change(
            "UPDATE conversations SET started_at = min(started_at, ?2), seen_at = ?3 WHERE session_id = ?1",
            params![
                times.session_id,
                times.started_at,
                before.map_or(times.seen_at, |at| at.max(times.seen_at))
            ],
        )
        .map(drop)
    }

    /// How many of these messages are missing here.
    pub fn lacking(&self, lineages: &[Hash]) -> Result<usize> {
        let messages = Messages::new(self.connection);
        lineages.iter().try_fold(0, |lacking, lineage| {
            Ok(lacking + usize::from(messages.message_by_lineage(*lineage)?.is_none()))
        })
    }
}
