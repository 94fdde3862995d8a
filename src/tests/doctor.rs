//! `/lcm doctor`: a sound store has no findings, each kind of damage is named, and a session's file that differs is only
//! noted.

use std::fs;
use std::path::Path;
use std::time::Duration;

use regex::Regex;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::patient::Patient;
use crate::doctor::check;
use lcm_model::error::Code;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;

#[tokio::test]
async fn a_store_with_forks_edits_and_compactions_is_sound() {
    let patient = Patient::new().await;
    let report = patient.doctor().await;
    assert!(report.ends_with("\n\nEverything is in order."), "{report}");
    let names: Vec<&str> = report.lines().take(6).map(|line| line[..14].trim()).collect();
    assert_eq!(names, ["Database", "Messages", "Entries", "Summaries", "Index", "Session files"]);
    let messages = patient.ask::<i64>("SELECT count(*) FROM messages WHERE kind < 2");
    assert!(
        report.contains(&format!(
            "Messages       ok     {messages} messages, 1 record that search ignores, 1 version of edited messages\n"
        )),
        "{report}"
    );
    assert!(patient.ask::<i64>("SELECT max(depth) FROM summaries") > 0, "{report}");
    let entries = patient.ask::<i64>("SELECT count(*) FROM entries");
    assert!(report.contains(&format!("Session files  ok     1 file, {entries} entries")), "{report}");
}

#[tokio::test]
async fn every_kind_of_damage_is_named() {
    for (damage, complaint) in [
        (
            "UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind = 1",
            "the hash does not match text and position: m-",
        ),
        (
            "UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind = 3",
            "the hash does not match text and position: m-",
        ),
        ("UPDATE messages SET json = substr(json, 1, 20) WHERE id = 20", "the text can't be unpacked: m-"),
        ("UPDATE messages SET bytes = 9223372036854775807 WHERE id = 20", "the text can't be unpacked: m-"),
        ("UPDATE messages SET parent_id = 3 WHERE id = 20", "the hash does not match text and position: m-"),
        ("DELETE FROM messages WHERE id = 20", "the parent message is missing: m-"),
        ("DELETE FROM messages WHERE id = 20", "its message is missing: e20 of session one"),
        (
            "UPDATE entries SET message_id = NULL WHERE entry_id = 'e9'",
            "its message is missing: e9 of session one",
        ),
        ("DELETE FROM entries WHERE entry_id = 'e40'", "a row refers to a lost row: entries "),
        (
            "UPDATE entries SET head_id = NULL WHERE entry_id = 'e12'",
            "the recorded last message at or above is wrong: e12 of session one",
        ),
        (
            "UPDATE entries SET parent_id = (SELECT id FROM entries WHERE entry_id = 'e20') WHERE entry_id = 'e10'",
            "it comes before its parent: e10 of session one",
        ),
        (
            "UPDATE messages SET parent_id = 3 WHERE id = 20",
            "its message's parent differs from the message above it: e20",
        ),
        (
            "UPDATE entries SET target = 'e3' WHERE target = 'e8'",
            "it edits an entry that does not show the replaced message: e",
        ),
        (
            "DELETE FROM summary_sources WHERE summary_id = 1 AND ordinal = 0",
            "its hash does not match text and sources: s-",
        ),
        ("UPDATE summaries SET depth = 3 WHERE id = 1", "its hash does not match text and sources: s-"),
        (
            "UPDATE summaries SET packed = NULL, text = text || '!' WHERE id = 1",
            "its hash does not match text and sources: s-",
        ),
        (
            "UPDATE summaries SET messages = messages + 1 WHERE id = 1",
            "the recorded span does not match its sources: s-",
        ),
        ("DELETE FROM summary_sources WHERE summary_id = 1", "its hash does not match text and sources: s-"),
        ("DELETE FROM summaries WHERE id = 1", "a row refers to a lost row: "),
        (
            "UPDATE counts SET messages = -1 WHERE conversation_id = -1",
            "the recorded number of messages is wrong: the project",
        ),
        ("DELETE FROM messages_fts WHERE rowid IN (4, 5)", "the index is not complete: "),
        ("DELETE FROM summaries_fts WHERE rowid = 2", "the index is not complete: "),
        ("UPDATE messages_fts_docsize SET sz = x'00' WHERE id = 4", "the index is not complete: "),
        ("UPDATE messages_fts_data SET block = x'00010203' WHERE id > 10", "SQLite says: "),
        ("UPDATE conversations SET session_id = CAST(x'ff41' AS TEXT)", "this check did not finish: "),
    ] {
        let patient = Patient::new().await.without_file();
        patient.damage(damage);
        let report = patient.doctor().await;
        assert!(report.contains(complaint), "{damage}\n{report}");
        assert!(report.contains("\n\n/lcm doctor --rebuild makes a new database from all"), "{report}");
    }
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
    let import = format!("one.jsonl has 1 more entry (/lcm import {} adds them)", patient.file().display());
    assert!(report.contains(&import), "{report}");
}

#[tokio::test]
async fn new_ids_in_an_old_session_file_are_no_news() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    let renamed = Regex::new(r#""(id|parentId|targetId|firstKeptEntryId)":"e(\d+)""#).unwrap();
    fs::write(patient.file(), renamed.replace_all(&file, r#""$1":"n$2""#).as_bytes()).unwrap();
    let report = patient.doctor().await;
    assert!(!report.contains(" more ") && report.ends_with("in order."), "{report}");
}

#[tokio::test]
async fn a_session_file_that_was_edited_or_cut_is_noted_and_nothing_is_wrong() {
    let patient = Patient::new().await;
    let file = fs::read_to_string(patient.file()).unwrap();
    let cut: String = file.split_inclusive('\n').take(50).collect();
    for (edited, note) in [
        (
            file.replacen("question 1 ", "question 7 ", 1),
            "one.jsonl has another text in 1: what is stored stays",
        ),
        (file.replacen(r#""parentId":"e3""#, r#""parentId":"e2""#, 1), ""),
        (cut, "one.jsonl lacks "),
        (file.replacen(r#""id":"one""#, r#""id":"two""#, 1), "one.jsonl belongs to another session now"),
        ("{".into(), "one.jsonl was not read to its end: "),
    ] {
        fs::write(patient.file(), edited).unwrap();
        let report = patient.doctor().await;
        assert!(report.contains(note) && report.ends_with("in order."), "{note}: {report}");
    }
}

#[tokio::test]
async fn a_check_stops_in_the_middle_of_a_session_file() {
    let patient = Patient::new().await;
    // A line that takes long to read.
    let file = fs::OpenOptions::new().write(true).open(patient.file()).unwrap();
    file.set_len(20 << 30).unwrap();
    let cancel = CancellationToken::new();
    let (store, stop) = (patient.store.clone(), cancel.clone());
    let check =
        tokio::spawn(async move { check(&store, Some(ConversationId(2)), Path::new(""), &stop).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    cancel.cancel();
    assert_eq!(check.await.unwrap().err().map(|error| error.code()), Some(Code::Cancelled));
}

#[tokio::test]
async fn an_unknown_option_is_named() {
    let patient = Patient::new().await;
    let error = ask(&patient.store, &patient.scope, "doctor --cure").await.unwrap_err();
    assert!(error.to_string().starts_with("/lcm doctor has no --cure: it takes --rebuild; "), "{error}");
}
