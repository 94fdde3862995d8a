//! Files with a temporary name. They are removed on drop, and also when the process exits at once,
//! which drops nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use super::folder::Folder;
use crate::locks::lock;

/// Those of this process.
static ALL: Registry = Mutex::new(Some(BTreeMap::new()));

/// What a database in such a file has next to it.
const ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

/// What to remove, and from where; `None` once the process exits.
type Registry = Mutex<Option<BTreeMap<OsString, Arc<Folder>>>>;

/// A temporary file that only this user can read.
pub struct Temporary {
    folder: Arc<Folder>,
    name: OsString,
    registry: &'static Registry,
}

/// Removes all of them because the process exits. From now on none can be created or get its final name.
pub fn abandon_all() {
    abandon(&ALL);
}

impl Temporary {
    /// Creates a file in the folder of `target`, which it can become.
    ///
    /// # Errors
    /// When it can't be created, or the process exits; so for all functions here.
    pub fn beside(target: &Path) -> io::Result<(Self, File)> {
        Self::within(Folder::at(target.parent().unwrap_or(Path::new(""))))
    }

    /// Creates a file in a folder.
    pub fn within(folder: Folder) -> io::Result<(Self, File)> {
        Self::create(&ALL, folder, format!("pi-lcm-{}.part", Uuid::new_v4()).into(), Folder::create)
    }

    fn create<T>(
        registry: &'static Registry,
        folder: Folder,
        name: OsString,
        create: impl FnOnce(&Folder, &OsStr) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        let folder = Arc::new(folder);
        // Locked until it is listed, or an exit could miss it.
        let mut all = lock(registry);
        let known = all.as_mut().ok_or_else(exiting)?;
        let created = create(&folder, &name)?;
        known.insert(name.clone(), Arc::clone(&folder));
        drop(all);
        Ok((Self { folder, name, registry }, created))
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Gives it its final name in its folder. A file that has that name is replaced if `replaces`.
    ///
    /// # Errors
    /// Also when there is such a file and it is not to be replaced. Then it is removed.
    pub fn become_file(self, name: &OsStr, replaces: bool) -> io::Result<()> {
        let mut all = lock(self.registry);
        let known = all.as_mut().ok_or_else(exiting)?;
        if !replaces {
            // A rename replaces what has the name, so take the name first.
            self.folder.create(name)?;
        }
        if let Err(error) = self.folder.rename(&self.name, name) {
            if !replaces {
                let _ = self.folder.remove(name);
            }
            return Err(error);
        }
        known.remove(&self.name);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Locked until it is gone, or an exit could come between.
        let mut all = lock(self.registry);
        if all.as_mut().is_none_or(|known| known.remove(&self.name).is_some()) {
            remove(&self.folder, &self.name);
        }
    }
}

fn abandon(registry: &Registry) {
    let known = lock(registry).take();
    known.iter().flatten().for_each(|(name, folder)| remove(folder, name));
}

fn exiting() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the process exits")
}

/// Nothing more can be done if this fails.
fn remove(folder: &Folder, name: &OsStr) {
    for ending in ENDINGS {
        let mut name = name.to_owned();
        name.push(ending);
        let _ = folder.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn registry() -> &'static Registry {
        Box::leak(Box::new(Mutex::new(Some(BTreeMap::new()))))
    }

    #[test]
    fn an_exit_removes_everything_temporary_and_nothing_can_follow() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry();
        let file =
            |name: &str| Temporary::create(registry, Folder::at(dir.path()), name.into(), Folder::create);
        let (finished, _) = file("part").unwrap();
        finished.become_file(OsStr::new("done"), false).unwrap();
        let (written, _) = file("file").unwrap();
        let (kept, _) = file("database").unwrap();
        fs::write(dir.path().join("database-wal"), "").unwrap();
        abandon(registry);
        let names =
            || dir.path().read_dir().unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(names(), ["done"]);
        assert!(written.become_file(OsStr::new("late"), false).is_err());
        assert!(file("part").is_err());
        drop(kept);
        assert_eq!(names(), ["done"]);
    }

    #[test]
    fn a_file_gets_its_name_only_when_it_is_finished_and_replaces_nothing_unasked() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let write = || {
            let (part, _) = Temporary::beside(&target).unwrap();
            fs::write(part.path(), "new").unwrap();
            part
        };
        drop(write());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
        let part = write();
        fs::write(&target, "old").unwrap();
        assert_eq!(
            part.become_file(OsStr::new("target"), false).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        write().become_file(OsStr::new("target"), true).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        fs::remove_file(&target).unwrap();
        write().become_file(OsStr::new("target"), false).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }
}
