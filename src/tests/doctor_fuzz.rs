//! Damages a store at random, row by row or page by page: the doctor answers, and a rebuild is sound and loses nothing
//! that is still readable.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::asking;
use super::patient::{Patient, rebuild, texts_of};
use lcm_model::ids::{ConversationId, MessageId};
use lcm_recall::Scope;
use lcm_store::Store;
use lcm_testing::share;

/// Stores to damage in `npm run test:all`.
const SEEDS: u32 = 60;

/// Splitmix: the same rolls each time.
pub(super) struct Dice(pub(super) u64);
impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(super) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % (n as u64)).unwrap()
    }
    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const TABLES: &[&str] = &[
    "messages", "messages", "messages", "entries", "entries", "entries", "summaries", "summaries",
    "summary_sources", "summary_sources", "carried", "messages_fts_data", "messages_fts_docsize",
    "messages_fts_idx", "messages_fts_config", "summaries_fts_data", "summaries_fts_docsize",
    "summaries_fts_idx", "summaries_fts_config",
];

/// One damage, as SQL; `None` if SQLite rejects it.
fn damage_once(c: &Connection, dice: &mut Dice) -> Option<String> {
    let table = dice.of(TABLES);
    let columns: Vec<(String, String, i64)> = c
        .prepare(&format!("SELECT name, type, pk FROM pragma_table_info('{table}')"))
        .unwrap()
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let keys: Vec<String> = columns.iter().filter(|c| c.2 > 0).map(|c| c.0.clone()).collect();
    let keys = keys.join(", ");
    let n: i64 = c.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).ok()?;
    if n == 0 {
        return None;
    }
    let pick = |dice: &mut Dice| {
        format!(
            "(SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1 OFFSET {})",
            dice.below(usize::try_from(n).unwrap())
        )
    };
    let row = pick(dice);
    let (column, kind, _) = columns[dice.below(columns.len())].clone();
    let other = pick(dice);
    let sql = match dice.below(12) {
        0 => format!("UPDATE {table} SET {column} = NULL WHERE ({keys}) = {row}"),
        1 | 2 => format!("UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE ({keys}) = {other}) WHERE ({keys}) = {row}"),
        3..=5 => {
            let value = match kind.as_str() {
                "INTEGER" => dice.of(&["-1", "0", "1", "2", "3", "5", "7", "99999", "9223372036854775807", "-9223372036854775808", "1099511627776", "400000000"]).to_owned(),
                "TEXT" => dice.of(&["''", "'x'", "'e3'", "'e40'", "'ok'", "'degraded'", "'/'"]).to_owned(),
                _ => dice.of(&["x''", "zeroblob(32)", "randomblob(32)", "x'00'", "randomblob(300)"]).to_owned(),
            };
            format!("UPDATE {table} SET {column} = {value} WHERE ({keys}) = {row}")
        }
        6 | 7 => {
            let value = match kind.as_str() {
                "INTEGER" => format!("{column} + {}", dice.of(&[1, -1, 2, 10])),
                "TEXT" => dice.of(&["{c} || '!'", "substr({c}, 2)"]).replace("{c}", &column),
                _ => dice.of(&["substr({c}, 1, length({c}) / 2)", "CAST({c} || x'00' AS BLOB)", "CAST(substr({c}, 1, length({c}) / 2) || x'55' || substr({c}, length({c}) / 2 + 2) AS BLOB)"]).replace("{c}", &column),
            };
            format!("UPDATE {table} SET {column} = {value} WHERE ({keys}) = {row}")
        }
        8 | 9 => format!("DELETE FROM {table} WHERE ({keys}) = {row}"),
        10 => {
            let values: Vec<String> = columns.iter().map(|(name, _, pk)| match (name.as_str(), *pk) {
                ("id", 1) => format!("(SELECT max(id) + {} FROM {table})", dice.of(&[1, 1000])),
                ("lineage" | "hash", _) => "randomblob(32)".into(),
                ("entry_id", _) if table == "entries" => "entry_id || 'x'".into(),
                ("session_id", _) => "session_id || 'x'".into(),
                ("ordinal", _) => "ordinal + 100".into(),
                (name, _) => name.into(),
            }).collect();
            format!("INSERT INTO {table} SELECT {} FROM {table} WHERE ({keys}) = {row}", values.join(", "))
        }
        _ => format!("CREATE TEMP TABLE swap AS SELECT (SELECT {column} FROM {table} WHERE ({keys}) = {row}) AS a, (SELECT {column} FROM {table} WHERE ({keys}) = {other}) AS b, 0 AS c;
             UPDATE {table} SET {column} = (SELECT b FROM swap) WHERE ({keys}) = {row};
             UPDATE {table} SET {column} = (SELECT a FROM swap) WHERE ({keys}) = {other}; DROP TABLE swap"),
    };
    match c.execute_batch(&sql) {
        Ok(()) => Some(sql),
        Err(_) => {
            let _ = c.execute_batch("DROP TABLE IF EXISTS temp.swap");
            None
        }
    }
}

