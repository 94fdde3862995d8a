//! Reads whatever is left of an old database: a backup, one of a folder that was moved, or a damaged one.
//!
//! Its rows are copied, page by page, into a scratch database without any constraint, which is then asked by SQL. What
//! hashes prove is told apart from what only looks right. The file itself is never written, and nothing in it is run.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use tokio_util::sync::CancellationToken;

use super::pages::{self, DatabasePages};
use super::purge::is_anywhere;
use super::vacuum;
use crate::columns::{FromRow, Queries as _, from_row};
use crate::db::{connection, schema};
use crate::messages::entries::own_id;
use crate::messages::importing;
use crate::messages::stored::StoredJson;
use crate::summaries::extras::files_from_sql;
use crate::tasks::go_on;
use crate::{Messages, StoredSession, StoredSummary, Upkeep, UpkeepWriter};
use lcm_model::error::{Error, Result};
use lcm_model::files::temporary::Temporary;
use lcm_model::ids::{ConversationId, Hash, MessageId, Nonce};
use lcm_model::{Content, Entry, SummaryRecord, replacements, said};

/// The tables that are read: each with its columns and their types, which tell its rows from those of others: integer, text
/// or blob, in lower case if it may be NULL. What is joined by an index
/// is declared INTEGER, like what it is compared with: else SQLite uses no index. The rest of a file follows
/// from these.
const TABLES: [(&str, &str, &str); 6] = [
    (
        "conversations",
        "id INTEGER PRIMARY KEY, session_id, file, parent_session, started_at, seen_at",
        ".Tt...",
    ),
    (
        "messages",
        "id INTEGER PRIMARY KEY, lineage, parent_id INTEGER, height, kind, role, tool_name, tokens, timestamp, json, codec, bytes, \
         first_passage, passages",
        ".BiIITtIIBIIiI",
    ),
    (
        "entries",
        "id INTEGER PRIMARY KEY, conversation_id INTEGER, entry_id, parent_id INTEGER, kind, message_id INTEGER, head_id, \
         target, files",
        ".ITiIiitt",
    ),
    (
        "summaries",
        "id INTEGER PRIMARY KEY, hash, depth, text, tokens, state, model, prompt_version, created_at, first_message, \
         last_message, messages, from_time, to_time, packed, codec, bytes, extras",
        ".BITITtIIIIIIIbiib",
    ),
    (
        "summary_sources",
        "summary_id INTEGER, ordinal, message_id INTEGER, source_id INTEGER, PRIMARY KEY (summary_id, ordinal)",
        "IIii",
    ),
    ("_metadata", "key PRIMARY KEY, value", "TT"),
];

/// Whether a value has a type of [`TABLES`].
fn is_of(kind: u8, value: &Value) -> bool {
    let own = match value {
        Value::Null => return kind.is_ascii_lowercase() || kind == b'.',
        Value::Integer(_) => b'I',
        Value::Text(_) => b'T',
        Value::Blob(_) => b'B',
        Value::Real(_) => b'R',
    };
    kind == b'.' || kind.to_ascii_uppercase() == own
}

/// The session of messages that no readable entry shows.
pub const RECOVERED: &str = "recovered";

/// What replaces purged messages, by what their versions have in common: see [`old_key`].
pub type PurgedEntries = HashMap<(String, String, i64), Nonce>;

/// A session's id, empty where it does not matter, an entry's in the session's file, and the message's time, ms.
pub fn old_key(session: String, entry_id: &str, time: i64) -> (String, String, i64) {
    let session = if is_anywhere(&session, time) { String::new() } else { session };
    (session, own_id(entry_id).to_owned(), time)
}

/// An old database.
pub struct OldStore {
    /// The bytes of its file that are cut off or overwritten.
    pub missing: u64,
    connection: Connection,
    /// The rows.
    _scratch: Temporary,
}

