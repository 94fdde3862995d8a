//! Notes: whatever happens to a session, the block has the notes of its branch, word for word.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asking::{Asking, ask};
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use crate::tools::{self, Notepad};
use lcm_model::Notes;
use lcm_recall::Scope;
use lcm_store::Purge;

impl Session {
    /// A call of the model with this answer.
    fn noting(self, arguments: Value, answer: &str) -> Self {
        self.tool("lcm_note", arguments, answer)
    }

    fn noted(self, number: u32, text: &str) -> Self {
        self.noting(
            json!({"changes": [{"text": text}]}),
            &format!("Added {number}. 1 note, 9 of 2,000 tokens."),
        )
    }

    /// The entry that `/lcm notes` adds to the session.
    fn user_note(self, details: Value) -> Self {
        let fields = json!({"customType": "lcm_note", "content": "[…]", "display": false, "details": {"lcmNote": details}});
        self.entry("custom_message", fields)
    }
}

async fn notes_at(store: &TestStore, scope: &Scope) -> Vec<(u32, String, bool)> {
    let (conversation, leaf) = (scope.conversation, scope.leaf.clone().unwrap());
    let notes: Notes =
        store.store.read(move |view| view.messages().notes(conversation, &leaf)).await.unwrap();
    notes.list().iter().map(|note| (note.number, note.text.clone(), note.by_user)).collect()
}

fn model(number: u32, text: &str) -> (u32, String, bool) {
    (number, text.into(), false)
}

fn user(number: u32, text: &str) -> (u32, String, bool) {
    (number, text.into(), true)
}

/// The lines under the notes' heading.
fn section(block: &str) -> Option<Vec<&str>> {
    Some(block.split_once("\n### Notes\n")?.1.split("\n\n").next()?.lines().collect())
}

#[tokio::test]
async fn a_branch_has_only_its_own_notes() {
    let session = Session::new()
        .chat(1, 3)
        .noting(
            json!({"changes": [{"text": "the release is on Friday"}]}),
            "Added 1. 1 note, 15 of 2,000 tokens.",
        )
        .user_note(json!({"action": "add", "number": 2, "text": "never push to main"}))
        .noting(
            json!({"changes": [{"note": "1", "text": "the release is on Monday"}]}),
            "Changed 1. 2 notes, 25 of 2,000 tokens.",
        );
    let here = session.leaf().to_owned();
    let session = session
        .noting(json!({"changes": [{"note": 1}]}), "Removed 1. 1 note, 10 of 2,000 tokens.")
        .user_note(json!({"action": "replace", "number": 2, "text": "push"}))
        .at(&here)
        // Failed calls change nothing, nor do entries of other extensions.
        .message(json!({"role": "assistant", "content": [{"type": "toolCall", "id": "c9", "name": "lcm_note",
            "arguments": {"changes": [{"note": 2}]}}]}))
        .message(json!({"role": "toolResult", "toolCallId": "c9", "toolName": "lcm_note", "isError": true,
            "content": [{"type": "text", "text": "lcm_note: note 2 is the user's"}]}))
        .entry(
            "custom_message",
            json!({"customType": "theirs", "content": "x", "details": {"lcmNote": {"action": "clear"}}}),
        )
        .noting(
            json!({"changes": [{"text": "a third"}, {"text": "a forth"}, {"note": 4, "old": "forth", "text": "fourth"}]}),
            "Added 3, 4. Changed 4. 4 notes, 36 of 2,000 tokens.",
        );
    let asking = Asking::about(&session).await;
    let first = [model(1, "the release is on Monday"), user(2, "never push to main")];
    let more = [model(3, "a third"), model(4, "a fourth")];
    assert_eq!(notes_at(&asking.store, &asking.scope).await, [&first[..], &more].concat());
    assert_eq!(notes_at(&asking.store, &asking.from(&here)).await, first);
    assert_eq!(notes_at(&asking.store, &asking.from("e10")).await, [user(2, "push")]);
    assert_eq!(notes_at(&asking.store, &asking.from("e2")).await, []);

    // A fork has the same entries in its own session, and so has a rebuilt database.
    let fork = asking.store.ingest("fork", &session).await;
    let scope = Scope { conversation: fork, ..asking.scope.clone() };
    assert_eq!(notes_at(&asking.store, &scope).await, notes_at(&asking.store, &asking.scope).await);
    let again = Asking::about(&session).await;
    assert_eq!(notes_at(&again.store, &again.scope).await, notes_at(&asking.store, &asking.scope).await);
}

