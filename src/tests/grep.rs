//! `lcm_grep`: what a search finds, and what it refuses.

use serde_json::{Value, json};

use super::asking::{Asking, ageless, ask, first, roles, work};
use super::support::Session;
use lcm_model::error::Code;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;

#[tokio::test]
async fn a_result_has_the_message_its_summary_and_the_matching_words() {
    let asking = Asking::about(&work()).await;
    let summary = asking.leaf(0..5, "Login timeout\nports").await;
    let (summary, message) = (asking.name(summary).await, asking.message(0).await);
    assert_eq!(
        ageless(&asking.grep(json!({"query": "staging port"})).await),
        format!(
            "In {summary}:\n{message} · user · long ago: Please fix the login timeout. The «staging port» is 8443, \
             never use 8080.\nTo read one in full: lcm_expand {{\"summary_id\":\"{message}\"}}."
        )
    );
}

#[tokio::test]
async fn identifiers_paths_phrases_questions_and_ideographs_find_their_message_first() {
    let asking = Asking::about(&work()).await;
    for (query, expected) in [
        ("getUserName", "«getUserName»"),
        ("UserName", "get«UserName»"),
        ("user name", "get«UserName»"),
        ("MAX_RETRIES", "«MAX_RETRIES»"),
        ("src/auth/session_store.ts", "«src/auth/session_store.ts»"),
        ("session_store.ts", "«session_store.ts»"),
        ("sessionStore", "«session_store»"),
        ("`docs/deploy.md`", "«docs/deploy.md»"),
        ("\"connection was refused\"", "«connection was refused»"),
        ("ECONNREFUSED 127.0.0.1:5432", "«ECONNREFUSED 127.0.0.1:5432»"),
        ("Why was the connection refused?", "«connection» was «refused»"),
        ("compaction", "«compactions»"),
        ("HTTP server", "«HTTPServer»"),
        ("构建失败", "昨天的«构建失败»了"),
        ("昨天为什么构建失败", "«昨天»的«构建失败»了"),
        ("部署", "«部署»脚本"),
        ("podman", "用«podman»发布"),
        ("gateway", "api«Gateway»端"),
        ("8443", "«8443»"),
    ] {
        let answer = asking.grep(json!({"query": query})).await;
        assert!(first(&answer).contains(expected), "{query}: {answer}");
    }
}

#[tokio::test]
async fn inexact_queries_find_what_was_meant() {
    let asking = Asking::about(&work()).await;
    for (query, expected) in [
        // A prefix, a part, a misspelling, and a misspelling next to another word.
        ("getUserN", "«getUserN»ame"),
        ("127.0.0", "«127.0.0»"),
        ("sername", "«getUserName»"),
        ("ECONNREFSUED", "«ECONNREFUSED»"),
        ("compcation", "«compactions»"),
        ("conection postgres", "«connection»"),
        // Several words that the text writes as one.
        ("user name", "get«UserName»"),
        ("http server settings", "«HTTPServer settings»"),
    ] {
        let answer = asking.grep(json!({"query": query})).await;
        assert!(first(&answer).contains(expected), "{query}: {answer}");
    }
    for query in ["getSomethingElse", "xyz", "compilation"] {
        let answer = asking.grep(json!({"query": query})).await;
        assert!(answer.starts_with("Nothing found"), "{query}: {answer}");
    }
}

#[tokio::test]
async fn words_with_a_misspelled_or_stemmed_ending_are_found() {
    let session = Session::new()
        .user("The evidence is in drainCachedValveState, the configuration is not.")
        .assistant("I am writing, and taking that down.")
        .user("Go on.");
    let asking = Asking::about(&session).await;
    for (query, expected) in [
        ("evidene", "«evidence»"),
        ("configuraiton", "«configuration»"),
        ("draincarhedvalvestate", "«drainCachedValveSt»ate"),
        ("tnking", "«taking»"),
        ("writnig", "«writing»"),
    ] {
        let answer = asking.grep(json!({"query": query})).await;
        assert!(first(&answer).contains(expected), "{query}: {answer}");
    }
    for query in ["evident", "talking", "reconsideration"] {
        let answer = asking.grep(json!({"query": query})).await;
        assert!(!answer.contains("«configuration»"), "{query}: {answer}");
    }
}