/// The entries of a session in an old database.
pub struct OldEntries {
    /// Each entry's id and its parent's, in the order of the table.
    pub places: Vec<(String, Option<String>)>,
    /// Parents of entries that can't be read.
    pub lost: usize,
    entries: HashMap<String, OldEntry>,
    /// Ids of entries whose parent can't be read.
    torn: HashSet<String>,
    /// From the id of an entry to the message that it shows.
    shown: HashMap<String, i64>,
    /// From an unreadable entry to the nearest readable one above.
    gone: HashMap<String, Option<String>>,
}

impl OldEntries {
    /// Leaves out an entry: its children move up.
    pub fn pass(&mut self, id: &str, parent: Option<String>) {
        let parent = self.readable(parent);
        self.gone.insert(id.to_owned(), parent);
    }

    /// The entry `parent`, or the nearest one above that is not left out.
    fn readable(&self, parent: Option<String>) -> Option<String> {
        parent.and_then(|parent| self.gone.get(&parent).cloned().unwrap_or(Some(parent)))
    }
}

struct OldEntry {
    row: i64,
    id: String,
    parent: Option<i64>,
    kind: i64,
    message: Option<i64>,
    /// The last message at or above it.
    head: Option<i64>,
    target: Option<String>,
    files: Option<String>,
}

from_row!(OldEntry {
    row = "id", id = "entry_id", parent = "parent_id", kind, message = "message_id", head = "head_id", target, files
});

struct OldMessage {
    lineage: Hash,
    above: Option<i64>,
    timestamp: i64,
    json: String,
}

impl OldStore {
    /// Reads a database of ours, whoever made it, until `cancel` is raised. A copy of its rows is kept next to the file
    /// `beside`.
    ///
    /// # Errors
    /// When it is not ours, when nothing in it can be read, or when the disk is full.
    pub fn open(path: &Path, beside: &Path, cancel: &CancellationToken) -> Result<Self> {
        if !path.is_file() {
            return Err(Error::invalid("it is not a regular file"));
        }
        let mut pages = DatabasePages::open(path).map_err(pages::unread)?;
        match pages.header {
            Some((mark, _)) if i64::from(mark) != connection::APPLICATION_ID => {
                return Err(Error::invalid("it is not a database of this extension"));
            }
            Some((_, format)) if i64::from(format) != schema::FORMAT => {
                return Err(Error::invalid(format!(
                    "it has format {format}, and this version reads format {}",
                    schema::FORMAT
                )));
            }
            _ => {}
        }
        let failed = |error: rusqlite::Error| Error::storing("failed to copy its rows", error);
        let (scratch, _) =
            Temporary::beside(beside).map_err(|error| Error::storing("failed to copy its rows", error))?;
        let connection = Connection::open(scratch.path()).map_err(failed)?;
        let copied = copy(&mut pages, &connection, cancel)?;
        if copied == 0 && pages.header.is_none() {
            return Err(Error::invalid(
                "it is not a database of this extension, or nothing in it can be read",
            ));
        }
        Ok(Self { missing: pages.missing, connection, _scratch: scratch })
    }

    /// The sessions, those last whose rows are lost or whose messages no entry shows.
    pub fn sessions(&self) -> Result<Vec<StoredSession>> {
        let mut sessions: Vec<StoredSession> = self.readable("SELECT * FROM conversations ORDER BY id")?;
        let lost: Vec<i64> = self.readable(
            "SELECT DISTINCT conversation_id FROM entries WHERE conversation_id NOT IN (SELECT id FROM conversations)
              ORDER BY 1",
        )?;
        let nameless = |id, session_id| StoredSession { id, session_id, ..StoredSession::default() };
        sessions.extend(lost.into_iter().map(|id| nameless(ConversationId(id), format!("{RECOVERED}-{id}"))));
        let unshown = nameless(ConversationId::NONE, RECOVERED.into());
        if !self.entries(&unshown)?.places.is_empty() {
            sessions.push(unshown);
        }
        Ok(sessions)
    }

