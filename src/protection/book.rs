//! The protection room's memory: sources in use, and source claims that wait to be released.

use super::index::{Kind, Sources};
use super::{SourceKey, clone};
use crate::model::claim::CLONE_FINALIZER;
use crate::model::meta::MetaExt;
use crate::model::{Claim, Driver};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// A source claim that is being deleted and carries our finalizer.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// As last seen.
    pub claim: Arc<Claim>,
    /// When its deletion was first seen here.
    pub since: Instant,
}

/// The memory; shared by the watch and the workers.
#[derive(Debug, Default)]
pub struct Book(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    sources: Sources,
    waiting: BTreeMap<SourceKey, Waiting>,
    /// A claim list has been seen whole, so that "not in use" can be believed (weak point W10 a).
    complete: bool,
}

/// What a claim's event means here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Noticed {
    /// A source claim to look at.
    pub source_claim: Option<SourceKey>,
    /// A snapshot that may have lost its last user.
    pub snapshot: Option<SourceKey>,
    /// The claim is another driver's: the snapshot is our business only if we protect it.
    pub foreign: bool,
}

impl Book {
    /// Takes in a claim of any driver.
    pub fn notice(&self, claim: &Claim, driver: &Driver, now: Instant) -> Noticed {
        let mut inner = self.lock();
        let freed = inner.sources.put(claim);
        let foreign = is_foreign(claim, driver);
        let mut noticed = Noticed { foreign, ..split(freed) };
        let key = SourceKey::new(claim.metadata.namespace(), claim.metadata.name());
        // Only claims of our driver: others are released by their own provisioner (weak point W36).
        if !foreign && clone::is_candidate(claim) && claim.metadata.has_finalizer(CLONE_FINALIZER) {
            let since = inner.waiting.get(&key).map_or(now, |waiting| waiting.since);
            inner.waiting.insert(key.clone(), Waiting { claim: Arc::new(claim.clone()), since });
            noticed.source_claim = Some(key);
        } else {
            inner.waiting.remove(&key);
        }
        noticed
    }

    /// A claim is gone.
    pub fn gone(&self, claim: &Claim, driver: &Driver) -> Noticed {
        let mut inner = self.lock();
        inner.waiting.remove(&SourceKey::new(claim.metadata.namespace(), claim.metadata.name()));
        let freed = inner.sources.remove(claim.metadata.uid());
        Noticed { foreign: is_foreign(claim, driver), ..split(freed) }
    }

    /// A list has ended: claims that are counted and were not in it are gone.
    pub fn list_ended(&self, unseen: &[String]) -> Vec<Noticed> {
        let mut inner = self.lock();
        inner.complete = true;
        unseen.iter().map(|uid| split(inner.sources.remove(uid))).collect()
    }

    /// UIDs of the claims that are counted.
    pub fn counted(&self) -> Vec<String> {
        self.lock().sources.claims()
    }

    /// The source claim, if it waits to be released.
    pub fn waiting(&self, key: &SourceKey) -> Option<Waiting> {
        self.lock().waiting.get(key).cloned()
    }

    /// How many unfinished claims name this source; `None` while that is not known completely.
    pub fn users(&self, kind: Kind, key: &SourceKey) -> Option<usize> {
        let inner = self.lock();
        inner.complete.then(|| inner.sources.users(kind, key))
    }

    /// Number of all entries of any kind: what this memory costs.
    pub fn entries(&self) -> usize {
        let inner = self.lock();
        inner.sources.entries() + inner.waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the claim names another driver's provisioner; one that names none may become anybody's.
fn is_foreign(claim: &Claim, driver: &Driver) -> bool {
    claim.named_provisioner().is_some_and(|named| !driver.is_known_as(named))
}

fn split(freed: Option<(Kind, SourceKey)>) -> Noticed {
    match freed {
        Some((Kind::Claim, key)) => Noticed { source_claim: Some(key), ..Noticed::default() },
        Some((Kind::Snapshot, key)) => Noticed { snapshot: Some(key), ..Noticed::default() },
        None => Noticed::default(),
    }
}
