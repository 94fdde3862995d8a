//! A store with forks, edits and compactions to damage: the fixture of the doctor's tests.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;
use tokio::sync::OnceCell;

use super::asking::ask;
use super::extent::everything;
use super::support::{Compact, ScriptedModel, Session, compacted};
use crate::ids::{ConversationId, Hash};
use crate::ingest::Handover;
use crate::model::parse_batch;
use crate::recall::Scope;
use crate::store::Store;

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
            let handover = Handover { entries: parse_batch(&json)?, orphans: Default::default() };
            handover.prepare().fold(batch, conversation).map(drop)
        });
        work.await.unwrap();
    }

    /// Stores the session of the file under another id.
    pub async fn ingest_again(&self, id: &'static str) {
        let file = fs::read_to_string(self.file()).unwrap();
        let entries: Vec<String> = file.lines().skip(1).map(ToOwned::to_owned).collect();
        let work = self.store.write(move |batch| {
            let conversation = batch.messages().conversation_row(id, None, None, 0)?;
            let entries = parse_batch(&format!("[{}]", entries.join(",")))?;
            Handover { entries, orphans: Default::default() }.prepare().fold(batch, conversation).map(drop)
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

    pub async fn fix(&self) -> String {
        ask(&self.store, &self.scope, "doctor --fix").await.unwrap().text
    }

    /// Without the file only the store is checked.
    pub fn without_file(self) -> Self {
        fs::remove_file(self.file()).unwrap();
        self
    }

    /// Asserts these findings and no others.
    pub async fn complains(&self, complaints: &[&str]) {
        let report = self.doctor().await;
        let found: Vec<&str> = report.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(found.len(), complaints.len(), "{report}");
        for complaint in complaints {
            assert!(found.iter().any(|line| line.contains(complaint)), "no {complaint:?} in\n{report}");
        }
        assert!(!report.contains("Everything is in order"), "{report}");
    }

    /// Repairs, and asserts that no message is lost and nothing is wrong afterwards.
    pub async fn heals(&self) -> String {
        let before = messages_of(&self.database());
        let report = self.fix().await;
        let (_, after) = report.split_once("\nAfter\n").unwrap_or_else(|| panic!("{report}"));
        assert!(!after.contains("WRONG") && after.ends_with("Everything is in order."), "{report}");
        let now = messages_of(&self.database());
        assert!(before.iter().all(|message| now.contains(message)), "{report}");
        if everything() {
            assert!(self.doctor().await.ends_with("Everything is in order."));
        }
        report
    }

    /// Overwrites the first page of some tables and indexes.
    pub async fn without_first_pages(self, names: &[&str]) -> Self {
        self.store.close().await;
        let mut bytes = fs::read(self.database()).unwrap();
        for name in names {
            let root = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'");
            let root = usize::try_from(self.ask::<i64>(&root)).unwrap();
            bytes[(root - 1) * 4096..root * 4096].fill(7);
        }
        fs::write(self.database(), bytes).unwrap();
        self.reopened().await
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
    rows.map(Result::unwrap).collect()
}
