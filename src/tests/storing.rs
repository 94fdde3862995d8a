//! The store is a fold over Pi's session trees: the same entries give the same store, in whatever way they
//! arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use serde_json::{Value, json};

use super::session_files::{Dice, File, events, project};
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use super::tree::{Tree, id_of};
use lcm_ingest::file::SessionFile;
use lcm_ingest::{Persistor, PiSession};
use lcm_model::Content;
use lcm_model::dag::visible;
use lcm_model::log::Log;
use lcm_store::{Store, View, unseal};
use lcm_testing::cases;

/// One process with its own store over the project's file.
struct Process {
    store: Store,
    persistors: Vec<Persistor>,
}

impl Process {
    async fn start(dir: &Path, sessions: usize) -> Self {
        let store = Store::open(Some(dir), "project", "/project").unwrap();
        let mut persistors = Vec::new();
        for session in 0..sessions {
            let session = PiSession { id: format!("session {session}"), ..PiSession::default() };
            persistors.push(Persistor::open(&store, session, Log::default()).await.unwrap());
        }
        Self { store, persistors }
    }

    fn path(&self) -> PathBuf {
        match self.store.place() {
            Some(path) => path.to_owned(),
            None => panic!("no file"),
        }
    }

    /// Hands over the entries that this process does not know to be stored, in slices.
    async fn catch_up(&self, session: usize, entries: &[Value], orphans: &[String], slice: usize) {
        let persistor = &self.persistors[session];
        let unknown: Vec<&Value> = entries.iter().filter(|entry| !persistor.knows(id_of(entry))).collect();
        let mut last = None;
        for slice in unknown.chunks(slice) {
            // Like `index.js`: an entry below the last one takes the fast path, if possible.
            let is_taken = match slice {
                [entry] if entry["parentId"].as_str() == last => {
                    last.is_some() && persistor.append(id_of(entry).to_owned(), entry.to_string())
                }
                _ => false,
            };
            last = slice.last().map(|entry| id_of(entry));
            if !is_taken {
                persistor.hand_over(&json!(slice).to_string(), orphans.to_vec()).unwrap();
            }
        }
        self.store.flush().await.unwrap();
    }
}

