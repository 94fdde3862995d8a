//! Any message that `JSON.stringify` wrote is returned byte for byte, and parsed as far as possible.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{Session, TestStore};
use lcm_ingest::{Persistor, PiSession};
use lcm_model::Message;
use lcm_model::dag::Step;
use lcm_model::ids::Hash;
use lcm_model::log::Log;
use lcm_store::{StoredMessage, View};
use lcm_testing::{cases, share};

/// Hands over `batch` as Pi's thread does.
async fn hand_over(store: &TestStore, session: &str, batch: &str) -> Persistor {
    let session = PiSession { id: session.into(), ..PiSession::default() };
    let persistor = Persistor::open(&store.store, session, Log::default()).await.unwrap();
    persistor.hand_over(batch, vec![]).unwrap();
    store.store.flush().await.unwrap();
    assert_eq!(persistor.take_notice(), None);
    persistor
}

/// The messages from the root to `leaf` as stored, of any kind.
async fn stored(store: &TestStore, persistor: &Persistor, leaf: &str) -> Vec<StoredMessage> {
    let (conversation, leaf) = (persistor.conversation(), leaf.to_owned());
    let read = move |view: &View<'_>| {
        let mut messages = Vec::new();
        for entry in view.messages().branch(conversation, &leaf)? {
            if let Step::Message(message) = entry.step {
                messages.push(view.messages().message(message.id)?);
            }
        }
        Ok(messages)
    };
    store.store.read(read).await.unwrap()
}

