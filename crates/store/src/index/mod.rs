//! The full-text index: queries, words and stems.

pub(super) mod search;
pub(super) mod vocabulary;
pub(super) mod writing;

crate::view::handles!("The full-text index." FullTextIndex, "Adds passages and summaries to the index." IndexWriter);
