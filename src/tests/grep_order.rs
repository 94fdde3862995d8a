//! Which results of a search come first, and what their lines and an empty answer say about others.

use std::collections::BTreeSet;

use serde_json::json;

use super::asking::{Asking, ageless, cursor, first, roles, with};
use super::support::Session;

#[tokio::test]
async fn a_message_ranks_higher_for_matches_in_its_neighbors() {
    let session = Session::new()
        .assistant("The walrus is grey.")
        .user("Nothing of that kind.")
        .assistant("The walrus is white.")
        .user("Why should the walrus be painted?")
        .assistant("Because.")
        .user("Go on.");
    let asking = Asking::about(&session).await;
    let answer = asking.grep(json!({"query": "walrus", "role": "assistant"})).await;
    assert!(first(&answer).contains("white"), "{answer}");
    let answer = asking.grep(json!({"query": "walrus"})).await;
    let found: Vec<_> =
        answer.lines().filter_map(|line| line.split_once("walrus» ").map(|found| found.1)).collect();
    assert_eq!(found, ["is white.", "is grey.", "be painted?"], "{answer}");
}

/// Of many matches, the best make up the pages, but none is the first or the last for that, and no page hides that there
/// are more.
#[tokio::test]
async fn of_very_many_matches_the_first_by_time_and_the_last_page_are_found() {
    let long = format!("Deploys are done from the main branch. {}", "Much else is said here. ".repeat(30));
    let mut session = Session::new().user(&long);
    for n in 0..700 {
        session = session.assistant(&format!("deploy {n}"));
    }
    let asking = Asking::about(&session.assistant(&long).user("What now?")).await;
    let [first, last] = [asking.message(0).await, asking.message(701).await];
    for (sort, wanted) in [("oldest", &first), ("recent", &last)] {
        let answer = asking.grep(json!({"query": "deploy", "sort": sort, "limit": 1})).await;
        assert!(answer.contains(&format!("{wanted} · ")), "{sort}: {answer}");
        let others = if sort == "oldest" { " Later ones: the same" } else { " Older ones: the same" };
        assert!(answer.contains(others), "{answer}");
    }
    let all = asking.json("search deploy --limit 5000").await;
    assert_eq!((all["hits"].as_array().unwrap().len(), &all["isCut"]), (702, &json!(false)));
    let some = asking.json("search deploy --limit 100").await;
    assert_eq!(
        (some["hits"].as_array().unwrap().len(), &some["isCut"], &some["more"]),
        (100, &json!(true), &json!(null))
    );
}

