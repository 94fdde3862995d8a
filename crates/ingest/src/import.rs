//! Imports earlier sessions: finds Pi's session files, reads and stores them.
//!
//! Each slice of a file is a transaction: the open session can write in between, and a stopped import
//! continues when it is started again. A file that can't be read does not stop the others.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;

use super::edited::is_in_pieces;
use super::file::{Header, SessionFile, name_of};
pub use super::file::{LINE, LongLine, Unreadable};
pub use super::finding::{Folders, Home, Source, files_below, project_files, sessions_in};
use super::finding::{Found, find, of_project};
use super::foreign::{Agent, all_agents};
use super::old_sessions::take_over;
use super::persistor::PiSession;
use super::reading::{Reading, open, open_database};
use super::restore::{SummaryOrigin, restore_named};
use super::storing::PreparedHandover;
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::locks::lock;
use lcm_model::{agent_of_session, text};
use lcm_store::tasks::{blocking, go_on};
use lcm_store::{Batch, LastRows, RECOVERED, Store, View, is_current, project_of};

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
    /// Sessions that are stored now, and not purged.
    pub sessions: usize,
    /// Projects of these sessions.
    pub projects: usize,
    /// Messages that were not stored before.
    pub new: usize,
    /// Messages of these sessions that were stored before.
    pub known: usize,
    /// Messages of the files' sessions that are purged; they are not stored again.
    pub purged: usize,
    /// Summaries that another database had and that are stored now, and new ones of session files.
    pub summaries: usize,
    /// Sessions without a message that are no side chains; they are not stored.
    pub silent: usize,
    /// Lines that could not be read.
    pub broken: usize,
    /// Where these are: the name of each file, and the numbers of its lines as far as they have some.
    pub broken_in: Vec<(String, Vec<usize>)>,
    /// The ones of these that are too long.
    pub too_long: Vec<LongLine>,
    /// Sessions whose last line is unfinished: it is read at the next import.
    pub unfinished: usize,
    /// Rows of an old database that could not be read, as far as others name them.
    pub lost: usize,
    /// Bytes of old databases that are cut off or overwritten.
    pub missing: u64,
    /// Messages of an old database whose session is lost or can't be read.
    pub recovered: usize,
    /// Records of unknown kinds; they are stored.
    pub unknown: usize,
    /// Sessions with entries that are stored below others than in the file, as a line above was missing then.
    pub in_pieces: usize,
    /// Entries whose message differs from the stored one, which stays.
    pub differing: usize,
    /// Files that could not be read.
    pub failed: Vec<Unreadable>,
    /// Whether an agent was still writing one of them.
    pub is_growing: bool,
    /// If it was stopped: after how many files.
    pub stopped: Option<usize>,
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
    if home.store.place().is_none() {
        return Err(Error::invalid(
            "this session's history is in memory only: start Pi without --no-session to import into the project's",
        ));
    }
    let asked = (home.clone(), folders.clone(), source.clone(), cancel.clone());
    let found = blocking(move || find(&asked.0, &asked.1, &asked.2, &asked.3)).await;
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
    let mut run = RunningImport {
        home,
        sessions: &folders.all_sessions,
        progress,
        cancel,
        report: Report { files, failed, ..Report::default() },
        stored: HashSet::new(),
    };
    let outcome = run.all(&found).await;
    let RunningImport { mut report, .. } = run;
    match outcome {
        Ok(()) => {}
        Err(error) if matches!(error.code(), Code::Cancelled | Code::Closed) => {
            report.stopped = Some(progress.done.load(Ordering::Relaxed));
        }
        Err(error) => return Err(error),
    }
    Ok(report)
}

/// Imports what `agent` wrote about this project since the last time that all of it could be read.
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
    let source = Source::Agents { agents: vec![agent], path: None, everything: false, since };
    let report = import(home, folders, &source, progress, cancel).await?;
    // A log that was locked is as old as before when it is read again; a file that is no log stays one.
    let is_whole = report.stopped.is_none() && !report.is_growing;
    if is_whole && report.failed.iter().all(|failed| failed.code == Code::Foreign) {
        home.store.write(move |batch| batch.messages().note_agent_read(agent.name, begun)).await?;
    }
    Ok(())
}

