//! The doctor on damaged rows of messages, entries and sessions.

use std::fs;

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::patient::{Patient, messages_of};
use crate::error::Code;
use crate::ids::ConversationId;
use crate::store::OldStore;

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
