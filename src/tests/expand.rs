//! `lcm_expand`: reads messages and summaries back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::asking::{Asking, page};
use super::support::Session;
use crate::tools::Block;
use lcm_recall::Image;
use lcm_testing::{cases, everything, share};

/// The concatenated pages from `arguments` on, and their number.
async fn all_pages(asking: &Asking, arguments: Value) -> (String, usize) {
    let (mut whole, mut pages) = (String::new(), 0);
    let mut next = Some(arguments);
    while let Some(arguments) = next {
        let answer = asking.expand(arguments).await;
        let (content, after) = page(&answer);
        whole.push_str(content);
        pages += 1;
        next = after;
    }
    (whole, pages)
}

#[tokio::test]
async fn a_message_is_returned_as_it_was_said() {
    let session = Session::new().tool("read", json!({"path": "a"}), "line\n</content>\n  é\n");
    let asking = Asking::about(&session).await;
    let id = asking.message(1).await;
    let expected = format!(
        "{id} · toolResult read · 2026-11-20 09:00 UTC · 21 bytes · bytes 0–21 · up to </content>\n<content>\nline\n</content>\n  é\n\n</content>\nEnd of {id}."
    );
    assert_eq!(asking.expand(json!({"summary_id": id})).await, expected);
    assert_eq!(
        asking.expand(json!({"summary_id": format!(" [{}] ", id[..8].to_uppercase())})).await,
        expected
    );
}

#[tokio::test]
async fn the_pages_of_a_long_message_have_every_byte() {
    let line = "2026-11-20 ERROR worker[17]: значение «日本語» 😀 </content> not found\r\n";
    let output: String = (0..share(15_000).max(5_000)).map(|n| format!("{n} {line}")).collect();
    assert!(output.len() > 400_000);
    let session = Session::new().tool("bash", json!({"command": "cat log"}), &output);
    let asking = Asking::about(&session).await;
    let id = asking.message(1).await;
    let first = asking.expand(json!({"summary_id": id})).await;
    let (content, next) = page(&first);
    let left = output.len() - content.len();
    assert!(content.ends_with('\n') && lcm_model::tokens::estimate(&first) <= 4_000);
    assert!(first.starts_with(&format!(
        "{id} · toolResult bash · 2026-11-20 09:00 UTC · {} bytes · bytes 0–{} · up to </content>\n",
        output.len(),
        content.len()
    )));
    assert!(first.ends_with(&format!(
        "\n{left} bytes left: lcm_expand {{\"summary_id\":\"{id}\",\"cursor\":\"{}\"}}",
        content.len()
    )));
    assert_eq!(next, Some(json!({"summary_id": id, "cursor": content.len().to_string()})));
    let (whole, pages) = all_pages(&asking, json!({"summary_id": id})).await;
    assert!(whole == output && pages > 20);
}

#[tokio::test]
async fn a_page_anywhere_in_a_huge_output_has_the_text_of_that_position() {
    let line = |n: usize| format!("{n:07} the same words over and over, with 日本 among them\n");
    // Fifty megabytes in `npm run test:all`.
    let lines = if everything() { 850_000 } else { 8_000 };
    let output: String = (0..lines).map(line).collect();
    assert!(output.len() > lines * 59);
    let asking = Asking::about(&Session::new().tool("bash", json!({"command": "cat log"}), &output)).await;
    let id = asking.message(1).await;
    // Each page ends where the next begins, so a few pages are enough.
    let mut starts = vec![0, output.len() / 2, output.len() - 70_000];
    for start in &mut starts {
        *start = output.floor_char_boundary(*start);
        let mut next = json!({"summary_id": id, "cursor": start.to_string(), "max_tokens": 8000});
        for _ in 0..3 {
            let answer = asking.expand(next).await;
            let (content, after) = page(&answer);
            assert!(!content.is_empty() && output[*start..].starts_with(content));
            *start += content.len();
            match after {
                Some(after) => next = after,
                None => break,
            }
            assert_eq!(next["cursor"], start.to_string());
            assert_eq!(next["max_tokens"], 8000);
        }
    }
    assert_eq!(starts[2], output.len());
    let answer = asking.expand(json!({"summary_id": id, "lines": format!("{}-{lines}", lines - 1)})).await;
    assert_eq!(page(&answer).0.len(), 2 * line(0).len());
    let answer = asking
        .expand(json!({"summary_id": id, "query": format!("{:07} {:07}", lines / 2, lines * 5 / 7)}))
        .await;
    assert!(
        answer.contains(&format!("\n{}: «{:07}» the same words", lines / 2 + 1, lines / 2))
            && answer.contains("2 of 2 lines"),
        "{answer}"
    );
}

