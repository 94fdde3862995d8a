//! Checks summaries: each must match its hash and have consecutive sources.

use std::collections::{HashMap, HashSet};

use super::Findings;
use super::messages::Tombstone;
use super::report::{Check, Remedy};
use crate::dag::MessageKind;
use crate::error::Result;
use crate::ids::{Hash, MessageId, SummaryId};
use crate::store::{AuditedSummary, Source, View};

/// All summaries and edges, and the messages they cover.
struct Dag<'a> {
    summaries: HashMap<SummaryId, AuditedSummary>,
    sources: HashMap<SummaryId, Vec<(i64, Source)>>,
    tombstones: &'a HashMap<MessageId, Tombstone>,
    /// Messages that an edit hid or replaced somewhere.
    edited: HashSet<MessageId>,
}

/// A summary's span according to its sources.
struct Span {
    depth: i64,
    first: MessageId,
    last: MessageId,
    messages: i64,
}

pub(super) fn check(
    view: &View<'_>,
    tombstones: &HashMap<MessageId, Tombstone>,
    check: &mut Check,
    found: &mut Findings,
) -> Result<()> {
    let summaries = view.upkeep().audit_summaries()?;
    let order: Vec<SummaryId> = summaries.iter().map(|summary| summary.id).collect();
    let mut sources: HashMap<SummaryId, Vec<(i64, Source)>> = HashMap::new();
    let mut edges = 0;
    for (summary, ordinal, source) in view.upkeep().audit_edges()? {
        edges += 1;
        sources.entry(summary).or_default().push((ordinal, source));
    }
    let dag = Dag {
        summaries: summaries.into_iter().map(|summary| (summary.id, summary)).collect(),
        sources,
        tombstones,
        edited: view.upkeep().edited_messages()?,
    };
    check.saw(order.len(), "summary");
    check.saw(edges, "edge");
    let mut broken = HashSet::new();
    let circling = dag.circling(&order);
    for id in &order {
        for what in dag.complaints(view, *id, &circling)? {
            broken.insert(*id);
            check.find(Remedy::Fix, what, || dag.name(*id));
        }
    }
    found.loose_ends |= dag.sources.keys().any(|id| !dag.summaries.contains_key(id));
    found.doomed = dag.above(&order, broken);
    Ok(())
}

