//! `/lcm doctor`: a sound store has no findings, each kind of damage is named, and `--fix` repairs it.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::extent::everything;
use super::support::{Compact, ScriptedModel, Session, compacted};
use crate::error::Code;
use crate::ids::{ConversationId, Hash};
use crate::ingest::Handover;
use crate::model::parse_batch;
use crate::recall::Scope;
use crate::store::{OldStore, Store};

/// A store with forks, edits and compactions, and the session's file.
pub struct Patient {
    pub store: Store,
    pub dir: tempfile::TempDir,
    scope: Scope,
}

/// The original that each patient copies: making one takes longer than checking it.
static FIRST: OnceCell<tempfile::TempDir> = OnceCell::const_new();

impl Patient {
    pub async fn new() -> Self {
        let first = FIRST
            .get_or_init(async || {
                let first = Self::make().await;
                first.store.close().await;
                first.dir
            })
            .await;
        let dir = tempfile::tempdir().unwrap();
        for name in ["project.db", "one.jsonl"] {
            fs::copy(first.path().join(name), dir.path().join(name)).unwrap();
        }
        let file = dir.path().join("one.jsonl").to_string_lossy().into_owned();
        let database = Connection::open(dir.path().join("project.db")).unwrap();
        database.execute("UPDATE conversations SET file = ?1", [file]).unwrap();
        drop(database);
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        Self { store, dir, scope: Scope::at(ConversationId(1), None) }
    }