/// A store's content, independent of row ids, without what depends on the order of hand-overs:
/// - when a session was opened;
/// - whether the files of a summary's messages were looked up yet;
/// - the rendition for an edit of an entry on another branch: the edit changes nothing there nor here, and
///   has a rendition only if that branch came before.
pub(super) fn digest(path: &Path) -> BTreeSet<String> {
    let connection = Connection::open(path).unwrap();
    let unsealed = |context: &Context<'_>| {
        let column: Option<Vec<u8>> = context.get(0)?;
        Ok(column.map(|sealed| unseal(&sealed).unwrap()))
    };
    connection.create_scalar_function("unsealed", 1, FunctionFlags::SQLITE_UTF8, unsealed).unwrap();
    connection
        .execute_batch(
            "CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, messages_fts, 'row');
        CREATE VIRTUAL TABLE temp.summary_words USING fts5vocab(main, summaries_fts, 'row')",
        )
        .unwrap();
    let lines = |sql: &str| {
        let mut query = connection.prepare(sql).unwrap();
        let columns = query.column_count();
        let mut found = query.query([]).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<String> = (0..columns)
                .map(|at| format!("{:?}", row.get::<_, rusqlite::types::Value>(at).unwrap()))
                .collect();
            lines.push(values.join(" | "));
        }
        lines
    };
    let mut digest = BTreeSet::new();
    let counted = "SELECT count(*) FROM counts c
                    WHERE (messages, from_time, to_time, first_request, lowest, highest) IS NOT
                          (SELECT count(DISTINCT m.id) FILTER (WHERE m.kind < 2),
                                  min(m.timestamp) FILTER (WHERE m.kind = 0), max(m.timestamp) FILTER (WHERE m.kind = 0),
                                  min(m.id) FILTER (WHERE m.kind = 0 AND m.role = 'user'), min(m.id), max(m.id)
                             FROM entries e JOIN messages m ON m.id = e.message_id WHERE e.conversation_id = c.conversation_id)
                      AND conversation_id > 0
                       OR conversation_id = -1 AND messages <> (SELECT count(*) FROM messages WHERE kind < 2)";
    assert_eq!(lines(counted), ["Integer(0)"]);
    assert!(lines("SELECT 1 FROM counts").len() > lines("SELECT 1 FROM conversations").len());
    for (table, sql) in [
        ("session", "SELECT session_id, file, parent_session FROM conversations"),
        (
            "message",
            "SELECT hex(m.lineage), hex(p.lineage), m.height, m.kind, m.role, m.tool_name, m.tokens,
                    m.timestamp,
                    m.codec, m.bytes, m.first_passage IS NULL, m.passages, hex(m.json)
               FROM messages m LEFT JOIN messages p ON p.id = m.parent_id WHERE m.kind <> 3",
        ),
        (
            "entry",
            "WITH RECURSIVE above (id, at) AS (
                 SELECT id, parent_id FROM entries
                 UNION ALL
                 SELECT above.id, e.parent_id FROM above JOIN entries e ON e.id = above.at WHERE e.parent_id IS NOT NULL),
             applies (id) AS (
                 SELECT e.id FROM entries e JOIN above ON above.id = e.id
                   JOIN entries t ON t.id = above.at AND t.entry_id = e.target)
             SELECT c.session_id, e.entry_id, p.entry_id, hex(h.lineage),
                    CASE WHEN e.kind <> 2 OR e.id IN applies THEN e.kind ELSE 0 END,
                    CASE WHEN e.kind <> 2 OR e.id IN applies
                         THEN hex(m.lineage) || m.kind || hex(o.lineage) || m.tokens || m.timestamp || hex(m.json) || m.passages END,
                    CASE WHEN e.id IN applies THEN e.target END
               FROM entries e JOIN conversations c ON c.id = e.conversation_id
               LEFT JOIN entries p ON p.id = e.parent_id
               LEFT JOIN messages m ON m.id = e.message_id
               LEFT JOIN messages o ON o.id = m.parent_id
               LEFT JOIN messages h ON h.id = e.head_id",
        ),
        (
            "summary",
            "SELECT hex(hash), depth, text, hex(packed), s.tokens, state, model, prompt_version, created_at,
                    nullif(json_remove(unsealed(extras), '$.facts', '$.restored'), '{}'), hex(f.lineage),
                    hex(l.lineage), messages, from_time, to_time
               FROM summaries s JOIN messages f ON f.id = first_message JOIN messages l ON l.id = last_message",
        ),
        (
            "edge",
            "SELECT hex(s.hash), ordinal, hex(m.lineage), hex(t.hash)
               FROM summary_sources e JOIN summaries s ON s.id = e.summary_id
               LEFT JOIN messages m ON m.id = e.message_id LEFT JOIN summaries t ON t.id = e.source_id",
        ),
        (
            "carried",
            "SELECT c.session_id, e.entry_id, hex(s.hash)
               FROM carried k JOIN entries e ON e.id = k.entry_id JOIN conversations c ON c.id = e.conversation_id
               JOIN summaries s ON s.id = k.summary_id",
        ),
        (
            "listed",
            "SELECT c.session_id, e.entry_id, e.files
               FROM entries e JOIN conversations c ON c.id = e.conversation_id WHERE e.files IS NOT NULL",
        ),
        ("word", "SELECT term, doc, cnt FROM temp.words"),
        ("summary word", "SELECT term, doc, cnt FROM temp.summary_words"),
    ] {
        for line in lines(sql) {
            assert!(digest.insert(format!("{table}: {line}")), "twice: {table}: {line}");
        }
    }
    digest
}

pub(super) fn assert_same(one: &BTreeSet<String>, other: &BTreeSet<String>) {
    let (missing, added): (Vec<_>, Vec<_>) =
        (one.difference(other).collect(), other.difference(one).collect());
    assert!(missing.is_empty() && added.is_empty(), "missing: {missing:#?}\nadded: {added:#?}");
}

/// The store of a project whose sessions are handed over one after the other, each in one piece.
async fn in_order(dir: &Path, files: &[File]) -> BTreeSet<String> {
    let process = Process::start(dir, files.len()).await;
    for (session, file) in files.iter().enumerate() {
        process.catch_up(session, &file.entries, &file.orphans(), usize::MAX).await;
    }
    let digest = digest(&process.path());
    process.store.close().await;
    digest
}

