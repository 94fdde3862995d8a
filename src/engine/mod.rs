//! The facade: one open session of a project, or a project's history without one. Takes and returns plain
//! data; knows neither JavaScript nor SQL.

mod background;
mod boundary;
mod commands;
mod compaction;
mod preamble;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::commands::{import::Importer, stats, sync::Syncer};
use crate::tools::{self, Block, Notepad};
use background::Background;
pub use commands::settings_command;
use lcm_compaction::Progress;
use lcm_compaction::llm::ProviderState;
use lcm_ingest::import::Home;
use lcm_ingest::{Persistor, PiSession};
use lcm_model::config::{self, SettingSources, Settings};
use lcm_model::error::{Code, Error, Result};
use lcm_model::locks::{OnDrop, lock};
use lcm_model::log::{Field, Log};
use lcm_model::policy::Folding;
use lcm_model::text;
use lcm_recall::Scope;
use lcm_store::branch::Memory;
use lcm_store::tasks::blocking;
use lcm_store::{Store, Totals, View, project_of, real_path};

/// The session to open.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// The project: Pi's working folder.
    pub cwd: PathBuf,
    /// Pi's session id.
    pub session_id: String,
    /// The session file; without one the store is in memory only.
    pub session_file: Option<String>,
    /// The file of the session this one was forked from.
    pub parent_session: Option<String>,
    /// The settings from [`load_settings`].
    pub settings: Settings,
}

/// The footer, and a message to show the user once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `LCM: 847 msgs | 23 summaries (depth 3) | 2.1 MB`
    pub text: String,
    /// A failure since the last call, or a warning about the store's size; given once.
    pub notice: Option<String>,
    /// Whether the session is to be opened again, because another file takes what follows.
    pub reopen: bool,
}

/// An open session.
pub struct Engine {
    store: Store,
    /// These may change while the session is open.
    settings: RwLock<Arc<Settings>>,
    log: Log,
    /// Takes the session's entries.
    pub persistor: Persistor,
    /// The text about earlier sessions, if enabled.
    earlier: Option<String>,
    home: Home,
    importer: Importer,
    syncer: Syncer,
    providers: Arc<ProviderState>,
    background: Background,
    folding: Mutex<Folding>,
    memory: Arc<Memory>,
    notepad: Notepad,
    /// The progress of a running compaction.
    progress: Mutex<Option<Arc<Progress>>>,
    /// What can be cancelled, by the caller's number.
    operations: Mutex<HashMap<u32, CancellationToken>>,
    /// Cancelled when the session is closed; operations and commands have children of it.
    closing: CancellationToken,
}

impl Engine {
    /// Opens the project's store and the session in it.
    ///
    /// # Errors
    /// When the store can't be opened; the message is for the user.
    pub async fn open(options: Options) -> Result<Self> {
        let (store, log, persistor) = begin(&options).await?;
        let (conversation, parent) = (persistor.conversation(), options.parent_session.clone());
        let look = move |view: &View<'_>| preamble::earlier(view, conversation, parent.as_deref());
        let earlier = match options.settings.recall_on_new {
            // A failure here is not worth losing the session for.
            true => store.read(look).await.unwrap_or_default(),
            false => None,
        };
        let home = Home {
            store: store.clone(),
            cwd: real_path(&options.cwd),
            identity: options.settings.project_identity,
            db_dir: options.settings.db_dir.clone(),
            session_id: options.session_id.clone(),
        };
        let memory = Memory::of(Path::new(&home.cwd));
        let Options { session_id, settings, .. } = options;
        log.event("open", &[("session", Field::Name(&session_id))]);
        Ok(Self {
            providers: Arc::new(ProviderState::new(&settings)),
            persistor,
            store,
            settings: RwLock::new(Arc::new(settings)),
            log,
            earlier,
            home,
            importer: Importer::default(),
            syncer: Syncer::default(),
            background: Background::default(),
            folding: Mutex::default(),
            memory: Arc::new(memory),
            notepad: Notepad::default(),
            progress: Mutex::default(),
            operations: Mutex::default(),
            closing: CancellationToken::new(),
        })
    }

