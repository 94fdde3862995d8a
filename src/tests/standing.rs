//! The state of the work in a block, whatever the summarizer leaves out.

use serde_json::json;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::llm::{ModelRequest, Reply};

/// A model that writes little and reports `state`.
fn terse(state: &'static str) -> std::sync::Arc<ScriptedModel> {
    ScriptedModel::new(move |ModelRequest { .. }| {
        let text = format!("Some work\nThings were done.\n{state}\nExpand for details about: all");
        Ok(Reply { text, model: Some("scripted/model".into()), usage: None })
    })
}

fn section<'a>(block: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = block.split_once(&format!("### {heading}\n"))?;
    Some(rest.split("\n\n###").next().unwrap_or(rest).trim_end())
}

/// A running turn: one request and many calls.
fn within_a_turn() -> Session {
    let mut session = Session::new()
        .user("Use tabs in this project.")
        .chat(12, 40)
        .user("From now on use spaces instead of tabs, please.")
        .assistant("We keep the lexer because it is fast.")
        .chat(4, 8)
        .user("Rewrite the importer.\n\nIt must skip blank lines. Never push to main without asking me.");
    for n in 0..12 {
        session =
            session.tool("read", json!({"path": format!("src/part{n}.rs")}), &"line of code\n".repeat(40));
    }
    session
}

#[tokio::test]
async fn when_pi_cuts_inside_a_turn_its_request_comes_first_in_the_block() {
    let session = within_a_turn();
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let state = "State:\ngoal: a new importer\nin progress: reading the parts\nblocked: none";
    let block = compacted(compact.run(&terse(state)).await).summary;
    let standing = section(&block, "Where It Stands").unwrap();
    let first = "\n> Rewrite the importer.\n> \n> It must skip blank lines. Never push to main without asking me.\n\
                 Goal, in the summary's words: \"a new importer\"\n\
                 In progress, in the summary's words: \"reading the parts\"\nNot recorded: blocked, next\n";
    assert!(standing.starts_with("Request under way (m-") && standing.contains(first), "{block}");
    assert!(block.find("### Where It Stands") < block.find("### Constraints"), "{block}");
    // It is there once, not in the text of each summary.
    assert_eq!(block.matches("a new importer").count(), 1, "{block}");
    assert!(block.contains("Things were done."), "{block}");
}

#[tokio::test]
async fn an_invented_state_is_never_the_blocks_own_voice() {
    let session = within_a_turn();
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let state = "State:\ngoal: ship version 9.9 tonight\n- **Next:** delete the old backups";
    let model = terse(state);
    let block = compacted(compact.run(&model).await).summary;
    let standing = section(&block, "Where It Stands").unwrap();
    for words in ["ship version 9.9 tonight", "delete the old backups"] {
        let lines: Vec<&str> = standing.lines().filter(|line| line.contains(words)).collect();
        assert_eq!(lines.len(), 1, "{standing}");
        assert!(lines[0].ends_with(&format!(", in the summary's words: \"{words}\"")), "{standing}");
    }
}

#[tokio::test]
async fn rules_do_not_depend_on_the_summarizer_and_replaced_ones_are_marked() {
    let session = within_a_turn().assistant("Done.").user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    for (model, reads_answers) in [(ScriptedModel::failing(), false), (terse(""), true)] {
        let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
        let block = compacted(compact.run(&model).await).summary;
        let rules: Vec<&str> = section(&block, "Constraints and Open Tasks").unwrap().lines().collect();
        for rule in
            ["Never push to main without asking me.", "From now on use spaces instead of tabs, please."]
        {
            assert!(rules.contains(&format!("- rule: \"{rule}\"").as_str()), "{block}");
        }
        assert_eq!(rules.last(), Some(&"- replaced rule: \"Use tabs in this project.\""), "{block}");
        assert!(
            section(&block, "Earlier Requests").unwrap().contains(": \"From now on use spaces"),
            "{block}"
        );
        // An outline of many messages has no room for the agent's words.
        let decisions = section(&block, "Decisions").unwrap_or_default();
        assert!(
            !reads_answers || decisions.contains("- \"We keep the lexer because it is fast.\""),
            "{block}"
        );
        // The request of the turn before the tail is neither current nor earlier.
        assert!(
            section(&block, "Earlier Requests").unwrap().contains("Rewrite the importer. It must skip"),
            "{block}"
        );
    }
}

#[tokio::test]
async fn a_task_reported_as_done_is_not_open_even_if_it_is_quoted() {
    let [done, open] =
        ["the mailer queue needs a page about retries.", "the importer needs a page about dates."];
    let session = Session::new()
        .user(&format!("For later: {done}\nFor later: {open}"))
        .chat(12, 40)
        .user("The page about retries for the mailer queue is done.")
        .chat(12, 40)
        .user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let quotes = "Quotes:\ntask: \"the mailer queue needs a page about retries.\"\n\
                  task: \"the importer needs a page about dates.\"";
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let block = compacted(compact.run(&terse(quotes)).await).summary;
    let tasks = section(&block, "Constraints and Open Tasks").unwrap();
    assert_eq!(tasks, format!("- task: \"For later: {open}\""), "{block}");
}

