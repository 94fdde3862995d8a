//! Reads a session file of any version line by line, as Pi reads it.
//!
//! Like Pi, it skips lines that are not JSON and ignores entries without an id. It also applies the
//! migrations that Pi applies in memory to an older file: in version 1 entries have no ids and each follows
//! the one before; before version 3 a custom message is called `hookMessage`.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read as _};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::order::Order;
use super::storing::Handover;
use super::stringify::stringify;
use lcm_model::error::{Code, Error, Result};
use lcm_model::text::parse_iso;
use lcm_model::{Content, Fields, SummaryRecord, Supplement, files, parse_one, read_json};
use lcm_store::tasks::go_on;
use lcm_store::{View, reading};

/// The bytes that are read at a time.
const BUFFER: usize = 256 * 1024;
/// The header is within this many bytes, or Pi does not find it either.
const HEADER: usize = 1024 * 1024;
/// The longest line of a session file or of another agent's log, and the longest file that is one record, in bytes. Importing it
/// takes about four times as much memory.
pub const LINE: usize = 256_000_000;

/// A line that is too long to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongLine {
    /// The name of its file.
    pub file: String,
    /// Its number, from 1.
    pub number: usize,
    /// Its length, as far as it was read.
    pub bytes: u64,
}

/// The header of a session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Pi's id of the session.
    pub id: String,
    /// The folder that the session worked in.
    pub cwd: Option<String>,
    /// The file of the session it was forked from.
    pub parent: Option<String>,
}

/// A file or folder that could not be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
    /// The kind of the failure.
    pub code: Code,
}

impl Unreadable {
    pub(super) fn new(path: &Path, error: &Error) -> Self {
        Self { name: name_of(path), reason: error.to_string(), code: error.code() }
    }
}

/// A file's name, for the user.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What is stored of a session.
#[derive(Default)]
pub(super) struct KnownEntries {
    /// The ids of its entries.
    pub entries: HashSet<String>,
    /// The records of other agents of which a message was purged, and which messages these were.
    pub purged: HashSet<String>,
}

/// A session that is read slice by slice.
pub(super) trait Slices: Send + 'static {
    /// Learns what is stored, before anything is read: entries whose id is `known` need no content, and messages that are
    /// stored and have no place here are left out.
    fn learn(&mut self, _: &View<'_>, _: &Arc<KnownEntries>) -> Result<()> {
        Ok(())
    }

    /// Returns the next entries, parents before children; `None` at the end.
    fn slice(&mut self) -> Result<Option<Handover>>;

    /// What is known besides the entries that were read.
    fn findings(&self) -> Findings;

    /// Takes the summaries that an export added to what was read so far.
    fn supplements(&mut self) -> Vec<SummaryRecord> {
        Vec::new()
    }
}

/// What is known of a session besides its entries.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Lines, records or rows that could not be read.
    pub broken: usize,
    /// The numbers of these lines, as far as they have some.
    pub broken_lines: Vec<usize>,
    /// The numbers and lengths of those that are too long.
    pub too_long: Vec<(usize, u64)>,
    /// Records of unknown kinds.
    pub unknown: usize,
    /// Messages that were known; `None` if the caller has to count them.
    pub known: Option<usize>,
    /// Whether its last line is unfinished.
    pub is_unfinished: bool,
    /// Whether it ends where an agent is still writing.
    pub is_growing: bool,
}

impl Findings {
    /// Counts what could not be read, in a line with this number if it has one.
    pub(super) fn note_broken(&mut self, line: Option<usize>) {
        self.broken += 1;
        self.broken_lines.extend(line);
    }
}

impl Slices for SessionFile {
    fn slice(&mut self) -> Result<Option<Handover>> {
        SessionFile::slice(self)
    }

    fn findings(&self) -> Findings {
        Findings { too_long: self.lines.too_long.clone(), ..self.findings.clone() }
    }

    fn supplements(&mut self) -> Vec<SummaryRecord> {
        std::mem::take(&mut self.supplements)
    }
}

