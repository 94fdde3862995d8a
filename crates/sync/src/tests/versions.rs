//! Messages that have one id in their session's file: it repeats ids, or was edited.

use std::time::{Duration, Instant};

use super::edited_files::{line, tells};
use super::*;
use lcm_model::parse_batch;

/// Adds a message to a session with a file and an origin.
async fn add_in(machine: &Machine, session: &str, file: Option<&str>, origin: Option<&str>, text: &str) {
    let (session, file, origin) = (session.to_owned(), file.map(str::to_owned), origin.map(str::to_owned));
    let message = json!({"role": "user", "content": text, "timestamp": 1_000});
    let entry = json!({"type": "message", "id": "e1", "parentId": null, "message": message});
    let entries = Handover::of(&entry.to_string()).unwrap().prepare();
    let write = move |batch: &Batch<'_>| {
        let row = batch.messages().conversation_row(&session, file.as_deref(), origin.as_deref(), 1)?;
        entries.store(batch, row)
    };
    machine.write(write).await;
}

/// The file of the session `one` is edited from `e1` on.
async fn edit(machine: &Machine, mark: &str) {
    let mark = Hash::plain(mark.as_bytes());
    let write = move |batch: &Batch<'_>| {
        let row = batch.messages().conversation("one")?.unwrap();
        batch.messages().set_aside(row, &["e1".into()], &mark)
    };
    machine.write(write).await;
}

fn replaced(id: &str, mark: &str) -> String {
    format!("{id}{END}{}", Hash::plain(mark.as_bytes()))
}

/// It has the time of its entry then, and sessions with the same beginning share it.
#[test]
fn a_message_without_a_time_is_purged_everywhere() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let note = |id: &str, time: &str| {
            let message = json!({"role": "user", "content": "hunter2hunter2hunter2"});
            json!({"type": "message", "id": id, "parentId": null, "timestamp": time, "message": message})
                .to_string()
        };
        let notes = [note("c1", "2026-11-20T09:00:01.000Z"), note("c2", "2026-11-20T09:00:02.000Z")];
        ann.add("one", &notes[0]).await;
        bob.add("two", &notes[1]).await;
        for machine in [&ann, &bob, &ann, &bob] {
            machine.sync(target.path()).await;
        }
        ann.purge("one", "c1").await;
        for machine in [&ann, &bob, &ann, &bob, &ann, &bob] {
            machine.sync(target.path()).await;
        }
        for machine in [&ann, &bob] {
            machine.add("one", &notes[0]).await;
            machine.add("two", &notes[1]).await;
            assert!(!is_anywhere(&machine.home.db_dir, "hunter2hunter2"), "{}", machine.label);
            assert!(!tells(machine, "hunter2").await, "{}", machine.label);
        }
        assert!(!is_anywhere(target.path(), "hunter2hunter2"));
    });
}

#[test]
fn two_texts_of_one_id_reach_all_machines() {
    run(async {
        for time in [1_000, 2_000] {
            let (target, ann, bob, eve) =
                (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
            ann.say("one", "e1", None, "the fox").await;
            bob.say_at("one", "e1", None, "the hen", time).await;
            for machine in [&ann, &bob, &eve, &ann, &bob, &eve, &ann, &bob, &eve] {
                machine.sync(target.path()).await;
            }
            for machine in [&ann, &bob, &eve] {
                assert!(tells(machine, "fox").await && tells(machine, "hen").await, "{}", machine.label);
            }
            let files = packs(target.path());
            for machine in [&ann, &bob, &eve] {
                machine.sync(target.path()).await;
            }
            assert_eq!(packs(target.path()), files);
        }
    });
}

/// Another machine may have got a message with masks.
#[test]
fn another_version_of_a_message_does_not_end_the_branch() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        ann.chat("one", &["the fox", "the key", "the hen"]).await;
        bob.chat("one", &["the fox", "the ***", "the hen"]).await;
        for machine in [&ann, &bob, &ann] {
            machine.sync(target.path()).await;
        }
        for machine in [&ann, &bob] {
            assert!(tells(machine, "key").await && tells(machine, "***").await, "{}", machine.label);
            let last = machine.read(|view| {
                let row = view.messages().conversation("one")?.unwrap();
                view.messages().last_entry(row)
            });
            assert_eq!(last.await.as_deref(), Some("e3"), "{}", machine.label);
        }
    });
}

