//! No tool shows what the user kept from the model, whatever the arguments.

use serde_json::{Value, json};

use super::asking::Asking;
use super::support::Session;
use lcm_model::ids::Hash;

/// In every private message, and nowhere else.
const SECRET: &str = "zebra";

fn private(command: &str) -> Value {
    json!({
        "role": "bashExecution", "command": format!("{command} {SECRET}.env"), "output": format!("{SECRET}=1\n").repeat(40),
        "excludeFromContext": true
    })
}

/// A session with private messages at both ends of each branch and between all others, and a fork of it.
async fn with_secrets() -> (Asking, Vec<String>) {
    let session = Session::new()
        .message(private("cat"))
        .user("read notes.env please")
        .message(private("less"))
        .tool("read", json!({"path": "notes.env"}), "NOTES=1")
        .message(private("vi"))
        .assistant("Done with notes.env")
        .message(private("rm"))
        .at("e5")
        .message(private("mv"))
        .user("another way with notes.env")
        .message(private("cp"))
        .user("What now?");
    let fork = session.clone().message(private("ls")).user("in the fork");
    let asking = Asking::about(&session).await.with_session("fork", &fork).await;
    let leaf = asking.leaf(0..3, "Notes\nwere read.").await;
    asking.condensed(1, &[leaf], "All about notes").await;
    let ids = asking.store.store.read(|view| {
        let mut ids = Vec::new();
        for conversation in ["one", "fork"] {
            let conversation = view.messages().conversation(conversation)?.unwrap();
            for entry in view.messages().entry_ids(conversation)? {
                for entry in view.messages().branch(conversation, &entry)? {
                    if let lcm_model::dag::Step::Message(message) = entry.step
                        && view.messages().message(message.id)?.json.contains(SECRET)
                    {
                        ids.push(message.hash);
                    }
                }
            }
        }
        Ok(ids)
    });
    let mut ids: Vec<Hash> = ids.await.unwrap();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7);
    (asking, ids.iter().map(Hash::message_handle).collect())
}

/// Every parameter with each of its values, one at a time and in pairs.
fn calls(base: &[Value], parameters: &[(&str, Value)]) -> Vec<Value> {
    let mut calls = base.to_vec();
    for (at, (name, value)) in parameters.iter().enumerate() {
        for base in base {
            let mut one = base.clone();
            one[*name] = value.clone();
            calls.push(one.clone());
            for (other, value) in &parameters[at + 1..] {
                let mut two = one.clone();
                two[*other] = value.clone();
                calls.push(two);
            }
        }
    }
    calls
}

#[tokio::test]
async fn private_messages_are_not_found() {
    let (asking, private) = with_secrets().await;
    let queries = [SECRET, "zebra.env", "notes env", "NOTES", ".", "(?s).*", "cat zebra"];
    let base: Vec<Value> = queries.iter().map(|query| json!({"query": query})).collect();
    let parameters = [
        ("mode", json!("regex")),
        ("scope", json!("all")),
        ("session", json!("project")),
        ("session", json!("fork")),
        ("branch", json!("current")),
        ("role", json!("bashExecution")),
        ("role", json!("user")),
        ("path", json!("notes.env")),
        ("path", json!("zebra.env")),
        ("after", json!("2020-01-01")),
        ("sort", json!("recent")),
        ("sort", json!("oldest")),
        ("full", json!(true)),
        ("context", json!(5)),
        ("limit", json!(1)),
        ("cursor", json!("1")),
    ];
    let mut hits = 0;
    for arguments in calls(&base, &parameters) {
        let answer = said(&asking, "lcm_grep", &arguments).await;
        // An empty answer repeats the query, one with similar words its words.
        let query = arguments["query"].as_str().unwrap();
        let answer = std::iter::once(query)
            .chain(query.split_whitespace())
            .fold(answer, |answer, said| answer.replace(&format!("`{said}`"), ""));
        let answer = answer.replace("about zebra.env", "");
        assert!(!answer.to_lowercase().replace('«', "").contains(SECRET), "{arguments}: {answer}");
        assert!(private.iter().all(|id| !answer.contains(id)), "{arguments}: {answer}");
        hits += usize::from(answer.contains("«"));
    }
    assert!(hits > 100, "other messages are found: {hits}");
}

#[tokio::test]
async fn private_messages_are_never_shown_or_named() {
    let (asking, private) = with_secrets().await;
    let mut ids: Vec<String> = Vec::new();
    for position in 0..5 {
        ids.push(asking.message(position).await);
    }
    let overview = asking.describe(json!({})).await;
    ids.extend(overview.split("s-").skip(1).map(|rest| format!("s-{}", &rest[..10])));
    assert!(ids.len() >= 7, "{overview}");
    let open: Vec<Value> = ids.iter().map(|id| json!({"summary_id": id})).collect();
    let closed: Vec<Value> = private.iter().map(|id| json!({"summary_id": id})).collect();
    let parameters = [
        ("around", json!(20)),
        ("query", json!("zebra notes")),
        ("lines", json!("1-9")),
        ("depth", json!(9)),
        ("raw", json!(true)),
        ("max_tokens", json!(8000)),
        ("cursor", json!("1")),
        ("cursor", json!("1:0")),
        ("section", json!("by_id")),
        ("section", json!("overview")),
        ("section", json!("recent")),
        ("section", json!("earliest")),
    ];
    for tool in ["lcm_expand", "lcm_describe"] {
        for arguments in calls(&open, &parameters) {
            let answer = said(&asking, tool, &arguments).await.replace("`zebra notes`", "");
            assert!(!answer.contains(SECRET), "{tool} {arguments}: {answer}");
            assert!(private.iter().all(|id| !answer.contains(id)), "{tool} {arguments}: {answer}");
        }
        for arguments in calls(&closed, &parameters) {
            let refusal = asking.blocks(tool, arguments.clone()).await.unwrap_err().to_string();
            let id = arguments["summary_id"].as_str().unwrap();
            let unknown =
                format!("there is no message {id} in this project: lcm_grep and lcm_describe show ids");
            let other = ["exclude each other", "comes in one page", "take no summary_id"];
            assert!(refusal == unknown || other.iter().any(|words| refusal.contains(words)), "{refusal}");
        }
    }
    for section in ["overview", "recent", "earliest"] {
        let answer = asking.describe(json!({"section": section})).await;
        assert!(!answer.contains(SECRET) && private.iter().all(|id| !answer.contains(id)), "{answer}");
    }
}

/// The answer or refusal of a tool.
async fn said(asking: &Asking, tool: &str, arguments: &Value) -> String {
    match asking.blocks(tool, arguments.clone()).await {
        Ok(blocks) => format!("{blocks:?}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn the_user_may_read_what_is_kept_from_the_model() {
    let (asking, ids) = with_secrets().await;
    let shown = asking.command(&format!("show {}", ids[0])).await;
    assert!(shown.contains(SECRET) && shown.contains(", kept from the model\n"), "{shown}");
    let elsewhere = asking.command(&format!("show {}", ids[6])).await;
    assert!(elsewhere.contains(SECRET), "{elsewhere}");
    let own = Asking::about(&Session::new().user("Hi.").message(private("cat")).user("And now?")).await;
    let denied = own.command("search zebra").await;
    assert_eq!(denied, "Nothing found for zebra, thinking and `!!` commands aside.");
    let told = own.grep(json!({"query": "zebra"})).await;
    assert!(!told.contains("!!"), "{told}");
}
