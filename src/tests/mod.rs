//! Tests by behavior: through the store and the engine, on a real SQLite file, with a scripted model.

#![expect(clippy::needless_pass_by_value, reason = "tests are easier to read when they pass values")]

mod adopting;
mod agents;
mod ahead;
mod asking;
mod block;
mod cli;
mod commands;
mod compaction;
mod coverage;
mod describe;
mod doctor;
mod doctor_fuzz;
mod early;
mod exact;
mod expand;
mod expand_around;
mod expand_inside;
mod export;
pub(crate) mod extent;
mod filters;
mod fold;
mod fuzzing;
mod grep;
mod hostile;
mod import;
mod ingest;
mod memory;
mod misuse;
mod narrowing;
mod notes;
mod opening;
mod outlines;
mod overflow;
mod portable;
mod private;
mod pruning;
mod purge;
mod purged_meanwhile;
mod soak;
mod standing;
mod support;
mod tidy;
mod tree;
mod viewer;
mod world;
