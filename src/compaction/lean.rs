//! The context as the policy sees it: the size of each message, how often it was sent, and how much of it is
//! summarized.

use super::Part;
use super::branch::{self, Branch};
use super::plan::Cut;
use crate::branch::Memory;
use crate::config::Settings;
use crate::dag::{MessageKind, Piece, Visible};
use crate::error::Result;
use crate::ids::ConversationId;
use crate::policy::{self, Item};
use crate::store::View;

/// Estimated tokens of a stub; most are slightly shorter.
const STUB: usize = 90;

/// The current context. All sizes are in estimated tokens.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The messages, oldest first.
    pub visible: Vec<Visible>,
    /// The same as items for the policy.
    pub items: Vec<Item>,
    /// The largest block of a fold, including notes.
    pub largest_block: usize,
    /// The size of what the last request contained for the first time.
    pub grown: usize,
    /// Its size in the input of Pi's summarizer.
    pub grown_summarizable: usize,
    /// The same for everything.
    pub summarizable: usize,
    /// The size of what stubs leave out.
    pub hidden: usize,
    /// The index of the last compaction or stub on the branch.
    pub last_change: usize,
    /// Whether the branch continues from the given entry.
    pub goes_on: bool,
}

/// The branch, and which part of it is shown.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    pub leaf: String,
    /// The first entry that the last compaction left raw.
    pub first: Option<String>,
    /// An entry from which the branch may continue.
    pub last: Option<String>,
    pub window: Option<usize>,
}

/// Reads the current context.
pub fn shown(
    view: &View<'_>,
    memory: &Memory,
    conversation: ConversationId,
    settings: &Settings,
    looked: &Looked,
) -> Result<Shown> {
    let Looked { leaf, first, last, window } = looked;
    let path = memory.read(view, conversation, leaf)?.path;
    let place = |entry: &Option<String>| -> Result<Option<usize>> {
        entry.as_ref().map_or(Ok(None), |entry| branch::place(view, &path, conversation, entry))
    };
    let first_place = place(first)?;
    let goes_on = place(last)?.is_some();
    let from = first_place.map_or(0, |place| path.seen_before(place));
    let visible = path.visible()[from..].to_vec();
    let cut = Cut::of(settings, *window);
    let mut items = items(&visible, path.last_compaction().unwrap_or_default(), cut);
    let new = grown(&visible);
    let mut shown = Shown {
        grown: new.iter().map(Visible::shown_tokens).sum(),
        grown_summarizable: summarizable(new),
        summarizable: summarizable(&visible),
        last_change: path.last_change(),
        goes_on,
        ..Shown::default()
    };
    if let Some(at) = policy::tail(&items) {
        let part = Part::Before(visible[at].entry_id.clone());
        let branch = Branch::read(view, memory, conversation, leaf, &part)?;
        let covered = branch.before().len().saturating_sub(from).min(items.len());
        items[..covered].iter_mut().for_each(|item| item.unread = 0);
        for piece in branch.frontier() {
            let Piece::Message(place) = piece else { continue };
            let unread = cut.shown_tokens(&branch.before()[place].seen);
            // What others compacted must be summarized along with the rest.
            if let Some(item) = items.get_mut(place.saturating_sub(from)) {
                item.unread += unread;
            }
        }
    }
    let notes = if settings.notes { view.messages().notes(conversation, leaf)?.tokens() } else { 0 };
    shown.largest_block =
        settings.max_summary_tokens.min(window.unwrap_or(usize::MAX) / super::WINDOW_SHARE) + notes;
    let left_out = |message: &Visible| message.seen.tokens.saturating_sub(message.shown_tokens());
    shown.hidden = visible.iter().map(left_out).sum();
    Ok(Shown { visible, items, ..shown })
}

fn items(visible: &[Visible], compacted: usize, cut: Cut) -> Vec<Item> {
    let mut sent = 0;
    let mut items: Vec<Item> = visible
        .iter()
        .enumerate()
        .rev()
        .map(|(at, message)| {
            let is_result = message.seen.role == "toolResult" && message.pruned.is_none();
            let shown = message.shown_tokens();
            let item = Item {
                shown,
                sent,
                is_request: message.seen.role == "user",
                is_result,
                stub: (is_result && shown >= policy::BULKY && message.seen.kind != MessageKind::Edited)
                    .then_some(STUB),
                unread: cut.shown_tokens(&message.seen),
                can_begin: crate::dag::can_begin_at(visible, at),
            };
            sent += usize::from(message.seen.role == "assistant" && message.index > compacted);
            item
        })
        .collect();
    items.reverse();
    items
}

/// What the last request contained in addition to the one before: everything since the second-to-last answer,
/// inclusive.
fn grown(visible: &[Visible]) -> &[Visible] {
    let is_answer = |message: &Visible| message.seen.role == "assistant";
    let Some(last) = visible.iter().rposition(is_answer) else { return &[] };
    let before = visible[..last].iter().rposition(is_answer).unwrap_or_default();
    &visible[before..last]
}

/// Tokens in the input of Pi's summarizer, which truncates results, with or without a stub.
fn summarizable(visible: &[Visible]) -> usize {
    let cut = |message: &Visible| match message.seen.role.as_str() {
        "toolResult" => message.seen.tokens.min(policy::SUMMARIZED_RESULT),
        _ => message.seen.tokens,
    };
    visible.iter().map(cut).sum()
}
