//! Databases that nobody but an attacker writes.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::import::Machine;
use lcm_ingest::foreign::agent;
use lcm_ingest::import::{Progress, Source, import};
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;
use lcm_store::OpenCode;
use lcm_testing::everything;

/// A machine with a database of OpenCode's: one session with one message, changed by `sql`.
fn opencode(sql: &str) -> (Machine, PathBuf) {
    let machine = Machine::new();
    let path = machine.at("opencode.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    let tables =
        "CREATE TABLE session (id, parent_id, directory, version, title, time_created, time_updated);
         CREATE TABLE message (id, session_id, time_created, data);
         CREATE TABLE part (id, message_id, data);
         INSERT INTO session VALUES ('ses_1', NULL, '/p', '1', 'one', 1, 2);
         INSERT INTO message VALUES ('msg_1', 'ses_1', 1, '{\"role\":\"user\",\"time\":{\"created\":1}}');
         INSERT INTO part VALUES ('prt_1', 'msg_1', '{\"type\":\"text\",\"text\":\"hello pelican\"}');";
    database.execute_batch(tables).unwrap();
    database.execute_batch(sql).unwrap();
    (machine, path)
}

/// What an import of such a database reports.
async fn imported(sql: &str) -> String {
    let (machine, path) = opencode(sql);
    machine.run(&format!("--from opencode \"{}\"", path.display())).await
}

#[tokio::test]
async fn opencodes_tables_are_read_only_if_they_are_plain() {
    assert_eq!(imported("").await, "1 session: 1 message new, 0 known already");
    for (table, sql) in [
        ("part", "CREATE TABLE part (id, message_id, data AS (hex(zeroblob(1000))))"),
        ("part", "CREATE TABLE part (id, message_id, data AS (hex(zeroblob(1000))) STORED)"),
        ("part", "CREATE VIEW part AS SELECT 'p' AS id, 'msg_1' AS message_id, '{}' AS data"),
        ("part", "CREATE VIRTUAL TABLE part USING fts5(id, message_id, data)"),
        ("session_message", "CREATE TABLE session_message (id PRIMARY KEY, Type AS ('x')) WITHOUT ROWID"),
        (
            "session",
            "CREATE TABLE session (id, parent_id, directory, version, title AS (hex(zeroblob(1000))), time_created, time_updated)",
        ),
        ("part", "CREATE TABLE part (id, message_id, data, RowId)"),
    ] {
        let report = imported(&format!("DROP TABLE IF EXISTS {table}; {sql}")).await;
        let expected = format!(
            "opencode.db: OpenCode's database can't be read: its table {table} is none that OpenCode makes"
        );
        assert!(report.contains(&expected), "{sql}: {report}");
    }
    // Columns that are not read do not matter.
    let harmless = "ALTER TABLE part ADD COLUMN kind AS (json_extract(data, '$.type'))";
    assert_eq!(imported(harmless).await, "1 session: 1 message new, 0 known already");
}

#[tokio::test]
async fn a_row_that_belongs_to_nothing_is_left_out_whatever_its_number() {
    for row in [7, i64::MIN] {
        let lost = format!(
            "INSERT INTO part (rowid, id, message_id, data) VALUES ({row}, 'prt_2', 'msg_none', '{{\"type\":\"text\",\"text\":\"lost\"}}')"
        );
        let report = imported(&lost).await;
        assert_eq!(report, "1 session: 1 message new, 0 known already, 1 unreadable row or more left out");
    }
}

#[tokio::test]
async fn a_database_gives_no_more_than_its_size() {
    const ROWS: &str = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 400)";
    let long = "x".repeat(20_000);
    // Every row has the default of a column that was added later, which the file has once.
    let parts = format!(
        "{ROWS} INSERT INTO part (id, message_id) SELECT 'prt_' || i, 'msg_1' FROM n;
         ALTER TABLE part RENAME COLUMN data TO old;
         ALTER TABLE part ADD COLUMN data DEFAULT '{{\"type\":\"text\",\"text\":\"{long}\"}}'"
    );
    let sessions = format!(
        "{ROWS} INSERT INTO session (id, directory, time_created) SELECT 'ses_' || i, '/p', i FROM n;
         ALTER TABLE session RENAME COLUMN version TO old; ALTER TABLE session ADD COLUMN version DEFAULT '{long}'"
    );
    let report = imported(&parts).await;
    let expected = "OpenCode's database can't be read: it gives more text than a file of its size holds";
    assert!(report.contains(expected), "{report}");
    let report = imported(&sessions).await;
    assert!(report.contains("none of its sessions can"), "{report}");
    // A hole gives no text.
    let (machine, path) = opencode(&parts);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(20 << 30).unwrap();
    let report = machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    assert!(report.contains(expected), "{report}");
    // Sorting by it would fill the disk before a row is read.
    let (_machine, path) = opencode(&format!(
        "{ROWS} INSERT INTO part (id, message_id, data) SELECT i, 'msg_1', '{{}}' FROM n;
         ALTER TABLE part RENAME COLUMN id TO old; ALTER TABLE part ADD COLUMN id text DEFAULT '{long}'"
    ));
    let refusal = OpenCode::open(&path, &CancellationToken::new()).unwrap().rows("ses_1").unwrap_err();
    assert!(refusal.to_string().contains(expected), "{refusal}");
}

