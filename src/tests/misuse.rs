//! Senseless calls of all three tools: each gets one sentence with a correction, and none does harm.

use serde_json::{Value, json};

use super::asking::Asking;
use super::support::Session;
use crate::tools::Block;
use lcm_model::error::Code;

async fn asked() -> Asking {
    let session = Session::new().user("The port is 8443.").assistant("Noted.").chat(10, 3).user("What now?");
    Asking::about(&session).await.with_session("two", &Session::new().user("elsewhere")).await
}

#[tokio::test]
async fn a_wrong_value_is_named_with_a_correction() {
    let asking = asked().await;
    let id = asking.message(0).await;
    let grep = |name: &str, value: Value| ("lcm_grep", json!({"query": "port", name: value}));
    let expand = |name: &str, value: Value| ("lcm_expand", json!({"summary_id": id, name: value}));
    let count = |name: &str, value: &str| {
        format!("{name} must be a number from 0 to 1000000, not {value}: leave it out for the default")
    };
    for ((tool, arguments), sentence) in [
        (grep("limit", json!(-1)), count("limit", "-1")),
        (grep("limit", json!("-20")), count("limit", "\"-20\"")),
        (grep("limit", json!(1e12)), count("limit", "1000000000000.0")),
        (grep("context", json!(-3)), count("context", "-3")),
        (grep("limit", json!(["20"])), "limit must be a number, not [\"20\"]".into()),
        (grep("limit", json!("NaN")), "limit must be a number, not \"NaN\"".into()),
        (grep("limit", json!("inf")), count("limit", "\"inf\"")),
        (grep("mode", json!(["regex"])), "mode must be one of text, regex, not [\"regex\"]".into()),
        (
            grep("scope", json!("everything")),
            "scope must be one of messages, summaries, all, sessions, not \"everything\"".into(),
        ),
        (grep("session", json!({"id": 1})), "session must be a string, not {\"id\":1}".into()),
        (grep("full", json!("yes")), "full must be true or false, not \"yes\"".into()),
        (expand("max_tokens", json!(-1)), count("max_tokens", "-1")),
        (expand("max_tokens", json!(1e300)), count("max_tokens", "1e+300")),
        (expand("depth", json!(-1)), count("depth", "-1")),
        (expand("around", json!(-2)), count("around", "-2")),
        (expand("around", json!("all")), "around must be a number, not \"all\"".into()),
        (expand("raw", json!([])), "raw must be true or false, not []".into()),
        (expand("lines", json!(["1", "2"])), "lines must be a string, not [\"1\",\"2\"]".into()),
        (expand("query", json!(["a"])), "query must be a string, not [\"a\"]".into()),
        (("lcm_expand", json!({})), "summary_id is missing (nothing was given)".into()),
        (("lcm_expand", json!({"id": "m-1"})), "summary_id is missing (id was given)".into()),
        (("lcm_expand", json!({"summary_id": null})), "summary_id is missing (nothing was given)".into()),
        (("lcm_expand", json!({"summary_id": [id]})), format!("summary_id must be a string, not [\"{id}\"]")),
        (
            ("lcm_describe", json!({"section": "all"})),
            "section must be one of overview, recent, earliest, by_id, not \"all\"".into(),
        ),
        (
            ("lcm_describe", json!({"section": 3})),
            "section must be one of overview, recent, earliest, by_id, not 3".into(),
        ),
    ] {
        let refusal = asking.refusal(tool, arguments.clone()).await;
        assert_eq!(refusal, format!("{tool}: {sentence}"), "{arguments}");
    }
}

