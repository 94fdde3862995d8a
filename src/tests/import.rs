//! `/lcm import`: session files into the store.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asking::ask;
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use crate::commands::import::{COMMAND, Importer, offer};
use crate::commands::{Answer, Rest};
use lcm_ingest::import::{Folders, Home, Progress, Source, import};
use lcm_model::config::session_folder;
use lcm_model::dag::Step;
use lcm_model::ids::ConversationId;
use lcm_model::text::count;
use lcm_recall::Scope;
use lcm_store::{Store, real_path};

/// A machine with one project, its store, and Pi's session folders.
pub(super) struct Machine {
    pub dir: tempfile::TempDir,
    pub home: Home,
    pub folders: Folders,
}

/// The answer to `/lcm import <line>`.
pub async fn ask_import(
    importer: &Importer,
    home: &Home,
    folders: &Folders,
    line: &str,
) -> lcm_model::error::Result<Answer> {
    importer.answer(home, folders, &Rest::typed(&COMMAND, line)?).await
}

impl Machine {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["project", "sessions/--project--", "sessions/--other--", "db"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let cwd = real_path(&at("project"));
        let home = Home {
            store: Store::of_project(Some(&at("db")), &cwd).unwrap(),
            cwd,
            identity: lcm_model::config::ProjectIdentity::Cwd,
            db_dir: at("db"),
            session_id: "open".into(),
        };
        let folders = Folders {
            session_dir: at("sessions/--project--"),
            all_sessions: at("sessions"),
            home: Some(at("home")),
        };
        Self { dir, home, folders }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a session file of this project.
    pub fn write(&self, name: &str, id: &str, entries: &[Value]) -> PathBuf {
        let header = json!({"type": "session", "version": 3, "id": id, "cwd": self.home.cwd});
        let path = self.folders.session_dir.join(name);
        fs::write(&path, lines(&header, entries)).unwrap();
        path
    }

    pub async fn run(&self, line: &str) -> String {
        ask_import(&Importer::default(), &self.home, &self.folders, line).await.unwrap().text
    }

    /// Session, entry, parent entry and lineage of everything stored, as text.
    pub async fn digest(&self) -> Vec<String> {
        let read = self.home.store.read(|view| {
            let mut rows = Vec::new();
            for session in view.messages().session_ids()? {
                let conversation = view.messages().conversation(&session)?.unwrap();
                for entry in view.messages().entry_ids(conversation)? {
                    let branch = view.messages().branch(conversation, &entry)?;
                    rows.push(format!("{session} {entry} {:?}", branch.last().map(|entry| &entry.step)));
                }
            }
            rows.sort();
            Ok(rows)
        });
        read.await.unwrap()
    }

    /// The ids of all sessions.
    pub async fn sessions(&self) -> Vec<String> {
        let read = self.home.store.read(|view| {
            let sessions = view.messages().session_ids()?;
            Ok(sessions)
        });
        read.await.unwrap()
    }

    /// The JSON of a session's messages, in order.
    pub async fn messages(&self, session: &str) -> Vec<String> {
        let session = session.to_owned();
        let read = self.home.store.read(move |view| {
            let conversation = view.messages().conversation(&session)?.unwrap();
            let mut messages = Vec::new();
            for entry in view.messages().entry_ids(conversation)? {
                let branch = view.messages().branch(conversation, &entry)?;
                if let Some((Step::Message(message), row)) =
                    branch.last().map(|entry| (&entry.step, entry.row))
                {
                    messages.push((row.0, view.messages().message(message.id)?.json));
                }
            }
            messages.sort();
            Ok(messages.into_iter().map(|(_, json)| json).collect())
        });
        read.await.unwrap()
    }
}

pub fn lines(header: &Value, entries: &[Value]) -> String {
    let mut out = format!("{header}\n");
    for entry in entries {
        writeln!(out, "{entry}").unwrap();
    }
    out
}

#[tokio::test]
async fn an_import_gives_the_same_rows_as_a_live_session_and_can_be_repeated() {
    let session = Session::new()
        .entry("model_change", json!({"modelId": "m"}))
        .chat(40, 300)
        .entry("custom_message", json!({"customType": "note", "content": "hi"}))
        .at("e9")
        .user("another way");
    let machine = Machine::new();
    machine.write("a.jsonl", "one", &session.entries);
    assert_eq!(machine.run("").await, "1 session: 82 messages new, 0 known already");
    let imported = machine.digest().await;
    assert_eq!(machine.run("").await, "1 session: 0 messages new, 82 known already");
    assert_eq!(machine.digest().await, imported);

    let live = Machine::new();
    let handed = session.json();
    let write = live.home.store.write(move |batch| {
        let conversation = batch.messages().conversation_row("one", None, None, 0)?;
        let entries = lcm_model::parse_batch(&handed)?;
        let handover = lcm_ingest::Handover { entries, ..Default::default() };
        handover.prepare().store(batch, conversation).map(drop)
    });
    write.await.unwrap();
    assert_eq!(live.digest().await, imported);
}

#[tokio::test]
async fn entries_edited_since_the_last_import_are_counted_and_stay_as_stored() {
    let session = Session::new().chat(6, 30);
    let machine = Machine::new();
    let file = machine.write("a.jsonl", "one", &session.entries);
    machine.run("").await;
    let (stored, text) = (machine.digest().await, fs::read_to_string(&file).unwrap());
    let edited = text.replacen("\"role\":\"user\"", "\"role\":\"user\",\"x\":1", 2);
    assert_ne!(edited, text);
    fs::write(&file, &edited).unwrap();
    let report = machine.run("").await;
    assert!(
        report.ends_with(" known already; 2 entries differ from what is stored: the stored ones stay"),
        "{report}"
    );
    assert_eq!(machine.digest().await, stored);

    // A file that repeats an id: both messages are stored, so neither differs.
    let (_, repeated) = edited.split_once('\n').unwrap();
    fs::write(machine.at("twice.jsonl"), text.replacen("\"one\"", "\"two\"", 1) + repeated).unwrap();
    for _ in 0..2 {
        let report = machine.run(&machine.at("twice.jsonl").display().to_string()).await;
        assert!(report.ends_with(" known already"), "{report}");
    }
}

#[tokio::test]
async fn the_demo_session_is_stored_byte_for_byte() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/session.jsonl");
    let text = fs::read_to_string(&demo).unwrap();
    // Cut out of the lines: the message is an entry's last field.
    let expected: Vec<String> = (text.lines())
        .filter_map(|line| {
            let (kind, rest) = line.strip_prefix(r#"{"type":""#)?.split_once('"')?;
            match kind {
                "message" => Some(rest.split_once(r#","message":"#)?.1.strip_suffix('}')?.to_owned()),
                "custom_message" => {
                    let timestamp = rest.find(r#""timestamp""#)?;
                    Some(format!(r#"{{"type":"custom_message",{}"#, &rest[timestamp..]))
                }
                _ => None,
            }
        })
        .collect();
    assert_eq!(expected.len(), 189);
    let machine = Machine::new();
    let report = machine.run(&format!("\"{}\"", demo.display())).await;
    assert_eq!(report, "1 session: 189 messages new, 0 known already");
    let stored = machine.messages("019a4f3c-2b10-7c55-9d0e-6b1f0c4a7e21").await;
    for (stored, expected) in stored.iter().zip(&expected) {
        assert_eq!(stored, expected);
    }
}

#[tokio::test]
async fn a_line_from_another_program_becomes_what_pi_would_hand_over() {
    let machine = Machine::new();
    let path = machine.write("a.jsonl", "one", &[]);
    let odd = "{ \"type\": \"message\",\t\"id\": \"a\", \"parentId\": null, \"message\": { \"role\": \"user\", \
               \"content\": \"\\u00e9\\/\\ud800\", \"2\": 1.0, \"1\": 1e2, \"content\": \"last\\u0021\" } }\r\n";
    let header = fs::read_to_string(&path).unwrap();
    fs::write(&path, header + odd).unwrap();
    machine.run("").await;
    assert_eq!(machine.messages("one").await, [r#"{"1":100,"2":1,"role":"user","content":"last!"}"#]);
}

#[tokio::test]
async fn a_fork_adds_only_its_own_messages() {
    let parent = Session::new().chat(5, 10);
    let fork = parent.clone().at("e6").user("another way").assistant("so be it");
    let machine = Machine::new();
    machine.write("2_parent.jsonl", "parent", &parent.entries);
    machine.write("3_fork.jsonl", "fork", &fork.entries);
    assert_eq!(machine.run("").await, "2 sessions: 12 messages new, 10 known already");
}

#[tokio::test]
async fn summaries_are_restored_without_a_model() {
    let session = Session::new().chat(12, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compaction = compacted(
        Compact::new(&store, conversation, session.leaf(), "e23").run(&ScriptedModel::helpful()).await,
    );
    let made = compaction.details.summaries.len();
    assert!(made > 1);
    let entry =
        json!({"summary": compaction.summary, "firstKeptEntryId": "e23", "details": compaction.details});
    let machine = Machine::new();
    machine.write("a.jsonl", "one", &session.entry("compaction", entry).entries);
    let report = machine.run("").await;
    assert!(report.ends_with(&format!(" known already, {made} summaries")), "{report}");
    let kept = machine
        .home
        .store
        .read(|view| Ok(view.summaries().totals(view.messages().conversation("one")?.unwrap())?.summaries));
    assert_eq!(kept.await.unwrap(), made, "summaries are restored");
}

#[tokio::test]
async fn a_value_that_cannot_be_costs_its_summary_alone() {
    let session = Session::new().chat(12, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compaction = compacted(
        Compact::new(&store, conversation, session.leaf(), "e23").run(&ScriptedModel::helpful()).await,
    );
    let entry =
        json!({"summary": compaction.summary, "firstKeptEntryId": "e23", "details": compaction.details});
    let made = compaction.details.summaries.len();
    for (field, value) in [
        ("tokens", json!(i64::MAX)),
        ("tokens", json!(u64::MAX)),
        ("tokens", json!(1_u64 << 62)),
        ("tokens", json!(-1)),
        ("tokens", json!(1e300)),
        ("tokens", json!("many")),
        ("createdAt", json!(i64::MAX)),
        ("createdAt", json!(i64::MIN)),
        ("depth", json!(u32::MAX)),
        ("depth", json!(1_u64 << 40)),
        ("promptVersion", json!(-5)),
        ("usage", json!({"input": u64::MAX, "cost": {"total": 1e308}})),
        ("sources", json!(7)),
    ] {
        let mut damaged = entry.clone();
        damaged["details"]["summaries"][0][field] = value.clone();
        let machine = Machine::new();
        let leaf = session.clone().entry("compaction", damaged).user("after it");
        machine.write("a.jsonl", "one", &leaf.entries);
        machine.write("b.jsonl", "two", &Session::new().user("another").entries);
        let report = machine.run("").await;
        let read = machine.home.store.read(|view| {
            let one = view.messages().conversation("one")?.unwrap();
            let times = view.messages().session_facts(one).is_ok();
            Ok((view.summaries().totals(one)?.summaries, times))
        });
        let (summaries, is_readable) = read.await.unwrap();
        assert!(summaries <= made && is_readable, "{field} {value}: {summaries}");
        let all = format!("2 sessions: 26 messages new, 0 known already, {}", count(summaries, "summary"));
        assert_eq!(report, all.trim_end_matches(", 0 summaries"), "{field} {value}");
        let scope = Scope::at(ConversationId(1), Some("e23".into()));
        for line in ["doctor", "stats", "context", "tree"] {
            ask(&machine.home.store, &scope, line).await.unwrap();
        }
        // The same session, opened in Pi.
        let live = TestStore::new();
        live.ingest("one", &leaf).await;
        let said = live.store.read(|view| view.messages().project_messages()).await.unwrap();
        assert_eq!(said, 25, "{field} {value}");
    }
}

#[tokio::test]
async fn a_version_1_file_gets_stable_ids_and_the_messages_of_the_migrated_file() {
    let said = |text: &str| json!({"role": "user", "content": text, "timestamp": 5});
    let time = "2025-12-01T09:00:00.000Z";
    let entries = [
        json!({"type": "model_change", "timestamp": time, "provider": "p", "modelId": "m"}),
        json!({"type": "message", "timestamp": time, "message": said("one")}),
        json!({"type": "message", "timestamp": time, "message": {"role": "hookMessage", "customType": "c", "content": "two"}}),
        json!({"type": "compaction", "timestamp": time, "summary": "s", "firstKeptEntryIndex": 2}),
        json!({"type": "message", "timestamp": time, "message": said("three")}),
    ];
    let machine = Machine::new();
    let header =
        json!({"type": "session", "id": "old", "timestamp": time, "cwd": machine.home.cwd, "provider": "p"});
    let path = machine.folders.session_dir.join("a.jsonl");
    fs::write(&path, lines(&header, &entries)).unwrap();
    assert_eq!(machine.run("").await, "1 session: 3 messages new, 0 known already");
    let expected = [
        r#"{"role":"user","content":"one","timestamp":5}"#,
        r#"{"role":"custom","customType":"c","content":"two"}"#,
        r#"{"role":"user","content":"three","timestamp":5}"#,
    ];
    assert_eq!(machine.messages("old").await, expected);
    assert_eq!(machine.run("").await, "1 session: 0 messages new, 3 known already");

    // As Pi rewrites it, with random ids.
    let mut above = Value::Null;
    let migrated: Vec<Value> = (entries.iter().zip(1..))
        .map(|(entry, n)| {
            let mut entry = entry.clone();
            entry["id"] = json!(format!("{n:08x}"));
            entry["parentId"] = std::mem::replace(&mut above, entry["id"].clone());
            if entry["message"]["role"] == "hookMessage" {
                entry["message"]["role"] = json!("custom");
            }
            entry
        })
        .collect();
    machine.write("a.jsonl", "old", &migrated);
    assert_eq!(machine.run("").await, "1 session: 0 messages new, 3 known already");
    // It lacks nothing, though the entries that it names have other ids.
    let scope = Scope::at(ConversationId::NONE, None);
    let checked = ask(&machine.home.store, &scope, "doctor").await.unwrap().text;
    assert!(checked.contains("\nSession files  ok     1 file, 5 entries\n"), "{checked}");
}

#[tokio::test]
async fn broken_lines_are_counted_and_the_rest_is_stored() {
    let session = Session::new().chat(4, 10);
    let machine = Machine::new();
    let path = machine.write("a.jsonl", "one", &session.entries);
    let mut text: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(ToOwned::to_owned).collect();
    // The third entry is damaged, and the last one cut off by a crash.
    text[3].truncate(40);
    text[8].truncate(40);
    text.insert(4, String::new());
    text.insert(5, "null".into());
    fs::write(&path, text.join("\n")).unwrap();
    assert_eq!(
        machine.run("").await,
        "1 session: 6 messages new, 0 known already, 1 broken line (a.jsonl: line 4), 1 unfinished last line left for the next import"
    );
    // As in Pi, the children of the broken line become roots.
    let read = machine.home.store.read(|view| {
        let conversation = view.messages().conversation("one")?.unwrap();
        Ok(view
            .messages()
            .branch(conversation, "e7")?
            .iter()
            .map(|entry| entry.entry_id.clone())
            .collect::<Vec<_>>())
    });
    assert_eq!(read.await.unwrap(), ["e4", "e5", "e6", "e7"]);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_named_with_its_size_and_what_to_do() {
    let machine = Machine::new();
    let session = Session::new().chat(4, 10);
    let records = ["session_meta", "response_item"].map(|kind| {
        let said =
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hay"}]});
        let about = json!({"id": "c", "cwd": machine.home.cwd});
        let payload = if kind == "session_meta" { about } else { said };
        json!({"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload}).to_string()
    });
    for (name, from, read) in
        [("a.jsonl", "", "8 messages"), ("rollout-c.jsonl", "--from codex ", "2 messages")]
    {
        let path = machine.write(name, "one", &session.entries);
        let known =
            if from.is_empty() { fs::read_to_string(&path).unwrap() } else { records.join("\n") + "\n" };
        fs::write(&path, &known).unwrap();
        // A hole takes no room.
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.set_len(known.len() as u64 + 300_000_000).unwrap();
        let last = known.lines().last().unwrap();
        (&file).write_all(format!("\n{last}\n").as_bytes()).unwrap();
        let answer = machine.run(&format!("{from}{}", path.display())).await;
        let line = known.lines().count() + 1;
        assert!(
            answer.contains(read) && answer.contains(&format!("1 broken line ({name}: line {line})")),
            "{answer}"
        );
        let told = format!(
            "Line {line} of {name} has 300.0 MB, and only lines of up to 256.0 MB are read: shorten it in a copy"
        );
        assert!(answer.contains(&told), "{answer}");
    }
}

#[tokio::test]
async fn a_stopped_import_continues() {
    let machine = Machine::new();
    for n in 0..3 {
        machine.write(&format!("{n}.jsonl"), &format!("s{n}"), &Session::new().chat(60 + n, 900).entries);
    }
    let (progress, cancel) = (Progress::default(), CancellationToken::new());
    cancel.cancel();
    let stopped =
        import(&machine.home, &machine.folders, &Source::Project, &progress, &cancel).await.unwrap();
    assert_eq!((stopped.stopped, stopped.new), (Some(0), 0));

    let whole = Machine::new();
    for n in 0..3 {
        whole.write(&format!("{n}.jsonl"), &format!("s{n}"), &Session::new().chat(60 + n, 900).entries);
    }
    whole.run("").await;
    let cancel = CancellationToken::new();
    let running = import(&machine.home, &machine.folders, &Source::Project, &progress, &cancel);
    let stopping = async {
        while progress.messages.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(running, stopping);
    assert!(report.unwrap().stopped.is_some());
    let report = machine.run("").await;
    assert!(report.starts_with("3 sessions: ") && !report.contains("; stopped"), "{report}");
    assert_eq!(machine.digest().await, whole.digest().await);
}

#[tokio::test]
async fn closing_the_session_stops_the_import() {
    let machine = Machine::new();
    machine.write("a.jsonl", "one", &Session::new().chat(2, 5).entries);
    let importer = Importer::default();
    importer.close().await;
    assert_eq!(
        ask_import(&importer, &machine.home, &machine.folders, "").await.unwrap().text,
        "0 sessions: 0 messages new, 0 known already; stopped after 0 of 1 file: the same command continues"
    );
}

#[test]
fn asking_for_the_progress_stops_no_import_from_starting() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (machine, importer, done) = (Machine::new(), Importer::default(), AtomicBool::new(false));
    let answers: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                importer.progress();
            }
        });
        let run = async || ask_import(&importer, &machine.home, &machine.folders, "").await.unwrap().text;
        let answers = (0..200).map(|_| runtime.block_on(run())).collect();
        done.store(true, Ordering::Relaxed);
        answers
    });
    assert!(answers.iter().all(|answer| answer.starts_with("There are no older sessions")), "{answers:?}");
}

#[tokio::test]
async fn all_imports_each_session_into_its_projects_store() {
    let machine = Machine::new();
    fs::create_dir(machine.at("other")).unwrap();
    machine.write("a.jsonl", "mine", &Session::new().chat(2, 5).entries);
    for (id, cwd) in [("theirs", machine.at("other")), ("gone", PathBuf::from("/nowhere/at/all"))] {
        let header = json!({"type": "session", "version": 3, "id": id, "cwd": cwd});
        let path = machine.at("sessions/--other--").join(format!("{id}.jsonl"));
        fs::write(path, lines(&header, &Session::new().user(id).entries)).unwrap();
    }
    fs::write(machine.at("sessions/--other--/notes.jsonl"), "{\"a\":1}\n").unwrap();
    assert_eq!(
        machine.run("--all").await,
        "3 sessions of 3 projects: 6 messages new, 0 known already, 1 file could not be read (notes.jsonl: it is not a \
         Pi session; another agent's needs --from)"
    );
    fs::create_dir(machine.at("project/none")).unwrap();
    assert!(machine.run("none").await.ends_with("; another agent's need --from."));
    for (id, cwd) in [("theirs", real_path(&machine.at("other"))), ("gone", "/nowhere/at/all".into())] {
        let store = Store::of_project(Some(&machine.home.db_dir), &cwd).unwrap();
        assert!(store.read(move |view| Ok(view.messages().session_ids()? == [id])).await.unwrap());
    }
    // Without --all another project's sessions are left out, even from a shared folder.
    fs::copy(machine.at("sessions/--other--/theirs.jsonl"), machine.folders.session_dir.join("b.jsonl"))
        .unwrap();
    assert_eq!(machine.run("").await, "1 session: 0 messages new, 4 known already");
    let whole = ask_import(&Importer::default(), &machine.home, &machine.folders, "../sessions").await;
    let (within, inside) = (machine.at("project/../sessions"), machine.at("project/../sessions/--other--"));
    assert_eq!(
        whole.unwrap_err().to_string(),
        format!(
            "{} has no session files itself, and an import does not read the folders in it: name one, such as {}",
            within.display(),
            inside.display()
        )
    );
}

/// Pi names the folder of the open session's file as the one of its sessions.
#[tokio::test]
async fn a_session_that_is_opened_from_elsewhere_hides_none_of_the_projects() {
    let mut machine = Machine::new();
    let own = machine.at("sessions").join(session_folder(Path::new(&machine.home.cwd)));
    fs::rename(&machine.folders.session_dir, own).unwrap();
    machine.folders.session_dir = machine.at("elsewhere");
    fs::create_dir(machine.at("elsewhere")).unwrap();
    machine.write("a.jsonl", "moved", &Session::new().chat(2, 5).entries);
    let own = machine.folders.of_project(&machine.home.cwd)[1].join("b.jsonl");
    let header = json!({"type": "session", "version": 3, "id": "mine", "cwd": machine.home.cwd});
    fs::write(&own, lines(&header, &Session::new().chat(1, 5).entries)).unwrap();
    assert!(machine.run("").await.starts_with("2 sessions: "));
}

/// The extension may have come after them.
#[tokio::test]
async fn the_folder_of_a_project_stands_for_its_sessions() {
    let machine = Machine::new();
    machine.write("a.jsonl", "one", &Session::new().user("said here").entries);
    machine.write("b.jsonl", "open", &Session::new().user("just now").entries);
    assert_eq!(machine.run(".").await, "1 session: 1 message new, 0 known already");
    let gone = machine.at("gone");
    let theirs = machine.at("sessions").join(session_folder(&gone));
    fs::create_dir(&theirs).unwrap();
    // Pi names the folders of both alike.
    for (name, id, cwd) in
        [("a", "two", gone.clone()), ("b", "three", machine.at("gone-")), ("c", "open", gone.clone())]
    {
        let header = json!({"type": "session", "version": 3, "id": id, "cwd": cwd});
        fs::write(
            theirs.join(name).with_extension("jsonl"),
            lines(&header, &Session::new().user(id).entries),
        )
        .unwrap();
    }
    assert_eq!(machine.run(&gone.display().to_string()).await, "1 session: 1 message new, 0 known already");
    // What the folder's database lacks.
    let store = Store::of_project(Some(&machine.home.db_dir), &gone.to_string_lossy()).unwrap();
    let other = Machine {
        home: Home { store, cwd: gone.to_string_lossy().into(), ..machine.home.clone() },
        ..Machine::new()
    };
    let path = machine.at("there.jsonl");
    fs::write(
        &path,
        lines(&json!({"type": "session", "version": 3, "id": "four"}), &Session::new().user("four").entries),
    )
    .unwrap();
    other.run(&path.display().to_string()).await;
    other.home.store.close().await;
    let again = Machine::new();
    let home = Home { db_dir: machine.home.db_dir.clone(), ..again.home.clone() };
    let again = Machine { home, folders: machine.folders.clone(), ..again };
    assert_eq!(again.run(&gone.display().to_string()).await, "2 sessions: 2 messages new, 0 known already");
}

#[tokio::test]
async fn a_failed_import_is_explained_in_one_sentence() {
    let machine = Machine::new();
    let importer = Importer::default();
    let refused = async |line: &str| {
        ask_import(&importer, &machine.home, &machine.folders, line).await.unwrap_err().to_string()
    };
    assert_eq!(refused("/nowhere/x.jsonl").await, "there is no /nowhere/x.jsonl");
    assert!(
        refused("--everything")
            .await
            .starts_with("/lcm import has no --everything: it takes --all, --stop, --from; ")
    );
    for (line, why) in [
        ("--stop --all", "/lcm import --all takes no --stop; see /lcm help import"),
        ("--stop --from codex", "/lcm import --stop takes no --from; see /lcm help import"),
        ("--all sessions", "/lcm import --all takes no sessions; see /lcm help import"),
    ] {
        assert_eq!(refused(line).await, why);
    }
    assert_eq!(
        ask_import(&importer, &machine.home, &machine.folders, "--stop").await.unwrap().text,
        "No import is running."
    );
    let none =
        format!("There are no older sessions of this project in {}.", machine.folders.session_dir.display());
    assert_eq!(machine.run("").await, none);

    let page = machine.at("project/page.html");
    fs::write(&page, "<html>\n").unwrap();
    assert_eq!(
        machine.run("page.html").await,
        "0 sessions: 0 messages new, 0 known already, 1 file could not be read (page.html: it is not a Pi session; another agent's needs --from)"
    );
    machine.write("a.jsonl", "silent", &Session::new().entry("model_change", json!({})).entries);
    machine.write("open.jsonl", "open", &Session::new().user("said just now").entries);
    assert_eq!(
        machine.run("").await,
        "0 sessions: 0 messages new, 0 known already, 1 session without messages left out"
    );
    assert!(machine.home.store.read(|view| Ok(view.messages().conversations()? == 0)).await.unwrap());
    let private = Home { store: Store::of_project(None, "/p").unwrap(), ..machine.home.clone() };
    let error = ask_import(&importer, &private, &machine.folders, "").await.unwrap_err().to_string();
    assert!(error.contains("in memory only"), "{error}");
}

/// From the shell no session is open: an empty id must not count as the open one.
#[tokio::test]
async fn a_session_without_an_id_is_imported_once_it_has_one() {
    let machine = Machine::new();
    let home = Home { session_id: String::new(), ..machine.home.clone() };
    let run = async |line: &str| {
        ask_import(&Importer::default(), &home, &machine.folders, line).await.unwrap().text
    };
    let said = Session::new().user("said without an id");
    let path = machine.write("nameless.jsonl", "", &said.entries);
    let bytes = fs::read(&path).unwrap();
    for line in ["", "--all", &path.display().to_string()] {
        let report = run(line).await;
        let expected = "1 file could not be read (nameless.jsonl: its session has no id: put one of your choice into \"id\" in its \
            first line, and import it again)";
        assert!(report.starts_with("0 sessions") && report.ends_with(expected), "{report}");
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
    machine.write("nameless.jsonl", "now-named", &said.entries);
    assert_eq!(run("").await, "1 session: 1 message new, 0 known already");
}

#[tokio::test]
async fn older_sessions_are_mentioned_once() {
    let machine = Machine::new();
    machine.write("a.jsonl", "known", &Session::new().user("known").entries);
    let path = machine.folders.session_dir.join("a.jsonl");
    machine.run(&path.display().to_string()).await;
    machine.write("b.jsonl", "one", &Session::new().user("one").entries);
    machine.write("c.jsonl", "two", &Session::new().chat(1, 1).entries);
    machine.write("d.jsonl", "silent", &[]);
    machine.write("e.jsonl", "open", &Session::new().user("just now").entries);
    fs::write(machine.folders.session_dir.join("f.jsonl"), "no session").unwrap();
    let offered = offer(&machine.home, &machine.folders).await.unwrap();
    assert_eq!(offered.as_deref(), Some("LCM: this project has 2 older sessions. /lcm import adds them."));
    assert_eq!(offer(&machine.home, &machine.folders).await.unwrap(), None);
}

#[tokio::test]
async fn a_project_without_older_sessions_gets_no_notice() {
    let machine = Machine::new();
    assert_eq!(offer(&machine.home, &machine.folders).await.unwrap(), None);
    machine.write("b.jsonl", "one", &Session::new().user("one").entries);
    assert_eq!(offer(&machine.home, &machine.folders).await.unwrap(), None);
}
