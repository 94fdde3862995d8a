//! The sections of a block besides summaries, and the summarizer's prompts: focus, quotes, files,
//! orientation, secrets.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::llm::{Failure, ModelRequest, Reply};
use lcm_compaction::{LeftBranch, LeftSummary, Outcome, summarize_left};
use lcm_model::config::Settings;
use lcm_model::ids::ConversationId;
use lcm_model::tokens;
use lcm_model::{Quote, QuoteKind};

const FOCUS: &str = "The user has asked for one thing in particular";

/// Answers the user's instructions with `focus`, everything else with a summary and `quotes`.
fn answering(focus: &'static str, quotes: &'static str) -> std::sync::Arc<ScriptedModel> {
    let count = std::sync::atomic::AtomicUsize::new(0);
    ScriptedModel::new(move |ModelRequest { prompt, .. }| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = if prompt.contains(FOCUS) {
            focus.to_owned()
        } else {
            format!("Stretch {n}\n{}\n{quotes}", "summed up. ".repeat(12))
        };
        Ok(Reply { text, model: Some("scripted/model".into()), usage: Some(json!({"input": 10})) })
    })
}

/// A section of a block, without its heading.
fn section<'a>(block: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = block.split_once(&format!("### {heading}\n"))?;
    Some(rest.split("\n\n###").next().unwrap_or(rest).trim_end())
}

fn asking_for(text: &'static str) -> impl FnOnce(&mut Settings, &mut lcm_compaction::Request) {
    move |_, request| request.custom_instructions = Some(text.into())
}

#[tokio::test]
async fn the_users_instructions_are_answered_once_even_if_all_leaves_are_ready() {
    let session = Session::new().chat(20, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = || Compact::new(&store, conversation, session.leaf(), session.leaf());
    let before = compacted(compact().run(&ScriptedModel::helpful()).await);
    assert_eq!(section(&before.summary, "Focus"), None);

    let model = answering("Of the parser: it is done.\n### Files\nfake", "");
    let compaction = compacted(compact().with(asking_for("all about the parser")).run(&model).await);
    assert_eq!(
        section(&compaction.summary, "Focus"),
        Some(" Of the parser: it is done.\n · Files\n fake\n Expand for details about: all")
    );
    assert_eq!(compaction.usage, Some(json!({"input": 10})));
    assert_eq!(compaction.details.frontier, before.details.frontier);
    let prompts = model.prompts();
    assert_eq!(prompts.len(), 1);
    assert!(
        prompts[0].contains("all about the parser") && prompts[0].contains("summed up."),
        "{}",
        prompts[0]
    );

    let again = compacted(compact().run(&answering("unasked", "")).await);
    assert_eq!(again.summary, before.summary);
}

#[tokio::test]
async fn without_a_model_the_focus_is_left_out_and_nothing_is_lost() {
    let session = Session::new().chat(20, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = || Compact::new(&store, conversation, session.leaf(), session.leaf());
    let before = compacted(compact().run(&ScriptedModel::helpful()).await);
    for model in [ScriptedModel::failing(), ScriptedModel::new(|_| Err(Failure::useless("cut off")))] {
        let compaction = compacted(compact().with(asking_for("the parser")).run(&model).await);
        assert_eq!(compaction.summary, before.summary);
    }
}

#[tokio::test]
async fn quotes_are_carried_upwards_and_stored_in_the_details() {
    let mut session = Session::new().user("Never  push to\nmain without asking me.").assistant("Understood.");
    for n in 0..60 {
        session = session.chat(1, 40).user(&format!("Then write module number {n} next."));
    }
    let session = session.user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let quotes = "Quotes:\nrule: \"Never push to main without asking me.\"\nrule: \"Never push to maim\"\ntask: \"write module number 3 next\"";
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&answering("", quotes)).await);
    let rule = "- rule: \"Never push to main without asking me.\"";
    let shown = section(&compaction.summary, "Constraints and Open Tasks").unwrap();
    assert_eq!(shown, format!("{rule}\n- task: \"write module number 3 next\""));
    let details = &compaction.details;
    let deepest = details.summaries.iter().max_by_key(|summary| summary.depth).unwrap();
    assert!(
        deepest.depth > 0 && deepest.quotes.iter().any(|quote| quote.kind == QuoteKind::Rule),
        "{deepest:?}"
    );
    assert!(details.summaries.iter().all(|summary| !summary.text.contains("Quotes:")));

    // A lost store restores them from the session file.
    let entry =
        json!({"details": details, "summary": compaction.summary, "firstKeptEntryId": session.leaf()});
    let kept = session.leaf().to_owned();
    let session = session.entry("compaction", entry);
    let other = TestStore::new();
    let conversation = other.ingest("one", &session).await;
    let compact = Compact::new(&other, conversation, session.leaf(), &kept);
    let restored = compacted(compact.run(&ScriptedModel::failing()).await);
    assert_eq!(restored.summary, compaction.summary);
}

