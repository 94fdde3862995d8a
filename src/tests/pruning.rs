//! Pruning: what may give way, that it happens once and in the same way, and that a compaction tells of what was pruned as if it had
//! not been.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::extent::cases;
use super::support::{Compact, ScriptedModel, Session, TestStore, compacted};
use crate::config::{Pruning, Settings};
use crate::dag::{Visible, visible};
use crate::model::{Message, Role};
use crate::pruning::{Draft, Limits, Piece, plan};
use crate::tokens;

const CHAT: &str = "what is said when nothing is asked for ";

/// What is shown of a context.
#[derive(Clone, Debug)]
struct Context(Vec<Piece>);

impl Context {
    fn of(session: &Session) -> Self {
        let pieces = session.entries.iter().enumerate().map(|(at, entry)| {
            let message = Message::parse(&entry["message"].to_string());
            let is_edited = entry["message"]["edited"] == true;
            let (entry_id, handle) = (entry["id"].as_str().unwrap().to_owned(), format!("m-{at:010x}"));
            Piece { entry_id, handle, tokens: message.tokens(), message, pruned: None, is_edited }
        });
        Self(pieces.collect())
    }

    fn shown(&self) -> impl Iterator<Item = &Piece> {
        self.0.iter().filter(|piece| piece.pruned != Some(0))
    }

    fn tokens(&self) -> usize {
        self.0.iter().map(|piece| piece.pruned.unwrap_or(piece.tokens)).sum()
    }

    fn apply(&mut self, draft: &Draft) {
        let (target, tokens) = match draft {
            Draft::Stub { target, text, .. } => (target, tokens::estimate(text)),
            Draft::Hide { target } => (target, 0),
        };
        let piece = self.0.iter_mut().find(|piece| piece.entry_id == *target).unwrap();
        piece.pruned = Some(tokens);
    }

    /// Results that stand without a call before them, and calls whose results are gone.
    fn unpaired(&self) -> (usize, HashSet<String>) {
        let (mut calls, mut orphans, mut open) = (HashSet::new(), 0, HashSet::new());
        for piece in self.shown() {
            for call in piece.message.tool_calls() {
                calls.insert(call.to_owned());
                open.insert(call.to_owned());
            }
            if let Some(id) = &piece.message.tool_call_id {
                orphans += usize::from(!calls.contains(id));
                open.remove(id);
            }
        }
        (orphans, open)
    }
}

/// What happens in a session.
fn happen(session: Session, (what, size): (u8, u8)) -> Session {
    let words = |n: usize| CHAT.repeat(n);
    let count = usize::from(size);
    match what % 9 {
        0 | 1 => session.user(&format!("request {}", words(count / 8))),
        2 => session.assistant(&words(count / 4)),
        3 | 4 => session.tool(
            "bash",
            json!({"command": words(count / 60)}),
            &"a line of output\n".repeat(count * 4),
        ),
        5 | 6 => {
            let ids: Vec<String> =
                (0..2 + size % 3).map(|at| format!("p{}_{at}", session.entries.len())).collect();
            let call = |id: &String| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a.rs"}});
            let calls: Value = ids.iter().map(call).collect();
            let session = session.message(json!({"role": "assistant", "content": calls}));
            // A turn that was stopped has calls without results.
            let answered = if size.is_multiple_of(7) { 1 } else { ids.len() };
            ids.iter().take(answered).fold(session, |session, id| {
                let text = json!([{"type": "text", "text": "one line\n".repeat(count * 6)}]);
                session.message(
                    json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": text,
                    "edited": size.is_multiple_of(11)}),
                )
            })
        }
        7 => session.message(json!({"role": "bashExecution", "command": "ls", "output": words(count)})),
        _ => session.message(json!({"role": "custom", "customType": "note", "content": words(count / 3)})),
    }
}