    /// Hashes of a session's messages and their places.
    pub fn lineages(&self, session: &StoredSession) -> Result<HashSet<Hash>> {
        self.readable(&format!(
            "SELECT lineage FROM messages WHERE id IN (SELECT message_id FROM entries WHERE conversation_id = {} AND kind = 1)",
            session.id.0
        ))
    }

    /// A session's entries, whose contents are not read yet.
    pub fn entries(&self, session: &StoredSession) -> Result<OldEntries> {
        let mut entries: Vec<OldEntry> = if session.id == ConversationId::NONE {
            self.readable(
                "SELECT id, lower(hex(lineage)) AS entry_id, parent_id, 1 AS kind, id AS message_id,
                        id AS head_id, NULL AS target, NULL AS files
                   FROM messages m
                  WHERE kind IN (0, 1, 2)
                    AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.message_id = m.id AND e.kind = 1)
                  ORDER BY id",
            )?
        } else {
            let sql = format!("SELECT * FROM entries WHERE conversation_id = {} ORDER BY id", session.id.0);
            self.readable(&sql)?
        };
        let mut ids = HashSet::new();
        for entry in &mut entries {
            // A damaged id may be another entry's.
            if !ids.insert(entry.id.clone()) {
                entry.id = format!("{} {}", entry.id, entry.row);
            }
        }
        let names: HashMap<i64, &str> = entries.iter().map(|entry| (entry.row, entry.id.as_str())).collect();
        let shown = entries.iter().filter(|entry| entry.kind == 1);
        let shown: HashMap<String, i64> =
            shown.filter_map(|entry| Some((entry.id.clone(), entry.message?))).collect();
        let by_message: HashMap<i64, &str> =
            shown.iter().map(|(id, message)| (*message, id.as_str())).collect();
        let (mut torn, mut lost, mut places) = (HashSet::new(), HashSet::new(), Vec::new());
        // The last messages at or above an entry, by its row and by its parent's.
        let mut heads: HashMap<i64, [Option<i64>; 2]> = HashMap::new();
        for entry in &entries {
            let above = entry.parent.map_or(Some([None; 2]), |row| heads.get(&row).copied());
            let is_shown = entry.kind == 1 && entry.message.is_some();
            let own = if is_shown { entry.message } else { above.and_then(|[head, _]| head) };
            heads.insert(entry.row, [own, entry.head]);
            // Its message is not below its parent's, or something else in its row is damaged.
            let is_elsewhere =
                |message: &i64| above.is_some_and(|above| !above.contains(&self.above(*message)));
            let elsewhere = entry.message.filter(|message| is_shown && is_elsewhere(message));
            let is_wrong = entry.kind == 1 && entry.message.is_none()
                || entry.parent.is_some_and(|row| row >= entry.row)
                || elsewhere.and_then(|id| self.message(id)).is_some_and(|message| self.is_right(&message));
            let parent = match entry.parent {
                row if is_wrong || row.is_some_and(|row| !names.contains_key(&row)) => {
                    torn.insert(entry.id.clone());
                    lost.extend(row.filter(|row| !names.contains_key(row)));
                    // Its message still names the one above.
                    let above = entry.message.and_then(|message| self.above(message));
                    let parent = above.and_then(|above| by_message.get(&above));
                    parent
                        .or_else(|| row.filter(|row| *row < entry.row).and_then(|row| names.get(&row)))
                        .copied()
                }
                row => row.and_then(|row| names.get(&row)).copied(),
            };
            places.push((entry.id.clone(), parent.map(ToOwned::to_owned)));
        }
        let lost = if session.id == ConversationId::NONE { 0 } else { lost.len() };
        let entries = entries.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
        Ok(OldEntries { places, lost, entries, torn, shown, gone: HashMap::new() })
    }

    /// Whether an entry of the session's file has what is missing or wrong here.
    pub fn lacks(&self, entries: &OldEntries, entry: &Entry) -> bool {
        match entries.entries.get(&entry.id) {
            None => true,
            // The row of a compaction has no summaries.
            Some(_) if matches!(entry.content, Content::Compaction(Some(_))) => true,
            Some(old) => {
                entries.torn.contains(&entry.id)
                    || self.content(old, &entries.shown).is_none_or(|(.., is_right)| !is_right)
            }
        }
    }

    /// An entry with its content, below `parent`, and whether that is `other`'s; `None` if it can't be read. Its children then move up to the nearest
    /// readable entry above. What hashes disprove gives way to `other`, of the session's file. Parents must be read
    /// before children.
    pub fn entry(
        &self,
        entries: &mut OldEntries,
        id: &str,
        parent: Option<String>,
        other: Option<Entry>,
    ) -> Option<(Entry, bool)> {
        let own = entries.entries.get(id).and_then(|entry| self.content(entry, &entries.shown));
        let has_summaries =
            other.as_ref().is_some_and(|other| matches!(other.content, Content::Compaction(Some(_))));
        let found = match (own, other) {
            (Some((content, timestamp, true)), _) if !has_summaries => Some((content, timestamp, false)),
            (_, Some(other)) => Some((other.content, other.timestamp, true)),
            (own, None) => own.map(|(content, timestamp, _)| (content, timestamp, false)),
        };
        let Some((content, timestamp, is_other)) = found else {
            entries.pass(id, parent);
            return None;
        };
        Some((Entry { id: id.to_owned(), parent: entries.readable(parent), timestamp, content }, is_other))
    }

    /// An entry's content and time, and whether no hash disproves it; `None` if it can't be read.
    fn content(&self, entry: &OldEntry, shown: &HashMap<String, i64>) -> Option<(Content, i64, bool)> {
        if let Some((nonce, timestamp)) = entry.message.and_then(|message| self.purged(message)) {
            return Some((Content::Purged(nonce), timestamp, true));
        }
        match (entry.kind, entry.message, &entry.target) {
            (1, Some(message), _) => {
                let message = self.message(message)?;
                let is_right = self.is_right(&message);
                Some((Content::Message(message.json), message.timestamp, is_right))
            }
            (2, None, Some(target)) => {
                Some((Content::Edit { target: target.clone(), replacement: None }, 0, true))
            }
            (2, Some(rendition), Some(target)) => {
                let rendition = self.message(rendition)?;
                let original =
                    self.message(rendition.above.or_else(|| shown.get(target.as_str()).copied())?)?;
                let mut edits = replacements(&original.json, &rendition.json);
                let proven = edits.iter().position(|edit| original.lineage.edited(edit) == rendition.lineage);
                let replacement = match proven {
                    Some(at) => edits.swap_remove(at),
                    // An edit whose own text a purge has changed still shows the same.
                    None => edits.into_iter().next()?,
                };
                let content = Content::Edit { target: target.clone(), replacement: Some(replacement) };
                Some((content, rendition.timestamp, proven.is_some()))
            }
            (0, ..) => Some((Content::Other, 0, true)),
            (3, ..) => {
                let files = files_from_sql(entry.files.clone());
                Some((files.map_or(Content::Compaction(None), Content::OtherCompaction), 0, true))
            }
            _ => None,
        }
    }

    /// A purged message's placeholder and time.
    fn purged(&self, id: i64) -> Option<(Nonce, i64)> {
        self.connection.one("SELECT json, timestamp FROM messages WHERE id = ?1 AND kind = 4", [id]).ok()
    }

    /// Whether a message has the text of its hash, as far as what is above it is known.
    fn is_right(&self, message: &OldMessage) -> bool {
        let above: Option<Hash> = match message.above {
            None => Some(Hash::ROOT),
            Some(above) => self.connection.one("SELECT lineage FROM messages WHERE id = ?1", [above]).ok(),
        };
        above.is_none_or(|above| above.child(&message.json) == message.lineage)
    }

    fn above(&self, id: i64) -> Option<i64> {
        self.connection.first("SELECT parent_id FROM messages WHERE id = ?1", [id]).ok().flatten()
    }

    /// A message whose text can be read.
    fn message(&self, id: i64) -> Option<OldMessage> {
        let sql = "SELECT lineage, parent_id, timestamp FROM messages WHERE id = ?1";
        let (lineage, above, timestamp) = self.connection.one(sql, [id]).ok()?;
        Some(OldMessage { lineage, above, timestamp, json: self.json(id)? })
    }

    fn json(&self, id: i64) -> Option<String> {
        let json = Messages::new(&self.connection).json_of(MessageId(id)).ok()?;
        serde_json::from_str::<serde::de::IgnoredAny>(&json).ok().map(|_| json)
    }

    /// The digests of the texts that can be read.
    pub fn digests(&self) -> Result<HashSet<Hash>> {
        let ids: Vec<i64> = self.readable("SELECT id FROM messages WHERE kind IN (0, 1, 2)")?;
        let right = |id| self.message(id).filter(|message| self.is_right(message));
        Ok(ids.into_iter().filter_map(right).map(|message| digest(&message.json)).collect())
    }

    /// What was purged. What has a text too waits for the user's confirmation.
    pub fn purged_entries(&self) -> Result<PurgedEntries> {
        let shown: Vec<(String, String, i64, Option<Nonce>)> = self.readable(
            "SELECT coalesce(c.session_id, ''), e.entry_id, m.timestamp, CASE m.kind WHEN 4 THEN m.json END
               FROM messages m JOIN entries e ON e.message_id = m.id
                    LEFT JOIN conversations c ON c.id = e.conversation_id
              WHERE m.kind <> 3",
        )?;
        let keyed =
            |(session, entry, time, nonce): (_, String, _, _)| (old_key(session, &entry, time), nonce);
        let (gone, said): (Vec<_>, Vec<_>) =
            shown.into_iter().map(keyed).partition(|(_, nonce)| nonce.is_some());
        let said: HashSet<_> = said.into_iter().map(|(key, _)| key).collect();
        let gone = gone.into_iter().filter_map(|(key, nonce)| Some((key, nonce?)));
        Ok(gone.filter(|(key, _)| !said.contains(key)).collect())
    }

    /// Its summaries, sources before the summaries condensed from them. Unreadable ones are left out, along
    /// with those condensed from them.
    pub fn summaries(&self) -> Result<Vec<SummaryRecord>> {
        let mut found = Vec::new();
        self.connection.each("SELECT * FROM summaries ORDER BY depth, id", [], |row| {
            let Ok(Ok(stored)) = <Result<StoredSummary>>::from_row(row) else { return Ok(()) };
            let sources: Result<Vec<Hash>> = self.connection.all(
                "SELECT coalesce(m.lineage, s.hash) FROM summary_sources e
                   LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN summaries s ON s.id = e.source_id
                  WHERE e.summary_id = ?1 ORDER BY e.ordinal",
                [stored.id],
            );
            found.extend(sources.ok().map(|sources| SummaryRecord::of(stored.summary, &sources)));
            Ok(())
        })?;
        Ok(found)
    }

    /// What it records about itself.
    pub fn facts(&self) -> Result<HashMap<String, String>> {
        self.readable("SELECT key, value FROM _metadata")
    }

    /// What a query finds, without the rows that can't be read.
    fn readable<T: FromRow, C: FromIterator<T>>(&self, sql: &str) -> Result<C> {
        let mut query = self.connection.prepare(sql)?;
        let found = query.query_map([], |row: &Row<'_>| T::from_row(row))?;
        Ok(found.filter_map(std::result::Result::ok).collect())
    }
}