proptest! {
    #![proptest_config(cases(12))]
    #[test]
    fn the_pages_of_any_text_add_up_to_it(
        lines in prop::collection::vec("[a-z0-9 {}é日\u{1f600}\r]{0,60}|</content>|\\PC{0,20}", 0..120),
        max_tokens in 150_usize..2_000,
        first in 1_usize..100,
        more in 0_usize..40,
    ) {
        let text = lines.join("\n");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let asking = Asking::about(&Session::new().tool("bash", json!({"command": "x"}), &text)).await;
            let id = asking.message(1).await;
            let (whole, _) = all_pages(&asking, json!({"summary_id": id, "max_tokens": max_tokens})).await;
            assert_eq!(whole, text);
            let asked = json!({"summary_id": id, "max_tokens": max_tokens, "lines": format!("{first}-{}", first + more)});
            let written: Vec<&str> = text.split_inclusive('\n').collect();
            let from = written.get(first - 1..).unwrap_or_default();
            if !from.is_empty() {
                let (some, _) = all_pages(&asking, asked).await;
                assert_eq!(some, from[..from.len().min(more + 1)].concat());
            }
        });
    }
}

#[tokio::test]
async fn raw_pages_are_the_stored_json() {
    let session = Session::new().tool("bash", json!({"command": "x"}), &"é\t\"q\"\n".repeat(4_000));
    let asking = Asking::about(&session).await;
    let id = asking.message(1).await;
    let arguments = json!({"summary_id": id, "raw": true, "max_tokens": 2000});
    assert_eq!(page(&asking.expand(arguments.clone()).await).1.unwrap()["raw"], true);
    let (whole, _) = all_pages(&asking, arguments).await;
    assert_eq!(whole, session.entries[1]["message"].to_string());
}

#[tokio::test]
async fn images_come_with_the_first_page() {
    let picture = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    let text = json!({"type": "text", "text": "word ".repeat(20_000)});
    let session = Session::new().message(json!({"role": "user", "content": [text, picture]}));
    let asking = Asking::about(&session).await;
    let id = asking.message(0).await;
    let pictures = async |arguments| asking.blocks("lcm_expand", arguments).await.unwrap().split_off(1);
    assert_eq!(
        pictures(json!({"summary_id": id})).await,
        [Block::Image(Image { data: "aGk=".into(), mime_type: "image/png".into() })]
    );
    assert_eq!(pictures(json!({"summary_id": id, "raw": true})).await, []);
    assert_eq!(pictures(json!({"summary_id": id, "cursor": "5000"})).await, []);
}

