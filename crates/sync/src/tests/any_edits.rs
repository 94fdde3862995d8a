//! Whatever users do with session files on three machines, in any order: what was purged is gone, and nothing else is.

use super::edited_files::{line, open};
use super::*;
use proptest::test_runner::Config;
use serde_json::Value;

#[derive(Clone, Debug)]
enum Act {
    Say {
        machine: usize,
        session: usize,
    },
    /// The text of a line is changed.
    Edit {
        machine: usize,
        session: usize,
        line: usize,
    },
    /// A line is removed, and its child moved up or not.
    Remove {
        machine: usize,
        session: usize,
        line: usize,
        moves: bool,
    },
    /// The user takes the file of an earlier time.
    Back {
        machine: usize,
        session: usize,
        steps: usize,
    },
    Purge {
        machine: usize,
        entry: usize,
    },
    Fork {
        machine: usize,
        session: usize,
    },
    /// The file is copied to another machine.
    Copy {
        from: usize,
        to: usize,
        session: usize,
    },
    Repeat {
        machine: usize,
        session: usize,
        line: usize,
        is_at_once: bool,
    },
    /// A line is put before another one.
    Insert {
        machine: usize,
        session: usize,
        line: usize,
    },
    /// An entry without a message.
    Link {
        machine: usize,
        session: usize,
    },
    Sync {
        machine: usize,
        stops_after: Option<usize>,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (m, s) = (0..3_usize, 0..4_usize);
    let act = prop_oneof![
        6 => (m.clone(), s.clone()).prop_map(|(machine, session)| Act::Say { machine, session }),
        3 => (m.clone(), s.clone(), 0..6_usize).prop_map(|(machine, session, line)| Act::Edit { machine, session, line }),
        2 => (m.clone(), s.clone(), 0..6_usize, any::<bool>())
            .prop_map(|(machine, session, line, moves)| Act::Remove { machine, session, line, moves }),
        1 => (m.clone(), s.clone(), 1..4_usize).prop_map(|(machine, session, steps)| Act::Back { machine, session, steps }),
        3 => (m.clone(), 0..30_usize).prop_map(|(machine, entry)| Act::Purge { machine, entry }),
        2 => (m.clone(), s.clone()).prop_map(|(machine, session)| Act::Fork { machine, session }),
        2 => (m.clone(), m.clone(), s.clone()).prop_map(|(from, to, session)| Act::Copy { from, to, session }),
        2 => (m.clone(), s.clone(), 0..6_usize, any::<bool>())
            .prop_map(|(machine, session, line, is_at_once)| Act::Repeat { machine, session, line, is_at_once }),
        1 => (m.clone(), s.clone(), 0..6_usize).prop_map(|(machine, session, line)| Act::Insert { machine, session, line }),
        1 => (m.clone(), s.clone()).prop_map(|(machine, session)| Act::Link { machine, session }),
        5 => (m, prop::option::weighted(0.2, 0..4_usize)).prop_map(|(machine, stops_after)| Act::Sync { machine, stops_after }),
    ];
    prop::collection::vec(act, 3..30)
}

/// A session's files on a machine, the newest last, with its origin.
#[derive(Clone, Default)]
struct Files {
    states: Vec<Vec<Value>>,
    origin: Option<String>,
}

fn said(id: &str, parent: Option<&str>, number: usize, time: usize) -> Value {
    line(id, parent, &text_of(number), time)
}

fn text_of(number: usize) -> String {
    format!("what was said as number {number:04}, which is long")
}

/// The texts on a machine: the number, with the id in the file and the time.
async fn texts(machine: &Machine) -> BTreeSet<(usize, String, i64)> {
    let mut all = BTreeSet::new();
    for (_, id, _, json) in machine.said().await {
        if json == "purged" || json == "Link" {
            continue;
        }
        let json: Value = serde_json::from_str(&json).unwrap();
        let text = json["content"].as_str().unwrap();
        let number = text["what was said as number ".len()..][..4].parse().unwrap();
        all.insert((
            number,
            id.split('\u{1f}').next().unwrap().to_owned(),
            json["timestamp"].as_i64().unwrap(),
        ));
    }
    all
}

fn name(session: usize) -> String {
    format!("session-{session}")
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 400, ..lcm_testing::cases(60) })]
    #[test]
    fn whatever_users_do_what_was_purged_is_gone_and_nothing_else(acts in acts()) {
        run(any_order(acts));
    }
}

