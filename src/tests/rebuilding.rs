//! `/lcm doctor --rebuild`: whatever is damaged, everything that can be read is in the new database, and the old file stays.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::doctor_fuzz::Dice;
use super::import::{Machine, lines};
use super::patient::{Patient, messages_of, rebuild, texts_of};
use super::support::Session;
use crate::doctor;
use lcm_ingest::import::{Home, Progress};
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;
use lcm_store::{Purge, Store, View};
use lcm_testing::share;

/// Databases to damage in `npm run test:all`.
const SEEDS: u32 = 400;

/// What a rebuild must keep or bring back, by lineage and hash.
const CONTENT: &str = "SELECT group_concat(x) FROM (
    SELECT hex(lineage) || kind || role || tokens || timestamp AS x FROM messages
    UNION ALL SELECT hex(hash) || messages || from_time || to_time FROM summaries
    UNION ALL SELECT e.entry_id || e.kind || coalesce(a.entry_id, '-') || coalesce(hex(m.lineage), '-')
        || coalesce(hex(h.lineage), '-') || coalesce(e.target, '-') FROM entries e LEFT JOIN entries a ON a.id = e.parent_id
        LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN messages h ON h.id = e.head_id
    UNION ALL SELECT e.entry_id || hex(s.hash) FROM carried c JOIN entries e ON e.id = c.entry_id
        JOIN summaries s ON s.id = c.summary_id
    ORDER BY 1)";

/// Each is damaged, and the session's file is there.
#[tokio::test]
async fn with_the_sessions_file_everything_is_as_before() {
    let right: String = Patient::new().await.ask(CONTENT);
    for damage in [
        "",
        "UPDATE messages SET codec = 0, json = zeroblob(bytes) WHERE kind IN (1, 3)",
        "UPDATE messages SET json = substr(json, 1, 20) WHERE codec = 1",
        "UPDATE messages SET bytes = bytes + 1",
        "UPDATE messages SET tokens = tokens * 1000 WHERE id = 6",
        "UPDATE messages SET timestamp = 7 WHERE id = 6",
        "DELETE FROM messages WHERE id IN (1, 2, 30, 31, 32, (SELECT max(id) FROM messages WHERE kind <> 3))",
        "DELETE FROM messages",
        "DELETE FROM entries WHERE entry_id IN ('e14', 'e30', 'e31', 'e69', 'e70')",
        "DELETE FROM messages WHERE id = 12; DELETE FROM entries WHERE entry_id = 'e12'",
        "DELETE FROM entries",
        "DELETE FROM conversations",
        "DELETE FROM conversations; DELETE FROM entries",
        "UPDATE entries SET head_id = NULL WHERE entry_id = 'e12'",
        "UPDATE entries SET message_id = NULL WHERE entry_id = 'e9'",
        "UPDATE entries SET message_id = 99999 WHERE entry_id = 'e9'",
        "UPDATE entries SET message_id = message_id + 10, head_id = 16829 WHERE entry_id = 'e20'",
        "UPDATE entries SET parent_id = NULL WHERE entry_id = 'e20'; DELETE FROM entries WHERE entry_id = 'e19'",
        "UPDATE entries SET parent_id = (SELECT id FROM entries WHERE entry_id = 'e9') WHERE entry_id = 'e20'",
        "UPDATE entries SET message_id = message_id + 10 WHERE entry_id = 'e20'; DELETE FROM entries WHERE entry_id = 'e19'",
        "DELETE FROM summaries WHERE id = 1",
        "DELETE FROM summaries; DELETE FROM summary_sources",
        "UPDATE summaries SET packed = NULL, text = text || '!' WHERE id = 1",
        "UPDATE summaries SET messages = 9223372036854775807, bytes = 9223372036854775807",
        "DELETE FROM messages_fts WHERE rowid IN (4, 5)",
        "UPDATE messages_fts_data SET block = x'00010203' WHERE id > 10",
        "DELETE FROM counts",
    ] {
        let patient = Patient::new().await;
        patient.damage(damage);
        let (patient, report) = patient.heals().await;
        assert_eq!(patient.ask::<String>(CONTENT), right, "{damage}\n{report}");
        assert_eq!(
            patient.ask::<String>("SELECT group_concat(session_id) FROM conversations"),
            "one",
            "{damage}"
        );
        let is_filled = report.contains(" from session files. If you had purged ");
        let lacks = damage.contains("DELETE FROM messages ") || damage.contains("DELETE FROM entries");
        assert!(is_filled || !lacks, "{damage}\n{report}");
        assert!(!(is_filled && damage.is_empty()), "{report}");
    }
}

