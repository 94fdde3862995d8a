//! Purges that reach all machines, and nothing else.

use super::edited_files::{line, numbers, open, rounds, tells};
use super::*;

#[test]
fn what_is_purged_on_one_machine_is_gone_everywhere() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        ann.say("one", "e1", None, "the fox").await;
        ann.say("one", "e2", Some("e1"), "hunter2hunter2hunter2").await;
        ann.say("one", "e3", Some("e2"), "the hen").await;
        ann.sync(target.path()).await;
        bob.sync(target.path()).await;
        bob.say("one", "e4", Some("e3"), "the owl").await;
        bob.sync(target.path()).await;
        ann.sync(target.path()).await;
        eve.sync(target.path()).await;
        assert!(is_anywhere(target.path(), "hunter2hunter2"));
        // Bob purges what is in Ann's pack.
        bob.purge("one", "e2").await;
        bob.sync(target.path()).await;
        let behind = |view: &View<'_>| {
            let own = view.synced().purged()?;
            let machines = view.synced().machines()?.into_iter().filter(|machine| machine.purged < own);
            Ok(machines.map(|machine| machine.label).collect::<Vec<_>>())
        };
        assert_eq!(bob.read(behind).await, ["ann", "eve"]);
        let report = ann.sync(target.path()).await;
        assert_eq!((report.purged, report.rewritten), (1, 1));
        eve.sync(target.path()).await;
        bob.sync(target.path()).await;
        assert!(bob.read(behind).await.is_empty());
        assert!(!is_anywhere(target.path(), "hunter2hunter2"));
        let said = ann.said().await;
        for machine in [&ann, &bob, &eve] {
            assert!(!is_anywhere(&machine.home.db_dir, "hunter2hunter2"), "{}", machine.label);
            assert_eq!(
                (machine.said().await, machine.lineages().await),
                (said.clone(), ann.lineages().await)
            );
        }
        let late = Machine::new("late");
        late.sync(target.path()).await;
        assert_eq!(late.said().await, said);
        // Once all have seen it, nothing more is sent.
        for machine in [&ann, &bob, &eve, &late, &ann, &bob, &eve, &late] {
            machine.sync(target.path()).await;
        }
        let files = packs(target.path());
        for machine in [&ann, &bob, &eve, &late] {
            machine.sync(target.path()).await;
        }
        assert_eq!(packs(target.path()), files);
    });
}

/// Syncs until nothing changes any more, and asserts that all machines have the same and none has the secret.
async fn assert_gone(target: &Path, machines: &[&Machine]) {
    for machine in machines.iter().chain(machines).chain(machines) {
        let report = machine.sync(target).await;
        assert!(report.refused.is_empty(), "{report:?}");
    }
    assert!(!is_anywhere(target, "hunter2hunter2"));
    for machine in machines {
        assert!(!is_anywhere(&machine.home.db_dir, "hunter2hunter2"), "{}", machine.label);
        assert_eq!(machine.said().await, machines[0].said().await, "{}", machine.label);
        assert_eq!(machine.lineages().await, machines[0].lineages().await, "{}", machine.label);
    }
}

