//! The steps of a compaction, whether Pi requested it or it is being prepared.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::branch::Branch;
use super::calibration::Ratios;
use super::claims::{Claims, Lease};
use super::passes::{self, Fallback, Made, Material, Pass};
use super::plan::{CompactionPlan, PlannedSummary};
use super::progress::Progress;
use super::summarizer::Summarizer;
use super::{Session, Work, assembler, redact, sizes};
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::SummaryId;
use lcm_model::locks::lock;
use lcm_model::policy::Window;
use lcm_store::Batch;

/// A summary's target is at most this share of the block: 1/n.
const BLOCK_SHARE: usize = 5;
/// How many chunks are extracted and stored at once.
const BATCH: usize = 48;
/// Up to this many chunks, each gets its own extract.
const LEAST_EXTRACTS: usize = 8;

/// Work on one branch.
pub(super) struct Job<'a> {
    pub session: Session<'a>,
    pub progress: Arc<Progress>,
    cancel: CancellationToken,
    pub summarizer: Arc<Summarizer>,
    pub pass: Pass,
    claims: Claims,
    /// Estimated tokens the block may take.
    pub budget: usize,
    pub ratios: Ratios,
    /// The models that the user named for summaries to be written again.
    writers: HashMap<SummaryId, String>,
}

impl<'a> Job<'a> {
    /// Starts a job for a session whose `model`, `provider/id`, has this window; `typed` are the user's instructions.
    pub(super) async fn begin(
        work: Work<'a>,
        window: Window,
        model: Option<&str>,
        typed: Option<&str>,
    ) -> Result<Self> {
        let Work { session, model: writer, cancel, progress } = work;
        let Session { store, settings, .. } = session;
        let ratios = Ratios::read(store).await?;
        let (budget, cut) = sizes(settings, &ratios, window, model);
        writer.calibrate(ratios.by_model());
        let summarizer = Summarizer::new(writer, Arc::clone(&progress), cancel.clone(), settings);
        let summarizer = Arc::new(summarizer);
        let masked = |text: &str| redact::masked(text, settings.redact);
        let typed = typed.filter(|text| !text.trim().is_empty()).map(masked);
        let standing = settings.guidance.instructions.as_deref().map(masked);
        let instructions = [standing, typed.clone()].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let pass = Pass {
            cut,
            store: store.clone(),
            summarizer: Arc::clone(&summarizer),
            instructions: Some(instructions).filter(|text| !text.is_empty()),
            typed,
            most_tokens: budget / BLOCK_SHARE,
            redact: settings.redact,
        };
        let claims = Claims::new(store);
        let writers = store.read(|view| view.summaries().writers()).await?;
        Ok(Self { session, progress, cancel, summarizer, pass, claims, budget, ratios, writers })
    }