/// The user takes `e2` out of the file with an edit above it, purges it, and puts it back, or an old pack does.
#[test]
fn what_was_purged_does_not_come_back_below_another_message() {
    run(async {
        for by_pack in [false, true] {
            let (target, ann) = (tempfile::tempdir().unwrap(), Machine::new("ann"));
            let target = target.path();
            ann.say("one", "e1", None, "the fox").await;
            ann.say("one", "e2", Some("e1"), "hunter2hunter2hunter2").await;
            ann.sync(target).await;
            let old = packs(target).pop().unwrap();
            let bytes = std::fs::read(&old).unwrap();
            edit(&ann, "now").await;
            ann.say("one", "e1", None, "the red fox").await;
            ann.purge("one", &replaced("e2", "now")).await;
            ann.sync(target).await;
            assert!(!is_anywhere(target, "hunter2hunter2"));
            match by_pack {
                true => std::fs::write(&old, bytes).unwrap(),
                false => ann.say("one", "e2", Some("e1"), "hunter2hunter2hunter2").await,
            }
            for _ in 0..3 {
                ann.sync(target).await;
            }
            assert!(!tells(&ann, "hunter2").await && !is_anywhere(target, "hunter2hunter2"), "{by_pack}");
        }
    });
}

#[test]
fn ids_with_spaces_are_of_different_messages() {
    run(async {
        let ann = Machine::new("ann");
        ann.say("one", "msg 1", None, "the fox").await;
        ann.say("one", "msg 2", Some("msg 1"), "hunter2hunter2hunter2").await;
        ann.purge("one", "msg 2").await;
        for _ in 0..3 {
            ann.say("one", "msg 1", None, "the owl").await;
        }
        assert!(tells(&ann, "fox").await && tells(&ann, "owl").await);
        assert_eq!(ann.said().await.len(), 3);
    });
}

/// A fork names its origin's file or id.
#[test]
fn versions_in_forks_of_forks_are_purged() {
    run(async {
        for origins in [["/s/one.jsonl", "/s/two.jsonl"], ["one", "two"]] {
            let ann = Machine::new("ann");
            let [first, second] = origins.map(Some);
            add_in(&ann, "one", Some("/s/one.jsonl"), None, "hunter2hunter2 hazel").await;
            add_in(&ann, "two", Some("/s/two.jsonl"), first, "hunter2hunter2 birch").await;
            add_in(&ann, "three", Some("/s/three.jsonl"), second, "hunter2hunter2 rowan").await;
            ann.say_at("other", "e1", None, "the fox", 2_000).await;
            ann.purge("one", "e1").await;
            assert!(!tells(&ann, "hunter2").await && tells(&ann, "fox").await, "{origins:?}");
        }
    });
}

#[test]
fn edits_on_two_machines_reach_a_fixed_point() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        let sync = async || {
            for machine in [&ann, &bob, &eve] {
                machine.sync(target).await;
            }
        };
        ann.say("one", "e1", None, "the fox").await;
        ann.say("one", "e2", Some("e1"), "the hen").await;
        sync().await;
        for round in 0..3 {
            for machine in [&ann, &bob] {
                edit(machine, &format!("{} {round}", machine.label)).await;
                machine.say("one", "e1", None, &format!("the fox of {} {round}", machine.label)).await;
                machine.say("one", "e2", Some("e1"), "the hen").await;
                machine.sync(target).await;
            }
        }
        for _ in 0..6 {
            sync().await;
        }
        let (files, said) = (packs(target), [ann.said().await, bob.said().await, eve.said().await]);
        for _ in 0..3 {
            sync().await;
        }
        assert_eq!((packs(target), [ann.said().await, bob.said().await, eve.said().await]), (files, said));
        for text in ["the fox of ann 0", "the fox of bob 0", "the fox of ann 2", "the fox of bob 2"] {
            for machine in [&ann, &bob, &eve] {
                assert!(tells(machine, text).await, "{}: {text}", machine.label);
            }
        }
    });
}

