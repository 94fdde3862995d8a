//! Compactions from the request to the block.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted, kept};
use lcm_compaction::Outcome;
use lcm_compaction::llm::{Failure, Reply};
use lcm_model::dag::{Sources, visible};
use lcm_model::error;
use lcm_model::ids::{ConversationId, Handle, Hash, MessageId, SummaryId};
use lcm_model::tokens;
use lcm_store::View;
use lcm_testing::cases;

/// The messages below a summary, read from the edges.
fn sources_of(view: &View<'_>, id: SummaryId) -> error::Result<Vec<MessageId>> {
    match view.summaries().sources(id)? {
        Sources::Messages(messages) => Ok(messages),
        Sources::Summaries(summaries) => {
            let mut all = Vec::new();
            for summary in summaries {
                all.extend(sources_of(view, summary)?);
            }
            Ok(all)
        }
    }
}

/// The messages that the summaries named in `block` cover, read from the edges, in the block's order.
pub(super) async fn covered(store: &TestStore, block: &str) -> Vec<MessageId> {
    let ids = block.split("### Summary IDs for Drill-Down").nth(1).unwrap();
    let handles: Vec<Handle> = ids
        .lines()
        .filter_map(|line| Handle::parse(line.strip_prefix("- ")?.split(' ').next()?).ok())
        .collect();
    assert!(!handles.is_empty(), "{block}");
    let read = move |view: &View<'_>| {
        let mut all = Vec::new();
        for handle in handles {
            let ids = view.summaries().summaries_like(&handle, None)?;
            assert_eq!(ids.len(), 1);
            all.extend(sources_of(view, ids[0])?);
        }
        Ok(all)
    };
    store.store.read(read).await.unwrap()
}

pub(super) async fn visible_before(
    store: &TestStore,
    conversation: ConversationId,
    leaf: &str,
    kept: &str,
) -> Vec<MessageId> {
    let (leaf, kept) = (leaf.to_owned(), kept.to_owned());
    let read = move |view: &View<'_>| {
        let branch = view.messages().branch(conversation, &leaf)?;
        let end = branch.iter().position(|entry| entry.entry_id == kept).unwrap();
        Ok(visible(&branch).into_iter().filter(|v| v.index < end).map(|v| v.seen.id).collect())
    };
    store.store.read(read).await.unwrap()
}

#[tokio::test]
async fn the_block_covers_each_message_before_the_tail_once_and_prompts_hold_only_those() {
    let session = Session::new()
        .chat(20, 30)
        .user("ABANDONED question")
        .assistant("ABANDONED answer")
        .at("e40")
        .chat(6, 30)
        .user("KEPT question")
        .assistant("KEPT answer");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::helpful();
    let compact = Compact::new(&store, conversation, session.leaf(), "e55");
    let compaction = compacted(compact.run(&model).await);

    let expected = visible_before(&store, conversation, session.leaf(), "e55").await;
    assert_eq!(expected.len(), 52);
    assert_eq!(covered(&store, &compaction.summary).await, expected);
    assert!(compaction.summary.contains("covers 52 messages, none missing, 0 degraded"));

    let prompts = model.prompts().join("\n");
    for at in (0..40).step_by(2).chain((42..54).step_by(2)) {
        assert!(prompts.contains(&format!("question {at} ")), "question {at}");
        assert!(prompts.contains(&format!("answer {at} ")), "answer {at}");
    }
    assert!(!prompts.contains("ABANDONED") && !prompts.contains("KEPT"));
    assert_eq!(compaction.usage.unwrap()["input"], json!(10 * model.prompts().len()));
}

#[tokio::test]
async fn a_block_without_room_for_its_leaves_shows_condensed_summaries() {
    let session = Session::new().chat(150, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let expected = visible_before(&store, conversation, session.leaf(), session.leaf()).await;
    let model = ScriptedModel::helpful();
    let block = async |budget: usize| {
        let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
        let compaction = compacted(compact.with(|s, _| s.max_summary_tokens = budget).run(&model).await);
        assert_eq!(covered(&store, &compaction.summary).await, expected, "{budget}");
        assert!(tokens::estimate(&compaction.summary) <= budget);
        (0..4).map(|depth| compaction.summary.matches(&format!("(D{depth}, ")).count()).collect::<Vec<_>>()
    };
    // All leaves, or the newest ones next to condensed older ones.
    assert_eq!(block(8_000).await, [75, 0, 0, 0]);
    let calls = model.prompts().len();
    let tight = block(1_500).await;
    assert!(tight[0] > 2 && tight[0] < 75 && tight[1] + tight[2] > 0, "{tight:?}");
    assert_eq!(model.prompts().len(), calls);
}

#[tokio::test]
async fn without_a_model_the_block_still_covers_everything_and_is_smaller() {
    let session = Session::new().chat(60, 60).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::failing();
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&model).await);
    let expected = visible_before(&store, conversation, session.leaf(), session.leaf()).await;
    assert_eq!(covered(&store, &compaction.summary).await, expected);
    assert!(tokens::estimate(&compaction.summary) <= 8_000);
    // A provider that is down is not asked for every chunk.
    assert!(model.prompts().len() <= 10, "{}", model.prompts().len());

    // When it is back, the extracts are made again, and the summaries condensed from them are superseded.
    let healed = compacted(compact.run(&ScriptedModel::helpful()).await);
    assert!(healed.summary.contains("none missing, 0 degraded"), "{}", healed.summary);
    assert_eq!(covered(&store, &healed.summary).await, expected);
}

