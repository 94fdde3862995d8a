//! Machines that share a folder.

mod any_edits;
mod edited_files;
mod encryption;
mod purging;
mod purging_meanwhile;
mod versions;

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::encryption::{Key, MAGIC, NONE, encrypted, is_encrypted};
use crate::machine::ThisMachine;
use crate::pack::{PackHeader, PackName, PackWriter};
use crate::receive::receive;
use crate::send::send;
use crate::target::Target;
use crate::{Options, Progress, Report, Run, UNASKED, key, sync};
use lcm_ingest::Handover;
use lcm_ingest::import::Home;
use lcm_model::config::ProjectIdentity;
use lcm_model::dag::Sources;
use lcm_model::error::{Code, Result};
use lcm_model::ids::{Hash, MessageId};
use lcm_model::{CompactionDetails, State, Summary, SummaryRecord, tokens};
use lcm_store::{
    Batch, END, ExportedEntry, NewSummary, PreparedText, Purge, Shows, Store, View, repeated_id,
};

/// What a store says: session, entry, parent, and the message or what the entry does.
type Said = BTreeSet<(String, String, Option<String>, String)>;

struct Machine {
    home: Home,
    label: String,
    _dir: TempDir,
}

impl Machine {
    fn new(label: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of_project(Some(dir.path()), "/shop").unwrap();
        let home = Home {
            store,
            cwd: "/shop".into(),
            identity: ProjectIdentity::Cwd,
            db_dir: dir.path().to_owned(),
            session_id: String::new(),
        };
        Self { home, label: label.into(), _dir: dir }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Batch<'_>) -> Result<T> + Send + 'static,
    ) -> T {
        self.home.store.write(work).await.unwrap()
    }

