//! Imports earlier sessions: finds Pi's session files, reads them and folds them into the store.
//!
//! Each slice of a file is a transaction: the open session can write in between, and a stopped import
//! continues when it is started again. A file that can't be read does not stop the others.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::file::{Header, SessionFile, Slices, says_anything};
pub use super::finding::{Folders, Home, Source, Unreadable};
use super::finding::{Found, find, session_files};
use super::fold::{Handover, PreparedHandover, beside};
use super::foreign::Agent;
use super::restore::restore_supplement;
use super::salvage::{OldSessions, is_database};
use crate::error::{Code, Error, Result};
use crate::ids::{ConversationId, Hash};
use crate::model::{Content, Entry, agent_of_session};
use crate::store::{Place, Store, View, project_of};
use crate::text;

/// The progress of an import.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files to read.
    pub files: AtomicUsize,
    /// Files that are finished.
    pub done: AtomicUsize,
    /// Messages that were new.
    pub messages: AtomicUsize,
}

/// The outcome of an import.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that were read, or would have been.
    pub files: usize,
    /// Sessions that are stored now.
    pub sessions: usize,
    /// Projects of these sessions.
    pub projects: usize,
    /// Messages that were not stored before.
    pub new: usize,
    /// Messages of these sessions that were stored before.
    pub known: usize,
    /// Sessions without a message; they are not stored.
    pub silent: usize,
    /// Lines that could not be read.
    pub broken: usize,
    /// Rows of an old database that could not be read.
    pub lost: usize,
    /// Records of unknown kinds; they are stored.
    pub unknown: usize,
    /// Entries whose message differs from the stored one, which stays.
    pub differing: usize,
    /// Files that could not be read.
    pub failed: Vec<Unreadable>,
    /// If it was stopped: after how many files.
    pub stopped: Option<usize>,
}

/// Two sessions without an id would be merged, so neither is stored.
const NO_ID: &str =
    "its session has no id: put one of your choice into \"id\" in its first line, and import it again";

/// The outcome of one file.
#[derive(Default)]
struct Taken {
    new: usize,
    known: usize,
    broken: usize,
    lost: usize,
    unknown: usize,
    differing: usize,
    /// Sessions with a message.
    sessions: usize,
    /// Sessions without a message.
    silent: usize,
}

impl Taken {
    fn add(&mut self, other: &Self) {
        self.new += other.new;
        self.known += other.known;
        self.broken += other.broken;
        self.lost += other.lost;
        self.unknown += other.unknown;
        self.differing += other.differing;
        self.sessions += other.sessions;
        self.silent += other.silent;
    }
}

