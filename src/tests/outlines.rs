//! A history too long for a model to answer for all of it at once: outlines fill in, and summaries of their
//! parts replace them.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::compaction::{covered, depths, visible_before};
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_compaction::Compaction;
use lcm_compaction::llm::{Failure, Reply};
use lcm_model::ids::ConversationId;
use lcm_model::tokens;

/// Maximum tokens of the block. It has room for the minimum number of outlines.
const BUDGET: usize = 4_500;
/// Maximum number of outlines.
const OUTLINES: usize = 8;

/// A long session without summaries.
struct Long {
    session: Session,
    store: TestStore,
    conversation: ConversationId,
}

impl Long {
    async fn new() -> Self {
        let session = (Session::new().chat(50, 60).user("First of all\nNever  push to main.\nThanks"))
            .tool("edit", json!({"path": "src/parser.rs"}), "error: nobody reads this")
            .chat(50, 60)
            .tool("read", json!({"path": "docs/plan.md"}), "the plan")
            .script(
                "edit()",
                &[
                    ("edit", json!({"path": "src/lexer.rs"}), "ok"),
                    ("read", json!({"path": "gone"}), "error"),
                ],
                "",
            )
            .chat(20, 60)
            .user("tail");
        let store = TestStore::new();
        let conversation = store.ingest("one", &session).await;
        Self { session, store, conversation }
    }

    /// Compacts, and asserts that the block covers everything within its limit.
    async fn compacted(&self, model: &Arc<ScriptedModel>) -> Compaction {
        let leaf = self.session.leaf();
        let compact = Compact::new(&self.store, self.conversation, leaf, leaf).with(|settings, _| {
            settings.max_summary_tokens = BUDGET;
            settings.leaf_chunk_tokens = 600;
        });
        let compaction = compacted(compact.run(model).await);
        let expected = visible_before(&self.store, self.conversation, leaf, leaf).await;
        assert_eq!(covered(&self.store, &compaction.summary).await, expected);
        assert!(tokens::estimate(&compaction.summary) <= BUDGET, "{}", compaction.summary);
        compaction
    }

    /// Leaf summaries, and how many of them no model wrote.
    async fn leaves(&self) -> (usize, usize) {
        let (_, all, degraded) = depths(&self.store, self.conversation).await[0];
        (all, degraded)
    }
}

/// A model that answers `answers` questions and then fails, and the questions that it answered.
fn failing_after(answers: usize) -> (Arc<ScriptedModel>, Arc<Mutex<Vec<String>>>) {
    let answered: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = answered.clone();
    let model = ScriptedModel::new(move |request| {
        let mut answered = answered.lock().unwrap();
        if answered.len() == answers {
            return Err(Failure::unreachable("503 overloaded"));
        }
        answered.push(request.prompt.clone());
        Ok(Reply { text: format!("Part {} of it.", answered.len()), model: None, usage: None })
    });
    (model, all)
}

#[tokio::test]
async fn outlines_have_requests_rules_and_files() {
    let long = Long::new().await;
    let compaction = long.compacted(&ScriptedModel::failing()).await;
    // Each chunk that was tried before the model was given up has an extract.
    let (all, degraded) = long.leaves().await;
    assert!(all == degraded && (OUTLINES..=OUTLINES + 8).contains(&all), "{all}");
    let block = compaction.summary;
    for expected in ["Outline of ", "- question 119 ", "- question 243 ", "Never push to main."] {
        assert!(block.contains(expected), "{expected}: {block}");
    }
    assert!(!block.contains("nobody reads this"), "{block}");
    assert_eq!(compaction.details.modified_files, ["src/lexer.rs", "src/parser.rs"]);
    assert_eq!(compaction.details.read_files, ["docs/plan.md"]);
    // Without a model the outlines stay.
    let again = long.compacted(&ScriptedModel::failing()).await;
    // How many chunks get their own extract before the model is given up depends on the threads.
    let shown = |block: &str| block.split_once(" summaries | ").map(|(_, shown)| shown.to_owned());
    assert_eq!(shown(&again.summary), shown(&block));
    let (all, degraded) = long.leaves().await;
    assert!(all == degraded && (OUTLINES..=OUTLINES + 8).contains(&all), "{all}");
}

#[tokio::test]
async fn a_model_that_answers_again_replaces_all_outlines() {
    let long = Long::new().await;
    long.compacted(&ScriptedModel::failing()).await;
    let model = ScriptedModel::helpful();
    let healed = long.compacted(&model).await;
    assert!(healed.summary.contains("none missing, 0 degraded"), "{}", healed.summary);
    assert!(!healed.summary.contains("Outline of"), "{}", healed.summary);
    let (all, degraded) = long.leaves().await;
    assert!(all - degraded > 20, "{all} {degraded}");
    // Nothing is left to do.
    let calls = model.prompts().len();
    long.compacted(&model).await;
    assert_eq!(model.prompts().len(), calls);
}

#[tokio::test]
async fn finished_summaries_are_not_requested_again_after_a_failure() {
    let long = Long::new().await;
    long.compacted(&ScriptedModel::failing()).await;
    let before = long.leaves().await;
    let (failing, answered) = failing_after(9);
    let half = long.compacted(&failing).await;
    // An outline stays until all of its parts are done, and no other replaces it meanwhile.
    assert!(half.summary.contains("Outline of"), "{}", half.summary);
    let (all, degraded) = long.leaves().await;
    assert!(all - degraded == before.0 - before.1 + 9, "{all} {degraded}");
    let model = ScriptedModel::helpful();
    let healed = long.compacted(&model).await;
    assert!(healed.summary.contains("none missing, 0 degraded"), "{}", healed.summary);
    // Which chunks were answered first depends on the threads.
    let chunks = |prompts: Vec<String>| prompts.iter().map(|prompt| chunk(prompt)).collect::<Vec<_>>();
    let (asked, tried) = (chunks(model.prompts()), chunks(failing.prompts()));
    let answered = chunks(answered.lock().unwrap().clone());
    assert!(answered.iter().all(|chunk| !asked.contains(chunk)), "{answered:?}");
    let failed = tried.iter().find(|chunk| !answered.contains(chunk)).unwrap();
    assert!(asked.contains(failed));
}

/// The questions in the chunk that a prompt is about.
fn chunk(prompt: &str) -> String {
    prompt.lines().filter(|line| line.starts_with("question ")).collect()
}

#[tokio::test]
async fn a_refused_part_does_not_keep_an_outline() {
    let long = Long::new().await;
    long.compacted(&ScriptedModel::failing()).await;
    let model = ScriptedModel::new(|request| match request.prompt.contains("Never  push") {
        true => Err(Failure::useless("the model refused")),
        false => Ok(Reply { text: "What came of it.".into(), model: None, usage: None }),
    });
    let compaction = long.compacted(&model).await;
    assert!(!compaction.summary.contains("Outline of"), "{}", compaction.summary);
    assert!(compaction.summary.contains("Never push to main."), "{}", compaction.summary);
}
