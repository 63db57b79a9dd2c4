//! What watch events of claims mean for the protection of sources.

use super::SourceKey;
use super::book::{Book, Noticed};
use super::worker::{ProtectionRoom, Surroundings};
use crate::kube_api::queue::Queue;
use crate::kube_api::sweep::Sweep;
use crate::kube_api::watch::Observer;
use crate::model::Claim;
use crate::model::driver::DriverCell;
use crate::model::meta::MetaExt;
use std::sync::Arc;
use tokio::time::Instant;

/// Feeds the book and the queues from the claim watch.
pub struct SourceObserver {
    book: Arc<Book>,
    claims: Queue<SourceKey>,
    snapshots: Queue<SourceKey>,
    driver: DriverCell,
    surroundings: Arc<dyn Surroundings>,
    sweep: Sweep,
}

impl SourceObserver {
    /// Writes into the room's book; wakes source claims and snapshots in its queues.
    pub fn new(room: &ProtectionRoom) -> Self {
        Self {
            book: Arc::clone(&room.book),
            claims: room.claims.clone(),
            snapshots: room.snapshots.clone(),
            driver: room.driver.clone(),
            surroundings: Arc::clone(&room.surroundings),
            sweep: Sweep::default(),
        }
    }

    fn act(&self, noticed: Noticed) {
        if let Some(key) = noticed.source_claim {
            self.claims.add(key);
        }
        if let Some(key) = noticed.snapshot
            && (!noticed.foreign || self.surroundings.protects_snapshot(&key))
        {
            self.snapshots.add(key);
        }
    }
}

impl Observer<Claim> for SourceObserver {
    fn list_begins(&mut self) {
        self.sweep.begin();
    }

    fn seen(&mut self, claim: Claim, _fresh: bool) {
        let noticed = self.book.notice(&claim, &self.driver.get(), Instant::now());
        if claim.source().is_some() {
            self.sweep.saw(claim.metadata.uid());
        }
        self.act(noticed);
    }

    fn gone(&mut self, claim: Claim) {
        let noticed = self.book.gone(&claim, &self.driver.get());
        self.act(noticed);
    }

    fn list_ends(&mut self) {
        let unseen = self.sweep.end(self.book.counted());
        for noticed in self.book.list_ended(&unseen) {
            self.act(noticed);
        }
    }
}
