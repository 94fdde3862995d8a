//! `/lcm doctor`: a sound store has no findings, differences from a session file are named, and a file beyond
//! repair stays as it is.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::patient::{Patient, messages_of};
use crate::doctor::Doctor;
use crate::error::Code;
use crate::ids::ConversationId;
use crate::recall::Scope;
use crate::store::Store;

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
async fn below_a_deleted_line_an_entry_keeps_its_stored_parent() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    let deleted = file.split_inclusive('\n').find(|line| line.contains(r#""id":"e9""#)).unwrap();
    let file = file.replacen(deleted, "", 1);
    fs::write(patient.file(), &file).unwrap();
    let report = patient.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    fs::write(patient.file(), file.replacen(r#""parentId":"e9""#, r#""parentId":"gone""#, 1)).unwrap();
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
async fn a_check_stops_in_the_middle_of_a_session_file() {
    let patient = Patient::new().await;
    // A line that takes long to read.
    let file = fs::OpenOptions::new().write(true).open(patient.file()).unwrap();
    file.set_len(20 << 30).unwrap();
    let cancel = CancellationToken::new();
    let doctor = Doctor { store: patient.store.clone(), open: ConversationId(2), cancel: cancel.clone() };
    let check = tokio::spawn(async move { doctor.check().await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    cancel.cancel();
    assert_eq!(check.await.unwrap().err().map(|error| error.code()), Some(Code::Cancelled));
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
    let third = "DROP INDEX messages_first; PRAGMA user_version = 3";
    let second = "DROP INDEX messages_first; DROP INDEX messages_by_parent;
         CREATE UNIQUE INDEX messages_by_parent ON messages (ifnull(parent_id, 0), lineage);
         PRAGMA user_version = 2";
    let first = "DROP INDEX messages_first; DROP INDEX messages_by_parent; DROP INDEX messages_by_lineage;
         CREATE UNIQUE INDEX messages_by_hash ON messages (lineage);
         PRAGMA user_version = 1; PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET name = 'sqlite_autoindex_messages_1', sql = NULL WHERE name = 'messages_by_hash';
         UPDATE sqlite_schema SET sql = replace(sql, 'lineage       BLOB NOT NULL,       ', 'lineage       BLOB NOT NULL UNIQUE,')
          WHERE name = 'messages'; PRAGMA writable_schema = RESET";
    for (statements, format) in [(first, 1), (second, 2), (third, 3)] {
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
        assert!(report.starts_with("Database       ok     format 4\n"), "{report}");
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
