//! Ordinary text in many languages comes through as it is: byte for byte to the summarizer and in a tool's
//! answer, and only indented in the block.

use serde_json::json;

use super::asking::Asking;
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::llm::Reply;

const ORDINARY: &str = include_str!("fixtures/lines/ordinary.txt");

/// Enough to be compacted, with ordinary text in a message of the user and one of the assistant.
fn session() -> Session {
    Session::new().user(ORDINARY).assistant(ORDINARY).chat(12, 40)
}

#[tokio::test]
async fn a_summarizer_gets_it_byte_for_byte_and_the_block_indents_it() {
    let session = session();
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    // A summary says more than that.
    let own = "so it was said ".repeat(ORDINARY.split_whitespace().count());
    let reply = Reply { text: format!("Work\n{ORDINARY}\n{own}"), model: None, usage: None };
    let model = ScriptedModel::new(move |_| Ok(reply.clone()));
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compact = compact.with(|settings, _| {
        (settings.max_summary_tokens, settings.leaf_chunk_tokens) = (20_000, 20_000);
    });
    let compaction = compacted(compact.run(&model).await);
    let prompts = model.prompts();
    let shown: usize = prompts.iter().map(|prompt| prompt.matches(ORDINARY.trim_end()).count()).sum();
    assert_eq!(shown, 2, "{prompts:?}");
    let indented: Vec<String> = ORDINARY.lines().map(|line| format!("\n {line}")).collect();
    assert!(compaction.summary.contains(&indented.concat()), "{}", compaction.summary);
}

#[tokio::test]
async fn a_tool_shows_it_byte_for_byte() {
    let asking = Asking::about(&session()).await;
    let id = asking.message(1).await;
    let answer = asking.expand(json!({"summary_id": id, "max_tokens": 8000})).await;
    assert!(answer.contains(&format!(">\n{ORDINARY}")), "{answer}");
}
