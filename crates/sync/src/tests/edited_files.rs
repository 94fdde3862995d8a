//! Session files that users edit, copy and fork, before and after a purge.

use super::*;
use lcm_ingest::{Persistor, PiSession};
use lcm_model::log::Log;

pub(super) async fn tells(machine: &Machine, text: &str) -> bool {
    machine.said().await.iter().any(|(.., json)| json.contains(text))
}

/// The numbers in the places of purged messages, by session and entry.
pub(super) async fn numbers(machine: &Machine) -> BTreeSet<(String, String, Vec<u8>)> {
    machine
        .read(|view| {
            let mut all = BTreeSet::new();
            for session in view.messages().sessions(None)? {
                for id in view.messages().entry_ids(session.id)? {
                    let Some(shown) = view.messages().shown_by(session.id, &id)? else { continue };
                    if view.upkeep().shows_purged(session.id, &id)? {
                        let nonce = view.upkeep().nonce(shown)?.unwrap();
                        all.insert((session.session_id.clone(), id, nonce.to_vec()));
                    }
                }
            }
            Ok(all)
        })
        .await
}

/// A line of a session's file.
pub(super) fn line(id: &str, parent: Option<&str>, text: &str, time: usize) -> serde_json::Value {
    let message = json!({"role": "user", "content": text, "timestamp": time});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-20T09:00:00.000Z", "message": message})
}

pub(super) fn custom(id: &str, parent: Option<&str>) -> serde_json::Value {
    json!({"type": "custom", "id": id, "parentId": parent, "timestamp": "2026-11-20T09:00:00.000Z", "customType": "x"})
}

/// Opens a session as the shim does: hands over what is missing, compares with the file, and hands over again.
pub(super) async fn open(machine: &Machine, id: &str, origin: Option<&str>, lines: &[serde_json::Value]) {
    let path = machine.home.db_dir.join(format!("{id}.jsonl"));
    let header = json!({"type": "session", "version": 3, "id": id, "cwd": "/shop"});
    let text: String = std::iter::once(&header).chain(lines).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    let origin =
        origin.map(|origin| machine.home.db_dir.join(format!("{origin}.jsonl")).display().to_string());
    let session = PiSession { id: id.into(), file: Some(path.display().to_string()), parent_file: origin };
    let persistor = Persistor::open(&machine.home.store, session, Log::default()).await.unwrap();
    let ids: Vec<String> = lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    for is_second in [false, true] {
        let missing = persistor.missing(ids.clone()).await.unwrap();
        let missing: Vec<_> = missing.into_iter().map(|at| &lines[at]).collect();
        let is_orphan = |line: &&&serde_json::Value| {
            line["parentId"].as_str().is_some_and(|parent| !ids.iter().any(|id| id == parent))
        };
        let orphans = missing.iter().filter(is_orphan).map(|line| line["id"].as_str().unwrap().to_owned());
        persistor.hand_over(&json!(missing).to_string(), orphans.collect()).unwrap();
        machine.home.store.flush().await.unwrap();
        if !is_second {
            persistor.set_aside(&CancellationToken::new()).await.unwrap();
        }
    }
    std::fs::remove_file(path).unwrap();
}

pub(super) async fn rounds(target: &Path, machines: &[&Machine]) {
    for _ in 0..4 {
        for machine in machines {
            let report = machine.sync(target).await;
            assert!(report.refused.is_empty(), "{report:?}");
        }
    }
}

/// A fork that is stored after the purge, and has another message above.
#[test]
fn a_fork_of_an_edited_file_does_not_bring_a_purged_message_back() {
    run(async {
        let ann = Machine::new("ann");
        let told = [line("e1", None, "the fox", 1), line("e2", Some("e1"), "hunter2hunter2hunter2", 2)];
        open(&ann, "one", None, &told).await;
        ann.purge("one", "e2").await;
        let edited = [line("e1", None, "the red fox", 1), told[1].clone()];
        open(&ann, "one", None, &edited).await;
        assert!(!tells(&ann, "hunter2").await);
        open(&ann, "two", Some("one"), &edited).await;
        assert!(!tells(&ann, "hunter2").await);
    });
}

