//! The store's handle: a thread that owns the write connection, and a pool of read connections.
//!
//! Jobs reach the writer through an ordered queue, so handing over messages does not block. A read sees what
//! was committed before it began; [`Store::flush`] waits until that includes everything queued so far.
//!
//! A file that can't be written is still read, through the writer's connection. Each write tries to reopen
//! it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::connection::{self, Opened};
use super::opening::{self, Damaged};
use super::project::name_of;
use super::{read_only, schema, trouble};
use crate::messages::counts;
use crate::summaries::claims;
use crate::tasks::blocking;
use crate::upkeep::vacuum;
use crate::{Batch, View};
use lcm_model::error::{Code, Error, Result};
use lcm_model::locks::lock;

/// Work for the writer.
struct WriteJob {
    work: Work,
    /// Whether no caller waits for it.
    unhurried: bool,
    /// Whether it is a write transaction.
    writes: bool,
}

/// What the writer does: with its connection, or with the reason why it can't be written.
type Work = Box<dyn FnOnce(Result<&mut Connection>) + Send>;

/// Opens another read connection.
pub(crate) type Opens = Box<dyn Fn(&Path) -> rusqlite::Result<Connection> + Send + Sync>;

/// Tries to open for writing a file that could not be written.
type Reopen = Box<dyn Fn() -> Result<Connection> + Send>;

/// How long the writer pauses before a job that no caller waits for. A woken thread may take over the core of
/// the thread that woke it, which would block Pi's thread for a whole transaction.
const BREATH: Duration = Duration::from_millis(1);

/// Idle read connections that are kept open.
const READERS: usize = 4;

/// A store, cheap to clone. The writer ends after the last job once [`Store::close`] was called.
#[derive(Clone)]
pub struct Store(Arc<StoreState>);

/// The state that all handles of a store share.
struct StoreState {
    /// The file; in memory, for sessions that must leave no trace, there is none.
    place: Option<PathBuf>,
    jobs: Mutex<Option<Sender<WriteJob>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Idle read connections; `None` once the store is closed.
    readers: Mutex<Option<Vec<Connection>>>,
    notice: Option<String>,
    /// Damaged files that were skipped for this one.
    passed: Vec<Damaged>,
    trouble: Mutex<Trouble>,
    /// Opens another read connection.
    opens: Opens,
    /// Opened for reading; it is never written.
    is_apart: bool,
    /// Reads go through the writer: the store is in memory, or its file can't be written.
    reads_in_turn: Arc<AtomicBool>,
}

/// What went wrong with the file.
#[derive(Default)]
struct Trouble {
    /// A message about damage that the user has not seen yet.
    damage: Option<String>,
    /// Whether damage was found before.
    is_known: bool,
    /// Why a write failed, if damage is why.
    unwritable: Option<Error>,
}

impl StoreState {
    fn reading(place: Option<PathBuf>, opens: Opens) -> Self {
        Self {
            place,
            jobs: Mutex::default(),
            writer: Mutex::default(),
            readers: Mutex::new(Some(Vec::new())),
            notice: None,
            passed: Vec::new(),
            trouble: Mutex::default(),
            opens,
            is_apart: true,
            reads_in_turn: Arc::default(),
        }
    }
}

impl Store {
    /// Opens the store of the project `cwd`, a file called `<name>.db` in `dir`, or one in memory if `dir` is
    /// `None`.
    ///
    /// # Errors
    /// When the folder or the file can't be created or read.
    pub fn open(dir: Option<&Path>, name: &str, cwd: &str) -> Result<Self> {
        Self::open_past(dir, name, cwd, Vec::new())
    }

    /// Opens the store of a project, as [`project_of`] names it, in the folder `dir`, or in memory without one.
    ///
    /// [`project_of`]: crate::project_of
    pub fn of_project(dir: Option<&Path>, project: &str) -> Result<Self> {
        Self::open(dir, &name_of(project), project)
    }

    /// Makes the store of a project in the file `path`.
    pub fn create(path: &Path, project: &str) -> Result<Self> {
        let (connection, _) = opening::open_file(path, project)?;
        let opened = Opened { connection, place: Some(path.to_owned()), notice: None };
        Self::begin(opened, Vec::new(), None)
    }

    /// Opens another store next to this one, which can't be read or written because of `why`.
    pub fn open_next_to(&self, dir: &Path, project: &str, why: &Error) -> Result<Self> {
        let mut passed = self.0.passed.clone();
        if let Some(path) = &self.0.place {
            passed.push(Damaged { path: path.clone(), why: why.cause() });
        }
        Self::open_past(Some(dir), &name_of(project), project, passed)
    }

