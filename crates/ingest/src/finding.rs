//! What to import: finds the files that an import reads, and their projects.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::file::{SessionFile, Unreadable};
use super::foreign::Agent;
use super::old_sessions::{Rebuilding, SharedOldStore};
use lcm_model::config::{ProjectIdentity, session_folder};
use lcm_model::error::{Code, Error, Result};
use lcm_store::{Store, database_of, project_of, real_path};

/// The project that starts an import, and its open session.
#[derive(Clone)]
pub struct Home {
    /// The project's store.
    pub store: Store,
    /// The folder that Pi works in, a [`real_path`](lcm_store::real_path).
    pub cwd: String,
    /// What counts as one project.
    pub identity: ProjectIdentity,
    /// The folder of other projects' databases.
    pub db_dir: PathBuf,
    /// Pi's id of the open session, which is not imported: it is stored as it grows.
    pub session_id: String,
}

/// The folders where Pi keeps its sessions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Folders {
    /// The folder of this project's sessions; some users have one for all projects. Pi names the folder of the open
    /// session's file, which can be anywhere.
    pub session_dir: PathBuf,
    /// The folder that holds the session folders of all projects.
    pub all_sessions: PathBuf,
    /// The home folder where other agents keep their sessions; by default the user's.
    #[serde(default)]
    pub home: Option<PathBuf>,
}

impl Folders {
    /// Where the sessions are that Pi ran in `cwd`: `session_dir`, and Pi's own folder for them.
    #[must_use]
    pub fn of_project(&self, cwd: &str) -> Vec<PathBuf> {
        let own = self.all_sessions.join(session_folder(Path::new(cwd)));
        distinct(vec![self.session_dir.clone(), own])
    }
}

/// What to import.
#[derive(Clone)]
pub enum Source {
    /// A session file, a folder of session files, an old database, or the folder of a project, for its database and its
    /// sessions: imported into this project's store, also from another project.
    Path(PathBuf),
    /// A part of a database of this project that is rebuilt.
    Rebuild(SharedOldStore, Rebuilding),
    /// The sessions of this project.
    Project,
    /// The sessions of every project, each into its project's store.
    Everything,
    /// Other agents' sessions, from their own folders or from a path.
    Agents {
        /// The agents.
        agents: Vec<&'static Agent>,
        /// A log, or a folder of logs.
        path: Option<PathBuf>,
        /// Whether to import the sessions of every project.
        everything: bool,
        /// Only logs that were written or put there since then.
        since: Option<SystemTime>,
    },
}

/// A session file and its project.
#[derive(Clone)]
pub(super) struct Found {
    pub path: PathBuf,
    /// The project, if it is not this one.
    pub cwd: Option<String>,
    /// The agent, if it is not Pi.
    pub agent: Option<&'static Agent>,
    /// The sessions of the file to import, if not all.
    pub sessions: Option<HashSet<String>>,
    /// A database, and how it is rebuilt if it is.
    pub database: Option<(SharedOldStore, Option<Rebuilding>)>,
}

impl Found {
    fn new(path: PathBuf, cwd: Option<String>, agent: Option<&'static Agent>) -> Self {
        Self { path, cwd, agent, sessions: None, database: None }
    }
}

