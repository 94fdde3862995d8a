//! Purges that reach all machines, and nothing else.

use super::edited_files::{line, open, tells};
use super::*;

/// A target, and three machines.
pub(super) fn machines() -> (TempDir, [Machine; 3]) {
    (tempfile::tempdir().unwrap(), ["ann", "bob", "eve"].map(Machine::new))
}

pub(super) async fn each_syncs(target: &Path, machines: &[&Machine]) {
    for machine in machines {
        machine.sync(target).await;
    }
}

async fn purge_session(machine: &Machine, session: &'static str) {
    let purge = move |batch: &Batch<'_>| {
        let row = batch.messages().conversation(session)?.unwrap();
        batch.upkeep().purge(&Purge::Session(row)).map(drop)
    };
    machine.write(purge).await;
}

/// Asserts that no file of a machine has a hash.
pub(super) async fn assert_lacks(machine: &Machine, hash: Hash) {
    machine.home.store.vacuum().await.unwrap();
    machine.home.store.close().await;
    for file in machine.home.db_dir.read_dir().unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        assert!(!bytes.windows(32).any(|window| window == hash.0), "{} {file:?}", machine.label);
    }
}

#[test]
fn what_is_purged_on_one_machine_is_gone_everywhere() {
    run(async {
        let (target, [ann, bob, eve]) = machines();
        ann.chat("one", &["the fox", "hunter2hunter2hunter2", "the hen"]).await;
        each_syncs(target.path(), &[&ann, &bob]).await;
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
        each_syncs(target.path(), &[&ann, &bob, &eve, &late, &ann, &bob, &eve, &late]).await;
        let files = packs(target.path());
        each_syncs(target.path(), &[&ann, &bob, &eve, &late]).await;
        assert_eq!(packs(target.path()), files);
    });
}

#[test]
fn a_session_that_comes_purged_is_not_counted() {
    run(async {
        let (target, [ann, bob, eve]) = machines();
        ann.chat("one", &["the fox"]).await;
        // As in a session of its own, not in a fork.
        ann.say("two", "f1", None, "the owl").await;
        each_syncs(target.path(), &[&ann, &bob]).await;
        purge_session(&ann, "two").await;
        ann.sync(target.path()).await;
        let report = eve.sync(target.path()).await;
        assert_eq!((report.received.messages, report.received.sessions), (1, 1));
    });
}

/// Syncs until nothing changes any more, and asserts that all machines have the same and none has the secret.
pub(super) async fn assert_gone(target: &Path, machines: &[&Machine]) {
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
            let (target, [ann, bob, eve]) = machines();
            let target = target.path();
            let tell = async |machine: &Machine| {
                machine.say("one", "e1", None, first).await;
                machine.say_at("one", "e1", None, second, 2_000).await;
                machine.say("one", "e2", Some("e1"), "the hen").await;
            };
            tell(&ann).await;
            // Bob has read the file too.
            tell(&bob).await;
            each_syncs(target, &[&ann, &bob, &eve, &ann]).await;
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
            let (target, [ann, bob, eve]) = machines();
            let target = target.path();
            ann.chat("one", &["hunter2hunter2hunter2 hazel", "hunter2hunter2hunter2 birch"]).await;
            each_syncs(target, &[&ann, &bob]).await;
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
            each_syncs(target, &[&ann, &eve, &bob]).await;
            let gone =
                if is_told_again { entry.to_owned() } else { format!("e2{END}{}", Hash::plain(b"now")) };
            ann.purge("one", &gone).await;
            each_syncs(target, &[&ann, &eve, &bob, &ann, &eve, &bob, &ann]).await;
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
        let (target, [ann, bob, _]) = machines();
        ann.say("one", "e1", None, "hunter2hunter2hunter2").await;
        each_syncs(target.path(), &[&ann, &bob]).await;
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
        each_syncs(target.path(), &[&bob, &ann]).await;
        let purged =
            ann.read(|view| view.synced().machines()).await.into_iter().map(|machine| machine.purged);
        assert_eq!(purged.collect::<Vec<_>>(), [1, 1]);
    });
}

