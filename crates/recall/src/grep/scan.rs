//! Searches a history on all cores and returns results in order.
//!
//! One thread reads rows, newest first; the others decompress and search them. Results come back in reading
//! order, so they do not depend on thread timing. Read-ahead is bounded.

use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lcm_model::error::{Error, Result};
use lcm_model::locks::lock;
use lcm_store::Packed;

/// The most threads.
const MOST_THREADS: usize = 8;
/// Rows per batch, at first and at most. The first answer must not wait for a large batch.
const FIRST: usize = 8;
const MOST: usize = 256;
/// Approximate compressed bytes per batch.
const MOST_BYTES: usize = 256 * 1024;
/// Batches in progress per thread.
const AHEAD: usize = 3;

/// A batch, and where its results are awaited.
type ScanJob<R> = (Vec<Packed>, Sender<Result<Vec<R>>>);

/// Runs `look` on what `read` provides, on all cores, and passes its results to `found` in order, until that
/// returns `false`.
pub(super) fn in_order<R: Send>(
    read: impl FnOnce(&mut dyn FnMut(Packed) -> Result<bool>) -> Result<()>,
    look: impl Fn(Packed) -> Result<Option<R>> + Sync,
    found: impl FnMut(R) -> Result<bool>,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let stop = AtomicBool::new(false);
    let (jobs, todo) = channel::<ScanJob<R>>();
    let todo = Mutex::new(todo);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work_off(&todo, &look, &stop));
        }
        let ahead = threads * AHEAD;
        let mut lane =
            Lane { jobs, found, batch: Vec::new(), bytes: 0, sent: 0, waiting: VecDeque::new(), ahead };
        let outcome = read(&mut |packed| lane.push(packed)).and_then(|()| lane.finish());
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

fn work_off<R>(
    todo: &Mutex<Receiver<ScanJob<R>>>,
    look: impl Fn(Packed) -> Result<Option<R>>,
    stop: &AtomicBool,
) {
    let next = || lock(todo).recv();
    while let Ok((batch, out)) = next() {
        let going_on = batch.into_iter().take_while(|_| !stop.load(Ordering::Relaxed));
        let looked = catch_unwind(AssertUnwindSafe(|| {
            going_on.filter_map(|packed| look(packed).transpose()).collect::<Result<Vec<R>>>()
        }));
        let looked = looked.unwrap_or_else(|_| Err(Error::store("a bug in the engine stopped a search")));
        // Nobody waits for it any more if the answer is full.
        let _ = out.send(looked);
    }
}

/// The reader's state.
struct Lane<R, F> {
    jobs: Sender<ScanJob<R>>,
    found: F,
    batch: Vec<Packed>,
    bytes: usize,
    sent: usize,
    /// The results of the batches in progress, in order.
    waiting: VecDeque<Receiver<Result<Vec<R>>>>,
    ahead: usize,
}

impl<R, F: FnMut(R) -> Result<bool>> Lane<R, F> {
    fn push(&mut self, packed: Packed) -> Result<bool> {
        self.bytes += packed.size();
        self.batch.push(packed);
        let most = (FIRST << self.sent.min(8)).min(MOST);
        if self.batch.len() < most && self.bytes < MOST_BYTES {
            return Ok(true);
        }
        self.send()?;
        while self.waiting.len() >= self.ahead {
            if !self.take()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&mut self) -> Result<()> {
        let (out, done) = channel();
        self.jobs.send((std::mem::take(&mut self.batch), out)).map_err(|_| lost())?;
        self.bytes = 0;
        self.sent += 1;
        self.waiting.push_back(done);
        Ok(())
    }

    /// Takes the results of the next batch. Returns whether more are wanted.
    fn take(&mut self) -> Result<bool> {
        let Some(next) = self.waiting.pop_front() else { return Ok(true) };
        for one in next.recv().map_err(|_| lost())?? {
            if !(self.found)(one)? {
                self.waiting.clear();
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.send()?;
        }
        while !self.waiting.is_empty() && self.take()? {}
        Ok(())
    }
}

fn lost() -> Error {
    Error::store("a search lost its threads")
}
