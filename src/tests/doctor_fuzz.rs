//! Damages a store at random, row by row: the doctor answers, a repair loses nothing that is still readable,
//! and a store it calls sound has every message of the session file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use super::asking;
use super::extent::share;
use super::patient::Patient;
use crate::ids::{ConversationId, MessageId};
use crate::recall::Scope;
use crate::store::Store;

/// Stores to damage in `npm run test:all`.
const SEEDS: u32 = 40;

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

/// The rows of each table.
type Rows = BTreeMap<String, BTreeSet<String>>;

fn snapshot(path: &Path) -> Rows {
    let connection = Connection::open(path).unwrap();
    let mut all = Rows::new();
    for table in ["conversations", "messages", "entries", "summaries", "summary_sources", "carried"] {
        let mut query = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = query.column_count();
        let mut rows = query.query([]).unwrap();
        let set = all.entry(table.to_owned()).or_default();
        while let Some(row) = rows.next().unwrap() {
            let cells: Vec<String> =
                (0..columns).map(|at| format!("{:?}", row.get::<_, Value>(at).unwrap())).collect();
            set.insert(cells.join("|"));
        }
    }
    all
}

/// Each readable message, by its lineage.
async fn texts(store: &Store, path: &Path) -> BTreeMap<Vec<u8>, String> {
    let ids: Vec<(i64, Vec<u8>)> = {
        let c = Connection::open(path).unwrap();
        let mut q =
            c.prepare("SELECT id, lineage FROM messages WHERE bytes BETWEEN 0 AND 1000000000").unwrap();
        q.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    store
        .read(move |view| {
            Ok(ids
                .into_iter()
                .filter_map(|(id, l)| view.messages().message(MessageId(id)).ok().map(|m| (l, m.json)))
                .collect())
        })
        .await
        .unwrap()
}

/// Each entry with its message and its parent.
fn entries(path: &Path) -> BTreeMap<String, String> {
    let c = Connection::open(path).unwrap();
    let mut q = c.prepare("SELECT e.conversation_id || ' ' || e.entry_id, e.kind || ' ' || coalesce(hex(m.lineage), '') || ' ' || coalesce((SELECT p.entry_id FROM entries p WHERE p.id = e.parent_id), '-') FROM entries e LEFT JOIN messages m ON m.id = e.message_id").unwrap();
    q.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn after_any_damage_the_doctor_answers_and_a_repair_loses_nothing() {
    let template = Patient::new().await;
    let texts_at_first = texts(&template.store, &template.database()).await;
    let entries_at_first = entries(&template.database());
    template.store.close().await;
    for seed in (0..share(SEEDS)).map(u64::from) {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("project.db");
        fs::copy(template.database(), &database).unwrap();
        let mut dice = Dice(seed);
        let mut done = vec![format!("seed {seed}")];
        {
            let connection = Connection::open(&database).unwrap();
            connection.pragma_update(None, "foreign_keys", false).unwrap();
            if seed % 3 == 0 {
                connection.execute_batch("UPDATE conversations SET file = NULL").unwrap();
            }
            for _ in 0..=dice.below(3) {
                done.extend(damage_once(&connection, &mut dice));
            }
        }
        let done = done.join("\n");
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        let (texts_before, entries_before) = (texts(&store, &database).await, entries(&database));
        let scope = Scope::at(ConversationId(1), None);
        let ask = async |line| {
            asking::ask(&store, &scope, line).await.unwrap_or_else(|error| panic!("{error}\n{done}")).text
        };
        ask("doctor").await;
        ask("doctor --fix").await;
        ask("doctor --fix").await;
        let mended = snapshot(&database);
        let report = ask("doctor --fix").await;
        assert_eq!(snapshot(&database), mended, "{done}\n{report}");
        let (texts, entries) = (texts(&store, &database).await, entries(&database));
        for (lineage, json) in
            texts_before.iter().filter(|(lineage, json)| texts_at_first.get(*lineage) == Some(*json))
        {
            assert_eq!(texts.get(lineage), Some(json), "{done}\n{report}");
        }
        assert!(entries_before.keys().all(|entry| entries.contains_key(entry)), "{done}\n{report}");
        if seed % 3 != 0 && report.ends_with("There is nothing to repair.") {
            assert!(
                texts_at_first.iter().all(|(lineage, json)| texts.get(lineage) == Some(json)),
                "{done}\n{report}"
            );
            assert!(
                entries_at_first.iter().all(|(entry, what)| entries.get(entry) == Some(what)),
                "{done}\n{report}"
            );
        }
        store.close().await;
    }
}