#[test]
fn a_purge_reaches_forks() {
    run(async {
        let (target, [ann, bob, _]) = machines();
        let told = ["e1", "e2", "e3"].map(|id| format!("what {id} says, which is long enough"));
        let told = told.each_ref().map(String::as_str);
        ann.chat("one", &told).await;
        each_syncs(target.path(), &[&ann, &bob]).await;
        // A fork copies entries with their ids; the other machine has not heard of it when its message is purged.
        ann.chat("fork", &told[..2]).await;
        ann.purge("one", "e2").await;
        each_syncs(target.path(), &[&ann, &bob, &ann, &bob]).await;
        assert_eq!((bob.said().await, bob.lineages().await), (ann.said().await, ann.lineages().await));
        assert!(
            !is_anywhere(&bob.home.db_dir, "what e2 says") && !is_anywhere(target.path(), "what e2 says")
        );
    });
}

#[test]
fn a_large_purge_waits_until_it_is_confirmed() {
    run(async {
        let (target, [ann, bob, _]) = machines();
        ann.chat("one", &["one of many"; UNASKED + 1]).await;
        each_syncs(target.path(), &[&ann, &bob]).await;
        purge_session(&ann, "one").await;
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
        let (target, [ann, bob, _]) = machines();
        let purges = async |sessions: [&'static str; 2]| {
            for session in sessions {
                for number in 0..60 {
                    ann.say(session, &format!("{session}{number}"), None, &format!("{number} of {session}"))
                        .await;
                }
            }
            each_syncs(target.path(), &[&ann, &bob]).await;
            let mut reports = Vec::new();
            for session in sessions {
                purge_session(&ann, session).await;
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
fn a_summary_travels_and_goes_with_a_purge() {
    run(async {
        let (target, [ann, bob, _]) = machines();
        ann.chat("one", &["the fox said something to remember", "the hen"]).await;
        let hash = ann.summarize("A fox and a hen talked about foxes.").await;
        ann.sync(target.path()).await;
        assert_eq!(bob.sync(target.path()).await.received.summaries, 1);
        let has = move |view: &View<'_>| Ok(view.summaries().summary_by_hash(hash)?.is_some());
        assert!(bob.read(has).await);
        assert_eq!(bob.sync(target.path()).await.sent.packs, 0, "a summary that came is not sent again");
        bob.purge("one", "e1").await;
        each_syncs(target.path(), &[&bob, &ann, &bob]).await;
        assert!(!is_anywhere(target.path(), "talked about foxes"));
        assert!(!is_anywhere(&ann.home.db_dir, "talked about foxes"));
    });
}

/// The name of a pack and the hash of a summary are made from texts too.
#[test]
fn no_name_and_no_hash_confirms_a_guess() {
    run(async {
        let (target, [ann, bob, _]) = machines();
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
        each_syncs(target, &[&ann, &bob]).await;
        let before =
            packs(target).into_iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        ann.purge("one", "e10").await;
        each_syncs(target, &[&ann, &bob, &ann, &bob]).await;
        let there =
            packs(target).into_iter().map(|path| path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
        for machine in [&ann, &bob] {
            let known = machine.read(|view| view.synced().packs()).await;
            for gone in before.iter().filter(|name| !there.contains(name)) {
                let name = gone.to_str().unwrap();
                assert!(!known.keys().any(|known| known.ends_with(name)), "{}: {name}", machine.label);
            }
            assert_lacks(machine, old).await;
        }
    });
}

/// A pack of anyone may name any number of messages, in a session of its own.
#[test]
fn a_purge_that_waits_for_a_confirmation_removes_nothing_from_forks_and_edited_files() {
    run(async {
        let (target, [ann, _, eve]) = machines();
        let target = target.path();
        let told = |above: &dyn Fn(usize) -> Option<String>, text: &str| {
            let said =
                |n: usize| line(&format!("e{n}"), above(n).as_deref(), &format!("{text} {n}"), 1_000 + n);
            (0..=UNASKED).map(said).collect::<Vec<_>>()
        };
        let mut lines = told(&|n| Some(format!("e{}", n.checked_sub(1)?)), "number");
        open(&ann, "one", None, &lines).await;
        open(&eve, "evil", None, &told(&|_| None, "other")).await;
        purge_session(&eve, "evil").await;
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
