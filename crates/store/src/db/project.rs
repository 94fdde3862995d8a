//! Finds a project's database. It is named after Pi's working folder, or after the repository that contains
//! it.

use std::path::{Component, Path, PathBuf};

use super::{connection, schema};
use lcm_model::config::ProjectIdentity;
use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_model::ids::Hash;

/// No file by which git finds a repository is larger.
const GIT_FILE: u64 = 64 * 1024;

/// A project's folder as its database names it: the real path, or the path as written if the folder no longer
/// exists.
pub fn real_path(cwd: &Path) -> String {
    cwd.canonicalize().unwrap_or_else(|_| straight(cwd)).to_string_lossy().into_owned()
}

/// A path without `.`, `..` and a slash at its end.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(straight.pop()),
            part => straight.push(part),
        }
    }
    straight
}

/// The project that Pi works on in `cwd`: that folder, or the main folder of its repository, which all
/// worktrees share. A folder outside any repository, and one in a submodule, is a project of its own.
pub fn project_of(cwd: &Path, identity: ProjectIdentity) -> String {
    let repository = match identity {
        ProjectIdentity::Cwd => None,
        ProjectIdentity::Git => repository_of(cwd),
    };
    repository.map_or_else(|| real_path(cwd), |repository| repository.to_string_lossy().into_owned())
}

/// The folder that contains the repository's `.git`, or the repository itself if it is bare. Reads the files
/// that git documents, so git need not be installed.
fn repository_of(cwd: &Path) -> Option<PathBuf> {
    // A folder in a repository was part of it, such as a worktree that its agent has removed.
    let cwd = cwd.ancestors().find_map(|folder| folder.canonicalize().ok())?;
    let (folder, git) =
        cwd.ancestors().map(|folder| (folder, folder.join(".git"))).find(|(_, git)| git.exists())?;
    if git.is_dir() {
        return git.join("HEAD").exists().then(|| folder.to_owned());
    }
    // The repository would recognize a link to a worktree's own `.git` file.
    if git.is_symlink() {
        return None;
    }
    let own = target_of(&git)?;
    // Any folder could claim to be a worktree and so get the repository's history: the repository must
    // confirm it.
    let back = read(&own.join("gitdir"))?;
    if own.join(back.trim()).canonicalize().ok()? != git.canonicalize().ok()? {
        return None;
    }
    // A submodule has no `commondir`, and shares nothing.
    let common = read(&own.join("commondir"))?;
    let common = own.join(common.trim()).canonicalize().ok()?;
    // The confirmation must be in the repository's own files: whoever can write there owns its history
    // anyway.
    if own.parent()? != common.join("worktrees").canonicalize().ok()? || !is_repository(&common) {
        return None;
    }
    let parent = common.parent()?;
    if parent.components().any(|part| part.as_os_str() == ".git") {
        return None;
    }
    Some(if common.ends_with(".git") { parent.to_owned() } else { common })
}

