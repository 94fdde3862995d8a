//! Where a compaction would cut now: at Pi's own cut, or in a lean context at a fold's, whichever leaves
//! less. What comes before may be summarized ahead of time. If the actual cut differs, that work was wasted,
//! nothing worse.

use super::Session;
use lcm_model::config::Context;
use lcm_model::error::Result;
use lcm_model::policy::{self, Window};
use lcm_store::View;

impl Session<'_> {
    /// The first entry that a compaction of the branch ending at `leaf` keeps; `None` if it keeps everything.
    /// `model` is the session's, as `provider/id`.
    pub(super) async fn kept(
        &self,
        model: Option<&str>,
        window: Window,
        leaf: &str,
    ) -> Result<Option<String>> {
        let Self { store, conversation, memory, settings, .. } = self.clone();
        let pis = settings.pi.with(model).keep_recent_tokens;
        let folds = policy::tail(window);
        let is_fold = settings.context == Context::Lean && folds < pis;
        let keep = if is_fold { folds } else { pis };
        let leaf = leaf.to_owned();
        let read = move |view: &View<'_>| {
            let known = memory.read(view, conversation, &leaf)?;
            let visible = known.visible();
            let can_begin = |at: &usize| visible[*at].can_begin();
            let mut kept = 0;
            for at in (0..visible.len()).rev() {
                // Pi's own measure.
                kept += view.messages().parsed(visible[at].seen.id)?.pi_tokens();
                if kept >= keep {
                    // Before a result, a fold moves back to its call, and Pi moves on to the next message.
                    let before = || (0..=at).rev().find(can_begin);
                    let after = || (at..visible.len()).find(can_begin);
                    let cut = if is_fold { before() } else { after().or_else(before) };
                    return Ok(cut.map(|at| visible[at].entry_id.clone()));
                }
            }
            Ok(None)
        };
        store.read(read).await
    }
}
