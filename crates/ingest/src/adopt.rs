//! Adds the history of another folder to this project: one that was moved, or that another setting has made
//! part of it.
//!
//! Sessions are imported as usual. Summaries and times, which an import does not bring, are copied as well. The old database is only read, and stays.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::import::{Folders, Home, Progress, Source, import};
use super::old_sessions::SharedOldStore;
use lcm_model::error::{Error, Result};
use lcm_model::sync::lock;
use lcm_model::text;
use lcm_store::tasks::aside;
use lcm_store::{Batch, History, OldStore, Place, Store, histories, is_open_elsewhere, real_path};
use serde::Serialize;

/// Rows per transaction.
const SLICE: usize = 200;

/// The outcome.
#[derive(Debug, Default, Serialize)]
pub struct Adopted {
    /// The project's name in its database.
    pub project: String,
    /// Sessions in the old databases.
    pub sessions: usize,
    /// Messages in these sessions.
    pub messages: usize,
    /// Messages that were not stored here before.
    pub new: usize,
    /// Summaries that are stored here now.
    pub summaries: usize,
    /// Rows that could not be read.
    pub lost: usize,
    /// Messages that are not stored here in the same form: purged here, or unreadable there.
    pub lacking: usize,
    /// Whether it was stopped. The same command continues.
    pub stopped: bool,
    /// The databases that were read. They stay.
    pub databases: Vec<PathBuf>,
}

/// Adds the history of the folder `old` to this project.
///
/// # Errors
/// When there is none, when another process has it open, or when the store fails. What was copied until then
/// stays.
pub async fn adopt(
    home: &Home,
    folders: &Folders,
    old: &Path,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Adopted> {
    let Place::File(own) = home.store.place().clone() else {
        return Err(Error::invalid(
            "this session's history is in memory only: start Pi without --no-session to add to the project's",
        ));
    };
    // The import marks sessions as opened, so the times are read before.
    let seen = home.store.read(|view| view.messages().sessions_seen()).await?;
    let (dir, wanted) = (home.db_dir.clone(), Path::new(&home.cwd).join(old));
    let in_use = own.clone();
    let found = aside(move || find(&dir, &in_use, &wanted)).await?;
    let mut done = Adopted::default();
    for History { path, project } in found {
        let asked = path.clone();
        if aside(move || is_open_elsewhere(&asked)).await? {
            return Err(Error::invalid(format!(
                "another Pi is working in {project}, which owns {}: quit it and try again",
                path.display()
            )));
        }
        let report = import(home, folders, &Source::Path(path.clone()), progress, cancel).await?;
        if let Some(failed) = report.failed.first() {
            return Err(Error::invalid(format!("{} can't be added: {}", path.display(), failed.reason)));
        }
        done.project = project;
        done.sessions += report.sessions;
        done.messages += report.new + report.known;
        done.new += report.new;
        done.lost += report.lost;
        done.stopped = report.stopped.is_some();
        if done.stopped {
            return Ok(done);
        }
        let (from, beside, stop) = (path.clone(), own.clone(), cancel.clone());
        let old = aside(move || OldStore::open(&from, &beside, &stop)).await?;
        let (summaries, lacking) = take_over(&home.store, &Arc::new(Mutex::new(old)), seen.clone()).await?;
        done.summaries += summaries;
        done.lacking += lacking;
        done.databases.push(path);
    }
    let (project, databases) = (done.project.clone(), done.databases.clone());
    home.store
        .write(move |batch| {
            batch.database().note_folder(None, Some(&project), text::now())?;
            databases.iter().try_for_each(|path| batch.upkeep().note_backup(path))
        })
        .await?;
    home.store.checkpoint().await?;
    Ok(done)
}

/// Removes `.`, `..` and doubled slashes from the path's text: the folder may no longer exist.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(straight.pop()),
            part => straight.push(part),
        }
    }
    straight
}

/// The databases of the project `wanted`.
fn find(dir: &Path, own: &Path, wanted: &Path) -> Result<Vec<History>> {
    // `/a/b/` and `/a/b` are one folder, whether or not it exists.
    let names = [straight(wanted).to_string_lossy().into_owned(), real_path(wanted)];
    let all = histories(dir);
    if all.iter().any(|history| history.path == own && names.contains(&history.project)) {
        return Err(Error::invalid(format!(
            "{} is this project: its history is in use here",
            wanted.display()
        )));
    }
    let (found, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .filter(|history| history.path != own)
        .partition(|history| names.contains(&history.project));
    if found.is_empty() {
        let mut others: Vec<String> = others.into_iter().map(|history| history.project).collect();
        others.dedup();
        let known = match others.as_slice() {
            [] => "there are no others".to_owned(),
            others => format!("there are histories of {}", others.join(", ")),
        };
        return Err(Error::invalid(format!(
            "{} has no history in {}; {known}",
            wanted.display(),
            dir.display()
        )));
    }
    Ok(found)
}

/// Copies from a database what an import of it does not bring. `seen` is when sessions were seen here before that.
/// Returns how many summaries are here now, and how many messages are not.
pub async fn take_over(
    store: &Store,
    old: &SharedOldStore,
    seen: HashMap<String, i64>,
) -> Result<(usize, usize)> {
    let old = Arc::clone(old);
    let read = move || {
        let old = lock(&old);
        Ok((old.summaries()?, old.times()?, old.lineages()?))
    };
    let (summaries, times, lineages) = aside(read).await?;
    let mut adopted = 0;
    for slice in summaries.chunks(SLICE).map(<[_]>::to_vec) {
        let write = move |batch: &Batch<'_>| {
            slice
                .iter()
                .map(|summary| batch.upkeep().adopt_summary(summary).map(usize::from))
                .sum::<Result<usize>>()
        };
        adopted += store.write(write).await?;
    }
    let write = move |batch: &Batch<'_>| {
        times
            .iter()
            .try_for_each(|times| batch.upkeep().adopt_times(times, seen.get(&times.session_id).copied()))?;
        batch.upkeep().lacking(lineages)
    };
    Ok((adopted, store.write(write).await?))
}
