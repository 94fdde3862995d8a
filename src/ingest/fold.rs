//! The fold itself: entries, parents before children, become rows in one transaction.

use std::borrow::Cow;
use std::collections::HashSet;

use super::restore::restore;
use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, Hash, MessageId};
use crate::model::{Content, Entry, Message, Role, with_replacement};
use crate::store::{Batch, EntryRole, NewEntry, NewMessage};

/// Entries as they were handed over, with what was known then of the places they hang from.
#[derive(Debug, Default)]
pub struct Handover {
    /// New entries, parents before children.
    pub entries: Vec<Entry>,
    /// Those whose parent the session itself does not have: Pi shows them as roots.
    pub orphans: HashSet<String>,
}

/// Stores the summaries that entries carry which are stored already, where the store has lost them.
///
/// # Errors
/// When the database can't be written.
pub fn restore_carried(batch: &Batch<'_>, conversation: ConversationId, handover: &Handover) -> Result<()> {
    for entry in &handover.entries {
        if let Content::Compaction(Some(details)) = &entry.content
            && let Some(row) = batch.entry_row(conversation, &entry.id)?
        {
            restore(batch, conversation, &entry.id, row, details)?;
        }
    }
    Ok(())
}

/// What a message extends: the last message at or above its parent entry.
type Head = Option<(MessageId, Hash, i64)>;

/// Stores what of `handover` is not stored yet.
///
/// # Errors
/// When the database can't be written, or a parent is not stored although its session has it: then an earlier hand-over
/// was lost, and this one must not be stored with a gap above it.
pub fn fold(batch: &Batch<'_>, conversation: ConversationId, handover: &Handover) -> Result<()> {
    // Mostly the entry above is the one before: what was just added need not be looked up.
    let mut last: Option<(Cow<'_, str>, EntryId, Head)> = None;
    for entry in &handover.entries {
        let Some(id) = free_id(batch, conversation, entry)? else { continue };
        let (parent, above) = match (&last, &entry.parent) {
            (Some((id, row, head)), Some(parent)) if id == parent => (Some(*row), *head),
            _ => {
                let parent = parent_of(batch, conversation, entry, &handover.orphans)?;
                (parent, parent.map_or(Ok(None), |parent| batch.head_of(parent))?)
            }
        };
        let (row, head) = add(batch, conversation, &id, entry, parent, above)?;
        last = Some((id, row, head));
    }
    Ok(())
}

/// The id to store an entry under; `None` if it is stored.
///
/// Ids are unique within a session, but a damaged file may repeat one. The first entry has it, and what hangs below. Another
/// message under the same id is kept beside it, where search finds it.
fn free_id<'e>(
    batch: &Batch<'_>,
    conversation: ConversationId,
    entry: &'e Entry,
) -> Result<Option<Cow<'e, str>>> {
    let is_taken = |id: &str| Ok(batch.entry_row(conversation, id)?.is_some());
    if !is_taken(&entry.id)? {
        return Ok(Some(Cow::from(&entry.id)));
    }
    let Content::Message(json) = &entry.content else { return Ok(None) };
    let is_same = match batch.shown_by(conversation, &entry.id)? {
        // One that can't be read is for the doctor, which knows what it was.
        Some(stored) => batch.message(stored).map_or(true, |stored| stored.json == *json),
        None => false,
    };
    if is_same {
        return Ok(None);
    }
    let beside = format!("{} {}", entry.id, Hash::plain(json.as_bytes()));
    Ok(if is_taken(&beside)? { None } else { Some(Cow::from(beside)) })
}

fn parent_of(
    batch: &Batch<'_>,
    conversation: ConversationId,
    entry: &Entry,
    orphans: &HashSet<String>,
) -> Result<Option<EntryId>> {
    let Some(parent) = &entry.parent else { return Ok(None) };
    match batch.entry_row(conversation, parent)? {
        Some(row) => Ok(Some(row)),
        None if orphans.contains(&entry.id) => Ok(None),
        None => Err(Error::gap(format!("the entry above {} is not stored yet", entry.id))),
    }
}

/// Adds an entry with what it shows; says its row, and what its children extend.
fn add(
    batch: &Batch<'_>,
    conversation: ConversationId,
    id: &str,
    entry: &Entry,
    parent: Option<EntryId>,
    above: Head,
) -> Result<(EntryId, Head)> {
    let mut head = above;
    let role = match &entry.content {
        Content::Message(json) => {
            let message = Message::parse(json);
            let new = new_message(json, &message, entry.timestamp, above);
            let id = batch.add_message(&new)?;
            head = Some((id, new.lineage, new.height));
            EntryRole::Message(id)
        }
        Content::Edit { target, replacement } => {
            let rendition = match replacement {
                Some(replacement) => {
                    add_rendition(batch, conversation, target, replacement, entry.timestamp)?
                }
                None => None,
            };
            match (replacement, rendition) {
                // An edit of something that shows no message changes nothing.
                (Some(_), None) => EntryRole::Link,
                _ => EntryRole::Edit { target, rendition },
            }
        }
        Content::Compaction(_) => EntryRole::Compaction,
        Content::Other => EntryRole::Link,
    };
    let new = NewEntry { entry_id: id, parent, role, head: head.map(|(id, ..)| id) };
    let row = batch.add_entry(conversation, &new)?;
    if let Content::Compaction(Some(details)) = &entry.content {
        restore(batch, conversation, &entry.id, row, details)?;
    }
    Ok((row, head))
}

fn new_message<'a>(json: &'a str, message: &'a Message, entry_time: i64, above: Head) -> NewMessage<'a> {
    let (parent, lineage, height) = match above {
        Some((id, lineage, height)) => (Some(id), lineage, height + 1),
        None => (None, Hash::ROOT, 0),
    };
    NewMessage {
        lineage: lineage.child(json),
        parent,
        height,
        kind: kind_of(message),
        role: &message.role,
        tool: message.tool.as_deref(),
        tokens: message.tokens(),
        timestamp: message.timestamp.unwrap_or(entry_time),
        json,
        searchable: message.searchable().into(),
    }
}

fn kind_of(message: &Message) -> MessageKind {
    match message.role {
        Role::System => MessageKind::System,
        _ if message.private => MessageKind::Private,
        _ => MessageKind::Conversation,
    }
}

/// The message of the entry `target` as an edit shows it.
fn add_rendition(
    batch: &Batch<'_>,
    conversation: ConversationId,
    target: &str,
    replacement: &str,
    entry_time: i64,
) -> Result<Option<MessageId>> {
    let Some(original) = batch.shown_by(conversation, target)? else { return Ok(None) };
    let original = batch.message(original)?;
    let json = with_replacement(&original.json, replacement);
    let message = Message::parse(&json);
    let rendition = NewMessage {
        lineage: original.lineage.edited(replacement),
        parent: Some(original.id),
        height: original.height,
        kind: MessageKind::Edited,
        role: &message.role,
        tool: message.tool.as_deref(),
        tokens: message.tokens(),
        timestamp: message.timestamp.unwrap_or(entry_time),
        json: &json,
        searchable: "".into(),
    };
    batch.add_message(&rendition).map(Some)
}