#[tokio::test]
async fn without_the_sessions_file_what_is_readable_stays() {
    for (damage, lost) in [
        ("", 0),
        ("UPDATE messages SET json = substr(json, 1, 20) WHERE id = 20", 1),
        ("DELETE FROM messages WHERE id IN (20, 40)", 2),
        ("DELETE FROM entries WHERE entry_id = 'e40'", 1),
        ("DELETE FROM entries", 0),
        ("DELETE FROM conversations", 0),
        ("UPDATE entries SET kind = 1099511627776 WHERE entry_id = 'e20'", 1),
        ("UPDATE entries SET message_id = message_id + 10 WHERE entry_id = 'e20'", 1),
        ("UPDATE entries SET head_id = NULL WHERE entry_id = 'e12'", 0),
        ("UPDATE entries SET entry_id = 'e30' WHERE entry_id = 'e31'", 0),
        (
            "UPDATE entries SET parent_id = (SELECT id FROM entries WHERE entry_id = 'e20') WHERE entry_id = 'e10'",
            0,
        ),
        ("UPDATE summaries SET packed = NULL, text = 'lies' WHERE id = 1", 0),
    ] {
        let patient = Patient::new().await.without_file();
        let mut before = texts_of(&patient.store).await;
        let loose =
            if damage.contains("entry_id = 'e31'") { "DROP INDEX sqlite_autoindex_entries_1" } else { "" };
        if loose.is_empty() {
            patient.damage(damage);
            before = texts_of(&patient.store).await;
        }
        let (patient, report) = patient.rebuilt().await;
        assert_eq!(report.contains(" could not be read."), lost > 0, "{damage}\n{report}");
        assert!(before.is_subset(&texts_of(&patient.store).await), "{damage}\n{report}");
        let checked = patient.doctor().await;
        assert!(checked.ends_with("in order."), "{damage}\n{checked}");
    }
}

#[tokio::test]
async fn the_old_file_stays_as_it_was_and_is_named() {
    let patient = Patient::new().await;
    patient.damage("UPDATE entries SET head_id = NULL WHERE entry_id = 'e12'");
    // By these, sessions are in order.
    const TIMES: &str = "SELECT started_at || ' ' || seen_at FROM conversations";
    patient.damage("UPDATE conversations SET started_at = 1700000000001, seen_at = 1700000000002");
    let before = messages_of(&patient.database());
    let (patient, report) = patient.rebuilt().await;
    assert_eq!(patient.ask::<String>(TIMES), "1700000000001 1700000000002");
    assert!(
        report.starts_with(&format!("{} was rebuilt: 1 session, ", patient.database().display())),
        "{report}"
    );
    let path = report.lines().find_map(|line| line.strip_prefix("The old file remains: ")).unwrap();
    assert!(path.contains("project.db.20") && path.ends_with("Z.bak"), "{path}");
    assert_eq!(messages_of(Path::new(path)), before);
    let old = Connection::open(path).unwrap();
    let sql = "SELECT count(*) FROM entries WHERE entry_id = 'e12' AND head_id IS NULL";
    assert_eq!(old.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    drop(old);
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(patient.database()).unwrap().permissions())
            & 0o777,
        0o600
    );
    // A purge names it, and nothing temporary is left.
    let backups = patient.store.read(|view| view.upkeep().backups()).await.unwrap();
    assert_eq!(backups, [Path::new(path)]);
    let files = fs::read_dir(patient.dir.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    assert!(files.into_iter().all(|name| !name.contains("part")));
}

