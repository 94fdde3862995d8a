//! Reading files whose paths come from elsewhere: a database, a setting or a session may name a device or a pipe, and to read
//! such a one never ends.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file, or what a link to one points at.
///
/// # Errors
/// When it can't be opened, or is a folder, a device, a pipe or a socket.
pub fn open(path: &Path) -> io::Result<File> {
    let regular = |metadata: fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    // To open a pipe is to wait for its writer, so this comes first; by then it may be another file.
    regular(fs::metadata(path)?)?;
    let file = File::open(path)?;
    regular(file.metadata()?)?;
    Ok(file)
}

/// The bytes of a regular file.
///
/// # Errors
/// When it can't be read, is no regular file, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One that grows while it is read has no end either.
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let larger = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, larger));
    }
    Ok(bytes)
}

/// The same as text.
///
/// # Errors
/// As with [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
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
}
