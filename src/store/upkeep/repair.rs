//! What `/lcm doctor --fix` may do: save the database, then rebuild what follows from the messages. It may
//! change a message in two ways only: restore a row's text if the row's hash proves it, or store a lost
//! message again. It also corrects recorded facts that follow from its text and place.

use rusqlite::params;

use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, Hash, MessageId, SummaryId};
use crate::model::{Message, parts, passages, with_replacement};
use crate::store::columns::{Queries as _, from_row, writing};
use crate::store::db::migrations;
use crate::store::messages::{codec, counts};
use crate::store::summaries::records::text_of;
use crate::store::upkeep::vacuum;
use crate::store::{Facts, IndexWriter, MessageWriter, Messages, NewMessage, UpkeepWriter};

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
    pub parent: Option<EntryId>,
    /// Whether the last message above it exists.
    pub is_founded: bool,
}

from_row!(Orphan { entry = "id", message = "message_id", parent = "parent_id", is_founded });

impl UpkeepWriter<'_> {
    /// Restores the text of a damaged message. Returns `false`, without a change, if text and position don't
    /// give the row's identity.
    pub fn put_back(&self, message: MessageId, text: &Text) -> Result<bool> {
        let (lineage, above, parent): (Hash, Option<Hash>, Option<MessageId>) = self.connection.one(
            "SELECT m.lineage, above.lineage, m.parent_id
               FROM messages m LEFT JOIN messages above ON above.id = m.parent_id WHERE m.id = ?1",
            [message],
        )?;
        let above = above.unwrap_or(Hash::ROOT);
        let (json, proof) = match text {
            Text::Said(json) => (json.clone(), above.child(json)),
            Text::Replaced(replacement) => {
                let original = parent.and_then(|parent| Messages::new(self.connection).message(parent).ok());
                let Some(original) = original else { return Ok(false) };
                (with_replacement(&original.json, replacement), above.edited(replacement))
            }
        };
        if proof != lineage {
            return Ok(false);
        }
        let (packed, codec) = codec::encode(&json);
        self.connection.change(
            "UPDATE messages SET json = ?2, codec = ?3, bytes = ?4 WHERE id = ?1",
            params![message, packed, codec, json.len()],
        )?;
        Ok(true)
    }

    /// Corrects the facts that follow from a message's text.
    pub fn set_facts(&self, message: MessageId, facts: &Facts) -> Result<()> {
        let Facts { role, tool, tokens, timestamp } = facts;
        self.connection.change(
            "UPDATE messages SET role = ?2, tool_name = ?3, tokens = ?4, timestamp = ?5 WHERE id = ?1",
            params![message, role, tool, tokens, timestamp],
        )
    }

    /// The entry `entry_id`, if its message is missing.
    pub fn orphan(&self, conversation: ConversationId, entry_id: &str) -> Result<Option<Orphan>> {
        self.connection.first(
            "SELECT e.id, e.message_id, e.parent_id, above.head_id IS m.id AS is_founded
               FROM entries e
               LEFT JOIN entries above ON above.id = e.parent_id
               LEFT JOIN messages m ON m.id = above.head_id
              WHERE e.conversation_id = ?1 AND e.entry_id = ?2 AND e.kind = 1
                AND (e.parent_id IS NULL OR above.id IS NOT NULL)
                AND NOT EXISTS (SELECT 1 FROM messages WHERE id = e.message_id)",
            params![conversation, entry_id],
        )
    }

    /// Stores an entry's lost message again, in the row that others still refer to. Returns `false`, without
    /// a change, if the next message proves that it was another.
    pub fn bring_back(&self, orphan: &Orphan, message: &NewMessage<'_>) -> Result<bool> {
        // The next message was mostly stored right after it.
        let after = |id: MessageId| {
            self.connection.first(
                "SELECT id FROM messages WHERE id > ?1 AND parent_id = ?1 AND kind <> 3 ORDER BY id LIMIT 1",
                [id],
            )
        };
        let next = orphan.message.map_or(Ok(None), after)?;
        if let Some(next) = next.and_then(|next| Messages::new(self.connection).message(next).ok())
            && message.lineage.child(&next.json) != next.lineage
        {
            return Ok(false);
        }
        let id = MessageWriter::new(self.connection).add_message_at(orphan.message, message)?;
        self.connection
            .change("UPDATE entries SET message_id = ?2, head_id = ?2 WHERE id = ?1", (orphan.entry, id))?;
        Ok(true)
    }

    /// Empties both indexes: a broken one accepts no rows.
    pub fn clear_indexes(&self) -> Result<()> {
        self.connection
            .execute_batch(
                "INSERT INTO messages_fts (messages_fts) VALUES ('delete-all');
                 INSERT INTO summaries_fts (summaries_fts) VALUES ('delete-all');",
            )
            .map_err(writing)
    }

    /// Sets the last message at or above some entries.
    pub fn set_heads(&self, heads: &[(EntryId, Option<MessageId>)]) -> Result<()> {
        heads.iter().try_for_each(|(entry, head)| {
            self.connection.change("UPDATE entries SET head_id = ?2 WHERE id = ?1", params![entry, head])
        })
    }

    /// Moves an entry below another, and its message below the one there if its own parent is lost and its hash proves it.
    /// Otherwise a copy of the session would have its message again.
    pub fn set_parent(&self, entry: EntryId, parent: EntryId) -> Result<()> {
        self.connection.change("UPDATE entries SET parent_id = ?2 WHERE id = ?1", [entry, parent])?;
        // Without the `+`, the column's type keeps SQLite from the index, and it reads all messages.
        let found: Option<(MessageId, MessageId, Hash)> = self.connection.first(
            "SELECT m.id, head.id, head.lineage
               FROM entries e JOIN messages m ON m.id = e.message_id
               JOIN entries above ON above.id = e.parent_id JOIN messages head ON head.id = above.head_id
              WHERE e.id = ?1 AND e.kind = 1 AND NOT EXISTS (SELECT 1 FROM messages WHERE id = m.parent_id)
                AND NOT EXISTS (SELECT 1 FROM messages WHERE ifnull(parent_id, 0) = +head.id
                                   AND substr(lineage, 1, 16) = substr(m.lineage, 1, 16))",
            [entry],
        )?;
        if let Some((id, head, lineage)) = found
            && let Ok(message) = Messages::new(self.connection).message(id)
            && lineage.child(&message.json) == message.lineage
        {
            self.connection.change("UPDATE messages SET parent_id = ?2 WHERE id = ?1", [id, head])?;
        }
        Ok(())
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
            summaries.iter().try_for_each(|summary| self.connection.change(sql, [summary]))?;
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
            .map_err(writing)
    }

    /// Rebuilds what is kept only to answer faster, and has the file rewritten.
    ///
    /// # Errors
    /// Also when the file has other damage.
    pub fn remake_derived(&self) -> Result<()> {
        migrations::remake_derived(self.connection).map_err(writing)?;
        counts::count(self.connection)?;
        vacuum::note(self.connection)?;
        match self.integrity()?.into_iter().find(|line| !line.contains("never used")) {
            Some(line) => Err(Error::store(format!("the history store has other damage: {line}"))),
            None => Ok(()),
        }
    }

    /// Rebuilds SQLite's own indexes.
    pub fn reindex(&self) -> Result<()> {
        self.connection.execute_batch("REINDEX").map_err(writing)
    }

    /// Rebuilds the index of summaries.
    pub fn rebuild_summary_index(&self) -> Result<()> {
        self.connection.change("INSERT INTO summaries_fts (summaries_fts) VALUES ('delete-all')", [])?;
        self.connection.each("SELECT * FROM summaries ORDER BY id", [], |row| {
            // An unreadable text has no words.
            let Ok(text) = text_of(row)? else { return Ok(()) };
            IndexWriter::new(self.connection).add_text(row.get("id")?, &text, &parts(&text))
        })
    }

    /// Rebuilds the index of messages, each passage in its recorded row. A message whose text can't be read
    /// has no words.
    pub fn rebuild_message_index(&self) -> Result<()> {
        self.connection.change("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')", [])?;
        self.audit_messages(|message| {
            let (Ok(json), Some(first)) = (&message.json, message.first_passage) else { return Ok(()) };
            let text = Message::parse(json).searchable();
            let recorded = usize::try_from(message.passages).unwrap_or_default();
            let bodies = passages(&text).into_iter().take(recorded).map(|range| &text[range]);
            IndexWriter::new(self.connection).add_passages(first, bodies.map(|body| (body, parts(body))))
        })
    }
}
