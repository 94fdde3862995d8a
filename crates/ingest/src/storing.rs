//! Writes entries to rows in one transaction, parents before children.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet, hash_map};

use memchr::memmem;

use super::restore::restore;
use lcm_model::dag::MessageKind;
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::{ConversationId, EntryId, Hash};
use lcm_model::{
    CompactionDetails, Content, Entry, Message, Role, agent_of, parse_one, said, with_replacement,
};
use lcm_store::{
    Batch, Head, LastRows, NewEntry, NewMessage, Prepared, PurgedTexts, PurgedVersions, Shows, Version,
    is_current, own_id, repeated_id,
};

/// Entries that were handed over.
#[derive(Debug, Default)]
pub struct Handover {
    /// New entries, parents before children.
    pub entries: Vec<Entry>,
    /// The entries whose parent the session does not have: Pi shows them as roots.
    pub orphans: HashSet<String>,
    /// Whether entries whose ids are stored are left out, even if they show something else.
    pub skips_known: bool,
}

impl Handover {
    /// Prepares the messages for storing, on any thread. That takes as long as storing them.
    pub fn prepare(self) -> PreparedHandover {
        let ready = self.entries.iter().filter_map(|entry| match &entry.content {
            Content::Message(json) => Some(Ready::of(json)),
            _ => None,
        });
        PreparedHandover { ready: ready.collect(), handover: self }
    }

    /// A single entry whose parent is stored or queued.
    pub fn of(json: &str) -> Result<Self> {
        let entries = vec![parse_one(json)?];
        Ok(Self { entries, ..Self::default() })
    }
}

/// A hand-over whose messages are ready to be stored.
pub struct PreparedHandover {
    handover: Handover,
    /// The prepared messages, in order.
    ready: Vec<Ready>,
}

impl PreparedHandover {
    /// When its first entry was written.
    pub(super) fn time(&self) -> Option<i64> {
        self.handover.entries.iter().map(|entry| entry.timestamp).find(|time| *time > 0)
    }

    /// The ids of the entries with messages, and the hashes of these.
    pub fn messages(&self) -> impl Iterator<Item = (&str, &Hash)> {
        let entries = self.handover.entries.iter();
        let with = entries.filter(|entry| matches!(entry.content, Content::Message(_)));
        with.zip(&self.ready).map(|(entry, ready)| (entry.id.as_str(), &ready.digest))
    }

    /// The number of its messages, without those that search ignores.
    pub(super) fn said(&self) -> usize {
        self.ready.iter().filter(|ready| ready.message.role != Role::System).count()
    }

    /// Stores the entries that are not stored yet. Returns the number of messages that are new to the project.
    ///
    /// # Errors
    /// When the database can't be written, or when a parent is not stored although the session has it: then
    /// an earlier hand-over was lost, and storing this one would leave a gap.
    pub fn store(self, batch: &Batch<'_>, conversation: ConversationId) -> Result<usize> {
        self.store_since(batch, conversation, batch.messages().last_rows()?, Err)
    }

