//! The fuzz targets: functions that take arbitrary bytes and panic if an invariant is broken.
//!
//! `npm run fuzz` runs one for a given time, guided by libFuzzer (`fuzz/`). `npm test` runs each over its
//! corpus and some thousand inputs derived from it (`src/tests/fuzzing.rs`). A target lives in the module
//! whose private parts it tests.

use crate::{compaction, config, ingest, store, tools};

/// Takes arbitrary bytes and panics if an invariant is broken.
pub type Target = fn(&[u8]);

/// The targets, each named like the folder of its corpus.
pub const TARGETS: [(&str, Target); 7] = [
    ("arguments", tools::fuzzing::arguments),
    ("cursors", tools::fuzzing::cursors),
    ("fences", compaction::fuzzing::fences),
    ("redaction", compaction::fuzzing::redaction),
    ("rows", store::fuzzing::rows),
    ("sessions", ingest::fuzzing::sessions),
    ("settings", config::fuzzing::settings),
];