    /// What the user should know about where the history is kept.
    pub fn notice(&self) -> Option<&str> {
        self.store.notice()
    }

    /// The addition to the system prompt. It never changes while the session is open, because providers cache
    /// the prompt and bind reasoning to it.
    pub fn preamble(&self) -> String {
        preamble::preamble(self.earlier.as_deref())
    }

    /// Sets aside what the session's file shows otherwise. Returns how many entries differ.
    ///
    /// # Errors
    /// When the store can't be read or written.
    pub async fn set_aside(&self) -> Result<usize> {
        self.persistor.set_aside(&self.closing).await
    }

    /// Which entries are neither stored nor queued, as indexes into `ids`: a JSON array of all or some entry
    /// ids of the session.
    ///
    /// # Errors
    /// When it is not such an array, or the store can't be read.
    pub async fn missing(&self, ids: &str) -> Result<Vec<usize>> {
        self.persistor.missing(read_json("the list of entry ids", ids)?).await
    }

    /// Waits until everything handed over is on disk or has failed.
    pub async fn flush(&self) -> Result<()> {
        self.store.flush().await
    }

    /// A message for the model about files that changed on disk since the branch that ends at `leaf` showed
    /// them, if any.
    ///
    /// # Errors
    /// When the store can't be read, or has no such branch.
    pub async fn changed_files(&self, leaf: &str) -> Result<Option<String>> {
        self.flush().await?;
        lcm_compaction::changed(&self.store, &self.memory, self.persistor.conversation(), leaf).await
    }

    /// The current settings.
    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers the tool call with Pi's id `call` from the branch that ends at `leaf`. `newer_request` means that
    /// the user has since sent a request that is not stored yet.
    ///
    /// # Errors
    /// A message for the model: what is wrong with the call, or that the store failed.
    pub async fn call_tool(
        &self,
        operation: u32,
        name: &str,
        arguments: &str,
        leaf: Option<String>,
        newer_request: bool,
        call: Option<String>,
    ) -> Result<Vec<Block>> {
        self.flush().await?;
        let started = Instant::now();
        let (cancel, operation) = self.begin(operation);
        let scope = Scope { newer_request, call, ..self.scope(leaf) };
        let notepad = self.settings().notes.then_some(&self.notepad);
        let answer = tools::call(&self.store, &scope, name, arguments, notepad, &cancel).await;
        drop(operation);
        let outcome = answer.as_ref().map_or_else(|error| error.code().as_str(), |_| "answered");
        let fields = [
            ("name", Field::Name(name)),
            ("outcome", Field::Name(outcome)),
            ("took", Field::Took(started.elapsed())),
        ];
        self.log.event("tool", &fields);
        answer
    }

    /// The footer, and a message for the user.
    pub async fn status(&self) -> Result<Status> {
        self.flush().await?;
        let Status { text, notice: of_size, .. } = match self.counts().await {
            Ok(counts) => counts,
            Err(error) if error.code() == Code::Closed => return Err(error),
            Err(error) => {
                Status { text: "LCM: can't be read".into(), notice: Some(error.to_string()), reopen: false }
            }
        };
        let damage = self.store.take_damage();
        if damage.is_some() {
            // The ends of the tables, which a write needs, may be damaged too.
            let _ = self.store.write(|batch| batch.messages().last_rows()).await;
        }
        if let Some(why) = self.store.take_unwritable() {
            return self.give_way(why).await;
        }
        let notice = self.persistor.take_notice().or(damage);
        let notice = notice.or_else(|| self.providers.take_notice()).or(of_size);
        let notice = notice.or_else(|| lock(&self.folding).take_notice());
        Ok(Status { text, notice, reopen: false })
    }