#[tokio::test]
async fn a_reply_as_long_as_its_source_is_requested_again_as_bullet_points() {
    let session = Session::new().chat(10, 10).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::new(|request| {
        let text = if request.prompt.contains("bullet points") {
            "- a short one.".into()
        } else {
            "word ".repeat(5_000)
        };
        Ok(Reply { text, model: None, usage: None })
    });
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.leaf_chunk_tokens = 100_000);
    let compaction = compacted(compact.run(&model).await);
    let kinds: Vec<bool> = model.prompts().iter().map(|prompt| prompt.contains("bullet points")).collect();
    assert_eq!(kinds, [false, true]);
    assert!(compaction.summary.contains("- a short one"));
}

#[tokio::test]
async fn a_fork_uses_its_parents_summaries_without_a_model_call() {
    let session = Session::new().chat(30, 30).user("tail");
    let fork = session.clone().user("more").assistant("indeed");
    let store = TestStore::new();
    let one = store.ingest("one", &session).await;
    let parent =
        compacted(Compact::new(&store, one, session.leaf(), "e61").run(&ScriptedModel::helpful()).await);
    let two = store.ingest("two", &fork).await;
    let model = ScriptedModel::helpful();
    let child = compacted(Compact::new(&store, two, fork.leaf(), "e61").run(&model).await);
    assert_eq!(model.prompts(), Vec::<String>::new());
    assert_eq!(child.details.frontier, parent.details.frontier);
}

#[tokio::test]
async fn a_late_edit_invalidates_only_the_leaf_that_covers_it() {
    let session = Session::new().chat(30, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let settle =
        |settings: &mut lcm_model::config::Settings, _: &mut _| settings.condensation_threshold = 100;
    let before = Compact::new(&store, conversation, session.leaf(), "e61").with(settle);
    let before = compacted(before.run(&ScriptedModel::helpful()).await);
    let edited = session.entry("context_edit", json!({"targetId": "e10", "replacement": null}));
    store.ingest("one", &edited).await;
    let model = ScriptedModel::helpful();
    let after = Compact::new(&store, conversation, edited.leaf(), "e61").with(settle);
    let after = compacted(after.run(&model).await);
    let kept: HashSet<_> = before.details.frontier.iter().collect();
    let again = after.details.frontier.iter().filter(|id| !kept.contains(id)).count();
    assert_eq!(again, 1, "{:?}", after.details.frontier);
    assert_eq!(model.prompts().len(), 1);
    let expected = visible_before(&store, conversation, edited.leaf(), "e61").await;
    assert_eq!(covered(&store, &after.summary).await, expected);
}

#[tokio::test]
async fn a_lost_database_is_rebuilt_from_the_session() {
    let mut session = Session::new().chat(40, 30);
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    for _ in 0..2 {
        let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
        let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
        session = session
            .entry("compaction", json!({"summary": compaction.summary, "details": compaction.details}))
            .chat(20, 30);
        store.ingest("one", &session).await;
    }
    let rebuilt = TestStore::new();
    let again = rebuilt.ingest("one", &session).await;
    let before = hashes_on(&store, conversation, session.leaf()).await;
    assert!(before.len() > 10, "{}", before.len());
    assert_eq!(hashes_on(&rebuilt, again, session.leaf()).await, before);
}

/// The identities of all summaries that begin on the branch.
async fn hashes_on(store: &TestStore, conversation: ConversationId, leaf: &str) -> Vec<Hash> {
    let leaf = leaf.to_owned();
    let read = move |view: &View<'_>| {
        let ids: Vec<_> =
            visible(&view.messages().branch(conversation, &leaf)?).iter().map(|v| v.seen.id).collect();
        let nodes = view.summaries().nodes_on(&ids)?;
        nodes
            .iter()
            .map(|node| Ok(view.summaries().summary(node.id)?.hash))
            .collect::<error::Result<Vec<_>>>()
    };
    let mut hashes = store.store.read(read).await.unwrap();
    hashes.sort_unstable();
    hashes
}

