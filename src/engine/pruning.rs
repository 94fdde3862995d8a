//! What of the live context gives way to stubs, at the end of one of Pi's turns.

use std::sync::Arc;

use serde_json::Value;

use super::{Engine, read_json};
use crate::compaction;
use crate::config::Pruning;
use crate::error::Result;
use crate::log::Field;
use crate::pruning::{Draft, Limits, Live, Piece, Plan, Zone, plan};
use crate::store::View;

impl Engine {
    /// The context edits that are due now, as Pi takes them; none in most cases. `live` is JSON: `leafId`, and where known
    /// `shownFrom`, `contextTokens`, `contextWindow`, `model`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prune(&self, live: &str) -> Result<Vec<Value>> {
        self.stubs(&read_json("the context", live)?).await
    }

    /// The same.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn stubs(&self, live: &Live) -> Result<Vec<Value>> {
        let settings = self.settings();
        let (Some(tokens), Some(window)) = (live.context_tokens, live.context_window) else {
            return Ok(Vec::new());
        };
        let limits = Limits::of(&settings, live.model.as_deref(), window);
        // Most contexts are not that full, and then nothing is read.
        if settings.pruning == Pruning::Off || limits.zone(tokens) == Zone::Green {
            return Ok(Vec::new());
        }
        self.flush().await?;
        if self.persistor.is_behind() {
            return Ok(Vec::new());
        }
        let (memory, conversation, live) =
            (Arc::clone(&self.memory), self.persistor.conversation(), live.clone());
        let read = move |view: &View<'_>| {
            let first = live.shown_from.as_deref();
            let context = compaction::context(view, &memory, conversation, &live.leaf_id, first)?;
            match limits.may_free(tokens, &context) {
                true => {
                    let mut pieces = Piece::read_all(view, &context)?;
                    let is_theirs = |piece: &Piece| live.edited.contains(&piece.entry_id);
                    pieces.iter_mut().for_each(|piece| piece.is_edited |= is_theirs(piece));
                    Ok(plan(&pieces, &limits, tokens))
                }
                false => Ok(Plan::default()),
            }
        };
        let plan = self.store.read(read).await?;
        if plan.freed < limits.least {
            return Ok(Vec::new());
        }
        let fields = [("drafts", Field::Count(plan.drafts.len())), ("freed", Field::Count(plan.freed))];
        self.log.event("prune", &fields);
        Ok(plan.drafts.iter().map(Draft::to_json).collect())
    }
}
