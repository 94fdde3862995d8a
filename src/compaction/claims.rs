//! Leases on summaries to be made, so that of several processes one pays for each.
//!
//! A lease is short and renewed as long as its owner works: one that was killed holds nobody up for long. Where nobody else can
//! look into the store there are none.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::ids::Hash;
use crate::store::{Place, Store};
use crate::text;

/// How long a lease holds that is not renewed.
const LEASE: Duration = Duration::from_secs(15);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(5);
/// Whoever has not come to an end with any of its leases for so long is not getting on, and renews them no more: a little longer
/// than a model call may take.
const STUCK: Duration = Duration::from_secs(150);
/// How often it is looked whether another's has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The leases of one piece of work.
#[derive(Clone)]
pub(super) struct Claims(Option<Arc<Owner>>);

struct Owner {
    name: String,
    store: Store,
    /// When a lease was taken or given back last.
    moved: Arc<Mutex<Instant>>,
    renewing: JoinHandle<()>,
}

/// One lease; it ends when this is dropped.
pub(super) struct Lease {
    span: Hash,
    owner: Option<Arc<Owner>>,
}

impl Claims {
    /// Must be called within a runtime.
    pub(super) fn new(store: &Store) -> Self {
        Self::renewed(store, RENEWAL, STUCK)
    }

    fn renewed(store: &Store, every: Duration, stuck: Duration) -> Self {
        if matches!(store.place(), Place::Memory) {
            return Self(None);
        }
        let name = Uuid::new_v4().simple().to_string();
        let moved = Arc::new(Mutex::new(Instant::now()));
        let (renewed, owner, last) = (store.clone(), name.clone(), Arc::clone(&moved));
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                if lock(&last).elapsed() > stuck {
                    continue;
                }
                let owner = owner.clone();
                // What can't be renewed ends: then the worst is that a summary is paid twice.
                let _ = renewed.write(move |batch| batch.summaries().renew_claims(&owner, end())).await;
            }
        });
        Self(Some(Arc::new(Owner { name, store: store.clone(), moved, renewing })))
    }

    /// A lease of each of `spans`; none where another holds it.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take(&self, spans: Vec<Hash>) -> Result<Vec<Option<Lease>>> {
        let had = match &self.0 {
            Some(owner) if !spans.is_empty() => {
                let (asked, name) = (spans.clone(), owner.name.clone());
                let claim = move |batch: &crate::store::Batch<'_>| {
                    batch.summaries().claim(&asked, &name, text::now(), end())
                };
                *lock(&owner.moved) = Instant::now();
                owner.store.write(claim).await?
            }
            _ => vec![true; spans.len()],
        };
        let lease = |(span, had): (Hash, bool)| had.then(|| Lease { span, owner: self.0.clone() });
        Ok(spans.into_iter().zip(had).map(lease).collect())
    }

    /// Waits until nobody else holds a lease of `span`.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn wait(&self, span: Hash, cancel: &CancellationToken) -> Result<()> {
        let Some(owner) = &self.0 else { return Ok(()) };
        loop {
            let name = owner.name.clone();
            if !owner.store.read(move |view| view.summaries().is_claimed(span, &name, text::now())).await? {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = cancel.cancelled() => return Err(Error::cancelled()),
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Lease {
    /// What there is to give back, by whoever does that together with what the lease was for.
    pub(super) fn ended(mut self) -> Option<(Hash, String)> {
        let owner = self.owner.take()?;
        *lock(&owner.moved) = Instant::now();
        Some((self.span, owner.name.clone()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        let (span, name) = (self.span, owner.name.clone());
        *lock(&owner.moved) = Instant::now();
        // A store that is closed is nobody's any more, and the lease ends by itself.
        let _ = owner.store.post(move |batch| batch.summaries().release(span, &name), drop);
    }
}

fn lock(moved: &Mutex<Instant>) -> std::sync::MutexGuard<'_, Instant> {
    moved.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a lease ends that is given now, in ms.
fn end() -> i64 {
    text::now() + i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFTEN: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn who_gets_on_renews_its_leases_and_who_is_stuck_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path()), "project", "/project").unwrap();
        let (one, two) = (Hash::plain(b"one"), Hash::plain(b"two"));
        let stuck = Claims::renewed(&store, OFTEN, Duration::ZERO);
        let alive = Claims::renewed(&store, OFTEN, Duration::MAX);
        let _leases = (stuck.take(vec![one]).await.unwrap(), alive.take(vec![two]).await.unwrap());
        let later = end() + 1;
        let is_held =
            |span: Hash| store.read(move |view| view.summaries().is_claimed(span, "another", later));
        while !is_held(two).await.unwrap() {
            tokio::time::sleep(OFTEN).await;
        }
        assert!(!is_held(one).await.unwrap());
    }
}
