//! A request that was too long: the compaction leaves raw what fits, at worst nothing, and the block covers
//! the rest.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::Compaction;
use lcm_model::tokens;
use lcm_testing::cases;

const WORDS: &str = "400 This model's maximum context length is 8192 tokens.";

/// A chat, and a request whose tool returned `lines` lines; Pi would keep everything from the call on.
async fn after(
    lines: usize,
    turns: usize,
    model: &std::sync::Arc<ScriptedModel>,
    failure: &str,
) -> (Session, Compaction) {
    let mut session = Session::new().chat(turns, 30).user("Read the whole log and tell me why it failed");
    session =
        session.tool("bash", json!({"command": "cat log"}), &"a line of the log, number 7\n".repeat(lines));
    let call = format!("e{}", session.entries.len() - 1);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), &call).with(|_, request| {
        request.reason = Some("overflow".into());
        request.failure = Some(failure.into());
        request.prompt_tokens = Some(1_500);
    });
    (session, compacted(compact.run(model).await))
}

#[tokio::test]
async fn a_tail_too_large_to_stay_is_compacted_and_the_block_has_the_request() {
    for model in [ScriptedModel::helpful(), ScriptedModel::failing()] {
        for turns in [0, 30] {
            let (session, compaction) = after(3_000, turns, &model, WORDS).await;
            assert_eq!(compaction.first_kept_entry_id, None);
            assert_eq!(compaction.details.covered, session.entries.len());
            let block = &compaction.summary;
            assert!(block.contains("none missing"), "{block}");
            assert!(block.contains("Read the whole log and tell me why it failed"), "{block}");
            assert!(tokens::estimate(block) <= 8_192 / 8, "{} tokens", tokens::estimate(block));
        }
    }
}

#[tokio::test]
async fn a_tail_that_fits_stays_as_in_pi() {
    let (session, compaction) = after(100, 30, &ScriptedModel::helpful(), WORDS).await;
    let call = format!("e{}", session.entries.len() - 1);
    assert_eq!(compaction.first_kept_entry_id, Some(call));
    let (_, unnamed) = after(3_000, 400, &ScriptedModel::helpful(), "413 request_too_large").await;
    assert!(unnamed.first_kept_entry_id.is_some(), "more than half of the request fits");
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn any_overflow_fits_afterwards_and_nothing_is_left_out(
        lines in 0_usize..3_000, turns in 0_usize..60, limit in 6_000_usize..40_000, answers in any::<bool>()
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let model = if answers { ScriptedModel::helpful() } else { ScriptedModel::failing() };
            let words = format!("maximum context length is {limit} tokens");
            let (session, compaction) = after(lines, turns, &model, &words).await;
            let kept = compaction.first_kept_entry_id.as_deref();
            let is_kept = |entry: &Value| Some(entry["id"].as_str().unwrap()) == kept;
            let place = session.entries.iter().position(is_kept).unwrap_or(session.entries.len());
            prop_assert_eq!(compaction.details.covered, place);
            prop_assert!(compaction.summary.contains("none missing"));
            let raw = &session.entries[place..];
            prop_assert!(raw.first().is_none_or(|entry| entry["message"]["role"] != "toolResult"));
            let raw: usize = raw.iter().map(|entry| tokens::estimate(&entry["message"]["content"].to_string())).sum();
            let sent = 1_500 + tokens::estimate(&compaction.summary) + raw;
            prop_assert!(sent <= limit * 9 / 10, "{} of {}", sent, limit);
            Ok(())
        })?;
    }
}
