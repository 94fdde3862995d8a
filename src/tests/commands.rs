//! The `/lcm` commands.

use super::asking::{Asking, ask};
use super::support::{Session, TestStore};
use crate::commands::COMMANDS;
use crate::commands::stats::size_warning;
use lcm_model::ids::ConversationId;
use lcm_recall::Scope;
use lcm_store::Sizes;

#[tokio::test]
async fn help_lists_every_command_and_the_databases_path() {
    let asking = Asking::about(&Session::new().chat(1, 3)).await;
    let help = asking.command("help").await;
    for command in COMMANDS {
        assert!(help.contains(&format!("/lcm {:<9} {}\n", command.name, command.help)), "{help}");
    }
    assert!(help.ends_with("project.db"), "{help}");
    assert_eq!(asking.command("").await, help);
}

#[tokio::test]
async fn an_unknown_command_is_named_with_the_nearest_one() {
    let asking = Asking::about(&Session::new().chat(1, 3)).await;
    let refused =
        async |line: &str| ask(&asking.store.store, &asking.scope, line).await.unwrap_err().to_string();
    assert_eq!(
        refused("stat everything").await,
        "there is no /lcm stat: did you mean /lcm stats? (/lcm help lists all)"
    );
    assert_eq!(refused("foo").await, "there is no /lcm foo (/lcm help lists all)");
    assert_eq!(
        refused("stats everything").await,
        "/lcm stats has no everything: it takes only --json; see /lcm help stats"
    );
    let error = refused("sync --bogus").await;
    assert!(error.starts_with("/lcm sync has no --bogus: it takes ") && error.contains("--name"), "{error}");
    assert!(asking.command("help sync").await.contains("/lcm sync TARGET --name NAME\n"));
    assert_eq!(
        refused("compact --dry").await,
        "/lcm compact has no option --dry: it takes --dry-run, or words to focus on"
    );
    // The plan is the same with a focus.
    let plan = asking.command("compact --dry-run").await;
    assert_eq!(asking.command("compact --dry-run the parser").await, plan);
    let error = asking.json("stat").await;
    assert_eq!(error["error"]["code"], "LCM_INVALID");
    assert!(error["error"]["message"].as_str().unwrap().starts_with("there is no /lcm stat: "), "{error}");
}

#[tokio::test]
async fn rows_of_a_context_and_of_a_plan_hang_below_their_values() {
    let asking = Asking::about(&Session::new().chat(60, 600)).await;
    for line in ["context", "compact --dry-run"] {
        let answer = asking.command_within(50, line).await;
        let further: Vec<&str> = answer.lines().filter(|line| line.starts_with(' ')).collect();
        assert!(!further.is_empty(), "{answer}");
        assert!(further.iter().all(|line| line.find(|c| c != ' ') == Some(11)), "{answer}");
        let unbroken = answer.replace(&format!("\n{}", " ".repeat(11)), " ");
        assert_eq!(unbroken, asking.command(line).await);
    }
}

#[tokio::test]
async fn a_plan_leaves_few_messages_to_pi() {
    let asking = Asking::about(&Session::new().chat(4, 20_000)).await;
    let plan = asking.command("compact --dry-run").await;
    let (_, few) = plan.split_once("Pi would compact this branch by itself: ").expect(&plan);
    assert!(few.ends_with(" to compact, fewer than minMessagesForCompaction (10)."), "{plan}");
    asking.leaf(0..2, "One").await;
    let plan = asking.command("compact --dry-run").await;
    assert!(plan.contains("\nreuse      1 ready summary, covering 2 messages\n"), "{plan}");
}

