//! Messages with their neighbors and their location.

use serde_json::json;

use super::asking::Asking;
use super::support::Session;
use crate::tools::Block;
use lcm_model::tokens;
use lcm_recall::Image;

/// The short ids at the heads of the sections, in order; the requested one with a `*`.
fn shown(answer: &str) -> Vec<String> {
    let headings = answer.lines().filter(|line| line.starts_with("m-") && line.contains(" UTC"));
    headings
        .map(|line| format!("{}{}", &line[..12], if line.contains(" · asked for") { "*" } else { "" }))
        .collect()
}

async fn ids(asking: &Asking, positions: impl IntoIterator<Item = usize>) -> Vec<String> {
    let mut ids = Vec::new();
    for position in positions {
        ids.push(asking.message(position).await);
    }
    ids
}

#[tokio::test]
async fn a_message_comes_with_the_messages_before_and_after_it() {
    let session = Session::new().user("one").assistant("two").user("three").assistant("four").user("five");
    let asking = Asking::about(&session).await;
    let [two, three, four] = &ids(&asking, 1..4).await[..] else { panic!() };
    assert_eq!(
        asking.expand(json!({"summary_id": three, "around": 1})).await,
        format!(
            "{two} · assistant · 2026-11-20 09:00 UTC · 3 bytes\n<content>\ntwo\n</content>\n\n\
             {three} · user · 2025-11-20 09:12 UTC · asked for · 5 bytes\n<content>\nthree\n</content>\n\n\
             {four} · assistant · 2026-11-20 09:00 UTC · 4 bytes\n<content>\nfour\n</content>\n\n\
             More before: lcm_expand {{\"summary_id\":\"{two}\",\"around\":1}}\n\
             More after: lcm_expand {{\"summary_id\":\"{four}\",\"around\":1}}"
        )
    );
    let all = asking.expand(json!({"summary_id": two, "around": "9"})).await;
    let mut expected = ids(&asking, 0..5).await;
    expected[1].push('*');
    assert_eq!(shown(&all), expected);
    assert!(
        all.ends_with(&format!(
            "\nNothing was said before {}.\nNothing was said after {}.",
            expected[0], expected[4]
        )),
        "{all}"
    );
}

#[tokio::test]
async fn long_neighbors_share_the_room_and_name_the_next_call() {
    let log = "a line of some log\n".repeat(200_000);
    let session = Session::new()
        .user("short")
        .tool("bash", json!({"command": "x"}), &log)
        .user("which?")
        .tool("bash", json!({"command": "y"}), &log)
        .user("enough");
    let asking = Asking::about(&session).await;
    for tokens in [300, 1_500, 8_000] {
        let (id, all) = (asking.message(3).await, json!(8));
        let answer = asking.expand(json!({"summary_id": id, "around": all, "max_tokens": tokens})).await;
        assert!(tokens::estimate(&answer) <= tokens.max(500), "{tokens}: {}", tokens::estimate(&answer));
        assert!(answer.contains("<content>\nwhich?\n</content>"), "{answer}");
        if tokens < 1_500 {
            continue;
        }
        assert_eq!(shown(&answer).len(), 7);
        let cut: Vec<&str> = answer.lines().filter(|line| line.contains(" bytes left of m-")).collect();
        assert_eq!(cut.len(), 2, "{answer}");
        // The cursor continues where the section ended, in pages of the same size.
        let (_, arguments) = cut[0].split_once("lcm_expand ").unwrap();
        let next: serde_json::Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(next["max_tokens"], tokens);
        let from: usize = next["cursor"].as_str().unwrap().parse().unwrap();
        let page = asking.expand(next).await;
        let (content, _) = super::asking::page(&page);
        assert!(log[from..].starts_with(content) && content.len() > tokens);
    }
}

#[tokio::test]
async fn neighbors_are_on_the_branch_and_never_private() {
    let private =
        json!({"role": "bashExecution", "command": "env", "output": "zebra", "excludeFromContext": true});
    let session = Session::new()
        .user("root")
        .assistant("left one")
        .user("left two")
        .at("e1")
        .message(private.clone())
        .assistant("right one")
        .message(private)
        .message(json!({"role": "system", "content": "zebra"}))
        .user("right two");
    let asking = Asking::about(&session).await;
    let texts = |answer: &str| -> Vec<String> {
        let pieces = answer.split("<content>\n").skip(1);
        pieces.map(|piece| piece.split("\n</content>").next().unwrap().to_owned()).collect()
    };
    let (root, right) = (asking.message(0).await, asking.message(1).await);
    let answer = asking.expand(json!({"summary_id": right, "around": 5})).await;
    assert_eq!(texts(&answer), ["root", "right one", "right two"]);
    let answer = asking.expand(json!({"summary_id": root, "around": 5})).await;
    assert_eq!(texts(&answer), ["root", "right one", "right two"]);
    let found = asking.grep(json!({"query": "root", "context": 2})).await;
    assert!(found.contains("right one") && found.contains("right two") && !found.contains("left"), "{found}");
    // For a message that is not on the branch, the neighbors are those of its own branch.
    let found = asking.grep(json!({"query": "left one"})).await;
    let (_, found) = found.split_once("m-").unwrap();
    let answer = asking.expand(json!({"summary_id": format!("m-{}", &found[..10]), "around": 5})).await;
    assert_eq!(texts(&answer), ["root", "left one", "left two"]);
    assert!(answer.contains(" · asked for · on another branch · "), "{answer}");
}

