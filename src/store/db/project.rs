//! Which database is a project's: it is named after the folder that Pi works in, or after the repository that is in.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::connection;
use super::migrations;
use crate::config::ProjectIdentity;
use crate::error::{Error, Result};
use crate::files;
use crate::ids::Hash;
use crate::store::columns::{reading, writing};
use crate::store::upkeep::backup::open_unchanged;
use crate::store::{Database, DatabaseWriter, Store};

/// No file by which git finds a repository has more bytes.
const GIT_FILE: u64 = 64 * 1024;
/// Before a folder that is part of this history, in the keys of `_metadata`.
const MEMBER: &str = "member:";
/// Before a folder whose own history the user was told of.
const TOLD: &str = "told_of:";

/// A database in the folder of databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Where it lies.
    pub path: PathBuf,
    /// The project it belongs to.
    pub project: String,
}

/// A project's folder as its database goes by it: the real one, or as it is written where there is none any more.
#[must_use]
pub fn real_path(cwd: &Path) -> String {
    cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()).to_string_lossy().into_owned()
}

/// The project that Pi works on in `cwd`: that folder, or the main folder of the repository it is in, which all its worktrees
/// share. What is in no repository, or in a submodule, is a project of its own.
#[must_use]
pub fn project_of(cwd: &Path, identity: ProjectIdentity) -> String {
    let repository = match identity {
        ProjectIdentity::Cwd => None,
        ProjectIdentity::Git => repository_of(cwd),
    };
    repository.map_or_else(|| real_path(cwd), |repository| repository.to_string_lossy().into_owned())
}

/// The folder that has the repository's `.git`; of one that has no files of its own, the repository itself. Read from git's
/// files, as git describes them: git need not be there.
fn repository_of(cwd: &Path) -> Option<PathBuf> {
    let cwd = cwd.canonicalize().ok()?;
    let (folder, git) =
        cwd.ancestors().map(|folder| (folder, folder.join(".git"))).find(|(_, git)| git.exists())?;
    if git.is_dir() {
        return git.join("HEAD").exists().then(|| folder.to_owned());
    }
    // A link to a worktree's own file would be known to its repository.
    if git.is_symlink() {
        return None;
    }
    let read = |path: &Path| files::read_text(path, GIT_FILE).ok();
    let line = read(&git)?;
    let own = folder.join(line.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    // Any folder could claim to be another repository's worktree, and would have its history: that one must know of it.
    let back = read(&own.join("gitdir"))?;
    if own.join(back.trim()).canonicalize().ok()? != git.canonicalize().ok()? {
        return None;
    }
    // A submodule shares nothing.
    let common = read(&own.join("commondir"))?;
    let common = own.join(common.trim()).canonicalize().ok()?;
    // What it knows of lies among its own files: whoever can write there owns its history anyway.
    if own.parent()? != common.join("worktrees").canonicalize().ok()? {
        return None;
    }
    let parent = common.parent()?;
    if parent.components().any(|part| part.as_os_str() == ".git") {
        return None;
    }
    Some(if common.ends_with(".git") { parent.to_owned() } else { common })
}

/// What a project's database is called, but for its ending.
pub(in crate::store) fn name_of(project: &str) -> String {
    Hash::plain(project.as_bytes()).to_string()[..16].to_owned()
}

/// Every history in the folder `dir` that can be read, by path.
#[must_use]
pub fn histories(dir: &Path) -> Vec<History> {
    let files = dir.read_dir().into_iter().flatten().flatten().map(|file| file.path());
    let mut found: Vec<History> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "db") && is_own(path))
        .filter_map(|path| {
            let project = project_in(&open_unchanged(&path).ok()?).ok()??;
            Some(History { path, project })
        })
        .collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Is it a file that no other user can have put there or changed?
fn is_own(path: &Path) -> bool {
    path.is_file() && connection::check_own(path).is_ok()
}

/// The project that a database of ours belongs to.
pub(in crate::store) fn project_in(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mark: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if mark != connection::APPLICATION_ID {
        return Ok(None);
    }
    connection.query_row("SELECT value FROM _metadata WHERE key = 'cwd'", [], |row| row.get(0)).optional()
}

/// Has anybody else this database open? If not, it is brought to today's format, and its log put away into it.
///
/// # Errors
/// When it can't be opened.
pub fn is_open_elsewhere(path: &Path) -> Result<bool> {
    let failed = |error| Error::storing(format!("failed to open {}", path.display()), error);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(connection::BRIEFLY).map_err(failed)?;
    let is_busy =
        |error: &rusqlite::Error| error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
    // What somebody else has made or put something into is not changed, and must not run.
    match migrations::is_ours(&connection) {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        Err(error) => return Ok(is_busy(&error)),
    }
    // Nobody else may be there for that.
    let mode = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
    Ok(match mode {
        Ok(mode) if mode == "delete" => {
            // Of one that can't be, what can be read is taken all the same.
            let _ = migrations::run(&mut connection);
            false
        }
        Ok(_) => true,
        Err(error) => is_busy(&error),
    })
}

