//! The boundary to JavaScript. Only this module uses napi: convert, call, convert.
//!
//! JSON crosses as text. An expected failure is returned as a value, `{"error": {"code", "message"}}`; only
//! [`NodeEngine::open`] rejects for one. Any other rejected promise means a bug, and Pi should continue without
//! us.

#![expect(clippy::needless_pass_by_value, reason = "napi passes strings by value")]

mod model;

use std::sync::Arc;

use napi_derive::napi;
use serde::Serialize;
use serde_json::{Value, json};

use crate::tools::{self, Block};
use crate::{cli, commands, engine};
use lcm_model::error;
use lcm_model::files::temporary;
use lcm_recall::Image;
use model::{CallPi, Pi};

/// The version of the addon; a package of another version must not load it.
#[napi(catch_unwind)]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The tools as Pi registers them, a JSON array: `name`, `label`, `description`, `parameters` (a JSON
/// Schema). The preamble has guidance for the model, and exists only if there is something to find. With
/// `notes`, a setting, `lcm_note` is included.
#[napi(catch_unwind)]
pub fn tool_specs(notes: Option<bool>) -> String {
    quiet_panics();
    tools::specs(notes.unwrap_or(false)).to_string()
}

/// The sub-commands of `/lcm`, a JSON array of `{name, help, arguments, long}`: `arguments` are `{value,
/// help}`, completions after the name; a `long` one takes time and should not block the user.
#[napi(catch_unwind)]
pub fn command_specs() -> String {
    commands::specs().to_string()
}

/// Reads the settings. `sources` is JSON: `agentDir`, `cwd`, `projectTrusted`, `environment` (the `LCM_*`
/// variables). Returns JSON: `{"ok": {"settings", "notice"}}`, where `notice` lists invalid settings, or
/// `{"error"}`.
#[napi(catch_unwind)]
pub fn load_settings(sources: String) -> String {
    quiet_panics();
    answer(engine::load_settings(&sources))
}

/// Runs a line of `/lcm settings` without an open session. `request` is JSON: `line`, the text after `/lcm`,
/// and `sources` as for `loadSettings`. Returns the same as `Engine.command`.
#[napi]
pub async fn settings_command(request: String) -> napi::Result<String> {
    quiet_panics();
    Ok(answer(engine::settings_command(&request).await))
}

/// One open session of one project's history.
#[napi(js_name = "Engine")]
pub struct NodeEngine {
    inner: Arc<engine::Engine>,
}

