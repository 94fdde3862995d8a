//! A file being written: it never overwrites another one unasked, and is removed if it is not finished.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use lcm_model::error::{Error, Result};
use lcm_model::files::folder::folder_of;
use lcm_model::files::temporary::Temporary;

/// The error for a path that can't be written.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => Error::invalid(format!(
            "{} already exists: choose another name, or add --force to overwrite it",
            path.display()
        )),
        _ => Error::invalid(format!("{} can't be written: {error}", path.display())),
    }
}

/// A file being written under a temporary name next to its target.
pub(super) struct Output {
    writer: BufWriter<File>,
    part: Temporary,
    target: PathBuf,
    /// Whether it may replace its target.
    force: bool,
    bytes: u64,
}

impl Output {
    pub fn create(target: &Path, force: bool) -> Result<Self> {
        // A link in /proc leads to a pipe, under a name that is no path.
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(Error::invalid(format!("{} is not a file: choose another name", target.display())));
        }
        // A link stays; its target is replaced.
        let (folder, target) = folder_of(target, force)?;
        // Say so now, not after a long export.
        if !force && target.symlink_metadata().is_ok() {
            return Err(unwritable(&target, &ErrorKind::AlreadyExists.into()));
        }
        let (part, file) = Temporary::within(folder).map_err(|error| unwritable(&target, &error))?;
        Ok(Self { writer: BufWriter::new(file), part, target, force, bytes: 0 })
    }

    pub fn push(&mut self, text: &str) -> Result<()> {
        self.bytes += text.len() as u64;
        self.writer.write_all(text.as_bytes()).map_err(|error| unwritable(&self.target, &error))
    }

    pub fn finish(self) -> Result<(PathBuf, u64)> {
        let Self { mut writer, part, target, force, bytes } = self;
        let done = writer.flush().and_then(|()| writer.get_ref().sync_all());
        drop(writer);
        let name = target.file_name().unwrap_or_default();
        let named = done.and_then(|()| part.become_file(name, force));
        named.map_err(|error| unwritable(&target, &error))?;
        Ok((target, bytes))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_is_refused_by_the_name_it_was_given() {
        use std::os::fd::AsRawFd as _;

        let (_reader, writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", writer.as_raw_fd());
        for force in [false, true] {
            let refusal = Output::create(Path::new(&path), force).err().unwrap().to_string();
            assert_eq!(refusal, format!("{path} is not a file: choose another name"));
        }
    }

    #[test]
    fn what_a_link_leads_to_is_replaced_unless_the_link_is_another_users() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        let write = |text| {
            let mut output = Output::create(&link, true)?;
            output.push(text)?;
            output.finish()
        };
        // Only root can give files away.
        if lchown(&link, Some(4321), None).is_ok() {
            let refusal = write("new").unwrap_err().to_string();
            assert!(
                refusal.ends_with("is a link of another user (uid 4321): choose another name"),
                "{refusal}"
            );
            assert_eq!(fs::read_to_string(&file).unwrap(), "old");
            lchown(&link, Some(0), None).unwrap();
        }
        write("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
        assert_eq!(dir.path().read_dir().unwrap().count(), 2);
    }
    #[test]
    fn a_file_gets_into_the_folder_that_was_opened_and_a_part_is_removed_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let [folder, moved, other] = ["folder", "moved", "other"].map(|name| dir.path().join(name));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "old").unwrap();
        for (force, finishes) in [(true, true), (true, false), (false, true), (false, false)] {
            fs::create_dir(&folder).unwrap();
            let mut output = Output::create(&folder.join("file"), force).unwrap();
            output.push("new").unwrap();
            fs::rename(&folder, &moved).unwrap();
            symlink(&other, &folder).unwrap();
            if finishes {
                output.finish().unwrap();
                assert_eq!(fs::read_to_string(moved.join("file")).unwrap(), "new");
            } else {
                drop(output);
            }
            assert_eq!(moved.read_dir().unwrap().count(), usize::from(finishes));
            assert_eq!(other.read_dir().unwrap().count(), 1);
            assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "old");
            fs::remove_file(&folder).unwrap();
            fs::remove_dir_all(&moved).unwrap();
        }
    }

    #[test]
    fn another_users_link_to_a_folder_is_refused_with_and_without_force() {
        let dir = tempfile::tempdir().unwrap();
        let [folder, link] = ["folder", "link"].map(|name| dir.path().join(name));
        fs::create_dir(&folder).unwrap();
        symlink("folder", &link).unwrap();
        let create = |force| Output::create(&link.join("file"), force).map(drop);
        for force in [false, true] {
            create(force).unwrap();
        }
        // Only root can give files away.
        if lchown(&link, Some(4321), None).is_ok() {
            let make = || super::super::make_folder(&link.join("new"), "--all");
            for refused in [create(false), create(true), make()] {
                let refusal = refused.unwrap_err().to_string();
                assert!(
                    refusal.ends_with("link is a link of another user (uid 4321): choose another name"),
                    "{refusal}"
                );
            }
        }
        assert_eq!(folder.read_dir().unwrap().count(), 0);
    }
}
