//! Filters narrow a search for messages and summaries alike, and an answer says if there is more.

use serde_json::{Value, json};

use super::asking::{Asking, cursor, with};
use super::support::Session;

/// The short ids of an answer's results, in order.
fn ids(answer: &str) -> Vec<String> {
    let is_id = |line: &&str| line.starts_with("m-") || line.starts_with("s-");
    answer.lines().filter(is_id).map(|line| line[..12].to_owned()).collect()
}

#[tokio::test]
async fn an_agents_messages_are_searched_in_the_whole_project() {
    let asking = Asking::about(&Session::new().user("a walrus of Pi").user("and now?")).await;
    let asking = asking.with_session("codex:1", &Session::new().user("a walrus of Codex")).await;
    let asking = asking.with_session("two", &Session::new().user("another walrus")).await;
    let own = asking.message(0).await;
    for mode in ["text", "regex"] {
        let ask = async |session: Option<&str>, agent: &str| {
            asking.grep(json!({"query": "walrus", "mode": mode, "session": session, "agent": agent})).await
        };
        let found = ask(None, "codex").await;
        assert!(
            ids(&found).len() == 1
                && found.starts_with("Session codex:1, 2025-11-20 09:12 UTC (a walrus of Codex):\nm-"),
            "{found}"
        );
        // A model may name the default.
        assert_eq!(ids(&ask(None, "pi").await), [own.as_str()]);
        assert!(ask(None, "pi").await.contains("«walrus» of Pi"));
        let nothing = ask(None, "gemini").await;
        assert!(nothing.contains("of gemini in 4 searchable messages of this project."), "{nothing}");
        let narrow = ask(Some("this"), "codex").await;
        assert!(
            narrow.contains("of this session.") && narrow.ends_with("\"session\":\"project\"."),
            "{narrow}"
        );
        assert_eq!(ids(&ask(Some("project"), "pi").await).len(), 2);
        for session in ["codex:1", "1"] {
            assert_eq!(ids(&ask(Some(session), "codex").await).len(), 1, "{session}");
        }
        let arguments = json!({"query": "walrus", "mode": mode, "agent": "codex", "branch": "current"});
        let nothing = asking.grep(arguments).await;
        let remedy = " Other branches and sessions were not searched: leave branch out.";
        assert!(nothing.contains(" of this project.") && nothing.ends_with(remedy), "{nothing}");
    }
    let nothing = asking.grep(json!({"query": "walrus", "path": "src/auth.rs"})).await;
    assert!(
        nothing
            .contains(" about src/auth.rs in 4 searchable messages of this project. Without these filters, "),
        "{nothing}"
    );
    let found = asking.command("search walrus --agent codex").await;
    assert!(
        found.contains(", in session codex:1, 20") && found.contains("\n  a «walrus» of Codex"),
        "{found}"
    );
    let found = asking.command("search walrus --agent pi").await;
    assert!(found.contains("a «walrus» of Pi") && !found.contains("in session"), "{found}");
    let nothing = asking.command("search walrus --agent codex --branch").await;
    assert!(nothing.ends_with(" Other branches and sessions were not searched: omit --branch."), "{nothing}");
}

#[tokio::test]
async fn the_agents_session_with_the_latest_message_is_described_first() {
    let asking = Asking::about(&Session::new().user("and now?")).await;
    let asking = asking.with_session("codex:1", &Session::new().chat(9, 3)).await;
    let asking = asking.with_session("gemini:1", &Session::new().user("a seal")).await;
    let text = asking.describe(json!({})).await;
    let (_, agents) = text.split_once("Other agents here, the last active first:\n- codex:1").unwrap();
    assert!(agents.contains("- gemini:1") && !text.contains("… "), "{text}");
    let asking = asking.with_session("gemini:2", &Session::new().user("two seals")).await;
    let asking = asking.with_session("gemini:3", &Session::new().user("three seals")).await;
    let text = asking.describe(json!({})).await;
    let (_, how) =
        text.split_once("\n… 1 more (in all: codex 1, gemini 3); those of gemini: lcm_grep ").unwrap();
    let listed = asking.grep(serde_json::from_str(how).unwrap()).await;
    assert!((1..4).all(|n| listed.contains(&format!("\nSession gemini:{n}"))), "{listed}");
}