#[tokio::test]
async fn many_messages_are_read_without_an_index() {
    let many = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO message SELECT 'msg_' || i, 'ses_1', i, '{\"role\":\"user\"}' FROM n;
         INSERT INTO part SELECT 'prt_' || substr(id, 5), id, '{\"type\":\"text\",\"text\":\"a\"}' FROM message
         WHERE id <> 'msg_1'";
    assert_eq!(imported(many).await, "1 session: 20,000 messages new, 0 known already");
}

#[tokio::test]
async fn parts_of_a_repeated_message_are_read_once_in_the_order_of_their_ids() {
    let repeated = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO message SELECT 'msg_1', 'ses_1', i, '{\"role\":\"user\"}' FROM n;
         INSERT INTO part SELECT 'prt_' || (10000 - rowid), 'msg_1', json_object('type', 'text', 'text', 'a' || rowid) FROM message";
    let (machine, path) = opencode(repeated);
    assert_eq!(OpenCode::open(&path, &CancellationToken::new()).unwrap().rows("ses_1").unwrap().len(), 4001);
    let report = machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    assert_eq!(report, "1 session: 2,001 messages new, 0 known already");
    let said = said(&machine).await;
    assert_eq!((&said[0], &said[1], &said[2000]), (&"hello pelican".into(), &"a2000".into(), &"a1".into()));
}

/// What the user said in the only session, in order.
async fn said(machine: &Machine) -> Vec<Value> {
    (machine.messages(&machine.sessions().await[0]).await.iter())
        .map(|json| serde_json::from_str(json).unwrap())
        .filter(|message: &Value| message["role"] == "user")
        .map(|message| message["content"][0]["text"].clone())
        .collect()
}

#[tokio::test]
async fn opencodes_messages_of_both_kinds_are_read_once_and_in_order() {
    let both = "CREATE TABLE session_message (id, session_id, type, seq, time_created, data);
         INSERT INTO session_message VALUES ('msg_4', 'ses_1', 'user', 3, 7, '{\"text\":\"third\"}'),
             ('msg_3', 'ses_1', 'user', 2, 9, '{\"text\":\"second\"}'),
             ('msg_2', 'ses_1', 'user', 1, 8, '{\"text\":\"first\"}'),
             ('msg_1', 'ses_1', 'user', 0, 1, '{\"text\":\"again\"}');
         INSERT INTO message VALUES ('msg_9', 'ses_1', 99, '{\"role\":\"user\",\"time\":{\"created\":99}}');
         INSERT INTO part VALUES ('prt_9', 'msg_9', '{\"type\":\"text\",\"text\":\"last\"}')";
    let (machine, path) = opencode(both);
    let report = machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    assert_eq!(report, "1 session: 5 messages new, 0 known already");
    assert_eq!(said(&machine).await, ["hello pelican", "first", "second", "third", "last"]);
}