    /// Begins another file next to one that is too damaged to be written. It is in use from the next opening on, and
    /// its notice tells the user.
    async fn give_way(&self, why: Error) -> Result<Status> {
        let project = project_of(Path::new(&self.home.cwd), self.home.identity);
        let (store, dir) = (self.store.clone(), self.home.db_dir.clone());
        let begun = blocking(move || store.open_next_to(&dir, &project, &why)).await;
        let notice = match begun {
            Ok(next) => {
                next.close().await;
                None
            }
            Err(error) => Some(error.to_string()),
        };
        Ok(Status { text: "LCM: can't be written".into(), reopen: notice.is_none(), notice })
    }

    async fn counts(&self) -> Result<Status> {
        let conversation = self.persistor.conversation();
        let look = move |view: &View<'_>| {
            Ok((view.summaries().totals(conversation)?, view.database().page_bytes()?))
        };
        let (Totals { messages, summaries, depth, .. }, bytes) = self.store.read(look).await?;
        let summaries = match summaries {
            0 => String::new(),
            n => format!(" | {} (depth {depth})", text::count(n, "summary")),
        };
        let text = format!("LCM: {}{summaries} | {}", text::count(messages, "msg"), text::megabytes(bytes));
        // If it can't be recorded, the store reports its failure itself.
        let size = stats::size_warning(&self.store, bytes, self.settings().size_budget_megabytes).await;
        Ok(Status { text, notice: size.unwrap_or_default(), reopen: false })
    }

    /// Cancels an operation, running or not yet started.
    pub fn cancel(&self, operation: u32) {
        self.operation(operation).cancel();
    }

    /// Stores everything handed over and closes the database. It may be called twice.
    pub async fn close(&self) {
        self.closing.cancel();
        self.background.close().await;
        self.importer.close().await;
        self.syncer.close(&self.home, &self.settings()).await;
        self.store.close().await;
        self.log.event("close", &[]);
    }

    fn scope(&self, leaf: Option<String>) -> Scope {
        Scope::at(self.persistor.conversation(), leaf)
    }

    /// Begins an operation, which this number cancels until the guard is dropped.
    fn begin(&self, number: u32) -> (CancellationToken, OnDrop<impl FnMut()>) {
        (self.operation(number), OnDrop(move || drop(lock(&self.operations).remove(&number))))
    }

    fn operation(&self, number: u32) -> CancellationToken {
        lock(&self.operations).entry(number).or_insert_with(|| self.closing.child_token()).clone()
    }
}

/// The effective settings as data: `settings`, for [`Options`], and `notice`, the invalid ones.
pub fn load_settings(sources: &str) -> Result<config::Loaded> {
    Ok(config::load(&read_json::<SettingSources>("the sources of the settings", sources)?))
}

/// Opens the store and the session in it. If the session can't be read from a damaged database, another one
/// is used.
async fn begin(options: &Options) -> Result<(Store, Log, Persistor)> {
    let project = project_of(&options.cwd, options.settings.project_identity);
    let (dir, of) =
        (options.session_file.is_some().then(|| options.settings.db_dir.clone()), project.clone());
    let mut store = blocking(move || Store::of_session(dir.as_deref(), &of)).await?;
    loop {
        let log = store.place().map(|database| Log::at(database.with_extension("log"))).unwrap_or_default();
        log.switch(options.settings.debug_mode);
        let session = PiSession {
            id: options.session_id.clone(),
            file: options.session_file.clone(),
            parent_file: options.parent_session.clone(),
        };
        let why = match Persistor::open(&store, session, log.clone()).await {
            Ok(persistor) => return Ok((store, log, persistor)),
            Err(why) => why,
        };
        store.close().await;
        if why.code() != Code::Damaged {
            return Err(why);
        }
        let (damaged, dir, project) = (store, options.settings.db_dir.clone(), project.clone());
        store = blocking(move || damaged.open_next_to(&dir, &project, &why)).await?;
    }
}

/// Parses `json`, which an error calls `what`.
fn read_json<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    let read = lcm_model::read_json(json).and_then(serde_json::from_value);
    read.map_err(|error| Error::invalid(format!("{what} is malformed: {error}")))
}
