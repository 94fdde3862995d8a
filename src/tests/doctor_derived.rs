//! The doctor on what follows from the messages: summaries, indexes and counts.

use super::patient::{Patient, messages_of};
use super::support::Session;
use crate::ingest::Handover;
use crate::model::parse_batch;

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
async fn counts_and_indexes_of_messages_are_rebuilt_if_their_pages_are_damaged() {
    let [unusual, first] = ["messages_unusual", "messages_first"];
    let [by_parent, by_lineage] = ["messages_by_parent", "messages_by_lineage"];
    for damaged in
        [&["counts"][..], &[unusual], &[by_parent], &[by_lineage], &[first], &["counts", unusual, by_lineage]]
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
