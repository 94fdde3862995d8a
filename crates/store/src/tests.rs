//! No statement of the product reads a whole table that grows, except on purpose: SQLite's plans of all statements,
//! taken from the source. A plan also shows where a deleted row is looked for in tables that refer to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rusqlite::Connection;

/// Where whole tables are read: a file's beginning, a part of the statement, and why.
const MEANT: &[(&str, &str, &str)] = &[
    ("", "conversations", "one row per session"),
    ("", "claims", "leases that run"),
    ("", "sqlite_", "the schema"),
    ("db/sizes", "", "stats --full"),
    ("index/search", "FROM summaries s", "counts for an answer that found nothing"),
    ("messages/counts", "WHERE kind IN (0, 1) AND ?1 = -1", "once: the count is kept"),
    ("messages/entries", "ORDER BY id DESC LIMIT 1", "the last row"),
    ("messages/export", "INDEXED BY messages_marked", "an index of a few"),
    ("messages/export", "INDEXED BY messages_unusual", "a denial, and of requests only"),
    ("messages/notes", "INDEXED BY messages_marked", "an index of a few"),
    ("summaries/", "FROM summaries", "one summary stands for many messages"),
    ("synced", "FROM machines", "one row per machine"),
    ("synced", "FROM messages m JOIN", "an index of a few"),
    ("synced", "FROM packs", "one row per pack"),
    ("synced", "FROM summaries", "one summary stands for many messages"),
    ("synced", "FROM synced", "a range stands for many entries"),
    ("upkeep/audit", "", "the doctor reads everything"),
    ("upkeep/backup", "SELECT count(*)", "a backup copies everything"),
    ("upkeep/copies", "SELECT", "a purge reads everything once"),
    ("upkeep/holding", "SELECT", "a purge reads everything once"),
    ("upkeep/purge.", "SELECT", "a purge reads everything once"),
    ("upkeep/purged", "kind = 4", "an index of a few"),
    ("upkeep/rebase", "SELECT", "a purge reads everything once"),
    ("upkeep/records", "SELECT", "a purge reads everything once"),
];

/// Files whose statements read other databases, or a damaged one, to copy it.
const OTHERS: &[&str] = &["db/opencode", "db/untrusted", "fuzzing", "tests", "upkeep/old", "upkeep/pages"];

/// What stands for the parts that are put into statements: a file's beginning, the part, and an example.
const PARTS: &[(&str, &str, &str)] = &[
    (
        "",
        "{IS_IN_SESSION}",
        "EXISTS (SELECT 1 FROM entries e WHERE e.message_id = s.last_message AND e.conversation_id = :conversation)",
    ),
    ("index/search", "{MATCHING}", "messages_fts WHERE messages_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3"),
    ("index/search", "{columns}", "rowid"),
    ("messages/counts", "INSERT OR IGNORE INTO counts {}", "SELECT 1"),
    ("messages/counts", "o.id < e.id)\n       AND ", "o.id < e.id) AND e.conversation_id = ?1"),
    ("messages/shown", "{index}", "INDEXED BY messages_unusual"),
    ("messages/packed", "{comes}", "(timestamp, id) < (SELECT timestamp, id FROM messages WHERE id = 1)"),
    ("messages/packed", "{order}", "timestamp DESC, id DESC"),
    ("summaries/records", "{comes}", "(from_time, id) < (SELECT from_time, id FROM summaries WHERE id = 1)"),
    ("summaries/records", "{order}", "from_time DESC, id DESC"),
    ("summaries/records", "{condition}", "depth = 0"),
    (
        "synced",
        "LEFT JOIN messages m ON m.id = e.message_id\n              WHERE ",
        "LEFT JOIN messages m ON m.id = e.message_id WHERE e.id > ?1",
    ),
    ("upkeep/backup", "{table}", "messages"),
    ("", "AND {}", "AND TRUE"),
    ("", "AND NOT {}", "AND TRUE"),
    ("", "{bounds}", "?1 AND ?2"),
    ("", "{order}", "DESC"),
    ("", "{column}", "message_id"),
    ("", "{role}", "user"),
    ("", "{index}", "messages_fts"),
    ("", "{MERGED}", "5"),
    ("", "{BRANCH_ENTRY}", "*"),
    ("", "{IS_DEGRADED}", "state"),
    ("", "{IS_LEFT}", "TRUE"),
    ("", "{IS_VERSION}", "e.entry_id = ''"),
    ("", "{is_pi_s}", "c.session_id = ''"),
];

/// The string literals of a source, without its tests.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut found, mut chars) = (Vec::new(), source.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '\'' if chars.peek() == Some(&'"') => _ = chars.next(),
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
                }
                found.push(text);
            }
            _ => {}
        }
    }
    found
}

/// The statements of the product, each with its file.
fn statements() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !OTHERS.iter().any(|other| name.starts_with(other)) {
                for text in literals(&fs::read_to_string(&path).unwrap()) {
                    let first = text.split_whitespace().next().unwrap_or_default();
                    if ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&first) && text.contains(' ')
                    {
                        let here = |part: &&(&str, &str, &str)| name.starts_with(part.0);
                        let fill = |text: String, part: &(&str, &str, &str)| text.replace(part.1, part.2);
                        found.push((name.clone(), PARTS.iter().filter(here).fold(text, fill)));
                    }
                }
            }
        }
    }
    found
}

#[test]
fn no_statement_scans_a_table_that_grows() {
    let memory = Connection::open_in_memory().unwrap();
    memory.pragma_update(None, "foreign_keys", true).unwrap();
    memory.execute_batch(include_str!("db/schema.sql")).unwrap();
    memory
        .execute_batch("CREATE VIRTUAL TABLE temp.index_places USING fts5vocab(main, messages_fts, instance)")
        .unwrap();
    let (mut scans, mut used, mut checked) = (BTreeMap::new(), BTreeSet::new(), 0);
    for (file, sql) in statements() {
        let Ok(mut plan) = memory.prepare(&format!("EXPLAIN QUERY PLAN {sql}")) else {
            scans.insert(format!("{file}: {sql}"), vec!["not understood".to_owned()]);
            continue;
        };
        checked += 1;
        let steps: Vec<String> =
            plan.raw_query().mapped(|row| row.get("detail")).collect::<rusqlite::Result<_>>().unwrap();
        let is_scan = |step: &String| {
            let Some(table) = step.strip_prefix("SCAN ") else { return false };
            let is_made = table.starts_with("CONSTANT ROW")
                || table.starts_with('(')
                || ["RECURSIVE", "WITH"].iter().any(|with| sql.contains(&format!("{with} {table} ")));
            // A virtual table has indexes for a match and for rows.
            !is_made && (!table.contains("VIRTUAL TABLE") || table.ends_with("INDEX 0:"))
        };
        let found: Vec<String> = steps.into_iter().filter(is_scan).collect();
        let meant = MEANT.iter().position(|(of, part, _)| file.starts_with(of) && sql.contains(part));
        if let (false, Some(at)) = (found.is_empty(), meant) {
            used.insert(at);
        } else if !found.is_empty() {
            scans.insert(format!("{file}: {sql}"), found);
        }
    }
    assert!(scans.is_empty(), "{scans:#?}");
    assert!(checked > 150, "{checked} statements");
    let unused: Vec<_> = (0..MEANT.len()).filter(|at| !used.contains(at)).map(|at| MEANT[at]).collect();
    assert_eq!(unused, [], "needed no more");
}
