//! The full-text index: queries, words and their stems.

pub(super) mod search;
pub(super) mod stemming;
pub(super) mod vocabulary;
