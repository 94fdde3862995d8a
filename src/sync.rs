//! Locks that outlive a panic, and work on another thread: a fault in one task must not stop the others.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// Locks `mutex`, even if another thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether to go on.
///
/// # Errors
/// Once `cancel` is raised.
pub fn go_on(cancel: &CancellationToken) -> Result<()> {
    if cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

/// Runs `work` on a thread that may wait for the disk.
///
/// # Errors
/// When `work` fails or panics.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    const BUG: &str = "a bug in the engine stopped its work";
    // One type for all work: the runtime's code is compiled, and downloaded, once for each.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(|| Box::new(work()));
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| Error::storing(BUG, error))?;
    done.downcast().map_or_else(|_| Err(Error::store(BUG)), |done| *done)
}

/// Calls a function when it is dropped.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
