//! The words of the full-text index, read from its leaf pages.
//!
//! SQLite's own list (`fts5vocab`) walks the passages of each word, so it costs as much as the index is long.
//! The pages on which words begin are far fewer, and the index lists them; their layout is part of SQLite's
//! file format. A page with another layout is reported as unread, never guessed.

use rusqlite::params;

use crate::FullTextIndex;
use crate::columns::Queries as _;
use crate::upkeep::pages;
use lcm_model::error::Result;

/// The supported layouts: the one since 2015, and its variant with secure deletion.
const LAYOUTS: std::ops::RangeInclusive<i64> = 4..=5;
/// The prefix of words in the main index. Prefix indexes, of which there are none, use others.
const MAIN: u8 = b'0';
/// The bit of a page's row id at which its segment number begins.
const SEGMENT_BIT: u32 = 37;
/// Bytes before a page's content.
const HEADER: usize = 4;

/// A budget of pages to read.
pub struct Pages(pub usize);

impl FullTextIndex<'_> {
    /// Calls `visit` with the index's words from `from` to `to` (exclusive) until it returns `false`. The
    /// words are stems, and one may come several times. Each page read is deducted from `pages`. Returns
    /// whether all were read.
    pub fn index_words(
        &self,
        from: &str,
        to: Option<&str>,
        pages: &mut Pages,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        let layout: i64 = self.one("SELECT v FROM messages_fts_config WHERE k = 'version'", [])?;
        if !LAYOUTS.contains(&layout) {
            return Ok(false);
        }
        // The byte after the prefix sorts after all words.
        let key = |word: &str| [&[MAIN], word.as_bytes()].concat();
        let (first, last) = (key(from), to.map_or_else(|| vec![MAIN + 1], key));
        let mut listed = self.prepared(
            "WITH RECURSIVE s (segid) AS (
                 SELECT min(segid) FROM messages_fts_idx
                 UNION ALL
                 SELECT (SELECT min(segid) FROM messages_fts_idx WHERE segid > s.segid) FROM s
                  WHERE s.segid IS NOT NULL)
             SELECT (i.segid << ?3) + (i.pgno >> 1)
               FROM s
               JOIN messages_fts_idx i ON i.segid = s.segid
              WHERE i.term < ?2
                AND i.term >= coalesce((SELECT max(term) FROM messages_fts_idx
                                         WHERE segid = s.segid AND term <= ?1), x'')",
        )?;
        let mut rows = listed.query(params![first, last, SEGMENT_BIT])?;
        let mut word = Vec::new();
        while let Some(row) = rows.next()? {
            if pages.0 == 0 {
                return Ok(false);
            }
            pages.0 -= 1;
            let page: i64 = row.get(0)?;
            // During a merge, pages already copied into another segment are still listed here.
            let sql = "SELECT block FROM messages_fts_data WHERE id = ?1";
            let Some(page) = self.first::<Vec<u8>>(sql, [page])? else { continue };
            let mut goes_on = true;
            let read = words_on(&page, &mut word, |word| {
                let begins = from.is_empty() || word >= first.as_slice();
                if goes_on && begins && (to.is_none() || word < last.as_slice()) {
                    goes_on = visit(&word[1..]);
                }
            });
            if read.is_none() || !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The words that begin on a page, each with its prefix. `None` if the page has another layout.
fn words_on(page: &[u8], word: &mut Vec<u8>, mut visit: impl FnMut(&[u8])) -> Option<()> {
    let footer = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let (mut behind, mut at) = (page.get(footer..)?, 0);
    word.clear();
    let mut is_first = true;
    while !behind.is_empty() {
        at += varint(&mut behind)?;
        let mut entry = page.get(at..footer).filter(|_| at >= HEADER)?;
        // A page's first word is complete; the others share a prefix with the word before.
        let kept = if is_first { 0 } else { varint(&mut entry)? };
        let new = varint(&mut entry)?;
        if kept > word.len() {
            return None;
        }
        word.truncate(kept);
        word.extend_from_slice(entry.get(..new)?);
        is_first = false;
        visit(word);
    }
    Some(())
}

/// No number on a page is longer than four bytes.
fn varint(bytes: &mut &[u8]) -> Option<usize> {
    pages::varint(bytes)?.try_into().ok().filter(|number| *number < 1 << 28)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;

    use super::*;

    fn read(connection: &Connection, from: &str, to: Option<&str>) -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        let visit = |word: &[u8]| {
            words.insert(String::from_utf8(word.to_vec()).unwrap());
            true
        };
        assert!(FullTextIndex::new(connection).index_words(from, to, &mut Pages(10_000), visit).unwrap());
        words
    }

    #[test]
    fn the_words_equal_sqlites_own_list() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../db/schema.sql")).unwrap();
        connection.execute_batch("CREATE VIRTUAL TABLE listed USING fts5vocab (messages_fts, row)").unwrap();
        let word = |n: usize| ["é", "the", "x", "日本"][n % 4].to_owned() + &(n * n * 7919).to_string();
        for batch in 0..40 {
            connection.execute_batch("BEGIN").unwrap();
            for row in batch * 50..batch * 50 + 50 {
                let body: Vec<String> =
                    (row * 3..row * 3 + 40).map(|n| format!("{} the é", word(n))).collect();
                let insert = "INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, 'p')";
                connection.execute(insert, params![row, body.join(" ")]).unwrap();
            }
            connection.execute_batch("COMMIT").unwrap();
        }
        let mut listed = connection.prepare("SELECT term FROM listed").unwrap();
        let listed: BTreeSet<String> =
            listed.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        assert!(listed.len() > 5_000);
        let words = listed.clone();
        assert_eq!(read(&connection, "", None), listed);
        for (from, to) in
            [("the", "thf"), ("", "2"), ("the2", "the21"), ("x", "x9"), ("日", "\u{10ffff}"), ("y", "z")]
        {
            let expected: BTreeSet<String> = listed.range(from.to_owned()..to.to_owned()).cloned().collect();
            assert_eq!(read(&connection, from, Some(to)), expected, "{from} to {to}");
        }
        // An unfinished merge leaves deleted pages in the list.
        connection
            .execute("INSERT INTO messages_fts (messages_fts, rank) VALUES ('usermerge', 2)", [])
            .unwrap();
        for _ in 0..30 {
            connection
                .execute("INSERT INTO messages_fts (messages_fts, rank) VALUES ('merge', 2)", [])
                .unwrap();
            assert_eq!(read(&connection, "", None), words);
        }
        let mut one = Pages(1);
        assert!(!FullTextIndex::new(&connection).index_words("", None, &mut one, |_| true).unwrap());
    }

    #[test]
    fn pages_with_another_layout_are_not_guessed() {
        let mut seen = Vec::new();
        for page in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\x09abc",
            b"\0\0\0\x04\x04",
            b"\0\0\0\x08\x02000\x04\x04",
            b"\0\0\0\x06\x7f0\x04",
        ] {
            assert_eq!(words_on(page, &mut Vec::new(), |word| seen.push(word.to_vec())), None, "{page:?}");
        }
        let page = b"\0\0\0\x0e\x030ab..\x02\x01c.\x04\x06";
        let mut words = Vec::new();
        assert_eq!(words_on(page, &mut Vec::new(), |word| words.push(word.to_vec())), Some(()));
        assert_eq!(words, [b"0ab".to_vec(), b"0ac".to_vec()]);
    }
}
