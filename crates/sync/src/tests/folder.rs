//! What machines send to a folder and read from it.

use super::*;

#[test]
fn both_machines_count_the_same() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        for session in ["one", "fork"] {
            ann.say(session, "e1", None, "the fox").await;
            ann.say(session, "e2", Some("e1"), "the hen").await;
        }
        let hash = ann.summarize("A fox and a hen").await;
        let summary = ann.read(move |view| {
            let id = view.summaries().summary_by_hash(hash)?.unwrap();
            Ok(view.summaries().summary(id)?.summary)
        });
        let record = SummaryRecord { summary: summary.await, sources: vec!["e1".into(), "e2".into()] };
        let compaction = json!({
            "type": "compaction", "id": "e3", "parentId": "e2", "summary": "", "firstKeptEntryId": "e2", "tokensBefore": 9,
            "details": {"lcm": CompactionDetails::FORMAT, "summaries": [record], "frontier": [hash.to_string()]}
        });
        ann.add("one", &compaction.to_string()).await;
        let (sent, received) = (ann.sync(target.path()).await.sent, bob.sync(target.path()).await.received);
        assert_eq!((sent.messages, sent.summaries), (2, 1));
        assert_eq!((received.messages, received.summaries), (2, 1));
    });
}

#[test]
fn what_one_machine_said_is_on_the_other_and_nothing_is_sent_twice() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        ann.say("one", "e1", None, "the fox").await;
        ann.say("one", "e2", Some("e1"), "the hen").await;
        let sent = ann.sync(target.path()).await;
        assert_eq!((sent.sent.messages, sent.sent.packs, sent.received.packs), (2, 1, 0));
        bob.say("two", "e1", None, "the owl").await;
        let both = bob.sync(target.path()).await;
        assert_eq!((both.received.messages, both.received.sessions, both.sent.messages), (2, 1, 1));
        assert_eq!(ann.sync(target.path()).await.received.messages, 1);
        assert_eq!(ann.said().await, bob.said().await);
        assert_eq!(ann.lineages().await, bob.lineages().await);
        let files = packs(target.path());
        for machine in [&ann, &bob] {
            let report = machine.sync(target.path()).await;
            assert_eq!((report.sent.packs, report.received.packs, report.others.len()), (0, 0, 1));
        }
        assert_eq!(packs(target.path()), files);
        let origin = |view: &View<'_>| view.synced().origin(view.messages().conversation("one")?.unwrap());
        assert_eq!((bob.read(origin).await.as_deref(), ann.read(origin).await), (Some("ann"), None));
    });
}

#[test]
fn one_session_goes_on_on_another_machine() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        ann.say("one", "e1", None, "the fox").await;
        ann.sync(target.path()).await;
        bob.sync(target.path()).await;
        bob.say("one", "e2", Some("e1"), "the hen").await;
        ann.say("one", "e3", Some("e1"), "the cat").await;
        let sent = bob.sync(target.path()).await;
        assert_eq!(sent.sent.messages, 1, "what came from another machine is not sent again");
        ann.sync(target.path()).await;
        bob.sync(target.path()).await;
        assert_eq!(ann.said().await, bob.said().await);
        assert_eq!(ann.said().await.len(), 3);
    });
}

#[test]
fn what_the_target_has_lost_is_sent_again() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        ann.say("one", "e1", None, "the fox").await;
        ann.sync(target.path()).await;
        bob.say("two", "e2", None, "the owl").await;
        bob.sync(target.path()).await;
        ann.sync(target.path()).await;
        std::fs::remove_dir_all(target.path().join("shop")).unwrap();
        ann.say("one", "e3", Some("e1"), "the hen").await;
        assert_eq!(
            ann.sync(target.path()).await.sent.messages,
            3,
            "also what came from a machine that may be gone"
        );
        let eve = Machine::new("eve");
        eve.sync(target.path()).await;
        assert_eq!(eve.said().await, ann.said().await);
    });
}

#[test]
fn a_pack_waits_for_the_one_that_it_builds_on() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        ann.say("one", "e1", None, "the fox").await;
        ann.sync(target.path()).await;
        bob.sync(target.path()).await;
        bob.say("one", "e2", Some("e1"), "the hen").await;
        bob.sync(target.path()).await;
        // Whatever carries the folder has not brought the first pack yet.
        let first =
            packs(target.path()).into_iter().min_by_key(|path| path.metadata().unwrap().modified().unwrap());
        let (first, away) = (first.unwrap(), target.path().join("away"));
        std::fs::rename(&first, &away).unwrap();
        let report = eve.sync(target.path()).await;
        assert_eq!((report.waiting, report.received.messages), (1, 0));
        std::fs::rename(&away, &first).unwrap();
        let report = eve.sync(target.path()).await;
        assert_eq!((report.waiting, report.received.messages), (0, 2));
        assert_eq!(eve.said().await, bob.said().await);
    });
}

