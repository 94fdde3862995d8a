//! A message from Pi's tree to disk.

use serde_json::{Value, json};

use super::support::{Session, TestStore};

fn texts(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["content"].as_str().or(message["content"][0]["text"].as_str()).unwrap_or("?"))
        .collect()
}

#[tokio::test]
async fn two_equal_prompts_and_two_equal_parallel_results_are_all_kept() {
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "ls", "content": [{"type": "text", "text": "a"}]});
    let session = Session::new().user("go on").user("go on").message(result.clone()).message(result);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let messages = store.visible(conversation, session.leaf()).await;
    assert_eq!(texts(&messages), ["go on", "go on", "a", "a"]);
}

#[tokio::test]
async fn handing_everything_over_twice_changes_nothing() {
    let session = Session::new().chat(5, 20).entry("label", json!({"targetId": "e1", "label": "x"}));
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    store.ingest("one", &session).await;
    let totals = store.store.read(move |view| view.totals(conversation)).await.unwrap();
    assert_eq!((totals.messages, totals.entries), (10, 11));
}

#[tokio::test]
async fn a_fork_shares_the_rows_of_its_parent_and_a_branch_the_prefix() {
    let session = Session::new().chat(4, 20);
    let fork = session.clone().at("e4").user("another way");
    let store = TestStore::new();
    store.ingest("one", &session).await;
    let conversation = store.ingest("two", &fork).await;
    let (project, totals) = store
        .store
        .read(move |view| Ok((view.project_messages()?, view.totals(conversation)?)))
        .await
        .unwrap();
    assert_eq!(project, 9);
    assert_eq!(totals.messages, 9);
    assert_eq!(store.visible(conversation, fork.leaf()).await.len(), 5);
}

#[tokio::test]
async fn edits_labels_and_private_commands_are_seen_as_pi_sees_them() {
    let session = Session::new()
        .user("keep")
        .user("hide me")
        .assistant("rewrite me")
        .message(json!({"role": "bashExecution", "command": "env", "output": "SECRET", "excludeFromContext": true}))
        .entry("model_change", json!({"provider": "p", "modelId": "m"}))
        .entry("custom_message", json!({"customType": "note", "content": "noted", "display": true}))
        .entry("context_edit", json!({"targetId": "e2", "replacement": null}))
        .entry("context_edit", json!({"targetId": "e3", "replacement": {"content": "rewritten"}}));
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let messages = store.visible(conversation, session.leaf()).await;
    assert_eq!(texts(&messages), ["keep", "rewritten", "noted"]);
    let before = store.visible(conversation, "e6").await;
    assert_eq!(texts(&before), ["keep", "hide me", "rewrite me", "noted"]);
}