#[tokio::test]
async fn results_with_only_similar_words_are_pointed_out() {
    let talk = |text: &str| Session::new().user(text).assistant("Noted.").user("Go on.");
    let asking = Asking::about(&talk("There are zebra8 and zebra9.")).await;
    let says = "Nothing in this session has `zebra99`, thinking aside: the results have only similar words, or parts. ";
    let query = json!({"query": "zebra99"});
    let answer = asking.grep(query.clone()).await;
    assert!(answer.starts_with(&format!("{}\nm-", says.trim_end())), "{answer}");
    let answer = asking.command("search zebra99").await;
    assert!(answer.starts_with(&format!("{}\n\nm-", says.trim_end())), "{answer}");
    let not_searched = "Other branches and sessions were not searched: ";
    let of_branch = says.replace("session", "branch");
    let answer = asking.grep(json!({"query": "zebra99", "branch": "current"})).await;
    assert!(answer.starts_with(&format!("{of_branch}{not_searched}leave branch out.\nm-")), "{answer}");
    let answer = asking.command("search zebra99 --branch").await;
    assert!(answer.starts_with(&format!("{of_branch}{not_searched}omit --branch.\n\nm-")), "{answer}");
    let fork = talk("There are zebra8 and zebra9.").user("It is zebra99.").at("e3").assistant("Gone on.");
    let answer = Asking::about(&fork).await.command("search zebra99 --branch").await;
    assert!(answer.starts_with(&format!("{of_branch}{not_searched}omit --branch.\n\nm-")), "{answer}");
    let says = "Nothing in this session has `zebra99`, thinking aside: the results have the other words.";
    let answer = asking.command("search zebra9 zebra99").await;
    assert!(answer.starts_with(&format!("{says}\n\nm-")), "{answer}");
    let answer = asking.grep(json!({"query": "zebra9 noted", "role": "user"})).await;
    let filtered =
        "With these filters, nothing has `noted`, thinking aside: the results have the other words.\nm-";
    assert!(answer.starts_with(filtered), "{answer}");
    let json = asking.json("search zebra9 zebra99").await;
    assert_eq!((&json["unknown"], &json["absent"]), (&json!([]), &json!(["zebra99"])));
    let answer = asking.grep(json!({"query": "zebra9 zebra99"})).await;
    assert!(answer.starts_with(&format!("{says}\nm-")), "{answer}");
    let summed = Asking::about(&talk("There are zebra8 and zebra9.")).await;
    summed.leaf(0..2, "Zebras\nOf zebra99 too.").await;
    assert!(!summed.command("search zebra9 zebra99").await.contains("Nothing in"));
    for found in ["zebra9", "zebra"] {
        let answer = asking.command(&format!("search {found}")).await;
        assert!(
            answer.starts_with("m-") && asking.json(&format!("search {found}")).await["unknown"] == json!([]),
            "{answer}"
        );
    }
    let says = "Nothing in this session has `zebra99`, thinking aside: the results have only similar words, or parts. ";
    // Another session has it, and so does the question itself.
    let asking = asking.with_session("two", &talk("It is zebra99.")).await;
    let answer = asking.command("search zebra99 --session one").await;
    assert!(answer.contains(" or parts. Not searched: 1 other session; add --project.\n"), "{answer}");
    let answer = asking.grep(json!({"query": "zebra99", "session": "this"})).await;
    assert!(answer.contains(" Not searched: 1 other session; pass \"session\":\"project\".\nm-"), "{answer}");
    assert!(asking.command("search zebra99 --project").await.starts_with("m-"));
    let asked =
        Session::new().user("There are zebra8 and zebra9.").assistant("Noted.").user("Where is zebra99?");
    let answer = Asking::about(&asked).await.grep(query).await;
    assert!(answer.contains(says.trim_end()), "{answer}");
}