#[tokio::test]
async fn a_backup_is_named_when_nothing_can_be_read() {
    let patient = Patient::new().await.without_file();
    patient.store.close().await;
    let backup = patient.dir.path().join("project.db.20261120T091200000Z.bak");
    fs::rename(patient.database(), &backup).unwrap();
    fs::write(patient.database(), [0x5a; 8192]).unwrap();
    let (_, report) = patient.rebuilt().await;
    let remedy = format!("No message could be read: /lcm import {} brings a backup back.", backup.display());
    assert!(report.contains(&remedy), "{report}");
}

#[tokio::test]
async fn an_edited_or_trimmed_session_file_takes_nothing_away() {
    let patient = Patient::new().await;
    let before = texts_of(&patient.store).await;
    let file = fs::read_to_string(patient.file()).unwrap();
    let trimmed: String = file.replace("question 1 ", "question 7 ").split_inclusive('\n').take(40).collect();
    fs::write(patient.file(), trimmed).unwrap();
    let (patient, _) = patient.heals().await;
    assert_eq!(texts_of(&patient.store).await, before);
    // A lost text is not taken from a file for another one.
    patient.damage("DELETE FROM messages WHERE id = 2");
    let (patient, _) = patient.heals().await;
    let after = texts_of(&patient.store).await;
    assert!(
        after.iter().any(|text| text.contains("question 7 ")),
        "what the file says now is stored, as it is all there is"
    );
}

#[tokio::test]
async fn what_was_purged_stays_purged_in_any_of_the_files() {
    let purge = async |patient: &Patient| {
        let message = patient.store.read(|view| view.upkeep().purgeable_at(ConversationId(1), "e6"));
        let message = message.await.unwrap().unwrap();
        patient.store.write(move |batch| batch.upkeep().purge(&Purge::Message(message))).await.unwrap();
        patient.store.vacuum().await.unwrap();
    };
    let patient = Patient::new().await;
    let secret = patient.store.read(|view| {
        let message = view.upkeep().purgeable_at(ConversationId(1), "e6")?.unwrap();
        view.messages().json_of(message)
    });
    let secret = secret.await.unwrap();
    purge(&patient).await;
    let (patient, report) = patient.heals().await;
    assert!(!texts_of(&patient.store).await.contains(&secret), "{report}");
    assert!(patient.doctor().await.contains(", 1 message purged"));

    // The session's row is lost: its file names it.
    patient.damage("DELETE FROM conversations");
    let (patient, report) = patient.rebuilt().await;
    assert!(!texts_of(&patient.store).await.contains(&secret), "{report}");

    // Nothing of the session is left.
    let patient = Patient::new().await;
    let all = patient.store.write(|batch| batch.upkeep().purge(&Purge::Session(ConversationId(1))));
    all.await.unwrap();
    patient.store.vacuum().await.unwrap();
    let (patient, report) = patient.rebuilt().await;
    assert!(!texts_of(&patient.store).await.contains(&secret), "{report}");

    // A file that was set aside still has it.
    let patient = Patient::new().await;
    patient.store.close().await;
    let second = patient.dir.path().join("project-2.db");
    fs::copy(patient.database(), &second).unwrap();
    let patient = patient.reopened().await;
    assert_eq!(patient.store.place(), Some(second.as_path()));
    purge(&patient).await;
    let (patient, _) = patient.rebuilt().await;
    assert!(!second.exists() && !texts_of(&patient.store).await.contains(&secret));
    assert!(patient.doctor().await.ends_with("in order."));
}

#[tokio::test]
async fn a_history_that_is_open_elsewhere_is_left_alone() {
    let patient = Patient::new().await;
    let other = Store::open(Some(patient.dir.path()), "project", "/project").unwrap();
    let error = rebuild(&patient.store, patient.dir.path()).await.unwrap_err();
    assert!(error.to_string().contains("project.db open: quit it, and try again"), "{error}");
    other.close().await;
    assert_eq!(fs::read_dir(patient.dir.path()).unwrap().count(), 2);
}

