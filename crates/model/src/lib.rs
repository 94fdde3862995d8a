//! The model: sessions, messages, ids, the DAG, facts, the policy and settings. No SQL, and nothing waits.
//!
//! Pi's JSON is parsed here, for the engine. Nothing is ever written back: the exact original text is stored, and these
//! types are views of it.

mod agents;
#[cfg(feature = "rusqlite")]
mod columns;
pub mod config;
pub mod dag;
mod data;
mod entry;
pub mod error;
pub mod facts;
pub mod files;
mod folding;
pub mod frames;
pub mod ids;
mod json;
pub mod locks;
pub mod log;
mod message;
mod needles;
mod notes;
mod passages;
mod pattern;
pub mod policy;
pub mod quotes;
mod summary;
pub mod text;
pub mod tokens;
mod usage;

pub use agents::{
    agent_of, agent_of_session, digest, foreign, is_of_side_chain, is_rewritten, original_of, record_of,
    said, said_digest, slot_of, split_version,
};
pub use data::{DATA_MARK, as_indexed, is_of_data, may_be_data, without_base64};
pub use entry::{Content, Entry, Fields, parse_batch, parse_one, replacements, with_replacement};
pub use facts::Files;
pub use folding::{folded, is_diacritic, is_invisible, plain};
pub use json::{read_json, unmarked};
pub use message::{
    CallOutcome, FILE_TOOLS, Message, NOTE_TOOL, Part, RECALL_TOOLS, Role, SCRIPT_TOOL, each_string,
    searchable,
};
pub use needles::Needles;
pub use notes::{Change, MOST_TOKENS, Note, Notes, is_noting};
pub use passages::{Indexed, PART_MARK, bigrams, humps, is_ideograph, passages, seam, spelled};
pub use pattern::Pattern;
pub use summary::{CompactionDetails, Quote, QuoteKind, State, Summary, SummaryRecord, Supplement, title};
pub use usage::{MOST_REPORTED, Usage};
