//! The end of a turn: what the extension appends to the session there by itself. Nobody waits for it: it is made from what is
//! there already, or not at all.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::{Engine, lock, read_json};
use crate::compaction::{Early, Session, TurnEnd, early};
use crate::config::Settings;
use crate::error::Result;
use crate::log::Field;
use crate::model::CompactionDetails;

/// What is to be appended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Boundary {
    /// In this order. A compaction stands alone: where one is due, nothing else is changed.
    pub entries: Vec<Draft>,
    /// Of the compaction, in one line for the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// An entry, as Pi takes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Draft {
    /// The block takes the place of what comes before the entry `first_kept_entry_id`.
    #[serde(rename_all = "camelCase")]
    Compaction {
        /// The block.
        summary: String,
        /// The first entry that stays raw.
        first_kept_entry_id: Option<String>,
        /// The new summaries and what they span.
        details: Box<CompactionDetails>,
    },
}

/// What a compaction came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// In one line.
    pub text: String,
    /// Worth a warning.
    pub degraded: bool,
}

/// Leave to compact; given back when dropped.
struct Alone<'a>(&'a AtomicBool);

impl<'a> Alone<'a> {
    fn begin(busy: &'a AtomicBool) -> Option<Self> {
        (!busy.swap(true, Ordering::AcqRel)).then_some(Self(busy))
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Engine {
    /// What is to be appended at the end of a turn. `end` is [`TurnEnd`] as JSON. What was handed over before is part of it.
    ///
    /// # Errors
    /// When the store fails; then nothing is to be appended.
    pub async fn boundary(&self, end: &str) -> Result<Boundary> {
        let end: TurnEnd = read_json("the end of the turn", end)?;
        let early = self.early(&end).await?;
        Ok(early.map(Boundary::from).unwrap_or_default())
    }

    /// The compaction that `compactAt` asks for, if it is ready.
    async fn early(&self, end: &TurnEnd) -> Result<Option<Early>> {
        let settings = self.settings();
        let Some(threshold) = due(&settings, end) else { return Ok(None) };
        let Some(_alone) = Alone::begin(&self.is_at_boundary) else { return Ok(None) };
        if lock(&self.progress).is_some() {
            return Ok(None);
        }
        self.flush().await?;
        if self.persistor.is_behind() {
            return Ok(None);
        }
        let started = std::time::Instant::now();
        let session = Session {
            store: &self.store,
            conversation: self.persistor.conversation(),
            memory: std::sync::Arc::clone(&self.memory),
            settings: &settings,
        };
        let ready = early(session, end, threshold).await;
        let outcome = match &ready {
            Ok(Some(_)) => "compacted",
            Ok(None) => "not ready",
            Err(error) => error.code().as_str(),
        };
        let fields = [("outcome", Field::Name(outcome)), ("took", Field::Took(started.elapsed()))];
        self.log.event("boundary", &fields);
        if matches!(ready, Ok(Some(_))) {
            self.has_history.store(true, Ordering::Relaxed);
        }
        ready
    }
}

impl From<Early> for Boundary {
    fn from(Early { compaction, report, degraded }: Early) -> Self {
        let draft = Draft::Compaction {
            summary: compaction.summary,
            first_kept_entry_id: compaction.first_kept_entry_id,
            details: Box::new(compaction.details),
        };
        Self { entries: vec![draft], report: Some(Report { text: report, degraded }) }
    }
}

/// The threshold, in tokens, if the context is beyond it. Not beyond Pi's own: there Pi compacts by itself.
fn due(settings: &Settings, end: &TurnEnd) -> Option<usize> {
    let (tokens, window) = (end.context_tokens?, end.context_window?);
    let threshold = settings.compact_at.tokens(end.model.as_deref(), window)?;
    let pi_compacts = settings.pi.enabled && tokens > window.saturating_sub(settings.pi.reserve_tokens);
    (settings.background && tokens >= threshold && !pi_compacts).then_some(threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Level, Share};

    #[test]
    fn a_compaction_is_due_between_the_threshold_and_pis_own() {
        let mut settings = Settings::defaults(std::path::Path::new("/nowhere"));
        let due = |settings: &Settings, tokens| {
            let end = TurnEnd {
                leaf_id: "e1".into(),
                context_tokens: tokens,
                context_window: Some(100_000),
                model: Some("a/b".into()),
                shown_from: None,
            };
            due(settings, &end)
        };
        assert_eq!(due(&settings, Some(75_000)), None);
        settings.compact_at = Share::new(0.7).map(Level::Share).unwrap();
        assert_eq!(due(&settings, Some(69_999)), None);
        assert_eq!(due(&settings, Some(70_000)), Some(70_000));
        assert_eq!(due(&settings, None), None);
        assert_eq!(due(&settings, Some(90_000)), None);
        settings.pi.enabled = false;
        assert_eq!(due(&settings, Some(90_000)), Some(70_000));
        settings.background = false;
        assert_eq!(due(&settings, Some(75_000)), None);
    }

    #[test]
    fn one_at_a_time() {
        let busy = AtomicBool::default();
        let alone = Alone::begin(&busy).unwrap();
        assert!(Alone::begin(&busy).is_none());
        drop(alone);
        assert!(Alone::begin(&busy).is_some());
    }
}