#[tokio::test]
async fn every_command_lists_its_forms_and_completes() {
    let asking = Asking::about(&Session::new().chat(1, 3)).await;
    for command in COMMANDS {
        let help = asking.command(&format!("help {}", command.name)).await;
        assert_eq!(asking.command(&format!("{} --help", command.name)).await, help);
        assert!(help.starts_with(&format!("/lcm {}: {}\n\n  /lcm ", command.name, command.help)), "{help}");
        let forms: Vec<&str> = command.usage.iter().map(|(form, _)| *form).collect();
        for (argument, _) in command.arguments.iter().filter(|(argument, _)| argument.starts_with("--")) {
            assert!(forms.iter().any(|form| form.contains(argument)), "{argument} in {forms:?}");
        }
        let json = asking.json(&format!("help {}", command.name)).await;
        assert_eq!(json["usage"][0]["line"], format!("/lcm {}", forms[0]));
    }
    let json = asking.json("").await;
    assert_eq!(json["commands"].as_array().unwrap().len(), COMMANDS.len());
    assert!(json["database"].as_str().unwrap().ends_with("project.db"), "{json}");
}

#[tokio::test]
async fn stats_show_messages_summaries_tokens_and_size() {
    let asking = Asking::about(&Session::new().chat(6, 30)).await;
    let asking = asking.with_session("two", &Session::new().chat(1, 3)).await;
    let one = asking.leaf(0..4, "One").await;
    let two = asking.leaf(4..8, "Extract").await;
    asking.condensed(1, &[one, two], "Both").await;
    let stats = asking.command("stats").await;
    let lines: Vec<&str> = stats.lines().collect();
    assert_eq!(lines[0], "This session    12 messages, 12 on this branch");
    assert_eq!(lines[1], "This project    14 messages, 2 sessions");
    assert_eq!(lines[2], "Summaries       2 D0, 1 D1; 1 degraded");
    assert!(
        lines[3].starts_with("This branch     about ") && lines[3].contains(" with summaries in place"),
        "{stats}"
    );
    assert_eq!(
        lines[4],
        "Cost            300 tokens for the summaries kept; all of this project: 300 tokens"
    );
    assert_eq!(lines[5], "Prompt cache    not reported");
    assert_eq!(lines[6], "Background      idle; 3 summaries ready for the next compaction");
    assert!(lines[7].starts_with("Database        ") && lines[7].ends_with("project.db"), "{stats}");
    assert!(
        lines[8].starts_with("                4 KB messages (4 KB unpacked), 29 KB full text, "),
        "{stats}"
    );
    let json = asking.json("stats").await;
    assert_eq!(json["session"], serde_json::json!({"messages": 12, "onBranch": 12}));
    assert_eq!(
        json["summaries"]["byDepth"][1],
        serde_json::json!({"depth": 1, "summaries": 1, "degraded": 0})
    );
    assert_eq!(json["background"]["ready"], 3);
    assert!(json["branch"]["frontierTokens"].as_u64() < json["branch"]["tokens"].as_u64(), "{json}");
    let mut numbers =
        lines[3].split_whitespace().filter_map(|word| word.replace(',', "").parse::<usize>().ok());
    let (said, now) = (numbers.next().unwrap(), numbers.next().unwrap());
    assert!(now * 2 < said, "{stats}");
}

#[tokio::test]
async fn a_store_over_budget_warns_once_and_again_after_growing_by_a_tenth() {
    let store = TestStore::new();
    let warned = async |bytes, budget| size_warning(&store.store, bytes, budget).await.unwrap();
    assert_eq!(warned(9_000_000, 9).await, None);
    let text = warned(10_000_000, 9).await.unwrap();
    assert!(
        text.starts_with("the history of this project takes 10.0 MB, more than the 9 MB of the setting"),
        "{text}"
    );
    assert!(text.contains("project.db away"), "{text}");
    assert_eq!(warned(10_900_000, 9).await, None);
    assert_eq!(warned(12_000_000, 13).await, None);
    assert!(warned(12_000_000, 9).await.is_some());
    assert_eq!(warned(13_000_000, 9).await, None);
}

#[tokio::test]
async fn the_parts_of_the_store_add_up_to_its_size() {
    let store = TestStore::new();
    store.ingest("one", &Session::new().chat(200, 300)).await;
    let read = |view: &lcm_store::View<'_>| view.database().sizes();
    let (sizes, bytes) = (store.store.read(read).await.unwrap(), store.store.bytes().await.unwrap());
    let Sizes { messages, unpacked, identities, full_text, entries, summaries, other, free } = sizes;
    // SQLite keeps one page to map the others.
    assert_eq!(
        messages + identities + full_text + entries + summaries + other + free + 4096,
        bytes,
        "{sizes:?}"
    );
    assert!(unpacked > 2 * messages, "{sizes:?}");
}