/// Damages pages of a closed database, so that each may be lost, and none of the others.
fn damage_pages(database: &Path, dice: &mut Dice) -> String {
    let mut bytes = fs::read(database).unwrap();
    let pages = bytes.len() / 4096;
    let mut done = String::new();
    for _ in 0..=dice.below(3) {
        let at = 4096 * dice.below(pages);
        match dice.below(4) {
            0 => bytes[at..at + 4096].fill(0),
            1 => bytes[at..at + 4096].fill(0x5a),
            2 => (0..200).for_each(|_| bytes[at + dice.below(4096)] = u8::try_from(dice.below(256)).unwrap()),
            _ => bytes.truncate((at + 1).max(bytes.len() / 2)),
        }
        done += &format!(" {}", at / 4096);
        bytes.resize(bytes.len().max(pages * 4096), 0);
    }
    fs::write(database, bytes).unwrap();
    format!("pages{done}")
}

/// The texts that can be read, and that were said.
async fn readable(database: &Path, said: &BTreeSet<String>) -> BTreeSet<String> {
    let cancel = CancellationToken::new();
    let Ok(opened) = Store::read_only_at(database, &cancel) else { return BTreeSet::new() };
    let read = opened.store.read(|view| {
        let mut texts = BTreeSet::new();
        // Row by row: one that can't be read costs no other.
        for id in 1..300 {
            texts.extend(view.messages().json_of(MessageId(id)).ok());
        }
        Ok(texts)
    });
    let texts = read.await.unwrap_or_default();
    opened.store.close().await;
    texts.intersection(said).cloned().collect()
}

#[tokio::test]
async fn after_any_damage_a_rebuild_is_sound_and_has_every_readable_message() {
    let template = Patient::new().await;
    let said = texts_of(&template.store).await;
    template.store.close().await;
    for seed in (0..share(SEEDS)).map(u64::from) {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("project.db");
        fs::copy(template.database(), &database).unwrap();
        let mut dice = Dice(seed);
        let mut done = vec![format!("seed {seed}")];
        let has_file = seed % 3 != 0;
        {
            let connection = Connection::open(&database).unwrap();
            connection.pragma_update(None, "foreign_keys", false).unwrap();
            let file = has_file.then(|| template.file().to_string_lossy().into_owned());
            connection.execute("UPDATE conversations SET file = ?1", [file]).unwrap();
            if seed % 2 == 0 {
                for _ in 0..=dice.below(3) {
                    done.extend(damage_once(&connection, &mut dice));
                }
            }
        }
        if seed % 2 == 1 {
            done.push(damage_pages(&database, &mut dice));
        }
        let done = done.join("\n");
        let before = readable(&database, &said).await;
        let store = Store::open(Some(dir.path()), "project", "/project")
            .unwrap_or_else(|error| panic!("{error}\n{done}"));
        let scope = Scope::at(ConversationId(1), None);
        asking::ask(&store, &scope, "doctor").await.unwrap_or_else(|error| panic!("{error}\n{done}"));
        let report = rebuild(&store, dir.path()).await.unwrap_or_else(|error| panic!("{error}\n{done}"));
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        let after = texts_of(&store).await;
        assert!(before.is_subset(&after), "{done}\n{report}");
        let checked = asking::ask(&store, &scope, "doctor").await.unwrap().text;
        assert!(checked.ends_with("Everything is in order."), "{done}\n{report}\n{checked}");
        store.close().await;
    }
}
