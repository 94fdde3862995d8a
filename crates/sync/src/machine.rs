//! Which machine this is: a random id in the folder of databases, and a label for people.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_model::files::temporary::Temporary;
use lcm_model::text::one_line;

/// The file with the id.
const FILE: &str = "machine-id";
/// How often a file that is no id yet is read again, and the pauses between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// Characters of a label.
const LABEL: usize = 60;

/// This machine.
#[derive(Clone, Debug)]
pub(crate) struct ThisMachine {
    pub id: String,
    pub label: String,
}

impl ThisMachine {
    /// The machine with this folder of databases; what people call it is `name`, or `user@host`.
    ///
    /// # Errors
    /// When the file with its id can't be read or written.
    pub fn of(db_dir: &Path, name: &str) -> Result<Self> {
        Ok(Self { id: id(db_dir)?, label: label(name) })
    }
}

/// The id of this machine, 32 hexadecimal digits; made at the first call.
///
/// # Errors
/// When the file can't be read or written.
fn id(db_dir: &Path) -> Result<String> {
    let path = db_dir.join(FILE);
    let failed = |error| Error::storing(format!("{} can't be used", path.display()), error);
    let read = || files::read_text(&path, 1024).ok().map(|id| id.trim().to_owned());
    let is_id = |id: &String| Uuid::try_parse(id).is_ok_and(|uuid| *id == uuid.simple().to_string());
    if let Some(id) = read().filter(is_id) {
        return Ok(id);
    }
    let id = Uuid::new_v4().simple().to_string();
    let (part, mut file) = Temporary::beside(&path).map_err(failed)?;
    file.write_all(id.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    // Another process may be making one: that is a moment's work.
    for _ in 0..TRIES {
        match read() {
            Some(other) if is_id(&other) => return Ok(other),
            Some(_) => std::thread::sleep(PAUSE),
            None => break,
        }
    }
    let replaces = path.exists();
    let _ = part.become_file(OsStr::new(FILE), replaces);
    read().filter(is_id).ok_or_else(|| Error::store(format!("{} can't be written", path.display())))
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