#[napi]
impl NodeEngine {
    /// Opens a session. `options` is JSON: `cwd`, `sessionId`, `settings` from `loadSettings`, and if any
    /// `sessionFile`, `parentSession`. Without `sessionFile` the history stays in memory. Rejects with a
    /// sentence for the user when the store can't be opened.
    #[napi(factory)]
    pub async fn open(options: String) -> napi::Result<Self> {
        quiet_panics();
        let options = lcm_model::read_json(&options).and_then(serde_json::from_value);
        let options = options.map_err(|error| napi::Error::from_reason(error.to_string()))?;
        let inner = engine::Engine::open(options).await;
        let inner = inner.map_err(|error| napi::Error::from_reason(error.to_string()))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the user should know about where the history is kept, or null.
    #[napi(catch_unwind)]
    pub fn notice(&self) -> Option<String> {
        self.inner.notice().map(ToOwned::to_owned)
    }

    /// The addition to the system prompt. It never changes.
    #[napi(catch_unwind)]
    pub fn preamble(&self) -> String {
        self.inner.preamble()
    }

    /// Which entries are neither stored nor queued. `ids` is a JSON array of entry ids: all of the session's,
    /// or one part of them per call. Returns JSON: `{"ok": [indexes into ids]}` or `{"error"}`.
    #[napi]
    pub async fn missing(&self, ids: String) -> napi::Result<String> {
        Ok(answer(self.inner.missing(&ids).await))
    }

    /// Sets aside the stored entries that the session's file shows otherwise: those of the file are unknown then.
    /// Returns JSON: `{"ok": how many}` or `{"error"}`.
    #[napi]
    pub async fn set_aside(&self) -> napi::Result<String> {
        Ok(answer(self.inner.set_aside().await))
    }

    /// Whether the entry with this id is stored or queued. An entry that was neither passed to `missing` nor
    /// handed over counts as unknown.
    #[napi(catch_unwind)]
    pub fn knows(&self, entry_id: String) -> bool {
        self.inner.persistor.knows(&entry_id)
    }

    /// How many entries that were passed to `missing` or handed over are stored or queued.
    #[napi(catch_unwind)]
    pub fn known(&self) -> u32 {
        u32::try_from(self.inner.persistor.known()).unwrap_or(u32::MAX)
    }

    /// Whether entries were lost, on any branch, since `missing` was last called.
    #[napi(catch_unwind)]
    pub fn lacks(&self) -> bool {
        self.inner.persistor.is_lacking()
    }

    /// Whether handing over is worthwhile now. Not for a while after the store failed.
    #[napi(catch_unwind)]
    pub fn accepts(&self) -> bool {
        self.inner.persistor.accepts()
    }

    /// Takes a JSON array of session entries, parents before children, and returns before they are stored.
    /// `orphans` are the ids of those whose parent is missing in the session itself: Pi shows them as roots.
    /// Returns JSON, `{"ok": null}` or `{"error"}`.
    #[napi(catch_unwind)]
    pub fn hand_over(&self, entries: String, orphans: Option<Vec<String>>) -> String {
        answer(self.inner.persistor.hand_over(&entries, orphans.unwrap_or_default()))
    }

    /// Takes one entry `id`, as JSON, that continues the session below the last one handed over, and returns
    /// before it is stored. Returns false, and takes nothing, if the entry must go through `handOver`: before
    /// the session's first message, after an entry was lost, or when the store does not accept.
    #[napi(catch_unwind)]
    pub fn append(&self, id: String, entry: String) -> bool {
        self.inner.persistor.append(id, entry)
    }

    /// Resolves when everything handed over before is on disk.
    #[napi]
    pub async fn flush(&self) -> napi::Result<String> {
        Ok(answer(self.inner.flush().await))
    }

    /// A message for the model about files that changed on disk since the branch that ends at the entry
    /// `leafId` showed them. Returns JSON: `{"ok": text or null}` or `{"error"}`.
    #[napi]
    pub async fn changed_files(&self, leaf_id: String) -> napi::Result<String> {
        Ok(answer(self.inner.changed_files(&leaf_id).await))
    }

    /// Compacts. `operation` is a number chosen by the caller for `cancel`. `request` is JSON: `leafId`,
    /// `firstKeptEntryId`, `tokensBefore`, and if known `customInstructions`, `reason`, `contextWindow`,
    /// `reserveTokens`, `model`, `canRecall`, `failure` (the provider's last error message), `promptTokens` (of system
    /// prompt and tools), `shownFrom` as for `fold`. `pi` is called about models, where `model` is
    /// `provider/id`, or null for the session's own: `{"kind": "models"}` promises the list of those that write
    /// summaries, in the order in which they are asked; `{"kind": "resolve", "model"}` promises what Pi knows
    /// about one, `{"model", "auth", "oauth", "ownStream"}` or `{"error"}`; `{"kind": "ask", "model",
    /// "request": {"system", "prompt", "maxTokens", "timeoutMs", "reasoning"?}}` promises the assistant message.
    /// All of these are JSON. Returns JSON: `{"ok": {"kind": "compacted" | "declined" | "cancelled", …}}` or
    /// `{"error"}`.
    #[napi(ts_args_type = "operation: number, request: string, pi: (call: string) => Promise<string>")]
    pub async fn compact(&self, operation: u32, request: String, pi: CallPi) -> napi::Result<String> {
        Ok(answer(self.inner.compact(operation, &request, Arc::new(Pi { call: pi })).await))
    }

    /// Summarizes in advance, while the agent works, what the next fold or compaction will need, and resolves
    /// when that is done. `request` is JSON as for `fold`; `pi` as for `compact`. Returns JSON: `{"ok": null}` or
    /// `{"error"}`.
    #[napi(ts_args_type = "request: string, pi: (call: string) => Promise<string>")]
    pub async fn prepare(&self, request: String, pi: CallPi) -> napi::Result<String> {
        Ok(answer(self.inner.prepare(&request, Arc::new(Pi { call: pi })).await))
    }

    /// Records a turn that has ended, and decides whether to call `fold` and `prepare`, at once and without
    /// reading anything. `turn` is JSON: `live`, the context (`contextTokens`, `contextWindow`, `model`, `cost`, `tier`,
    /// `summarizer`, `promptTokens`, `ownTokens`, `canRecall`, all if known); `usage` as the provider reported it; the
    /// estimated tokens of the answer's `thinking`, of its `results`, and of those that are `lookups`; `reads`,
    /// pairs of a file and its tokens; `dropped` reasoning blocks; and whether it `goesOn` from the last turn,
    /// `isPrompt` (the run has ended), `isCut` (the answer is), `isBound` (reasoning is). Returns JSON: `{"ok": {"fold",
    /// "prepare", "retry"}}` or `{"error"}`.
    #[napi(catch_unwind)]
    pub fn turn(&self, turn: String) -> String {
        answer(self.inner.turn(&turn))
    }

    /// Takes over the bill and the folds of an engine that was open for the same session.
    #[napi(catch_unwind)]
    pub fn continue_from(&self, before: &NodeEngine) {
        self.inner.continue_from(&before.inner);
    }

    /// Lets `turn` ask for a fold until there is one, wherever the fold point is.
    #[napi(catch_unwind)]
    pub fn ask_fold(&self) {
        self.inner.ask_fold();
    }

    /// Folds the context from summaries that exist: no model is asked. `at` is JSON: `leafId`, `shownFrom` (the
    /// first entry that the branch's last compaction left raw, if there is one), `contextTokens`, `contextWindow`,
    /// `promptTokens`, `model`. Returns JSON: `{"ok": {"entry", "report", "notice"}}`, each null if there is none, or
    /// `{"error"}`. `entry` is for Pi.
    #[napi]
    pub async fn fold(&self, at: String) -> napi::Result<String> {
        Ok(answer(self.inner.fold(&at).await))
    }

    /// The progress of a running compaction, as a line for the footer, or null.
    #[napi(catch_unwind)]
    pub fn compaction_progress(&self) -> Option<String> {
        self.inner.compaction_progress()
    }

    /// Summarizes a branch that the user leaves for another. `left` is JSON: `leafId` (its last entry),
    /// `commonAncestorId` (the last entry shared with the other branch, or null), and if known
    /// `customInstructions`, `contextWindow`, `model`; everything else as for `compact`. Returns JSON:
    /// `{"ok": {"kind": "summarized" | "declined" | "cancelled", "summary"?: {summary, details, usage}}}` or
    /// `{"error"}`.
    #[napi(ts_args_type = "operation: number, left: string, pi: (call: string) => Promise<string>")]
    pub async fn summarize_left(&self, operation: u32, left: String, pi: CallPi) -> napi::Result<String> {
        Ok(answer(self.inner.summarize_left(operation, &left, Arc::new(Pi { call: pi })).await))
    }

    /// Calls a tool. `args` is JSON; `leafId` is the last stored entry of the calling branch, and
    /// `newerRequest` means that the user has since sent a request. `callId` is Pi's id of the call. Returns
    /// JSON: `{"ok": {"content": [blocks], "structuredContent"?}}` or `{"error"}`, whose message is for the model.
    #[napi]
    pub async fn call_tool(
        &self,
        operation: u32,
        name: String,
        args: String,
        leaf_id: Option<String>,
        newer_request: Option<bool>,
        call_id: Option<String>,
    ) -> napi::Result<String> {
        let newer_request = newer_request.unwrap_or_default();
        let blocks = self.inner.call_tool(operation, &name, &args, leaf_id, newer_request, call_id).await;
        Ok(answer(blocks.map(tool_result)))
    }

    /// Runs a line of `/lcm`. `request` is JSON: `line`, the text after `/lcm`; `folders`, `{"sessionDir",
    /// "allSessions"}`, the folder of this project's sessions, and that of all projects' sessions; `sources`
    /// as for `loadSettings`; and if known `leafId`,
    /// `columns` of the screen, `live` (the context as for `turn`), `summarizers` (the models that write
    /// summaries, in the order in which they are asked: `{"model", "price"?: {"input", "output"}}` per million
    /// tokens), and `viewerTemplate`, the file that `export --html` fills. Returns JSON: `{"ok": {"text",
    /// "answer", "confirm"?, "entry"?}}` or `{"error"}`.
    /// `text` is for the user, `answer` the same as data. With `confirm`, `{"title", "message", "line"}`,
    /// nothing was done yet, and `line` is to be run once the user agrees. `entry`, `{"customType", "content",
    /// "details"}`, is for Pi's `sendMessage`.
    #[napi]
    pub async fn command(&self, request: String) -> napi::Result<String> {
        Ok(answer(self.inner.command(&request).await))
    }

    /// Switches to other settings: those of `loadSettings`, as JSON. `enabled` and `dbDir` apply to sessions
    /// opened later. Returns JSON: `{"ok": null}` or `{"error"}`.
    #[napi(catch_unwind)]
    pub fn reconfigure(&self, settings: String) -> String {
        answer(self.inner.reconfigure(&settings))
    }

    /// Takes over Pi's setting `compaction`, as JSON, which may change at any time. Returns JSON: `{"ok": null}` or
    /// `{"error"}`.
    #[napi(catch_unwind)]
    pub fn set_pi_compaction(&self, compaction: String) -> String {
        answer(self.inner.set_pi_compaction(&compaction))
    }

    /// The progress of a running import, or null.
    #[napi(catch_unwind)]
    pub fn import_progress(&self) -> Option<String> {
        self.inner.import_progress()
    }

    /// A message for the user about sessions that could be imported; `folders` as for `command`. Returns
    /// JSON, `{"ok": text or null}` or `{"error"}`; there is a text at most once per project.
    #[napi]
    pub async fn offer_import(&self, folders: String) -> napi::Result<String> {
        Ok(answer(self.inner.offer_import(&folders).await))
    }

    /// Imports what the agents in `alsoRead` have written in this project since the last time, and syncs with `syncTarget`;
    /// `folders` as for `command`. Returns JSON, `{"ok": null}` or `{"error"}`.
    #[napi]
    pub async fn catch_up(&self, folders: String) -> napi::Result<String> {
        Ok(answer(self.inner.catch_up(&folders).await))
    }

    /// The footer, as JSON: `{"ok": {text, notice, reopen}}` or `{"error"}`. Each notice is given once.
    #[napi]
    pub async fn status(&self) -> napi::Result<String> {
        Ok(answer(self.inner.status().await))
    }

    /// Cancels an operation, running or not yet started.
    #[napi(catch_unwind)]
    pub fn cancel(&self, operation: u32) {
        self.inner.cancel(operation);
    }

    /// Stores everything handed over and closes the database.
    #[napi]
    pub async fn close(&self) -> napi::Result<()> {
        self.inner.close().await;
        Ok(())
    }
}

/// A shell user's access to a history.
#[napi(js_name = "Cli")]
#[derive(Default)]
pub struct NodeCli {
    inner: Arc<cli::Cli>,
}

#[napi]
impl NodeCli {
    /// Opens nothing until a request comes.
    #[napi(factory)]
    pub fn begin() -> Self {
        quiet_panics();
        Self::default()
    }

