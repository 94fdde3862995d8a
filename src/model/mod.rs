//! Pi's JSON, parsed for the engine. Nothing here is ever written back: the exact original text is stored,
//! and these types are views of it.

mod agents;
mod base64;
mod entry;
mod files;
mod json;
mod message;
mod notes;
mod passages;
mod searchable;
mod summary;
mod usage;

pub use agents::{
    DIGEST, PURGED, agent_of, agent_of_session, alone_id, first_id, foreign, forked_from, is_alone,
    is_numbered, is_of_side_chain, is_record, may_carry, original_of, record_alone, record_of, said,
    undigested_name, without_digests,
};
pub use entry::{Content, Entry, Fields, Stub, parse_batch, parse_one, replacements, with_replacement};
pub use files::Files;
pub use json::{read_json, unmarked};
pub use message::{FILE_TOOLS, Message, NOTE_TOOL, Part, Role, each_string};
pub use notes::{Change, MOST_TOKENS, Note, Notes, is_noting};
pub use passages::{bigrams, humps, is_ideograph, parts, passages};
pub use searchable::searchable;
pub use summary::{CompactionDetails, Quote, QuoteKind, State, SummaryRecord, Supplement, title};
pub use usage::Usage;