#[tokio::test]
async fn an_agents_few_messages_are_found_among_many_of_pi() {
    let many = (0..20_100).fold(Session::new(), |session, n| session.user(&format!("walrus {n}")));
    let asking = Asking::about(&Session::new().user("now?")).await;
    let codex = Session::new().user(&format!("a walrus {}", "of many words ".repeat(40))).user("and a seal");
    let asking = asking.with_session("codex:1", &codex).await;
    let asking = asking.with_session("two", &many).await;
    let asking = asking.with_session("codex:2", &Session::new().user("the seal and the walrus")).await;
    for (mode, query, expected) in [
        ("text", "walrus", 2),
        ("text", "seal walrus", 3),
        ("regex", "walrus", 2),
        ("regex", "seal.*walrus", 1),
    ] {
        let answer = asking.grep(json!({"query": query, "mode": mode, "agent": "codex"})).await;
        assert_eq!(ids(&answer).len(), expected, "{query}: {answer}");
    }
}

#[tokio::test]
async fn the_path_filter_finds_only_calls_on_that_file() {
    let calls = |calls: &[(&str, &str)]| {
        let content: Vec<Value> = (calls.iter())
            .map(|(id, path)| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": path}}))
            .collect();
        json!({"role": "assistant", "content": content, "stopReason": "toolUse"})
    };
    let result = |id: &str, text: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false,
               "content": [{"type": "text", "text": text}]})
    };
    let session = Session::new()
        .user("a walrus: look into src/auth.rs")
        .message(calls(&[("c1", "src/other.rs"), ("c2", "/project/SRC/auth.rs"), ("c3", "src/auth.rs.orig")]))
        .message(result("c1", "walrus of another file"))
        .message(result("c2", "walrus of the file"))
        .message(result("c3", "walrus of the one neighbor"))
        // Only mentioned, before a call about another file.
        .message(json!({"role": "assistant", "stopReason": "toolUse", "content": [
            {"type": "text", "text": "no walrus in src/auth.rs, so on to the next"},
            {"type": "toolCall", "id": "c4", "name": "read", "arguments": {"path": "docs/next.md"}}]}))
        .message(result("c4", "walrus of the next file"))
        .message(result("c5", "src/auth.rs is named in this, a walrus too"))
        .user("and now?");
    let asking = Asking::about(&session).await;
    let (said, own, neighbor, named, last) = (
        asking.message(0).await,
        asking.message(3).await,
        asking.message(4).await,
        asking.message(5).await,
        asking.message(7).await,
    );
    for mode in ["text", "regex"] {
        let answer = asking.grep(json!({"query": "walrus", "path": "src/auth.rs", "mode": mode})).await;
        let mut found = ids(&answer);
        found.sort();
        let mut expected = vec![said.clone(), own.clone(), neighbor.clone(), named.clone(), last.clone()];
        expected.sort();
        assert_eq!(found, expected, "{answer}");
    }
    // Entries that another process stored in between do not end the results.
    let store = &asking.store;
    let more = session
        .clone()
        .message(calls(&[("d1", "lib/a.rs"), ("d2", "lib/b.rs")]))
        .message(result("d1", "ostrich"));
    store.ingest("one", &more).await;
    store.ingest("two", &Session::new().user("something else")).await;
    let more = more.message(result("d2", "ostrich"));
    store.ingest("one", &more).await;
    let asking = Asking { scope: asking.from(more.leaf()), ..asking };
    let answer = asking.grep(json!({"query": "ostrich", "path": "lib/b.rs"})).await;
    assert_eq!(ids(&answer), [asking.message(11).await], "{answer}");
}