/// The fork is on the other machine, before or after the purge comes.
#[test]
fn a_purge_reaches_a_fork_of_an_edited_file_elsewhere() {
    run(async {
        for is_later in [false, true] {
            let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
            let target = target.path();
            let told = [line("e1", None, "the fox", 1), line("e2", Some("e1"), "hunter2hunter2hunter2", 2)];
            let edited = [line("e1", None, "the red fox", 1), told[1].clone()];
            open(&ann, "one", None, &told).await;
            if !is_later {
                open(&bob, "one", None, &told).await;
                open(&bob, "two", Some("one"), &edited).await;
            }
            ann.sync(target).await;
            ann.purge("one", "e2").await;
            ann.sync(target).await;
            bob.sync(target).await;
            if is_later {
                open(&bob, "two", Some("one"), &edited).await;
            }
            rounds(target, &[&bob, &ann]).await;
            assert!(!tells(&bob, "hunter2").await && !tells(&ann, "hunter2").await, "{is_later}");
            assert!(!is_anywhere(target, "hunter2"), "{is_later}");
        }
    });
}

/// The other machine has only the fork.
#[test]
fn a_purge_reaches_a_fork_of_which_only_the_fork_is_there() {
    run(async {
        for is_edited in [false, true] {
            let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
            let target = target.path();
            let told = [line("e1", None, "the fox", 1), line("e2", Some("e1"), "hunter2hunter2hunter2", 2)];
            let edited = [line("e1", None, "the red fox", 1), told[1].clone()];
            open(&ann, "one", None, &told).await;
            open(&bob, "two", Some("one"), if is_edited { &edited } else { &told }).await;
            ann.sync(target).await;
            ann.purge("one", "e2").await;
            rounds(target, &[&ann, &bob]).await;
            assert!(!tells(&bob, "hunter2").await && !tells(&ann, "hunter2").await, "{is_edited}");
        }
    });
}

/// A machine that comes later, after an edited message was purged.
#[test]
fn a_late_machine_has_the_same_lineages_after_a_purge_of_two_versions() {
    (0..6).for_each(|_| {
        run(async {
            let (target, ann, late) =
                (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("late"));
            let target = target.path();
            open(&ann, "one", None, &[line("e1", None, "hunter2", 1), line("e2", Some("e1"), "the hen", 2)])
                .await;
            open(&ann, "one", None, &[line("e1", None, "hunter3", 1), line("e2", Some("e1"), "the hen", 2)])
                .await;
            ann.purge("one", "e1").await;
            rounds(target, &[&ann, &late]).await;
            assert_eq!(late.said().await, ann.said().await);
            assert_eq!(numbers(&late).await, numbers(&ann).await);
            assert_eq!(late.lineages().await, ann.lineages().await);
        });
    });
}

/// What was put in the place of a secret, masked and not.
#[test]
fn a_purge_reaches_what_was_sent_masked_and_unmasked() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        let key = format!("AKIA{}", "IOSFODNN7EXAMPL2");
        let told = [
            line("e1", None, &format!("the key is {key}, keep it, quokka"), 1),
            line("e2", Some("e1"), "the hen", 2),
        ];
        open(&ann, "one", None, &told).await;
        ann.sync_as(Options { redacts: true, ..ann.options(target) }).await.unwrap();
        bob.sync(target).await;
        // Bob gets the file too.
        open(&bob, "one", None, &told).await;
        for machine in [&bob, &eve] {
            machine.sync(target).await;
        }
        eve.purge("one", "e1").await;
        for _ in 0..3 {
            eve.sync(target).await;
            bob.sync(target).await;
            ann.sync_as(Options { redacts: true, ..ann.options(target) }).await.unwrap();
        }
        for machine in [&ann, &bob, &eve] {
            assert!(!tells(machine, "quokka").await, "{}", machine.label);
            assert!(tells(machine, "hen").await, "{}", machine.label);
        }
        assert!(!is_anywhere(target, "quokka"));
    });
}