#[tokio::test]
async fn every_block_has_the_notes_with_keys_masked() {
    let key = format!("sk-proj-{}", "a1B2c3D4e5F6g7H8".repeat(2));
    let session = Session::new()
        .chat(8, 40)
        .noted(1, "the release is on </summary> Friday")
        .chat(8, 40)
        .user_note(json!({"action": "add", "number": 2, "text": format!("the key is {key} for now")}));
    let store = TestStore::new();
    let conversation = store.ingest("one", &session.clone().chat(4, 40)).await;
    let leaf = "e42";
    let block = async |notes: bool, redact: bool| {
        let compact = Compact::new(&store, conversation, leaf, "e36");
        let compact = compact.with(|settings, _| (settings.notes, settings.redact) = (notes, redact));
        compacted(compact.run(&ScriptedModel::helpful()).await).summary
    };
    let first = r#"- 1: "the release is on <\/summary> Friday""#;
    let whole = format!(r#"- 2 (the user's): "the key is {key} for now""#);
    assert_eq!(section(&block(true, false).await).unwrap(), [first, &whole]);
    let masked = block(true, true).await;
    let lines = section(&masked).unwrap();
    assert!(
        lines[0] == first && lines[1].contains("the key is [masked") && !masked.contains(&key),
        "{lines:?}"
    );
    assert_eq!(section(&block(false, true).await), None);
}

#[tokio::test]
async fn a_call_returns_the_number_and_the_next_continues_from_it() {
    let asking = Asking::about(
        &Session::new().chat(2, 3).user_note(json!({"action": "add", "number": 4, "text": "a rule"})),
    )
    .await;
    let (notepad, cancel) = (Notepad::default(), CancellationToken::new());
    let call = async |scope: &Scope, arguments: Value| {
        let arguments = arguments.to_string();
        match tools::call(&asking.store.store, scope, "lcm_note", &arguments, Some(&notepad), &cancel).await {
            Ok(blocks) => match &blocks[0] {
                tools::Block::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            },
            Err(error) => error.to_string(),
        }
    };
    let add = |text: &str| json!({"changes": [{"text": text}]});
    let scope = &asking.scope;
    assert_eq!(call(scope, add("one")).await, "Added 5. 2 notes, 12 of 2,000 tokens.");
    // Its result is not in the session yet.
    assert_eq!(call(scope, add("two")).await, "Added 6. 3 notes, 17 of 2,000 tokens.");
    let several = json!({"changes": [{"note": 5}, {"note": 6, "old": "w", "text": "o"}, {"text": "three"}, {"text": "four"}]});
    assert_eq!(call(scope, several).await, "Added 7, 8. Changed 6. Removed 5. 4 notes, 22 of 2,000 tokens.");
    // On another branch it does not exist.
    assert_eq!(call(&asking.from("e1"), add("else")).await, "Added 1. 1 note, 5 of 2,000 tokens.");
    for (arguments, why) in [
        (json!({"changes": [{"note": 4}]}), "lcm_note: note 4 is the user's: only /lcm notes changes it"),
        (
            json!({"changes": [{"text": "x"}, {"note": 9}]}),
            "lcm_note: change 2: there is no note 9, only 4, 5; none was made",
        ),
        (
            json!({"changes": []}),
            "lcm_note: changes is empty: give at least one note to add, change or remove",
        ),
        (json!({"changes": "add x"}), "lcm_note: changes must be a list, not \"add x\""),
        (json!({"action": "add", "text": "x"}), "lcm_note: changes is missing (action, text was given)"),
    ] {
        assert_eq!(call(scope, arguments).await, why);
    }
    let off = asking.refusal("lcm_note", add("one")).await;
    assert!(off.contains("notes are off"), "{off}");
}

#[tokio::test]
async fn a_purge_removes_notes_and_keeps_the_numbers_of_the_others() {
    let session = Session::new()
        .chat(2, 3)
        .noted(1, "the pass phrase is quokka7741")
        .noted(2, "the release is on Friday")
        .user_note(json!({"action": "add", "number": 3, "text": "mind the quokka7741"}))
        .chat(1, 3);
    let asking = Asking::about(&session).await;
    let purge = async |entry: &'static str| {
        let conversation = asking.scope.conversation;
        let message = asking
            .store
            .store
            .read(move |view| view.upkeep().purgeable_at(conversation, entry))
            .await
            .unwrap();
        asking
            .store
            .store
            .write(move |batch| batch.upkeep().purge(&Purge::Message(message.unwrap())))
            .await
            .unwrap();
    };
    // The question names the notes that would stay.
    let answer = ask(&asking.store.store, &asking.scope, "purge e5").await.unwrap();
    assert!(
        answer.text.contains("notes of this branch, which may mention it (see /lcm notes): 2, 3"),
        "{}",
        answer.text
    );
    let answer = ask(&asking.store.store, &asking.scope, "purge before 2999-01-01").await.unwrap().text;
    assert!(answer.contains(" This includes 3 changes of notes (see /lcm notes)."), "{answer}");
    // The text of the first is in its call.
    purge("e5").await;
    let rest = [model(2, "the release is on Friday"), user(3, "mind the quokka7741")];
    assert_eq!(notes_at(&asking.store, &asking.scope).await, rest);
    purge("e9").await;
    assert_eq!(notes_at(&asking.store, &asking.scope).await, rest[..1]);
    let found = asking.grep(json!({"query": "quokka7741", "session": "project"})).await;
    assert!(found.starts_with("Nothing found"), "{found}");
    // Without its result the call does not count.
    purge("e8").await;
    assert_eq!(notes_at(&asking.store, &asking.scope).await, []);
}

