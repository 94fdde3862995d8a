//! Files whose paths come from outside. A path from a database, a setting or a session may name a device or a
//! pipe, and reading that may never end. In a folder that others can write to, another user may have planted
//! the file.

pub mod folder;
pub mod temporary;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::error::Result;

/// The most stretches between holes that are counted; a database has no holes.
#[cfg(unix)]
const EXTENTS: usize = 10_000;

/// Opens a regular file, or the one a link points at.
///
/// # Errors
/// When it can't be opened, or is a folder, a device, a pipe or a socket.
pub fn open(path: &Path) -> io::Result<File> {
    let regular = |metadata: fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    // Opening a device can have effects, so check first; check again because the file may have been replaced.
    regular(fs::metadata(path)?)?;
    let file = open_at_once(path)?;
    regular(file.metadata()?)?;
    Ok(file)
}

/// Does not wait for a pipe's writer, or for those files in `/proc` that claim to be regular.
#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Returns the bytes of a regular file.
///
/// # Errors
/// When it can't be read, is not a regular file, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A file that grows while it is read might never end.
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let larger = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, larger));
    }
    Ok(bytes)
}

/// Like [`read`], as text.
///
/// # Errors
/// As with [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Whether both paths lead to one file.
pub fn are_one(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    let id = |path: &Path| {
        use std::os::unix::fs::MetadataExt as _;
        path.metadata().ok().map(|file| (file.dev(), file.ino()))
    };
    #[cfg(not(unix))]
    let id = |path: &Path| path.canonicalize().ok();
    id(one).is_some_and(|one| id(other) == Some(one))
}

/// The bytes that a file has on its disk, for all one can tell: a sparse file claims any length. Not for a database that
/// this process has open, as closing a file ends all locks on it.
pub fn bytes_of(path: &Path) -> u64 {
    let Ok(file) = open(path) else { return 0 };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    #[cfg(unix)]
    {
        use rustix::fs::{SeekFrom, seek};
        use rustix::io::Errno;

        let (mut bytes, mut at) = (0, 0);
        for _ in 0..EXTENTS {
            at = match seek(&file, SeekFrom::Data(at)) {
                Ok(start) => {
                    let end = seek(&file, SeekFrom::Hole(start)).unwrap_or(length);
                    bytes += end.saturating_sub(start);
                    end
                }
                // Only a hole follows.
                Err(Errno::NXIO) => break,
                Err(_) => return length,
            };
        }
        bytes
    }
    #[cfg(not(unix))]
    length
}

/// Checks that whatever exists at `path` is the user's alone: it, and the target of a link, belong to this
/// user or to root, and no other user may write to it. Root may work in another user's folders. Systems
/// without such owners are not checked.
///
/// # Errors
/// When it is not; the message says how to fix it.
pub fn check_own(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        use crate::error::Error;

        let own = rustix::process::geteuid().as_raw();
        let (link, real) = (fs::symlink_metadata(path).ok(), fs::metadata(path).ok());
        // In a container, root works in another user's folders.
        let host = path.parent().and_then(|parent| fs::metadata(parent).ok()).filter(|_| own == 0);
        let host = host.map(|parent| parent.uid());
        let mut owners = link.iter().chain(&real).map(fs::Metadata::uid);
        if let Some(other) = owners.find(|uid| *uid != own && *uid != 0 && Some(*uid) != host) {
            return Err(Error::invalid(format!(
                "{} belongs to another user (uid {other}): set dbDir to a folder of your own",
                path.display()
            )));
        }
        if let Some(mode) = real.map(|real| real.mode()).filter(|mode| mode & 0o022 != 0) {
            return Err(Error::invalid(format!(
                "{} may be written by other users (mode {:o}): run chmod go-w on it, or set dbDir to another folder",
                path.display(),
                mode & 0o777
            )));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Creates a folder and its missing parents, accessible to their owner only.
///
/// # Errors
/// When it can't be created. An existing folder is left as it is.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a new file that only this user can read.
///
/// # Errors
/// When it can't be created, or there is one.
pub fn private_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| dir.path().join(name));
        fs::write(&file, "12345").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let read = |path: &Path, most| read_text(path, most).map_err(|error| error.to_string());
        assert_eq!(read(&file, 5).unwrap(), "12345");
        assert_eq!(read(&link, 5).unwrap(), "12345");
        assert_eq!(read(&file, 4).unwrap_err(), "it is larger than 4 bytes");
        for path in [&pipe, dir.path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            assert_eq!(read(path, 5).unwrap_err(), "it is not a regular file", "{}", path.display());
        }
    }

    #[test]
    fn files_that_others_own_or_can_write_are_refused() {
        use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let refused = |path: &Path| check_own(path).unwrap_err().to_string();
        for path in [dir.path(), &file, &link, &dir.path().join("nothing")] {
            check_own(path).unwrap();
        }
        for open in [0o660, 0o602, 0o666] {
            mode(open);
            let told = format!(
                "may be written by other users (mode {open:o}): run chmod go-w on it, or set dbDir to another folder"
            );
            assert!([&file, &link].iter().all(|path| refused(path).contains(&told)), "{}", refused(&file));
        }
        mode(0o644);
        // Only root can give files away.
        if lchown(&link, Some(4321), None).is_ok() {
            assert!(
                refused(&link).contains("link belongs to another user (uid 4321): set dbDir to a folder")
            );
            lchown(&link, Some(0), None).unwrap();
            lchown(&file, Some(4321), None).unwrap();
            assert!(
                refused(&link).contains("link belongs to another user (uid 4321): set dbDir to a folder")
            );
            lchown(dir.path(), Some(4321), None).unwrap();
            check_own(&link).unwrap();
        }
    }
}