#[test]
fn own_masked_packs_add_nothing() {
    run(async {
        let (target, other, ann) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Machine::new("ann"));
        let key = format!("AKIA{}", "IOSFODNN7EXAMPL2");
        ann.say("one", "e1", None, &format!("the key is {key}, keep it")).await;
        let masked = |target: &Path| Options { redacts: true, ..ann.options(target) };
        ann.sync_as(masked(target.path())).await.unwrap();
        let said = ann.said().await;
        // Another target and back: own packs are read again.
        ann.sync_as(masked(other.path())).await.unwrap();
        ann.sync_as(masked(target.path())).await.unwrap();
        assert_eq!(ann.said().await, said);
    });
}

#[test]
fn what_only_a_pack_has_is_read_before_it_is_written_again() {
    run(async {
        let target = tempfile::tempdir().unwrap();
        let (ann, again) = (Machine::new("ann"), Machine::new("ann"));
        ann.say("one", "e1", None, "a secret that is long enough").await;
        ann.say("two", "e2", None, "the hen").await;
        ann.sync(target.path()).await;
        // The same machine with a history that lacks one session, although the pack counts as read.
        std::fs::copy(ann.home.db_dir.join("machine-id"), again.home.db_dir.join("machine-id")).unwrap();
        again.say("one", "e1", None, "a secret that is long enough").await;
        let name = ann.read(|view| view.synced().packs()).await.into_keys().next().unwrap();
        let place = format!("{} shop", target.path().display());
        again
            .write(move |batch| {
                batch.synced().begin(&place)?;
                batch.synced().add_pack(&name, None)
            })
            .await;
        again.purge("one", "e1").await;
        for _ in 0..2 {
            again.sync(target.path()).await;
        }
        assert!(!is_anywhere(target.path(), "a secret that is long"));
        let bob = Machine::new("bob");
        bob.sync(target.path()).await;
        assert!(
            bob.said().await.iter().any(|(session, .., json)| session == "two" && json.contains("the hen"))
        );
    });
}

