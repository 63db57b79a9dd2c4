//! The volume room's memory: volume objects that need something, attachments per volume, and storage that is gone.
//!
//! Promises:
//! - a volume object that is Bound and as it should be costs nothing;
//! - storage whose deletion the driver confirmed is remembered beyond the end of the object, so that our own writes
//!   coming back as events, and views that fell behind, never start a second deletion (weak point W32);
//! - attachments are counted by volume name, so that no deletion scans them (W17).

use super::attachments::{self, Attachments};
use super::finalizer::{self, Upkeep};
use super::{delete, ownership};
use crate::model::meta::{MetaExt, is_older};
use crate::model::{Driver, Volume};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A volume object that needs something or is not Bound yet.
#[derive(Clone, Debug)]
pub struct HeldVolume {
    /// The object as last seen.
    pub volume: Arc<Volume>,
    /// When this state was seen.
    pub since: Instant,
    /// It came as a live event; a list may be older than what an administrator did since.
    pub live: bool,
}

/// The memory; shared by the watches and the worker.
#[derive(Debug, Default)]
pub struct Book(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: BTreeMap<String, HeldVolume>,
    attachments: Attachments,
    /// A list of attachments has been seen whole: only then "not attached" can be believed.
    attachments_known: bool,
    /// How far the deletion of a volume object got, by UID.
    progress: BTreeMap<String, Remembered>,
    /// When old entries of `progress` were last looked for.
    tidied: Option<Instant>,
    /// When the last "still attached" event of a volume was written.
    told: BTreeMap<String, Instant>,
}

/// How far a deletion got. Our own writes come back as events of states in between, which must not start anything again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The driver confirmed that the storage is gone.
    StorageGone,
    /// The object is deleted and our finalizer is off it; others may still hold it.
    Released,
}

/// See [`Book::set_progress`].
#[derive(Debug)]
struct Remembered {
    progress: Progress,
    name: String,
    at: Instant,
}

/// How long the progress of an object is remembered after it seems to be gone: a list or a watch that fell behind may
/// show it once more. UIDs never come back, so remembering too long costs only memory.
const REMEMBER: Duration = Duration::from_mins(15);
/// Pause between two looks for old entries.
const TIDY: Duration = Duration::from_mins(1);

/// Whether a volume object has to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// Something is due.
    Look,
    /// Nothing to do.
    Nothing,
    /// It needs nothing any more: drop it from the queue.
    Left,
}

impl Book {
    /// Takes in a volume object as the API has it.
    pub fn notice(&self, volume: Volume, live: bool, driver: &Driver, now: Instant) -> Noticed {
        let name = volume.metadata.name().to_owned();
        let mut inner = self.lock();
        let older = |old: &HeldVolume| is_older(volume.metadata.version(), old.volume.metadata.version());
        if inner.held.get(&name).is_some_and(older) {
            return Noticed::Nothing;
        }
        if !ownership::is_ours(&volume, driver) {
            return inner.leave(&name);
        }
        let due = finalizer::upkeep(&volume) != Upkeep::Keep || delete::should_delete(&volume);
        if !due && volume.phase() == "Bound" {
            return inner.leave(&name);
        }
        let unchanged = inner.held.get(&name).is_some_and(|old| {
            old.volume.metadata.resource_version == volume.metadata.resource_version && (old.live || !live)
        });
        if unchanged {
            return Noticed::Nothing;
        }
        inner.held.insert(name, HeldVolume { volume: Arc::new(volume), since: now, live });
        if due { Noticed::Look } else { Noticed::Nothing }
    }

    /// The object is gone.
    pub fn gone(&self, name: &str) -> Noticed {
        self.lock().leave(name)
    }

    /// Names of held objects, for the sweep at the end of a list.
    pub fn names(&self) -> Vec<String> {
        self.lock().held.keys().cloned().collect()
    }

