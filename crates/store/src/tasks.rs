//! Work on other threads: it can be cancelled, and a panic in it must not stop the rest.

use std::any::Any;

use tokio_util::sync::CancellationToken;

use lcm_model::error::{Error, Result};

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
/// When `work` fails or panics, or the engine ends before it begins.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    // One type for all callers: the runtime's code is compiled, and downloaded, for each type that it runs.
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(|| Box::new(work()));
    match tokio::task::spawn_blocking(work).await.map(<Box<dyn Any + Send>>::downcast) {
        Ok(Ok(done)) => *done,
        Err(error) if error.is_panic() => Err(Error::storing("a bug in the engine stopped its work", error)),
        _ => Err(Error::closed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_model::error::Code;

    #[test]
    fn work_that_panics_is_a_bug_and_work_after_the_end_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let handle = runtime.handle().clone();
        let code = |outcome: Result<()>| outcome.unwrap_err().code();
        assert_eq!(code(handle.block_on(blocking(|| panic!("a test")))), Code::Store);
        drop(runtime);
        assert_eq!(code(handle.block_on(blocking(|| Ok(())))), Code::Closed);
    }
}
