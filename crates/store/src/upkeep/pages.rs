//! Reads the rows of a database file page by page, without SQLite: a page names none above it, so a lost root, a lost
//! schema or a cut end costs no other page. Which table a row is of, its columns say.
//!
//! The file may come from anyone. Nothing in it is run, and it gives no more bytes than its size allows.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rusqlite::types::Value;

use crate::db::connection::{APPLICATION_ID, with_ending};
use crate::db::schema::FORMAT;
use lcm_model::error::{Error, Result};
use lcm_model::files;

/// The bytes of a page, if the file's header does not say.
const PAGE: usize = 4096;
/// The first bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The bytes of a log's header, and of the header of each page in it.
const LOG: (usize, usize) = (32, 24);
/// What a log begins with, but for the order of the bytes in its checksums.
const LOG_MAGIC: u32 = 0x377f_0682;
/// How often a file may give its bytes, and what is always allowed.
const LARGEST: (u64, u64) = (4, 64 << 20);

/// A kind of page: rows of a table by number, or the entries of an index and of a table without row numbers.
const TABLE: u8 = 0x0d;
const INDEX: u8 = 0x0a;
const INSIDE_INDEX: u8 = 0x02;
const INSIDE_TABLE: u8 = 0x05;

/// A database file.
pub(super) struct DatabasePages {
    file: File,
    log: Option<File>,
    /// Where the log has a page.
    logged: HashMap<u32, u64>,
    /// Pages that hold nothing now.
    free: HashSet<u32>,
    /// The bytes of a page.
    size: usize,
    /// The number of pages.
    pub count: u32,
    /// The number of those that the file has to their end.
    whole: u32,
    /// The bytes that its end lacks, if its header says how long it was, and those of pages that are none of SQLite's.
    pub missing: u64,
    /// The bytes of rows that it may still give.
    left: u64,
    /// The mark of the program that made it, and its format, unless the header is damaged.
    pub header: Option<(u32, u32)>,
}

/// A row, or the entry of an index.
pub(super) struct Row {
    /// Its number, if it is a row of a table with numbers.
    pub id: Option<i64>,
    pub values: Vec<Value>,
}

