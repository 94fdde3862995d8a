//! The progress of a compaction, for those waiting for it.

use std::sync::Mutex;
use std::time::Instant;

use crate::llm::{Answer, usage};
use lcm_model::locks::lock;
use lcm_model::{Usage, text};

/// The state of a running compaction.
pub struct Progress {
    started: Instant,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    planned: usize,
    made: usize,
    /// The one that answered last.
    model: Option<String>,
    /// Dollars, if the providers' prices are known.
    cost: f64,
}

impl Default for Progress {
    fn default() -> Self {
        Self { started: Instant::now(), counts: Mutex::default() }
    }
}

impl Progress {
    /// Adds to the number of planned summaries.
    pub(super) fn plan(&self, summaries: usize) {
        lock(&self.counts).planned += summaries;
    }

    /// Counts a summary that was made or given up.
    pub(super) fn made(&self) {
        lock(&self.counts).made += 1;
    }

    pub(super) fn note(&self, answer: &Answer) {
        let mut counts = lock(&self.counts);
        if let Ok(reply) = answer {
            counts.model.clone_from(&reply.model);
        }
        counts.cost += usage(answer).map_or(0.0, |usage| Usage::of(usage).dollars);
    }

    /// Dollars spent, as far as known.
    pub(super) fn cost(&self) -> f64 {
        lock(&self.counts).cost
    }

    /// `LCM: compacting, 3 of 12 summaries | claude-haiku-4-5 | 14 s | $0.021`
    pub fn line(&self) -> String {
        let Counts { planned, made, model, cost } = &*lock(&self.counts);
        let mut line = "LCM: compacting".to_owned();
        if *planned > 0 {
            line += &format!(", {} of {}", (made + 1).min(*planned), text::count(*planned, "summary"));
        }
        if let Some(model) = model {
            line += &format!(" | {}", text::one_line(model.rsplit('/').next().unwrap_or(model), 32));
        }
        line += &format!(" | {} s", self.started.elapsed().as_secs());
        if *cost > 0.0 {
            line += &format!(" | {}", text::dollars(*cost));
        }
        line
    }
}