    async fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        let patient = Self { store, dir, scope: Scope::at(ConversationId(1), None) };
        let mut session = Session::new()
            .message(json!({"role": "system", "content": "You are Pi"}))
            .chat(30, 40)
            .message(json!({"role": "bashExecution", "command": "env", "output": "SECRET", "excludeFromContext": true}))
            .tool("bash", json!({"command": "cargo test"}), &"a line of output that is long\n".repeat(100));
        patient.ingest(&session).await;
        session = session
            .entry("context_edit", json!({"targetId": "e5", "replacement": null}))
            .entry("context_edit", json!({"targetId": "e8", "replacement": {"content": "shorter"}}))
            .entry("label", json!({"targetId": "e9", "label": "here"}));
        patient.ingest(&session).await;
        for _ in 0..2 {
            session = patient.compact(session).await.chat(15, 40);
            patient.ingest(&session).await;
        }
        session = session.at("e40").user("another way").assistant("indeed").chat(3, 40);
        session = patient.compact(session).await.user("the end");
        patient.ingest(&session).await;
        fs::write(patient.file(), file_of(&session)).unwrap();
        patient
    }

    async fn ingest(&self, session: &Session) {
        let (json, file) = (session.json(), self.file().to_string_lossy().into_owned());
        let work = self.store.write(move |batch| {
            let conversation = batch.messages().conversation_row("one", Some(&file), None, 0)?;
            let handover = Handover { entries: parse_batch(&json)?, orphans: Default::default() };
            handover.prepare().fold(batch, conversation).map(drop)
        });
        work.await.unwrap();
    }

    /// Stores the session of the file under another id.
    async fn ingest_again(&self, id: &'static str) {
        let file = fs::read_to_string(self.file()).unwrap();
        let entries: Vec<String> = file.lines().skip(1).map(ToOwned::to_owned).collect();
        let work = self.store.write(move |batch| {
            let conversation = batch.messages().conversation_row(id, None, None, 0)?;
            let entries = parse_batch(&format!("[{}]", entries.join(",")))?;
            Handover { entries, orphans: Default::default() }.prepare().fold(batch, conversation).map(drop)
        });
        work.await.unwrap();
    }

    async fn compact(&self, session: Session) -> Session {
        self.ingest(&session).await;
        let test_store = super::support::TestStore::of(self.store.clone());
        let compact = Compact::new(&test_store, ConversationId(1), session.leaf(), session.leaf());
        let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
        session.entry("compaction", json!({"summary": compaction.summary, "details": compaction.details}))
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("one.jsonl")
    }

    pub fn database(&self) -> PathBuf {
        self.dir.path().join("project.db")
    }

    /// Changes the database directly.
    fn damage(&self, sql: &str) {
        let connection = Connection::open(self.database()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        Connection::open(self.database()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    async fn doctor(&self) -> String {
        ask(&self.store, &self.scope, "doctor").await.unwrap().text
    }

    async fn fix(&self) -> String {
        ask(&self.store, &self.scope, "doctor --fix").await.unwrap().text
    }

    /// Without the file only the store is checked.
    fn without_file(self) -> Self {
        fs::remove_file(self.file()).unwrap();
        self
    }

    /// Asserts these findings and no others.
    async fn complains(&self, complaints: &[&str]) {
        let report = self.doctor().await;
        let found: Vec<&str> = report.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(found.len(), complaints.len(), "{report}");
        for complaint in complaints {
            assert!(found.iter().any(|line| line.contains(complaint)), "no {complaint:?} in\n{report}");
        }
        assert!(!report.contains("Everything is in order"), "{report}");
    }

    /// Repairs, and asserts that no message is lost and nothing is wrong afterwards.
    async fn heals(&self) -> String {
        let before = messages_of(&self.database());
        let report = self.fix().await;
        let (_, after) = report.split_once("\nAfter\n").unwrap_or_else(|| panic!("{report}"));
        assert!(!after.contains("WRONG") && after.ends_with("Everything is in order."), "{report}");
        let now = messages_of(&self.database());
        assert!(before.iter().all(|message| now.contains(message)), "{report}");
        if everything() {
            assert!(self.doctor().await.ends_with("Everything is in order."));
        }
        report
    }
}

/// The session's file as Pi writes it.
fn file_of(session: &Session) -> String {
    let header = json!({"type": "session", "version": 3, "id": "one", "timestamp": "2026-11-20T09:00:00.000Z", "cwd": "/project"});
    let lines = std::iter::once(header.to_string()).chain(session.entries.iter().map(ToString::to_string));
    lines.map(|line| line + "\n").collect()
}

/// Each message: its row, and a digest of all its columns.
fn messages_of(database: &Path) -> Vec<(i64, Hash)> {
    let connection = Connection::open(database).unwrap();
    let mut query = connection
        .prepare(
            "SELECT id, format('%s %s %s %s %s %s %s %s', hex(lineage), parent_id, height, kind, role, hex(json), bytes,
                    first_passage) FROM messages ORDER BY id",
        )
        .unwrap();
    let rows = query
        .query_map([], |row| Ok((row.get(0)?, Hash::plain(row.get::<_, String>(1)?.as_bytes()))))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_store_with_forks_edits_and_compactions_is_sound() {
    let patient = Patient::new().await;
    let report = patient.doctor().await;
    assert!(report.ends_with("\n\nEverything is in order."), "{report}");
    let names: Vec<&str> = report.lines().take(7).map(|line| line[..14].trim()).collect();
    assert_eq!(names, ["Database", "Messages", "Entries", "Summaries", "Branches", "Index", "Session files"]);
    let messages = patient.ask::<i64>("SELECT count(*) FROM messages");
    assert!(report.contains(&format!("Messages       ok     {messages} messages\n")), "{report}");
    assert!(report.contains("Branches       ok     2 branches, "), "{report}");
    assert!(patient.ask::<i64>("SELECT max(depth) FROM summaries") > 0, "{report}");
    let entries = patient.ask::<i64>("SELECT count(*) FROM entries");
    assert!(report.contains(&format!("Session files  ok     1 file, {entries} entries")), "{report}");

    let before = fs::read_dir(patient.dir.path()).unwrap().count();
    assert!(patient.fix().await.ends_with("There is nothing to repair."));
    assert_eq!(fs::read_dir(patient.dir.path()).unwrap().count(), before);
}

#[tokio::test]
async fn a_damaged_text_is_restored_from_the_session_file() {
    for damage in [
        "UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind IN (1, 3)",
        // Truncated packed text can't be unpacked.
        "UPDATE messages SET json = substr(json, 1, 20) WHERE codec = 1",
        "UPDATE messages SET bytes = bytes + 1",
    ] {
        let patient = Patient::new().await;
        let before = messages_of(&patient.database());
        patient.damage(damage);
        assert_ne!(messages_of(&patient.database()), before);
        assert!(patient.doctor().await.contains("/lcm doctor --fix repairs what it can"));
        let report = patient.fix().await;
        assert!(report.contains("× text restored from a session file"), "{report}");
        assert!(report.ends_with("Everything is in order."), "{report}");
        assert_eq!(messages_of(&patient.database()), before, "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_text_without_a_session_file_is_reported_and_left() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind = 1");
    patient.complains(&["1× the lineage does not match text and position: m-"]).await;
    let before = messages_of(&patient.database());
    let report = patient.fix().await;
    assert!(report.contains("Nothing was changed. Problems of the file or the tree"), "{report}");
    assert!(report.contains("/lcm import"), "{report}");
    assert_eq!(messages_of(&patient.database()), before);
}

#[tokio::test]
async fn a_text_that_does_not_match_its_hash_is_not_restored() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    fs::write(patient.file(), file.replace("SECRET", "SECRE7")).unwrap();
    patient.damage("UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind = 1");
    let before = messages_of(&patient.database());
    let report = patient.fix().await;
    assert!(report.contains("Nothing was changed."), "{report}");
    assert_eq!(messages_of(&patient.database()), before);
}

#[tokio::test]
async fn a_changed_rendition_length_or_height_is_reported() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind = 3");
    patient.complains(&["1× the lineage does not match text and position: m-"]).await;
    patient.damage("UPDATE messages SET height = height + 1 WHERE id = 7");
    let report = patient.doctor().await;
    assert!(report.contains("× the recorded number of messages above is wrong: m-"), "{report}");
    patient.damage("UPDATE messages SET bytes = bytes + 1 WHERE kind = 1");
    assert!(patient.doctor().await.contains("1× the text's length does not match the recorded one: m-"));
}

#[tokio::test]
async fn a_message_below_a_wrong_parent_is_reported() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE messages SET parent_id = 3 WHERE id = 20");
    let report = patient.doctor().await;
    assert!(report.contains("1× the lineage does not match text and position: m-"), "{report}");
    assert!(
        report.contains("1× its message's parent differs from the message above it: e20 of session one"),
        "{report}"
    );
}