#[tokio::test]
async fn a_word_that_lacks_an_ending_is_only_similar() {
    let talk = |text: &str| Session::new().user(text).assistant("Noted.").user("Go on.");
    let asking = Asking::about(&talk("Tell them to pick the anthem.")).await;
    let answer = asking.command("search theme").await;
    let says = "Nothing in this session has `theme`, thinking aside: the results have only similar words, or parts. ";
    assert!(answer.starts_with(&format!("{}\n\nm-", says.trim_end())), "{answer}");
    let answer = asking.command("search theme pick").await;
    assert!(
        answer.starts_with("Nothing in this session has `theme`, thinking aside: the results have the other"),
        "{answer}"
    );
    let answer = asking.command("search theme --role assistant").await;
    assert!(!answer.contains("Without these filters, it is found"), "{answer}");
    // A word that is written as a part of another one is found: here as `darkthem`, after the index's rules.
    let asking = asking.with_session("two", &talk("Set darktheme for them.")).await;
    let answer = asking.command("search theme --project").await;
    assert!(answer.starts_with("m-") && answer.contains("«darktheme»"), "{answer}");
    let answer = asking.command("search theme").await;
    assert!(answer.contains("«darktheme»") && !answer.contains("Nothing in"), "{answer}");
}

/// The index keeps the stem of a word.
#[tokio::test]
async fn a_count_is_of_the_word_and_its_forms() {
    let talk = ["A custom import.", "The important customers decide.", "Imports are customizable."];
    let talk = talk.into_iter().fold(Session::new(), |talk, said| talk.user(said).assistant("Noted."));
    let asking = Asking::about(&talk.user("Go on.")).await;
    // So is what a search knows.
    let other =
        Asking::about(&Session::new().user("A custom import.").assistant("Noted.").user("Go on.")).await;
    for (word, is_known) in
        [("important", false), ("customer", false), ("imports", true), ("impo", true), ("custom", true)]
    {
        let answer = other.command(&format!("search {word}")).await;
        assert_eq!(!answer.contains("only similar words"), is_known, "{word}: {answer}");
    }
    for (word, n) in
        [("customer", 1), ("custom", 1), ("important", 1), ("import", 2), ("deciding", 1), ("noted", 3)]
    {
        let counted = asking.grep(json!({"query": word, "count": "role"})).await;
        assert!(counted.starts_with(&format!("{n} message")), "{word}: {counted}");
    }
}

/// A tag is `v2.0.1`, and a package is 2.0.1.
#[tokio::test]
async fn a_version_is_found_and_counted_with_and_without_its_letter() {
    let talk = Session::new().user("We tagged v2.0.1 today.").assistant("libfoo is 1.4.2.").user("Go on.");
    let asking = Asking::about(&talk).await;
    for (query, found) in
        [("2.0.1", "«v2.0.1»"), ("v1.4.2", "«1.4.2»"), ("V2.0.1", "v2.0.1"), ("1.4.2", "1.4.2")]
    {
        let answer = asking.command(&format!("search {query}")).await;
        assert!(answer.starts_with("m-") && answer.contains(found), "{query}: {answer}");
        let counted = asking.grep(json!({"query": query, "count": "role"})).await;
        assert!(counted.starts_with("1 message of this session matches"), "{query}: {counted}");
    }
    for other in ["2.0.2", "v2.1.1", "v1.4.20"] {
        let answer = asking.command(&format!("search {other}")).await;
        assert!(answer.starts_with("Nothing"), "{other}: {answer}");
        let counted = asking.grep(json!({"query": other, "count": "role"})).await;
        assert!(counted.starts_with("0 messages"), "{other}: {counted}");
    }
}

/// Messages have times, and seldom say them.
#[tokio::test]
async fn a_date_in_a_query_is_not_denied() {
    let asking =
        Asking::about(&Session::new().user("The tests pass.").assistant("Noted.").user("Go on.")).await;
    let answer = asking.command("search tests on 2 November 2025").await;
    assert!(answer.starts_with("m-"), "{answer}");
    let answer = asking.grep(json!({"query": "what happened in October 2025"})).await;
    assert!(answer.starts_with("Nothing found"), "{answer}");
    assert!(
        answer.contains(" For what was said then, pass \"after\":\"2025-10-01\",\"before\":\"2025-11-01\"."),
        "{answer}"
    );
    let answer = asking.command("search anything on 1 October 2025").await;
    assert!(
        answer.contains(" For what was said then, pass --after 2025-10-01 --before 2025-10-02."),
        "{answer}"
    );
    let answer = asking.command("search anything of October --after 2025-10-01").await;
    assert!(!answer.contains("said then"), "{answer}");
}

