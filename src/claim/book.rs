//! The claim room's memory: the claims that still need a volume, what may exist for them, and what was just saved.
//!
//! Promises:
//! - a claim that needs nothing any more is forgotten, whatever its number in the cluster;
//! - a creation is never forgotten because its claim vanished or changed;
//! - two claims never hold the same volume name at once (weak point W6).
//!
//! No I/O: the watch writes into it, the worker reads it.

use super::hold_back::{Fingerprint, HoldBack};
use super::plan;
use super::source::SourceKind;
use super::unresolved::Creation;
use crate::model::meta::{MetaExt, is_older};
use crate::model::{Claim, Driver};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The memory; shared by the watch and the worker.
#[derive(Debug)]
pub struct Book(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    claims: BTreeMap<String, Arc<Claim>>,
    creations: BTreeMap<String, Creation>,
    /// Claims that were deleted while their creation was open.
    deleted: BTreeSet<String>,
    /// Claim UID to volume name, from the saved volume object until the claim leaves the book: events that arrive
    /// between save and bind must not start a second creation (weak point W8).
    saved: BTreeMap<String, String>,
    holds: HoldBack,
    /// Volume name to the claim UID that uses it, for creations and saved volumes.
    names: BTreeMap<String, String>,
    /// Claims that have had their `Provisioning` event, so that retries do not repeat it (W44).
    announced: BTreeSet<String>,
    /// Claims that were told that their class does not exist.
    classless: BTreeSet<String>,
    /// Claim UIDs whose durable record has to be removed.
    records_due: BTreeSet<String>,
    /// Claims that were seen bound to the volume object that is still being saved: it was stored, whatever was heard.
    bound: BTreeSet<String>,
}

/// What a watch event means for a claim that the room may care about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// Something that a decision depends on changed: look at it now.
    Look,
    /// Nothing to do.
    Nothing,
    /// It left the room's interest and nothing is open: drop it from the queue.
    Left,
}

impl Book {
    /// An empty memory; `hold_time` is how long a hopeless request is held back.
    pub fn new(hold_time: Duration) -> Self {
        Self(Mutex::new(Inner {
            claims: BTreeMap::new(),
            creations: BTreeMap::new(),
            deleted: BTreeSet::new(),
            saved: BTreeMap::new(),
            holds: HoldBack::new(hold_time),
            names: BTreeMap::new(),
            announced: BTreeSet::new(),
            classless: BTreeSet::new(),
            records_due: BTreeSet::new(),
            bound: BTreeSet::new(),
        }))
    }

    /// Takes in a claim as the API has it.
    pub fn notice(&self, claim: Claim, driver: &Driver) -> Noticed {
        let uid = claim.metadata.uid().to_owned();
        let wanted = plan::is_ours(&claim, driver) && !claim.has_volume();
        let mut inner = self.lock();
        if inner.claims.get(&uid).is_some_and(|old| is_older(claim.metadata.version(), old.metadata.version())) {
            return Noticed::Nothing;
        }
        if !wanted {
            inner.notice_bound(&uid, &claim);
            return inner.leave(&uid);
        }
        let changed = inner.claims.get(&uid).is_none_or(|old| differs(old, &claim));
        inner.claims.insert(uid, Arc::new(claim));
        if changed { Noticed::Look } else { Noticed::Nothing }
    }

    /// The claim is gone from the API.
    pub fn gone(&self, uid: &str) -> Noticed {
        let mut inner = self.lock();
        if inner.creations.contains_key(uid) {
            inner.deleted.insert(uid.to_owned());
        }
        inner.leave(uid)
    }

    /// Whether the claim was deleted while its creation was open. One that left the book because it is bound was not.
    pub fn is_deleted(&self, uid: &str) -> bool {
        self.lock().deleted.contains(uid)
    }

    /// UIDs of all held claims, for the sweep at the end of a list.
    pub fn held(&self) -> Vec<String> {
        self.lock().claims.keys().cloned().collect()
    }

