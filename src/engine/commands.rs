//! Commands of an open session, and settings that change while it is open.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::{Engine, read_json};
use crate::commands::{self, Answer, CommandContext, CommandRequest, Doing, Rest, Style};
use lcm_model::config::{PiCompaction, Settings};
use lcm_model::error::Result;
use lcm_model::locks::lock;
use lcm_model::log::Field;

/// Answers `/lcm settings …` without an open session. `request` is JSON: `line`, the text after `/lcm`, and
/// `sources`.
pub async fn settings_command(request: &str) -> Result<Answer> {
    commands::settings::run(&read_json("the command", request)?).await
}

impl Engine {
    /// Answers a line of `/lcm`. `request` is JSON: `line`, `folders`, `sources`, and if known `leafId`,
    /// `columns`, `live`, `summarizers`, `viewerTemplate`.
    pub async fn command(&self, request: &str) -> Result<Answer> {
        let request: CommandRequest = read_json("the command", request)?;
        self.flush().await?;
        let (started, settings) = (Instant::now(), self.settings());
        if commands::removes(&request.line) {
            // Work ahead may be using what is to be removed.
            let now = CancellationToken::new();
            now.cancel();
            self.background.give_way(&now).await;
        }
        let context = CommandContext {
            request: &request,
            home: &self.home,
            scope: &self.scope(request.leaf_id.clone()),
            settings: &settings,
            importer: &self.importer,
            syncer: &self.syncer,
            doing: &Doing {
                folding: lock(&self.folding).clone(),
                background: if settings.background { self.background.state() } else { "off" },
                pause: self.background.pause(),
                compaction: self.compaction_progress(),
                import: self.import_progress(),
            },
            manner: Style::default(),
            cancel: self.closing.child_token(),
            rest: Rest::default(),
        };
        let answer = commands::run(context).await;
        if commands::removes(&request.line) {
            // What was counted is counted again.
            let _ = self.store.checkpoint().await;
        }
        let outcome = answer.as_ref().map_or_else(|error| error.code().as_str(), |_| "answered");
        let fields = [("outcome", Field::Name(outcome)), ("took", Field::Took(started.elapsed()))];
        self.log.event("command", &fields);
        answer
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

    /// Imports what the agents in `alsoRead` have written in this project since the last time, and syncs with
    /// `syncTarget`. `folders` is as for [`Self::command`].
    ///
    /// # Errors
    /// A message for the user. If the import fails, the sync is done nevertheless.
    pub async fn catch_up(&self, folders: &str) -> Result<()> {
        let settings = self.settings();
        if self.home.store.place().is_none() {
            return Ok(());
        }
        let imported = match settings.also_read.as_slice() {
            [] => Ok(()),
            agents => {
                let folders = read_json("where Pi keeps its sessions", folders)?;
                self.importer.also_read(&self.home, &folders, agents).await
            }
        };
        imported.and(self.syncer.in_background(&self.home, &settings).await)
    }

    /// A message for the user about sessions that could be imported, once per project.
    pub async fn offer_import(&self, folders: &str) -> Result<Option<String>> {
        commands::import::offer(&self.home, &read_json("where Pi keeps its sessions", folders)?).await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::super::{Options, load_settings};
    use super::*;
    use lcm_model::config::{DEFINITIONS, Kind};

    /// A value for each setting that differs from its default.
    fn others() -> Value {
        let other = |kind: &Kind| match kind {
            Kind::Switch { default } => json!(!default),
            Kind::Number { range, .. } => json!(range.end()),
            Kind::Word { words: [_, other] } => json!(other),
            Kind::Text => json!("Keep names."),
            Kind::Folder { .. } => json!("others"),
            Kind::Names { read, .. } => {
                json!(["codex", "a/b"].iter().find(|name| read(&json!(name)).is_some()))
            }
        };
        DEFINITIONS.iter().map(|definition| (definition.key.to_owned(), other(&definition.kind))).collect()
    }

    /// The settings as the engine reads them from files, and as the shim gets them.
    fn loaded(agent: &Path, files: &Value) -> (Settings, Value) {
        fs::write(agent.join("settings.json"), files.to_string()).unwrap();
        let sources = json!({"agentDir": agent, "cwd": agent, "projectTrusted": false});
        let loaded = load_settings(&sources.to_string()).unwrap();
        assert_eq!(loaded.notice, None);
        let crossed = serde_json::from_str::<Value>(&json!({"ok": loaded}).to_string()).unwrap();
        (loaded.settings, crossed["ok"]["settings"].clone())
    }

    /// The single values in what `{:#?}` prints, each with its name.
    fn values(settings: &Settings) -> Vec<String> {
        let printed = format!("{settings:#?}");
        printed.lines().filter(|line| line.contains(": ") && line.ends_with(',')).map(Into::into).collect()
    }

    #[tokio::test]
    async fn every_setting_survives_the_way_through_javascript_and_back() {
        let agent = tempfile::tempdir().unwrap();
        let over = json!({"a/b": {"reserveTokens": 1, "keepRecentTokens": 0}});
        let pis =
            json!({"enabled": false, "reserveTokens": 2, "keepRecentTokens": 3, "modelOverrides": over});
        let first = loaded(agent.path(), &json!({}));
        let prompts = agent.path().join("lcm-prompts");
        fs::create_dir(&prompts).unwrap();
        fs::write(prompts.join("focus.md"), include_str!("../../crates/compaction/src/prompts/focus.md"))
            .unwrap();
        let cases = [first, loaded(agent.path(), &json!({"lcm": others(), "compaction": pis}))];

        // A lost value becomes a constant, so that one of two different values shows the loss.
        let [first, second] = [0, 1].map(|at| values(&cases[at].0));
        let same: Vec<_> = first.iter().filter(|line| second.contains(line)).collect();
        assert_eq!(same, [""; 0], "give these different values in this test");

        for ((settings, crossed), (other, crossed_other)) in [(&cases[0], &cases[1]), (&cases[1], &cases[0])]
        {
            let options = json!({"cwd": agent.path(), "sessionId": "s", "settings": crossed});
            let options: Options = serde_json::from_str(&options.to_string()).unwrap();
            let engine = Engine::open(options).await.unwrap();
            assert_eq!(*engine.settings(), *settings);
            engine.reconfigure(&crossed_other.to_string()).unwrap();
            assert_eq!(*engine.settings(), *other);
            engine.close().await;
        }
    }
}