/// A `message` entry for each of `messages`, each below the one before: `e1`, `e2`, …
fn chain(messages: &[String]) -> String {
    let mut batch = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (id, parent) = (at + 1, if at == 0 { "null".into() } else { format!("\"e{at}\"") });
        batch.push(format!(r#"{{"type":"message","id":"e{id}","parentId":{parent},"message":{message}}}"#));
    }
    format!("[{}]", batch.join(","))
}

/// Stores `messages` and reads them back.
async fn round_trip(messages: &[String]) -> Vec<StoredMessage> {
    let store = TestStore::new();
    let persistor = hand_over(&store, "one", &chain(messages)).await;
    stored(&store, &persistor, &format!("e{}", messages.len())).await
}

fn assert_exact(given: &[String], stored: &[StoredMessage]) {
    assert_eq!(stored.len(), given.len());
    let mut lineage = Hash::ROOT;
    for (height, (given, stored)) in (0..).zip(given.iter().zip(stored)) {
        assert!(stored.json == *given, "{:.300} became {:.300}", given, stored.json);
        lineage = lineage.child(given);
        assert_eq!((stored.lineage, stored.height), (lineage, height));
    }
}

/// The words of the full-text index.
pub async fn vocabulary(store: &TestStore) -> Vec<String> {
    let Some(path) = store.store.place() else { panic!("no file") };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, messages_fts, 'row')")
        .unwrap();
    let mut query = connection.prepare("SELECT term FROM temp.words").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

fn deep(levels: usize, heart: &str) -> String {
    format!("{}{heart}{}", r#"[{"a":"#.repeat(levels / 2), "}]".repeat(levels / 2))
}

#[tokio::test]
async fn any_message_is_returned_byte_for_byte() {
    let mut messages: Vec<String> = [
        r#"{"role":"user","content":"\ud800 lone \udfff, a pair 👋🏽 and one backwards \ude00\ud83d"}"#,
        r#"{"role":"user","\ud800":1,"\udc00\ud800":{"\ud83d":"\\ud800"},"content":"keys"}"#,
        "{\"role\":\"user\",\"content\":\"\\u0000 \\u001f \u{7f} \u{85} \u{2028}\u{2029} \u{feff} \u{ffff} \u{10ffff}\"}",
        r#"{"role":"user","content":[1e400,-0,0.1e-7,123456789012345678901234567890,1.50,5e-324,-1E+2]}"#,
        r#"{"role":"user","timestamp":1e400,"content":"when"}"#,
        r#"{"role":"user","timestamp":-123456789012345678901234567890,"content":"when"}"#,
        r#"{"role":"oracle","content":[{"type":"smell","of":"roses"}],"weight":0.1}"#,
        r#"{"role":7,"content":"no role"}"#,
        r#"{"role":null,"type":[],"content":{"type":"text","text":"an object"}}"#,
        r#"{"10":1,"2":2,"b":3,"01":4,"-1":5,"role":"user","__proto__":{},"content":"ordered"}"#,
        r#"{"role":"user","content":"twice","content":"given","\u0063ontent":"thrice"}"#,
        r#"{ "role" : "user" ,  "content" : "spaced" }"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"RXJjQ0=="}]}"#,
        r#"{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}"#,
        r#"{"role":"toolResult","toolName":{},"toolCallId":7,"isError":"yes","content":[null,true,[],{}]}"#,
        r#"{"role":"bashExecution","command":5,"output":["x"],"excludeFromContext":"yes"}"#,
        r#"{"role":"user","content":{"$serde_json::private::Number":"x"},"$serde_json::private::RawValue":"}"}"#,
        r#"{"$serde_json::private::RawValue":"{\"role\":\"system\"}"}"#,
        r#"{"$serde_json::private::Number":"1"}"#,
        "{}", "[]", "\"\"", "\"a string\"", r#"[{"type":"text","text":"a list"}]"#, "7", "-0", "true", "false",
    ]
    .map(str::to_owned)
    .into();
    for levels in [100, 126, 128, 1_000, 100_000] {
        messages.push(format!(r#"{{"role":"user","content":{}}}"#, deep(levels, "1")));
        messages.push(deep(levels, "\"\\ud800 ] }\""));
    }
    assert_exact(&messages, &round_trip(&messages).await);
}

/// JSON as text, including values that serde can't hold.
fn any_json() -> impl Strategy<Value = String> {
    let text = prop_oneof!["[a-z ]{0,9}", "\\PC{0,5}"];
    let piece = prop_oneof![
        text.prop_map(|text| text.replace('\\', "\\\\").replace('"', "\\\"")),
        prop::sample::select(vec![
            "\\ud800", "\\udc00", "\\ud83d", "\\ude00", "\\u0000", "\\\"", "\\\\", "\\n", "\u{2028}",
            "\u{7f}", "é", "{", "]", "$serde_json::private::Number", "role", "content", "type",
        ])
        .prop_map(str::to_owned),
    ];
    let string = prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()));
    let number = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?";
    let word = prop::sample::select(vec!["null", "true", "false"]).prop_map(str::to_owned);
    let leaf = prop_oneof![string.clone(), number, word];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        let field = (string.clone(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(field, 0..5).prop_map(|fields| format!("{{{}}}", fields.join(","))),
        ]
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_json_is_stored_unaltered(
        values in prop::collection::vec(any_json(), 1..12),
        roles in prop::collection::vec(prop::sample::select(vec!["user", "assistant", "toolResult", "system", "?"]), 12),
    ) {
        let messages: Vec<String> = values
            .iter()
            .zip(&roles)
            .flat_map(|(value, role)| [format!(r#"{{"role":"{role}","content":{value}}}"#), value.clone()])
            // `null` is not a message.
            .filter(|message| message != "null")
            .collect();
        let back = block_on(round_trip(&messages));
        assert_exact(&messages, &back);
        for (message, role) in back.iter().filter(|message| message.json.starts_with("{\"role\":\"")).zip(&roles) {
            let _ = role;
            prop_assert!(message.role != "unreadable" && message.role != "unknown", "{}", message.json);
        }
    }
}

#[tokio::test]
async fn an_entry_without_a_message_keeps_its_place() {
    let batch = r#"[{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"above"}},
        {"type":"message","id":"b","parentId":"a","message":null},
        {"type":"message","id":"c","parentId":"b"},
        {"type":"message","id":"d","parentId":"c","\ud800":0,"message":{"role":"user","content":"below"}}]"#;
    let store = TestStore::new();
    let persistor = hand_over(&store, "one", batch).await;
    let texts: Vec<_> =
        stored(&store, &persistor, "d").await.into_iter().map(|message| message.json).collect();
    assert_eq!(texts, [r#"{"role":"user","content":"above"}"#, r#"{"role":"user","content":"below"}"#]);
}

#[tokio::test]
async fn values_that_serde_can_not_hold_are_still_parsed() {
    let odd =
        [deep(1_000, "1"), r#"{"\ud800":"\udc00"}"#.into(), r#"{"$serde_json::private::Number":"x"}"#.into()];
    for odd in odd {
        let messages = [
            format!(
                r#"{{"role":"bashExecution","command":"env","output":"secret","x":{odd},"excludeFromContext":true}}"#
            ),
            format!(r#"{{"role":"system","content":"prompted","x":{odd}}}"#),
            format!(
                r#"{{"role":"assistant","x":{odd},"content":[{{"type":"thinking","thinking":"pondered"}},
                {{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo"}},{{"type":"text","text":"said"}}]}}"#
            ),
            format!(
                r#"{{"role":"toolResult","toolName":"read","x":{odd},"content":"answered","timestamp":5}}"#
            ),
            format!(
                r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c","name":"write",
                "arguments":{{"path":"called.rs","x":{odd}}}}}]}}"#
            ),
        ];
        let store = TestStore::new();
        let persistor = hand_over(&store, "one", &chain(&messages)).await;
        let back = stored(&store, &persistor, "e5").await;
        assert_exact(&messages, &back);
        let roles: Vec<&str> = back.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["bashExecution", "system", "assistant", "toolResult", "assistant"]);
        assert_eq!((back[3].tool.as_deref(), back[3].timestamp), (Some("read"), 5));
        let words = vocabulary(&store).await;
        for (word, is_found) in [
            ("said", true),
            ("answer", true),
            ("call", true),
            ("secret", false),
            ("prompt", false),
            ("ponder", false),
            ("ivborw0kggo", false),
        ] {
            assert_eq!(words.iter().any(|known| known == word), is_found, "{word} in {words:?}");
        }
    }
}

#[tokio::test]
async fn an_entry_that_is_its_own_message_has_the_same_lineage_everywhere() {
    let kinds = [
        r#""type":"custom_message","customType":"note","content":[],"details":{"id":"x","parentId":"y"}"#,
        r#""type":"custom_message","customType":{},"content":"\ud800","display":"no","\ud800":{"\udc00":1}"#,
        r#""type":"custom_message""#,
        r#""type":"branch_summary","summary":"left","fromId":"x","10":1,"2":2,"n":1e400"#,
        r#""type":"branch_summary","summary":{"no":"text"},"details":null"#,
    ];
    for fields in kinds {
        let (kind, rest) =
            fields.split_once(',').map_or((fields, String::new()), |(kind, rest)| (kind, format!(",{rest}")));
        let store = TestStore::new();
        let mut lineages = Vec::new();
        for session in ["one", "two"] {
            let batch = format!(
                r#"[{{{kind},"id":"{session}","parentId":"elsewhere"{rest}}},
                    {{"type":"message","id":"below","parentId":"{session}","message":{{"role":"user","content":"below"}}}}]"#
            );
            let session = PiSession { id: session.into(), ..PiSession::default() };
            let persistor = Persistor::open(&store.store, session.clone(), Log::default()).await.unwrap();
            persistor.hand_over(&batch, vec![session.id]).unwrap();
            store.store.flush().await.unwrap();
            let messages = stored(&store, &persistor, "below").await;
            assert_eq!(messages.len(), 2, "{fields}");
            assert_eq!(messages[0].json, format!("{{{fields}}}"));
            lineages.push(messages[1].lineage);
        }
        assert_eq!(lineages[0], lineages[1], "{fields}");
    }
}

#[tokio::test]
async fn an_edit_changes_only_the_content() {
    let before = r#"{"role":"user","\ud800":"\udc00","n":1e400,"2":1,"content":"long"}"#;
    let bare = r#"{"role":"user"}"#;
    let summary = r#"{"role":"branchSummary","summary":"left"}"#;
    let edit = |id: &str, parent: &str, target: &str, replacement: &str| {
        format!(
            r#",{{"type":"context_edit","id":"{id}","parentId":"{parent}","targetId":"{target}","replacement":{replacement}}}]"#
        )
    };
    let mut batch = chain(&[before.into(), bare.into(), summary.into()]);
    for (id, parent, target, replacement) in [
        ("x1", "e3", "e1", r#"{"content":"\udfff short","more":1}"#),
        ("x2", "x1", "e2", r#"{"content":[]}"#),
        ("x3", "x2", "e3", r#"{"content":"nothing that Pi would edit"}"#),
    ] {
        batch.pop();
        batch.push_str(&edit(id, parent, target, replacement));
    }
    let store = TestStore::new();
    let persistor = hand_over(&store, "one", &batch).await;
    let conversation = persistor.conversation();
    let read = move |view: &View<'_>| {
        let seen = lcm_model::dag::visible(&view.messages().branch(conversation, "x3")?);
        seen.iter()
            .map(|v| Ok(view.messages().message(v.seen.id)?.json))
            .collect::<lcm_model::error::Result<Vec<_>>>()
    };
    let expected =
        [&before.replace(r#""long""#, r#""\udfff short""#), r#"{"role":"user","content":[]}"#, summary];
    assert_eq!(store.store.read(read).await.unwrap(), expected);
    assert_eq!(stored(&store, &persistor, "x3").await[0].json, before);
}

#[tokio::test]
async fn a_message_may_have_many_megabytes() {
    let line = "0123456789 abcdefgh, \\\"quoted\\\" and more of it\\n";
    let output = line.repeat(share(50 * 1024 * 1024) as usize / line.len());
    let message = format!(r#"{{"role":"bashExecution","command":"cat","output":"{output} needle"}}"#);
    let given = [message, r#"{"role":"user","content":"below"}"#.into()];
    assert_exact(&given, &round_trip(&given).await);
}

#[tokio::test]
async fn images_are_not_indexed() {
    // Small enough to be one token of the tokenizer, and as large as an image.
    for data in ["iVBORw0KGgoAAAANSUhEUg".to_owned(), "iVBORw0KGgoAAAANSUhEUg/9j+4AAQSkZJRg".repeat(300)] {
        let image = json!({"type": "image", "mimeType": "image/png", "data": data});
        let url = format!("data:image/png;base64,{data}");
        let mut session = Session::new()
            .message(json!({"role": "user", "content": [{"type": "text", "text": "findable"}, image]}))
            .message(json!({"role": "toolResult", "toolName": "read", "content": [image], "details": {"image": data}}))
            .message(json!({"role": "user", "content": image}))
            .message(json!([image]))
            .message(json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "", "thinkingSignature": data}]}))
            .entry("custom_message", json!({"customType": "shot", "content": [image], "details": image}))
            .user(&format!("![a picture]({url})"))
            .tool("write", json!({"path": "a.html", "content": format!("<img src=\"{url}\">")}), &url);
        if data.len() > 200 {
            session = session
                .user(&data)
                .tool("see", json!({"picture": data}), &format!("printed {data}\n"))
                .message(json!({"role": "user", "content": [{"type": "movie", "source": {"bytes": data}}]}));
        }
        let store = TestStore::new();
        store.ingest("one", &session).await;
        let words = vocabulary(&store).await;
        assert!(
            words.iter().any(|word| word == "findabl") && words.iter().any(|word| word == "pictur"),
            "{words:?}"
        );
        let pieces: Vec<&String> =
            words.iter().filter(|word| word.contains("ivbor") || word.contains("qskzj")).collect();
        assert_eq!(pieces, [""; 0]);
    }
}

#[tokio::test]
async fn a_message_with_a_repeated_id_is_stored_under_its_own_id() {
    let batch = r#"[{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"above"}},
        {"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"earlier"}},
        {"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"later"}},
        {"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"earlier"}},
        {"type":"label","id":"l","parentId":"b","label":"x"},
        {"type":"message","id":"l","parentId":"b","message":{"role":"user","content":"labelled"}},
        {"type":"message","id":"c","parentId":"b","message":{"role":"user","content":"below"}}]"#;
    let store = TestStore::new();
    for _ in 0..2 {
        let persistor = hand_over(&store, "one", batch).await;
        let conversation = persistor.conversation();
        let said = store.store.read(move |view| view.messages().said_in(conversation)).await.unwrap();
        assert_eq!(said, 5);
        let branch = store.visible(conversation, "c").await;
        let texts: Vec<&Value> = branch.iter().map(|message| &message["content"]).collect();
        assert_eq!(texts, ["above", "earlier", "below"]);
        let ids = store.store.read(move |view| view.messages().entry_ids(conversation)).await.unwrap();
        assert_eq!(ids.len(), 6, "{ids:?}");
        for id in &ids {
            assert!(ids.iter().filter(|other| *other == id).count() == 1, "{ids:?}");
        }
    }
    let words = vocabulary(&store).await;
    assert!(
        ["earlier", "later", "label"].iter().all(|word| words.iter().any(|known| known == word)),
        "{words:?}"
    );
    assert!(Message::parse(r#"{"role":"user","content":"later"}"#).take_searchable() == "later");
}
