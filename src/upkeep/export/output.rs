//! A file being written: it never overwrites another one unasked, and is removed if it is not finished.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

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

/// A file being written, removed if it is not finished. A replacement is written next to the file it
/// replaces.
pub(super) struct Output {
    writer: BufWriter<File>,
    /// The path being written to.
    at: PathBuf,
    target: PathBuf,
    bytes: u64,
    is_done: bool,
}

impl Output {
    pub fn create(target: &Path, force: bool) -> Result<Self> {
        // A link stays; its target is replaced.
        let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(Error::invalid(format!("{} is not a file: choose another name", target.display())));
        }
        let at = match force {
            true => target.with_added_extension(format!("{}.part", std::process::id())),
            false => target.to_owned(),
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&at).map_err(|error| unwritable(&at, &error))?;
        let writer = BufWriter::new(file);
        Ok(Self { writer, at, target: target.to_owned(), bytes: 0, is_done: false })
    }

    pub fn push(&mut self, text: &str) -> Result<()> {
        self.bytes += text.len() as u64;
        self.writer.write_all(text.as_bytes()).map_err(|error| unwritable(&self.at, &error))
    }

    pub fn finish(mut self) -> Result<(PathBuf, u64)> {
        let done = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        let moved = done
            .and_then(|()| if self.at == self.target { Ok(()) } else { fs::rename(&self.at, &self.target) });
        moved.map_err(|error| unwritable(&self.target, &error))?;
        self.is_done = true;
        Ok((self.target.clone(), self.bytes))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_done {
            // Nothing more can be done.
            let _ = fs::remove_file(&self.at);
        }
    }
}
