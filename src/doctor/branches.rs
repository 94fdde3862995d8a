//! Checks branches: the frontier of each, computed as in compaction, must cover every visible message exactly
//! once. What a summary covers is read from its edges, down to the messages.
//!
//! A session may have thousands of branches, most of which have the same summaries: these are checked once.

use std::collections::HashMap;

use super::report::{Check, Remedy};
use crate::branch::Cover;
use crate::dag::{Piece, Sources};
use crate::error::Result;
use crate::ids::{EntryId, MessageId, SummaryId};
use crate::store::{Tree, View};

/// The messages below summaries, cached.
type Below = HashMap<SummaryId, Vec<MessageId>>;

/// What is known of branches.
#[derive(Default)]
pub(super) struct Known {
    below: Below,
    /// By the entry that decides about a branch's summaries.
    found: HashMap<EntryId, Found>,
}

/// What was found on a branch.
struct Found {
    /// How many summaries are in place.
    summaries: usize,
    /// Whether it has each visible message exactly once.
    is_exact: bool,
}

impl Known {
    pub(super) fn has(&self, at: EntryId) -> bool {
        self.found.contains_key(&at)
    }

    /// Computes the cover of the branch that ends with `at`.
    pub(super) fn read(&mut self, view: &View<'_>, tree: &Tree, at: EntryId) -> Result<()> {
        let cover = Cover::of(view, &tree.branch(at))?;
        let seen = cover.seen();
        let mut covered: Vec<MessageId> = Vec::with_capacity(seen.len());
        for piece in &cover.frontier {
            match piece {
                Piece::Message(at) => covered.extend(seen.get(*at)),
                Piece::Summary(id, _) => covered.extend(messages_below(view, *id, &mut self.below)?),
            }
        }
        let summaries = cover.summaries().count();
        self.found.insert(at, Found { summaries, is_exact: covered == seen });
        Ok(())
    }

    /// Adds the branch that ends with `end` to the report. Without a deciding entry `at` it has no summaries.
    pub(super) fn report(
        &self,
        tree: &Tree,
        end: EntryId,
        at: Option<EntryId>,
        session: &str,
        check: &mut Check,
    ) {
        let found = match at.map(|at| self.found.get(&at)) {
            None => &Found { summaries: 0, is_exact: true },
            Some(Some(found)) => found,
            // It could not be read.
            Some(None) => return,
        };
        check.saw(1, "branch");
        check.saw(found.summaries, "summary in place");
        if !found.is_exact {
            check.find(Remedy::None, "its frontier does not cover each visible message exactly once", || {
                let leaf = tree.entry(end).map_or("nothing", |entry| entry.entry_id.as_str());
                format!("{leaf} of session {session}")
            });
        }
    }
}

/// A valid summary has valid sources, down to messages, so the recursion ends.
fn messages_below<'b>(view: &View<'_>, id: SummaryId, below: &'b mut Below) -> Result<&'b [MessageId]> {
    if !below.contains_key(&id) {
        let messages = match view.summaries().edges(id)?.sources {
            Sources::Messages(messages) => messages,
            Sources::Summaries(sources) => {
                let mut all = Vec::new();
                for source in sources {
                    all.extend(messages_below(view, source, below)?);
                }
                all
            }
        };
        below.insert(id, messages);
    }
    Ok(below.get(&id).map_or(&[], Vec::as_slice))
}
