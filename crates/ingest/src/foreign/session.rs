//! Builds a session from another agent's records: each becomes an entry, and the messages form the tree.

use std::collections::{HashMap, HashSet, VecDeque};

use super::numbers::Numbers;
use super::{Agent, Context, Log, Raw, Reading, Record, Shown};
use crate::file::{Header, SLICE, Slices, Stored};
use crate::fold::Handover;
use crate::order::Order;
use crate::stringify::stringify;
use lcm_model::error::Result;
use lcm_model::ids::Hash;
use lcm_model::{Content, Entry, Fields, digest, foreign, purged_name, split_purged, split_version};

/// A session of another agent that is being read.
pub(crate) struct ForeignSession {
    agent: &'static Agent,
    pub header: Header,
    log: Log,
    context: Context,
    order: Order,
    /// Records so far.
    number: usize,
    numbers: Numbers,
    /// How often each id came.
    came: HashMap<String, usize>,
    /// What the children of records hang below, by record id, where that is not the record's entry: the last of its entries, or what
    /// is above a record that says nothing.
    renamed: HashMap<String, Option<String>>,
    /// The parents of messages, for rewinding to them, or of records that name none, for those that repeat them.
    above: HashMap<String, Option<String>>,
    /// What is stored already, for an agent that rewrites its records.
    versions: Versions,
    /// The entry and time of the last message.
    last: (Option<String>, i64),
    unknown: usize,
    /// Messages that were already stored.
    known: usize,
    is_growing: bool,
    ended: bool,
}

/// What is stored of a session whose records are rewritten.
#[derive(Default)]
struct Versions {
    /// The ids of entries, by message and digest.
    entries: HashMap<String, String>,
    /// The versions of records that entries carry.
    records: HashSet<String>,
    /// The entries whose message was purged, by the start of their id, in order. They have no digests any more.
    purged: HashMap<String, VecDeque<String>>,
    /// Which of them each purged message is.
    found: HashMap<String, String>,
}

impl Versions {
    /// Parses the ids of stored entries.
    fn of(known: &HashSet<String>) -> Self {
        let mut versions = Self { purged: Self::purged(known), ..Self::default() };
        for id in known {
            let (says, version) = split_version(id);
            versions.entries.insert(says.to_owned(), id.clone());
            versions.records.extend(version.map(ToOwned::to_owned));
        }
        versions
    }

    fn purged(known: &HashSet<String>) -> HashMap<String, VecDeque<String>> {
        let parts = |id| split_purged(id).map(|(name, row)| (row, name, id));
        let mut ids: Vec<_> = known.iter().map(String::as_str).filter_map(parts).collect();
        ids.sort_unstable();
        let mut purged: HashMap<String, VecDeque<String>> = HashMap::new();
        for (_, name, id) in ids {
            purged.entry(name.to_owned()).or_default().push_back(id.to_owned());
        }
        purged
    }

    /// The entry of a purged message: of those of `name` that are not stored, the first were purged. Where a record has one only, it
    /// is the same in any version.
    fn purged_as(&mut self, name: &str, says: &str, is_only: bool) -> Option<String> {
        if self.entries.contains_key(says) {
            return None;
        }
        if !self.found.contains_key(says) {
            let purged = self.purged.get_mut(name)?;
            let id = if is_only && purged.len() == 1 { purged.front().cloned() } else { purged.pop_front() }?;
            self.found.insert(says.to_owned(), id);
        }
        self.found.get(says).cloned()
    }
}

impl ForeignSession {
    /// `began` is the time of records before the first that has one, ms.
    pub(super) fn new(agent: &'static Agent, log: Log, began: i64) -> Self {
        let named = |id: &str| format!("{}:{id}", agent.name);
        let (id, parent) = (named(&log.session), log.parent.as_deref().map(named));
        Self {
            agent,
            header: Header { id, cwd: log.cwd.clone(), parent },
            context: Context { version: log.version.clone(), ..Context::default() },
            log,
            order: Order::default(),
            number: 0,
            numbers: Numbers::default(),
            came: HashMap::new(),
            renamed: HashMap::new(),
            above: HashMap::new(),
            versions: Versions::default(),
            last: (None, began),
            unknown: 0,
            known: 0,
            is_growing: false,
            ended: false,
        }
    }