#[tokio::test]
async fn the_tree_shows_each_summarys_sources_within_the_columns() {
    let asking = Asking::about(&Session::new().chat(7, 3)).await;
    let mut leaves = Vec::new();
    for n in 0..4 {
        let title = [
            "Extract of the first",
            "Authentication module implementation and tests",
            "三つ目の要約です",
            "Four",
        ][n];
        leaves.push(asking.leaf(n * 3..n * 3 + 3, title).await);
    }
    let one = asking.condensed(1, &leaves[..2], "Beginning").await;
    let two = asking.condensed(1, &leaves[2..], "End").await;
    let top = asking.condensed(2, &[one, two], "All").await;
    let mut names = Vec::new();
    for id in [top, one, leaves[0], leaves[1], two, leaves[2], leaves[3]] {
        names.push(asking.name(id).await);
    }
    let tree = asking.command("tree").await;
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with("14 messages on this branch, represented by about "), "{tree}");
    let drawn = ["● ", "  ├─ ", "  │  ├─ ", "  │  └─ ", "  └─ ", "     ├─ ", "     └─ "];
    for ((line, drawn), name) in lines[1..8].iter().zip(drawn).zip(&names) {
        assert!(line.starts_with(&format!("{drawn}{name} D")), "{tree}");
    }
    assert!(lines[3].contains(" D0! ") && lines[4].ends_with('…'), "{tree}");
    assert_eq!(
        lines[8],
        format!(
            "● 2 messages without a summary: {} to {}",
            asking.message(12).await,
            asking.message(13).await
        )
    );
    assert_eq!(lines[9], "● represents the branch now, or from the next fold on");
    assert_eq!(lines[10], "! degraded: made without a model, replaced once one answers");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{tree}");
    let narrow = asking.command_within(60, "tree").await;
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    assert!(narrow.contains(&format!("  │  └─ {} D0 3× Authentication", names[3])), "{narrow}");
    let json = asking.json("tree").await;
    assert_eq!(json["frontier"][0]["sources"][0]["sources"][0]["degraded"], true);
    assert_eq!(json["frontier"][1]["messages"], 2);
}

#[tokio::test]
async fn summaries_of_other_branches_are_counted_below_the_tree() {
    let mut session = Session::new().chat(4, 3);
    let fork = session.leaf().to_owned();
    session = session.chat(2, 3);
    let asking = Asking::about(&session).await;
    asking.leaf(8..12, "Later").await;
    let here = Asking { scope: asking.from(&fork), ..asking };
    let tree = here.command("tree").await;
    assert!(tree.ends_with("\n1 more summary of other branches, or replaced by these"), "{tree}");
    assert!(here.command("stats").await.contains("; 0 summaries ready for the next compaction\n"));
}

#[tokio::test]
async fn a_session_without_summaries_shows_a_tree_of_messages() {
    let asking = Asking::about(&Session::new().user("hi")).await;
    let tree = asking.command("tree").await;
    assert_eq!(
        tree.lines().nth(1),
        Some(format!("● 1 message without a summary: {}", asking.message(0).await)).as_deref()
    );
    assert!(asking.command("stats").await.contains("Summaries       none yet\n"));
}