/// Which messages are in a file whose damage is this.
async fn rebuilt_from(
    damage: impl FnOnce(&mut Vec<u8>, &dyn Fn(&str) -> Vec<usize>),
    with_file: bool,
) -> (usize, usize, String) {
    let patient = Patient::new().await;
    let patient = if with_file { patient } else { patient.without_file() };
    let said = texts_of(&patient.store).await;
    patient.store.close().await;
    let database = patient.database();
    let connection = Connection::open(&database).unwrap();
    let pages_of = |name: &str| -> Vec<usize> {
        let sql = "SELECT pageno FROM dbstat WHERE name = ?1 ORDER BY pagetype = 'leaf', pageno";
        let mut query = connection.prepare(sql).unwrap();
        query.query_map([name], |row| row.get(0)).unwrap().map(|page| page.unwrap()).collect()
    };
    let mut bytes = fs::read(&database).unwrap();
    damage(&mut bytes, &pages_of);
    drop(connection);
    fs::write(&database, bytes).unwrap();
    let (patient, report) = patient.reopened().await.rebuilt().await;
    let checked = patient.doctor().await;
    assert!(checked.ends_with("in order."), "{report}\n{checked}");
    let found = texts_of(&patient.store).await;
    (said.len(), said.intersection(&found).count(), report)
}

fn spoil(bytes: &mut [u8], page: usize) {
    bytes[(page - 1) * 4096..page * 4096].fill(0x5a);
}

#[tokio::test]
async fn one_damaged_page_of_each_kind_costs_only_its_own_rows() {
    for with_file in [true, false] {
        // What no row is in: the schema, and the roots of the trees.
        for table in
            ["sqlite_schema", "messages", "entries", "summaries", "messages_by_parent", "messages_fts_data"]
        {
            let (said, found, report) =
                rebuilt_from(|bytes, pages| spoil(bytes, pages(table)[0]), with_file).await;
            assert_eq!(found, said, "{table}: {report}");
        }
        for table in ["messages", "entries", "conversations"] {
            let (said, found, report) =
                rebuilt_from(|bytes, pages| spoil(bytes, *pages(table).last().unwrap()), with_file).await;
            match (table, with_file) {
                ("messages", false) => assert!(
                    said > found && said < found + 40 && report.contains("could not be read"),
                    "{report}"
                ),
                _ => assert_eq!(found, said, "{table}: {report}"),
            }
        }
        // Cut in the middle of the messages.
        let cut = |bytes: &mut Vec<u8>, pages: &dyn Fn(&str) -> Vec<usize>| {
            let pages = pages("messages");
            bytes.truncate(pages[pages.len() / 2] * 4096 - 100);
        };
        let (said, found, report) = rebuilt_from(cut, with_file).await;
        assert!(if with_file { found == said } else { found * 3 > said }, "{found} of {said}: {report}");
        assert!(report.contains(" of the old file were cut off or overwritten"), "{report}");
    }
}

/// Which message an entry shows, and what it is below, no hash covers.
const TREE: &str = "SELECT group_concat(x, x'0a') FROM (
    SELECT c.session_id || ' ' || e.entry_id || ' ' || e.kind || ' ' || coalesce(a.entry_id, '-') || ' '
        || coalesce(hex(m.lineage), '-') AS x
      FROM entries e JOIN conversations c ON c.id = e.conversation_id LEFT JOIN entries a ON a.id = e.parent_id
      LEFT JOIN messages m ON m.id = e.message_id ORDER BY 1)";