/// A damaged session file may repeat an id: what is stored second is purged on all machines too, and only that.
#[test]
fn the_second_message_of_one_id_is_purged_everywhere() {
    run(async {
        for (first, second, kept) in [
            ("the fox", "hunter2hunter2hunter2", "e1"),
            ("hunter2hunter2hunter2", "the fox", "e1\u{1f}2000.1"),
        ] {
            let (target, ann, bob, eve) =
                (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
            let target = target.path();
            let tell = async |machine: &Machine| {
                machine.say("one", "e1", None, first).await;
                machine.say_at("one", "e1", None, second, 2_000).await;
                machine.say("one", "e2", Some("e1"), "the hen").await;
            };
            tell(&ann).await;
            // Bob has read the file too.
            tell(&bob).await;
            for machine in [&ann, &bob, &eve, &ann] {
                machine.sync(target).await;
            }
            assert_eq!(eve.said().await, ann.said().await);
            ann.purge("one", if kept == "e1" { "e1\u{1f}2000.1" } else { "e1" }).await;
            assert_gone(target, &[&ann, &eve, &bob]).await;
            let late = Machine::new("late");
            late.sync(target).await;
            for machine in [&ann, &bob, &eve, &late] {
                tell(machine).await;
                assert_eq!(machine.said().await, ann.said().await, "{}", machine.label);
            }
            assert_gone(target, &[&ann, &eve, &bob, &late]).await;
            let said = ann.said().await;
            let fox: Vec<_> = said
                .iter()
                .filter(|(.., json)| json.contains("fox"))
                .map(|(_, id, ..)| id.as_str())
                .collect();
            assert_eq!((fox, said.len()), (vec![kept], 3));
        }
    });
}

/// What an edit of a session file has replaced is purged with what replaced it, and the other way round.
#[test]
fn all_versions_of_an_edited_message_are_purged_everywhere() {
    run(async {
        for (entry, is_told_again) in [("e1", true), ("e2", true), ("e2", false)] {
            let (target, ann, bob, eve) =
                (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
            let target = target.path();
            ann.say("one", "e1", None, "hunter2hunter2hunter2 hazel").await;
            ann.say("one", "e2", Some("e1"), "hunter2hunter2hunter2 birch").await;
            for machine in [&ann, &bob] {
                machine.sync(target).await;
            }
            bob.say("one", "e4", Some("e2"), "the owl").await;
            bob.sync(target).await;
            // Ann's user edits the file.
            ann.write(|batch| {
                let session = batch.messages().conversation("one")?.unwrap();
                batch.messages().set_aside(session, &["e1".into()], &Hash::plain(b"now"))
            })
            .await;
            ann.say("one", "e1", None, "hunter2, as I said").await;
            if is_told_again {
                ann.say("one", "e2", Some("e1"), "hunter2hunter2hunter2 birch").await;
            }
            for machine in [&ann, &eve, &bob] {
                machine.sync(target).await;
            }
            let gone =
                if is_told_again { entry.to_owned() } else { format!("e2{END}{}", Hash::plain(b"now")) };
            ann.purge("one", &gone).await;
            for machine in [&ann, &eve, &bob, &ann, &eve, &bob, &ann] {
                machine.sync(target).await;
            }
            let (hidden, shown) = if entry == "e1" { ("hazel", "birch") } else { ("birch", "hazel") };
            for machine in [&ann, &eve, &bob] {
                assert!(!is_anywhere(&machine.home.db_dir, hidden), "{} {entry}", machine.label);
                let said = machine.said().await;
                let tells = |text: &str| said.iter().any(|(.., json)| json.contains(text));
                assert!(!tells(hidden) && tells(shown), "{} {entry}", machine.label);
                assert_eq!(tells("as I said"), entry == "e2", "{} {entry}", machine.label);
            }
            assert!(!is_anywhere(target, hidden));
        }
    });
}

#[test]
fn a_purge_is_confirmed_by_a_sync_after_one_that_was_killed() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        ann.say("one", "e1", None, "hunter2hunter2hunter2").await;
        for machine in [&ann, &bob] {
            machine.sync(target.path()).await;
        }
        ann.purge("one", "e1").await;
        ann.sync(target.path()).await;
        // Bob's removes the message, and is killed before it notes which packs it has read.
        let (progress, cancel) = <(Progress, CancellationToken)>::default();
        let begun = bob.begun(target.path(), &progress, &cancel);
        let known = bob.read(|view| view.synced().packs()).await;
        let listed = begun.target.list(&HashMap::new()).await.unwrap();
        let mut report = Report::default();
        receive(&begun, &listed, &known, &mut report).await.unwrap();
        assert_eq!(report.purged, 1);
        bob.write(move |batch| {
            let read = listed.iter().map(ToString::to_string).filter(|name| !known.contains_key(name));
            read.into_iter().try_for_each(|name| batch.synced().remove_pack(&name))
        })
        .await;
        for machine in [&bob, &ann] {
            machine.sync(target.path()).await;
        }
        let purged =
            ann.read(|view| view.synced().machines()).await.into_iter().map(|machine| machine.purged);
        assert_eq!(purged.collect::<Vec<_>>(), [1, 1]);
    });
}

