//! Plans a compaction on its branch, without models or disks: where the branch is cut, and which summaries it needs
//! next.
//!
//! A step depends only on the branch as it is by then. So steps need not share results, and work of other processes is
//! noticed the same way.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Request;
use super::ahead::Ahead;
use super::branch::Branch;
use super::chunks::Cut;
use super::overflow::{self, TooLong};
use super::passes::{self, Chunk, Fallback, Material, tokens_of};
use lcm_model::config::Settings;
use lcm_model::dag::{Piece, Span, Visible};
use lcm_model::ids::{Hash, SummaryId};

/// How many of the newest chunks get longer summaries.
const RECENT: usize = 2;
/// How often a compaction tries a chunk: more than once only if another process claimed it but did not finish it.
const TRIES: usize = 8;

/// A summary to be written: the hash of its sources, the sources, and what happens if no model writes it.
pub(super) type PlannedSummary = (Hash, Material, Fallback);

/// What a branch needs until its summaries cover it and fit the block.
pub(super) struct CompactionPlan<'a> {
    settings: &'a Settings,
    /// The models that the user named for summaries to be written again.
    writers: &'a HashMap<SummaryId, String>,
    cut: Cut,
    /// Estimated tokens that the summaries may take in the block.
    pub room: usize,
    /// Set for work ahead of a compaction.
    pub ahead: Option<&'a Ahead>,
    /// A compaction may once leave a small last chunk raw, if fewer tokens than this stay raw.
    most_raw: usize,
    /// Where that chunk starts, for the branch to be cut there.
    pub raw_from: Option<usize>,
    /// Where the newest chunks begin.
    recent: Option<usize>,
    tried: Tried,
}

/// What was planned so far, whatever came of it.
#[derive(Default)]
struct Tried {
    chunks: HashMap<Span, usize>,
    groups: HashSet<(Hash, Fallback)>,
}

