//! The floor of bulk ingest: a bare loop that inserts the same rows and index entries into the same schema.
//!
//! `bare_loop <database> <session file> <folder> <messages in a transaction>` reads the rows from a database
//! that the product has filled, and the texts of the index from its session, before the clock starts. So it
//! only times SQLite: no hashes, JSON, compression or lookups. It prints the milliseconds.

#![expect(clippy::print_stdout, reason = "its caller reads the figure from stdout")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Instant;

use pi_lossless_context::{Content, Indexed, Message, parse_batch, passages};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, OpenFlags, params, params_from_iter};

type Outcome<T> = Result<T, Box<dyn Error>>;
type Row = Vec<Value>;

/// A message's row, the entry that shows it, and its passages with the parts of their words.
struct Piece {
    message: Row,
    entry: Row,
    passages: Vec<(String, String)>,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [database, session, folder, batch] = arguments.as_slice() else {
        return Err("usage: bare_loop <database> <session file> <folder> <messages in a transaction>".into());
    };
    let source = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let pieces = pieces(&source, Path::new(session))?;
    let target = same_schema(&source, &Path::new(folder).join("bare.db"))?;
    for row in rows(&source, "conversations")? {
        insert(&target, "conversations", row.len())?.execute(params_from_iter(row))?;
    }

    let started = Instant::now();
    let mut passage = 0_i64;
    for transaction in pieces.chunks(batch.parse()?) {
        target.execute_batch("BEGIN IMMEDIATE")?;
        for piece in transaction {
            insert(&target, "messages", piece.message.len())?.execute(params_from_iter(&piece.message))?;
            for (body, parts) in &piece.passages {
                passage += 1;
                target
                    .prepare_cached("INSERT INTO messages_fts (rowid, body, parts) VALUES (?1, ?2, ?3)")?
                    .execute(params![passage, body, parts])?;
            }
            insert(&target, "entries", piece.entry.len())?.execute(params_from_iter(&piece.entry))?;
        }
        target.execute_batch("COMMIT")?;
    }
    println!("{}", started.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

/// The rows to insert, in order.
fn pieces(source: &Connection, session: &Path) -> Outcome<Vec<Piece>> {
    let (messages, entries) = (rows(source, "messages")?, rows(source, "entries")?);
    let mut pieces = Vec::new();
    let lines = BufReader::new(File::open(session)?).lines().skip(1);
    for ((line, message), entry) in lines.zip(messages).zip(entries) {
        let Content::Message(json) = parse_batch(&format!("[{}]", line?))?.remove(0).content else {
            continue;
        };
        let text = Message::parse(&json).take_searchable();
        let cut = passages(&text).into_iter().map(|range| {
            let Indexed { body, parts } = Indexed::of(&text[range.clone()]);
            (body.unwrap_or_else(|| text[range].to_owned()), parts)
        });
        pieces.push(Piece { message, entry, passages: cut.collect() });
    }
    Ok(pieces)
}

/// An empty database with the product's schema.
fn same_schema(source: &Connection, path: &Path) -> Outcome<Connection> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    let target = Connection::open(path)?;
    let page_size: i64 = source.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    target.pragma_update(None, "page_size", page_size)?;
    for (name, value) in [("journal_mode", "WAL"), ("synchronous", "NORMAL"), ("foreign_keys", "ON")] {
        target.pragma_update(None, name, value)?;
    }
    target.pragma_update(None, "secure_delete", true)?;
    target.pragma_update(None, "wal_autocheckpoint", 256)?;
    // SQLite creates the tables of a full-text index itself.
    let mut query = source.prepare(
        "SELECT sql FROM sqlite_schema
          WHERE sql IS NOT NULL AND name NOT LIKE '%\\_fts\\_%' ESCAPE '\\' ORDER BY rowid",
    )?;
    for sql in query.query_map([], |row| row.get::<_, String>(0))? {
        target.execute_batch(&sql?)?;
    }
    Ok(target)
}

fn rows(source: &Connection, table: &str) -> Outcome<Vec<Row>> {
    let mut query = source.prepare(&format!("SELECT * FROM {table} ORDER BY id"))?;
    let columns = query.column_count();
    let rows = query.query_map([], |row| (0..columns).map(|column| row.get(column)).collect())?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn insert<'c>(target: &'c Connection, table: &str, columns: usize) -> rusqlite::Result<CachedStatement<'c>> {
    let places = vec!["?"; columns].join(", ");
    target.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))
}