    fn open_past(dir: Option<&Path>, name: &str, cwd: &str, passed: Vec<Damaged>) -> Result<Self> {
        let opened = match dir {
            Some(dir) => opening::open_project(dir, name, cwd, &passed)?,
            None => opening::open_memory(cwd)?,
        };
        Self::begin(opened, passed, None)
    }

    /// The same as [`Store::of_project`], but a file that can't be written is read until it can be: each write tries
    /// again.
    pub fn of_session(dir: Option<&Path>, project: &str) -> Result<Self> {
        let (why, dir) = match (Self::of_project(dir, project), dir) {
            (Err(why), Some(dir)) if trouble::is_unwritable(&why) => (why, dir),
            (outcome, _) => return outcome,
        };
        let Some(opened) = read_only::open_to_wait(dir, project) else { return Err(why) };
        let (place, project) = (opened.place.clone(), project.to_owned());
        let reopen = move || opening::open_again(place.as_deref().ok_or_else(Error::closed)?, &project);
        Self::begin(opened, Vec::new(), Some(Box::new(reopen)))
    }

    /// Starts a store that is writable, or one that waits until `reopen` succeeds.
    fn begin(opened: Opened, passed: Vec<Damaged>, reopen: Option<Reopen>) -> Result<Self> {
        let Opened { mut connection, place, notice } = opened;
        let is_to_be_vacuumed = reopen.is_none() && vacuum::is_pending(&connection);
        let reads_in_turn = Arc::new(AtomicBool::new(reopen.is_some() || place.is_none()));
        let waiting = reopen.map(|reopen| (reopen, Arc::clone(&reads_in_turn)));
        let (jobs, queue) = channel();
        let writer = std::thread::Builder::new()
            .name("lcm-writer".into())
            .spawn(move || work_off(&queue, &mut connection, waiting))
            .map_err(|error| Error::storing("failed to start the writer of the history store", error))?;
        if is_to_be_vacuumed {
            let work: Work = Box::new(|connection| drop(connection.map(|open| vacuum::run(open))));
            // The writer has just started and still receives.
            let _ = jobs.send(WriteJob { work, unhurried: true, writes: false });
        }
        Ok(Self(Arc::new(StoreState {
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            notice,
            passed,
            is_apart: false,
            reads_in_turn,
            ..StoreState::reading(place, Box::new(connection::open_reader))
        })))
    }

    /// A read-only store with its first connection and a function that opens more.
    pub(crate) fn of_reader(opened: Opened, opens: Opens) -> Self {
        let Opened { connection, place, notice } = opened;
        let readers = Mutex::new(Some(vec![connection]));
        Self(Arc::new(StoreState { readers, notice, ..StoreState::reading(place, opens) }))
    }

    /// The file in which the store is kept; `None` in memory.
    pub fn place(&self) -> Option<&Path> {
        self.0.place.as_deref()
    }

    /// Whether it is read-only.
    pub fn is_apart(&self) -> bool {
        self.0.is_apart
    }

    /// What the user should know about where the store is kept.
    pub fn notice(&self) -> Option<&str> {
        self.0.notice.as_deref()
    }

    /// A message about newly found damage, returned once.
    pub fn take_damage(&self) -> Option<String> {
        lock(&self.0.trouble).damage.take()
    }

    /// Why nothing more can be written, if the file is damaged; returned once.
    pub fn take_unwritable(&self) -> Option<Error> {
        lock(&self.0.trouble).unwritable.take()
    }

    /// Queues one write transaction and returns at once; `done` gets the outcome on the writer's thread.
    ///
    /// # Errors
    /// When the store is closed: then the work is not queued and `done` is not called.
    pub fn post<T: 'static>(
        &self,
        work: impl FnOnce(&Batch<'_>) -> Result<T> + Send + 'static,
        done: impl FnOnce(Result<T>) + Send + 'static,
    ) -> Result<()> {
        self.queue(WriteJob { work: transaction(self.clone(), work, done), unhurried: true, writes: true })
    }

