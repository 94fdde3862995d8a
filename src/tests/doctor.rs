//! `/lcm doctor`: a sound store has no findings, and each kind of damage is named.

use super::asking::ask;
use super::patient::Patient;

#[tokio::test]
async fn a_store_with_forks_edits_and_compactions_is_sound() {
    let patient = Patient::new().await;
    let report = patient.doctor().await;
    assert!(report.ends_with("\n\nEverything is in order."), "{report}");
    let names: Vec<&str> = report.lines().take(5).map(|line| line[..14].trim()).collect();
    assert_eq!(names, ["Database", "Messages", "Entries", "Summaries", "Index"]);
    let messages = patient.ask::<i64>("SELECT count(*) FROM messages WHERE kind < 2");
    assert!(
        report.contains(&format!(
            "Messages       ok     {messages} messages, 1 prompt, 1 version of edited messages\n"
        )),
        "{report}"
    );
    assert!(patient.ask::<i64>("SELECT max(depth) FROM summaries") > 0, "{report}");
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
async fn an_unknown_option_is_named() {
    let patient = Patient::new().await;
    let error = ask(&patient.store, &patient.scope, "doctor --cure").await.unwrap_err();
    assert!(error.to_string().starts_with("/lcm doctor has no --cure: it takes --rebuild; "), "{error}");
}
