//! Builds sessions entry by entry, and temporary stores.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::commands::import::Importer;
use crate::commands::{self, CommandContext, Doing};
use lcm_compaction::llm::{Answer, Failure, Model, ModelRequest, Reply};
use lcm_compaction::{Compaction, Outcome, Work};
use lcm_ingest::Handover;
use lcm_ingest::import::{Folders, Home};
use lcm_model::config::Settings;
use lcm_model::dag::visible;
use lcm_model::ids::ConversationId;
use lcm_model::parse_batch;
use lcm_recall::Scope;
use lcm_store::Store;
use lcm_store::branch::Memory;

/// A session's tree as Pi holds it. Each entry is added below the leaf.
#[derive(Clone, Default)]
pub struct Session {
    pub entries: Vec<Value>,
    leaf: Option<String>,
    count: u32,
}

impl Session {
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the leaf, as `/tree` does.
    pub fn at(mut self, entry: &str) -> Self {
        self.leaf = Some(entry.to_owned());
        self
    }

    pub fn leaf(&self) -> &str {
        self.leaf.as_deref().unwrap_or_default()
    }

    /// Appends an entry; ids are `e1`, `e2`, … in order.
    pub fn entry(mut self, kind: &str, fields: Value) -> Self {
        self.count += 1;
        let id = format!("e{}", self.count);
        let time = format!("2026-11-20T09:{:02}:{:02}.000Z", self.count / 60 % 60, self.count % 60);
        let mut entry = json!({"type": kind, "id": id, "parentId": self.leaf, "timestamp": time});
        if let (Value::Object(entry), Value::Object(fields)) = (&mut entry, fields) {
            entry.extend(fields);
        }
        self.entries.push(entry);
        self.leaf = Some(id);
        self
    }

    pub fn message(self, message: Value) -> Self {
        self.entry("message", json!({"message": message}))
    }

    pub fn user(self, text: &str) -> Self {
        self.message(json!({"role": "user", "content": text, "timestamp": 1_763_629_920_000_i64}))
    }

    pub fn assistant(self, text: &str) -> Self {
        let content = json!([{"type": "text", "text": text}]);
        self.message(json!({"role": "assistant", "content": content, "stopReason": "stop"}))
    }

    /// A tool call and its result.
    pub fn tool(self, name: &str, arguments: Value, output: &str) -> Self {
        let id = format!("call{}", self.count);
        let call = json!([{"type": "toolCall", "id": id, "name": name, "arguments": arguments}]);
        self.message(json!({"role": "assistant", "content": call, "stopReason": "toolUse"})).message(json!({
            "role": "toolResult", "toolCallId": id, "toolName": name,
            "content": [{"type": "text", "text": output}], "isError": false
        }))
    }

    /// A script's call and its result, with the calls that it made: their names, arguments and statuses.
    pub fn script(self, code: &str, calls: &[(&str, Value, &str)], output: &str) -> Self {
        let id = format!("call{}", self.count);
        let call = |(at, (name, arguments, status)): (usize, &(&str, Value, &str))| json!({"id": format!("{id}/{}", at + 1), "name": name, "arguments": arguments, "status": status});
        let nested: Vec<Value> = calls.iter().enumerate().map(call).collect();
        let made = json!([{"type": "toolCall", "id": id, "name": "codemode", "arguments": {"code": code}}]);
        self.message(json!({"role": "assistant", "content": made, "stopReason": "toolUse"})).message(json!({
            "role": "toolResult", "toolCallId": id, "toolName": "codemode", "isError": false,
            "content": [{"type": "text", "text": output}], "nestedCalls": {"calls": nested, "complete": true}
        }))
    }

    /// `turns` questions with answers, each of about `words` words.
    pub fn chat(mut self, turns: usize, words: usize) -> Self {
        for turn in 0..turns {
            let at = self.count;
            let text = |who: &str| {
                let body: Vec<String> =
                    (0..words).map(|word| format!("word{}", (word * 7 + turn) % 97)).collect();
                format!("{who} {at} {}", body.join(" "))
            };
            self = self.user(&text("question")).assistant(&text("answer"));
        }
        self
    }

    pub fn json(&self) -> String {
        Value::from(self.entries.clone()).to_string()
    }
}

/// A store in a temporary folder.
pub struct TestStore {
    pub store: Store,
    /// The branch caches of the sessions.
    memories: Mutex<HashMap<ConversationId, Arc<Memory>>>,
    /// Deletes the folder with the store.
    _dir: Option<tempfile::TempDir>,
}

impl TestStore {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        Self { store, memories: Mutex::default(), _dir: Some(dir) }
    }

    /// A store whose folder belongs to another.
    pub fn of(store: Store) -> Self {
        Self { store, memories: Mutex::default(), _dir: None }
    }

    /// The session's branch cache.
    pub fn memory(&self, conversation: ConversationId) -> Arc<Memory> {
        Arc::clone(self.memories.lock().unwrap().entry(conversation).or_default())
    }

    /// Folds all entries of a session.
    pub async fn ingest(&self, session_id: &str, session: &Session) -> ConversationId {
        let (session_id, json) = (session_id.to_owned(), session.json());
        self.store
            .write(move |batch| {
                let conversation = batch.messages().conversation_row(&session_id, None, None, 0)?;
                let handover = Handover { entries: parse_batch(&json)?, ..Default::default() };
                handover.prepare().store(batch, conversation)?;
                Ok(conversation)
            })
            .await
            .unwrap()
    }

    /// The JSON of the messages that are visible at `leaf`, in order.
    pub async fn visible(&self, conversation: ConversationId, leaf: &str) -> Vec<Value> {
        let leaf = leaf.to_owned();
        self.store
            .read(move |view| {
                let branch = view.messages().branch(conversation, &leaf)?;
                visible(&branch)
                    .iter()
                    .map(|v| Ok(view.messages().message(v.seen.id)?.json))
                    .collect::<lcm_model::error::Result<Vec<_>>>()
            })
            .await
            .unwrap()
            .iter()
            .map(|json| serde_json::from_str(json).unwrap())
            .collect()
    }
}

