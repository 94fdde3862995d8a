//! Where a compaction would cut now: at Pi's own cut, or in a lean context at a fold's, whichever leaves
//! less. What comes before may be summarized ahead of time. If the actual cut differs, that work was wasted,
//! nothing worse.

use super::Session;
use crate::config::Context;
use crate::dag::{Visible, can_begin_at};
use crate::error::Result;
use crate::model::Message;
use crate::policy;
use crate::store::View;

impl Session<'_> {
    /// The first entry that a compaction of the branch ending at `leaf` keeps; `None` if it keeps everything.
    /// `model` is the session's, as `provider/id`.
    pub(super) async fn kept(&self, model: Option<&str>, leaf: &str) -> Result<Option<String>> {
        let Self { store, conversation, memory, settings, .. } = self.clone();
        let pis = settings.pi.with(model).keep_recent_tokens;
        let is_fold = settings.context == Context::Lean && policy::TAIL < pis;
        let keep = if is_fold { policy::TAIL } else { pis };
        let leaf = leaf.to_owned();
        let read = move |view: &View<'_>| {
            let path = memory.read(view, conversation, &leaf)?.path;
            let visible = path.visible();
            let size = |message: &Visible| match message.pruned {
                Some(tokens) => Ok(tokens),
                None => Ok(Message::parse(&view.messages().json_of(message.seen.id)?).pi_tokens()),
            };
            let cut = first_kept(visible, keep, is_fold, size)?;
            Ok(cut.map(|at| visible[at].entry_id.clone()))
        };
        store.read(read).await
    }
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