#[tokio::test]
async fn random_bytes_anywhere_are_healed_from_the_sessions_file() {
    let right: String = Patient::new().await.ask(TREE);
    for seed in 0..u64::from(share(SEEDS)) {
        let mut dice = Dice(seed + 1);
        let patient = Patient::new().await;
        patient.store.close().await;
        let mut bytes = fs::read(patient.database()).unwrap();
        // Its first bytes say that the file is ours.
        let at = 100 + dice.below(bytes.len() - 100);
        let length = [100, 500, 4096, 9000][dice.below(4)].min(bytes.len() - at);
        bytes[at..at + length].fill_with(|| u8::try_from(dice.below(256)).unwrap());
        fs::write(patient.database(), bytes).unwrap();
        let (patient, report) = patient.reopened().await.rebuilt().await;
        let case = format!("seed {seed}: {length} bytes at {at}\n{report}");
        let lines =
            |tree: &str| tree.lines().map(ToOwned::to_owned).collect::<std::collections::BTreeSet<_>>();
        let (found, wanted) = (lines(&patient.ask::<String>(TREE)), lines(&right));
        let wrong: Vec<_> = found.symmetric_difference(&wanted).take(6).collect();
        assert!(wrong.is_empty(), "{case}\n{wrong:#?}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_any_more_is_rebuilt_from_session_files() {
    let (said, found, report) = rebuilt_from(|bytes, _| bytes.fill(0x5a), true).await;
    assert_eq!(found, said, "{report}");
    assert!(report.matches("The old file remains: ").count() == 2, "{report}");
}

/// A line that could not be read at first comes late, between older ones.
#[tokio::test]
async fn a_gap_that_is_filled_later_moves_no_branch_and_a_rebuild_puts_it_in_place() {
    let machine = Machine::new();
    let session = Session::new().chat(20, 5);
    let path = machine.write("a.jsonl", "one", &session.entries);
    let whole = fs::read_to_string(&path).unwrap();
    let without = |text: &str, id: &str| text.replacen(&format!("\"{id}\""), &format!("\"{id}"), 1);
    let later = without(&whole, "e21");
    fs::write(&path, without(&later, "e9")).unwrap();
    machine.run("").await;
    fs::write(&path, later).unwrap();
    machine.run("").await;
    fs::write(&path, whole).unwrap();
    let checked = async || {
        let scope = Scope::at(ConversationId::NONE, None);
        ask(&machine.home.store, &scope, "doctor").await.unwrap().text
    };
    let says = "a.jsonl has 2 entries stored below another one than there, and 1 entry not stored: /lcm doctor --rebuild puts them in place";
    assert!(checked().await.contains(says), "{}", checked().await);
    let said =
        "1 session: 1 message new, 39 known already, 1 session in pieces: /lcm doctor --rebuild joins them";
    assert_eq!(machine.run("").await, said);
    let on_branch = |view: &View<'_>| {
        let one = view.messages().conversation("one")?.unwrap();
        let last = view.messages().last_entry(one)?.unwrap();
        Ok((view.messages().branch(one, &last)?.len(), last))
    };
    assert_eq!(machine.home.store.read(on_branch).await.unwrap(), (19, "e40".to_owned()));
    let says =
        "a.jsonl has 2 entries stored below another one than there: /lcm doctor --rebuild puts them in place";
    assert!(checked().await.contains(says), "{}", checked().await);
    let (progress, cancel) = (Progress::default(), CancellationToken::new());
    doctor::rebuild(&machine.home, &machine.folders, &progress, &cancel).await.unwrap();
    let store = Store::of_project(Some(&machine.home.db_dir), &machine.home.cwd).unwrap();
    assert_eq!(store.read(on_branch).await.unwrap(), (40, "e40".to_owned()));
}

/// The doctor compares with the file that has most.
#[tokio::test]
async fn a_gap_in_a_copy_is_filled_by_the_whole_file_from_another_path() {
    let machine = Machine::new();
    let session = Session::new().chat(20, 5);
    let path = machine.write("a.jsonl", "one", &session.entries);
    let whole = fs::read_to_string(&path).unwrap();
    let [copy, intact] = ["copy.jsonl", "intact.jsonl"].map(|name| machine.dir.path().join(name));
    fs::write(&copy, whole.replacen("\"e21\"", "\"e21", 1)).unwrap();
    fs::write(&intact, whole).unwrap();
    fs::remove_file(path).unwrap();
    machine.run(&copy.display().to_string()).await;
    let said =
        "1 session: 1 message new, 39 known already, 1 session in pieces: /lcm doctor --rebuild joins them";
    assert_eq!(machine.run(&intact.display().to_string()).await, said);
    let (progress, cancel) = (Progress::default(), CancellationToken::new());
    doctor::rebuild(&machine.home, &machine.folders, &progress, &cancel).await.unwrap();
    let store = Store::of_project(Some(&machine.home.db_dir), &machine.home.cwd).unwrap();
    let on_branch = |view: &View<'_>| {
        let one = view.messages().conversation("one")?.unwrap();
        Ok(view.messages().branch(one, "e40")?.len())
    };
    assert_eq!(store.read(on_branch).await.unwrap(), 40);
}