    /// What a branch needs for its block.
    pub(super) fn plan(&self) -> CompactionPlan<'_> {
        CompactionPlan::new(self.session.settings, &self.writers, self.pass.cut, self.budget)
    }

    /// Makes the branch's missing summaries, asks a model for what is relevant to the user's instructions, and
    /// assembles the block with `title`.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn complete(
        &self,
        mut branch: Branch,
        mut plan: CompactionPlan<'_>,
        title: &'static str,
    ) -> Result<(Branch, String)> {
        let focused = self.budget / assembler::FOCUS;
        if self.pass.typed.is_some() {
            plan.room -= focused;
        }
        loop {
            // Also adds what others made meanwhile.
            branch = self.session.store.read(move |view| branch.refreshed(view)).await?;
            let nodes = plan.next(&branch);
            if let Some(start) = plan.raw_from.take() {
                branch.keep_from(start);
            }
            if nodes.is_empty() {
                break;
            }
            self.make(nodes).await?;
        }
        let focus = self.pass.focus(&branch.frontier_summaries(), focused).await?;
        let (branch, block, seen) = self.session.block(self.budget, branch, title, focus).await?;
        self.summarizer.measured.keep(self.session.store, seen).await;
        Ok((branch, block))
    }

    /// Makes summaries in parallel. If another process is already making one, waits for it if it is needed
    /// now.
    pub(super) async fn make(&self, nodes: Vec<PlannedSummary>) -> Result<()> {
        self.progress.plan(nodes.len());
        let leases = self.claims.take(nodes.iter().map(|(span, ..)| *span).collect()).await?;
        let (mut ours, mut others) = (VecDeque::new(), Vec::new());
        for ((span, sources, otherwise), lease) in nodes.into_iter().zip(leases) {
            match lease {
                Some(lease) => ours.push_back((lease, (sources, otherwise))),
                None => others.push((span, otherwise)),
            }
        }
        let at_once = self.session.settings.leaf_pass_concurrency.clamp(1, ours.len().max(1));
        // If no model answers and there are more chunks than the block has room for extracts, one extract covers
        // several: no more of a longer history could be shown anyway, and it would take time.
        let extracts = (self.budget / 2 / passes::OUTLINE_TARGET).max(LEAST_EXTRACTS);
        let together = ours.len().div_ceil(extracts);
        let queue = Arc::new(Mutex::new(ours));
        let mut tasks = JoinSet::new();
        for _ in 0..at_once {
            let (pass, progress) = (self.pass.clone(), Arc::clone(&self.progress));
            tasks.spawn(work_off(pass, Arc::clone(&queue), together, progress));
        }
        // So that the claims of work not started end with the job.
        drop(queue);
        let (claims, cancel) = (self.claims.clone(), self.cancel.clone());
        let progress = Arc::clone(&self.progress);
        // One after the other, so that only one task polls the store, not hundreds.
        tasks.spawn(async move {
            for (span, otherwise) in others {
                if otherwise == Fallback::Extract {
                    claims.wait(span, &cancel).await?;
                }
                progress.made();
            }
            Ok(())
        });
        finish(tasks).await
    }
}

/// Summaries to make, oldest first, each with the claim on its span and its fallback.
type Queue = Mutex<VecDeque<(Lease, (Material, Fallback))>>;

/// Makes one summary after the other; many at once when no model is asked any more.
async fn work_off(pass: Pass, queue: Arc<Queue>, together: usize, progress: Arc<Progress>) -> Result<()> {
    loop {
        let _permit = pass.summarizer.permit().await?;
        let given_up = pass.summarizer.has_given_up();
        let most = if given_up { BATCH.max(together) } else { 1 };
        let (leases, sources): (Vec<_>, Vec<_>) = {
            let mut queue = lock(&queue);
            let most = most.min(queue.len());
            queue.drain(..most).unzip()
        };
        let count = sources.len();
        if count == 0 {
            return Ok(());
        }
        let made = if given_up {
            pass.extracts(sources, together).await?
        } else {
            let mut made = Vec::new();
            for (sources, otherwise) in sources {
                made.extend(pass.summary(sources, otherwise).await?);
            }
            made
        };
        let ended: Vec<_> = leases.into_iter().filter_map(Lease::ended).collect();
        let write = move |batch: &Batch<'_>| {
            for Made { summary, facts } in &made {
                batch.summaries().add_summary(summary, facts.as_ref(), false)?;
            }
            ended.iter().try_for_each(|(span, owner)| batch.summaries().release(*span, owner))
        };
        pass.store.write(write).await?;
        (0..count).for_each(|_| progress.made());
    }
}

/// Waits for all tasks. After an abort each still stores its finished answer; any other error stops the rest,
/// whose finished summaries stay.
async fn finish(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    let mut outcome = Ok(());
    while let Some(task) = tasks.join_next().await {
        match task.map_err(|error| Error::storing("a summary could not be made", error))? {
            Ok(()) => {}
            Err(error) if error.code() == Code::Cancelled => outcome = Err(error),
            Err(error) => return Err(error),
        }
    }
    outcome
}