#[tokio::test]
async fn details_without_quotes_are_still_read() {
    let session = Session::new().chat(10, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
    let details = serde_json::to_value(&compaction.details).unwrap();
    assert!(details["summaries"].as_array().unwrap().iter().all(|summary| summary.get("quotes").is_none()));
    // This identity must never change: stores and session files contain it.
    let mut summary = lcm_model::Summary {
        hash: lcm_model::ids::Hash::ROOT,
        depth: 0,
        text: "text".into(),
        tokens: 1,
        state: lcm_model::State::Ok,
        model: None,
        prompt_version: 1,
        created_at: 0,
        usage: None,
        quotes: Vec::new(),
    };
    let identity = summary.identity(&[lcm_model::ids::Hash::ROOT]);
    let parts: [&[u8]; 3] = [b"summary 0 ok 1", b"text", &[0; 32]];
    assert_eq!(identity, lcm_model::ids::Hash::of(parts));
    summary.quotes.push(Quote { kind: QuoteKind::Rule, text: "never".into() });
    assert_ne!(identity, summary.identity(&[lcm_model::ids::Hash::ROOT]));
}

#[tokio::test]
async fn without_a_model_the_users_rules_are_still_quoted() {
    let session = Session::new().user("You must never delete the ledger.").chat(20, 40).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&ScriptedModel::failing()).await);
    assert_eq!(
        section(&compaction.summary, "Constraints and Open Tasks"),
        Some("- rule: \"You must never delete the ledger.\"")
    );
}

#[tokio::test]
async fn file_lists_accumulate_and_include_pis_compactions_and_left_branches() {
    let lists = |read: &str, modified: &str| json!({"readFiles": [read], "modifiedFiles": [modified]});
    let session = Session::new()
        .tool("read", json!({"path": "src/first.rs"}), "text")
        .chat(8, 30)
        .entry(
            "compaction",
            json!({
                "summary": "Pi's own", "firstKeptEntryId": "e9", "tokensBefore": 1,
                "details": lists("gone/read.rs", "gone/changed.rs")
            }),
        )
        .entry(
            "branch_summary",
            json!({
                "fromId": "e3", "summary": "Elsewhere.", "details": lists("left/read.rs", "left/changed.rs")
            }),
        )
        .chat(4, 30)
        .tool("edit", json!({"path": "src/second.rs"}), "done")
        .user("middle");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let first = compacted(compact.run(&ScriptedModel::helpful()).await);
    // Messages before Pi's own compaction are summarized like all others.
    assert!(first.summary.contains("covers 29 messages, none missing"), "{}", first.summary);
    let read = ["gone/read.rs", "left/read.rs", "src/first.rs"];
    assert_eq!(first.details.read_files, read);
    assert_eq!(first.details.modified_files, ["gone/changed.rs", "left/changed.rs", "src/second.rs"]);

    let session = session.tool("edit", json!({"path": "src/first.rs"}), "done").chat(6, 30).user("tail");
    store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let second = compacted(compact.run(&ScriptedModel::helpful()).await);
    assert_eq!(second.details.read_files, read[..2]);
    let files = section(&second.summary, "Files").unwrap();
    let paths = |list: &str| -> Vec<String> {
        let (_, rest) = files.split_once(&format!("<{list}>\n")).unwrap();
        let lines = rest.split_once("\n</").unwrap().0.lines();
        lines.map(|line| line.trim_start().split(" (m-").next().unwrap().to_owned()).collect()
    };
    assert_eq!(
        paths("modified-files"),
        ["src/first.rs", "src/second.rs", "left/changed.rs", "gone/changed.rs"]
    );
    assert_eq!(paths("read-files"), ["left/read.rs", "gone/read.rs"]);
}

#[tokio::test]
async fn the_prompt_for_a_chunk_has_the_request_far_above_it() {
    let mut session = Session::new().user("REQUEST: port the parser");
    for n in 0..40 {
        session = session.tool("read", json!({"path": format!("src/{n}.rs")}), &"line of code\n".repeat(20));
    }
    let session = session.user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::helpful();
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    compacted(compact.run(&model).await);
    let leaves: Vec<String> =
        model.prompts().into_iter().filter(|prompt| prompt.starts_with("Summarize this stretch")).collect();
    assert!(leaves.len() > 5);
    for prompt in &leaves {
        assert_eq!(prompt.matches("REQUEST: port the parser").count(), 1, "{prompt}");
    }
}

