//! What watch events of claims mean for the protection of sources.

use super::SourceKey;
use super::book::{Book, Noticed};
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
    sweep: Sweep,
}

impl SourceObserver {
    /// Writes into `book`; wakes source claims and snapshots in their queues.
    pub fn new(book: Arc<Book>, claims: Queue<SourceKey>, snapshots: Queue<SourceKey>, driver: DriverCell) -> Self {
        Self { book, claims, snapshots, driver, sweep: Sweep::default() }
    }

    fn act(&self, noticed: Noticed) {
        if let Some(key) = noticed.source_claim {
            self.claims.add(key);
        }
        if let Some(key) = noticed.snapshot {
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
        let noticed = self.book.gone(&claim);
        self.act(noticed);
    }

    fn list_ends(&mut self) {
        let unseen = self.sweep.end(self.book.counted());
        for noticed in self.book.list_ended(&unseen) {
            self.act(noticed);
        }
    }
}
