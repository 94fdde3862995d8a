//! Files and folders with a temporary name. They are removed on drop, and also when the process exits at once,
//! which drops nothing.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// Those of this process.
static ALL: Registry = Registry(Mutex::new(Some(BTreeSet::new())));

/// How often a folder is removed in which another thread still creates files.
const ATTEMPTS: usize = 10;

/// The paths to remove; `None` once the process exits.
struct Registry(Mutex<Option<BTreeSet<PathBuf>>>);

/// A temporary file or folder that only this user can read.
pub struct Temporary {
    path: PathBuf,
    registry: &'static Registry,
}

/// Removes all of them because the process exits. From now on none can be created or get its final name.
pub fn abandon_all() {
    ALL.abandon();
}

impl Temporary {
    /// Creates a file in the folder of `target`, which it can become.
    ///
    /// # Errors
    /// When it can't be created, or the process exits; so for all functions here.
    pub fn beside(target: &Path) -> io::Result<(Self, File)> {
        Self::create(&ALL, target.with_file_name(format!("pi-lcm-{}.part", Uuid::new_v4())), private_file)
    }

    /// Creates a folder among the system's temporary files.
    pub fn folder() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("pi-lcm-{}", Uuid::new_v4()));
        Self::create(&ALL, path, super::make_private_dir).map(|(folder, ())| folder)
    }

    fn create<T>(
        registry: &'static Registry,
        path: PathBuf,
        create: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        // Locked until it is listed, or an exit could miss it.
        let mut all = registry.lock();
        let paths = all.as_mut().ok_or_else(exiting)?;
        let created = create(&path)?;
        paths.insert(path.clone());
        drop(all);
        Ok((Self { path, registry }, created))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its final name. A file that has that name is replaced if `replaces`.
    ///
    /// # Errors
    /// Also when there is such a file and it is not to be replaced. Then it is removed.
    pub fn become_file(self, target: &Path, replaces: bool) -> io::Result<()> {
        let mut all = self.registry.lock();
        let paths = all.as_mut().ok_or_else(exiting)?;
        if !replaces {
            // A rename replaces what has the name, so take the name first.
            private_file(target)?;
        }
        if let Err(error) = fs::rename(&self.path, target) {
            if !replaces {
                let _ = fs::remove_file(target);
            }
            return Err(error);
        }
        paths.remove(&self.path);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Locked until it is gone, or an exit could come between.
        let mut all = self.registry.lock();
        if all.as_mut().is_none_or(|paths| paths.remove(&self.path)) {
            remove(&self.path);
        }
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeSet<PathBuf>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandon(&self) {
        let paths = self.lock().take();
        paths.iter().flatten().for_each(|path| remove(path));
    }
}

fn exiting() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the process exits")
}

/// Creates a new file that only this user can read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Nothing more can be done if this fails.
fn remove(path: &Path) {
    if !path.is_dir() {
        let _ = fs::remove_file(path);
        return;
    }
    let _ = (0..ATTEMPTS).find(|_| fs::remove_dir_all(path).is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> &'static Registry {
        Box::leak(Box::new(Registry(Mutex::new(Some(BTreeSet::new())))))
    }

    #[test]
    fn an_exit_removes_everything_temporary_and_nothing_can_follow() {
        let dir = tempfile::tempdir().unwrap();
        let [file, folder, done, late] = ["file", "folder", "done", "late"].map(|name| dir.path().join(name));
        let registry = registry();
        let part = dir.path().join("part");
        let (finished, _) = Temporary::create(registry, part.clone(), private_file).unwrap();
        finished.become_file(&done, false).unwrap();
        let (written, _) = Temporary::create(registry, file, private_file).unwrap();
        let (kept, ()) = Temporary::create(registry, folder.clone(), crate::files::make_private_dir).unwrap();
        fs::write(folder.join("copy"), "").unwrap();
        registry.abandon();
        let names = |dir: &Path| dir.read_dir().unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
        assert_eq!(names(dir.path()), std::slice::from_ref(&done));
        assert!(written.become_file(&late, false).is_err());
        assert!(Temporary::create(registry, part, private_file).is_err());
        drop(kept);
        assert_eq!(names(dir.path()), [done]);
    }

    #[test]
    fn an_exit_waits_for_a_removal_that_has_begun() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..50 {
            let registry = registry();
            let path = dir.path().join("folder");
            let (folder, ()) =
                Temporary::create(registry, path.clone(), crate::files::make_private_dir).unwrap();
            for name in 0..20 {
                fs::write(path.join(name.to_string()), "").unwrap();
            }
            let dropping = std::thread::spawn(move || drop(folder));
            while path.join("0").exists() && path.join("19").exists() {
                std::thread::yield_now();
            }
            registry.abandon();
            assert!(!path.exists());
            dropping.join().unwrap();
        }
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
        assert_eq!(part.become_file(&target, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        write().become_file(&target, true).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        fs::remove_file(&target).unwrap();
        write().become_file(&target, false).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }
}
