//! What is fuzzed: functions that take whatever bytes there are, and panic where a promise is broken.
//!
//! `npm run fuzz` runs one for as long as it is told, in a build that libFuzzer guides (`fuzz/`). `npm test` runs each over its corpus
//! and some thousand inputs made of that (`src/tests/fuzzing.rs`). A target stands in the module whose private parts it tries.

use crate::{compaction, config, ingest, store, tools};

/// Takes whatever bytes there are, and panics where a promise is broken.
pub type Target = fn(&[u8]);

/// The targets, by the name that the folder of their corpus has too.
pub const TARGETS: [(&str, Target); 7] = [
    ("arguments", tools::fuzzing::arguments),
    ("cursors", tools::fuzzing::cursors),
    ("fences", compaction::fuzzing::fences),
    ("redaction", compaction::fuzzing::redaction),
    ("rows", store::fuzzing::rows),
    ("sessions", ingest::fuzzing::sessions),
    ("settings", config::fuzzing::settings),
];