#[tokio::test]
async fn a_branchs_stretches_match_its_entries() {
    let session = Session::new().chat(3, 5).at("e2").chat(2, 5).at("e4").chat(1, 5).at("e8").chat(2, 5);
    let asking = Asking::about(&session).await.with_session("two", &Session::new().chat(2, 3)).await;
    let leaves: Vec<String> = (1..=16).map(|n| format!("e{n}")).collect();
    let conversation = asking.scope.conversation;
    let found = asking.store.store.read(move |view| {
        let mut found = Vec::new();
        for leaf in leaves {
            let stretches = view.messages().row_ranges(conversation, &leaf)?;
            let on: std::collections::HashSet<_> = (view.messages().branch(conversation, &leaf)?.into_iter())
                .filter_map(|entry| match entry.step {
                    lcm_model::dag::Step::Message(message) => Some(message.id),
                    _ => None,
                })
                .collect();
            for message in (1..=20).map(lcm_model::ids::MessageId) {
                found
                    .push((view.messages().is_on(&stretches, conversation, message)?, on.contains(&message)));
            }
        }
        Ok(found)
    });
    let found = found.await.unwrap();
    assert!(found.iter().any(|(is_on, _)| *is_on) && found.iter().any(|(is_on, _)| !is_on));
    assert!(found.iter().all(|(is_on, expected)| is_on == expected), "{found:?}");
}

#[tokio::test]
async fn a_regular_expression_searches_the_raw_text_newest_first() {
    let asking = Asking::about(&work()).await;
    let regex = async |pattern: &str| asking.grep(json!({"query": pattern, "mode": "regex"})).await;
    assert!(first(&regex(r"127\.0\.0\.1:\d+").await).contains("ECONNREFUSED «127.0.0.1:5432»"));
    assert!(first(&regex(r"^const \w+ = \d;$").await).contains("«const MAX_RETRIES = 5;»"));
    assert_eq!(roles(&regex("cache|weather|login").await), ["assistant", "user", "user"]);
    assert!(
        regex("econnrefused")
            .await
            .starts_with("Nothing found for `econnrefused` in 11 searchable messages of this session.")
    );
}

/// Pi has no shell that takes them off.
#[tokio::test]
async fn quotation_marks_around_an_expression_are_no_part_of_it() {
    let asking =
        Asking::about(&Session::new().user("Set \"port\": 8080.").assistant("Noted.").user("Go on.")).await;
    for expression in ["\"port.*80\"", "'port.*80'", "port.*80", "\"port\": \\d", "\"port\""] {
        let answer = asking.command(&format!("search --regex {expression}")).await;
        assert!(answer.starts_with("m-"), "{expression}: {answer}");
    }
    assert!(asking.command("search --regex 'port\": 9'").await.starts_with("Nothing found"));
}

#[tokio::test]
async fn role_and_tool_narrow_a_search() {
    let asking = Asking::about(&work()).await;
    let roles_of = async |arguments| roles(&asking.grep(arguments).await).join(", ");
    assert_eq!(roles_of(json!({"query": "timeout port cache", "role": "user"})).await, "user, user");
    assert_eq!(roles_of(json!({"query": "error retries", "tool": "bash"})).await, "toolResult bash");
    // Claude Code writes its tools with capitals.
    assert_eq!(roles_of(json!({"query": "error retries", "tool": "Bash"})).await, "toolResult bash");
    let nothing = asking.grep(json!({"query": "error", "tool": "find", "role": "toolResult"})).await;
    assert_eq!(
        nothing,
        "Nothing found for `error` with role toolResult from the tool find in 11 searchable messages of this session. Without these filters, it is found."
    );
}

