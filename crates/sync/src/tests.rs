//! Machines that share a folder.

mod any_edits;
mod any_order;
mod edited_files;
mod encryption;
mod folder;
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
            is_named: false,
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