    /// Runs one write transaction: all of `work`, or none of it.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop queued work.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Batch<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.0.is_apart {
            return Err(Error::invalid("this history was opened read-only"));
        }
        let (answer, result) = oneshot::channel();
        // The receiver may be gone.
        let work = transaction(self.clone(), work, move |outcome| drop(answer.send(outcome)));
        self.queue(WriteJob { work, unhurried: false, writes: true })?;
        result.await.map_err(|_| Error::closed())?
    }

    /// Runs `work` on the writer's connection, after what was queued before.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T> {
        let (answer, result) = oneshot::channel();
        // The receiver may be gone.
        let work =
            Box::new(move |connection: Result<&mut Connection>| drop(answer.send(connection.map(work))));
        self.queue(WriteJob { work, unhurried: false, writes: false })?;
        result.await.map_err(|_| Error::closed())?
    }

    /// Runs `work` on a consistent view, on a thread that may wait for the disk.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = match &self.0.place {
            Some(path) if !self.0.reads_in_turn.load(Ordering::Acquire) => path,
            _ => {
                let read = self.in_turn(|connection| in_view(connection, work)).await?;
                return read.map_err(|error| self.explain(error));
            }
        };
        let (path, store) = (path.clone(), self.clone());
        blocking(move || store.on_reader(&path, |connection| in_view(connection, work))).await
    }

    /// Runs `work` on one of the read connections.
    pub(super) fn on_reader<T>(
        &self,
        path: &Path,
        work: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let idle = lock(&self.0.readers).as_mut().map(Vec::pop).ok_or_else(Error::closed)?;
        let mut connection = match idle {
            Some(connection) => connection,
            None => (self.0.opens)(path).map_err(|error| self.explain(connection::unread(path, error)))?,
        };
        let outcome = work(&mut connection).map_err(|error| self.explain(error));
        // The store may be closed meanwhile.
        if let Some(idle) = lock(&self.0.readers).as_mut().filter(|idle| idle.len() < READERS) {
            idle.push(connection);
        }
        outcome
    }

    /// Waits until everything queued so far is on disk.
    pub async fn flush(&self) -> Result<()> {
        self.in_turn(|_| ()).await
    }

    /// Compacts the index and the file, counts what is not counted, merges the log into the database and empties it, as far as other
    /// processes allow.
    pub async fn checkpoint(&self) -> Result<()> {
        let is_damaged = lock(&self.0.trouble).is_known;
        self.in_turn(move |connection| {
            // Another reader may block this. Don't wait: the next checkpoint catches up.
            let _ = connection.busy_handler(Some(connection::BRIEFLY));
            // Leave a damaged file as it is.
            if !is_damaged {
                let _ = connection::tidy_up(connection);
                let _ = counts::count(connection);
                let _ = claims::end_expired(connection);
            }
            let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            if vacuum::is_pending(connection) {
                let _ = vacuum::run(connection);
            }
            let _ = connection.busy_handler(Some(connection::BUSY));
        })
        .await
    }

    /// Rewrites the file after a purge, so that neither it nor its log keeps what was removed. Returns
    /// whether that is done. If another process prevents it, the next start does it.
    ///
    /// # Errors
    /// When the store is closed or the disk fails; then the next start tries again.
    pub async fn vacuum(&self) -> Result<bool> {
        let outcome = self.in_turn(|connection| vacuum::run(connection)).await?;
        match outcome {
            Err(error) if trouble::is_busy(&error) => Ok(false),
            outcome => outcome.map_err(|error| self.explain(error)),
        }
    }

    /// Finishes queued work, empties the log and closes the file. It may be called twice.
    pub async fn close(&self) {
        // Fails if there is no writer.
        let _ = self.checkpoint().await;
        lock(&self.0.readers).take();
        // Dropping the last sender ends the writer's loop.
        lock(&self.0.jobs).take();
        let writer = lock(&self.0.writer).take();
        if let Some(writer) = writer {
            // When the thread ends, its connection closes and the log is deleted.
            let _ = blocking(move || Ok(writer.join().is_ok())).await;
        }
    }

    /// The size of the database in bytes, without its log, whose size varies.
    pub async fn bytes(&self) -> Result<u64> {
        self.read(|view| view.database().page_bytes()).await
    }

    /// Explains a failure, and records the first sign of damage.
    fn explain(&self, error: Error) -> Error {
        let Some(path) = &self.0.place else { return error };
        let error = trouble::explained(error, path);
        if error.code() == Code::Damaged {
            let mut trouble = lock(&self.0.trouble);
            if !std::mem::replace(&mut trouble.is_known, true) {
                trouble.damage = Some(error.to_string());
            }
        }
        error
    }

    /// The same for a write: damage keeps what follows out, too.
    fn explain_write(&self, error: Error) -> Error {
        let error = self.explain(error);
        if error.code() == Code::Damaged {
            let mut trouble = lock(&self.0.trouble);
            trouble.damage = None;
            trouble.unwritable = Some(Error::damaged(error.to_string(), error.cause()));
        }
        error
    }

    fn queue(&self, job: WriteJob) -> Result<()> {
        match &*lock(&self.0.jobs) {
            Some(jobs) => jobs.send(job).map_err(|_| Error::closed()),
            None => Err(Error::closed()),
        }
    }
}

