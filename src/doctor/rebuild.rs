//! Makes a new database of every readable row of the old ones and of the sessions' files, proves it, and puts it in their
//! place. The old files stay.
//!
//! What is stored is what was said: a session's file fills only what is lost. What was purged in any of the old files
//! stays purged.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::check;
use crate::maintenance::purge::other_files;
use lcm_ingest::import::{Folders, Home, Progress, Report, Source, import, project_files};
use lcm_ingest::{Rebuilding, SharedOldStore, take_over};
use lcm_model::error::{Code, Error, Result};
use lcm_model::files::temporary::Temporary;
use lcm_model::locks::lock;
use lcm_model::text;
use lcm_store::tasks::blocking;
use lcm_store::{Batch, OldStore, PurgedEntries, Store, View, backup_name, joinable, project_of, replace};

/// What was rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    pub database: PathBuf,
    pub sessions: usize,
    pub messages: usize,
    pub summaries: usize,
    /// Rows that could not be read, and that no session file has.
    pub lost: usize,
    /// Bytes of the old files that are cut off or overwritten.
    pub missing: u64,
    /// Messages that came from session files.
    pub filled: usize,
    /// Where the old files are.
    pub kept: Vec<PathBuf>,
    /// The last backup before.
    pub backup: Option<PathBuf>,
}

/// An old database, where it goes, and its rows if any can be read.
struct Old {
    path: PathBuf,
    kept: PathBuf,
    rows: Option<SharedOldStore>,
}

