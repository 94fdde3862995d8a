//! A folder held open: what is created, named or removed in it stays in it, whoever replaces folders or links on the
//! way there meanwhile.
//!
//! Another user's link is not followed: its owner could have a file replaced that only this user can write. Root may
//! work in another user's folders, and there follows that user's links to that user's files. Systems without such
//! owners are not checked, and their folders are found again by their paths.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

#[cfg(unix)]
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

use crate::error::{Error, Result};

/// The most links to follow, as on Linux.
const LINKS: usize = 40;

/// A folder to write to.
pub struct Folder {
    path: PathBuf,
    /// Without one, the folder is whatever has its path.
    #[cfg(unix)]
    handle: Option<OwnedFd>,
}

/// Where a symbolic link leads, and who made it, as far as the system tells.
struct Link {
    target: PathBuf,
    owner: u32,
}

/// Opens the folder of the file at `path`, and returns it with the file's path. A link at the end is followed if
/// `follows`.
///
/// # Errors
/// When the folder can't be opened, or a link must not be followed.
pub fn folder_of(path: &Path, follows: bool) -> Result<(Folder, PathBuf)> {
    let mut way = Way { path, links: 0 };
    let mut start = Folder::open(Path::new(".")).map_err(|error| way.unwritable(&error))?;
    start.path = PathBuf::new();
    way.find(&start, path, path.to_owned(), follows)
}

/// A path that is being followed.
struct Way<'a> {
    path: &'a Path,
    links: usize,
}

impl Way<'_> {
    fn find(
        &mut self,
        from: &Folder,
        path: &Path,
        name: PathBuf,
        follows: bool,
    ) -> Result<(Folder, PathBuf)> {
        let Some(file) = path.file_name() else {
            return Err(self.unwritable(&ErrorKind::IsADirectory.into()));
        };
        let folder = self.enter(from, path.parent().unwrap_or(Path::new("")))?;
        match folder.link(file) {
            Ok(Some(link)) if follows => {
                let theirs = self.check(&folder, file, &link)?;
                let name = name.parent().unwrap_or(Path::new("")).join(&link.target);
                let found = self.find(&folder, &link.target, name, true)?;
                let owner = found.0.owner_of(found.1.file_name().unwrap_or_default()).ok();
                if theirs.is_some() && owner != theirs {
                    Err(foreign(&folder, file, &link))
                } else {
                    Ok(found)
                }
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.unwritable(&error)),
            _ => Ok((folder, name)),
        }
    }

    /// The folder at `path` below `from`.
    fn enter(&mut self, from: &Folder, path: &Path) -> Result<Folder> {
        if cfg!(not(unix)) {
            return Ok(Folder::at(&from.path.join(path)));
        }
        let mut at = from.enter(OsStr::new(".")).map_err(|error| self.unwritable(&error))?;
        for part in path.components() {
            let next = match part {
                Component::CurDir => continue,
                Component::Prefix(_) | Component::RootDir => Folder::open(Path::new("/")),
                Component::ParentDir => at.enter(OsStr::new("..")),
                Component::Normal(name) => match at.link(name) {
                    Ok(None) => at.enter(name),
                    Ok(Some(link)) => {
                        let theirs = self.check(&at, name, &link)?;
                        let to = self.enter(&at, &link.target)?;
                        if theirs.is_some() && to.owner_of(OsStr::new(".")).ok() != theirs {
                            return Err(foreign(&at, name, &link));
                        }
                        Ok(to)
                    }
                    Err(error) => Err(error),
                },
            };
            at = next.map_err(|error| self.unwritable(&error))?;
        }
        Ok(at)
    }

    /// Whether a link may be followed; returns the user to whom what it leads to must belong.
    fn check(&mut self, folder: &Folder, name: &OsStr, link: &Link) -> Result<Option<u32>> {
        self.links += 1;
        if self.links > LINKS {
            return Err(Error::invalid(format!("{} leads through too many links", self.path.display())));
        }
        match own_id() {
            own if [own, 0].contains(&link.owner) => Ok(None),
            // In a container, root works in another user's folders.
            0 if folder.owner_of(OsStr::new(".")).ok() == Some(link.owner) => Ok(Some(link.owner)),
            _ => Err(foreign(folder, name, link)),
        }
    }

    fn unwritable(&self, error: &io::Error) -> Error {
        Error::invalid(format!("{} can't be written: {error}", self.path.display()))
    }
}

fn foreign(folder: &Folder, name: &OsStr, link: &Link) -> Error {
    let (path, owner) = (folder.path.join(name), link.owner);
    Error::invalid(format!("{} is a link of another user (uid {owner}): choose another name", path.display()))
}

impl Folder {
    /// The folder that has this path whenever it is used.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            #[cfg(unix)]
            handle: None,
        }
    }

    /// Its path, at least when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a new file that only this user can read.
    ///
    /// # Errors
    /// When it can't be created, or there is something of this name.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        #[cfg(unix)]
        if let Some(folder) = &self.handle {
            let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return Ok(rustix::fs::openat(folder, name, how, Mode::RUSR | Mode::WUSR)?.into());
        }
        super::private_file(&self.path.join(name))
    }

    /// Renames a file within the folder, and replaces what has the new name.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(folder) = &self.handle {
            return Ok(rustix::fs::renameat(folder, from, folder, to)?);
        }
        fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Removes a file.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(folder) = &self.handle {
            return Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?);
        }
        fs::remove_file(self.path.join(name))
    }
}

#[cfg(unix)]
impl Folder {
    /// Linux opens a folder without the right to list it.
    #[cfg(target_os = "linux")]
    const OPENED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    const OPENED: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

    fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::openat(CWD, path, Self::OPENED, Mode::empty())?;
        Ok(Self { path: path.to_owned(), handle: Some(handle) })
    }

    fn handle(&self) -> io::Result<&OwnedFd> {
        self.handle.as_ref().ok_or_else(|| ErrorKind::Unsupported.into())
    }

    /// A folder in it; a link is none.
    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let how = Self::OPENED | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(self.handle()?, name, how, Mode::empty())?;
        let path = if name == "." { self.path.clone() } else { self.path.join(name) };
        Ok(Self { path, handle: Some(handle) })
    }

    fn link(&self, name: &OsStr) -> io::Result<Option<Link>> {
        use std::os::unix::ffi::OsStringExt as _;

        let at = self.handle()?;
        // Its owner and where it leads are of the same link, even if another one takes its name meanwhile.
        #[cfg(target_os = "linux")]
        let (at, name, how) = {
            let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            (rustix::fs::openat(at, name, how, Mode::empty())?, OsStr::new(""), AtFlags::EMPTY_PATH)
        };
        #[cfg(not(target_os = "linux"))]
        let how = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(&at, name, how)?;
        if !FileType::from_raw_mode(stat.st_mode).is_symlink() {
            return Ok(None);
        }
        let target = rustix::fs::readlinkat(&at, name, Vec::new())?.into_bytes();
        Ok(Some(Link { target: std::ffi::OsString::from_vec(target).into(), owner: stat.st_uid }))
    }

    fn owner_of(&self, name: &OsStr) -> io::Result<u32> {
        Ok(rustix::fs::statat(self.handle()?, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid)
    }
}

#[cfg(unix)]
fn own_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::at(path))
    }

    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self::at(&self.path.join(name)))
    }

    fn link(&self, name: &OsStr) -> io::Result<Option<Link>> {
        let path = self.path.join(name);
        if !fs::symlink_metadata(&path)?.is_symlink() {
            return Ok(None);
        }
        Ok(Some(Link { target: fs::read_link(path)?, owner: 0 }))
    }

    fn owner_of(&self, _: &OsStr) -> io::Result<u32> {
        Ok(0)
    }
}

#[cfg(not(unix))]
fn own_id() -> u32 {
    0
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn follow_own(path: &Path) -> Result<PathBuf> {
        folder_of(path, true).map(|(_, path)| path)
    }

    #[test]
    fn links_are_followed_unless_they_are_another_users() {
        use std::os::unix::fs::{lchown, symlink};

        let dir = tempfile::tempdir().unwrap();
        let [file, first, second] = ["file", "first", "second"].map(|name| dir.path().join(name));
        symlink("second", &first).unwrap();
        symlink("file", &second).unwrap();
        for path in [&file, &second, &first] {
            assert_eq!(follow_own(path).unwrap(), file);
        }
        // Only root can give files away.
        if lchown(&second, Some(4321), None).is_ok() {
            let message =
                format!("{} is a link of another user (uid 4321): choose another name", second.display());
            let refused =
                || [&second, &first].iter().all(|path| follow_own(path).unwrap_err().to_string() == message);
            assert!(refused());
            // In a container, root works in another user's folders. The link may still lead out of them.
            lchown(dir.path(), Some(4321), None).unwrap();
            fs::write(&file, "").unwrap();
            assert!(refused());
            lchown(&file, Some(4321), None).unwrap();
            assert_eq!(follow_own(&first).unwrap(), file);
        }
        fs::remove_file(&second).unwrap();
        symlink("first", &second).unwrap();
        let message = follow_own(&first).unwrap_err().to_string();
        assert!(message.ends_with("first leads through too many links"), "{message}");
        for round in [&first.join("file"), &dir.path().join("first/../file")] {
            let message = follow_own(round).unwrap_err().to_string();
            assert!(message.ends_with(" leads through too many links"), "{message}");
        }
    }

    #[test]
    fn another_users_link_to_a_folder_is_followed_only_by_root_and_among_that_users_folders() {
        use std::os::unix::fs::{chown, lchown, symlink};

        let dir = tempfile::tempdir().unwrap();
        let [shared, own, folder] = ["shared", "own", "own/folder"].map(|name| dir.path().join(name));
        for folder in [&shared, &own, &folder] {
            fs::create_dir(folder).unwrap();
        }
        let link = shared.join("link");
        symlink("../own", &link).unwrap();
        symlink("../shared/./link/folder", own.join("way")).unwrap();
        symlink("../../shared/link/file", folder.join("last")).unwrap();
        let ways = ["shared/link/file", "shared/link/folder/../new", "own/way/file", "own/folder/last"]
            .map(|way| dir.path().join(way));
        let all = || ways.iter().map(|way| follow_own(way).map_err(|error| error.to_string()));
        let followed: Vec<std::result::Result<PathBuf, String>> = all().collect();
        assert!(followed.iter().all(std::result::Result::is_ok), "{followed:?}");
        assert_eq!(followed[0].as_ref().unwrap(), &ways[0]);
        // Only root can give files away.
        if lchown(&link, Some(4321), None).is_ok() {
            let check = || {
                for message in all() {
                    let message = message.unwrap_err();
                    assert!(
                        message.ends_with("link is a link of another user (uid 4321): choose another name"),
                        "{message}"
                    );
                }
            };
            check();
            // It leads to a file that only this user can write.
            chown(&shared, Some(4321), None).unwrap();
            check();
            chown(&own, Some(4321), None).unwrap();
            assert_eq!(all().collect::<Vec<_>>(), followed);
        }
    }
}