/// Old files have no ids for entries: their times tell what a damaged copy lacked.
#[tokio::test]
async fn a_gap_in_an_old_file_is_filled_by_the_whole_one() {
    let machine = Machine::new();
    let said = |n: usize| {
        let time = format!("2025-11-20T09:00:0{}.000Z", n / 2);
        json!({"type": "message", "timestamp": time, "message": {"role": "user", "content": format!("said {n}"), "timestamp": n}})
    };
    let header = json!({"type": "session", "id": "one", "cwd": machine.home.cwd});
    let path = machine.folders.session_dir.join("one.jsonl");
    let entries: Vec<_> = (0..12).map(said).collect();
    fs::write(&path, lines(&header, &[&entries[..4], &entries[6..]].concat())).unwrap();
    assert_eq!(machine.run("").await, "1 session: 10 messages new, 0 known already");
    fs::write(&path, lines(&header, &entries)).unwrap();
    let said =
        "1 session: 2 messages new, 10 known already, 1 session in pieces: /lcm doctor --rebuild joins them";
    assert_eq!(machine.run("").await, said);
    let checked =
        ask(&machine.home.store, &Scope::at(ConversationId::NONE, None), "doctor").await.unwrap().text;
    assert!(checked.contains("1 entry stored below another one than there"), "{checked}");
    let (progress, cancel) = (Progress::default(), CancellationToken::new());
    doctor::rebuild(&machine.home, &machine.folders, &progress, &cancel).await.unwrap();
    let store = Store::of_project(Some(&machine.home.db_dir), &machine.home.cwd).unwrap();
    let machine = Machine { home: Home { store, ..machine.home.clone() }, ..machine };
    let texts: Vec<String> = entries.iter().map(|entry| entry["message"].to_string()).collect();
    assert_eq!(machine.messages("one").await, texts);
}

/// Old files have no ids for entries.
#[tokio::test]
async fn a_rebuild_knows_sessions_whose_rows_are_lost_by_what_was_said() {
    let machine = Machine::new();
    for session in ["one", "two"] {
        let said = |n: usize| json!({"type": "message", "message": {"role": "user", "content": format!("{session} {n}"), "timestamp": n}});
        let header = json!({"type": "session", "id": session, "cwd": machine.home.cwd});
        let path = machine.folders.session_dir.join(format!("{session}.jsonl"));
        fs::write(path, lines(&header, &(1..6).map(said).collect::<Vec<_>>())).unwrap();
    }
    machine.run("").await;
    let before = [machine.messages("one").await, machine.messages("two").await];
    let connection = Connection::open(machine.home.store.place().unwrap()).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM conversations").unwrap();
    drop(connection);
    let (progress, cancel) = (Progress::default(), CancellationToken::new());
    doctor::rebuild(&machine.home, &machine.folders, &progress, &cancel).await.unwrap();
    let store = Store::of_project(Some(&machine.home.db_dir), &machine.home.cwd).unwrap();
    let machine = Machine { home: Home { store, ..machine.home.clone() }, ..machine };
    assert_eq!(machine.sessions().await.len(), 2);
    assert_eq!([machine.messages("one").await, machine.messages("two").await], before);
}
