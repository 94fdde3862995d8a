//! Messages from Pi's session tree to disk.

use serde_json::{Value, json};

use super::support::{Session, TestStore};
use lcm_ingest::{Handover, Persistor, PiSession};
use lcm_model::error::Error;
use lcm_model::ids::{ConversationId, MessageId};
use lcm_model::log::Log;
use lcm_model::parse_batch;
use lcm_store::View;

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
async fn a_second_hand_over_changes_nothing() {
    let session = Session::new().chat(5, 20).entry("label", json!({"targetId": "e1", "label": "x"}));
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    store.ingest("one", &session).await;
    let read = move |view: &View<'_>| {
        Ok((view.summaries().totals(conversation)?.messages, view.messages().entry_ids(conversation)?.len()))
    };
    assert_eq!(store.store.read(read).await.unwrap(), (10, 11));
}

#[tokio::test]
async fn forks_and_branches_share_rows_with_their_parents() {
    let session = Session::new().chat(4, 20);
    let fork = session.clone().at("e4").user("another way");
    let store = TestStore::new();
    store.ingest("one", &session).await;
    let conversation = store.ingest("two", &fork).await;
    let (project, totals) = store
        .store
        .read(move |view| Ok((view.messages().project_messages()?, view.summaries().totals(conversation)?)))
        .await
        .unwrap();
    assert_eq!(project, 9);
    assert_eq!(totals.messages, 9);
    assert_eq!(store.visible(conversation, fork.leaf()).await.len(), 5);
}

#[tokio::test]
async fn a_message_that_two_branches_repeat_counts_once() {
    let said = |time: i64| json!({"role": "user", "content": "again", "timestamp": time});
    let hidden = json!({"role": "bashExecution", "command": "env", "output": "", "excludeFromContext": true});
    let session = Session::new().message(said(7)).message(said(9)).at("e1").message(said(9)).message(hidden);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let read = move |view: &View<'_>| {
        let facts = view.messages().session_facts(conversation)?;
        assert!(
            view.messages().is_counted_right(Some(conversation))?
                && view.messages().is_counted_right(None)?
        );
        Ok((facts, view.messages().said_in(conversation)?, view.messages().project_messages()?))
    };
    let (facts, said, project) = store.store.read(read).await.unwrap();
    assert_eq!((facts.messages, facts.from_time, facts.to_time), (3, 7, 9));
    assert_eq!((facts.first_request, said, project), (Some(MessageId(1)), 3, 3));
}

#[tokio::test]
async fn what_one_write_hands_over_in_pieces_is_counted_once() {
    let said = |text: &str, time: i64| json!({"role": "user", "content": text, "timestamp": time});
    let hidden = json!({"role": "bashExecution", "command": "env", "output": "", "excludeFromContext": true});
    let edit = json!({"targetId": "e2", "replacement": {"content": "edited"}});
    let one = Session::new()
        .message(json!({"role": "system", "content": "prompt"}))
        .message(said("first", 8))
        .message(said("again", 9))
        .at("e2")
        .message(said("again", 9))
        .entry("context_edit", edit)
        .at("e2")
        .message(said("again", 9))
        .message(hidden)
        .at("e2")
        .message(said("earlier", 7));
    let mut repeated = one.entries[2].clone();
    repeated["message"] = said("of the same id", 10);
    let pieces = [&one.entries[..4], &one.entries[3..7], &[repeated], &one.entries[5..], &one.entries];
    let pieces = pieces.map(|piece| Value::from(piece.to_vec()).to_string());
    let fork = one.clone().at("e3").message(said("other", 11)).json();
    let store = TestStore::new();
    let work = store.store.write(move |batch| {
        let sessions = ["one", "two"].map(|id| batch.messages().conversation_row(id, None, None, 0));
        let [one, two] = sessions.map(Result::unwrap);
        let fold = |json: &str, session| {
            let handover = Handover { entries: parse_batch(json)?, ..Default::default() };
            let new = handover.prepare().store(batch, session)?;
            for counted in [None, Some(one), Some(two)] {
                assert!(batch.messages().is_counted_right(counted)?, "{counted:?}: {json}");
            }
            Ok(new)
        };
        let new = pieces.iter().map(|piece| fold(piece, one)).collect::<Result<Vec<_>, Error>>()?;
        let new = (new, fold(&fork, two)?, fold(&fork, two)?);
        let [one, two] = [one, two].map(|session| batch.messages().counts(session).unwrap());
        Ok((new, one, two, batch.messages().project_messages()?))
    });
    let (new, one, two, project) = work.await.unwrap();
    assert_eq!(new, (vec![2, 1, 1, 1, 0], 1, 0));
    assert_eq!((one.messages, one.times), (5, Some((7, 10))));
    assert_eq!((two.messages, two.times), (5, Some((7, 11))));
    assert_eq!((one.first_request, project), (Some(MessageId(2)), 6));
}