#[tokio::test]
async fn contradictory_arguments_name_the_one_to_leave_out() {
    let asking = asked().await;
    for (tool, arguments, sentence) in [
        (
            "lcm_grep",
            json!({"query": "a", "role": "user", "tool": "bash"}),
            "leave out role user or tool bash: only toolResult messages come from a tool",
        ),
        (
            "lcm_grep",
            json!({"query": "a", "scope": "summaries", "role": "user"}),
            "role is of messages and scope is summaries: leave one of them out",
        ),
        (
            "lcm_grep",
            json!({"query": "a", "scope": "summaries", "path": "a.rs"}),
            "path is of messages and scope is summaries: leave one of them out",
        ),
        (
            "lcm_grep",
            json!({"query": "a", "after": "1h", "before": "2d"}),
            "after is later than before: nothing can lie between, exchange them",
        ),
        (
            "lcm_describe",
            json!({"section": "recent", "summary_id": "s-12"}),
            "sections recent and earliest take no summary_id: leave it out, or ask for section by_id",
        ),
        (
            "lcm_describe",
            json!({"section": "by_id"}),
            "section by_id needs a summary_id, e.g. {\"section\":\"by_id\",\"summary_id\":\"s-1a2b3c4d5e\"}",
        ),
    ] {
        assert_eq!(asking.refusal(tool, arguments.clone()).await, sentence, "{arguments}");
    }
    let misnamed = json!({"query": "port", "file": "src/main.rs", "count": null, "mode": "text"});
    let answer = asking.grep(misnamed.clone()).await;
    assert!(answer.starts_with("Ignored: `file`. lcm_grep takes query, mode, "), "{answer}");
    let blocks = asking.blocks("lcm_grep", misnamed).await.unwrap();
    assert!(
        blocks.iter().any(
            |block| matches!(block, Block::Data(data) if data["note"].as_str().unwrap().contains("Ignored: `file`."))
        ),
        "{blocks:?}"
    );
    let meant = json!({"query": "port", "role": "toolResult", "tool": "bash"});
    assert!(asking.grep(meant).await.starts_with("Nothing found"));
}

