//! The boundary to JavaScript, and the only home of napi: convert, call, convert.
//!
//! JSON crosses as text. What may fail in ordinary life comes back as a value, `{"error": {"code", "message"}}`; only
//! [`Engine::open`] rejects for it. Any other rejected promise means a bug, and Pi should go on without us.

#![expect(clippy::needless_pass_by_value, reason = "napi hands strings over by value")]

mod model;

use std::sync::Arc;

use napi_derive::napi;
use serde::Serialize;
use serde_json::{Value, json};

use crate::tools::Block;
use crate::{cli, engine, error};
use model::{CallPi, Pi};

/// The version of the addon; a package of another version must not load it.
#[napi(catch_unwind)]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The tools as Pi registers them, a JSON array: `name`, `label`, `description`, `parameters` (a
/// JSON Schema). Guidance for the model stands in the preamble, which is there only when there is something to find. With
/// `notes`, as the setting says, there is `lcm_note` too.
#[napi(catch_unwind)]
pub fn tool_specs(notes: Option<bool>) -> String {
    quiet_panics();
    engine::tool_specs(notes.unwrap_or(false)).to_string()
}

/// The sub-commands of `/lcm`, a JSON array of `{name, help, arguments, long}`: `arguments` are `{value, help}`, what may be
/// completed behind the name; nobody should have to wait for one that is `long`.
#[napi(catch_unwind)]
pub fn command_specs() -> String {
    engine::command_specs().to_string()
}

/// Reads the settings. `sources` is JSON: `agentDir`, `cwd`, `projectTrusted`, `environment` (the `LCM_*` variables). The
/// answer is JSON: `{"ok": {"settings", "notice"}}`, the notice naming what could not be right, or `{"error"}`.
#[napi(catch_unwind)]
pub fn load_settings(sources: String) -> String {
    quiet_panics();
    answer(engine::load_settings(&sources))
}

/// Runs a line of `/lcm settings` where no session is open. `request` is JSON: `line`, what stands behind `/lcm`, and `sources` as for
/// `loadSettings`. The answer is as that of `Engine.command`.
#[napi(catch_unwind)]
pub fn settings_command(request: String) -> String {
    quiet_panics();
    answer(engine::settings_command(&request))
}

/// One open session of one project's history.
#[napi]
pub struct Engine {
    inner: Arc<engine::Engine>,
}