/// Runs jobs until the queue closes.
fn work_off(
    queue: &Receiver<WriteJob>,
    connection: &mut Connection,
    mut waiting: Option<(Reopen, Arc<AtomicBool>)>,
) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| queue.recv().ok()) {
        if job.unhurried {
            // The next job ends the pause: someone may be waiting for it.
            next = queue.recv_timeout(BREATH).ok();
        }
        let mut unwritable = None;
        if let Some((reopen, reads_in_turn)) = waiting.as_ref().filter(|_| job.writes) {
            match reopen() {
                Ok(writing) => {
                    *connection = writing;
                    reads_in_turn.store(false, Ordering::Release);
                    waiting = None;
                }
                Err(why) => unwritable = Some(why),
            }
        }
        let connection = unwritable.map_or(Ok(&mut *connection), Err);
        let _ = catch_unwind(AssertUnwindSafe(|| (job.work)(connection)));
    }
}

fn transaction<T: 'static>(
    store: Store,
    work: impl FnOnce(&Batch<'_>) -> Result<T> + Send + 'static,
    done: impl FnOnce(Result<T>) + Send + 'static,
) -> Work {
    Box::new(move |connection| {
        let connection = match connection {
            Ok(connection) => connection,
            Err(why) => return done(Err(store.explain_write(why))),
        };
        // A panic is a bug. It must not stop later jobs, and it must be reported.
        let outcome = catch_unwind(AssertUnwindSafe(|| in_transaction(connection, work)));
        let outcome = outcome.unwrap_or_else(|_| Err(Error::store("a bug in the engine stopped a write")));
        // After a long lock, jobs behind this one must not each wait as long again.
        let patience = if outcome.as_ref().is_err_and(trouble::is_busy) {
            Some(connection::BRIEFLY)
        } else {
            outcome.is_ok().then_some(connection::BUSY)
        };
        if let Some(patience) = patience {
            let _ = connection.busy_handler(Some(patience));
        }
        done(outcome.map_err(|error| store.explain_write(error)));
    })
}

pub(super) fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Batch<'_>) -> Result<T>,
) -> Result<T> {
    let failed = |error| Error::storing("failed to write to the history store", error);
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another version may have changed the file since it was opened.
    if schema::format(&tx).map_err(failed)? != schema::FORMAT {
        return Err(Error::format(
            "another version of pi-lossless-context has changed the history store: restart Pi",
        ));
    }
    let outcome = work(&Batch::new(&tx))?;
    tx.commit().map_err(failed)?;
    Ok(outcome)
}

fn in_view<T>(connection: &mut Connection, work: impl FnOnce(&View<'_>) -> Result<T>) -> Result<T> {
    // One transaction, so that all queries of `work` see the same state.
    let tx = connection
        .transaction()
        .map_err(|error| Error::storing("failed to read the history store", error))?;
    work(&View::new(&tx))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    async fn a_read_that_outlasts_its_store_leaves_no_connection_open() {
        let dir = tempfile::tempdir().unwrap();
        let writes = Store::open(Some(dir.path()), "a", "/project").unwrap();
        let Some(path) = writes.place().map(ToOwned::to_owned) else { panic!("it is in memory") };
        let reads = Store::read_only_at(&path, &CancellationToken::new()).unwrap().store;
        for store in [&reads, &writes] {
            let (go_on, waiting) = channel::<()>();
            let (begun, has_begun) = oneshot::channel();
            let read = store.read(move |_| {
                begun.send(()).unwrap();
                Ok(waiting.recv().is_err())
            });
            let closing = async {
                has_begun.await.unwrap();
                store.close().await;
                drop(go_on);
            };
            assert!(tokio::join!(read, closing).0.unwrap());
            assert_eq!(lock(&store.0.readers).as_ref().map_or(0, Vec::len), 0);
            assert_eq!(store.read(|_| Ok(())).await.unwrap_err().code(), Code::Closed);
        }
    }
}