/// Copies the rows that can be read into an empty database. Returns how many.
fn copy(pages: &mut DatabasePages, into: &Connection, cancel: &CancellationToken) -> Result<usize> {
    into.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")?;
    let mut inserts = Vec::new();
    for (table, columns, types) in TABLES {
        let has_ids = columns.starts_with("id INTEGER PRIMARY KEY");
        into.execute_batch(&format!("CREATE TABLE {table} ({columns})"))?;
        let marks = vec!["?"; types.len()].join(", ");
        // Of two rows with one number, one is what another program left behind.
        let sql = format!("INSERT OR REPLACE INTO {table} VALUES ({marks})");
        inserts.push((has_ids, types.as_bytes(), into.prepare(&sql)?));
    }
    let mut copied = 0;
    for page in 1..=pages.count {
        go_on(cancel)?;
        pages.rows(page, &mut |row| {
            let found = inserts.iter_mut().find(|(has_ids, types, _)| {
                types.len() == row.values.len()
                    && *has_ids == row.id.is_some()
                    && types.iter().zip(&row.values).all(|(kind, value)| is_of(*kind, value))
            });
            let Some((.., insert)) = found else { return Ok(()) };
            let mut values = row.values;
            if let Some(id) = row.id {
                values[0] = Value::Integer(id);
            }
            copied += insert.execute(params_from_iter(values))?;
            Ok(())
        })?;
    }
    drop(inserts);
    // No hash covers an entry: of two that contradict each other, the damaged one would show another's message.
    into.execute_batch(
        "UPDATE entries SET message_id = NULL
          WHERE kind = 1 AND head_id IS NOT message_id
            AND NOT EXISTS (SELECT 1 FROM messages m LEFT JOIN entries p ON p.id = entries.parent_id
                             WHERE m.id = entries.message_id
                               AND iif(entries.parent_id IS NULL, m.parent_id IS NULL,
                                       m.parent_id IN (p.head_id, p.message_id)));
         CREATE INDEX entries_by_conversation ON entries (conversation_id);
         CREATE INDEX entries_by_message ON entries (message_id); COMMIT",
    )?;
    Ok(copied)
}

