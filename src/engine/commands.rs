//! What a person asks of an open session, and the settings that change while it is open.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Engine, lock, read_json};
use crate::commands::rest::Rest;
use crate::commands::{self, Answer, CommandContext, Doing, Style};
use crate::config::{Context, Settings, Sources};
use crate::error::Result;
use crate::ingest::import::Folders;
use crate::log::Field;
use crate::pruning::Live;
use crate::store::Place;

/// A line of `/lcm`, and where it is asked from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommandRequest {
    /// What stands behind `/lcm`.
    line: String,
    /// The entry at the end of the branch.
    leaf_id: Option<String>,
    /// Of the session's model, in tokens, where it is known.
    context_window: Option<usize>,
    /// Of the screen, where there is one.
    columns: Option<usize>,
    /// The context as it is, where that is known.
    #[serde(default)]
    live: Live,
    /// Where Pi keeps its sessions.
    folders: Folders,
    /// Where the settings come from.
    #[serde(default)]
    sources: Sources,
    /// The viewer's template, where the package has it.
    viewer_template: Option<PathBuf>,
}

/// A line of `/lcm settings` where no session is open.
#[derive(Clone, Debug, Deserialize)]
struct SettingsLine {
    line: String,
    sources: Sources,
}

/// The sub-commands of `/lcm`: [`commands::specs`].
#[must_use]
pub fn command_specs() -> Value {
    commands::specs()
}

/// Answers `/lcm settings …` where no session is open. `request` is JSON: `line`, all behind `/lcm`, and `sources`.
///
/// # Errors
/// What the user should read.
pub fn settings_command(request: &str) -> Result<Answer> {
    let SettingsLine { line, sources } = read_json("the command", request)?;
    commands::settings::run(&sources, &line)
}

impl Engine {
    /// Answers a line of `/lcm`. `request` is JSON: `line`, `folders`, `sources`, and where known `leafId`, `contextWindow`,
    /// `columns`, `live`, `viewerTemplate`.
    ///
    /// # Errors
    /// What the user should read.
    pub async fn command(&self, request: &str) -> Result<Answer> {
        let CommandRequest {
            line,
            leaf_id,
            context_window,
            columns,
            live,
            folders,
            sources,
            viewer_template,
        } = read_json("the command", request)?;
        self.flush().await?;
        let (started, settings) = (Instant::now(), self.settings());
        if commands::removes(&line) {
            // What is being written ahead may be made of what goes.
            let now = CancellationToken::new();
            now.cancel();
            self.background.give_way(&now).await;
        }
        let asked = CommandContext {
            home: &self.home,
            folders: &folders,
            scope: &self.scope(leaf_id),
            settings: &settings,
            importer: &self.importer,
            sources: &sources,
            doing: &self.doing(&settings),
            columns,
            window: context_window,
            viewer_template: viewer_template.as_deref(),
            live: &live,
            manner: Style::default(),
            cancel: CancellationToken::new(),
            rest: Rest::default(),
        };
        let answer = commands::run(asked, &line).await;
        if commands::removes(&line) {
            self.persistor.count_anew();
        }
        let outcome = answer.as_ref().map_or_else(|error| error.code().as_str(), |_| "answered");
        let fields = [("outcome", Field::Name(outcome)), ("took", Field::Took(started.elapsed()))];
        self.log.event("command", &fields);
        answer
    }

    fn doing(&self, settings: &Settings) -> Doing {
        let (decided, ledger, tells_cache) = {
            let lean = lock(&self.lean);
            (lean.told.iter().copied().collect(), lean.ledger.clone(), lean.tells_cache)
        };
        Doing {
            decided: if settings.context == Context::Full { Vec::new() } else { decided },
            ledger,
            tells_cache,
            background: if settings.background { self.background.state() } else { "off" },
            compaction: self.compaction_progress(),
            import: self.import_progress(),
        }
    }

    /// Works by other settings from here on. `settings` is what [`super::load_settings`] gave, as JSON. Where the databases lie, and
    /// whether there is a session at all, is decided when one is opened.
    ///
    /// # Errors
    /// When it is no such JSON.
    pub fn reconfigure(&self, settings: &str) -> Result<()> {
        let settings: Settings = read_json("the settings", settings)?;
        self.providers.limit(&settings);
        self.log.switch(settings.debug_mode);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        Ok(())
    }

    /// How far the import is that is under way.
    #[must_use]
    pub fn import_progress(&self) -> Option<String> {
        self.importer.progress()
    }

    /// Imports what the agents of `alsoRead` have said in this project since that was done last. `folders` as for [`Self::command`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn also_read(&self, folders: &str) -> Result<()> {
        let agents = &self.settings().also_read;
        if agents.is_empty() || *self.home.store.place() == Place::Memory {
            return Ok(());
        }
        self.importer.also_read(&self.home, &read_json("where Pi keeps its sessions", folders)?, agents).await
    }

    /// What to tell the user of sessions that could be imported; once in a project's life.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn offer_import(&self, folders: &str) -> Result<Option<String>> {
        commands::import::offer(&self.home, &read_json("where Pi keeps its sessions", folders)?).await
    }
}
