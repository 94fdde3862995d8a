//! The settings: their sources and their effective values.
//!
//! Each is defined once, in [`DEFINITIONS`], from which the documentation is generated. A value may come from
//! the environment, from the project's settings (if the project is trusted) and from Pi's global settings, in
//! this order of precedence. An invalid value is reported and ignored.

mod definitions;
#[cfg(test)]
mod docs;
mod edit;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzzing;
mod guidance;
mod host;
mod saving;
mod sources;
mod value;

pub use definitions::{DEFINITIONS, Definition, Kind};
pub use guidance::Guidance;
pub use host::{is_trusted, session_folder, session_folders};
pub use saving::{Changed, Setting, change, setting, settings};
pub use sources::{Loaded, Origin, SettingSources, load};
pub use value::{at_home, listed};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::policy::Window;
use crate::text::grouped;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The engine's settings. Token counts are estimates of [`crate::tokens::estimate`]; [`DEFINITIONS`] describe
/// each one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    pub enabled: bool,
    /// `dbDir`, absolute
    pub db_dir: PathBuf,
    pub project_identity: ProjectIdentity,
    pub leaf_chunk_tokens: usize,
    pub condensation_threshold: usize,
    pub max_depth: usize,
    pub redact: bool,
    pub notes: bool,
    pub recall_on_new: bool,
    /// `alsoRead`: agents as [`AGENTS`](crate::ids::AGENTS) calls them
    pub also_read: Vec<String>,
    /// `syncTarget`: a folder or an address; empty: none
    pub sync_target: String,
    /// `syncProject`: the project's name there; empty: its git remote
    pub sync_project: String,
    /// `syncLabel`: what other machines call this one
    pub sync_label: String,
    pub sync_redact: bool,
    /// `syncRecipients`, unchecked: what is no key must stop a sync
    pub sync_recipients: Vec<String>,
    pub max_summary_tokens: usize,
    pub min_messages_for_compaction: usize,
    pub leaf_pass_concurrency: usize,
    /// `compactionModels`, each as `provider/id` or `session`; the host reads them
    pub compaction_models: Vec<String>,
    pub model_timeout_seconds: usize,
    pub model_retries: usize,
    pub model_tokens_per_hour: usize,
    pub large_file_threshold_tokens: usize,
    pub size_budget_megabytes: usize,
    pub status: bool,
    pub debug_mode: bool,
    pub background: bool,
    pub context: Context,
    pub fold_at: usize,
    /// `compactInstructions`: a text, or the absolute path of a file
    pub compact_instructions: String,
    /// The text of this, of the user's prompts and of the project's files.
    #[serde(default)]
    pub guidance: Guidance,
    /// Pi's own settings, next to `lcm`.
    #[serde(default)]
    pub pi: PiCompaction,
}

/// What counts as one project with its own history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectIdentity {
    /// Pi's working folder.
    #[default]
    Cwd,
    /// The repository that contains it, with all its worktrees.
    Git,
}

/// How large the context may grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Context {
    /// As small as the model's prices make worthwhile.
    #[default]
    Lean,
    /// As large as Pi lets it.
    Full,
}

/// The largest settings file, in bytes.
const SETTINGS_FILE: u64 = 16 << 20;

/// In a small window, a block takes at most this share of the room for the conversation: 1/n.
const BLOCK_SHARE: usize = 8;
/// Summaries are written ahead of Pi's compaction from this share of its threshold on, in percent.
const NEAR: usize = 60;

/// How Pi compacts: its setting `compaction`, as far as work ahead of a compaction depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PiCompaction {
    /// Whether it compacts automatically.
    pub enabled: bool,
    /// Pi compacts automatically when this many tokens of the window are left.
    pub reserve_tokens: usize,
    /// Tokens at the end of a branch that it keeps raw.
    pub keep_recent_tokens: usize,
    /// `modelOverrides`: values for single models, by `provider/id`.
    pub model_overrides: BTreeMap<String, PiOverride>,
}

/// The values of [`PiCompaction`] that differ for one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PiOverride {
    /// Pi compacts automatically when this many tokens of the window are left.
    pub reserve_tokens: Option<usize>,
    /// Tokens at the end of a branch that it keeps raw.
    pub keep_recent_tokens: Option<usize>,
}

impl PiCompaction {
    /// The values for a model, `provider/id`.
    pub fn with(&self, model: Option<&str>) -> Self {
        let found = model.and_then(|model| self.model_overrides.get(model)).copied().unwrap_or_default();
        Self {
            enabled: self.enabled,
            reserve_tokens: found.reserve_tokens.unwrap_or(self.reserve_tokens),
            keep_recent_tokens: found.keep_recent_tokens.unwrap_or(self.keep_recent_tokens),
            model_overrides: BTreeMap::new(),
        }
    }

    /// Whether Pi will compact a context of so many tokens in a window soon.
    pub fn is_near(&self, tokens: usize, window: Option<usize>) -> bool {
        self.threshold(window).is_some_and(|threshold| tokens > 0 && tokens >= threshold * NEAR / 100)
    }

    /// The tokens above which Pi compacts automatically in a window of this size; `None` if it does not.
    pub fn threshold(&self, window: Option<usize>) -> Option<usize> {
        window.filter(|_| self.enabled).map(|window| window.saturating_sub(self.reserve_tokens))
    }

    /// From how many tokens on Pi compacts in a window of this size: above its threshold, once there is more than it keeps.
    pub fn compacts_from(&self, window: Window) -> Option<usize> {
        self.threshold(window.tokens).map(|at| at.max(window.prompt() + self.keep_recent_tokens))
    }

    /// A message for the user if Pi can't compact in a window of this size: it keeps nearly all of it.
    pub fn misfit(&self, window: Window) -> Option<String> {
        let tokens = window.tokens.filter(|_| self.enabled)?;
        if self.keep_recent_tokens < window.share(1) {
            return None;
        }
        let [size, reserve, keep] = [tokens, self.reserve_tokens, self.keep_recent_tokens].map(grouped);
        let keeps = window.share(4);
        // So that Pi compacts before its answers are cut short.
        let reserves = tokens - window.most().unwrap_or_default() + keeps;
        Some(format!(
            "Pi's compaction can't work in this model's window of {size} tokens: it reserves {reserve} \
             (reserveTokens) and keeps {keep} (keepRecentTokens). Values that work, in Pi's settings: \
             \"compaction\": {{\"reserveTokens\": {reserves}, \"keepRecentTokens\": {keeps}}}"
        ))
    }
}

impl Default for PiCompaction {
    /// Pi's defaults.
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            model_overrides: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The most tokens that a block takes in a window, without notes.
    pub fn largest_block(&self, window: Window) -> usize {
        self.max_summary_tokens.min(window.share(BLOCK_SHARE))
    }

    /// The defaults, for a Pi whose agent folder is `agent_dir`.
    #[cfg(any(test, feature = "testing"))]
    pub fn defaults(agent_dir: &Path) -> Self {
        Self::of(&default_values(agent_dir))
    }

    /// The settings with these values, one for each definition.
    fn of(values: &Map<String, Value>) -> Self {
        Self::deserialize(values).unwrap_or_default()
    }
}

/// The default of each setting, by its key.
fn default_values(agent_dir: &Path) -> Map<String, Value> {
    let value = |definition: &Definition| (definition.key.to_owned(), definition.default(agent_dir));
    DEFINITIONS.iter().map(value).collect()
}