#[test]
fn a_purge_reaches_forks() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        for id in ["e1", "e2", "e3"] {
            let above = id.strip_prefix('e').and_then(|n| n.parse::<usize>().ok()).filter(|n| *n > 1);
            let above = above.map(|n| format!("e{}", n - 1));
            ann.say("one", id, above.as_deref(), &format!("what {id} says, which is long enough")).await;
        }
        ann.sync(target.path()).await;
        bob.sync(target.path()).await;
        // A fork copies entries with their ids; the other machine has not heard of it when its message is purged.
        ann.say("fork", "e1", None, "what e1 says, which is long enough").await;
        ann.say("fork", "e2", Some("e1"), "what e2 says, which is long enough").await;
        ann.purge("one", "e2").await;
        for machine in [&ann, &bob, &ann, &bob] {
            machine.sync(target.path()).await;
        }
        assert_eq!((bob.said().await, bob.lineages().await), (ann.said().await, ann.lineages().await));
        assert!(
            !is_anywhere(&bob.home.db_dir, "what e2 says") && !is_anywhere(target.path(), "what e2 says")
        );
    });
}

#[test]
fn a_large_purge_waits_until_it_is_confirmed() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let mut above = None;
        for number in 0..UNASKED + 1 {
            let id = format!("e{number}");
            ann.say("one", &id, above.as_deref(), &format!("number {number} of many")).await;
            above = Some(id);
        }
        ann.sync(target.path()).await;
        bob.sync(target.path()).await;
        ann.write(|batch| {
            let row = batch.messages().conversation("one")?.unwrap();
            batch.upkeep().purge(&Purge::Session(row)).map(drop)
        })
        .await;
        ann.sync(target.path()).await;
        let said = bob.said().await;
        for _ in 0..2 {
            let report = bob.sync(target.path()).await;
            assert_eq!((report.purged, report.unconfirmed), (0, UNASKED + 1));
            assert_eq!(bob.said().await, said);
        }
        let options = Options { confirms_purges: true, ..bob.options(target.path()) };
        assert_eq!(bob.sync_as(options).await.unwrap().purged, UNASKED + 1);
        assert_eq!(bob.said().await, ann.said().await);
        assert!(!is_anywhere(target.path(), "of many"));
    });
}

#[test]
fn small_purges_add_up_until_they_are_confirmed() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let purges = async |sessions: [&str; 2]| {
            for session in sessions {
                for number in 0..60 {
                    ann.say(session, &format!("{session}{number}"), None, &format!("{number} of {session}"))
                        .await;
                }
            }
            ann.sync(target.path()).await;
            bob.sync(target.path()).await;
            let mut reports = Vec::new();
            for session in sessions.map(str::to_owned) {
                ann.write(move |batch| {
                    let row = batch.messages().conversation(&session)?.unwrap();
                    batch.upkeep().purge(&Purge::Session(row)).map(drop)
                })
                .await;
                ann.sync(target.path()).await;
                let report = bob.sync(target.path()).await;
                reports.push((report.purged, report.unconfirmed));
            }
            reports
        };
        assert_eq!(purges(["one", "two"]).await, [(60, 0), (0, 60)]);
        let confirms = Options { confirms_purges: true, ..bob.options(target.path()) };
        assert_eq!(bob.sync_as(confirms).await.unwrap().purged, 60);
        assert_eq!(bob.said().await, ann.said().await);
        assert_eq!(purges(["three", "four"]).await, [(60, 0), (0, 60)], "counted from the confirmation on");
    });
}