#[tokio::test]
async fn the_newest_leaf_summaries_may_be_longer() {
    let session = Session::new().chat(80, 120).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::helpful();
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.leaf_chunk_tokens = 4_000);
    compacted(compact.run(&model).await);
    let prompts = model.prompts();
    let words = prompts.iter().filter(|prompt| prompt.starts_with("Summarize this stretch"));
    let words: Vec<usize> = words.map(|prompt| prompt.split(' ').nth(5).unwrap().parse().unwrap()).collect();
    let longer = words.iter().filter(|words| **words > 450).count();
    assert!((1..=2).contains(&longer) && words.len() > longer, "{words:?}");
}

#[tokio::test]
async fn secrets_are_masked_in_prompts_only() {
    let key = ["AKIA", "QWERTYUIOPASDFGH"].concat();
    let long = format!("{}\nDB_PASSWORD=hunter2x\n{}", "output ".repeat(600), "more ".repeat(600));
    let session = Session::new()
        .user(&format!("my key is {key}"))
        .tool("bash", json!({"command": format!("deploy --key {key}"), "password": "hunter2x"}), &long)
        .chat(20, 30)
        .user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let run = |redact: bool, model: std::sync::Arc<ScriptedModel>| {
        let compact =
            Compact::new(&store, conversation, session.leaf(), session.leaf()).with(|settings, request| {
                settings.redact = redact;
                request.custom_instructions =
                    Some(format!("what of {}", ["AKIA", "QWERTYUIOPASDFGH"].concat()));
            });
        async move {
            compacted(compact.run(&model).await);
            model.prompts().join("\n")
        }
    };
    // An extract quotes its source; later a model is asked about that too.
    run(true, ScriptedModel::failing()).await;
    let prompts = run(true, ScriptedModel::helpful()).await;
    assert!(!prompts.contains(&key) && !prompts.contains("hunter2x"), "{prompts}");
    assert!(
        prompts.contains("[masked: aws key]") && prompts.contains(r#""password":"[masked]""#),
        "{prompts}"
    );
    let stored = store.visible(conversation, session.leaf()).await;
    assert!(Value::from(stored).to_string().contains(&key));

    let other = TestStore::new();
    let conversation = other.ingest("one", &session).await;
    let compact = Compact::new(&other, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.redact = false);
    let model = ScriptedModel::helpful();
    compacted(compact.run(&model).await);
    assert!(model.prompts().join("\n").contains(&key));
}

#[tokio::test]
async fn a_key_without_an_end_hides_no_other_summary() {
    let session = Session::new().chat(60, 60).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::new(|ModelRequest { prompt, .. }| {
        let text = format!("Sum {}\n{}", prompt.len(), ["---- BEGIN ", "PRIVATE KEY ----"].concat());
        Ok(Reply { text, model: None, usage: None })
    });
    let mut summaries = 0;
    for redact in [false, true] {
        let compact =
            Compact::new(&store, conversation, session.leaf(), session.leaf()).with(|settings, request| {
                settings.redact = redact;
                (settings.leaf_chunk_tokens, settings.condensation_threshold) = (1_000, 100);
                request.custom_instructions = redact.then(|| "what of it".to_owned());
            });
        summaries = compacted(compact.run(&model).await).details.frontier.len();
    }
    let prompts = model.prompts();
    let asked = prompts.last().unwrap();
    assert!(summaries > 1 && asked.contains("[masked: private key]"), "{asked}");
    assert_eq!(asked.matches(" D0 ").count(), summaries, "{asked}");
}

#[tokio::test]
async fn a_model_with_smaller_tokens_gets_a_smaller_block_next_time() {
    let session = Session::new().chat(60, 60).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::new(|ModelRequest { prompt, system, .. }| {
        let input = (tokens::estimate(prompt) + tokens::estimate(system)) * 2;
        let text = format!("Sum {}\n{}", prompt.len(), "w ".repeat(240));
        Ok(Reply { text, model: Some("session/model".into()), usage: Some(json!({"input": input})) })
    });
    let compact = || {
        Compact::new(&store, conversation, session.leaf(), session.leaf()).with(|settings, _| {
            (settings.max_summary_tokens, settings.leaf_chunk_tokens) = (2_000, 1_000);
        })
    };
    let first = compacted(compact().run(&model).await);
    assert!(tokens::estimate(&first.summary) > 1_100, "{}", tokens::estimate(&first.summary));
    let ratio =
        store.store.read(|view| Ok(view.summaries().token_ratios()?["session/model"].0)).await.unwrap();
    assert!((1.5..=2.0).contains(&ratio), "{ratio}");
    let second = compacted(compact().run(&model).await);
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let real = tokens::estimate(&second.summary) as f64 * ratio;
    assert!(real <= 2_001.0, "{real}");
    assert!(second.summary.contains("none missing"));
}

/// The summary of the branch below `ancestor` that ends with `leaf`.
async fn account(
    store: &TestStore,
    conversation: ConversationId,
    (leaf, ancestor): (&str, Option<&str>),
    model: &std::sync::Arc<ScriptedModel>,
) -> Outcome {
    let left = LeftBranch {
        can_recall: true,
        leaf_id: leaf.into(),
        common_ancestor_id: ancestor.map(Into::into),
        custom_instructions: None,
        context_window: Some(200_000),
        model: None,
    };
    let compact = Compact::new(store, conversation, leaf, "");
    let model = std::sync::Arc::clone(model) as _;
    summarize_left(compact.work(model, CancellationToken::new()), left).await.unwrap()
}

fn summary_of(outcome: Outcome) -> LeftSummary {
    match outcome {
        Outcome::Summarized { summary } => *summary,
        other => panic!("no summary: {other:?}"),
    }
}

#[tokio::test]
async fn a_left_branchs_summaries_are_reused_when_it_is_resumed() {
    let session =
        Session::new().chat(20, 30).tool("edit", json!({"path": "left.rs"}), "LEFT done").chat(10, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::helpful();
    let summary = summary_of(account(&store, conversation, (session.leaf(), Some("e40")), &model).await);
    assert!(summary.summary.starts_with("## Branch Left Behind"), "{}", summary.summary);
    assert!(summary.summary.contains("covers 22 messages, none missing, 0 degraded"), "{}", summary.summary);
    assert_eq!(
        (summary.details.read_files.len(), &*summary.details.modified_files),
        (0, &["left.rs".to_owned()][..])
    );
    let prompts = model.prompts();
    assert!(prompts.iter().any(|prompt| prompt.contains("LEFT done")));
    assert!(prompts.iter().all(|prompt| !prompt.split("<history-").nth(1).unwrap().contains("question 38 ")));
    assert_eq!(summary.usage.unwrap()["input"], json!(10 * prompts.len()));

    let silent = ScriptedModel::failing();
    let again = summary_of(account(&store, conversation, (session.leaf(), Some("e40")), &silent).await);
    assert_eq!(again.summary, summary.summary);
    assert_eq!(silent.prompts(), [""; 0]);
    let nothing = account(&store, conversation, (session.leaf(), Some(session.leaf())), &silent).await;
    assert_eq!(nothing, Outcome::Declined);
    let whole = summary_of(account(&store, conversation, (session.leaf(), None), &silent).await);
    assert!(whole.summary.contains("covers 62 messages, none missing"), "{}", whole.summary);
}

#[tokio::test]
async fn a_left_branchs_summaries_are_restored_from_the_session_file() {
    let session = Session::new().chat(40, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let left = session.leaf().to_owned();
    let model = ScriptedModel::helpful();
    let summary = summary_of(account(&store, conversation, (&left, Some("e40")), &model).await);
    let fields =
        json!({"fromId": "e40", "summary": &summary.summary, "details": &summary.details, "fromHook": true});
    let session = session.at("e40").entry("branch_summary", fields).chat(2, 30);

    let lost = TestStore::new();
    let conversation = lost.ingest("one", &session).await;
    let silent = ScriptedModel::failing();
    let again = summary_of(account(&lost, conversation, (&left, Some("e40")), &silent).await);
    assert_eq!(silent.prompts(), [""; 0]);
    // The session continues on another branch.
    let of_branch = |block: &str| block.split_once(" stored | ").unwrap().1.to_owned();
    assert_eq!(of_branch(&again.summary), of_branch(&summary.summary));
    assert_eq!(again.details, summary.details);

    // Tampered summaries are rejected.
    let mut forged = session.clone();
    let account = forged.entries.iter_mut().find(|entry| entry["type"] == "branch_summary").unwrap();
    account["details"]["summaries"][0]["text"] = json!("Lies");
    let other = TestStore::new();
    let conversation = other.ingest("one", &forged).await;
    let totals = other.store.read(move |view| view.summaries().totals(conversation)).await.unwrap();
    assert!((1..summary.details.summaries.len()).contains(&totals.summaries), "{totals:?}");
}
