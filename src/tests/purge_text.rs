//! `/lcm purge --text` removes everything that contains a text, and a purge by id says what else does.

use serde_json::json;

use super::purge_command::{ask, refused};
use super::secrets::{SecretStore, everything};
use super::support::{ScriptedModel, Session};
use lcm_compaction::llm::Reply;

const KEY: &str = "hazel-4711-birch-9921-alder";

/// The session goes on with one message of each kind that holds the key.
fn telling(session: Session, key: &str) -> Session {
    let call = json!([
        {"type": "thinking", "thinking": format!("The key is {key}.")},
        {"type": "toolCall", "id": "c1", "name": "lcm_grep", "arguments": {"query": key}},
    ]);
    let named = json!([{"type": "toolCall", "id": "c2", "name": "bash", "arguments": {key: "as a name"}}]);
    session
        .user(&format!("Use {key} for it."))
        .message(json!({"role": "assistant", "content": call, "stopReason": "toolUse"}))
        .message(json!({"role": "toolResult", "toolCallId": "c1", "toolName": "lcm_grep", "content": [{"type": "text", "text": "nothing"}]}))
        .message(json!({"role": "assistant", "content": [{"type": "thinking", "thinking": format!("So {key} it is.")}, {"type": "text", "text": "ok"}]}))
        .message(json!({"role": "assistant", "content": named}))
        .message(json!({"role": "toolResult", "toolCallId": "c2", "toolName": "bash", "content": [], "details": {"env": {"KEY": key}}}))
        .message(json!({"role": "toolResult", "toolCallId": "c3", "toolName": "lcm_note", "isError": false, "content": [{"type": "text", "text": key}]}))
        .message(json!({"role": "system", "content": key}))
        .message(json!({"role": "bashExecution", "command": "env", "output": format!("KEY={key}"), "excludeFromContext": true}))
        .message(json!({"role": "user", "content": format!("Escaped: {}", json!(json!({"a": key}).to_string()))}))
        .entry("branch_summary", json!({"fromId": "e1", "summary": format!("The key {key} was used.")}))
        .entry("compaction", json!({"summary": "s", "firstKeptEntryId": "e1", "details": {"readFiles": [format!("/keys/{key}.pem")], "modifiedFiles": []}}))
        .entry("context_edit", json!({"targetId": "e2", "replacement": {"content": [{"type": "text", "text": format!("It was {key}.")}]}}))
        .user("Something else.")
}

#[tokio::test]
async fn a_text_is_purged_wherever_it_is() {
    for (key, part) in [
        (KEY, KEY),
        ("pass \"word\" \\ with é and 記号", "with é and 記号"),
        ("line one\nline two of it", "line two of it"),
    ] {
        let mut secrets = SecretStore::new().await;
        secrets.session = telling(secrets.session, key);
        secrets.ingest("one", &secrets.session).await;
        // A model may write it into a summary of something else.
        let told = key.to_owned();
        let model = ScriptedModel::new(move |_| {
            let text = format!("Work\nThe key is {told}.\n\nExpand for details about: all");
            Ok(Reply { text, model: Some("p/m".into()), usage: None })
        });
        let (secrets, ..) = secrets.compact(&model).await;
        let settings = secrets.dir.path().join("settings.json");
        std::fs::write(&settings, json!({"compactInstructions": key}).to_string()).unwrap();
        assert!(everything(&secrets.store).await.contains(part));

        // In any case, as a search finds it.
        let line = format!("purge --text \"{}\"", key.to_uppercase());
        let asked = ask(&secrets, &line).await;
        let places = &asked.answer["places"];
        for place in [
            "message text", "call arguments", "thinking", "message details", "note", "summary",
            "list of files", "edited version",
        ] {
            assert!(places[place].as_u64().is_some_and(|n| n > 0), "{key}: no {place} in {places}");
            assert!(asked.text.contains(&format!("{place} ")), "{}", asked.text);
        }
        assert!(asked.text.contains("settings.json"), "{}", asked.text);
        let confirm = asked.confirm.unwrap();
        assert!(confirm.message.contains("The text is in: "), "{}", confirm.message);
        assert!(everything(&secrets.store).await.contains(part), "nothing was done yet");

        let done = ask(&secrets, &confirm.line).await;
        assert_eq!(done.answer["complete"], true, "{}", done.text);
        assert_eq!(done.answer["still"]["also"], json!([]));
        let left = everything(&secrets.store).await;
        assert!(!left.contains(part) && left.contains("Something else."), "{key}");
        let again = refused(&secrets, &line).await;
        assert!(again.contains("nothing stored holds the text "), "{again}");
    }
}

#[tokio::test]
async fn a_text_is_purged_only_on_purpose() {
    let secrets = SecretStore::new().await;
    for (line, why) in [
        ("purge --text", "at least 4 characters"),
        ("purge --text 芒", "at least 4 characters, or 2 as in Chinese"),
        ("purge --text \"a\"", "at least 4 characters"),
        ("purge --text --yes", "at least 4 characters"),
        ("purge --text \"is nowhere here\" --yes", "nothing stored holds the text \"is nowhere here\""),
        ("purge --text Something else --yess", "/lcm purge has no option --yess: it shows what goes"),
        ("purge --text 'is nowhere here' --yes", "nothing stored holds the text \"is nowhere here\""),
        ("purge --text \"else --yess\" --yes", "nothing stored holds the text \"else --yess\""),
        (
            "purge --text \"Something else\" --dry-run",
            "/lcm purge has no option --dry-run: it shows what goes",
        ),
        (
            "purge --dry-run --text \"Something else\"",
            "/lcm purge has no option --dry-run: it shows what goes",
        ),
        (
            "purge --text \"Something else\" and more",
            "takes one text, and and more stands behind its last quotation mark: put all",
        ),
    ] {
        let error = refused(&secrets, line).await;
        assert!(error.contains(why), "{line}: {error}");
    }
}

#[tokio::test]
async fn what_messages_of_one_time_have_in_common_is_no_trace_of_a_purged_one() {
    let (time, record) = ("2026-11-20T09:30:00.000Z", "0198f3a4-0000-7000-8000-00000000abcd");
    let said = |text: &str| json!({"role": "user", "content": format!("{text} at {time}"), "record": {"of": record}});
    let mut secrets = SecretStore::new().await;
    let first = secrets.session.entries.len() + 1;
    secrets.session = secrets.session.message(said("The tea")).message(said("The coffee"));
    secrets.ingest("one", &secrets.session).await;
    let asked = ask(&secrets, &format!("purge e{first}")).await;
    assert!(asked.text.contains("1 message") && !asked.text.contains("long string"), "{}", asked.text);
}

#[tokio::test]
async fn after_a_purge_by_id_the_answer_names_what_holds_a_long_string_of_it() {
    let mut secrets = SecretStore::new().await;
    let first = secrets.session.entries.len() + 1;
    secrets.session = telling(secrets.session, KEY);
    secrets.ingest("one", &secrets.session).await;
    let asked = ask(&secrets, &format!("purge e{first}")).await;
    assert!(asked.text.contains("messages and summaries with a long string of it: m-"), "{}", asked.text);
    let done = ask(&secrets, &format!("purge e{first} --yes")).await;
    let also = done.answer["still"]["also"].as_array().unwrap().len();
    assert!(also >= 6, "{}", done.text);
    assert!(done.text.contains("messages and summaries with a long string of it: m-"), "{}", done.text);
    ask(&secrets, &format!("purge --text {KEY} --yes")).await;
    assert!(!everything(&secrets.store).await.contains(KEY));
}