fn limits(mode: Pruning, yellow: usize, red: usize, least: usize) -> Limits {
    Limits { mode, yellow: Some(yellow), red: Some(red), least }
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn batches_leave_the_newest_turn_and_whole_pairs_and_are_made_once(
        events in prop::collection::vec((any::<u8>(), any::<u8>()), 1..60),
        later in prop::collection::vec((any::<u8>(), any::<u8>()), 1..20),
        turns in any::<bool>(), yellow in 1_usize..40, red in 1_usize..60,
    ) {
        let mode = if turns { Pruning::Turns } else { Pruning::Tools };
        let limits = limits(mode, yellow * 250, red * 250, 1);
        let session = events.into_iter().fold(Session::new(), happen);
        let mut context = Context::of(&session);
        let newest = context.0.iter().rposition(|piece| piece.message.role == Role::User).unwrap_or_default();
        let before = context.tokens();
        let was_unpaired = context.unpaired();
        let planned = plan(&context.0, &limits, before);
        prop_assert_eq!(&planned, &plan(&context.0.clone(), &limits, before));
        for draft in &planned.drafts {
            let (Draft::Stub { target, .. } | Draft::Hide { target }) = draft;
            let at = context.0.iter().position(|piece| piece.entry_id == *target).unwrap();
            prop_assert!(at < newest);
            prop_assert!(!context.0[at].is_edited);
            prop_assert!(context.0[at].message.role != Role::Bash);
            context.apply(draft);
            // Wherever Pi is stopped.
            prop_assert!(context.unpaired().0 <= was_unpaired.0);
        }
        prop_assert_eq!(context.tokens() + planned.freed, before);
        let open = context.unpaired().1;
        prop_assert!(open.is_subset(&was_unpaired.1), "{:?}", open);
        prop_assert_eq!(plan(&context.0, &limits, context.tokens()).drafts, vec![]);

        // What comes later changes nothing of it, but for a turn that goes as a whole.
        let grown = later.into_iter().fold(session, happen);
        let mut after = Context::of(&grown);
        for (piece, pruned) in after.0.iter_mut().zip(&context.0) {
            piece.pruned = pruned.pruned;
        }
        let next = plan(&after.0, &limits, after.tokens().max(red * 250));
        for draft in &next.drafts {
            if let Draft::Stub { target, hides: 0, .. } = draft {
                let is_pruned = |piece: &&Piece| piece.entry_id == *target && piece.pruned.is_some();
                prop_assert!(context.0.iter().find(is_pruned).is_none());
            }
        }
    }
}

#[test]
fn nothing_gives_way_while_the_context_is_green() {
    let session = Session::new().user("go").tool("bash", json!({"command": "ls"}), &"line\n".repeat(4_000));
    let context = Context::of(&session.assistant("there").user("next").assistant("done"));
    let limits = limits(Pruning::Tools, 10_000, 20_000, 1_000);
    assert!(plan(&context.0, &limits, 9_999).drafts.is_empty());
    assert_eq!(plan(&context.0, &limits, 10_000).drafts.len(), 1);
    let off = Limits { mode: Pruning::Off, ..limits };
    assert!(plan(&context.0, &off, 90_000).drafts.is_empty());
}

#[test]
fn what_the_user_says_while_the_model_works_makes_no_older_turn_of_the_work() {
    let bulky = "line\n".repeat(4_000);
    let at_work = || Session::new().user("go").tool("bash", json!({"command": "ls"}), &bulky);
    for steered in [at_work().user("mind the tests"), at_work().user("one").user("two").assistant("done")] {
        let context = Context::of(&steered);
        assert!(plan(&context.0, &limits(Pruning::Turns, 1, 2, 1), 90_000).drafts.is_empty());
    }
    let after = Context::of(&at_work().user("mind the tests").assistant("done").user("next"));
    assert!(!plan(&after.0, &limits(Pruning::Turns, 1, 2, 1), 90_000).drafts.is_empty());
}

#[test]
fn notes_stay_in_sight() {
    let note = |session: Session| {
        session.tool("lcm_note", json!({"text": "never push"}), &"1. never push\n".repeat(400))
    };
    let session =
        note(Session::new().user("Keep this")).assistant(&CHAT.repeat(200)).user("next").assistant("done");
    let context = Context::of(&session);
    assert!(plan(&context.0, &limits(Pruning::Turns, 1, 2, 1), 50_000).drafts.is_empty());
}

#[test]
fn a_stub_tells_what_stood_there_and_how_it_comes_back() {
    let error =
        "error[E0308]: mismatched types\n\n  --> src/lib.rs:1\n  note\n".to_owned() + &"more\n".repeat(1_000);
    let session = Session::new().user("Fix the build").tool("bash", json!({"command": "cargo test"}), &error);
    let picture = json!([{"type": "text", "text": "a".repeat(9_000)}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]);
    let call = json!([{"type": "toolCall", "id": "pic", "name": "read", "arguments": {"path": "a.png"}}]);
    let session = session.message(json!({"role": "assistant", "content": call})).message(
        json!({"role": "toolResult", "toolCallId": "pic", "toolName": "read", "content": picture, "isError": true}),
    );
    let context = Context::of(&session.assistant("Built.").user("Thanks"));
    let texts = |mode, usage| -> Vec<String> {
        let planned = plan(&context.0, &limits(mode, 2_000, 3_000, 1), usage);
        planned
            .drafts
            .iter()
            .filter_map(|draft| match draft {
                Draft::Stub { text, .. } => Some(text.clone()),
                Draft::Hide { .. } => None,
            })
            .collect()
    };
    assert_eq!(
        texts(Pruning::Tools, 2_500),
        [
            "[bash {\"command\":\"cargo test\"} gave 1004 lines, 5 KB; left out to save context. All of it: \
             lcm_expand {\"summary_id\":\"m-0000000002\"}]\nerror[E0308]: mismatched types\n…\nmore"
                .to_owned(),
            format!(
                "[read {{\"path\":\"a.png\"}} failed with 1 line, 9 KB, 1 image; left out to save context. All of it: \
                 lcm_expand {{\"summary_id\":\"m-0000000004\"}}]\n{}…",
                "a".repeat(120)
            )
        ]
    );
    let [whole] = texts(Pruning::Turns, 9_000).try_into().unwrap();
    assert!(whole.starts_with("[An earlier turn, 6 messages, about "), "{whole}");
    assert!(
        whole.ends_with(
            "left out to save context. The user: \"Fix the build\" The answer began: \"Built.\" All of it: \
         lcm_expand {\"summary_id\":\"m-0000000000\",\"turn\":true}]"
        ),
        "{whole}"
    );
}