#[test]
fn two_machines_that_purge_the_same_agree() {
    // Either number may be the smaller one.
    (0..6).for_each(|_| run(purge_the_same()));
}

async fn purge_the_same() {
    let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
    ann.say("one", "e1", None, "a secret that is long enough").await;
    ann.say("one", "e2", Some("e1"), "the hen").await;
    ann.sync(target.path()).await;
    bob.sync(target.path()).await;
    ann.purge("one", "e1").await;
    bob.purge("one", "e1").await;
    for machine in [&ann, &bob, &ann, &bob] {
        machine.sync(target.path()).await;
    }
    assert_eq!(ann.lineages().await, bob.lineages().await);
    assert_eq!(ann.said().await, bob.said().await);
}

#[test]
fn an_old_pack_that_comes_back_brings_back_nothing_that_was_purged() {
    run(async {
        for is_encrypted in [false, true] {
            let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
            let target = target.path();
            let sync = async |machine: &Machine| match is_encrypted {
                true => machine.sync_to(target, &[&ann, &bob]).await,
                false => machine.sync(target).await,
            };
            ann.say("one", "e1", None, "hunter2hunter2hunter2").await;
            ann.say("one", "e2", Some("e1"), "the hen").await;
            sync(&ann).await;
            let old = packs(target).pop().unwrap();
            let bytes = std::fs::read(&old).unwrap();
            sync(&bob).await;
            ann.purge("one", "e1").await;
            for machine in [&ann, &bob, &ann] {
                sync(machine).await;
            }
            let said = ann.said().await;
            std::fs::write(&old, bytes).unwrap();
            let late = Machine::new("late");
            for machine in [&bob, &ann, &bob, &late, &ann, &bob] {
                sync(machine).await;
                assert!(!is_anywhere(&machine.home.db_dir, "hunter2hunter2"), "{}", machine.label);
            }
            assert!(!old.exists());
            for machine in [&ann, &bob] {
                assert_eq!(machine.said().await, said);
            }
        }
    });
}

#[test]
fn a_summary_travels_and_goes_with_a_purge() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        ann.say("one", "e1", None, "the fox said something to remember").await;
        ann.say("one", "e2", Some("e1"), "the hen").await;
        let hash = ann.summarize("A fox and a hen talked about foxes.").await;
        ann.sync(target.path()).await;
        assert_eq!(bob.sync(target.path()).await.received.summaries, 1);
        let has = move |view: &View<'_>| Ok(view.summaries().summary_by_hash(hash)?.is_some());
        assert!(bob.read(has).await);
        assert_eq!(bob.sync(target.path()).await.sent.packs, 0, "a summary that came is not sent again");
        bob.purge("one", "e1").await;
        for machine in [&bob, &ann, &bob] {
            machine.sync(target.path()).await;
        }
        assert!(!is_anywhere(target.path(), "talked about foxes"));
        assert!(!is_anywhere(&ann.home.db_dir, "talked about foxes"));
    });
}

/// Each machine purges something that is in one pack, or in a pack of the other that it reads only then.
#[test]
fn two_purges_at_the_same_time_reach_both_machines() {
    run(async {
        for was_read in [true, false] {
            let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
            let target = target.path();
            for machine in [&ann, &bob] {
                machine.say("one", "e1", None, "hunter2hunter2 hazel").await;
                machine.say("one", "e2", Some("e1"), "hunter2hunter2 birch").await;
            }
            bob.sync(target).await;
            if was_read {
                ann.sync(target).await;
            }
            bob.purge("one", "e1").await;
            ann.purge("one", "e2").await;
            bob.sync(target).await;
            assert_gone(target, &[&ann, &bob]).await;
        }
    });
}