/// Two processes over one file hand over the same sessions at random: in slices, in other orders,
/// interleaved, with restarts and failing writes. At the end each catches up.
async fn at_random(dir: &Path, files: &[File], bytes: &[u8]) -> BTreeSet<String> {
    let mut dice = Dice::new(bytes, 0);
    let mut processes = [Process::start(dir, files.len()).await, Process::start(dir, files.len()).await];
    let order = |who, session: usize| files[session].reordered(Dice::new(bytes, who + session));
    let orders: [Vec<Vec<Value>>; 2] =
        [0, 1].map(|who| (0..files.len()).map(|session| order(who, session)).collect());
    let orphans: Vec<Vec<String>> = files.iter().map(File::orphans).collect();
    let mut reached = vec![[0; 2]; files.len()];
    for _ in 0..files.iter().map(|file| file.entries.len()).sum() {
        let (who, session, slice) = (dice.roll(2), dice.roll(files.len()), 1 + dice.roll(5));
        let entries = &orders[who][session];
        let until = (reached[session][who] + 1 + dice.roll(9)).min(entries.len());
        if dice.roll(4) == 0 {
            let other = Connection::open(processes[who].path()).unwrap();
            let version: i64 = other.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
            other.pragma_update(None, "user_version", 99).unwrap();
            processes[who].catch_up(session, &entries[..until], &orphans[session], slice).await;
            other.pragma_update(None, "user_version", version).unwrap();
            // The next entries are children of those just lost.
            let further = json!(&entries[until..(until + 2).min(entries.len())]).to_string();
            processes[who].persistors[session].hand_over(&further, orphans[session].clone()).unwrap();
            processes[who].store.flush().await.unwrap();
        } else {
            processes[who].catch_up(session, &entries[..until], &orphans[session], slice).await;
            reached[session][who] = until;
        }
        if dice.roll(6) == 0 {
            processes[who].store.close().await;
            processes[who] = Process::start(dir, files.len()).await;
        }
    }
    for (who, process) in processes.iter().enumerate() {
        for (session, entries) in orders[who].iter().enumerate() {
            process.catch_up(session, entries, &orphans[session], 1 + dice.roll(9)).await;
        }
    }
    let digest = digest(&processes[0].path());
    for process in processes {
        process.store.close().await;
    }
    digest
}

/// The store of a project whose session files are imported.
async fn imported(dir: &Path, files: &[String]) -> BTreeSet<String> {
    let store = Store::open(Some(dir), "project", "/project").unwrap();
    for (session, text) in files.iter().enumerate() {
        let path = dir.join("session.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut file = SessionFile::open(&path).unwrap();
        while let Some(slice) = file.slice().unwrap() {
            let begins = slice.entries.iter().any(|entry| matches!(entry.content, Content::Message(_)));
            let work = move |batch: &lcm_store::Batch<'_>| {
                // A session without messages has no row.
                let id = format!("session {session}");
                if !begins && batch.messages().conversation(&id)?.is_none() {
                    return Ok(());
                }
                let row = batch.messages().conversation_row(&id, None, None, 0)?;
                slice.prepare().store(batch, row).map(drop)
            };
            store.write(work).await.unwrap();
        }
        assert!(file.findings.broken_lines.is_empty());
    }
    let Some(path) = store.place().map(ToOwned::to_owned) else { panic!("no file") };
    let digest = digest(&path);
    store.close().await;
    digest
}

/// Folds everything again, whatever the persistor knows.
async fn again(dir: &Path, files: &[File]) -> BTreeSet<String> {
    let store = Store::open(Some(dir), "project", "/project").unwrap();
    for (session, file) in files.iter().enumerate() {
        let (batch, orphans) = (json!(file.entries).to_string(), file.orphans());
        let fold = move |batch_: &lcm_store::Batch<'_>| {
            let Some(known) = batch_.messages().conversation(&format!("session {session}"))? else {
                return Ok(());
            };
            let entries = lcm_model::parse_batch(&batch)?;
            let handover =
                lcm_ingest::Handover { entries, orphans: orphans.into_iter().collect(), skips_known: false };
            handover.prepare().store(batch_, known).map(drop)
        };
        store.write(fold).await.unwrap();
    }
    let Some(path) = store.place().map(ToOwned::to_owned) else { panic!("no file") };
    let digest = digest(&path);
    store.close().await;
    digest
}

/// The expected number of lineages: one for each distinct run of messages from a root.
fn lineages(files: &[File]) -> usize {
    let mut runs = BTreeSet::new();
    for file in files.iter().filter(|file| file.entries.iter().any(|entry| Tree::message(entry).is_some())) {
        let tree = Tree::of(&file.entries);
        for entry in file.entries.iter().filter(|entry| Tree::message(entry).is_some()) {
            let run: Vec<String> = tree
                .path(id_of(entry))
                .into_iter()
                .filter_map(Tree::message)
                .map(|message| message.to_string())
                .collect();
            runs.insert(run);
        }
    }
    runs.len()
}

