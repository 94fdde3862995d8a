//! Purges while other machines purge, have not heard of it, or bring something back.

use super::edited_files::{line, numbers, rounds, tells};
use super::purging::{assert_gone, assert_lacks, each_syncs, machines};
use super::*;

#[test]
fn two_machines_that_purge_the_same_agree() {
    // Either number may be the smaller one.
    (0..6).for_each(|_| run(purge_the_same()));
}

async fn purge_the_same() {
    let (target, [ann, bob, _]) = machines();
    ann.chat("one", &["a secret that is long enough", "the hen"]).await;
    each_syncs(target.path(), &[&ann, &bob]).await;
    ann.purge("one", "e1").await;
    bob.purge("one", "e1").await;
    each_syncs(target.path(), &[&ann, &bob, &ann, &bob]).await;
    assert_eq!(ann.lineages().await, bob.lineages().await);
    assert_eq!(ann.said().await, bob.said().await);
}

#[test]
fn an_old_pack_that_comes_back_brings_back_nothing_that_was_purged() {
    run(async {
        for is_encrypted in [false, true] {
            let (target, [ann, bob, _]) = machines();
            let target = target.path();
            let sync = async |machine: &Machine| match is_encrypted {
                true => machine.sync_to(target, &[&ann, &bob]).await,
                false => machine.sync(target).await,
            };
            ann.chat("one", &["hunter2hunter2hunter2", "the hen"]).await;
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

/// Each machine purges something that is in one pack, or in a pack of the other that it reads only then.
#[test]
fn two_purges_at_the_same_time_reach_both_machines() {
    run(async {
        for was_read in [true, false] {
            let (target, [ann, bob, _]) = machines();
            let target = target.path();
            for machine in [&ann, &bob] {
                machine.chat("one", &["hunter2hunter2 hazel", "hunter2hunter2 birch"]).await;
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

/// Of several numbers for one message the smallest must stay, on all machines.
#[test]
fn three_machines_agree_on_what_two_purge_at_once() {
    (0..8).for_each(|_| {
        run(async {
            let (target, [ann, bob, eve]) = machines();
            let target = target.path();
            ann.chat("one", &["a secret that is long enough", "the hen"]).await;
            each_syncs(target, &[&ann, &bob, &eve]).await;
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
        let (target, [ann, bob, eve]) = machines();
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
        let (target, [ann, bob, eve]) = machines();
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
        let (target, [ann, bob, _]) = machines();
        let target = target.path();
        ann.chat("one", &["number 1234", "the hen"]).await;
        each_syncs(target, &[&ann, &bob]).await;
        let old = bob.summarize("Two messages.").await;
        bob.sync(target).await;
        ann.purge("one", "e1").await;
        rounds(target, &[&ann, &bob]).await;
        for machine in [&ann, &bob] {
            assert_lacks(machine, old).await;
        }
    });
}

/// A machine's database is replaced with a backup from before the purge.
#[test]
fn a_backup_from_before_a_purge_loses_the_message_with_the_next_sync() {
    run(async {
        let (target, [ann, bob, _]) = machines();
        let target = target.path();
        ann.chat("one", &["hunter2hunter2hunter2", "the hen"]).await;
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
        let (target, [ann, bob, eve]) = machines();
        let target = target.path();
        ann.chat("one", &["hunter2hunter2hunter2", "the hen"]).await;
        each_syncs(target, &[&ann, &bob, &eve]).await;
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

/// A rebuild keeps nothing of what was sent: the own packs are read again, and have what was purged before that.
#[test]
fn a_purge_between_a_rebuild_and_the_next_sync_is_sent_and_confirmed() {
    run(async {
        let (target, [ann, bob, _]) = machines();
        let target = target.path();
        ann.chat("one", &["hunter2hunter2hunter2", "the hen"]).await;
        each_syncs(target, &[&ann, &bob, &ann]).await;
        ann.write(|batch| batch.synced().reset()).await;
        ann.purge("one", "e1").await;
        each_syncs(target, &[&ann, &bob, &ann]).await;
        assert_gone(target, &[&ann, &bob]).await;
        for machine in [&ann, &bob] {
            let known = machine.read(|view| Ok((view.synced().machines()?, view.synced().purged()?))).await;
            let (known, purged) = known;
            assert!(known.len() == 2 && known.iter().all(|one| one.purged == purged), "{}", machine.label);
        }
        let sent = packs(target);
        ann.write(|batch| batch.synced().reset()).await;
        each_syncs(target, &[&ann, &bob]).await;
        assert_eq!(packs(target), sent, "nothing is sent twice");
    });
}
