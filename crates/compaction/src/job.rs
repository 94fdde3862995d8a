//! The steps of a compaction, whether Pi requested it or it is being prepared.
//!
//! Which summaries are valid is read again after each step. So steps need not share results, and work of
//! other processes is noticed the same way.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::branch::Branch;
use super::calibration::Ratios;
use super::claims::{Claims, Lease};
use super::passes::{self, Fallback, Made, Material, Pass};
use super::progress::Progress;
use super::summarizer::Summarizer;
use super::{BranchPart, Session, Work, assembler, redact, sizes};
use crate::llm::Pending;
use lcm_model::dag::Span;
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::{Hash, SummaryId};
use lcm_model::policy::Window;
use lcm_model::sync::lock;
use lcm_store::Batch;

/// A summary's target is at most this share of the block: 1/n.
const BLOCK_SHARE: usize = 5;
/// How many of the newest chunks get longer summaries.
const RECENT: usize = 2;
/// How many chunks are extracted and stored at once.
const BATCH: usize = 48;
/// Up to this many chunks, each gets its own extract.
const LEAST_EXTRACTS: usize = 8;
/// Maximum rounds of the leaf pass. There is a second one only if another process claimed a part but did not
/// finish it, or if something was remade.
const ROUNDS: usize = 8;
/// Maximum rounds of work that purges interfere with. If they never stop, the last round's result stands.
const MOST_REPEATED: usize = 4;

/// The branch and its model.
pub(super) struct Target {
    pub leaf: String,
    pub window: Window,
    pub instructions: Option<String>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
}

/// Work on one branch.
pub(super) struct Job<'a> {
    pub session: Session<'a>,
    pub progress: Arc<Progress>,
    cancel: CancellationToken,
    leaf: String,
    pub summarizer: Arc<Summarizer>,
    pub pass: Pass,
    claims: Claims,
    /// Estimated tokens the block may take.
    pub budget: usize,
    pub ratios: Ratios,
    /// The models that the user named for summaries to be written again.
    writers: HashMap<SummaryId, String>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
}

impl<'a> Job<'a> {
    /// Starts a job.
    pub(super) async fn begin(work: Work<'a>, target: Target) -> Result<Self> {
        let Work { session, model, cancel, progress } = work;
        let Session { store, settings, .. } = session;
        let ratios = Ratios::read(store).await?;
        let (budget, cut) = sizes(settings, &ratios, target.window, target.model.as_deref());
        model.calibrate(ratios.by_model());
        let summarizer = Summarizer::new(model, Arc::clone(&progress), cancel.clone(), settings);
        let summarizer = Arc::new(summarizer);
        let masked = |text: String| if settings.redact { redact::redacted(&text) } else { text };
        let typed = target.instructions.clone().filter(|text| !text.trim().is_empty()).map(masked);
        let standing = settings.guidance.instructions.clone().map(masked);
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
        let Target { leaf, model, .. } = target;
        Ok(Self { session, progress, cancel, leaf, summarizer, pass, claims, budget, ratios, writers, model })
    }