#[tokio::test]
async fn one_unreadable_row_of_opencodes_costs_no_other() {
    let sessions = "INSERT INTO session VALUES (x'fffe', 3.5, 7, NULL, x'00', 0, 0), (NULL, NULL, NULL, NULL, NULL, 0, 0), (7, NULL, '/p', '1', 't', 0, 0)";
    assert_eq!(
        imported(sessions).await,
        "1 session: 1 message new, 0 known already, 3 unreadable rows or more left out"
    );
    let below = "INSERT INTO message VALUES (x'62', 'ses_1', 0, '{}'), ('msg_2', 'ses_1', 0, x'ff00');
                 INSERT INTO part VALUES ('prt_2', 'msg_1', NULL), (7, 'msg_1', 3.7),
                     ('prt_3', 'msg_1', '{\"type\":\"text\",\"text\":\"and a heron\"}')";
    assert_eq!(
        imported(below).await,
        "1 session: 2 messages new, 0 known already, 4 unreadable rows or more left out"
    );
    let lost = "INSERT INTO message VALUES ('msg_8', 'ses_404', 0, '{}'), ('msg_9', NULL, 0, '{}');
                INSERT INTO part VALUES ('prt_8', 'msg_404', '{}'), ('prt_9', NULL, '{}')";
    assert_eq!(
        imported(lost).await,
        "1 session: 1 message new, 0 known already, 4 unreadable rows or more left out"
    );
    // Writing it takes long.
    if everything() {
        let long = "INSERT INTO part VALUES ('prt_0', 'msg_1', hex(zeroblob(129000000)));
                    INSERT INTO part VALUES ('prt_2', 'msg_1', '{\"type\":\"text\",\"text\":\"and a heron\"}')";
        let report = imported(long).await;
        assert_eq!(report, "1 session: 2 messages new, 0 known already, 1 unreadable row or more left out");
    }
    let id = "printf('%.5000c', 'x')";
    let long = format!(
        "INSERT INTO session VALUES ({id}, NULL, '/p', '1', 't', 0, 0);
         INSERT INTO message VALUES ({id}, 'ses_1', 0, '{{}}'), ('msg_2', {id}, 0, '{{}}');
         INSERT INTO part VALUES ({id}, 'msg_1', '{{}}'), ('prt_3', {id}, '{{}}')"
    );
    assert_eq!(
        imported(&long).await,
        "1 session: 1 message new, 0 known already, 5 unreadable rows or more left out"
    );
    for (sql, why) in [
        ("DROP TABLE part", "no such table: part"),
        ("ALTER TABLE part DROP COLUMN data", "no such column: data"),
    ] {
        let report = imported(sql).await;
        assert!(report.contains(&format!("OpenCode's database can't be read: {why})")), "{report}");
    }
    let (machine, path) = opencode("");
    std::fs::write(&path, "").unwrap();
    let report = machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    assert!(report.contains("opencode.db: it is not a database of OpenCode)"), "{report}");
    // A file with nothing else says so.
    let report = imported("UPDATE session SET id = x'00'").await;
    assert!(
        report.contains("opencode.db: OpenCode's database can't be read: none of its sessions can"),
        "{report}"
    );
}

#[tokio::test]
async fn a_command_of_opencodes_that_fails_counts_as_failed() {
    let part = |n: usize, exit: i64| {
        let state = json!({"status": "completed", "input": {"command": "make"}, "output": "pelican", "metadata": {"exit": exit}});
        let part = json!({"type": "tool", "callID": format!("call_{n}"), "tool": "bash", "state": state});
        format!("INSERT INTO part VALUES ('prt_{n}', 'msg_2', '{part}');")
    };
    let says = "INSERT INTO message VALUES ('msg_2', 'ses_1', 2, '{\"role\":\"assistant\",\"time\":{\"created\":2,\"completed\":3}}');";
    let (machine, path) = opencode(&format!("{says}{}{}", part(2, 0), part(3, 2)));
    machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    let scope = Scope::at(ConversationId(0), None);
    let line = "search pelican --role toolResult --count outcome --project";
    let counted = ask(&machine.home.store, &scope, line).await.unwrap().answer;
    let groups = [("error", 1), ("ok", 1)].map(|(key, n)| (json!(key), json!(n)));
    let found = counted["groups"].as_array().unwrap().iter();
    let found: Vec<_> = found.map(|group| (group["key"].clone(), group["messages"].clone())).collect();
    assert_eq!(found, groups);
}

#[tokio::test]
async fn a_damaged_page_of_opencodes_costs_only_what_is_behind_it() {
    let many = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO part SELECT 'prt_' || i, 'msg_1', '{\"type\":\"text\",\"text\":\"a\"}' FROM n";
    let (machine, path) = opencode(many);
    let mut file = std::fs::read(&path).unwrap();
    let page = file.windows(7).position(|bytes| bytes == b"prt_500").unwrap() / 4096 * 4096;
    file[page..][..4096].fill(0);
    std::fs::write(&path, file).unwrap();
    let report = machine.run(&format!("--from opencode \"{}\"", path.display())).await;
    assert!(report.starts_with("1 session: "), "{report}");
    assert!(
        report.ends_with(" messages new, 0 known already, 1 unreadable row or more left out"),
        "{report}"
    );
}

#[tokio::test]
async fn looking_for_opencodes_sessions_stops_at_once() {
    let (mut machine, path) = opencode("");
    let folder = machine.at("home/.local/share/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::rename(path, folder.join("opencode.db")).unwrap();
    machine.folders.home = Some(machine.at("home"));
    let source = Source::Agents {
        agents: vec![agent("opencode").unwrap()],
        path: None,
        everything: true,
        since: None,
    };
    let cancel = CancellationToken::new();
    cancel.cancel();
    let report =
        import(&machine.home, &machine.folders, &source, &Progress::default(), &cancel).await.unwrap();
    assert_eq!((report.files, report.stopped), (0, Some(0)));
}