#[tokio::test]
async fn branch_session_file_and_time_narrow_a_search() {
    let session = Session::new()
        .user("the walrus plan")
        .tool("read", json!({"path": "docs/walrus.md"}), "A walrus weighs a ton.")
        .at("e1")
        .message(json!({"role": "user", "content": "the walrus feast", "timestamp": 1_763_800_000_000_i64}))
        .user("Which?");
    let asking =
        Asking::about(&session).await.with_session("two", &Session::new().user("the walrus of two")).await;
    let count = async |mut arguments: Value| {
        arguments["query"] = "walrus".into();
        let text = roles(&asking.grep(arguments.clone()).await).len();
        arguments["mode"] = "regex".into();
        let regex = roles(&asking.grep(arguments.clone()).await).len();
        assert_eq!(text, regex, "{arguments}");
        text
    };
    assert_eq!(count(json!({})).await, 4);
    assert_eq!(count(json!({"branch": "current"})).await, 2);
    assert_eq!(count(json!({"session": "project"})).await, 5);
    assert_eq!(count(json!({"session": "two"})).await, 1);
    assert_eq!(count(json!({"session": "one"})).await, 4);
    // The call, and its result, which does not name the file.
    assert_eq!(count(json!({"path": "docs/walrus.md"})).await, 2);
    assert_eq!(count(json!({"path": "docs/other.md"})).await, 0);
    assert_eq!(count(json!({"after": "2025-11-22", "before": "2025-11-23"})).await, 1);
    assert_eq!(count(json!({"before": "2025-11-21", "role": "user"})).await, 1);
    assert_eq!(
        asking
            .grep(json!({"query": "walrus", "path": "a.md", "branch": "current", "after": "2025-11-22"}))
            .await,
        "Nothing found for `walrus` about a.md since 2025-11-22 00:00 on the current branch in 5 searchable messages of this \
         session. Without these filters, it is found. Other branches and sessions were not searched: leave branch out."
    );
}

#[tokio::test]
async fn any_query_is_valid_in_the_index_and_the_database() {
    let asking = Asking::about(&work()).await;
    for query in [
        "\"", "\"\"port", "port\"", "AND", "port AND", "NOT port", "port*", "NEAR(port, 2)", "body:port",
        "{parts}: x", "^port", "(port", "port)", "' OR 1=1 --", "'; DROP TABLE messages; --", "port\u{0}AND",
        "-port", "+", "a:b:c", "%_%", "😀", "parts : port", "port\u{7}\u{1b}[31m", "\\", "🦀 port",
    ] {
        for mode in ["text", "regex"] {
            let arguments = json!({"query": query, "mode": mode, "scope": "all"});
            let answer = asking.blocks("lcm_grep", arguments).await;
            let refused = answer.err().map(|error| error.code());
            assert!(refused.is_none_or(|code| code == Code::Invalid), "{mode} {query}: {refused:?}");
        }
    }
    assert!(first(&asking.grep(json!({"query": "NEAR(port, 2)"})).await).contains("«port»"));
    assert!(
        first(&asking.grep(json!({"query": "'; DROP TABLE messages; -- timeout"})).await)
            .contains("«timeout»")
    );
    let huge = "timeout ".repeat(100_000);
    assert!(first(&asking.grep(json!({"query": huge})).await).contains("«timeout»"));
}

#[tokio::test]
async fn a_session_is_found_by_the_name_in_answers() {
    let elsewhere = Session::new().user("The walrus sleeps.");
    let asking = Asking::about(&work()).await.with_session("m-0123ab", &elsewhere).await;
    for name in ["m-0123ab", "\\m-0123ab", " \\m-01"] {
        let found = asking.grep(json!({"query": "walrus", "session": name})).await;
        assert!(found.contains("The «walrus» sleeps."), "{name}: {found}");
    }
}