#[tokio::test]
async fn a_message_and_a_summary_are_shown_in_full_with_their_details() {
    let long = format!("{} the end", "word ".repeat(20_000));
    let asking = Asking::about(&Session::new().user(&long).chat(2, 3)).await;
    let leaf = asking.leaf(0..3, "Leaf\nof it").await;
    let top = asking.condensed(1, &[leaf], "Top\nof all").await;
    let (message, leaf, top) = (asking.message(0).await, asking.name(leaf).await, asking.name(top).await);

    let shown = asking.command(&format!("show {message}")).await;
    assert!(shown.starts_with(&format!("{message} · user · ")), "{shown:.200}");
    assert!(shown.contains(" · message 1 of 5 on this branch\n100,008 bytes, about "), "{shown:.200}");
    assert!(
        shown.contains(&format!("summarized in:\n  {leaf} D0 Leaf\n  {top} D1 Top\n\nword word")),
        "{shown:.300}"
    );
    assert!(shown.ends_with("word  the end"));
    let json = asking.json(&format!("show {message}")).await;
    assert_eq!((&json["text"], &json["position"]), (&serde_json::json!(long), &serde_json::json!(1)));
    let raw = asking.command(&format!("show {message} --raw")).await;
    assert!(raw.starts_with("{\"role\":\"user\","), "{raw:.300}");

    let shown = asking.command(&format!("show {leaf}")).await;
    assert!(shown.starts_with(&format!("{leaf} · D0 · 3 messages · ")), "{shown}");
    assert!(shown.contains("\nmade by scripted/model, about "), "{shown}");
    assert!(
        shown.contains(&format!(
            "\n\nLeaf\nof it\n\ncondensed into:\n  {top} D1 Top\nmade from:\n  {message} user: word"
        )),
        "{shown}"
    );
    let raw: serde_json::Value =
        serde_json::from_str(&asking.command(&format!("show {leaf} --raw")).await).unwrap();
    assert_eq!(raw["text"], "Leaf\nof it");

    let refused =
        async |line: &str| ask(&asking.store.store, &asking.scope, line).await.unwrap_err().to_string();
    assert!(refused("show").await.starts_with("/lcm show needs one id, m-… or s-…"));
    assert_eq!(
        refused("show m-0000000000").await,
        "there is no message m-0000000000 in this project: /lcm search and /lcm tree show ids"
    );
}

#[tokio::test]
async fn a_search_shows_hits_their_positions_and_the_next_command() {
    let asking = Asking::about(&Session::new().user("where is the walrus?").chat(2, 3)).await;
    let asking = asking.with_session("two", &Session::new().user("the penguin is elsewhere")).await;
    asking.leaf(0..3, "A walrus was looked for").await;
    let id = asking.message(0).await;
    let alone = Asking::about(&Session::new().user("where is the walrus?")).await;
    assert!(alone.command("search walrus").await.contains("«walrus»"), "the last request is a result too");
    let found = asking.command("search walrus").await;
    assert!(
        found.contains(&format!("{id} user ")) && found.contains("\n  where is the «walrus»?"),
        "{found}"
    );
    let others = "\n\nTo read one in full: /lcm show ID. Not searched: 1 other session; add --project.";
    assert!(found.ends_with(others), "{found}");
    let asked = asking.grep(serde_json::json!({"query": "walrus"})).await;
    assert!(asked.ends_with(" Not searched: 1 other session; pass \"session\":\"project\"."), "{asked}");
    let counted = asking.command("search walrus --count role").await;
    assert!(counted.contains(" Not searched: 1 other session."), "{counted}");
    let json = asking.json("search walrus").await;
    let hit = json["hits"].as_array().unwrap().iter().find(|hit| hit["id"] == id.as_str()).unwrap();
    assert_eq!((&hit["kind"], &hit["place"]), (&"message".into(), &"here".into()));
    assert_eq!(hit["marks"][0], serde_json::json!({"start": 13, "end": 19}));
    let nothing = asking.command("search pangolin").await;
    assert_eq!(nothing, "Nothing found for pangolin in any session, thinking aside.");
    let nothing = asking.command("search m-0123456789").await;
    assert!(nothing.ends_with(" To look up an id: /lcm show m-0123456789."), "{nothing}");
    let nothing = asking.command("search WALRUS --regex").await;
    assert_eq!(
        nothing,
        "Nothing found for WALRUS in any session, thinking aside. Case counts: --ignore-case ignores it."
    );
    let nothing = asking.command("search walrus --tool nosuch --after 2025-11-20").await;
    assert_eq!(
        nothing,
        "Nothing found for walrus from the tool nosuch since 2025-11-20 00:00 in any session, thinking aside. Without these filters, it is found."
    );
    let nothing = asking.command("search zebra --summaries").await;
    assert_eq!(nothing, "Nothing found for zebra in summaries in any session.");
    let counted = asking.command("search pangolin --count role").await;
    let none = "0 messages of this project match `pangolin` (pangolin in any form).";
    assert_eq!(counted, format!("{none} Without --count, messages with similar words may match too."));
    let counted = asking.command("search walrus --count role --branch").await;
    assert!(counted.contains(" of this session on the current branch match"), "{counted}");
    assert!(counted.contains("Other branches and sessions were not searched."), "{counted}");
    let counted = asking.command("search walrus --count role --role user --after 2025-11-20").await;
    assert!(counted.contains(" with role user since 2025-11-20 00:00 match"), "{counted}");
    let found = asking.command("search penguin --project").await;
    assert!(
        found.contains(", in session two, 2025-11-20 ")
            && found.contains(" (the penguin is elsewhere)\n  the «penguin» is"),
        "{found}"
    );
    let json = asking.json("search penguin --project").await;
    let session = &json["hits"][0]["session"];
    assert_eq!(
        (&session["id"], &session["about"]),
        (&"two".into(), &"the penguin is elsewhere".into()),
        "{json}"
    );
    assert!(asking.command("search penguin --session two").await.contains("«penguin»"));
    assert!(asking.command("search walrus --session two").await.starts_with("Nothing found"));
    assert!(asking.command("search w.lrus --regex").await.contains("«walrus»"));
    // A session that begins has nothing yet.
    let begun = alone.with_session("begun", &Session::new()).await;
    let begun = Asking { scope: Scope::at(ConversationId(2), None), ..begun };
    assert!(begun.command("search walrus").await.contains("\n  where is the «walrus»?"));
    assert!(begun.command("search walrus --count role").await.starts_with("1 message of this project "));
    let asking = asking.with_session("twelve", &Session::new().chat(1, 3)).await;
    let both = ask(&asking.store.store, &asking.scope, "search penguin --session tw").await.unwrap_err();
    assert_eq!(both.to_string(), "more than one session begins with `tw`, among them twelve and two");
}

