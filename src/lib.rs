//! The engine of pi-lossless-context: keeps every message of a coding agent's sessions, compacts the old ones
//! into a DAG of summaries, and brings any of them back on request.
//!
//! This package is what Pi loads: sessions, tools, commands, the CLI, MCP, and the binding to JavaScript. What lies
//! below is in `crates/`, each named after a thing. The words are in `CONTRIBUTING.md`; the map, and three walks through
//! it, in `docs/architecture.md`.

#![warn(missing_docs)]

mod cli;
mod commands;
mod doctor;
mod engine;
mod maintenance;
mod mcp;
mod tools;

pub mod binding;

// The engine itself, without JavaScript: see `examples/session.rs`.
pub use engine::{Engine, Options, load_settings};
pub use tools::Block;

// What `bench/bare_loop.rs` needs.
pub use lcm_model::{Content, Indexed, Message, parse_batch, passages};

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

#[cfg(test)]
mod tests;
