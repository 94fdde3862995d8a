//! Tests by behaviour: through the store and the engine, on a real SQLite file, with a scripted model.

mod compaction;
mod ingest;
mod support;
