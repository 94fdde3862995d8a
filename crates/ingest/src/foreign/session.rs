//! Builds a session from another agent's records, in the order of the file: each becomes an entry, and the messages form
//! threads. A thread is the main conversation, a side chain, or what follows a rewind; nothing else makes a branch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Above, Agent, ForeignMessage, LogSession, PartialMessage, Raw, ReadRecord, ReaderState, Record};
use crate::damage::{says_nothing, whole_objects};
use crate::file::{Findings, Header, KnownEntries, LINE, Slices};
use crate::order::Order;
use crate::storing::Handover;
use crate::stringify::stringify;
use lcm_model::error::Result;
use lcm_model::ids::Hash;
use lcm_model::{Content, Entry, Fields, digest, foreign, read_json, said_digest, slot_of, split_version};
use lcm_store::View;

pub(crate) struct ForeignSession {
    agent: &'static Agent,
    pub header: Header,
    log: LogSession,
    context: ReaderState,
    order: Order,
    threads: Vec<Thread>,
    /// The thread of each side chain, and of the main conversation (`None`), that was written last.
    current: HashMap<Option<String>, usize>,
    /// Where each record is, by the agent's id.
    places: HashMap<String, ThreadPlace>,
    /// How often each id came, and the digest of what the record said first.
    came: HashMap<String, (usize, String)>,
    /// What is stored already.
    known: Arc<KnownEntries>,
    /// The same, for an agent that rewrites its records.
    versions: Versions,
    /// What was above each message, for rewinding to it.
    above: HashMap<String, Option<String>>,
    /// The last message of an agent that rewrites its records.
    last: Option<String>,
    /// The time of the last record.
    time: i64,
    findings: Findings,
}

/// Messages that follow each other.
struct Thread {
    side: Option<String>,
    /// The entry of its last message.
    last: Option<String>,
    /// How many prompts it has, with those above it.
    prompts: usize,
}

/// Where a record is in a thread: what was last there, and how many prompts were.
#[derive(Clone)]
struct ThreadPlace {
    thread: usize,
    last: Option<String>,
    prompts: usize,
}

/// What is stored of a session whose records are rewritten.
#[derive(Default)]
struct Versions {
    /// The ids of entries, by those without the version.
    entries: HashMap<String, String>,
    /// The versions of records that entries carry.
    records: HashSet<String>,
}

impl Versions {
    /// Parses the ids of stored entries.
    fn of(known: &KnownEntries) -> Self {
        let mut versions = Self::default();
        for id in &known.entries {
            let (says, version) = split_version(id);
            versions.entries.insert(says.to_owned(), id.clone());
            versions.records.extend(version.map(ToOwned::to_owned));
        }
        versions
    }
}

impl ForeignSession {
    /// `began` is the time of records before the first that has one, ms.
    pub(super) fn new(agent: &'static Agent, log: LogSession, began: i64) -> Self {
        let named = |id: &str| format!("{}:{id}", agent.name);
        let (id, parent) = (named(&log.session), log.parent.as_deref().map(named));
        Self {
            agent,
            header: Header { id, cwd: log.cwd.clone(), parent },
            context: ReaderState { version: log.version.clone(), ..ReaderState::default() },
            findings: Findings { broken: log.broken, known: Some(0), ..Findings::default() },
            log,
            order: Order::default(),
            threads: vec![Thread { side: None, last: None, prompts: 0 }],
            current: HashMap::from([(None, 0)]),
            places: HashMap::new(),
            came: HashMap::new(),
            known: Arc::default(),
            versions: Versions::default(),
            above: HashMap::new(),
            last: None,
            time: began,
        }
    }

    /// Whether it is a side chain of the session it names.
    pub(crate) fn is_side_chain(&self) -> bool {
        self.log.prefix.ends_with(':')
    }

    /// Whether it worked in this folder.
    pub fn is_about(&self, folder: &str) -> bool {
        self.log.cwd_hash.as_ref().is_some_and(|known| *known == Hash::plain(folder.as_bytes()).to_string())
    }

