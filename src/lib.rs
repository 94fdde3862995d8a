//! The engine of pi-lossless-context: every message of a coding agent's session kept for ever, the old ones compacted
//! into a DAG of summaries, any of them brought back on request.
//!
//! # Words
//!
//! A *session entry* is a node of Pi's session tree; a *branch* is the path from the root to a leaf. A *visible message*
//! is one that the model sees on its branch, after Pi's context edits. The *leaf pass* makes *leaf summaries* (depth 0)
//! of messages, the *condensed pass* makes *condensed summaries* of summaries, each one deeper than its sources. A
//! summary's *span* is the run of visible messages it stands for. The *frontier* is the ordered cover of a branch by
//! its topmost valid summaries and uncovered messages. The *kept tail* is what Pi keeps raw after a compaction, the
//! *block* the text the model gets in place of what was compacted; the *assembler* writes it. *Drill-down* is the way
//! from a summary to what it was made from. A *degraded* summary was made without a model. A *turn* is a
//! user's message up to the next one, a *stub* what the model is shown in place of a result that was *pruned*; a *fold* is a
//! compaction that the extension begins by itself. A message's
//! *lineage* is the chain hash of itself and all before it: its identity.
//!
//! # Floors
//!
//! A module imports from floors below its own only; siblings never meet, but for the ground floor, which is one room.
//! `src/tests/tidy.rs` keeps this true.
//!
//! | floor | modules |
//! |---|---|
//! | 8 | [`binding`]: the only home of napi; `fuzzing`: what is fuzzed, in tests only |
//! | 7 | [`engine`]: one open session; plain data in and out; [`cli`]: `pi-lcm`, where no session is open |
//! | 6 | [`commands`]: `/lcm`, in words; [`mcp`]: the tools for other agents |
//! | 5 | [`tools`]: what the model asks and is answered; [`upkeep`]: purge, export, backup |
//! | 4 | [`ingest`], [`compaction`], [`recall`]: the three walks; [`pruning`]: stubs; [`doctor`]: is all as it must be? |
//! | 3 | [`store`]: the only home of SQL; [`llm`]: asking a model |
//! | 2 | [`facts`]: what messages show without a model |
//! | 1 | [`model`]: Pi's JSON, read; [`dag`]: validity and frontier; [`config`]: the settings; [`policy`]: what leaves the context, and when |
//! | 0 | [`error`], [`files`], [`frames`], [`ids`], [`log`], [`tokens`], [`text`] |
//!
//! # Three walks
//!
//! *A message to disk:* [`engine::Engine::append`] → [`ingest::Persistor::append`] (queue; where more than one entry is new,
//! `hand_over`: parse, sift, queue) → [`ingest::PreparedHandover::fold`] on the writer's thread → `store::MessageWriter::add_message` and `add_entry`.
//!
//! *A compaction to the block:* [`engine::Engine::compact`] → [`compaction::run`] (read the branch, plan, leaf pass,
//! condensed pass, assemble) → [`llm::Model::ask`] → `store::SummaryWriter::add_summary`.
//!
//! *A search to text:* [`engine::Engine::call_tool`] → [`tools::call`] (read the arguments) → [`recall`] (typed hits) →
//! [`store::View`] → [`tools`] (write the answer).

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
