//! What belongs together in other agents' sessions: a session is about its main thread, though its side
//! chains may come last, and each message has its record, though another message may carry it.

use serde_json::json;

use super::agents::fixtures;
use super::import::Machine;
use lcm_model::ids::{AGENTS, MessageId};
use lcm_model::{Message, is_of_side_chain};
use lcm_recall::Original;

#[tokio::test]
async fn a_session_begins_and_ends_in_its_main_thread() {
    for (agent, requests) in AGENTS.into_iter().zip([
        &[
            "Why does the invoice total differ by one cent? Remember the flamingo rule.",
            "Write a test for the flamingo rule.",
            "Is the flamingo rule documented?",
        ][..],
        &["Does the flamingo rule hold for refunds?"],
        &["Apply the flamingo rule to the invoices."],
        &["Write a test for the flamingo rule."],
    ]) {
        let machine = Machine::new();
        machine.run(&format!("--from {agent} \"{}\"", fixtures(agent).display())).await;
        let read = machine.home.store.read(|view| {
            let mut found = Vec::new();
            for session in view.messages().sessions(None)? {
                let entries = view.messages().entry_ids(session.id)?;
                let (side, main): (Vec<_>, Vec<_>) = entries.iter().partition(|id| is_of_side_chain(id));
                if !side.is_empty() {
                    let last = view.messages().last_entry(session.id)?.unwrap();
                    assert!(main.contains(&&last), "{last}");
                    let first = view.messages().session_facts(session.id)?.first_request.unwrap();
                    found.push(Message::parse(&view.messages().message(first)?.json).text());
                }
            }
            Ok(found)
        });
        assert_eq!(read.await.unwrap(), requests, "{agent}");
    }
}

#[tokio::test]
async fn each_message_has_its_record() {
    for agent in AGENTS {
        let machine = Machine::new();
        machine.run(&format!("--from {agent} \"{}\"", fixtures(agent).display())).await;
        let read = machine.home.store.read(|view| {
            let said = 1..=i64::try_from(view.messages().project_messages()?).unwrap();
            for id in said.map(MessageId) {
                let text = Original::read(view, id, false)?.text;
                let record = Original::read(view, id, true)?.text;
                assert!(!record.starts_with("{\"agent\""), "{record}");
                let words = text.lines().next().unwrap_or_default().trim_start_matches("[thinking]");
                let escaped = json!(words).to_string();
                let is_in_it = record.contains(escaped.trim_matches('"'));
                assert!(is_in_it || words.starts_with("[tool call "), "{text}: {record}");
            }
            Ok(())
        });
        read.await.unwrap();
    }
}