    /// The object as last seen.
    pub fn get(&self, name: &str) -> Option<HeldVolume> {
        self.lock().held.get(name).cloned()
    }

    /// Name of the class of a held volume object; empty if it is not held.
    pub fn class_name(&self, name: &str) -> String {
        self.lock().held.get(name).map_or(String::new(), |held| held.volume.class_name().to_owned())
    }

    /// Claim UID of a held volume object: the existence check of provisioning (provisioning.md 3.5 point 1).
    pub fn claim_of(&self, name: &str) -> Option<String> {
        let inner = self.lock();
        let volume = &inner.held.get(name)?.volume;
        Some(volume.spec.claim_ref.as_ref().map(|claim| claim.uid.clone()).unwrap_or_default())
    }

    /// Remembers how far the deletion of this object got, while it is held and for a while after.
    pub fn set_progress(&self, volume: &Volume, progress: Progress, now: Instant) {
        let mut inner = self.lock();
        inner.tidy(now);
        let remembered = Remembered { progress, name: volume.metadata.name().to_owned(), at: now };
        inner.progress.insert(volume.metadata.uid().to_owned(), remembered);
    }

    /// How far the deletion of this object got.
    pub fn progress(&self, uid: &str) -> Option<Progress> {
        self.lock().progress.get(uid).map(|remembered| remembered.progress)
    }

    /// Takes in an attachment.
    pub fn attached(&self, attachment: &str, volume: &str, node: &str) {
        self.lock().attachments.add(attachment, volume, node);
    }

    /// An attachment is gone; the volume's name if nothing else attaches it and it is held, to wake it (W18).
    pub fn detached(&self, attachment: u64) -> Option<String> {
        let mut inner = self.lock();
        let volume = inner.attachments.remove(attachment)?;
        inner.held.keys().find(|name| attachments::hash(name) == volume).cloned()
    }

    /// A list of attachments has ended.
    pub fn attachments_listed(&self) {
        self.lock().attachments_known = true;
    }

    /// Whether a volume without a known attachment is really detached.
    pub fn knows_attachments(&self) -> bool {
        self.lock().attachments_known
    }

    /// Keys of all attachments, for the sweep at the end of a list.
    pub fn attachment_keys(&self) -> BTreeSet<u64> {
        self.lock().attachments.keys().collect()
    }

    /// A node that the volume is still attached to.
    pub fn attached_to(&self, volume: &str) -> Option<String> {
        self.lock().attachments.node_of(volume).map(str::to_owned)
    }

    /// Whether the "still attached" event of this volume is due: at most one a minute (field fault U01).
    pub fn tell_attached(&self, volume: &str, now: Instant) -> bool {
        let mut inner = self.lock();
        let due = inner.told.get(volume).is_none_or(|last| now.duration_since(*last) >= TELL_AGAIN);
        if due {
            inner.told.insert(volume.to_owned(), now);
        }
        due
    }

    /// Number of all entries of any kind but attachments: what this memory costs.
    pub fn entries(&self) -> usize {
        let inner = self.lock();
        inner.held.len() + inner.progress.len() + inner.told.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shortest time between two events that tell the same waiting.
const TELL_AGAIN: Duration = Duration::from_mins(1);

impl Inner {
    fn leave(&mut self, name: &str) -> Noticed {
        self.told.remove(name);
        if self.held.remove(name).is_some() { Noticed::Left } else { Noticed::Nothing }
    }

    /// Forgets the progress of objects that have been gone for long.
    fn tidy(&mut self, now: Instant) {
        if self.tidied.is_some_and(|last| now.duration_since(last) < TIDY) {
            return;
        }
        self.tidied = Some(now);
        let held = &self.held;
        self.progress.retain(|uid, remembered| {
            let is_held = held.get(&remembered.name).is_some_and(|held| held.volume.metadata.uid() == uid);
            is_held || now.duration_since(remembered.at) < REMEMBER
        });
    }
}