async fn any_order(acts: Vec<Act>) {
    let target = Arc::new(tempfile::tempdir().unwrap());
    let machines = ["ann", "bob", "eve"].map(Machine::new);
    let mut files: HashMap<(usize, String), Files> = HashMap::new();
    let (mut seen, mut purged) = (BTreeSet::new(), BTreeSet::new());
    for (number, act) in acts.iter().enumerate() {
        let mut opened: Option<(usize, String)> = None;
        match act {
            Act::Say { machine, session } => {
                let at = (*machine, name(*session));
                let there = files.entry(at.clone()).or_default();
                let mut lines = there.states.last().cloned().unwrap_or_default();
                let parent = lines.last().map(|line| line["id"].as_str().unwrap().to_owned());
                // A session begins on one machine.
                if lines.is_empty() && *session % 3 != *machine {
                    continue;
                }
                lines.push(said(&format!("e{number:03}"), parent.as_deref(), number, 1_000 + number));
                there.states.push(lines);
                opened = Some(at);
            }
            Act::Edit { machine, session, line: at_line } => {
                let at = (*machine, name(*session));
                let Some(there) = files.get_mut(&at) else { continue };
                let mut lines = there.states.last().cloned().unwrap_or_default();
                let Some(found) = lines.get_mut(*at_line) else { continue };
                if found["type"] != "message" {
                    continue;
                }
                found["message"]["content"] = json!(text_of(number));
                there.states.push(lines);
                opened = Some(at);
            }
            Act::Remove { machine, session, line, moves } => {
                let at = (*machine, name(*session));
                let Some(there) = files.get_mut(&at) else { continue };
                let mut lines = there.states.last().cloned().unwrap_or_default();
                if *line >= lines.len() || lines.len() < 2 {
                    continue;
                }
                let gone = lines.remove(*line);
                if *moves {
                    for below in lines.iter_mut().filter(|line| line["parentId"] == gone["id"]) {
                        below["parentId"] = gone["parentId"].clone();
                    }
                }
                there.states.push(lines);
                opened = Some(at);
            }
            Act::Insert { machine, session, line: at_line } => {
                let at = (*machine, name(*session));
                let Some(there) = files.get_mut(&at) else { continue };
                let mut lines = there.states.last().cloned().unwrap_or_default();
                let Some(found) = lines.get_mut(*at_line) else { continue };
                let id = format!("i{number:03}");
                let new = said(&id, found["parentId"].as_str(), number, 1_000 + number);
                found["parentId"] = json!(id);
                lines.insert(*at_line, new);
                there.states.push(lines);
                opened = Some(at);
            }
            Act::Link { machine, session } => {
                let at = (*machine, name(*session));
                let Some(there) = files.get_mut(&at) else { continue };
                let mut lines = there.states.last().cloned().unwrap_or_default();
                let Some(above) = lines.last().map(|line| line["id"].clone()) else { continue };
                lines.push(json!({"type": "custom", "id": format!("c{number:03}"), "parentId": above, "customType": "x"}));
                there.states.push(lines);
                opened = Some(at);
            }
            Act::Back { machine, session, steps } => {
                let at = (*machine, name(*session));
                let Some(there) = files.get_mut(&at) else { continue };
                let Some(state) = there.states.iter().rev().nth(*steps).cloned() else { continue };
                there.states.push(state);
                opened = Some(at);
            }
            Act::Purge { machine, entry } => {
                let there = machines[*machine].said().await;
                let Some((session, id, _, json)) =
                    there.into_iter().filter(|(.., json)| json.starts_with('{')).nth(*entry)
                else {
                    continue;
                };
                let json: Value = serde_json::from_str(&json).unwrap();
                purged.insert((
                    id.split('\u{1f}').next().unwrap().to_owned(),
                    json["timestamp"].as_i64().unwrap(),
                ));
                machines[*machine].purge(&session, &id).await;
            }
            Act::Fork { machine, session } => {
                let at = (*machine, name(*session));
                let Some(there) = files.get(&at) else { continue };
                let Some(lines) = there.states.last().cloned() else { continue };
                let fork = (*machine, format!("fork-{number}"));
                files.insert(fork.clone(), Files { states: vec![lines], origin: Some(at.1) });
                opened = Some(fork);
            }
            Act::Copy { from, to, session } => {
                let at = (*from, name(*session));
                let Some(lines) = files.get(&at).and_then(|there| there.states.last().cloned()) else {
                    continue;
                };
                let to = (*to, at.1);
                files.entry(to.clone()).or_default().states.push(lines);
                opened = Some(to);
            }
            Act::Repeat { machine, session, line: at_line, is_at_once } => {
                let at = (*machine, name(*session));
                let Some(lines) = files.get(&at).and_then(|there| there.states.last()) else { continue };
                let Some(found) = lines.get(*at_line).filter(|line| line["type"] == "message") else {
                    continue;
                };
                let (id, parent) = (found["id"].as_str().unwrap(), found["parentId"].as_str());
                let time = if *is_at_once {
                    found["message"]["timestamp"].as_u64().unwrap() as usize
                } else {
                    5_000 + number
                };
                if lines.iter().any(|line| Some(line["id"].as_str().unwrap()) == parent) || parent.is_none() {
                    machines[*machine].add(&at.1, &said(id, parent, number, time).to_string()).await;
                }
            }
            Act::Sync { machine, stops_after } => {
                let (machine, cancel) = (&machines[*machine], CancellationToken::new());
                let (options, progress) = (machine.options(target.path()), Progress::default());
                let syncing = sync(&machine.home, &options, &progress, &cancel);
                match stops_after {
                    None => drop(syncing.await.unwrap()),
                    Some(polls) => {
                        let mut syncing = std::pin::pin!(syncing);
                        for _ in 0..*polls * 3 {
                            let mut is_done = false;
                            tokio::select! { biased; _ = &mut syncing => is_done = true, () = tokio::time::sleep(std::time::Duration::from_millis(1)) => {} }
                            if is_done {
                                break;
                            }
                        }
                    }
                }
            }
        }
        if let Some((machine, session)) = opened {
            let Files { states, origin } = &files[&(machine, session.clone())];
            open(&machines[machine], &session, origin.as_deref(), states.last().unwrap()).await;
        }
        for machine in &machines {
            seen.extend(texts(machine).await);
        }
    }
    for _ in 0..6 {
        for machine in &machines {
            let report = machine.sync_as(machine.options(target.path())).await.unwrap();
            assert!(report.refused.is_empty() && report.waiting == 0, "{report:?}");
        }
    }
    let late = Machine::new("late");
    let report = late.sync_as(late.options(target.path())).await.unwrap();
    assert_eq!((report.waiting, report.refused.len()), (0, 0), "late");
    // Every session is opened once more.
    for ((machine, session), Files { states, origin }) in &files {
        let Some(lines) = states.last() else { continue };
        open(&machines[*machine], session, origin.as_deref(), lines).await;
    }
    for (machine, label) in machines.iter().chain([&late]).zip(["ann", "bob", "eve", "late"]) {
        let there = texts(machine).await;
        for text in &seen {
            let is_purged = purged.contains(&(text.1.clone(), text.2));
            assert_eq!(there.contains(text), !is_purged, "{label}: {text:?}");
        }
    }
    for text in seen.iter().filter(|text| purged.contains(&(text.1.clone(), text.2))) {
        let what = format!("as number {:04}", text.0);
        assert!(!is_anywhere(target.path(), &what), "{text:?} is at the target");
    }
    for _ in 0..3 {
        for machine in &machines {
            machine.sync_as(machine.options(target.path())).await.unwrap();
        }
    }
    let files_now = packs(target.path());
    for machine in &machines {
        let report = machine.sync_as(machine.options(target.path())).await.unwrap();
        assert_eq!((report.sent.packs, report.rewritten), (0, 0), "{report:?}");
    }
    assert_eq!(packs(target.path()), files_now, "no fixed point");
}
