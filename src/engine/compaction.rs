//! Compactions, work ahead of them, and summaries of branches that the user leaves.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::{Engine, read_json};
use lcm_compaction::llm::{Chain, Host};
use lcm_compaction::{Ahead, LeftBranch, Outcome, Prepared, Progress, Request, Session, Work};
use lcm_model::config::Settings;
use lcm_model::error::{Error, Result};
use lcm_model::locks::{OnDrop, lock};
use lcm_model::log::Field;

impl Engine {
    /// Compacts, including everything handed over before.
    ///
    /// # Errors
    /// When the store fails; then Pi should compact by itself.
    pub async fn compact(&self, operation: u32, request: &str, host: Arc<dyn Host>) -> Result<Outcome> {
        let started = Instant::now();
        let request: Request = read_json("the compaction request", request)?;
        self.flush().await?;
        if self.persistor.is_behind() {
            return Err(Error::store("the history could not be stored, so Pi compacts by itself"));
        }
        let (cancel, operation) = self.begin(operation);
        let progress = Arc::<Progress>::default();
        *lock(&self.progress) = Some(Arc::clone(&progress));
        let shown = OnDrop(|| *lock(&self.progress) = None);
        self.background.give_way(&cancel).await;
        let settings = self.settings();
        let mut work = self.work(&settings, host, true, cancel, progress);
        work.session.can_recall = request.can_recall;
        let outcome = lcm_compaction::run(work, &request).await;
        drop((operation, shown));
        self.log_compaction(&outcome, started);
        let outcome = outcome?;
        if let Outcome::Compacted(made) = &outcome {
            if let Some(usage) = &made.compaction.usage {
                lock(&self.folding).pay(usage);
            }
            // The block is ready and need not wait for this.
            let store = self.store.clone();
            tokio::spawn(async move { store.checkpoint().await });
        }
        Ok(outcome)
    }

    /// Summarizes in advance what the next fold or compaction will need; [`Self::turn`] says when it is time.
    /// `at` is [`At`] as JSON. Returns when that is done.
    pub async fn prepare(&self, at: &str, host: Arc<dyn Host>) -> Result<()> {
        let mut ahead = Ahead { at: read_json("the context", at)?, ..Ahead::default() };
        let settings = self.settings();
        let is_fold_near = {
            let folding = lock(&self.folding);
            ahead.is_needed = folding.is_needed();
            folding.is_fold_near
        };
        let permit = loop {
            if let Some(permit) = self.background.begin(&ahead.at.leaf_id, ahead.is_needed) {
                break permit;
            }
            if !ahead.at.is_awaited || self.background.state() != "working" {
                return Ok(());
            }
            // What runs has begun before the last messages.
            self.background.give_way(&CancellationToken::new()).await;
        };
        self.flush().await?;
        if self.persistor.is_behind() {
            return Ok(());
        }
        let started = Instant::now();
        if is_fold_near {
            ahead.fold_before = lcm_compaction::unsummarized(&self.session(&settings), &ahead.at).await?;
        }
        let stop = permit.running.stop.clone();
        // What a fold needs may also be written by the session's own model.
        let work = self.work(&settings, host, is_fold_near, stop, Arc::default());
        let prepared = lcm_compaction::prepare(work, &ahead, &permit.running.pause).await;
        let (outcome, failure) = match &prepared {
            Ok(Prepared { failure: None, .. }) => ("prepared", None),
            Ok(Prepared { failure, .. }) => ("failed", failure.clone()),
            Err(error) => (error.code().as_str(), Some(error.to_string())),
        };
        permit.end(failure.filter(|_| !ahead.is_needed));
        if let Ok(Prepared { usage: Some(usage), .. }) = &prepared {
            lock(&self.folding).pay(usage);
        }
        let fields = [("outcome", Field::Name(outcome)), ("took", Field::Took(started.elapsed()))];
        self.log.event("background", &fields);
        prepared.map(drop)
    }

    /// The progress of a running compaction.
    pub fn compaction_progress(&self) -> Option<String> {
        lock(&self.progress).as_ref().map(|progress| progress.line())
    }

    fn work<'a>(
        &'a self,
        settings: &'a Settings,
        host: Arc<dyn Host>,
        own_model: bool,
        cancel: CancellationToken,
        progress: Arc<Progress>,
    ) -> Work<'a> {
        let providers = Arc::clone(&self.providers);
        let chain = Chain::new(host, settings, own_model, providers, self.log.clone());
        Work { session: self.session(settings), model: Arc::new(chain), cancel, progress }
    }

    /// The session's history, for compactions and folds.
    pub(super) fn session<'a>(&'a self, settings: &'a Settings) -> Session<'a> {
        let (store, conversation) = (&self.store, self.persistor.conversation());
        Session { store, conversation, memory: Arc::clone(&self.memory), settings, can_recall: true }
    }

    /// Summarizes a branch that the user leaves, including everything handed over before.
    ///
    /// # Errors
    /// When the store fails; then Pi should summarize it by itself.
    pub async fn summarize_left(&self, operation: u32, left: &str, host: Arc<dyn Host>) -> Result<Outcome> {
        let left: LeftBranch = read_json("the branch that is left", left)?;
        self.flush().await?;
        if self.persistor.is_behind() {
            return Err(Error::store(
                "the history could not be stored, so Pi summarizes the branch by itself",
            ));
        }
        let (cancel, _operation) = self.begin(operation);
        let settings = self.settings();
        let mut work = self.work(&settings, host, true, cancel, Arc::default());
        work.session.can_recall = left.can_recall;
        lcm_compaction::summarize_left(work, left).await
    }

    fn log_compaction(&self, outcome: &Result<Outcome>, started: Instant) {
        let (name, covered, new) = match outcome {
            Ok(Outcome::Compacted(made)) => {
                let details = &made.compaction.details;
                ("compacted", details.covered, details.summaries.len())
            }
            Ok(Outcome::Cancelled) => ("cancelled", 0, 0),
            Ok(_) => ("declined", 0, 0),
            Err(error) => (error.code().as_str(), 0, 0),
        };
        let fields = [
            ("outcome", Field::Name(name)),
            ("covered", Field::Count(covered)),
            ("new", Field::Count(new)),
            ("took", Field::Took(started.elapsed())),
        ];
        self.log.event("compaction", &fields);
    }
}