#[tokio::test]
async fn filters_apply_to_summaries_as_to_messages() {
    let at = |day: u32, text: &str| json!({"role": "user", "content": text, "timestamp": 1_763_596_800_000_i64 + i64::from(day) * 86_400_000});
    let session = Session::new()
        .message(at(0, "one"))
        .message(at(1, "two"))
        .message(at(2, "three"))
        .message(at(3, "four"))
        .at("e2")
        .message(at(4, "elsewhere"));
    let asking = Asking::about(&session).await;
    let left = Asking { scope: asking.from("e4"), ..asking };
    let early = left.leaf(0..2, "A walrus early on").await;
    let late = left.leaf(2..4, "A walrus later").await;
    let (early, late) = (left.name(early).await, left.name(late).await);
    let asking = Asking { scope: left.from(session.leaf()), ..left };
    for mode in ["text", "regex"] {
        let all = json!({"query": "walrus", "scope": "summaries", "mode": mode});
        let found = async |arguments: &Value| {
            let mut found = ids(&asking.grep(arguments.clone()).await);
            found.sort();
            found
        };
        let mut both = vec![early.clone(), late.clone()];
        both.sort();
        assert_eq!(found(&all).await, both);
        assert_eq!(found(&with(&all, "branch", "current")).await.as_slice(), std::slice::from_ref(&early));
        assert_eq!(
            found(&with(&all, "after", "2025-11-21T12:00Z")).await.as_slice(),
            std::slice::from_ref(&late)
        );
        assert_eq!(
            found(&with(&all, "before", "2025-11-21T12:00Z")).await.as_slice(),
            std::slice::from_ref(&early)
        );
        // Both overlap this period.
        let within = with(&with(&all, "after", "2025-11-20T12:00Z"), "before", "2025-11-22T12:00Z");
        assert_eq!(found(&within).await, both);
        assert_eq!(found(&with(&all, "after", "2025-11-25")).await, [""; 0]);
        // Summaries have no role, and no tool wrote them.
        let of_users = with(&with(&all, "scope", "all"), "role", "user");
        assert_eq!(found(&of_users).await, [""; 0]);
    }
    let nothing = asking.grep(json!({"query": "walrus", "role": "user"})).await;
    assert!(!nothing.contains("\"scope\""), "no summary would match: {nothing}");
    let nothing = asking.grep(json!({"query": "walrus", "after": "2025-11-25"})).await;
    assert!(!nothing.contains("\"scope\""), "no summary would match: {nothing}");
    let nothing = asking.grep(json!({"query": "walrus", "branch": "current"})).await;
    assert!(nothing.contains(" 1 summary of it would match: pass \"scope\":\"all\"."), "{nothing}");
}

#[tokio::test]
async fn a_hit_from_another_sessions_abandoned_branch_says_so() {
    let two = Session::new()
        .user("Which animal?")
        .assistant("The walrus was left.")
        .user("No.")
        .at("e1")
        .assistant("The walrus stays.");
    let asking = Asking::about(&Session::new().user("Hi.").user("And now?")).await;
    let asking = asking.with_session("two", &two).await;
    let fork = Session::new().user("Which animal?").assistant("The penguin was left.");
    let asking = asking.with_session("three", &fork.clone().at("e1").user("Not that.")).await;
    let asking = asking.with_session("four", &fork.user("Good.")).await;
    let of = |answer: &str, said: &str| -> String {
        let lines: Vec<&str> = answer.lines().collect();
        let at =
            lines.iter().position(|line| line.contains(said)).unwrap_or_else(|| panic!("{said}: {answer}"));
        lines[at.saturating_sub(1)..=at].join("\n")
    };
    let answer = asking.command("search walrus --project").await;
    assert!(of(&answer, "was left").contains(", on an abandoned branch, in session two"), "{answer}");
    assert!(!of(&answer, "stays").contains("branch"), "{answer}");
    let left = asking.json("search \"was left\" --project --role assistant").await["hits"].clone();
    let place = |said: &str| {
        let found =
            left.as_array().unwrap().iter().find(|hit| hit["snippet"].as_str().unwrap().contains(said));
        found.unwrap_or_else(|| panic!("{said}: {left}"))["place"].clone()
    };
    assert_eq!((place("walrus"), place("penguin")), ("otherSessionBranch".into(), "otherSession".into()));
    let answer = asking.grep(json!({"query": "walrus", "session": "project"})).await;
    assert_eq!(answer.matches(" · on an abandoned branch: ").count(), 1, "{answer}");
    let (id, _) =
        answer.lines().find(|line| line.contains(" · on an")).unwrap().split_at("m-0123456789".len());
    assert!(asking.command(&format!("show {id}")).await.contains(" · on an abandoned branch of session two"));
    assert!(
        asking
            .expand(json!({"summary_id": id}))
            .await
            .contains(" · on an abandoned branch of another session")
    );
    assert!(
        asking
            .describe(json!({"section": "by_id", "summary_id": id}))
            .await
            .contains("\non an abandoned branch of another session, two")
    );
}

