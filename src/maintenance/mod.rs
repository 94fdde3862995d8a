//! Maintains a history: copies, exports and purges.
//!
//! Each file does the work and returns a value; `commands/` parses the arguments and words the answer.

pub mod backup;
pub mod export;
pub mod purge;

use std::ffi::OsStr;
use std::path::{Path, PathBuf, is_separator};

use lcm_model::error::{Error, Result};

/// The file of this name in `path` if that is a folder, else the file `path`.
///
/// # Errors
/// When there is no such folder: a slash at the end of `path` says that it is one itself.
fn in_folder(path: PathBuf, name: impl AsRef<OsStr>) -> Result<PathBuf> {
    if path.is_dir() {
        return Ok(path.join(name.as_ref()));
    }
    let is_folder = path.to_string_lossy().ends_with(is_separator);
    let folder = if is_folder { Some(path.as_path()) } else { path.parent() };
    match folder.filter(|folder| !folder.is_dir()).map(Path::display) {
        Some(folder) => {
            Err(Error::invalid(format!("there is no folder {folder}: create it, or choose another")))
        }
        None => Ok(path),
    }
}