    /// The claim as last seen.
    pub fn claim(&self, uid: &str) -> Option<Arc<Claim>> {
        self.lock().claims.get(uid).cloned()
    }

    /// UIDs of held claims for which `matches` holds, to wake them when what they wait for appears.
    pub fn waiting(&self, matches: impl Fn(&Claim) -> bool) -> Vec<String> {
        self.lock().claims.iter().filter(|(_, claim)| matches(claim)).map(|(uid, _)| uid.clone()).collect()
    }

    /// Name of the class of a claim, also of one that is gone while its creation is open; empty if nothing is known.
    pub fn class_name(&self, uid: &str) -> String {
        let inner = self.lock();
        let of_claim = inner.claims.get(uid).map(|claim| claim.class_name());
        of_claim
            .or_else(|| inner.creations.get(uid).map(|creation| creation.facts().class_name.as_str()))
            .unwrap_or_default()
            .to_owned()
    }

    /// What may exist for this claim.
    pub fn creation(&self, uid: &str) -> Option<Creation> {
        self.lock().creations.get(uid).cloned()
    }

    /// How many creations are open, by kind: unresolved, created but unsaved, to be discarded.
    pub fn open_creations(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for creation in self.lock().creations.values() {
            counts[match creation {
                Creation::Unresolved(_) => 0,
                Creation::Created(_) => 1,
                Creation::Discarding(_) => 2,
            }] += 1;
        }
        counts
    }

    /// How many open creations copy this source.
    pub fn open_copies(&self, kind: SourceKind, namespace: &str, name: &str) -> usize {
        let is_copy = |creation: &&Creation| {
            creation
                .facts()
                .source
                .as_ref()
                .is_some_and(|source| source.kind == kind && source.namespace == namespace && source.name == name)
        };
        self.lock().creations.values().filter(is_copy).count()
    }

    /// Every open creation, for the hand-over at a stop.
    pub fn all_creations(&self) -> Vec<(String, Creation)> {
        self.lock().creations.iter().map(|(uid, creation)| (uid.clone(), creation.clone())).collect()
    }

    /// Reserves the volume name for a claim. `Err` names the claim UID that uses it already.
    pub fn reserve(&self, uid: &str, volume_name: &str) -> Result<(), String> {
        let mut inner = self.lock();
        match inner.names.get(volume_name) {
            Some(owner) if owner != uid => Err(owner.clone()),
            Some(_) => Ok(()),
            None => {
                inner.names.insert(volume_name.to_owned(), uid.to_owned());
                Ok(())
            }
        }
    }

    /// Gives a reserved name back when the creation did not begin.
    pub fn release(&self, uid: &str, volume_name: &str) {
        let mut inner = self.lock();
        if !inner.creations.contains_key(uid) && !inner.saved.contains_key(uid) {
            inner.free(uid, volume_name);
        }
    }

    /// Records new knowledge.
    pub fn set(&self, uid: &str, creation: Creation) {
        let mut inner = self.lock();
        inner.bound.remove(uid);
        inner.names.insert(creation.volume_name().to_owned(), uid.to_owned());
        inner.creations.insert(uid.to_owned(), creation);
    }

    /// Nothing exists any more, or the volume belongs to somebody else.
    pub fn clear(&self, uid: &str) {
        let mut inner = self.lock();
        inner.deleted.remove(uid);
        inner.bound.remove(uid);
        if let Some(creation) = inner.creations.remove(uid) {
            inner.free(uid, creation.volume_name());
        }
    }

    /// The volume object is confirmed.
    pub fn saved(&self, uid: &str, volume_name: &str) {
        let mut inner = self.lock();
        inner.deleted.remove(uid);
        inner.bound.remove(uid);
        inner.creations.remove(uid);
        if inner.claims.contains_key(uid) {
            inner.saved.insert(uid.to_owned(), volume_name.to_owned());
            inner.names.insert(volume_name.to_owned(), uid.to_owned());
        } else {
            inner.free(uid, volume_name);
        }
    }

