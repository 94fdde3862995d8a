//! The end of a turn, where the context may be folded.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Engine, read_json};
use lcm_compaction::{At, Compacted, Fold};
use lcm_model::error::Result;
use lcm_model::locks::lock;
use lcm_model::log::Field;
use lcm_model::policy::{Due, Folding, Turn, least_freed};
use lcm_model::text::grouped;

/// How long the end of a turn waits for messages to be stored.
const PATIENCE: Duration = Duration::from_millis(500);

/// What to append at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Boundary {
    /// A compaction, as Pi takes it; `None` if there is none now.
    pub entry: Option<Value>,
    /// A one-line report of it for the user.
    pub report: Option<CompactionReport>,
    /// A message for the user.
    pub notice: Option<String>,
}

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompactionReport {
    /// The report in one line.
    pub text: String,
    /// Whether to show it as a warning.
    pub degraded: bool,
}

impl Engine {
    /// Records a turn that has ended, and decides what to do, without reading anything. `turn` is [`Turn`] as JSON.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn turn(&self, turn: &str) -> Result<Due> {
        let turn: Turn = read_json("the turn", turn)?;
        let mut folding = lock(&self.folding);
        let due = folding.turn(&turn, &self.settings());
        Ok(Due { prepare: due.prepare && (folding.is_needed() || self.background.state() == "idle"), ..due })
    }

    /// Takes over the bill and the folds of an engine that was open for the same session.
    pub fn continue_from(&self, before: &Self) {
        let folding = lock(&before.folding).clone();
        *lock(&self.folding) = folding;
    }

    /// Folds at the end of the next turn by which the summaries are there, wherever the fold point is.
    pub fn ask_fold(&self) {
        lock(&self.folding).ask();
    }

    /// Folds the context, if its summaries are there. `at` is [`At`] as JSON.
    ///
    /// # Errors
    /// When the store fails; then nothing is to be appended.
    pub async fn fold(&self, at: &str) -> Result<Boundary> {
        let mut at: At = read_json("the context", at)?;
        let is_only_asked = {
            let folding = lock(&self.folding);
            at.is_overdue = folding.is_overdue;
            folding.is_asked && !folding.is_full
        };
        let (started, settings) = (Instant::now(), self.settings());
        // A compaction is running, or another Pi is writing; the end of the next turn tries again.
        if lock(&self.progress).is_some()
            || !matches!(tokio::time::timeout(PATIENCE, self.flush()).await, Ok(Ok(())))
            || self.persistor.is_behind()
        {
            return Ok(Boundary::default());
        }
        let mut boundary = Boundary::default();
        let least = least_freed(at.window());
        let frees_little = |made: &Compacted| {
            is_only_asked && (1..made.compaction.tokens_after + least).contains(&at.context_tokens)
        };
        let nothing = |folding: &mut Folding| {
            let says =
                || format!("nothing was compacted, as it would free fewer than {} tokens", grouped(least));
            std::mem::take(&mut folding.is_asked).then(says)
        };
        match lcm_compaction::fold(self.session(&settings), &at).await? {
            Fold::Made(made) if frees_little(&made) => boundary.notice = nothing(&mut lock(&self.folding)),
            Fold::Made(made) => {
                let notice = lock(&self.folding).folded();
                let entry = json!({
                    "type": "compaction",
                    "summary": made.compaction.summary,
                    "firstKeptEntryId": made.compaction.first_kept_entry_id,
                    "details": made.compaction.details,
                });
                let report = CompactionReport { text: made.report, degraded: made.degraded };
                boundary = Boundary { entry: Some(entry), report: Some(report), notice };
            }
            Fold::Unsummarized(_) => lock(&self.folding).is_overdue = true,
            Fold::Nothing => boundary.notice = nothing(&mut lock(&self.folding)),
        }
        let fields = [
            ("folded", Field::Count(usize::from(boundary.entry.is_some()))),
            ("took", Field::Took(started.elapsed())),
        ];
        self.log.event("boundary", &fields);
        Ok(boundary)
    }
}
