//! The steps that compactions are made of, whoever asks for them: a compaction of Pi's, or work ahead of one.
//!
//! A branch is read anew after each step, so a step is never told what another did; what another process does meanwhile is seen
//! in the same way.

use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::branch::Branch;
use super::claims::Claims;
use super::passes::{Else, Pass};
use super::plan::Cut;
use super::progress::{Progress, Watched};
use super::summarizer::Summarizer;
use super::{Work, budget};
use crate::config::Settings;
use crate::dag::Span;
use crate::error::{Code, Error, Result};
use crate::ids::{Hash, SummaryId};

/// One summary aims at no more than this share of the block: 1/n.
const BLOCK_SHARE: usize = 5;
/// Messages before a chunk that its summariser may be told of.
const BEFORE: usize = 8;

/// Work on one branch.
pub(super) struct Job<'a> {
    work: Work<'a>,
    leaf: &'a str,
    pub summarizer: Arc<Summarizer>,
    pass: Pass,
    claims: Claims,
    /// Tokens the block may take.
    pub budget: usize,
}

impl<'a> Job<'a> {
    /// Must be called within a runtime. `window` is the model's, in tokens.
    pub(super) fn new(
        work: Work<'a>,
        leaf: &'a str,
        window: Option<usize>,
        instructions: Option<String>,
    ) -> Self {
        let settings = work.settings;
        let budget = budget(settings, window);
        let model = Watched { model: Arc::clone(&work.model), progress: Arc::clone(&work.progress) };
        let summarizer = Summarizer::new(Arc::new(model), work.cancel.clone(), settings);
        let summarizer = Arc::new(summarizer);
        let pass = Pass {
            cut: Cut::of(settings, window),
            store: work.store.clone(),
            summarizer: Arc::clone(&summarizer),
            instructions: instructions.filter(|text| !text.trim().is_empty()),
            most_tokens: budget / BLOCK_SHARE,
        };
        let claims = Claims::new(work.store);
        Self { work, leaf, summarizer, pass, claims, budget }
    }

    pub(super) fn settings(&self) -> &Settings {
        self.work.settings
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.work.progress
    }

    pub(super) fn cut(&self) -> Cut {
        self.pass.cut
    }

    /// The branch, as it stands now, up to the entry that is kept.
    pub(super) async fn read(&self, first_kept: &str) -> Result<Branch> {
        let (conversation, leaf) = (self.work.conversation, self.leaf.to_owned());
        let first_kept = first_kept.to_owned();
        self.work.store.read(move |view| Branch::read(view, conversation, &leaf, &first_kept)).await
    }

    /// The branch with what only the finished block asks for.
    pub(super) async fn finish(&self, branch: Branch) -> Result<Branch> {
        let conversation = self.work.conversation;
        self.work.store.read(move |view| branch.finish(view, conversation)).await
    }

    /// What no summary covers, cut into chunks.
    pub(super) fn uncovered(&self, branch: &Branch) -> Vec<Span> {
        self.pass.cut.uncovered(branch)
    }

    /// A leaf summary of each chunk; `otherwise` says what if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn leaf_pass(&self, branch: &Branch, chunks: Vec<Span>, otherwise: Else) -> Result<()> {
        let nodes = chunks.into_iter().map(|chunk| {
            let pass = self.pass.clone();
            let before = branch.visible[..chunk.start].iter().rev().take(BEFORE).rev().cloned().collect();
            let messages = branch.visible[chunk].to_vec();
            let span = Hash::of(messages.iter().map(|visible| visible.seen.hash.0.as_slice()));
            (span, async move { pass.leaf(messages, before, otherwise).await })
        });
        self.make(nodes.collect(), otherwise).await
    }

    /// A condensed summary of each group; `otherwise` says what if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condense(
        &self,
        branch: &Branch,
        groups: Vec<Vec<SummaryId>>,
        otherwise: Else,
    ) -> Result<()> {
        let nodes = groups.into_iter().map(|group| {
            let pass = self.pass.clone();
            let sources: Vec<_> = group.iter().filter_map(|id| branch.summary(*id).cloned()).collect();
            let span = Hash::of(sources.iter().map(|source| source.hash.0.as_slice()));
            (span, async move { pass.condensed(sources, otherwise).await })
        });
        self.make(nodes.collect(), otherwise).await
    }

    /// Condenses where a depth has grown too many, from the leaves up.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condense_by_depth(&self, mut branch: Branch, kept: &str) -> Result<Branch> {
        for depth in 0..u32::try_from(self.settings().max_depth).unwrap_or(u32::MAX) {
            let groups = branch.groups(depth, self.settings().condensation_threshold);
            if !groups.is_empty() {
                self.condense(&branch, groups, Else::Nothing).await?;
                branch = self.read(kept).await?;
            }
        }
        Ok(branch)
    }

    /// Makes summaries, several at once. One that another is making already is waited for where it is needed now.
    async fn make<F>(&self, nodes: Vec<(Hash, F)>, otherwise: Else) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.work.progress.plan(nodes.len());
        let leases = self.claims.take(nodes.iter().map(|(span, _)| *span).collect()).await?;
        let mut tasks = JoinSet::new();
        for ((span, node), lease) in nodes.into_iter().zip(leases) {
            let (claims, cancel) = (self.claims.clone(), self.work.cancel.clone());
            let progress = Arc::clone(&self.work.progress);
            tasks.spawn(async move {
                let made = match (lease, otherwise) {
                    (Some(_lease), _) => node.await,
                    (None, Else::Extract) => claims.wait(span, &cancel).await,
                    (None, Else::Nothing) => Ok(()),
                };
                progress.made();
                made
            });
        }
        finish(tasks).await
    }
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