#[tokio::test]
async fn a_model_without_usable_answers_is_given_up() {
    let session = Session::new().chat(80, 60).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let empty = || Err(Failure::useless("the answer has no text"));
    let model = ScriptedModel::new(move |_| empty());
    let compaction =
        compacted(Compact::new(&store, conversation, session.leaf(), session.leaf()).run(&model).await);
    assert!(model.prompts().len() <= 24, "{}", model.prompts().len());
    assert!(compaction.summary.contains("none missing"));
}

/// A model that summarizes messages and fails to condense summaries.
fn fails_to_condense() -> std::sync::Arc<ScriptedModel> {
    let count = std::sync::atomic::AtomicUsize::new(0);
    ScriptedModel::new(move |request| {
        // Only such a prompt says how deep its sources are.
        if request.prompt.contains(" D0 ") {
            return Err(Failure::useless("the answer has no text"));
        }
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = format!("Stretch {n}\n{}", "what happened in it ".repeat(10));
        Ok(Reply { text, model: Some("scripted/model".into()), usage: None })
    })
}

pub(super) async fn depths(store: &TestStore, conversation: ConversationId) -> Vec<(u32, usize, usize)> {
    let read = store.store.read(move |view| view.summaries().depths(conversation)).await.unwrap();
    read.iter().map(|depth| (depth.depth, depth.summaries, depth.degraded)).collect()
}

#[tokio::test]
async fn while_there_is_room_an_extract_does_not_replace_good_leaves() {
    let session = Session::new().chat(60, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    let compaction = compacted(compact.run(&fails_to_condense()).await);
    assert!(compaction.summary.contains("none missing, 0 degraded"), "{}", compaction.summary);
    let leaves = depths(&store, conversation).await;
    assert!(leaves.len() == 1 && leaves[0].1 > 7, "{leaves:?}");
    // A model that answers condenses them after all.
    compacted(compact.run(&ScriptedModel::helpful()).await);
    assert_eq!(depths(&store, conversation).await.len(), 2);
}

#[tokio::test]
async fn without_room_an_extract_replaces_leaves_until_a_model_answers() {
    let session = Session::new().chat(90, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.max_summary_tokens = 1_000);
    let compaction = compacted(compact.run(&fails_to_condense()).await);
    assert!(!compaction.summary.contains(" 0 degraded"), "{}", compaction.summary);
    let healed = compacted(compact.run(&ScriptedModel::helpful()).await);
    assert!(healed.summary.contains("none missing, 0 degraded"), "{}", healed.summary);
    let expected = visible_before(&store, conversation, session.leaf(), session.leaf()).await;
    assert_eq!(covered(&store, &healed.summary).await, expected);
}

#[tokio::test]
async fn alternating_success_and_failure_always_terminates() {
    let session = Session::new().chat(90, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
        .with(|settings, _| settings.max_summary_tokens = 1_000);
    let (failing, helpful) = (ScriptedModel::failing(), ScriptedModel::helpful());
    for model in [&failing, &fails_to_condense(), &failing, &helpful, &fails_to_condense(), &helpful] {
        let compaction = compacted(compact.run(model).await);
        assert!(compaction.summary.contains("none missing"), "{}", compaction.summary);
    }
}

#[tokio::test]
async fn a_tiny_chunk_needs_no_model() {
    let store = TestStore::new();
    let session = Session::new().chat(20, 30).user("tail");
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    compacted(compact.run(&ScriptedModel::helpful()).await);

    let longer = session.assistant("Done.").user("Thanks!");
    store.ingest("one", &longer).await;
    let model = ScriptedModel::helpful();
    let again = Compact::new(&store, conversation, longer.leaf(), longer.leaf());
    let compaction = compacted(again.run(&model).await);
    assert_eq!(model.prompts(), [""; 0]);
    assert!(
        compaction.summary.contains("tail") && compaction.summary.contains("0 degraded"),
        "{}",
        compaction.summary
    );
}

#[tokio::test]
async fn if_pis_cut_keeps_nothing_visible_the_users_request_stays() {
    let session = Session::new()
        .chat(20, 30)
        .user("the request")
        .assistant("failed attempt")
        .entry("context_edit", json!({"targetId": "e42", "replacement": null}));
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), "e42");
    let compaction = compacted(compact.run(&ScriptedModel::helpful()).await);
    assert_eq!(kept(&compaction), "e41");
    let expected = visible_before(&store, conversation, session.leaf(), "e41").await;
    assert_eq!(covered(&store, &compaction.summary).await, expected);
}