#[test]
fn what_killed_syncs_have_left_is_removed() {
    run(async {
        let (target, ann) = (tempfile::tempdir().unwrap(), Machine::new("ann"));
        ann.sync(target.path()).await;
        let pack = packs(target.path()).pop().unwrap();
        let [left, written] = ["left.part", "written.part"].map(|name| pack.with_file_name(name));
        std::fs::write(&left, "the fox").unwrap();
        let file = std::fs::File::create(&written).unwrap();
        file.lock().unwrap();
        ann.sync(target.path()).await;
        assert_eq!(packs(target.path()), [pack.clone(), written]);
        drop(file);
        ann.sync(target.path()).await;
        assert_eq!(packs(target.path()), [pack]);
    });
}
#[test]
fn a_forged_pack_changes_nothing_that_is_there() {
    run(async {
        let (target, ann) = (tempfile::tempdir().unwrap(), Machine::new("ann"));
        ann.say("one", "e1", None, "the fox").await;
        ann.sync(target.path()).await;
        let said = ann.said().await;
        let machine = "0123456789abcdef0123456789abcdef";
        let folder = target.path().join("shop").join(machine);
        std::fs::create_dir_all(&folder).unwrap();
        let said_by = |machine: &str| {
            let id = machine.to_owned();
            let machine = ThisMachine {
                id,
                label: "evil".into(),
                recipients: Vec::new(),
                is_plain: false,
                db_dir: PathBuf::new(),
            };
            PackHeader::new(&machine, 0, false)
        };
        let header = said_by(machine);
        let packed = |header: &PackHeader, records: &[&str]| {
            let mut pack = PackWriter::new(header).unwrap();
            records.iter().for_each(|record| pack.record(record).unwrap());
            pack.finish().unwrap()
        };
        let session = r#"{"type":"session","id":"one","startedAt":1,"origin":"evil"}"#;
        let other =
            r#"{"type":"message","id":"e1","parentId":null,"message":{"role":"user","content":"the wolf"}}"#;
        let mut long = packed(&header, &[session]);
        long.extend(zstd::encode_all(std::io::repeat(0).take(3 << 20), 3).unwrap());
        let whole = encrypted(&packed(&header, &[session, other]), &[ann.key()]).unwrap();
        let changed = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let cases = [
            // Not the bytes of the name.
            (b"half".to_vec(), false),
            (packed(&said_by(&"f".repeat(32)), &[session, other]), true),
            (packed(&header, &[other]), true),
            (packed(&header, &["[]"]), true),
            (packed(&header, &[session, r#"{"type":"lcm-purged","id":"e1"}"#]), true),
            (packed(&PackHeader { format: 9, ..header.clone() }, &[session, other]), true),
            (
                packed(&PackHeader { recipients: vec!["age1".into()], ..header.clone() }, &[session, other]),
                true,
            ),
            (
                packed(&PackHeader { recipients: vec![ann.key(); 101], ..header.clone() }, &[session, other]),
                true,
            ),
            (long.clone(), true),
            (Vec::new(), true),
            (b"not zstd".to_vec(), true),
            (encrypted(b"not zstd", &[ann.key()]).unwrap(), true),
            (encrypted(&long, &[ann.key()]).unwrap(), true),
            (whole[..whole.len() - 1].to_vec(), true),
            ([whole.as_slice(), b"more"].concat(), true),
            ([whole.as_slice(), whole.as_slice()].concat(), true),
            (changed(0), true),
            (changed(whole.len() - 60), true),
            (changed(whole.len() - 1), true),
            ([MAGIC, b"v9\n--- \n"].concat(), true),
            // A header without an end, and one that would take long.
            ([MAGIC, &b"v1\n-> X25519 a\n".repeat(1_000)].concat(), true),
            ([MAGIC, b"v1\n", &b"-> a\n".repeat(1_000_000), b"--- \n"].concat(), true),
        ];
        let count = cases.len();
        for (number, (bytes, is_named)) in (0..).zip(cases) {
            let hash = if is_named { Hash::plain(&bytes) } else { Hash::ROOT };
            let name = PackName { machine: machine.into(), number, hash };
            std::fs::write(target.path().join("shop").join(name.to_string()), bytes).unwrap();
        }
        // Names that are none are not read at all.
        for name in ["000001-x.pack", "../x.pack", "1-abc.pack", "x"] {
            let _ = std::fs::write(folder.join(name), "x");
        }
        let report = ann.sync(target.path()).await;
        assert_eq!(report.refused.len(), count, "{:?}", report.refused);
        assert_eq!(ann.said().await, said);
        // The work that a passphrase asks for is not done.
        let bytes = [MAGIC, b"v1\n-> scrypt ", b"bBjlhJVYZeE4aqUdmtRHfw 40\nZV/AhotwSGqaPCU43cepl4WYUouAa17a3xpu4G2yi5k\n--- fgMiVLJHMlg9fW7CVG/hPS5EAU4Zeg19LyCP7SoH5nA\n", &[7; 64]].concat();
        let name = PackName { machine: machine.into(), number: 98, hash: Hash::plain(&bytes) };
        std::fs::write(target.path().join("shop").join(name.to_string()), bytes).unwrap();
        assert_eq!(ann.sync(target.path()).await.closed.len(), 1);
        // A well-formed one adds what it has, and nothing else.
        let bytes = packed(&header, &[session, other]);
        let name = PackName { machine: machine.into(), number: 99, hash: Hash::plain(&bytes) };
        std::fs::write(target.path().join("shop").join(name.to_string()), bytes).unwrap();
        ann.sync(target.path()).await;
        assert!(ann.said().await.is_superset(&said));
    });
}

#[test]
fn without_a_name_or_a_folder_one_sentence_says_so() {
    run(async {
        let (target, ann) = (tempfile::tempdir().unwrap(), Machine::new("ann"));
        let options = ann.options(target.path());
        let why = |options: Options| async { ann.sync_as(options).await.unwrap_err() };
        let error = why(Options { project: String::new(), ..options.clone() }).await;
        assert!(error.code() == Code::Unnamed && error.to_string().contains("no git remote"), "{error}");
        let elsewhere = Options { target: "/nowhere/at/all".into(), ..options };
        let error = why(elsewhere.clone()).await;
        assert!(error.to_string().contains("no such folder"), "{error}");
        let error = why(Options { project: String::new(), ..elsewhere }).await.to_string();
        assert!(error.contains("no such folder") && error.contains("no git remote"), "{error}");
    });
}

#[test]
fn secrets_are_masked_in_what_leaves() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let key = format!("AKIA{}", "IOSFODNN7EXAMPL2");
        ann.say("one", "e1", None, &format!("the key is {key}, keep it")).await;
        ann.sync_as(Options { redacts: true, ..ann.options(target.path()) }).await.unwrap();
        assert!(!is_anywhere(target.path(), &key));
        bob.sync(target.path()).await;
        assert!(bob.said().await.iter().any(|(.., json)| json.contains("masked")));
        // What is there stays.
        ann.sync(target.path()).await;
        assert!(ann.said().await.iter().all(|(.., json)| json.contains(&key)));
    });
}