impl<'a> CompactionPlan<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        writers: &'a HashMap<SummaryId, String>,
        cut: Cut,
        room: usize,
    ) -> Self {
        let (ahead, raw_from, recent, tried) = Default::default();
        Self { settings, writers, cut, room, ahead, most_raw: 0, raw_from, recent, tried }
    }

    /// The position at which `branch`, which was read up to Pi's cut, is cut for `request`. `folds` is the first entry
    /// that a fold would keep, and `estimated` converts real tokens to estimated ones. `None` if there is too little to
    /// compact.
    pub(super) fn cut(
        &mut self,
        branch: &Branch,
        request: &Request,
        folds: Option<&str>,
        estimated: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let pis = branch.before().len();
        if let Some(said) = request.too_long() {
            // As little of the raw part as needed beyond Pi's cut, at worst all of it.
            let (context, threshold) = (tokens_of(&branch.visible()[branch.shown..]), request.threshold());
            let too_long = TooLong { said, context, threshold, prompt: request.window().prompt() };
            let room = too_long.room(self.room + branch.notes.tokens(), estimated);
            let kept = overflow::fitting(branch, room);
            return Some(kept.unwrap_or(branch.visible().len())).filter(|kept| *kept > 0);
        }
        let is_pis = branch.kept.as_ref() == Some(&request.first_kept_entry_id);
        let folds = folds.filter(|_| is_pis).and_then(|entry| branch.position(entry));
        let cut = folds.map_or(pis, |at| at.max(pis));
        if cut == 0 || (cut < self.settings.min_messages_for_compaction && branch.forest.is_empty()) {
            return None;
        }
        if let (Some("threshold"), Some(threshold)) = (request.reason.as_deref(), request.threshold()) {
            self.most_raw = (threshold * 4 / 5).saturating_sub(request.window().prompt() + self.room);
        }
        Some(cut)
    }

    /// The next summaries, to be written at the same time. Empty if nothing is missing, or nothing more can be made.
    pub(super) fn next(&mut self, branch: &Branch) -> Vec<PlannedSummary> {
        let leaves = self.leaves(branch);
        if !leaves.is_empty() {
            return leaves;
        }
        let size = self.settings.condensation_threshold.max(2);
        let degraded = branch.forest.degraded_groups();
        let degraded = degraded.chunk_by(|(depth, _), (next, _)| depth == next);
        let degraded = degraded.map(|groups| groups.iter().map(|(_, sources)| sources.clone()).collect());
        let depths = 0..u32::try_from(self.settings.max_depth).unwrap_or(u32::MAX);
        for groups in degraded.chain(depths.map(|depth| groups(branch, depth, size))) {
            let nodes = self.condensed(branch, groups, Fallback::Nothing);
            if !nodes.is_empty() {
                return nodes;
            }
        }
        if branch.fits(self.room) {
            return Vec::new();
        }
        self.condensed(branch, groups_under_pressure(branch, size, self.room), self.otherwise())
    }

    /// What happens if no model writes a summary that a compaction can't do without.
    fn otherwise(&self) -> Fallback {
        if self.ahead.is_some_and(|ahead| !ahead.is_needed) { Fallback::Nothing } else { Fallback::Extract }
    }

    /// The leaf summaries of uncovered chunks, and again of the extracts that the block uses.
    fn leaves(&mut self, branch: &Branch) -> Vec<PlannedSummary> {
        let (mut chunks, again) = missing(self.cut, branch);
        if let Some(start) = remainder(self.cut, branch, &chunks)
            && self.may_wait(branch, start)
        {
            chunks.pop();
            self.raw_from = Some(start);
        }
        let newest = || chunks.len().checked_sub(RECENT).map_or(0, |at| chunks[at].start);
        let recent = *self.recent.get_or_insert_with(newest);
        let tries = if self.otherwise() == Fallback::Nothing { 1 } else { TRIES };
        let tried = |chunk: &Span| self.tried.chunks.get(chunk).copied().unwrap_or_default();
        chunks.retain(|chunk| tried(chunk) < tries);
        // Without a model, a chunk becomes an extract, and retrying is useless.
        chunks.extend(again.into_iter().filter(|chunk| tried(chunk) == 0));
        if self.ahead.is_some() {
            chunks.truncate(self.settings.leaf_pass_concurrency.max(1));
        }
        for chunk in &chunks {
            *self.tried.chunks.entry(chunk.clone()).or_default() += 1;
        }
        let extracts = extracts(branch);
        chunks.into_iter().map(|chunk| self.leaf(branch, chunk, recent, &extracts)).collect()
    }

    /// Whether a small last chunk, from the message at `start` on, may stay raw until there is more of it.
    fn may_wait(&mut self, branch: &Branch, start: usize) -> bool {
        match self.ahead {
            // Before a fold, no message will be added to it.
            Some(ahead) => ahead.fold_before.is_none(),
            None => {
                branch.before()[start].can_begin()
                    && (start > 0 || !branch.forest.is_empty())
                    && tokens_of(&branch.visible()[start..]) < std::mem::take(&mut self.most_raw)
            }
        }
    }

    /// The leaf summary of `chunk`; from the message at `recent` on, they are longer.
    fn leaf(&self, branch: &Branch, chunk: Span, recent: usize, extracts: &[Span]) -> PlannedSummary {
        // A chunk that has an extract needs no other one.
        let around = extracts.get(extracts.partition_point(|extract| extract.end < chunk.end));
        let otherwise = match (around.filter(|extract| extract.start <= chunk.start), self.otherwise()) {
            (Some(extract), Fallback::Extract) if *extract != chunk => Fallback::Finer,
            (Some(_), _) => Fallback::Nothing,
            (None, otherwise) => otherwise,
        };
        let by = extract_over(branch, &chunk).and_then(|extract| self.writers.get(&extract).cloned());
        let before = orientation(&branch.visible()[..chunk.start]);
        let (place, recent) = (chunk.start, chunk.start >= recent);
        let messages = branch.visible()[chunk].to_vec();
        let hash = Hash::of(messages.iter().map(|visible| visible.seen.hash.0.as_slice()));
        (hash, Material::Messages(Chunk { messages, place, before, recent, by }), otherwise)
    }

    /// The condensed summaries of `groups`, except those that were tried.
    fn condensed(
        &mut self,
        branch: &Branch,
        groups: Vec<Vec<SummaryId>>,
        otherwise: Fallback,
    ) -> Vec<PlannedSummary> {
        let node = |group: Vec<SummaryId>| {
            let sources: Vec<_> = group.iter().filter_map(|id| branch.summary(*id).cloned()).collect();
            let hash = Hash::of(sources.iter().map(|source| source.hash.0.as_slice()));
            let is_new = self.tried.groups.insert((hash, otherwise));
            is_new.then(|| {
                (hash, Material::Summaries(sources, writer(self.writers, branch, &group)), otherwise)
            })
        };
        groups.into_iter().filter_map(node).collect()
    }
}

/// The chunks to summarize: the uncovered messages of the branch, and again the extracts that its frontier is made
/// from. Of an extract that covers several chunks, only those that no model has summarized yet.
pub(super) fn missing(cut: Cut, branch: &Branch) -> (Vec<Span>, Vec<Span>) {
    let (gaps, extracts) = (gaps(&branch.forest.frontier()), extracts(branch));
    let sound = if extracts.is_empty() { HashSet::new() } else { branch.forest.sound_leaves() };
    let [uncovered, mut again] = [gaps, extracts].map(|spans| cut.chunks(branch.before(), spans));
    again.retain(|chunk| !sound.contains(chunk));
    (uncovered, again)
}

/// The ranges of a frontier that no summary covers.
fn gaps(frontier: &[Piece]) -> Vec<Span> {
    let mut gaps: Vec<Span> = Vec::new();
    for piece in frontier {
        let Piece::Message(at) = piece else { continue };
        match gaps.last_mut() {
            Some(gap) if gap.end == *at => gap.end += 1,
            _ => gaps.push(*at..at + 1),
        }
    }
    gaps
}