/// A session file that is being read.
pub struct SessionFile {
    lines: Lines,
    pub header: Header,
    version: f64,
    /// The id of the last entry of version 1.
    last: Option<String>,
    /// How many entries of version 1 have each time.
    timed: HashMap<i64, usize>,
    /// Entries that were read and not returned yet.
    order: Order,
    pub findings: Findings,
    /// Summaries that an export added.
    supplements: Vec<SummaryRecord>,
}

impl SessionFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// When it can't be read, or is not a session.
    pub fn open(path: &Path) -> Result<Self> {
        let mut lines = Lines::open(path, &CancellationToken::new())?;
        let (header, version) = read_header(&mut lines)?;
        Ok(Self {
            lines,
            header,
            version,
            last: None,
            timed: HashMap::new(),
            order: Order::default(),
            findings: Findings::default(),
            supplements: Vec::new(),
        })
    }

    /// Lets `cancel` end the reading: a line may have no end.
    pub fn until(mut self, cancel: &CancellationToken) -> Self {
        self.lines.cancel = cancel.clone();
        self
    }

    /// Returns the next entries, as many as one transaction writes, parents before children; `None` at the end of the file.
    pub fn slice(&mut self) -> Result<Option<Handover>> {
        while !self.order.is_ready() {
            match self.entry()?.map(|entry| parse_one(&entry)) {
                Some(Ok(entry)) => self.order.push(entry),
                // Without an id, no tree can contain it.
                Some(Err(_)) => {}
                None => self.order.end(),
            }
        }
        Ok(self.order.slice())
    }

    /// Whether the rest of the file has a message.
    pub(crate) fn says_anything(&mut self) -> Result<bool> {
        while let Some(slice) = self.slice()? {
            if says_anything(&slice) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the next entry as `JSON.stringify` would write it after Pi's migration.
    fn entry(&mut self) -> Result<Option<String>> {
        while let Some(line) = self.lines.next(LINE)? {
            let json = match &line {
                Line::Text(text) if text.trim().is_empty() => continue,
                Line::Text(text) => stringify(text),
                Line::TooLong => None,
            };
            let Some(json) = json else {
                match line {
                    Line::Text(_) if self.lines.is_cut => self.findings.is_unfinished = true,
                    _ => self.findings.note_broken(Some(self.lines.number)),
                }
                continue;
            };
            match Fields::of(&json) {
                Some(fields) if fields.text("type").as_deref() != Some("session") => {
                    let renamed = self.renamed(&json, &fields);
                    let time = fields.text("timestamp").and_then(|time| parse_iso(&time)).unwrap_or_default();
                    return Ok(Some(self.placed(renamed.unwrap_or(json), time)));
                }
                _ => self
                    .supplements
                    .extend(Supplement::parse(&json).into_iter().flat_map(|line| line.summaries)),
            }
        }
        Ok(None)
    }

    /// Version 2: a custom message has another role.
    fn renamed(&self, entry: &str, fields: &Fields<'_>) -> Option<String> {
        let is_meant = self.version < 3.0 && fields.text("type").as_deref() == Some("message");
        let message = fields.json("message").filter(|_| is_meant)?;
        (Fields::of(message)?.text("role")? == "hookMessage").then(|| {
            let message = assigned(message, r#""role":"custom""#);
            assigned(entry, &format!("\"message\":{message}"))
        })
    }

    /// Version 1: each entry is a child of the one before. Pi gives random ids; these are the same each time, so that an
    /// import can be repeated, also after one of a damaged copy: an entry has its time, not its number. They do not conflict
    /// with Pi's: messages are identified by their lineage.
    fn placed(&mut self, json: String, time: i64) -> String {
        if self.version >= 2.0 {
            return json;
        }
        let of_time = self.timed.entry(time).or_default();
        *of_time += 1;
        let id = format!("v1-{time}-{of_time}");
        let parent =
            self.last.replace(id.clone()).map_or_else(|| "null".to_owned(), |last| format!("\"{last}\""));
        assigned(&json, &format!("\"id\":\"{id}\",\"parentId\":{parent}"))
    }
}

/// Whether the entries have a message, or had one that was purged.
pub(super) fn says_anything(handover: &Handover) -> bool {
    handover.entries.iter().any(|entry| matches!(entry.content, Content::Message(_) | Content::Purged(_)))
}

fn read_header(lines: &mut Lines) -> Result<(Header, f64)> {
    let mut left = HEADER;
    while let Some(Line::Text(line)) = lines.next(left)? {
        left = left.saturating_sub(line.len());
        let Some(first) = stringify(&line).and_then(|json| read_json(&json).ok()) else { continue };
        // As in JavaScript: falsy values are skipped.
        if matches!(&first, Value::Null | Value::Bool(false)) || first == "" || first.as_f64() == Some(0.0) {
            continue;
        }
        let text = |key: &str| first[key].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
        return match (first["type"] == "session", first["id"].as_str()) {
            (true, Some(id)) => {
                let header = Header { id: id.to_owned(), cwd: text("cwd"), parent: text("parentSession") };
                Ok((header, first["version"].as_f64().unwrap_or(1.0)))
            }
            _ => break,
        };
    }
    Err(Error::invalid("it is not a Pi session; another agent's needs --from"))
}

/// Adds fields to `object`, in [`stringify`]'s format, as an assignment in JavaScript would.
fn assigned(object: &str, fields: &str) -> String {
    let body = object.strip_suffix('}').unwrap_or(object);
    let comma = if body == "{" { "" } else { "," };
    stringify(&format!("{body}{comma}{fields}}}")).unwrap_or_else(|| object.to_owned())
}

/// The lines of a file. Only `\n` ends a line, as in Pi.
pub(super) struct Lines {
    reader: Box<dyn BufRead + Send>,
    cancel: CancellationToken,
    /// The number of the last line, from 1.
    pub number: usize,
    /// Whether the last line has no line break: it seems to be still being written.
    pub is_cut: bool,
    /// The numbers and lengths of the lines that were too long.
    pub too_long: Vec<(usize, u64)>,
    /// Whether the rest of a line that is too long is still to be skipped: it may have no end.
    skips: bool,
}

pub(super) enum Line {
    Text(String),
    /// The line is longer than the limit.
    TooLong,
}

impl Lines {
    pub fn open(path: &Path, cancel: &CancellationToken) -> Result<Self> {
        let unreadable = |error: std::io::Error| Error::invalid(format!("it can't be opened: {error}"));
        let file = files::open(path).map_err(unreadable)?;
        let reader = reading(file, BUFFER).map_err(unreadable)?;
        Ok(Self {
            reader,
            cancel: cancel.clone(),
            number: 0,
            is_cut: false,
            too_long: Vec::new(),
            skips: false,
        })
    }

    /// Returns the next line, if it has at most `max` bytes. Invalid UTF-8 becomes U+FFFD.
    pub fn next(&mut self, max: usize) -> Result<Option<Line>> {
        let failed = |error: std::io::Error| Error::invalid(format!("it can't be read: {error}"));
        if std::mem::take(&mut self.skips) {
            self.skip().map_err(failed)?;
        }
        go_on(&self.cancel)?;
        let mut line = Vec::new();
        let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.is_cut = line.last() != Some(&b'\n');
        if !self.is_cut {
            line.pop();
        } else if read > max {
            self.skips = true;
            self.too_long.push((self.number, read as u64));
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(Line::Text(match String::from_utf8(line) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })))
    }

    /// Skips to the next line.
    fn skip(&mut self) -> std::io::Result<()> {
        while !self.cancel.is_cancelled() {
            let bytes = self.reader.fill_buf()?;
            let (end, read) = (memchr::memchr(b'\n', bytes), bytes.len());
            self.reader.consume(end.map_or(read, |end| end + 1));
            self.too_long.last_mut().into_iter().for_each(|(_, bytes)| *bytes += end.unwrap_or(read) as u64);
            if end.is_some() || read == 0 {
                break;
            }
        }
        Ok(())
    }
}