/// Where a `.git` file leads.
fn target_of(git: &Path) -> Option<PathBuf> {
    git.parent()?.join(read(git)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

fn read(path: &Path) -> Option<String> {
    files::read_text(path, GIT_FILE).ok()
}

/// Whether this real path is a repository, rather than files in a working tree that imitate one. Those may come
/// from anyone, in a pull request or an archive; but git checks out nothing that is called `.git`.
fn is_repository(common: &Path) -> bool {
    let has_parts = ["HEAD", "objects", "refs"].iter().all(|part| common.join(part).exists());
    let is_tree = common.join(".git").exists();
    let around = common.ancestors().skip(1).map(|folder| folder.join(".git")).find(|git| git.exists());
    let is_of = |git: &Path| {
        git.canonicalize().is_ok_and(|git| git == common) || target_of(git).as_deref() == Some(common)
    };
    has_parts && !is_tree && (common.ends_with(".git") || around.is_none_or(|git| is_of(&git)))
}

/// The file name of a project's database, without its extension.
pub(crate) fn name_of(project: &str) -> String {
    Hash::plain(project.as_bytes()).to_string()[..16].to_owned()
}

/// The database in `dir` of the project `folder`, which may be gone.
pub fn database_of(dir: &Path, folder: &Path) -> Option<PathBuf> {
    let names = [real_path(folder), straight(folder).to_string_lossy().into_owned()];
    names.iter().map(|name| dir.join(format!("{}.db", name_of(name)))).find(|path| is_own(path))
}

/// Whether it is a file that no other user can have created or changed.
fn is_own(path: &Path) -> bool {
    path.is_file() && connection::check_own(path).is_ok()
}

/// Merges a database's log into it, if no other process has it open; returns whether that is so.
pub fn merge_log(path: &Path) -> Result<bool> {
    let failed = |error| Error::storing(format!("failed to open {}", path.display()), error);
    let mut connection = connection::open_existing(path).map_err(failed)?;
    connection.busy_handler(Some(connection::BRIEFLY)).map_err(failed)?;
    // Leave a file alone, and run nothing in it, if another program made or changed it.
    match schema::is_ours(&connection) {
        Ok(true) => {}
        Ok(false) => return Ok(true),
        Err(error) => return Ok(!connection::is_busy(&error)),
    }
    // Succeeds only if no other connection is open.
    let mode = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
    Ok(match mode {
        Ok(mode) => mode == "delete",
        Err(error) => !connection::is_busy(&error),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Creates files in git's layout with the given contents.
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
    fn only_folders_and_worktrees_of_a_repository_share_its_project() {
        let dir = laid_out(&[
            ("repo/.git/HEAD", "ref: refs/heads/main\n"),
            ("repo/.git/objects/x", ""),
            ("repo/.git/refs/x", ""),
            ("repo/src/deep/x", ""),
            ("repo/.git/worktrees/tree/commondir", "../..\n"),
            ("repo/.git/worktrees/tree/gitdir", "../../../../tree/.git\n"),
            ("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n"),
            ("tree/src/x", ""),
            // A submodule.
            ("repo/sub/.git", "gitdir: ../.git/modules/sub\n"),
            ("repo/.git/modules/sub/HEAD", ""),
            ("repo/.git/modules/sub/gitdir", "../../../sub/.git\n"),
            // A bare repository and its worktree.
            ("bare.git/HEAD", ""),
            ("bare.git/objects/x", ""),
            ("bare.git/refs/x", ""),
            ("bare.git/worktrees/one/commondir", "../..\n"),
            ("bare.git/worktrees/one/gitdir", "../../../one/.git\n"),
            ("one/.git", "gitdir: ../bare.git/worktrees/one\n"),
            // A folder that claims another's worktree.
            ("thief/.git", "gitdir: ../repo/.git/worktrees/tree\n"),
            // A folder that only imitates a worktree.
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
            ("none/gone", "none/gone"),
            ("repo/.claude/worktrees/gone", "repo"),
        ] {
            let [git, own] = [ProjectIdentity::Git, ProjectIdentity::Cwd].map(|by| project_of(&at(cwd), by));
            assert_eq!(git, at(project).to_string_lossy(), "{cwd}");
            assert_eq!(own, at(cwd).to_string_lossy(), "{cwd}");
        }
    }

    #[test]
    fn files_in_a_working_tree_are_no_repository() {
        let dir = laid_out(&[
            // A repository in the repository's tree, and in it what a pull request or an archive brings.
            ("victim/.git/HEAD", ""),
            ("victim/worktrees/x/gitdir", "../../../one/.git\n"),
            ("victim/worktrees/x/commondir", "../..\n"),
            ("one/.git", "gitdir: ../victim/worktrees/x\n"),
            ("victim/HEAD", ""),
            ("victim/objects/x", ""),
            ("victim/refs/x", ""),
            ("victim/deep/HEAD", ""),
            ("victim/deep/objects/x", ""),
            ("victim/deep/refs/x", ""),
            ("victim/deep/worktrees/x/gitdir", "../../../../two/.git\n"),
            ("victim/deep/worktrees/x/commondir", "../..\n"),
            ("two/.git", "gitdir: ../victim/deep/worktrees/x\n"),
            // The same in a folder without git.
            ("plain/worktrees/x/gitdir", "../../../three/.git\n"),
            ("plain/worktrees/x/commondir", "../..\n"),
            ("three/.git", "gitdir: ../plain/worktrees/x\n"),
            // A repository below another's working tree, and its worktree.
            ("victim/nested/.git/HEAD", ""),
            ("victim/nested/.git/objects/x", ""),
            ("victim/nested/.git/refs/x", ""),
            ("victim/nested/.git/worktrees/x/gitdir", "../../../../../four/.git\n"),
            ("victim/nested/.git/worktrees/x/commondir", "../..\n"),
            ("four/.git", "gitdir: ../victim/nested/.git/worktrees/x\n"),
            // A bare repository that a `.git` file next to it names, and its worktree.
            ("hidden/.git", "gitdir: ./.bare\n"),
            ("hidden/.bare/HEAD", ""),
            ("hidden/.bare/objects/x", ""),
            ("hidden/.bare/refs/x", ""),
            ("hidden/.bare/worktrees/x/gitdir", "../../../main/.git\n"),
            ("hidden/.bare/worktrees/x/commondir", "../..\n"),
            ("hidden/main/.git", "gitdir: ../.bare/worktrees/x\n"),
        ]);
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        for (cwd, project) in [
            ("victim", "victim"),
            ("one", "one"),
            ("two", "two"),
            ("three", "three"),
            ("four", "victim/nested"),
            ("hidden/main", "hidden/.bare"),
        ] {
            let found = project_of(&at(cwd), ProjectIdentity::Git);
            assert_eq!(found, at(project).to_string_lossy(), "{cwd}");
        }
    }
}