/// Where the last chunk starts, if it ends the part to compact and is so small that it may wait for more.
fn remainder(cut: Cut, branch: &Branch, chunks: &[Span]) -> Option<usize> {
    let (before, last) = (branch.before(), chunks.last()?);
    (last.end == before.len() && cut.is_remainder(before, last)).then_some(last.start)
}

/// Context for summarizing what follows the messages `before`: the last of them, and the user's last request,
/// however far above.
fn orientation(before: &[Visible]) -> Vec<Visible> {
    let near = &before[before.len().saturating_sub(passes::BEFORE)..];
    let asked = |messages: &[Visible]| messages.iter().rposition(|message| message.seen.role == "user");
    match asked(&before[..before.len() - near.len()]) {
        Some(at) if asked(near).is_none() => [&before[at..=at], near].concat(),
        _ => near.to_vec(),
    }
}

/// The spans of the extracts that the frontier is made from. Others are not worth paying for.
fn extracts(branch: &Branch) -> Vec<Span> {
    let mut extracts = branch.forest.degraded_leaves();
    if !extracts.is_empty() {
        let used: HashSet<SummaryId> =
            branch.forest.closure(branch.forest.frontier_summaries()).into_iter().collect();
        extracts.retain(|id| used.contains(id));
    }
    extracts.into_iter().filter_map(|id| branch.forest.span(id).cloned()).collect()
}

/// The extract that covers these messages.
fn extract_over(branch: &Branch, chunk: &Span) -> Option<SummaryId> {
    let covers = |id: &SummaryId| {
        branch.forest.span(*id).is_some_and(|span| span.start <= chunk.start && chunk.end <= span.end)
    };
    branch.forest.degraded_leaves().into_iter().find(covers)
}

/// The model that the user named for a condensed summary of these: for an earlier one of the same, or for all of them.
fn writer(writers: &HashMap<SummaryId, String>, branch: &Branch, group: &[SummaryId]) -> Option<String> {
    let is_by = |named: &String| {
        group.iter().all(|id| branch.summary(*id).is_some_and(|one| one.model.as_ref() == Some(named)))
    };
    let same = writers.iter().find(|(old, _)| branch.sources(**old) == Some(group));
    same.map(|(_, named)| named).or_else(|| writers.values().find(|named| is_by(named))).cloned()
}

/// The oldest summaries of each unbroken run of `depth` in the frontier, in groups of `size`, while more than that
/// many remain.
fn groups(branch: &Branch, depth: u32, size: usize) -> Vec<Vec<SummaryId>> {
    let groups = |run: Vec<SummaryId>| {
        let most = run.len().saturating_sub(1) / size;
        run.chunks(size).take(most).map(<[_]>::to_vec).collect::<Vec<_>>()
    };
    runs(branch, depth).into_iter().flat_map(groups).collect()
}

/// What to condense if the block does not fit: the oldest of the shallowest run of several, otherwise the oldest two
/// of any depth. Takes only as many groups of that run as are certainly needed, since a group frees at most its own
/// size. Empty if only one piece is left.
fn groups_under_pressure(branch: &Branch, size: usize, budget: usize) -> Vec<Vec<SummaryId>> {
    let pieces = branch.forest.frontier_summaries();
    let depths: BTreeSet<u32> = pieces.iter().map(|id| branch.depth(*id)).collect();
    let run = depths.into_iter().flat_map(|depth| runs(branch, depth)).find(|run| run.len() > 1);
    let run = run.unwrap_or_else(|| pieces.iter().copied().take(2).collect());
    let tokens = |ids| branch.tokens_of(ids);
    let excess = tokens(&pieces).saturating_sub(budget);
    let mut freed = 0;
    let mut groups: Vec<Vec<SummaryId>> = Vec::new();
    for group in run.chunks(size).filter(|group| group.len() > 1) {
        if !groups.is_empty() && freed + tokens(group) > excess {
            break;
        }
        freed += tokens(group);
        groups.push(group.to_vec());
    }
    groups
}

/// The unbroken runs of frontier summaries of one depth.
fn runs(branch: &Branch, depth: u32) -> Vec<Vec<SummaryId>> {
    let mut runs: Vec<Vec<SummaryId>> = vec![Vec::new()];
    for piece in branch.forest.frontier() {
        match (piece, runs.last_mut()) {
            (Piece::Summary(id, _), Some(run)) if branch.depth(id) == depth => run.push(id),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_the_runs_of_uncovered_messages() {
        let frontier =
            [Piece::Message(0), Piece::Message(1), Piece::Summary(SummaryId(1), 2..5), Piece::Message(5)];
        assert_eq!(gaps(&frontier), [0..2, 5..6]);
    }
}