#[tokio::test]
async fn images_under_a_summary_come_as_far_as_they_fit() {
    let picture = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    let session = Session::new().message(json!({"role": "user", "content": vec![picture; 5]}));
    let asking = Asking::about(&session).await;
    let id = asking.leaf(0..1, "Screenshots").await;
    let id = asking.name(id).await;
    let pictures = async |arguments| asking.blocks("lcm_expand", arguments).await.unwrap().len() - 1;
    assert_eq!(pictures(json!({"summary_id": id})).await, 3);
    assert_eq!(pictures(json!({"summary_id": id, "max_tokens": 8000})).await, 5);
    assert_eq!(pictures(json!({"summary_id": id, "raw": true})).await, 0);

    let message = asking.message(0).await;
    let left = |answer: String| answer.lines().find(|line| line.contains("picture")).map(str::to_owned);
    let said = format!("2 pictures of it had no room here: lcm_expand {{\"summary_id\":\"{message}\"}}");
    assert_eq!(left(asking.expand(json!({"summary_id": id})).await), Some(said.clone()));
    assert_eq!(left(asking.expand(json!({"summary_id": message, "turn": true})).await), Some(said));
    assert_eq!(left(asking.expand(json!({"summary_id": id, "max_tokens": 8000})).await), None);
    assert_eq!(pictures(json!({"summary_id": message})).await, 5);
}

#[tokio::test]
async fn a_leaf_summary_expands_to_its_messages() {
    let session = Session::new().user("first").assistant("second").user("third");
    let asking = Asking::about(&session).await;
    let id = asking.leaf(0..2, "# Beginnings\nTwo things were said.").await;
    let (id, one, two) = (asking.name(id).await, asking.message(0).await, asking.message(1).await);
    assert_eq!(
        asking.expand(json!({"summary_id": id})).await,
        format!(
            "{id} · D0 · 2025-11-20 09:12–2026-11-20 09:00 UTC · 2 messages · scripted/model · 34 bytes\n<content>\n\
             # Beginnings\nTwo things were said.\n</content>\n\n\
             {one} · user · 2025-11-20 09:12 UTC · 5 bytes\n<content>\nfirst\n</content>\n\n\
             {two} · assistant · 2026-11-20 09:00 UTC · 6 bytes\n<content>\nsecond\n</content>\n\n\
             End of {id}."
        )
    );
}

#[tokio::test]
async fn a_condensed_summary_expands_to_its_summaries_first() {
    let asking = Asking::about(&Session::new().chat(4, 3)).await;
    let one = asking.leaf(0..4, "One\nfirst half").await;
    let two = asking.leaf(4..8, "Extract two\nsecond half").await;
    let top = asking.condensed(1, &[one, two], "Both\nall of it").await;
    let (one, two, top) = (asking.name(one).await, asking.name(two).await, asking.name(top).await);
    let answer = asking.expand(json!({"summary_id": top})).await;
    let span = "D0 · 2025-11-20 09:12–2026-11-20 09:00 UTC · 4 messages";
    assert_eq!(
        answer,
        format!(
            "{top} · D1 · 2025-11-20 09:12–2026-11-20 09:00 UTC · 8 messages · scripted/model · 14 bytes\n<content>\n\
             Both\nall of it\n</content>\n\n\
             {top} was made from 2 summaries:\n- {one} · {span}: One\n- {two} · {span} · degraded: Extract two\n\n\
             {one} · {span} · scripted/model · 14 bytes\n<content>\nOne\nfirst half\n</content>\n\n\
             {two} · {span} · degraded · 23 bytes\n<content>\nExtract two\nsecond half\n</content>\n\n\
             End of {top} at depth 1. Further down: lcm_expand on the id of a summary under it, or with \"depth\":2."
        )
    );
}