    /// The same for one of several hand-overs of a session, the first of which began after the rows `since`. Leaves out
    /// what would leave a gap if `on_gap` accepts that.
    ///
    /// # Errors
    /// As above, or what `on_gap` returns.
    pub fn store_since(
        self,
        batch: &Batch<'_>,
        conversation: ConversationId,
        since: LastRows,
        mut on_gap: impl FnMut(Error) -> Result<()>,
    ) -> Result<usize> {
        let before = batch.messages().last_rows()?;
        let (purged, repeats, versions) = <(OnceCell<_>, RefCell<_>, RefCell<_>)>::default();
        let writer = SessionWriter { batch, conversation, since, purged, repeats, versions };
        let (handover, mut ready) = (self.handover, self.ready.into_iter());
        // The parent is mostly an entry shortly before, which then needs no lookup.
        let mut added: HashMap<String, Place> = HashMap::new();
        for entry in handover.entries {
            let ready = if let Content::Message(_) = entry.content { ready.next() } else { None };
            let may_repeat = ready.as_ref().filter(|_| !handover.skips_known);
            let place = || writer.place(&entry, &added, &handover.orphans);
            let found = writer.free_id(&entry, may_repeat, place);
            let found = found.and_then(|id| id.map(|id| Ok((id.into_owned(), place()?))).transpose());
            let (id, place) = match found {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) if error.code() == Code::Gap => {
                    on_gap(error)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (row, head) = writer.add(&id, entry, ready, place)?;
            added.insert(id, (Some(row), head));
        }
        batch.messages().count_added(conversation, before)
    }
}

/// The summaries that an entry carries.
fn carried(content: &Content) -> Option<CompactionDetails> {
    match content {
        Content::Compaction(details) => details.clone(),
        // Only a branch summary has this extension's details among its own fields.
        Content::Message(json) if memmem::find(json.as_bytes(), LEFT).is_some() => {
            CompactionDetails::of_left_branch(json)
        }
        _ => None,
    }
}

/// The type of a branch summary.
const LEFT: &[u8] = b"\"branch_summary\"";

/// A message that is parsed, hashed, packed and tokenized: all the work that needs no database.
struct Ready {
    message: Message,
    digest: Hash,
    tokens: usize,
    searchable: String,
    prepared: Prepared,
}

impl Ready {
    fn of(json: &str) -> Self {
        let mut message = Message::parse(json);
        let (tokens, searchable) = (message.tokens(), message.take_searchable());
        let prepared = Prepared::of(json, &searchable);
        Self { message, digest: Hash::plain(json.as_bytes()), tokens, searchable, prepared }
    }
}

/// Whether an entry that shows one of these messages may show the other: another agent may repeat what is said in another record.
fn is_same(stored: &str, json: &str) -> bool {
    stored == json || said(json).is_some_and(|of_it| said(stored) == Some(of_it))
}

/// An entry, if any, and the last message at or above it.
type Place = (Option<EntryId>, Option<Head>);

/// The messages of a session whose entries have one id in its file: the times of purged ones, and by time how many have an
/// id of their own.
#[derive(Default)]
struct Repeats {
    purged: HashSet<i64>,
    last: HashMap<i64, usize>,
}

impl Repeats {
    fn of(own: &str, versions: Vec<Version>) -> Self {
        let mut repeats = Self::default();
        for Version { entry_id, timestamp, is_purged, .. } in versions {
            if is_purged {
                repeats.purged.insert(timestamp);
            }
            let number = entry_id.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
            if let Some(number) = number.filter(|number| entry_id == repeated_id(own, timestamp, *number)) {
                let last = repeats.last.entry(timestamp).or_default();
                *last = number.max(*last);
            }
        }
        repeats
    }
}

/// A session that is stored in one transaction.
struct SessionWriter<'f> {
    batch: &'f Batch<'f>,
    conversation: ConversationId,
    /// The last rows before the session's first hand-over.
    since: LastRows,
    /// What was purged of other agents' sessions, once it is needed.
    purged: OnceCell<PurgedTexts>,
    /// By id in the session's file, once an id is repeated.
    repeats: RefCell<HashMap<String, Repeats>>,
    /// What was purged of Pi's sessions, by time, once it is needed.
    versions: RefCell<HashMap<i64, PurgedVersions>>,
}

