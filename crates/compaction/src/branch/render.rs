//! Renders a branch: the block, and the details for the session file.

use std::collections::HashSet;
use std::sync::Arc;

use super::super::assembler::{Block, ShownSummary};
use super::super::calibration::Seen;
use super::super::passes::tokens_of;
use super::super::{LEAST_ESTIMATE, Session, calibration};
use super::Branch;
use lcm_model::dag::{Piece, Sources, Span};
use lcm_model::error::{Error, Result};
use lcm_model::ids::SummaryId;
use lcm_model::{CompactionDetails, SummaryRecord};
use lcm_store::{Batch, View};

/// The title of a compaction's block.
pub(in super::super) const HISTORY: &str = "Conversation History";

/// Rendering may shorten a text by leaving out its state, but by less than this share of a budget: 1/n.
const CERTAINLY: usize = 4;

impl Session<'_> {
    /// The block that replaces `branch`, and what its session shows about its model's tokens.
    pub(in super::super) async fn block(
        &self,
        budget: usize,
        branch: Branch,
        title: &'static str,
        focus: Option<String>,
    ) -> Result<(Branch, String, Option<Seen>)> {
        if branch.forest.frontier().iter().any(|piece| matches!(piece, Piece::Message(_))) {
            return Err(Error::store("the compaction would leave messages without a summary"));
        }
        // The sections besides the summaries are cut if the block would be no smaller than what it replaces.
        let replaced = tokens_of(branch.before());
        let most = replaced.saturating_sub(1 + branch.notes.tokens()).max(LEAST_ESTIMATE);
        let room = if replaced > LEAST_ESTIMATE { budget.min(most) } else { budget };
        let (memory, redact) = (Arc::clone(&self.memory), self.settings.redact);
        let make = move |view: &View<'_>| {
            let (mut branch, found) = branch.finish(view, &memory, redact)?;
            let seen = calibration::of_session(view, branch.since_compaction())?;
            let block = branch.block(view, title, focus.as_deref(), room)?;
            Ok((branch, block, seen, found))
        };
        let (branch, block, seen, found) = self.store.read(make).await?;
        if !found.is_empty() {
            // If they can't be recorded, they are extracted again next time.
            let note = move |batch: &Batch<'_>| {
                let note = |(summary, hash, facts)| batch.summaries().note_facts(summary, hash, &facts);
                found.into_iter().try_for_each(note)
            };
            drop(self.store.write(note).await);
        }
        Ok((branch, block, seen))
    }
}

impl Branch {
    pub(in super::super) fn fits(&self, budget: usize) -> bool {
        // Text that is far too long need not be rendered.
        if self.tokens_of(&self.forest.frontier_summaries()) > 2 * budget {
            return false;
        }
        self.block_of(HISTORY, &self.forest.frontier(), None, budget).fits()
    }

    /// The block with `title`, and with `focus`, the answer to the user's question. Shows the sources of condensed
    /// summaries in their place as far as there is room for all of it: condensing to keep the DAG shallow should not
    /// cost the model detail. The deepest come first, since they have the least detail left, and among equals the
    /// newest.
    fn block(&mut self, view: &View<'_>, title: &str, focus: Option<&str>, budget: usize) -> Result<String> {
        let mut pieces = self.forest.frontier();
        let mut tried = HashSet::new();
        loop {
            let open = pieces.iter().enumerate().filter_map(|(at, piece)| match piece {
                Piece::Summary(id, _) if !tried.contains(id) => Some((self.depth(*id), at, *id)),
                _ => None,
            });
            let Some((_, at, id)) = open.max_by_key(|(depth, at, _)| (*depth, *at)) else { break };
            tried.insert(id);
            let Some(sources) = self.unfolded_at(&pieces[at]) else { continue };
            let mut opened = pieces.clone();
            opened.splice(at..=at, sources);
            let ids: Vec<SummaryId> = opened.iter().filter_map(Piece::summary).collect();
            self.load(view, ids.iter().copied())?;
            // The texts alone are too long, so the block need not be rendered.
            if self.tokens_of(&ids) > budget + budget / CERTAINLY {
                continue;
            }
            if self.block_of(title, &opened, focus, budget).is_whole() {
                pieces = opened;
            }
        }
        let block = self.block_of(title, &pieces, focus, budget).render();
        self.pieces = pieces;
        Ok(block)
    }

    /// The sources of a condensed summary. `None` for any other piece, and if a source is degraded or not
    /// valid.
    fn unfolded_at(&self, piece: &Piece) -> Option<Vec<Piece>> {
        let Piece::Summary(id, _) = piece else { return None };
        let Sources::Summaries(sources) = &self.forest.node(*id)?.sources else { return None };
        let source = |id: &SummaryId| {
            let fit = self.forest.node(*id).is_some_and(|node| !node.degraded);
            fit.then(|| Some(Piece::Summary(*id, self.forest.span(*id)?.clone()))).flatten()
        };
        sources.iter().map(source).collect()
    }

    /// What only the session file contains: the summaries that no earlier entry carries, and the span.
    pub(in super::super) fn details(&self) -> CompactionDetails {
        let shown: Vec<SummaryId> = self.pieces.iter().filter_map(Piece::summary).collect();
        let touched = self.facts.touched();
        CompactionDetails {
            lcm: CompactionDetails::FORMAT,
            summaries: self.uncarried().into_iter().filter_map(|id| self.record(id)).collect(),
            frontier: shown.iter().filter_map(|id| Some(self.summary(*id)?.hash.to_string())).collect(),
            covered: shown.iter().filter_map(|id| self.forest.span(*id)).map(Span::len).sum(),
            read_files: touched.only_read().cloned().collect(),
            modified_files: touched.modified.iter().cloned().collect(),
            leaf: None,
        }
    }

    fn record(&self, id: SummaryId) -> Option<SummaryRecord> {
        let (summary, node) = (self.summary(id)?, self.forest.node(id)?);
        let sources = match &node.sources {
            Sources::Messages(_) => {
                let messages = &self.before()[self.forest.span(id)?.clone()];
                messages.iter().map(|message| message.entry_id.clone()).collect()
            }
            Sources::Summaries(sources) => {
                sources.iter().map(|id| Some(self.summary(*id)?.hash.to_string())).collect::<Option<_>>()?
            }
        };
        Some(SummaryRecord { summary: summary.summary.clone(), sources })
    }

    /// The number of purged messages in the described part.
    fn purged(&self) -> usize {
        let visible = self.visible();
        let end = visible.get(self.before).map_or(self.entries, |kept| kept.index);
        let start = match (self.range.start, visible.first()) {
            (0, _) | (_, None) => 0,
            (_, Some(first)) => first.index,
        };
        self.path.purged_before(end).saturating_sub(self.path.purged_before(start))
    }

    fn block_of<'a>(
        &'a self,
        title: &'a str,
        pieces: &[Piece],
        focus: Option<&'a str>,
        budget: usize,
    ) -> Block<'a> {
        let (summaries, depth) = self.forest.totals();
        let shown = |piece: &Piece| {
            let Piece::Summary(id, span) = piece else { return None };
            Some(ShownSummary { stored: self.summary(*id)?, span: span.clone() })
        };
        Block {
            title,
            stored: self.said,
            summaries,
            depth,
            messages: self.before,
            purged: self.purged(),
            frontier: pieces.iter().filter_map(shown).collect(),
            focus,
            notes: self.notes.list(),
            standing: &self.standing,
            budget,
            can_recall: self.can_recall,
        }
    }
}