#[tokio::test]
async fn a_lost_head_is_repaired() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE entries SET head_id = NULL WHERE entry_id = 'e12'");
    patient.complains(&["1× the recorded last message at or above is wrong: e12 of session one"]).await;
    let report = patient.heals().await;
    assert!(report.contains("  1× entry with corrected last message"), "{report}");
}

#[tokio::test]
async fn wrong_counts_are_counted_again() {
    let patient = Patient::new().await.without_file();
    let recorded = "SELECT group_concat(concat_ws(' ', conversation_id, messages, visible, from_time, to_time, first_request,
                                                  lowest, highest)) FROM counts";
    let before: String = patient.ask(recorded);
    assert_eq!(before.split(',').count(), 2, "{before}");
    patient.damage(
        "UPDATE counts SET messages = -1 WHERE conversation_id = -1;
         UPDATE counts SET to_time = to_time + 1 WHERE conversation_id = 1",
    );
    patient.complains(&["2× the recorded number of messages is wrong: the project, one"]).await;
    let report = patient.heals().await;
    assert!(report.contains("  1× messages counted again"), "{report}");
    assert_eq!(patient.ask::<String>(recorded), before);
    // Those that are not known are counted, and recorded at the next checkpoint.
    patient.damage("DELETE FROM counts");
    assert!(patient.doctor().await.ends_with("Everything is in order."));
    patient.store.checkpoint().await.unwrap();
    assert_eq!(patient.ask::<String>(recorded), before);
}

#[tokio::test]
async fn a_cycle_of_entries_is_reported_and_never_followed() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE entries SET parent_id = (SELECT id FROM entries WHERE entry_id = 'e20') WHERE entry_id = 'e10'");
    let report = patient.doctor().await;
    assert!(
        report.contains("× it has no root: its ancestors form a cycle: e10 of session one, e11"),
        "{report}"
    );
    assert!(
        report.contains("Branches       ok     \n") || report.contains("Branches       ok\n"),
        "{report}"
    );
}

#[tokio::test]
async fn broken_summaries_are_restored_from_the_session_file() {
    for (damage, complaint) in [
        ("DELETE FROM summary_sources WHERE summary_id = 1 AND ordinal = 0", "a number is missing in the order of its sources: s-"),
        (
            "UPDATE summary_sources SET ordinal = 1000 WHERE summary_id = 1 AND ordinal = 0;
             UPDATE summary_sources SET ordinal = 0 WHERE summary_id = 1 AND ordinal = 1;
             UPDATE summary_sources SET ordinal = 1 WHERE summary_id = 1 AND ordinal = 1000",
            "its sources are not consecutive: s-",
        ),
        ("UPDATE summaries SET depth = 3 WHERE id = 1", "its depth does not match its sources: s-"),
        ("UPDATE summaries SET packed = NULL, text = text || '!' WHERE id = 1", "its hash does not match text and sources: s-"),
        ("UPDATE summaries SET messages = messages + 1 WHERE id = 1", "the recorded span does not match its messages: s-"),
        ("UPDATE summaries SET to_time = to_time + 1 WHERE id = 1", "the recorded span does not match its messages: s-"),
        ("DELETE FROM summary_sources WHERE summary_id = 1", "it has no sources: s-"),
        ("DELETE FROM summaries WHERE id = 1", "a source is missing: s-"),
        (
            "UPDATE summary_sources SET source_id = (SELECT max(summary_id) FROM summary_sources WHERE source_id IS NOT NULL)
              WHERE (summary_id, ordinal) = (SELECT max(summary_id), 0 FROM summary_sources WHERE source_id IS NOT NULL)",
            "its sources include the summary itself: s-",
        ),
    ] {
        let patient = Patient::new().await;
        let summaries: i64 = patient.ask("SELECT count(*) FROM summaries");
        patient.damage(damage);
        let report = patient.doctor().await;
        assert!(report.contains(complaint), "{damage}\n{report}");
        let report = patient.heals().await;
        assert!(report.contains("× summary removed, with those condensed from it"), "{report}");
        assert!(report.contains("× summary restored from session files"), "{damage}\n{report}");
        assert_eq!(patient.ask::<i64>("SELECT count(*) FROM summaries"), summaries, "{damage}\n{report}");
    }
}