#[tokio::test]
async fn a_pattern_can_sort_by_oldest_and_its_pages_continue() {
    // More than are read before the index is used.
    let session = (0..1_200).fold(Session::new(), |session, n| {
        session.user(&if n % 200 == 7 {
            format!("a walrus of number {n}")
        } else {
            format!("nothing at {n}")
        })
    });
    let asking = Asking::about(&session).await;
    let summaries =
        [asking.leaf(0..10, "walruses at first").await, asking.leaf(10..20, "and walruses then").await];
    let summaries = [asking.name(summaries[0]).await, asking.name(summaries[1]).await];
    let mut oldest = Vec::new();
    for at in (0..1_200).filter(|n| n % 200 == 7) {
        oldest.push(asking.message(at).await);
    }
    oldest.extend(summaries);
    let mut newest = oldest.clone();
    newest[..6].reverse();
    newest[6..].reverse();
    for (sort, expected, beyond) in [
        ("oldest", &oldest, "Later ones"),
        ("recent", &newest, "Older ones"),
        ("relevance", &newest, "Older ones"),
    ] {
        for query in ["walrus", r"wal\w+s"] {
            let arguments =
                json!({"query": query, "mode": "regex", "scope": "all", "sort": sort, "limit": 3});
            let mut found = Vec::new();
            let mut page = asking.grep(arguments.clone()).await;
            loop {
                found.extend(ids(&page));
                let Some(cursor) = cursor(&page) else { break };
                assert!(page.contains(&format!(" {beyond}: the same lcm_grep with ")), "{page}");
                page = asking.grep(with(&arguments, "cursor", cursor)).await;
            }
            assert_eq!(&found, expected, "{sort}");
        }
    }
}

#[tokio::test]
async fn more_results_are_mentioned_only_if_there_are_any() {
    let session = (0..6)
        .fold(Session::new(), |session, n| session.user(&format!("a walrus of number {n}")))
        .user("else");
    let asking = Asking::about(&session).await;
    for (mode, scope) in [("regex", "messages"), ("regex", "all"), ("text", "messages"), ("text", "all")] {
        for (limit, more) in [(5, true), (6, false), (7, false)] {
            let answer =
                asking.grep(json!({"query": "walrus", "mode": mode, "scope": scope, "limit": limit})).await;
            assert_eq!((ids(&answer).len(), cursor(&answer).is_some()), (limit.min(6), more), "{answer}");
        }
    }
    asking.leaf(0..6, "walruses, six of them").await;
    let answer = asking.grep(json!({"query": "walrus", "mode": "regex", "scope": "all", "limit": 6})).await;
    assert!(cursor(&answer).is_some(), "the summary is left: {answer}");
}

#[tokio::test]
async fn a_user_who_asks_for_more_gets_weak_matches_too() {
    let session = (0..30).fold(Session::new(), |session, n| match n {
        0..7 => session.user(&format!("walrus walrus walrus {n}")),
        _ => session.user(&format!(
            "{} walrus {}",
            "many other words ".repeat(20),
            "and more of them ".repeat(20 + n)
        )),
    });
    let asking = Asking::about(&session.user("else")).await;
    let few = asking.json("search walrus").await;
    let all = asking.json("search walrus --more").await;
    let count = |answer: &Value| answer["hits"].as_array().unwrap().len();
    assert!(count(&few) < 30 && few["isCut"] == true, "{few}");
    assert_eq!((count(&all), &all["isCut"]), (30, &json!(false)));
    assert!(!asking.command("search walrus --more").await.contains(" more: "));
    assert!(asking.command("search walrus").await.ends_with(" 10 more: add --more, or narrow the search."));
}

#[tokio::test]
async fn long_messages_leave_room_for_others() {
    let session = (0..70).fold(Session::new(), |session, n| {
        session.user(&format!(
            "{n}: {}",
            "the walrus sings of other things again ".repeat(if n % 7 == 0 { 1 } else { 200 })
        ))
    });
    let asking = Asking::about(&session.user("else")).await;
    let all = asking.json("search walrus --more").await;
    assert_eq!(all["hits"].as_array().unwrap().len(), 70);
}