/// Imports sessions.
///
/// # Errors
/// When there is no such file, or when the store fails. What was imported until then stays.
pub async fn import(
    home: &Home,
    folders: &Folders,
    source: &Source,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Report> {
    if *home.store.place() == Place::Memory {
        return Err(Error::invalid(
            "this session's history is in memory only: start Pi without --no-session to import into the project's",
        ));
    }
    let found = {
        let (home, folders, source, cancel) = (home.clone(), folders.clone(), source.clone(), cancel.clone());
        aside(move || find(&home, &folders, &source, &cancel)).await?
    };
    let (found, failed) = match found {
        Err(error) if error.code() == Code::Cancelled => {
            return Ok(Report { stopped: Some(0), ..Report::default() });
        }
        found => found?,
    };
    let files = found.len() + failed.len();
    progress.files.store(files, Ordering::Relaxed);
    progress.done.store(failed.len(), Ordering::Relaxed);
    progress.messages.store(0, Ordering::Relaxed);
    let mut run = Run { home, progress, cancel, report: Report { files, failed, ..Report::default() } };
    let outcome = run.all(&found).await;
    let Run { mut report, .. } = run;
    match outcome {
        Ok(()) => {}
        Err(error) if matches!(error.code(), Code::Cancelled | Code::Closed) => {
            report.stopped = Some(progress.done.load(Ordering::Relaxed));
        }
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// Imports what `agent` wrote about this project since the last time.
///
/// # Errors
/// As for [`import`].
pub async fn import_new(
    home: &Home,
    folders: &Folders,
    agent: &'static Agent,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<()> {
    let begun = text::now();
    let last = home.store.read(|view| view.messages().agent_read_at(agent.name)).await?;
    // Some file systems store whole seconds only.
    let since = last.and_then(|last| u64::try_from(last - 2_000).ok());
    let since = since.map(|since| UNIX_EPOCH + Duration::from_millis(since));
    let source = Source::Agent { agent, path: None, everything: false, since };
    let report = import(home, folders, &source, progress, cancel).await?;
    if report.stopped.is_none() {
        home.store.write(move |batch| batch.messages().note_agent_read(agent.name, begun)).await?;
    }
    Ok(())
}

/// Counts the sessions of this project that the store does not know. It does so once in a store's life;
/// afterwards it returns 0.
///
/// # Errors
/// When the store fails.
pub async fn older_sessions(home: &Home, folders: &Folders) -> Result<usize> {
    if *home.store.place() == Place::Memory {
        return Ok(0);
    }
    let asked =
        home.store.read(|view| Ok((view.messages().import_was_offered()?, view.messages().session_ids()?)));
    let (offered, known) = asked.await?;
    if offered {
        return Ok(0);
    }
    let (sessions, looking) = (folders.session_dir.clone(), home.clone());
    let count = aside(move || {
        let known: HashSet<String> = known.into_iter().collect();
        let files = session_files(&sessions).unwrap_or_default();
        let unknown = files.iter().filter(|file| {
            let Ok(mut file) = SessionFile::open(file) else { return false };
            let header = file.header();
            let new = !known.contains(&header.id) && looking.is_own(header);
            new && file.says_anything().unwrap_or(false)
        });
        unknown.count()
    });
    let count = count.await?;
    let first = home.store.write(|batch| batch.messages().note_import_offered(text::now())).await?;
    Ok(if first { count } else { 0 })
}

impl Home {
    /// Whether this is a session of this project, but not the open one.
    pub(super) fn is_own(&self, header: &Header) -> bool {
        let own = || self.project_of(&self.cwd);
        !self.is_open(header) && header.cwd.as_ref().is_some_and(|cwd| self.project_of(cwd) == own())
    }

    /// Whether this is the open session. The shell has none; its id is empty.
    pub(super) fn is_open(&self, header: &Header) -> bool {
        !header.id.is_empty() && header.id == self.session_id
    }

    /// The project of a folder.
    pub(super) fn project_of(&self, cwd: &str) -> String {
        project_of(Path::new(cwd), self.identity)
    }
}

/// The bytes of messages that one transaction writes: with fewer, more of the time goes to commits; with more, an open
/// session waits longer.
const WRITTEN: usize = 1024 * 1024;

/// A running import.
struct Run<'a> {
    home: &'a Home,
    progress: &'a Progress,
    cancel: &'a CancellationToken,
    report: Report,
}

impl Run<'_> {
    async fn all(&mut self, found: &[Found]) -> Result<()> {
        let own = self.home.project_of(&self.home.cwd);
        // Files of one project are adjacent, so that its store is opened once.
        for files in found.chunk_by(|one, other| one.cwd == other.cwd) {
            let cwd = files.first().and_then(|file| file.cwd.clone()).filter(|cwd| *cwd != own);
            let Some(cwd) = cwd else {
                self.project(files, &self.home.store.clone()).await?;
                continue;
            };
            let dir = self.home.db_dir.clone();
            match aside(move || Store::of_project(Some(&dir), &cwd)).await? {
                Ok(store) => {
                    let outcome = self.project(files, &store).await;
                    store.close().await;
                    outcome?;
                }
                Err(error) => {
                    for file in files {
                        self.failed(&file.path, &error);
                    }
                }
            }
        }
        Ok(())
    }

    async fn project(&mut self, files: &[Found], store: &Store) -> Result<()> {
        let before = self.report.sessions;
        store.expect_much(true)?;
        let outcome = self.files(files, store).await;
        store.expect_much(false)?;
        outcome?;
        self.report.projects += usize::from(self.report.sessions > before);
        store.checkpoint().await
    }

    async fn files(&mut self, files: &[Found], store: &Store) -> Result<()> {
        for file in files {
            match self.file(file, store).await {
                Ok(taken) => {
                    self.report.sessions += taken.sessions;
                    self.report.silent += taken.silent;
                    self.report.new += taken.new;
                    self.report.known += taken.known;
                    self.report.broken += taken.broken;
                    self.report.lost += taken.lost;
                    self.report.unknown += taken.unknown;
                    self.report.differing += taken.differing;
                    self.progress.done.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if error.code() == Code::Invalid => self.failed(&file.path, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn file(&mut self, file: &Found, store: &Store) -> Result<Taken> {
        let path = &file.path;
        let opened = path.to_owned();
        if let Some(agent) = file.agent {
            return self.log(agent, file, store).await;
        }
        if is_database(path) {
            return self.database(opened, store).await;
        }
        let file = aside(move || SessionFile::open(&opened)).await??.until(self.cancel);
        let header = file.header().clone();
        if header.id.is_empty() {
            return Err(Error::invalid(NO_ID));
        }
        self.session(header, Some(path.to_string_lossy().into_owned()), file, store).await
    }

    /// Imports the sessions of another agent's log.
    async fn log(&mut self, agent: &'static Agent, file: &Found, store: &Store) -> Result<Taken> {
        let (path, cancel) = (file.path.clone(), self.cancel.clone());
        let mut all = Taken::default();
        for session in aside(move || agent.open(&path, &cancel)).await?? {
            let header = session.header().clone();
            if file.sessions.as_ref().is_some_and(|meant| !meant.contains(&header.id)) {
                all.broken += session.broken();
                continue;
            }
            let is_side_chain = session.is_side_chain();
            let mut taken = self.session(header, None, session, store).await?;
            if is_side_chain {
                (taken.sessions, taken.silent) = (0, 0);
            }
            all.add(&taken);
        }
        if is_database(&file.path) {
            all.lost = std::mem::take(&mut all.broken);
        }
        Ok(all)
    }

    /// Imports all sessions of an old database.
    async fn database(&mut self, path: PathBuf, store: &Store) -> Result<Taken> {
        if matches!(store.place(), Place::File(own) if *own == path) {
            return Err(Error::invalid("it is the database that is in use"));
        }
        let cancel = self.cancel.clone();
        let mut sessions = aside(move || OldSessions::open(&path, &cancel)).await??;
        let mut all = Taken::default();
        loop {
            let (rest, next) = aside(move || {
                let next = sessions.next();
                (sessions, next)
            })
            .await?;
            sessions = rest;
            let Some((header, file, slices)) = next else { return Ok(all) };
            let mut taken = self.session(header, file, slices, store).await?;
            taken.lost = std::mem::take(&mut taken.broken);
            all.add(&taken);
        }
    }

    async fn session(
        &self,
        header: Header,
        path: Option<String>,
        mut file: impl Slices,
        store: &Store,
    ) -> Result<Taken> {
        let session = Arc::new((header, path));
        let id = session.0.id.clone();
        let (mut conversation, known) = store
            .read(move |view| match view.messages().conversation(&id)? {
                Some(known) => Ok((Some(known.id), view.messages().entry_ids(known.id)?)),
                None => Ok((None, Vec::new())),
            })
            .await?;
        let known: HashSet<String> = known.into_iter().collect();
        let mut is_stored = conversation.is_some();
        let mut new = 0;
        // The next slice is read and prepared while one is written. Reading ends when the receiver is gone.
        let (read, mut slices) = mpsc::channel(1);
        let reading = tokio::task::spawn_blocking(move || {
            let (mut waiting, mut said) = (Handover::default(), Vec::new());
            while let Some(slice) = file.slice(&known)? {
                let (old, new): (Vec<_>, Vec<_>) =
                    slice.entries.into_iter().partition(|entry| known.contains(&entry.id));
                said.extend(old.into_iter().filter_map(said_by));
                waiting.entries.extend(new);
                waiting.orphans.extend(slice.orphans);
                // A session is stored with its first message.
                is_stored |= says_anything(&waiting);
                if is_stored
                    && waiting.size() >= WRITTEN
                    && read.blocking_send(std::mem::take(&mut waiting).prepare()).is_err()
                {
                    break;
                }
            }
            if is_stored && !waiting.entries.is_empty() {
                // Nobody receives after an error.
                let _ = read.blocking_send(waiting.prepare());
            }
            Ok((file.broken(), file.unknown(), file.known(), file.supplements(), said))
        });
        while let Some(slice) = slices.recv().await {
            if self.cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            let session = Arc::clone(&session);
            let (row, added) = store.write(move |batch| add(batch, &session, slice)).await?;
            conversation = Some(row);
            new += added;
            self.progress.messages.fetch_add(added, Ordering::Relaxed);
        }
        let (broken, unknown, known, supplements, said) = reading.await.map_err(stopped)??;
        let Some(conversation) = conversation else {
            return Ok(Taken { new, broken, unknown, silent: 1, ..Taken::default() });
        };
        if !supplements.is_empty() {
            store.write(move |batch| restore_supplement(batch, &supplements)).await?;
        }
        let known = match known {
            Some(known) => known,
            None => store.read(move |view| view.messages().said_in(conversation)).await?.saturating_sub(new),
        };
        let differing = store.read(move |view| differing(view, conversation, &said)).await?;
        Ok(Taken { new, known, broken, unknown, differing, sessions: 1, ..Taken::default() })
    }

    fn failed(&mut self, path: &Path, error: &Error) {
        self.report.failed.push(Unreadable::new(path, error));
        self.progress.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// The id of an entry with a message, and the hash of that message.
fn said_by(entry: Entry) -> Option<(String, Hash)> {
    match entry.content {
        Content::Message(json) => Some((entry.id, Hash::plain(json.as_bytes()))),
        _ => None,
    }
}

/// How many of these stored entries have another message than here. Where a file repeats an id, the second message
/// is stored next to the first.
fn differing(view: &View<'_>, conversation: ConversationId, said: &[(String, Hash)]) -> Result<usize> {
    let mut differing = 0;
    for (id, digest) in said {
        let is_other = view.messages().shows(conversation, id, digest)? == Some(false)
            && view.messages().entry_row(conversation, &beside(id, digest))?.is_none()
            && !view.upkeep().is_purged_beside(conversation, id)?;
        differing += usize::from(is_other);
    }
    Ok(differing)
}

/// Folds a slice. Returns the conversation and the number of new messages.
fn add(
    batch: &crate::store::Batch<'_>,
    session: &(Header, Option<String>),
    slice: PreparedHandover,
) -> Result<(ConversationId, usize)> {
    let (header, file) = session;
    let conversation = match batch.messages().conversation(&header.id)? {
        // The row is Pi's own; this file may be a copy.
        Some(known) => known.id,
        None => {
            // Another agent's session starts with its first entry.
            let began = agent_of_session(&header.id).and_then(|_| slice.time()).unwrap_or_else(text::now);
            batch.messages().conversation_row(&header.id, file.as_deref(), header.parent.as_deref(), began)?
        }
    };
    let last = batch.messages().last_message()?;
    slice.fold(batch, conversation)?;
    Ok((conversation, batch.messages().messages_after(last)?))
}

/// Runs blocking `work` on another thread.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(stopped)
}

fn stopped(error: tokio::task::JoinError) -> Error {
    Error::storing("a bug in the engine stopped an import", error)
}
