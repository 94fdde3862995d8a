//! Checks branches: the frontier of each, computed as in compaction, must cover every visible message exactly
//! once. What a summary covers is read from its edges, down to the messages.

use std::collections::HashMap;

use super::report::{Check, Remedy};
use crate::dag::{Forest, Piece, Sources, visible};
use crate::error::Result;
use crate::ids::{EntryId, MessageId, SummaryId};
use crate::store::{Tree, View};

/// The messages below summaries, cached.
pub(super) type Below = HashMap<SummaryId, Vec<MessageId>>;

pub(super) fn check(
    view: &View<'_>,
    tree: &Tree,
    end: EntryId,
    session: &str,
    below: &mut Below,
    check: &mut Check,
) -> Result<()> {
    let branch = tree.branch(end);
    let leaf = branch.last().map_or("nothing", |entry| entry.entry_id.as_str());
    let shown = visible(&branch);
    let seen: Vec<MessageId> = shown.iter().map(|message| message.seen.id).collect();
    let frontier = Forest::new(&seen, view.summaries().nodes_on(&seen)?).frontier();
    let mut covered: Vec<MessageId> = Vec::with_capacity(seen.len());
    for piece in &frontier {
        match piece {
            Piece::Message(at) => covered.extend(seen.get(*at)),
            Piece::Summary(id, _) => covered.extend(messages_below(view, *id, below)?),
        }
    }
    check.saw(1, "branch");
    let summaries = frontier.iter().filter(|piece| matches!(piece, Piece::Summary(..))).count();
    check.saw(summaries, "summary in place");
    if covered != seen {
        check.find(Remedy::None, "its frontier does not cover each visible message exactly once", || {
            format!("{leaf} of session {session}")
        });
    }
    Ok(())
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