impl Dag<'_> {
    fn sources(&self, id: SummaryId) -> &[(i64, Source)] {
        self.sources.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Whether it is condensed from one of these.
    fn rests_on(&self, these: &HashSet<SummaryId>, id: SummaryId) -> bool {
        self.sources(id).iter().any(|(_, source)| matches!(source, Source::Summary(id) if these.contains(id)))
    }

    /// Summaries in a cycle, and those that depend on one.
    fn circling(&self, order: &[SummaryId]) -> HashSet<SummaryId> {
        let mut waiting: HashSet<SummaryId> = order.iter().copied().collect();
        loop {
            let before = waiting.len();
            for id in order {
                if !self.rests_on(&waiting, *id) {
                    waiting.remove(id);
                }
            }
            if waiting.len() == before {
                return waiting;
            }
        }
    }

    fn complaints(
        &self,
        view: &View<'_>,
        id: SummaryId,
        circling: &HashSet<SummaryId>,
    ) -> Result<Vec<&'static str>> {
        let summary = &self.summaries[&id];
        let sources = self.sources(id);
        if circling.contains(&id) {
            return Ok(vec!["its sources include the summary itself"]);
        }
        if sources.is_empty() {
            return Ok(vec!["it has no sources"]);
        }
        let mut wrong = Vec::new();
        if sources.iter().zip(0..).any(|((ordinal, _), at)| *ordinal != at) {
            wrong.push("a number is missing in the order of its sources");
        }
        let Some(span) = self.span(sources) else {
            wrong.push("a source is missing");
            return Ok(wrong);
        };
        if self.hash(view, id, sources)?.is_none_or(|hash| Some(hash) != summary.hash) {
            wrong.push("its hash does not match text and sources");
        }
        if span.depth != summary.depth {
            wrong.push("its depth does not match its sources");
        }
        let time = |message: MessageId| self.tombstones.get(&message).map(|tombstone| tombstone.time);
        let noted = (summary.first, summary.last, summary.messages);
        if (span.first, span.last, span.messages) != noted
            || time(span.first) != Some(summary.from_time)
            || time(span.last) != Some(summary.to_time)
        {
            wrong.push("the recorded span does not match its messages");
        }
        if !self.is_run(sources) {
            wrong.push("its sources are not consecutive");
        }
        Ok(wrong)
    }

    /// The hash of text, state and sources.
    fn hash(&self, view: &View<'_>, id: SummaryId, sources: &[(i64, Source)]) -> Result<Option<Hash>> {
        // An unreadable row has no hash.
        let Ok(summary) = view.summaries().summary(id) else { return Ok(None) };
        let hashes: Option<Vec<Hash>> = sources
            .iter()
            .map(|(_, source)| match source {
                Source::Message(message) => self.tombstones.get(message).map(|tombstone| tombstone.hash),
                Source::Summary(source) => self.summaries.get(source)?.hash,
            })
            .collect();
        Ok(hashes.map(|hashes| summary.identity(&hashes)))
    }

    /// The combined span of the sources as recorded; `None` if one is missing.
    fn span(&self, sources: &[(i64, Source)]) -> Option<Span> {
        let spans = sources.iter().map(|(_, source)| match source {
            Source::Message(message) => {
                self.tombstones.get(message)?;
                Some(Span { depth: 0, first: *message, last: *message, messages: 1 })
            }
            Source::Summary(source) => {
                let AuditedSummary { depth, first, last, messages, .. } = *self.summaries.get(source)?;
                Some(Span { depth: depth.saturating_add(1), first, last, messages })
            }
        });
        spans.reduce(|whole, next| {
            let (whole, next) = (whole?, next?);
            let messages = whole.messages.saturating_add(next.messages);
            Some(Span { depth: whole.depth.max(next.depth), last: next.last, messages, ..whole })
        })?
    }

    /// Whether the sources are consecutive, with nothing between them except messages that a model may not
    /// have seen.
    fn is_run(&self, sources: &[(i64, Source)]) -> bool {
        sources.windows(2).all(|pair| {
            let ends = |source: &Source| match source {
                Source::Message(message) => Some((*message, *message)),
                Source::Summary(id) => self.summaries.get(id).map(|summary| (summary.first, summary.last)),
            };
            match (ends(&pair[0].1), ends(&pair[1].1)) {
                (Some((_, last)), Some((first, _))) => self.follows(last, first),
                _ => false,
            }
        })
    }

    fn follows(&self, before: MessageId, after: MessageId) -> bool {
        let said = |message: MessageId| match self.tombstones.get(&message) {
            Some(Tombstone { kind: MessageKind::Edited, parent, .. }) => *parent,
            _ => Some(message),
        };
        let (Some(before), Some(after)) = (said(before), said(after)) else { return false };
        let mut at = self.tombstones.get(&after).and_then(|tombstone| tombstone.parent);
        // No lineage is longer than the number of messages.
        for _ in 0..self.tombstones.len() {
            match at {
                Some(id) if id == before => return true,
                Some(id) => match self.tombstones.get(&id) {
                    Some(tombstone)
                        if tombstone.kind != MessageKind::Conversation || self.edited.contains(&id) =>
                    {
                        at = tombstone.parent;
                    }
                    _ => return false,
                },
                None => return false,
            }
        }
        false
    }

    /// `broken` and everything condensed from them.
    fn above(&self, order: &[SummaryId], mut broken: HashSet<SummaryId>) -> Vec<SummaryId> {
        loop {
            let before = broken.len();
            for id in order {
                if self.rests_on(&broken, *id) {
                    broken.insert(*id);
                }
            }
            if broken.len() == before {
                break;
            }
        }
        let mut doomed: Vec<SummaryId> = broken.into_iter().collect();
        doomed.sort();
        doomed
    }

    fn name(&self, id: SummaryId) -> String {
        match self.summaries.get(&id).and_then(|summary| summary.hash) {
            Some(hash) => hash.summary_handle(),
            None => format!("row {}", id.0),
        }
    }
}
