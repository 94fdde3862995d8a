//! Leases on summaries to be made, so that of several processes one pays for each.
//!
//! A lease is short and renewed as long as its owner works: one that was killed holds nobody up for long. Where nobody else can
//! look into the store there are none.

use std::sync::Arc;
use std::time::Duration;

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
/// How often it is looked whether another's has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The leases of one piece of work.
#[derive(Clone)]
pub(super) struct Claims(Option<Arc<Owner>>);

struct Owner {
    name: String,
    store: Store,
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
        if matches!(store.place(), Place::Memory) {
            return Self(None);
        }
        let name = Uuid::new_v4().simple().to_string();
        let (renewed, owner) = (store.clone(), name.clone());
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL).await;
                let owner = owner.clone();
                // What can't be renewed ends: then the worst is that a summary is paid twice.
                let _ = renewed.write(move |batch| batch.renew_claims(&owner, end())).await;
            }
        });
        Self(Some(Arc::new(Owner { name, store: store.clone(), renewing })))
    }

    /// A lease of each of `spans`; none where another holds it.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take(&self, spans: Vec<Hash>) -> Result<Vec<Option<Lease>>> {
        let had = match &self.0 {
            Some(owner) if !spans.is_empty() => {
                let (asked, name) = (spans.clone(), owner.name.clone());
                let claim =
                    move |batch: &crate::store::Batch<'_>| batch.claim(&asked, &name, text::now(), end());
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
            if !owner.store.read(move |view| view.is_claimed(span, &name, text::now())).await? {
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

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        let (span, name) = (self.span, owner.name.clone());
        // A store that is closed is nobody's any more, and the lease ends by itself.
        let _ = owner.store.post(move |batch| batch.release(span, &name), drop);
    }
}

/// When a lease ends that is given now, in ms.
fn end() -> i64 {
    text::now() + i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}
