//! The size of the store, its breakdown, and when the user was last warned.

use serde::Serialize;

use crate::columns::Queries as _;
use crate::{Database, DatabaseWriter};
use lcm_model::error::Result;

/// The key for the store's size at the last warning.
const WARNED_AT: &str = "size_warned_at";

/// Bytes of the file by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// The messages, compressed.
    pub messages: u64,
    /// The messages, uncompressed. This is not a part of the file.
    pub unpacked: u64,
    /// What finds messages: their identities and the rows of their passages.
    pub identities: u64,
    /// The full-text index over the messages.
    pub full_text: u64,
    /// Which session shows which message, and where.
    pub entries: u64,
    /// Summaries, with their edges and their full-text index.
    pub summaries: u64,
    /// Sessions and metadata.
    pub other: u64,
    pub free: u64,
}

impl Database<'_> {
    /// Bytes by use. This reads the whole file.
    pub fn sizes(&self) -> Result<Sizes> {
        let rows: Vec<(String, String, u64)> = self.all(
            "SELECT d.name, coalesce(s.tbl_name, d.name), d.pgsize
               FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name
              WHERE d.aggregate = TRUE",
            [],
        )?;
        let mut sizes = Sizes::default();
        for (name, table, bytes) in rows {
            let part = match table.as_str() {
                "messages" if name == "messages" => &mut sizes.messages,
                "messages" => &mut sizes.identities,
                table if table.starts_with("messages_fts") => &mut sizes.full_text,
                "entries" => &mut sizes.entries,
                table if table.starts_with("summar") || table == "carried" => &mut sizes.summaries,
                _ => &mut sizes.other,
            };
            *part += bytes;
        }
        sizes.unpacked = self.one("SELECT coalesce(sum(bytes), 0) FROM messages", [])?;
        sizes.free =
            self.one("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size", [])?;
        Ok(sizes)
    }

    /// The store's size in bytes when the user was last warned about it.
    pub fn size_warned_at(&self) -> Result<Option<u64>> {
        Ok(self.fact(WARNED_AT)?.and_then(|bytes| bytes.parse().ok()))
    }

    /// The size of the database's pages in bytes.
    pub fn page_bytes(&self) -> Result<u64> {
        self.one("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [])
    }
}

impl DatabaseWriter<'_> {
    /// Records that the user was warned when the store had this many bytes.
    pub fn note_size_warned_at(&self, bytes: u64) -> Result<()> {
        self.set_fact(WARNED_AT, &bytes.to_string())
    }
}
