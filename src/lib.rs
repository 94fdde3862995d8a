//! The engine of pi-lossless-context: keeps every message of a coding agent's sessions, compacts the old ones
//! into a DAG of summaries, and brings any of them back on request.
//!
//! The words are in `CONTRIBUTING.md`; the floors of the modules, and three walks through them, in
//! `docs/architecture.md`. `src/tests/tidy.rs` enforces the floors.

mod error;
mod files;
mod frames;
mod ids;
mod log;
mod sync;
mod tasks;
mod text;
mod tokens;

mod config;
mod dag;
mod facts;
mod model;
mod policy;

mod llm;
mod store;

mod branch;

mod compaction;
mod doctor;
mod ingest;
mod recall;

mod tools;
mod upkeep;

mod commands;
mod mcp;

mod cli;
mod engine;

pub mod binding;

// What `bench/bare_loop.rs` needs.
pub use model::{Content, Message, parse_batch, parts, passages};

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

#[cfg(test)]
mod tests;