fn untimed(id: &str, text: &str) -> String {
    json!({"type": "message", "id": id, "parentId": null, "message": {"role": "user", "content": text}})
        .to_string()
}

/// Other programs may number the messages of each session, without a time.
#[test]
fn without_any_time_no_message_is_anothers_version() {
    run(async {
        for is_later in [false, true] {
            let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
            ann.add("one", &untimed("1", "hunter2")).await;
            bob.add("three", &untimed("1", "the owl")).await;
            if !is_later {
                ann.add("two", &untimed("1", "the hen")).await;
            }
            ann.purge("one", "1").await;
            ann.add("two", &untimed("1", "the hen")).await;
            ann.add("one", &untimed("1", "hunter2")).await;
            for machine in [&ann, &bob, &ann, &bob] {
                machine.sync(target.path()).await;
            }
            for machine in [&ann, &bob] {
                let told = [tells(machine, "hen").await, tells(machine, "owl").await];
                assert_eq!((told, tells(machine, "hunter2").await), ([true; 2], false), "{}", machine.label);
            }
        }
    });
}

/// Pi gives the entries of a first-version file ids of its own, other ones in a fork of the file.
#[test]
fn a_fork_of_a_first_version_file_does_not_bring_a_purged_message_back() {
    run(async {
        let ann = Machine::new("ann");
        for (session, first, second) in [("one", "v1-1", "v1-2"), ("fork", "0a1b2c3d", "4e5f6a7b")] {
            ann.say(session, first, None, "the fox").await;
            ann.say_at(session, second, Some(first), "hunter2", 2_000).await;
            ann.purge("one", "v1-2").await;
        }
        assert!(!tells(&ann, "hunter2").await);
    });
}

#[test]
fn a_purged_message_of_another_agent_is_no_version_of_pi_s() {
    run(async {
        let ann = Machine::new("ann");
        ann.say("claude-code:x", "1", None, "hunter2").await;
        ann.purge("claude-code:x", "1").await;
        ann.say("one", "1", None, "the hen").await;
        assert!(tells(&ann, "hen").await);
    });
}

/// The time it takes to store a fork whose messages are all purged, each so much later than the one before.
async fn forking(messages: usize, later: usize) -> Duration {
    let ann = Machine::new("ann");
    let lines = (0..messages).map(|number| {
        let parent = number.checked_sub(1).map(|above| format!("e{above}"));
        line(&format!("e{number}"), parent.as_deref(), &format!("number {number}"), 1_000 + number * later)
    });
    let lines: Vec<_> = lines.collect();
    let store = async |session: &'static str| {
        for lines in lines.chunks(1000) {
            let entries = parse_batch(&json!(lines).to_string()).unwrap();
            let entries = Handover { entries, ..Handover::default() }.prepare();
            let write = move |batch: &Batch<'_>| {
                let row = batch.messages().conversation_row(session, None, None, 1)?;
                entries.store(batch, row)
            };
            ann.write(write).await;
        }
    };
    store("one").await;
    let purge = |batch: &Batch<'_>| {
        let row = batch.messages().conversation("one")?.unwrap();
        batch.upkeep().purge(&Purge::Session(row))
    };
    assert_eq!(ann.write(purge).await.messages.len(), messages);
    let begun = Instant::now();
    store("fork").await;
    assert!(!tells(&ann, "number").await);
    begun.elapsed()
}

/// Each is not compared with each.
#[test]
fn many_purged_messages_of_one_time_take_no_longer_than_of_many() {
    run(async {
        let (of_many, of_one) = (forking(6_000, 1).await, forking(6_000, 0).await);
        assert!(of_one < of_many * 8, "{of_one:?}, {of_many:?}");
    });
}
