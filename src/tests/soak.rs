//! Many compactions of a growing session: the depth of the DAG, and the model calls of each compaction.

use serde_json::json;

use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use lcm_model::tokens;
use lcm_testing::share;

/// Compactions in `npm run test:all`, and the minimum.
const COMPACTIONS: u32 = 150;
const AT_LEAST: u32 = 45;
/// Turns between two of them: about three leaf chunks.
const TURNS: usize = 7;

/// Depth grows with the logarithm of the leaves; if it grew with the number of compactions, it would exceed
/// this limit by far.
fn deepest(leaves: usize) -> u32 {
    leaves.next_power_of_two().trailing_zeros() / 2 + 2
}

#[tokio::test]
async fn repeated_compactions_stay_cheap_and_the_dag_shallow() {
    let compactions = share(COMPACTIONS).max(AT_LEAST) as usize;
    let store = TestStore::new();
    let mut session = Session::new().chat(TURNS, 30);
    let (mut calls, mut leaves, mut depth) = (Vec::new(), 0, 0);
    for round in 0..compactions {
        let mut fresh = session.clone();
        if round > 0 {
            fresh.entries.drain(..session.entries.len() - 2 * TURNS - 1);
        }
        let conversation = store.ingest("one", &fresh).await;
        let model = ScriptedModel::helpful();
        let compact = Compact::new(&store, conversation, session.leaf(), session.leaf());
        let compaction = compacted(compact.run(&model).await);
        let said = (round + 1) * TURNS * 2 - 1;
        assert_eq!(compaction.details.covered, said, "round {round}");
        assert!(tokens::estimate(&compaction.summary) <= 8_000);
        leaves += compaction.details.summaries.iter().filter(|summary| summary.depth == 0).count();
        depth = compaction.details.summaries.iter().map(|summary| summary.depth).fold(depth, u32::max);
        assert!(depth <= deepest(leaves), "depth {depth} of {leaves} leaves in round {round}");
        // An entry carries only new summaries, however many exist.
        assert!(compaction.details.summaries.len() <= 24, "{}", compaction.details.summaries.len());
        calls.push(model.prompts().len());
        let fields = json!({"summary": compaction.summary, "details": compaction.details});
        session = session.entry("compaction", fields).chat(TURNS, 30);
    }
    assert!(depth >= 2, "{depth}");
    let (early, late): (usize, usize) = (calls[15..30].iter().sum(), calls[compactions - 15..].iter().sum());
    assert!(late <= early * 3 / 2, "{early} calls became {late}: {calls:?}");
    assert!(calls.iter().all(|calls| *calls <= 24), "{calls:?}");
}
