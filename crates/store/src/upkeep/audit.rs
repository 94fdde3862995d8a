//! Reads the whole store for a check: raw rows, however wrong, and what SQLite reports about its file.

use rusqlite::{Row, params};

use crate::Upkeep;
use crate::columns::Queries as _;
use crate::db::schema;
use crate::messages::stored::StoredJson;
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Hash, MessageId, Nonce, SummaryId};

/// Maximum number of SQLite's complaints to read.
const COMPLAINTS: usize = 100;

/// A message's raw row, with the identity of the message above.
pub struct AuditedMessage {
    pub id: MessageId,
    /// Its identity, if that is a valid hash.
    pub lineage: Option<Hash>,
    /// The message before it, or the original of which it is a rendition.
    pub parent: Option<MessageId>,
    /// That message's identity, if its row exists.
    pub above: Option<Hash>,
    pub kind: MessageKind,
    /// The recorded length of the JSON, in bytes.
    pub bytes: i64,
    /// Its JSON, or why it can't be read.
    pub json: Result<String>,
    /// The number in place of a purged message's JSON.
    pub nonce: Option<Nonce>,
}

fn hash_in(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Hash>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map(Hash))
}

fn audited_message(row: &Row<'_>) -> rusqlite::Result<AuditedMessage> {
    use crate::columns::FromRow as _;
    let stored = StoredJson::from_row(row)?;
    Ok(AuditedMessage {
        id: row.get("id")?,
        lineage: hash_in(row, "lineage")?,
        parent: row.get("parent_id")?,
        above: hash_in(row, "above")?,
        kind: row.get("kind")?,
        bytes: row.get("bytes")?,
        nonce: stored.nonce(),
        json: stored.unpack(),
    })
}

impl Upkeep<'_> {
    /// The file's format.
    pub fn format(&self) -> Result<i64> {
        Ok(schema::format(self.connection)?)
    }

    /// What SQLite finds wrong with its file, in its own words, including the two indexes.
    pub fn integrity(&self) -> Result<Vec<String>> {
        // A connection caches an index's structure, and only a query notices that another connection changed
        // it; the check would report the stale cache. It reports real damage of the index again.
        let _ = self.rank_all();
        let mut lines: Vec<String> = self.all(&format!("PRAGMA integrity_check({COMPLAINTS})"), [])?;
        lines.retain(|line| line != "ok");
        Ok(lines)
    }

    /// Rows that refer to missing ones: the table, the row unless the table has no row ids, and the table it
    /// refers to.
    pub fn dangling(&self) -> Result<Vec<(String, Option<i64>, String)>> {
        self.all("PRAGMA foreign_key_check", [])
    }

    /// Calls `visit` with the messages in order.
    pub fn audit_messages(&self, mut visit: impl FnMut(AuditedMessage) -> Result<()>) -> Result<()> {
        self.each(
            "SELECT m.*, above.lineage AS above
               FROM messages m LEFT JOIN messages above ON above.id = m.parent_id
              ORDER BY m.id",
            [],
            |row| visit(audited_message(row)?),
        )
    }

    /// The number of entries.
    pub fn count_entries(&self) -> Result<usize> {
        self.one("SELECT count(*) FROM entries", [])
    }

    /// Entries in a wrong place: the id, the session's id, and the number of what is wrong, from 0: the message is missing;
    /// the entry is not below its parent; its message is not below the one above; the last message at or above it is
    /// another; it edits another message.
    pub fn misplaced_entries(&self) -> Result<Vec<(String, Option<String>, usize)>> {
        self.all(
            "SELECT * FROM (
               SELECT e.entry_id, c.session_id,
                      CASE WHEN e.kind = 1 AND m.id IS NULL THEN 0
                           WHEN e.parent_id >= e.id THEN 1
                           WHEN e.kind = 1 AND m.parent_id IS NOT p.head_id THEN 2
                           WHEN e.head_id IS NOT iif(e.kind = 1, e.message_id, p.head_id) THEN 3
                           WHEN e.kind = 2 AND e.message_id IS NOT NULL
                                AND (m.kind <> 3 OR m.parent_id IS NOT
                                     (SELECT t.message_id FROM entries t
                                       WHERE t.conversation_id = e.conversation_id AND t.entry_id = e.target AND t.kind = 1))
                           THEN 4 END AS what
                 FROM entries e LEFT JOIN entries p ON p.id = e.parent_id LEFT JOIN messages m ON m.id = e.message_id
                 LEFT JOIN conversations c ON c.id = e.conversation_id
                WHERE e.parent_id IS NULL OR p.id IS NOT NULL)
              WHERE what IS NOT NULL",
            [],
        )
    }

    /// The summaries, sources before those condensed from them.
    pub fn summary_rows(&self) -> Result<Vec<SummaryId>> {
        self.all("SELECT id FROM summaries ORDER BY depth, id", [])
    }

    /// Summaries whose recorded span is not that of their sources.
    pub fn misspanned_summaries(&self) -> Result<Vec<SummaryId>> {
        self.all(
            "SELECT s.id FROM summaries s
              WHERE (SELECT (count(*) = 0) + (sum(coalesce(o.messages, 1)) IS NOT s.messages) FROM summary_sources e
                       LEFT JOIN summaries o ON o.id = e.source_id WHERE e.summary_id = s.id)
                 OR s.first_message IS NOT
                    (SELECT coalesce(e.message_id, o.first_message) FROM summary_sources e
                       LEFT JOIN summaries o ON o.id = e.source_id WHERE e.summary_id = s.id ORDER BY ordinal LIMIT 1)
                 OR s.last_message IS NOT
                    (SELECT coalesce(e.message_id, o.last_message) FROM summary_sources e
                       LEFT JOIN summaries o ON o.id = e.source_id WHERE e.summary_id = s.id ORDER BY ordinal DESC LIMIT 1)",
            [],
        )
    }

    /// How many passages and summaries the two indexes have, and how many they should have.
    pub fn indexed(&self) -> Result<[(usize, usize); 2]> {
        let count = |sql| self.one::<(usize, usize)>(sql, []);
        Ok([
            count(
                "SELECT (SELECT count(*) FROM messages_fts_docsize WHERE length(sz) > 1),
                        (SELECT coalesce(sum(passages), 0) FROM messages WHERE first_passage IS NOT NULL)",
            )?,
            count(
                "SELECT (SELECT count(*) FROM summaries_fts_docsize WHERE length(sz) > 1
                                 AND id IN (SELECT id FROM summaries)),
                        (SELECT count(*) FROM summaries)",
            )?,
        ])
    }

    /// Ranks a common word in both indexes, as a search does.
    pub fn rank_all(&self) -> Result<()> {
        for index in ["messages_fts", "summaries_fts"] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT rank FROM {index} WHERE {index} MATCH 'the' ORDER BY rank LIMIT 1)"
            );
            self.one::<i64>(&sql, [])?;
        }
        Ok(())
    }

    /// How many entries a session has; `with_old`: also those of a file without ids, which Pi gives other ones when it opens it.
    pub fn entries_of(&self, conversation: ConversationId, with_old: bool) -> Result<usize> {
        let sql =
            "SELECT count(*) FROM entries WHERE conversation_id = ?1 AND (?2 OR entry_id NOT LIKE 'v1-%')";
        self.one(sql, params![conversation, with_old])
    }
}
