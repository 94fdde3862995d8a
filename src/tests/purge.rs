//! Purging: the text is gone from the files, can't be confirmed by a guess, and nothing brings it back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::extent::cases;
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use super::world::{World, events, knobs, marks};
use crate::compaction::Outcome;
use crate::dag::{MessageKind, Step};
use crate::ids::{ConversationId, Hash, MessageId};
use crate::ingest::Handover;
use crate::model::{Content, Entry, parse_batch};
use crate::store::{Purge, PurgePlan, Store};

/// The text that must be gone. The index omits a prefix that a word shares with its neighbor, so the end of
/// the word counts.
const SECRET: &str = "quokka7741";
const TAIL: &[u8] = b"okka7741";

/// A store in a folder with the file of its one session, in which a secret was said, summarized and
/// condensed.
struct SecretStore {
    dir: tempfile::TempDir,
    store: Store,
    session: Session,
    conversation: ConversationId,
}

impl SecretStore {
    async fn new() -> Self {
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

    async fn ingest(&self, id: &str, session: &Session) {
        let (id, json) = (id.to_owned(), session.json());
        let file = self.dir.path().join(format!("{id}.jsonl"));
        let header = json!({"type": "session", "version": 3, "id": id, "cwd": "/project"});
        let lines = std::iter::once(&header).chain(&session.entries).map(|line| format!("{line}\n"));
        fs::write(&file, lines.collect::<String>()).unwrap();
        let file = file.to_string_lossy().into_owned();
        let work = self.store.write(move |batch| {
            let conversation = batch.messages().conversation_row(&id, Some(&file), None, 0)?;
            let handover = Handover { entries: parse_batch(&json)?, orphans: Default::default() };
            handover.prepare().fold(batch, conversation).map(drop)
        });
        work.await.unwrap();
    }

    /// Compacts everything, and appends the compaction as Pi would. Returns the block too.
    async fn compact(mut self, model: &std::sync::Arc<ScriptedModel>) -> (Self, String, Value) {
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

    async fn message_of(&self, entry: &str) -> MessageId {
        let (entry, conversation) = (entry.to_owned(), self.conversation);
        let found =
            self.store.read(move |view| view.upkeep().purgeable_at(conversation, &entry)).await.unwrap();
        found.unwrap()
    }

    /// The short id of a message.
    async fn name(&self, entry: &str) -> String {
        let message = self.message_of(entry).await;
        let read =
            self.store.read(move |view| Ok(view.messages().message(message)?.lineage.message_handle()));
        read.await.unwrap()
    }

    /// A tool's answer.
    async fn tool(&self, name: &str, arguments: Value) -> String {
        let (arguments, cancel) = (arguments.to_string(), Default::default());
        let answer = crate::tools::call(&self.store, &self.scope(), name, &arguments, None, &cancel).await;
        match answer.unwrap().remove(0) {
            crate::tools::Block::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    async fn purge(&self, entry: &str) -> PurgePlan {
        let message = self.message_of(entry).await;
        self.purge_all(Purge::Message(message)).await
    }

    async fn purge_all(&self, purge: Purge) -> PurgePlan {
        let planned = self.store.read(move |view| view.upkeep().purge_plan(purge)).await.unwrap();
        let plan = self.store.write(move |batch| batch.upkeep().purge(purge)).await.unwrap();
        assert_eq!(plan, planned);
        assert!(self.store.vacuum().await.unwrap());
        plan
    }

    fn database(&self) -> std::path::PathBuf {
        self.dir.path().join("project.db")
    }

    fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        Connection::open(self.database()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    async fn doctor(&self) -> String {
        doctor(&self.store, "doctor").await
    }

    /// Asserts that the secret is gone: from the bytes of the files, the unpacked rows and the words of the
    /// indexes.
    async fn assert_gone(&self) {
        for ending in ["", "-wal", "-shm"] {
            let bytes = fs::read(format!("{}{ending}", self.database().display())).unwrap_or_default();
            assert!(!bytes.windows(TAIL.len()).any(|window| window == TAIL), "in X.db{ending}");
        }
        assert!(!everything(&self.store).await.contains("okka7741"));
        let words = words(&self.database());
        assert!(words.len() > 20 && !words.iter().any(|word| word.contains("okka")), "{words:?}");
    }
}

/// A model that repeats its prompt, up to a length.
fn echoing() -> std::sync::Arc<ScriptedModel> {
    ScriptedModel::new(|request| {
        let said = if request.prompt.contains(SECRET) { SECRET } else { "nothing new" };
        Ok(crate::llm::Reply {
            text: format!("They said {said}.\nExpand for details about: all {}", request.prompt.len()),
            model: Some("scripted/model".into()),
            usage: None,
        })
    })
}

async fn doctor(store: &Store, line: &str) -> String {
    let scope = crate::recall::Scope::at(ConversationId(1), None);
    super::asking::ask(store, &scope, line).await.unwrap().text
}

/// Every stored text, unpacked.
async fn everything(store: &Store) -> String {
    let read = store.read(|view| {
        let mut all = String::new();
        view.upkeep().audit_messages(|message| {
            all.push_str(message.json.as_deref().unwrap_or_default());
            Ok(())
        })?;
        for row in view.upkeep().summary_rows()? {
            all.push_str(&format!("{:?}", view.summaries().summary(crate::ids::SummaryId(row))?));
        }
        for session in view.messages().sessions(None)? {
            for entry in view.upkeep().audit_entries(session.id)? {
                all.push_str(&format!("{:?}", view.summaries().listed_by(entry.id)?));
            }
        }
        Ok(all)
    });
    read.await.unwrap()
}

/// The words of both indexes.
fn words(database: &Path) -> Vec<String> {
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
async fn digest(store: &Store) -> BTreeSet<String> {
    let read = store.read(|view| {
        let mut rows = BTreeSet::new();
        for session in view.messages().sessions(None)? {
            for entry in view.upkeep().audit_entries(session.id)? {
                rows.insert(format!("{} {entry:?}", session.session_id));
            }
        }
        for row in view.upkeep().summary_rows()? {
            rows.insert(format!("{:?}", view.summaries().summary(crate::ids::SummaryId(row))?));
        }
        Ok(rows)
    });
    read.await.unwrap()
}

#[tokio::test]
async fn a_purged_message_is_gone_from_the_files() {
    let secrets = SecretStore::new().await;
    let before = secrets.ask::<i64>("SELECT count(*) FROM summaries");
    assert!(everything(&secrets.store).await.matches(SECRET).count() > 3);
    assert!(words(&secrets.database()).iter().any(|word| word.contains("quokka")));
    let plan = secrets.purge("e14").await;
    assert_eq!((plan.messages.len(), plan.renditions.len(), plan.sessions.len()), (1, 1, 1));
    assert!(plan.summaries.len() > 2, "{plan:?}");
    let left = secrets.ask::<i64>("SELECT count(*) FROM summaries");
    assert_eq!(before - left, i64::try_from(plan.summaries.len()).unwrap());
    assert!(left > 0, "summaries of other messages stay");
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order.") && report.contains(", 1 of them purged"), "{report}");
    assert_eq!(secrets.ask::<i64>("PRAGMA freelist_count"), 0);
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM _metadata WHERE key = 'purge_pending'"), 0);
}

/// Someone who has the file and guesses the secret finds nothing in it that confirms the guess.
// Other systems may refuse such a name.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_backup_whose_name_is_not_unicode_is_listed() {
    use std::os::unix::ffi::OsStrExt as _;
    let secrets = SecretStore::new().await;
    let odd = std::ffi::OsStr::from_bytes(b"project.db.\xff.bak");
    fs::write(secrets.dir.path().join(odd), "").unwrap();
    let asked = ask(&secrets, &format!("purge {}", secrets.name("e14").await)).await;
    let backups = asked.answer["still"]["backups"].as_array().unwrap();
    assert!(backups.iter().any(|path| path.as_str().unwrap().ends_with("project.db.\u{fffd}.bak")));
    assert!(asked.text.contains("backups and unused databases: "), "{}", asked.text);
}

#[tokio::test]
async fn nothing_left_confirms_a_guess() {
    let secrets = SecretStore::new().await;
    let identities = |secrets: &SecretStore| -> BTreeSet<Hash> {
        let connection = Connection::open(secrets.database()).unwrap();
        let mut query = connection
            .prepare("SELECT lineage FROM messages UNION ALL SELECT hash FROM summaries UNION ALL SELECT span FROM claims")
            .unwrap();
        let rows = query.query_map([], |row| row.get(0).map(Hash)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let before = identities(&secrets);
    let rows = secrets.store.read(|view| {
        let branch = view.messages().branch(ConversationId(1), "e15")?;
        let hash = |entry: &str| match &branch.iter().find(|one| one.entry_id == entry).unwrap().step {
            Step::Message(message) => (message.id, message.hash),
            step => panic!("{step:?}"),
        };
        let (secret, next) = (hash("e14"), hash("e15"));
        Ok((hash("e13").1, view.messages().message(secret.0)?.json, view.messages().message(next.0)?.json))
    });
    let (above, guess, next) = rows.await.unwrap();
    let guessed = above.child(&guess);
    let follows = [
        guessed,
        guessed.child(&next),
        guessed.edited(&json!({"content": format!("hint: {SECRET}!")}).to_string()),
    ];
    assert!(follows.iter().all(|hash| before.contains(hash)));
    secrets.purge("e14").await;
    let after = identities(&secrets);
    assert!(follows.iter().all(|hash| !after.contains(hash)));
    // Everything below it, and all summaries there, have new ids.
    let above = secrets.store.read(|view| {
        Ok(view
            .messages()
            .branch(ConversationId(1), "e13")?
            .into_iter()
            .filter_map(|entry| match entry.step {
                Step::Message(message) => Some(message.hash),
                _ => None,
            })
            .collect::<BTreeSet<_>>())
    });
    let above = above.await.unwrap();
    let same: BTreeSet<Hash> = before.intersection(&after).copied().collect();
    let summaries = secrets.store.read(|view| {
        view.upkeep()
            .summary_rows()?
            .into_iter()
            .map(|row| Ok(view.summaries().summary(crate::ids::SummaryId(row))?.hash))
            .collect::<crate::error::Result<BTreeSet<_>>>()
    });
    let summaries = summaries.await.unwrap();
    assert!(same.iter().all(|hash| above.contains(hash) || summaries.contains(hash)));
    assert!(above.is_subset(&same));
    // Summaries with their old ids cover only messages before it.
    let last = secrets.ask::<i64>("SELECT id FROM messages WHERE kind = 4");
    let kept = secrets.ask::<i64>(&format!("SELECT count(*) FROM summaries WHERE last_message < {last}"));
    assert_eq!(same.intersection(&summaries).count(), usize::try_from(kept).unwrap());
}

#[tokio::test]
async fn nothing_brings_a_purged_message_back() {
    let secrets = SecretStore::new().await;
    secrets.purge("e14").await;
    let before = digest(&secrets.store).await;

    // The session itself, handed over again completely.
    secrets.ingest("one", &secrets.session).await;
    assert_eq!(digest(&secrets.store).await, before);
    // The doctor has the session's file with all its summaries.
    assert!(doctor(&secrets.store, "doctor --fix").await.ends_with("There is nothing to repair."));
    assert_eq!(digest(&secrets.store).await, before);
    // With a lost summary, the file is folded again.
    Connection::open(secrets.database())
        .unwrap()
        .execute("UPDATE summaries SET depth = 3 WHERE id = (SELECT min(id) FROM summaries)", [])
        .unwrap();
    let mended = doctor(&secrets.store, "doctor --fix").await;
    assert!(mended.contains("\nDone\n") && mended.ends_with("Everything is in order."), "{mended}");
    secrets.assert_gone().await;

    // A fork from the end, and one from the message right after.
    secrets.ingest("fork", &secrets.session).await;
    let mut short = Session::new();
    short.entries = secrets.session.entries[..15].to_vec();
    secrets.ingest("short", &short.at("e15").user("elsewhere")).await;
    secrets.assert_gone().await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind = 4"), 1);
    assert_eq!(
        secrets.ask::<i64>(
            "SELECT count(*) FROM entries e JOIN messages m ON m.id = e.message_id WHERE m.kind = 4"
        ),
        3
    );
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    // Everything after it is shared, under its new identity.
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE height = 14 AND kind <> 3"), 1);
}

#[tokio::test]
async fn a_copy_below_a_new_message_is_known_by_a_placeholder_that_comes_with_it() {
    let said = |text: &str| json!({"role": "user", "content": text, "timestamp": 1_763_629_920_000_i64});
    // Pi gives an entry of the first version of its files another id later.
    let session =
        Session::new().user("above").message(said(SECRET)).at("e1").message(said(SECRET)).user("below");
    for sizes in [&[4][..], &[2, 2], &[1, 3]] {
        let mut entries = parse_batch(&session.json()).unwrap();
        let purged = &mut entries[1];
        *purged = Entry {
            id: "v1-2".into(),
            parent: purged.parent.take(),
            timestamp: 1_763_629_920_000,
            content: Content::Purged([7; 32]),
        };
        let mut entries = entries.into_iter();
        let pieces: Vec<Vec<Entry>> =
            sizes.iter().map(|size| entries.by_ref().take(*size).collect()).collect();
        let store = TestStore::new();
        let work = store.store.write(move |batch| {
            let conversation = batch.messages().conversation_row("one", None, None, 0)?;
            for entries in pieces {
                Handover { entries, orphans: Default::default() }.prepare().fold(batch, conversation)?;
            }
            assert!(batch.messages().is_counted_right(Some(conversation))?);
            batch.messages().project_messages()
        });
        assert_eq!(work.await.unwrap(), 2);
    }
}

/// The row of a removed summary may belong to another one when its facts are ready.
#[tokio::test]
async fn the_facts_of_a_removed_summary_are_not_stored_for_another() {
    let secrets = SecretStore::new().await;
    let first = crate::ids::SummaryId(secrets.ask("SELECT min(id) FROM summaries WHERE depth = 0"));
    let gone = secrets.store.read(move |view| Ok(view.summaries().summary(first)?.hash)).await.unwrap();
    secrets.purge("e2").await;
    let another = crate::ids::SummaryId(secrets.ask("SELECT min(id) FROM summaries"));
    let own = secrets.store.read(move |view| Ok(view.summaries().summary(another)?.hash)).await.unwrap();
    let facts = || {
        let said = crate::facts::Said { at: 0, text: "its rule".into() };
        crate::facts::Facts { rules: [said].into(), ..Default::default() }
    };
    let was = secrets.store.read(move |view| view.summaries().facts_of(another)).await.unwrap();
    for (hash, expected) in [(gone, was), (own, Some(facts()))] {
        secrets
            .store
            .write(move |batch| batch.summaries().note_facts(another, hash, &facts()))
            .await
            .unwrap();
        assert_eq!(
            secrets.store.read(move |view| view.summaries().facts_of(another)).await.unwrap(),
            expected
        );
    }
}

#[tokio::test]
async fn a_purged_database_is_adopted_as_it_is() {
    let secrets = SecretStore::new().await;
    secrets.purge("e14").await;
    secrets.store.close().await;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
    import(&store, &secrets.database()).await;
    let lineages = |path: &Path| -> BTreeSet<Vec<u8>> {
        let connection = Connection::open(path).unwrap();
        let mut query = connection.prepare("SELECT lineage FROM messages").unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut expected = lineages(&secrets.database());
    assert_eq!(lineages(&dir.path().join("project.db")), expected);
    // Nor does the session's file bring it into the new one.
    import(&store, &secrets.dir.path().join("one.jsonl")).await;
    assert!(!everything(&store).await.contains("okka7741"));
    assert_eq!(std::mem::take(&mut expected), lineages(&dir.path().join("project.db")));
}

async fn import(store: &Store, path: &Path) {
    let home = crate::ingest::import::Home {
        store: store.clone(),
        cwd: "/project".into(),
        identity: crate::config::ProjectIdentity::Cwd,
        db_dir: path.parent().unwrap().into(),
        session_id: "open".into(),
    };
    let folders = crate::ingest::import::Folders {
        session_dir: "/nowhere".into(),
        all_sessions: "/nowhere".into(),
        home: None,
    };
    let importer = crate::commands::import::Importer::default();
    let answer = importer.run(&home, &folders, &path.to_string_lossy()).await.unwrap().text;
    assert!(answer.starts_with("1 session"), "{answer}");
}

#[tokio::test]
async fn several_edits_that_change_nothing_do_not_stop_a_purge() {
    let mut secrets = SecretStore::new().await;
    // A command has no content to replace.
    secrets.session =
        secrets.session.message(json!({"role": "bashExecution", "command": "ls", "output": "a"}));
    let command = secrets.session.leaf().to_owned();
    for content in ["a", "b", "c"] {
        let edit = json!({"targetId": command, "replacement": {"content": content}});
        secrets.session = secrets.session.entry("context_edit", edit);
    }
    secrets.ingest("one", &secrets.session).await;
    assert!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind = 3") >= 3);
    secrets.purge("e14").await;
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

#[tokio::test]
async fn an_edit_that_says_more_than_it_shows_does_not_keep_its_identity() {
    let mut secrets = SecretStore::new().await;
    let edit = json!({"targetId": "e15", "replacement": {"content": "put briefly", "why": 1}});
    secrets.session = secrets.session.entry("context_edit", edit);
    secrets.ingest("one", &secrets.session).await;
    let newest = "SELECT hex(lineage) FROM messages WHERE kind = 3 ORDER BY id DESC LIMIT 1";
    let before = secrets.ask::<String>(newest);
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    secrets.purge("e14").await;
    assert_ne!(secrets.ask::<String>(newest), before);
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    // Another content is another edit.
    let edit = secrets.session.entries.last_mut().unwrap();
    edit["replacement"]["content"] = "put otherwise".into();
    secrets.ingest("one", &secrets.session).await;
    let report = secrets.doctor().await;
    assert!(report.contains("an entry's text differs from the file"), "{report}");
}

#[tokio::test]
async fn a_session_continues_after_a_purge() {
    let mut secrets = SecretStore::new().await;
    secrets.purge("e14").await;
    // A late edit of it, one of its neighbor, a branch right below it, and a fork of that.
    let late = json!({"targetId": "e14", "replacement": {"content": format!("again {SECRET}")}});
    secrets.session = secrets.session.entry("context_edit", late);
    let edit = json!({"targetId": "e15", "replacement": {"content": "put briefly"}});
    secrets.session = secrets.session.entry("context_edit", edit).chat(2, 30);
    secrets.ingest("one", &secrets.session).await;
    let end = secrets.session.leaf().to_owned();
    secrets.session = secrets.session.at("e14").user("another way").assistant("indeed").chat(3, 30);
    secrets.ingest("one", &secrets.session).await;
    secrets.assert_gone().await;

    let (secrets, block, details) = secrets.compact(&echoing()).await;
    assert!(block.contains(", none missing, 0 degraded, 1 purged\n"), "{block}");
    assert!(!block.contains(SECRET) && !details.to_string().contains(SECRET));
    let mut secrets = secrets;
    secrets.session = secrets.session.at(&end);
    let (secrets, block, details) = secrets.compact(&echoing()).await;
    assert!(block.contains(", none missing, 0 degraded, 1 purged\n"), "{block}");
    assert!(!block.contains(SECRET) && !details.to_string().contains(SECRET));
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    let visible = secrets
        .store
        .read(move |view| Ok(crate::dag::visible(&view.messages().branch(ConversationId(1), &end)?)));
    let visible = visible.await.unwrap();
    assert!(
        visible.iter().all(|message| message.entry_id != "e14" && message.seen.kind != MessageKind::Purged)
    );
}

#[tokio::test]
async fn a_summary_made_during_a_purge_is_not_stored() {
    let secrets = SecretStore::new().await;
    let rows = secrets.store.read(|view| {
        let branch = view.messages().branch(ConversationId(1), "e15")?;
        Ok(crate::dag::visible(&branch).into_iter().rev().take(2).collect::<Vec<_>>())
    });
    let mut pair = rows.await.unwrap();
    pair.reverse();
    let hashes: Vec<Hash> = pair.iter().map(|message| message.seen.hash).collect();
    let summary = crate::store::Summary {
        hash: crate::model::SummaryRecord::identity(0, crate::model::State::Ok, 1, SECRET, &[], &hashes),
        depth: 0,
        text: SECRET.into(),
        tokens: 3,
        state: crate::model::State::Ok,
        model: None,
        prompt_version: 1,
        usage: None,
        created_at: 0,
        quotes: Vec::new(),
    };
    let summary = crate::store::NewSummary {
        summary,
        prepared: crate::store::PreparedText::of(SECRET),
        sources: crate::dag::Sources::Messages(pair.iter().map(|message| message.seen.id).collect()),
    };
    secrets.purge("e13").await;
    let stored = secrets.store.write(move |batch| batch.summaries().add_summary(&summary)).await;
    assert!(stored.unwrap_err().to_string().contains("has been purged meanwhile"));
}

/// A process that was working during a purge does not know of it, and continues with old hashes.
#[tokio::test]
async fn claims_made_after_a_purge_are_removed() {
    let secrets = SecretStore::new().await;
    let claim = |span: &'static [u8]| {
        let ended = crate::text::now() - 1;
        let claim = move |batch: &crate::store::Batch<'_>| {
            batch.summaries().claim(&[Hash::plain(span)], "busy", ended - 20_000, ended)
        };
        secrets.store.write(claim)
    };
    let claims = || secrets.ask::<i64>("SELECT count(*) FROM claims");
    let message = secrets.message_of("e2").await;
    secrets.store.write(move |batch| batch.upkeep().purge(Purge::Message(message))).await.unwrap();
    claim(b"one").await.unwrap();
    assert_eq!(claims(), 1);
    assert!(secrets.store.vacuum().await.unwrap());
    assert_eq!(claims(), 0);
    claim(b"two").await.unwrap();
    secrets.store.checkpoint().await.unwrap();
    assert_eq!(claims(), 0);
}

#[tokio::test]
async fn a_session_and_a_period_are_purged_completely() {
    let secrets = SecretStore::new().await;
    let other = Session::new().chat(4, 20).user(&format!("{SECRET} here too")).assistant("so it is");
    secrets.ingest("two", &other).await;
    let plan = secrets.purge_all(Purge::Session(ConversationId(1))).await;
    assert_eq!(plan.sessions.iter().map(|session| session.session_id.as_str()).collect::<Vec<_>>(), ["one"]);
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM summaries"), 0);
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind <> 4"), 10);
    secrets.ingest("one", &secrets.session).await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind <> 4"), 10);
    let early = secrets.ask::<i64>("SELECT min(timestamp) FROM messages WHERE kind <> 4");
    assert_eq!(secrets.purge_all(Purge::Before(early)).await.messages.len(), 0);
    secrets.purge_all(Purge::Before(i64::MAX)).await;
    secrets.ingest("two", &other).await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM messages WHERE kind <> 4"), 0);
    secrets.assert_gone_entirely();
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

impl SecretStore {
    fn assert_gone_entirely(&self) {
        assert_eq!(words(&self.database()), [""; 0]);
        let bytes = fs::read(self.database()).unwrap();
        assert!(!bytes.windows(TAIL.len()).any(|window| window == TAIL));
    }
}

#[tokio::test]
async fn a_reader_delays_the_log_cleanup_until_the_next_start() {
    let secrets = SecretStore::new().await;
    let reader = Connection::open(secrets.database()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM messages").unwrap();
    let message = secrets.message_of("e14").await;
    secrets.store.write(move |batch| batch.upkeep().purge(Purge::Message(message))).await.unwrap();
    assert!(!secrets.store.vacuum().await.unwrap());
    let pending = secrets.ask::<String>("SELECT value FROM _metadata WHERE key = 'purge_pending'");
    assert!(pending.starts_with("log:"), "{pending}");
    secrets.store.close().await;
    // The reader still sees the old state.
    assert!(
        reader
            .query_row("SELECT count(*) FROM messages WHERE kind = 4", [], |row| row.get::<_, i64>(0))
            .unwrap()
            == 0
    );
    reader.execute_batch("COMMIT").unwrap();
    let store = Store::open(Some(secrets.dir.path()), "project", "/project").unwrap();
    store.flush().await.unwrap();
    drop(reader);
    let secrets =
        SecretStore { store, dir: secrets.dir, session: secrets.session, conversation: secrets.conversation };
    secrets.assert_gone().await;
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM _metadata WHERE key = 'purge_pending'"), 0);
}

/// Two entries with one id, as in a damaged file: the second is stored under a name with a hash.
#[tokio::test]
async fn the_second_entry_with_a_repeated_id_is_purged_with_its_name() {
    let secrets = SecretStore::new().await;
    let mut twice = Session::new().chat(2, 5);
    let mut second = twice.entries[3].clone();
    second["message"]["content"] = json!([{"type": "text", "text": format!("{SECRET} again")}]);
    twice.entries.push(second);
    secrets.ingest("two", &twice).await;
    let entry = secrets.ask::<String>("SELECT entry_id FROM entries WHERE length(entry_id) > 60");
    let message = secrets
        .store
        .read(move |view| view.upkeep().purgeable_at(ConversationId(2), &entry))
        .await
        .unwrap()
        .unwrap();
    secrets.purge("e14").await;
    secrets.purge_all(Purge::Message(message)).await;
    for session in ["two", "two", "three", "three"] {
        secrets.ingest(session, &twice).await;
        secrets.assert_gone().await;
    }
    assert_eq!(secrets.ask::<i64>("SELECT count(*) FROM entries WHERE length(entry_id) > 60"), 0);
    let report = secrets.doctor().await;
    assert!(report.contains("Messages       ok"), "{report}");
}

#[tokio::test]
async fn the_command_asks_first_and_lists_other_copies() {
    let secrets = SecretStore::new().await;
    let backup = ask(&secrets, "backup").await.text;
    let copy = secrets.dir.path().read_dir().unwrap().flatten().map(|file| file.path());
    let mut copy = copy;
    let copy = copy.find(|path| path.extension().is_some_and(|ending| ending == "bak")).unwrap();
    assert!(backup.starts_with(&format!("The history was copied to {}: ", copy.display())), "{backup}");
    assert!(fs::read(&copy).unwrap().len() > 10_000);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = refused(&secrets, &format!("backup {}", copy.display())).await;
    assert!(again.contains("already exists and is not overwritten"), "{again}");
    let elsewhere = secrets.dir.path().join("copies");
    fs::create_dir(&elsewhere).unwrap();
    ask(&secrets, &format!("backup '{}'", elsewhere.display())).await;
    assert_eq!(elsewhere.read_dir().unwrap().count(), 1);
    let store = Store::open(Some(secrets.dir.path()), "other", "/other").unwrap();
    import(&store, &copy).await;

    let name = secrets.store.read(|view| {
        Ok(view.messages().message(view.upkeep().purgeable_at(ConversationId(1), "e14")?.unwrap())?.lineage)
    });
    let name = name.await.unwrap().message_handle();
    let asked = ask(&secrets, &format!("purge {name}")).await;
    let confirm = asked.confirm.unwrap();
    assert_eq!(
        (confirm.title.as_str(), confirm.line.clone()),
        ("Permanently remove 1 message?", format!("purge {name} --yes"))
    );
    assert!(asked.text.starts_with("This would permanently remove: 1 message of 2025-"), "{}", asked.text);
    assert!(
        asked.text.ends_with(&format!("This can't be undone. /lcm purge {name} --yes removes it.")),
        "{}",
        asked.text
    );
    assert!(everything(&secrets.store).await.contains(SECRET));

    let done = ask(&secrets, &confirm.line).await;
    assert!(
        done.confirm.is_none() && done.text.starts_with("Permanently removed: 1 message of "),
        "{}",
        done.text
    );
    assert_eq!(done.answer["complete"], true);
    for named in ["one.jsonl", "the open session", &copy.display().to_string(), "copies/"] {
        assert!(done.text.contains(named), "no {named} in {}", done.text);
    }
    secrets.assert_gone().await;
    assert_eq!(refused(&secrets, "purge e14").await, refused(&secrets, "purge e14 --yes").await);
}

/// If the user searches for it before purging it, it is in the tools' answers, which are not indexed.
#[tokio::test]
async fn tool_answers_that_mention_it_are_purged_too() {
    let mut secrets = SecretStore::new().await;
    let (above, name, below) =
        (secrets.name("e12").await, secrets.name("e14").await, secrets.name("e15").await);
    let grep = secrets.tool("lcm_grep", json!({"query": "phrase"})).await;
    let expand = secrets.tool("lcm_expand", json!({"summary_id": name})).await;
    assert!(grep.contains(SECRET) && grep.contains(&name) && expand.contains(SECRET), "{grep}\n{expand}");
    let start = format!("A session: the pass phrase is {SECRET} and st…");
    let innocent = format!("{above} · user: question");
    let answers =
        [("lcm_grep", &grep), ("lcm_expand", &expand), ("lcm_describe", &start), ("lcm_grep", &innocent)];
    for (tool, answer) in answers {
        secrets.session = secrets.session.tool(tool, json!({}), answer);
    }
    secrets.ingest("one", &secrets.session).await;
    // One that quotes an answer that is removed, and one of a message that stays and gets a new id.
    let echo =
        secrets.name(secrets.session.entries.iter().rev().nth(4).unwrap()["id"].as_str().unwrap()).await;
    for text in [format!("{echo} · toolResult"), format!("{below} · assistant: I shall")] {
        secrets.session = secrets.session.tool("lcm_describe", json!({}), &text);
    }
    secrets.ingest("one", &secrets.session).await;

    let asked = ask(&secrets, &format!("purge {name}")).await;
    assert!(asked.text.contains(", 4 tool results that mention them, and "), "{}", asked.text);
    assert!(asked.text.contains("which could confirm a guess: m-"), "{}", asked.text);
    let done = ask(&secrets, &format!("purge {name} --yes")).await;
    assert_eq!((&done.answer["messages"], &done.answer["answers"]), (&json!(1), &json!(4)));
    secrets.assert_gone().await;
    let left = everything(&secrets.store).await;
    assert!(
        left.contains(&innocent) && left.contains(&below) && !left.contains(&name) && !left.contains(&echo)
    );
    let naming = [secrets.name(secrets.session.leaf()).await];
    assert_eq!(done.answer["still"]["oldIds"], json!(naming));
    secrets.ingest("one", &secrets.session).await;
    secrets.assert_gone().await;
    // Those that stay can be purged too.
    ask(&secrets, &format!("purge {} --yes", naming[0])).await;
    assert!(!everything(&secrets.store).await.contains(&below));
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

#[tokio::test]
async fn a_branch_summary_is_purged_with_the_summaries_it_carries() {
    let mut secrets = SecretStore::new().await;
    let carries =
        |entry: &&Value| entry["type"] == "compaction" && entry["details"].to_string().contains(SECRET);
    let mut details = secrets.session.entries.iter().find(carries).unwrap()["details"].clone();
    details["leaf"] = json!(secrets.session.leaf());
    let fields = json!({"fromId": "e2", "summary": "Elsewhere.", "details": details, "fromHook": true});
    secrets.session = secrets.session.at("e2").entry("branch_summary", fields).chat(2, 10);
    secrets.ingest("one", &secrets.session).await;
    let plan = secrets.purge("e14").await;
    assert_eq!((plan.messages.len(), plan.answers.len(), plan.accounts.len()), (2, 0, 1));
    secrets.assert_gone().await;
    secrets.ingest("one", &secrets.session).await;
    secrets.assert_gone().await;
    let report = secrets.doctor().await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}

/// It carries none of the removed summaries, but the hash of a summary of what came after.
#[tokio::test]
async fn a_branch_summary_with_old_hashes_is_named() {
    let mut secrets = SecretStore::new().await;
    let later = "SELECT lower(hex(hash)) FROM summaries
                  WHERE depth = 0 ORDER BY first_message DESC LIMIT 1";
    let details = json!({
        "lcm": 1, "summaries": [], "frontier": [secrets.ask::<String>(later)], "covered": 2, "readFiles": [],
        "modifiedFiles": [], "leaf": secrets.session.leaf(),
    });
    let fields = json!({"fromId": "e2", "summary": "Elsewhere.", "details": details, "fromHook": true});
    secrets.session = secrets.session.at("e2").entry("branch_summary", fields);
    secrets.ingest("one", &secrets.session).await;
    let account = secrets.message_of(secrets.session.leaf()).await;
    let plan = secrets.purge("e14").await;
    assert_eq!((plan.accounts.len(), plan.naming), (0, BTreeSet::from([account])));
}

#[tokio::test]
async fn the_remaining_mentions_are_listed_by_their_new_ids() {
    let mut secrets = SecretStore::new().await;
    let fields = json!({"fromId": "e3", "summary": "Elsewhere."});
    secrets.session = secrets.session.entry("branch_summary", fields);
    secrets.ingest("one", &secrets.session).await;
    let before = secrets.name(secrets.session.leaf()).await;
    let asked = ask(&secrets, "purge e14").await;
    assert_eq!(asked.answer["still"]["branchSummaries"], json!([before]));
    let done = ask(&secrets, "purge e14 --yes").await;
    let after = secrets.name(secrets.session.leaf()).await;
    assert_ne!(before, after);
    assert_eq!(done.answer["still"]["branchSummaries"], json!([after]));
}

#[tokio::test]
async fn a_refused_purge_is_explained_in_one_sentence() {
    let secrets = SecretStore::new().await;
    for session in ["oneself-a", "oneself-b"] {
        secrets.ingest(session, &Session::new().chat(1, 3)).await;
    }
    for (line, why) in [
        ("purge", "needs a message's id, a session's id, or before and a day; see /lcm help purge"),
        ("purge before", "needs a message's id"),
        ("purge two words", "needs a message's id"),
        ("purge before long", "long is neither a day such as 2026-11-20"),
        ("purge before 1999-01-01", "there is nothing to remove: no message is stored for before 1999-01-01"),
        ("purge m-000000", "there is no message m-000000"),
        ("purge s-000000", "s-000000 is a summary"),
        ("purge nobody", "there is no session and no message nobody"),
        ("purge onesel", "there is no session and no message onesel"),
        ("purge oneself-", "several sessions begin with oneself-"),
    ] {
        let answer = refused(&secrets, line).await;
        assert!(answer.contains(why), "{line}: {answer}");
    }
    let asked = ask(&secrets, "purge one").await;
    assert!(asked.confirm.is_some(), "{}", asked.text);
    let before = ask(&secrets, "purge before 2999-01-01T09:30 --json").await;
    assert_eq!(before.answer["done"], false);
    assert_eq!(before.answer["sessions"], json!(["one", "oneself-a", "oneself-b"]));
}

async fn ask(secrets: &SecretStore, line: &str) -> crate::commands::Answer {
    super::asking::ask(&secrets.store, &secrets.scope(), line).await.unwrap()
}

async fn refused(secrets: &SecretStore, line: &str) -> String {
    super::asking::ask(&secrets.store, &secrets.scope(), line).await.unwrap_err().to_string()
}

impl SecretStore {
    fn scope(&self) -> crate::recall::Scope {
        crate::recall::Scope::at(self.conversation, Some(self.session.leaf().to_owned()))
    }
}

proptest! {
    #![proptest_config(cases(12))]

    /// In any project: after purging any messages, handing everything over again, even as forks, changes
    /// nothing, and the purged text is gone.
    #[test]
    fn any_purged_message_stays_purged(
        events in events(60), knobs in knobs(), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(knobs);
            for event in &events {
                if let Some(asked) = world.happen(event).await
                    && let Outcome::Compacted { compaction, .. } = asked.run(&world.store, &asked.mood.model()).await
                {
                    world.note(&compaction);
                }
            }
            for at in 0..world.sittings.len() {
                world.store_sitting(at).await;
            }
            purge_and_try(&world, &picks).await;
        });
    }
}

async fn purge_and_try(world: &World, picks: &[prop::sample::Index]) {
    let store = &world.store.store;
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for pick in picks {
        let all = store.read(|view| {
            let mut all = Vec::new();
            view.upkeep().audit_messages(|message| {
                if !matches!(message.kind, MessageKind::Edited | MessageKind::Purged) {
                    all.push((message.id, message.json.unwrap()));
                }
                Ok(())
            })?;
            Ok(all)
        });
        let all = all.await.unwrap();
        if all.is_empty() {
            return;
        }
        let (id, json) = pick.get(&all).clone();
        gone.extend(marks(&json));
        store.write(move |batch| batch.upkeep().purge(Purge::Message(id))).await.unwrap();
    }
    // Repeated text belongs to others: in this world only summaries repeat it.
    assert!(marks(&everything(store).await).is_disjoint(&gone), "{gone:?}");
    let report = doctor(store, "doctor").await;
    assert!(report.ends_with("Everything is in order."), "{report}");
    let before = digest(store).await;
    for sitting in world.sittings.iter().rev() {
        let mut session = Session::new();
        session.entries.clone_from(&sitting.entries);
        world.store.ingest(&sitting.id, &session).await;
    }
    assert_eq!(digest(store).await, before);
    for sitting in &world.sittings {
        let mut session = Session::new();
        session.entries.clone_from(&sitting.entries);
        world.store.ingest(&format!("copy of {}", sitting.id), &session).await;
    }
    assert!(marks(&everything(store).await).is_disjoint(&gone), "{gone:?}");
    let report = doctor(store, "doctor").await;
    assert!(report.ends_with("Everything is in order."), "{report}");
}
