//! The fuzz targets: functions that take arbitrary bytes and panic if an invariant is broken.
//!
//! `npm run fuzz` runs one for a given time, guided by libFuzzer (`fuzz/`). `npm test` runs each over its
//! corpus and some thousand inputs derived from it (`src/tests/fuzzing.rs`). A target lives in the module
//! whose private parts it tests.

use crate::tools;

/// Takes arbitrary bytes and panics if an invariant is broken.
pub type Target = fn(&[u8]);

/// The targets, each named like the folder of its corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("arguments", tools::fuzzing::arguments),
    ("cursors", tools::fuzzing::cursors),
    ("fences", lcm_compaction::fuzzing::fences),
    ("redaction", lcm_compaction::fuzzing::redaction),
    ("rows", lcm_store::fuzzing::rows),
    ("sessions", lcm_ingest::fuzzing::sessions),
    ("settings", lcm_model::config::fuzzing::settings),
];
