//! What the extension appends to the session by itself: stubs and folds, as the policy decides. It uses only
//! what exists already; the host is asked to wait only where Pi alone would wait for its own compaction.

mod lean;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::{Engine, read_json};
use crate::compaction::{self, At, Early, Looked, Shown, early};
use crate::config::{Context, Settings};
use crate::error::Result;
use crate::log::Field;
use crate::policy::{self, Action, Folds, Reason};
use crate::pruning::{self, Live};
use crate::store::View;
use crate::sync::{OnDrop, lock};
pub(super) use lean::Lean;

/// How long the end of a turn waits for messages to be stored.
const PATIENCE: Duration = Duration::from_millis(500);

/// What to append.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Boundary {
    /// In the order in which Pi takes them. A compaction comes alone: then nothing else is changed.
    pub entries: Vec<Value>,
    /// A one-line report of the compaction for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Whether to decide again once the summaries are written: Pi alone would wait for its own here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The report in one line.
    pub text: String,
    /// Whether to show it as a warning.
    pub degraded: bool,
}

/// A permit to compact, which is returned when it is dropped.
fn alone(busy: &AtomicBool) -> Option<OnDrop<impl FnMut()>> {
    (!busy.swap(true, Ordering::AcqRel)).then(|| OnDrop(|| busy.store(false, Ordering::Release)))
}

impl Engine {
    /// What to append now. `live` is [`Live`] as JSON. Includes everything handed over before.
    ///
    /// # Errors
    /// When the store fails; then nothing is to be appended.
    pub async fn boundary(&self, live: &str) -> Result<Boundary> {
        let live: Live = read_json("the context", live)?;
        let settings = self.settings();
        // The agent does not wait: the end of the next turn tries again.
        let not_now = || {
            lock(&self.lean).add(&live, None, &settings);
            Ok(Boundary::default())
        };
        if lock(&self.progress).is_some() {
            return not_now();
        }
        let Some(_alone) = alone(&self.is_at_boundary) else { return not_now() };
        // Another Pi may be writing.
        match tokio::time::timeout(PATIENCE, self.flush()).await {
            Ok(flushed) => flushed?,
            Err(_) => return not_now(),
        }
        if self.persistor.is_behind() {
            return not_now();
        }
        let started = Instant::now();
        let mut shown = {
            let (memory, conversation) = (Arc::clone(&self.memory), self.persistor.conversation());
            let settings = Arc::clone(&settings);
            let looked = Looked {
                leaf: live.leaf_id.clone(),
                first: live.shown_from.clone(),
                last: lock(&self.lean).last_leaf(),
                window: live.context_window,
            };
            let read =
                move |view: &View<'_>| compaction::shown(view, &memory, conversation, &settings, &looked);
            self.store.read(read).await?
        };
        let mut folds = {
            let mut lean = lock(&self.lean);
            lean.add(&live, Some(&shown), &settings);
            lean.folds(&live, &settings)
        };
        // The ledger is kept nevertheless.
        if settings.context == Context::Full {
            lock(&self.lean).expect(&live);
            return Ok(Boundary::default());
        }
        let mut before = None;
        let (decision, boundary) = loop {
            lock(&self.lean).sift(&live, &mut shown);
            let entry = |at: usize| shown.visible[at].entry_id.clone();
            let decision = lock(&self.lean).decide(&live, &shown, folds);
            match decision.action {
                Action::Leave => break (decision, Boundary::default()),
                Action::Summarize(cut) => {
                    before = Some(entry(cut));
                    let waits = folds == Folds::Now && decision.reason == Reason::Behind;
                    break (decision, Boundary { waits, ..Boundary::default() });
                }
                Action::Fold(cut) => match self.fold(&live, &settings, entry(cut)).await? {
                    Some(boundary) => break (decision, boundary),
                    // The block does not fit without more condensing.
                    None => (before, folds) = (Some(entry(cut)), Folds::Never),
                },
                Action::Stub(from) => match self.stubs(&shown, from).await? {
                    // None of them could be replaced: decide again without them.
                    entries if entries.is_empty() => {}
                    entries => break (decision, Boundary { entries, ..Boundary::default() }),
                },
            }
        };
        lock(&self.lean).record(decision, &live, before);
        let fields = [
            ("entries", Field::Count(boundary.entries.len())),
            ("frees", Field::Count(decision.frees)),
            ("took", Field::Took(started.elapsed())),
        ];
        self.log.event("boundary", &fields);
        Ok(boundary)
    }

    async fn stubs(&self, shown: &Shown, from: usize) -> Result<Vec<Value>> {
        let places = policy::stub_places(&shown.items, from);
        let wanted: Vec<String> = places.iter().map(|at| shown.visible[*at].entry_id.clone()).collect();
        let context = shown.visible.clone();
        let drafts = self.store.read(move |view| pruning::stubs(view, &context, &places)).await?;
        let made: HashSet<&str> = drafts.iter().map(|draft| draft.target.as_str()).collect();
        lock(&self.lean).refuse(wanted.into_iter().filter(|entry| !made.contains(entry.as_str())));
        Ok(drafts.iter().map(pruning::Draft::to_json).collect())
    }

    async fn fold(&self, live: &Live, settings: &Settings, first_kept: String) -> Result<Option<Boundary>> {
        let at = At {
            leaf_id: live.leaf_id.clone(),
            first_kept,
            context_tokens: live.context_tokens.unwrap_or_default(),
            context_window: live.context_window,
            model: live.model.clone(),
        };
        let made = early(self.session(settings), at).await?;
        if made.is_some() {
            self.has_history.store(true, Ordering::Relaxed);
        }
        Ok(made.map(Boundary::from))
    }
}

impl From<Early> for Boundary {
    fn from(Early { compaction, report, degraded }: Early) -> Self {
        let draft = serde_json::json!({
            "type": "compaction",
            "summary": compaction.summary,
            "firstKeptEntryId": compaction.first_kept_entry_id,
            "details": compaction.details,
        });
        Self { entries: vec![draft], report: Some(Report { text: report, degraded }), waits: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_boundary_at_a_time() {
        let busy = AtomicBool::default();
        let permit = alone(&busy).unwrap();
        assert!(alone(&busy).is_none());
        drop(permit);
        assert!(alone(&busy).is_some());
    }
}
