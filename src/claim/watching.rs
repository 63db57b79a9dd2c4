//! What watch events of claims and classes mean for the claim room.

use super::book::{Book, Noticed};
use super::classes::Classes;
use super::grants::Grants;
use super::worker::sources::SourceViews;
use crate::kube_api::queue::Queue;
use crate::kube_api::sweep::Sweep;
use crate::kube_api::watch::Observer;
use crate::model::driver::DriverCell;
use crate::model::grant::Grant;
use crate::model::meta::MetaExt;
use crate::model::{Claim, Class};
use std::sync::Arc;

/// Feeds the book and the queue from the claim watch.
pub struct ClaimObserver {
    book: Arc<Book>,
    sources: Arc<SourceViews>,
    queue: Queue<String>,
    driver: DriverCell,
    sweep: Sweep,
}

impl ClaimObserver {
    /// Writes into `book`, wakes keys of `queue`, and ends views of claims in `sources`.
    pub fn new(book: Arc<Book>, sources: Arc<SourceViews>, queue: Queue<String>, driver: DriverCell) -> Self {
        Self { book, sources, queue, driver, sweep: Sweep::default() }
    }

    fn act(&self, uid: &str, noticed: Noticed) {
        match noticed {
            Noticed::Look => self.queue.add(uid.to_owned()),
            Noticed::Left => self.queue.drop_key(&uid.to_owned()),
            Noticed::Nothing => {}
        }
    }

    /// A claim that got its volume may be the source that a clone waits for.
    fn wake_clones(&self, source: &Claim) {
        let meta = &source.metadata;
        let waiting = self.book.waiting(|claim| {
            claim.source().is_some_and(|wanted| {
                wanted.kind == "PersistentVolumeClaim"
                    && wanted.namespace == meta.namespace()
                    && wanted.name == meta.name()
            })
        });
        for uid in waiting {
            self.queue.add(uid);
        }
    }
}

impl Observer<Claim> for ClaimObserver {
    fn list_begins(&mut self) {
        self.sources.claims_unknown();
        self.sweep.begin();
    }

    fn seen(&mut self, claim: Claim, fresh: bool) {
        self.sources.claim_changed(&claim);
        let uid = claim.metadata.uid().to_owned();
        if fresh && claim.phase() == "Bound" {
            self.wake_clones(&claim);
        }
        let noticed = self.book.notice(claim, &self.driver.get());
        if self.book.claim(&uid).is_some() {
            self.sweep.saw(&uid);
        }
        self.act(&uid, noticed);
    }

    fn gone(&mut self, claim: Claim) {
        self.sources.claim_gone(&claim);
        let uid = claim.metadata.uid();
        let noticed = self.book.gone(uid);
        self.act(uid, noticed);
    }

    fn list_ends(&mut self) {
        for uid in self.sweep.end(self.book.held()) {
            let noticed = self.book.gone(&uid);
            self.act(&uid, noticed);
        }
    }
}

/// Feeds the class book and wakes claims that wait for a class.
pub struct ClassObserver {
    book: Arc<Book>,
    classes: Arc<Classes>,
    queue: Queue<String>,
    sweep: Sweep,
}

impl ClassObserver {
    /// Writes into `classes` and wakes claims of `book` through `queue`.
    pub fn new(book: Arc<Book>, classes: Arc<Classes>, queue: Queue<String>) -> Self {
        Self { book, classes, queue, sweep: Sweep::default() }
    }
}

impl Observer<Class> for ClassObserver {
    fn list_begins(&mut self) {
        self.sweep.begin();
    }

    fn seen(&mut self, class: Class, _fresh: bool) {
        let name = class.metadata.name().to_owned();
        self.sweep.saw(&name);
        if self.classes.put(class) {
            for uid in self.book.waiting(|claim| claim.class_name() == name) {
                self.queue.add(uid);
            }
        }
    }

    fn gone(&mut self, class: Class) {
        self.classes.remove(class.metadata.name());
    }

    fn list_ends(&mut self) {
        for name in self.sweep.end(self.classes.names()) {
            self.classes.remove(&name);
        }
    }
}

/// Feeds the grants and wakes claims that copy from a namespace whose grants changed.
pub struct GrantObserver {
    book: Arc<Book>,
    grants: Arc<Grants>,
    queue: Queue<String>,
    sweep: Sweep,
}

impl GrantObserver {
    /// Writes into `grants` and wakes claims of `book` through `queue`.
    pub fn new(book: Arc<Book>, grants: Arc<Grants>, queue: Queue<String>) -> Self {
        Self { book, grants, queue, sweep: Sweep::default() }
    }

    fn wake(&self, namespace: &str) {
        let copies = |claim: &Claim| {
            claim.metadata.namespace() != namespace && claim.source().is_some_and(|one| one.namespace == namespace)
        };
        for uid in self.book.waiting(copies) {
            self.queue.add(uid);
        }
    }
}

impl Observer<Grant> for GrantObserver {
    fn list_begins(&mut self) {
        self.sweep.begin();
    }

    fn seen(&mut self, grant: Grant, _fresh: bool) {
        let namespace = grant.metadata.namespace().to_owned();
        self.sweep.saw(&grant.metadata.key());
        self.grants.put(grant);
        self.wake(&namespace);
    }

    fn gone(&mut self, grant: Grant) {
        self.grants.remove(&grant.metadata.key());
    }

    fn list_ends(&mut self) {
        for key in self.sweep.end(self.grants.keys()) {
            self.grants.remove(&key);
        }
    }
}