async fn assert_visible(dir: &Path, files: &[File]) {
    let store = Store::open(Some(dir), "project", "/project").unwrap();
    for (session, file) in files.iter().enumerate() {
        let leaves: Vec<String> = file.entries.iter().map(|entry| id_of(entry).to_owned()).collect();
        let read = move |view: &View<'_>| {
            let mut seen = BTreeMap::new();
            let Some(known) = view.messages().conversation(&format!("session {session}"))? else {
                return Ok(None);
            };
            for leaf in leaves {
                let on_branch = visible(&view.messages().branch(known, &leaf)?);
                let shown = view.messages().shown(known, &leaf)?;
                assert_eq!(shown.len(), on_branch.len(), "at {leaf}");
                for (shown, visible) in shown.iter().zip(&on_branch) {
                    let original = view.messages().message(shown.original)?.lineage;
                    let seen = (shown.seen, original, shown.is_request);
                    assert_eq!(
                        seen,
                        (visible.seen.id, visible.original, visible.seen.role == "user"),
                        "at {leaf}"
                    );
                }
                let texts = on_branch
                    .iter()
                    .map(|v| Ok(view.messages().message(v.seen.id)?.json))
                    .collect::<lcm_model::error::Result<Vec<_>>>()?;
                seen.insert(leaf, texts);
            }
            Ok(Some(seen))
        };
        let tree = Tree::of(&file.entries);
        match store.read(read).await.unwrap() {
            Some(seen) => {
                for (leaf, seen) in seen {
                    assert_eq!(seen, tree.visible(&leaf), "at {leaf}");
                }
            }
            None => assert!(!file.entries.iter().any(|entry| Tree::message(entry).is_some())),
        }
    }
    store.close().await;
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn the_store_does_not_depend_on_how_entries_arrive(
        events in events(),
        bytes in prop::collection::vec(any::<u8>(), 64..200),
    ) {
        let files = project(&events);
        block_on(async {
            let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let plain = in_order(one.path(), &files).await;
            assert_same(&plain, &at_random(other.path(), &files, &bytes).await);
            assert_same(&plain, &again(one.path(), &files).await);
            assert_same(&plain, &again(other.path(), &files).await);
        });
    }

    #[test]
    fn a_session_file_of_any_version_in_any_order_gives_the_same_store(
        events in events(),
        bytes in prop::collection::vec(any::<u8>(), 64..200),
    ) {
        let files = project(&events);
        block_on(async {
            let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
            let plain = in_order(dirs[0].path(), &files).await;
            let shuffled: Vec<String> = files.iter().map(|file| file.shuffled(Dice::new(&bytes, 0))).collect();
            assert_same(&plain, &imported(dirs[1].path(), &shuffled).await);

            // Version 1 has no trees: each session is its messages in order.
            let rows: Vec<File> = files.iter().map(File::in_a_row).collect();
            let old: Vec<String> = rows.iter().map(File::of_version_1).collect();
            let messages = |digest: BTreeSet<String>| -> BTreeSet<String> {
                digest.into_iter().filter(|line| line.starts_with("message: ") || line.starts_with("word: ")).collect()
            };
            let other = in_order(dirs[2].path(), &rows).await;
            let dir = tempfile::tempdir().unwrap();
            assert_same(&messages(other), &messages(imported(dir.path(), &old).await));
        });
    }

    #[test]
    fn every_leaf_shows_what_pi_shows_and_shared_prefixes_are_stored_once(events in events()) {
        let files = project(&events);
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let digest = in_order(dir.path(), &files).await;
            assert_eq!(digest.iter().filter(|line| line.starts_with("message: ")).count(), lineages(&files));
            assert_visible(dir.path(), &files).await;
        });
    }
}

#[tokio::test]
async fn a_lost_store_is_rebuilt_with_its_summaries() {
    let store = TestStore::new();
    let Some(path) = store.store.place().map(ToOwned::to_owned) else { panic!("no file") };
    let edit = |target: &str, content: Value| json!({"targetId": target, "replacement": content});
    let mut one = Session::new()
        .chat(20, 30)
        .entry("context_edit", edit("e3", Value::Null))
        .entry("context_edit", edit("e4", json!({"content": "put more briefly"})))
        .message(json!({"role": "bashExecution", "command": "env", "output": "SECRET", "excludeFromContext": true}))
        .chat(80, 30);
    let mut sessions = Vec::new();
    for round in 0..3 {
        let id = format!("session {round}");
        let conversation = store.ingest(&id, &one).await;
        let compact = Compact::new(&store, conversation, one.leaf(), one.leaf());
        let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
        assert!(!compaction.details.summaries.is_empty());
        let fields = json!({"summary": compaction.summary, "details": compaction.details});
        one = one.entry("compaction", fields).chat(15, 30);
        store.ingest(&id, &one).await;
        sessions.push((id, one.clone()));
        // The next round is a fork: it continues from its parent.
        one = one.entry("label", json!({"targetId": "e1", "label": "fork"})).user(&format!("round {round}"));
    }
    let before = digest(&path);
    assert!(before.iter().filter(|line| line.starts_with("carried: ")).count() > 30);
    for table in ["summary", "edge", "summary word"] {
        assert!(before.iter().any(|line| line.starts_with(&format!("{table}: "))), "{table}");
    }

    // A fork may come before its parent session.
    for order in [[0, 1, 2], [2, 0, 1]] {
        let rebuilt = TestStore::new();
        for at in order {
            let (id, session): &(String, Session) = &sessions[at];
            rebuilt.ingest(id, session).await;
        }
        let Some(path) = rebuilt.store.place().map(ToOwned::to_owned) else { panic!("no file") };
        assert_same(&before, &digest(&path));
    }
}
