//! The steps that compactions are made of, whoever asks for them: a compaction of Pi's, or work ahead of one.
//!
//! Which summaries hold on a branch is looked up after each step, so a step is never told what another did; what another process
//! does meanwhile is seen in the same way.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

use super::branch::Branch;
use super::calibration::{Measured, Ratios};
use super::claims::{Claims, Lease};
use super::passes::{self, Fallback, Made, Material, Pass};
use super::plan::Cut;
use super::progress::{Progress, Watched};
use super::summarizer::Summarizer;
use super::tail;
use super::{Work, assembler, finished, redact, sizes};
use crate::config::Settings;
use crate::dag::Span;
use crate::error::{Code, Error, Result};
use crate::ids::{ConversationId, Hash, SummaryId};
use crate::llm::Model;
use crate::store::{Batch, Store, View};

/// One summary aims at no more than this share of the block: 1/n.
const BLOCK_SHARE: usize = 5;
/// So many of the newest chunks get longer summaries.
const RECENT: usize = 2;
/// Extracts of so many chunks are made, and written, together.
const BATCH: usize = 48;
/// An extract stands for one chunk where there are no more than so many.
const LEAST_EXTRACTS: usize = 8;
/// Most rounds of the leaf pass. There is a second one only where others were about to summarize a part, and did not, or where
/// something was healed.
const ROUNDS: usize = 8;

/// What of a branch is to be told of.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// What comes before this entry.
    Before(String),
    /// All of it, as the history of what follows.
    All,
    /// What comes after this entry, or all of it.
    After(Option<String>),
}

/// Which branch, and for whom.
pub(super) struct Target {
    /// The entry the branch ends with.
    pub leaf: String,
    /// The model's context window in tokens.
    pub window: Option<usize>,
    /// What the person typed.
    pub instructions: Option<String>,
    /// The session's model, as `provider/id`.
    pub model: Option<String>,
}

/// Work on one branch.
pub(super) struct Job<'a> {
    work: Work<'a>,
    leaf: String,
    pub summarizer: Arc<Summarizer>,
    measured: Arc<Measured>,
    pass: Pass,
    claims: Claims,
    /// Estimated tokens the block may take.
    pub budget: usize,
    ratios: Ratios,
    /// The session's model, as `provider/id`.
    model: Option<String>,
}

