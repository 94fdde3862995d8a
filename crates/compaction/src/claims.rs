//! Claims on summaries to be made, so that only one of several processes pays for each.
//!
//! A claim is short and renewed while its owner works, so a killed process delays others only briefly.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use lcm_model::error::{Error, Result};
use lcm_model::ids::Hash;
use lcm_model::locks::lock;
use lcm_model::text;
use lcm_store::{Batch, Store, View};

/// How long a claim is valid without renewal.
const LEASE: Duration = Duration::from_secs(15);
/// How often claims are renewed.
const RENEWAL: Duration = Duration::from_secs(5);
/// After this long without finishing any claimed summary, an owner counts as stuck and renews its claims no
/// more. It is a little longer than a model call may take.
const STUCK: Duration = Duration::from_secs(150);
/// How often to check whether another's claim has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The claims of one piece of work.
#[derive(Clone)]
pub(super) struct Claims(Arc<Owner>);

struct Owner {
    name: String,
    store: Store,
    held: Arc<Mutex<Held>>,
    renewing: JoinHandle<()>,
}

/// How many claims an owner has, and when one was last taken or released.
struct Held(usize, Instant);

/// One claim; dropping it releases it.
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
        let name = Uuid::new_v4().simple().to_string();
        let held = Arc::new(Mutex::new(Held(0, Instant::now())));
        let (renewed, owner, had) = (store.clone(), name.clone(), Arc::clone(&held));
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                // Without a claim, no other process waits for this one's lock.
                let is_idle = |Held(claims, moved): &Held| *claims == 0 || moved.elapsed() > stuck;
                if is_idle(&lock(&had)) {
                    continue;
                }
                let owner = owner.clone();
                // A claim that can't be renewed ends; at worst a summary is paid for twice.
                let _ = renewed.write(move |batch| batch.summaries().renew_claims(&owner, end())).await;
            }
        });
        Self(Arc::new(Owner { name, store: store.clone(), held, renewing }))
    }

    /// Claims each of `spans`; `None` for those that another process holds.
    pub(super) async fn take(&self, spans: Vec<Hash>) -> Result<Vec<Option<Lease>>> {
        if spans.is_empty() {
            return Ok(Vec::new());
        }
        let (asked, owner) = (spans.clone(), Arc::clone(&self.0));
        let claim = move |batch: &Batch<'_>| batch.summaries().claim(&asked, &owner.name, text::now(), end());
        let had = self.0.store.write(claim).await?;
        self.0.moved(|claims| claims + had.iter().filter(|had| **had).count());
        let lease = |(span, had): (Hash, bool)| had.then(|| Lease { span, owner: Some(Arc::clone(&self.0)) });
        Ok(spans.into_iter().zip(had).map(lease).collect())
    }

    /// Waits until no other process holds a claim on `span`.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn wait(&self, span: Hash, cancel: &CancellationToken) -> Result<()> {
        loop {
            let owner = Arc::clone(&self.0);
            let claimed = move |view: &View<'_>| view.summaries().is_claimed(span, &owner.name, text::now());
            if !self.0.store.read(claimed).await? {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = cancel.cancelled() => return Err(Error::cancelled()),
            }
        }
    }
}

impl Owner {
    fn moved(&self, count: impl FnOnce(usize) -> usize) {
        let mut held = lock(&self.held);
        *held = Held(count(held.0), Instant::now());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Lease {
    /// What to release, for callers that release it in the same transaction as the result.
    pub(super) fn ended(mut self) -> Option<(Hash, String)> {
        let owner = self.owner.take()?;
        owner.moved(|claims| claims - 1);
        Some((self.span, owner.name.clone()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        let (span, name) = (self.span, owner.name.clone());
        owner.moved(|claims| claims - 1);
        // If the store is closed, the claim expires by itself.
        let _ = owner.store.post(move |batch| batch.summaries().release(span, &name), drop);
    }
}

/// When a claim taken now ends, in ms.
fn end() -> i64 {
    text::now() + i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFTEN: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn only_an_owner_that_makes_progress_renews_its_claims() {
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
