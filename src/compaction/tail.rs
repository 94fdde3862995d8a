//! Where a compaction would cut now: at Pi's own cut, or in a lean context at a fold's, whichever leaves
//! less. What comes before may be summarized ahead of time. If the actual cut differs, that work was wasted,
//! nothing worse.

use std::sync::Arc;

use crate::branch::Memory;
use crate::config::{Context, Settings};
use crate::dag::{Visible, can_begin_at};
use crate::error::Result;
use crate::ids::ConversationId;
use crate::model::Message;
use crate::policy;
use crate::store::Store;

/// The branch's session, and how it is compacted.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub store: &'a Store,
    pub memory: &'a Arc<Memory>,
    pub conversation: ConversationId,
    pub settings: &'a Settings,
    /// The session's model as `provider/id`.
    pub model: Option<&'a str>,
}

/// The first entry that a compaction of the branch ending at `leaf` keeps; `None` if it keeps everything.
pub(super) async fn kept(asked: Asked<'_>, leaf: &str) -> Result<Option<String>> {
    let Asked { store, memory, conversation, settings, model } = asked;
    let pis = settings.pi.with(model).keep_recent_tokens;
    let is_fold = settings.context == Context::Lean && policy::TAIL < pis;
    let keep = if is_fold { policy::TAIL } else { pis };
    let (leaf, memory) = (leaf.to_owned(), Arc::clone(memory));
    let read = store.read(move |view| {
        let path = memory.read(view, conversation, &leaf)?.path;
        let visible = path.visible();
        let size = |message: &Visible| match message.pruned {
            Some(tokens) => Ok(tokens),
            None => Ok(Message::parse(&view.messages().json_of(message.seen.id)?).pi_tokens()),
        };
        let cut = first_kept(visible, keep, is_fold, size)?;
        Ok(cut.map(|at| visible[at].entry_id.clone()))
    });
    read.await
}

/// The position of the first message that stays raw, so that about `keep` tokens remain, as measured by
/// `size`, Pi's own measure. If that message is a result, a fold moves back to its call, and Pi moves on to
/// the next message. `None` if everything stays.
///
/// # Errors
/// When `size` fails.
fn first_kept(
    visible: &[Visible],
    keep: usize,
    is_fold: bool,
    mut size: impl FnMut(&Visible) -> Result<usize>,
) -> Result<Option<usize>> {
    let can_begin = |at: &usize| can_begin_at(visible, *at);
    let mut kept = 0;
    for at in (0..visible.len()).rev() {
        kept += size(&visible[at])?;
        if kept >= keep {
            let before = || (0..=at).rev().find(can_begin);
            return Ok(if is_fold { before() } else { (at..visible.len()).find(can_begin).or_else(before) });
        }
    }
    Ok(None)
}
