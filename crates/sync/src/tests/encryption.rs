//! Packs that are encrypted to recipients.

use super::*;

#[test]
fn only_recipients_read_encrypted_packs_and_later_ones_get_all() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        ann.say("one", "e1", None, "the fox").await;
        ann.say("one", "e2", Some("e1"), "hunter2hunter2hunter2").await;
        assert_eq!(ann.sync_to(target, &[&bob]).await.recipients, 2);
        for text in ["ann", "fox", "user", "lcm-pack"] {
            assert!(!is_anywhere(target, text), "{text}");
        }
        assert!(ann.sync(target).await.withheld && Machine::new("dan").sync(target).await.withheld);
        // Where others encrypt, Bob sends nothing as it is by mistake.
        bob.say("two", "e1", None, "the owl").await;
        for is_received in [true, false] {
            let report = bob.sync(target).await;
            assert_eq!(
                (report.received.messages > 0, report.withheld, report.sent.packs),
                (is_received, true, 0)
            );
            assert!(!is_anywhere(target, "the owl"));
        }
        assert_eq!(bob.sync_plain(target).await.sent.messages, 1);
        assert!(is_anywhere(target, "the owl"));
        assert_eq!(bob.sync_to(target, &[&ann]).await.rewritten, 1);
        assert!(!is_anywhere(target, "the owl"));
        ann.sync_to(target, &[&bob]).await;
        assert_eq!(ann.said().await, bob.said().await);

        for is_new in [true, false] {
            let report = eve.sync_to(target, &[&ann, &bob]).await;
            let closed: Vec<_> = report.closed.iter().map(|closed| (closed.packs, closed.is_new)).collect();
            assert_eq!((closed, report.key), (vec![(1, is_new), (1, is_new)], Some(eve.key())));
            assert_eq!((report.received.bytes > 0, report.received.messages), (is_new, 0));
        }
        let all = [&ann, &bob, &eve];
        assert_eq!(ann.sync_to(target, &all).await.rewritten, 1);
        assert_eq!(eve.sync_to(target, &all).await.closed.len(), 1);
        assert_eq!(bob.sync_to(target, &all).await.rewritten, 1);
        assert!(eve.sync_to(target, &all).await.closed.is_empty());
        assert_eq!(eve.said().await, ann.said().await);

        bob.purge("one", "e2").await;
        for machine in [&bob, &ann, &eve, &bob, &ann] {
            machine.sync_to(target, &all).await;
        }
        assert!(ann.opened(target).contains("the fox") && !ann.opened(target).contains("hunter2"));
        for machine in all {
            assert_eq!(machine.said().await, ann.said().await);
        }
        let files = packs(target);
        for machine in all {
            let report = machine.sync_to(target, &all).await;
            assert_eq!((report.sent.packs, report.received.bytes, report.rewritten), (0, 0, 0));
        }
        assert_eq!(packs(target), files);
        // Without recipients, packs that are there stay as they are.
        ann.purge("one", "e1").await;
        ann.say("one", "e3", Some("e1"), "the hen").await;
        assert!(ann.sync(target).await.withheld && !is_anywhere(target, "the hen"));
        ann.sync_plain(target).await;
        assert!(is_anywhere(target, "the hen"));
        assert!(!is_anywhere(target, "the owl") && !eve.opened(target).contains("the fox"));
    });
}

