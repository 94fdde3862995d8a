//! Stubs: their text, what stays, and that a compaction covers pruned messages as if they had not been
//! pruned.

use serde_json::{Value, json};

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use crate::config::Settings;
use crate::dag::{Visible, visible};
use crate::pruning::{Draft, stubs};
use crate::tokens;

/// The stubs for the messages at `places` in a session.
async fn drafts(session: &Session, places: &[usize]) -> Vec<Draft> {
    let store = TestStore::new();
    let conversation = store.ingest("s1", session).await;
    let (leaf, places) = (session.leaf().to_owned(), places.to_vec());
    let read = store.store.read(move |view| {
        let context = visible(&view.messages().branch(conversation, &leaf)?);
        stubs(view, &context, &places)
    });
    read.await.unwrap()
}

#[tokio::test]
async fn a_stub_describes_the_message_and_how_to_get_it_back() {
    let error =
        "error[E0308]: mismatched types\n\n  --> src/lib.rs:1\n  note\n".to_owned() + &"more\n".repeat(1_000);
    let session = Session::new().user("Fix the build").tool("bash", json!({"command": "cargo test"}), &error);
    let picture = json!([{"type": "text", "text": "a".repeat(9_000)}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    let call = json!([{"type": "toolCall", "id": "pic", "name": "read", "arguments": {"path": "a.png"}}]);
    let session = session.message(json!({"role": "assistant", "content": call})).message(
        json!({"role": "toolResult", "toolCallId": "pic", "toolName": "read", "content": picture, "isError": true}),
    );
    let drafts = drafts(&session.assistant("Built."), &[2, 4]).await;
    let handle = regex::Regex::new("m-[0-9a-f]{10}").unwrap();
    let texts: Vec<_> = drafts.iter().map(|draft| handle.replace_all(&draft.text, "m-ID")).collect();
    assert_eq!(
        texts,
        [
            "[bash {\"command\":\"cargo test\"} gave 1004 lines, 5 KB; left out to save context. All of it: \
             lcm_expand {\"summary_id\":\"m-ID\"}]\nerror[E0308]: mismatched types\n…\nmore"
                .to_owned(),
            format!(
                "[read {{\"path\":\"a.png\"}} failed with 1 line, 9 KB, 1 image; left out to save context. All of it: \
                 lcm_expand {{\"summary_id\":\"m-ID\"}}]\n{}…",
                "a".repeat(120)
            )
        ]
    );
    assert_eq!(drafts[0].to_json()["targetId"], "e3");
}

#[tokio::test]
async fn notes_others_edits_and_short_messages_stay() {
    let bulky = "line\n".repeat(400);
    let session = Session::new()
        .user("Keep this")
        .tool("lcm_note", json!({"text": "never push"}), &bulky)
        .tool("bash", json!({"command": "ls"}), &bulky)
        .tool("bash", json!({"command": "true"}), "nothing")
        .tool("bash", json!({"command": "ls"}), &bulky)
        .entry("context_edit", json!({"targetId": "e9", "replacement": {"content": bulky}}));
    let drafts = drafts(&session, &[2, 4, 6, 8]).await;
    let targets: Vec<&str> = drafts.iter().map(|draft| draft.target.as_str()).collect();
    assert_eq!(targets, ["e5"]);
}

fn stub(target: &str, hides: usize) -> Value {
    let text = json!([{"type": "text", "text": "what stood here is left out"}]);
    json!({"targetId": target, "replacement": {"content": text, "lcm": {"hides": hides}}})
}

fn hidden(target: &str) -> Value {
    json!({"targetId": target, "replacement": null})
}

/// The ids of the visible messages, with the tokens of what was pruned.
async fn seen(store: &TestStore, session: &Session) -> Vec<(String, Option<usize>)> {
    let conversation = store.ingest("s1", session).await;
    let leaf = session.leaf().to_owned();
    let read = store.store.read(move |view| Ok(visible(&view.messages().branch(conversation, &leaf)?)));
    read.await.unwrap().into_iter().map(|Visible { entry_id, pruned, .. }| (entry_id, pruned)).collect()
}

#[tokio::test]
async fn our_stubs_are_recognized_from_the_session_and_hide_nothing_from_the_store() {
    let store = TestStore::new();
    let session = Session::new().chat(3, 20);
    // The first turn is pruned as a whole; the edit below it is another extension's, though it looks the
    // same.
    let session = session
        .entry("context_edit", stub("e1", 1))
        .entry("context_edit", hidden("e2"))
        .entry("context_edit", hidden("e4"))
        .entry("custom", json!({"customType": "lcm_stub", "data": stub("e5", 0)}))
        .entry("custom", json!({"customType": "lcm_stub", "data": hidden("e6")}))
        .entry("context_edit", stub("e3", 0))
        .entry("context_edit", json!({"targetId": "e3", "replacement": {"content": "theirs"}}));
    let tokens = Some(tokens::estimate("what stood here is left out"));
    let expected = [("e1", tokens), ("e2", Some(0)), ("e3", None), ("e5", tokens), ("e6", Some(0))];
    let expected: Vec<_> = expected.into_iter().map(|(id, pruned)| (id.to_owned(), pruned)).collect();
    assert_eq!(seen(&store, &session).await, expected);
    let theirs = store.visible(crate::ids::ConversationId(1), session.leaf()).await;
    assert_eq!(theirs[2]["content"], "theirs");
}

/// The block, the prompts for it, and the first entry that stays.
async fn block(session: &Session, leaf: &str, kept: &str) -> (String, Vec<String>, String) {
    let store = TestStore::new();
    let conversation = store.ingest("s1", session).await;
    let model = ScriptedModel::helpful();
    let compact = Compact::new(&store, conversation, leaf, kept)
        .with(|settings: &mut Settings, _| settings.leaf_pass_concurrency = 1);
    let compaction = compacted(compact.run(&model).await);
    // The fences have random names, and headers their digits.
    let fence = regex::Regex::new(r"(history-|before-|\[)[0-9a-f]{8}\b").unwrap();
    let prompts = model.prompts().iter().map(|prompt| fence.replace_all(prompt, "$1").into_owned()).collect();
    (compaction.summary, prompts, compaction.first_kept_entry_id.unwrap())
}

#[tokio::test]
async fn a_compaction_covers_pruned_messages_as_if_they_had_not_been() {
    let whole = (0..12).fold(Session::new(), |session, turn| {
        let session = session.user(&format!("question {turn}"));
        session
            .tool("bash", json!({"command": format!("run {turn}")}), &format!("output {turn}\n").repeat(80))
            .assistant(&format!("answer {turn}"))
    });
    let leaf = whole.leaf().to_owned();
    let pruned = whole
        .clone()
        .entry("context_edit", stub("e7", 0))
        .entry("context_edit", stub("e1", 3))
        .entry("context_edit", hidden("e4"))
        .entry("context_edit", hidden("e3"))
        .entry("context_edit", hidden("e2"))
        .entry("context_edit", stub("e33", 3))
        .entry("context_edit", hidden("e36"))
        .entry("context_edit", hidden("e35"))
        .entry("context_edit", hidden("e34"));
    let expected = block(&whole, &leaf, "e37").await;
    assert_eq!(block(&pruned, pruned.leaf(), "e37").await, expected);
    // Pi begins the tail with hidden messages; the turn's stub is before it, so they are compacted too.
    assert_eq!(block(&pruned, pruned.leaf(), "e34").await, expected);
    assert_eq!(expected.2, "e37");
}
