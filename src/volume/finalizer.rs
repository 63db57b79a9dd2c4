//! Keeps our finalizer on volume objects that must not go before their storage (provisioning.md 7.3).
//!
//! The worker changes the object by this one entry only; the order of the others stays.

use crate::model::Volume;
use crate::model::meta::MetaExt;
use crate::model::volume::VOLUME_FINALIZER;

/// What the volume object's finalizers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Nothing.
    Keep,
    /// Our finalizer: the storage is to be deleted with the object, which may have been made by hand.
    Add,
    /// No finalizer of ours: the storage stays.
    Remove,
}

/// What is due. Ownership ([`super::ownership`]) is not part of it.
pub fn upkeep(volume: &Volume) -> Upkeep {
    let there = volume.metadata.has_finalizer(VOLUME_FINALIZER);
    match volume.reclaim_policy() {
        "Delete" if !there && !volume.metadata.is_being_deleted() && volume.phase() == "Bound" => Upkeep::Add,
        "Retain" | "Recycle" if there => Upkeep::Remove,
        _ => Upkeep::Keep,
    }
}
