//! What `/lcm doctor --fix` may do: save the database, then rebuild what follows from the messages. It may
//! change a message in two ways only: restore a row's text if the row's hash proves it, or store a lost
//! message again. It also corrects recorded facts that follow from the text.

use rusqlite::{OptionalExtension as _, params};

use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};
use crate::model::{Message, parts, passages, with_replacement};
use crate::store::columns::reading;
use crate::store::db::migrations;
use crate::store::messages::{codec, counts};
use crate::store::summaries::records::text_of;
use crate::store::upkeep::vacuum;
use crate::store::{Facts, IndexWriter, MessageWriter, Messages, NewMessage, UpkeepWriter};

fn mending(error: rusqlite::Error) -> Error {
    Error::storing("failed to repair the history store", error)
}

/// The text of a message in a session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The message's JSON.
    Said(String),
    /// For a rendition, the JSON that an edit put in place of the original's content.
    Replaced(String),
}

/// An entry whose message is missing.
#[derive(Clone, Copy, Debug)]
pub struct Orphan {
    entry: EntryId,
    /// The missing message's row.
    message: Option<MessageId>,
    /// The entry above it.
    pub parent: Option<EntryId>,
    /// Whether the last message above it exists.
    pub is_founded: bool,
}

impl UpkeepWriter<'_> {
    /// Restores the text of a damaged message. Returns `false`, without a change, if text and position don't
    /// give the row's identity.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn put_back(&self, message: MessageId, text: &Text) -> Result<bool> {
        let mut query = (self.connection)
            .prepare_cached(
                "SELECT m.lineage, above.lineage, m.parent_id
                   FROM messages m LEFT JOIN messages above ON above.id = m.parent_id WHERE m.id = ?1",
            )
            .map_err(mending)?;
        let (lineage, above, parent) = query
            .query_row([message.0], |row| {
                Ok((
                    row.get::<_, [u8; 32]>(0)?,
                    row.get::<_, Option<[u8; 32]>>(1)?,
                    row.get::<_, Option<i64>>(2)?,
                ))
            })
            .map_err(mending)?;
        let above = above.map_or(Hash::ROOT, Hash);
        let (json, proof) = match text {
            Text::Said(json) => (json.clone(), above.child(json)),
            Text::Replaced(replacement) => {
                let original =
                    parent.and_then(|parent| Messages::new(self.connection).message(MessageId(parent)).ok());
                let Some(original) = original else { return Ok(false) };
                (with_replacement(&original.json, replacement), above.edited(replacement))
            }
        };
        if proof.0 != lineage {
            return Ok(false);
        }
        let (packed, codec) = codec::encode(&json);
        self.connection
            .prepare_cached("UPDATE messages SET json = ?2, codec = ?3, bytes = ?4 WHERE id = ?1")
            .and_then(|mut update| update.execute(params![message.0, packed, codec, json.len()]))
            .map_err(mending)?;
        Ok(true)
    }

    /// Corrects the facts that follow from a message's text.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn set_facts(&self, message: MessageId, facts: &Facts) -> Result<()> {
        let Facts { role, tool, tokens, timestamp } = facts;
        self.connection
            .prepare_cached(
                "UPDATE messages SET role = ?2, tool_name = ?3, tokens = ?4, timestamp = ?5 WHERE id = ?1",
            )
            .and_then(|mut update| update.execute(params![message.0, role, tool, tokens, timestamp]))
            .map(drop)
            .map_err(mending)
    }

    /// The entry `entry_id`, if its message is missing.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn orphan(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<Orphan>> {
        self.connection
            .prepare_cached(
                "SELECT e.id, e.message_id, e.parent_id, above.head_id, m.id AS head
                   FROM entries e
                   LEFT JOIN entries above ON above.id = e.parent_id
                   LEFT JOIN messages m ON m.id = above.head_id
                  WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1
                    AND (e.parent_id IS NULL OR above.id IS NOT NULL)
                    AND NOT EXISTS (SELECT 1 FROM messages WHERE id = e.message_id)",
            )
            .and_then(|mut query| {
                query
                    .query_row(params![conversation.0, entry_id], |row| {
                        Ok(Orphan {
                            entry: EntryId(row.get("id")?),
                            message: row.get::<_, Option<i64>>("message_id")?.map(MessageId),
                            parent: row.get::<_, Option<i64>>("parent_id")?.map(EntryId),
                            is_founded: row.get::<_, Option<i64>>("head_id")?
                                == row.get::<_, Option<i64>>("head")?,
                        })
                    })
                    .optional()
            })
            .map_err(reading)
    }

    /// Stores an entry's lost message again, in the row that others still refer to. Returns `false`, without
    /// a change, if the next message proves that it was another.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn bring_back(&self, orphan: &Orphan, message: &NewMessage<'_>) -> Result<bool> {
        // The next message was mostly stored right after it.
        let after = |id: MessageId| -> rusqlite::Result<Option<i64>> {
            self.connection
                .prepare_cached(
                    "SELECT id FROM messages WHERE id > ?1 AND parent_id = ?1 AND kind <> 3 ORDER BY id LIMIT 1",
                )?
                .query_row([id.0], |row| row.get(0))
                .optional()
        };
        let next = orphan.message.map_or(Ok(None), after).map_err(mending)?;
        if let Some(next) = next.and_then(|next| Messages::new(self.connection).message(MessageId(next)).ok())
            && message.lineage.child(&next.json) != next.lineage
        {
            return Ok(false);
        }
        let id = MessageWriter::new(self.connection).add_message_at(orphan.message, message)?;
        self.connection
            .prepare_cached("UPDATE entries SET message_id = ?2, head_id = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute([orphan.entry.0, id.0]))
            .map_err(mending)?;
        Ok(true)
    }

    /// Empties both indexes: a broken one accepts no rows.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn clear_indexes(&self) -> Result<()> {
        self.connection
            .execute_batch(
                "INSERT INTO messages_fts (messages_fts) VALUES ('delete-all');
                 INSERT INTO summaries_fts (summaries_fts) VALUES ('delete-all');",
            )
            .map_err(mending)
    }

    /// Sets the last message at or above some entries.
    ///
    /// # Errors
    /// When the database can't be written; so for all methods here.
    pub fn set_heads(&self, heads: &[(EntryId, Option<MessageId>)]) -> Result<()> {
        let mut update = (self.connection)
            .prepare_cached("UPDATE entries SET head_id = ?2 WHERE id = ?1")
            .map_err(mending)?;
        for (entry, head) in heads {
            update.execute(params![entry.0, head.map(|head| head.0)]).map_err(mending)?;
        }
        Ok(())
    }

    /// Moves an entry below another.
    pub fn set_parent(&self, entry: EntryId, parent: EntryId) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE entries SET parent_id = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute([entry.0, parent.0]))
            .map(drop)
            .map_err(mending)
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
            let mut delete = self.connection.prepare_cached(sql).map_err(mending)?;
            for summary in summaries {
                delete.execute([summary.0]).map_err(mending)?;
            }
        }
        Ok(())
    }

    /// Removes edges and carried records of missing summaries.
    pub fn drop_loose_ends(&self) -> Result<()> {
        self.connection
            .execute_batch(
                "DELETE FROM summary_sources WHERE summary_id NOT IN (SELECT id FROM summaries);
                 DELETE FROM carried WHERE summary_id NOT IN (SELECT id FROM summaries)
                                        OR entry_id NOT IN (SELECT id FROM entries);",
            )
            .map_err(mending)
    }

    /// Rebuilds what is kept only to answer faster, and has the file rewritten.
    ///
    /// # Errors
    /// Also when the file has other damage.
    pub fn remake_derived(&self) -> Result<()> {
        migrations::remake_derived(self.connection).map_err(mending)?;
        counts::count(self.connection).map_err(mending)?;
        vacuum::note(self.connection).map_err(mending)?;
        match self.integrity()?.into_iter().find(|line| !line.contains("never used")) {
            Some(line) => Err(Error::store(format!("the history store has other damage: {line}"))),
            None => Ok(()),
        }
    }

    /// Rebuilds SQLite's own indexes.
    pub fn reindex(&self) -> Result<()> {
        self.connection.execute_batch("REINDEX").map_err(mending)
    }

    /// Rebuilds the index of summaries.
    pub fn rebuild_summary_index(&self) -> Result<()> {
        self.connection
            .execute("INSERT INTO summaries_fts (summaries_fts) VALUES ('delete-all')", [])
            .map_err(mending)?;
        let mut query = self.connection.prepare("SELECT * FROM summaries ORDER BY id").map_err(mending)?;
        let mut rows = query.query([]).map_err(mending)?;
        while let Some(row) = rows.next().map_err(mending)? {
            let id: i64 = row.get("id").map_err(reading)?;
            // An unreadable text has no words.
            let Ok(text) = text_of(row).map_err(reading)? else { continue };
            IndexWriter::new(self.connection).add_text(id, &text, &parts(&text))?;
        }
        Ok(())
    }

    /// Rebuilds the index of messages, each passage in its recorded row. A message whose text can't be read
    /// has no words.
    pub fn rebuild_message_index(&self) -> Result<()> {
        self.connection
            .execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')", [])
            .map_err(mending)?;
        self.audit_messages(MessageId(i64::MIN), MessageId(i64::MAX), |message| {
            let (Ok(json), Some(first)) = (&message.json, message.first_passage) else { return Ok(true) };
            let text = Message::parse(json).searchable();
            let recorded = usize::try_from(message.passages).unwrap_or_default();
            let bodies = passages(&text).into_iter().take(recorded).map(|range| &text[range]);
            IndexWriter::new(self.connection).add_passages(first, bodies.map(|body| (body, parts(body))))?;
            Ok(true)
        })
    }
}
