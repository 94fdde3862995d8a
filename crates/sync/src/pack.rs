//! Packs: immutable files with a part of a machine's history.
//!
//! A pack is zstd of a JSON text sequence (RFC 7464): a header, then the entries of sessions, each as a line of Pi's session
//! files, with a record before them that names the session; placeholders of purged messages; summaries. So
//! `zstdcat FILE | tr -d '\036'` shows all of it, unless it is [encrypted](super::encryption). Its name has the hash of its bytes, and anyone may have written it: sizes
//! are bounded, and what does not have the expected form is an error.

use std::fmt;
use std::io::{BufRead as _, BufReader, Cursor, Read as _, Take, Write as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use super::encryption::{Key, are_recipients, is_encrypted};
use super::machine::ThisMachine;
use lcm_model::error::{Error, Result};
use lcm_model::ids::Hash;
use lcm_model::{Entry, Fields, SummaryRecord, parse_one};

/// The format this version writes; a pack of a higher one is left alone.
const FORMAT: u32 = 1;
/// Separates records; no JSON text has this byte.
const SEPARATOR: u8 = 0x1e;
/// Level 12 takes a third more time than 9 for packs that are a tenth smaller; level 15 twice the time for a fiftieth.
const LEVEL: i32 = 12;
/// The bytes of JSON after which a pack ends.
pub(crate) const FULL: usize = 8 * 1024 * 1024;
/// The longest record in bytes: JavaScript can't hold a longer message.
const LONGEST: u64 = 512 * 1024 * 1024;
/// The most bytes that a pack unpacks to: a small one could otherwise fill the disk.
const MOST: u64 = 2 * LONGEST;
/// The largest pack that is read, in bytes: one message of the longest kind that does not compress.
pub(crate) const LARGEST: u64 = 512 * 1024 * 1024;
/// The end of a pack's name.
const ENDING: &str = ".pack";
/// No machine writes so many packs.
pub(crate) const HIGHEST: i64 = 1_000_000_000;
/// Hexadecimal digits of a machine's id.
const MACHINE: usize = 32;

/// Where a pack is below the project's folder: `MACHINE/000000012-HASH.pack`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PackName {
    pub machine: String,
    /// Counts the machine's packs.
    pub number: i64,
    pub hash: Hash,
}

/// Whether it is a machine's id.
pub(crate) fn is_machine(name: &str) -> bool {
    name.len() == MACHINE && name.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

impl PackName {
    /// Reads a name; `None` for any other file.
    pub fn parse(name: &str) -> Option<Self> {
        let (machine, file) = name.split_once('/')?;
        let (number, hash) = file.strip_suffix(ENDING)?.split_once('-')?;
        let name =
            Self { machine: machine.to_owned(), number: number.parse().ok()?, hash: Hash::parse(hash)? };
        // One name for one pack.
        (is_machine(machine)
            && (0..HIGHEST).contains(&name.number)
            && name.to_string() == format!("{machine}/{file}"))
        .then_some(name)
    }

    /// What the names of a machine's packs from this number on are behind.
    pub fn beginning(number: i64) -> String {
        format!("{:09}", number.max(0))
    }
}

impl fmt::Display for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:09}-{}{ENDING}", self.machine, self.number, self.hash)
    }
}

/// The first record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackHeader {
    pub format: u32,
    /// The machine's id.
    pub machine: String,
    /// What its user calls it.
    pub label: String,
    /// How many of its entries showed a purged message.
    pub purged: u32,
    /// Whether secrets are masked.
    pub redacted: bool,
    /// Whom the pack is encrypted to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
}

impl PackHeader {
    pub fn new(machine: &ThisMachine, purged: usize, redacted: bool) -> Self {
        let purged = u32::try_from(purged).unwrap_or(u32::MAX);
        let ThisMachine { id, label, recipients, .. } = machine.clone();
        Self { format: FORMAT, machine: id, label, purged, redacted, recipients }
    }
}

/// The session of the entries that follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PackSession {
    /// Pi's id.
    pub id: String,
    /// The file of the session it was forked from.
    pub parent_session: Option<String>,
    /// When it was first stored, ms.
    pub started_at: i64,
    /// The label of the machine that it is from.
    pub origin: String,
}

/// A purged message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PurgedEntry {
    pub id: String,
    pub parent_id: Option<String>,
    /// The message's, ms.
    pub timestamp: i64,
    /// The random number in its place.
    pub nonce: Hash,
}

/// A record after the header.
pub(crate) enum Record {
    Session(PackSession),
    Entry(Entry),
    Purged(PurgedEntry),
    Summary(SummaryRecord),
}

/// The types of records that are no entries.
const HEADER: &str = "lcm-pack";
pub(crate) const SESSION: &str = "session";
pub(crate) const PURGED: &str = "lcm-purged";
pub(crate) const SUMMARY: &str = "lcm-summary";

/// Writes a pack into memory.
pub(crate) struct PackWriter {
    encoder: Encoder<'static, Vec<u8>>,
    written: usize,
}

