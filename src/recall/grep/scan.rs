//! Searches a history on all cores and returns results in order.
//!
//! One thread reads rows, newest first; the others decompress and search them. Results come back in reading
//! order, so they do not depend on thread timing. Read-ahead is bounded.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::store::Packed;

/// The most threads.
const MOST_THREADS: usize = 8;
/// Rows per batch, at first and at most. The first answer must not wait for a large batch.
const FIRST: usize = 8;
const MOST: usize = 256;
/// Approximate compressed bytes per batch.
const MOST_BYTES: usize = 256 * 1024;
/// Batches in progress per thread.
const AHEAD: usize = 3;

type Batch = (usize, Vec<Packed>);
type Found<R> = (usize, Result<Vec<R>>);

/// Runs `look` on what `read` provides, on all cores, and passes its results to `found` in order, until that
/// returns `false`.
pub(super) fn in_order<R: Send>(
    read: impl FnOnce(&mut dyn FnMut(Packed) -> Result<bool>) -> Result<()>,
    look: impl Fn(Packed) -> Result<Option<R>> + Sync,
    found: impl FnMut(R) -> Result<bool>,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let stop = AtomicBool::new(false);
    let ((jobs, todo), (out, done)) = (channel::<Batch>(), channel::<Found<R>>());
    let todo = Mutex::new(todo);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (todo, look, stop, out) = (&todo, &look, &stop, out.clone());
            scope.spawn(move || work_off(todo, &out, look, stop));
        }
        drop(out);
        let mut lane = Lane {
            jobs: Some(jobs),
            done,
            found,
            batch: Vec::new(),
            bytes: 0,
            sent: 0,
            taken: 0,
            early: BTreeMap::new(),
            ahead: threads * AHEAD,
        };
        let outcome = read(&mut |packed| lane.push(packed)).and_then(|()| lane.finish());
        stop.store(true, Ordering::Relaxed);
        drop(lane);
        outcome
    })
}

fn work_off<R>(
    todo: &Mutex<Receiver<Batch>>,
    out: &Sender<Found<R>>,
    look: impl Fn(Packed) -> Result<Option<R>>,
    stop: &AtomicBool,
) {
    let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok((number, batch)) = next() {
        let going_on = batch.into_iter().take_while(|_| !stop.load(Ordering::Relaxed));
        let looked = catch_unwind(AssertUnwindSafe(|| {
            going_on.filter_map(|packed| look(packed).transpose()).collect::<Result<Vec<R>>>()
        }));
        // Otherwise the reader would wait for this batch forever.
        let looked = looked.unwrap_or_else(|_| Err(Error::store("a bug in the engine stopped a search")));
        if out.send((number, looked)).is_err() {
            break;
        }
    }
}

/// The reader's state: batches sent, and results that came back.
struct Lane<R, F> {
    jobs: Option<Sender<Batch>>,
    done: Receiver<Found<R>>,
    found: F,
    batch: Vec<Packed>,
    bytes: usize,
    sent: usize,
    taken: usize,
    /// Results that came back early.
    early: BTreeMap<usize, Result<Vec<R>>>,
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
        self.send();
        while self.sent - self.taken >= self.ahead {
            if !self.take()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&mut self) {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if let Some(jobs) = &self.jobs
            && jobs.send((self.sent, batch)).is_ok()
        {
            self.sent += 1;
        }
    }

    /// Takes the next result in order.
    fn take(&mut self) -> Result<bool> {
        let looked = loop {
            if let Some(looked) = self.early.remove(&self.taken) {
                break looked;
            }
            let (number, looked) = self.done.recv().map_err(|_| Error::store("a search lost its threads"))?;
            self.early.insert(number, looked);
        };
        self.taken += 1;
        for one in looked? {
            if !(self.found)(one)? {
                // Later results are not needed.
                self.taken = self.sent;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.send();
        }
        while self.taken < self.sent && self.take()? {}
        Ok(())
    }
}