impl DatabasePages {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        let mut head = [0; 100];
        let read = read_at(&file, 0, &mut head)?;
        let size = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        let is_whole = read == head.len() && head.starts_with(MAGIC) && size.is_power_of_two() && size >= 512;
        let size = if is_whole { size } else { PAGE };
        let header = is_whole.then(|| (number(&head, 68), number(&head, 60)));
        let bytes = file.metadata()?.len();
        let mut pages = Self {
            log: files::open(&with_ending(path, "-wal")).ok(),
            logged: HashMap::new(),
            free: HashSet::new(),
            size,
            count: u32::try_from(bytes.div_ceil(size as u64)).unwrap_or(u32::MAX),
            whole: u32::try_from(bytes / size as u64).unwrap_or(u32::MAX),
            missing: 0,
            left: LARGEST.1.saturating_add(bytes.saturating_mul(LARGEST.0)),
            file,
            header,
        };
        pages.read_log()?;
        if is_whole {
            // The log knows better, as does an older version of SQLite, which does not write it.
            let stated = if number(&head, 24) == number(&head, 92) { number(&head, 28) } else { 0 };
            let stated = if pages.logged.is_empty() { stated } else { pages.count };
            let logged = pages.logged.keys().filter(|page| **page > pages.whole && **page <= stated).count();
            let lacking = u64::from(stated.saturating_sub(pages.whole)).saturating_sub(logged as u64);
            pages.missing = lacking * size as u64;
            pages.find_free(number(&head, 32))?;
        }
        Ok(pages)
    }

    /// Visits the rows of a page that can be read. An error ends the reading: the file gives too much, or the disk fails.
    pub fn rows(&mut self, page: u32, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        if self.free.contains(&page) {
            return Ok(());
        }
        let bytes = self.page(page).map_err(unread)?;
        let start = if page == 1 { 100 } else { 0 };
        if page <= self.whole && !self.may_be_sqlites(page, bytes[start], &bytes) {
            self.missing += self.size as u64;
        }
        let kind = bytes[start];
        let (TABLE | INDEX | INSIDE_INDEX) = kind else { return Ok(()) };
        let cells = usize::from(short(&bytes, start + 3));
        let first = start + if kind == INSIDE_INDEX { 12 } else { 8 };
        for cell in (0..cells).map(|cell| first + 2 * cell).take_while(|cell| cell + 2 <= bytes.len()) {
            if let Some(row) = self.row(&bytes, kind, usize::from(short(&bytes, cell))).map_err(unread)? {
                visit(row)?;
            }
        }
        Ok(())
    }

    /// Whether SQLite may have written a page of this kind. One that goes on with a long row begins with the number of the
    /// next; those of a map of pages, and the one that locks are on, may begin with anything.
    fn may_be_sqlites(&self, page: u32, kind: u8, bytes: &[u8]) -> bool {
        let is_tree = [TABLE, INSIDE_TABLE, INDEX, INSIDE_INDEX].contains(&kind);
        let goes_on = number(bytes, 0) <= self.count && bytes.iter().any(|byte| *byte > 0);
        let is_map = page > 1 && (page as usize - 2).is_multiple_of(self.size / 5 + 1);
        is_tree || goes_on || is_map || page as usize == (1 << 30) / self.size + 1
    }

    fn row(&mut self, page: &[u8], kind: u8, at: usize) -> io::Result<Option<Row>> {
        let mut cell = page.get(at + if kind == INSIDE_INDEX { 4 } else { 0 }..).unwrap_or_default();
        let Some(length) = varint(&mut cell) else { return Ok(None) };
        let id = if kind == TABLE { varint(&mut cell).map(u64::cast_signed) } else { None };
        // What only looks like a row is mostly longer than the file.
        let most = self.size * self.count as usize;
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= most) else {
            return Ok(None);
        };
        let here = self.kept_here(length, kind).min(length);
        let Some((here, rest)) = cell.split_at_checked(here) else { return Ok(None) };
        let mut payload = here.to_vec();
        if payload.len() < length {
            let mut next = rest.get(..4).map_or(0, |next| number(next, 0));
            while payload.len() < length && (1..=self.count).contains(&next) {
                let more = self.page(next)?;
                next = number(&more, 0);
                payload.extend(&more[4..more.len().min(4 + length - payload.len())]);
            }
        }
        let left = self.left.checked_sub(payload.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other("it gives more than a file of its size holds"))?;
        Ok(values(&payload).map(|values| Row { id, values }))
    }

    /// How many bytes of a row are on its own page; the others follow on pages of their own.
    fn kept_here(&self, length: usize, kind: u8) -> usize {
        let most = if kind == TABLE { self.size - 35 } else { (self.size - 12) * 64 / 255 - 23 };
        if length <= most {
            return length;
        }
        let least = (self.size - 12) * 32 / 255 - 23;
        let here = least + (length - least) % (self.size - 4);
        if here <= most { here } else { least }
    }

    /// A page as the last transaction left it. What is cut off is empty.
    fn page(&self, page: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.size];
        match (self.logged.get(&page), &self.log) {
            (Some(at), Some(log)) => read_at(log, *at, &mut bytes)?,
            _ => read_at(&self.file, u64::from(page.saturating_sub(1)) * self.size as u64, &mut bytes)?,
        };
        Ok(bytes)
    }

    /// Finds the pages of the transactions that the log has completely.
    fn read_log(&mut self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut head = [0; LOG.0];
        let is_one = read_at(log, 0, &mut head)? == head.len()
            && number(&head, 0) | 1 == LOG_MAGIC | 1
            && number(&head, 8) as usize == self.size;
        let (mut at, mut waiting) = (LOG.0 as u64, Vec::new());
        let mut frame = [0; LOG.1];
        while is_one && read_at(log, at, &mut frame)? == frame.len() && frame[8..16] == head[16..24] {
            waiting.push((number(&frame, 0), at + LOG.1 as u64));
            // The last page of a transaction says how many the file has after it.
            if number(&frame, 4) > 0 {
                self.count = number(&frame, 4);
                self.logged.extend(waiting.drain(..));
            }
            at += (LOG.1 + self.size) as u64;
        }
        Ok(())
    }

    /// Finds the free pages: another program may have left deleted rows there.
    fn find_free(&mut self, first: u32) -> io::Result<()> {
        let mut next = if self.logged.contains_key(&1) { number(&self.page(1)?, 32) } else { first };
        while (1..=self.count).contains(&next) && self.free.insert(next) {
            let list = self.page(next)?;
            let most = (number(&list, 4) as usize).min(self.size / 4 - 2);
            self.free.extend((0..most).map(|n| number(&list, 8 + 4 * n)));
            next = number(&list, 0);
        }
        Ok(())
    }
}

/// Whether a file may be a database of ours: its header says so, or is damaged.
pub(crate) fn may_be_ours(path: &Path) -> bool {
    let is_ours = |(mark, format)| i64::from(mark) == APPLICATION_ID && i64::from(format) == FORMAT;
    DatabasePages::open(path).is_ok_and(|pages| pages.header.is_none_or(|header: (u32, u32)| is_ours(header)))
}

pub(super) fn unread(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("it can't be read: {error}"))
}