/// The name of a pack and the hash of a summary are made from texts too.
#[test]
fn no_name_and_no_hash_confirms_a_guess() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let target = target.path();
        let mut above: Option<String> = None;
        for n in 10..24 {
            let id = format!("e{n}");
            ann.say("one", &id, above.as_deref(), &format!("number {n}")).await;
            above = Some(id);
        }
        let old = ann.write(|batch| {
            let row = batch.messages().conversation("one")?.unwrap();
            let ids = ["e22", "e23"].map(|id| batch.messages().shown_by(row, id).unwrap().unwrap());
            summary_of(batch, ids.to_vec(), "Two numbers.")
        });
        let old = old.await;
        for machine in [&ann, &bob] {
            machine.sync(target).await;
        }
        let before =
            packs(target).into_iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        ann.purge("one", "e10").await;
        for machine in [&ann, &bob, &ann, &bob] {
            machine.sync(target).await;
        }
        let there =
            packs(target).into_iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        for machine in [&ann, &bob] {
            let known = machine.read(|view| view.synced().packs()).await;
            for gone in before.iter().filter(|name| !there.contains(name)) {
                let name = gone.to_str().unwrap();
                assert!(!known.keys().any(|known| known.ends_with(name)), "{}: {name}", machine.label);
            }
            machine.home.store.vacuum().await.unwrap();
            machine.home.store.close().await;
            for file in machine.home.db_dir.read_dir().unwrap().flatten() {
                let bytes = std::fs::read(file.path()).unwrap_or_default();
                assert!(!bytes.windows(32).any(|window| window == old.0), "{} {file:?}", machine.label);
            }
        }
    });
}

/// Of several numbers for one message the smallest must stay, on all machines.
#[test]
fn three_machines_agree_on_what_two_purge_at_once() {
    (0..8).for_each(|_| {
        run(async {
            let (target, ann, bob, eve) =
                (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
            let target = target.path();
            ann.say("one", "e1", None, "a secret that is long enough").await;
            ann.say("one", "e2", Some("e1"), "the hen").await;
            for machine in [&ann, &bob, &eve] {
                machine.sync(target).await;
            }
            ann.purge("one", "e1").await;
            bob.purge("one", "e1").await;
            // Both have sent their own before they see the other's.
            let (own, others) = (target.join("shop"), tempfile::tempdir().unwrap());
            let before = packs(target);
            ann.sync(target).await;
            let anns: Vec<_> = packs(target).into_iter().filter(|path| !before.contains(path)).collect();
            for path in &anns {
                std::fs::rename(path, others.path().join(path.file_name().unwrap())).unwrap();
            }
            bob.sync(target).await;
            for path in &anns {
                std::fs::rename(others.path().join(path.file_name().unwrap()), path).unwrap();
            }
            assert!(own.exists());
            eve.sync(target).await;
            rounds(target, &[&ann, &bob, &eve]).await;
            assert_eq!(numbers(&ann).await, numbers(&bob).await);
            assert_eq!(numbers(&ann).await, numbers(&eve).await);
            assert_eq!(ann.lineages().await, eve.lineages().await);
        });
    });
}

/// A purge in a pack of which another part waits, here for a pack that is not encrypted to Bob.
#[test]
fn a_purge_is_not_held_up_by_what_else_its_pack_has() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        bob.say("one", "e1", None, "hunter2hunter2hunter2").await;
        bob.sync_to(target, &[&ann, &eve]).await;
        eve.say("two", "f1", None, "the fox").await;
        eve.say("two", "f2", Some("f1"), "the hen").await;
        // Eve has not heard of Bob yet.
        eve.sync_to(target, &[&ann]).await;
        ann.sync_to(target, &[&bob, &eve]).await;
        assert!(tells(&ann, "hunter2").await && tells(&ann, "hen").await);
        ann.purge("two", "f2").await;
        ann.purge("one", "e1").await;
        for _ in 0..3 {
            ann.sync_to(target, &[&bob, &eve]).await;
            bob.sync_to(target, &[&ann, &eve]).await;
            eve.sync_to(target, &[&ann]).await;
        }
        assert!(!tells(&bob, "hunter2").await, "Bob still has what Ann has purged");
        assert!(!ann.opened(target).contains("hunter2") && !bob.opened(target).contains("hunter2"));
    });
}