    /// Answers a line of `pi-lcm`. `request` is JSON: `arguments` (everything after the program's name),
    /// `cwd`, `agentDir`, `environment` (the variables `LCM_*`, `PI_*`, `NO_COLOR` and `TERM`), and if any
    /// `viewerTemplate` as for `Engine.command` and `columns` of the terminal. Returns JSON: `{"ok":
    /// {"output", "complaint", "code"}}`, for stdout, stderr and the exit code, or `{"error"}`.
    #[napi]
    pub async fn run(&self, request: String) -> napi::Result<String> {
        Ok(answer(self.inner.run(&request).await))
    }

    /// The progress of a running import, for a terminal.
    #[napi(catch_unwind)]
    pub fn import_progress(&self) -> Option<String> {
        self.inner.import_progress()
    }

    /// Stops what is running, and resolves when nothing is left half-written.
    #[napi]
    pub async fn stop(&self) -> napi::Result<()> {
        self.inner.stop().await;
        Ok(())
    }

    /// Removes what is half-written, whatever still runs. For a process that exits at once: nothing can be
    /// written any more.
    #[napi(catch_unwind)]
    pub fn abandon(&self) {
        temporary::abandon_all();
    }
}

/// An answer as Pi's tools return it.
fn tool_result(blocks: Vec<Block>) -> Value {
    let (mut content, mut structured) = (Vec::new(), Value::Null);
    for block in blocks {
        match block {
            Block::Text(text) => content.push(json!({"type": "text", "text": text})),
            Block::Image(Image { data, mime_type }) => {
                content.push(json!({"type": "image", "data": data, "mimeType": mime_type}));
            }
            Block::Data(data) => structured = data,
        }
    }
    tools::given(json!({"content": content, "structuredContent": structured}))
}

fn answer<T: Serialize>(result: error::Result<T>) -> String {
    let answer = match result {
        Ok(value) => json!({"ok": value}),
        Err(error) => commands::failure(&error),
    };
    answer.to_string()
}

/// Rust reports a panic on stderr, which is Pi's screen. The caller gets a rejected promise instead.
fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}
