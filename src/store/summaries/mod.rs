//! Summaries: their texts, edges and facts, who is about to write which, and what was learnt of models' tokens.

pub(super) mod beside;
pub(super) mod calibration;
pub(super) mod claims;
pub(super) mod records;
