//! Checks branches: the frontier of each, computed as in compaction, must cover every visible message exactly
//! once. What a summary covers is read from its edges, down to the messages.
//!
//! A session may have thousands of branches, most of which have the same summaries: these are checked once.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use super::report::{Check, Remedy};
use crate::branch::Cover;
use crate::dag::{Piece, Sources};
use crate::error::Result;
use crate::ids::{EntryId, MessageId, SummaryId};
use crate::store::{StoredSession, Tree, View};

/// The messages below summaries, cached.
type Below = HashMap<SummaryId, Vec<MessageId>>;

pub(super) fn check<'c>(
    view: &View<'_>,
    conversations: impl Iterator<Item = &'c StoredSession>,
    cancel: &CancellationToken,
    check: &mut Check,
) -> Result<()> {
    let lasts = view.summaries().last_messages()?;
    let mut below = Below::new();
    // By the entry that decides about a branch's summaries: how many are in place, and whether the branch has each
    // visible message exactly once.
    let mut known: HashMap<EntryId, (usize, bool)> = HashMap::new();
    for conversation in conversations.take_while(|_| !cancel.is_cancelled()) {
        check.run(|check| {
            let tree = view.messages().tree(conversation.id)?;
            let deciding = tree.deciding(&lasts);
            for end in tree.ends.iter().take_while(|_| !cancel.is_cancelled()) {
                check.run(|check| {
                    // Without such an entry it has no summaries.
                    let (summaries, is_exact) = match deciding.get(end) {
                        None => (0, true),
                        Some(at) => match known.get(at) {
                            Some(found) => *found,
                            None => *known.entry(*at).or_insert(cover(view, &tree, *at, &mut below)?),
                        },
                    };
                    check.saw(1, "branch");
                    check.saw(summaries, "summary in place");
                    if !is_exact {
                        let what = "its frontier does not cover each visible message exactly once";
                        let leaf = tree.entry(*end).map_or("nothing", |entry| entry.entry_id.as_str());
                        let session = &conversation.session_id;
                        check.find(Remedy::None, what, || format!("{leaf} of session {session}"));
                    }
                    Ok(())
                });
            }
            Ok(())
        });
    }
    Ok(())
}

/// Computes the cover of the branch that ends with `at`.
fn cover(view: &View<'_>, tree: &Tree, at: EntryId, below: &mut Below) -> Result<(usize, bool)> {
    let cover = Cover::of(view, &tree.branch(at))?;
    let seen = cover.seen();
    let mut covered: Vec<MessageId> = Vec::with_capacity(seen.len());
    for piece in &cover.frontier {
        match piece {
            Piece::Message(at) => covered.extend(seen.get(*at)),
            Piece::Summary(id, _) => covered.extend(messages_below(view, *id, below)?),
        }
    }
    Ok((cover.summaries().count(), covered == seen))
}

/// A valid summary has valid sources, down to messages, so the recursion ends.
fn messages_below<'b>(view: &View<'_>, id: SummaryId, below: &'b mut Below) -> Result<&'b [MessageId]> {
    if !below.contains_key(&id) {
        let messages = match view.summaries().sources(id)? {
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
