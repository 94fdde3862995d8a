//! `alsoRead`: at the start of a session, new messages of other agents are imported.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::agents::{files, fixtures, records_and_words};
use super::import::Machine;
use super::support::Session;
use crate::commands::import::Importer;
use crate::tools::{Block, call};
use lcm_recall::Scope;

const HOUR: Duration = Duration::from_secs(3600);

/// Starts a session, and returns how many messages are stored after it.
async fn read(machine: &Machine, importer: &Importer, agents: &[String]) -> usize {
    importer.also_read(&machine.home, &machine.folders, agents).await.unwrap();
    records_and_words(machine).await.1.len()
}

#[tokio::test]
async fn new_messages_of_other_agents_are_imported_and_described_when_a_session_starts() {
    let mut machine = Machine::new();
    machine.folders.home = Some(machine.at("home"));
    let fixture = files(&fixtures("codex").join("0.44")).remove(0);
    let whole = fs::read_to_string(&fixture).unwrap().replace("/home/ada/kontor", &machine.home.cwd);
    let log = machine.at("home/.codex/sessions").join(fixture.file_name().unwrap());
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let cut = whole.find("apply_patch").unwrap();
    fs::write(&log, &whole[..cut]).unwrap();
    let importer = Importer::default();
    let agents = ["codex".to_owned(), "gemini".to_owned()];
    let read = || read(&machine, &importer, &agents);
    assert_eq!(read().await, 1);
    // A log that has not changed since the last import is not opened.
    let read_at = async |at: SystemTime| {
        let at = i64::try_from(at.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let note = machine.home.store.write(move |batch| batch.messages().note_agent_read("codex", at));
        note.await.unwrap();
    };
    fs::write(&log, &whole).unwrap();
    read_at(SystemTime::now() + HOUR).await;
    assert_eq!(read().await, 1);
    // One that was put there since then is, though it was written before, such as by `rsync -a`.
    let file = fs::File::options().append(true).open(&log).unwrap();
    file.set_modified(SystemTime::now() - HOUR).unwrap();
    read_at(SystemTime::now() - HOUR / 2).await;
    assert_eq!(read().await, 4);

    let said = Session::new().user("Tell me the flamingo rule.").assistant("It rounds half to even.");
    machine.write("a.jsonl", "pi-session", &said.entries);
    machine.run("").await;
    let store = machine.home.store.clone();
    let scope = store.read(|view| Ok(Scope::at(view.messages().conversation("pi-session")?.unwrap(), None)));
    let cancel = CancellationToken::new();
    let answer =
        call(&store, &scope.await.unwrap(), "lcm_describe", "{}", None, &cancel).await.unwrap().remove(0);
    let Block::Text(text) = answer else { panic!("an image") };
    let (before, after) = text.split_once("Other agents here, the last active first:\n- codex:").unwrap();
    assert!(!before.contains("codex:") && after.contains("messages"), "{text}");
}

#[tokio::test]
async fn a_log_that_could_not_be_read_is_read_when_the_next_session_starts() {
    let mut machine = Machine::new();
    machine.folders.home = Some(machine.at("home"));
    let log = machine.at("home/.local/share/opencode/opencode.db");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, "damaged".repeat(1_000)).unwrap();
    let importer = Importer::default();
    let agents = ["opencode".to_owned()];
    let read = || read(&machine, &importer, &agents);
    assert_eq!(read().await, 0);
    fs::copy(fixtures("opencode").join("1.2/opencode.db"), &log).unwrap();
    let database = rusqlite::Connection::open(&log).unwrap();
    database.execute("UPDATE session SET directory = ?1", [&machine.home.cwd]).unwrap();
    database.close().unwrap();
    // An unlocked database has not changed.
    let long_ago = SystemTime::now() - HOUR;
    let touch = |at| fs::File::options().append(true).open(&log).unwrap().set_modified(at).unwrap();
    touch(long_ago);
    assert_eq!(read().await, 8);
    touch(long_ago);
    assert_eq!(read().await, 8);
}

#[tokio::test]
async fn a_message_of_opencodes_files_is_read_though_its_session_file_is_older() {
    let mut machine = Machine::new();
    machine.folders.home = Some(machine.at("home"));
    let long_ago = SystemTime::now() - HOUR;
    let from = fixtures("opencode").join("1.0/storage");
    let to = machine.at("home/.local/share/opencode/storage");
    for file in files(&from) {
        let path = to.join(file.strip_prefix(&from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = fs::read_to_string(&file).unwrap().replace("/home/ada/kontor", &machine.home.cwd);
        fs::write(&path, text).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    }
    let importer = Importer::default();
    let agents = ["opencode".to_owned()];
    let read = || read(&machine, &importer, &agents);
    assert_eq!(read().await, 8);
    let message = json!({"id": "msg_103", "role": "assistant", "time": {"created": 1_762_000_009_000_i64}});
    let part =
        json!({"id": "prt_1031", "type": "text", "text": "It passes.", "time": {"start": 1, "end": 2}});
    fs::create_dir(to.join("part/msg_103")).unwrap();
    fs::write(to.join("part/msg_103/prt_1031.json"), part.to_string()).unwrap();
    fs::write(to.join("message/ses_10/msg_103.json"), message.to_string()).unwrap();
    assert_eq!(read().await, 9);
}