/// The files to import, grouped by project and oldest first, and the files that are not sessions.
pub(super) fn find(
    home: &Home,
    folders: &Folders,
    source: &Source,
    cancel: &CancellationToken,
) -> Result<(Vec<Found>, Vec<Unreadable>)> {
    let paths = match source {
        Source::Agents { agents, path, everything, since } => {
            let (mut found, mut failed) = (Vec::new(), Vec::new());
            for agent in agents {
                let (logs, unreadable) =
                    find_logs(home, folders, agent, path.as_deref(), *everything, *since, cancel)?;
                found.extend(logs);
                failed.extend(unreadable);
            }
            found.sort_by(|one, other| one.cwd.cmp(&other.cwd));
            return Ok((found, failed));
        }
        Source::Path(path) => {
            let path = Path::new(&home.cwd).join(path);
            let of_project = || of_folder(home, folders, &path);
            let paths = match (path.exists(), path.is_dir()) {
                (true, false) => vec![path],
                (exists, _) => match of_project() {
                    found if !found.is_empty() => found,
                    _ if exists => in_folder(&path, &home.cwd)?,
                    _ => return Err(Error::invalid(format!("there is no {}", path.display()))),
                },
            };
            return Ok((paths.into_iter().map(|path| Found::new(path, None, None)).collect(), Vec::new()));
        }
        Source::Rebuild(old, rebuilding) => {
            let database = Some((Arc::clone(old), Some(rebuilding.clone())));
            let found = Found { database, ..Found::new(PathBuf::new(), None, None) };
            return Ok((vec![found], Vec::new()));
        }
        Source::Project => of_project(home, folders),
        Source::Everything => everywhere(folders),
    };
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for path in paths {
        let file = match SessionFile::open(&path) {
            Ok(file) => file,
            Err(error) => {
                failed.push(Unreadable::new(&path, &error));
                continue;
            }
        };
        let header = &file.header;
        if home.is_open(header) || (matches!(source, Source::Project) && !home.is_own(header)) {
            continue;
        }
        match &header.cwd {
            Some(cwd) => found.push(Found::new(path, Some(home.project_of(cwd)), None)),
            None => failed.push(Unreadable::new(&path, &of_no_project())),
        }
    }
    found.sort_by(|one, other| (&one.cwd, one.path.file_name()).cmp(&(&other.cwd, other.path.file_name())));
    Ok((found, failed))
}

/// The database of the project `folder`, which may be gone, if it is not the own one, and the files of its sessions, with
/// those directly in the folder.
fn of_folder(home: &Home, folders: &Folders, folder: &Path) -> Vec<PathBuf> {
    let mut sessions = sessions_in(folders, folder);
    sessions.retain(|path| SessionFile::open(path).is_ok_and(|file| !home.is_open(&file.header)));
    let database = database_of(&home.db_dir, folder).filter(|database| home.store.place() != Some(database));
    if database.is_none() && sessions.is_empty() {
        return sessions;
    }
    let there = session_files(folder).unwrap_or_default();
    database.into_iter().chain(sessions).chain(there).collect()
}

/// The files of the sessions that Pi ran in `folder`, which may be gone.
pub fn sessions_in(folders: &Folders, folder: &Path) -> Vec<PathBuf> {
    let cwd = real_path(folder);
    let mut sessions = files_in(&folders.of_project(&cwd));
    let is_there = |own: &String| real_path(Path::new(own)) == cwd;
    sessions.retain(|path| {
        SessionFile::open(path).is_ok_and(|file| file.header.cwd.as_ref().is_some_and(is_there))
    });
    sessions
}

/// Finds the logs of another agent: with a path all logs there, otherwise those of this project or of all
/// projects.
fn find_logs(
    home: &Home,
    folders: &Folders,
    agent: &'static Agent,
    path: Option<&Path>,
    everything: bool,
    since: Option<SystemTime>,
    cancel: &CancellationToken,
) -> Result<(Vec<Found>, Vec<Unreadable>)> {
    let path = path.map(|path| Path::new(&home.cwd).join(path));
    if let Some(path) = path.as_ref().filter(|path| !path.exists()) {
        return Err(Error::invalid(format!("there is no {}", path.display())));
    }
    let logs = agent.find(path.as_deref(), folders.home.as_deref());
    let (mut found, mut failed) = (Vec::new(), logs.unreadable);
    let repository = |folder: &str| project_of(Path::new(folder), ProjectIdentity::Git);
    let own = repository(&home.cwd);
    // An agent that stores only a hash of the folder may have been started here or in a parent folder in the
    // repository.
    let above = Path::new(&home.cwd).ancestors().filter_map(Path::to_str);
    let candidates: Vec<&str> = above.take_while(|folder| repository(folder) == own).collect();
    for log in logs.logs {
        if since.is_some_and(|since| agent.written_at(&log).is_some_and(|at| at < since)) {
            continue;
        }
        if path.is_some() && !everything {
            found.push(Found::new(log, None, Some(agent)));
            continue;
        }
        let sessions = match agent.open(&log, cancel) {
            Ok(sessions) => sessions,
            Err(error) if error.code() == Code::Cancelled => return Err(error),
            Err(error) => {
                failed.push(Unreadable::new(&log, &error));
                continue;
            }
        };
        let mut projects: BTreeMap<Option<String>, HashSet<String>> = BTreeMap::new();
        for session in &sessions {
            let hashed =
                || candidates.iter().find(|folder| session.is_about(folder)).map(|&own| own.to_owned());
            match session.header.cwd.clone().or_else(hashed) {
                Some(cwd) if everything => projects.entry(Some(home.project_of(&cwd))).or_default(),
                // For the agents, the worktrees and folders of a repository are one project.
                Some(cwd) if repository(&cwd) == own => projects.entry(None).or_default(),
                None if everything => {
                    failed.push(Unreadable::new(&log, &of_no_project()));
                    continue;
                }
                _ => continue,
            }
            .insert(session.header.id.clone());
        }
        for (cwd, meant) in projects {
            found.push(Found { sessions: Some(meant), ..Found::new(log.clone(), cwd, Some(agent)) });
        }
    }
    let order = |found: &Found| (found.cwd.clone(), (agent.is_side_chain)(&found.path), found.path.clone());
    found.sort_by_cached_key(order);
    Ok((found, failed))
}

