//! Where packs are: a folder, which anything else may carry, or a bucket of an object store.
//!
//! Both know four things: list, read, write unless it is there, remove. Nothing is ever locked or overwritten.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::pack::{LARGEST, PackName, is_machine};
use super::s3::{S3, SCHEME};
use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_store::tasks::blocking;
use uuid::Uuid;

/// The ending of an unfinished pack.
const PART: &str = "part";

/// A project's place at a target.
pub(crate) enum Target {
    Folder(PathBuf),
    Bucket(Box<S3>),
}

impl Target {
    /// The place of `project` at the target that the user calls `name`: a folder, or `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// When there is no such folder, or the access to the bucket is not set up.
    pub fn of(name: &str, project: &str) -> Result<Self> {
        if name.starts_with(SCHEME) {
            return S3::of(name, project).map(|bucket| Self::Bucket(Box::new(bucket)));
        }
        let folder = PathBuf::from(name);
        let wrong = |why: &str| Err(Error::invalid(format!("{name} can't be a sync target: {why}")));
        if name.contains("://") {
            return wrong("use a folder, or s3://BUCKET/PREFIX");
        }
        if folder.exists() && !folder.is_dir() {
            return wrong("it is no folder");
        }
        if !folder.is_dir() {
            return wrong("there is no such folder; create it first");
        }
        Ok(Self::Folder(folder.join(project)))
    }

    /// The names of all packs; in a bucket those that may be new since the packs with these numbers were read, by machine.
    /// Other files are none.
    pub async fn list(&self, read: &HashMap<String, i64>) -> Result<Vec<PackName>> {
        let mut names = match self {
            Self::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || packs_in(&folder).map_err(|error| unreachable(&folder, error))).await?
            }
            Self::Bucket(bucket) => bucket.list(read).await?,
        };
        names.sort_by(|one, other| (one.number, one).cmp(&(other.number, other)));
        Ok(names)
    }

    /// Whether that lists all packs.
    pub fn lists_all(&self, read: &HashMap<String, i64>) -> bool {
        matches!(self, Self::Folder(_)) || read.is_empty()
    }

    /// A pack's bytes; `None` if it is gone.
    pub async fn get(&self, name: &PackName) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name.to_string());
                blocking(move || match read(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) if is_of_file(&error) => {
                        Err(Error::invalid(format!("it can't be read: {error}")))
                    }
                    read => read.map(Some).map_err(|error| unreachable(&path, error)),
                })
                .await
            }
            Self::Bucket(bucket) => bucket.get(name).await,
        }
    }

    /// Writes a pack, unless it is there.
    pub async fn put(&self, name: &PackName, bytes: Vec<u8>) -> Result<()> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name.to_string());
                blocking(move || write(&path, &bytes).map_err(|error| unreachable(&path, error))).await
            }
            Self::Bucket(bucket) => bucket.put(name, bytes).await,
        }
    }

    /// Removes what syncs of this machine have left that were killed.
    pub async fn sweep(&self, machine: &str) -> Result<()> {
        let Self::Folder(folder) = self else { return Ok(()) };
        let own = folder.join(machine);
        let sweep = move || {
            let files = entries(&own).map_err(|error| unreachable(&own, error))?;
            for part in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == PART)) {
                // Another process may be writing it.
                let is_locked = files::open(part).is_ok_and(|file| {
                    file.try_lock_shared().is_err_and(|error| matches!(error, TryLockError::WouldBlock))
                });
                if !is_locked {
                    let _ = std::fs::remove_file(part);
                }
            }
            Ok(())
        };
        blocking(sweep).await
    }

    /// Removes a pack.
    pub async fn remove(&self, name: &PackName) -> Result<()> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name.to_string());
                blocking(move || match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unreachable(&path, error)),
                    _ => Ok(()),
                })
                .await
            }
            Self::Bucket(bucket) => bucket.remove(name).await,
        }
    }
}

/// Whether only this file can't be read, and not the target.
fn is_of_file(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, PermissionDenied};
    matches!(error.kind(), InvalidData | InvalidInput | IsADirectory | PermissionDenied)
}

fn packs_in(folder: &Path) -> io::Result<Vec<PackName>> {
    let mut names = Vec::new();
    let is_machine = |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(is_machine);
    for machine in entries(folder)?.into_iter().filter(is_machine) {
        for file in entries(&machine)? {
            let name = file.strip_prefix(folder).ok().and_then(Path::to_str);
            names.extend(name.and_then(|name| PackName::parse(&name.replace('\\', "/"))));
        }
    }
    Ok(names)
}

/// What is in a folder; nothing if it is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match folder.read_dir() {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    // A pipe would never be opened.
    let file = files::open(path)?;
    if file.metadata()?.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than any pack"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file under another name first: a folder may be read, or carried elsewhere, at any time. Who may read it is the
/// user's choice, as with any file: others may share the folder.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // Another process may be writing the same.
    let part = path.with_extension(format!("{}.{PART}", Uuid::new_v4().simple()));
    let written = File::create(&part).and_then(|mut file| {
        // Not everywhere can it be.
        let _ = file.lock();
        file.write_all(bytes).and_then(|()| file.sync_all())?;
        std::fs::rename(&part, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn unreachable(path: &Path, error: io::Error) -> Error {
    Error::storing(format!("the sync target {} can't be used", path.display()), error)
}