#[tokio::test]
async fn a_small_window_gets_small_chunks() {
    let session = Session::new().chat(60, 100).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let model = ScriptedModel::helpful();
    let compact =
        Compact::new(&store, conversation, session.leaf(), session.leaf()).with(|settings, request| {
            settings.leaf_chunk_tokens = 4_000;
            request.context_window = Some(4_000);
        });
    compacted(compact.run(&model).await);
    let longest = model.prompts().iter().map(|prompt| tokens::estimate(prompt)).max().unwrap();
    assert!(longest < 3_000, "{longest}");
}

#[tokio::test]
async fn a_short_branch_is_left_to_pi() {
    let session = Session::new().chat(4, 10).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    assert_eq!(compact.run(&ScriptedModel::helpful()).await, Outcome::Declined);
}

#[tokio::test]
async fn an_abort_keeps_the_finished_summaries() {
    let session = Session::new().chat(40, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let model = ScriptedModel::new(move |_| {
        if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 5 {
            stop.cancel();
            return Err(Failure::unreachable("aborted"));
        }
        Ok(Reply { text: "short".into(), model: None, usage: None })
    });
    let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
    assert_eq!(compact.run_until(&model, cancel).await, Outcome::Cancelled);
    let totals = store.store.read(move |view| view.summaries().totals(conversation)).await.unwrap();
    assert!((1..=5).contains(&totals.summaries), "{}", totals.summaries);
    let rest = ScriptedModel::helpful();
    let compaction = compacted(compact.run(&rest).await);
    assert!(compaction.summary.contains("none missing"));
}

#[tokio::test]
async fn an_automatic_compaction_leaves_a_small_remainder_raw_and_a_manual_one_does_not() {
    let session = Session::new().chat(14, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let run = |reason: &'static str| {
        let compact =
            Compact::new(&store, conversation, session.leaf(), session.leaf()).with(|settings, request| {
                settings.leaf_chunk_tokens = 1_000;
                request.reason = Some(reason.into());
            });
        async move { compacted(compact.run(&ScriptedModel::helpful()).await) }
    };
    let automatic = run("threshold").await;
    assert_ne!(kept(&automatic), session.leaf());
    let expected = visible_before(&store, conversation, session.leaf(), kept(&automatic)).await;
    assert_eq!(covered(&store, &automatic.summary).await, expected);
    assert_eq!(kept(&run("manual").await), session.leaf());
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn any_block_covers_each_message_once_and_fits_its_budget(
        turns in proptest::collection::vec((0_u8..5, 1_usize..120), 6..60),
        budget in 1_000_usize..6_000,
        chunk in 100_usize..2_000,
        fails in 0_u8..3,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut session = Session::new().chat(5, 10);
            for (kind, words) in &turns {
                let text = "some words ".repeat(*words);
                session = match kind {
                    0 => session.user(&text),
                    1 => session.tool("read", json!({"path": format!("src/{words}.rs")}), &text),
                    2 => session.entry("label", json!({"targetId": "e1", "label": "x"})),
                    3 => session.entry("context_edit", json!({"targetId": format!("e{words}"), "replacement": null})),
                    _ => session.assistant(&text),
                };
            }
            let session = session.user("tail");
            let store = TestStore::new();
            let conversation = store.ingest("one", &session).await;
            let model = ScriptedModel::new(move |request| match fails {
                0 => Err(Failure::unreachable("down")),
                1 if request.prompt.len() % 2 == 0 => Err(Failure::useless("cut off")),
                _ => Ok(Reply { text: format!("Sum\n{}", "w ".repeat(request.prompt.len() / 20)), model: None, usage: None }),
            });
            let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
                .with(|settings, _| {
                    settings.max_summary_tokens = budget;
                    settings.leaf_chunk_tokens = chunk;
                });
            let outcome = compact.run(&model).await;
            if outcome == Outcome::Declined { return; }
            let compaction = compacted(outcome);
            let kept = kept(&compaction);
            let expected = visible_before(&store, conversation, session.leaf(), kept).await;
            assert_eq!(covered(&store, &compaction.summary).await, expected);
            assert!(tokens::estimate(&compaction.summary) <= budget);
        });
    }
}

#[tokio::test]
async fn the_notice_counts_what_comes_before_the_conversation() {
    let session = Session::new().chat(60, 30).user("tail");
    let store = TestStore::new();
    let conversation = store.ingest("one", &session).await;
    let mut afters = Vec::new();
    for prompt in [2_000, 11_000] {
        let compact = Compact::new(&store, conversation, session.leaf(), session.leaf())
            .with(|_, request| request.prompt_tokens = Some(prompt));
        let Outcome::Compacted(made) = compact.run(&ScriptedModel::helpful()).await else {
            panic!("it was not compacted");
        };
        let (_, after) = made.report.split_once(" → about ").unwrap();
        afters.push(after.split(' ').next().unwrap().replace(',', "").parse::<u64>().unwrap());
    }
    assert_eq!(afters[1], afters[0] + 9_000);
}