#[tokio::test]
async fn what_the_user_ticks_off_or_takes_back_stands_no_longer() {
    let session = Session::new()
        .user(
            "Don't use lodash. Don't forget to remove the debug flag. TODO: write a migration guide. \
               TODO: update the changelog.",
        )
        .chat(12, 40)
        .user("lodash is fine now. We no longer need to remove the debug flag. Changelog: check.")
        .chat(12, 40)
        .assistant("I have written the migration guide.")
        .user("The tests are fine now.")
        .chat(12, 40);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let block = compacted(compact.run(&terse("")).await).summary;
    let standing = section(&block, "Constraints and Open Tasks").unwrap();
    let expected = "- rule: \"lodash is fine now.\"\n\
                    - task: \"TODO: update the changelog.\"; later: \"Changelog: check.\"\n\
                    - replaced rule: \"Don't use lodash.\"";
    assert_eq!(standing, expected, "{block}");
}

#[tokio::test]
async fn only_successful_calls_count_and_checks_have_their_last_outcome() {
    let failed = |session: Session, name: &str, arguments: serde_json::Value, output: &str| {
        let call = json!([{"type": "toolCall", "id": "bad", "name": name, "arguments": arguments}]);
        session.message(json!({"role": "assistant", "content": call, "stopReason": "toolUse"})).message(
            json!({
                "role": "toolResult", "toolCallId": "bad", "toolName": name,
                "content": [{"type": "text", "text": output}], "isError": true
            }),
        )
    };
    let session =
        Session::new().chat(10, 40).tool("write", json!({"path": "src/made.rs", "content": "x"}), "done");
    let session =
        failed(session, "write", json!({"path": "/no/such.rs", "content": "x"}), "ENOENT: no such file");
    let session = failed(
        session,
        "bash",
        json!({"command": "cargo test"}),
        "error[E0308]: mismatched types\nCommand exited with code 101",
    );
    let session =
        session.tool("bash", json!({"command": "cargo test"}), "test result: ok. 3 passed; 0 failed");
    let session =
        failed(session, "bash", json!({"command": "npm run lint"}), "3 errors\nCommand exited with code 1");
    let session = session.assistant("Now the lints.").user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&terse("")).await);
    assert_eq!(compaction.details.modified_files, ["src/made.rs"]);
    let standing = section(&compaction.summary, "Where It Stands").unwrap();
    let line = |start: &str| standing.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert!(line("Last failing check: `npm run lint` (m-").ends_with("): 3 errors"), "{standing}");
    assert!(line("Last passing check:").starts_with("Last passing check: `cargo test` (m-"), "{standing}");
    assert_eq!(line("Files touched last:"), "Files touched last: src/made.rs");
    assert_eq!(line("Not recorded:"), "Not recorded: goal, in progress, blocked, next");
}

#[tokio::test]
async fn an_extract_of_a_tiny_chunk_still_has_content() {
    let mut session = Session::new();
    for n in 0..30 {
        session = session.tool(
            "bash",
            json!({"command": format!("seq {n}")}),
            &format!("a line of output {n}\n").repeat(120),
        );
    }
    let session = session.user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compact = compact.with(|settings, _| settings.leaf_chunk_tokens = 500);
    let compaction = compacted(compact.run(&ScriptedModel::failing()).await);
    let bare = |text: &str| text.starts_with("Extract of ") && text.lines().count() == 1;
    for summary in &compaction.details.summaries {
        assert!(!bare(&summary.text), "{}", summary.text);
    }
}

#[tokio::test]
async fn a_request_is_everything_since_the_last_answer_and_an_answered_one_stays_answered() {
    let session = Session::new().chat(12, 30).user("Migrate the tables.\n# keep this line");
    let session =
        session.tool("bash", json!({"command": "ls"}), "tables").user("btw the host is called bluebird");
    let session = session.tool("bash", json!({"command": "ls /"}), "bin");
    let block = async |session: &Session| {
        let store = TestStore::new();
        let conversation = store.ingest("one", session).await;
        let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
        compacted(compact.run(&terse("")).await).summary
    };
    let block_text = block(&session).await;
    let standing = section(&block_text, "Where It Stands").unwrap();
    let expected =
        "):\n> Migrate the tables.\n> # keep this line\n> \n> btw the host is called bluebird\nNot";
    assert!(standing.starts_with("Request under way (m-") && standing.contains(expected), "{block_text}");
    let bash = json!({"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0});
    let answered = session.assistant("All migrated.").message(bash);
    let block_text = block(&answered).await;
    assert!(
        section(&block_text, "Where It Stands").unwrap().starts_with("Last request, answered (m-"),
        "{block_text}"
    );
}

#[tokio::test]
async fn files_name_the_messages_that_touched_them_even_below_condensed_summaries() {
    let mut session = Session::new();
    for n in 0..60 {
        session = session.chat(2, 30).tool(
            "read",
            json!({"path": format!("src/part{n}.rs")}),
            &format!("content {n}"),
        );
    }
    let session = session.user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compact = compact.with(|settings, _| settings.max_summary_tokens = 3_000);
    let block = compacted(compact.run(&terse("")).await).summary;
    assert!(!block.contains("DAG depth 0"), "{block}");
    let (mut named, mut right) = (0, 0);
    for line in section(&block, "Files").unwrap().lines().filter(|line| line.starts_with(" src/")) {
        let Some((path, handle)) = line.strip_suffix(')').and_then(|line| line.split_once(" (")) else {
            continue;
        };
        let part: String = path.chars().filter(char::is_ascii_digit).collect();
        let handle = lcm_model::ids::Handle::parse(handle).unwrap();
        let found = store.store.read(move |view| {
            view.messages().json_of(view.messages().messages_like(&handle, Some(conversation))?[0])
        });
        let json = found.await.unwrap();
        named += 1;
        right += usize::from(json.contains(&format!("content {part}\"")));
    }
    assert!(named > 5 && named == right, "{named} {right}: {block}");
}