/// The history of another project that was this one before its setting `projectIdentity` was changed, if there is one: that of
/// the folder alone, or of the repository.
#[must_use]
pub fn history_before(dir: &Path, cwd: &Path, identity: ProjectIdentity) -> Option<History> {
    let (own, repository) = (real_path(cwd), repository_of(cwd)?.to_string_lossy().into_owned());
    if own == repository {
        return None;
    }
    let project = match identity {
        ProjectIdentity::Git => own.clone(),
        ProjectIdentity::Cwd => repository,
    };
    let path = dir.join(format!("{}.db", name_of(&project)));
    let connection = is_own(&path).then(|| open_unchanged(&path).ok()).flatten()?;
    let was_used = match identity {
        ProjectIdentity::Git => "SELECT EXISTS (SELECT 1 FROM conversations) AND ?1 <> ''",
        // Others may work in the repository's main folder without sharing it.
        ProjectIdentity::Cwd => "SELECT EXISTS (SELECT 1 FROM _metadata WHERE key = ?1)",
    };
    let member = format!("{MEMBER}{own}");
    let was_used = connection.query_row(was_used, [member], |row| row.get::<_, bool>(0));
    was_used.unwrap_or_default().then_some(History { path, project })
}

impl Database<'_> {
    /// Is this folder noted as part of this history, and was the user told of that other history?
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn knows_folder(&self, folder: &str, other: Option<&str>) -> Result<(bool, bool)> {
        let mut query = (self.connection)
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM _metadata WHERE key = ?1)")
            .map_err(reading)?;
        let mut has = |prefix: &str, name: &str| {
            query.query_row([format!("{prefix}{name}")], |row| row.get(0)).map_err(reading)
        };
        Ok((has(MEMBER, folder)?, other.map_or(Ok(false), |other| has(TOLD, other))?))
    }
}

impl DatabaseWriter<'_> {
    /// Notes a folder as part of this history, and that the user was told of another.
    ///
    /// # Errors
    /// When the database can't be written.
    pub fn note_folder(&self, folder: Option<&str>, other: Option<&str>, now: i64) -> Result<()> {
        for (prefix, name) in [(MEMBER, folder), (TOLD, other)] {
            if let Some(name) = name {
                (self.connection)
                    .prepare_cached("INSERT OR IGNORE INTO _metadata (key, value) VALUES (?1 || ?2, ?3)")
                    .and_then(|mut insert| insert.execute(params![prefix, name, now.to_string()]))
                    .map_err(writing)?;
            }
        }
        Ok(())
    }
}

impl Store {
    /// Opens the store of a project, as [`project_of`] names it, in the folder `dir`, or in memory without one.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn of_project(dir: Option<&Path>, project: &str) -> Result<Self> {
        Self::open(dir, &name_of(project), project)
    }

    /// The same for a session that is open in it. One that can't be written is read until it can be, and each write tries anew.
    ///
    /// # Errors
    /// As [`Store::open`], where it can't be read either.
    pub fn of_session(dir: Option<&Path>, project: &str) -> Result<Self> {
        Self::open_or_wait(dir, &name_of(project), project)
    }

    /// Opens another in its place, beside it: this one turned out to be damaged.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn beside(&self, dir: &Path, project: &str, why: &Error) -> Result<Self> {
        self.open_beside(dir, &name_of(project), project, why)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Files as git lays them out, with what stands in them.
    fn laid_out(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn worktrees_and_folders_of_a_repository_are_one_project_and_nothing_else_is() {
        let dir = laid_out(&[
            ("repo/.git/HEAD", "ref: refs/heads/main\n"),
            ("repo/src/deep/x", ""),
            ("repo/.git/worktrees/tree/commondir", "../..\n"),
            ("repo/.git/worktrees/tree/gitdir", "../../../../tree/.git\n"),
            ("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n"),
            ("tree/src/x", ""),
            // A submodule.
            ("repo/sub/.git", "gitdir: ../.git/modules/sub\n"),
            ("repo/.git/modules/sub/HEAD", ""),
            ("repo/.git/modules/sub/gitdir", "../../../sub/.git\n"),
            // A repository without files of its own, and its worktree.
            ("bare.git/HEAD", ""),
            ("bare.git/worktrees/one/commondir", "../..\n"),
            ("bare.git/worktrees/one/gitdir", "../../../one/.git\n"),
            ("one/.git", "gitdir: ../bare.git/worktrees/one\n"),
            // One that claims another's worktree.
            ("thief/.git", "gitdir: ../repo/.git/worktrees/tree\n"),
            // One that brings along what only looks like a worktree of another.
            ("forger/.git", "gitdir: meta\n"),
            ("forger/meta/gitdir", "../.git\n"),
            ("forger/meta/commondir", "../../repo/.git\n"),
            ("forger/worktrees/deep/.git", "gitdir: ../two\n"),
            ("forger/worktrees/two/gitdir", "../deep/.git\n"),
            ("forger/worktrees/two/commondir", "../../../repo/.git\n"),
            ("none/x", ""),
            ("odd/.git", "whatever\n"),
            ("empty/.git/x", ""),
        ]);
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        for (cwd, project) in [
            ("repo", "repo"),
            ("repo/src/deep", "repo"),
            ("tree", "repo"),
            ("tree/src", "repo"),
            ("repo/sub", "repo/sub"),
            ("bare.git", "bare.git"),
            ("one", "bare.git"),
            ("thief", "thief"),
            ("forger", "forger"),
            ("forger/worktrees/deep", "forger/worktrees/deep"),
            ("none", "none"),
            ("odd", "odd"),
            ("empty", "empty"),
            ("gone", "gone"),
        ] {
            let [git, own] = [ProjectIdentity::Git, ProjectIdentity::Cwd].map(|by| project_of(&at(cwd), by));
            assert_eq!(git, at(project).to_string_lossy(), "{cwd}");
            assert_eq!(own, at(cwd).to_string_lossy(), "{cwd}");
        }
    }
}
