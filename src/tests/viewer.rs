//! The page of `export --html` has all of a session and nothing of others, and none of its text acts as
//! markup.

use std::path::Path;

use serde_json::{Value, json};

use super::asking::Asking;
use super::support::{Session, ask_in};
use crate::commands::Answer;
use lcm_ingest::import::Home;
use lcm_model::config::ProjectIdentity;
use lcm_model::error::Result;
use lcm_recall::Scope;
use lcm_store::Store;

/// Exports in a separate folder, whose `viewer.html` is the template.
async fn export(store: &Store, scope: &Scope, folder: &Path, line: &str) -> Result<Answer> {
    let home = Home {
        store: store.clone(),
        cwd: folder.display().to_string(),
        identity: ProjectIdentity::Cwd,
        db_dir: folder.to_owned(),
        session_id: "one".into(),
    };
    ask_in(&home, folder, scope, None, line).await
}

fn template(folder: &Path, text: &str) {
    std::fs::write(folder.join("viewer.html"), text).unwrap();
}

/// The session's page, and the JSON of its elements of each kind.
async fn page_of(asking: &Asking, line: &str) -> (String, impl Fn(&str) -> Vec<Value> + use<>) {
    let folder = tempfile::tempdir().unwrap();
    template(folder.path(), "<head>\n<!--lcm:data-->\n<tail>");
    let answer = export(&asking.store.store, &asking.scope, folder.path(), line).await.unwrap();
    let file = answer.answer["files"][0].as_str().unwrap();
    let page = std::fs::read_to_string(file).unwrap();
    let elements: Vec<(String, Value)> =
        (page.split("<script type=\"application/json\" data-kind=\"").skip(1))
            .map(|element| {
                let (kind, rest) = element.split_once('"').unwrap();
                let (json, _) = rest.split_once('>').unwrap().1.split_once("</script>").unwrap();
                (kind.to_owned(), serde_json::from_str(json).unwrap())
            })
            .collect();
    let of = move |kind: &str| {
        elements.iter().filter(|(found, _)| found == kind).map(|(_, json)| json.clone()).collect()
    };
    (page, of)
}

/// The items of the lists in these elements.
fn all(lists: Vec<Value>) -> Vec<Value> {
    lists.into_iter().flat_map(|list| list.as_array().unwrap().clone()).collect()
}

#[tokio::test]
async fn the_page_has_every_entry_byte_for_byte_and_no_text_ends_the_data() {
    let nasty =
        "</script><script>alert(1)</script><!-- \u{2028} \u{2029} \\u003c \u{0} ]]> <!--lcm:data--> \u{202e}";
    let session = Session::new().user(nasty).assistant(nasty).tool("read", json!({"path": nasty}), nasty);
    let trunk = session.leaf().to_owned();
    let session = session
        .message(
            json!({"role": "bashExecution", "command": "env", "output": nasty, "excludeFromContext": true}),
        )
        .entry("context_edit", json!({"targetId": "e1", "replacement": {"content": nasty}}))
        .at(&trunk)
        .chat(300, 5);
    let asking = Asking::about(&session).await;
    let (page, data) = page_of(&asking, "export --html page.html").await;

    assert!(page.starts_with("<head>\n<script ") && page.ends_with("</script>\n\n<tail>"), "{page:.100}");
    let elements =
        page.strip_prefix("<head>\n").unwrap().split_terminator("</script>\n").filter(|e| *e != "\n<tail>");
    for element in elements {
        let (_, json) = element.split_once('>').unwrap();
        assert!(!json.contains(['<', '\u{2028}', '\u{2029}']), "{element:.200}");
    }
    assert_eq!(
        (&data("about")[0]["format"], &data("session")[0]["leaf"]),
        (&json!(1), &json!(session.leaf()))
    );
    assert!(data("entries").len() > 1, "a long session is written in several elements");
    let entries = all(data("entries"));
    let ids: Vec<&Value> = entries.iter().map(|line| &line["entry"]["id"]).collect();
    assert_eq!(ids, session.entries.iter().map(|entry| &entry["id"]).collect::<Vec<_>>());
    for (line, entry) in entries.iter().zip(&session.entries) {
        assert_eq!(line["entry"]["message"], entry["message"]);
    }
    // A message's text is the store's; only characters that could be markup are escaped.
    for entry in &session.entries {
        let json = entry["message"].to_string().replace('<', "\\u003c");
        let json = json.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        assert!(entry["message"].is_null() || page.contains(&json), "{json:.200}");
    }
    let private = entries.iter().find(|line| line["entry"]["message"]["role"] == "bashExecution").unwrap();
    assert_eq!(private["message"]["kind"], "private");
    assert!(private["message"]["tokens"].as_u64() > Some(0));
    assert_eq!(entries[0]["message"]["id"], json!(asking.message(0).await));
    let ends = data("session")[0]["branches"].clone();
    assert_eq!((&ends[0]["leaf"], &ends[1]["leaf"]), (&json!("e6"), &json!(session.leaf())));
}