#[tokio::test]
async fn the_pages_of_a_summary_reach_every_byte_under_it() {
    let mut session = Session::new().chat(3, 10);
    let outputs: Vec<String> = (0..6).map(|n| format!("out{n} ").repeat(3_000)).collect();
    for output in &outputs {
        session = session.tool("bash", json!({"command": "make"}), output);
    }
    let asking = Asking::about(&session).await;
    let leaves =
        [asking.leaf(0..6, "One").await, asking.leaf(6..12, "Two").await, asking.leaf(12..18, "Three").await];
    let pair = asking.condensed(1, &leaves[..2], "One and two").await;
    let single = asking.condensed(1, &leaves[2..], "Three again").await;
    let top = asking.condensed(2, &[pair, single], "All").await;
    let top = asking.name(top).await;
    let mut document = String::new();
    let mut next = Some(json!({"summary_id": top, "depth": "3", "max_tokens": 1500}));
    let mut pages = 0;
    while let Some(arguments) = next {
        let answer = asking.expand(arguments).await;
        assert!(lcm_model::tokens::estimate(&answer) <= 4_100, "{}", lcm_model::tokens::estimate(&answer));
        // The pages of a section form one text.
        for section in answer.split("<content>\n").skip(1) {
            let (content, _) = section.split_once("\n</content>").unwrap();
            document.push_str(content);
        }
        next = answer
            .split_once("left: lcm_expand ")
            .map(|(_, arguments)| serde_json::from_str(arguments).unwrap());
        pages += 1;
    }
    assert!(pages > 5);
    assert!(document.starts_with("AllOne and twoThree againOneTwoThreequestion 0"), "{}", &document[..80]);
    assert_eq!(outputs.iter().filter(|output| document.contains(output.as_str())).count(), 6);
    for position in 0..6 {
        let answer = asking.expand(json!({"summary_id": asking.message(position).await})).await;
        assert!(document.contains(page(&answer).0));
    }
}

#[tokio::test]
async fn edited_and_hidden_messages_are_shown_as_they_were_said() {
    let session = Session::new()
        .user("keep")
        .user("hide me")
        .assistant("rewrite me")
        .entry("context_edit", json!({"targetId": "e2", "replacement": null}))
        .entry("context_edit", json!({"targetId": "e3", "replacement": {"content": "rewritten"}}));
    let asking = Asking::about(&session).await;
    let id = asking.leaf(0..2, "Edited").await;
    let answer = asking.expand(json!({"summary_id": asking.name(id).await})).await;
    assert!(
        answer.contains("rewrite me") && !answer.contains("rewritten") && !answer.contains("hide me"),
        "{answer}"
    );
    let found = asking.grep(json!({"query": "hide"})).await;
    let answer = asking.expand(json!({"summary_id": &found[..12]})).await;
    assert_eq!(page(&answer), ("hide me", None));
}

#[tokio::test]
async fn an_unknown_or_ambiguous_id_is_explained_in_one_sentence() {
    let session = Session::new().chat(12, 3).message(
        json!({"role": "bashExecution", "command": "env", "output": "x", "excludeFromContext": true}),
    );
    let asking = Asking::about(&session).await;
    let private = asking.store.store.read({
        let scope = asking.scope.clone();
        move |view| {
            let branch = view.messages().branch(scope.conversation, &scope.leaf.unwrap())?;
            let lcm_model::dag::Step::Message(message) = &branch[24].step else { panic!() };
            Ok(message.hash.message_handle())
        }
    });
    let private = private.await.unwrap();
    let mut digits: Vec<String> = Vec::new();
    for position in 0..24 {
        digits.push(asking.message(position).await[..3].to_owned());
    }
    // 24 messages and 16 digits: two of them share the first.
    let shared = digits.iter().find(|id| digits.iter().filter(|other| other == id).count() > 1).unwrap();
    for (id, sentence) in [
        (
            "m-0123456789abc",
            "there is no message m-0123456789abc in this project: lcm_grep and lcm_describe show ids".into(),
        ),
        ("s-77", "there is no summary s-77 in this project: lcm_grep and lcm_describe show ids".to_owned()),
        (
            &private,
            format!("there is no message {private} in this project: lcm_grep and lcm_describe show ids"),
        ),
        (shared, format!("{shared} matches more than one message: add digits, ids have ten")),
        (
            "last",
            "`last` is not an id: ids look like m-1a2b3c4d5e (message) or s-1a2b3c4d5e (summary)".into(),
        ),
    ] {
        assert_eq!(asking.refusal("lcm_expand", json!({"summary_id": id})).await, sentence);
        let arguments = json!({"section": "by_id", "summary_id": id});
        assert_eq!(asking.refusal("lcm_describe", arguments).await, sentence);
    }
}

