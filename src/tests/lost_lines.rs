//! Logs of other agents that lose lines, or are replaced, after an import. Their records have no ids, and what follows moves.

use std::fs;

use super::agents::{files, fixtures, records_and_words};
use super::forks::exported;
use super::import::Machine;
use super::purge_agents::{purge, stored};
use lcm_model::Message;

const CODEX: &str = "codex/0.44";

/// The lines of an agent's first fixture.
fn lines_of(fixture: &str) -> Vec<String> {
    let file = files(&fixtures(fixture)).remove(0);
    fs::read_to_string(file).unwrap().lines().map(ToOwned::to_owned).collect()
}

fn says(second: usize, text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-05T11:00:{second:02}.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
}

/// Imports a log of these lines, and returns the report.
async fn import(machine: &Machine, agent: &str, lines: &[String]) -> String {
    let log = machine.at("log.jsonl");
    fs::write(&log, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    machine.run(&format!("--from {agent} \"{}\"", log.display())).await
}

#[tokio::test]
async fn what_follows_lost_lines_is_stored_once() {
    let all = lines_of(CODEX);
    for lost in 1..all.len() {
        let machine = Machine::new();
        import(&machine, "codex", &all).await;
        let mut lines = all.clone();
        lines.remove(lost);
        lines.push(says(0, "The next message."));
        for rounds in 1..4 {
            let report = import(&machine, "codex", &lines).await;
            assert!(report.starts_with("1 session: 1 message new, "), "{lost} {rounds}: {report}");
            let digest = machine.digest().await;
            assert!(import(&machine, "codex", &lines).await.contains(": 0 messages new, "));
            assert_eq!(machine.digest().await, digest);
            lines.push(says(rounds, "One more."));
        }
        let (records, _) = records_and_words(&machine).await;
        assert_eq!(records.len(), all.len() + 3, "{records:#?}");
        assert!(all.iter().all(|line| records.contains(line)));
        // A log that is restored brings nothing twice.
        assert!(import(&machine, "codex", &all).await.contains(": 0 messages new, "));
    }
}

#[tokio::test]
async fn a_replaced_log_is_stored_next_to_the_first() {
    let machine = Machine::new();
    let all = lines_of(CODEX);
    import(&machine, "codex", &all).await;
    let mut lines = vec![all[0].clone()];
    lines.extend((0..9).map(|n| says(n, &format!("Number {n}."))));
    assert_eq!(import(&machine, "codex", &lines).await, "1 session: 9 messages new, 0 known already");
    assert_eq!(import(&machine, "codex", &lines).await, "1 session: 0 messages new, 9 known already");
}

#[tokio::test]
async fn no_moved_line_brings_a_purged_message_back() {
    let mut all = lines_of(CODEX);
    all.push(says(0, "The last flamingo."));
    for n in 0.. {
        let machine = Machine::new();
        import(&machine, "codex", &all).await;
        let said = stored(&machine).await.into_iter().filter(|(_, said, _)| *said).nth(n);
        let Some((id, _, json)) = said else { break };
        let text = Message::parse(&json).readable();
        purge(&machine, id).await;
        let left = stored(&machine).await.len();
        for lost in 1..all.len() {
            let mut lines = all.clone();
            lines.remove(lost);
            let report = import(&machine, "codex", &lines).await;
            assert!(report.contains(": 0 messages new, "), "{lost} {text}: {report}");
            assert_eq!(stored(&machine).await.len(), left);
        }
        // The line is deleted, and the session goes on.
        let line = text.lines().max_by_key(|line| line.len()).unwrap().trim_start_matches("[thinking] ");
        let mut lines: Vec<String> = all.iter().filter(|one| !one.contains(line)).cloned().collect();
        lines.push(says(1, "It goes on."));
        let report = import(&machine, "codex", &lines).await;
        assert!(report.starts_with("1 session: 1 message new, "), "{text}: {report}");
    }
}

#[tokio::test]
async fn a_record_without_an_id_may_follow_lost_ones_that_have_ids() {
    let machine = Machine::new();
    let summary = |text: &str| format!(r#"{{"type":"summary","summary":"{text}","leafUuid":"u2-6"}}"#);
    let mut lines = lines_of("claude-code/1.0");
    lines.push(summary("First."));
    import(&machine, "claude-code", &lines).await;
    // It removes a message that was interrupted.
    lines.remove(4);
    lines.push(summary("Second."));
    import(&machine, "claude-code", &lines).await;
    let (records, _) = records_and_words(&machine).await;
    assert!(lines.iter().all(|line| records.contains(line)), "{records:#?}");
    assert_eq!(records.len(), lines.len() + 1);
}

#[tokio::test]
async fn a_codex_session_that_goes_back_to_an_earlier_prompt_has_two_logs() {
    let machine = Machine::new();
    let all = lines_of(CODEX);
    let session = "c0000000-0000-4000-8000-000000000002";
    let log = |name: &str, lines: &[String]| {
        let log = machine.at(&format!("logs/rollout-{name}.jsonl"));
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(log, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    };
    // The numbers of a log continue those of its base.
    let numbered = |from: usize, lines: Vec<String>| -> Vec<String> {
        let numbers = from..;
        lines
            .iter()
            .zip(numbers)
            .map(|(line, n)| line.replacen('{', &format!("{{\"ordinal\":{n},"), 1))
            .collect()
    };
    let later = |log: &str, base: &str, from: usize, text: &str| {
        let begin = format!(
            r#"{{"timestamp":"2026-01-05T11:00:00.000Z","type":"session_meta","payload":{{"id":"{session}","cwd":"/home/ada/kontor","history_base":{{"thread_id":"{base}","end_ordinal_exclusive":{from}}}}}}}"#
        );
        let name = format!("2026-01-05T11-0{log}-{session}_a000000{log}-0000-4000-8000-000000000009");
        (name, numbered(from, vec![begin, says(1, text)]))
    };
    log(&format!("2026-01-05T10-00-00-{session}"), &numbered(0, all));
    // A copy with another name is the same log.
    log(&format!("2026-01-05T10-00-00-{session}_copy"), &numbered(0, lines_of(CODEX)));
    let (name, lines) = later("1", session, 7, "Not so.");
    log(&name, &lines);
    let (name, lines) = later("2", "a0000001-0000-4000-8000-000000000009", 9, "Rather so.");
    log(&name, &lines);
    let line = format!("--from codex \"{}\"", machine.at("logs").display());
    assert_eq!(machine.run(&line).await, "1 session: 6 messages new, 4 known already");
    let digest = machine.digest().await;
    assert_eq!(machine.run(&line).await, "1 session: 0 messages new, 10 known already");
    assert_eq!(machine.digest().await, digest);
    let read = machine.home.store.read(move |view| {
        let conversation = view.messages().conversation(&format!("codex:{session}"))?.unwrap();
        let last = view.messages().last_entry(conversation)?.unwrap();
        let mut texts = Vec::new();
        for shown in view.messages().shown(conversation, &last)? {
            texts.push(Message::parse(&view.messages().json_of(shown.original)?).text());
        }
        Ok(texts)
    });
    let texts = read.await.unwrap();
    assert_eq!(texts.len(), 5, "{texts:#?}");
    assert_eq!(texts[3..], ["Not so.", "Rather so."]);
    // An export has a file for each log.
    assert_eq!(exported(&machine, "codex", "out").await.len(), 3);
    let line = format!("--from codex \"{}\"", machine.at("out").display());
    for machine in [&machine, &Machine::new()] {
        machine.run(&line).await;
        assert_eq!(machine.digest().await, digest);
    }
}

#[tokio::test]
async fn a_purged_record_before_the_first_time_stays_away() {
    let machine = Machine::new();
    let summary = |text: &str| format!(r#"{{"type":"summary","summary":"{text}","leafUuid":"u2-6"}}"#);
    let mut lines = vec![summary("The first flamingo.")];
    lines.extend(lines_of("claude-code/1.0").into_iter().filter(|line| line.contains("uuid")));
    lines.push(summary("The last one."));
    import(&machine, "claude-code", &lines).await;
    let first =
        stored(&machine).await.into_iter().find(|(.., json)| json.contains("first flamingo")).unwrap();
    purge(&machine, first.0).await;
    lines.remove(3);
    import(&machine, "claude-code", &lines).await;
    assert!(stored(&machine).await.iter().all(|(.., json)| !json.contains("first flamingo")));
}

#[tokio::test]
async fn a_new_line_without_a_time_is_not_taken_for_a_purged_one() {
    let machine = Machine::new();
    let says = |text: &str| {
        format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#)
    };
    let mut lines = vec![r#"{"id":"s","timestamp":"2025-08-01T10:00:00.000Z"}"#.to_owned()];
    lines.extend(["Begin.", "The password is hunter2.", "Go on."].map(says));
    import(&machine, "codex", &lines).await;
    let secret = stored(&machine).await.into_iter().find(|(.., json)| json.contains("hunter2")).unwrap();
    purge(&machine, secret.0).await;
    let line = lines.remove(2);
    lines.push(says("It goes on."));
    let report = import(&machine, "codex", &lines).await;
    assert!(report.starts_with("1 session: 1 message new, "), "{report}");
    lines.insert(2, line);
    assert!(import(&machine, "codex", &lines).await.contains(": 0 messages new, "));
}

#[tokio::test]
async fn a_copy_of_a_codex_log_under_another_name_is_the_same_log() {
    let machine = Machine::new();
    let all = lines_of(CODEX);
    import(&machine, "codex", &all).await;
    let digest = machine.digest().await;
    let copy = machine.at("my_log.jsonl");
    fs::copy(machine.at("log.jsonl"), &copy).unwrap();
    machine.run(&format!("--from codex \"{}\"", copy.display())).await;
    assert_eq!(machine.digest().await, digest);
}
