//! `/lcm import FOLDER` and `projectIdentity`: a project keeps its whole history when it moves or the
//! setting changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;

use super::support::{Compact, ScriptedModel, Session, TestStore, ask_in, compacted};
use crate::engine::{Engine, Options};
use lcm_ingest::import::Home;
use lcm_model::config::{ProjectIdentity, Settings};
use lcm_model::error::Result;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;
use lcm_store::{Purge, Store, project_of};

/// A folder of databases and of project folders.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["db", "new"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self(dir)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn open(&self, project: &str) -> Store {
        Store::of_project(Some(&self.at("db")), &self.at(project).to_string_lossy()).unwrap()
    }

    /// The history of a folder that no longer exists: sessions, a fork, an edit, compactions of both kinds.
    async fn worked_in(&self, project: &str) -> PathBuf {
        let store = TestStore::of(self.open(project));
        let mut session =
            Session::new().chat(12, 40).entry("context_edit", json!({"targetId": "e3", "replacement": null}));
        let pis =
            json!({"summary": "of Pi's", "details": {"readFiles": ["a.rs"], "modifiedFiles": ["b.rs"]}});
        session = session.entry("compaction", pis).chat(10, 40);
        for _ in 0..2 {
            let conversation = store.ingest("one", &session).await;
            let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
            let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
            let fields = json!({"summary": compaction.summary, "details": compaction.details});
            session = session.entry("compaction", fields).chat(8, 40);
        }
        store.ingest("one", &session).await;
        store.ingest("fork", &session.at("e9").user("another way").assistant("indeed")).await;
        store.ingest("two", &Session::new().chat(2, 9)).await;
        let Some(path) = store.store.place().map(ToOwned::to_owned) else { panic!("in memory") };
        store.store.close().await;
        path
    }

    async fn adopt(&self, store: &Store, old: &str) -> Result<String> {
        let home = Home {
            store: store.clone(),
            cwd: self.at("new").to_string_lossy().into_owned(),
            identity: ProjectIdentity::Cwd,
            db_dir: self.at("db"),
            session_id: "open".into(),
        };
        let scope = Scope::at(ConversationId::NONE, None);
        ask_in(&home, &self.at("none"), &scope, None, &format!("import {old}"))
            .await
            .map(|answer| answer.text)
    }

    async fn engine(&self, cwd: &str, identity: ProjectIdentity) -> Engine {
        let settings = Settings {
            db_dir: self.at("db"),
            project_identity: identity,
            ..Settings::defaults(Path::new("/nowhere"))
        };
        let options = Options {
            cwd: self.at(cwd),
            session_id: format!("session in {cwd}"),
            session_file: Some("/some/file.jsonl".into()),
            parent_session: None,
            settings,
        };
        Engine::open(options).await.unwrap()
    }
}

/// The content of a database, with names that do not depend on row ids.
fn said_in(path: &Path) -> BTreeSet<String> {
    let connection = Connection::open(path).unwrap();
    let mut all = BTreeSet::new();
    for sql in [
        "SELECT 'message ' || hex(lineage) || kind || height || role || tokens || timestamp || hex(json) FROM messages",
        "SELECT 'entry ' || c.session_id || e.entry_id || e.kind || coalesce(a.entry_id, '-') || coalesce(hex(m.lineage), '-')
                || coalesce(hex(h.lineage), '-') || coalesce(e.target, '-')
           FROM entries e JOIN conversations c ON c.id = e.conversation_id LEFT JOIN entries a ON a.id = e.parent_id
           LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN messages h ON h.id = e.head_id",
        "SELECT 'summary ' || hex(hash) || depth || state || tokens || messages || from_time || to_time || created_at
                || coalesce(model, '-') FROM summaries",
        "SELECT 'files ' || entry_id || files FROM entries WHERE files IS NOT NULL",
        "SELECT 'session ' || session_id FROM conversations",
    ] {
        let mut query = connection.prepare(sql).unwrap();
        let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let before = all.len();
        all.extend(rows.map(|row| row.unwrap()));
        assert!(all.len() > before, "{sql}");
    }
    all
}

