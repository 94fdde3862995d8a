//! The progress of a compaction, for those waiting for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::llm::{Answer, usage};
use lcm_model::Usage;
use lcm_model::locks::lock;
use lcm_model::text;

/// The state of a running compaction.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    planned: AtomicUsize,
    made: AtomicUsize,
    reported: Mutex<Reported>,
}

/// What the answers reported.
#[derive(Debug, Default)]
struct Reported {
    model: Option<String>,
    /// Dollars, if the providers' prices are known.
    cost: f64,
}

impl Default for Progress {
    fn default() -> Self {
        let [planned, made] = Default::default();
        Self { started: Instant::now(), planned, made, reported: Mutex::default() }
    }
}

impl Progress {
    /// Adds to the number of planned summaries.
    pub(super) fn plan(&self, summaries: usize) {
        self.planned.fetch_add(summaries, Ordering::Relaxed);
    }

    /// Counts a summary that was made or given up.
    pub(super) fn made(&self) {
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// Records what an answer reports.
    pub(super) fn note(&self, answer: &Answer) {
        let mut reported = lock(&self.reported);
        if let Ok(reply) = answer {
            reported.model.clone_from(&reply.model);
        }
        reported.cost += usage(answer).map_or(0.0, |usage| Usage::of(usage).dollars);
    }

    /// Dollars spent, as far as known.
    pub(super) fn cost(&self) -> f64 {
        lock(&self.reported).cost
    }

    /// `LCM: compacting, 3 of 12 summaries | claude-haiku-4-5 | 14 s | $0.021`
    pub fn line(&self) -> String {
        let (made, planned) = (self.made.load(Ordering::Relaxed), self.planned.load(Ordering::Relaxed));
        let mut line = "LCM: compacting".to_owned();
        if planned > 0 {
            line += &format!(", {} of {}", (made + 1).min(planned), text::count(planned, "summary"));
        }
        let reported = lock(&self.reported);
        if let Some(model) = &reported.model {
            line += &format!(" | {}", text::one_line(model.rsplit('/').next().unwrap_or(model), 32));
        }
        line += &format!(" | {} s", self.started.elapsed().as_secs());
        if reported.cost > 0.0 {
            line += &format!(" | {}", text::dollars(reported.cost));
        }
        line
    }
}