/// A placeholder with the id of another message that no pack has yet.
#[test]
fn a_purge_of_the_same_id_does_not_keep_a_message_from_being_sent() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        ann.say("one", "e1", None, "hunter2hunter2hunter2").await;
        bob.say_at("one", "e1", None, "the hen", 2_000).await;
        ann.sync(target).await;
        ann.purge("one", "e1").await;
        ann.sync(target).await;
        rounds(target, &[&bob, &ann, &eve]).await;
        for machine in [&ann, &bob, &eve] {
            assert!(!tells(machine, "hunter2").await, "{}", machine.label);
            assert!(tells(machine, "hen").await, "{}", machine.label);
        }
    });
}

/// A summary that comes after the purge of what it is about.
#[test]
fn no_hash_of_a_summary_that_comes_later_confirms_a_guess() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let target = target.path();
        ann.say("one", "e1", None, "number 1234").await;
        ann.say("one", "e2", Some("e1"), "the hen").await;
        for machine in [&ann, &bob] {
            machine.sync(target).await;
        }
        let old = bob.summarize("Two messages.").await;
        bob.sync(target).await;
        ann.purge("one", "e1").await;
        rounds(target, &[&ann, &bob]).await;
        for machine in [&ann, &bob] {
            machine.home.store.vacuum().await.unwrap();
            machine.home.store.close().await;
            for file in machine.home.db_dir.read_dir().unwrap().flatten() {
                let bytes = std::fs::read(file.path()).unwrap_or_default();
                assert!(!bytes.windows(32).any(|window| window == old.0), "{} {file:?}", machine.label);
            }
        }
    });
}

/// A machine's database is replaced with a backup from before the purge.
#[test]
fn a_backup_from_before_a_purge_loses_the_message_with_the_next_sync() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let target = target.path();
        ann.say("one", "e1", None, "hunter2hunter2hunter2").await;
        ann.say("one", "e2", Some("e1"), "the hen").await;
        rounds(target, &[&ann, &bob]).await;
        ann.home.store.close().await;
        let again = Machine::new("ann");
        again.home.store.close().await;
        for file in ann.home.db_dir.read_dir().unwrap().flatten() {
            std::fs::copy(file.path(), again.home.db_dir.join(file.file_name())).unwrap();
        }
        let mut ann = ann;
        ann.home.store = Store::of_project(Some(&ann.home.db_dir), "/shop").unwrap();
        let mut again = again;
        again.home.store = Store::of_project(Some(&again.home.db_dir), "/shop").unwrap();
        assert!(tells(&again, "hunter2").await);
        ann.purge("one", "e1").await;
        rounds(target, &[&ann, &bob]).await;
        ann.say("one", "e3", Some("e2"), "the owl").await;
        ann.sync(target).await;
        rounds(target, &[&again, &bob]).await;
        for machine in [&again, &bob] {
            assert!(!tells(machine, "hunter2").await, "{}", machine.label);
            assert!(tells(machine, "the owl").await, "{}", machine.label);
        }
        assert!(!is_anywhere(target, "hunter2"));
    });
}

/// An unreadable message keeps its place under a repeated id.
#[test]
fn a_repeated_id_that_is_taken_by_a_link_stops_nothing() {
    run(async {
        let ann = Machine::new("ann");
        ann.say("one", "e1", None, "the fox").await;
        let link = json!({"type": "custom", "id": "e1\u{1f}2000.1", "parentId": null});
        ann.add("one", &link.to_string()).await;
        let (session, entry) = ("one", line("e1", None, "the hen", 2_000).to_string());
        let entries = Handover::of(&entry).unwrap().prepare();
        let stored = ann.home.store.write(move |batch| {
            let row = batch.messages().conversation_row(session, None, None, 1)?;
            entries.store(batch, row)
        });
        stored.await.unwrap();
        assert!(tells(&ann, "hen").await);
    });
}

