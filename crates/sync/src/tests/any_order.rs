//! Any order of what machines do ends in the same messages everywhere.

use super::*;

/// What happens on a machine.
#[derive(Clone, Debug)]
enum Step {
    /// Something is said below one of the latest entries of a session.
    Say {
        machine: usize,
        session: usize,
        above: usize,
    },
    /// Something else is said with the id of an entry, as in a damaged file.
    Repeat {
        machine: usize,
        session: usize,
        entry: usize,
    },
    Purge {
        machine: usize,
        session: usize,
        entry: usize,
    },
    /// A session is copied with its entries' ids, as Pi forks.
    Fork {
        machine: usize,
        session: usize,
    },
    Sync {
        machine: usize,
        stops_after: Option<usize>,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_usize, 0..2_usize, 0..4_usize)
            .prop_map(|(machine, session, above)| Step::Say { machine, session, above }),
        1 => (0..3_usize, 0..2_usize, 0..20_usize)
            .prop_map(|(machine, session, entry)| Step::Repeat { machine, session, entry }),
        1 => (0..3_usize, 0..2_usize, 0..20_usize)
            .prop_map(|(machine, session, entry)| Step::Purge { machine, session, entry }),
        1 => (0..3_usize, 0..2_usize).prop_map(|(machine, session)| Step::Fork { machine, session }),
        3 => (0..3_usize, prop::option::of(0..3_usize))
            .prop_map(|(machine, stops_after)| Step::Sync { machine, stops_after }),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if lcm_testing::everything() { 200 } else { 8 }, ..ProptestConfig::default() })]
    #[test]
    fn any_order_ends_in_the_same_set_and_nothing_is_lost(steps in steps()) {
        run(async {
            let target = Arc::new(tempfile::tempdir().unwrap());
            let machines = ["ann", "bob", "eve"].map(Machine::new);
            // One does not encrypt what it sends.
            let keys: Vec<String> = machines.iter().map(Machine::key).collect();
            let options = |machine: &Machine| {
                let recipients = if machine.label == "eve" { vec![NONE.into()] } else { keys.clone() };
                Options { recipients, ..machine.options(target.path()) }
            };
            let (mut said, mut purged) = (BTreeSet::new(), BTreeSet::new());
            for (number, step) in steps.iter().enumerate() {
                match step {
                    Step::Say { machine, session, above } => {
                        let (machine, session) = (&machines[*machine], format!("session-{session}"));
                        // Each machine knows its own entries and those that came.
                        let there = machine.said().await;
                        let ids: Vec<&String> = there.iter().filter(|(of, ..)| *of == session).map(|(_, id, ..)| id).collect();
                        let parent = ids.iter().rev().nth(*above).map(|id| id.as_str());
                        let id = format!("e{number:03}");
                        machine.say(&session, &id, parent, &format!("what was said as number {number}")).await;
                        said.insert((session, id));
                    }
                    Step::Repeat { machine, session, entry } => {
                        let (machine, session, id) = (&machines[*machine], format!("session-{session}"), format!("e{entry:03}"));
                        if machine.said().await.iter().any(|(of, entry, ..)| *of == session && *entry == id) {
                            let time = 2_000 + number;
                            machine.say_at(&session, &id, None, &format!("what was said as number {number}"), time).await;
                            said.insert((session, repeated_id(&id, i64::try_from(time).unwrap(), 1)));
                        }
                    }
                    Step::Purge { machine, session, entry } => {
                        let session = format!("session-{session}");
                        let there = machines[*machine].said().await;
                        let mut ids = there.iter().filter(|(of, ..)| *of == session).map(|(_, id, ..)| id);
                        if let Some(id) = ids.nth(*entry) {
                            machines[*machine].purge(&session, id).await;
                            purged.insert((session, id.clone()));
                        }
                    }
                    Step::Fork { machine, session } => {
                        let (machine, session) = (&machines[*machine], format!("session-{session}"));
                        let there = machine.said().await.into_iter().filter(|(of, ..)| *of == session);
                        // What is purged is in no session file.
                        for (_, id, parent, json) in there.take_while(|(.., json)| json != "purged") {
                            let [id, parent] = [Some(id), parent].map(|id| serde_json::to_string(&id).unwrap());
                            let entry = format!(r#"{{"type":"message","id":{id},"parentId":{parent},"message":{json}}}"#);
                            machine.add(&format!("fork-{number}"), &entry).await;
                        }
                    }
                    Step::Sync { machine, stops_after } => {
                        let (machine, cancel) = (&machines[*machine], CancellationToken::new());
                        let (options, progress) = (options(machine), Progress::default());
                        let syncing = sync(&machine.home, &options, &progress, &cancel);
                        match stops_after {
                            None => drop(syncing.await.unwrap()),
                            Some(polls) => {
                                // Dropped in the middle, as by a process that ends.
                                let mut syncing = std::pin::pin!(syncing);
                                for _ in 0..*polls * 3 {
                                    let mut is_done = false;
                                    tokio::select! { biased; _ = &mut syncing => is_done = true, () = tokio::time::sleep(std::time::Duration::from_millis(1)) => {} }
                                    if is_done { break; }
                                }
                            }
                        }
                    }
                }
            }
            for _ in 0..4 {
                for machine in &machines {
                    let report = machine.sync_as(options(machine)).await.unwrap();
                    assert!(report.refused.is_empty(), "{report:?}");
                }
            }
            let all = machines[0].said().await;
            for machine in &machines[1..] {
                assert_eq!(machine.said().await, all);
                assert_eq!(machine.lineages().await, machines[0].lineages().await);
            }
            for (session, id) in &said {
                let found = all.iter().find(|(of, entry, ..)| of == session && entry == id);
                let what = &found.unwrap_or_else(|| panic!("{session} {id} is lost")).3;
                assert_eq!(what == "purged", purged.contains(&(session.clone(), id.clone())), "{session} {id}");
            }
        });
    }
}