impl SessionWriter<'_> {
    /// The id to store an entry under; `None` if it is stored.
    ///
    /// Ids are unique within a session, but a damaged file may repeat one. The first entry keeps the id and its
    /// children. Another message with the same id is stored under an id of its own, so that search finds it. That has the
    /// message's time, and nothing of its text: it stays when the message is purged, and other machines have the same.
    fn free_id<'e>(
        &self,
        entry: &'e Entry,
        ready: Option<&Ready>,
        above: impl Fn() -> Result<Place>,
    ) -> Result<Option<Cow<'e, str>>> {
        let Self { batch, conversation, .. } = *self;
        let messages = batch.messages();
        if messages.entry_row(conversation, &entry.id)?.is_none() {
            return Ok(Some(Cow::from(&entry.id)));
        }
        let (Content::Message(json), Some(ready)) = (&entry.content, ready) else { return Ok(None) };
        let (stated, own) = (ready.message.timestamp, own_id(&entry.id));
        let time = stated.unwrap_or(entry.timestamp);
        let is_stored = match messages.version(conversation, &entry.id)? {
            None => false,
            // Without a time of its own, it has that of another entry.
            Some(version) if version.is_purged => version.timestamp == time || stated.is_none(),
            // An unreadable message is the doctor's task.
            Some(version) => {
                messages.message(version.message).map_or(true, |stored| is_same(&stored.json, json))
            }
        };
        if is_stored {
            return Ok(None);
        }
        let lineage = above()?.1.map_or(Hash::ROOT, |(_, lineage, _)| lineage).child_of(&ready.digest);
        if let Some(same) = messages.message_by_lineage(lineage)? {
            let shown = messages.shown_as(conversation, same)?;
            if shown.iter().any(|id| own_id(id) == own && is_current(id)) {
                return Ok(None);
            }
        }
        let mut repeats = self.repeats.borrow_mut();
        let repeats = match repeats.entry(own.to_owned()) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(new) => {
                new.insert(Repeats::of(own, messages.versions(conversation, own)?))
            }
        };
        if repeats.purged.contains(&time) {
            return Ok(None);
        }
        let last = repeats.last.entry(time).or_default();
        loop {
            *last += 1;
            let id = repeated_id(own, time, *last);
            // An unreadable message that another machine has sent is there as a link.
            if messages.entry_row(conversation, &id)?.is_none() {
                return Ok(Some(Cow::from(id)));
            }
        }
    }

    /// The entry that an entry is below, and the message that it extends.
    fn place(
        &self,
        entry: &Entry,
        added: &HashMap<String, Place>,
        orphans: &HashSet<String>,
    ) -> Result<Place> {
        let Some(parent) = &entry.parent else { return Ok((None, None)) };
        if let Some(place) = added.get(parent) {
            return Ok(*place);
        }
        let messages = self.batch.messages();
        match messages.entry_row(self.conversation, parent)? {
            Some(row) => Ok((Some(row), messages.head_of(row)?)),
            None if orphans.contains(&entry.id) => Ok((None, None)),
            None => Err(Error::gap(format!("the entry above {} is not stored yet", entry.id))),
        }
    }

    /// Adds an entry and its message. Returns its row and the message that its children extend.
    fn add(
        &self,
        id: &str,
        mut entry: Entry,
        ready: Option<Ready>,
        (parent, above): Place,
    ) -> Result<(EntryId, Option<Head>)> {
        let Self { batch, conversation, .. } = *self;
        let mut head = above;
        // Pi's own summary of a branch; anything else that carries summaries is no message.
        let may_carry = ready.as_ref().is_none_or(|ready| ready.message.role == Role::BranchSummary);
        let carried = if may_carry { carried(&entry.content) } else { None };
        let shows = match &mut entry.content {
            Content::Message(json) => {
                let ready = ready.ok_or_else(|| Error::store("a message was not prepared"))?;
                let new = new_message(json, &ready, entry.timestamp, above);
                let purged = self.purged_as(&entry.id, &new, above)?;
                if ready.prepared.is_packed() {
                    // It may be long, and SQLite copies what it gets.
                    *json = String::new();
                }
                let new = new_message(json, &ready, entry.timestamp, above);
                let shown = match purged {
                    Some(purged) => purged,
                    None => (batch.messages().add_message(&new)?, new.lineage, new.height),
                };
                head = Some(shown);
                Shows::Message(shown.0)
            }
            Content::Purged(nonce) => {
                // A fork shows what its origin shows.
                let same = batch.upkeep().same_message(id, above.map(|(id, ..)| id), entry.timestamp)?;
                self.versions.borrow_mut().remove(&entry.timestamp);
                let purged = match same {
                    Some(same) => same,
                    None => batch.upkeep().add_purged(above, nonce, entry.timestamp)?,
                };
                head = Some(purged);
                Shows::Message(purged.0)
            }
            Content::Edit { target, replacement: None } => {
                Shows::Edit { target: target.clone(), rendition: None }
            }
            Content::Edit { target, replacement: Some(replacement) } => {
                self.replacing(target, replacement, entry.timestamp)?
            }
            Content::Compaction(_) | Content::OtherCompaction(_) => Shows::Compaction,
            Content::Other => Shows::Link,
        };
        let new = NewEntry { entry_id: id, parent, shows, head: head.map(|(id, ..)| id) };
        let row = batch.messages().add_entry(conversation, &new)?;
        if let Content::OtherCompaction(files) = &entry.content
            && !batch.upkeep().is_below_purged(row)?
        {
            batch.summaries().note_entry_files(row, files)?;
        }
        if let Some(details) = carried {
            restore(batch, (conversation, self.since), (&entry.id, row), &details)?;
        }
        Ok((row, head))
    }

    /// The placeholder of a purged message of which a new one is a copy. A message of another agent gets its own.
    fn purged_as(&self, entry_id: &str, new: &NewMessage<'_>, above: Option<Head>) -> Result<Option<Head>> {
        let Self { batch, conversation, .. } = *self;
        if agent_of(new.json).is_some() {
            let purged = match self.purged.get() {
                Some(purged) => purged,
                None => {
                    let read = batch.upkeep().purged_texts()?;
                    self.purged.get_or_init(|| read)
                }
            };
            return match purged.placeholder_of(new.json, new.timestamp) {
                Some(nonce) => batch.upkeep().add_purged(above, &nonce, new.timestamp).map(Some),
                None => Ok(None),
            };
        }
        let (mut versions, time) = (self.versions.borrow_mut(), new.timestamp);
        let purged = match versions.entry(time) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(at) => at.insert(batch.upkeep().purged_at(conversation, time)?),
        };
        // An edit of the session file, or of its origin's, may have put it below another message.
        let Some(nonce) = purged.number_of(entry_id, new.parent) else { return Ok(None) };
        // A purge that waits for the user's confirmation has left it.
        let is_left = |version: &Version| !version.is_purged && version.timestamp == time;
        if batch.messages().message_by_lineage(new.lineage)?.is_some()
            || batch.messages().versions(conversation, entry_id)?.iter().any(is_left)
        {
            return Ok(None);
        }
        batch.upkeep().add_purged(above, &nonce, time).map(Some)
    }

    /// What an edit does that replaces the message of the entry `target`. It changes nothing if that has none, and shows no
    /// purged one.
    fn replacing(&self, target: &str, replacement: &str, entry_time: i64) -> Result<Shows> {
        let Self { batch, conversation, .. } = *self;
        let edit = |rendition| Shows::Edit { target: target.to_owned(), rendition };
        if batch.upkeep().shows_purged(conversation, target)? {
            return Ok(edit(None));
        }
        let Some(original) = batch.messages().shown_by(conversation, target)? else { return Ok(Shows::Link) };
        let original = batch.messages().message(original)?;
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
            searchable: "",
            prepared: &Prepared::of(&json, ""),
        };
        Ok(edit(Some(batch.messages().add_message(&rendition)?)))
    }
}

fn new_message<'a>(json: &'a str, ready: &'a Ready, entry_time: i64, above: Option<Head>) -> NewMessage<'a> {
    let (parent, lineage, height) = match above {
        Some((id, lineage, height)) => (Some(id), lineage, height + 1),
        None => (None, Hash::ROOT, 0),
    };
    let Ready { message, digest, tokens, searchable, prepared, .. } = ready;
    NewMessage {
        lineage: lineage.child_of(digest),
        parent,
        height,
        kind: match message.role {
            Role::System => MessageKind::System,
            _ if message.private => MessageKind::Private,
            _ => MessageKind::Conversation,
        },
        role: &message.role,
        tool: message.tool.as_deref(),
        tokens: *tokens,
        timestamp: message.timestamp.unwrap_or(entry_time),
        json,
        searchable,
        prepared,
    }
}
