//! Searches a history on all cores and returns results in order.
//!
//! Rows are read in batches; each is decompressed and searched by several threads, a part each. Results come in reading
//! order, so they do not depend on the threads' timing.

use std::num::NonZero;
use std::thread;

use lcm_model::error::{Error, Result};
use lcm_store::Packed;

/// The most threads.
const MOST_THREADS: usize = 8;
/// Rows per thread in a batch, at first and at most. The first answer must not wait for a large batch.
const FIRST: usize = 8;
const MOST: usize = 1024;
/// Approximate compressed bytes per thread in a batch.
const MOST_BYTES: usize = 1024 * 1024;

/// Runs `look` on what `read` provides, on all cores, and passes its results to `found` in order, until that
/// returns `false`.
pub(super) fn in_order<R: Send>(
    read: impl FnOnce(&mut dyn FnMut(Packed) -> Result<bool>) -> Result<()>,
    look: impl Fn(Packed) -> Result<Option<R>> + Sync,
    mut found: impl FnMut(R) -> Result<bool>,
) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let (mut batch, mut bytes, mut most) = (Vec::new(), 0, threads * FIRST);
    let mut goes_on = true;
    let mut search = |batch: Vec<Packed>| -> Result<bool> {
        for one in looked(batch, threads, &look)? {
            if !found(one)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    read(&mut |packed| {
        bytes += packed.size();
        batch.push(packed);
        if batch.len() >= most || bytes >= threads * MOST_BYTES {
            (bytes, most) = (0, (2 * most).min(threads * MOST));
            goes_on = search(std::mem::take(&mut batch))?;
        }
        Ok(goes_on)
    })?;
    if goes_on {
        search(batch)?;
    }
    Ok(())
}

/// What `look` returns for a batch, in order.
fn looked<R: Send>(
    batch: Vec<Packed>,
    threads: usize,
    look: &(impl Fn(Packed) -> Result<Option<R>> + Sync),
) -> Result<Vec<R>> {
    let share = batch.len().div_ceil(threads);
    let mut rest = batch.into_iter();
    let parts = std::iter::from_fn(|| Some(rest.by_ref().take(share).collect::<Vec<_>>()));
    let joined: Vec<_> = thread::scope(|scope| {
        let work = |part: Vec<Packed>| {
            let of_part = move || part.into_iter().filter_map(|packed| look(packed).transpose()).collect();
            scope.spawn(of_part)
        };
        let workers: Vec<_> = parts.take_while(|part| !part.is_empty()).map(work).collect();
        workers.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Vec::new();
    for part in joined {
        let part: Result<Vec<R>> = part.map_err(|_| Error::store("a bug in the engine stopped a search"))?;
        all.extend(part?);
    }
    Ok(all)
}