    /// Whether the claim was seen bound to the volume object that is being saved.
    pub fn is_bound(&self, uid: &str) -> bool {
        self.lock().bound.contains(uid)
    }

    /// Whether a volume object was saved for this claim and the claim has not been seen bound yet.
    pub fn is_saved(&self, uid: &str) -> bool {
        self.lock().saved.contains_key(uid)
    }

    /// Holds a claim back until its request would differ or the hold time is over.
    pub fn hold(&self, uid: &str, request: Fingerprint, now: Instant) {
        self.lock().holds.hold(uid, request, now);
    }

    /// How long the claim is still held back; `None` when it may be tried.
    pub fn held_for(&self, uid: &str, request: &Fingerprint, now: Instant) -> Option<Duration> {
        self.lock().holds.remaining(uid, request, now)
    }

    /// True the first time it is asked for a claim.
    pub fn announce(&self, uid: &str) -> bool {
        self.lock().announced.insert(uid.to_owned())
    }

    /// The claim's class does not exist. True the first time since it last did.
    pub fn misses_class(&self, uid: &str) -> bool {
        self.lock().classless.insert(uid.to_owned())
    }

    /// The claim's class exists.
    pub fn has_class(&self, uid: &str) {
        self.lock().classless.remove(uid);
    }

    /// The durable record of this claim may exist and has to go; until then the claim is not forgotten.
    pub fn record_is_due(&self, uid: &str) {
        self.lock().records_due.insert(uid.to_owned());
    }

    /// There is no record of this claim that has to go.
    pub fn record_is_gone(&self, uid: &str) {
        self.lock().records_due.remove(uid);
    }

    /// Whether the record of this claim has to go.
    pub fn is_record_due(&self, uid: &str) -> bool {
        self.lock().records_due.contains(uid)
    }

    /// Claim UIDs whose record has to go.
    pub fn records_due(&self) -> Vec<String> {
        self.lock().records_due.iter().cloned().collect()
    }

    /// Number of all entries of any kind: what this memory costs.
    pub fn entries(&self) -> usize {
        let inner = self.lock();
        let sets = inner.announced.len() + inner.classless.len() + inner.records_due.len();
        let maps = inner.claims.len() + inner.creations.len() + inner.saved.len() + inner.names.len();
        sets + maps + inner.holds.entries()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn notice_bound(&mut self, uid: &str, claim: &Claim) {
        let Some(Creation::Created(made)) = self.creations.get(uid) else { return };
        let volume = claim.spec.volume_name.as_deref();
        // The phase is the binder's word; the name alone a user can write too.
        if claim.phase() == "Bound" && volume == Some(made.attempt.facts.volume_name.as_str()) {
            self.bound.insert(uid.to_owned());
        }
    }

    fn leave(&mut self, uid: &str) -> Noticed {
        let known = self.claims.remove(uid).is_some();
        self.holds.forget(uid);
        self.announced.remove(uid);
        self.classless.remove(uid);
        if let Some(name) = self.saved.remove(uid) {
            self.free(uid, &name);
        }
        if self.creations.contains_key(uid) || self.records_due.contains(uid) {
            if known { Noticed::Look } else { Noticed::Nothing }
        } else if known {
            Noticed::Left
        } else {
            Noticed::Nothing
        }
    }

    fn free(&mut self, uid: &str, volume_name: &str) {
        if self.names.get(volume_name).is_some_and(|owner| owner == uid) {
            self.names.remove(volume_name);
        }
    }
}

/// Whether anything that a decision depends on differs. Status and unrelated metadata do not count, so that our own
/// and other controllers' writes start no work.
fn differs(old: &Claim, new: &Claim) -> bool {
    old.spec != new.spec
        || old.metadata.annotations != new.metadata.annotations
        || old.metadata.is_being_deleted() != new.metadata.is_being_deleted()
}