    /// Whether it is a side chain of the session it names.
    pub fn is_side_chain(&self) -> bool {
        self.log.prefix.ends_with(':')
    }

    /// Whether it worked in this folder.
    pub fn is_about(&self, folder: &str) -> bool {
        self.log.cwd_hash.as_ref().is_some_and(|known| *known == Hash::plain(folder.as_bytes()).to_string())
    }

    /// Adds a record. Returns about how many bytes that takes.
    fn take(&mut self, json: &str, row: Option<(&'static str, String)>, known: &HashSet<String>) -> usize {
        self.number += 1;
        let record = Record { json, fields: Fields::of(json), number: self.number, row };
        let reading = (self.agent.read)(&mut self.context, &record);
        if reading.is_growing {
            (self.is_growing, self.ended) = (true, true);
            return 0;
        }
        self.unknown += usize::from(reading.is_unknown);
        self.last.1 = reading.time.unwrap_or(self.last.1);
        match self.agent.rewrites {
            true => self.take_version(&record, reading, known),
            false => self.take_record(&record, reading, known),
        }
    }

    /// Adds a record that never changes; its id becomes the entry's.
    fn take_record(&mut self, record: &Record<'_>, reading: Reading, known: &HashSet<String>) -> usize {
        let id = self.free_id(reading.id.as_deref(), record);
        let above = reading.above.map(|name| {
            let name = format!("{}{name}", self.log.prefix);
            self.renamed.get(&name).cloned().unwrap_or(Some(name))
        });
        let above = above.unwrap_or_else(|| match &reading.id {
            Some(own) => self.above.entry(own.clone()).or_insert_with(|| self.last.0.clone()).clone(),
            None => self.last.0.clone(),
        });
        let mut parent = above.clone();
        let shown = if reading.shown.is_empty() { vec![Shown::aside(Vec::new())] } else { reading.shown };
        let is_said = shown.iter().any(|shown| shown.role != "system");
        for (n, shown) in shown.iter().enumerate() {
            let entry = if n == 0 { id.clone() } else { format!("{id}/{n}") };
            let above = parent.replace(entry.clone());
            self.push(entry, above, shown.role, || shown.fields(), (n == 0).then_some(record.json), known);
        }
        // Forks leave out some of what says nothing.
        let below = if is_said { &parent } else { &above };
        let own = reading.id.map(|own| format!("{}{own}", self.log.prefix));
        if let Some(own) = own.filter(|own| below.as_ref() != Some(own)) {
            self.renamed.insert(own, below.clone());
        }
        if is_said {
            self.last.0 = parent;
        }
        record.json.len() * shown.len()
    }

    /// Adds a version of a record. An entry's id contains a digest of its message, so that the same message
    /// is the same entry in the next version and in another file. The first new entry carries the record; if
    /// none is new, a separate entry does.
    fn take_version(&mut self, record: &Record<'_>, reading: Reading, known: &HashSet<String>) -> usize {
        let mut versions = std::mem::take(&mut self.versions);
        let name = reading.id.unwrap_or_else(|| format!("L{}", record.number));
        let version = digest(&[&self.log.prefix, &name, " ", record.json]);
        if let Some(message) = reading.rewinds_to {
            self.last.0 = self.above.get(&message).cloned().flatten();
        }
        let prefix = self.log.prefix.clone();
        let mut times: HashMap<String, usize> = HashMap::new();
        let shown: Vec<_> = (reading.shown.into_iter())
            .map(|shown| {
                let named = format!("{prefix}{}", shown.id.as_ref().unwrap_or(&name));
                let once_purged = purged_name(&named, shown.role, shown.call());
                *times.entry(once_purged.clone()).or_default() += 1;
                (shown, named, once_purged)
            })
            .collect();
        let shown: Vec<_> = (shown.into_iter())
            .map(|(shown, named, once_purged)| {
                let fields = shown.fields();
                let says = format!("{named}:{}", digest(&[&fields, ",\"timestamp\":0"]));
                let purged = versions.purged_as(&once_purged, &says, times[&once_purged] == 1);
                (shown, fields, says, purged)
            })
            .collect();
        // A record that contains what was purged is not stored again.
        if shown.iter().any(|(.., purged)| purged.is_some()) {
            versions.records.insert(version.clone());
        }
        for (shown, fields, says, purged) in shown {
            if self.came.insert(says.clone(), 1).is_some() {
                continue;
            }
            let message = shown.id.as_ref().unwrap_or(&name);
            self.above.entry(message.clone()).or_insert_with(|| self.last.0.clone());
            let stored = purged.or_else(|| versions.entries.get(&says).cloned());
            let carries = stored.is_none() && versions.records.insert(version.clone());
            let new = if carries { format!("{says}@{version}") } else { says };
            let entry = stored.unwrap_or(new);
            let role = shown.role;
            drop(shown);
            let original = carries.then_some(record.json);
            self.push(entry.clone(), self.last.0.clone(), role, || fields, original, known);
            if role != "system" {
                self.last.0 = Some(entry);
            }
        }
        let own = format!("{prefix}{name}@{version}");
        if versions.records.insert(version)
            && versions
                .purged_as(&purged_name(&format!("{prefix}{name}@"), "system", None), &own, false)
                .is_none()
        {
            let aside = Shown::aside(Vec::new());
            self.push(own, self.last.0.clone(), aside.role, || aside.fields(), Some(record.json), known);
        }
        self.versions = versions;
        record.json.len()
    }

    /// Adds an entry with its message, and with the record if the entry carries it.
    fn push(
        &mut self,
        id: String,
        parent: Option<String>,
        role: &str,
        fields: impl FnOnce() -> String,
        record: Option<&str>,
        known: &HashSet<String>,
    ) {
        let timestamp = self.last.1;
        let content = match known.contains(&id) {
            true => {
                self.known += usize::from(role != "system");
                Content::Other
            }
            false => Content::Message(self.message(&fields(), timestamp, record)),
        };
        self.order.push(Entry { id, parent, timestamp, content });
    }

    fn message(&self, fields: &str, time: i64, record: Option<&str>) -> String {
        let is_canonical = record.is_some_and(|json| stringify(json).as_deref() == Some(json));
        foreign(self.agent.name, &self.context.version, fields, time, record, is_canonical)
    }

    /// An id that is unique in the session: the record's own, or its number.
    fn free_id(&mut self, own: Option<&str>, record: &Record<'_>) -> String {
        let id = own.map_or_else(|| format!("L{}", self.numbers.of(record.number)), ToOwned::to_owned);
        let id = format!("{}{id}", self.log.prefix);
        let times = self.came.entry(id.clone()).or_default();
        *times += 1;
        if *times == 1 { id } else { format!("{id}~{times}") }
    }
}

impl Slices for ForeignSession {
    fn compare(&mut self, known: &HashSet<String>, stored: &mut Stored<'_>) -> Result<()> {
        match self.agent.rewrites {
            true => self.versions = Versions::of(known),
            false => self.numbers = Numbers::find(&mut self.log, self.last.1, known, stored)?,
        }
        Ok(())
    }

    fn slice(&mut self, known: &HashSet<String>) -> Result<Option<Handover>> {
        if let Some(last) = self.log.continues.take().filter(|last| known.contains(last)) {
            self.order.is_stored(last.clone());
            self.last.0 = Some(last);
        }
        loop {
            let slice = self.order.take(SLICE);
            if !slice.entries.is_empty() {
                return Ok(Some(slice));
            }
            if self.ended {
                return Ok(None);
            }
            let mut taken = 0;
            while taken < SLICE && !self.ended {
                match self.log.records.next()? {
                    Some(Raw::Text(json)) => taken += self.take(&json, None, known),
                    Some(Raw::Row { kind, id, json }) => taken += self.take(&json, Some((kind, id)), known),
                    Some(Raw::Broken) => self.log.broken += 1,
                    None => self.ended = true,
                }
            }
            if self.ended {
                self.order.end();
            }
        }
    }

    fn broken(&self) -> usize {
        self.log.broken
    }

    fn unknown(&self) -> usize {
        self.unknown
    }

    fn known(&self) -> Option<usize> {
        Some(self.known)
    }

    fn is_growing(&self) -> bool {
        self.is_growing
    }
}