fn of_no_project() -> Error {
    Error::invalid("it names no project")
}

/// The files of this project's sessions, with that of the open one.
pub fn project_files(home: &Home, folders: &Folders) -> Vec<PathBuf> {
    let mut files = of_project(home, folders);
    files.retain(|path| {
        SessionFile::open(path).is_ok_and(|file| home.is_open(&file.header) || home.is_own(&file.header))
    });
    files
}

/// The files among which this project's sessions are.
pub(super) fn of_project(home: &Home, folders: &Folders) -> Vec<PathBuf> {
    match home.identity {
        // Other worktrees have their own session folders.
        ProjectIdentity::Git => everywhere(folders),
        ProjectIdentity::Cwd => files_in(&folders.of_project(&home.cwd)),
    }
}

/// The session files of all projects.
fn everywhere(folders: &Folders) -> Vec<PathBuf> {
    let mut dirs = vec![folders.session_dir.clone()];
    dirs.extend(folders_in(&folders.all_sessions));
    files_in(&distinct(dirs))
}

fn files_in(dirs: &[PathBuf]) -> Vec<PathBuf> {
    dirs.iter().flat_map(|dir| session_files(dir).unwrap_or_default()).collect()
}

fn folders_in(dir: &Path) -> Vec<PathBuf> {
    let inside = dir.read_dir().into_iter().flatten().flatten();
    inside.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The folders that exist, each once.
fn distinct(mut dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    dirs.retain(|dir| dir.canonicalize().is_ok_and(|real| seen.insert(real)));
    dirs
}

/// The session files in a folder that the user named: not those of the folders in it, which are other projects'.
fn in_folder(dir: &Path, cwd: &str) -> Result<Vec<PathBuf>> {
    let files = session_files(dir)?;
    if !files.is_empty() {
        return Ok(files);
    }
    let mut inside = folders_in(dir);
    inside.retain(|dir| session_files(dir).is_ok_and(|files| !files.is_empty()));
    inside.sort();
    let own = dir.join(session_folder(Path::new(cwd)));
    let Some(first) = inside.iter().find(|dir| **dir == own).or(inside.first()) else { return Ok(files) };
    Err(Error::invalid(format!(
        "{} has no session files itself, and an import does not read the folders in it: name one, such as {}",
        dir.display(),
        first.display()
    )))
}

/// The session files in a folder, and in the folders directly in it, as Pi keeps those of all projects.
///
/// # Errors
/// When the folder can't be read.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = session_files(dir)?;
    let mut inside = folders_in(dir);
    inside.sort();
    files.extend(files_in(&inside));
    Ok(files)
}

/// The session files directly in a folder, by name, which is by age.
pub(super) fn session_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error| Error::invalid(format!("the folder {} can't be read: {error}", dir.display()));
    let mut files = Vec::new();
    for entry in dir.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
