//! Commands of an open session, and settings that change while it is open.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{Engine, Live, read_json};
use crate::commands::{self, Answer, CommandContext, Doing, Rest, Style, Summarizer};
use crate::config::{PiCompaction, Settings, Sources};
use crate::error::Result;
use crate::ingest::import::Folders;
use crate::log::Field;
use crate::store::Place;
use crate::sync::lock;

/// A line of `/lcm` and its context.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommandRequest {
    /// The text after `/lcm`.
    line: String,
    /// The last entry of the branch.
    leaf_id: Option<String>,
    /// The window of the session's model in tokens, if known.
    context_window: Option<usize>,
    /// The width of the screen, if there is one.
    columns: Option<usize>,
    /// The current context, if known.
    #[serde(default)]
    live: Live,
    /// The models that write summaries, in the order in which they are asked.
    #[serde(default)]
    summarizers: Vec<Summarizer>,
    /// Where Pi keeps its sessions.
    folders: Folders,
    /// The sources of the settings.
    #[serde(default)]
    sources: Sources,
    /// The viewer's template, if the package includes it.
    viewer_template: Option<PathBuf>,
}

/// A line of `/lcm settings` without an open session.
#[derive(Clone, Debug, Deserialize)]
struct SettingsLine {
    line: String,
    sources: Sources,
}

/// Answers `/lcm settings …` without an open session. `request` is JSON: `line`, the text after `/lcm`, and
/// `sources`.
pub fn settings_command(request: &str) -> Result<Answer> {
    let SettingsLine { line, sources } = read_json("the command", request)?;
    commands::settings::run(&sources, &line)
}

impl Engine {
    /// Answers a line of `/lcm`. `request` is JSON: `line`, `folders`, `sources`, and if known `leafId`,
    /// `contextWindow`, `columns`, `live`, `summarizers`, `viewerTemplate`.
    pub async fn command(&self, request: &str) -> Result<Answer> {
        let asked: CommandRequest = read_json("the command", request)?;
        self.flush().await?;
        let (started, settings) = (Instant::now(), self.settings());
        if commands::removes(&asked.line) {
            // Work ahead may be using what is to be removed.
            let now = CancellationToken::new();
            now.cancel();
            self.background.give_way(&now).await;
        }
        let context = CommandContext {
            home: &self.home,
            folders: &asked.folders,
            scope: &self.scope(asked.leaf_id),
            settings: &settings,
            importer: &self.importer,
            sources: &asked.sources,
            doing: &self.doing(&settings),
            columns: asked.columns,
            window: asked.context_window,
            viewer_template: asked.viewer_template.as_deref(),
            live: &asked.live,
            summarizers: &asked.summarizers,
            manner: Style::default(),
            cancel: self.closing.child_token(),
            rest: Rest::default(),
        };
        let answer = commands::run(context, &asked.line).await;
        if commands::removes(&asked.line) {
            // What was counted is counted again.
            let _ = self.store.checkpoint().await;
        }
        let outcome = answer.as_ref().map_or_else(|error| error.code().as_str(), |_| "answered");
        let fields = [("outcome", Field::Name(outcome)), ("took", Field::Took(started.elapsed()))];
        self.log.event("command", &fields);
        answer
    }

    fn doing(&self, settings: &Settings) -> Doing {
        Doing {
            folding: lock(&self.folding).clone(),
            background: if settings.background { self.background.state() } else { "off" },
            compaction: self.compaction_progress(),
            import: self.import_progress(),
        }
    }

    /// Switches to other settings. `settings` is the JSON from [`super::load_settings`]. Where databases are,
    /// and whether a session exists at all, is decided only when one is opened.
    pub fn reconfigure(&self, settings: &str) -> Result<()> {
        let settings: Settings = read_json("the settings", settings)?;
        self.providers.spend.limit(&settings);
        self.log.switch(settings.debug_mode);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        Ok(())
    }

    /// Takes over Pi's setting `compaction` as it is now: the user can change it at any time. `compaction` is its
    /// JSON.
    pub fn set_pi_compaction(&self, compaction: &str) -> Result<()> {
        let pi = PiCompaction::of(&read_json("Pi's compaction settings", compaction)?);
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        if settings.pi != pi {
            *settings = Arc::new(Settings { pi, ..Settings::clone(&settings) });
        }
        Ok(())
    }

    /// The progress of a running import.
    pub fn import_progress(&self) -> Option<String> {
        self.importer.progress()
    }

    /// Imports what the agents in `alsoRead` have written in this project since the last time. `folders` is
    /// as for [`Self::command`].
    pub async fn also_read(&self, folders: &str) -> Result<()> {
        let agents = &self.settings().also_read;
        if agents.is_empty() || *self.home.store.place() == Place::Memory {
            return Ok(());
        }
        self.importer.also_read(&self.home, &read_json("where Pi keeps its sessions", folders)?, agents).await
    }

    /// A message for the user about sessions that could be imported, once per project.
    pub async fn offer_import(&self, folders: &str) -> Result<Option<String>> {
        commands::import::offer(&self.home, &read_json("where Pi keeps its sessions", folders)?).await
    }
}
