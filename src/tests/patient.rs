//! A store with forks, edits and compactions to damage: the fixture of the doctor's tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;
use tokio::sync::OnceCell;

use super::asking::ask;
use super::support::{Compact, ScriptedModel, Session, ask_in, compacted};
use lcm_ingest::Handover;
use lcm_ingest::import::Home;
use lcm_model::config::ProjectIdentity;
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::parse_batch;
use lcm_recall::Scope;
use lcm_store::Store;

/// A store with forks, edits and compactions, and the session's file.
pub struct Patient {
    pub store: Store,
    pub dir: tempfile::TempDir,
    pub scope: Scope,
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

    pub async fn ingest(&self, session: &Session) {
        let (json, file) = (session.json(), self.file().to_string_lossy().into_owned());
        let work = self.store.write(move |batch| {
            let conversation = batch.messages().conversation_row("one", Some(&file), None, 0)?;
            let handover = Handover { entries: parse_batch(&json)?, ..Default::default() };
            handover.prepare().store(batch, conversation).map(drop)
        });
        work.await.unwrap();
    }

    pub async fn compact(&self, session: Session) -> Session {
        self.ingest(&session).await;
        let test_store = super::support::TestStore::of(self.store.clone());
        let compact = Compact::new(&test_store, ConversationId(1), session.leaf(), session.leaf());
        let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
        session.entry("compaction", json!({"summary": compaction.summary, "details": compaction.details}))
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("one.jsonl")
    }

    pub fn database(&self) -> PathBuf {
        self.dir.path().join("project.db")
    }

    /// Changes the database directly.
    pub fn damage(&self, sql: &str) {
        let connection = Connection::open(self.database()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    pub fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        Connection::open(self.database()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub async fn doctor(&self) -> String {
        ask(&self.store, &self.scope, "doctor").await.unwrap().text
    }

    /// Rebuilds the database. Returns the patient with the new one, and the report.
    pub async fn rebuilt(self) -> (Self, String) {
        let report = rebuild(&self.store, self.dir.path()).await.unwrap();
        (self.reopened().await, report)
    }

    /// Without the file only the store is there.
    pub fn without_file(self) -> Self {
        fs::remove_file(self.file()).unwrap();
        self
    }

    /// Rebuilds, and asserts that no message is lost and nothing is wrong afterwards.
    pub async fn heals(self) -> (Self, String) {
        let before = texts_of(&self.store).await;
        let (patient, report) = self.rebuilt().await;
        let now = texts_of(&patient.store).await;
        assert!(before.iter().all(|text| now.contains(text)), "{report}");
        let checked = patient.doctor().await;
        assert!(checked.ends_with("Everything is in order."), "{report}\n{checked}");
        (patient, report)
    }

    /// As after a restart: nothing about the file is cached.
    pub async fn reopened(self) -> Self {
        self.store.close().await;
        let store = Store::open(Some(self.dir.path()), "project", "/project").unwrap();
        Self { store, ..self }
    }
}

/// The session's file as Pi writes it.
fn file_of(session: &Session) -> String {
    let header = json!({"type": "session", "version": 3, "id": "one", "timestamp": "2026-11-20T09:00:00.000Z", "cwd": "/project"});
    let lines = std::iter::once(header.to_string()).chain(session.entries.iter().map(ToString::to_string));
    lines.map(|line| line + "\n").collect()
}

/// Rebuilds the project's database.
pub async fn rebuild(store: &Store, sessions: &Path) -> Result<String> {
    let home = Home {
        store: store.clone(),
        cwd: "/project".into(),
        identity: ProjectIdentity::Cwd,
        db_dir: sessions.to_owned(),
        session_id: "one".into(),
    };
    ask_in(&home, sessions, &Scope::at(ConversationId(1), None), None, "doctor --rebuild")
        .await
        .map(|answer| answer.text)
}

/// The texts of the messages that can be read.
pub async fn texts_of(store: &Store) -> BTreeSet<String> {
    let read = store.read(|view| {
        let mut texts = BTreeSet::new();
        view.upkeep().audit_messages(|message| {
            let is_said = |json: &String| message.kind != MessageKind::Edited && json.starts_with('{');
            texts.extend(message.json.ok().filter(is_said));
            Ok(())
        })?;
        Ok(texts)
    });
    read.await.unwrap()
}

/// Each message: its row, and a digest of all its columns.
pub fn messages_of(database: &Path) -> Vec<(i64, Hash)> {
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
    rows.map(|row| row.unwrap()).collect()
}