/// Reads as many bytes as there are.
fn read_at(mut file: &File, at: u64, mut bytes: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(at))?;
    io::copy(&mut file.take(bytes.len() as u64), &mut bytes).map(|read| read as usize)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// SQLite's variable-length integer: seven bits per byte, highest first, with all of the ninth byte.
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 {
            return Some(number << 8 | u64::from(*byte));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if *byte < 0x80 {
            break;
        }
    }
    Some(number)
}

/// The values of a row; `None` if it is cut off, or no row.
fn values(payload: &[u8]) -> Option<Vec<Value>> {
    let mut head = payload;
    let length = usize::try_from(varint(&mut head)?).ok()?;
    let (_, mut body) = payload.split_at_checked(length)?;
    let mut types = head.get(..length.checked_sub(payload.len() - head.len())?)?;
    let mut values = Vec::new();
    while !types.is_empty() {
        let kind = varint(&mut types)?;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => usize::try_from((kind - 12) / 2).ok()?,
        };
        let (value, rest) = body.split_at_checked(length)?;
        body = rest;
        values.push(match kind {
            0 => Value::Null,
            8 | 9 => Value::Integer(i64::from(kind == 9)),
            1..=6 => Value::Integer(integer(value)),
            7 => Value::Real(f64::from_be_bytes(value.try_into().ok()?)),
            _ if kind % 2 == 0 => Value::Blob(value.to_vec()),
            _ => Value::Text(String::from_utf8(value.to_vec()).ok()?),
        });
    }
    Some(values)
}

fn integer(bytes: &[u8]) -> i64 {
    let first = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(first, |number, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use tokio_util::sync::CancellationToken;

    use crate::OldStore;
    use crate::db::connection::APPLICATION_ID;
    use crate::db::schema;

    /// The names of the sessions in a database of ours whose bytes are changed.
    fn sessions(sql: &str, change: impl FnOnce(&mut Vec<u8>, usize)) -> Result<Vec<String>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        let mut ours = Connection::open(&path).unwrap();
        ours.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        schema::create(&mut ours).unwrap();
        ours.execute_batch(sql).unwrap();
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'conversations'";
        let root: usize = ours.query_row(root, [], |row| row.get(0)).unwrap();
        ours.close().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes, (root - 1) * 4096);
        std::fs::write(&path, bytes).unwrap();
        let old =
            OldStore::open(&path, &path, &CancellationToken::new()).map_err(|error| error.to_string())?;
        Ok(old.sessions().unwrap().into_iter().map(|session| session.session_id).collect())
    }

    fn named(id: usize, name: &str) -> String {
        format!("INSERT INTO conversations VALUES ({id}, {name}, NULL, NULL, 0, 0);")
    }

    #[test]
    fn long_rows_are_read_to_their_end() {
        let long = format!("{:0>9000}", 1);
        let found = sessions(&(named(1, &format!("'{long}'")) + &named(2, "'two'")), |_, _| {});
        assert_eq!(found, Ok(vec![long, "two".into()]));
    }

    #[test]
    fn what_another_program_deleted_stays_deleted() {
        let many: String = (1..400).map(|id| named(id, &format!("'{id:0>200}'"))).collect();
        let found = sessions(&(many + "DELETE FROM conversations WHERE id <> 7"), |_, _| {});
        assert_eq!(found.unwrap().len(), 1);
    }

    #[test]
    fn a_row_that_is_there_a_thousand_times_ends_the_reading() {
        let found = sessions(&named(1, "hex(zeroblob(1023264))"), |bytes, at| {
            let cell = [bytes[at + 8], bytes[at + 9]];
            bytes[at + 3..at + 5].copy_from_slice(&1000_u16.to_be_bytes());
            (0..1000).for_each(|n| bytes[at + 8 + 2 * n..][..2].copy_from_slice(&cell));
        });
        assert_eq!(found, Err("it can't be read: it gives more than a file of its size holds".into()));
    }

    #[test]
    fn a_row_whose_pages_form_a_circle_ends() {
        let found = sessions(&(named(1, "hex(zeroblob(50000))") + &named(2, "'two'")), |bytes, at| {
            // The first of its further pages leads to itself.
            let last = u16::from_be_bytes([bytes[at + 8], bytes[at + 9]]) as usize;
            let next = (last..=4096 - 4).find(|place| {
                let page = u32::from_be_bytes(bytes[at + place..][..4].try_into().unwrap()) as usize;
                page > 1 && page * 4096 <= bytes.len() && bytes[(page - 1) * 4096 + 4..][..100] == [b'0'; 100]
            });
            let place = at + next.unwrap();
            let page = u32::from_be_bytes(bytes[place..][..4].try_into().unwrap()) as usize;
            let own = u32::try_from(page).unwrap().to_be_bytes();
            bytes[(page - 1) * 4096..][..4].copy_from_slice(&own);
        });
        assert_eq!(found.unwrap().pop().unwrap(), "two");
    }
}
