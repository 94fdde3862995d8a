//! Copies the history into one file, which is read back and checked.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::in_folder;
use lcm_ingest::import::Home;
use lcm_model::error::{Error, Result};
use lcm_store::{BackupFacts, backup_name};

/// A finished backup.
#[derive(Debug, Serialize)]
pub struct BackedUp {
    pub path: PathBuf,
    #[serde(flatten)]
    pub facts: BackupFacts,
    /// The copied database.
    #[serde(skip)]
    pub database: PathBuf,
}

/// Copies the history of `home` to `path`, a new file or a folder; without a path, next to the database.
///
/// # Errors
/// When the history is in memory only, the target exists, the copy can't be written or read back, or `cancel`
/// is raised.
pub async fn back_up(home: &Home, path: Option<&Path>, cancel: &CancellationToken) -> Result<BackedUp> {
    let store = &home.store;
    let Some(database) = store.place() else {
        return Err(Error::invalid("this session's history is in memory only: there is nothing to copy"));
    };
    let default = backup_name(database);
    let path = match path {
        Some(path) => in_folder(Path::new(&home.cwd).join(path), default.file_name().unwrap_or_default())?,
        None => default,
    };
    if path.symlink_metadata().is_ok() {
        return Err(Error::invalid(format!(
            "{} already exists and is not overwritten: choose another name",
            path.display()
        )));
    }
    // First, so that the backup knows of itself.
    let noted = path.clone();
    if store.is_apart() {
        // Nothing is written to a database in another folder.
        let dir = |path: &Path| path.canonicalize().ok();
        if database.parent().and_then(dir) == dir(&home.db_dir) {
            store.note_backup_apart(&noted);
        }
    } else {
        store.write(move |batch| batch.upkeep().note_backup(&noted)).await?;
    }
    let (written, cancel) = (path.clone(), cancel.clone());
    let facts = store.read(move |view| view.upkeep().back_up_and_verify(&written, &cancel)).await?;
    Ok(BackedUp { path, facts, database: database.to_owned() })
}
