//! Makes a new database of every readable row of the old ones and of the sessions' files, proves it, and puts it in their
//! place. The old files stay.
//!
//! What is stored is what was said: a session's file fills only what is lost. What was purged in any of the old files
//! stays purged.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Doctor;
use crate::error::{Code, Error, Result};
use crate::files::temporary::Temporary;
use crate::ids::ConversationId;
use crate::ingest::adopt::take_over;
use crate::ingest::import::{Folders, Home, Progress, Report, Source, import};
use crate::store::{Batch, OldStore, Place, PurgedEntries, Store, View, backup_name, project_of};
use crate::sync::aside;
use crate::text;

/// What was rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    pub database: PathBuf,
    pub sessions: usize,
    pub messages: usize,
    pub summaries: usize,
    /// Rows that could not be read, and that no session file has.
    pub lost: usize,
    /// Where the old files are.
    pub kept: Vec<PathBuf>,
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
    let Place::File(own) = home.store.place().clone() else {
        return Err(Error::invalid("this session's history is in memory only: there is nothing to rebuild"));
    };
    home.store.close().await;
    let project = project_of(Path::new(&home.cwd), home.identity);
    let beside = own.clone();
    let olds = aside(move || Store::joinable(&own)).await?;
    let kept: Vec<PathBuf> = olds.iter().map(|old| backup_name(old)).collect();
    let (part, store) = aside(move || {
        let failed = |error| Error::storing("the new database can't be written", error);
        let (part, _) = Temporary::beside(&beside).map_err(failed)?;
        let store = Store::create(&part.path(), &project)?;
        Ok((part, store))
    })
    .await?;
    let fresh = Home { store: store.clone(), session_id: String::new(), ..home.clone() };
    let outcome = fill(&fresh, folders, &olds, &kept, progress, cancel).await;
    store.close().await;
    let rebuilt = outcome?;
    let database = olds.first().cloned().unwrap_or_default();
    let names = olds.into_iter().zip(kept.clone()).collect::<Vec<_>>();
    aside(move || Store::replace(part, &names)).await?;
    Ok(Rebuilt { database, kept, ..rebuilt })
}

/// Fills the new store and proves it.
async fn fill(
    fresh: &Home,
    folders: &Folders,
    olds: &[PathBuf],
    kept: &[PathBuf],
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Rebuilt> {
    let purged = read(fresh, olds, cancel, |old, all: &mut PurgedEntries| {
        all.extend(old.purged_entries()?);
        Ok(())
    });
    let purged = Arc::new(purged.await?);
    let mut rebuilt = Rebuilt::default();
    for old in olds {
        let source = Source::Rebuild(old.clone(), Arc::clone(&purged));
        let report = finished(import(fresh, folders, &source, progress, cancel).await?)?;
        if report.failed.is_empty() {
            rebuilt.lost += report.lost;
            take_over(&fresh.store, old, &HashMap::new(), cancel).await?;
        }
    }
    finished(import(fresh, folders, &Source::Project, progress, cancel).await?)?;
    let facts = read(fresh, olds, cancel, |old, all: &mut HashMap<String, String>| {
        for (key, value) in old.facts()? {
            all.entry(key).or_insert(value);
        }
        Ok(())
    });
    let (facts, kept) = (facts.await?, kept.to_vec());
    let note = move |batch: &Batch<'_>| {
        batch.upkeep().adopt_facts(&facts)?;
        kept.iter().try_for_each(|path| batch.upkeep().note_backup(path))
    };
    fresh.store.write(note).await?;
    fresh.store.checkpoint().await?;
    prove(fresh, olds, purged, cancel).await?;
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

/// Reads something of all old databases that can be read.
async fn read<T: Default + Send + 'static>(
    fresh: &Home,
    olds: &[PathBuf],
    cancel: &CancellationToken,
    read: impl Fn(&OldStore, &mut T) -> Result<()> + Send + 'static,
) -> Result<T> {
    let Place::File(beside) = fresh.store.place().clone() else { return Err(Error::closed()) };
    let (olds, cancel) = (olds.to_vec(), cancel.clone());
    aside(move || {
        let mut all = T::default();
        for old in olds {
            match OldStore::open(&old, &beside, &cancel) {
                Ok(old) => read(&old, &mut all)?,
                Err(error) if error.code() == Code::Invalid => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    })
    .await
}

/// Every text that can be read in the old databases must be in the new one, and that must be sound.
async fn prove(
    fresh: &Home,
    olds: &[PathBuf],
    purged: Arc<PurgedEntries>,
    cancel: &CancellationToken,
) -> Result<()> {
    let copies_may_be_purged = !purged.is_empty() && olds.len() > 1;
    let digests = read(fresh, olds, cancel, move |old, all: &mut std::collections::HashSet<_>| {
        all.extend(old.digests(&purged)?);
        Ok(())
    });
    let mut digests = digests.await?;
    let lacking = fresh.store.read(move |view| {
        view.upkeep().strike_out(&mut digests)?;
        Ok(digests.len())
    });
    let lacking = lacking.await?;
    if lacking > 0 && !copies_may_be_purged {
        let lacking = text::count(lacking, "message");
        return Err(Error::store(format!("the new database would lack {lacking}; nothing was changed")));
    }
    let doctor = Doctor { store: fresh.store.clone(), open: ConversationId::NONE, cancel: cancel.clone() };
    let report = doctor.check().await?;
    let finding = report.checks.iter().find(|check| !check.is_sound());
    match finding {
        None => Ok(()),
        Some(check) => {
            let what = check
                .findings
                .first()
                .map(|finding| format!("{}: {}", finding.what, finding.named.join(", ")));
            let what = what.or_else(|| check.unfinished.clone()).unwrap_or_default();
            Err(Error::store(format!("the new database is not sound ({what}); nothing was changed")))
        }
    }
}