#[napi]
impl Engine {
    /// Opens a session. `options` is JSON: `cwd`, `sessionId`, `settings` as `loadSettings` gave them, and where there are
    /// any `sessionFile`, `parentSession`. Without `sessionFile` the history stays in memory.
    /// Rejects with a sentence for the user when the store can't be opened.
    #[napi(factory)]
    pub async fn open(options: String) -> napi::Result<Self> {
        quiet_panics();
        let options =
            serde_json::from_str(&options).map_err(|error| napi::Error::from_reason(error.to_string()))?;
        let inner = engine::Engine::open(options).await;
        let inner = inner.map_err(|error| napi::Error::from_reason(error.to_string()))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the user should know about where the history lies, or null.
    #[napi(catch_unwind)]
    pub fn notice(&self) -> Option<String> {
        self.inner.notice().map(ToOwned::to_owned)
    }

    /// What to add to the system prompt, or null. Changes only when a compaction succeeds.
    #[napi(catch_unwind)]
    pub fn preamble(&self) -> Option<String> {
        self.inner.preamble()
    }

    /// Which entries are neither stored nor on their way. `ids` is a JSON array of entry ids: all of the session's, or part of
    /// them after part. The answer is JSON: `{"ok": [places in ids]}` or `{"error"}`.
    #[napi]
    pub async fn missing(&self, ids: String) -> napi::Result<String> {
        Ok(answer(self.inner.missing(&ids).await))
    }

    /// Is the entry with this id stored or on its way? What `missing` was not asked about, and what was not handed over, is
    /// taken for unknown.
    #[napi(catch_unwind)]
    pub fn knows(&self, entry_id: String) -> bool {
        self.inner.knows(&entry_id)
    }

    /// How many entries that were named to `missing` or handed over are stored or on their way.
    #[napi(catch_unwind)]
    pub fn known(&self) -> u32 {
        u32::try_from(self.inner.known()).unwrap_or(u32::MAX)
    }

    /// Is it worth while to hand over now? Not for a while after the store failed.
    #[napi(catch_unwind)]
    pub fn accepts(&self) -> bool {
        self.inner.accepts()
    }

    /// Takes a JSON array of session entries, parents before children, and returns before they are stored. `orphans` are
    /// the ids of those whose parent the session itself does not have: Pi shows them as roots. The answer is JSON,
    /// `{"ok": null}` or `{"error"}`.
    #[napi(catch_unwind)]
    pub fn hand_over(&self, entries: String, orphans: Option<Vec<String>>) -> String {
        answer(self.inner.hand_over(&entries, orphans.unwrap_or_default()))
    }

    /// Takes the one entry `id`, as JSON, that the session goes on with below the one that was handed over last, and returns
    /// before it is stored. False, and nothing is taken, where it must be handed over in the other way: nothing was said in
    /// the session yet, something was lost on its way, the store does not accept.
    #[napi(catch_unwind)]
    pub fn append(&self, id: String, entry: String) -> bool {
        self.inner.append(id, entry)
    }

    /// Resolves when everything handed over before stands on the disk.
    #[napi]
    pub async fn flush(&self) -> napi::Result<String> {
        Ok(answer(self.inner.flush().await))
    }

    /// What to tell the model of files that changed on disk since the branch that ends with the entry `leafId` showed them. The answer
    /// is JSON: `{"ok": text or null}` or `{"error"}`.
    #[napi]
    pub async fn changed_files(&self, leaf_id: String) -> napi::Result<String> {
        Ok(answer(self.inner.changed_files(&leaf_id).await))
    }

    /// Compacts. `operation` is a number of the caller's for `cancel`; `request` is JSON: `leafId`, `firstKeptEntryId`,
    /// `tokensBefore`, and where known `customInstructions`, `reason`, `contextWindow`, `reserveTokens`, `model`, `failure`, what the
    /// provider said when it failed last, `promptTokens`, those of system prompt and tools, `shownFrom` as for
    /// `boundary`. `pi` is asked about
    /// models, `model` being `provider/id`, `cheapest` for the sibling of the session's, or null for the session's own: `{"kind": "resolve", "model"}` promises what Pi
    /// knows of it, `{"model", "auth", "oauth", "ownStream"}` or `{"error"}`; `{"kind": "ask", "model", "request": {"system",
    /// "prompt", "maxTokens", "timeoutMs"}}` promises the assistant message. All of that is JSON.
    /// The answer is JSON: `{"ok": {"kind": "compacted" | "declined" | "cancelled", …}}` or `{"error"}`.
    #[napi(ts_args_type = "operation: number, request: string, pi: (call: string) => Promise<string>")]
    pub async fn compact(&self, operation: u32, request: String, pi: CallPi) -> napi::Result<String> {
        Ok(answer(self.inner.compact(operation, &request, Arc::new(Pi::new(pi))).await))
    }

    /// Summarizes ahead, while the agent works, what the next compaction will ask for, and resolves when that is done; at once
    /// while the context is not full enough. `request` is JSON: `leafId`, and where known `contextTokens`, `contextWindow`, `model`; `pi`
    /// as for `compact`. The answer is JSON: `{"ok": null}` or `{"error"}`.
    #[napi(ts_args_type = "request: string, pi: (call: string) => Promise<string>")]
    pub async fn prepare(&self, request: String, pi: CallPi) -> napi::Result<String> {
        Ok(answer(self.inner.prepare(&request, Arc::new(Pi::new(pi))).await))
    }

    /// What is to be appended now, from what is there already: no model is asked. `live` is JSON: `leafId`, and where known
    /// `contextTokens`, `contextWindow`, `model`, `shownFrom`, the first entry that the branch's last compaction left raw, `edited`,
    /// entries that others edit, `cost` and `summarizer`, prices of the session's model and of the one that writes summaries,
    /// `usage` of the request that was just answered, `blockTokens`, those of the block, `promptTokens`, `ownTokens`, those of our tools,
    /// `isCold`, whether the provider's cache has expired, `canFold`, and `isLate`, whether what is appended misses the next request.
    /// The answer is JSON: `{"ok": {"entries": [what Pi takes at a boundary], "report"?: {text, degraded}}}` or `{"error"}`.
    #[napi]
    pub async fn boundary(&self, live: String) -> napi::Result<String> {
        Ok(answer(self.inner.boundary(&live).await))
    }

    /// How far the compaction is that is under way, in a line for the footer, or null.
    #[napi(catch_unwind)]
    pub fn compaction_progress(&self) -> Option<String> {
        self.inner.compaction_progress()
    }

    /// Tells of a branch that the person leaves for another. `left` is JSON: `leafId`, the entry it ends with,
    /// `commonAncestorId`, the last entry that the other has in common with it, or null, and where known
    /// `customInstructions`, `contextWindow`, `model`; all else as for `compact`. The answer is JSON:
    /// `{"ok": {"kind": "summarized" | "declined" | "cancelled", "summary"?: {summary, details, usage}}}` or `{"error"}`.
    #[napi(ts_args_type = "operation: number, left: string, pi: (call: string) => Promise<string>")]
    pub async fn summarize_left(&self, operation: u32, left: String, pi: CallPi) -> napi::Result<String> {
        Ok(answer(self.inner.summarize_left(operation, &left, Arc::new(Pi::new(pi))).await))
    }

    /// Calls a tool. `args` is JSON; `leafId` is the last stored entry of the asking branch, and `newerRequest` says that the user has
    /// sent a request since. The answer is JSON: `{"ok": [content blocks]}` or `{"error"}`, whose message is for the model.
    #[napi]
    pub async fn call_tool(
        &self,
        operation: u32,
        name: String,
        args: String,
        leaf_id: Option<String>,
        newer_request: Option<bool>,
    ) -> napi::Result<String> {
        let newer_request = newer_request.unwrap_or_default();
        let blocks = self.inner.call_tool(operation, &name, &args, leaf_id, newer_request).await;
        Ok(answer(blocks.map(|blocks| blocks.into_iter().map(content_block).collect::<Value>())))
    }

    /// Runs a line of `/lcm` to its end. `request` is JSON: `line`, what stands behind `/lcm`; `folders`, `{"sessionDir",
    /// "allSessions"}`, where this project's sessions lie, and the folders of all projects' sessions; `sources` as for
    /// `loadSettings`; and where known `leafId`, `contextWindow`, that of the session's model in tokens, `columns` of the screen, `live`, the
    /// context as for `boundary`, and `viewerTemplate`, the file that `export --html` fills. The answer is JSON: `{"ok": {"text", "answer", "confirm"?, "told"?}}` or
    /// `{"error"}`. `text` is for the user, `answer` the same as data; with `confirm`, `{"title", "message", "line"}`, nothing was
    /// done yet, and `line` is to be run once the user agrees; `told`, `{"customType", "content", "details"}`, is for Pi's
    /// `sendMessage`.
    #[napi]
    pub async fn command(&self, request: String) -> napi::Result<String> {
        Ok(answer(self.inner.command(&request).await))
    }

    /// Works by other settings from here on: those of `loadSettings`, as JSON. `enabled` and `dbDir` hold for sessions that are opened
    /// afterwards. The answer is JSON: `{"ok": null}` or `{"error"}`.
    #[napi(catch_unwind)]
    pub fn reconfigure(&self, settings: String) -> String {
        answer(self.inner.reconfigure(&settings))
    }

    /// How far the import is that is under way, or null.
    #[napi(catch_unwind)]
    pub fn import_progress(&self) -> Option<String> {
        self.inner.import_progress()
    }

    /// What to tell the user of sessions that could be imported; `folders` as for `command`. The answer is JSON, `{"ok": text
    /// or null}` or `{"error"}`; there is a text once in a project's life at most.
    #[napi]
    pub async fn offer_import(&self, folders: String) -> napi::Result<String> {
        Ok(answer(self.inner.offer_import(&folders).await))
    }

    /// Imports what the agents of `alsoRead` have said in this project since that was done last; `folders` as for `command`. The
    /// answer is JSON, `{"ok": null}` or `{"error"}`.
    #[napi]
    pub async fn also_read(&self, folders: String) -> napi::Result<String> {
        Ok(answer(self.inner.also_read(&folders).await))
    }

    /// What the footer shows, as JSON: `{"ok": {text, notice}}` or `{"error"}`. A notice is given once.
    #[napi]
    pub async fn status(&self) -> napi::Result<String> {
        Ok(answer(self.inner.status().await))
    }

    /// Stops an operation, under way or yet to begin.
    #[napi(catch_unwind)]
    pub fn cancel(&self, operation: u32) {
        self.inner.cancel(operation);
    }

    /// Stores what was handed over and lets go of the database.
    #[napi]
    pub async fn close(&self) -> napi::Result<()> {
        self.inner.close().await;
        Ok(())
    }
}

/// Somebody in a shell who asks about a history.
#[napi]
#[derive(Default)]
pub struct Cli {
    inner: Arc<cli::Cli>,
}

#[napi]
impl Cli {
    /// Nothing is opened before something is asked.
    #[napi(factory)]
    pub fn begin() -> Self {
        quiet_panics();
        Self::default()
    }