/// A model with scripted answers that records its prompts. Its answers end as the prompts ask.
pub struct ScriptedModel {
    reply: Box<dyn Fn(&ModelRequest) -> Answer + Send + Sync>,
    pub asked: Mutex<Vec<ModelRequest>>,
}

impl ScriptedModel {
    pub fn new(reply: impl Fn(&ModelRequest) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { reply: Box::new(reply), asked: Mutex::default() })
    }

    /// Answers everything with a short, unique summary.
    pub fn helpful() -> Arc<Self> {
        let count = AtomicUsize::new(0);
        Self::new(move |_| {
            let n = count.fetch_add(1, Ordering::Relaxed);
            Ok(Reply {
                text: format!("Stretch {n}\nsummed up.\nExpand for details about: all"),
                model: Some("scripted/model".into()),
                usage: Some(json!({"input": 10, "output": 1, "cost": {"total": 0.5}})),
            })
        })
    }

    pub fn failing() -> Arc<Self> {
        Self::new(|_| Err(Failure::unreachable("503 overloaded")))
    }

    pub fn prompts(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|request| request.prompt.clone()).collect()
    }
}

impl Model for ScriptedModel {
    fn ask(&self, request: ModelRequest) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        let mut answer = (self.reply)(&request);
        if let Ok(Reply { text, .. }) = &mut answer
            && !text.contains("Expand for details about")
        {
            *text += "\nExpand for details about: all";
        }
        self.asked.lock().unwrap().push(request);
        Box::pin(async move { answer })
    }

    fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// The request of a compaction; small chunks, so that short sessions have many.
pub struct Compact<'a> {
    pub store: &'a TestStore,
    pub conversation: ConversationId,
    pub settings: Settings,
    pub request: lcm_compaction::Request,
}

impl<'a> Compact<'a> {
    pub fn new(store: &'a TestStore, conversation: ConversationId, leaf: &str, kept: &str) -> Self {
        let settings = Settings { leaf_chunk_tokens: 300, ..Settings::defaults(Path::new("/nowhere")) };
        let request = lcm_compaction::Request {
            can_recall: true,
            leaf_id: leaf.into(),
            first_kept_entry_id: kept.into(),
            tokens_before: json!(50_000),
            custom_instructions: None,
            reason: Some("manual".into()),
            context_window: Some(200_000),
            reserve_tokens: Some(16_384),
            model: Some("session/model".into()),
            failure: None,
            prompt_tokens: None,
            shown_from: None,
        };
        Self { store, conversation, settings, request }
    }

    pub fn with(mut self, change: impl FnOnce(&mut Settings, &mut lcm_compaction::Request)) -> Self {
        change(&mut self.settings, &mut self.request);
        self
    }

    pub async fn run(&self, model: &Arc<ScriptedModel>) -> Outcome {
        self.run_until(model, CancellationToken::new()).await
    }

    pub async fn run_until(&self, model: &Arc<ScriptedModel>, cancel: CancellationToken) -> Outcome {
        let model: Arc<dyn Model> = Arc::clone(model) as _;
        lcm_compaction::run(self.work(model, cancel), &self.request).await.unwrap()
    }
}

impl Compact<'_> {
    /// The context of a compaction.
    pub fn work(&self, model: Arc<dyn Model>, cancel: CancellationToken) -> Work<'_> {
        Work { session: self.session(), model, cancel, progress: Arc::default() }
    }

    /// The session's history.
    pub fn session(&self) -> lcm_compaction::Session<'_> {
        let (store, settings) = (&self.store.store, &self.settings);
        let (conversation, memory) = (self.conversation, self.store.memory(self.conversation));
        lcm_compaction::Session { store, conversation, memory, settings, can_recall: true }
    }
}

/// The compaction of an outcome that must have one.
pub fn compacted(outcome: Outcome) -> Compaction {
    match outcome {
        Outcome::Compacted(made) => made.compaction,
        other => panic!("not compacted: {other:?}"),
    }
}

/// The first entry that a compaction leaves raw.
pub fn kept(compaction: &Compaction) -> &str {
    compaction.first_kept_entry_id.as_deref().unwrap_or_default()
}

/// Answers `/lcm <line>` for `scope` in the project `home`, on a screen of `columns` if there is one. Pi's
/// sessions are in `sessions`.
pub async fn ask_in(
    home: &Home,
    sessions: &Path,
    scope: &Scope,
    columns: Option<usize>,
    line: &str,
) -> lcm_model::error::Result<commands::Answer> {
    let folders =
        Folders { session_dir: sessions.to_owned(), all_sessions: sessions.join("none"), home: None };
    let request = commands::CommandRequest {
        line: line.to_owned(),
        folders,
        columns,
        viewer_template: Some(sessions.join("viewer.html")),
        ..commands::CommandRequest::default()
    };
    let asked = CommandContext {
        request: &request,
        home,
        scope,
        settings: &Settings { notes: true, ..Settings::defaults(&home.db_dir) },
        importer: &Importer::default(),
        syncer: &commands::sync::Syncer::default(),
        doing: &Doing { background: "idle", ..Doing::default() },
        manner: commands::Style::default(),
        cancel: CancellationToken::new(),
        rest: commands::Rest::default(),
    };
    commands::run(asked).await
}