#[tokio::test]
async fn results_can_be_sorted_by_time_and_show_their_neighbors() {
    let session = Session::new()
        .assistant("The walrus.")
        .assistant("Between.")
        // At the time of its entry.
        .message(json!({"role": "user", "content": "The walrus, the walrus!"}))
        .assistant("Behind it.")
        .assistant("Some more of the walrus.")
        .user("What now?");
    let asking = Asking::about(&session).await;
    let order = async |sort: &str| {
        let answer = asking.grep(json!({"query": "walrus", "sort": sort})).await;
        let ids = answer.lines().filter_map(|line| line.split_once(" · "));
        ids.filter(|(id, _)| id.starts_with("m-")).map(|(id, _)| id.to_owned()).collect::<Vec<_>>()
    };
    let ids = [asking.message(0).await, asking.message(2).await, asking.message(4).await];
    assert_eq!(order("oldest").await, ids);
    assert_eq!(order("recent").await, ids.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(order("relevance").await[0], ids[1]);
    let aside = "walrus, and much else ".to_owned() + &"of other things ".repeat(40);
    let herrings =
        Session::new().user("The blue walrus counts twelve herrings.").assistant(&aside).user("Next?");
    let herrings = Asking::about(&herrings).await;
    let question = "blue walrus counts twelve herrings";
    let answer = herrings.grep(json!({"query": question, "sort": "recent"})).await;
    let says = " Left out: 1 match with only some of the words; sort by relevance shows all.";
    assert!(answer.ends_with(says) && !answer.contains("much else"), "{answer}");
    assert!(herrings.command(&format!("search --sort recent {question}")).await.ends_with(says));
    let answer = herrings.grep(json!({"query": question})).await;
    assert!(!answer.contains("left out") && answer.contains("much else"), "{answer}");
    let answer = asking.grep(json!({"query": "walrus", "role": "user", "context": 1})).await;
    let lines: Vec<String> = answer
        .lines()
        .take(3)
        .map(|line| line.replace("  m-", "  ")[..].rsplit_once(": ").unwrap().1.into())
        .collect();
    assert_eq!(lines, ["Between.", "The «walrus», the «walrus»!", "Behind it."], "{answer}");
    asking.leaf(2..4, "Title: Walruses\nThe walrus, twice.").await;
    for (sort, order) in [("oldest", "msmm"), ("recent", "mmsm")] {
        let answer = asking.grep(json!({"query": "walrus", "scope": "all", "sort": sort})).await;
        let ids = answer.lines().filter(|line| line.get(1..2) == Some("-"));
        assert_eq!(ids.map(|line| &line[..1]).collect::<String>(), order, "{answer}");
    }
    let long = format!("{} walrus {}", "before ".repeat(40), "after ".repeat(40));
    let asking = Asking::about(&Session::new().user(&long).assistant("x").user("y")).await;
    let length = async |full: bool| asking.grep(json!({"query": "walrus", "full": full})).await.len();
    assert!(length(true).await > length(false).await + 200);
}

/// An older session that is imported later is stored behind what was said after it.
#[tokio::test]
async fn the_newest_is_what_was_said_last_and_not_what_was_stored_last() {
    let on = |day: u32| {
        let time = lcm_model::text::parse_iso(&format!("2026-11-{day:02}T12:00:00Z")).unwrap();
        json!({"role": "user", "content": format!("On day {day:02} a walrus was weighed."), "timestamp": time})
    };
    let of = |days: &[u32]| days.iter().fold(Session::new(), |session, day| session.message(on(*day)));
    let asking = Asking::about(&of(&[12, 14]).user("and now?"))
        .await
        .with_session("two", &of(&[3, 13]))
        .await
        .with_session("three", &of(&[5, 9]))
        .await;
    let days = ["03", "05", "09", "12", "13", "14"];
    let days_in = |answer: &str| -> Vec<String> {
        // Headings quote the first request of a session.
        let hits = answer.lines().filter(|line| !line.starts_with("Session "));
        hits.flat_map(|line| line.rsplit_once("On day ")).map(|(_, rest)| rest[..2].to_owned()).collect()
    };
    for (query, mode) in [("walrus", "text"), ("\"walrus was\"", "text"), ("walrus w", "regex")] {
        for (sort, is_reversed) in [("oldest", false), ("recent", true)] {
            let expected: Vec<&str> =
                if is_reversed { days.into_iter().rev().collect() } else { days.to_vec() };
            let all = json!({"query": query, "mode": mode, "session": "project", "sort": sort});
            for limit in [1, 2, 20] {
                let (mut found, mut arguments) = (Vec::new(), with(&all, "limit", limit));
                loop {
                    let answer = asking.grep(arguments.clone()).await;
                    found.extend(days_in(&answer));
                    let Some(next) = cursor(&answer) else { break };
                    arguments = with(&arguments, "cursor", next);
                }
                assert_eq!(found, expected, "{query} {sort} {limit}");
            }
        }
    }
    let newest = asking.command("search walrus --project --sort recent --limit 1").await;
    assert!(newest.ends_with(" 5 more: add --more, or narrow the search."), "{newest}");
    assert_eq!(days_in(&newest.replace(['«', '»'], "")), ["14"], "{newest}");
}

/// A long output that names a word once is a weak match, but a match.
#[tokio::test]
async fn in_order_of_time_all_that_have_the_words_are_shown() {
    let session = (0..6).fold(Session::new(), |session, n| {
        let output =
            format!("{} captured {n} {}", "of other things ".repeat(60), "and more of them ".repeat(60));
        session.user(&format!("captured: {n}")).tool("bash", json!({"command": "x"}), &output)
    });
    let asking = Asking::about(&session.user("and now?")).await;
    let ids_by = async |sort: &str| {
        let answer = asking.json(&format!("search captured --messages --sort {sort} --limit 100")).await;
        let hits = answer["hits"].as_array().unwrap().iter();
        hits.map(|hit| hit["id"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let total = asking.json("search captured --count role").await["total"].as_u64().unwrap();
    assert_eq!(total, 12);
    for sort in ["relevance", "recent", "oldest"] {
        assert_eq!(ids_by(sort).await.len(), 12, "{sort}");
    }
}

#[tokio::test]
async fn the_session_with_the_most_matches_comes_first_with_its_best_lines() {
    let fed = Session::new().user("The walrus is fed, no plan needed.").user("Done?");
    let planned = Session::new()
        .user("Make a walrus plan.")
        .assistant("The walrus plan has a tank.")
        .user("Keep the walrus plan.")
        .assistant("The walrus plan is kept.");
    let asking = Asking::about(&Session::new().user("hello").user("When did we make the walrus plan?"))
        .await
        .with_session("fed", &fed)
        .await
        .with_session("planned", &planned)
        .await;
    let answer = asking.grep(json!({"query": "walrus plan", "scope": "sessions"})).await;
    let headings: Vec<&str> = answer.lines().filter(|line| line.starts_with("Session ")).collect();
    assert_eq!(headings.len(), 2, "{answer}");
    assert!(headings[0].starts_with("Session planned, 20") && headings[1].starts_with("Session fed, 20"));
    assert_eq!(roles(&answer).len(), 4, "three of the one and one of the other: {answer}");
    assert!(!answer.contains(" ago"), "the headings tell when: {answer}");
    let arguments = json!({"query": "walrus", "scope": "sessions", "sort": "recent"});
    assert!(asking.refusal("lcm_grep", arguments).await.starts_with("scope sessions ranks words"));
}

#[tokio::test]
async fn the_worse_a_session_the_fewer_of_its_lines_are_shown() {
    // Equal beginnings would be the same messages.
    let said = |times: usize| {
        let start = Session::new().user(&format!("{times} wishes"));
        (0..times).fold(start, |said, n| said.user(&format!("plan {n} for the walrus")))
    };
    let asking = Asking::about(&Session::new().user("hello").user("Which plan?"))
        .await
        .with_session("six", &said(6))
        .await
        .with_session("five", &said(5))
        .await
        .with_session("four", &said(4))
        .await;
    let answer = asking.grep(json!({"query": "walrus plan", "scope": "sessions"})).await;
    let lines: Vec<usize> = answer.split("Session ").skip(1).map(|part| roles(part).len()).collect();
    assert_eq!(lines, [3, 2, 1], "{answer}");
}

#[tokio::test]
async fn what_was_said_on_the_named_date_comes_first() {
    let on = |day: &str| {
        let time = lcm_model::text::parse_iso(&format!("2026-{day}T12:00:00Z")).unwrap();
        json!({"role": "user", "content": format!("On {day} the walrus was weighed."), "timestamp": time})
    };
    let session =
        Session::new().message(on("11-03")).message(on("11-09")).message(on("11-12")).user("Hello.");
    let asking = Asking::about(&session).await;
    for (query, day) in [("walrus on 3 November", "11-03"), ("walrus on November 9th, 2026", "11-09")] {
        let answer = asking.grep(json!({"query": query})).await;
        assert!(first(&answer).contains(&format!("On {day}")), "{query}: {answer}");
    }
}

#[tokio::test]
async fn short_turns_are_read_together() {
    let session = Session::new()
        .user("The heron is picky.")
        .assistant("About what?")
        .user("Its colour. It has to be blue.")
        .assistant("Fine, blue it is, with some white.");
    let session = session.chat(4, 10).user("The colour. It is that of a wall.").user("Go on.");
    let asking = Asking::about(&session).await;
    let answer = asking.grep(json!({"query": "colour of the heron"})).await;
    let at = |text: &str| answer.find(text).unwrap_or(usize::MAX);
    assert!(at("has to be blue") < at("that of a wall"), "{answer}");
}

#[tokio::test]
async fn results_on_other_branches_and_in_other_sessions_say_so() {
    let session = Session::new()
        .chat(2, 5)
        .user("the walrus plan")
        .at("e2")
        .user("the narwhal plan")
        .user("Which plan?");
    let asking =
        Asking::about(&session).await.with_session("two", &Session::new().user("the beluga plan")).await;
    let line = async |query: &str, session: &str| {
        let answer = asking.grep(json!({"query": query, "session": session})).await;
        ageless(&first(&answer)[13..])
    };
    assert_eq!(line("narwhal", "this").await, "· user · long ago: the «narwhal» plan");
    assert_eq!(line("walrus", "this").await, "· user · long ago · on another branch: the «walrus» plan");
    let both = asking.grep(json!({"query": "beluga narwhal plan", "session": "project"})).await;
    let lines: Vec<&str> = both.lines().collect();
    let heading = lines.iter().position(|line| line.contains("(the beluga plan):")).unwrap();
    assert_eq!(lines[heading], "Session two, 2025-11-20 09:12 UTC (the beluga plan):");
    assert!(lines[heading + 1].contains(": the «beluga plan»"), "{both}");
    assert!(
        heading == 0 || lines[0].starts_with("m-"),
        "nothing stands above what is of this session: {both}"
    );
    assert!(lines[heading + 2] == "Not summarized:" || heading > 0, "{both}");
}

#[tokio::test]
async fn an_unanswered_question_is_not_a_hint_to_other_sessions() {
    let asking = Asking::about(&Session::new().chat(2, 5).user("what was the frobnicator port?")).await;
    assert_eq!(
        asking.grep(json!({"query": "frobnicator port"})).await,
        "Nothing found for `frobnicator port` in 5 searchable messages of this session."
    );
}

#[tokio::test]
async fn an_empty_answer_says_what_was_searched_and_where_there_is_more() {
    let asking = Asking::about(&Session::new().chat(2, 5))
        .await
        .with_session("two", &Session::new().user("beluga"))
        .await;
    asking.leaf(0..2, "Title: Orcas\nSighted twice.").await;
    assert_eq!(
        asking.grep(json!({"query": "walrus", "scope": "all"})).await,
        "Nothing found for `walrus` in 5 searchable messages and 1 summary of this project."
    );
    assert_eq!(
        asking.grep(json!({"query": "orca"})).await,
        "Nothing found for `orca` in 4 searchable messages of this session. 1 summary of it would match: pass \"scope\":\"all\". \
         Not searched: 1 other session; pass \"session\":\"project\"."
    );
    assert_eq!(
        asking.grep(json!({"query": "beluga", "mode": "regex", "session": "this"})).await,
        "Nothing found for `beluga` in 4 searchable messages of this session. Not searched: 1 other session; \
         pass \"session\":\"project\"."
    );
    let answer = asking.grep(json!({"query": "Beluga", "mode": "regex"})).await;
    assert!(answer.ends_with(" of this project. Case matters, except after (?i)."), "{answer}");
}

/// Who asks where something was said needs no second question to learn that another session has it.
#[tokio::test]
async fn a_search_that_finds_nothing_in_this_session_is_done_in_the_project() {
    let whale = |n: usize| format!("the beluga{} in bay {n}", " swims".repeat(n));
    let other = (0..4).fold(Session::new(), |session, n| session.user(&whale(n)).assistant("Noted."));
    let asking =
        Asking::about(&Session::new().chat(2, 5).user("Where?")).await.with_session("two", &other).await;
    let says = "This session has no exact match: these are of the whole project.";
    for query in [json!({"query": "beluga"}), json!({"query": "bel.ga", "mode": "regex"})] {
        let answer = asking.grep(query).await;
        assert!(answer.starts_with(&format!("{says}\nSession two, 2025-11-20 ")), "{answer}");
        assert!(answer.contains("«beluga»"), "{answer}");
    }
    let first = asking.grep(json!({"query": "beluga", "limit": 3})).await;
    let more = "1 more: the same lcm_grep with \"session\":\"project\",\"cursor\":\"3\".";
    assert!(first.ends_with(more), "{first}");
    let rest = asking.grep(json!({"query": "beluga", "limit": 3, "session": "project", "cursor": "3"})).await;
    assert_eq!(rest.matches("«beluga»").count(), 1, "{rest}");
    // Similar words here are no match either.
    let near =
        Asking::about(&Session::new().user("There is beluga8.").assistant("Noted.").user("Where?")).await;
    let near = near.with_session("two", &Session::new().user("There is beluga99.")).await;
    let answer = near.grep(json!({"query": "beluga99"})).await;
    assert!(
        answer.contains("«beluga99»") && answer.contains(says) && !answer.contains("similar"),
        "{answer}"
    );
    // Who names the session gets that one.
    let answer = asking.grep(json!({"query": "beluga", "session": "this"})).await;
    assert!(answer.contains(" of this session. Not searched: 1 other session; pass "), "{answer}");
    let counted = asking.grep(json!({"query": "beluga", "count": "role"})).await;
    let all = "4 messages of this project match `beluga` (beluga in any form), none of them in this session.";
    assert!(counted.starts_with(all), "{counted}");
    let shown = asking.command("search beluga").await;
    assert!(shown.starts_with(&format!("{says}\n\nm-")) && shown.contains(", in session two, "), "{shown}");
    assert_eq!(asking.json("search beluga").await["hits"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn adjacent_words_and_the_users_words_rank_first() {
    let session = Session::new()
        .assistant(
            "The retry of the budget. Nothing else happens in here. Some time later the limit was seen.",
        )
        .tool("bash", json!({"command": "x"}), "retry budget limit")
        .assistant("A retry budget limit.")
        .user("Set the retry budget limit")
        .user("What did I ask for?");
    let asking = Asking::about(&session).await;
    let answer = asking.grep(json!({"query": "retry budget limit"})).await;
    assert_eq!(roles(&answer), ["user", "assistant", "toolResult bash", "assistant"], "{answer}");
}
