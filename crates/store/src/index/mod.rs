//! The full-text index: queries, words and stems.

pub(super) mod search;
pub(super) mod vocabulary;

crate::view::handles!("The full-text index." FullTextIndex);
