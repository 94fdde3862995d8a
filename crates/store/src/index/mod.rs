//! The full-text index: queries, words and stems.

pub(super) mod search;
pub(super) mod vocabulary;

crate::view::handles!(index: "The full-text index." FullTextIndex);
