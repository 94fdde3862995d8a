//! Files whose paths come from outside. A path from a database, a setting or a session may name a device or a
//! pipe, and reading that may never end. In a folder that others can write to, another user may have planted
//! the file.

pub mod temporary;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The most links to follow from one to the next, as on Linux.
const LINKS: usize = 40;

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

/// The path that a link leads to, or `path` if it is none. Another user's link, also one to a folder on the way,
/// is not followed: its owner could have a file replaced that only this user can write. Root may work in another
/// user's folders, and there follows that user's links to that user's files. Systems without such owners are not
/// checked.
///
/// # Errors
/// When a link can't be followed; the message says why.
pub fn follow_own(path: &Path) -> Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS {
        if cfg!(unix) {
            check_way(&at)?;
        }
        let Some(link) = link_at(&at) else { return Ok(at) };
        check_link(&at, &link)?;
        at = at.parent().unwrap_or(Path::new("")).join(target_of(&at)?);
    }
    Err(too_many_links(path))
}

/// Checks the links to folders on the way to `path`.
fn check_way(path: &Path) -> Result<()> {
    let parts = |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest: Vec<OsString> = parts(absolute.parent().unwrap_or(Path::new("")));
    let mut way = PathBuf::new();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        let next = way.join(&part);
        let Some(link) = link_at(&next) else {
            match part == ".." {
                true => drop(way.pop()),
                false => way = next,
            }
            continue;
        };
        check_link(&next, &link)?;
        links += 1;
        if links > LINKS {
            return Err(too_many_links(path));
        }
        rest.extend(parts(&target_of(&next)?));
    }
    Ok(())
}

fn link_at(path: &Path) -> Option<fs::Metadata> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)
}

fn target_of(link: &Path) -> Result<PathBuf> {
    fs::read_link(link)
        .map_err(|error| Error::invalid(format!("{} can't be followed: {error}", link.display())))
}

fn too_many_links(path: &Path) -> Error {
    Error::invalid(format!("{} leads through too many links", path.display()))
}

/// Refuses another user's link.
fn check_link(path: &Path, link: &fs::Metadata) -> Result<()> {
    let Some(other) = other_owner(link) else { return Ok(()) };
    let is_theirs = |path: &Path| fs::metadata(path).is_ok_and(|file| other_owner(&file) == Some(other));
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // In a container, root works in another user's folders.
    if is_root() && absolute.parent().is_some_and(is_theirs) && is_theirs(path) {
        return Ok(());
    }
    let path = path.display();
    Err(Error::invalid(format!("{path} is a link of another user (uid {other}): choose another name")))
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// The owner of a file, if that is neither this user nor root.
#[cfg(unix)]
fn other_owner(file: &fs::Metadata) -> Option<u32> {
    let (owner, own) = (std::os::unix::fs::MetadataExt::uid(file), rustix::process::geteuid().as_raw());
    (owner != own && owner != 0).then_some(owner)
}

#[cfg(not(unix))]
fn other_owner(_: &fs::Metadata) -> Option<u32> {
    None
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
            let told =
                format!("{} is a link of another user (uid 4321): choose another name", second.display());
            let refused =
                || [&second, &first].iter().all(|path| follow_own(path).unwrap_err().to_string() == told);
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
        let told = follow_own(&first).unwrap_err().to_string();
        assert!(told.ends_with("first leads through too many links"), "{told}");
        for round in [&first.join("file"), &dir.path().join("first/../file")] {
            let told = follow_own(round).unwrap_err().to_string();
            assert!(told.ends_with(" leads through too many links"), "{told}");
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
                for told in all() {
                    let told = told.unwrap_err();
                    assert!(
                        told.ends_with("link is a link of another user (uid 4321): choose another name"),
                        "{told}"
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
