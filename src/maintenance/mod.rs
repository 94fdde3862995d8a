//! Maintains a history: copies, exports and purges.
//!
//! Each file does the work and returns a value; `commands/` parses the arguments and words the answer.

pub mod backup;
pub mod export;
pub mod purge;

use std::ffi::OsStr;
use std::path::{PathBuf, is_separator};

use lcm_model::error::{Error, Result};

/// The file of this name in `path` if that is a folder, else the file `path`.
///
/// # Errors
/// When a slash at its end says that it is a folder, and there is none.
fn in_folder(path: PathBuf, name: impl AsRef<OsStr>) -> Result<PathBuf> {
    match path.is_dir() {
        true => Ok(path.join(name.as_ref())),
        false if path.to_string_lossy().ends_with(is_separator) => Err(Error::invalid(format!(
            "there is no folder {}: create it, or choose another",
            path.display()
        ))),
        false => Ok(path),
    }
}