impl<'a> Job<'a> {
    /// Begins.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(super) async fn begin(work: Work<'a>, target: Target) -> Result<Self> {
        let settings = work.settings;
        let ratios = Ratios::read(work.store).await?;
        let (budget, cut) = sizes(settings, &ratios, target.window, target.model.as_deref());
        let watched = Watched { model: Arc::clone(&work.model), progress: Arc::clone(&work.progress) };
        let measured = Arc::new(Measured::new(Arc::new(watched)));
        let model = Arc::clone(&measured) as Arc<dyn Model>;
        let summarizer = Arc::new(Summarizer::new(model, work.cancel.clone(), settings));
        let masked = |text: String| if settings.redact { redact::redacted(&text) } else { text };
        let typed = target.instructions.filter(|text| !text.trim().is_empty()).map(masked);
        let standing = settings.guidance.instructions.clone().map(masked);
        let instructions = [standing, typed.clone()].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let pass = Pass {
            cut,
            store: work.store.clone(),
            summarizer: Arc::clone(&summarizer),
            instructions: Some(instructions).filter(|text| !text.is_empty()),
            typed,
            most_tokens: budget / BLOCK_SHARE,
            redact: settings.redact,
        };
        let claims = Claims::new(work.store);
        Ok(Self {
            work,
            leaf: target.leaf,
            summarizer,
            measured,
            pass,
            claims,
            budget,
            ratios,
            model: target.model,
        })
    }

    pub(super) fn store(&self) -> &Store {
        self.work.store
    }

    pub(super) fn tail(&self) -> tail::Asked<'_> {
        self.work.tail(self.model.as_deref())
    }

    pub(super) fn settings(&self) -> &Settings {
        self.work.settings
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.work.progress
    }

    /// How many estimated tokens make `real` ones for the session's model.
    pub(super) fn estimated(&self, real: usize) -> usize {
        self.ratios.estimated(real, self.model.as_deref())
    }

    pub(super) fn cut(&self) -> Cut {
        self.pass.cut
    }

    /// What the store counts: [`Messages::rewritten`](crate::store::Messages::rewritten).
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) async fn rewritten(&self) -> Result<i64> {
        self.work.store.rewritten().await
    }

    /// How many extracts the block has room for. Where no model answers, and there are more chunks than that, one stands for
    /// several: of a longer history more could not be shown, and nobody is to wait for it.
    fn extracts(&self) -> usize {
        (self.budget / 2 / passes::OUTLINE_TARGET).max(LEAST_EXTRACTS)
    }

    /// The branch as it stands now.
    ///
    /// # Errors
    /// When the store can't be read, or the branch has no such part.
    pub(super) async fn read(&self, part: &Part) -> Result<Branch> {
        let (conversation, leaf, part) = (self.work.conversation, self.leaf.clone(), part.clone());
        let memory = Arc::clone(&self.work.memory);
        let settings = (self.settings().notes, self.settings().redact);
        let read = move |view: &View<'_>| match &part {
            Part::Before(entry) => {
                let branch = Branch::read(view, &memory, conversation, &leaf, entry)?;
                noted(view, branch, conversation, &leaf, settings)
            }
            Part::All => {
                let branch = Branch::read_after(view, &memory, conversation, &leaf, None)?;
                noted(view, branch, conversation, &leaf, settings)
            }
            Part::After(entry) => Branch::read_after(view, &memory, conversation, &leaf, entry.as_deref()),
        };
        self.work.store.read(read).await
    }

    /// The branch with what was made, here or elsewhere, since it was read.
    async fn refresh(&self, branch: Branch) -> Result<Branch> {
        self.work.store.read(move |view| branch.refreshed(view)).await
    }

    /// Makes the summaries that the branch lacks, `chunks` first, until they fit, and asks what of it bears on what the person
    /// typed.
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
        // What takes the place of something made from an extract may end in the midst of what was healed.
        let open = self.uncovered(&branch);
        branch = self.cover(branch, open, recent, &mut tried).await?;
        let focused = if self.pass.typed.is_some() { self.focus_tokens() } else { 0 };
        let mut pressed = true;
        while pressed {
            branch = self.condense_by_depth(branch).await?;
            // What pressure makes may be too many of a depth in their turn.
            (branch, pressed) = self.under_pressure(branch, self.budget - focused, Fallback::Extract).await?;
        }
        let focus = self.pass.focus(&branch.frontier_summaries(), self.focus_tokens()).await?;
        Ok((self.finish(branch).await?, focus))
    }

    /// Leaf summaries of `chunks`, and anew of each extract that the block rests on; then of what is uncovered or rested on by
    /// then. `tried` are the extracts that were made anew before, to whatever end.
    async fn cover(
        &self,
        mut branch: Branch,
        mut chunks: Vec<Span>,
        recent: usize,
        tried: &mut HashSet<Span>,
    ) -> Result<Branch> {
        for _ in 0..ROUNDS {
            chunks
                .extend(self.cut().extracted(&branch).into_iter().filter(|span| tried.insert(span.clone())));
            if chunks.is_empty() {
                break;
            }
            // Without a model these are extracts, which it is no use to ask for again.
            tried.extend(chunks.iter().cloned());
            self.leaf_pass(&branch, chunks, recent, Fallback::Extract).await?;
            branch = self.refresh(branch).await?;
            chunks = self.uncovered(&branch);
        }
        Ok(branch)
    }

    /// Condenses until the block fits into `room` tokens, and says whether it had to. Each round leaves fewer pieces, so it
    /// ends; one that did not would never.
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
            let groups = branch.groups_under_pressure(self.settings().condensation_threshold, room);
            self.condense(&branch, groups, otherwise).await?;
            branch = self.refresh(branch).await?;
            if branch.frontier().len() >= pieces {
                return Ok((branch, false));
            }
            pressed = true;
        }
        Ok((branch, pressed))
    }

    /// Reads what only the finished block asks for, and keeps what was learnt on the way.
    async fn finish(&self, branch: Branch) -> Result<Branch> {
        let (branch, session) =
            finished(self.work.store, &self.work.memory, branch, self.settings().redact).await?;
        self.measured.keep(self.work.store, session).await;
        Ok(branch)
    }

    /// Keeps what the answers told of the models' tokens.
    pub(super) async fn keep_measures(&self) {
        self.measured.keep(self.work.store, None).await;
    }

    /// Tokens that the answer to what the person typed may take.
    fn focus_tokens(&self) -> usize {
        self.budget / assembler::FOCUS
    }

    /// What no summary covers, cut into chunks.
    pub(super) fn uncovered(&self, branch: &Branch) -> Vec<Span> {
        self.pass.cut.uncovered(branch)
    }

    /// A leaf summary of each chunk; those from the message at `recent` on are longer, and `otherwise` says what if no model
    /// answers.
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
        let extracts = branch.degraded_spans();
        let nodes = chunks.into_iter().map(|chunk| {
            // Of what has one no extract need be made again.
            let around = extracts.get(extracts.partition_point(|extract| extract.end < chunk.end));
            let otherwise = match around.filter(|extract| extract.start <= chunk.start) {
                Some(extract) if *extract != chunk && otherwise == Fallback::Extract => Fallback::Finer,
                Some(_) => Fallback::Nothing,
                None => otherwise,
            };
            let before = branch.orientation(chunk.start, passes::BEFORE);
            let recent = chunk.start >= recent;
            let place = chunk.start;
            let chunk = branch.visible()[chunk].to_vec();
            let span = Hash::of(chunk.iter().map(|visible| visible.seen.hash.0.as_slice()));
            (span, Material::Messages { chunk, place, before, recent }, otherwise)
        });
        self.make(nodes.collect()).await
    }

    /// A condensed summary of each group; `otherwise` says what if no model answers.
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
            (span, Material::Summaries(sources), otherwise)
        });
        self.make(nodes.collect()).await
    }

    /// Condenses where a depth has grown too many, from the leaves up.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condense_by_depth(&self, mut branch: Branch) -> Result<Branch> {
        for depth in 0..u32::try_from(self.settings().max_depth).unwrap_or(u32::MAX) {
            let groups = branch.groups(depth, self.settings().condensation_threshold);
            if !groups.is_empty() {
                self.condense(&branch, groups, Fallback::Nothing).await?;
                branch = self.refresh(branch).await?;
            }
        }
        Ok(branch)
    }

    /// Makes summaries, several at once. One that another is making already is waited for where it is needed now.
    async fn make(&self, nodes: Vec<(Hash, Material, Fallback)>) -> Result<()> {
        self.work.progress.plan(nodes.len());
        let leases = self.claims.take(nodes.iter().map(|(span, ..)| *span).collect()).await?;
        let (mut ours, mut others) = (VecDeque::new(), Vec::new());
        for ((span, sources, otherwise), lease) in nodes.into_iter().zip(leases) {
            match lease {
                Some(lease) => ours.push_back((lease, (sources, otherwise))),
                None => others.push((span, otherwise)),
            }
        }
        let at_once = self.settings().leaf_pass_concurrency.clamp(1, ours.len().max(1));
        let together = ours.len().div_ceil(self.extracts());
        let queue = Arc::new(Mutex::new(ours));
        let mut tasks = JoinSet::new();
        for _ in 0..at_once {
            let (pass, progress) = (self.pass.clone(), Arc::clone(&self.work.progress));
            tasks.spawn(work_off(pass, Arc::clone(&queue), together, progress));
        }
        // Of what is not begun when the work ends the leases end with it.
        drop(queue);
        let (claims, cancel) = (self.claims.clone(), self.work.cancel.clone());
        let progress = Arc::clone(&self.work.progress);
        // One after the other, so that one looks into the store, and not each of hundreds.
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

/// Summaries to be made, oldest first, each with the lease of its span, and with what becomes of it if no model answers.
type Queue = Mutex<VecDeque<(Lease, (Material, Fallback))>>;

/// Makes one summary after the other; many at once where no model is asked any more.
async fn work_off(pass: Pass, queue: Arc<Queue>, together: usize, progress: Arc<Progress>) -> Result<()> {
    loop {
        let _turn = pass.summarizer.turn().await?;
        let given_up = pass.summarizer.has_given_up();
        let (leases, sources) = next(&queue, if given_up { BATCH.max(together) } else { 1 });
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

/// The next `most` of the queue.
fn next(queue: &Queue, most: usize) -> (Vec<Lease>, Vec<(Material, Fallback)>) {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let most = most.min(queue.len());
    queue.drain(..most).unzip()
}

/// The branch with the notes that its block shows: none unless `notes`, and where `redact`, what is masked elsewhere is masked in
/// them.
///
/// # Errors
/// When the store can't be read.
pub(super) fn noted(
    view: &View<'_>,
    branch: Branch,
    conversation: ConversationId,
    leaf: &str,
    (notes, redact): (bool, bool),
) -> Result<Branch> {
    if !notes {
        return Ok(branch);
    }
    let notes = view.messages().notes(conversation, leaf)?;
    Ok(branch.noting(if redact { notes.with_texts(redact::redacted) } else { notes }))
}

/// Where the newest of `chunks` begin, which are in order.
pub(super) fn newest(chunks: &[Span]) -> usize {
    chunks.len().checked_sub(RECENT).map_or(0, |at| chunks[at].start)
}

/// Waits for all of them. After an abort each still stores the answer it has; any other error stops the rest, whose
/// finished summaries stay.
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