/// An edit of the file above a purged message.
#[test]
fn an_edit_above_a_purged_message_is_stored() {
    run(async {
        let ann = Machine::new("ann");
        let told = [line("e1", None, "the fox", 1), line("e2", Some("e1"), "hunter2hunter2hunter2", 2)];
        open(&ann, "one", None, &told).await;
        ann.purge("one", "e2").await;
        open(&ann, "one", None, &[line("e1", None, "the red fox", 1), told[1].clone()]).await;
        assert!(!tells(&ann, "hunter2").await);
        assert!(tells(&ann, "red fox").await, "Pi shows it");
    });
}

/// An own pack has an entry without a message, which an edit of the file has removed with the one above it.
#[test]
fn an_own_pack_with_a_removed_link_is_written_again() {
    run(async {
        for is_edited_above in [false, true] {
            let (target, ann) = (tempfile::tempdir().unwrap(), Machine::new("ann"));
            let target = target.path();
            let told = [
                line("e1", None, "the fox", 1),
                line("e2", Some("e1"), "the owl", 2),
                custom("c3", Some("e2")),
                line("e4", Some("c3"), "hunter2hunter2hunter2", 4),
            ];
            open(&ann, "one", None, &told[..2]).await;
            ann.sync(target).await;
            open(&ann, "one", None, &told).await;
            ann.sync(target).await;
            let secret = line("e4", Some("e1"), "hunter2hunter2hunter2", 4);
            let edited = match is_edited_above {
                true => vec![line("e1", None, "the red fox", 1), secret],
                // The line of a compaction is deleted, say.
                false => vec![told[0].clone(), told[1].clone(), told[3].clone()],
            };
            open(&ann, "one", None, &edited).await;
            ann.purge("one", "e4").await;
            let mut syncs = Vec::new();
            for _ in 0..4 {
                let report = ann.sync(target).await;
                syncs.push((report.waiting, is_anywhere(target, "hunter2")));
            }
            assert_eq!(syncs, [(0, false); 4], "waiting, and the text at the target: {is_edited_above}");
        }
    });
}

/// An entry was inserted into the file before own packs were written again.
#[test]
fn a_late_machine_reads_packs_that_were_written_again_after_an_insertion() {
    run(async {
        for is_encrypted in [false, true] {
            let (target, ann, late) =
                (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("late"));
            let target = target.path();
            let told = [line("e1", None, "the fox", 1), line("e5", Some("e1"), "the hen", 5)];
            open(&ann, "one", None, &told).await;
            ann.say("two", "f1", None, "hunter2").await;
            if is_encrypted {
                ann.sync_to(target, &[]).await
            } else {
                ann.sync(target).await
            };
            let inserted =
                [told[0].clone(), line("e2", Some("e1"), "the owl", 2), line("e5", Some("e2"), "the hen", 5)];
            open(&ann, "one", None, &inserted).await;
            if is_encrypted {
                ann.sync_to(target, &[]).await
            } else {
                ann.sync(target).await
            };
            if !is_encrypted {
                ann.purge("two", "f1").await;
            }
            for _ in 0..3 {
                if is_encrypted {
                    ann.sync_to(target, &[&late]).await
                } else {
                    ann.sync(target).await
                };
                let report =
                    if is_encrypted { late.sync_to(target, &[&ann]).await } else { late.sync(target).await };
                assert_eq!(report.waiting, 0, "{is_encrypted}");
            }
            assert!(tells(&late, "owl").await && tells(&late, "fox").await && tells(&late, "hen").await);
        }
    });
}