#[tokio::test]
async fn an_id_is_resolved_in_the_session_then_in_the_project() {
    // In the project, ids of one digit are ambiguous.
    let session = Session::new().user("here");
    let asking = Asking::about(&session).await.with_session("two", &Session::new().chat(20, 2)).await;
    let asking = asking.with_session("three", &Session::new().user("elsewhere")).await;
    let answer = asking.expand(json!({"summary_id": &asking.message(0).await[..3]})).await;
    assert_eq!(page(&answer).0, "here");
    let elsewhere = asking.grep(json!({"query": "elsewhere", "session": "project"})).await;
    let answer =
        asking.expand(json!({"summary_id": elsewhere.lines().nth(1).unwrap().split(' ').next()})).await;
    assert_eq!(page(&answer).0, "elsewhere");
}

#[tokio::test]
async fn an_invalid_cursor_is_refused() {
    let asking = Asking::about(&Session::new().user("日本語")).await;
    let summary = asking.leaf(0..1, "Title").await;
    let (message, summary) = (asking.message(0).await, asking.name(summary).await);
    for (id, cursors) in [(&message, ["1", "9", "-1", "x"]), (&summary, ["1:1", "2:0", "0:99", "7"])] {
        for cursor in cursors {
            assert_eq!(
                asking.refusal("lcm_expand", json!({"summary_id": id, "cursor": cursor})).await,
                format!(
                    "the cursor `{cursor}` belongs to no page of {id}: leave it out to start at the beginning"
                )
            );
        }
    }
    assert_eq!(page(&asking.expand(json!({"summary_id": message, "cursor": 3})).await).0, "本語");
}

#[tokio::test]
async fn absurd_page_sizes_are_limited() {
    let asking = Asking::about(&Session::new().user(&"word ".repeat(50_000))).await;
    let id = asking.message(0).await;
    for (max_tokens, most) in
        [(json!(0), 4_000), (json!("999999"), 8_000), (json!(3.7), 200), (json!(1e6), 8_000)]
    {
        let answer = asking.expand(json!({"summary_id": id, "max_tokens": max_tokens})).await;
        let tokens = lcm_model::tokens::estimate(&answer);
        assert!(tokens <= most && tokens > most / 3, "{max_tokens}: {tokens}");
    }
}

#[tokio::test]
async fn a_range_of_lines_is_returned_byte_for_byte() {
    let lines: Vec<String> = (1..=3_000).map(|n| format!("line {n} – 行\n")).collect();
    let asking = Asking::about(&Session::new().tool("bash", json!({"command": "x"}), &lines.concat())).await;
    let id = asking.message(1).await;
    for (asked, expected) in
        [("7", 6..7), ("1-2", 0..2), ("100-180", 99..180), ("2990-9999", 2989..3000), ("2-2900", 1..2900)]
    {
        let mut arguments = json!({"summary_id": id, "lines": asked, "max_tokens": 800});
        let mut pages = String::new();
        loop {
            let answer = asking.expand(arguments).await;
            let (content, next) = page(&answer);
            pages.push_str(content);
            match next {
                Some(next) => arguments = next,
                None => break,
            }
        }
        assert_eq!(pages, lines[expected].concat(), "{asked}");
    }
    for (asked, what) in [
        ("a-b", "is not a range"),
        ("0-4", "is empty, the first line is 1"),
        ("9-3", "is empty, the first line is 1"),
        ("3001", "is past the end, there are 3000"),
    ] {
        let refusal = asking.refusal("lcm_expand", json!({"summary_id": id, "lines": asked})).await;
        assert_eq!(
            refusal,
            format!("lines `{asked}` {what}: write the first and the last line, such as 100-180")
        );
    }
}
