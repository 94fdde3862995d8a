//! Locks that outlive a panic, and work on another thread: a fault in one task must not stop the others.

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
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::storing("a bug in the engine stopped its work", error))?
}

/// Calls a function when it is dropped.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