/// Seen from another session, its current branch counts, too.
#[tokio::test]
async fn another_sessions_branch_is_the_one_that_goes_on() {
    let session = Session::new().user("a root").user("left walrus").at("e1").user("right walrus");
    let asking = Asking::about(&Session::new().user("elsewhere")).await;
    let asking = asking.with_session("two", &session).await;
    let found = asking.grep(json!({"query": "root", "session": "two", "context": 1})).await;
    assert!(found.contains("right walrus") && !found.contains("left"), "{found}");
    let (_, id) = found.split_once("m-").unwrap();
    let answer = asking.expand(json!({"summary_id": format!("m-{}", &id[..10]), "around": 1})).await;
    assert!(answer.contains("right walrus") && !answer.contains("left"), "{answer}");
    let found = asking.grep(json!({"query": "walrus", "session": "two", "branch": "current"})).await;
    assert!(found.contains("right «walrus»") && !found.contains("left"), "{found}");
}

#[tokio::test]
async fn neighbors_on_another_branch_are_found_whatever_was_stored_between_them() {
    let left = Session::new().user("root").user("left one");
    let asking = Asking::about(&left).await;
    let id = asking.message(1).await;
    let meanwhile = left.clone().at("e1").chat(60, 3);
    asking.store.ingest("one", &meanwhile).await;
    let later = meanwhile.clone().at("e2").user("left two").user("left three");
    asking.store.ingest("one", &later).await;
    let asking = Asking { scope: asking.from(meanwhile.leaf()), ..asking };
    let answer = asking.expand(json!({"summary_id": id, "around": 2})).await;
    let texts: Vec<&str> =
        answer.lines().filter(|line| line.starts_with("left") || *line == "root").collect();
    assert_eq!(texts, ["root", "left one", "left two", "left three"], "{answer}");
    assert!(answer.contains("Nothing was said after "), "{answer}");
}

#[tokio::test]
async fn a_message_from_elsewhere_names_its_location() {
    let session = Session::new().chat(2, 3).at("e2").user("another way").assistant("taken");
    let asking = Asking::about(&session).await;
    let left = Asking { scope: asking.from("e4"), ..asking };
    let (message, summary) = (left.message(2).await, left.leaf(0..4, "The way that was left").await);
    let summary = left.name(summary).await;
    let asking = Asking { scope: left.from(session.leaf()), ..left };
    let asking = asking.with_session("two", &Session::new().user("beluga").assistant("orca")).await;
    let found = asking.grep(json!({"query": "beluga", "session": "project"})).await;
    let (_, found) = found.split_once("m-").unwrap();
    let foreign = format!("m-{}", &found[..10]);
    let here = asking.message(2).await;
    for (id, words) in [
        (&message, Some(" · on another branch · ")),
        (&summary, Some(" · on another branch · ")),
        (&foreign, Some(" · in another session · ")),
        (&here, None),
    ] {
        for arguments in
            [json!({"summary_id": id}), json!({"summary_id": id, "query": "word0 another beluga question"})]
        {
            let answer = asking.expand(arguments).await;
            let first = answer.lines().next().unwrap();
            assert_eq!(
                words,
                [" · on another branch · ", " · in another session · "]
                    .into_iter()
                    .find(|words| first.contains(words)),
                "{answer}"
            );
            assert_eq!(
                answer.matches(" · on another branch").count(),
                usize::from(words == Some(" · on another branch · ")),
                "{answer}"
            );
        }
    }
    let answer = asking.expand(json!({"summary_id": foreign, "around": 1})).await;
    assert!(
        answer.contains(" · asked for · in another session · ") && answer.contains("\norca\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn images_come_only_with_the_requested_message() {
    let picture = |data: &str| json!({"role": "user", "content": [{"type": "image", "mimeType": "image/png", "data": data}]});
    let asking = Asking::about(&Session::new().message(picture("aGk=")).message(picture("aG8="))).await;
    let arguments = json!({"summary_id": asking.message(1).await, "around": 1});
    let blocks = asking.blocks("lcm_expand", arguments).await.unwrap();
    assert_eq!(blocks[1..], [Block::Image(Image { data: "aG8=".into(), mime_type: "image/png".into() })]);
}