#[tokio::test]
async fn summaries_below_a_lost_entry_are_restored_with_it() {
    let patient = Patient::new().await;
    let summaries: i64 = patient.ask("SELECT count(*) FROM summaries");
    patient.damage(
        "DELETE FROM entries WHERE entry_id IN ('e30', 'e31');
         UPDATE entries SET head_id = NULL WHERE entry_id = 'e12';
         UPDATE summaries SET depth = 7 WHERE id IN (2, 5)",
    );
    let report = patient.doctor().await;
    assert!(!report.contains("text differs from the file"), "{report}");
    patient.heals().await;
    assert_eq!(patient.ask::<i64>("SELECT count(*) FROM summaries"), summaries);
}

#[tokio::test]
async fn without_a_session_file_a_broken_summary_and_its_parents_are_removed_but_no_message() {
    let patient = Patient::new().await.without_file();
    let messages = messages_of(&patient.database());
    let above: i64 = patient.ask(
        "WITH RECURSIVE up (id) AS (SELECT 1 UNION SELECT s.summary_id FROM up JOIN summary_sources s ON s.source_id = up.id)
         SELECT count(*) FROM up",
    );
    assert!(above > 1);
    let summaries: i64 = patient.ask("SELECT count(*) FROM summaries");
    patient.damage("UPDATE summaries SET packed = NULL, text = 'lies' WHERE id = 1");
    patient.heals().await;
    assert_eq!(patient.ask::<i64>("SELECT count(*) FROM summaries"), summaries - above);
    assert_eq!(messages_of(&patient.database()), messages);
}

/// Each damage alone is named and repaired without a session file; `done` is the reported repair.
async fn heal_all(done: &str, cases: &[(&str, &str)]) {
    for (damage, complaint) in cases {
        let patient = Patient::new().await.without_file();
        patient.damage(damage);
        patient.complains(&[complaint]).await;
        let report = patient.heals().await;
        assert!(report.contains(&format!("  1× {done}")), "{report}");
    }
}

#[tokio::test]
async fn a_messages_metadata_is_repaired_from_its_text() {
    let complaint = "1× role, tool, tokens or time do not match the text: m-";
    let facts =
        "SELECT group_concat(concat_ws(' ', id, hex(lineage), hex(json), role, tool_name, tokens, timestamp))
                   FROM messages";
    let right: String = Patient::new().await.ask(facts);
    for damage in [
        "UPDATE messages SET role = 'assistant' WHERE id = 6",
        "UPDATE messages SET tool_name = 'ls' WHERE id = 6",
        "UPDATE messages SET tokens = -1 WHERE id = 6",
        "UPDATE messages SET tokens = tokens * 1000 WHERE id = 6",
        // The first message of a summary, whose own time is correct.
        "UPDATE messages SET timestamp = 7 WHERE id = (SELECT first_message FROM summaries WHERE id = 2)",
    ] {
        let patient = Patient::new().await.without_file();
        let summaries: i64 = patient.ask("SELECT count(*) FROM summaries");
        patient.damage(damage);
        assert_ne!(patient.ask::<String>(facts), right);
        let report = patient.doctor().await;
        assert!(report.contains(complaint), "{report}");
        let report = patient.fix().await;
        assert!(report.ends_with("\n\nEverything is in order."), "{report}");
        assert!(report.contains("  1× message with corrected role, tool, tokens or time"), "{report}");
        assert_eq!(patient.ask::<String>(facts), right);
        assert_eq!(patient.ask::<i64>("SELECT count(*) FROM summaries"), summaries);
    }
}