#[tokio::test]
async fn a_moved_folders_history_is_adopted_completely() {
    let machine = Machine::new();
    let old = machine.worked_in("old").await;
    let before = fs::read(&old).unwrap();
    let store = machine.open("new");
    let own = TestStore::of(store.clone());
    own.ingest("of my own", &Session::new().chat(3, 5)).await;
    let answer = machine.adopt(&store, &format!("{}/", machine.at("old").display())).await.unwrap();
    assert!(answer.starts_with("3 sessions: ") && answer.contains(" summar"), "{answer}");
    let Some(path) = store.place().map(ToOwned::to_owned) else { panic!("in memory") };
    let (theirs, ours) = (said_in(&old), said_in(&path));
    assert_eq!(theirs.difference(&ours).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(
        ours.difference(&theirs).filter(|row| row.starts_with("summary") || row.starts_with("files")).count(),
        0
    );
    // A second time changes nothing, and the old database is unchanged except for its log. Its folder is
    // gone; a relative path names it.
    machine.adopt(&store, "../old").await.unwrap();
    assert_eq!(said_in(&path), ours);
    assert_eq!(fs::read(&old).unwrap().len(), before.len());
    let report = super::asking::ask(&store, &Scope::at(ConversationId(1), None), "doctor").await;
    assert!(report.unwrap().text.ends_with("Everything is in order."));
    store.close().await;
}

/// Anyone may have made it: its summaries are taken for what it brings, and for nothing that was there.
#[tokio::test]
async fn a_backup_brings_its_summaries_wherever_it_is() {
    let machine = Machine::new();
    let old = machine.worked_in("old").await;
    let backup = machine.at("backup.db");
    fs::copy(&old, &backup).unwrap();
    let store = machine.open("new");
    let answer = machine.adopt(&store, &backup.display().to_string()).await.unwrap();
    assert!(answer.contains(" summar"), "{answer}");
    let again = machine.adopt(&store, &backup.display().to_string()).await.unwrap();
    assert!(again.contains(": 0 messages new, ") && !again.contains(" summar"), "{again}");
    let Some(path) = store.place().map(ToOwned::to_owned) else { panic!("in memory") };
    assert_eq!(said_in(&old).difference(&said_in(&path)).next(), None);
    let summaries = "DELETE FROM carried; DELETE FROM summary_sources; DELETE FROM summaries";
    Connection::open(&path).unwrap().execute_batch(summaries).unwrap();
    machine.adopt(&store, &backup.display().to_string()).await.unwrap();
    let left = store.read(|view| Ok(view.summaries().totals(ConversationId(1))?.summaries)).await.unwrap();
    assert_eq!(left, 0);
    store.close().await;
}

#[tokio::test]
async fn messages_purged_in_either_history_stay_purged() {
    let machine = Machine::new();
    machine.worked_in("old").await;
    let purge = |store: &Store| {
        let store = store.clone();
        async move {
            let message =
                store.read(|view| view.upkeep().purgeable_at(ConversationId(1), "e5")).await.unwrap();
            store.write(move |batch| batch.upkeep().purge(&Purge::Message(message.unwrap()))).await.unwrap();
        }
    };
    let old = machine.open("old");
    purge(&old).await;
    old.close().await;
    let store = machine.open("new");
    let answer = machine.adopt(&store, &machine.at("old").to_string_lossy()).await.unwrap();
    assert!(answer.starts_with("3 sessions: "), "{answer}");
    let purged = async || {
        let count = store.read(|view| {
            let mut purged = 0;
            view.upkeep().audit_messages(|message| {
                purged += usize::from(message.kind == lcm_model::dag::MessageKind::Purged);
                Ok(())
            })?;
            Ok(purged)
        });
        count.await.unwrap()
    };
    assert_eq!(purged().await, 1);
    let report = super::asking::ask(&store, &Scope::at(ConversationId(1), None), "doctor").await;
    assert!(report.as_ref().unwrap().text.ends_with("Everything is in order."), "{}", report.unwrap().text);
    store.close().await;
}

#[tokio::test]
async fn a_refused_adoption_names_its_reason() {
    let machine = Machine::new();
    machine.worked_in("old").await;
    let store = machine.open("new");
    let old = machine.at("old").to_string_lossy().into_owned();
    let error = machine.adopt(&store, "/nowhere").await.unwrap_err().to_string();
    assert_eq!(error, "there is no /nowhere");
    let busy = machine.open("old");
    let answer = machine.adopt(&store, &old).await.unwrap();
    assert!(
        answer.contains("1 file could not be read") && answer.contains("another Pi is working with it"),
        "{answer}"
    );
    busy.close().await;
    assert!(machine.adopt(&store, &old).await.unwrap().starts_with("3 sessions: "));
    store.close().await;
}

/// A repository with a worktree, laid out as git does.
fn repository(machine: &Machine) {
    for (file, text) in [
        ("repo/.git/HEAD", "ref: refs/heads/main\n"),
        ("repo/.git/objects/x", ""),
        ("repo/.git/refs/x", ""),
        ("repo/.git/worktrees/tree/commondir", "../..\n"),
        ("repo/.git/worktrees/tree/gitdir", "../../../../tree/.git\n"),
        ("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n"),
    ] {
        let path = machine.at(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[tokio::test]
async fn worktrees_share_a_history_with_the_setting_only() {
    let machine = Machine::new();
    repository(&machine);
    assert_eq!(project_of(&machine.at("tree"), ProjectIdentity::Git), machine.at("repo").to_string_lossy());
    for (folder, identity, databases) in [
        ("tree", ProjectIdentity::Cwd, 1),
        ("tree", ProjectIdentity::Git, 2),
        ("repo", ProjectIdentity::Git, 2),
        ("tree", ProjectIdentity::Cwd, 2),
    ] {
        let engine = machine.engine(folder, identity).await;
        engine.close().await;
        assert_eq!(fs::read_dir(machine.at("db")).unwrap().count(), databases, "{folder}");
    }
}