    /// The outcome of the first round of `work` during which nothing was purged, here or elsewhere. What was read
    /// before a purge is no longer valid: a summary of it is rejected, rows are gone, and even a finished block
    /// may describe purged text. Summaries of the rest are already stored, so another round costs little.
    pub(super) async fn repeated<'w, T>(&self, work: impl Fn() -> Pending<'w, Result<T>>) -> Result<T> {
        let store = self.session.store;
        let mut rewritten = store.rewritten().await?;
        for _ in 1..MOST_REPEATED {
            let outcome = work().await;
            if matches!(&outcome, Err(error) if error.code() == Code::Cancelled) {
                return outcome;
            }
            // If the store can't be read, the outcome already says so.
            let now = store.rewritten().await.unwrap_or(rewritten);
            if std::mem::replace(&mut rewritten, now) == now {
                return outcome;
            }
        }
        work().await
    }

    /// How many extracts the block has room for. If no model answers and there are more chunks, one extract
    /// covers several: no more of a longer history could be shown anyway, and it would take time.
    fn extracts(&self) -> usize {
        (self.budget / 2 / passes::OUTLINE_TARGET).max(LEAST_EXTRACTS)
    }

    /// Reads the branch; see [`Session::read`].
    pub(super) async fn read(&self, part: &BranchPart) -> Result<Branch> {
        self.session.read(&self.leaf, part).await
    }

    /// Adds to the branch what was made since it was read, here or elsewhere.
    async fn refresh(&self, branch: Branch) -> Result<Branch> {
        self.session.store.read(move |view| branch.refreshed(view)).await
    }

    /// Makes the branch's missing summaries, `chunks` first, until they fit. Then asks a model for what is
    /// relevant to the user's instructions.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn complete(
        &self,
        mut branch: Branch,
        chunks: Vec<Span>,
    ) -> Result<(Branch, Option<String>)> {
        let recent = newest(&chunks);
        let mut tried = HashSet::new();
        branch = self.cover(branch, chunks, recent, &mut tried).await?;
        for depth in branch.degraded_depths() {
            self.condense(&branch, branch.degraded_groups(depth), Fallback::Nothing).await?;
            branch = self.refresh(branch).await?;
        }
        // A summary that supersedes one made from an extract may end within a remade part.
        let open = self.pass.cut.uncovered(&branch);
        branch = self.cover(branch, open, recent, &mut tried).await?;
        let focused = if self.pass.typed.is_some() { self.focus_tokens() } else { 0 };
        let mut pressed = true;
        while pressed {
            branch = self.condense_by_depth(branch).await?;
            // The new summaries may in turn be too many of a depth.
            (branch, pressed) = self.under_pressure(branch, self.budget - focused, Fallback::Extract).await?;
        }
        let focus = self.pass.focus(&branch.frontier_summaries(), self.focus_tokens()).await?;
        let (branch, session) = self.session.finished(branch).await?;
        self.summarizer.measured.keep(self.session.store, session).await;
        Ok((branch, focus))
    }

    /// Makes leaf summaries of `chunks`, and remakes each extract that the block uses; then repeats for what
    /// is uncovered or used by then. `tried` are the extracts retried so far, whatever the outcome.
    async fn cover(
        &self,
        mut branch: Branch,
        mut chunks: Vec<Span>,
        recent: usize,
        tried: &mut HashSet<Span>,
    ) -> Result<Branch> {
        for _ in 0..ROUNDS {
            chunks.extend(
                self.pass.cut.extracted(&branch).into_iter().filter(|span| tried.insert(span.clone())),
            );
            if chunks.is_empty() {
                break;
            }
            // Without a model these become extracts, and retrying is useless.
            tried.extend(chunks.iter().cloned());
            self.leaf_pass(&branch, chunks, recent, Fallback::Extract).await?;
            branch = self.refresh(branch).await?;
            chunks = self.pass.cut.uncovered(&branch);
        }
        Ok(branch)
    }

    /// Condenses until the block fits into `room` tokens. Returns whether that was necessary. Stops if a
    /// round does not reduce the number of pieces, so it always ends.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn under_pressure(
        &self,
        mut branch: Branch,
        room: usize,
        otherwise: Fallback,
    ) -> Result<(Branch, bool)> {
        let mut pressed = false;
        while !branch.fits(room) {
            let pieces = branch.frontier().len();
            let groups = branch.groups_under_pressure(self.session.settings.condensation_threshold, room);
            self.condense(&branch, groups, otherwise).await?;
            branch = self.refresh(branch).await?;
            if branch.frontier().len() >= pieces {
                return Ok((branch, false));
            }
            pressed = true;
        }
        Ok((branch, pressed))
    }

    /// Tokens for the answer to the user's instructions.
    fn focus_tokens(&self) -> usize {
        self.budget / assembler::FOCUS
    }

    /// Makes a leaf summary of each chunk. Those from the message at `recent` on are longer. `otherwise`
    /// applies if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn leaf_pass(
        &self,
        branch: &Branch,
        chunks: Vec<Span>,
        recent: usize,
        otherwise: Fallback,
    ) -> Result<()> {
        self.make(self.leaves(branch, chunks, recent, otherwise)).await
    }

    /// The leaf summaries of chunks, to be made.
    pub(super) fn leaves(
        &self,
        branch: &Branch,
        chunks: Vec<Span>,
        recent: usize,
        otherwise: Fallback,
    ) -> Vec<(Hash, Material, Fallback)> {
        let extracts = branch.degraded_spans();
        let leaf = |chunk: Span| {
            // A chunk that has an extract needs no other one.
            let around = extracts.get(extracts.partition_point(|extract| extract.end < chunk.end));
            let otherwise = match around.filter(|extract| extract.start <= chunk.start) {
                Some(extract) if *extract != chunk && otherwise == Fallback::Extract => Fallback::Finer,
                Some(_) => Fallback::Nothing,
                None => otherwise,
            };
            let by = branch.degraded_leaf_over(&chunk).and_then(|old| self.writers.get(&old).cloned());
            let before = branch.orientation(chunk.start, passes::BEFORE);
            let recent = chunk.start >= recent;
            let place = chunk.start;
            let chunk = branch.visible()[chunk].to_vec();
            let span = Hash::of(chunk.iter().map(|visible| visible.seen.hash.0.as_slice()));
            (span, Material::Messages { chunk, place, before, recent, by }, otherwise)
        };
        chunks.into_iter().map(leaf).collect()
    }

    /// Makes a condensed summary of each group. `otherwise` applies if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condense(
        &self,
        branch: &Branch,
        groups: Vec<Vec<SummaryId>>,
        otherwise: Fallback,
    ) -> Result<()> {
        let nodes = groups.into_iter().map(|group| {
            let sources: Vec<_> = group.iter().filter_map(|id| branch.summary(*id).cloned()).collect();
            let span = Hash::of(sources.iter().map(|source| source.hash.0.as_slice()));
            (span, Material::Summaries(sources, self.writer_of(branch, &group)), otherwise)
        });
        self.make(nodes.collect()).await
    }

    /// The model that the user named for a condensed summary of these: for an earlier one of the same, or for all
    /// of them.
    fn writer_of(&self, branch: &Branch, group: &[SummaryId]) -> Option<String> {
        let is_by = |named: &String| {
            group.iter().all(|id| branch.summary(*id).is_some_and(|one| one.model.as_ref() == Some(named)))
        };
        let same = self.writers.iter().find(|(old, _)| branch.sources(**old) == Some(group));
        same.map(|(_, named)| named).or_else(|| self.writers.values().find(|named| is_by(named))).cloned()
    }

    /// Condenses each depth with too many summaries, from the leaves up.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condense_by_depth(&self, mut branch: Branch) -> Result<Branch> {
        for depth in 0..u32::try_from(self.session.settings.max_depth).unwrap_or(u32::MAX) {
            let groups = branch.groups(depth, self.session.settings.condensation_threshold);
            if !groups.is_empty() {
                self.condense(&branch, groups, Fallback::Nothing).await?;
                branch = self.refresh(branch).await?;
            }
        }
        Ok(branch)
    }

    /// Makes summaries in parallel. If another process is already making one, waits for it if it is needed
    /// now.
    pub(super) async fn make(&self, nodes: Vec<(Hash, Material, Fallback)>) -> Result<()> {
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
        let together = ours.len().div_ceil(self.extracts());
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
        let _turn = pass.summarizer.turn().await?;
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
                batch.summaries().add_summary_with(summary, facts.as_ref())?;
            }
            ended.iter().try_for_each(|(span, owner)| batch.summaries().release(*span, owner))
        };
        pass.store.write(write).await?;
        (0..count).for_each(|_| progress.made());
    }
}

/// The start of the newest of `chunks`, which are sorted.
pub(super) fn newest(chunks: &[Span]) -> usize {
    chunks.len().checked_sub(RECENT).map_or(0, |at| chunks[at].start)
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