#[tokio::test]
async fn a_branch_has_the_notes_of_its_scripts() {
    let changes = |changes: Value| json!({"changes": changes});
    let session = Session::new()
        .chat(1, 3)
        .script(
            "…",
            &[
                ("lcm_note", changes(json!([{"text": "one"}, {"text": "two"}])), "ok"),
                ("lcm_note", changes(json!([{"note": 9}])), "error"),
                ("bash", json!({"command": "ls"}), "ok"),
                ("lcm_note", changes(json!([{"note": 1, "old": "one", "text": "uno"}])), "ok"),
            ],
            "done",
        )
        .noting(changes(json!([{"text": "three"}])), "Added 3. 3 notes, 9 of 2,000 tokens.")
        .script("…", &[("lcm_note", changes(json!([{"note": 2}])), "ok")], "done");
    let asking = Asking::about(&session).await;
    let before = notes_at(&asking.store, &asking.from("e6")).await;
    assert_eq!(before, [model(1, "uno"), model(2, "two"), model(3, "three")]);
    assert_eq!(notes_at(&asking.store, &asking.scope).await, [model(1, "uno"), model(3, "three")]);
}

#[tokio::test]
async fn the_user_can_list_and_change_the_notes() {
    let asking = Asking::about(&Session::new().chat(2, 3).noted(1, "the release is on Friday")).await;
    let listed = "1. the release is on Friday\n1 note, 10 of 2,000 tokens.";
    assert_eq!(asking.command("notes").await, listed);
    let json = asking.json("notes").await;
    assert_eq!(json["notes"], json!([{"number": 1, "text": "the release is on Friday", "byUser": false}]));
    assert_eq!((&json["tokens"], &json["mostTokens"]), (&json!(10), &json!(2_000)));

    let asked = async |line: &str| ask(&asking.store.store, &asking.scope, line).await;
    let added = asked("notes add  never  push --json to\nmain").await.unwrap();
    let entry = added.entry.unwrap();
    assert_eq!(entry.content, "[The user added note 2: \"never  push to main\"]");
    assert_eq!(
        entry.details,
        json!({"lcmNote": {"action": "add", "number": 2, "text": "never  push to main"}})
    );
    let set = asked("notes set 1 the release is on Monday").await.unwrap();
    assert_eq!(
        set.text,
        "Note 1 was changed.\n1 (yours). the release is on Monday\n1 note, 10 of 2,000 tokens."
    );
    assert_eq!(set.entry.unwrap().details["lcmNote"]["action"], "replace");
    assert_eq!(asked("notes remove 1").await.unwrap().entry.unwrap().content, "[The user removed note 1]");
    let clear = asked("notes clear").await.unwrap();
    assert_eq!((clear.entry, clear.confirm.unwrap().line.as_str()), (None, "notes clear --yes"));
    assert_eq!(
        asked("notes clear --yes").await.unwrap().entry.unwrap().content,
        "[The user removed all notes]"
    );
    for (line, why) in [
        ("notes remove", "/lcm notes remove takes the number of a note, not nothing; see /lcm help notes"),
        ("notes set two x", "/lcm notes set takes the number of a note, not two; see /lcm help notes"),
        ("notes remove 1 2", "/lcm notes remove takes one number; see /lcm help notes"),
        ("notes burn", "/lcm notes takes add, set, remove or clear, not burn; see /lcm help notes"),
        ("notes clear now", "/lcm notes has no now: it takes --yes; see /lcm help notes"),
        ("notes remove 3", "there is no note 3, only 1"),
        ("notes add", "the text is empty: say what the note is to say"),
    ] {
        assert_eq!(asked(line).await.unwrap_err().to_string(), why, "{line}");
    }
}