#[tokio::test]
async fn edits_labels_and_private_commands_have_the_effect_they_have_in_pi() {
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

#[tokio::test]
async fn after_a_failed_write_nothing_is_stored_above_a_gap() {
    let session = Session::new().chat(10, 5);
    let slice = |range: std::ops::Range<usize>| Value::from(session.entries[range].to_vec()).to_string();
    let store = TestStore::new();
    let persistor = open(&store).await;
    let set_version = |version: i64| set_version(&store, version);

    // A newer version takes over the store, and leaves again.
    let ours = set_version(99);
    persistor.hand_over(&slice(0..8), vec![]).unwrap();
    persistor.hand_over(&slice(8..14), vec![]).unwrap();
    store.store.flush().await.unwrap();
    assert!(persistor.is_behind() && !persistor.accepts() && !persistor.knows("e1"));
    let notice = persistor.take_notice().unwrap();
    assert!(notice.contains("another version") && persistor.take_notice().is_none(), "{notice}");
    set_version(ours);

    persistor.hand_over(&slice(14..20), vec![]).unwrap();
    store.store.flush().await.unwrap();
    assert!(!persistor.knows("e15") && persistor.take_notice().is_none());

    persistor.hand_over(&slice(0..20), vec![]).unwrap();
    store.store.flush().await.unwrap();
    assert!(!persistor.is_behind() && persistor.accepts() && persistor.known() == 20);
    assert_eq!(store.visible(persistor.conversation(), session.leaf()).await.len(), 20);
}

/// Sets the store's version and returns the previous one.
fn set_version(store: &TestStore, version: i64) -> i64 {
    let Some(path) = store.store.place() else { panic!("no file") };
    let other = rusqlite::Connection::open(path).unwrap();
    let old: i64 = other.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    other.pragma_update(None, "user_version", version).unwrap();
    old
}

#[tokio::test]
async fn entries_take_the_fast_path_until_something_is_lost() {
    let session = Session::new().chat(10, 5);
    let slice = |range: std::ops::Range<usize>| Value::from(session.entries[range].to_vec()).to_string();
    let store = TestStore::new();
    let persistor = open(&store).await;
    let append = |at: usize| persistor.append(format!("e{}", at + 1), session.entries[at].to_string());

    // The session has not begun.
    assert!(!append(0) && !persistor.knows("e1"));
    persistor.hand_over(&slice(0..2), vec![]).unwrap();
    // Its parent is queued; a second append is ignored.
    assert!(append(2) && append(2) && append(3));
    store.store.flush().await.unwrap();
    assert_eq!(store.visible(persistor.conversation(), "e4").await.len(), 4);

    // Entries lost on their way are unknown again, and their children wait.
    let ours = set_version(&store, 99);
    assert!(append(4));
    // It is queued too, unless its parent is lost by now.
    append(5);
    store.store.flush().await.unwrap();
    set_version(&store, ours);
    assert!(!persistor.knows("e5") && !persistor.knows("e6") && !append(6));
    let (release, held) = std::sync::mpsc::channel::<()>();
    // Nothing is ever sent: it waits until the other end is dropped.
    store.store.post(move |_| Ok(held.recv().is_ok()), drop).unwrap();
    persistor.hand_over(&slice(4..6), vec![]).unwrap();
    assert!(!append(6));
    drop(release);
    store.store.flush().await.unwrap();
    assert!(append(6));

    // A failure for another reason leaves no parent either.
    persistor.hand_over(&slice(8..9), vec![]).unwrap();
    store.store.flush().await.unwrap();
    assert!(persistor.accepts() && !append(9) && !persistor.knows("e10"));
    assert_eq!(store.visible(persistor.conversation(), "e7").await.len(), 7);
    assert_eq!(counted(&persistor, &store).await, 7);
}

async fn counted(persistor: &Persistor, store: &TestStore) -> usize {
    let conversation = persistor.conversation();
    store.store.read(move |view| view.messages().said_in(conversation)).await.unwrap()
}

async fn open(store: &TestStore) -> Persistor {
    let session = PiSession { id: "one".into(), ..PiSession::default() };
    Persistor::open(&store.store, session, Log::default()).await.unwrap()
}

#[tokio::test]
async fn a_session_is_stored_with_its_first_message_and_the_entries_before_it() {
    let session = Session::new()
        .entry("model_change", json!({"modelId": "m"}))
        .entry("thinking_level_change", json!({}))
        .user("hello")
        .entry("label", json!({}));
    let slice = |range: std::ops::Range<usize>| Value::from(session.entries[range].to_vec()).to_string();
    let store = TestStore::new();
    let persistor = open(&store).await;
    let stored = || store.store.read(|view| view.messages().conversation("one"));

    persistor.hand_over(&slice(0..1), vec![]).unwrap();
    persistor.hand_over(&slice(1..2), vec![]).unwrap();
    store.store.flush().await.unwrap();
    assert_eq!((stored().await.unwrap(), persistor.conversation()), (None, ConversationId::NONE));
    assert!(persistor.knows("e2"));

    persistor.hand_over(&slice(2..3), vec![]).unwrap();
    persistor.hand_over(&slice(3..4), vec![]).unwrap();
    store.store.flush().await.unwrap();
    let conversation = persistor.conversation();
    let ids = store.store.read(move |view| view.messages().entry_ids(conversation)).await.unwrap();
    assert_eq!(ids, ["e1", "e2", "e3", "e4"]);
    assert_eq!(stored().await.unwrap(), Some(conversation));
    let again = open(&store).await;
    assert_eq!((again.conversation(), again.known()), (conversation, 0));
    assert_eq!(again.missing(named(&["e1", "e2", "e3", "e4"])).await.unwrap(), [0; 0]);
    assert_eq!(again.known(), 4);
}

fn named(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

#[tokio::test]
async fn missing_entries_are_found_by_id_not_by_count() {
    let session = Session::new().chat(3, 5);
    let json = |range: std::ops::Range<usize>| Value::from(session.entries[range].to_vec()).to_string();
    let store = TestStore::new();
    let persistor = open(&store).await;
    assert_eq!(persistor.missing(named(&["e1", "e2"])).await.unwrap(), [0, 1]);
    persistor.hand_over(&json(0..4), vec![]).unwrap();
    assert_eq!(persistor.missing(named(&["e4", "e5"])).await.unwrap(), [1]);
    store.store.flush().await.unwrap();

    let again = open(&store).await;
    assert!(!again.knows("e1"));
    assert_eq!(again.missing(named(&["e1", "other"])).await.unwrap(), [1]);
    assert_eq!(again.missing(named(&["e6", "e3", "e4"])).await.unwrap(), [0]);
    // e2 is stored, but no longer an entry of this session.
    assert_eq!(again.known(), 3);
    assert!(again.knows("e4") && !again.knows("e6"));
}

#[tokio::test]
async fn messages_are_counted_once_and_then_tracked() {
    let session = Session::new()
        .chat(3, 5)
        .message(json!({"role": "system", "content": "prompt"}))
        .entry("label", json!({}))
        .message(json!({"role": "bashExecution", "command": "ls", "output": "", "excludeFromContext": true}));
    let slice = |range: std::ops::Range<usize>| Value::from(session.entries[range].to_vec()).to_string();
    let store = TestStore::new();
    let persistor = open(&store).await;
    assert_eq!(counted(&persistor, &store).await, 0);
    for (range, said) in [(0..2, 2), (2..6, 6), (6..8, 6), (8..9, 7)] {
        persistor.hand_over(&slice(range), vec![]).unwrap();
        store.store.flush().await.unwrap();
        assert_eq!(counted(&persistor, &store).await, said);
    }
    assert_eq!(counted(&open(&store).await, &store).await, 7);
}

#[tokio::test]
async fn an_entry_whose_parent_the_session_lacks_is_a_root() {
    let entry = json!([{"type": "message", "id": "b", "parentId": "gone", "message": {"role": "user", "content": "hi"}}]);
    let store = TestStore::new();
    let persistor = open(&store).await;
    persistor.hand_over(&entry.to_string(), vec!["b".into()]).unwrap();
    store.store.flush().await.unwrap();
    assert_eq!(texts(&store.visible(persistor.conversation(), "b").await), ["hi"]);
}

#[tokio::test]
async fn another_entry_with_a_stored_id_is_kept_too() {
    let session = Session::new().chat(2, 5);
    let store = TestStore::new();
    let persistor = open(&store).await;
    let all = Value::from(session.entries.clone()).to_string();
    let mut second = session.entries[3].clone();
    second["message"]["content"] = json!("another");
    let second = json!([second]).to_string();
    for batch in [&all, &second, &second] {
        persistor.hand_over(batch, vec![]).unwrap();
        store.store.flush().await.unwrap();
    }
    let found = store.store.read(|view| {
        Ok((view.messages().project_messages()?, view.messages().entry_ids(ConversationId(1))?.len()))
    });
    assert_eq!(found.await.unwrap(), (5, 5));
}