#[tokio::test]
async fn a_senseless_query_is_refused_with_a_correction() {
    let asking = Asking::about(&work()).await;
    for (arguments, sentence) in [
        (json!({}), "lcm_grep: query is missing (nothing was given)"),
        (json!({"text": "a"}), "lcm_grep: query is missing (text was given)"),
        (json!({"query": ["a"]}), "lcm_grep: query must be a string, not [\"a\"]"),
        (json!({"query": "a", "full": "perhaps"}), "lcm_grep: full must be true or false, not \"perhaps\""),
        (
            json!({"query": "a", "session": "nobody"}),
            "there is no session `nobody` in this project: session is \"this\", \"project\" or the beginning of a \
             session's id",
        ),
        (
            json!({"query": "a", "after": "soon"}),
            "after `soon` is not a time: write an ISO date or time such as 2026-11-20 or 2026-11-20T09:30Z, or how long \
             ago, such as 2h, 3d or yesterday",
        ),
        (
            json!({"query": "a", "after": "2026-11-20", "before": "2026-11-19"}),
            "after is later than before: nothing can lie between, exchange them",
        ),
        (
            json!({"query": "  "}),
            "the query is empty: give the words to look for, or a regular expression with mode \"regex\"",
        ),
        (
            json!({"query": "=>"}),
            "there is no word in `=>` to look for: a regular expression finds other signs too",
        ),
        (
            json!({"query": "(foo", "mode": "regex"}),
            "`(foo` is not a valid regular expression in Rust syntax (unclosed group): escape literal characters \
             with a backslash, or search for words",
        ),
        (
            json!({"query": r"(?=a)", "mode": "regex"}),
            "`(?=a)` is not a valid regular expression in Rust syntax (look-around, including look-ahead and look-behind, \
             is not supported): escape literal characters with a backslash, or search for words",
        ),
        (
            json!({"query": r"(\w{500}){500}", "mode": "regex"}),
            r"the regular expression `(\w{500}){500}` is too large: use fewer or smaller repetitions",
        ),
        (json!({"query": "a", "mode": "fuzzy"}), "lcm_grep: mode must be one of text, regex, not \"fuzzy\""),
        (json!({"query": "a", "limit": "many"}), "lcm_grep: limit must be a number, not \"many\""),
        (
            json!({"query": "a", "cursor": "x"}),
            "the cursor `x` belongs to no answer of this search: leave it out to start with the first results",
        ),
        (json!(["a"]), "lcm_grep: the arguments must be a JSON object, not `[\"a\"]`"),
    ] {
        assert_eq!(asking.refusal("lcm_grep", arguments.clone()).await, sentence, "{arguments}");
    }
    let lenient = json!({"query": "port", "limit": 1e6, "cursor": null, "unknown": [1], "mode": null});
    assert_eq!(roles(&asking.grep(lenient).await), ["user"]);
    for limit in [json!(1), json!("1"), json!(1.9)] {
        assert_eq!(roles(&asking.grep(json!({"query": "the", "limit": limit})).await).len(), 1, "{limit}");
    }
}

#[tokio::test]
async fn private_messages_and_answers_of_the_tools_are_not_found() {
    let session = Session::new()
        .message(
            json!({"role": "bashExecution", "command": "env", "output": "zebra", "excludeFromContext": true}),
        )
        .message(json!({"role": "system", "content": "zebra"}))
        .message(json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "zebra"}]}))
        .tool("lcm_grep", json!({"query": "zebra"}), "m-0000000000 · user: zebra")
        .user("rewrite me")
        .user("Where was that?")
        .entry("context_edit", json!({"targetId": "e6", "replacement": {"content": "zebra"}}));
    let asking = Asking::about(&session).await;
    for mode in ["text", "regex"] {
        let answer = asking.grep(json!({"query": "zebra", "mode": mode, "session": "project"})).await;
        assert!(answer.starts_with("Nothing found"), "{mode}: {answer}");
        // An edited message is found by its original text.
        let answer = asking.grep(json!({"query": "rewrite", "mode": mode})).await;
        assert_eq!(roles(&answer), ["user"], "{mode}: {answer}");
    }
}

#[tokio::test]
async fn the_current_request_is_not_a_result() {
    let session =
        Session::new().user("the walrus plan").assistant("Noted.").user("What was the walrus plan?");
    let asking = Asking::about(&session).await;
    for mode in ["text", "regex"] {
        let answer = asking.grep(json!({"query": "walrus plan", "mode": mode})).await;
        assert_eq!(roles(&answer), ["user"], "{mode}: {answer}");
        assert!(answer.contains("the «walrus plan»") && !answer.contains("What was"), "{mode}: {answer}");
    }
}

#[tokio::test]
async fn while_a_newer_request_is_queued_the_last_stored_one_is_a_result() {
    let mut asking = Asking::about(&Session::new().user("Where is the walrus plan?")).await;
    asking.scope.newer_request = true;
    for mode in ["text", "regex"] {
        let answer = asking.grep(json!({"query": "walrus plan", "mode": mode})).await;
        assert_eq!(roles(&answer), ["user"], "{mode}: {answer}");
    }
}