#[tokio::test]
async fn a_damaged_index_is_rebuilt() {
    heal_all("full-text index rebuilt", &[
        ("DELETE FROM messages_fts WHERE rowid IN (4, 5)", "2× a passage is not in the index: m-"),
        (
            "DELETE FROM messages_fts WHERE rowid = 4; INSERT INTO messages_fts (rowid, body, parts) VALUES (4, 'other', '')",
            "1× a search for a passage's words does not find it: m-",
        ),
        (
            "INSERT INTO messages_fts (rowid, body, parts) VALUES (99999, 'nobody', '')",
            "1× the index has a passage without a message: row 99999",
        ),
        ("DELETE FROM summaries_fts WHERE rowid = 2", "1× a summary is not in the index: s-"),
        (
            "DELETE FROM summaries_fts WHERE rowid = 2; INSERT INTO summaries_fts (rowid, body, parts) VALUES (2, 'other', '')",
            "1× a search for a summary's words does not find it: s-",
        ),
        (
            "INSERT INTO summaries_fts (rowid, body, parts) VALUES (99999, 'nobody', '')",
            "1× the index has a summary that does not exist: row 99999",
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_index_with_broken_internals_is_rebuilt() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE messages_fts_data SET block = x'00010203' WHERE id > 10");
    let report = patient.doctor().await;
    assert!(report.contains("Index          WRONG"), "{report}");
    patient.heals().await;
}

#[tokio::test]
async fn messages_missing_from_the_store_are_restored_from_the_session_file() {
    for lost in ["e14", "e69", "e70"] {
        let patient = Patient::new().await;
        patient.damage(&format!("DELETE FROM entries WHERE entry_id = '{lost}'"));
        let report = patient.doctor().await;
        assert!(
            report.contains(&format!("1× the file has an entry that is not stored: {lost} of session one")),
            "{report}"
        );
        patient.heals().await;
    }
}

#[tokio::test]
async fn lost_messages_are_restored_in_their_own_rows() {
    let texts = |patient: &Patient| -> Vec<String> {
        let connection = Connection::open(patient.database()).unwrap();
        let mut query = connection
            .prepare(
                "SELECT format('%s %s %s %s %s', id, hex(lineage), parent_id, role, hex(json)) FROM messages",
            )
            .unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for damage in [
        "DELETE FROM messages WHERE id = 20",
        // Several messages, including the first and the last.
        "DELETE FROM messages WHERE id IN (1, 2, 30, 31, 32, (SELECT max(id) FROM messages WHERE kind <> 3))",
        "UPDATE entries SET message_id = NULL WHERE entry_id = 'e9'",
        "UPDATE entries SET message_id = 99999 WHERE entry_id = 'e9'",
    ] {
        let patient = Patient::new().await;
        let before = texts(&patient);
        patient.damage(damage);
        let report = patient.doctor().await;
        assert!(report.contains("× the file has a message that is not stored: e"), "{damage}\n{report}");
        patient.heals().await;
        assert_eq!(texts(&patient), before, "{damage}");
    }
}

#[tokio::test]
async fn below_a_message_lost_with_its_entry_a_copy_of_the_session_adds_none() {
    let lost = "DELETE FROM messages WHERE id = (SELECT message_id FROM entries WHERE entry_id = 'e12');
                DELETE FROM entries WHERE entry_id = 'e12'";
    let patient = Patient::new().await;
    let messages: i64 = patient.ask("SELECT count(*) FROM messages");
    patient.damage(lost);
    let report = patient.fix().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    patient.ingest_again("copy").await;
    assert_eq!(patient.ask::<i64>("SELECT count(*) FROM messages"), messages);

    // If one was stored before, the repair does what it can.
    let patient = Patient::new().await;
    patient.damage(lost);
    patient.ingest_again("copy").await;
    let report = patient.fix().await;
    assert!(report.contains("1× entry reattached to its parent"), "{report}");
}

#[tokio::test]
async fn a_lost_message_is_not_restored_from_a_file_with_another_text() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    fs::write(patient.file(), file.replacen("question 1 ", "question 7 ", 1)).unwrap();
    patient.damage("DELETE FROM messages WHERE id = 2");
    let before = messages_of(&patient.database());
    let report = patient.fix().await;
    assert!(report.contains("the file has a message that is not stored"), "{report}");
    assert_eq!(messages_of(&patient.database()), before, "{report}");
}

#[tokio::test]
async fn a_lost_message_without_a_session_file_does_not_stop_the_repair() {
    for damage in
        ["DELETE FROM messages WHERE id = 20", "UPDATE entries SET message_id = 99999 WHERE entry_id = 'e9'"]
    {
        let patient = Patient::new().await.without_file();
        patient.damage(damage);
        let before = messages_of(&patient.database());
        let report = patient.fix().await;
        assert!(report.contains("its message is missing"), "{report}");
        assert_eq!(messages_of(&patient.database()), before, "{report}");
    }
}

#[tokio::test]
async fn a_lost_entry_without_a_session_file_is_not_repaired() {
    let patient = Patient::new().await.without_file();
    patient.damage("DELETE FROM entries WHERE entry_id = 'e40'");
    let report = patient.fix().await;
    assert!(
        report.contains("× the parent entry is missing: e") && report.contains("Nothing was changed."),
        "{report}"
    );
}

#[tokio::test]
async fn a_lost_top_summary_is_restored_from_the_session_file() {
    let patient = Patient::new().await;
    let summaries: i64 = patient.ask("SELECT count(*) FROM summaries");
    patient.damage("DELETE FROM summaries WHERE id = (SELECT max(id) FROM summaries)");
    patient.heals().await;
    assert_eq!(patient.ask::<i64>("SELECT count(*) FROM summaries"), summaries);
}

#[tokio::test]
async fn a_broken_index_does_not_prevent_restoring_summaries() {
    let patient = Patient::new().await;
    let summaries: i64 = patient.ask("SELECT count(*) FROM summaries");
    patient.damage(
        "UPDATE summaries_fts_data SET id = -1 WHERE id = 10; UPDATE summaries SET depth = 3 WHERE id = 1",
    );
    patient.heals().await;
    assert_eq!(patient.ask::<i64>("SELECT count(*) FROM summaries"), summaries);
}

#[tokio::test]
async fn absurd_numbers_are_repaired() {
    let patient = Patient::new().await;
    let before = messages_of(&patient.database());
    patient.damage(
        "UPDATE messages SET bytes = 9223372036854775807 WHERE id IN (1, 20);
         UPDATE summaries SET messages = 9223372036854775807, depth = 9223372036854775807, bytes = 9223372036854775807",
    );
    let report = patient.fix().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    assert_eq!(messages_of(&patient.database()), before);
}

#[tokio::test]
async fn an_absurd_number_in_a_row_costs_no_other_row() {
    let patient = Patient::new().await.without_file();
    // A link.
    patient.damage("UPDATE entries SET kind = 1099511627776 WHERE entry_id = 'e67'");
    assert!(patient.doctor().await.contains("Branches       ok     2 branches,"));
    let line = format!("export --jsonl {}", patient.dir.path().join("copy.jsonl").display());
    let written = ask(&patient.store, &patient.scope, &line).await.unwrap().text;
    assert!(written.starts_with("132 messages written"), "{written}");
    // Summaries that start on one of two branches.
    patient.damage("UPDATE summaries SET depth = -1 WHERE first_message BETWEEN 66 AND 125");
    let report = patient.doctor().await;
    assert!(report.contains("Branches       WRONG  1 branch,"), "{report}");
}

#[tokio::test]
async fn a_session_with_an_unreadable_time_goes_on_and_can_be_imported() {
    let patient = Patient::new().await.without_file();
    // SQLite rejects such a time; damage can produce it.
    patient.damage(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'conversations'",
    );
    patient.damage(
        "UPDATE conversations SET started_at = 'x', parent_session = CAST(x'ff' AS TEXT);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE name = 'conversations'",
    );
    let patient = patient.reopened().await;
    let known = patient.store.read(|view| view.messages().conversation("one")).await.unwrap();
    assert_eq!(known, Some(ConversationId(1)));
    let mut old = OldStore::open(&patient.database(), &CancellationToken::new()).unwrap();
    assert_eq!(old.sessions().unwrap().len(), 1);
    let report = patient.doctor().await;
    assert!(report.contains("Branches       ok     2 branches,"), "{report}");
    let patient = patient.without_first_pages(&["conversations"]).await;
    let error = patient.store.read(|view| view.messages().conversation("one")).await.unwrap_err();
    assert_eq!(error.code(), Code::Damaged);
}

#[tokio::test]
async fn unreadable_sessions_are_reported() {
    let patient = Patient::new().await.without_file();
    // SQLite rejects such a value; damage can produce it.
    patient.damage(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'session_id     TEXT NOT NULL', 'session_id     TEXT') WHERE name = 'conversations'",
    );
    patient.damage(
        "UPDATE conversations SET session_id = NULL; PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, 'session_id     TEXT', 'session_id     TEXT NOT NULL') WHERE name = 'conversations'",
    );
    let patient = patient.reopened().await;
    let report = patient.fix().await;
    assert!(
        report.contains("NULL value in conversations.session_id") && report.contains("Nothing was changed."),
        "{report}"
    );
}

#[tokio::test]
async fn a_session_with_an_id_that_is_not_text_is_reported() {
    let patient = Patient::new().await.without_file();
    patient.damage("UPDATE conversations SET session_id = CAST(x'ff41' AS TEXT)");
    let report = patient.fix().await;
    assert!(
        report.contains("this check did not finish") && report.contains("Nothing was changed."),
        "{report}"
    );
}

#[tokio::test]
async fn an_index_that_can_not_rank_is_rebuilt() {
    heal_all(
        "full-text index rebuilt",
        &[
            (
                "UPDATE messages_fts_docsize SET sz = x'00' WHERE id = 4",
                "1× the length of the index is unknown: row 4",
            ),
            (
                "UPDATE summaries_fts_docsize SET sz = NULL WHERE id = 4",
                "1× the length of the index is unknown: row 4",
            ),
            (
                "DELETE FROM messages_fts_data WHERE id = 1",
                "1× the row count of the index is wrong: messages",
            ),
            (
                "UPDATE summaries_fts_data SET block = x'' WHERE id = 1",
                "1× the row count of the index is wrong: summaries",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_newest_entries_of_the_open_session_may_still_be_queued() {
    let patient = Patient::new().await;
    patient.damage("DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)");
    let report = patient.doctor().await;
    assert!(
        report.contains("1 of the open session not stored yet") && report.ends_with("in order."),
        "{report}"
    );
    let other = Scope::at(ConversationId(2), None);
    let report = ask(&patient.store, &other, "doctor").await.unwrap().text;
    assert!(report.contains("1× the file has an entry that is not stored: e"), "{report}");
}

#[tokio::test]
async fn where_a_file_repeats_an_id_either_entry_may_be_stored() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    let stored = file.lines().find(|line| line.contains(r#""id":"e10""#)).unwrap();
    let under = |parent: &str| {
        stored
            .replace(r#""parentId":"e9""#, &format!(r#""parentId":"{parent}""#))
            .replace("question", "query")
    };
    for lines in [[&under("e3"), stored], [stored, &under("e3")], [stored, &under("nowhere")]] {
        fs::write(patient.file(), file.replacen(stored, &lines.join("\n"), 1)).unwrap();
        let report = patient.doctor().await;
        assert!(report.ends_with("Everything is in order."), "{lines:?}: {report}");
    }
    fs::write(patient.file(), file.replacen(stored, &[under("e3"), under("e4")].join("\n"), 1)).unwrap();
    patient.complains(&["1× an entry's parent differs from the file: e10 of session one"]).await;
}

#[tokio::test]
async fn a_session_file_with_another_text_is_reported_and_the_store_is_unchanged() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    fs::write(patient.file(), file.replacen("question 1 ", "question 7 ", 1)).unwrap();
    patient.complains(&["1× an entry's text differs from the file: e2 of session one"]).await;
    fs::write(patient.file(), file.replacen(r#""parentId":"e3""#, r#""parentId":"e2""#, 1)).unwrap();
    patient.complains(&["1× an entry's parent differs from the file: e4 of session one"]).await;
    fs::write(patient.file(), file.replacen(r#""id":"one""#, r#""id":"two""#, 1)).unwrap();
    let report = patient.doctor().await;
    assert!(
        report.contains("one.jsonl belongs to another session now") && report.ends_with("in order."),
        "{report}"
    );
}

#[tokio::test]
async fn the_backup_is_the_unrepaired_database() {
    let patient = Patient::new().await;
    patient.damage("UPDATE entries SET head_id = NULL WHERE entry_id = 'e12'; DELETE FROM summary_sources WHERE summary_id = 1");
    let before = messages_of(&patient.database());
    let edges: i64 = patient.ask("SELECT count(*) FROM summary_sources");
    let report = patient.fix().await;
    let path =
        report.lines().find_map(|line| line.strip_prefix("A copy of the database as it was: ")).unwrap();
    assert!(path.contains("project.db.20") && path.ends_with("Z.bak"), "{path}");
    let backup = Connection::open(path).unwrap();
    let number = |sql: &str| backup.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(backup.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(), "ok");
    assert_eq!(number("SELECT count(*) FROM entries WHERE entry_id = 'e12' AND head_id IS NULL"), 1);
    assert_eq!(number("SELECT count(*) FROM summary_sources"), edges);
    assert_eq!(messages_of(Path::new(path)), before);
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_file_with_another_application_id_or_format_is_reported() {
    let patient = Patient::new().await.without_file();
    patient.damage("PRAGMA application_id = 7; PRAGMA user_version = 99");
    patient
        .complains(&[
            "the file lacks this program's application id",
            "the format differs from this version's: 99 and ",
        ])
        .await;
}

#[tokio::test]
async fn a_sound_file_of_an_older_format_is_sound_before_and_after_its_migration() {
    let second = "DROP INDEX messages_by_parent;
         CREATE UNIQUE INDEX messages_by_parent ON messages (ifnull(parent_id, 0), lineage);
         PRAGMA user_version = 2";
    let first = "DROP INDEX messages_by_parent; DROP INDEX messages_by_lineage;
         CREATE UNIQUE INDEX messages_by_hash ON messages (lineage);
         PRAGMA user_version = 1; PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET name = 'sqlite_autoindex_messages_1', sql = NULL WHERE name = 'messages_by_hash';
         UPDATE sqlite_schema SET sql = replace(sql, 'lineage       BLOB NOT NULL,       ', 'lineage       BLOB NOT NULL UNIQUE,')
          WHERE name = 'messages'; PRAGMA writable_schema = RESET";
    for (statements, format) in [(first, 1), (second, 2)] {
        let patient = Patient::new().await;
        patient.store.close().await;
        let before = messages_of(&patient.database());
        patient.damage(statements);
        let apart = Store::read_only_at(&patient.database(), &CancellationToken::new()).unwrap().store;
        let report = ask(&apart, &patient.scope, "doctor").await.unwrap().text;
        assert!(report.starts_with(&format!("Database       ok     format {format}\n")), "{report}");
        assert!(report.ends_with("Everything is in order."), "{report}");
        apart.close().await;

        let patient = patient.reopened().await;
        let report = patient.doctor().await;
        assert!(report.starts_with("Database       ok     format 3\n"), "{report}");
        assert!(report.ends_with("Everything is in order."), "{report}");
        assert_eq!(messages_of(&patient.database()), before);
    }
}

#[tokio::test]
async fn a_damaged_file_is_not_written_to_and_the_remedy_is_named() {
    let patient = Patient::new().await;
    patient.store.checkpoint().await.unwrap();
    let root: i64 =
        patient.ask("SELECT rootpage FROM sqlite_schema WHERE name = 'summaries_by_first_message'");
    patient.damage(&format!(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = {root} WHERE name = 'messages_by_passage'"
    ));
    let patient = patient.reopened().await;
    let report = patient.fix().await;
    assert!(report.contains("Database       WRONG") && report.contains("Nothing was changed."), "{report}");
    assert!(
        report.contains("quit Pi, move ") && report.contains("with the path of the old database"),
        "{report}"
    );
    assert!(!report.contains("--fix mends"), "{report}");
}

#[tokio::test]
async fn counts_and_indexes_of_messages_are_rebuilt_if_their_pages_are_damaged() {
    let [unusual, by_parent, by_lineage] = ["messages_unusual", "messages_by_parent", "messages_by_lineage"];
    for damaged in
        [&["counts"][..], &[unusual], &[by_parent], &[by_lineage], &["counts", unusual, by_lineage]]
    {
        let patient = Patient::new().await.without_first_pages(damaged).await;
        let report = patient.doctor().await;
        assert!(report.contains("SQLite can't read what follows from the messages: "), "{report}");
        assert!(report.contains("/lcm doctor --fix repairs what it can"), "{report}");
        let report = patient.heals().await;
        assert!(report.contains("1× counts and indexes of messages rebuilt"), "{report}");
        // Storing goes on.
        let json = Session::new().chat(3, 10).json();
        let work = patient.store.write(move |batch| {
            let conversation = batch.messages().conversation_row("two", None, None, 0)?;
            let handover = Handover { entries: parse_batch(&json)?, orphans: Default::default() };
            handover.prepare().fold(batch, conversation).map(drop)
        });
        work.await.unwrap();
        assert_eq!(patient.ask::<String>("PRAGMA integrity_check"), "ok");
        assert!(patient.doctor().await.contains("Database       ok"));
    }
}

#[tokio::test]
async fn nothing_is_made_anew_in_a_file_with_other_damage() {
    let patient = Patient::new().await.without_first_pages(&["counts", "messages_by_passage"]).await;
    let before = fs::read(patient.database()).unwrap();
    let report = patient.fix().await;
    assert!(report.contains("Nothing was changed.") && report.contains("quit Pi, move "), "{report}");
    assert!(report.contains("can't read what follows from the messages: counts"), "{report}");
    assert!(fs::read(patient.database()).unwrap() == before);
    let files = patient.dir.path().read_dir().unwrap().map(|file| file.unwrap().path());
    let copies = files.filter(|file| file.extension().is_some_and(|ending| ending == "bak"));
    assert_eq!(copies.count(), 0);
}

#[tokio::test]
async fn an_unknown_option_is_named() {
    let patient = Patient::new().await;
    let error = ask(&patient.store, &patient.scope, "doctor --cure").await.unwrap_err();
    assert!(error.to_string().starts_with("/lcm doctor has no --cure: it takes --fix; "), "{error}");
}

impl Patient {
    /// Overwrites the first page of some tables and indexes.
    async fn without_first_pages(self, names: &[&str]) -> Self {
        self.store.close().await;
        let mut bytes = fs::read(self.database()).unwrap();
        for name in names {
            let root = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'");
            let root = usize::try_from(self.ask::<i64>(&root)).unwrap();
            bytes[(root - 1) * 4096..root * 4096].fill(7);
        }
        fs::write(self.database(), bytes).unwrap();
        self.reopened().await
    }

    /// As after a restart: nothing about the file is cached.
    async fn reopened(self) -> Self {
        self.store.close().await;
        let store = Store::open(Some(self.dir.path()), "project", "/project").unwrap();
        Self { store, ..self }
    }
}
