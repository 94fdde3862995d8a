//! Summaries: their texts, edges and facts, claims on spans, and token calibration per model.

pub(super) mod adding;
pub(super) mod calibration;
pub(super) mod carried;
pub(super) mod claims;
pub(super) mod counts;
pub(super) mod extras;
pub(super) mod identities;
pub(super) mod records;
pub(super) mod redo;
pub(super) mod spans;

crate::view::handles!(summaries: "Summaries, and claims on those in progress." Summaries, "Adds summaries and the data stored with them." SummaryWriter);