#[tokio::test]
async fn a_search_does_not_find_the_message_that_makes_it() {
    let calls = json!([
        {"type": "text", "text": "the walrus plan, then"},
        {"type": "toolCall", "id": "a|b", "name": "codemode", "arguments": {"code": "await tools.read(), tools.lcm_grep('walrus plan')"}},
        {"type": "toolCall", "id": "c", "name": "lcm_grep", "arguments": {}},
    ]);
    let session = Session::new()
        .assistant("the walrus plan")
        .user("Which one was it?")
        .message(json!({"role": "assistant", "content": calls, "stopReason": "toolUse"}))
        .message(json!({"role": "toolResult", "toolCallId": "c", "toolName": "lcm_grep", "content": "walrus plan"}));
    let mut asking = Asking::about(&session).await;
    for (call, hits) in [
        (Some("a|b/1"), 1),
        (Some("a|b/1/2"), 1),
        (Some("c"), 1),
        (Some("a|b2"), 2),
        (Some("d"), 2),
        (None, 2),
    ] {
        asking.scope.call = call.map(ToOwned::to_owned);
        for mode in ["text", "regex"] {
            let answer = asking.grep(json!({"query": "walrus plan", "mode": mode})).await;
            assert_eq!(roles(&answer), vec!["assistant"; hits], "{call:?} {mode}: {answer}");
        }
    }
}

#[tokio::test]
async fn scripts_that_only_search_are_not_found() {
    let (search, other) = (("lcm_grep", json!({"query": "zebra"}), "ok"), ("bash", json!({}), "ok"));
    let session = Session::new()
        .script(
            "tools.lcm_grep({query: 'zebra'})",
            std::slice::from_ref(&search),
            "m-0000000000 · user: zebra",
        )
        .script("tools.lcm_grep('zebra'); tools.bash()", &[search, other], "a zebra")
        .script("return 'zebra'", &[], "zebra")
        .user("Where was that?");
    let asking = Asking::about(&session).await;
    for mode in ["text", "regex"] {
        let answer = asking.grep(json!({"query": "zebra", "mode": mode})).await;
        let found = answer.lines().filter(|line| line.starts_with("m-")).count();
        assert!(found == 4 && !answer.contains("m-0000000000"), "{mode}: {answer}");
    }
}

#[tokio::test]
async fn summaries_are_found_along_with_their_messages() {
    let asking = Asking::about(&work()).await;
    asking.leaf(0..5, "Timeout of the login\nThe staging port is 8443.").await;
    let summaries = async |scope: &str, mode: &str| {
        let answer = asking.grep(json!({"query": "staging port", "scope": scope, "mode": mode})).await;
        answer.lines().map(|line| line[..2].to_owned()).filter(|line| line.ends_with('-')).collect::<Vec<_>>()
    };
    for mode in ["text", "regex"] {
        assert_eq!(summaries("messages", mode).await, ["m-"], "{mode}");
        assert_eq!(summaries("summaries", mode).await, ["s-"], "{mode}");
        assert_eq!(summaries("all", mode).await, ["m-", "s-"], "{mode}");
    }
}

/// A fork goes on from messages that the session has too.
#[tokio::test]
async fn a_forks_summary_is_found_in_the_fork() {
    let begun = Session::new().user("Round the invoices.").assistant("Noted.");
    let (one, two) = (begun.clone().user("Go on."), begun.user("The wombat rule.").assistant("Noted."));
    let asking = Asking::about(&two.user("Go on.")).await;
    asking.leaf(0..4, "Rules\nThe wombat rule for invoices.").await;
    let asking = asking.with_session("two", &one).await;
    let of = |line: &str| format!("search wombat invoices --summaries {line}");
    assert!(asking.command(&of("--session one")).await.starts_with("s-"));
    let answer = asking.command(&of("--session two")).await;
    assert!(answer.starts_with("Nothing found"), "{answer}");
    let answer =
        ask(&asking.store.store, &Scope::at(ConversationId(2), None), &of("--project")).await.unwrap().text;
    assert!(answer.starts_with("s-") && answer.contains("in session one"), "{answer}");
}

#[tokio::test]
async fn a_session_without_a_leaf_is_still_searched() {
    let mut asking = Asking::about(&work()).await;
    asking.scope.leaf = None;
    assert!(first(&asking.grep(json!({"query": "8443"})).await).contains("«8443»"));
}