#[tokio::test]
async fn stats_show_the_cost_of_summaries_and_the_prompt_cache() {
    let answer = |input: usize, read: usize| {
        let usage = serde_json::json!({"input": input, "output": 10, "cacheRead": read, "cacheWrite": 0});
        serde_json::json!({"role": "assistant", "content": [], "usage": usage, "stopReason": "stop"})
    };
    let session = Session::new()
        .user("one")
        .message(answer(1_000, 0))
        .user("two")
        .message(answer(100, 1_000))
        .entry("compaction", serde_json::json!({"summary": "short", "firstKeptEntryId": "e3"}))
        .user("three")
        .message(answer(400, 100))
        .message(answer(600, 0));
    let asking = Asking::about(&session).await;
    let stats = asking.command("stats").await;
    let unfolded = Session::new().user("one").message(answer(1_000, 0)).message(answer(600, 100));
    let without = Asking::about(&unfolded).await.command("stats").await;
    assert!(without.contains(" prompt tokens came from it; it was valid in 1 of 2 requests\n"), "{without}");
    let cache = "34% of 3,200 prompt tokens came from it; it was valid in 2 of 4 requests, 1 of the others came after a compaction";
    assert!(stats.contains(&format!("\nPrompt cache    {cache}\n")), "{stats}");
    let json = asking.json("stats").await;
    assert_eq!(json["cache"]["misses"], 2);
    assert_eq!(json["cost"]["project"], serde_json::json!({"summaries": 0, "tokens": 0, "dollars": 0.0}));
}

#[tokio::test]
async fn a_message_of_many_megabytes_is_shown_quickly() {
    // Page by page, with the message read again each time, this would take many minutes.
    let line = |n: usize| format!("{n:07}{:200}|\n", "");
    let text: String = (0..100_000).map(line).collect();
    let asking = Asking::about(&Session::new().user(&text)).await;
    let message = asking.message(0).await;
    assert!(asking.command(&format!("show {message}")).await.ends_with(&text));
    let raw = asking.json(&format!("show {message} --raw")).await;
    assert!(raw["text"].as_str().is_some_and(|raw| raw.contains("0099999 ")));
}