#[tokio::test]
async fn the_page_has_summaries_with_sources_and_branches_with_frontiers() {
    let session = Session::new().chat(4, 20);
    let asking = Asking::about(&session).await;
    let leaves = [asking.leaf(0..3, "The first leaf").await, asking.leaf(3..6, "The second leaf").await];
    let condensed = asking.condensed(1, &leaves, "Both").await;
    let (_, data) = page_of(&asking, "export --html page.html").await;
    let summaries = all(data("summaries"));
    let texts: Vec<&Value> = summaries.iter().map(|summary| &summary["text"]).collect();
    assert_eq!(texts, ["The first leaf", "The second leaf", "Both"]);
    assert_eq!(summaries[0]["sources"], json!(["e1", "e2", "e3"]));
    assert_eq!(summaries[2]["sources"], json!([summaries[0]["id"], summaries[1]["id"]]));
    assert_eq!(summaries[2]["handle"], json!(asking.name(condensed).await));
    assert_eq!((&summaries[2]["depth"], &summaries[2]["messages"]), (&json!(1), &json!(6)));
    assert_eq!(data("session")[0]["branches"], json!([{"leaf": "e8", "frontier": [summaries[2]["id"]]}]));

    // The open entry is an end too, wherever it is.
    let asking = Asking { scope: asking.from("e4"), ..asking };
    let (_, data) = page_of(&asking, "export --html page.html").await;
    assert_eq!(data("session")[0]["leaf"], "e4");
    let branches = json!([
        {"leaf": "e4", "frontier": [summaries[0]["id"]]},
        {"leaf": "e8", "frontier": [summaries[2]["id"]]}
    ]);
    assert_eq!(data("session")[0]["branches"], branches);
}

#[tokio::test]
async fn a_forks_messages_are_not_in_its_parents_page() {
    let trunk = Session::new().chat(2, 20);
    let asking =
        Asking::about(&trunk).await.with_session("fork", &trunk.clone().user("only in the fork")).await;
    let read = asking.store.store.read(|view| view.messages().conversation("fork"));
    let conversation = read.await.unwrap().unwrap();
    let fork = Asking { scope: Scope::at(conversation, Some("e5".into())), ..asking };
    fork.leaf(0..2, "Of both").await;
    fork.leaf(2..5, "Of the fork alone").await;
    let (page, data) = page_of(&fork, "export --html page.html").await;
    assert!(page.contains("only in the fork") && data("summaries")[0].as_array().unwrap().len() == 2);

    let read = fork.store.store.read(|view| view.messages().conversation("one"));
    let conversation = read.await.unwrap().unwrap();
    let first = Asking { scope: Scope::at(conversation, Some("e4".into())), ..fork };
    let (page, data) = page_of(&first, "export --html page.html").await;
    assert_eq!(all(data("summaries")).len(), 1);
    assert!(page.contains("Of both") && !page.contains("the fork"), "{page}");

    let (page, data) = page_of(&first, "export --html --all page.html").await;
    assert!(page.contains("only in the fork"));
    let ids: Vec<Value> =
        data("session").iter().map(|session| json!([session["id"], session["leaf"]])).collect();
    assert_eq!(json!(ids), json!([["one", "e4"], ["fork", "e5"]]), "the session that is open comes first");
}

#[tokio::test]
async fn without_a_template_nothing_is_written_and_the_remedy_is_named() {
    let asking = Asking::about(&Session::new().chat(1, 5)).await;
    let folder = tempfile::tempdir().unwrap();
    let run = async |line: &str| export(&asking.store.store, &asking.scope, folder.path(), line).await;
    let error = run("export --html page.html").await.unwrap_err().to_string();
    assert!(
        error.contains("viewer.html can't be read (") && error.contains("reinstall pi-lossless-context"),
        "{error}"
    );
    template(folder.path(), "no place for data");
    let error = run("export --html page.html").await.unwrap_err().to_string();
    assert!(error.contains("viewer.html is not the viewer's template: "), "{error}");
    template(folder.path(), "<!--lcm:data-->");
    assert!(run("export --html --md").await.is_err() && run("export --html --jsonl").await.is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    assert!(run("export --html page.html").await.unwrap().text.starts_with("2 messages written to "));
    let error = run("export --html page.html").await.unwrap_err().to_string();
    assert!(
        error.ends_with("already exists: choose another name, or add --force to overwrite it"),
        "{error}"
    );
    run("export --html page.html --force").await.unwrap();
    // The default names of both pages differ.
    run("export --html").await.unwrap();
    run("export --html --all").await.unwrap();
}

#[tokio::test]
async fn each_of_a_thousand_branches_has_its_frontier() {
    let branches = 1_000;
    let mut session = Session::new();
    for _ in 0..branches {
        session = session.user("on");
        let trunk = session.leaf().to_owned();
        session = session.assistant("aside").at(&trunk);
    }
    let asking = Asking::about(&session.at("e2000")).await;
    asking.leaf(0..100, "The beginning").await;
    let (_, data) = page_of(&asking, "export --html page.html").await;
    let branches = data("session")[0]["branches"].as_array().unwrap().clone();
    let summaries = all(data("summaries"));
    for (at, branch) in (1..).zip(&branches) {
        let frontier = if at < 100 { json!([]) } else { json!([summaries[0]["id"]]) };
        assert_eq!(branch, &json!({"leaf": format!("e{}", 2 * at), "frontier": frontier}));
    }
    assert_eq!(branches.len(), 1_000);
}