#[test]
fn packs_that_are_encrypted_again_replace_those_that_a_stopped_sync_left() {
    run(async {
        let (target, ann, bob, eve) =
            (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"), Machine::new("eve"));
        let target = target.path();
        ann.say("one", "e1", None, "the fox").await;
        ann.sync(target).await;
        let old = packs(target).pop().unwrap();
        let bytes = std::fs::read(&old).unwrap();
        assert_eq!(ann.sync_to(target, &[&bob]).await.rewritten, 1);
        assert!(ann.sync(target).await.withheld);
        std::fs::write(&old, bytes).unwrap();
        ann.sync_to(target, &[&bob, &eve]).await;
        let left = packs(target);
        assert!(left.len() == 1 && !left.contains(&old), "{left:?}");
        assert_eq!(eve.sync(target).await.received.messages, 1);
        // A damaged one is named, and sent again once it is removed.
        std::fs::write(&left[0], "the f").unwrap();
        assert_eq!(ann.sync_to(target, &[&bob]).await.refused.len(), 1);
        std::fs::remove_file(&left[0]).unwrap();
        assert!(ann.sync(target).await.withheld);
        assert_eq!(ann.sync_to(target, &[&bob]).await.sent.messages, 1);
    });
}

#[test]
fn what_a_process_with_older_settings_sends_meanwhile_is_encrypted_by_the_next_sync() {
    run(async {
        for is_killed in [false, true] {
            let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
            let target = target.path();
            ann.say("one", "e0", None, "the owl").await;
            ann.sync_to(target, &[&bob]).await;
            ann.say("one", "e1", Some("e0"), "the fox").await;
            // It has found nothing encrypted, and is killed before it notes what it has sent.
            let (progress, cancel) = <(Progress, CancellationToken)>::default();
            let mut older = ann.begun(target, &progress, &cancel);
            if is_killed {
                older.place.clear();
            }
            assert_eq!(send(&older, 2, &mut Report::default()).await.is_err(), is_killed);
            assert!(is_anywhere(target, "the fox"));
            assert_eq!(ann.sync_to(target, &[&bob]).await.rewritten, 1);
            assert!(!is_anywhere(target, "the fox"));
            assert_eq!(bob.sync_to(target, &[&ann]).await.received.messages, 2);
        }
    });
}

#[test]
fn packs_to_a_key_that_is_lost_are_named_and_can_be_sent_again() {
    run(async {
        let (target, ann, bob) = (tempfile::tempdir().unwrap(), Machine::new("ann"), Machine::new("bob"));
        let target = target.path();
        ann.say("one", "e1", None, "the fox").await;
        ann.sync_to(target, &[&bob]).await;
        let (file, away) = (ann.home.db_dir.join("machine-key"), ann.home.db_dir.join("away"));
        std::fs::rename(&file, &away).unwrap();
        ann.say("one", "e2", Some("e1"), "the hen").await;
        for sent in [1, 0] {
            let report = ann.sync_to(target, &[&bob]).await;
            assert_eq!((report.lost, report.closed.len(), report.sent.messages), (1, 0, sent));
        }
        let new = std::fs::read(&file).unwrap();
        std::fs::copy(&away, &file).unwrap();
        assert_eq!(ann.sync_to(target, &[&bob]).await.lost, 1, "now it is the other one");
        std::fs::write(&file, new).unwrap();
        assert_eq!(ann.sync_to(target, &[&bob]).await.lost, 1);
        std::fs::remove_file(packs(target).remove(0)).unwrap();
        let report = ann.sync_to(target, &[&bob]).await;
        assert_eq!((report.lost, report.sent.messages), (0, 1));
        assert_eq!(bob.sync_to(target, &[&ann]).await.received.messages, 2);
    });
}

#[test]
fn what_is_no_recipient_stops_a_sync_and_no_message_shows_it() {
    run(async {
        let (target, ann) = (tempfile::tempdir().unwrap(), Machine::new("ann"));
        ann.say("one", "e1", None, "the fox").await;
        let good = ann.key();
        let file = ann.home.db_dir.join("machine-key");
        let secret = std::fs::read_to_string(&file).unwrap();
        for wrong in [secret.as_str(), "", "age1", &good[1..], "AGE-SECRET-KEY-1", "false"] {
            let recipients = vec![good.clone(), wrong.to_owned()];
            let options = Options { recipients, ..ann.options(target.path()) };
            let error = ann.sync_as(options).await.unwrap_err().to_string();
            assert!(error.contains("number 2 in syncRecipients is no key"), "{error}");
            assert!(!error.contains("SECRET"));
        }
        assert!(packs(target.path()).is_empty());
        // A key of age-keygen may take its place, but what is none is never overwritten.
        std::fs::write(&file, format!("# created: today\n# public key: {good}\n{secret}\n")).unwrap();
        assert_eq!(ann.key(), good);
        std::fs::write(&file, "AGE-SECRET-KEY-PQ-1").unwrap();
        let error = key(&ann.home.db_dir).unwrap_err().to_string();
        assert!(error.contains("machine-key can't be used"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "AGE-SECRET-KEY-PQ-1");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::remove_file(&file).unwrap();
            ann.key();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            // Another user may have put it there.
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
            let error = key(&ann.home.db_dir).unwrap_err().to_string();
            assert!(error.contains("may be written by other users"), "{error}");
        }
    });
}
