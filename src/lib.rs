//! The engine of pi-lossless-context: keeps every message of a coding agent's sessions, compacts the old ones
//! into a DAG of summaries, and brings any of them back on request.
//!
//! # Words
//!
//! A *session entry* is a node of Pi's session tree; a *branch* is the path from the root to a leaf. A
//! *visible message* is one that the model sees on its branch, after Pi's context edits. The *leaf pass*
//! makes *leaf summaries* (depth 0) of messages; the *condensed pass* makes *condensed summaries* of
//! summaries, each deeper than its sources. A summary's *span* is the run of visible messages it covers. The
//! *frontier* is the ordered cover of a branch by its topmost valid summaries and uncovered messages. The
//! *kept tail* is what Pi keeps raw after a compaction; the *block*, written by the *assembler*, is the text
//! that replaces the compacted messages. *Drill-down* goes from a summary to its sources. A *degraded*
//! summary was made without a model. A *turn* is a user's message up to the next one. A *stub* is what the
//! model sees in place of a *pruned* result. A *fold* is a compaction that the extension begins by itself. A
//! message's *lineage* is the chain hash of itself and all messages before it: its identity.
//!
//! # Floors
//!
//! A module imports only from lower floors. Modules of one floor never import each other, except on floor 0.
//! `src/tests/tidy.rs` enforces this.
//!
//! | floor | modules |
//! |---|---|
//! | 9 | [`binding`]: the only home of napi; `fuzzing`: the fuzz targets, in tests only |
//! | 8 | [`engine`]: one open session, plain data in and out; [`cli`]: `pi-lcm`, without an open session |
//! | 7 | [`commands`]: `/lcm`, as text; [`mcp`]: the tools for other agents |
//! | 6 | [`tools`]: the model's tools; [`upkeep`]: purge, export, backup |
//! | 5 | [`ingest`], [`compaction`], [`recall`]: the three walks below; [`pruning`]: stubs; [`doctor`]: checks and repairs |
//! | 4 | `branch`: what a branch shows, and the summaries that cover it; a session's cache of it |
//! | 3 | [`store`]: the only home of SQL; [`llm`]: calling a model |
//! | 2 | [`facts`]: facts extracted from messages without a model |
//! | 1 | [`model`]: reading Pi's JSON; [`dag`]: validity and frontier; [`config`]: the settings; [`policy`]: what leaves the context, and when |
//! | 0 | [`error`], [`files`], [`frames`], [`ids`], [`log`], [`tokens`], [`text`] |
//!
//! # Three walks
//!
//! *From a message to disk:* [`engine::Engine::append`] → [`ingest::Persistor::append`] (queue; for more than
//! one new entry, `hand_over`: parse, sift, queue) → [`ingest::PreparedHandover::fold`] on the writer's
//! thread → `store::MessageWriter::add_message` and `add_entry`.
//!
//! *From a compaction to the block:* [`engine::Engine::compact`] → [`compaction::run`] (read the branch,
//! plan, leaf pass, condensed pass, assemble) → [`llm::Model::ask`] → `store::SummaryWriter::add_summary`.
//!
//! *From a search to text:* [`engine::Engine::call_tool`] → [`tools::call`] (read the arguments) → [`recall`]
//! (typed hits) → [`store::View`] → [`tools`] (write the answer).

pub mod error;
pub mod files;
pub mod frames;
pub mod ids;
pub mod log;
pub mod text;
pub mod tokens;

pub mod config;
pub mod dag;
pub mod facts;
pub mod model;
pub mod policy;

pub mod llm;
pub(crate) mod store;

pub(crate) mod branch;

pub mod compaction;
pub mod doctor;
pub mod ingest;
pub mod pruning;
pub mod recall;

pub mod tools;
pub mod upkeep;

pub mod commands;
pub mod mcp;

pub mod cli;
pub mod engine;

pub mod binding;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

#[cfg(test)]
mod tests;