fn stub(target: &str, hides: usize) -> Value {
    let text = json!([{"type": "text", "text": "what stood here is left out"}]);
    json!({"targetId": target, "replacement": {"content": text, "lcm": {"hides": hides}}})
}

fn hidden(target: &str) -> Value {
    json!({"targetId": target, "replacement": null})
}

/// The ids of what is seen, with the tokens shown in place of what was pruned.
async fn seen(store: &TestStore, session: &Session) -> Vec<(String, Option<usize>)> {
    let conversation = store.ingest("s1", session).await;
    let leaf = session.leaf().to_owned();
    let read = store.store.read(move |view| Ok(visible(&view.branch(conversation, &leaf)?)));
    read.await.unwrap().into_iter().map(|Visible { entry_id, pruned, .. }| (entry_id, pruned)).collect()
}

#[tokio::test]
async fn stubs_of_ours_are_known_by_the_session_alone_and_hide_nothing_from_the_store() {
    let store = TestStore::new();
    let session = Session::new().chat(3, 20);
    // The first turn goes as a whole; the edit below it is somebody else's, though it looks the same.
    let session = session
        .entry("context_edit", stub("e1", 1))
        .entry("context_edit", hidden("e2"))
        .entry("context_edit", hidden("e4"))
        .entry("custom", json!({"customType": "lcm_stub", "data": stub("e5", 0)}))
        .entry("custom", json!({"customType": "lcm_stub", "data": hidden("e6")}))
        .entry("context_edit", stub("e3", 0))
        .entry("context_edit", json!({"targetId": "e3", "replacement": {"content": "theirs"}}));
    let tokens = Some(tokens::estimate("what stood here is left out"));
    let expected = [("e1", tokens), ("e2", Some(0)), ("e3", None), ("e5", tokens), ("e6", Some(0))];
    let expected: Vec<_> = expected.into_iter().map(|(id, pruned)| (id.to_owned(), pruned)).collect();
    assert_eq!(seen(&store, &session).await, expected);
    let theirs = store.visible(crate::ids::ConversationId(1), session.leaf()).await;
    assert_eq!(theirs[2]["content"], "theirs");
}

/// The block, what was asked of the model for it, and the first entry that stays.
async fn block(session: &Session, leaf: &str, kept: &str) -> (String, Vec<String>, String) {
    let store = TestStore::new();
    let conversation = store.ingest("s1", session).await;
    let model = ScriptedModel::helpful();
    let compact = Compact::new(&store, conversation, leaf, kept)
        .with(|settings: &mut Settings, _| settings.leaf_pass_concurrency = 1);
    let compaction = compacted(compact.run(&model).await);
    // The fence has a random name.
    let fence = regex::Regex::new("history-[0-9a-z]+").unwrap();
    let prompts =
        model.prompts().iter().map(|prompt| fence.replace_all(prompt, "history").into_owned()).collect();
    (compaction.summary, prompts, compaction.first_kept_entry_id.unwrap())
}

#[tokio::test]
async fn a_compaction_tells_of_what_was_pruned_as_if_it_had_not_been() {
    let whole = (0..12).fold(Session::new(), |session, turn| {
        let session = session.user(&format!("question {turn}"));
        session
            .tool("bash", json!({"command": format!("run {turn}")}), &format!("output {turn}\n").repeat(80))
            .assistant(&format!("answer {turn}"))
    });
    let leaf = whole.leaf().to_owned();
    let pruned = whole
        .clone()
        .entry("context_edit", stub("e7", 0))
        .entry("context_edit", stub("e1", 3))
        .entry("context_edit", hidden("e4"))
        .entry("context_edit", hidden("e3"))
        .entry("context_edit", hidden("e2"))
        .entry("context_edit", stub("e33", 3))
        .entry("context_edit", hidden("e36"))
        .entry("context_edit", hidden("e35"))
        .entry("context_edit", hidden("e34"));
    let expected = block(&whole, &leaf, "e37").await;
    assert_eq!(block(&pruned, pruned.leaf(), "e37").await, expected);
    // Pi begins the tail with what nobody sees any more; the turn's stub stands above, so it goes with that.
    assert_eq!(block(&pruned, pruned.leaf(), "e34").await, expected);
    assert_eq!(expected.2, "e37");
}