    fn take(&mut self, json: &str, row: Option<(&'static str, String)>) {
        let fields = Fields::of(json);
        if fields.is_none() && row.is_none() && read_json(json).is_err() {
            self.findings.note_broken(self.log.records.line());
            return self.take_damaged(json, false);
        }
        let record = Record { json, fields: fields.unwrap_or_default(), row };
        let reading = (self.agent.read)(&mut self.context, &record);
        self.add(&record, reading);
    }

    fn add(&mut self, record: &Record<'_>, reading: ReadRecord) {
        if reading.is_growing {
            self.findings.is_growing = true;
            return;
        }
        self.findings.unknown += usize::from(reading.is_unknown);
        self.time = reading.time.unwrap_or(self.time);
        match self.agent.rewrites {
            true => self.take_version(record, reading),
            false => self.take_record(record, reading),
        }
    }

    /// Adds the whole records of a damaged line, and what is broken as it is, unless it may still be written.
    fn take_damaged(&mut self, line: &str, is_cut: bool) {
        let mut from = 0;
        for at in whole_objects(line) {
            let json = &line[at.clone()];
            let record = Record { json, fields: Fields::of(json).unwrap_or_default(), row: None };
            let reading = (self.agent.read)(&mut self.context, &record);
            // A part of a broken record.
            if reading.is_unknown {
                continue;
            }
            self.take_broken(&line[from..at.start], is_cut);
            self.add(&record, reading);
            from = at.end;
        }
        self.take_broken(&line[from..], is_cut);
    }

    fn take_broken(&mut self, text: &str, is_cut: bool) {
        // As a string, JSON writes a byte as up to six, and SQLite stores a billion.
        if !is_cut && !says_nothing(text) && text.len() <= LINE / 2 {
            let record = Record { json: text, fields: Fields::default(), row: None };
            self.add(&record, ReadRecord::default());
        }
    }

    /// Adds a record that never changes.
    fn take_record(&mut self, record: &Record<'_>, reading: ReadRecord) {
        let ReadRecord { id: own, above, side, shown, is_prompt, .. } = reading;
        // A side chain in a log of its own needs no other name.
        let side = side.filter(|_| !self.is_side_chain());
        let says_anything = shown.iter().any(|shown| shown.role != "system");
        let fields: Vec<(&str, String)> = shown.into_iter().map(ForeignMessage::fields).collect();
        let says: Vec<&str> = fields.iter().map(|(_, fields)| fields.as_str()).collect();
        let (id, is_repeated) = self.id_of(own.as_deref(), side.as_deref(), &says, record.json);
        // What was purged is not stored when the log repeats it.
        let purged_as = id.rsplit_once('~').map_or(id.as_str(), |(first, _)| first);
        if self.known.purged.contains(purged_as) && !self.known.entries.contains(&id) {
            return;
        }
        let is_prompt = is_prompt && !is_repeated;
        let thread = self.thread_of(&above, &side, is_prompt);
        let fields = match fields.is_empty() || is_repeated {
            true => vec![ForeignMessage::system(Vec::new()).fields()],
            false => fields,
        };
        let mut parent = self.threads[thread].last.clone();
        for (n, (role, fields)) in fields.into_iter().enumerate() {
            let entry = if n == 0 { id.clone() } else { format!("{id}/{n}") };
            let above = parent.replace(entry.clone());
            self.push(entry, above, (role, fields), (n == 0).then_some(record.json));
        }
        let place = &mut self.threads[thread];
        // Nothing is below what search ignores.
        if !is_repeated && says_anything {
            place.last = parent;
            place.prompts += usize::from(is_prompt);
            self.current.insert(side, thread);
        }
        if let Some(own) = own.filter(|_| !is_repeated) {
            let (last, prompts) = (place.last.clone(), place.prompts);
            self.places.insert(own, ThreadPlace { thread, last, prompts });
        }
    }

    /// The thread that a record continues: that of the record above it, or else the current one of its side chain. The user's next
    /// message starts another one if it goes back to before his last.
    fn thread_of(&mut self, above: &Above, side: &Option<String>, is_prompt: bool) -> usize {
        let place = match above {
            Above::Record(id) => self.places.get(id).cloned(),
            _ => None,
        };
        let own = place.as_ref().filter(|place| self.threads[place.thread].side == *side);
        let Some(thread) = own.map(|place| place.thread).or_else(|| self.current.get(side).copied()) else {
            let last =
                place.map_or_else(|| self.threads[self.current[&None]].last.clone(), |place| place.last);
            return self.add_thread(side, last, 0);
        };
        let so_far = self.threads[thread].prompts;
        match (own, above) {
            (Some(place), _) if is_prompt && place.prompts < so_far => {
                self.add_thread(side, place.last.clone(), place.prompts)
            }
            (None, Above::Start) if is_prompt && so_far > 0 => {
                // A side chain begins where the conversation is.
                let last = side.as_ref().and_then(|_| self.threads[self.current[&None]].last.clone());
                self.add_thread(side, last, 0)
            }
            _ => thread,
        }
    }

    fn add_thread(&mut self, side: &Option<String>, last: Option<String>, prompts: usize) -> usize {
        self.threads.push(Thread { side: side.clone(), last, prompts });
        self.current.insert(side.clone(), self.threads.len() - 1);
        self.threads.len() - 1
    }

    /// Adds a version of a record. An entry's id contains a digest of its message, so that the same message
    /// is the same entry in the next version and in another file. The first new entry carries the record; if
    /// none is new, a separate entry does. What was purged has no further versions, nor has its record.
    fn take_version(&mut self, record: &Record<'_>, reading: ReadRecord) {
        let name = reading.id.unwrap_or_else(|| format!("L{}", digest(&[record.json])));
        let prefix = self.log.prefix.clone();
        let version = digest(&[&prefix, &name, " ", record.json]);
        if let Some(message) = reading.rewinds_to {
            self.last = self.above.get(&message).cloned().flatten();
        }
        let is_purged = |id: &str| self.known.purged.contains(&format!("{prefix}{id}"));
        let shown_ids = reading.shown.iter().filter_map(|shown| shown.id.as_deref());
        if shown_ids.chain([name.as_str()]).any(is_purged) {
            self.versions.records.insert(version.clone());
        }
        for shown in reading.shown {
            let message = shown.id.clone().unwrap_or_else(|| name.clone());
            let call = shown.call().map(ToOwned::to_owned);
            let (role, fields) = shown.fields();
            let says = format!("{prefix}{message}/{}", said_digest(role, call.as_deref(), &fields));
            if self.came.insert(says.clone(), (1, String::new())).is_some() {
                continue;
            }
            self.above.entry(message).or_insert_with(|| self.last.clone());
            let stored = self.versions.entries.get(&says).cloned();
            if stored.is_none() && slot_of(&says).is_some_and(|slot| self.known.purged.contains(slot)) {
                continue;
            }
            let carries = stored.is_none() && self.versions.records.insert(version.clone());
            let new = if carries { format!("{says}@{version}") } else { says };
            let entry = stored.unwrap_or(new);
            let original = carries.then_some(record.json);
            self.push(entry.clone(), self.last.clone(), (role, fields), original);
            if role != "system" {
                self.last = Some(entry);
            }
        }
        if self.versions.records.insert(version.clone()) {
            let (own, system) = (format!("{prefix}{name}@{version}"), ForeignMessage::system(Vec::new()));
            self.push(own, self.last.clone(), system.fields(), Some(record.json));
        }
    }

    /// Adds an entry with its message, and with the record if the entry carries it.
    fn push(
        &mut self,
        id: String,
        parent: Option<String>,
        (role, fields): (&str, String),
        record: Option<&str>,
    ) {
        let content = match self.known.entries.contains(&id) {
            true => {
                let is_known = role != "system" && !self.known.purged.contains(&id);
                *self.findings.known.get_or_insert_default() += usize::from(is_known);
                Content::Other
            }
            false => {
                let is_canonical = record.is_some_and(|json| stringify(json).as_deref() == Some(json));
                let (agent, version) = (self.agent.name, &self.context.version);
                Content::Message(foreign(agent, version, fields, self.time, record, is_canonical))
            }
        };
        self.order.push(Entry { id, parent, timestamp: self.time, content });
    }

    /// The id of a record that is unique in the session, and whether the log repeats a record with the agent's id.
    fn id_of(&mut self, own: Option<&str>, side: Option<&str>, says: &[&str], json: &str) -> (String, bool) {
        let name = own.map_or_else(|| format!("L{}", digest(&[json])), ToOwned::to_owned);
        let side = side.map_or_else(String::new, |side| format!("{side}:"));
        let id = format!("{}{side}{name}", self.log.prefix);
        let says = if own.is_some() { digest(says) } else { String::new() };
        let (times, first) = self.came.entry(id.clone()).or_insert_with(|| (0, says.clone()));
        *times += 1;
        match *times {
            1 => (id, false),
            times => (format!("{id}~{times}"), own.is_some() && *first == says),
        }
    }

    fn take_raw(&mut self, raw: Raw) {
        match raw {
            Raw::Text(json) => self.take(&json, None),
            Raw::Row { kind, id, json } => self.take(&json, Some((kind, id))),
            Raw::Cut(line) => {
                self.findings.is_unfinished = true;
                self.take_damaged(&line, true);
            }
            Raw::Broken { is_message } => {
                self.findings.note_broken(self.log.records.line());
                if is_message {
                    // Who said what follows is lost with it: not the user.
                    self.context.message = PartialMessage { role: "assistant", ..PartialMessage::default() };
                }
            }
        }
    }
}

impl Slices for ForeignSession {
    fn learn(&mut self, _: &View<'_>, known: &Arc<KnownEntries>) -> Result<()> {
        self.known = Arc::clone(known);
        if self.agent.rewrites {
            self.versions = Versions::of(known);
        }
        if let Some(last) = self.log.continues.take().filter(|last| known.entries.contains(last)) {
            self.order.is_stored(last.clone());
            self.threads[0].last = Some(last);
        }
        Ok(())
    }

    fn slice(&mut self) -> Result<Option<Handover>> {
        while !self.order.is_ready() {
            let next = if self.findings.is_growing { None } else { self.log.records.next()? };
            match next {
                Some(raw) => self.take_raw(raw),
                None => self.order.end(),
            }
        }
        Ok(self.order.slice())
    }

    fn findings(&self) -> Findings {
        Findings { too_long: self.log.records.too_long().to_vec(), ..self.findings.clone() }
    }
}
