//! A store in which a secret was said, summarized and condensed: the fixture of the purge tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_ingest::Handover;
use lcm_model::ids::{ConversationId, MessageId};
use lcm_model::parse_batch;
use lcm_store::{Purge, PurgePlan, Store};

/// The text that must be gone. The index omits a prefix that a word shares with its neighbor, so the end of
/// the word counts.
pub const SECRET: &str = "quokka7741";
pub const TAIL: &[u8] = b"okka7741";

/// A store in a folder with the file of its one session, in which a secret was said, summarized and
/// condensed.
pub struct SecretStore {
    pub dir: tempfile::TempDir,
    pub store: Store,
    pub session: Session,
    pub conversation: ConversationId,
}

impl SecretStore {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        let session = Session::new()
            .message(json!({"role": "system", "content": "You are Pi"}))
            .chat(6, 30)
            .user(&format!("the pass phrase is {SECRET} and stays so"))
            .assistant("I shall remember it")
            .entry(
                "context_edit",
                json!({"targetId": "e14", "replacement": {"content": format!("hint: {SECRET}!")}}),
            )
            .chat(20, 40);
        let secrets = Self { dir, store, session, conversation: ConversationId(1) };
        secrets.ingest("one", &secrets.session).await;
        let mut secrets = secrets;
        for _ in 0..2 {
            secrets = secrets.compact(&echoing()).await.0;
            secrets.session = secrets.session.clone().chat(8, 40);
            secrets.ingest("one", &secrets.session).await;
        }
        assert!(secrets.ask::<i64>("SELECT max(depth) FROM summaries") > 0);
        assert!(secrets.ask::<i64>("SELECT count(*) FROM carried") > 0);
        secrets
    }

    pub async fn ingest(&self, id: &str, session: &Session) {
        let (id, json) = (id.to_owned(), session.json());
        let file = self.dir.path().join(format!("{id}.jsonl"));
        let header = json!({"type": "session", "version": 3, "id": id, "cwd": "/project"});
        let lines = std::iter::once(&header).chain(&session.entries).map(|line| format!("{line}\n"));
        fs::write(&file, lines.collect::<String>()).unwrap();
        let file = file.to_string_lossy().into_owned();
        let work = self.store.write(move |batch| {
            let conversation = batch.messages().conversation_row(&id, Some(&file), None, 0)?;
            let handover = Handover { entries: parse_batch(&json)?, ..Default::default() };
            handover.prepare().store(batch, conversation).map(drop)
        });
        work.await.unwrap();
    }

    /// Compacts everything, and appends the compaction as Pi would. Returns the block too.
    pub async fn compact(mut self, model: &std::sync::Arc<ScriptedModel>) -> (Self, String, Value) {
        let test_store = TestStore::of(self.store.clone());
        let leaf = self.session.leaf().to_owned();
        let compact = Compact::new(&test_store, self.conversation, &leaf, &leaf);
        let compaction = compacted(compact.run(model).await);
        let details = json!(compaction.details);
        let fields = json!({"summary": compaction.summary, "details": details});
        self.session = self.session.entry("compaction", fields);
        self.ingest("one", &self.session).await;
        (self, compaction.summary, details)
    }

    pub async fn message_of(&self, entry: &str) -> MessageId {
        let (entry, conversation) = (entry.to_owned(), self.conversation);
        let found =
            self.store.read(move |view| view.upkeep().purgeable_at(conversation, &entry)).await.unwrap();
        found.unwrap()
    }

    /// The short id of a message.
    pub async fn name(&self, entry: &str) -> String {
        let message = self.message_of(entry).await;
        let read =
            self.store.read(move |view| Ok(view.messages().message(message)?.lineage.message_handle()));
        read.await.unwrap()
    }

    /// A tool's answer.
    pub async fn tool(&self, name: &str, arguments: Value) -> String {
        let (arguments, cancel) = (arguments.to_string(), Default::default());
        let answer = crate::tools::call(&self.store, &self.scope(), name, &arguments, None, &cancel).await;
        match answer.unwrap().remove(0) {
            crate::tools::Block::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    pub async fn purge(&self, entry: &str) -> PurgePlan {
        let message = self.message_of(entry).await;
        self.purge_all(Purge::Message(message)).await
    }

    pub async fn purge_all(&self, purge: Purge) -> PurgePlan {
        let planning = purge.clone();
        let planned = self.store.read(move |view| view.upkeep().purge_plan(&planning)).await.unwrap();
        let plan = self.store.write(move |batch| batch.upkeep().purge(&purge)).await.unwrap();
        assert_eq!(plan, planned);
        assert!(self.store.vacuum().await.unwrap());
        plan
    }

    pub fn database(&self) -> std::path::PathBuf {
        self.dir.path().join("project.db")
    }

    pub fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        Connection::open(self.database()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub async fn doctor(&self) -> String {
        doctor(&self.store, "doctor").await
    }

    /// Asserts that the secret is gone: from the bytes of the files, the unpacked rows and the words of the
    /// indexes.
    pub async fn assert_gone(&self) {
        for ending in ["", "-wal", "-shm"] {
            let bytes = fs::read(format!("{}{ending}", self.database().display())).unwrap_or_default();
            assert!(!bytes.windows(TAIL.len()).any(|window| window == TAIL), "in X.db{ending}");
        }
        assert!(!everything(&self.store).await.contains("okka7741"));
        let words = words(&self.database());
        assert!(words.len() > 20 && !words.iter().any(|word| word.contains("okka")), "{words:?}");
    }

    pub fn scope(&self) -> lcm_recall::Scope {
        lcm_recall::Scope::at(self.conversation, Some(self.session.leaf().to_owned()))
    }
}

/// A model that repeats its prompt, up to a length.
pub fn echoing() -> std::sync::Arc<ScriptedModel> {
    ScriptedModel::new(|request| {
        let said = if request.prompt.contains(SECRET) { SECRET } else { "nothing new" };
        Ok(lcm_compaction::llm::Reply {
            text: format!("They said {said}.\nExpand for details about: all {}", request.prompt.len()),
            model: Some("scripted/model".into()),
            usage: None,
        })
    })
}

pub async fn doctor(store: &Store, line: &str) -> String {
    let scope = lcm_recall::Scope::at(ConversationId(1), None);
    super::asking::ask(store, &scope, line).await.unwrap().text
}

/// Every stored text, unpacked.
pub async fn everything(store: &Store) -> String {
    let read = store.read(|view| {
        let mut all = String::new();
        view.upkeep().audit_messages(|message| {
            all.push_str(message.json.as_deref().unwrap_or_default());
            Ok(())
        })?;
        for row in view.upkeep().summary_rows()? {
            all.push_str(&format!("{:?}", view.summaries().summary(row)?));
        }
        for session in view.messages().sessions(None)? {
            for entry in view.messages().entry_ids(session.id)? {
                let row = view.messages().entry_row(session.id, &entry)?.unwrap();
                all.push_str(&format!("{:?}", view.summaries().listed_by(row)?));
            }
        }
        Ok(all)
    });
    read.await.unwrap()
}

/// The words of both indexes.
pub fn words(database: &Path) -> Vec<String> {
    let connection = Connection::open(database).unwrap();
    let mut words = Vec::new();
    for index in ["messages_fts", "summaries_fts"] {
        let table = format!("CREATE VIRTUAL TABLE temp.{index}_words USING fts5vocab(main, {index}, row)");
        connection.execute_batch(&table).unwrap();
        let mut query = connection.prepare(&format!("SELECT term FROM temp.{index}_words")).unwrap();
        words.extend(query.query_map([], |row| row.get(0)).unwrap().map(|word| word.unwrap()));
    }
    words
}

/// Every row with content, but for unreferenced names.
pub async fn digest(store: &Store) -> BTreeSet<String> {
    let read = store.read(|view| {
        let mut rows = BTreeSet::new();
        for session in view.messages().sessions(None)? {
            for entry in view.messages().entry_ids(session.id)? {
                let shown = view.messages().branch(session.id, &entry)?.pop();
                rows.insert(format!("{} {entry} {shown:?}", session.session_id));
            }
        }
        for row in view.upkeep().summary_rows()? {
            rows.insert(format!("{:?}", view.summaries().summary(row)?));
        }
        Ok(rows)
    });
    read.await.unwrap()
}

pub async fn import(store: &Store, path: &Path) {
    let home = lcm_ingest::import::Home {
        store: store.clone(),
        cwd: "/project".into(),
        identity: lcm_model::config::ProjectIdentity::Cwd,
        db_dir: path.parent().unwrap().into(),
        session_id: "open".into(),
    };
    let folders = lcm_ingest::import::Folders {
        session_dir: "/nowhere".into(),
        all_sessions: "/nowhere".into(),
        home: None,
    };
    let importer = crate::commands::import::Importer::default();
    let answer =
        super::import::ask_import(&importer, &home, &folders, &path.to_string_lossy()).await.unwrap().text;
    assert!(answer.starts_with("1 session"), "{answer}");
}
