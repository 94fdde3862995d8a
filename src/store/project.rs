//! Which database is a project's: it is named after the folder that Pi works in.

use std::path::Path;

use super::Store;
use crate::error::{Error, Result};
use crate::ids::Hash;

/// A project's folder as its database goes by it: the real one, or as it is written where there is none any more.
#[must_use]
pub fn real_path(cwd: &Path) -> String {
    cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()).to_string_lossy().into_owned()
}

/// What a project's database is called, but for its ending.
fn name_of(cwd: &str) -> String {
    Hash::plain(cwd.as_bytes()).to_string()[..16].to_owned()
}

impl Store {
    /// Opens the store of the project in `cwd`, a [`real_path`], in the folder `dir`, or in memory without one.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn of_project(dir: Option<&Path>, cwd: &str) -> Result<Self> {
        Self::open(dir, &name_of(cwd), cwd)
    }

    /// Opens another in its place, beside it: this one turned out to be damaged.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn beside(&self, dir: &Path, cwd: &str, why: &Error) -> Result<Self> {
        self.open_beside(dir, &name_of(cwd), cwd, why)
    }
}
