//! Which machine this is: a random id in the folder of databases, and a label for people.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use super::encryption;
use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_model::files::temporary::Temporary;
use lcm_model::text::one_line;

/// The file with the id.
const FILE: &str = "machine-id";
/// No such file is larger.
const LARGEST: u64 = 16 * 1024;
/// How often a file that is still empty is read again, and the pauses between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// Characters of a label.
const LABEL: usize = 60;

/// This machine.
#[derive(Clone, Debug)]
pub(crate) struct ThisMachine {
    pub id: String,
    pub label: String,
    /// Who can read what it writes, itself included; none if that is not encrypted.
    pub recipients: Vec<String>,
    /// Whether its user wants that where others encrypt.
    pub is_plain: bool,
    /// Where its key is.
    pub db_dir: PathBuf,
}

impl ThisMachine {
    /// The machine with this folder of databases; what people call it is `name`, or `user@host`. It encrypts to
    /// `recipients`.
    ///
    /// # Errors
    /// When one of these is no key, or a file can't be read or written.
    pub fn of(db_dir: &Path, name: &str, recipients: &[String]) -> Result<Self> {
        let new = || Uuid::new_v4().simple().to_string();
        let is_id = |id: &str| Uuid::try_parse(id).is_ok_and(|uuid| *id == uuid.simple().to_string());
        Ok(Self {
            id: kept(db_dir, FILE, is_id, new)?,
            label: label(name),
            recipients: encryption::recipients(db_dir, recipients)?,
            is_plain: recipients == [encryption::NONE],
            db_dir: db_dir.to_owned(),
        })
    }
}

/// The line of a file in the folder of databases for which `is_it` is true; made by `new` if there is no such file.
///
/// # Errors
/// When the file can't be read or written, or is not what is expected.
pub(crate) fn kept(
    db_dir: &Path,
    file: &str,
    is_it: impl Fn(&str) -> bool,
    new: impl FnOnce() -> String,
) -> Result<String> {
    let path = db_dir.join(file);
    files::check_own(&path)?;
    let failed = |error| Error::storing(format!("{} can't be used", path.display()), error);
    // A file without a line is being made by another process.
    let read = || match files::read_text(&path, LARGEST) {
        Ok(text) => match text.lines().map(str::trim).find(|line| is_it(line)) {
            None if !text.trim().is_empty() => {
                Err(failed(io::Error::other("it is damaged: put a copy back, or remove it for a new one")))
            }
            line => Ok(line.map(ToOwned::to_owned)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    };
    if let Some(line) = read()? {
        return Ok(line);
    }
    let (part, mut written) = Temporary::beside(&path).map_err(failed)?;
    written.write_all(new().as_bytes()).and_then(|()| written.sync_all()).map_err(failed)?;
    for _ in 0..TRIES {
        if !path.exists() {
            break;
        }
        if let Some(line) = read()? {
            return Ok(line);
        }
        std::thread::sleep(PAUSE);
    }
    let replaces = path.exists();
    let _ = part.become_file(OsStr::new(file), replaces);
    read()?.ok_or_else(|| Error::store(format!("{} can't be written", path.display())))
}

/// What people call this machine: `label`, or `user@host`.
fn label(label: &str) -> String {
    if !label.trim().is_empty() {
        return one_line(label, LABEL);
    }
    let named = |names: [&str; 2]| names.into_iter().find_map(|name| std::env::var(name).ok());
    let user = named(["USER", "USERNAME"]).unwrap_or_else(|| "somebody".into());
    one_line(&format!("{user}@{}", host().unwrap_or_else(|| "unknown".into())), LABEL)
}

#[cfg(unix)]
fn host() -> Option<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Some(host.split('.').next().unwrap_or_default().to_owned()).filter(|host| !host.is_empty())
}

#[cfg(not(unix))]
fn host() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
