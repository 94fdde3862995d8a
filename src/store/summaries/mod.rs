//! Summaries: their texts, edges and facts, who is about to write which, and what was learnt of models' tokens.

pub(super) mod adding;
pub(super) mod beside;
pub(super) mod calibration;
pub(super) mod carried;
pub(super) mod claims;
pub(super) mod counts;
pub(super) mod identities;
pub(super) mod records;
pub(super) mod spans;

crate::store::view::handles!("Summaries, and who is about to make which." Summaries, "Adds summaries, and notes beside them." SummaryWriter);