impl PackWriter {
    pub fn new(header: &PackHeader) -> Result<Self> {
        let encoder = Encoder::new(Vec::new(), LEVEL).map_err(unpacked)?;
        let mut pack = Self { encoder, written: 0 };
        pack.write(HEADER, header)?;
        Ok(pack)
    }

    /// Adds an entry as a line of a session file.
    pub fn record(&mut self, json: &str) -> Result<()> {
        let parts = [&[SEPARATOR], json.as_bytes(), b"\n"];
        self.written += json.len();
        parts.into_iter().try_for_each(|part| self.encoder.write_all(part)).map_err(unpacked)
    }

    /// Whether the next record belongs into another pack.
    pub fn is_full(&self) -> bool {
        self.written >= FULL
    }

    /// Its bytes.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.encoder.finish().map_err(unpacked)
    }

    /// Adds a record of ours: [`SESSION`], [`PURGED`] or [`SUMMARY`].
    pub fn write(&mut self, kind: &str, record: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string(record).map_err(unpacked)?;
        self.record(&format!("{{\"type\":\"{kind}\",{}", json.strip_prefix('{').unwrap_or_default()))
    }
}

/// Reads a pack.
pub(crate) struct PackReader {
    records: BufReader<Take<Decoder<'static, Cursor<Vec<u8>>>>>,
    pub header: PackHeader,
    /// The hash of what is in it, if it is encrypted; else of its bytes.
    pub content: Hash,
    /// The bytes of the last record.
    pub size: usize,
}

impl PackReader {
    /// Begins to read the bytes of the pack `name`; `None` if it is encrypted, and not to the key in the folder `db_dir`.
    ///
    /// # Errors
    /// When they are not those of the name, or another version's.
    pub fn open(name: &PackName, mut bytes: Vec<u8>, db_dir: &Path) -> Result<Option<Self>> {
        let mut content = Hash::plain(&bytes);
        if content != name.hash {
            return Err(Error::invalid(
                "its bytes are not those of its name: it is incomplete, or it was changed",
            ));
        }
        if is_encrypted(&bytes) {
            let Some(plain) = Key::of(db_dir)?.decrypted(&bytes)? else { return Ok(None) };
            content = Hash::plain(&plain);
            bytes = plain;
        }
        let decoder = Decoder::with_buffer(Cursor::new(bytes)).map_err(unpacked)?;
        let mut records = BufReader::new(decoder.take(MOST));
        let header = next(&mut records)?.ok_or_else(|| Error::invalid("it is empty"))?;
        let header: PackHeader = typed(&header, HEADER)?;
        if header.format > FORMAT {
            return Err(Error::format(format!(
                "it has format {}, and this version reads format {FORMAT}: update pi-lossless-context",
                header.format
            )));
        }
        if header.machine != name.machine {
            return Err(Error::invalid("it is in another machine's folder"));
        }
        if !are_recipients(&header.recipients) {
            return Err(Error::invalid("it names recipients that are none"));
        }
        Ok(Some(Self { records, header, content, size: 0 }))
    }

    /// The next record.
    ///
    /// # Errors
    /// When it has not the form of one; the rest is not read.
    pub fn next(&mut self) -> Result<Option<Record>> {
        let Some(json) = next(&mut self.records)? else { return Ok(None) };
        self.size = json.len();
        let kind = Fields::of(&json).and_then(|fields| fields.text("type")).unwrap_or_default();
        Ok(Some(match kind.as_str() {
            SESSION => Record::Session(typed(&json, SESSION)?),
            PURGED => Record::Purged(typed(&json, PURGED)?),
            SUMMARY => match typed::<SummaryRecord>(&json, SUMMARY)? {
                summary if summary.is_possible() => Record::Summary(summary),
                _ => return Err(Error::invalid("it has a summary with impossible numbers")),
            },
            _ => Record::Entry(parse_one(&json).map_err(|error| Error::invalid(error.to_string()))?),
        }))
    }
}

fn next(records: &mut impl std::io::BufRead) -> Result<Option<String>> {
    let mut record = Vec::new();
    // The first byte is a separator, so the first record is empty.
    loop {
        let read = records.by_ref().take(LONGEST).read_until(SEPARATOR, &mut record).map_err(unpacked)?;
        if record.last() == Some(&SEPARATOR) {
            record.pop();
        } else if read as u64 == LONGEST {
            return Err(Error::invalid("it has a record that is too long"));
        }
        if !record.is_empty() || read == 0 {
            break;
        }
    }
    if record.is_empty() {
        return Ok(None);
    }
    // A record that was cut off lacks its end.
    if record.pop() != Some(b'\n') {
        return Err(Error::invalid("it unpacks to more than a pack has"));
    }
    String::from_utf8(record).map(Some).map_err(unpacked)
}

fn typed<T: DeserializeOwned>(json: &str, kind: &str) -> Result<T> {
    let is_it = Fields::of(json).and_then(|fields| fields.text("type")).as_deref() == Some(kind);
    let record = serde_json::from_str(json).map_err(unpacked)?;
    if is_it { Ok(record) } else { Err(Error::invalid("it does not begin with a header")) }
}

/// The error for bytes that are no pack.
fn unpacked(error: impl std::error::Error) -> Error {
    Error::invalid(format!("it is no pack: {error}"))
}