/// The other agents with logs about this project of which the store has no session.
pub async fn agents_left_out(
    home: &Home,
    folders: &Folders,
    cancel: &CancellationToken,
) -> Result<Vec<&'static Agent>> {
    let stored = home.store.read(|view| view.messages().session_ids()).await?;
    let (home, folders, cancel) = (home.clone(), folders.clone(), cancel.clone());
    blocking(move || {
        let is_stored = |agent: &Agent| stored.iter().any(|id| agent_of_session(id) == Some(agent.name));
        let mut left_out = all_agents();
        left_out.retain(|agent| !is_stored(agent));
        let mut with_logs = Vec::new();
        for agent in left_out {
            let source = Source::Agents { agents: vec![agent], path: None, everything: false, since: None };
            let (logs, _) = find(&home, &folders, &source, &cancel)?;
            with_logs.extend((!logs.is_empty()).then_some(agent));
        }
        Ok(with_logs)
    })
    .await
}

/// Counts the sessions of this project that the store does not know. It does so once in a store's life;
/// afterwards it returns 0.
pub async fn older_sessions(home: &Home, folders: &Folders) -> Result<usize> {
    if home.store.place().is_none() {
        return Ok(0);
    }
    let asked =
        home.store.read(|view| Ok((view.messages().import_was_offered()?, view.messages().session_ids()?)));
    let (offered, known) = asked.await?;
    if offered {
        return Ok(0);
    }
    let (folders, looking) = (folders.clone(), home.clone());
    let count = blocking(move || {
        let known: HashSet<String> = known.into_iter().collect();
        let files = of_project(&looking, &folders);
        let unknown = files.iter().filter(|file| {
            let Ok(mut file) = SessionFile::open(file) else { return false };
            let header = &file.header;
            let new = !known.contains(&header.id) && looking.is_own(header);
            new && file.says_anything().unwrap_or(false)
        });
        Ok(unknown.count())
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

    pub(super) fn project_of(&self, cwd: &str) -> String {
        project_of(Path::new(cwd), self.identity)
    }
}

struct RunningImport<'a> {
    home: &'a Home,
    /// Pi's folder of sessions.
    sessions: &'a Path,
    progress: &'a Progress,
    cancel: &'a CancellationToken,
    report: Report,
    /// The sessions of the current project: one may have several files.
    stored: HashSet<ConversationId>,
}

impl RunningImport<'_> {
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
            match blocking(move || Store::of_project(Some(&dir), &cwd)).await {
                Ok(store) => {
                    let outcome = self.project(files, &store).await;
                    store.close().await;
                    outcome?;
                }
                Err(error) => {
                    let failed = files.iter().map(|file| Unreadable::new(&file.path, &error));
                    self.report.failed.extend(failed);
                    self.progress.done.fetch_add(files.len(), Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    async fn project(&mut self, files: &[Found], store: &Store) -> Result<()> {
        let before = self.progress.done.load(Ordering::Relaxed);
        for (number, file) in files.iter().enumerate() {
            self.progress.done.store(before + number, Ordering::Relaxed);
            match self.file(file, store).await {
                // The rest of the file is left out.
                Err(error) if matches!(error.code(), Code::Invalid | Code::Foreign) => {
                    self.report.failed.push(Unreadable::new(&file.path, &error));
                }
                Err(error) => {
                    self.count(store).await?;
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
        self.progress.done.store(before + files.len(), Ordering::Relaxed);
        self.count(store).await?;
        store.checkpoint().await
    }

    /// Counts the sessions of this project, and what of them is purged.
    async fn count(&mut self, store: &Store) -> Result<()> {
        let stored = std::mem::take(&mut self.stored);
        let count = move |view: &View<'_>| {
            // Forks share them.
            let (mut left, mut purged) = (0, HashSet::new());
            for conversation in stored {
                left += usize::from(view.messages().is_left(conversation)?);
                purged.extend(view.messages().purged_in(conversation)?);
            }
            Ok((left, purged.len()))
        };
        let (left, purged) = store.read(count).await?;
        self.report.sessions += left;
        self.report.projects += usize::from(left > 0);
        self.report.purged += purged;
        Ok(())
    }

    async fn file(&mut self, file: &Found, store: &Store) -> Result<()> {
        let (mut found, cancel) = (file.clone(), self.cancel.clone());
        let own = store.place().map(ToOwned::to_owned);
        let is_of_ours = found.agent.is_none() && file.path.parent() == Some(&*self.home.db_dir);
        let opened = blocking(move || {
            if found.agent.is_none() && found.database.is_none() {
                found.database =
                    open_database(&found.path, own.as_deref(), is_of_ours, &cancel)?.map(|old| (old, None));
            }
            Ok((open(&found, &cancel)?, found.database.filter(|(_, rebuilding)| rebuilding.is_none())))
        });
        let (mut sessions, old) = opened.await?;
        let since =
            if is_of_ours { None } else { Some(store.read(|view| view.messages().last_rows()).await?) };
        loop {
            let read = blocking(move || Ok((sessions.next(), sessions))).await?;
            sessions = read.1;
            let Some(session) = read.0 else { break };
            self.session(&file.path, session, store).await?;
        }
        let Some((old, _)) = old else { return Ok(()) };
        self.report.missing += lock(&old).missing;
        self.report.summaries += take_over(store, &old, since).await?;
        // Anyone may have made another file.
        if is_of_ours {
            let path = file.path.clone();
            store.write(move |batch| batch.upkeep().note_backup(&path)).await?;
        }
        Ok(())
    }

    /// Makes a file that has more of a session than was stored the one that the doctor compares, unless Pi's own is. Returns
    /// whether the session is stored in pieces.
    async fn adopt(&self, file: &Path, conversation: ConversationId, store: &Store) -> Result<bool> {
        let (path, own, cancel) = (file.to_owned(), self.sessions.to_owned(), self.cancel.clone());
        let adopting = move |batch: &Batch<'_>| {
            let stored =
                batch.messages().sessions(Some(conversation))?.pop().and_then(|session| session.file);
            if stored.is_none_or(|stored| !Path::new(&stored).starts_with(own)) {
                batch.messages().note_file(conversation, &path.to_string_lossy())?;
            }
            Ok(path)
        };
        let path = store.write(adopting).await?;
        store.read(move |view| is_in_pieces(view, conversation, &path, &cancel)).await
    }

    /// Writes a session as it is read: a slice is read while the one before is written.
    async fn session(&mut self, file: &Path, reading: Reading, store: &Store) -> Result<()> {
        let (reading, mut conversation) = reading.compare(store).await?;
        let known_before = conversation;
        let ahead = |mut reading: Reading| blocking(move || Ok((reading.next()?, reading)));
        let (mut next, mut reading) = ahead(reading).await?;
        let mut added = Added::default();
        while let Some(slice) = next {
            go_on(self.cancel)?;
            let (session, before) = (Arc::clone(&reading.session), added.new);
            let writing = store.write(move |batch| added.and(batch, &session, slice));
            let (written, read) = tokio::join!(writing, ahead(reading));
            added = written?;
            self.progress.messages.fetch_add(added.new - before, Ordering::Relaxed);
            (next, reading) = read?;
        }
        let Added { row, since, new, said, mut summaries } = added;
        conversation = row.or(conversation);
        let (found, supplements) = (reading.slices.findings(), reading.slices.supplements());
        let Reading { session, is_side_chain, is_in_database, broken, said: stored, .. } = reading;
        let report = &mut self.report;
        report.is_growing |= found.is_growing;
        report.unfinished += usize::from(found.is_unfinished);
        let broken = broken + found.broken;
        if broken > 0 && !is_in_database {
            report.broken_in.push((name_of(file), found.broken_lines));
        }
        let long = |(number, bytes)| LongLine { file: name_of(file), number, bytes };
        report.too_long.extend(found.too_long.into_iter().map(long));
        *if is_in_database { &mut report.lost } else { &mut report.broken } += broken;
        report.unknown += found.unknown;
        let Some(conversation) = conversation else {
            report.silent += usize::from(!is_side_chain);
            return Ok(());
        };
        // Without a new message nothing can be restored.
        if let Some(since) = since.filter(|_| !supplements.is_empty()) {
            let origin = Some(SummaryOrigin { conversation: Some(conversation), since });
            let restore = move |batch: &Batch<'_>| {
                let before = batch.summaries().newest_summary()?;
                supplements.iter().try_for_each(|one| restore_named(batch, origin, one).map(drop))?;
                Ok(batch.summaries().nodes_since(before, |_| true)?.len())
            };
            summaries += store.write(restore).await?;
        }
        if known_before.is_some() && new > 0 && !is_in_database && session.file.is_some() {
            self.report.in_pieces += usize::from(self.adopt(file, conversation, store).await?);
        }
        // Those of a database are counted when all of its sessions are stored.
        self.report.summaries += if is_in_database { 0 } else { summaries };
        let known = match found.known {
            // Other sessions may have the same messages.
            Some(known) => known + said.saturating_sub(new),
            None => store.read(move |view| view.messages().said_in(conversation)).await?.saturating_sub(new),
        };
        self.report.differing += store.read(move |view| differing(view, conversation, &stored)).await?;
        self.report.new += new;
        self.report.known += known;
        self.report.recovered +=
            if is_in_database && session.id.starts_with(RECOVERED) { new + known } else { 0 };
        self.stored.insert(conversation);
        Ok(())
    }
}

/// How many of these stored entries have another message than here. Where a file repeats an id, the second message
/// is stored next to the first.
pub fn differing(view: &View<'_>, conversation: ConversationId, said: &[(String, Hash)]) -> Result<usize> {
    let mut differing = 0;
    for (id, digest) in said {
        let is_other = view.messages().shows(conversation, id, digest)? == Some(false)
            && !has_version(view, conversation, id, digest)?;
        differing += usize::from(is_other);
    }
    Ok(differing)
}

/// Whether an entry with this id shows the message with this digest, or a purged one.
fn has_version(view: &View<'_>, conversation: ConversationId, id: &str, digest: &Hash) -> Result<bool> {
    for version in view.messages().versions(conversation, id)? {
        if !is_current(&version.entry_id) {
            continue;
        }
        if version.is_purged || view.messages().shows(conversation, &version.entry_id, digest)? == Some(true)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What was written of a session.
#[derive(Clone, Copy, Default)]
struct Added {
    row: Option<ConversationId>,
    /// The last rows before its first slice.
    since: Option<LastRows>,
    /// Messages that are new, and all.
    new: usize,
    said: usize,
    summaries: usize,
}

impl Added {
    /// Stores a slice more.
    fn and(self, batch: &Batch<'_>, session: &PiSession, slice: PreparedHandover) -> Result<Self> {
        let since = self.since.map_or_else(|| batch.messages().last_rows(), Ok)?;
        let row = match batch.messages().conversation(&session.id)? {
            // The row is Pi's own; this file may be a copy.
            Some(known) => known,
            // Not now: an imported session is not the one that was used last.
            None => session.row(batch, slice.time().unwrap_or_else(text::now))?,
        };
        let (said, before) = (self.said + slice.said(), batch.summaries().newest_summary()?);
        let new = self.new + slice.store_since(batch, row, since, Err)?;
        let summaries = self.summaries + batch.summaries().nodes_since(before, |_| true)?.len();
        Ok(Self { row: Some(row), since: Some(since), new, said, summaries })
    }
}