    /// Answers a line of `pi-lcm`. `request` is JSON: `arguments`, everything behind the program's name, `cwd`, `agentDir`,
    /// `environment` (the variables `LCM_*`, `PI_*`, `NO_COLOR` and `TERM`), and where there are any `viewerTemplate` as for
    /// `Engine.command` and `columns`, those of the terminal that reads it. The answer
    /// is JSON: `{"ok": {"output", "complaint", "code"}}`, for stdout, stderr and the end of the process, or `{"error"}`.
    #[napi]
    pub async fn run(&self, request: String) -> napi::Result<String> {
        Ok(answer(self.inner.run(&request).await))
    }

    /// Stops what is under way, and resolves when nothing of it is left half-written.
    #[napi]
    pub async fn stop(&self) -> napi::Result<()> {
        self.inner.stop().await;
        Ok(())
    }
}

/// A block as Pi's tools return it.
fn content_block(block: Block) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Image { data, mime_type } => json!({"type": "image", "data": data, "mimeType": mime_type}),
    }
}

fn answer<T: Serialize>(result: error::Result<T>) -> String {
    match result {
        Ok(value) => json!({"ok": value}).to_string(),
        Err(error) => {
            json!({"error": {"code": error.code().as_str(), "message": error.to_string()}}).to_string()
        }
    }
}

/// Rust reports a panic on stderr, which is Pi's screen. Whoever called hears of it as a rejected promise.
fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}