/// A compaction carries summaries; the other machine reads it after the purge.
#[test]
fn a_compaction_that_carries_summaries_brings_nothing_back() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        ann.say("one", "e1", None, "hunter2hunter2hunter2").await;
        ann.say("one", "e2", Some("e1"), "the hen").await;
        for machine in [&ann, &bob, &eve] {
            machine.sync(target).await;
        }
        let hash = bob.summarize("They said hunter2hunter2hunter2.").await;
        let summary = bob.read(move |view| {
            let id = view.summaries().summary_by_hash(hash)?.unwrap();
            Ok(view.summaries().summary(id)?.summary)
        });
        let record = SummaryRecord { summary: summary.await, sources: vec!["e1".into(), "e2".into()] };
        let compaction = json!({
            "type": "compaction", "id": "e3", "parentId": "e2", "summary": "", "firstKeptEntryId": "e2", "tokensBefore": 9,
            "details": {"lcm": CompactionDetails::FORMAT, "summaries": [record], "frontier": [hash.to_string()]}
        });
        bob.add("one", &compaction.to_string()).await;
        bob.sync(target).await;
        ann.purge("one", "e1").await;
        // Eve reads Bob's pack before, Ann after her purge.
        eve.sync(target).await;
        rounds(target, &[&ann, &bob, &eve]).await;
        eve.add("one", &compaction.to_string()).await;
        eve.add("fork", &json!({"type": "message", "id": "e2", "parentId": null, "message": {"role": "user", "content": "the hen", "timestamp": 1_000}}).to_string()).await;
        rounds(target, &[&ann, &bob, &eve]).await;
        for machine in [&ann, &bob, &eve] {
            machine.home.store.vacuum().await.unwrap();
            assert!(!is_anywhere(&machine.home.db_dir, "hunter2hunter2"), "{}", machine.label);
            assert_eq!(machine.read(|view| Ok(view.upkeep().summary_rows()?.len())).await, 0);
        }
        assert!(!is_anywhere(target, "hunter2hunter2"));
    });
}

/// A pack of anyone may name any number of messages, in a session of its own.
#[test]
fn a_purge_that_waits_for_a_confirmation_removes_nothing_from_forks_and_edited_files() {
    run(async {
        let (target, ann, eve) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("eve"));
        let target = target.path();
        let told = |above: &dyn Fn(usize) -> Option<String>, text: &str| {
            let said =
                |n: usize| line(&format!("e{n}"), above(n).as_deref(), &format!("{text} {n}"), 1_000 + n);
            (0..=UNASKED).map(said).collect::<Vec<_>>()
        };
        let mut lines = told(&|n| Some(format!("e{}", n.checked_sub(1)?)), "number");
        open(&ann, "one", None, &lines).await;
        open(&eve, "evil", None, &told(&|_| None, "other")).await;
        let purge = |batch: &Batch<'_>| {
            let row = batch.messages().conversation("evil")?.unwrap();
            batch.upkeep().purge(&Purge::Session(row)).map(drop)
        };
        eve.write(purge).await;
        eve.sync(target).await;
        assert_eq!(ann.sync(target).await.unconfirmed, UNASKED + 1);
        open(&ann, "fork", Some("one"), &lines).await;
        lines.remove(0);
        lines[0]["parentId"] = json!(null);
        open(&ann, "one", None, &lines).await;
        let said = ann.said().await;
        let shown = |of: &str| {
            let is_shown = |(session, id, _, json): &&(String, String, _, String)| {
                session == of && !id.contains(END) && json.contains("number")
            };
            said.iter().filter(is_shown).count()
        };
        assert_eq!((shown("fork"), shown("one")), (UNASKED + 1, UNASKED + 1));
        let confirms = Options { confirms_purges: true, ..ann.options(target) };
        ann.sync_as(confirms).await.unwrap();
        assert!(!tells(&ann, "number").await);
    });
}