#[tokio::test]
async fn what_looks_like_a_filter_in_a_query_is_said_to_be_words() {
    let asking = Asking::about(&Session::new().user("a walrus, by this user").user("and now?")).await;
    let advice =
        |word: &str, filter: &str| format!("`{word}` is searched for as words; to filter, pass {filter}.");
    for query in ["walrus role:user", "nowhere Role:user"] {
        let word = query.split_once(' ').unwrap().1;
        let (tool, command) = (advice(word, r#""role":"user""#), advice(word, "--role user"));
        for arguments in [json!({"query": query}), json!({"query": query, "count": "role"})] {
            let answer = asking.grep(arguments.clone()).await;
            assert!(answer.contains(&tool), "{arguments}: {answer}");
            let blocks = asking.blocks("lcm_grep", arguments).await.unwrap();
            let is_noted = |block: &Block| matches!(block, Block::Data(data) if data["note"].as_str().unwrap().contains(&tool));
            assert!(blocks.iter().any(is_noted), "{blocks:?}");
        }
        for line in ["", " --count role", " --branch"] {
            let answer = asking.command(&format!("search {query}{line}")).await;
            assert!(answer.contains(&command), "{line}: {answer}");
            assert!(
                !answer.contains(&format!("has `{word}`: the results have the other")),
                "{line}: {answer}"
            );
        }
        assert_eq!(asking.json(&format!("search {query}")).await["asWords"], json!([word]));
    }
    for query in ["walrus file:src/a.rs", "walrus path:src/a.rs"] {
        let word = query.split_once(' ').unwrap().1;
        assert!(asking.grep(json!({"query": query})).await.contains(&advice(word, r#""path":"src/a.rs""#)));
        assert!(asking.command(&format!("search {query}")).await.contains(&advice(word, "--file src/a.rs")));
    }
    for query in
        ["\"walrus role:user\"", "walrus std::path", "file://walrus", "walrus tool:", "walrus is:open"]
    {
        assert!(!asking.grep(json!({"query": query})).await.contains("as words"), "{query}");
    }
    assert!(!asking.grep(json!({"query": "role:user", "mode": "regex"})).await.contains("as words"));
}

#[tokio::test]
async fn any_argument_gets_a_short_answer_and_leaves_the_store_unchanged() {
    let asking = asked().await;
    let id = asking.message(0).await;
    let before = asking.describe(json!({})).await;
    let huge = "walrus ".repeat(150_000);
    let strings = [
        "", " ", "\u{0}", "'; DROP TABLE messages; --", "\" OR 1=1 --", "NEAR(a b, 3) AND body:*",
        "(((((((((((((((((((((((((((((", "(a{1000}){1000}", "[", "\\", "-1", "9223372036854775808",
        "1:99999999999999999999", "q18446744073709551615", "../../etc/passwd", "m-", "m-0", "s-zzzz",
        "日本語", &huge,
    ];
    let (mut refused, mut answered) = (0, 0);
    let parameters = [
        ("lcm_grep", "query", json!({})),
        ("lcm_grep", "query", json!({"mode": "regex"})),
        ("lcm_grep", "session", json!({"query": "port"})),
        ("lcm_grep", "tool", json!({"query": "port"})),
        ("lcm_grep", "path", json!({"query": "port"})),
        ("lcm_grep", "after", json!({"query": "port"})),
        ("lcm_grep", "before", json!({"query": "port"})),
        ("lcm_grep", "cursor", json!({"query": "port"})),
        ("lcm_grep", "cursor", json!({"query": "port", "mode": "regex"})),
        ("lcm_grep", "limit", json!({"query": "port"})),
        ("lcm_grep", "role", json!({"query": "port"})),
        ("lcm_expand", "summary_id", json!({})),
        ("lcm_expand", "cursor", json!({"summary_id": id})),
        ("lcm_expand", "cursor", json!({"summary_id": id, "query": "port"})),
        ("lcm_expand", "lines", json!({"summary_id": id})),
        ("lcm_expand", "query", json!({"summary_id": id})),
        ("lcm_expand", "around", json!({"summary_id": id})),
        ("lcm_expand", "raw", json!({"summary_id": id})),
        ("lcm_describe", "section", json!({})),
        ("lcm_describe", "summary_id", json!({"section": "by_id"})),
    ];
    for (tool, parameter, base) in parameters {
        for text in strings {
            let mut arguments = base.clone();
            arguments[parameter] = text.into();
            let answer = match asking.blocks(tool, arguments).await {
                Ok(blocks) => {
                    answered += 1;
                    format!("{blocks:?}")
                }
                Err(error) => {
                    refused += 1;
                    assert_eq!(error.code(), Code::Invalid, "{tool} {parameter} {text}: {error}");
                    let sentence = error.to_string();
                    assert!(!sentence.contains('\n') && sentence.len() < 300, "{sentence}");
                    sentence
                }
            };
            assert!(answer.len() < 20_000, "{tool} {parameter}: {}", answer.len());
        }
    }
    assert!(refused > 150 && answered > 80, "{refused} {answered}");
    assert_eq!(asking.describe(json!({})).await, before);
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_refused() {
    let asking = asked().await;
    for (arguments, shown) in [(json!("port"), "\"port\""), (json!(["port"]), "[\"port\"]"), (json!(7), "7")]
    {
        for tool in ["lcm_grep", "lcm_expand", "lcm_describe"] {
            assert_eq!(
                asking.refusal(tool, arguments.clone()).await,
                format!("{tool}: the arguments must be a JSON object, not `{shown}`")
            );
        }
    }
    assert!(asking.describe(json!(null)).await.starts_with("This session: "));
}

#[tokio::test]
async fn a_null_argument_counts_as_left_out() {
    let asked = asked().await;
    let found = asked.grep(json!({"query": "port 8443"})).await;
    for null in [json!(null), json!("null"), json!("")] {
        let arguments = json!({
            "query": "port 8443", "session": &null, "tool": &null, "path": &null, "after": &null, "before": &null,
            "cursor": &null, "limit": 0
        });
        assert_eq!(asked.grep(arguments).await, found, "{null}");
    }
    let id = asked.message(0).await;
    let whole = asked.expand(json!({"summary_id": id})).await;
    let nulls = json!({"summary_id": id, "lines": "null", "cursor": "null", "max_tokens": 0, "around": 0});
    assert_eq!(asked.expand(nulls).await, whole);
    assert!(asked.expand(json!({"summary_id": id, "query": "null"})).await.starts_with("No line of "));
}
