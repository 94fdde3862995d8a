//! The settings: where they come from, and what they come to.
//!
//! Each is defined once, in [`DEFINITIONS`]; the documentation is made from there. A value may stand in the environment, in
//! the project's settings (if the project is trusted) and in Pi's global settings, and counts in that order. One that
//! cannot be right is named, and what would hold without it holds.

mod definitions;
mod docs;
mod sources;
mod value;

pub use definitions::{DEFINITIONS, Definition, Kind};
pub use docs::reference;
pub use sources::{Loaded, Sources, load};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// How the engine works. Token counts are estimates of [`crate::tokens::estimate`]; [`DEFINITIONS`] say what each means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// `enabled`
    pub enabled: bool,
    /// `dbDir`, absolute
    pub db_dir: PathBuf,
    /// `leafChunkTokens`
    pub leaf_chunk_tokens: usize,
    /// `condensationThreshold`
    pub condensation_threshold: usize,
    /// `maxDepth`
    pub max_depth: usize,
    /// `maxSummaryTokens`
    pub max_summary_tokens: usize,
    /// `minMessagesForCompaction`
    pub min_messages_for_compaction: usize,
    /// `leafPassConcurrency`
    pub leaf_pass_concurrency: usize,
    /// `compactionModels`, each as `provider/id`
    pub compaction_models: Vec<String>,
    /// `directModelCalls`
    pub direct_model_calls: bool,
    /// `largeFileThresholdTokens`
    pub large_file_threshold_tokens: usize,
    /// `sizeBudgetMegabytes`
    pub size_budget_megabytes: usize,
    /// `status`
    pub status: bool,
    /// `debugMode`
    pub debug_mode: bool,
}

impl Settings {
    /// The defaults, for a Pi whose agent folder is `agent_dir`.
    #[must_use]
    pub fn defaults(agent_dir: &Path) -> Self {
        let mut settings = Self::default();
        for definition in DEFINITIONS {
            match definition.kind {
                Kind::Switch { default, field } => *field(&mut settings) = default,
                Kind::Number { default, field, .. } => *field(&mut settings) = default,
                Kind::Folder { default, field } => *field(&mut settings) = agent_dir.join(default),
                Kind::Models { default, field } => {
                    *field(&mut settings) = default.iter().map(ToString::to_string).collect();
                }
            }
        }
        settings
    }
}