/// Rebuilds the project's history. The store is closed afterwards, in any case.
///
/// # Errors
/// When another process has it open, when the new database would lack anything that the old ones have, or when it can't
/// be written. Then nothing was changed.
pub async fn rebuild(
    home: &Home,
    folders: &Folders,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Rebuilt> {
    let Some(own) = home.store.place().map(ToOwned::to_owned) else {
        return Err(Error::invalid("this session's history is in memory only: there is nothing to rebuild"));
    };
    home.store.close().await;
    let (project, stop) = (project_of(Path::new(&home.cwd), home.identity), cancel.clone());
    let (olds, part, store) = blocking(move || {
        let failed = |error| Error::storing("the new database can't be written", error);
        let olds = joinable(&own)?.into_iter().map(|path| Old::open(path, &own, &stop));
        let olds = olds.collect::<Result<Vec<_>>>()?;
        let (part, _) = Temporary::beside(&own).map_err(failed)?;
        let store = Store::create(&part.path(), &project)?;
        Ok((olds, part, store))
    })
    .await?;
    let fresh = Home { store: store.clone(), session_id: String::new(), ..home.clone() };
    let outcome = fill(&fresh, folders, &olds, progress, cancel).await;
    store.close().await;
    let rebuilt = outcome?;
    let names: Vec<_> = olds.into_iter().map(|old| (old.path, old.kept)).collect();
    let beside = names.first().map(|(path, _)| other_files(path)).unwrap_or_default();
    let rebuilt = Rebuilt {
        database: names.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        kept: names.iter().map(|(_, kept)| kept.clone()).collect(),
        backup: beside.into_iter().rfind(|file| file.extension().is_some_and(|end| end == "bak")),
        ..rebuilt
    };
    let failed = |error| Error::storing("the new database could not be put in its place", error);
    blocking(move || replace(part, &names).map_err(failed)).await?;
    Ok(rebuilt)
}

impl Old {
    fn open(path: PathBuf, own: &Path, cancel: &CancellationToken) -> Result<Self> {
        let rows = match OldStore::open(&path, own, cancel) {
            Ok(rows) => Some(Arc::new(Mutex::new(rows))),
            // Nothing in it can be read.
            Err(error) if error.code() == Code::Invalid => None,
            Err(error) => return Err(error),
        };
        Ok(Self { kept: backup_name(&path), path, rows })
    }
}

/// Fills the new store and proves it.
async fn fill(
    fresh: &Home,
    folders: &Folders,
    olds: &[Old],
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Rebuilt> {
    let olds_with_rows = || olds.iter().filter_map(|old| old.rows.as_ref());
    let (mut purged, mut facts, mut sessions) = (PurgedEntries::new(), HashMap::new(), HashMap::new());
    for old in olds_with_rows() {
        let old = lock(old);
        purged.extend(old.purged_entries()?);
        for (key, value) in old.facts()? {
            facts.entry(key).or_insert(value);
        }
        for session in old.sessions()? {
            sessions.entry(session.session_id.clone()).or_insert(session);
        }
    }
    // A copy of what one database has purged may be in another.
    let may_lack = !purged.is_empty() && olds_with_rows().count() > 1;
    let looking = (fresh.clone(), folders.clone());
    let files = Arc::new(blocking(move || Ok(project_files(&looking.0, &looking.1))).await?);
    let filled = Arc::default();
    let mut rebuilding = Rebuilding { purged: Arc::new(purged), files, filled, is_last: false };
    let missing = olds_with_rows().map(|old| lock(old).missing).sum();
    let mut rebuilt = Rebuilt { missing, ..Rebuilt::default() };
    let mut add = async |source| {
        let report = finished(import(fresh, folders, &source, progress, cancel).await?)?;
        rebuilt.lost += report.lost;
        Result::Ok(report.new)
    };
    for old in olds_with_rows() {
        add(Source::Rebuild(Arc::clone(old), rebuilding.clone())).await?;
    }
    let new = add(Source::Project).await?;
    rebuilding.is_last = true;
    for old in olds_with_rows() {
        add(Source::Rebuild(Arc::clone(old), rebuilding.clone())).await?;
        take_over(&fresh.store, old, None).await?;
    }
    rebuilt.filled = lock(&rebuilding.filled).len() + new;
    let kept: Vec<PathBuf> = olds.iter().map(|old| old.kept.clone()).collect();
    let note = move |batch: &Batch<'_>| {
        batch.upkeep().adopt_facts(&facts)?;
        sessions.values().try_for_each(|session| batch.upkeep().adopt_times(session))?;
        kept.iter().try_for_each(|path| batch.upkeep().note_backup(path))
    };
    fresh.store.write(note).await?;
    fresh.store.checkpoint().await?;
    prove(fresh, folders, olds_with_rows().cloned().collect(), may_lack, cancel).await?;
    let counts = |view: &View<'_>| {
        let summaries = view.upkeep().summary_rows()?.len();
        Ok((view.messages().conversations()?, view.messages().project_messages()?, summaries))
    };
    let (sessions, messages, summaries) = fresh.store.read(counts).await?;
    Ok(Rebuilt { sessions, messages, summaries, ..rebuilt })
}

fn finished(report: Report) -> Result<Report> {
    if report.stopped.is_some() { Err(Error::cancelled()) } else { Ok(report) }
}

/// Every text that can be read in the old databases must be in the new one, and that must be sound.
async fn prove(
    fresh: &Home,
    folders: &Folders,
    olds: Vec<SharedOldStore>,
    may_lack: bool,
    cancel: &CancellationToken,
) -> Result<()> {
    let lacking = fresh.store.read(move |view| {
        let mut digests = HashSet::new();
        for old in olds {
            digests.extend(lock(&old).digests()?);
        }
        view.upkeep().strike_out(&mut digests)?;
        Ok(digests.len())
    });
    let lacking = lacking.await?;
    if lacking > 0 && !may_lack {
        let lacking = text::count(lacking, "message");
        return Err(Error::store(format!("the new database would lack {lacking}; nothing was changed")));
    }
    let checks = check(&fresh.store, None, &folders.session_dir, cancel).await?;
    let Some(check) = checks.iter().find(|check| !check.is_sound()) else { return Ok(()) };
    let found = check.findings.first().map(|found| format!("{}: {}", found.what, found.named.join(", ")));
    let what = found.or_else(|| check.unfinished.clone()).unwrap_or_default();
    Err(Error::store(format!("the new database is not sound ({what}); nothing was changed")))
}