/// What a text is recognized by: another agent may say the same in another record.
fn digest(json: &str) -> Hash {
    Hash::plain(said(json).unwrap_or(json).as_bytes())
}

impl Upkeep<'_> {
    /// Removes the digests of the stored texts from `digests`.
    pub fn strike_out(&self, digests: &mut HashSet<Hash>) -> Result<()> {
        self.each("SELECT json, codec, bytes FROM messages WHERE kind IN (0, 1, 2)", [], |row| {
            let json = StoredJson::from_row(row)?.unpack()?;
            digests.remove(&digest(&json));
            Ok(())
        })
    }

    /// Which of these messages are stored.
    pub fn known(&self, lineages: &[Hash]) -> Result<Vec<bool>> {
        let is_known = |lineage: &Hash| Ok(self.messages().message_by_lineage(*lineage)?.is_some());
        lineages.iter().map(is_known).collect()
    }
}

impl UpkeepWriter<'_> {
    /// Records what an old database records about itself, unless that is known here.
    pub fn adopt_facts(&self, facts: &HashMap<String, String>) -> Result<()> {
        // What was read of other agents' logs may be lost, and a rewritten file is rewritten.
        let stays = |key: &str| !key.starts_with(importing::READ) && key != vacuum::PENDING;
        let mut known = facts.iter().filter(|(key, _)| stays(key));
        known.try_for_each(|(key, value)| self.add_fact(key, value).map(drop))
    }

    /// Records when a session of an old database began and was last opened there.
    pub fn adopt_times(&self, session: &StoredSession) -> Result<()> {
        let StoredSession { session_id, started_at, seen_at, .. } = session;
        self.change(
            "UPDATE conversations SET started_at = ?2, seen_at = ?3 WHERE session_id = ?1 AND ?3 > 0",
            params![session_id, started_at, seen_at],
        )
    }
}