    async fn read<T: Send + 'static>(&self, work: impl FnOnce(&View<'_>) -> Result<T> + Send + 'static) -> T {
        self.home.store.read(work).await.unwrap()
    }

    /// Adds an entry to a session.
    async fn add(&self, session: &str, entry: &str) {
        let (session, entries) = (session.to_owned(), Handover::of(entry).unwrap().prepare());
        self.write(move |batch| {
            let row = batch.messages().conversation_row(&session, None, None, 1)?;
            entries.store(batch, row)
        })
        .await;
    }

    async fn say(&self, session: &str, id: &str, parent: Option<&str>, text: &str) {
        self.say_at(session, id, parent, text, 1_000).await;
    }

    /// Says these texts in one branch, in entries with the ids `e1`, `e2` and so on.
    async fn chat(&self, session: &str, texts: &[&str]) {
        let mut above = None;
        for (text, number) in texts.iter().zip(1..) {
            let id = format!("e{number}");
            self.say(session, &id, above.as_deref(), text).await;
            above = Some(id);
        }
    }

    async fn say_at(&self, session: &str, id: &str, parent: Option<&str>, text: &str, time: usize) {
        let message = json!({"role": "user", "content": text, "timestamp": time});
        let entry = json!({"type": "message", "id": id, "parentId": parent, "message": message});
        self.add(session, &entry.to_string()).await;
    }

    /// Adds a summary of the session `one`.
    async fn summarize(&self, text: &'static str) -> Hash {
        self.write(move |batch| {
            let row = batch.messages().conversation("one")?.unwrap();
            let ids = ["e1", "e2"].map(|entry| batch.messages().shown_by(row, entry).unwrap().unwrap());
            summary_of(batch, ids.to_vec(), text)
        })
        .await
    }

    async fn sync_as(&self, options: Options) -> Result<Report> {
        sync(&self.home, &options, &Progress::default(), &CancellationToken::new()).await
    }

    fn options(&self, target: &Path) -> Options {
        Options {
            target: target.to_string_lossy().into_owned(),
            project: "shop".into(),
            label: self.label.clone(),
            redacts: false,
            recipients: Vec::new(),
            confirms_purges: false,
        }
    }

    fn key(&self) -> String {
        key(&self.home.db_dir).unwrap()
    }

    /// Syncs, and encrypts what is sent.
    async fn sync_to(&self, target: &Path, recipients: &[&Machine]) -> Report {
        let recipients = recipients.iter().map(|machine| machine.key()).collect();
        self.sync_as(Options { recipients, ..self.options(target) }).await.unwrap()
    }

    /// A sync that has begun.
    fn begun<'a>(&'a self, target: &Path, progress: &'a Progress, cancel: &'a CancellationToken) -> Run<'a> {
        static OPTIONS: LazyLock<Options> = LazyLock::new(Options::default);
        Run {
            home: &self.home,
            place: format!("{} shop", target.display()),
            target: Target::of(&target.to_string_lossy(), "shop").unwrap(),
            machine: ThisMachine::of(&self.home.db_dir, &self.label, &[]).unwrap(),
            options: &OPTIONS,
            progress,
            cancel,
        }
    }

    /// Syncs, and sends packs that are not encrypted.
    async fn sync_plain(&self, target: &Path) -> Report {
        self.sync_as(Options { recipients: vec![NONE.into()], ..self.options(target) }).await.unwrap()
    }

    /// What its key opens in a folder, unpacked.
    fn opened(&self, target: &Path) -> String {
        let key = Key::of(&self.home.db_dir).unwrap();
        let packs = packs(target).into_iter().map(|pack| std::fs::read(pack).unwrap());
        let packs = packs.filter(|pack| is_encrypted(pack)).filter_map(|pack| key.decrypted(&pack).unwrap());
        let texts = packs.map(|pack| zstd::decode_all(pack.as_slice()).unwrap()).collect::<Vec<_>>();
        String::from_utf8(texts.concat()).unwrap()
    }

    async fn sync(&self, target: &Path) -> Report {
        self.sync_as(self.options(target)).await.unwrap()
    }

    async fn said(&self) -> Said {
        self.read(|view| {
            let mut said = Said::new();
            for session in view.messages().sessions(None)? {
                for entry in view.messages().exported_entries(
                    session.id,
                    lcm_model::ids::EntryId(0),
                    usize::MAX >> 1,
                )? {
                    let ExportedEntry { id, parent, shows, .. } = entry;
                    let is_purged = view.upkeep().shows_purged(session.id, &id)?;
                    let what = match shows {
                        _ if is_purged => "purged".into(),
                        Shows::Message(message) => view.messages().json_of(message)?,
                        Shows::Edit { target, rendition } => {
                            let shown = rendition.map(|id| view.messages().json_of(id)).transpose()?;
                            format!("edit {target} {shown:?}")
                        }
                        other => format!("{other:?}"),
                    };
                    said.insert((session.session_id.clone(), id, parent, what));
                }
            }
            Ok(said)
        })
        .await
    }

    /// The lineages of everything, which other machines must agree on.
    async fn lineages(&self) -> BTreeSet<Hash> {
        self.read(|view| {
            let mut lineages = BTreeSet::new();
            for session in view.messages().sessions(None)? {
                for entry in view.messages().exported_entries(
                    session.id,
                    lcm_model::ids::EntryId(0),
                    usize::MAX >> 1,
                )? {
                    if let Shows::Message(message) = entry.shows {
                        lineages.insert(view.messages().message(message)?.lineage);
                    }
                }
            }
            Ok(lineages)
        })
        .await
    }

    async fn purge(&self, session: &str, entry: &str) {
        let (session, entry) = (session.to_owned(), entry.to_owned());
        self.write(move |batch| {
            let Some(row) = batch.messages().conversation(&session)? else { return Ok(()) };
            match batch.upkeep().purgeable_at(row, &entry)? {
                Some(message) => batch.upkeep().purge(&Purge::Message(message)).map(drop),
                None => Ok(()),
            }
        })
        .await;
        self.home.store.vacuum().await.unwrap();
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    runtime().block_on(work)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Whether a file below `folder` has these bytes, packs unpacked.
fn is_anywhere(folder: &Path, text: &str) -> bool {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    folder.read_dir().unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_anywhere(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap();
        holds(&bytes) || zstd::decode_all(bytes.as_slice()).is_ok_and(|plain| holds(&plain))
    })
}

fn packs(folder: &Path) -> Vec<PathBuf> {
    let mut packs = Vec::new();
    for entry in folder.read_dir().unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { packs.extend(self::packs(&path)) } else { packs.push(path) }
    }
    packs.sort();
    packs
}

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

fn summary_of(batch: &Batch<'_>, messages: Vec<MessageId>, text: &str) -> Result<Hash> {
    let sources = Sources::Messages(messages);
    let names = batch.summaries().identities(&sources)?;
    let mut summary = Summary {
        hash: Hash::ROOT,
        depth: 0,
        text: text.into(),
        tokens: tokens::estimate(text),
        state: State::Ok,
        model: Some("test/small".into()),
        prompt_version: 1,
        usage: None,
        created_at: 5,
        quotes: Vec::new(),
    };
    summary.hash = summary.identity(&names);
    let hash = summary.hash;
    let prepared = PreparedText::of(text);
    batch.summaries().add_summary(&NewSummary { summary, sources, prepared }, None, false)?;
    Ok(hash)
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
