//! The settings, each defined once: name, meaning, default.

use std::path::{Path, PathBuf};

/// How the engine works. Token counts are estimates of [`crate::tokens::estimate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Folder of the databases. Default: `lcm` in Pi's agent folder; `LCM_DB_DIR` overrides it.
    pub db_dir: PathBuf,
    /// Tokens, as the summariser sees them, that one leaf summary is made from.
    pub leaf_chunk_tokens: usize,
    /// More contiguous summaries of one depth than this are condensed.
    pub condensation_threshold: usize,
    /// Depth at which condensing stops unless the block would not fit.
    pub max_depth: u32,
    /// Largest block in tokens.
    pub max_summary_tokens: usize,
    /// With fewer messages before the kept tail, and no summary yet, Pi compacts in its own way.
    pub min_messages_for_compaction: usize,
    /// Model calls under way at once.
    pub leaf_pass_concurrency: usize,
    /// How long one model call may take, ms.
    pub call_timeout_ms: u64,
}

impl Settings {
    /// The defaults, with the databases under `agent_dir`, and what `environment` overrides.
    pub fn load(agent_dir: &Path, environment: impl Fn(&str) -> Option<String>) -> Self {
        let db_dir = match environment("LCM_DB_DIR").filter(|dir| !dir.trim().is_empty()) {
            Some(dir) => PathBuf::from(dir.trim()),
            None => agent_dir.join("lcm"),
        };
        Self {
            db_dir,
            leaf_chunk_tokens: 4_000,
            condensation_threshold: 6,
            max_depth: 5,
            max_summary_tokens: 8_000,
            min_messages_for_compaction: 10,
            leaf_pass_concurrency: 4,
            call_timeout_ms: 120_000,
        }
    }
}
